/* SPDX-License-Identifier: Apache-2.0 */
/* Gated linear units: of products with columns (glu.c), and of those from the left (glu_left.c). */
#ifndef SAC_ENGINE_PASSES_GLU_H
#define SAC_ENGINE_PASSES_GLU_H

#include "engine/passes/pass.h"

/* n: a Mul of two values of one shape. */
sac_result sac_glu_of_left(struct sac_graph *g, struct sac_node *n, bool *changed);

#endif
