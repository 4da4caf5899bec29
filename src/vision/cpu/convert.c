/* SPDX-License-Identifier: Apache-2.0 */
/* Frames into frames of another format, size, matrix or range.
 *
 * Two output rows at a time: the sampler gives the source's channels at the output's size, colours
 * are changed only where they differ, and chroma is the mean of its 2 x 2 pixels. Without a change
 * of size and colours that gives every sample back as it was. */
#include <string.h>

#include "vision/cpu/cpu.h"
#include "vision/cpu/resample.h"

enum { PAIRS_PER_PIECE = 16 };

struct work {
    const struct sac_row_ops *ops;
    const sac_frame          *src;
    sac_frame                *dst;
    struct sac_sampler        sampler;
    struct sac_recode         recode;
    char                     *scratch; /* [workers][2][scratch_bytes] */
    size_t                    scratch_bytes;
};

/* ---- colours of one row ---- */

static void encode_yuv(const struct sac_encode_map *m, float *const row[3], int n)
{
    float *restrict a = row[0], *restrict b = row[1], *restrict c = row[2];
    for (int i = 0; i < n; i++) {
        float y = m->r * a[i] + m->g * b[i] + m->b * c[i];
        float u = (c[i] - y) * m->u_scale, v = (a[i] - y) * m->v_scale;
        a[i] = y * m->y_scale + m->y_zero;
        b[i] = u + 128.0f;
        c[i] = v + 128.0f;
    }
}

/* Grey is full-range luma: of a Y, U, V frame its own Y. */
static void encode_grey(const struct work *w, float *const row[3], int n)
{
    const struct sac_encode_map *m = &w->recode.encode;
    const struct sac_colour_map  decode = w->sampler.colour;
    for (int i = 0; i < n; i++)
        row[0][i] = w->sampler.yuv ? decode.y_scale * (row[0][i] - decode.y_zero)
                                   : m->r * row[0][i] + m->g * row[1][i] + m->b * row[2][i];
}

/* A grey frame's one row stands for three; they are changed in place, so each needs its own. */
static void spread_grey(float *row[3], int n, float *spare)
{
    for (int c = 1; c < 3; c++) {
        row[c] = memcpy(spare, row[0], (size_t)n * sizeof *spare);
        spare += n;
    }
}

/* The destination's channels of output row y. */
static void output_row(const struct work *w, int y, char *scratch, float *row[3])
{
    int n = w->dst->width;
    sac_sampler_channels(&w->sampler, w->ops, y, scratch, row);
    if (w->recode.same_colours)
        return;
    if (w->sampler.grey && w->dst->format == SAC_PIXEL_GRAY8)
        return;
    if (w->sampler.grey)
        spread_grey(row, n, (float *)(void *)(scratch + w->scratch_bytes) - 2 * (ptrdiff_t)n);
    if (w->dst->format == SAC_PIXEL_GRAY8) {
        encode_grey(w, row, n);
        return;
    }
    if (w->sampler.yuv)
        w->ops->colour(&w->sampler.colour, row, n);
    if (sac_is_yuv(w->dst->format))
        encode_yuv(&w->recode.encode, row, n);
}

/* ---- writing ---- */

static void write_luma(const sac_frame *dst, const float *row, int y)
{
    uint8_t *out = dst->plane[0] + (size_t)y * dst->pitch_bytes[0];
    for (int x = 0; x < dst->width; x++)
        if (dst->format == SAC_PIXEL_P010)
            ((uint16_t *)(void *)out)[x] = sac_ten_bits_of(row[x]);
        else
            out[x] = sac_byte_of(row[x]);
}

static void write_with_alpha(float *const row[3], int n, uint8_t *out)
{
    for (int x = 0; x < n; x++) {
        for (int c = 0; c < 3; c++)
            out[4 * x + c] = sac_byte_of(row[c][x]);
        out[4 * x + 3] = 255;
    }
}

static void write_rgb(const struct work *w, float *const row[3], int y)
{
    const struct sac_row_store s = {
        .layout = SAC_TENSOR_LAYOUT_NHWC, .dtype = SAC_U8, .scale = {1, 1, 1}};
    const bool   bgr = sac_is_bgr(w->dst->format);
    float *const as_stored[3] = {row[bgr ? 2 : 0], row[1], row[bgr ? 0 : 2]};
    uint8_t     *out = w->dst->plane[0] + (size_t)y * w->dst->pitch_bytes[0];
    if (sac_rgb_step(w->dst->format) == 4)
        write_with_alpha(as_stored, w->dst->width, out);
    else
        w->ops->store(&s, as_stored, w->dst->width, 0, 0, out);
}

static float mean_of_four(const float *above, const float *below, int x, int width)
{
    int right = SAC_MIN(2 * x + 1, width - 1);
    return (above[2 * x] + above[right] + below[2 * x] + below[right]) * 0.25f;
}

static void write_chroma(const sac_frame *dst, float *const above[3], float *const below[3], int cy)
{
    for (int c = 1; c < 3; c++) {
        bool     planar = dst->format == SAC_PIXEL_I420;
        int      plane = planar ? c : 1, step = planar ? 1 : 2;
        uint8_t *out = dst->plane[plane] + (size_t)cy * dst->pitch_bytes[plane];
        for (int x = 0; x < (dst->width + 1) / 2; x++) {
            float v = mean_of_four(above[c], below[c], x, dst->width);
            int   at = x * step + (planar ? 0 : c - 1);
            if (dst->format == SAC_PIXEL_P010)
                ((uint16_t *)(void *)out)[at] = sac_ten_bits_of(v);
            else
                out[at] = sac_byte_of(v);
        }
    }
}

static void convert_pair(const struct work *w, int y, char *scratch)
{
    float *row[2][3];
    int    last = SAC_MIN(y + 1, w->dst->height - 1);
    for (int r = 0; y + r <= last; r++) {
        output_row(w, y + r, scratch + (size_t)r * w->scratch_bytes, row[r]);
        if (sac_rgb_step(w->dst->format))
            write_rgb(w, row[r], y + r);
        else
            write_luma(w->dst, row[r][0], y + r);
    }
    if (sac_is_yuv(w->dst->format))
        write_chroma(w->dst, row[0], row[last - y], y / 2);
}

static void run_piece(void *arg, int piece, int worker)
{
    const struct work *w = arg;
    int                y = piece * PAIRS_PER_PIECE * 2;
    int                end = SAC_MIN(y + PAIRS_PER_PIECE * 2, w->dst->height);
    for (; y < end; y += 2)
        convert_pair(w, y, w->scratch + (size_t)worker * 2 * w->scratch_bytes);
}

/* ---- the whole ---- */

sac_result sac_cpu_convert(struct sac_device *dev, struct sac_device_stream *stream,
                           const sac_frame *src, enum sac_filter filter, sac_frame *dst)
{
    (void)stream; /* the CPU's runs at once */
    if (sac_is_plain_copy(src, dst)) {
        sac_frame_copy_planes(src, dst);
        return SAC_OK;
    }
    struct sac_sampler_spec spec = {
        src, {0, 0, (float)src->width, (float)src->height}, dst->width, dst->height, filter};
    size_t      tables = sac_sampler_bytes(&spec);
    struct work w = {
        .ops = sac_row_ops_best(),
        .src = src,
        .dst = dst,
        .recode = sac_recode_of(src, dst),
        /* two rows at the end of each scratch for spread_grey */
        .scratch_bytes =
            (sac_sampler_scratch_bytes(&spec) + (size_t)dst->width * 8 + 63) & ~(size_t)63,
    };
    size_t scratch = (size_t)sac_worker_pool_threads(dev->workers) * 2 * w.scratch_bytes;
    struct sac_buffer *buf = NULL;
    sac_result         res = sac_buffer_create(dev, tables + scratch, "convert", &buf);
    if (res != SAC_OK)
        return res;
    char *memory = sac_buffer_data(buf);
    sac_sampler_init(&w.sampler, &spec, memory);
    w.scratch = memset(memory + tables, 0, scratch);
    sac_worker_pool_run(dev->workers,
                        (dst->height + 2 * PAIRS_PER_PIECE - 1) / (2 * PAIRS_PER_PIECE), run_piece,
                        &w);
    sac_buffer_unref(&buf);
    return SAC_OK;
}
