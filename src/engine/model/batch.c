/* SPDX-License-Identifier: Apache-2.0 */
/* Runs stacks of inputs one by one where the model cannot take them at once, and checks that a
 * batch dimension which saccade itself opened gives the right results. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/start.h"
#include "engine/kernel/layout.h"
#include "engine/model/model.h"

/* With another batch size or another kernel blocking, sums are added in another order. In half
 * precision, or with TF32's ten bits, each layer then rounds differently. */
static double tolerance_of(const sac_model *m)
{
    return m->params.precision == SAC_PRECISION_FP32 ? 1e-3 : 3e-2;
}

static void unref_all(sac_tensor **t, int count)
{
    for (int i = 0; t && i < count; i++)
        sac_tensor_unref(&t[i]);
}

/* Copies between two tensors of the model, as part of the run. */
static sac_result copy_bytes(sac_model *m, void *dst, const void *src, int64_t bytes)
{
    const struct sac_operand o = {.dtype = SAC_U8, .rank = 1, .dims = {bytes}, .present = true};
    if (!m->dev->ops->host_memory)
        return bytes ? m->dev->ops->relayout(m->dev, m->on, &o, dst, SAC_LAYOUT_PLAIN, src,
                                             SAC_LAYOUT_PLAIN)
                     : SAC_OK;
    memcpy(dst, src, (size_t)bytes);
    return SAC_OK;
}

/* Called before tensors that queued work uses return to their pool. */
static sac_result settle(sac_model *m)
{
    return m->dev->ops->stream_wait(m->on);
}

/* Kernels may need tensors to begin at an aligned address. */
static sac_result align(sac_model *m, sac_tensor **t)
{
    sac_tensor *copy = NULL;
    if (sac_tensor_is_aligned(*t))
        return SAC_OK;
    sac_result res = sac_tensor_create(m->dev, sac_tensor_describe(*t), "a stack's input", &copy);
    if (res == SAC_OK)
        res = copy_bytes(m, sac_tensor_data(copy), sac_tensor_data(*t),
                         sac_tensor_desc_bytes(sac_tensor_describe(*t)));
    sac_tensor_unref(t);
    *t = copy;
    return res;
}

/* Entry i of each stack of n, as a view. An input that is no stack (a threshold, say) is passed
 * unchanged. */
static sac_result slice(sac_model *m, sac_tensor *const *in, int64_t n, int64_t i, sac_tensor **out)
{
    const int  count = m->graph->input_count;
    sac_result res = SAC_OK;
    for (int k = 0; k < count && res == SAC_OK; k++) {
        struct sac_tensor_desc desc = *sac_tensor_describe(in[k]);
        if (desc.rank < 1 || desc.shape[0] != n) {
            out[k] = sac_tensor_ref(in[k]);
            continue;
        }
        desc.shape[0] = 1;
        res = sac_tensor_view(in[k], (size_t)(i * sac_tensor_desc_bytes(&desc)), &desc, &out[k]);
        if (res == SAC_OK)
            res = align(m, &out[k]);
    }
    return res;
}

/* Copies one run's outputs to entry i of the stacks, which are created when i is 0. */
static sac_result stack_outputs(sac_model *m, int64_t n, int64_t i, sac_tensor *const *one,
                                sac_tensor **out)
{
    sac_result res = SAC_OK;
    for (int k = 0; k < m->graph->output_count && res == SAC_OK; k++) {
        struct sac_tensor_desc desc = *sac_tensor_describe(one[k]);
        int64_t                bytes = sac_tensor_desc_bytes(&desc);
        if (desc.rank < 1 || desc.shape[0] != 1)
            return SAC_FAIL(m->ctx, SAC_ERR_UNSUPPORTED,
                            "%s: output '%s' has no batch dimension, so inputs cannot be stacked",
                            m->path, m->graph->outputs[k]->name);
        desc.shape[0] = n;
        if (i == 0)
            res = sac_tensor_create(m->dev, &desc, m->graph->outputs[k]->name, &out[k]);
        else if (sac_tensor_desc_bytes(sac_tensor_describe(out[k])) != bytes * n)
            res = SAC_FAIL(m->ctx, SAC_ERR_UNSUPPORTED,
                           "%s: output '%s' changes its size from input to input, so inputs cannot "
                           "be stacked",
                           m->path, m->graph->outputs[k]->name);
        if (res == SAC_OK)
            res = copy_bytes(m, (char *)sac_tensor_data(out[k]) + i * bytes,
                             sac_tensor_data(one[k]), bytes);
    }
    return res;
}

sac_result sac_model_run_one_by_one(sac_model *m, int64_t n, sac_tensor *const *in,
                                    sac_tensor **out)
{
    int          inputs = m->graph->input_count, outputs = m->graph->output_count;
    sac_tensor **one_in = sac_calloc((size_t)inputs, sizeof *one_in);
    sac_tensor **one_out = sac_calloc((size_t)outputs, sizeof *one_out);
    sac_result   res =
        one_in && one_out ? SAC_OK : SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory to run");
    for (int64_t i = 0; i < n && res == SAC_OK; i++) {
        res = slice(m, in, n, i, one_in);
        if (res == SAC_OK)
            res = sac_model_run_plain(m, one_in, one_out);
        if (res == SAC_OK)
            res = stack_outputs(m, n, i, one_out, out);
        sac_result settled = settle(m);
        res = res == SAC_OK ? settled : res;
        unref_all(one_in, inputs);
        unref_all(one_out, outputs);
    }
    sac_free(one_in);
    sac_free(one_out);
    if (res != SAC_OK)
        unref_all(out, outputs);
    return res;
}

/* ---- the check ---- */

/* The two halves differ, so that a result which mixes them is noticed. The sequence is fixed, so
 * that a check that passes once always passes. */
static void fill_random(const struct sac_tensor_desc *desc, void *host, uint32_t seed)
{
    struct sac_operand o = {.dtype = desc->dtype, .rank = 1, .present = true, .data = host};
    int64_t            n = o.dims[0] = sac_tensor_desc_elements(desc);
    bool real = desc->dtype == SAC_F32 || desc->dtype == SAC_F16 || desc->dtype == SAC_F64 ||
                desc->dtype == SAC_BF16;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        double v = (seed >> 8) / 16777216.0;
        sac_operand_set(&o, i, real ? (i < n / 2 ? v : 0.3 + 0.5 * v) : (seed >> 20) & 1);
    }
}

static size_t bytes_of(const sac_tensor *t)
{
    return (size_t)sac_tensor_desc_bytes(sac_tensor_describe(t));
}

/* Memory beside a tensor that the host cannot use, else the tensor's own. From the heap, not a
 * sac_mirror: the check waits for its copies anyway, and must not fail for want of page-locked
 * memory, as the model would then never take batches. */
static sac_result host_room(sac_model *m, const sac_tensor *t, void **out)
{
    *out = m->dev->ops->host_memory ? sac_tensor_data(t) : sac_alloc(bytes_of(t));
    return *out ? SAC_OK : SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory to check the batch");
}

static void free_room(const sac_tensor *t, void *host)
{
    if (host != sac_tensor_data(t))
        sac_free(host);
}

/* The copies of a check count as part of loading the model, as its weights do: strict mode is about
 * frames and their tensors. */
static sac_result exchange(sac_model *m, const sac_tensor *t, void *host, enum sac_copy_kind kind)
{
    const bool up = kind == SAC_COPY_HOST_TO_DEVICE;
    void      *device = sac_tensor_data(t);
    sac_result res =
        sac_device_copy(m->dev, m->on, up ? device : host, up ? host : device, bytes_of(t), kind,
                        SAC_COPY_WEIGHTS, "the check of a freed batch");
    sac_result done = settle(m);
    return res == SAC_OK ? done : res;
}

static sac_result send_random(sac_model *m, sac_tensor *t, uint32_t seed)
{
    void      *host = NULL;
    sac_result res = host_room(m, t, &host);
    if (res != SAC_OK)
        return res;
    fill_random(sac_tensor_describe(t), host, seed);
    res = exchange(m, t, host, SAC_COPY_HOST_TO_DEVICE);
    free_room(t, host);
    return res;
}

static sac_result make_pair(sac_model *m, sac_tensor **in)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < m->graph->input_count && res == SAC_OK; i++) {
        struct sac_tensor_desc desc = m->inputs[i].desc;
        desc.shape[0] = 2;
        for (int d = 1; d < desc.rank; d++)
            if (desc.shape[d] == SAC_DIM_OPEN)
                desc.shape[d] = 128;
        res = sac_tensor_create(m->dev, &desc, "batch check", &in[i]);
        if (res == SAC_OK)
            res = send_random(m, in[i], 12345u + (uint32_t)i);
    }
    return res;
}

/* Largest difference between two tensors of the same shape, divided by the largest number in
 * them. */
static double difference(const struct sac_tensor_desc *desc, void *a, void *b)
{
    struct sac_operand x = {.dtype = desc->dtype, .data = a}, y = {.dtype = desc->dtype, .data = b};
    double             worst = 0, scale = 1e-6;
    for (int64_t i = 0, n = sac_tensor_desc_elements(desc); i < n; i++) {
        double u = sac_operand_get(&x, i), v = sac_operand_get(&y, i);
        if (u == v || (isnan(u) && isnan(v))) /* inf - inf would be NaN */
            continue;
        if (!isfinite(u) || !isfinite(v))
            return INFINITY;
        worst = fmax(worst, fabs(u - v));
        scale = fmax(scale, fabs(v));
    }
    return worst / scale;
}

static sac_result compare_one(sac_model *m, const sac_tensor *a, const sac_tensor *b, double *worst)
{
    const struct sac_tensor_desc *da = sac_tensor_describe(a), *db = sac_tensor_describe(b);
    if (da->dtype != db->dtype || da->rank != db->rank ||
        memcmp(da->shape, db->shape, (size_t)da->rank * sizeof(int64_t)) != 0) {
        *worst = INFINITY;
        return SAC_OK;
    }
    void      *x = NULL, *y = NULL;
    sac_result res = host_room(m, a, &x);
    if (res == SAC_OK)
        res = host_room(m, b, &y);
    if (res == SAC_OK)
        res = exchange(m, a, x, SAC_COPY_DEVICE_TO_HOST);
    if (res == SAC_OK)
        res = exchange(m, b, y, SAC_COPY_DEVICE_TO_HOST);
    if (res == SAC_OK)
        *worst = fmax(*worst, difference(da, x, y));
    free_room(a, x);
    free_room(b, y);
    return res;
}

static sac_result compare(sac_model *m, sac_tensor *const *in, sac_tensor **both,
                          sac_tensor **single, double *worst)
{
    sac_result res = sac_model_run_plain(m, in, both);
    if (res == SAC_OK)
        res = sac_model_run_one_by_one(m, 2, in, single);
    if (res != SAC_OK)
        return res;
    *worst = 0;
    for (int i = 0; i < m->graph->output_count && res == SAC_OK; i++)
        res = compare_one(m, both[i], single[i], worst);
    return res;
}

static sac_result compare_as_check(sac_model *m, sac_tensor *const *in, sac_tensor **both,
                                   sac_tensor **single, double *worst)
{
    struct sac_start_span span;
    sac_start_begin(&span, SAC_START_CHECK);
    m->checking = true;
    const sac_result res = compare(m, in, both, single, worst);
    m->checking = false;
    sac_finite_forget(&m->finite);
    sac_start_end(&span);
    return res;
}

/* ---- the verdict, kept beside the plans ---- */

static const char page_name[] = "batch of 1 opened", opened[] = "opened", fixed[] = "fixed: ";

/* What is left out without a plan of its own can be what makes stacks wrong: then a verdict holds
 * for this run alone. */
static bool keeps_verdicts(const sac_model *m)
{
    return m->book.key[SAC_BOOK_MODEL] && !(m->without.plan & ~(uint32_t)SAC_WITHOUT_OF_KERNELS);
}

static bool recall_verdict(sac_model *m)
{
    const struct sac_book_page *page =
        keeps_verdicts(m) ? sac_book_find(&m->book, page_name) : NULL;
    const char *text = page && page->count == 1 && page->choices[0] ? page->choices[0] : "";
    if (strcmp(text, opened) == 0) {
        m->batching = SAC_BATCH_FREE;
        return true;
    }
    if (strncmp(text, fixed, sizeof fixed - 1) != 0)
        return false;
    m->batching = SAC_BATCH_WRONG;
    snprintf(m->why_fixed, sizeof m->why_fixed, "%s", text + sizeof fixed - 1);
    return true;
}

static void keep_verdict(sac_model *m)
{
    char              text[sizeof m->why_fixed + sizeof fixed];
    const char *const choices[] = {text};
    if (!keeps_verdicts(m))
        return;
    if (m->batching == SAC_BATCH_FREE)
        snprintf(text, sizeof text, "%s", opened);
    else
        snprintf(text, sizeof text, "%s%s", fixed, m->why_fixed);
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c)) /* it must not break its line */
            *c = '?';
    if (sac_book_write(&m->book, page_name, choices, 1))
        sac_model_save_book(m);
}

sac_result sac_model_check_batch(sac_model *m)
{
    if (m->native) { /* the check makes tensors as the ports say */
        m->batching = SAC_BATCH_WRONG;
        snprintf(m->why_fixed, sizeof m->why_fixed, "it was opened for a batch of 1");
        return SAC_OK;
    }
    if (recall_verdict(m))
        return SAC_OK;
    int          inputs = m->graph->input_count, outputs = m->graph->output_count;
    sac_tensor **in = sac_calloc((size_t)inputs, sizeof *in);
    sac_tensor **out = sac_calloc((size_t)outputs * 2, sizeof *out);
    double       worst = INFINITY;
    sac_result   res = in && out ? make_pair(m, in)
                                 : SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory to check the batch");
    if (res == SAC_OK)
        res = compare_as_check(m, in, out, out + outputs, &worst);
    if (m->dev->ops->measures_kernels) { /* these plans have unmeasured ones */
        settle(m);
        sac_model_drop_plans(m);
    }
    unref_all(in, inputs);
    unref_all(out, outputs * 2);
    sac_free(in);
    sac_free(out);
    if (sac_is_out_of_memory(res) || res == SAC_ERR_COPY || res == SAC_ERR_CANCELLED)
        return res;
    m->batching = worst <= tolerance_of(m) ? SAC_BATCH_FREE : SAC_BATCH_WRONG;
    if (m->batching == SAC_BATCH_FREE)
        sac_log(m->ctx, SAC_LOG_DEBUG, "%s: its batch of 1 is opened (difference %.2g)", m->path,
                worst);
    else if (res != SAC_OK)
        sac_context_last_error(m->ctx, m->why_fixed, sizeof m->why_fixed);
    else
        snprintf(m->why_fixed, sizeof m->why_fixed,
                 "with its batch of 1 opened, a stack of two differs by %.2g", worst);
    sac_error_clear(m->ctx);
    if (res == SAC_OK || res == SAC_ERR_UNSUPPORTED) /* a device's fault may pass */
        keep_verdict(m);
    return SAC_OK;
}
