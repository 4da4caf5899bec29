/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/cpu/cpu.h"
#include "vision/embed.h"
#include "vision/sample.h"

/* Sums in a warp's order. */
static double fold(double lane[SAC_EMBED_LANES])
{
    for (int half = SAC_EMBED_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

static double square_of(const float *row, int dim)
{
    double lane[SAC_EMBED_LANES] = {0};
    for (int i = 0; i < dim; i++)
        lane[i % SAC_EMBED_LANES] += (double)row[i] * row[i];
    return fold(lane);
}

sac_result sac_cpu_normalise(struct sac_device *dev, struct sac_device_stream *stream,
                             const void *in, enum sac_dtype dtype, int rows, int dim, float *out)
{
    const size_t n = (size_t)dim;
    (void)dev, (void)stream; /* the CPU's runs at once */
    for (size_t r = 0; r < (size_t)rows; r++) {
        float *row = out + r * n;
        for (size_t i = 0; i < n; i++)
            row[i] = dtype == SAC_F16 ? sac_float_of_half(((const uint16_t *)in)[r * n + i])
                                      : ((const float *)in)[r * n + i];
        const float scale = sac_embed_scale(square_of(row, dim));
        for (size_t i = 0; i < n; i++)
            row[i] = scale > 0 ? row[i] * scale : 0.0f;
    }
    return SAC_OK;
}
