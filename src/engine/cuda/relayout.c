/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/cuda.h"
#include "engine/cuda/relayout.h"
#include "engine/kernel/layout.h"

static enum cuda_crossing crossing_of(enum sac_dtype to, enum sac_dtype from)
{
    if (to != from)
        return to == SAC_F16 ? CUDA_CROSS_TO_HALF : CUDA_CROSS_FROM_HALF;
    switch (sac_dtype_bytes(to)) {
    case 1: return CUDA_CROSS_1;
    case 2: return CUDA_CROSS_2;
    case 4: return CUDA_CROSS_4;
    default: return CUDA_CROSS_8;
    }
}

sac_result cuda_relayout(struct sac_device *dev, struct sac_device_stream *stream,
                         const struct sac_operand *o, void *dst, int to, const void *src, int from)
{
    const enum sac_layout       a = (enum sac_layout)from, b = (enum sac_layout)to;
    struct cuda_relayout_params p = {
        .dst = dst,
        .src = src,
        .samples = 1,
        .rows = 1,
        .columns = 1,
        .turn = sac_layout_is_last(a) != sac_layout_is_last(b),
        .crossing = crossing_of(sac_layout_dtype(o->dtype, b), sac_layout_dtype(o->dtype, a))};
    int64_t channels = o->rank > 1 ? o->dims[1] : 1, pixels = 1;
    for (int i = 2; i < o->rank; i++)
        pixels *= o->dims[i];
    p.samples = o->rank > 0 ? o->dims[0] : 1;
    p.rows = sac_layout_is_last(a) ? pixels : channels;
    p.columns = sac_layout_is_last(a) ? channels : pixels;
    p.turn = p.turn && channels > 1 && pixels > 1;
    return CUDA_CALL(dev, cuda_launch_relayout(&p, cuda_stream_of(dev, stream)),
                     "a change of layout");
}
