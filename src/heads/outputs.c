/* SPDX-License-Identifier: Apache-2.0 */
/* A network's outputs for who decodes on the host: float32 is used where the host reads it, other
 * numbers are widened. */
#include "device/device.h"
#include "engine/engine.h"
#include "heads/heads.h"

static bool widen(enum sac_dtype dtype, const void *in, size_t n, float *out)
{
    switch (dtype) {
    case SAC_F16:
        for (size_t i = 0; i < n; i++)
            out[i] = sac_half_to_float(((const uint16_t *)in)[i]);
        return true;
    case SAC_I32:
        for (size_t i = 0; i < n; i++)
            out[i] = (float)((const int32_t *)in)[i];
        return true;
    case SAC_I64:
        for (size_t i = 0; i < n; i++)
            out[i] = (float)((const int64_t *)in)[i];
        return true;
    default: return false;
    }
}

/* Where the host reads output i. */
static sac_result to_host(struct sac_head_outputs *o, const sac_tensor *t, int i)
{
    const size_t       bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(t));
    struct sac_mirror *mirror = &o->host[i].mirror;
    char               what[160];
    sac_mirror_close(mirror);
    sac_result res = sac_mirror_open(o->dev, sac_tensor_data(t), bytes, "outputs", mirror);
    o->copied = mirror->buf != NULL;
    sac_tensor_name(t, "head: an output for the host", what, sizeof what);
    if (res == SAC_OK)
        res = sac_device_copy(o->dev, NULL, mirror->data, sac_tensor_data(t), bytes,
                              SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_DOWNLOAD, what);
    return res;
}

/* Rows of a network without a batch dimension (one image) are the image's own. */
static void shape_without_batch(const struct sac_tensor_desc *d, int images,
                                struct sac_head_tensor *out)
{
    bool batched = d->rank > 0 && d->shape[0] == images;
    out->rank = d->rank - batched;
    for (int i = 0; i < out->rank; i++)
        out->shape[i] = d->shape[i + batched];
}

static sac_result shape_one(struct sac_head_outputs *o, const sac_tensor *t, const char *name,
                            int i)
{
    const struct sac_tensor_desc *d = sac_tensor_describe(t);
    if (o->images > 1 && (d->rank < 1 || d->shape[0] != o->images))
        return SAC_FAIL(o->dev->ctx, SAC_ERR_FORMAT, "output '%s' does not grow with the batch",
                        name);
    o->tensor[i] = (struct sac_head_tensor){.name = name};
    o->image_elements[i] = (size_t)sac_tensor_desc_elements(d) / (size_t)o->images;
    shape_without_batch(d, o->images, &o->tensor[i]);
    return SAC_OK;
}

static sac_result load_one(struct sac_head_outputs *o, const sac_tensor *t, const char *name, int i)
{
    const struct sac_tensor_desc *d = sac_tensor_describe(t);
    int64_t                       elements = sac_tensor_desc_elements(d);
    sac_result                    res = shape_one(o, t, name, i);
    if (res == SAC_OK)
        res = to_host(o, t, i);
    if (res != SAC_OK)
        return res;
    o->tensor[i].data = o->host[i].mirror.data;
    if (d->dtype == SAC_F32)
        return SAC_OK;
    if (!sac_grow((void **)&o->host[i].data, &o->host[i].capacity, (size_t)elements, sizeof(float)))
        return SAC_FAIL(o->dev->ctx, SAC_ERR_MEMORY, "no memory for output '%s'", name);
    if (!widen(d->dtype, o->host[i].mirror.data, (size_t)elements, o->host[i].data))
        return SAC_FAIL(o->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "output '%s' is %s; have float32, float16, int32, int64", name,
                        sac_dtype_name(d->dtype));
    o->tensor[i].data = o->host[i].data;
    return SAC_OK;
}

static sac_result for_each_output(struct sac_head_outputs *o, sac_device *dev,
                                  const sac_model *model, sac_tensor *const *out, int images,
                                  sac_result (*step)(struct sac_head_outputs *o,
                                                     const sac_tensor *t, const char *name, int i))
{
    sac_result res = SAC_OK;
    o->dev = dev;
    o->images = images;
    o->count = sac_model_output_count(model);
    for (int i = 0; i < o->count && res == SAC_OK; i++)
        res = step(o, out[i], sac_model_output(model, i)->name, i);
    return res;
}

sac_result sac_head_outputs_load(struct sac_head_outputs *o, sac_device *dev,
                                 const sac_model *model, sac_tensor *const *out, int images)
{
    return for_each_output(o, dev, model, out, images, load_one);
}

sac_result sac_head_outputs_shape(struct sac_head_outputs *o, sac_device *dev,
                                  const sac_model *model, sac_tensor *const *out, int images)
{
    return for_each_output(o, dev, model, out, images, shape_one);
}

void sac_head_outputs_image(const struct sac_head_outputs *o, int image,
                            struct sac_head_tensor *out)
{
    for (int i = 0; i < o->count; i++) {
        out[i] = o->tensor[i];
        out[i].data += (size_t)image * o->image_elements[i];
    }
}

void sac_head_outputs_finish(struct sac_head_outputs *o)
{
    for (int i = 0; i < SAC_HEAD_OUTPUTS_MAX; i++) {
        sac_mirror_close(&o->host[i].mirror);
        sac_free(o->host[i].data);
    }
    *o = (struct sac_head_outputs){0};
}
