/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/cudnn_conv.h"

#include <float.h>
#include <string.h>

/* Names of the tensors in a plan. */
enum { UID_X = 1, UID_W, UID_BIAS, UID_RESIDUAL, UID_Y, UID_VIRTUAL = 100 };
enum { RANK_MAX = 2 + CONV_DIMS };

struct graph_builder {
    struct cudnn_set       *set;
    const struct conv_spec *s;
    /* first spatial dimension that is passed on: 2-D convolutions pass two */
    int             first;
    cudnnDataType_t numbers; /* of maps and weights */
    cudnn_desc      ops[6];
    int             op_count, virtual_count;
};

static int spatial_first(const struct conv_spec *s)
{
    return s->in.size[0] == 1 && s->out.size[0] == 1 && s->kernel[0] == 1 ? 1 : 0;
}

/* ---- tensors ---- */

struct shape {
    int     rank;
    int64_t dims[RANK_MAX], strides[RANK_MAX];
};

static cudnn_desc tensor(struct graph_builder *b, const struct shape *shape, cudnnDataType_t type,
                         int64_t uid, int64_t align, bool is_virtual)
{
    cudnn_desc d = cudnn_make(b->set, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "describe a tensor");
    cudnn_put_type(b->set, d, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    cudnn_put(b->set, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, shape->rank, shape->dims);
    cudnn_put(b->set, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, shape->rank, shape->strides);
    cudnn_put_int(b->set, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    cudnn_put_int(b->set, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, align);
    cudnn_put(b->set, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    return cudnn_done(b->set, d);
}

static struct shape map_shape(const struct graph_builder *b, const struct conv_map *m)
{
    struct shape shape = {.rank = 2 + CONV_DIMS - b->first, .dims = {b->s->n, m->c}};
    int64_t      step = m->pixel;
    shape.strides[0] = m->sample;
    shape.strides[1] = 1;
    for (int d = CONV_DIMS - 1; d >= b->first; d--) {
        shape.dims[2 + d - b->first] = m->size[d];
        shape.strides[2 + d - b->first] = step;
        step *= m->size[d];
    }
    return shape;
}

static struct shape weights_shape(const struct graph_builder *b)
{
    const struct conv_spec *s = b->s;
    const int64_t           outer = s->transposed ? s->in.c : s->out.c;
    const int64_t           inner = (s->transposed ? s->out.c : s->in.c) / s->groups;
    struct shape            shape = {.rank = 2 + CONV_DIMS - b->first, .dims = {outer, inner}};
    int64_t                 step = inner;
    shape.strides[1] = 1;
    for (int d = CONV_DIMS - 1; d >= b->first; d--) {
        shape.dims[2 + d - b->first] = s->kernel[d];
        shape.strides[2 + d - b->first] = step;
        step *= s->kernel[d];
    }
    shape.strides[0] = step;
    return shape;
}

/* Between two operations: never in memory, so dense and float32. */
static cudnn_desc between(struct graph_builder *b)
{
    struct conv_map m = b->s->out;
    m.pixel = m.c;
    m.sample = m.c * m.size[0] * m.size[1] * m.size[2];
    const struct shape shape = map_shape(b, &m);
    return tensor(b, &shape, CUDNN_DATA_FLOAT, UID_VIRTUAL + b->virtual_count++, 16, true);
}

static cudnn_desc output(struct graph_builder *b)
{
    const struct shape shape = map_shape(b, &b->s->out);
    return tensor(b, &shape, b->numbers, UID_Y, b->s->out.align, false);
}

static cudnn_desc bias_tensor(struct graph_builder *b)
{
    struct shape shape = {.rank = 2 + CONV_DIMS - b->first, .dims = {1, b->s->out.c, 1, 1, 1}};
    for (int d = 0; d < shape.rank; d++)
        shape.strides[d] = d == 1 ? 1 : b->s->out.c;
    return tensor(b, &shape, b->numbers, UID_BIAS, 16, false);
}

/* ---- operations ---- */

static void add_op(struct graph_builder *b, cudnn_desc op)
{
    b->ops[b->op_count++] = cudnn_done(b->set, op);
}

static cudnn_desc convolution_desc(struct graph_builder *b)
{
    const struct conv_spec      *s = b->s;
    const int64_t                dims = CONV_DIMS - b->first;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnn_desc d = cudnn_make(b->set, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "describe the window");
    cudnn_put_int(b->set, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, dims);
    cudnn_put_type(b->set, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    cudnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    cudnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, dims,
              s->pad_begin + b->first);
    cudnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, dims,
              s->pad_end + b->first);
    cudnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dims,
              s->dilation + b->first);
    cudnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, dims,
              s->stride + b->first);
    return cudnn_done(b->set, d);
}

static void add_convolution(struct graph_builder *b, cudnn_desc y)
{
    const struct shape in = map_shape(b, &b->s->in), taps = weights_shape(b);
    cudnn_desc         x = tensor(b, &in, b->numbers, UID_X, b->s->in.align, false);
    cudnn_desc w = tensor(b, &taps, b->numbers, UID_W, 16, false), window = convolution_desc(b);
    cudnn_desc op = cudnn_make(b->set, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                               "describe the convolution");
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, window);
    cudnn_put_float(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1);
    cudnn_put_float(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0);
    add_op(b, op);
}

/* The gradient of a convolution is the transposed one. */
static void add_transposed(struct graph_builder *b, cudnn_desc y)
{
    const struct shape in = map_shape(b, &b->s->in), taps = weights_shape(b);
    cudnn_desc         x = tensor(b, &in, b->numbers, UID_X, b->s->in.align, false);
    cudnn_desc w = tensor(b, &taps, b->numbers, UID_W, 16, false), window = convolution_desc(b);
    cudnn_desc op = cudnn_make(b->set, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                               "describe the transposed convolution");
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, x);
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w);
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, y);
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, window);
    cudnn_put_float(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1);
    cudnn_put_float(b->set, op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0);
    add_op(b, op);
}

static cudnn_desc pointwise_desc(struct graph_builder *b, cudnnPointwiseMode_t mode)
{
    cudnn_desc d =
        cudnn_make(b->set, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "describe a pointwise operation");
    cudnn_put(b->set, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    cudnn_put_type(b->set, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    return d;
}

/* other NULL: of one operand. */
static void add_pointwise(struct graph_builder *b, cudnn_desc mode, cudnn_desc x, cudnn_desc other,
                          cudnn_desc y)
{
    cudnn_desc op = cudnn_make(b->set, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                               "add a pointwise operation");
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (other)
        cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other);
    cudnn_put_desc(b->set, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add_op(b, op);
}

static bool mode_of(enum sac_activation_kind kind, cudnnPointwiseMode_t *out)
{
    switch (kind) {
    case SAC_ACT_RELU:
    case SAC_ACT_LEAKY_RELU:
    case SAC_ACT_CLIP: *out = CUDNN_POINTWISE_RELU_FWD; return true;
    case SAC_ACT_SIGMOID: *out = CUDNN_POINTWISE_SIGMOID_FWD; return true;
    case SAC_ACT_SILU: *out = CUDNN_POINTWISE_SWISH_FWD; return true;
    case SAC_ACT_TANH: *out = CUDNN_POINTWISE_TANH_FWD; return true;
    case SAC_ACT_SOFTPLUS: *out = CUDNN_POINTWISE_SOFTPLUS_FWD; return true;
    case SAC_ACT_GELU: *out = CUDNN_POINTWISE_GELU_FWD; return true;
    default: return false;
    }
}

bool cudnn_graph_can_fuse(const struct conv_spec *s)
{
    cudnnPointwiseMode_t mode;
    if (conv_residual_is_part(s) || s->ending)
        return false;
    if (s->act.kind == SAC_ACT_CLIP) /* saccade handles reversed ranges */
        return s->act.alpha <= s->act.beta;
    return s->act.kind == SAC_ACT_NONE || mode_of(s->act.kind, &mode);
}

static cudnn_desc activation_desc(struct graph_builder *b)
{
    const struct sac_activation *act = &b->s->act;
    cudnnPointwiseMode_t         mode = CUDNN_POINTWISE_IDENTITY;
    mode_of(act->kind, &mode);
    cudnn_desc d = pointwise_desc(b, mode);
    if (act->kind == SAC_ACT_LEAKY_RELU)
        cudnn_put_float(b->set, d, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, act->alpha);
    if (act->kind == SAC_ACT_CLIP) {
        cudnn_put_float(b->set, d, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP,
                        SAC_CLAMP(act->alpha, -FLT_MAX, FLT_MAX));
        cudnn_put_float(b->set, d, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP,
                        SAC_CLAMP(act->beta, -FLT_MAX, FLT_MAX));
    }
    return cudnn_done(b->set, d);
}

/* The steps after the sums, in the order of cuDNN's own fused kernels: residual, bias,
 * activation. */
struct step {
    enum { STEP_RESIDUAL, STEP_BIAS, STEP_ACTIVATION } kind;
};

static int steps_of(const struct conv_spec *s, struct step out[4])
{
    int n = 0;
    if (s->residual_kind == SAC_RESIDUAL_BEFORE)
        out[n++].kind = STEP_RESIDUAL;
    if (s->bias)
        out[n++].kind = STEP_BIAS;
    if (s->act.kind != SAC_ACT_NONE)
        out[n++].kind = STEP_ACTIVATION;
    if (s->residual_kind == SAC_RESIDUAL_AFTER)
        out[n++].kind = STEP_RESIDUAL;
    return n;
}

static void add_step(struct graph_builder *b, struct step step, cudnn_desc from, cudnn_desc to)
{
    if (step.kind == STEP_ACTIVATION) {
        add_pointwise(b, activation_desc(b), from, NULL, to);
        return;
    }
    const struct shape shape = map_shape(b, &b->s->residual);
    cudnn_desc         other = step.kind == STEP_BIAS ? bias_tensor(b)
                                                      : tensor(b, &shape, b->numbers, UID_RESIDUAL,
                                                               b->s->residual.align, false);
    add_pointwise(b, cudnn_done(b->set, pointwise_desc(b, CUDNN_POINTWISE_ADD)), from, other, to);
}

bool cudnn_graph_make(const struct cudnn_target *t, const struct conv_spec *s, bool fused,
                      enum cudnn_shape shape, struct cudnn_graph *out)
{
    *out = (struct cudnn_graph){.set = {.api = t->api}, .fused = fused};
    struct graph_builder b = {.set = &out->set,
                              .s = s,
                              .first = spatial_first(s),
                              .numbers = s->precision == SAC_PRECISION_FP16 ? CUDNN_DATA_HALF
                                                                            : CUDNN_DATA_FLOAT};
    struct step          steps[4];
    const int            count = fused ? steps_of(s, steps) : 0;
    cudnn_desc           at = count == 0 ? output(&b) : between(&b);
    if (s->transposed)
        add_transposed(&b, at);
    else
        add_convolution(&b, at);
    for (int i = 0; i < count; i++) {
        cudnn_desc next = i == count - 1 ? output(&b) : between(&b);
        add_step(&b, steps[i], at, next);
        at = next;
    }
    cudnn_desc g =
        cudnn_make(&out->set, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "finish the graph");
    cudnn_put(&out->set, g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              b.op_count, b.ops);
#if CUDNN_HAS_KERNEL_CACHE
    const bool any = shape == CUDNN_ANY_SHAPE;
    if (any)
        cudnn_put(&out->set, g, CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED,
                  CUDNN_TYPE_BOOLEAN, 1, &any);
#else
    (void)shape;
#endif
    if (t->handle)
        cudnn_put(&out->set, g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &t->handle);
    out->graph = cudnn_done(&out->set, g);
    return cudnn_good(&out->set);
}

void cudnn_graph_finish(struct cudnn_graph *g)
{
    cudnn_set_finish(&g->set);
}

/* ---- running ---- */

cudnnStatus_t cudnn_plan_run(const struct cudnn_target *t, const struct cudnn_plan *p,
                             const struct conv_spec *s, bool fused,
                             const struct cudnn_tensors *tensors)
{
    struct cudnn_set set = {.api = t->api};
    int64_t          uids[5] = {UID_X, UID_W, UID_Y};
    const void      *data[5] = {tensors->x, tensors->w, tensors->y};
    int64_t          n = 3;
    if (fused && s->bias) {
        uids[n] = UID_BIAS;
        data[n++] = tensors->bias;
    }
    if (fused && s->residual_kind != SAC_RESIDUAL_NONE) {
        uids[n] = UID_RESIDUAL;
        data[n++] = tensors->residual;
    }
    cudnn_desc pack =
        cudnn_make(&set, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "hand over the tensors");
    cudnn_put(&set, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uids);
    cudnn_put(&set, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, data);
    cudnn_put(&set, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
              &tensors->workspace);
    cudnn_done(&set, pack);
    cudnnStatus_t res = cudnn_good(&set) ? t->api->execute(t->handle, p->plan, pack) : set.status;
    cudnn_set_finish(&set);
    return res;
}
