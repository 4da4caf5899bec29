/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that read and check a node's attributes and constant inputs, shared by the reference
 * rows and the devices' kernels. After the shape function has succeeded they fail only with
 * SAC_AGAIN, when the value of a required input is not known. */
#ifndef SAC_ENGINE_OPS_READS_H
#define SAC_ENGINE_OPS_READS_H

#include "engine/ops/fused.h"
#include "engine/ops/util.h"
#include "engine/ops/window.h"

/* rearrange.c */
struct sac_slice {
    int64_t start[SAC_RANK_MAX], step[SAC_RANK_MAX], dims[SAC_RANK_MAX];
};
sac_result sac_transpose_perm(const struct sac_op_call *c, int *perm);
sac_result sac_slice_read(const struct sac_op_call *c, struct sac_slice *s);
/* Expand: own [in rank] are the input's strides, from [out rank] the strides of a copy into the
 * whole output. */
void sac_expand_steps(const struct sac_op_call *c, const int64_t *own, int64_t *from);
/* Tile as one copy over [repeat, dim, repeat, dim, ...], with a source stride of 0 along
 * repeats. */
struct sac_tiling {
    int     rank;
    int64_t dims[2 * SAC_RANK_MAX], from[2 * SAC_RANK_MAX], to[2 * SAC_RANK_MAX];
};
/* in, out [rank] are the operands' strides. */
struct sac_tiling sac_tiling_of(const struct sac_op_call *c, const int64_t *in, const int64_t *out);

/* pad.c */
struct sac_pads {
    int64_t begin[SAC_RANK_MAX], out[SAC_RANK_MAX];
};
enum sac_pad_mode { SAC_PAD_CONSTANT, SAC_PAD_REFLECT, SAC_PAD_EDGE, SAC_PAD_WRAP };
sac_result sac_pad_mode(const struct sac_op_call *c, enum sac_pad_mode *mode);
sac_result sac_pad_read(const struct sac_op_call *c, struct sac_pads *p);

/* reduce.c */
sac_result sac_reduced_axes(const struct sac_op_call *c, bool *reduced);

/* norm.c */
double     sac_norm_floor(const struct sac_node *n); /* of LpNormalization; 0: none */
sac_result sac_mean_variance_axes(const struct sac_op_call *c, bool *reduced);

/* cumulative.c */
sac_result sac_cumulative_axis(const struct sac_op_call *c, int *axis);

/* pool.c */
enum sac_pool_kind { SAC_POOL_MAX, SAC_POOL_AVERAGE, SAC_POOL_LP };
struct sac_pooling {
    enum sac_pool_kind kind;
    struct sac_window  w;
    double             p;             /* of LpPool */
    bool               include_pad;   /* the average counts padding */
    bool               columns_first; /* MaxPool's indices in column order */
};
sac_result sac_pooling_read(const struct sac_op_call *c, struct sac_pooling *p);

/* einsum.c */
enum { SAC_EINSUM_LABELS_MAX = SAC_WALK_DIMS - 1, SAC_EINSUM_INPUTS_MAX = 5 };
/* The dimensions that "..." stands for are labels too: 1 is the last of them, 2 the one before. */
struct sac_term {
    int  count;
    char labels[SAC_RANK_MAX];
};
struct sac_einsum {
    struct sac_term in[SAC_EINSUM_INPUTS_MAX], out;
    int             count; /* labels: those of the output first */
    char            labels[SAC_EINSUM_LABELS_MAX];
    int64_t         dims[SAC_EINSUM_LABELS_MAX];
};
sac_result sac_einsum_parse(const struct sac_op_call *c, struct sac_einsum *e);

/* resize.c */
enum sac_resize_mode { SAC_RESIZE_NEAREST, SAC_RESIZE_LINEAR, SAC_RESIZE_CUBIC };
struct sac_resize {
    enum sac_resize_mode mode;
    const char          *coordinates, *nearest;
    double               cubic_a, extrapolation;
    bool                 antialias, exclude_outside;
    double               scale[SAC_RANK_MAX], roi_start[SAC_RANK_MAX], roi_end[SAC_RANK_MAX];
    int64_t              out[SAC_RANK_MAX];
};
sac_result sac_resize_read(const struct sac_op_call *c, struct sac_resize *r);

/* grid_sample.c */
enum { SAC_SAMPLE_DIMS = 3 };
enum sac_sample_mode { SAC_SAMPLE_NEAREST, SAC_SAMPLE_LINEAR, SAC_SAMPLE_CUBIC };
enum sac_sample_padding { SAC_SAMPLE_ZEROS, SAC_SAMPLE_BORDER, SAC_SAMPLE_REFLECTION };
struct sac_sampler {
    enum sac_sample_mode    mode;
    enum sac_sample_padding padding;
    bool                    align;
    int64_t                 size[SAC_SAMPLE_DIMS];
};
sac_result sac_sampler_read(const struct sac_op_call *c, struct sac_sampler *s);

/* roi_align.c */
struct sac_roi_align {
    int64_t height, width, sampling;
    double  scale, offset; /* of the coordinates */
    bool    max, old;
};
sac_result sac_roi_read(const struct sac_op_call *c, struct sac_roi_align *r);

/* col2im.c */
enum { SAC_COL2IM_DIMS_MAX = SAC_RANK_MAX - 2 };
struct sac_col2im {
    int     rank; /* spatial dimensions */
    int64_t image[SAC_COL2IM_DIMS_MAX], block[SAC_COL2IM_DIMS_MAX], places[SAC_COL2IM_DIMS_MAX];
    int64_t stride[SAC_COL2IM_DIMS_MAX], dilation[SAC_COL2IM_DIMS_MAX], pad[SAC_COL2IM_DIMS_MAX];
};
sac_result sac_col2im_read(const struct sac_op_call *c, struct sac_col2im *p);

/* pool.c */
sac_result sac_unpool_whole(const struct sac_op_call *c, int64_t *dims);

/* scatter.c */
enum sac_combine {
    SAC_COMBINE_NONE,
    SAC_COMBINE_ADD,
    SAC_COMBINE_MUL,
    SAC_COMBINE_MAX,
    SAC_COMBINE_MIN
};
sac_result sac_read_combine(const struct sac_op_call *c, enum sac_combine *out);
sac_result sac_cache_axis(const struct sac_op_call *c, int *axis);

/* quantize.c */
/* How scale and zero point apply to the input: one for all, one per index of an axis, or one per
 * block of `block` indices. Their index: (outer * count + along / block) * inner' + inner. */
struct sac_scaling {
    int64_t length, inner; /* of the axis; of the dimensions after it */
    int64_t count, block;  /* scales along the axis; 0 count: one for all */
    bool    blocked;
};
sac_result sac_read_scaling(const struct sac_op_call *c, struct sac_scaling *s);

/* signal.c */
int64_t sac_mel_corner(const struct sac_op_call *c, int64_t i);

/* attention.c */
/* A [B,H,S,D] view of memory in that order or as [B,S,H*D]. */
struct sac_heads {
    int64_t batch, count, length, size;
    int64_t step[3]; /* elements from one batch, head and position to the next */
};
struct sac_attention {
    struct sac_heads q, k, v;
    int64_t          past, total, group; /* cached keys; all keys; query heads per key head */
    double           scale, softcap;
    bool             causal;
    int64_t          left, right; /* window, -1: open */
    int              mode; /* contents of SCORES: 0 scores, 1 capped, 2 with bias, 3 weights */
};
struct sac_rotary {
    struct sac_heads x;
    int64_t          turned; /* numbers of a head that are rotated; the rest are copied */
    bool             interleaved;
};
sac_result sac_read_heads(const struct sac_op_call *c, int input, const char *count,
                          struct sac_heads *h);
sac_result sac_attention_read(const struct sac_op_call *c, struct sac_attention *a);
sac_result sac_rotary_read(const struct sac_op_call *c, struct sac_rotary *r);

/* fused_rearrange.c */
enum { SAC_REARRANGE_DIGITS = 10, SAC_REARRANGE_RINGS = 3 };
struct sac_rearrange {
    int     axes, digits;
    int64_t size[SAC_RANK_MAX], period[SAC_RANK_MAX], start[SAC_RANK_MAX]; /* of X's axes */
    int     part[SAC_RANK_MAX];  /* the axis of X that is the inner part of this one, -1: none */
    int64_t inner[SAC_RANK_MAX]; /* its length, 1 */
    bool    ring[SAC_RANK_MAX];  /* not simply start plus digits along one axis of X */
    int     axis[SAC_REARRANGE_DIGITS];
    int64_t dim[SAC_REARRANGE_DIGITS], step[SAC_REARRANGE_DIGITS];
};
sac_result sac_rearrange_read(const struct sac_op_call *c, struct sac_rearrange *r);
/* How far apart the entries of each digit lie in an output of these dims and steps; false when a
 * digit is not part of one dim. */
bool sac_rearrange_steps(const struct sac_rearrange *r, int rank, const int64_t *dims,
                         const int64_t *steps, int64_t *to);
/* Each digit is part of one dim of the output, so that it can be written in any layout. */
bool sac_rearrange_fits_dims(const struct sac_op_call *c, const struct sac_rearrange *r);
/* X and the output are maps of the same rank and channels stay channels, so what lies in channels
 * last can stay there. */
bool sac_rearrange_is_map(const struct sac_op_call *c, const struct sac_rearrange *r);

/* rearrange.c: does a Split cut float32 maps, which a node makes, along the channels into what
 * convolutions alone read? They read channels last where it lies. */
bool sac_split_feeds_convs(const struct sac_op_call *c);

/* head_view.c */
enum { SAC_VIEW_RANK = 4, SAC_VIEW_ENTRIES = 1 + 2 * SAC_VIEW_RANK };
/* Numbers [batch,head,token,number] in an operand's memory; steps in elements. */
struct sac_head_view {
    int64_t offset, dim[SAC_VIEW_RANK], step[SAC_VIEW_RANK];
};
/* The attribute of this name, checked: all of the view lies within its operand. */
sac_result sac_head_view_read(const struct sac_op_call *c, const char *name,
                              const struct sac_operand *o, struct sac_head_view *v);
/* Tokens and numbers change places. */
struct sac_head_view sac_head_view_turned(const struct sac_head_view *v);
/* The attribute y, of these dims, which writes each number of output 0 once. */
sac_result sac_head_view_output(const struct sac_op_call *c, const int64_t dims[SAC_VIEW_RANK],
                                struct sac_head_view *y);
/* The output's shape, of so many numbers, as the attribute `shape` has it. */
sac_result sac_head_shape_out(struct sac_op_call *c, enum sac_dtype dtype,
                              const int64_t dims[SAC_VIEW_RANK]);
/* The view of the same numbers in an operand [N,C,...] that lies channels last. False: it is none,
 * or one of the steps goes from one axis to the next. */
bool                  sac_head_view_last(const struct sac_operand *o, const struct sac_head_view *v,
                                         struct sac_head_view *out);
static inline int64_t sac_head_start(const struct sac_head_view *v, int64_t batch, int64_t head)
{
    return v->offset + batch * v->step[0] + head * v->step[1];
}

/* fused_attention.c */
struct sac_fused_attention {
    struct sac_head_view q, k, v, y;
    int64_t              batch, heads, queries, keys, size, v_size;
    int64_t              group; /* neighbouring heads with one head of keys and values */
    int64_t              period, mask_step[SAC_VIEW_RANK]; /* period 0: there is no mask */
    /* Relative positions: rows of `columns` keys each, both 0 where there are none. */
    struct sac_head_view row, column;
    bool                 by_row, by_column;
    int64_t              rows, columns;
    /* The query's number for the first row of keys, and for the first column, is not its first
     * where it depends on the query's own place in a map of so many columns; 0: it does not. */
    int64_t query_columns, row_from, column_from;
    bool    residual; /* q is added to the result */
    float   scale;
};
/* For kernels; the node is checked. In a shape function the output's dims must be set. */
sac_result sac_fused_attention_read(const struct sac_op_call *c, struct sac_fused_attention *a);
/* Where the numbers of a query of head h for rows of keys begin, and those for columns. */
int64_t sac_attention_row(const struct sac_fused_attention *a, int64_t b, int64_t h, int64_t query);
int64_t sac_attention_column(const struct sac_fused_attention *a, int64_t b, int64_t h,
                             int64_t query);

/* fused_rotary.c */
struct sac_fused_rotary {
    struct sac_head_view x;                                              /* where there is one */
    int                  rank;                                           /* of the output */
    int64_t              dims[SAC_RANK_MAX], step[SAC_RANK_MAX], offset; /* steps and offset of X */
    int64_t              size, block; /* numbers of a head, and of what is turned in itself */
};
sac_result sac_fused_rotary_read(const struct sac_op_call *c, struct sac_fused_rotary *r);

/* head_matmul.c */
struct sac_head_matmul {
    struct sac_head_view  a, b, y; /* rows by depth, depth by columns, rows by columns */
    struct sac_head_view  r;       /* as y, of input 3 */
    int64_t               batch, heads, rows, columns, depth;
    float                 scale;
    struct sac_activation act;
    bool                  has_bias, by_row; /* input 2 */
    bool                  has_other, gates; /* input 3 */
};
/* As sac_fused_attention_read. */
sac_result sac_head_matmul_read(const struct sac_op_call *c, struct sac_head_matmul *m);

/* linear_attention.c */
struct sac_linear_attention {
    enum sac_linear_kind kind;
    bool                 lengths;    /* columns of a and b over their lengths */
    struct sac_head_view a, b, c, y; /* tokens by numbers */
    int64_t              batch, heads;
    int64_t              keys, queries; /* tokens of a and b; of c and y */
    int64_t              size, width;   /* numbers of b and c; of a and y */
    float                scale, epsilon;
    int64_t              gain_step; /* of input 3 from head to head: 0 or 1 */
};
/* As sac_fused_attention_read. */
sac_result sac_linear_attention_read(const struct sac_op_call *c, struct sac_linear_attention *a);

/* line_norm.c: LayerNormalization, RMSNormalization and FusedNorm */
struct sac_line_norm {
    enum sac_norm_kind   kind;
    double               epsilon; /* of L1 and L2: what a smaller norm is taken for */
    bool                 whole;   /* what results is over its sum and epsilon */
    bool                 viewed;  /* input 0 is read through x, whose dims are the output's */
    struct sac_head_view x;
    int                  rank, axis; /* of the output; a line's first dim */
    int64_t              dims[SAC_RANK_MAX];
};
sac_result sac_line_norm_read(const struct sac_op_call *c, struct sac_line_norm *n);

/* rnn.c */
enum { SAC_RNN_INPUTS = 8, SAC_RNN_DIRECTIONS = 2, SAC_RNN_ACTIVATIONS = 3 };
struct sac_rnn_activation {
    double (*fn)(double x, double alpha, double beta);
    double alpha, beta;
    int    kind; /* its place in the list of names, which begins with Affine, Relu, Tanh, Sigmoid */
};
enum sac_rnn_kind { SAC_RNN, SAC_GRU, SAC_LSTM };
static inline int sac_rnn_gates(enum sac_rnn_kind kind)
{
    return kind == SAC_RNN ? 1 : kind == SAC_GRU ? 3 : 4;
}
/* Of one direction: of gates, of what is new, of an LSTM's cells. */
static inline int sac_rnn_activations(enum sac_rnn_kind kind)
{
    return kind + 1;
}
struct sac_rnn {
    enum sac_rnn_kind kind;
    bool    summed; /* X has what the input adds to the gates; R lies as FusedRecurrent's */
    int64_t steps, batch, inputs, hidden, gates;
    int     directions;
    bool    reverse_only, batch_first, linear_before_reset, coupled;
    double  clip; /* 0: none */
    struct sac_rnn_activation act[SAC_RNN_DIRECTIONS][SAC_RNN_ACTIVATIONS];
    const double             *in[SAC_RNN_INPUTS]; /* NULL where left out */
};
sac_result sac_rnn_read(const struct sac_op_call *c, struct sac_rnn *r);

/* signal.c */
struct sac_dft {
    int     axis;
    int64_t length, out;   /* of the transform; of the output's axis */
    bool    inverse, half; /* half: of a real signal, whose spectrum is symmetric */
    int64_t parts;         /* numbers of an output element: 1, 2 */
};
struct sac_stft {
    int64_t step, length, frames, out;
};
sac_result sac_dft_read(const struct sac_op_call *c, struct sac_dft *d);
sac_result sac_stft_read(const struct sac_op_call *c, struct sac_stft *s);

#endif
