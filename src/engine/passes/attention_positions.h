/* SPDX-License-Identifier: Apache-2.0 */
/* Relative positions that are added to the scores of attention.c, where keys are pixels of a map:
 * each query has a number for each row of it, or for each column, or both, which exporters
 * broadcast over the scores of all pixels. */
#ifndef SAC_ENGINE_PASSES_ATTENTION_POSITIONS_H
#define SAC_ENGINE_PASSES_ATTENTION_POSITIONS_H

#include "engine/passes/strided.h"

struct sac_positions {
    struct sac_value  *row, *column; /* NULL: there are none */
    int64_t            rows, columns, keys;
    struct sac_strided row_view, column_view;
    /* Numbers that are skewed (skew.h) are read as they are: those of a query in a map of so many
     * columns (0: they are not) begin as FusedAttention has it. */
    int64_t query_columns, row_from, column_from;
};

/* Adds what is broadcast over `scores`, of p->keys. False: these are no such positions. */
bool sac_positions_add(struct sac_positions *p, struct sac_value *what,
                       const struct sac_value *scores);
/* Makes the views, of q's batches, heads and queries, of which the last two are known. False: there
 * are none, or with a result that is not SAC_OK. */
bool sac_positions_views(struct sac_graph *g, const struct sac_node *like, struct sac_positions *p,
                         const struct sac_strided *q, sac_result *res);

#endif
