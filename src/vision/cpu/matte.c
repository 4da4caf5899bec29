/* SPDX-License-Identifier: Apache-2.0 */
/* The reference for mattes, see vision/matte.h: the steps and their memory. */
#include <string.h>

#include "device/cpu/cpu.h"
#include "vision/cpu/matte.h"

const struct sac_cpu_matte_step sac_cpu_matte_steps[SAC_CPU_MATTE_STEPS] = {
    {"shares", sac_cpu_matte_share_pieces, sac_cpu_matte_shares},
    {"summary", sac_cpu_matte_summary_pieces, sac_cpu_matte_summary},
    {"luma", sac_cpu_matte_luma_pieces, sac_cpu_matte_lumas},
    {"margin", sac_cpu_matte_margin_pieces, sac_cpu_matte_margin},
    {"halves", sac_cpu_matte_half_pieces, sac_cpu_matte_halves},
    {"search", sac_cpu_matte_block_pieces, sac_cpu_matte_search},
    {"smooth", sac_cpu_matte_block_pieces, sac_cpu_matte_smooth},
    {"moved", sac_cpu_matte_moved_pieces, sac_cpu_matte_summary},
    {"dilate", sac_cpu_matte_hole_pieces, sac_cpu_matte_dilate},
    {"erode", sac_cpu_matte_hole_pieces, sac_cpu_matte_erode},
    {"lines", sac_cpu_matte_line_pieces, sac_cpu_matte_lines},
    {"means", sac_cpu_matte_line_pieces, sac_cpu_matte_means},
    {"pixels", sac_cpu_matte_pixel_pieces, sac_cpu_matte_pixels},
};

static const struct sac_matte_rows *best_rows(void)
{
#if defined(__x86_64__)
    if (sac_cpu_level() >= SAC_CPU_AVX2)
        return &sac_matte_rows_avx2;
#endif
    return &sac_matte_rows_ref;
}

/* ---- memory ---- */

/* A part of the buffer; the first round, without one, counts bytes. */
static void *part(uint8_t *memory, size_t *used, size_t bytes)
{
    uint8_t *at = memory ? memory + *used : NULL;
    *used += (bytes + 63) & ~(size_t)63;
    return at;
}

static size_t place(struct sac_cpu_matte_work *m, uint8_t *memory)
{
    const size_t cells = (size_t)m->x.cells * (size_t)m->y.cells;
    const size_t across = (size_t)(m->x.until - m->x.from);
    const size_t half =
        (size_t)m->half_pitch * (size_t)(sac_matte_half(m->y.cells) + SAC_MATTE_MARGIN);
    const size_t half_at = (size_t)m->half_pitch * (SAC_MATTE_MARGIN / 2) + SAC_MATTE_MARGIN / 2;
    size_t       used = 0;
    m->span = part(memory, &used, (size_t)m->x.cells * sizeof *m->span);
    m->left = part(memory, &used, across * sizeof *m->left);
    m->right = part(memory, &used, across * sizeof *m->right);
    m->part = part(memory, &used, across * sizeof *m->part);
    if (m->style->classes)
        return used;
    m->was = part(memory, &used, cells * sizeof *m->was);
    m->residual = part(memory, &used, cells * sizeof *m->residual);
    for (int i = 0; i < 2; i++) {
        m->closed[i] = part(memory, &used, cells * sizeof *m->closed[i]);
        uint8_t *plane = part(memory, &used, half);
        m->half[i] = plane ? plane + half_at : NULL;
    }
    m->move = part(memory, &used, (size_t)m->blocks_x * (size_t)m->blocks_y * sizeof *m->move);
    m->slope = part(memory, &used, cells * sizeof *m->slope);
    m->base = part(memory, &used, cells * sizeof *m->base);
    m->slope_mean = part(memory, &used, cells * sizeof *m->slope_mean);
    m->base_mean = part(memory, &used, cells * sizeof *m->base_mean);
    return used;
}

static void fill_tables(struct sac_cpu_matte_work *m)
{
    for (int i = 0; i < m->x.cells; i++)
        m->span[i] = sac_matte_span_of(&m->x, i);
    for (int i = 0; i < m->x.until - m->x.from; i++) {
        const struct sac_tap tap = sac_matte_tap(&m->x, m->x.from + i);
        m->left[i] = tap.a;
        m->right[i] = tap.b;
        m->part[i] = sac_matte_part_of(tap.second);
    }
}

sac_result sac_cpu_matte_begin(struct sac_device *dev, const struct sac_matte_spec *spec,
                               const struct sac_matte_style *style, const void *const *tensors,
                               const struct sac_matte_job *job, struct sac_cpu_matte_work *m)
{
    *m = (struct sac_cpu_matte_work){
        .rows = best_rows(),
        .spec = spec,
        .style = style,
        .tensors = tensors,
        .job = job,
        .now = (int)(job->state.turn & 1),
    };
    sac_matte_axes_of(spec, job, &m->x, &m->y);
    if (job->summary)
        *job->summary = (struct sac_matte_summary){0};
    if (m->x.from == m->x.until || m->y.from == m->y.until)
        return SAC_OK; /* no pixel: no step has a piece */
    if (!style->classes)
        m->planes = sac_matte_planes_of(spec, job->state.memory);
    m->blocks_x = (m->x.cells + SAC_MATTE_BLOCK - 1) / SAC_MATTE_BLOCK;
    m->blocks_y = (m->y.cells + SAC_MATTE_BLOCK - 1) / SAC_MATTE_BLOCK;
    m->half_pitch = sac_matte_half(m->x.cells) + SAC_MATTE_MARGIN;
    sac_result res = sac_buffer_create(dev, place(m, NULL), "matte", &m->buffer);
    if (res != SAC_OK)
        return res;
    place(m, sac_buffer_data(m->buffer));
    fill_tables(m);
    return SAC_OK;
}

void sac_cpu_matte_end(struct sac_cpu_matte_work *m)
{
    sac_buffer_unref(&m->buffer);
}

sac_result sac_cpu_matte(struct sac_device *dev, struct sac_device_stream *stream,
                         const struct sac_matte_spec *spec, const struct sac_matte_style *style,
                         const void *const *tensors, const struct sac_matte_job *jobs, int n)
{
    (void)stream; /* the CPU's runs at once */
    for (int i = 0; i < n; i++) {
        struct sac_cpu_matte_work m;
        const sac_result res = sac_cpu_matte_begin(dev, spec, style, tensors, &jobs[i], &m);
        if (res != SAC_OK)
            return res;
        for (int k = 0; k < SAC_CPU_MATTE_STEPS && m.buffer; k++)
            sac_device_parallel(dev, sac_cpu_matte_steps[k].pieces(&m), sac_cpu_matte_steps[k].run,
                                &m);
        sac_cpu_matte_end(&m);
    }
    return SAC_OK;
}
