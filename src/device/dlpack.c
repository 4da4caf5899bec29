/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of other programs in, ours out, as DLPack hands them over. */
#include "device/dlpack.h"

#include <stdio.h>

#include <saccade/dlpack.h>

#include "device/device.h"

static const struct {
    uint8_t        code, bits;
    enum sac_dtype dtype;
} numbers[] = {
    {SAC_DLPACK_FLOAT, 32, SAC_F32}, {SAC_DLPACK_FLOAT, 16, SAC_F16},
    {SAC_DLPACK_FLOAT, 64, SAC_F64}, {SAC_DLPACK_BFLOAT, 16, SAC_BF16},
    {SAC_DLPACK_INT, 8, SAC_I8},     {SAC_DLPACK_UINT, 8, SAC_U8},
    {SAC_DLPACK_INT, 16, SAC_I16},   {SAC_DLPACK_UINT, 16, SAC_U16},
    {SAC_DLPACK_INT, 32, SAC_I32},   {SAC_DLPACK_UINT, 32, SAC_U32},
    {SAC_DLPACK_INT, 64, SAC_I64},   {SAC_DLPACK_UINT, 64, SAC_U64},
    {SAC_DLPACK_BOOL, 8, SAC_BOOL},  {SAC_DLPACK_FLOAT8_E4M3FN, 8, SAC_F8},
};

/* ---- in ---- */

static sac_result read_number(sac_device *dev, const struct sac_dlpack_tensor *d,
                              enum sac_dtype *out)
{
    for (size_t i = 0; i < SAC_COUNT(numbers) && d->number.lanes == 1; i++)
        if (numbers[i].code == d->number.code && numbers[i].bits == d->number.bits) {
            *out = numbers[i].dtype;
            return SAC_OK;
        }
    return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED,
                    "DLPack tensor: numbers of code %u, %u bits and %u lanes; have whole numbers "
                    "of 8 to 64 bits, floats of 16 to 64, bfloat16, float8_e4m3fn and bool, of one "
                    "lane",
                    d->number.code, d->number.bits, d->number.lanes);
}

static sac_result check_device(sac_device *dev, const struct sac_dlpack_tensor *d)
{
    const int  type = d->device.type;
    const bool own = type == dev->ops->dlpack_type;
    if (type > 0 && type < 32 && (dev->ops->dlpack_types >> type & 1) &&
        (!own || dev->ops->host_memory || d->device.id == dev->index))
        return SAC_OK;
    return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                    "DLPack tensor: its memory is of device type %d, number %d, which is not that "
                    "of %s",
                    type, (int)d->device.id, dev->name);
}

static sac_result read_shape(sac_device *dev, const struct sac_dlpack_tensor *d,
                             struct sac_tensor_desc *out)
{
    if (d->rank < 0 || d->rank > SAC_RANK_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "DLPack tensor: rank %d; have 0 to %d",
                        (int)d->rank, SAC_RANK_MAX);
    if (d->rank > 0 && !d->shape)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "DLPack tensor: it has no shape");
    out->rank = d->rank;
    for (int i = 0; i < d->rank; i++)
        out->shape[i] = d->shape[i];
    if (sac_tensor_desc_bytes(out) < 0)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                        "DLPack tensor: a negative dimension, or more bytes than there can be");
    return SAC_OK;
}

/* An empty tensor has no numbers that lie anywhere. */
static sac_result check_strides(sac_device *dev, const struct sac_dlpack_tensor *d,
                                const struct sac_tensor_desc *desc)
{
    int64_t dense = 1;
    char    text[128];
    if (!d->strides || sac_tensor_desc_elements(desc) == 0)
        return SAC_OK;
    sac_tensor_desc_print(desc, text, sizeof text);
    for (int i = d->rank - 1; i >= 0; i--) {
        if (d->shape[i] != 1 && d->strides[i] != dense)
            return SAC_FAIL(
                dev->ctx, SAC_ERR_UNSUPPORTED,
                "DLPack tensor, %s: dimension %d has a stride of %lld; it is %lld where "
                "a tensor is dense and row-major: make it contiguous first",
                text, i, (long long)d->strides[i], (long long)dense);
        dense *= d->shape[i];
    }
    return SAC_OK;
}

static sac_result read_tensor(sac_device *dev, const struct sac_dlpack_tensor *d,
                              struct sac_tensor_desc *desc, void **data)
{
    sac_result res = check_device(dev, d);
    if (res == SAC_OK)
        res = read_number(dev, d, &desc->dtype);
    if (res == SAC_OK)
        res = read_shape(dev, d, desc);
    if (res == SAC_OK)
        res = check_strides(dev, d, desc);
    if (res != SAC_OK)
        return res;
    *data = d->data ? (char *)d->data + d->byte_offset : NULL;
    if ((uintptr_t)*data % sac_dtype_bytes(desc->dtype) != 0)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG,
                        "DLPack tensor: address %p is no multiple of %zu, the size of a %s", *data,
                        sac_dtype_bytes(desc->dtype), sac_dtype_name(desc->dtype));
    return SAC_OK;
}

static void delete_plain(void *user)
{
    struct DLManagedTensor *theirs = user;
    if (theirs->deleter)
        theirs->deleter(theirs);
}

static void delete_versioned(void *user)
{
    struct DLManagedTensorVersioned *theirs = user;
    if (theirs->deleter)
        theirs->deleter(theirs);
}

sac_result sac_tensor_from_dlpack(sac_device *dev, struct DLManagedTensor *theirs, sac_tensor **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(dev->ctx, theirs);
    SAC_NEEDS(dev->ctx, out);
    struct sac_tensor_desc desc = {.dtype = SAC_DTYPE_NONE};
    void                  *data = NULL;
    sac_result             res = read_tensor(dev, &theirs->tensor, &desc, &data);
    return res == SAC_OK ? sac_tensor_wrap(dev, &desc, data, delete_plain, theirs, out) : res;
}

sac_result sac_tensor_from_dlpack_versioned(sac_device                      *dev,
                                            struct DLManagedTensorVersioned *theirs,
                                            sac_tensor                     **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(dev->ctx, theirs);
    SAC_NEEDS(dev->ctx, out);
    struct sac_tensor_desc desc = {.dtype = SAC_DTYPE_NONE};
    void                  *data = NULL;
    if (theirs->version.major != SAC_DLPACK_MAJOR)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "DLPack tensor: of version %u.%u; have %d",
                        theirs->version.major, theirs->version.minor, SAC_DLPACK_MAJOR);
    sac_result res = read_tensor(dev, &theirs->tensor, &desc, &data);
    if (res != SAC_OK)
        return res;
    return theirs->flags & SAC_DLPACK_READ_ONLY
               ? sac_tensor_wrap_const(dev, &desc, data, delete_versioned, theirs, out)
               : sac_tensor_wrap(dev, &desc, data, delete_versioned, theirs, out);
}

/* ---- out ---- */

/* One of the two forms, with what both point to. */
struct exported {
    union {
        struct DLManagedTensor          plain;
        struct DLManagedTensorVersioned versioned;
    } as;
    sac_tensor  *tensor;
    sac_device  *dev; /* a handle: what others keep is no leak */
    sac_context *ctx;
    int64_t      shape[SAC_RANK_MAX], strides[SAC_RANK_MAX];
};

static void exported_destroy(struct exported *e)
{
    sac_context *ctx = e->ctx;
    sac_tensor_unref(&e->tensor);
    sac_device_unref(&e->dev);
    sac_free(e);
    sac_context_release(ctx);
}

static void end_plain(struct DLManagedTensor *self)
{
    exported_destroy(self->context);
}

static void end_versioned(struct DLManagedTensorVersioned *self)
{
    exported_destroy(self->context);
}

static void fill(struct exported *e, struct sac_dlpack_tensor *d)
{
    const struct sac_tensor_desc *desc = sac_tensor_describe(e->tensor);
    int64_t                       dense = 1;
    for (int i = desc->rank - 1; i >= 0; i--) {
        e->shape[i] = desc->shape[i];
        e->strides[i] = dense;
        dense *= desc->shape[i];
    }
    d->data = sac_tensor_data(e->tensor);
    d->device.type = e->dev->ops->dlpack_type;
    d->device.id = e->dev->ops->host_memory ? 0 : e->dev->index;
    d->rank = desc->rank;
    for (size_t i = 0; i < SAC_COUNT(numbers); i++)
        if (numbers[i].dtype == desc->dtype) {
            d->number.code = numbers[i].code;
            d->number.bits = numbers[i].bits;
        }
    d->number.lanes = 1;
    d->shape = e->shape;
    d->strides = e->strides;
}

static sac_result export(sac_tensor *t, struct exported **out)
{
    sac_device *dev = sac_tensor_device(t);
    if (!dev->ops->dlpack_type)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "DLPack tensor: it has no number for %s",
                        dev->name);
    struct exported *e = sac_new(struct exported);
    if (!e)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for a DLPack tensor");
    e->tensor = sac_tensor_ref(t);
    e->dev = sac_device_ref(dev);
    e->ctx = sac_context_hold(dev->ctx);
    *out = e;
    return SAC_OK;
}

sac_result sac_tensor_to_dlpack(sac_tensor *t, struct DLManagedTensor **out)
{
    SAC_NEEDS(NULL, t);
    SAC_NEEDS(sac_tensor_device(t)->ctx, out);
    struct exported *e = NULL;
    sac_result       res = sac_tensor_check_writable(t, "DLPack tensor of the plain form");
    if (res == SAC_OK)
        res = export(t, &e);
    if (res != SAC_OK)
        return res;
    e->as.plain.context = e;
    e->as.plain.deleter = end_plain;
    fill(e, &e->as.plain.tensor);
    *out = &e->as.plain;
    return SAC_OK;
}

sac_result sac_tensor_to_dlpack_versioned(sac_tensor *t, struct DLManagedTensorVersioned **out)
{
    SAC_NEEDS(NULL, t);
    SAC_NEEDS(sac_tensor_device(t)->ctx, out);
    struct exported *e = NULL;
    sac_result       res = export(t, &e);
    if (res != SAC_OK)
        return res;
    e->as.versioned.version.major = SAC_DLPACK_MAJOR;
    e->as.versioned.version.minor = SAC_DLPACK_MINOR;
    e->as.versioned.context = e;
    e->as.versioned.deleter = end_versioned;
    e->as.versioned.flags = sac_tensor_is_const(t) ? SAC_DLPACK_READ_ONLY : 0;
    fill(e, &e->as.versioned.tensor);
    *out = &e->as.versioned;
    return SAC_OK;
}
