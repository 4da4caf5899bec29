/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers of a value's lines are made of, where what stands between a base and the value
 * only takes lines apart, multiplies them by tables and adds them up: exporters spell rotary
 * embeddings in many ways, and all of them compute the same. A line is what lies behind the base's
 * leading dims, which are all but its last; a value on the way may have it in several dims. */
#ifndef SAC_ENGINE_PASSES_ROTARY_TERMS_H
#define SAC_ENGINE_PASSES_ROTARY_TERMS_H

#include "engine/passes/pass.h"

/* Number `of` of the base's line, times a factor, times a number of a table (NULL: 1): the one at
 * place `at` of the line that the table has in its last `tail` dims. */
struct sac_rotary_term {
    int64_t           of, at;
    struct sac_value *table;
    int               tail;
    double            factor;
};
enum { SAC_ROTARY_TERMS = 2 };
struct sac_rotary_number {
    int                    count;
    struct sac_rotary_term term[SAC_ROTARY_TERMS];
};

/* Number i of v's lines as a sum of terms; false: it is none. */
bool sac_rotary_number_of(const struct sac_value *base, const struct sac_value *v, int64_t i,
                          struct sac_rotary_number *out);
/* Does a node do nothing else? Its lines come from its first `*inputs` inputs, or one of them. */
bool sac_rotary_is_seen_through(const struct sac_node *n, int *inputs);

bool sac_rotary_same_constant(const struct sac_value *a, const struct sac_value *b); /* float32 */
/* Exporters write the tables again for each layer, for queries and for keys: of a constant, the one
 * with the same numbers that a node of the graph has, or itself. */
struct sac_value *sac_rotary_shared_table(const struct sac_graph *g, struct sac_value *table);

#endif
