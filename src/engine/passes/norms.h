/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of lines along the last dim, LayerNormalization and its like, as one FusedNorm each, for
 * the passes that give it more to do. */
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
/* The FusedNorm with a view that makes operand 0 to 2 of a FusedAttention for it alone; NULL: none
 * does. */
struct sac_node *sac_norm_before(const struct sac_node *attention, int operand);

#endif
