/* SPDX-License-Identifier: Apache-2.0 */
/* How launchers launch: by CUDA_LAUNCH, so that what is queued between gather_begin and gather_end
 * becomes one launch with all else there (gather.c). Tests without a GPU have their own. */
#ifndef SAC_DEVICE_CUDA_LAUNCH_H
#define SAC_DEVICE_CUDA_LAUNCH_H

#include <stddef.h>

#include <cuda_runtime_api.h>

#ifndef CUDA_LAUNCH

#ifdef __cplusplus
extern "C" {
#endif

/* As cudaLaunchKernel; bytes: of each parameter. What goes wrong is the thread's last error. */
void cuda_queue_kernel(const void *kernel, dim3 grid, dim3 block, const void *const *params,
                       const size_t *bytes, int count, cudaStream_t stream);

#ifdef __cplusplus
}

/* The kernel alone says of which types its parameters are. */
template <typename T> struct cuda_param {
    typedef T type;
};

template <typename... P>
void cuda_launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream,
                 const typename cuda_param<P>::type &...args)
{
    const void  *params[] = {&args...};
    const size_t bytes[] = {sizeof(args)...};
    cuda_queue_kernel((const void *)kernel, grid, block, params, bytes, (int)sizeof...(P), stream);
}

/* A launch of a kernel without shared memory of a size that is known only then. */
#define CUDA_LAUNCH(kernel, grid, block, stream, ...) \
    cuda_launch(kernel, grid, block, stream, __VA_ARGS__)
#endif

#endif

#endif
