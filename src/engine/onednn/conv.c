/* SPDX-License-Identifier: Apache-2.0 */
/* Conv, FusedConv and ConvTranspose by oneDNN, channels last.
 *
 * Only where oneDNN is faster than saccade's own kernels (measured, see WORTH_FLOPS) and has a
 * compiled implementation: a `ref:` one can be hundreds of times slower. Its own SiLU costs more
 * than a vectorised polynomial in a second pass, so curved activations use that. */
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/ops/fused.h"
#include "engine/onednn/onednn.h"
#include "engine/ops/window.h"

/* Below this, the round trip to the worker thread (about 10 microseconds) outweighs the gain. */
static const double WORTH_FLOPS = 40e6;
/* In and out; with fewer, saccade's own kernels are as fast, and more so inside a network: oneDNN's
 * thread finds the map in another core's cache. */
enum { WORTH_CHANNELS = 48 };

/* Some samples, or some rows of one: they lie together. Offsets and counts are in numbers. */
struct part {
    struct primitive p; /* weights and bias: those of the first part */
    int64_t          in_at, out_at, count;
    size_t           scratch_at;
};

struct conv {
    struct part          *parts;
    struct sac_activation second; /* what oneDNN does not do */
    bool                  residual, add_after;
    bool                  by_team; /* one part, by oneDNN's own threads */
    int                   part_count, threads;
};

struct request {
    struct making m;
    struct after  after;
    struct window window;
    bool          deconv;
    int64_t       groups;
    int64_t       kernel, samples, in_rows, out_rows; /* kernel: of the first spatial dim */
};

/* Strides of a channels-last map, for dims in oneDNN's order N, C, H, W. */
static void last_strides(const struct sac_operand *o, int64_t *strides)
{
    int64_t step = o->dims[1];
    strides[1] = 1;
    for (int d = o->rank - 1; d >= 2; d--) {
        strides[d] = step;
        step *= o->dims[d];
    }
    strides[0] = step;
}

static memory_desc map_desc(const struct sac_operand *o)
{
    int64_t strides[SAC_RANK_MAX];
    last_strides(o, strides);
    return desc_create(o->rank, o->dims, strides);
}

/* ONNX's weights [M,C/g,k..] (or [C,M/g,k..] of a transposed convolution) as oneDNN's
 * [g,M/g,C/g,k..], without the g when there is one group. with_strides: where they lie; else the
 * layout is free. */
static memory_desc weights_desc(const struct request *r, bool with_strides)
{
    const struct sac_operand *w = &r->m.plan->call->in[1];
    int64_t                   dims[SAC_RANK_MAX + 1], strides[SAC_RANK_MAX + 1], taps = 1;
    for (int d = 2; d < w->rank; d++)
        taps *= w->dims[d];
    const int64_t a = w->dims[0] / r->groups, b = w->dims[1];
    dims[0] = r->groups;
    strides[0] = a * b * taps;
    dims[1] = r->deconv ? b : a;
    dims[2] = r->deconv ? a : b;
    strides[1] = r->deconv ? taps : b * taps;
    strides[2] = r->deconv ? b * taps : taps;
    int64_t step = 1;
    for (int d = w->rank - 1; d >= 2; d--) {
        dims[d + 1] = w->dims[d];
        strides[d + 1] = step;
        step *= w->dims[d];
    }
    const int skip = r->groups == 1;
    return desc_create(w->rank + 1 - skip, dims + skip, with_strides ? strides + skip : NULL);
}

static memory_desc given_weights(const void *request)
{
    return weights_desc(request, true);
}

static void make_desc(void *arg)
{
    struct request           *r = arg;
    const struct sac_op_call *c = r->m.plan->call;
    const int64_t             one = 1;
    struct sac_operand        in = c->in[0], out = c->out[0];
    in.dims[0] = out.dims[0] = r->samples;
    in.dims[2] = r->in_rows;
    out.dims[2] = r->out_rows;
    memory_desc src = map_desc(&in), dst = map_desc(&out);
    memory_desc weights = r->m.shared ? r->m.shared : weights_desc(r, false);
    memory_desc bias = r->m.has_bias ? desc_create(1, &c->out[0].dims[1], &one) : NULL;
    r->m.status = src && dst && weights && (bias || !r->m.has_bias)
                      ? conv_desc(onednn_engine, r->deconv, src, weights, bias, dst, &r->window,
                                  &r->after, &r->m.pd)
                      : dnnl_out_of_memory;
    desc_destroy(&src);
    desc_destroy(&dst);
    if (!r->m.shared)
        desc_destroy(&weights);
    desc_destroy(&bias);
}

/* What oneDNN does itself after the sums; the rest is `second`. */
static void split_activation(const struct sac_node *n, struct after *after,
                             struct sac_activation *second, bool *add_after)
{
    const struct sac_activation act = sac_activation_read(n);
    const int64_t               residual = sac_attr_int(n, "residual", SAC_RESIDUAL_NONE);
    *after = (struct after){.sum = residual == SAC_RESIDUAL_BEFORE, .alg = dnnl_alg_kind_undef};
    *second = (struct sac_activation){.kind = SAC_ACT_NONE};
    *add_after = residual == SAC_RESIDUAL_AFTER;
    if (act.kind == SAC_ACT_RELU || act.kind == SAC_ACT_LEAKY_RELU) {
        after->alg = dnnl_eltwise_relu;
        after->alpha = act.kind == SAC_ACT_RELU ? 0 : act.alpha;
    } else if (act.kind == SAC_ACT_CLIP) {
        after->alg = dnnl_eltwise_clip;
        after->alpha = act.alpha;
        after->beta = act.beta;
    } else {
        *second = act;
    }
}

static bool read_request(struct request *r, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct sac_window         w;
    *r = (struct request){.m = {plan, sac_op_has(c, 2), make_desc, given_weights},
                          .deconv = c->node->op->id == SAC_OP_ConvTranspose,
                          .groups = sac_attr_int(c->node, "group", 1),
                          .samples = c->in[0].dims[0],
                          .in_rows = c->in[0].dims[2],
                          .out_rows = c->out[0].dims[2]};
    if ((r->deconv ? sac_window_read_transposed(c, c->in[1].dims + 2, &w)
                   : sac_window_read(c, 0, c->in[1].dims + 2, &w)) != SAC_OK)
        return false;
    r->window.rank = w.rank;
    r->kernel = w.kernel[SAC_WINDOW_DIMS - w.rank];
    for (int d = 0; d < w.rank; d++) {
        const int from = SAC_WINDOW_DIMS - w.rank + d;
        r->window.stride[d] = w.stride[from];
        r->window.dilation[d] = w.dilation[from];
        r->window.pad_begin[d] = w.pad_begin[from];
        /* Exactly what the last window reaches, because oneDNN checks. */
        const int64_t in = c->in[0].dims[2 + d], out = c->out[0].dims[2 + d];
        const int64_t windows = r->deconv ? in : out, over = r->deconv ? out : in;
        const int64_t reach = (w.kernel[from] - 1) * w.dilation[from] + 1;
        r->window.pad_end[d] = (windows - 1) * w.stride[from] + reach - over - w.pad_begin[from];
    }
    return true;
}

/* With AVX2 our own kernel takes 0.72 to 0.99 of oneDNN's time (3x3, 56x56x64 to 7x7x512, strided
 * or not, an AMD EPYC, 2026-11-23); without it, and for a transposed one, the alternative is plain
 * C. */
static bool worth_it(const struct sac_op_call *c, bool deconv)
{
    if (deconv || sac_cpu_level() < SAC_CPU_AVX512)
        return deconv || sac_cpu_level() < SAC_CPU_AVX2;
    int64_t taps = 1;
    for (int d = 2; d < c->in[1].rank; d++)
        taps *= c->in[1].dims[d];
    const double flops =
        2.0 * (double)sac_operand_elements(&c->out[0]) * (double)c->in[1].dims[1] * (double)taps;
    return taps > 1 && c->in[1].dims[1] >= WORTH_CHANNELS && c->out[0].dims[1] >= WORTH_CHANNELS &&
           flops >= WORTH_FLOPS;
}

static struct sac_kernel_offer conv_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    struct sac_kernel_plan    plan = sac_kernel_unplaced(q);
    struct request            r;
    struct sac_activation     second;
    bool                      add_after;
    const bool                deconv = c->node->op->id == SAC_OP_ConvTranspose;
    if (!sac_call_is_float(q->call) || !sac_map_fits(&c->in[0]) || !c->in[1].data ||
        (sac_op_has(c, 2) && !c->in[2].data) || sac_operand_elements(&c->out[0]) == 0)
        return sac_kernel_refuse("not float32 with constant weights");
    if (sac_op_has(c, SAC_RESIDUAL_INPUT) && c->in[SAC_RESIDUAL_INPUT].dims[1] != c->out[0].dims[1])
        return sac_kernel_refuse("a residual of fewer channels");
    if (sac_op_has(c, SAC_ENDING))
        return sac_kernel_refuse("numbers for each channel behind its activation");
    if (!worth_it(c, deconv))
        return sac_kernel_refuse("the CPU's own kernel is as fast");
    if (!read_request(&r, &plan))
        return sac_kernel_refuse("its window");
    split_activation(c->node, &r.after, &second, &add_after);
    if (sac_cpu_level() < SAC_CPU_AVX2 && (second.kind != SAC_ACT_NONE || add_after))
        return sac_kernel_refuse("the pass behind it needs AVX2");
    offer.in_layout[0] = offer.in_layout[SAC_RESIDUAL_INPUT] = offer.out_layout[0] =
        SAC_LAYOUT_CHANNELS_LAST;
    offer.in_layout[1] = offer.in_layout[2] = SAC_LAYOUT_PLAIN;
    if (r.after.sum)
        offer.in_place = SAC_RESIDUAL_INPUT;
    return making_offer(&r.m, dev->params.threads, offer);
}

static void conv_release(void *state)
{
    struct conv *s = state;
    for (int k = 0; s && s->parts && k < s->part_count; k++)
        primitive_release(&s->parts[k].p, s->threads);
    if (s)
        sac_free(s->parts);
    sac_free(s);
}

/* Rows y0..y1-1 of each of its samples; false: they see none of the input. */
static bool take_rows(struct request *r, struct part *p, int64_t y0, int64_t y1)
{
    const int64_t in_rows = r->in_rows, top = y0 * r->window.stride[0] - r->window.pad_begin[0];
    const int64_t end = (y1 - 1) * r->window.stride[0] - r->window.pad_begin[0] +
                        (r->kernel - 1) * r->window.dilation[0] + 1;
    const int64_t             first = SAC_MAX(top, 0), last = SAC_MIN(end, in_rows);
    const struct sac_operand *in = &r->m.plan->call->in[0], *out = &r->m.plan->call->out[0];
    p->in_at += first * (sac_operand_elements(in) / in->dims[0] / in_rows);
    p->out_at += y0 * (sac_operand_elements(out) / out->dims[0] / r->out_rows);
    p->count = p->count / r->out_rows * (y1 - y0);
    r->window.pad_begin[0] = first - top;
    r->window.pad_end[0] = end - last;
    r->in_rows = last - first;
    r->out_rows = y1 - y0;
    return last > first;
}

/* Part k of s->part_count: of several samples each thread has some, of one some rows. */
static dnnl_status_t make_part(const struct request *whole, struct conv *s, int k)
{
    const struct sac_operand *in = &whole->m.plan->call->in[0], *out = &whole->m.plan->call->out[0];
    const int64_t  stacks = SAC_MIN(whole->samples, s->part_count), bands = s->part_count / stacks;
    const int64_t  first = whole->samples * (k / bands) / stacks, band = k % bands;
    struct part   *p = &s->parts[k];
    struct request r = *whole;
    r.samples = whole->samples * (k / bands + 1) / stacks - first;
    p->in_at = first * (sac_operand_elements(in) / whole->samples);
    p->out_at = first * (sac_operand_elements(out) / whole->samples);
    p->count = r.samples * (sac_operand_elements(out) / whole->samples);
    if (bands > 1 &&
        !take_rows(&r, p, whole->out_rows * band / bands, whole->out_rows * (band + 1) / bands))
        return dnnl_unimplemented;
    r.m.shared = k > 0 ? primitive_weights(&s->parts[0].p) : NULL;
    const dnnl_status_t status = making_primitive(&r.m, s->by_team ? s->threads : 1, &p->p);
    p->scratch_at = whole->m.plan->scratch_bytes;
    whole->m.plan->scratch_bytes += (r.m.scratch_bytes + 63) / 64 * 64;
    return status;
}

static dnnl_status_t make_parts(const struct request *r, struct conv *s)
{
    const struct sac_operand *bias = &r->m.plan->call->in[2];
    dnnl_status_t             status = dnnl_success;
    s->parts = sac_calloc((size_t)s->part_count, sizeof *s->parts);
    if (!s->parts)
        return dnnl_out_of_memory;
    if (r->m.has_bias) {
        float *numbers = sac_alloc_aligned(64, SAC_MAX(sac_operand_bytes(bias), 64));
        if (!numbers)
            return dnnl_out_of_memory;
        memcpy(numbers, bias->data, sac_operand_bytes(bias));
        s->parts[0].p.numbers = numbers;
    }
    r->m.plan->scratch_bytes = 0;
    for (int k = 0; k < s->part_count && status == dnnl_success; k++)
        status = make_part(r, s, k);
    return status;
}

/* A part for each thread. A small map has too few rows for that. */
static int count_parts(const struct request *r, int threads)
{
    const int64_t bands = SAC_MIN((threads + r->samples - 1) / r->samples, r->out_rows);
    return (int)(r->samples >= threads ? threads : r->samples * bands);
}

static struct conv *conv_create(const struct request *r, const struct sac_device *dev, bool by_team,
                                dnnl_status_t *status)
{
    struct conv *s = sac_new(struct conv);
    *status = dnnl_out_of_memory;
    if (!s)
        return NULL;
    s->threads = dev->params.threads;
    s->by_team = by_team;
    s->part_count = by_team ? 1 : count_parts(r, sac_worker_pool_threads(dev->workers));
    *status = make_parts(r, s);
    if (*status != dnnl_success) {
        conv_release(s);
        return NULL;
    }
    return s;
}

static sac_result conv_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct request            r;
    struct sac_activation     second;
    bool                      add_after;
    if (!read_request(&r, plan))
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    split_activation(c->node, &r.after, &second, &add_after);
    const bool    alone = !r.deconv && worker_can_be_alone();
    dnnl_status_t status = dnnl_unimplemented;
    struct conv  *s = alone ? conv_create(&r, dev, false, &status) : NULL;
    if (status == dnnl_unimplemented)
        s = conv_create(&r, dev, true, &status);
    if (!s)
        return onednn_fail(c, status, "a convolution");
    s->second = second;
    s->add_after = add_after;
    s->residual = r.after.sum;
    plan->state = s;
    return SAC_OK;
}

struct run {
    const struct conv *s;
    const float       *in, *residual;
    float             *out;
    char              *scratch;
    atomic_int         status; /* dnnl_status_t */
};

static dnnl_status_t run_primitive(const struct run *r, const struct part *p)
{
    const struct primitive *first = &r->s->parts[0].p;
    return primitive_run((struct primitive *)&p->p, r->in + p->in_at, first->packed, first->numbers,
                         r->out + p->out_at, r->scratch + p->scratch_at);
}

static void run_by_team(void *arg)
{
    struct run *r = arg;
    atomic_store(&r->status, run_primitive(r, r->s->parts));
}

static void run_part(void *arg, int piece, int worker)
{
    struct run        *r = arg;
    const struct conv *s = r->s;
    const struct part *p = &s->parts[piece];
    float             *out = r->out + p->out_at;
    (void)worker;
    if (s->residual && r->residual != r->out)
        memcpy(out, r->residual + p->out_at, (size_t)p->count * sizeof *out);
    if (s->by_team) {
        worker_call(s->threads, run_by_team, r);
    } else {
        const int           team = worker_alone_begin();
        const dnnl_status_t status = run_primitive(r, p);
        worker_alone_end(team);
        if (status != dnnl_success)
            atomic_store(&r->status, status);
    }
    if (s->second.kind != SAC_ACT_NONE)
        SAC_SIMD_PICK(sac_map_activate)(&s->second, out, out, p->count);
    if (s->add_after)
        SAC_SIMD_PICK(sac_map_binary)
    (SAC_BINARY_ADD, out, r->residual + p->out_at, 0, out, p->count);
}

static sac_result conv_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                           void *scratch, struct sac_device_stream *stream)
{
    struct conv *s = state;
    struct run   r = {.s = s,
                      .in = in[0],
                      .residual = s->residual || s->add_after ? in[SAC_RESIDUAL_INPUT] : NULL,
                      .out = out[0],
                      .scratch = scratch};
    (void)stream;
    sac_worker_pool_run(dev->workers, s->part_count, run_part, &r);
    if (r.status != dnnl_success)
        return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "oneDNN fails at a convolution (status %d)",
                        r.status);
    return SAC_OK;
}

const struct sac_kernel onednn_Conv = {SAC_OP_Conv, conv_supports, conv_prepare, conv_run,
                                       conv_release};
const struct sac_kernel onednn_FusedConv = {SAC_OP_FusedConv, conv_supports, conv_prepare, conv_run,
                                            conv_release};
const struct sac_kernel onednn_ConvTranspose = {SAC_OP_ConvTranspose, conv_supports, conv_prepare,
                                                conv_run, conv_release};
