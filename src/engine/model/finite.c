/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/finite.h"

#include "engine/kernel/finite.h"

/* Not from the pool of host memory: that is for copies, and may be memory that no kernel can write
 * to. */
void sac_finite_open(struct sac_finite *f, sac_device *dev)
{
    void *memory = NULL;
    if (!dev->ops->host_alloc)
        memory = sac_alloc(sizeof *f->odd);
    else if (dev->ops->host_alloc(dev, sizeof *f->odd, &memory) != SAC_OK)
        sac_error_clear(dev->ctx);
    if (!memory)
        return;
    f->dev = dev;
    f->odd = memory;
    *f->odd = 0;
}

void sac_finite_close(struct sac_finite *f)
{
    void *memory = (void *)(uintptr_t)f->odd;
    if (!f->dev)
        return;
    if (f->dev->ops->host_alloc)
        f->dev->ops->host_free(f->dev, memory);
    else
        sac_free(memory);
    f->dev = NULL;
    f->odd = NULL;
}

/* How many of a tensor's numbers belong to its first n of `of` images. */
static int64_t numbers_of(const struct sac_tensor_desc *d, int n, int of)
{
    int64_t count = 1;
    for (int i = 0; i < d->rank; i++)
        count *= d->shape[i];
    if (of > 0 && d->rank > 0 && d->shape[0] == of)
        return count / of * n;
    return n < of ? 0 : count; /* which of them are whose is not known */
}

sac_result sac_finite_look(struct sac_finite *f, sac_device *dev, struct sac_device_stream *stream,
                           sac_tensor *const *tensors, int count, int n, int of)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < count && res == SAC_OK && f->odd && !f->said; i++) {
        if (!tensors[i])
            continue;
        const struct sac_tensor_desc *d = sac_tensor_describe(tensors[i]);
        const int64_t                 numbers = numbers_of(d, n, of);
        const void                   *at = sac_tensor_data(tensors[i]);
        if ((d->dtype != SAC_F32 && d->dtype != SAC_F16) || numbers == 0)
            continue;
        if (dev->ops->host_memory)
            *f->odd |= !sac_numbers_are_finite(at, numbers, d->dtype == SAC_F16, false);
        else if (dev->ops->find_odd)
            res = dev->ops->find_odd(dev, stream, at, numbers, d->dtype == SAC_F16, false,
                                     (uint32_t *)(uintptr_t)f->odd);
    }
    return res;
}

void sac_finite_forget(struct sac_finite *f)
{
    if (f->odd)
        *f->odd = 0;
}

void sac_finite_say(struct sac_finite *f, sac_context *ctx, const char *path,
                    enum sac_precision precision)
{
    if (!f->odd || !*f->odd || f->said)
        return;
    f->said = true;
    const bool half = precision == SAC_PRECISION_FP16;
    sac_log(ctx, SAC_LOG_WARN,
            "%s: the network gave numbers that are NaN or infinite%s; what is made of them is not "
            "to be trusted%s",
            path, half ? " in FP16" : "",
            half ? ": try --precision tf32 or fp32, or build a plan with --calibrate and such input"
                 : "");
}
