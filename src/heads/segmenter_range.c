/* SPDX-License-Identifier: Apache-2.0 */
/* Shares or logits? Where the file's last operator does not tell, the numbers of one run do: of
 * noise, so that there is something of everything. */
#include <string.h>

#include "engine/engine.h"
#include "heads/segmenter.h"

/* Shares that were computed in half precision may be a little outside. */
static const double slack = 0.002;

struct range {
    double least, most;
};

static struct sac_operand line_of(const sac_tensor *t, void *data)
{
    const struct sac_tensor_desc *d = sac_tensor_describe(t);
    struct sac_operand            o = {.dtype = d->dtype, .rank = 1, .present = true, .data = data};
    o.dims[0] = sac_tensor_desc_elements(d);
    return o;
}

/* As part of loading: strict mode is about frames and their tensors. */
static sac_result exchange(struct sac_segmenter *seg, sac_tensor *t, void *host,
                           enum sac_copy_kind kind)
{
    const bool   up = kind == SAC_COPY_HOST_TO_DEVICE;
    const size_t bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(t));
    void        *device = sac_tensor_data(t);
    if (host == device)
        return SAC_OK;
    return sac_device_copy(seg->dev, NULL, up ? device : host, up ? host : device, bytes, kind,
                           SAC_COPY_WEIGHTS, "a look at the network's numbers");
}

static sac_result send_noise(struct sac_segmenter *seg, sac_tensor *t)
{
    const struct sac_preprocess *pre = &seg->contract.pre;
    const size_t                 bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(t));
    struct sac_mirror            host = {NULL, NULL};
    uint32_t                     seed = 1;
    sac_result res = sac_mirror_open(seg->dev, sac_tensor_data(t), bytes, "noise", &host);
    if (res != SAC_OK)
        return res;
    const struct sac_operand o = line_of(t, host.data);
    for (int64_t i = 0; i < o.dims[0]; i++) {
        seed = seed * 1664525u + 1013904223u;
        const double x = seed >> 24;
        sac_operand_set(&o, i,
                        o.dtype == SAC_U8 ? x : (x - (double)pre->mean[0]) * (double)pre->scale[0]);
    }
    res = exchange(seg, t, host.data, SAC_COPY_HOST_TO_DEVICE);
    sac_mirror_close(&host);
    return res;
}

static sac_result read_range(struct sac_segmenter *seg, sac_tensor *t, struct range *out)
{
    const size_t      bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(t));
    struct sac_mirror host = {NULL, NULL};
    sac_result        res = sac_mirror_open(seg->dev, sac_tensor_data(t), bytes, "a look", &host);
    if (res == SAC_OK)
        res = exchange(seg, t, host.data, SAC_COPY_DEVICE_TO_HOST);
    if (res != SAC_OK) {
        sac_mirror_close(&host);
        return res;
    }
    const struct sac_operand o = line_of(t, host.data);
    *out = (struct range){1, 0};
    for (int64_t i = 0; i < o.dims[0]; i++) {
        const double v = sac_operand_get(&o, i);
        out->least = i == 0 || v < out->least ? v : out->least;
        out->most = i == 0 || v > out->most ? v : out->most;
    }
    sac_mirror_close(&host);
    return SAC_OK;
}

static sac_result look(struct sac_segmenter *seg, int output, struct range *out)
{
    struct sac_buckets *b = &seg->buckets;
    struct sac_bucket  *bucket = &b->list[0];
    sac_result          res = sac_bucket_prepare(b, bucket);
    if (res == SAC_OK)
        res = send_noise(seg, bucket->in);
    if (res == SAC_OK)
        res = b->dev->ops->stream_after(b->dev, b->stream, NULL);
    if (res == SAC_OK)
        res = sac_model_run_on(seg->model, b->stream, bucket->inputs, bucket->out);
    sac_result waited = b->dev->ops->stream_wait(b->stream);
    sac_model_forget_not_finite(seg->model);
    res = res == SAC_OK ? waited : res;
    return res == SAC_OK ? read_range(seg, bucket->out[output], out) : res;
}

sac_result sac_segmenter_measure(struct sac_segmenter *seg)
{
    struct sac_matte_spec *spec = &seg->spec;
    const int              output = spec->value.tensor;
    const bool             one = spec->form == SAC_MATTE_LOGIT;
    struct range           r = {0, 0};
    if (spec->width == 0 || (!one && spec->form != SAC_MATTE_CLASS_LOGITS) ||
        seg->view.facts.ending[output].kind != SAC_ENDS_OTHERWISE)
        return SAC_OK;
    sac_result res = look(seg, output, &r);
    if (res != SAC_OK)
        return res;
    if (r.least >= -slack && r.most <= 1 + slack) {
        seg->view.facts.shares |= 1u << output;
        spec->form = one ? SAC_MATTE_SHARE : SAC_MATTE_CLASS_SHARES;
        return SAC_OK;
    }
    if (one && r.least >= 0)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: the numbers of output '%s' go from %g to %g: they are neither shares, "
                        "0 to 1, nor logits; let the network end in a sigmoid",
                        sac_model_path(seg->model), sac_model_output(seg->model, output)->name,
                        r.least, r.most);
    return SAC_OK;
}
