/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack's structs as the standard lays them out (version 1: https://dmlc.github.io/dlpack), and
 * the numbers of it that we use. */
#ifndef SAC_DEVICE_DLPACK_H
#define SAC_DEVICE_DLPACK_H

#include <stdint.h>

/* What a memory is. */
enum {
    SAC_DLPACK_CPU = 1,
    SAC_DLPACK_CUDA = 2,
    SAC_DLPACK_CUDA_HOST = 3,
    SAC_DLPACK_ROCM_HOST = 11,
    SAC_DLPACK_EXTENSION = 12, /* a device that is none of the standard's */
    SAC_DLPACK_CUDA_MANAGED = 13
};

/* What a number is, with its bits beside it. */
enum {
    SAC_DLPACK_INT = 0,
    SAC_DLPACK_UINT = 1,
    SAC_DLPACK_FLOAT = 2,
    SAC_DLPACK_BFLOAT = 4,
    SAC_DLPACK_BOOL = 6,
    SAC_DLPACK_FLOAT8_E4M3FN = 10
};

enum { SAC_DLPACK_MAJOR = 1, SAC_DLPACK_MINOR = 0, SAC_DLPACK_READ_ONLY = 1 };

struct sac_dlpack_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t rank;
    struct {
        uint8_t  code, bits;
        uint16_t lanes;
    } number;
    int64_t *shape;
    int64_t *strides; /* in numbers; NULL: dense, row-major */
    uint64_t byte_offset;
};

struct DLManagedTensor {
    struct sac_dlpack_tensor tensor;
    void                    *context;
    void (*deleter)(struct DLManagedTensor *self); /* may be NULL */
};

struct DLManagedTensorVersioned {
    struct {
        uint32_t major, minor;
    } version; /* another major one: nothing but the deleter may be used */
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t                 flags;
    struct sac_dlpack_tensor tensor;
};

#endif
