/* SPDX-License-Identifier: Apache-2.0 */
/* How launchers launch: by CUDA_LAUNCH, so that what is queued between gather_begin and gather_end
 * becomes one launch with all else there (gather.c), or by CUDA_LAUNCH_ALONE. Both launch early
 * where that can be (early.c), so every kernel begins with early_begin(), or with early_prepare()
 * and waits later. Tests without a GPU have their own. */
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
/* The same at once. shared: bytes of shared memory beside the kernel's own; cluster: so many blocks
 * that stand side by side see each other's, 1: none. Between cuda_enter and cuda_leave. */
cudaError_t cuda_launch_kernel(const void *kernel, dim3 grid, dim3 block, size_t shared,
                               unsigned cluster, const void *const *params, cudaStream_t stream);

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

template <typename... P>
void cuda_launch_alone(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, unsigned cluster,
                       cudaStream_t stream, const typename cuda_param<P>::type &...args)
{
    const void *params[] = {&args...};
    cuda_launch_kernel((const void *)kernel, grid, block, shared, cluster, params, stream);
}

/* A launch of a kernel without shared memory of a size that is known only then. */
#define CUDA_LAUNCH(kernel, grid, block, stream, ...) \
    cuda_launch(kernel, grid, block, stream, __VA_ARGS__)
/* One that is never gathered: on a stream of cuda_stream_of. */
#define CUDA_LAUNCH_ALONE(kernel, grid, block, shared, stream, ...) \
    cuda_launch_alone(kernel, grid, block, shared, 1, stream, __VA_ARGS__)
/* In the kernel: that memory. */
#define CUDA_SHARED_ROOM(type, name) extern __shared__ type name[]
/* The same in clusters of so many blocks: from compute capability 9.0 on. */
#define CUDA_LAUNCH_CLUSTER(kernel, grid, block, shared, cluster, stream, ...) \
    cuda_launch_alone(kernel, grid, block, shared, cluster, stream, __VA_ARGS__)
#endif

#endif

/* The first statement of every kernel, before it touches memory and before any way out: until then
 * the kernel before it on the stream may not be done. For all blocks, as the next kernel takes the
 * end of this one for the end of all before it. Where nothing was launched early it costs nothing.
 * One that has something to prepare, of what no kernel writes, says early_prepare() first, and a
 * thread of each block says early_begin() before that touches anything else.
 *
 * No kernel says griddepcontrol.launch_dependents: the next one's blocks come as those of this one
 * end. To let them in earlier gained nothing on networks (0.94 to 1.01 times as fast) and cost up
 * to 30 % with large grids, where they take the place of blocks that have work; what is gained is
 * the latency of the launch (H100, 2026-11-26). */
#ifdef __CUDACC__
static __device__ __forceinline__ void early_begin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/* A mark alone, which a test looks for. */
static __device__ __forceinline__ void early_prepare()
{
}
#endif

#endif
