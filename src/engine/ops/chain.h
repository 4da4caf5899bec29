/* SPDX-License-Identifier: Apache-2.0 */
/* Chain(X0, X1, ...), of the domain "saccade": up to SAC_CHAIN_STEPS elementwise steps on up to
 * SAC_CHAIN_INPUTS float32 inputs, which are broadcast over each other; the last step's numbers are
 * the output.
 *
 * steps  three numbers each: what it computes (enum sac_activation_kind or sac_chain_fn), then one
 *        operand and the other: from 0 on inputs, from SAC_CHAIN_INPUTS on earlier steps, -1 the
 *        step's number alpha
 * alpha, beta   a number of each step; beta only activations have */
#ifndef SAC_ENGINE_OPS_CHAIN_H
#define SAC_ENGINE_OPS_CHAIN_H

#include "engine/ops/fused.h"

struct sac_chain_step {
    int   fn, operand[2];
    float alpha, beta;
};
struct sac_chain {
    int                   count;
    struct sac_chain_step step[SAC_CHAIN_STEPS];
};
/* Reads and checks the attributes of a node with so many inputs; false: they make no chain. */
bool sac_chain_read(const struct sac_node *n, struct sac_chain *out);
/* The same of an Add, Sub, Mul, Div, Max or Min of two, a chain of one step, too. */
bool               sac_chain_of(const struct sac_node *n, struct sac_chain *out);
static inline bool sac_chain_of_two(int fn)
{
    return fn >= SAC_CHAIN_ADD;
}
/* Is something divided by this input, or its logarithm or root taken? */
bool  sac_chain_divides(const struct sac_node *n, int input);
float sac_chain_apply(const struct sac_chain_step *s, float a, float b);

#endif
