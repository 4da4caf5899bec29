/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/tensor_spec.h"

#include <string.h>

const struct conv_tile_size tensor_sizes[CONV_TENSOR_VARIANTS] = {
    {128, 256}, {128, 192}, {128, 128}, {128, 64}, {128, 32},  {64, 256}, {64, 128},
    {64, 64},   {192, 192}, {256, 128}, {256, 64}, {128, 128}, {128, 64}};

/* ---- what it can ---- */

static int64_t pixels_of(const struct conv_spec *s)
{
    return s->n * conv_map_pixels(&s->out);
}

bool tensor_is_dense(const struct conv_map *m, int64_t n)
{
    return n == 1 || m->sample == m->pixel * conv_map_pixels(m);
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

enum { BOX_MAX = 256, WINDOW_SHARED = 227 << 10, SPLITS = 8 };

/* Taps along an axis that lie over pixels of the same phase. */
struct span {
    int from, first, last; /* in the phase's map, of a window at the output's first pixel */
};
struct spans {
    struct span of[2];
    int         count, reach;
};

/* The place of a tap in the map of its phase. */
static int64_t phase_place(const struct conv_spec *s, int d, int64_t tap, int64_t *phase)
{
    const int64_t at = tap * s->dilation[d] - s->pad_begin[d], step = s->stride[d];
    *phase = (at % step + step) % step;
    return (at - *phase) / step;
}

static struct spans spans_of(const struct conv_spec *s, int d)
{
    struct spans all = {.count = 0};
    for (int64_t phase = 0; phase < s->stride[d]; phase++) {
        struct span *span = &all.of[all.count];
        bool         found = false;
        for (int64_t tap = 0, its; tap < s->kernel[d]; tap++) {
            const int64_t at = phase_place(s, d, tap, &its);
            if (its != phase)
                continue;
            *span = (struct span){(int)phase, found ? span->first : (int)at, (int)at};
            found = true;
        }
        if (!found)
            continue;
        all.reach = SAC_MAX(all.reach, span->last - span->first);
        all.count++;
    }
    return all;
}

static int64_t parts_of(int64_t all, int64_t each)
{
    return (all + each - 1) / each;
}

static int64_t window_tiles(const struct conv_spec *s, const struct conv_window_shape *w)
{
    return parts_of(s->n, w->samples) * parts_of(s->out.size[1], w->rows) *
           parts_of(s->out.size[2], w->cols);
}

/* Of a tile of so many columns: as many whole samples as it holds, or rows of one, all tiles of
 * which are about as tall. false: not a row. */
static bool window_rows(const struct conv_spec *s, int64_t pixels, int64_t cols, int down,
                        int right, struct conv_window_shape *out)
{
    const int64_t all = s->out.size[1], width = cols + right;
    int64_t       rows = SAC_MIN(all, pixels / width), samples = 1;
    if (rows < 1)
        return false;
    if (rows == all && cols == s->out.size[2])
        samples = SAC_MIN(s->n, 1 + (pixels - rows * width) / ((all + down) * width));
    else
        rows = parts_of(all, parts_of(all, rows));
    *out = (struct conv_window_shape){.cols = (int)cols,
                                      .rows = (int)rows,
                                      .samples = (int)samples,
                                      .width = (int)width,
                                      .height = (int)(rows + down)};
    return true;
}

/* The fewest tiles, and of these those that bring the least. */
static bool window_split(const struct conv_spec *s, int64_t pixels, int down, int right,
                         struct conv_window_shape *out)
{
    const int64_t all = s->out.size[2];
    int64_t       fewest = 0, least = 0;
    if (pixels <= right)
        return false;
    for (int64_t first = parts_of(all, pixels - right), n = first; n < first + SPLITS; n++) {
        struct conv_window_shape w;
        if (n > all || !window_rows(s, pixels, parts_of(all, n), down, right, &w))
            continue;
        const int64_t tiles = window_tiles(s, &w), brought = tiles * w.samples * w.height * w.width;
        if (fewest && (tiles > fewest || (tiles == fewest && brought >= least)))
            continue;
        fewest = tiles;
        least = brought;
        *out = w;
    }
    return fewest > 0;
}

/* Its taps follow each other in the list. */
static void add_phase(const struct conv_spec *s, const struct span *y, const struct span *x,
                      struct conv_window_shape *w)
{
    const int before = w->phases ? w->phase[w->phases - 1].taps : 0, down = y->last - y->first;
    int       taps = before;
    for (int64_t i = 0, phase; i < s->kernel[1]; i++) {
        const int64_t row = phase_place(s, 1, i, &phase);
        for (int64_t j = 0, its; j < s->kernel[2] && phase == y->from; j++) {
            const int64_t column = phase_place(s, 2, j, &its);
            if (its == x->from)
                w->tap[taps++] = (struct conv_window_tap){
                    .at = (short)((row - y->first) * w->width + column - x->first),
                    .index = (short)(i * s->kernel[2] + j)};
        }
    }
    w->phase[w->phases++] =
        (struct conv_window_phase){.from_y = y->from,
                                   .from_x = x->from,
                                   .down = y->first,
                                   .right = x->first,
                                   .height = w->samples > 1 ? w->height : w->rows + down,
                                   .taps = taps};
}

bool tensor_window(const struct conv_spec *s, int variant, int64_t row,
                   struct conv_window_shape *out)
{
    const struct conv_tile_size t = tensor_sizes[variant];
    const int64_t               chunk = chunk_of(row), taps = s->kernel[1] * s->kernel[2];
    if (s->stride[1] > 2 || s->stride[2] > 2 || s->in.size[1] < s->stride[1] ||
        s->in.size[2] < s->stride[2] || taps == 1 || taps > CONV_WINDOW_TAPS || chunk < 64)
        return false;
    const struct spans down = spans_of(s, 1), right = spans_of(s, 2);
    if (!window_split(s, t.pixels, down.reach, right.reach, out))
        return false;
    const int64_t positions = (int64_t)out->samples * out->height * out->width,
                  read = t.pixels + (int64_t)down.reach * out->width + right.reach,
                  part = parts_of(SAC_MAX(positions, read) * chunk, 1024) * 1024;
    out->part = (int)part;
    if (out->height > BOX_MAX || out->samples > BOX_MAX ||
        CONV_WINDOW_PARTS * part + CONV_WINDOW_STAGES * t.channels * chunk + CONV_WINDOW_OTHERS >
            WINDOW_SHARED)
        return false;
    for (int y = 0; y < down.count; y++)
        for (int x = 0; x < right.count; x++)
            add_phase(s, &down.of[y], &right.of[x], out);
    return true;
}

/* Windows overlap, and half of what is multiplied is stored. Tiles are the same whatever the
 * numbers. */
static bool window_worth(const struct conv_spec *s, int variant)
{
    const struct conv_tile_size t = tensor_sizes[variant];
    struct conv_window_shape    w;
    if (s->kernel[1] <= s->stride[1] && s->kernel[2] <= s->stride[2])
        return false;
    if (!tensor_window(s, variant, s->in.c * 2, &w) && !tensor_window(s, variant, s->in.c, &w))
        return false;
    const int64_t tiles = window_tiles(s, &w) * parts_of(s->out.c, t.channels);
    return s->out.c > t.channels / 2 && (tiles >= 40 || t.pixels < 256) &&
           2 * (int64_t)w.samples * w.rows * w.cols >= t.pixels;
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

/* Pixels of [c, w, h, n] of a phase, under all windows of a tile. */
static struct conv_copy_shape part_shape(const struct conv_spec        *v,
                                         const struct conv_tile_params *p, int chunk,
                                         const struct conv_window_shape *w,
                                         const struct conv_window_phase *phase)
{
    const int64_t right = v->stride[2], down = v->stride[1], line = p->in_w * p->x_pixel;
    return (struct conv_copy_shape){
        .at = (const uint8_t *)p->x + phase->from_y * line + phase->from_x * p->x_pixel,
        .rank = 4,
        .size = {(uint64_t)p->in_c, (uint64_t)parts_of(p->in_w - phase->from_x, right),
                 (uint64_t)parts_of(p->in_h - phase->from_y, down), (uint64_t)v->n},
        .step = {(uint64_t)(right * p->x_pixel), (uint64_t)(down * line), (uint64_t)p->x_sample},
        .box = {(uint32_t)chunk, (uint32_t)w->width, (uint32_t)phase->height,
                (uint32_t)w->samples}};
}

/* Of each sixteen channels the columns 8 j + 2 t + e, as conv_tensor.cuh wants them: e, t and j are
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

/* Does a row of several chunks lie side by side in memory? So brought, YOLOX-S' 3x3 of 128 channels
 * at batch 32 took 101 us in place of 108; of one chunk alone, or of every other pixel, it took up
 * to a quarter longer (one H200, 2026-11-28). */
static bool goes_on(const struct conv_tensor_params *p, int64_t row)
{
    return p->chunk == 128 && row >= 256;
}

void tensor_shapes(const struct conv_spec *s, struct conv_tensor_params *p, int variant,
                   struct conv_copy_shape shapes[TENSOR_MAPS])
{
    const struct conv_tile_size    t = tensor_sizes[variant];
    const int                      panel = SAC_MIN(t.channels, (int)TENSOR_PANEL);
    const struct conv_tile_params *at = &p->s.b.at;
    p->chunk = chunk_of(at->in_c);
    memset(shapes, 0, TENSOR_MAPS * sizeof *shapes);
    shapes[TENSOR_WEIGHTS] = turned_shape(at, p->chunk, t.channels);
    shapes[TENSOR_WEIGHTS].goes_on = goes_on(p, at->taps);
    if (variant >= CONV_TENSOR_WINDOWS) {
        p->runs = (int)s->n;
        tensor_window(s, variant, at->in_c, &p->window);
        for (int i = 0; i < p->window.phases; i++)
            shapes[TENSOR_PHASES + i] =
                part_shape(s, at, p->chunk, &p->window, &p->window.phase[i]);
        shapes[TENSOR_PHASES].goes_on = p->window.phases == 1 && goes_on(p, at->in_c);
        return;
    }
    p->runs = p->s.dense ? 1 : (int)s->n;
    p->run_pixels = p->s.dense ? (int)at->m : at->pixels;
    shapes[TENSOR_X] =
        p->s.flat ? runs_shape(p, at->x, at->in_c, at->x_pixel, at->x_sample, p->chunk, t.pixels)
                  : window_shape(s, at, p->chunk, t.pixels);
    shapes[TENSOR_X].goes_on = goes_on(p, at->in_c);
    shapes[TENSOR_Y] = panel_shape(p, at->y, &s->out, p->s.b.y_kind, panel);
    if (s->residual_kind != SAC_RESIDUAL_NONE)
        shapes[TENSOR_RESIDUAL] =
            panel_shape(p, at->finish.residual, &s->residual, p->s.b.residual_kind, panel);
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
    return variant >= 0 && variant < CONV_TENSOR_VARIANTS && capability == 90 && s->groups == 1 &&
           s->in.c % 8 == 0 && conv_tile_fits(s, 0) && tensor_copies(s) && steps_fit(&s->in) &&
           steps_fit(&s->out) &&
           (s->residual_kind == SAC_RESIDUAL_NONE || steps_fit(&s->residual)) &&
           (variant < CONV_TENSOR_WINDOWS || !conv_residual_is_part(s)) && /* what is not there, the
                                                                              engine fills in */
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
    return (s->in.c % 8 != 0 || !steps_fit(&s->in)) &&
           (variant < CONV_TILE_VARIANTS ? conv_tile_worth(s, variant)
                                         : tensor_worth(&rows, variant - CONV_TILE_VARIANTS));
}

struct conv_patches_params patches_params_of(const struct conv_spec *s)
{
    const int64_t line = s->in.size[2] * s->in.pixel; /* of the map */
    return (struct conv_patches_params){.count = (int)(s->n * s->out.size[1] * s->out.size[2]),
                                        .row = (int)conv_patches_row(s),
                                        .kernel_h = (int)s->kernel[1],
                                        .line = (int)(s->kernel[2] * s->in.c),
                                        .out_h = (int)s->out.size[1],
                                        .out_w = (int)s->out.size[2],
                                        .x_line = line,
                                        .x_sample = s->in.sample,
                                        .step_h = s->stride[1] * line,
                                        .step_w = s->stride[2] * s->in.pixel};
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
