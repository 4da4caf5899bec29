/* SPDX-License-Identifier: Apache-2.0 */
/* Passes rewrite a graph into one that computes the same with fewer, larger nodes. Each is one file
 * and one row in passes.c. The result stays valid for the reference kernels.
 *
 * A pass may rely on a value's dtype and dims where they are known (rank >= 0): the driver fills
 * them in by inference, open dims as SAC_DIM_OPEN, and again after each pass that changed
 * something. Only nodes whose outputs are known are visited, so that the node and all before it
 * have passed their shape functions: their attributes, ranks and the presence of inputs need no
 * second check, but those of later nodes do. A pass may leave unused nodes behind; the driver
 * removes them.
 */
#ifndef SAC_ENGINE_PASSES_PASS_H
#define SAC_ENGINE_PASSES_PASS_H

#include "engine/ops/fused.h"
#include "engine/graph/graph.h"

struct sac_pass {
    const char *name; /* also what SACCADE_WITHOUT calls it (model/without.c) */
    /* Tries to rewrite around one node; sets *changed when it did. Where it gives other
     * inputs or outputs to another node that was there, it calls sac_graph_changed. NULL: `whole`
     * is there. */
    sac_result (*visit)(struct sac_graph *g, struct sac_node *n, bool *changed);
    /* Rewrites all of the graph at once, before the others, and refreshes it where it did; types
     * are those of the file. */
    sac_result (*whole)(struct sac_graph *g);
    /* Its steps are slower than those that they replace on a GPU that does not compute in float16;
     * or on the host. */
    bool float16_only, gpu_only;
};
extern const struct sac_pass sac_pass_known_dims, sac_pass_attention, sac_pass_identity,
    sac_pass_transpose, sac_pass_activation, sac_pass_gelu, sac_pass_focus, sac_pass_channels,
    sac_pass_conv, sac_pass_norm, sac_pass_gate, sac_pass_pool, sac_pass_excitation,
    sac_pass_product, sac_pass_rows, sac_pass_wide, sac_pass_rearrange, sac_pass_parts,
    sac_pass_expectation, sac_pass_deform, sac_pass_chain, sac_pass_twin, sac_pass_quantised,
    sac_pass_sums, sac_pass_layer_norm, sac_pass_even, sac_pass_rounded, sac_pass_halves,
    sac_pass_einsum, sac_pass_attention_node, sac_pass_scores, sac_pass_group_norm, sac_pass_expand,
    sac_pass_l2_norm, sac_pass_gains, sac_pass_head_matmul, sac_pass_spread, sac_pass_norm_gain,
    sac_pass_norm_sum, sac_pass_batch_norm, sac_pass_norm_heads, sac_pass_norm_pair, sac_pass_stack,
    sac_pass_linear, sac_pass_scatter, sac_pass_left, sac_pass_eights, sac_pass_shortcut,
    sac_pass_aligned, sac_pass_head_conv, sac_pass_repeated, sac_pass_rotary, sac_pass_rotary_heads,
    sac_pass_glu, sac_pass_norm_ending, sac_pass_conv_ending, sac_pass_conv_transpose,
    sac_pass_adaptive, sac_pass_recurrent, sac_pass_line_sum, sac_pass_head_product;

/* Run all passes over a graph whose constants are folded and whose shapes are probed. Subgraphs
 * stay as they are.
 *
 * without  bit i: pass i of the list is left out, in all its rows. */
sac_result sac_passes_run(struct sac_graph *g, uint64_t memory_limit, uint64_t without);
enum { SAC_PASSES_MAX = 64 }; /* different ones: bits of `without` */
/* The passes that do not suit the host, or a GPU that computes in float16 or does not, as `without`
 * has them. */
uint64_t sac_passes_unsuited(bool host, bool float16);
/* The name of pass i, which may stand in several rows of the list; NULL: there are no more. */
const char *sac_pass_name(int i);

/* Opens a fixed batch of 1 in graph and inputs. SAC_ERR_UNSUPPORTED, with the sentence kept: some
 * layer does not allow it; the graph is then unchanged. */
sac_result sac_graph_free_batch(struct sac_graph *g);

/* ---- for passes ---- */

bool sac_is(const struct sac_node *n, const char *op_type);       /* of ONNX's own domain */
bool sac_is_fused(const struct sac_node *n, const char *op_type); /* of ours */
bool sac_is_any(const struct sac_node *n, const char *const *types, size_t count);
bool sac_is_reshape(const struct sac_node *n); /* the same numbers in the same order */
/* Is the attribute a list of nothing but this number, or left out? */
bool sac_ints_are(const struct sac_node *n, const char *name, int64_t number);
/* Is v a map that a convolution or its like writes in channels last? */
bool sac_is_map(const struct sac_value *v);
/* A convolution of one group whose weights are constant, of a float32 map whose channels are known.
 */
bool sac_is_dense_conv(const struct sac_node *n);
/* The node that makes v, if it is of that type. */
struct sac_node *sac_made_by(const struct sac_value *v, const char *op_type);
/* The only reader of n's first and only output, if it is of that type. */
struct sac_node  *sac_only_reader(const struct sac_node *n, const char *op_type);
struct sac_value *sac_node_input(const struct sac_node *n, int i); /* NULL when left out */
/* For a node of two inputs: the one that is not v (v twice gives v). */
struct sac_value *sac_other_input(const struct sac_node *n, const struct sac_value *v);

bool sac_same_shape(const struct sac_value *a, const struct sac_value *b); /* both known, no open
                                                                              dim but the first */
/* The other input of n, an Add, where it can be v's residual: neither v nor a constant, and of v's
 * shape. Else NULL. */
struct sac_value *sac_residual_beside(const struct sac_node *n, const struct sac_value *v);
int64_t           sac_value_elements(const struct sac_value *v); /* -1: unknown or open */
/* A float32 constant's numbers, or NULL. */
const float *sac_constant_floats(const struct sac_value *v);
/* Of what v is the square, or NULL. */
struct sac_value *sac_square_of(const struct sac_value *v);
/* A float32 constant of one element. */
bool sac_constant_scalar(const struct sac_value *v, float *out);
bool sac_is_number(const struct sac_value *v, float number);
/* A float32 constant that holds one number per channel of an operand of `rank` dimensions with
 * `channels` channels: [C,1,..] right-aligned to dimension 1, or one number for all. Fills out. */
bool sac_constant_per_channel(const struct sac_value *v, int rank, int64_t channels, float *out);
/* What a BatchNormalization with constants does to each of its channels: times scale, plus shift.
 */
bool sac_batch_norm_constants(const struct sac_node *n, int64_t channels, float *scale,
                              float *shift);
/* n, a BatchNormalization or arithmetic with constants, makes y * scale + shift of each channel of
 * v.
 */
bool sac_scales_channels(const struct sac_node *n, const struct sac_value *v, int64_t channels,
                         float *scale, float *shift);
/* The axes of a reduction (attribute or constant input), normalised; false when they are not
 * known. */
bool sac_reduce_axes(const struct sac_node *n, int rank, bool *reduced);
/* Is it the mean over all of each channel's map, [N,C,1,...]? */
bool sac_takes_means(const struct sac_node *n);
bool sac_constant_ints(const struct sac_value *v, int64_t *out, size_t max, size_t *count);
/* A float32 constant of one number, or of one for each of so many columns, beside `rank` dims. */
bool sac_constant_row(const struct sac_value *v, int rank, int64_t columns);
/* The constant bounds of a Slice for each dimension of its input, as they are written; of those
 * that it leaves alone, all. False: they are not constant. */
struct sac_slice_bounds {
    int64_t start[SAC_RANK_MAX], end[SAC_RANK_MAX], step[SAC_RANK_MAX];
};
bool sac_slice_constants(const struct sac_node *n, int rank, struct sac_slice_bounds *out);

/* What v, made by a Slice or a Split, is of another value, of which nothing is cut but along the
 * axis; false: it is none, or something else is cut. */
struct sac_part {
    struct sac_value *of;
    int64_t           begin, end;
};
bool sac_part_along(const struct sac_value *v, int axis, struct sac_part *out);

/* How many zeros a Pad puts before and behind each dim of its input, constant numbers of one dim
 * after the other as ONNX lists them, none negative. */
bool sac_zero_pads(const struct sac_node *n, int rank, int64_t *pads);

/* What a QuantizeLinear or DequantizeLinear with one scale and one zero point for all says about
 * its 8-bit side. */
struct sac_to_bytes {
    float          scale;
    int            zero;
    enum sac_dtype dtype;
};
/* n makes such bytes of float32. */
bool sac_makes_bytes(const struct sac_node *n, struct sac_to_bytes *out);
/* The attributes of a fused node that makes them itself (engine/ops/quant.h). */
sac_result sac_set_bytes(struct sac_graph *g, struct sac_node *n, const struct sac_to_bytes *y);

/* So many channels filled up to a multiple of eight, which kernels read at once, or of sixteen, of
 * which all kernels can make maps, where these cost no more than a twelfth. */
int64_t sac_whole_channels(int64_t count);

/* A Transpose from channels last to channels first, and back; a dimension of each at least. */
bool sac_turns_first(const struct sac_node *n);
bool sac_turns_last(const struct sac_node *n);
/* A Transpose of the last two dims alone. */
bool sac_turns_last_two(const struct sac_node *n);
/* The axis along which a Softmax makes lines of a value of that rank. False: up to opset 12 they
 * go on to the last dim. */
bool sac_softmax_axis(const struct sac_node *n, int rank, int *axis);

/* Stands for an open dim where dims are multiplied and divided: a prime, 2^31 - 1, above all that
 * files have. */
#define SAC_STAND_IN ((int64_t)INT32_MAX)
/* The dims of a value whose elements are `total` in number (0: not known, an open dim is what the
 * prime stands for); *open: the open one, -1: none. False: more than one is open, or they do not
 * fit. */
bool sac_stand_in_dims(const struct sac_value *v, int64_t total, int64_t *dims, int *open);

/* A new value of v's dtype and shape. */
struct sac_value *sac_value_like(struct sac_graph *g, const struct sac_value *v);
/* v by a Reshape to these dims, of which one may be open; NULL, with SAC_OK, where more are or one
 * is 0. Nodes made here have the opset of `like`. */
struct sac_value *sac_reshaped(struct sac_graph *g, const struct sac_node *like,
                               struct sac_value *v, int rank, const int64_t *dims, sac_result *res);
struct sac_value *sac_transposed(struct sac_graph *g, const struct sac_node *like,
                                 struct sac_value *v, const int64_t *perm, sac_result *res);
/* Entries first to first + count - 1 of an axis of v, by a Slice; of its channels. */
struct sac_value *sac_part_of(struct sac_graph *g, const struct sac_node *like, struct sac_value *v,
                              int axis, int64_t first, int64_t count, sac_result *res);
struct sac_value *sac_channels_of(struct sac_graph *g, const struct sac_node *like,
                                  struct sac_value *v, int64_t first, int64_t count,
                                  sac_result *res);
sac_result sac_copy_attrs(struct sac_graph *g, struct sac_node *to, const struct sac_node *from);
/* Replaces old's output by n's first output, which takes its shape. */
sac_result sac_take_over(struct sac_graph *g, struct sac_node *n, struct sac_node *old);
/* A new float32 constant of these dims, numbers to be filled in through *data. */
struct sac_value *sac_new_floats(struct sac_graph *g, const char *name, int rank,
                                 const int64_t *dims, float **data);
/* A new float32 constant of one number. */
struct sac_value *sac_new_number(struct sac_graph *g, float value);
/* The output of a new node of ONNX's own domain with these inputs, NULL being one that could not be
 * made: of dtype and shape of the first. NULL: no memory, which *res says then. */
struct sac_value *sac_made_of(struct sac_graph *g, const struct sac_node *like, const char *type,
                              int inputs, struct sac_value *const *in, sac_result *res);
/* What is added to scores in a mask's place, float32: `low` where the mask is true, or where it is
 * not, else 0. Computed here where the mask is constant. */
struct sac_value *sac_mask_addend(struct sac_graph *g, const struct sac_node *like,
                                  struct sac_value *mask, bool low_where_true, float low,
                                  sac_result *res);
/* The activation that a node computes, a fused one or one of ONNX's, with constant bounds; its data
 * is input 0. */
bool       sac_activation_of(const struct sac_node *n, struct sac_activation *out);
sac_result sac_set_activation(struct sac_graph *g, struct sac_node *n,
                              const struct sac_activation *act);

#endif
