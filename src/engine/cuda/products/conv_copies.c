/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/conv_copies.h"

#include <pthread.h>

#include <cudaTypedefs.h>

#include "base/base.h"
#include "engine/cuda/products/stem_spec.h"

static struct {
    PFN_cuTensorMapEncodeTiled_v12000  tiled;
    PFN_cuTensorMapEncodeIm2col_v12000 window;
} driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

/* The plug-in does not link the driver. */
static void *entry_point(const char *name)
{
    void                                *fn = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t res = cudaGetDriverEntryPointByVersion(name, &fn, 12000, cudaEnableDefault, &found);
#else
    cudaError_t res = cudaGetDriverEntryPoint(name, &fn, cudaEnableDefault, &found);
#endif
    if (res != cudaSuccess)
        cudaGetLastError();
    return res == cudaSuccess && found == cudaDriverEntryPointSuccess ? fn : NULL;
}

static void find_driver(void)
{
    *(void **)&driver.tiled = entry_point("cuTensorMapEncodeTiled");
    *(void **)&driver.window = entry_point("cuTensorMapEncodeIm2col");
}

static CUtensorMapSwizzle swizzle_of(const struct conv_copy_shape *s)
{
    const uint32_t row = s->box[0];
    return s->halves    ? CU_TENSOR_MAP_SWIZZLE_NONE
           : row == 128 ? CU_TENSOR_MAP_SWIZZLE_128B
           : row == 64  ? CU_TENSOR_MAP_SWIZZLE_64B
                        : CU_TENSOR_MAP_SWIZZLE_32B;
}

cudaError_t conv_copy_map_make(const struct conv_copy_shape *s, struct conv_copy_map *out)
{
    _Static_assert(sizeof(struct conv_copy_map) == sizeof(CUtensorMap), "the driver's size");
    const CUtensorMapSwizzle     swizzle = swizzle_of(s);
    const CUtensorMapL2promotion fetched =
        s->goes_on ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    cuuint64_t   size[5], step[4];
    cuuint32_t   steps[5] = {1, 1, 1, 1, 1};
    CUtensorMap *map = (CUtensorMap *)out;
    CUresult     res;
    pthread_once(&driver_once, find_driver);
    if (!driver.tiled || !driver.window)
        return cudaErrorNotSupported;
    for (int i = 0; i < 5; i++)
        size[i] = s->size[i];
    for (int i = 0; i < 4; i++)
        step[i] = s->step[i];
    if (s->window) {
        steps[1] = s->stride[0];
        steps[2] = s->stride[1];
        res = driver.window(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, (cuuint32_t)s->rank,
                            (void *)(uintptr_t)s->at, size, step, s->low, s->high, s->box[0],
                            s->box[1], steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, fetched,
                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    } else
        res = driver.tiled(
            map, s->halves ? CU_TENSOR_MAP_DATA_TYPE_UINT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8,
            (cuuint32_t)s->rank, (void *)(uintptr_t)s->at, size, step, s->box, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, fetched, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return res == CUDA_SUCCESS ? cudaSuccess : cudaErrorNotSupported;
}

cudaError_t conv_copies_run(struct conv_tensor_params   *p,
                            const struct conv_copy_shape shapes[TENSOR_MAPS],
                            enum conv_bytes_kind kind, int variant, int processors,
                            cudaStream_t stream)
{
    const cudaError_t res = conv_copy_maps_make(shapes, p->maps);
    return res == cudaSuccess ? conv_launch_tensor(p, kind, variant, processors, stream) : res;
}

cudaError_t conv_copies_run_stem(const struct conv_spec *s, const struct conv_stem_params *params,
                                 int processors, cudaStream_t stream)
{
    struct conv_stem_unit_params p = {.s = *params};
    if (!stem_square_of(s, processors, &p.square))
        return cudaErrorNotSupported;
    const struct conv_copy_shape x = stem_copy(s, &p.square, params->x);
    const cudaError_t            res = conv_copy_map_make(&x, &p.x);
    return res == cudaSuccess ? conv_launch_stem_unit(&p, processors, stream) : res;
}
