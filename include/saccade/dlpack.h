/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of other programs: DLPack in and out, without a copy. PyTorch, JAX, CuPy, TensorFlow and
 * NumPy hand tensors over this way (the Python array API's __dlpack__).
 *
 *     sac_tensor *t = NULL;
 *     res = sac_tensor_from_dlpack(dev, theirs, &t);      // a DLManagedTensor *
 *     if (res == SAC_OK)
 *         res = sac_tensor_written_on(t, stream);         // the CUDA stream that fills it
 *     ...
 *     DLManagedTensor *ours = NULL;
 *     res = sac_tensor_to_dlpack(result, &ours);
 *     if (res == SAC_OK)
 *         res = sac_tensor_ready_on(result, stream);      // the CUDA stream that will read it
 *     ...
 *     ours->deleter(ours);                                // whoever has it last
 *
 * The structs are the standard's, of dlpack/dlpack.h (https://dmlc.github.io/dlpack), which a
 * program includes itself, before or after this header. Both forms are taken and given: the plain
 * one, and the versioned one of DLPack 1, which can say that memory is read-only.
 *
 * Streams: a DLPack tensor says nothing about when its numbers are complete. They are, unless
 * sac_tensor_written_on or sac_tensor_written_at follows (saccade/tensor.h); and who gets a tensor
 * of this library's reads it on a stream that sac_tensor_ready_on was called for, or after
 * sac_device_wait. No thread waits in any of these.
 */
#ifndef SACCADE_DLPACK_H
#define SACCADE_DLPACK_H

#include <saccade/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* A tensor over the memory of a DLPack tensor.
 *
 * dev      where the memory is: on cpu that of kDLCPU, kDLCUDAHost, kDLCUDAManaged and kDLROCMHost;
 *          on cuda:N that of kDLCUDA with device_id N, and kDLCUDAManaged.
 * theirs   taken on success: its deleter is called when the last reference to the tensor is gone
 *          and the library's work with it is done (see sac_tensor_written_on for a GPU's), from any
 *          thread. On failure it stays the caller's.
 * out      one reference, released by sac_tensor_unref. That of a versioned one with the flag
 *          READ_ONLY cannot be written.
 * Threads  any.
 * Errors   SAC_ERR_UNSUPPORTED for strides that are not those of a dense row-major tensor (those of
 *          a dimension of 1 do not count), for a type of number that enum sac_dtype does not have,
 *          more than SAC_RANK_MAX dimensions, or another major version than 1; SAC_ERR_ARG for
 *          memory that is not the device's, an address that is no multiple of the number's size,
 *          and a bad shape; SAC_ERR_MEMORY. */
SAC_API sac_result sac_tensor_from_dlpack(sac_device *dev, struct DLManagedTensor *theirs,
                                          sac_tensor **out);
SAC_API sac_result sac_tensor_from_dlpack_versioned(sac_device                      *dev,
                                                    struct DLManagedTensorVersioned *theirs,
                                                    sac_tensor                     **out);

/* A DLPack tensor over the memory of a tensor, which it holds a reference to.
 *
 * out      owned by the caller, who passes it on, or ends it: out->deleter(out), from any thread.
 *          It may outlive all other handles: tensor, device and context stay until then, and
 *          messages are no longer logged once the context has been destroyed.
 * Threads  any.
 * Errors   SAC_ERR_ARG for the plain form of a tensor that may only be read, which only the
 *          versioned one can say; SAC_ERR_UNSUPPORTED on a device whose memory DLPack has no number
 *          for; SAC_ERR_MEMORY. */
SAC_API sac_result sac_tensor_to_dlpack(sac_tensor *t, struct DLManagedTensor **out);
SAC_API sac_result sac_tensor_to_dlpack_versioned(sac_tensor                       *t,
                                                  struct DLManagedTensorVersioned **out);

#ifdef __cplusplus
}
#endif
#endif
