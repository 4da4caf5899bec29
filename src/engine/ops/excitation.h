/* SPDX-License-Identifier: Apache-2.0 */
/* Excitation(X, W1, B1, W2, B2), of the domain "saccade": the means of a map's channels and the two
 * layers between them and their gates (Hu et al., "Squeeze-and-Excitation Networks", 2018).
 *
 *   X [N,C,...], W1 [H,C], B1 [H], W2 [K,H], B2 [K]; output [N,K,1,...]
 *   s = the mean of each channel, h = inner(W1 s + B1), y = activation(W2 h + B2)
 *
 * Attributes: activation, alpha, beta as other fused nodes; inner, inner_alpha, inner_beta. */
#ifndef SAC_ENGINE_OPS_EXCITATION_H
#define SAC_ENGINE_OPS_EXCITATION_H

#include "engine/ops/fused.h"

struct sac_excitation {
    int64_t               n, channels, pixels, hidden, gates; /* pixels: of a map, at least 1 */
    struct sac_activation inner, act;
};

/* Of a call whose shapes have been checked. */
struct sac_excitation sac_excitation_read(const struct sac_op_call *c);

#endif
