/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of lines along the last dim, LayerNormalization and its like, as one FusedNorm each, for
 * the passes that give it more to do; and what reads an attention's heads. */
#ifndef SAC_ENGINE_PASSES_NORMS_H
#define SAC_ENGINE_PASSES_NORMS_H

#include "engine/passes/pass.h"

enum { SAC_NORM_SCALE = 1, SAC_NORM_SHIFT, SAC_NORM_RESIDUAL }; /* inputs of a FusedNorm */

/* Of float32, with one output, which is not of 8 bits: LayerNormalization, RMSNormalization,
 * LpNormalization along the last axis, or a FusedNorm. */
bool sac_is_line_norm(const struct sac_node *n);
/* A FusedNorm with the same inputs, and room for all; NULL: no memory, which *res says then. */
struct sac_node *sac_line_norm_again(struct sac_graph *g, const struct sac_node *norm,
                                     sac_result *res);
/* The constant, broadcast beside v, leaves v's shape as it is. */
bool sac_fits_beside(const struct sac_value *constant, const struct sac_value *v);
/* Who reads heads through a view: an attention, or what is done to their lines before it. */
struct sac_heads_reader {
    struct sac_node *node;
    int              input;
    const char      *name, *open_name; /* of the view */
};
/* A FusedAttention, which reads its operand 0 to 2. */
struct sac_heads_reader sac_heads_reader_of(struct sac_node *attention, int operand);
/* The FusedNorm or FusedRotary with a view that makes what is read for this reader alone; false:
 * none does. */
bool sac_heads_reader_before(struct sac_heads_reader *r);

#endif
