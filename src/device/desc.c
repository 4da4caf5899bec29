/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor described: its numbers, their shape, the bytes they take. */
#include <stdio.h>

#include "device/device.h"

static const struct {
    const char *name;
    size_t      bytes;
} dtypes[SAC_DTYPE_COUNT] = {
    [SAC_DTYPE_NONE] = {"none", 0}, [SAC_F32] = {"float32", 4},   [SAC_F16] = {"float16", 2},
    [SAC_F64] = {"float64", 8},     [SAC_BF16] = {"bfloat16", 2}, [SAC_I8] = {"int8", 1},
    [SAC_U8] = {"uint8", 1},        [SAC_I16] = {"int16", 2},     [SAC_U16] = {"uint16", 2},
    [SAC_I32] = {"int32", 4},       [SAC_U32] = {"uint32", 4},    [SAC_I64] = {"int64", 8},
    [SAC_U64] = {"uint64", 8},      [SAC_BOOL] = {"bool", 1},     [SAC_F8] = {"float8e4m3fn", 1},
};

size_t sac_dtype_bytes(enum sac_dtype dtype)
{
    return (unsigned)dtype < SAC_DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

const char *sac_dtype_name(enum sac_dtype dtype)
{
    return (unsigned)dtype < SAC_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

int64_t sac_tensor_desc_elements(const struct sac_tensor_desc *desc)
{
    if (!desc)
        return -1;
    int64_t n = 1;
    bool    empty = false;
    if (desc->rank < 0 || desc->rank > SAC_RANK_MAX)
        return -1;
    for (int i = 0; i < desc->rank; i++) {
        if (desc->shape[i] < 0)
            return -1;
        if (desc->shape[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(n, desc->shape[i], &n))
            return -1;
    }
    return empty ? 0 : n;
}

int64_t sac_tensor_desc_bytes(const struct sac_tensor_desc *desc)
{
    if (!desc)
        return -1;
    int64_t n = sac_tensor_desc_elements(desc), bytes;
    if (n < 0 || __builtin_mul_overflow(n, (int64_t)sac_dtype_bytes(desc->dtype), &bytes))
        return -1;
    return bytes;
}

void sac_tensor_desc_print(const struct sac_tensor_desc *desc, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "%s [", sac_dtype_name(desc->dtype));
    for (int i = 0; i < desc->rank && at < size; i++)
        at += desc->shape[i] < 0 ? (size_t)snprintf(out + at, size - at, "%s?", i ? "," : "")
                                 : (size_t)snprintf(out + at, size - at, "%s%lld", i ? "," : "",
                                                    (long long)desc->shape[i]);
    if (at < size)
        snprintf(out + at, size - at, "]");
}
