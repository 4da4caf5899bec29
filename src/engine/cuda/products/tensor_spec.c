/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/tensor_spec.h"

const struct conv_tile_size tensor_sizes[CONV_TENSOR_VARIANTS] = {
    {128, 256}, {128, 192}, {128, 128}, {128, 64}, {128, 32},  {64, 256},
    {64, 128},  {64, 64},   {256, 128}, {256, 64}, {128, 128}, {128, 64}};

/* ---- what it can ---- */

static int64_t pixels_of(const struct conv_spec *s)
{
    return s->n * s->out.size[1] * s->out.size[2];
}

bool tensor_is_dense(const struct conv_map *m, int64_t n)
{
    return n == 1 || m->sample == m->pixel * m->size[1] * m->size[2];
}

bool tensor_writes_dense(const struct conv_spec *s)
{
    return tensor_is_dense(&s->out, s->n) &&
           (s->residual_kind == SAC_RESIDUAL_NONE || tensor_is_dense(&s->residual, s->n));
}

/* Corners of eight bits with a sign, steps of at most eight, and taps that lie at most 255 from the
 * first. */
bool tensor_copies(const struct conv_spec *s)
{
    for (int d = 1; d < CONV_DIMS; d++) {
        const int64_t upper =
            (s->out.size[d] - 1) * s->stride[d] + 1 - s->in.size[d] - s->pad_begin[d];
        if (s->stride[d] > 8 || s->pad_begin[d] > 128 || upper < -128 || upper > 127 ||
            (s->kernel[d] - 1) * s->dilation[d] > 255)
            return false;
    }
    return s->out.c % 16 == 0 && pixels_of(s) < INT32_MAX - 256;
}

/* Bytes of a tap's channels that are copied at once. A copy has a cost of its own, and what it
 * fills up with zeros is multiplied as well. */
static int chunk_of(int64_t channels)
{
    static const struct {
        int     bytes;
        int64_t cost; /* of a byte */
    } kinds[] = {{128, 8}, {64, 9}, {32, 12}};
    int best = 0;
    for (int i = 1; i < (int)SAC_COUNT(kinds); i++) {
        const int64_t bytes = kinds[i].bytes, had = kinds[best].bytes;
        if ((channels + bytes - 1) / bytes * bytes * kinds[i].cost <
            (channels + had - 1) / had * had * kinds[best].cost)
            best = i;
    }
    return kinds[best].bytes;
}

/* ---- windows that stay ---- */

enum { BOX_MAX = 256, WINDOW_SHARED = 227 << 10 };

/* As many whole samples as a tile holds, or rows of one, all tiles of which are about as tall. */
bool tensor_window(const struct conv_spec *s, int variant, int64_t row,
                   struct conv_window_shape *out)
{
    const struct conv_tile_size t = tensor_sizes[variant];
    const int64_t               down = (s->kernel[1] - 1) * s->dilation[1],
                  right = (s->kernel[2] - 1) * s->dilation[2], width = s->out.size[2] + right,
                  all = s->out.size[1], chunk = chunk_of(row);
    int64_t rows = SAC_MIN(all, t.pixels / width), samples = 1;
    if (s->stride[1] != 1 || s->stride[2] != 1 || s->kernel[1] * s->kernel[2] == 1 || chunk < 64 ||
        width > BOX_MAX || rows < 1)
        return false;
    if (rows == all)
        samples = SAC_MIN(s->n, 1 + (t.pixels - rows * width) / ((all + down) * width));
    else
        rows = (all + (all + rows - 1) / rows - 1) / ((all + rows - 1) / rows);
    const int64_t height = rows + down, read = t.pixels + down * width + right,
                  part = (SAC_MAX(samples * height * width, read) * chunk + 1023) / 1024 * 1024;
    *out = (struct conv_window_shape){.width = (int)width,
                                      .height = (int)height,
                                      .rows = (int)rows,
                                      .samples = (int)samples,
                                      .part = (int)part};
    return height <= BOX_MAX && samples <= BOX_MAX &&
           CONV_WINDOW_PARTS * part + CONV_WINDOW_STAGES * t.channels * chunk +
                   CONV_WINDOW_OTHERS <=
               WINDOW_SHARED;
}

/* Half of what is multiplied is stored. Tiles are the same whatever the numbers. */
static bool window_worth(const struct conv_spec *s, int variant)
{
    const struct conv_tile_size t = tensor_sizes[variant];
    struct conv_window_shape    w;
    if (!tensor_window(s, variant, s->in.c * 2, &w) && !tensor_window(s, variant, s->in.c, &w))
        return false;
    const int64_t tiles = (s->n + w.samples - 1) / w.samples *
                          ((s->out.size[1] + w.rows - 1) / w.rows) *
                          ((s->out.c + t.channels - 1) / t.channels);
    return s->out.c > t.channels / 2 && (tiles >= 40 || t.pixels < 256) &&
           2 * w.samples * w.rows * s->out.size[2] >= t.pixels;
}

/* ---- which may be the fastest ---- */

/* At least half of a tile's channels are used. Of tiles of the same width the taller ones are for
 * many. */
bool tensor_worth(const struct conv_spec *s, int variant)
{
    if (variant >= CONV_TENSOR_WINDOWS)
        return window_worth(s, variant);
    const struct conv_tile_size t = tensor_sizes[variant];
    const int64_t               runs = tensor_writes_dense(s) ? 1 : s->n,
                  tiles = runs * ((pixels_of(s) / runs + t.pixels - 1) / t.pixels) *
                          ((s->out.c + t.channels - 1) / t.channels);
    if (runs > 1 && pixels_of(s) / runs <= t.pixels / 2)
        return false; /* a tile ends with its run */
    return (s->out.c > t.channels / 2 || t.channels == 32) && (s->out.c < 192 || t.channels > 32) &&
           (t.channels != 192 || s->out.c % 192 == 0) && (tiles >= 40 || t.pixels <= 64);
}

/* ---- what the engine is told ---- */

/* Runs of pixels of `bytes` each, and boxes of so many bytes and pixels of a run. Steps from pixel
 * to pixel and from sample to sample. */
static struct conv_copy_shape runs_shape(const struct conv_tensor_params *p, const void *at,
                                         int64_t bytes, int64_t pixel, int64_t sample,
                                         int box_bytes, int box_pixels)
{
    const int64_t run = p->runs > 1 ? sample : p->run_pixels * pixel;
    return (struct conv_copy_shape){
        .at = at,
        .rank = 3,
        .size = {(uint64_t)bytes, (uint64_t)p->run_pixels, (uint64_t)p->runs},
        .step = {(uint64_t)pixel, (uint64_t)run},
        .box = {(uint32_t)box_bytes, (uint32_t)box_pixels, 1}};
}

static struct conv_copy_shape panel_shape(const struct conv_tensor_params *p, const void *at,
                                          const struct conv_map *m, int kind, int channels)
{
    const int bytes = kind == CONV_F16 ? 2 : 1;
    return runs_shape(p, at, m->c * bytes, m->pixel * bytes, m->sample * bytes, channels * bytes,
                      TENSOR_ROWS);
}

/* Pixels of [c, w, h, n]. Of a sample it visits those under the window's first tap, which begins
 * at its low corners; the others lie so far from them. */
static struct conv_copy_shape window_shape(const struct conv_spec        *v,
                                           const struct conv_tile_params *p, int chunk, int rows)
{
    struct conv_copy_shape c = {
        .at = p->x,
        .rank = 4,
        .size = {(uint64_t)p->in_c, (uint64_t)p->in_w, (uint64_t)p->in_h, (uint64_t)v->n},
        .step = {(uint64_t)p->x_pixel, (uint64_t)(p->in_w * p->x_pixel), (uint64_t)p->x_sample},
        .box = {(uint32_t)chunk, (uint32_t)rows},
        .window = true,
    };
    for (int i = 0; i < 2; i++) {
        const int d = 2 - i; /* w, h */
        c.low[i] = -(int)v->pad_begin[d];
        c.high[i] = (int)((v->out.size[d] - 1) * v->stride[d] + 1 - v->in.size[d]) + c.low[i];
        c.stride[i] = (uint32_t)v->stride[d];
    }
    return c;
}

/* Pixels of [c, w, h, n] under all windows of a tile. */
static struct conv_copy_shape part_shape(const struct conv_spec        *v,
                                         const struct conv_tile_params *p, int chunk,
                                         const struct conv_window_shape *w)
{
    return (struct conv_copy_shape){
        .at = p->x,
        .rank = 4,
        .size = {(uint64_t)p->in_c, (uint64_t)p->in_w, (uint64_t)p->in_h, (uint64_t)v->n},
        .step = {(uint64_t)p->x_pixel, (uint64_t)(p->in_w * p->x_pixel), (uint64_t)p->x_sample},
        .box = {(uint32_t)chunk, (uint32_t)w->width, (uint32_t)w->height, (uint32_t)w->samples}};
}

/* Of each sixteen channels the columns 8 j + 2 t + e, as conv_tensor.cu wants them: e, t and j are
 * dims of their own. */
static struct conv_copy_shape turned_shape(const struct conv_tile_params *p, int chunk,
                                           int channels)
{
    const uint64_t taps = (uint64_t)p->taps;
    return (struct conv_copy_shape){.at = p->w,
                                    .rank = 5,
                                    .size = {taps, 2, 4, 2, (uint64_t)p->out_c / 16},
                                    .step = {taps, 4 * taps, 2 * taps, 16 * taps},
                                    .box = {(uint32_t)chunk, 2, 4, 2, (uint32_t)channels / 16}};
}

void tensor_shapes(const struct conv_spec *s, struct conv_tensor_params *p, int variant,
                   struct conv_copy_shape shapes[TENSOR_MAPS])
{
    const struct conv_tile_size    t = tensor_sizes[variant];
    const int                      panel = SAC_MIN(t.channels, (int)TENSOR_PANEL);
    const struct conv_tile_params *at = &p->s.b.at;
    p->chunk = chunk_of(at->in_c);
    shapes[1] = turned_shape(at, p->chunk, t.channels);
    if (variant >= CONV_TENSOR_WINDOWS) {
        tensor_window(s, variant, at->in_c, &p->window); /* false: an empty box, no map */
        p->runs = (int)s->n;
        shapes[0] = shapes[2] = shapes[3] = part_shape(s, at, p->chunk, &p->window);
        return;
    }
    p->runs = p->s.dense ? 1 : (int)s->n;
    p->run_pixels = p->s.dense ? (int)at->m : at->pixels;
    shapes[0] = p->s.flat
                    ? runs_shape(p, at->x, at->in_c, at->x_pixel, at->x_sample, p->chunk, t.pixels)
                    : window_shape(s, at, p->chunk, t.pixels);
    shapes[3] = panel_shape(p, at->y, &s->out, p->s.b.y_kind, panel);
    shapes[2] =
        s->residual_kind == SAC_RESIDUAL_NONE
            ? shapes[3]
            : panel_shape(p, at->finish.residual, &s->residual, p->s.b.residual_kind, panel);
}

/* ---- float16 ---- */

/* The engine wants steps of 16 bytes. */
static bool steps_fit(const struct conv_map *m)
{
    return m->pixel % 8 == 0 && m->sample % 8 == 0 && m->align >= 16;
}

bool tensor_takes_half(const struct conv_spec *s, int64_t variant, int capability)
{
    struct conv_window_shape w;
    return variant >= 0 && variant < CONV_TENSOR_VARIANTS && capability == 90 &&
           conv_tile_fits(s, 0) && tensor_copies(s) && steps_fit(&s->in) && steps_fit(&s->out) &&
           (s->residual_kind == SAC_RESIDUAL_NONE || steps_fit(&s->residual)) &&
           (variant < CONV_TENSOR_WINDOWS || tensor_window(s, (int)variant, s->in.c * 2, &w));
}

bool patches_fits(const struct conv_spec *s, int64_t variant, int capability)
{
    if (variant < 0 || variant >= CONV_PATCHES_VARIANTS || !conv_is_patches(s))
        return false;
    const struct conv_spec rows = conv_patches_product(s);
    return variant < CONV_TILE_VARIANTS ||
           tensor_takes_half(&rows, variant - CONV_TILE_VARIANTS, capability);
}

bool patches_worth(const struct conv_spec *s, int variant)
{
    const struct conv_spec rows = conv_patches_product(s);
    return s->in.c % 8 != 0 &&
           (variant < CONV_TILE_VARIANTS ? conv_tile_worth(s, variant)
                                         : tensor_worth(&rows, variant - CONV_TILE_VARIANTS));
}

struct conv_tensor_params tensor_half_params(const struct conv_spec        *s,
                                             const struct conv_tile_params *at, int variant,
                                             struct conv_copy_shape shapes[TENSOR_MAPS])
{
    struct conv_tensor_params p = {
        .s = {.b = {.at = *at, .y_kind = CONV_F16, .residual_kind = CONV_F16, .residual_scale = 1},
              .flat = conv_is_flat(s) && tensor_is_dense(&s->in, s->n),
              .dense = tensor_writes_dense(s)}};
    struct conv_tile_params *bytes = &p.s.b.at;
    bytes->in_c *= 2;
    bytes->taps *= 2;
    bytes->x_pixel *= 2;
    bytes->x_sample *= 2;
    tensor_shapes(s, &p, variant, shapes);
    return p;
}
