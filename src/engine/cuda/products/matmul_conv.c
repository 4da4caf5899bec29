/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/matmul_conv.h"

#include <stdio.h>
#include <string.h>

static struct conv_map map_of(int64_t rows, int64_t columns, int align)
{
    return (struct conv_map){.c = columns,
                             .size = {1, 1, rows},
                             .pixel = columns,
                             .sample = rows * columns,
                             .align = SAC_MIN(align, 16)};
}

bool matmul_conv_spec(const struct products_gpu *gpu, const struct matmul_spec *s,
                      const struct sac_kernel_plan *plan, struct conv_spec *out)
{
    const struct sac_op_call *c = plan->call;
    if (!s->fused || s->precision != SAC_PRECISION_FP16 || (s->residual_in_pass && !s->ending))
        return false;
    const bool added = s->matrix || s->residual_in_pass;
    if (!plan->weights || !c->in[1].data || c->in[1].rank != 2 || (s->bias && !c->in[2].data))
        return false;
    if (s->k % 8 != 0 || s->n % 8 != 0 || s->a_align < 16 || s->y_align < 16 ||
        s->m > INT32_MAX / SAC_MAX(s->k, s->n) || (added && s->c_align < 16))
        return false;
    *out = (struct conv_spec){.precision = s->precision,
                              .turned = true,
                              .n = 1,
                              .groups = 1,
                              .in = map_of(s->m, s->k, s->a_align),
                              .out = map_of(s->m, s->n, s->y_align),
                              .kernel = {1, 1, 1},
                              .stride = {1, 1, 1},
                              .dilation = {1, 1, 1},
                              .bias = s->bias,
                              .act = s->act,
                              .ending = s->ending};
    if (added) {
        out->residual_kind = s->matrix ? SAC_RESIDUAL_BEFORE : SAC_RESIDUAL_AFTER;
        out->residual = map_of(s->m, s->n, s->c_align);
    }
    return conv_ways_for(gpu, out);
}

/* ---- what is known ---- */

enum { KEY_MAX = CONV_KEY_MAX + 16 };

static bool way_key(const struct sac_device *dev, const struct conv_spec *spec, char key[KEY_MAX])
{
    char conv[CONV_KEY_MAX];
    if (!conv_key(dev, spec, conv))
        return false;
    snprintf(key, KEY_MAX, "product %s", conv);
    return true;
}

static const char *const way_names[] = {[MATMUL_LT] = "lt", [MATMUL_CONV] = "conv"};

enum matmul_way matmul_way_known(const struct sac_device *dev, const struct sac_kernel_plan *plan,
                                 const struct conv_spec *spec)
{
    unsigned char      bytes[MATMUL_CHOICE_BYTES];
    struct conv_choice choice;
    char               key[KEY_MAX], text[SAC_KERNEL_CHOICE_MAX];
    if (plan->choice && matmul_choice_parse(plan->choice, bytes))
        return MATMUL_LT;
    if (plan->choice && conv_choice_parse(plan->choice, &choice))
        return MATMUL_CONV;
    if (!way_key(dev, spec, key) || !tuned_recall(key, text))
        return MATMUL_UNKNOWN;
    return strcmp(text, way_names[MATMUL_CONV]) == 0 ? MATMUL_CONV : MATMUL_LT;
}

void matmul_way_remember(const struct sac_device *dev, const struct conv_spec *spec,
                         enum matmul_way way)
{
    char key[KEY_MAX];
    if (way_key(dev, spec, key))
        tuned_remember(key, way_names[way]);
}

void matmul_foresee(struct sac_device *dev, const struct sac_kernel_plan *plan)
{
    struct matmul_spec product;
    struct conv_spec   spec;
    char               why[160];
    if (!matmul_spec_read(plan, &product, why, sizeof why) ||
        !matmul_conv_spec(products_gpu_of(dev), &product, plan, &spec))
        return;
    const enum matmul_way known = matmul_way_known(dev, plan, &spec);
    if (known == MATMUL_CONV || (known == MATMUL_UNKNOWN && plan->measure))
        conv_foresee_spec(dev, plan, &spec);
}

/* ---- constants ---- */

struct source {
    struct sac_device            *dev;
    const struct sac_kernel_plan *plan;
    const struct conv_spec       *spec;
    enum conv_form                form;
    uint16_t                     *host;
};

/* Rows of weights [n][k] from the file's [k][n]: some at a time, so that what is read together lies
 * together. */
static void turn_rows(void *arg, int64_t begin, int64_t end)
{
    enum { TOGETHER = 16 };
    const struct source *s = arg;
    const float         *from = s->plan->call->in[1].data;
    const int64_t        k = s->spec->in.c, n = s->spec->out.c;
    for (int64_t first = begin; first < end; first += TOGETHER)
        for (int64_t i = 0; i < k; i++)
            for (int64_t o = first; o < SAC_MIN(first + TOGETHER, end); o++)
                s->host[o * k + i] = sac_float_to_half(from[i * n + o]);
}

static void fill_weights(void *arg, void *host)
{
    struct source *s = arg;
    s->host = host;
    if (s->form == CONV_FORM_LAST)
        fill_in_pieces(s->dev, conv_weights_bytes(s->spec, s->form), s->spec->out.c, turn_rows, s);
    else
        conv_weights_pack(s->spec, s->form, s->plan->call->in[1].data, host);
}

static sac_result get_weights(void *arg, enum conv_form form, const void **device)
{
    struct source      *s = arg;
    struct sac_weights *w = s->plan->weights;
    void               *found = NULL;
    s->form = form;
    sac_result res = w->ops->get(w, s->plan->call->in[1].data,
                                 form == CONV_FORM_LAST ? "product turned f16" : "product f16",
                                 conv_weights_bytes(s->spec, form), fill_weights, s, &found);
    *device = found;
    return res;
}

static void fill_bias(void *arg, void *host)
{
    const struct source *s = arg;
    const float         *from = s->plan->call->in[2].data;
    for (int64_t i = 0; i < s->spec->out.c; i++)
        ((uint16_t *)host)[i] = sac_float_to_half(from[i]);
}

/* The planner may write a product over its residual, which cuDNN might still read: as the list has
 * none of its ways then, this is a plan file's. */
static bool may_compute(const struct conv_state *s)
{
    const enum conv_way way = s->ready->choice.way;
    const bool          cudnn = way == CONV_CUDNN_FUSED || way == CONV_CUDNN_PLAIN;
    return way != CONV_DIRECT && !(cudnn && s->spec.residual_kind != SAC_RESIDUAL_NONE);
}

bool matmul_conv_take(struct sac_device *dev, struct conv_state *s,
                      const struct sac_kernel_plan *plan)
{
    struct source                    source = {.dev = dev, .plan = plan, .spec = &s->spec};
    const struct conv_weights_source weights = {get_weights, &source};
    struct sac_weights              *w = plan->weights;
    void                            *bias = NULL;
    if (s->spec.bias && w->ops->get(w, plan->call->in[2].data, "bias f16",
                                    (size_t)s->spec.out.c * 2, fill_bias, &source, &bias) != SAC_OK)
        return false;
    s->bias = bias;
    const sac_result res = conv_choose(dev, s, plan, &weights);
    if (res == SAC_OK && may_compute(s))
        return true;
    if (res != SAC_OK) /* cuBLASLt computes it */
        sac_error_clear(dev->ctx);
    conv_ready_unref(&s->ready);
    return false;
}
