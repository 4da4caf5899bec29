/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor: typed numbers with a shape on one device, counted by reference.
 *
 * Views share the buffer. Shared means read-only: to write, hold the only reference.
 *
 *     struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 4, .shape = {1, 3, 416, 416}};
 *     sac_tensor *t = NULL;
 *     sac_result  res = sac_tensor_create(dev, &desc, "my input", &t);
 *     float *x = sac_tensor_data(t);
 *     ...
 *     sac_tensor_unref(&t);
 */
#ifndef SACCADE_TENSOR_H
#define SACCADE_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <saccade/device.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SAC_RANK_MAX = 8 };

enum sac_dtype {
    SAC_DTYPE_NONE = 0,
    SAC_F32,
    SAC_F16,
    SAC_F64,
    SAC_BF16,
    SAC_I8,
    SAC_U8,
    SAC_I16,
    SAC_U16,
    SAC_I32,
    SAC_U32,
    SAC_I64,
    SAC_U64,
    SAC_BOOL, /* one byte, 0 or 1 */
    SAC_DTYPE_COUNT
};
SAC_API size_t      sac_dtype_bytes(enum sac_dtype dtype); /* 0 for SAC_DTYPE_NONE */
SAC_API const char *sac_dtype_name(enum sac_dtype dtype);  /* "float32", ... */

struct sac_tensor_desc {
    enum sac_dtype dtype;
    int            rank;                /* 0 (a scalar) to SAC_RANK_MAX */
    int64_t        shape[SAC_RANK_MAX]; /* elements; the last dimension is contiguous */
};
/* Elements (1 for a scalar) or bytes of a dense tensor; -1 when they overflow or a dim is negative. */
SAC_API int64_t sac_tensor_desc_elements(const struct sac_tensor_desc *desc);
SAC_API int64_t sac_tensor_desc_bytes(const struct sac_tensor_desc *desc);

typedef struct sac_tensor sac_tensor;

/* owner    who holds it, for the live list; copied. The contents are not initialised.
 * Errors   SAC_ERR_ARG for a bad shape; SAC_ERR_MEMORY. */
SAC_API sac_result sac_tensor_create(sac_device *dev, const struct sac_tensor_desc *desc,
                                     const char *owner, sac_tensor **out);
/* Wrap memory that lives on the device already; release(user) is called with the last reference, once the
 * library's work with it is done (NULL: nothing to release). Numbers that other work still writes there must be
 * complete. */
SAC_API sac_result sac_tensor_wrap(sac_device *dev, const struct sac_tensor_desc *desc, void *data,
                                   void (*release)(void *user), void *user, sac_tensor **out);
/* Another shape, from offset_bytes on, over the same buffer; holds a reference to it.
 * Errors   SAC_ERR_ARG when it would reach past the end. */
SAC_API sac_result sac_tensor_view(sac_tensor *base, size_t offset_bytes,
                                   const struct sac_tensor_desc *desc, sac_tensor **out);
SAC_API sac_tensor *sac_tensor_ref(sac_tensor *t);
SAC_API void        sac_tensor_unref(sac_tensor **t);

SAC_API const struct sac_tensor_desc *sac_tensor_describe(const sac_tensor *t);
SAC_API void                         *sac_tensor_data(const sac_tensor *t); /* device address; see sac_device_wait */
SAC_API sac_device                   *sac_tensor_device(const sac_tensor *t);

/* The whole tensor from or to host memory of sac_tensor_desc_bytes; done on return, and counted as
 * tensor-user, so strict mode refuses it. On a device whose memory the host may use this is a copy too.
 * Errors   SAC_ERR_LIMIT in strict mode, SAC_ERR_DEVICE. */
SAC_API sac_result sac_tensor_upload(sac_tensor *t, const void *src);
SAC_API sac_result sac_tensor_download(const sac_tensor *t, void *dst);

/* What a tensor must be; zeros ask for nothing. */
struct sac_tensor_spec {
    sac_device    *device;              /* where it is; NULL: anywhere */
    enum sac_dtype dtype;               /* SAC_DTYPE_NONE: any */
    int            rank;                /* 0: any, with any shape */
    int64_t        shape[SAC_RANK_MAX]; /* -1: any */
    size_t         align_bytes;         /* its address is a multiple of this; 0: any */
};
/* SAC_OK, or SAC_ERR_ARG and a sentence that says what it is and what was wanted: "my input: float32 [1,3,4] on
 * cpu; wanted float16 [?,3,4]". what names it there. Looks at no numbers. Any thread. */
SAC_API sac_result sac_tensor_check(sac_context *ctx, const char *what, const sac_tensor *t,
                                    const struct sac_tensor_spec *spec);

/* NumPy's .npy format, versions 1 to 3, C order.
 * Errors   SAC_ERR_IO, SAC_ERR_FORMAT (truncated, not npy), SAC_ERR_UNSUPPORTED (Fortran order, dtype). */
SAC_API sac_result sac_tensor_load_npy(sac_device *dev, const char *path, sac_tensor **out);
SAC_API sac_result sac_tensor_save_npy(const sac_tensor *t, const char *path);

#ifdef __cplusplus
}
#endif
#endif
