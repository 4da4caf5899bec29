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

/* The type of a number. */
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
    SAC_F8,   /* float8e4m3fn of ONNX: up to 448, no infinity; of quantised networks */
    SAC_DTYPE_COUNT
};
SAC_API size_t      sac_dtype_bytes(enum sac_dtype dtype); /* 0 for SAC_DTYPE_NONE */
SAC_API const char *sac_dtype_name(enum sac_dtype dtype);  /* "float32", ... */

/* Type and shape. */
struct sac_tensor_desc {
    enum sac_dtype dtype;
    int            rank;                /* 0 (a scalar) to SAC_RANK_MAX */
    int64_t        shape[SAC_RANK_MAX]; /* elements; the last dimension is contiguous */
};
/* Elements (1 for a scalar) or bytes of a dense tensor; -1 when they overflow or a dim is
 * negative. */
SAC_API int64_t sac_tensor_desc_elements(const struct sac_tensor_desc *desc);
SAC_API int64_t sac_tensor_desc_bytes(const struct sac_tensor_desc *desc);

typedef struct sac_tensor sac_tensor;

/* Create a tensor; its contents are not initialised.
 *
 * owner    what it is for, shown in the list of live buffers; copied.
 * out      one reference, released by sac_tensor_unref.
 * Threads  any.
 * Errors   SAC_ERR_ARG for a bad shape; SAC_ERR_LIMIT over the device's budget; SAC_ERR_MEMORY. */
SAC_API sac_result sac_tensor_create(sac_device *dev, const struct sac_tensor_desc *desc,
                                     const char *owner, sac_tensor **out);
/* Wrap memory that is already on the device. Its contents must be complete: your own work that
 * writes them must be done, unless sac_tensor_written_on or sac_tensor_written_at follows.
 * release(user) is called when the last reference is gone and the
 * library's work with the memory is done; it may be NULL.
 * Threads  any; release may be called from any thread.
 * Errors   SAC_ERR_ARG for a bad shape or no address; SAC_ERR_MEMORY. release is not called
 *          then. */
SAC_API sac_result sac_tensor_wrap(sac_device *dev, const struct sac_tensor_desc *desc, void *data,
                                   void (*release)(void *user), void *user, sac_tensor **out);
/* A tensor of another shape over the same buffer, beginning at offset_bytes; it holds a reference
 * to the buffer.
 * Errors   SAC_ERR_ARG when it would reach past the end; SAC_ERR_MEMORY. */
SAC_API sac_result  sac_tensor_view(sac_tensor *base, size_t offset_bytes,
                                    const struct sac_tensor_desc *desc, sac_tensor **out);
SAC_API sac_tensor *sac_tensor_ref(sac_tensor *t);
SAC_API void        sac_tensor_unref(sac_tensor **t);

/* Borrowed from the tensor. */
SAC_API const struct sac_tensor_desc *sac_tensor_describe(const sac_tensor *t);
SAC_API void       *sac_tensor_data(const sac_tensor *t); /* device address; see sac_device_wait */
SAC_API sac_device *sac_tensor_device(const sac_tensor *t);

/* ---- streams of your own ----
 *
 * A GPU's work is queued, and so may yours be, on a stream of yours: a CUstream or cudaStream_t, in
 * the GPU's primary context; NULL is CUDA's (legacy) default stream. These calls put your work and
 * the library's in order on the GPU itself: no thread waits. Your stream must not be in the middle
 * of a capture. On the CPU, where all work is done when a call returns, they do nothing.
 * Any thread. Errors   SAC_ERR_DEVICE, SAC_ERR_MEMORY. */

/* What you have queued on the stream by now writes the tensor: the library's work with it, and what
 * else is queued on the device from now on, begins after that. Memory that was wrapped is from now
 * on returned to its owner on this stream, too: when the last reference is gone, the stream waits
 * for the library's work with it, and release is called without a wait of the host's. The stream
 * must exist until then. */
SAC_API sac_result sac_tensor_written_on(sac_tensor *t, void *stream);
/* The same for work that ends with an event of yours (a CUevent or cudaEvent_t), which must have
 * been recorded; it may be destroyed at once. */
SAC_API sac_result sac_tensor_written_at(sac_tensor *t, void *event);
/* What you queue on the stream from now on may read the tensor, or write it: the stream waits for
 * the library's work on it so far. Once the tensor is released, its memory is used again only when
 * what was queued on the stream by then is done. The stream must exist until then. */
SAC_API sac_result sac_tensor_ready_on(sac_tensor *t, void *stream);

/* Copy the whole tensor from or to host memory of sac_tensor_desc_bytes; done on return. Counted as
 * tensor-user, so it fails in strict mode; a device in host memory transfers nothing, so there it
 * is not counted and does not fail.
 * Errors   SAC_ERR_COPY in strict mode, SAC_ERR_DEVICE; SAC_ERR_ARG for an upload into memory that
 *          may only be read (a frame's plane; what DLPack says so of). */
SAC_API sac_result sac_tensor_upload(sac_tensor *t, const void *src);
SAC_API sac_result sac_tensor_download(const sac_tensor *t, void *dst);

/* Requirements for a tensor; a zero field requires nothing. */
struct sac_tensor_spec {
    sac_device    *device;              /* where it is; NULL: anywhere */
    enum sac_dtype dtype;               /* SAC_DTYPE_NONE: any */
    int            rank;                /* 0: any, with any shape */
    int64_t        shape[SAC_RANK_MAX]; /* -1: any */
    size_t         align_bytes;         /* its address is a multiple of this; 0: any */
};
/* Check a tensor against a spec: SAC_OK, or SAC_ERR_ARG and a sentence that begins with `what`: "my
 * input: float32 [1,3,4] on cpu; wanted float16 [?,3,4]". The contents are not read. Any thread. */
SAC_API sac_result sac_tensor_check(sac_context *ctx, const char *what, const sac_tensor *t,
                                    const struct sac_tensor_spec *spec);

/* What may be done with a tensor that does not meet a spec. */
struct sac_tensor_policy {
    /* Types that will do as well as the spec's: a bit of 1u << SAC_F16, and so on, for each. */
    uint32_t dtypes;
    /* 1: a tensor on another device (of the two one is the CPU), or at an address that is not a
     * multiple of align_bytes, is copied; the ledger counts that as tensor-user, or on one device
     * as tensor-layout, and it fails in strict mode. 0 (default): such a tensor is refused. */
    int      copy;
    uint64_t reserved[4]; /* 0 */
};
/* A tensor that meets a spec, as far as a policy goes: t itself, or a copy of it where the spec
 * says. Its numbers are as they were: their type is never changed.
 *
 * policy   NULL: none, as sac_tensor_check.
 * out      a reference of the caller's, released by sac_tensor_unref.
 * Threads  any. From one device to another the copy is done on return, on one device it is queued.
 * Errors   SAC_ERR_ARG and the sentence of sac_tensor_check; those of a copy: SAC_ERR_COPY in
 * strict mode, SAC_ERR_DEVICE, SAC_ERR_LIMIT, SAC_ERR_MEMORY. */
SAC_API sac_result sac_tensor_admit(sac_context *ctx, const char *what, sac_tensor *t,
                                    const struct sac_tensor_spec   *spec,
                                    const struct sac_tensor_policy *policy, sac_tensor **out);

/* NumPy's .npy format, versions 1 to 3, C order.
 * Errors   SAC_ERR_IO, SAC_ERR_FORMAT (truncated, not npy), SAC_ERR_UNSUPPORTED (Fortran order,
 *          dtype). */
SAC_API sac_result sac_tensor_load_npy(sac_device *dev, const char *path, sac_tensor **out);
SAC_API sac_result sac_tensor_save_npy(const sac_tensor *t, const char *path);

#ifdef __cplusplus
}
#endif
#endif
