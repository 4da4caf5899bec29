/* SPDX-License-Identifier: Apache-2.0 */
/* The reference for facets, see vision/facets.h. Rows are the unit of work. */
#include "vision/cpu/cpu.h"
#include "vision/facets.h"

/* ---- pictures ---- */

static void facet_row(void *arg, int y, int worker)
{
    const struct sac_facet_job   *job = arg;
    const sac_frame              *eye = job->eye;
    const struct sac_facet_place *place = job->places + (size_t)y * (size_t)job->out->width;
    uint8_t                      *out = job->out->plane[0] + (size_t)y * job->out->pitch_bytes[0];
    (void)worker;
    for (int i = 0; i < job->out->width; i++, out += 3) {
        if (place[i].x < 0) {
            out[0] = out[1] = out[2] = 0;
            continue;
        }
        const struct sac_facet_pixel across = sac_facet_pixel_of(place[i].x, eye->width),
                                     down = sac_facet_pixel_of(place[i].y, eye->height);
        sac_facet_sample(eye->plane[0] + (size_t)down.first * eye->pitch_bytes[0],
                         eye->plane[0] + (size_t)down.next * eye->pitch_bytes[0], across, down.part,
                         out);
    }
}

sac_result sac_cpu_facets(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_facet_job *jobs, int n)
{
    (void)stream; /* the CPU's runs at once */
    for (int i = 0; i < n; i++) {
        struct sac_facet_job job = jobs[i];
        sac_device_parallel(dev, job.out->height, facet_row, &job);
    }
    return SAC_OK;
}

/* ---- shares ---- */

struct share_work {
    const struct sac_matte_spec *net;
    const void *const           *tensors;
    int16_t                     *out;
};

static void share_row(void *arg, int row, int worker)
{
    const struct share_work *w = arg;
    const int                image = row / w->net->height, y = row % w->net->height;
    int16_t                 *out = w->out + (size_t)row * (size_t)w->net->width;
    (void)worker;
    for (int x = 0; x < w->net->width; x++)
        out[x] = sac_facet_share(w->net, w->tensors, image, (int64_t)y * w->net->width + x);
}

sac_result sac_cpu_facet_shares(struct sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_matte_spec *net, const void *const *tensors, int n,
                                int16_t *out)
{
    struct share_work w = {net, tensors, out};
    (void)stream;
    sac_device_parallel(dev, n * net->height, share_row, &w);
    return SAC_OK;
}

/* ---- maps ---- */

struct map_work {
    const struct sac_facet_maps *maps;
    const int16_t               *shares;
    float                       *out;
};

static void map_row(void *arg, int row, int worker)
{
    const struct map_work       *w = arg;
    const struct sac_facet_maps *m = w->maps;
    const int                    eye = row / m->height, y = row % m->height;
    const size_t                 net = (size_t)m->net_width * (size_t)m->net_height;
    const int16_t               *shares = w->shares + (size_t)eye * (size_t)m->facets * net;
    const struct sac_facet_cell *cell = m->cells + (size_t)y * (size_t)m->width;
    float                       *out = w->out + (size_t)row * (size_t)m->width;
    (void)worker;
    for (int x = 0; x < m->width; x++)
        out[x] = sac_facet_number(&cell[x], shares, m->net_width, m->net_height);
}

sac_result sac_cpu_facet_maps(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_facet_maps *maps, const int16_t *shares, int n,
                              float *out)
{
    struct map_work w = {maps, shares, out};
    (void)stream;
    sac_device_parallel(dev, n * maps->height, map_row, &w);
    return SAC_OK;
}
