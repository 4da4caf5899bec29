/* SPDX-License-Identifier: Apache-2.0 */
/* Fused groups, the operators of the domain "saccade": the passes replace several nodes by one of
 * them, so that a device can run them as one. Each has a row with a reference like any other
 * operator.
 *
 *   Activation(X)             activation, alpha, beta
 *   FusedAttention(Q, K, V, M?, R?, C?)
 *                             softmax(scale Q K^T + M) V; each of Q, K, V, R, C and the output is
 *                             read or written where it lies, through a view (below); y_type,
 *                             y_scale, y_zero as in engine/ops/quant.h
 *   HeadMatMul(A, B, C?, R?)  act(scale A B + C) of the matrices of heads, plus R, or with gates
 *                             (1) times R; A, B, R and the output are each read or written where
 *                             they lie, through views (below). A or B of one batch, or of one head,
 *                             is that of all. C has a number for each column of the product, or by
 *                             row with by_row (1); activation, alpha, beta
 *   LinearAttention(A, B, C, G?)
 *                             attention by way of a small matrix for each head, the sum over all
 *                             tokens of what keys and values have in common (below)
 *   FusedBatchNorm(X, scale, B, mean, variance)  BatchNormalization's inference: epsilon,
 *                             activation, alpha, beta
 *   FusedGroupNorm(X, scale, B, R?)  GroupNormalization with numbers for each channel, of as many
 *                             groups as channels InstanceNormalization: num_groups, epsilon;
 *                             activation, alpha, beta; residual as FusedConv, of X's shape
 *   FusedConv(X, W, B?, R?, A?)  Conv's attributes; activation, alpha, beta; residual, which may
 *                             have fewer channels than the output, whose others then have none; A,
 *                             [3,channels]: times A[0] plus A[1] behind the activation, and a
 *                             residual that is added behind that is times A[2]
 *   FusedMatMul(X, W, B?, R?, A?)  act(X W + B) over X [..., k], W [k, n], B [n] and R of the
 *                             output's shape: activation, alpha, beta; residual and A, [3,n], as
 *                             FusedConv
 *   QuantConv(X, W, B?, R?, S)   FusedConv of 8-bit numbers: engine/ops/quant.h
 *   QuantMatMul(X, W, B?, R?, S) FusedMatMul of them, likewise
 *   FusedNorm(X, S?, B?, R?)  each line of X made one in what its kind says, times S, plus B, both
 *                             broadcast, plus R of the output's shape (below)
 *   FusedRotary(X, C, S)      the numbers of heads turned by the angles of their positions (below)
 *   FusedRecurrent(S, , R, B?, lengths?, h?, c?, P?)  RNN, GRU or LSTM by kind, 0 to 2, of sums S
 *                             that the input, with its bias, adds to the gates: X's dims, the last
 *                             [directions * gates * hidden]. R lies as [directions,hidden,hidden,
 *                             gates], the third dim the numbers that are made, and B, the recurrent
 *                             bias, as [directions,gates * hidden]; all else as in the node
 *   Chain(X0, X1, ...)        elementwise steps on the broadcast inputs: engine/ops/chain.h
 *   DeformAttention(V, P, W)  attention to a few places of maps: engine/ops/deform_attention.h
 *   Rearrange(X, R?)          X's numbers in another order, or some of them, or with zeros between
 *                             (below); plus R of the output's shape
 *   SampleNorm(X, scale?, B?) every sample to mean 0 and variance 1 over all its numbers, then
 *                             scale and shift per channel: epsilon, activation, alpha, beta
 *   GatedSum(X0, G0, X1, G1, ...)  sum of Xi * Gi, Xi [N,C,spatial...], Gi [N or 1,C,1...];
 *                             with parts (1), so many parts of the channels are added up too;
 *                             activation, alpha, beta
 *   Excitation(X, W1, B1, W2, B2)  means of channels and two layers from them to their gates:
 *                             engine/ops/excitation.h
 *   Expectation(X, W, M?, R?) means of constants by the shares of a softmax, and the boxes that are
 *                             sums of them: engine/ops/expectation.h
 *
 * The views of FusedAttention are attributes q, k, v, rows, columns and y, those of HeadMatMul a,
 * b, r and y, nine numbers each: the offset of the first number in the operand, then how many
 * batches, heads, tokens and numbers of a head there are, then the step from one to the next of
 * each, in elements. q_open and so on, [axis, bits]: the numbers whose bit is set count for each
 * entry of that axis of the operand, whose size is open. So many heads as the attribute group says
 * (1) follow each other that have one head of keys and values, of which k and v then have fewer. M
 * is [period, heads or 1, queries or 1, keys], batch b reads entry b % period. shape is the
 * output's, -1 where it is open. A query all of whose keys are masked by -inf gives zeros.
 *
 * R and C of FusedAttention stand in M's place where keys are pixels of a map, in rows of so many
 * columns: what a query adds to the score of key j is R[j / columns] + C[j % columns], or one of
 * them (decomposed relative positions, Li et al., MViTv2, 2022). Each has batches, heads and
 * queries as Q has them, read through the views rows and columns; as numbers of a head the one has
 * the rows that there are, the other the columns. Both are finite. With residual (1) Q itself is
 * added to the result, where there is no M and values have as many numbers as keys.
 *
 * With relative, five numbers, those of R and C are for places relative to the query's (Srinivas et
 * al., BoTNet, 2021): keys are pixels of a map of relative[0] rows of relative[1] columns, queries
 * of one of relative[2] columns. Of query i the first row has number relative[3] - i / relative[2]
 * of R, the first column number relative[4] - i % relative[2] of C, the others those behind.
 *
 * LinearAttention reads A [tokens,width] and B [tokens,size] of each head through views a and b as
 * above, makes the state S = scale A^T B, [width,size], and from C [tokens,size], read through c,
 * Y = C S^T, written through y. By its kind, a number of enum sac_linear_kind:
 *   shares  each row of S is replaced by its softmax, of which G, one number or one a head, is a
 *           factor before; with lengths (1), each column of A and B is over its length, which is
 *           taken for no less than epsilon (cross-covariance attention, El-Nouby et al., 2021)
 *   tokens  each column of B is replaced by its softmax (efficient attention, Shen et al., 2018)
 *   ratio   max(B, 0) and max(C, 0) take the place of B and C, and each token of Y is over what the
 *           products of its max(C, 0) with those of B sum up to, plus epsilon (linear attention,
 *           Katharopoulos et al., 2020)
 *
 * FusedNorm's kind is a number of enum sac_norm_kind; lines run from axis (-1) to the last dim, and
 * epsilon is that of LayerNormalization (1e-5), of L1 and L2 what a smaller norm is taken for (0: a
 * line of zeros stays one), of a sum what is added to it. With whole (1) a line of shares, to which
 * S, B and R have been applied, is made one in its sum in turn. With a view x, as those of
 * FusedAttention, the line is its last dim, and the output has its four dims. y_type, y_scale and
 * y_zero are as in engine/ops/quant.h.
 *
 * FusedRotary turns pairs of the numbers of a line, X's last dim (rotary position embeddings, Su et
 * al., RoFormer, 2021): in each block of so many numbers, the attribute block, number i and number
 * i + block / 2 are a pair. The first becomes X[i] C[i] - X[i + block / 2] S[i], the second
 * X[i + block / 2] C[i + block / 2] + X[i] S[i + block / 2]. C and S are broadcast, but have all
 * numbers of a line; where C is 1 and S is 0 nothing is turned. x is a view as FusedNorm's.
 *
 * Rearrange counts its output by digits, the last of them fastest: dims, how many values each has
 * (-1: as many as its axis, which is open); axis, the axis of X that it moves along; step, how far.
 * The coordinate on an axis is start, one number for each axis of X, plus what its digits add,
 * modulo period; where that is not on the axis, the output is 0. A period of 0 is the axis's own
 * length. So a roll is a start, a window two digits of one axis, padding a period longer than the
 * axis; shape is as above. The digits of an axis together reach less than one period. For windows
 * that are put together and then rolled, into names for each axis of X an axis, itself or one
 * before it, that it is the inner part of: the two count as one, which has the name of the outer.
 */
#ifndef SAC_ENGINE_OPS_FUSED_H
#define SAC_ENGINE_OPS_FUSED_H

#include "engine/ops/fused_kinds.h"
#include "engine/ops/op.h"

struct sac_activation {
    enum sac_activation_kind kind;
    float                    alpha, beta;
};

/* The activation that a node computes, a fused one or one of ONNX's. Clip's bounds may be inputs,
 * which the caller reads. */
bool sac_activation_from_attrs(const struct sac_node *n, struct sac_activation *out);
struct sac_activation sac_activation_read(const struct sac_node *n);
/* A file can use the domain too, so the number in its attribute may be anything. */
bool  sac_activation_is_known(const struct sac_node *n, const char *attr);
float sac_activate(float x, const struct sac_activation *a);

/* The fields that the rows of fused groups have alike. */
#define SAC_FUSED_ROW(op, in_min, in_max)                                           \
    .id = SAC_OP_##op, .name = #op, .domain = "saccade", .opset_min = 1,            \
    .opset_max = SAC_OPSET_NEWEST, /* nodes keep the opset of those they replace */ \
        .input_min = in_min, .input_max = in_max, .output_max = 1

/* R, input 3, goes with the attribute `residual`, and has the dims of output 0, or fewer channels
 * (of [N,C,...]) where it may. */
sac_result sac_residual_check(const struct sac_op_call *c, bool fewer);
/* Adds it to y, of output 0's size, and applies the activation. The first r_run numbers of each
 * y_run have a residual. */
void sac_residual_and_activation(const struct sac_op_call *c, float *y, int64_t y_run,
                                 int64_t r_run);

/* The attribute `shape` for `count` numbers, in which one dim may be open. */
sac_result sac_fused_dims(const struct sac_op_call *c, int64_t count, int64_t *dims, int *rank);

#endif
