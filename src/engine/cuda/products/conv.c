/* SPDX-License-Identifier: Apache-2.0 */
/* Conv, FusedConv and ConvTranspose for the planner, channels last. */
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_kernel.h"

static struct sac_kernel_offer conv_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer      offer = sac_kernel_take(q);
    const struct sac_kernel_plan plan = sac_kernel_unplaced(q);
    struct conv_spec             spec;
    char                         why[160];
    (void)dev;
    if (!conv_spec_read(&plan, &spec, why, sizeof why))
        return sac_kernel_refuse("%s", why);
    const enum sac_layout last = spec.precision == SAC_PRECISION_FP16
                                     ? SAC_LAYOUT_CHANNELS_LAST_HALF
                                     : SAC_LAYOUT_CHANNELS_LAST;
    offer.in_layout[0] = offer.in_layout[SAC_RESIDUAL_INPUT] = offer.out_layout[0] = last;
    offer.in_layout[1] = offer.in_layout[2] = offer.in_layout[SAC_ENDING] = SAC_LAYOUT_PLAIN;
    offer.strided = true;
    offer.in_place = -1; /* a cuDNN plan may write before it has read all its input */
    return offer;
}

/* ---- weights ---- */

struct source {
    struct sac_device      *dev;
    struct sac_kernel_plan *plan;
    const struct conv_spec *spec;
    enum conv_form          form;
};

struct packing {
    const struct source *source;
    char                *host;
};

/* Some of the outputs. */
static void pack_outputs(void *arg, int64_t begin, int64_t end)
{
    const struct packing *p = arg;
    const float          *from = p->source->plan->call->in[1].data;
    struct conv_spec      part = *p->source->spec;
    int64_t              *outer = part.transposed ? &part.in.c : &part.out.c;
    const int64_t         bytes = (int64_t)conv_weights_bytes(&part, CONV_FORM_LAST) / *outer;
    *outer = end - begin;
    conv_weights_pack(&part, CONV_FORM_LAST, from + begin * (bytes / (int64_t)conv_element(&part)),
                      p->host + begin * bytes);
}

static void fill_weights(void *arg, void *host)
{
    const struct source    *s = arg;
    const struct conv_spec *spec = s->spec;
    struct packing          p = {s, host};
    if (s->form == CONV_FORM_LAST)
        fill_in_pieces(s->dev, conv_weights_bytes(spec, s->form),
                       spec->transposed ? spec->in.c : spec->out.c, pack_outputs, &p);
    else
        conv_weights_pack(spec, s->form, s->plan->call->in[1].data, host);
}

static sac_result get_weights(void *arg, enum conv_form form, const void **device)
{
    static const char *const names[] = {"last", "taps", "stem", "patches", "bundles"};
    struct source           *s = arg;
    struct sac_weights      *w = s->plan->weights;
    char                     text[64];
    void                    *found = NULL;
    s->form = form;
    /* Only the stem's form depends on the window's strides. */
    snprintf(
        text, sizeof text, "conv %s %s g%lld s%lld", names[form],
        s->spec->precision == SAC_PRECISION_FP16 ? "f16" : "f32", (long long)s->spec->groups,
        (long long)(form == CONV_FORM_STEM ? s->spec->stride[2] * 16 + s->spec->pad_begin[2] : 0));
    sac_result res = w->ops->get(w, s->plan->call->in[1].data, text,
                                 conv_weights_bytes(s->spec, form), fill_weights, s, &found);
    *device = found;
    return res;
}

static void fill_bias(void *arg, void *host)
{
    const struct source *s = arg;
    const float         *from = s->plan->call->in[2].data;
    for (int64_t i = 0; i < s->spec->out.c; i++)
        if (s->spec->precision == SAC_PRECISION_FP16)
            ((uint16_t *)host)[i] = sac_float_to_half(from[i]);
        else
            ((float *)host)[i] = from[i];
}

static sac_result get_bias(struct source *s, const void **device)
{
    struct sac_weights *w = s->plan->weights;
    void               *found = NULL;
    if (!s->spec->bias)
        return SAC_OK;
    sac_result res =
        w->ops->get(w, s->plan->call->in[2].data,
                    s->spec->precision == SAC_PRECISION_FP16 ? "bias f16" : "bias f32",
                    (size_t)s->spec->out.c * conv_element(s->spec), fill_bias, s, &found);
    *device = found;
    return res;
}

static void fill_ending(void *arg, void *host)
{
    const struct source *s = arg;
    memcpy(host, s->plan->call->in[SAC_ENDING].data,
           (size_t)s->spec->out.c * SAC_ENDING_ROWS * sizeof(float));
}

static sac_result get_ending(struct source *s, const float **device)
{
    struct sac_weights *w = s->plan->weights;
    void               *found = NULL;
    if (!s->spec->ending)
        return SAC_OK;
    sac_result res = w->ops->get(w, s->plan->call->in[SAC_ENDING].data, "ending f32",
                                 (size_t)s->spec->out.c * SAC_ENDING_ROWS * sizeof(float),
                                 fill_ending, s, &found);
    *device = found;
    return res;
}

/* ---- the state ---- */

static void conv_release(void *state)
{
    struct conv_state *s = state;
    if (!s)
        return;
    conv_ready_unref(&s->ready);
    sac_free(s);
}

static sac_result make_ready(struct sac_device *dev, struct conv_state *s,
                             struct sac_kernel_plan *plan)
{
    struct source                    source = {dev, plan, &s->spec, CONV_FORM_LAST};
    const struct conv_weights_source weights = {get_weights, &source};
    sac_result                       res = get_bias(&source, &s->bias);
    if (res == SAC_OK)
        res = get_ending(&source, &s->ending);
    if (res == SAC_OK)
        res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = conv_choose(dev, s, plan, &weights);
    cuda_leave();
    return res;
}

void conv_describe(const struct conv_state *s, struct sac_kernel_plan *plan)
{
    char text[256] = "";
    conv_choice_print(&s->ready->choice, plan->chosen, sizeof plan->chosen);
    conv_choice_print(&s->ready->choice, text, sizeof text);
    text[strcspn(text, " ") + 1 + strcspn(text + strcspn(text, " ") + 1, " ")] = '\0'; /* without
                                                                                          the knobs
                                                                                        */
    snprintf(plan->implementation, sizeof plan->implementation, "%.60s", text);
}

static sac_result conv_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    char               why[128] = "", label[256];
    struct conv_state *s = sac_new(struct conv_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    s->gpu = products_gpu_of(dev);
    snprintf(s->label, sizeof s->label, "%.90s",
             sac_node_label(plan->call->node, label, sizeof label));
    sac_result res = conv_spec_read(plan, &s->spec, why, sizeof why)
                         ? make_ready(dev, s, plan)
                         : SAC_OP_FAIL(plan->call, SAC_ERR_UNSUPPORTED, "%s", why);
    if (res != SAC_OK) {
        conv_release(s);
        return res;
    }
    plan->in_taken[1] = true;
    plan->in_taken[2] = s->spec.bias;
    plan->in_taken[SAC_ENDING] = s->spec.ending;
    plan->scratch_bytes = conv_scratch_bytes(s);
    plan->state = s;
    conv_describe(s, plan);
    return SAC_OK;
}

static sac_result conv_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                           void *scratch, struct sac_device_stream *stream)
{
    const struct conv_state   *s = state;
    const struct conv_pointers p = {
        .x = in[0],
        .y = out[0],
        .scratch = scratch,
        .residual = s->spec.residual_kind != SAC_RESIDUAL_NONE ? in[SAC_RESIDUAL_INPUT] : NULL};
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    const cudaError_t done = conv_execute(s, &p, cuda_stream_of(dev, stream));
    if (done != cudaSuccess) {
        cudaGetLastError();
        res = SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "%s: %s refuses to run", s->label,
                       s->ready->plan.plan ? "cuDNN's plan" : "its kernel");
    }
    cuda_leave();
    return res;
}

#define CONV_KERNEL(op)                                                  \
    {                                                                    \
        SAC_OP_##op, conv_supports, conv_prepare, conv_run, conv_release \
    }
const struct sac_kernel products_Conv = CONV_KERNEL(Conv);
const struct sac_kernel products_FusedConv = CONV_KERNEL(FusedConv);
const struct sac_kernel products_ConvTranspose = CONV_KERNEL(ConvTranspose);
