/* SPDX-License-Identifier: Apache-2.0 */
/* The reference for scales, see vision/scales.h. Rows are the unit of work. */
#include "vision/cpu/cpu.h"
#include "vision/scales.h"

struct work {
    const struct sac_scale_maps *maps;
    const int16_t               *shares;
    float                       *out;
};

static void map_row(void *arg, int row, int worker)
{
    const struct work           *w = arg;
    const struct sac_scale_maps *m = w->maps;
    const int                    picture = row / m->height, y = row % m->height;
    const size_t                 net = (size_t)m->net_width * (size_t)m->net_height;
    const int16_t               *shares = w->shares + (size_t)picture * (size_t)m->looks * net;
    float                       *out = w->out + (size_t)row * (size_t)m->width;
    (void)worker;
    for (int x = 0; x < m->width; x++)
        out[x] = sac_scale_number(&m->pictures[picture], shares, m->net_width, m->net_height, x, y);
}

sac_result sac_cpu_scale_maps(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_scale_maps *maps, const int16_t *shares, int n,
                              float *out)
{
    struct work w = {maps, shares, out};
    (void)stream; /* the CPU's runs at once */
    sac_device_parallel(dev, n * maps->height, map_row, &w);
    return SAC_OK;
}
