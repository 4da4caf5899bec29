/* SPDX-License-Identifier: Apache-2.0 */
/* QuantConv and QuantMatMul for the planner: 8-bit numbers channels last (a product's rows are
 * that), with what is behind the sums in the same kernel. */
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_copies.h"
#include "engine/cuda/products/quant_kernel.h"

static enum sac_layout layout_of(const struct sac_kernel_question *q, enum sac_dtype dtype,
                                 bool last)
{
    const bool half = dtype == SAC_F32 && q->precision == SAC_PRECISION_FP16;
    if (last)
        return half ? SAC_LAYOUT_CHANNELS_LAST_HALF : SAC_LAYOUT_CHANNELS_LAST;
    return half ? SAC_LAYOUT_PLAIN_HALF : SAC_LAYOUT_PLAIN;
}

static struct sac_kernel_offer quant_supports(struct sac_device                *dev,
                                              const struct sac_kernel_question *q)
{
    const struct sac_op_call    *c = q->call;
    const bool                   last = c->node->op->id == SAC_OP_QuantConv;
    struct sac_kernel_offer      offer = sac_kernel_take(q);
    const struct sac_kernel_plan plan = sac_kernel_unplaced(q);
    struct quant_spec            spec;
    char                         why[160];
    (void)dev;
    if (!quant_spec_read(&plan, &spec, why, sizeof why))
        return sac_kernel_refuse("%s", why);
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    offer.in_layout[0] = layout_of(q, c->in[0].dtype, last);
    if (sac_op_has(c, SAC_RESIDUAL_INPUT))
        offer.in_layout[SAC_RESIDUAL_INPUT] = layout_of(q, c->in[SAC_RESIDUAL_INPUT].dtype, last);
    offer.out_layout[0] = layout_of(q, c->out[0].dtype, last);
    offer.strided = last;
    offer.in_place = -1;
    return offer;
}

/* ---- constants ---- */

struct source {
    struct sac_device            *dev;
    const struct sac_kernel_plan *plan;
    const struct quant_spec      *spec;
    void                         *host;
};

static const void *constant(const struct source *s, int i)
{
    return sac_op_has(s->plan->call, i) ? s->plan->call->in[i].data : NULL;
}

static void pack_part(void *arg, int64_t begin, int64_t end)
{
    const struct source *s = arg;
    quant_weights_pack(s->spec, constant(s, 1), s->host, begin, end);
}

static void fill_weights(void *arg, void *host)
{
    struct source *s = arg;
    s->host = host;
    fill_in_pieces(s->dev, quant_weights_bytes(s->spec), s->spec->conv.out.c, pack_part, s);
}

static void fill_scale(void *arg, void *host)
{
    const struct source *s = arg;
    memcpy(host, constant(s, SAC_QUANT_SCALE), (size_t)s->spec->conv.out.c * sizeof(float));
}

static void fill_bias(void *arg, void *host)
{
    const struct source *s = arg;
    if (quant_moves_bias(s->spec))
        quant_bias_pack(s->spec, constant(s, 1), constant(s, SAC_QUANT_SCALE),
                        constant(s, SAC_QUANT_BIAS), host);
    else
        memcpy(host, constant(s, SAC_QUANT_BIAS), (size_t)s->spec->conv.out.c * sizeof(float));
}

static sac_result get_bias(struct source *s, size_t bytes, void **out)
{
    struct sac_weights *w = s->plan->weights;
    char                form[96];
    if (!quant_moves_bias(s->spec))
        return s->spec->conv.bias ? w->ops->get(w, constant(s, SAC_QUANT_BIAS), "numbers f32",
                                                bytes, fill_bias, s, out)
                                  : SAC_OK;
    /* what it is made of */
    snprintf(form, sizeof form, "quant bias %p %p less %d", constant(s, SAC_QUANT_BIAS),
             constant(s, SAC_QUANT_SCALE), s->spec->q.x_zero);
    return w->ops->get(w, constant(s, 1), form, bytes, fill_bias, s, out);
}

static void fill_half_bias(void *arg, void *host)
{
    const struct source *s = arg;
    const float         *from = constant(s, SAC_QUANT_BIAS);
    for (int64_t i = 0; i < s->spec->conv.out.c; i++)
        ((uint16_t *)host)[i] = sac_float_to_half(from[i]);
}

/* What cuBLASLt needs beside the kernels' constants, and its variants. */
static sac_result get_lt(struct sac_device *dev, struct quant_state *s,
                         struct sac_kernel_plan *plan)
{
    struct source       source = {.dev = dev, .plan = plan, .spec = &s->spec};
    struct sac_weights *w = plan->weights;
    const float        *scale = constant(&source, SAC_QUANT_SCALE);
    const float        *bias = constant(&source, SAC_QUANT_BIAS);
    void               *half = NULL;
    sac_result          res = SAC_OK;
    if (!quant_lt_fits(&s->spec, s->gpu->capability) || !quant_lt_takes(&s->spec, scale, bias))
        return SAC_OK;
    if (bias)
        res = w->ops->get(w, bias, "quant bias f16", (size_t)s->spec.conv.out.c * sizeof(uint16_t),
                          fill_half_bias, &source, &half);
    if (res == SAC_OK)
        quant_lt_make(s->gpu, &s->spec, scale[0], half, &s->lt);
    return res;
}

static sac_result get_constants(struct sac_device *dev, struct quant_state *s,
                                struct sac_kernel_plan *plan)
{
    struct source       source = {.dev = dev, .plan = plan, .spec = &s->spec};
    struct sac_weights *w = plan->weights;
    const size_t        bytes = (size_t)s->spec.conv.out.c * sizeof(float);
    void               *weights = NULL, *scale = NULL, *bias = NULL;
    sac_result          res =
        w->ops->get(w, constant(&source, 1), s->spec.conv.turned ? "quant turned" : "quant last",
                    quant_weights_bytes(&s->spec), fill_weights, &source, &weights);
    if (res == SAC_OK)
        res = w->ops->get(w, constant(&source, SAC_QUANT_SCALE), "numbers f32", bytes, fill_scale,
                          &source, &scale);
    if (res == SAC_OK)
        res = get_bias(&source, bytes, &bias);
    s->weights = weights;
    s->scale = scale;
    s->bias = bias;
    plan->in_taken[1] = plan->in_taken[SAC_QUANT_SCALE] = true;
    plan->in_taken[SAC_QUANT_BIAS] = s->spec.conv.bias;
    return res;
}

/* ---- the state ---- */

static void quant_release(void *state)
{
    struct quant_state *s = state;
    quant_lt_finish(&s->lt);
    sac_free(s);
}

static sac_result make_ready(struct sac_device *dev, struct quant_state *s,
                             struct sac_kernel_plan *plan)
{
    sac_result res = get_constants(dev, s, plan);
    if (res == SAC_OK)
        res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = get_lt(dev, s, plan);
    if (res == SAC_OK)
        quant_choose(dev, s, plan);
    cuda_leave();
    return res;
}

static sac_result quant_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    char                why[160] = "", label[256];
    struct quant_state *s = sac_new(struct quant_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    s->gpu = products_gpu_of(dev);
    snprintf(s->label, sizeof s->label, "%.90s",
             sac_node_label(plan->call->node, label, sizeof label));
    sac_result res = quant_spec_read(plan, &s->spec, why, sizeof why)
                         ? make_ready(dev, s, plan)
                         : SAC_OP_FAIL(plan->call, SAC_ERR_UNSUPPORTED, "%s", why);
    if (res != SAC_OK) {
        quant_release(s);
        return res;
    }
    conv_choice_print(&s->choice, plan->chosen, sizeof plan->chosen);
    snprintf(plan->implementation, sizeof plan->implementation, "%.60s", plan->chosen);
    plan->scratch_bytes = quant_scratch(s);
    plan->state = s;
    return SAC_OK;
}

enum { SCRATCH_ALIGN = 256 };

size_t quant_scratch(const struct quant_state *s)
{
    size_t bytes = 0;
    if (s->choice.way == CONV_LT)
        bytes = quant_lt_workspace(&s->lt, (int)s->choice.engine);
    else if (s->choice.way != CONV_BYTES_PLAIN)
        bytes = (size_t)quant_scratch_bytes(&s->spec);
    return bytes > 0 ? bytes + SCRATCH_ALIGN : 0;
}

static cudaError_t run_tensor(const struct quant_state *s, const struct quant_operands *o,
                              bool laid, cudaStream_t stream)
{
    const int                 variant = (int)s->choice.engine;
    struct conv_copy_shape    shapes[TENSOR_MAPS];
    struct conv_tensor_params p = quant_tensor_params(&s->spec, o, laid, variant, shapes);
    return conv_copies_run(&p, shapes, s->spec.kind, variant, s->gpu->processors, stream);
}

static cudaError_t run_choice(const struct quant_state *s, const struct quant_operands *o,
                              bool laid, void *scratch, cudaStream_t stream)
{
    const int variant = (int)s->choice.engine;
    if (s->choice.way == CONV_LT)
        return quant_lt_run(&s->lt, variant, o, scratch, stream);
    if (s->choice.way == CONV_TENSOR)
        return run_tensor(s, o, laid, stream);
    if (s->choice.way == CONV_STREAM) {
        const struct conv_stream_params p = quant_stream_params(&s->spec, o, laid);
        return conv_launch_stream(&p, s->spec.kind, variant, s->gpu->processors, stream);
    }
    const struct conv_bytes_params p = quant_params(&s->spec, o, laid);
    return s->choice.way == CONV_BYTES ? conv_launch_bytes(&p, s->spec.kind, variant, stream)
                                       : conv_launch_bytes_plain(&p, s->spec.kind, stream);
}

cudaError_t quant_execute(const struct quant_state *s, const struct conv_pointers *p,
                          cudaStream_t stream)
{
    const bool  lays = s->choice.way != CONV_BYTES_PLAIN && !quant_is_laid_out(&s->spec);
    void *const laid =
        (void *)(((uintptr_t)p->scratch + SCRATCH_ALIGN - 1) & ~(uintptr_t)(SCRATCH_ALIGN - 1));
    const struct quant_operands        operands = {.x = lays ? laid : p->x,
                                                   .weights = s->weights,
                                                   .scale = s->scale,
                                                   .bias = s->bias,
                                                   .residual = p->residual,
                                                   .y = p->y};
    const struct conv_bytes_lay_params lay = quant_lay_params(&s->spec, p->x, laid);
    const cudaError_t res = lays ? conv_launch_bytes_lay(&lay, stream) : cudaSuccess;
    return res != cudaSuccess ? res : run_choice(s, &operands, lays, laid, stream);
}

static sac_result quant_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                            void *scratch, struct sac_device_stream *stream)
{
    const struct quant_state  *s = state;
    const bool                 added = s->spec.conv.residual_kind != SAC_RESIDUAL_NONE;
    const struct conv_pointers p = {.x = in[0],
                                    .y = out[0],
                                    .scratch = scratch,
                                    .residual = added ? in[SAC_RESIDUAL_INPUT] : NULL};
    sac_result                 res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    if (quant_execute(s, &p, cuda_stream_of(dev, stream)) != cudaSuccess) {
        cudaGetLastError();
        res = SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "%s: its kernel refuses to run", s->label);
    }
    cuda_leave();
    return res;
}

#define QUANT_KERNEL(op)                                                     \
    {                                                                        \
        SAC_OP_##op, quant_supports, quant_prepare, quant_run, quant_release \
    }
const struct sac_kernel products_QuantConv = QUANT_KERNEL(QuantConv);
const struct sac_kernel products_QuantMatMul = QUANT_KERNEL(QuantMatMul);
