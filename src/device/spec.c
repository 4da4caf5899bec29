/* SPDX-License-Identifier: Apache-2.0 */
/* What is expected of a tensor, and what is done with one that is not so. */
#include <stdio.h>
#include <string.h>

#include "device/device.h"

static bool shape_fits(const struct sac_tensor_desc *d, const struct sac_tensor_spec *spec)
{
    bool fits = spec->rank == 0 || d->rank == spec->rank;
    for (int i = 0; i < spec->rank && fits; i++)
        fits = spec->shape[i] < 0 || d->shape[i] == spec->shape[i];
    return fits;
}

static bool is_aligned(const sac_tensor *t, size_t align_bytes)
{
    return align_bytes == 0 || (uintptr_t)sac_tensor_data(t) % align_bytes == 0;
}

static bool meets(const sac_tensor *t, const struct sac_tensor_spec *spec)
{
    const struct sac_tensor_desc *d = t ? sac_tensor_describe(t) : NULL;
    return d && (!spec->device || sac_tensor_device(t) == spec->device) &&
           (!spec->dtype || d->dtype == spec->dtype) && shape_fits(d, spec) &&
           is_aligned(t, spec->align_bytes);
}

/* "float16 [?,3,4] on cuda:0 at a multiple of 16 bytes", of what is asked for. */
static void print_spec(const struct sac_tensor_spec *spec, char *out, size_t size)
{
    struct sac_tensor_desc desc = {.dtype = spec->dtype, .rank = spec->rank};
    char                   text[160], align[48] = "";
    memcpy(desc.shape, spec->shape, sizeof desc.shape);
    sac_tensor_desc_print(&desc, text, sizeof text);
    if (spec->rank == 0)
        text[strcspn(text, " ")] = '\0';
    if (spec->align_bytes)
        snprintf(align, sizeof align, " at a multiple of %zu bytes", spec->align_bytes);
    snprintf(out, size, "%s%s%s%s",
             spec->dtype == SAC_DTYPE_NONE ? (spec->rank ? strchr(text, '[') : "a tensor") : text,
             spec->device ? " on " : "", spec->device ? spec->device->name : "", align);
}

sac_result sac_tensor_check(sac_context *ctx, const char *what, const sac_tensor *t,
                            const struct sac_tensor_spec *spec)
{
    SAC_NEEDS(ctx, what);
    SAC_NEEDS(ctx, spec);
    char have[160], want[280];
    if (spec->rank < 0 || spec->rank > SAC_RANK_MAX)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: a tensor of rank %d cannot be wanted", what,
                        spec->rank);
    print_spec(spec, want, sizeof want);
    if (!t)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: no tensor; wanted %s", what, want);
    if (meets(t, spec))
        return SAC_OK;
    char address[40] = "";
    sac_tensor_desc_print(sac_tensor_describe(t), have, sizeof have);
    if (!is_aligned(t, spec->align_bytes))
        snprintf(address, sizeof address, " at address %p", sac_tensor_data(t));
    return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: %s on %s%s; wanted %s", what, have,
                    sac_tensor_device(t)->name, address, want);
}

/* ---- what a policy makes of one ---- */

static sac_result copy_between(const sac_tensor *t, sac_tensor *to, const char *what)
{
    sac_device          *from_dev = sac_tensor_device(t), *to_dev = sac_tensor_device(to);
    const bool           from_host = from_dev->ops->host_memory, to_host = to_dev->ops->host_memory;
    const size_t         bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(t));
    sac_device          *dev = to_host ? from_dev : to_dev;
    enum sac_copy_kind   kind = to_host ? SAC_COPY_DEVICE_TO_HOST : SAC_COPY_HOST_TO_DEVICE;
    enum sac_copy_reason reason = SAC_COPY_TENSOR_USER;
    if (from_dev == to_dev || (from_host && to_host)) {
        kind = SAC_COPY_ON_DEVICE;
        reason = SAC_COPY_TENSOR_LAYOUT;
    } else if (!from_host && !to_host) {
        return SAC_FAIL(to_dev->ctx, SAC_ERR_ARG, "%s: from %s to %s it goes through the CPU", what,
                        from_dev->name, to_dev->name);
    }
    return sac_device_copy(dev, NULL, sac_tensor_data(to), sac_tensor_data(t), bytes, kind, reason,
                           what);
}

/* What the pool gives lies at a multiple of that. */
enum { POOL_ALIGN = 64 };

static sac_result copy_to(sac_context *ctx, const char *what, sac_tensor *t,
                          const struct sac_tensor_spec *spec, sac_tensor **out)
{
    sac_device *dev = spec->device ? spec->device : sac_tensor_device(t);
    sac_tensor *copy = NULL;
    char        doing[200];
    sac_tensor_name(t, what, doing, sizeof doing);
    if (spec->align_bytes && POOL_ALIGN % spec->align_bytes != 0)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: a copy at a multiple of %zu bytes; have up to %d",
                        what, spec->align_bytes, POOL_ALIGN);
    sac_result res = sac_tensor_create(dev, sac_tensor_describe(t), what, &copy);
    if (res == SAC_OK)
        res = copy_between(t, copy, doing);
    sac_tensor_used(t, NULL);
    if (res == SAC_OK)
        *out = copy;
    else
        sac_tensor_unref(&copy);
    return res;
}

sac_result sac_tensor_admit(sac_context *ctx, const char *what, sac_tensor *t,
                            const struct sac_tensor_spec   *spec,
                            const struct sac_tensor_policy *policy, sac_tensor **out)
{
    SAC_NEEDS(ctx, what);
    SAC_NEEDS(ctx, spec);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_NO_LATER_FIELD(ctx, policy, "tensor policy");
    struct sac_tensor_spec first = *spec; /* what no copy changes */
    if (policy && t && policy->dtypes >> sac_tensor_describe(t)->dtype & 1)
        first.dtype = SAC_DTYPE_NONE;
    struct sac_tensor_spec all = first;
    if (policy && policy->copy) {
        first.device = NULL;
        first.align_bytes = 0;
    }
    /* In the sentence the whole spec is what was wanted. */
    if (!meets(t, &first))
        return sac_tensor_check(ctx, what, t, spec);
    if (!meets(t, &all))
        return copy_to(ctx, what, t, spec, out);
    *out = sac_tensor_ref(t);
    return SAC_OK;
}
