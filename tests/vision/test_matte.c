/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes against a plain reference in double, and what they are for: edges, motion, flicker. */
#include <stdio.h>

#include "tests/vision/frames.h"
#include "vision/cpu/matte.h"

/* One op with all it needs. */
struct scene {
    sac_device            *dev;
    struct sac_matte_spec  spec;
    struct sac_matte_style style;
    struct sac_preprocess  pre;
    struct sac_matte_job   job;
    sac_frame             *frame;
    void                  *tensor;
    size_t                 state_bytes;
};

static uint16_t half_of(float v)
{
    for (uint32_t h = 0; h < 0x7c00; h++) /* slow and sure; the tests use few halves */
        if (sac_float_of_half((uint16_t)h) >= fabsf(v))
            return (uint16_t)(h | (v < 0 ? 0x8000u : 0));
    return 0x7c00;
}

static void put(const struct scene *s, int64_t at, double v)
{
    switch (s->spec.value.dtype) {
    case SAC_F16: ((uint16_t *)s->tensor)[at] = half_of((float)v); break;
    case SAC_I32: ((int32_t *)s->tensor)[at] = (int32_t)v; break;
    case SAC_I64: ((int64_t *)s->tensor)[at] = (int64_t)v; break;
    default: ((float *)s->tensor)[at] = (float)v; break;
    }
}

static double number(const struct scene *s, int k, int x, int y)
{
    const void *const tensors[] = {s->tensor};
    return (double)sac_detect_read(
        &s->spec.value, tensors,
        sac_detect_at(&s->spec.value, s->job.image, (int64_t)y * s->spec.width + x) +
            k * s->spec.value.number);
}

static void set_number(const struct scene *s, int k, int x, int y, double v)
{
    put(s,
        sac_detect_at(&s->spec.value, s->job.image, (int64_t)y * s->spec.width + x) +
            k * s->spec.value.number,
        v);
}

static struct sac_matte_style plain_style(void)
{
    return (struct sac_matte_style){.low = 0, .high = 1};
}

/* A frame of this format and size, seen by a network of width x height with a map of one cell a
 * pixel, class after class. */
static struct scene scene_of(sac_device *dev, enum sac_pixel_format format, int frame_width,
                             int frame_height, int width, int height, int classes)
{
    struct scene s = {.dev = dev, .style = plain_style()};
    s.spec = (struct sac_matte_spec){
        .form = classes > 1 ? SAC_MATTE_CLASS_LOGITS : SAC_MATTE_SHARE,
        .width = width,
        .height = height,
        .input_width = width,
        .input_height = height,
        .classes = classes,
        .value = {.dtype = SAC_F32, .cell = 1, .number = (int64_t)width * height}};
    s.pre = sac_preprocess_default();
    s.pre.width = width;
    s.pre.height = height;
    s.pre.fit = SAC_FIT_STRETCH;
    s.frame = test_frame(dev, format, frame_width, frame_height);
    test_fill(s.frame, 0, 255, 128, 128);
    s.job.frame = s.frame;
    s.job.crop = (struct sac_rect){0, 0, (float)frame_width, (float)frame_height};
    s.job.map = sac_fit_map_of(&s.pre, &s.job.crop);
    s.job.out = test_frame(dev, SAC_PIXEL_GRAY8, frame_width, frame_height);
    s.tensor = calloc((size_t)width * (size_t)height * (size_t)classes, 8);
    s.state_bytes = sac_matte_bytes(&s.spec);
    s.job.state.memory = calloc(1, s.state_bytes);
    assert_non_null(s.tensor);
    assert_non_null(s.job.state.memory);
    return s;
}

static void finish(struct scene *s)
{
    sac_frame_unref(&s->frame);
    sac_frame_unref(&s->job.out);
    free(s->tensor);
    free(s->job.state.memory);
}

static sac_result try_run(const struct scene *s)
{
    const void *const tensors[SAC_MATTE_TENSORS_MAX] = {s->tensor};
    return sac_matte_run_on(s->dev, NULL, &s->spec, &s->style, tensors, &s->job, 1);
}

static void run(struct scene *s)
{
    assert_sac_ok(try_run(s));
    s->job.state.turn++;
    s->job.state.has_before = true;
}

static int matte(const struct scene *s, int x, int y)
{
    return s->job.out->plane[0][(size_t)y * s->job.out->pitch_bytes[0] + (size_t)x];
}

static void random_shares(const struct scene *s)
{
    for (int y = 0; y < s->spec.height; y++)
        for (int x = 0; x < s->spec.width; x++)
            set_number(s, 0, x, y, test_between(0, 256) / 256.0);
}

/* ---- the reference ---- */

enum { CELLS_MAX = 64 * 64 };

struct reference {
    int    left, top, width, height; /* the grid */
    double share[CELLS_MAX], luma[CELLS_MAX], slope[CELLS_MAX], base[CELLS_MAX];
};

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

static double share_of(const struct scene *s, int x, int y)
{
    double sum = 0, wanted = 0;
    switch (s->spec.form) {
    case SAC_MATTE_SHARE: return number(s, 0, x, y);
    case SAC_MATTE_LOGIT: return sigmoid(number(s, 0, x, y));
    case SAC_MATTE_LABEL: return sac_matte_wanted(&s->spec, (int)number(s, 0, x, y));
    default: break;
    }
    for (int k = 0; k < s->spec.classes; k++) {
        const bool   logits = s->spec.form == SAC_MATTE_CLASS_LOGITS;
        const double v = logits ? exp(number(s, k, x, y)) : number(s, k, x, y);
        sum += v;
        wanted += sac_matte_wanted(&s->spec, k) ? v : 0;
    }
    return s->spec.form == SAC_MATTE_CLASS_LOGITS ? wanted / sum : wanted;
}

/* A pixel's place among all cells of the map. */
static double place(double pixel, double scale, double offset, int input, int cells)
{
    return ((pixel + 0.5) * scale + offset) * cells / input;
}

static double place_x(const struct scene *s, int x)
{
    return place(x, (double)s->job.map.scale_x, (double)s->job.map.offset_x, s->spec.input_width,
                 s->spec.width);
}

static double place_y(const struct scene *s, int y)
{
    return place(y, (double)s->job.map.scale_y, (double)s->job.map.offset_y, s->spec.input_height,
                 s->spec.height);
}

static double luma_of(const sac_frame *f, int x, int y)
{
    if (!test_rgb_bytes(f->format))
        return floor(test_sample(f, x, y, 0));
    return floor((77 * test_sample(f, x, y, 0) + 150 * test_sample(f, x, y, 1) +
                  29 * test_sample(f, x, y, 2)) /
                 256);
}

/* The mean of the crop's pixels whose centres lie in the cell, a whole number as on every device.
 */
static double mean_luma(const struct scene *s, int cx, int cy)
{
    double sum = 0;
    int    n = 0;
    for (int y = (int)s->job.crop.y0; y < (int)s->job.crop.y1; y++) {
        if ((int)floor(place_y(s, y)) != cy)
            continue;
        for (int x = (int)s->job.crop.x0; x < (int)s->job.crop.x1; x++)
            if ((int)floor(place_x(s, x)) == cx) {
                sum += luma_of(s->frame, x, y);
                n++;
            }
    }
    assert_true(n > 0);
    return floor(sum / n + 0.5);
}

static void fill_cells(const struct scene *s, struct reference *r)
{
    r->left = (int)floor(place_x(s, (int)s->job.crop.x0));
    r->top = (int)floor(place_y(s, (int)s->job.crop.y0));
    r->width = (int)floor(place_x(s, (int)s->job.crop.x1 - 1)) - r->left + 1;
    r->height = (int)floor(place_y(s, (int)s->job.crop.y1 - 1)) - r->top + 1;
    assert_in_range(r->width * r->height, 1, CELLS_MAX);
    for (int y = 0; y < r->height; y++)
        for (int x = 0; x < r->width; x++) {
            r->share[y * r->width + x] = share_of(s, r->left + x, r->top + y);
            r->luma[y * r->width + x] = s->style.guide ? mean_luma(s, r->left + x, r->top + y) : 0;
        }
}

/* The greatest (sign 1) or smallest (-1) of a window. */
static void window(struct reference *r, int before, int after, int sign)
{
    static double out[CELLS_MAX];
    for (int y = 0; y < r->height; y++)
        for (int x = 0; x < r->width; x++) {
            double best = -10;
            for (int j = SAC_MAX(y - before, 0); j <= SAC_MIN(y + after, r->height - 1); j++)
                for (int i = SAC_MAX(x - before, 0); i <= SAC_MIN(x + after, r->width - 1); i++)
                    best = fmax(best, sign * r->share[j * r->width + i]);
            out[y * r->width + x] = sign * best;
        }
    memcpy(r->share, out, sizeof out);
}

static void close_holes(struct reference *r, int hole)
{
    window(r, hole / 2, hole - hole / 2, 1);
    window(r, hole - hole / 2, hole / 2, -1);
}

/* He, Sun and Tang: per window a and b; then the mean of those of all windows about a cell. */
static void guide(struct reference *r, int radius, double noise)
{
    static double a[CELLS_MAX], b[CELLS_MAX];
    for (int pass = 0; pass < 2; pass++)
        for (int y = 0; y < r->height; y++)
            for (int x = 0; x < r->width; x++) {
                double n = 0, i1 = 0, p1 = 0, ii = 0, ip = 0, sa = 0, sb = 0;
                for (int j = SAC_MAX(y - radius, 0); j <= SAC_MIN(y + radius, r->height - 1); j++)
                    for (int i = SAC_MAX(x - radius, 0); i <= SAC_MIN(x + radius, r->width - 1);
                         i++) {
                        const int at = j * r->width + i;
                        n++;
                        i1 += r->luma[at], p1 += r->share[at];
                        ii += r->luma[at] * r->luma[at], ip += r->luma[at] * r->share[at];
                        sa += a[at], sb += b[at];
                    }
                const int at = y * r->width + x;
                if (pass == 1) {
                    r->slope[at] = sa / n;
                    r->base[at] = sb / n;
                } else {
                    a[at] = (ip / n - i1 / n * p1 / n) / (ii / n - i1 / n * i1 / n + noise * noise);
                    b[at] = p1 / n - a[at] * i1 / n;
                }
            }
}

static double between(const struct reference *r, const double *cells, double x, double y)
{
    x -= r->left + 0.5, y -= r->top + 0.5;
    const int    fx = (int)floor(x), fy = (int)floor(y);
    const int    x0 = SAC_CLAMP(fx, 0, r->width - 1), x1 = SAC_CLAMP(fx + 1, 0, r->width - 1);
    const int    y0 = SAC_CLAMP(fy, 0, r->height - 1), y1 = SAC_CLAMP(fy + 1, 0, r->height - 1);
    const double above =
        cells[y0 * r->width + x0] * (fx + 1 - x) + cells[y0 * r->width + x1] * (x - fx);
    const double below =
        cells[y1 * r->width + x0] * (fx + 1 - x) + cells[y1 * r->width + x1] * (x - fx);
    return above * (fy + 1 - y) + below * (y - fy);
}

/* Every pixel of the crop within so many of 255. The first frame: nothing to smooth with. */
static void assert_reference(const struct scene *s, double tolerance)
{
    static struct reference r;
    const double            low = (double)s->style.low, high = (double)s->style.high;
    fill_cells(s, &r);
    if (s->style.hole)
        close_holes(&r, s->style.hole);
    memset(r.slope, 0, sizeof r.slope);
    memcpy(r.base, r.share, sizeof r.share);
    if (s->style.guide)
        guide(&r, s->style.guide, (double)s->style.guide_noise);
    for (int y = (int)s->job.crop.y0; y < (int)s->job.crop.y1; y++)
        for (int x = (int)s->job.crop.x0; x < (int)s->job.crop.x1; x++) {
            const double px = place_x(s, x), py = place_y(s, y);
            const double v = between(&r, r.slope, px, py) * luma_of(s->frame, x, y) +
                             between(&r, r.base, px, py);
            const double want = SAC_CLAMP((v - low) / (high - low), 0.0, 1.0) * 255;
            if (fabs(want - matte(s, x, y)) > tolerance)
                fail_msg("%dx%d at %d,%d: %d, expected %f", s->frame->width, s->frame->height, x, y,
                         matte(s, x, y), want);
        }
}

/* ---- forms and types ---- */

static const enum sac_dtype dtypes[] = {SAC_F32, SAC_F16, SAC_I32, SAC_I64};

/* Class after class, or all classes of a cell side by side. */
static void lay_out(struct scene *s, bool woven)
{
    s->spec.value.cell = woven ? s->spec.classes : 1;
    s->spec.value.number = woven ? 1 : (int64_t)s->spec.width * s->spec.height;
}

static void fill_form(struct scene *s)
{
    for (int y = 0; y < s->spec.height; y++)
        for (int x = 0; x < s->spec.width; x++)
            for (int k = 0; k < s->spec.classes; k++) {
                double v = test_between(-40, 40) / 8.0;
                if (s->spec.form == SAC_MATTE_SHARE || s->spec.form == SAC_MATTE_CLASS_SHARES)
                    v = test_between(0, 32) / 32.0 / s->spec.classes;
                if (s->spec.form == SAC_MATTE_LABEL)
                    v = test_between(0, 9);
                set_number(s, k, x, y, v);
            }
}

static void every_form_and_type(void **state)
{
    sac_device *dev = *state;
    for (int form = SAC_MATTE_SHARE; form <= SAC_MATTE_LABEL; form++)
        for (size_t t = 0; t < SAC_COUNT(dtypes); t++)
            for (int woven = 0; woven < 2; woven++) {
                const bool many = form == SAC_MATTE_CLASS_LOGITS || form == SAC_MATTE_CLASS_SHARES;
                struct scene s = scene_of(dev, SAC_PIXEL_GRAY8, 50, 37, 23, 19, many ? 5 : 1);
                s.spec.form = (enum sac_matte_form)form;
                s.spec.value.dtype = dtypes[t];
                s.spec.wanted[0] = 1u << 1 | 1u << 3 | 1u << 7;
                lay_out(&s, woven);
                fill_form(&s);
                run(&s);
                assert_reference(&s, 0.6);
                finish(&s);
            }
}

static void numbers_that_are_none(void **state)
{
    const float  odd[] = {NAN, -1, 2, INFINITY, -INFINITY};
    const int    want[] = {0, 0, 255, 255, 0};
    struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 5, 1, 5, 1, 1);
    for (int i = 0; i < 5; i++)
        set_number(&s, 0, i, 0, (double)odd[i]);
    run(&s);
    for (int i = 0; i < 5; i++)
        assert_int_equal(matte(&s, i, 0), want[i]);
    s.spec.form = SAC_MATTE_LABEL;
    memset(s.spec.wanted, 0xff, sizeof s.spec.wanted);
    run(&s);
    assert_int_equal(matte(&s, 0, 0), 0);
    assert_int_equal(matte(&s, 1, 0), 0);
    assert_int_equal(matte(&s, 2, 0), 255);
    assert_int_equal(matte(&s, 3, 0), 0);
    finish(&s);
}

/* ---- the way to pixels ---- */

static void follows_the_reference(void **state)
{
    static const enum sac_pixel_format formats[] = {SAC_PIXEL_GRAY8, SAC_PIXEL_NV12,
                                                    SAC_PIXEL_P010,  SAC_PIXEL_I420,
                                                    SAC_PIXEL_RGB24, SAC_PIXEL_BGRA};
    for (int round = 0; round < 60; round++) {
        const int    width = test_between(1, 40), height = test_between(1, 40);
        struct scene s =
            scene_of(*state, formats[round % 6], width * test_between(1, 4) + test_between(0, 3),
                     height * test_between(1, 4) + test_between(0, 3), width, height, 1);
        s.style.guide = test_between(0, 4);
        s.style.guide_noise = (float)test_between(4, 30);
        s.style.hole = test_between(0, 4);
        s.style.low = (float)test_between(0, 3) / 10.0f;
        s.style.high = 1 - (float)test_between(0, 3) / 10.0f;
        random_shares(&s);
        run(&s);
        assert_reference(&s, 0.8);
        finish(&s);
    }
}

static void only_the_crop_is_written(void **state)
{
    static const enum sac_fit fits[] = {SAC_FIT_STRETCH, SAC_FIT_LETTERBOX_TOPLEFT,
                                        SAC_FIT_LETTERBOX_CENTRE};
    for (int i = 0; i < 3; i++) {
        struct scene s = scene_of(*state, SAC_PIXEL_NV12, 120, 90, 32, 32, 1);
        s.job.crop = (struct sac_rect){16, 10, 112, 58};
        s.pre.fit = fits[i];
        s.job.map = sac_fit_map_of(&s.pre, &s.job.crop);
        s.style.guide = 2;
        s.style.guide_noise = 10;
        random_shares(&s);
        memset(s.job.out->plane[0], 77, s.job.out->pitch_bytes[0] * 90);
        run(&s);
        assert_reference(&s, 0.8);
        for (int y = 0; y < 90; y++)
            for (int x = 0; x < 120; x++)
                if (x < 16 || x >= 112 || y < 10 || y >= 58)
                    assert_int_equal(matte(&s, x, y), 77);
        finish(&s);
    }
}

static void letterbox_borders_are_no_picture(void **state)
{
    struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 64, 32, 32, 32, 1);
    s.pre.fit = SAC_FIT_LETTERBOX_CENTRE;
    s.job.map = sac_fit_map_of(&s.pre, &s.job.crop);
    s.style =
        (struct sac_matte_style){.guide = 4, .guide_noise = 8, .hole = 2, .low = 0, .high = 1};
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 32; x++)
            set_number(&s, 0, x, y, y >= 8 && y < 24);
    run(&s);
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 64; x++)
            assert_int_equal(matte(&s, x, y), 255);
    finish(&s);
}

/* The upper byte of P010 is what NV12 has. */
static void ten_bits_as_eight(void **state)
{
    struct scene a = scene_of(*state, SAC_PIXEL_NV12, 101, 67, 30, 20, 1);
    struct scene b = scene_of(*state, SAC_PIXEL_P010, 101, 67, 30, 20, 1);
    random_shares(&a);
    memcpy(b.tensor, a.tensor, (size_t)30 * 20 * sizeof(float));
    a.style = b.style = (struct sac_matte_style){
        .guide = 2, .guide_noise = 8, .smooth = 0.8f, .hole = 1, .low = 0.1f, .high = 0.9f};
    for (int frame = 0; frame < 3; frame++) {
        test_fill(a.frame, frame * 20, 255, 128, 128);
        for (int y = 0; y < 67; y++)
            for (int x = 0; x < 101; x++)
                ((uint16_t *)(void *)(b.frame->plane[0] + (size_t)y * b.frame->pitch_bytes[0]))[x] =
                    (uint16_t)(a.frame->plane[0][(size_t)y * a.frame->pitch_bytes[0] + (size_t)x]
                               << 8);
        run(&a);
        run(&b);
        for (int y = 0; y < 67; y++)
            for (int x = 0; x < 101; x++)
                assert_int_equal(matte(&a, x, y), matte(&b, x, y));
    }
    finish(&a);
    finish(&b);
}

/* ---- edges ---- */

static void paint(const struct scene *s, int x0, int y0, int x1, int y1, int value)
{
    for (int y = SAC_MAX(y0, 0); y < SAC_MIN(y1, s->frame->height); y++)
        for (int x = SAC_MAX(x0, 0); x < SAC_MIN(x1, s->frame->width); x++)
            s->frame->plane[0][(size_t)y * s->frame->pitch_bytes[0] + (size_t)x] = (uint8_t)value;
}

/* The map's edge lies 3 pixels beside the picture's: the matte's is the picture's. */
static void edges_follow_luma(void **state)
{
    for (int guide = 0; guide <= 3; guide += 3) {
        struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 160, 80, 80, 40, 1);
        s.style =
            (struct sac_matte_style){.guide = guide, .guide_noise = 5, .low = 0.1f, .high = 0.9f};
        paint(&s, 0, 0, 160, 80, 60);
        paint(&s, 77, 0, 160, 80, 180);
        for (int y = 0; y < 40; y++)
            for (int x = 0; x < 80; x++)
                set_number(&s, 0, x, y, x >= 40);
        run(&s);
        if (guide) {
            assert_true(matte(&s, 76, 40) < 16);
            assert_true(matte(&s, 77, 40) >= 128);
        } else {
            assert_true(matte(&s, 77, 40) < 64);
        }
        finish(&s);
    }
}

static void small_gaps_close_and_wide_ones_stay(void **state)
{
    for (int hole = 1; hole <= SAC_MATTE_HOLE_MAX; hole++)
        for (int gap = hole; gap <= hole + 1; gap++) {
            struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 40, 30, 40, 30, 1);
            s.style.hole = hole;
            for (int y = 0; y < 30; y++)
                for (int x = 0; x < 40; x++)
                    set_number(&s, 0, x, y, x < 15 || x >= 15 + gap);
            run(&s);
            for (int x = 0; x < 40; x++)
                assert_int_equal(matte(&s, x, 15),
                                 gap == hole || x < 15 || x >= 15 + gap ? 255 : 0);
            finish(&s);
        }
}

/* ---- frames that follow each other ---- */

static int noise_at(int x, int y)
{
    uint32_t h = (uint32_t)x * 374761393u + (uint32_t)y * 668265263u;
    h = (h ^ h >> 13) * 1274126177u;
    return (int)(h >> 16 & 63);
}

/* A still ground and a square of another texture on it. */
static void paint_square(const struct scene *s, int left, int top, int side)
{
    for (int y = 0; y < s->frame->height; y++)
        for (int x = 0; x < s->frame->width; x++) {
            const bool in = x >= left && x < left + side && y >= top && y < top + side;
            s->frame->plane[0][(size_t)y * s->frame->pitch_bytes[0] + (size_t)x] =
                (uint8_t)(in ? 150 + noise_at((x - left) / 2, (y - top) / 2)
                             : 40 + noise_at(x / 2 + 900, y / 2));
        }
}

/* The share at the square's cells is unsure and jumps; around it there is nothing. */
static void set_square(const struct scene *s, int left, int top, int side, double share)
{
    for (int y = 0; y < s->spec.height; y++)
        for (int x = 0; x < s->spec.width; x++)
            set_number(s, 0, x, y,
                       x >= left && x < left + side && y >= top && y < top + side ? share : 0);
}

/* A square that moves by so many cells keeps what it was inside, to the end that smoothing gives on
 * a still picture, and leaves nothing where it was. */
static void shares_move_with_the_picture(void **state)
{
    static const int moves[][2] = {{0, 0}, {1, 0}, {0, -3}, {4, 2}, {-9, 5}, {12, 0}, {-12, 12}};
    for (size_t i = 0; i < SAC_COUNT(moves); i++) {
        enum { SIDE = 24, X = 30, Y = 26 };
        const int    x = X + moves[i][0], y = Y + moves[i][1];
        struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 90, 80, 90, 80, 1);
        s.style.smooth = 0.75f;
        paint_square(&s, X, Y, SIDE);
        set_square(&s, X, Y, SIDE, 0.7);
        run(&s);
        paint_square(&s, x, y, SIDE);
        set_square(&s, x, y, SIDE, 0.3);
        run(&s);
        for (int cy = 2; cy < SIDE - 2; cy++) /* found again: 0.3 + 0.75 * (0.7 - 0.3) */
            for (int cx = 2; cx < SIDE - 2; cx++)
                assert_in_range(matte(&s, x + cx, y + cy), 151, 155);
        for (int cy = 0; cy < 80; cy++) /* no trail */
            for (int cx = 0; cx < 90; cx++)
                if (cx < x || cx >= x + SIDE || cy < y || cy >= y + SIDE)
                    assert_int_equal(matte(&s, cx, cy), 0);
        finish(&s);
    }
}

/* Where the picture changes, or the network is sure, the new share counts at once. */
static void nothing_lags(void **state)
{
    struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 64, 64, 64, 64, 1);
    s.style.smooth = 0.95f;
    paint(&s, 0, 0, 64, 64, 50);
    set_square(&s, 0, 0, 64, 0.5);
    run(&s);
    paint(&s, 0, 0, 32, 64, 200); /* changed on the left */
    for (int y = 0; y < 64; y++)
        for (int x = 0; x < 64; x++)
            set_number(&s, 0, x, y, x < 32 ? 0.25 : y < 32 ? 0 : 1);
    run(&s);
    assert_in_range(matte(&s, 10, 30), 63, 65);
    assert_int_equal(matte(&s, 50, 10), 0);
    assert_int_equal(matte(&s, 50, 50), 255);
    finish(&s);
}

/* All of what smoothing asks for where a cell was found and the network is unsure; less on the way
 * to where it was not, and to where the network is sure. */
static void what_is_kept(void **state)
{
    enum { SMOOTH = 3891, MIDDLE = (SAC_MATTE_FOUND + SAC_MATTE_LOST) / 2 };
    const int16_t half = SAC_MATTE_ONE / 2, near = SAC_MATTE_ONE / SAC_MATTE_SURE / 2;
    (void)state;
    assert_int_equal(sac_matte_kept(half, SAC_MATTE_FOUND, SMOOTH), SMOOTH);
    assert_int_equal(sac_matte_kept(SAC_MATTE_ONE / SAC_MATTE_SURE + 1, 0, SMOOTH), SMOOTH);
    assert_int_equal(sac_matte_kept(half, SAC_MATTE_LOST, SMOOTH), 0);
    assert_int_equal(sac_matte_kept(half, 9 * 255, SMOOTH), 0);
    assert_int_equal(sac_matte_kept(0, 0, SMOOTH), 0);
    assert_int_equal(sac_matte_kept(SAC_MATTE_ONE, 0, SMOOTH), 0);
    assert_in_range(sac_matte_kept(half, MIDDLE, SMOOTH), SMOOTH / 2 - 1, SMOOTH / 2 + 1);
    assert_in_range(sac_matte_kept(near, 0, SMOOTH), SMOOTH * 48 / 100, SMOOTH / 2);
    for (int residual = 1; residual <= 9 * 255; residual++)
        assert_true(sac_matte_kept(half, residual, SMOOTH) <=
                    sac_matte_kept(half, residual - 1, SMOOTH));
    for (int16_t share = 1; share <= half; share++) {
        const int kept = sac_matte_kept(share, MIDDLE, SMOOTH);
        assert_true(kept >= sac_matte_kept((int16_t)(share - 1), MIDDLE, SMOOTH));
        assert_int_equal(kept, sac_matte_kept((int16_t)(SAC_MATTE_ONE - share), MIDDLE, SMOOTH));
    }
}

/* ---- frames that no network saw ---- */

static bool is_inside(int x, int y, int left, int top, int side)
{
    return x >= left && x < left + side && y >= top && y < top + side;
}

/* What the frame before was goes along with the square, with smoothing and without. Beside it lies
 * what was hidden before, which is found nowhere. */
static void a_frame_alone_takes_the_matte_along(void **state)
{
    static const int moves[][2] = {{0, 0}, {-3, 1}, {8, -7}, {12, 12}};
    for (int i = 0; i < 8; i++) {
        enum { SIDE = 24, X = 30, Y = 26 };
        const int    x = X + moves[i / 2][0], y = Y + moves[i / 2][1];
        struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 90, 80, 90, 80, 1);
        s.style.smooth = i % 2 ? 0.3f : 0;
        paint_square(&s, X, Y, SIDE);
        set_square(&s, X, Y, SIDE, 0.7);
        run(&s);
        s.job.image = -1;
        for (int frame = 0; frame < 2; frame++) { /* twice: what was moved is moved on */
            paint_square(&s, x, y, SIDE);
            run(&s);
            for (int cy = 0; cy < 80; cy++)
                for (int cx = 0; cx < 90; cx++) {
                    if (is_inside(cx, cy, x + 2, y + 2, SIDE - 4))
                        assert_int_equal(matte(&s, cx, cy), 178);
                    else if (!is_inside(cx, cy, x - 8, y - 8, SIDE + 16) &&
                             !is_inside(cx, cy, X - 8, Y - 8, SIDE + 16))
                        assert_int_equal(matte(&s, cx, cy), 0);
                }
        }
        finish(&s);
    }
}

static void assert_summary(const struct scene *s, const struct sac_matte_summary *got, int width,
                           int height)
{
    struct sac_matte_summary want = {.x0 = width, .y0 = height, .cells = width * height};
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const int16_t share = sac_matte_share((float)number(s, 0, x, y));
            want.unsure += SAC_MIN(share, SAC_MATTE_ONE - share);
            if (share < SAC_MATTE_ONE / 2)
                continue;
            want.x0 = SAC_MIN(want.x0, x);
            want.y0 = SAC_MIN(want.y0, y);
            want.x1 = SAC_MAX(want.x1, x + 1);
            want.y1 = SAC_MAX(want.y1, y + 1);
        }
    if (!want.x1)
        want.x0 = want.y0 = 0;
    assert_memory_equal(got, &want, sizeof want);
}

/* Of what the network said, also where smoothing changes it; then of what was moved. */
static void summaries(void **state)
{
    for (int round = 0; round < 40; round++) {
        const int    width = test_between(1, 70), height = test_between(1, 40);
        struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, width, height, width, height, 1);
        struct sac_matte_summary summary;
        s.job.summary = &summary;
        s.style.smooth = round % 2 ? 0.9f : 0;
        for (int frame = 0; frame < 2; frame++) {
            const int most = round % 3 == 0 ? 127 : 256;
            memset(&summary, 0x55, sizeof summary);
            for (int i = 0; i < width * height; i++)
                set_number(&s, 0, i % width, i / width,
                           test_between(0, round % 5 + 1) ? 0 : test_between(0, most) / 256.0);
            run(&s);
            assert_summary(&s, &summary, width, height);
        }
        if (round % 2 == 0) { /* not smoothed, so what stays is what the network said */
            s.job.image = -1;
            memset(&summary, 0x55, sizeof summary);
            run(&s);
            s.job.image = 0;
            assert_summary(&s, &summary, width, height);
        }
        s.job.crop = (struct sac_rect){-9, -9, -5, -5};
        run(&s);
        assert_memory_equal(&summary, &(struct sac_matte_summary){0}, sizeof summary);
        finish(&s);
    }
}

/* The mean variance along time of shares under noise, on a picture that stands still but for a
 * little noise of its own. */
static double variance(sac_device *dev, float smooth)
{
    enum { FRAMES = 24, WIDTH = 32, HEIGHT = 24 };
    static double sum[HEIGHT * WIDTH], square[HEIGHT * WIDTH];
    double        all = 0;
    struct scene  s = scene_of(dev, SAC_PIXEL_GRAY8, WIDTH, HEIGHT, WIDTH, HEIGHT, 1);
    s.style.smooth = smooth;
    memset(sum, 0, sizeof sum);
    memset(square, 0, sizeof square);
    for (int frame = 0; frame < FRAMES + 8; frame++) {
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                paint(&s, x, y, x + 1, y + 1, 60 + noise_at(x, y) + test_between(-1, 1));
                set_number(&s, 0, x, y, 0.5 + test_between(-64, 64) / 256.0);
            }
        run(&s);
        for (int i = 0; frame >= 8 && i < WIDTH * HEIGHT; i++) {
            const double v = matte(&s, i % WIDTH, i / WIDTH);
            sum[i] += v;
            square[i] += v * v;
        }
    }
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        all += square[i] / FRAMES - sum[i] / FRAMES * sum[i] / FRAMES;
    finish(&s);
    return all / (WIDTH * HEIGHT);
}

/* A mean of what came before weighs (1 - k) / (1 + k): 0.18 at k = 0.7. */
static void flicker_falls(void **state)
{
    const double plain = variance(*state, 0), smooth = variance(*state, 0.7f);
    assert_true(plain > 1000);
    assert_true(smooth < 0.22 * plain);
}

static void a_new_stream_knows_nothing(void **state)
{
    struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 20, 20, 20, 20, 1);
    s.style.smooth = 0.9f;
    memset(s.job.state.memory, 0x7f, s.state_bytes);
    paint(&s, 0, 0, 20, 20, 127);
    set_square(&s, 0, 0, 20, 0.5);
    run(&s);
    assert_in_range(matte(&s, 10, 10), 127, 128);
    finish(&s);
}

/* ---- classes ---- */

static void likeliest_class(void **state)
{
    for (int round = 0; round < 12; round++) {
        const int    width = test_between(1, 30), height = test_between(1, 30);
        struct scene s = scene_of(*state, SAC_PIXEL_NV12, test_between(1, 300), test_between(1, 90),
                                  width, height, 1 + round % 6);
        s.style = (struct sac_matte_style){.classes = true};
        s.job.state.memory = (free(s.job.state.memory), NULL);
        s.spec.form = s.spec.classes > 1 ? SAC_MATTE_CLASS_LOGITS : SAC_MATTE_LOGIT;
        fill_form(&s);
        run(&s);
        struct reference r = {.width = width, .height = height};
        for (int y = 0; y < s.frame->height; y++)
            for (int x = 0; x < s.frame->width; x++) {
                double best = s.spec.classes > 1 ? -1e9 : 0, mine = best;
                for (int k = 0; k < s.spec.classes; k++) {
                    for (int i = 0; i < width * height; i++)
                        r.share[i] = number(&s, k, i % width, i / width);
                    const double v = between(&r, r.share, place_x(&s, x), place_y(&s, y));
                    best = fmax(best, v);
                    if (matte(&s, x, y) == (s.spec.classes > 1 ? k : 1))
                        mine = v;
                }
                if (mine < best - 0.01) /* the weights have 12 bits */
                    fail_msg("class %d at %d,%d: %f, the best has %f", matte(&s, x, y), x, y, mine,
                             best);
            }
        finish(&s);
    }
}

static void labels_are_not_blended(void **state)
{
    struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 90, 60, 30, 20, 1);
    s.spec.form = SAC_MATTE_LABEL;
    s.spec.value.dtype = SAC_I64;
    s.style.classes = true;
    for (int i = 0; i < 600; i++)
        set_number(&s, 0, i % 30, i / 30, test_between(-2, 300));
    run(&s);
    for (int y = 0; y < 60; y++)
        for (int x = 0; x < 90; x++) {
            const int label = (int)number(&s, 0, x / 3, y / 3);
            assert_int_equal(matte(&s, x, y), SAC_CLAMP(label, 0, 255));
        }
    finish(&s);
}

/* ---- any size, any way to compute ---- */

static void any_size(void **state)
{
    static const int sizes[][4] = {{1, 1, 1, 1},      {1, 1, 320, 320},   {4096, 16, 64, 64},
                                   {16, 4096, 64, 3}, {32768, 2, 7, 5},   {32768, 3, 2048, 1},
                                   {3, 5, 512, 513},  {641, 479, 40, 30}, {2, 9000, 1, 1}};
    for (size_t i = 0; i < SAC_COUNT(sizes); i++)
        for (int way = 0; way < 3; way++) {
            const int   *size = sizes[i];
            struct scene s = scene_of(*state, way == 2 ? SAC_PIXEL_RGB24 : SAC_PIXEL_P010, size[0],
                                      size[1], size[2], size[3], 1);
            s.pre.fit = (enum sac_fit)way;
            s.job.map = sac_fit_map_of(&s.pre, &s.job.crop);
            s.style = (struct sac_matte_style){.guide = SAC_MATTE_GUIDE_MAX,
                                               .guide_noise = 1,
                                               .smooth = 0.95f,
                                               .hole = SAC_MATTE_HOLE_MAX,
                                               .low = 0,
                                               .high = 1};
            for (int frame = 0; frame < 3; frame++) {
                set_square(&s, 0, 0, 4096, 1);
                test_fill(s.frame, 0, 255, 128, 128);
                run(&s);
                assert_in_range(matte(&s, 0, 0), 254, 255);
                assert_in_range(matte(&s, size[0] - 1, size[1] - 1), 254, 255);
                random_shares(&s);
                run(&s);
            }
            s.style.classes = true;
            run(&s);
            assert_true(matte(&s, size[0] - 1, size[1] - 1) <= 1);
            finish(&s);
        }
}

static void crops_outside_and_between(void **state)
{
    static const struct sac_rect crops[] = {{-50, -50, -10, -10},
                                            {200, 0, 300, 50},
                                            {-30.5f, -20, 10.4f, 200},
                                            {20.5f, 20.5f, 21.5f, 21.5f},
                                            {60.2f, 10.7f, 61, 11}};
    for (size_t i = 0; i < SAC_COUNT(crops); i++) {
        struct scene s = scene_of(*state, SAC_PIXEL_I420, 100, 80, 16, 16, 1);
        s.job.crop = crops[i];
        s.job.map = sac_fit_map_of(&s.pre, &s.job.crop);
        s.style = (struct sac_matte_style){
            .guide = 2, .guide_noise = 8, .smooth = 0.8f, .hole = 1, .low = 0, .high = 1};
        memset(s.job.out->plane[0], 77, s.job.out->pitch_bytes[0] * 80);
        set_square(&s, 0, 0, 16, 1);
        run(&s);
        run(&s);
        for (int y = 0; y < 80; y++)
            for (int x = 0; x < 100; x++) {
                const float cx = (float)x + 0.5f, cy = (float)y + 0.5f;
                const bool  in =
                    cx >= crops[i].x0 && cx < crops[i].x1 && cy >= crops[i].y0 && cy < crops[i].y1;
                if (in)
                    assert_in_range(matte(&s, x, y), 254, 255);
                else
                    assert_int_equal(matte(&s, x, y), 77);
            }
        finish(&s);
    }
}

/* A picture and a network's output whose rows go through other loops. */
struct way {
    enum sac_pixel_format format;
    enum sac_matte_form   form;
    bool                  classes; /* a map of them, no matte */
};

static void move_picture(const struct scene *s, int frame)
{
    const struct sac_format_info *info = sac_format_info_of(s->frame->format);
    const int                     pixel = info->step[0] * info->number_bytes;
    for (int y = 0; y < s->frame->height; y++)
        for (int x = 0; x < s->frame->width * pixel; x++)
            s->frame->plane[0][(size_t)y * s->frame->pitch_bytes[0] + (size_t)x] =
                (uint8_t)(50 + noise_at((x / pixel + 4 * frame) / 8, y / 8));
}

/* A hash of four frames of a moving picture. */
static uint64_t moving_hash(sac_device *dev, const struct sac_matte_rows *rows, struct way way)
{
    uint64_t     hash = 0;
    struct scene s = scene_of(dev, way.format, 333, 222, 111, 90, 3);
    s.style = (struct sac_matte_style){.classes = way.classes,
                                       .guide = 3,
                                       .guide_noise = 7,
                                       .smooth = 0.8f,
                                       .hole = 2,
                                       .low = 0.1f,
                                       .high = 0.9f};
    s.spec.form = way.form;
    s.spec.wanted[0] = 6;
    for (int frame = 0; frame < 4; frame++) {
        const void *const         tensors[] = {s.tensor};
        struct sac_cpu_matte_work m;
        move_picture(&s, frame);
        for (int i = 0; i < 111 * 90 * 3; i++)
            ((float *)s.tensor)[i] = (float)noise_at(i, frame) / 16 - 2;
        assert_sac_ok(sac_cpu_matte_begin(dev, &s.spec, &s.style, tensors, &s.job, &m));
        m.rows = rows ? rows : m.rows;
        for (int k = 0; k < SAC_CPU_MATTE_STEPS; k++)
            sac_device_parallel(dev, sac_cpu_matte_steps[k].pieces(&m), sac_cpu_matte_steps[k].run,
                                &m);
        sac_cpu_matte_end(&m);
        s.job.state.turn++;
        s.job.state.has_before = true;
        for (int y = 0; y < 222; y++)
            for (int x = 0; x < 333; x++)
                hash = (hash ^ (uint64_t)matte(&s, x, y)) * 1099511628211u;
    }
    finish(&s);
    return hash;
}

static void all_ways_agree(void **state)
{
    static const struct way ways[] = {
        {SAC_PIXEL_RGB24, SAC_MATTE_CLASS_LOGITS, false},
        {SAC_PIXEL_BGRA, SAC_MATTE_LOGIT, false},
        {SAC_PIXEL_P010, SAC_MATTE_SHARE, false},
        {SAC_PIXEL_NV12, SAC_MATTE_CLASS_SHARES, false},
        {SAC_PIXEL_NV12, SAC_MATTE_CLASS_LOGITS, true},
        {SAC_PIXEL_NV12, SAC_MATTE_LOGIT, true},
    };
    sac_device              *one = NULL;
    struct sac_device_params params = sac_device_params_default();
    params.threads = 1;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &params, &one));
    for (size_t i = 0; i < SAC_COUNT(ways); i++) {
        const uint64_t best = moving_hash(*state, NULL, ways[i]);
        assert_true(moving_hash(*state, &sac_matte_rows_ref, ways[i]) == best);
        assert_true(moving_hash(one, NULL, ways[i]) == best);
    }
    sac_device_unref(&one);
}

/* ---- what is refused ---- */

static sac_result refused(struct scene s, void (*spoil)(struct scene *s))
{
    spoil(&s);
    return try_run(&s);
}

static void no_cells(struct scene *s)
{
    s->spec.width = 0;
}

static void odd_numbers(struct scene *s)
{
    s->spec.value.dtype = SAC_U8;
}

static void low_over_high(struct scene *s)
{
    s->style.low = s->style.high;
}

static void much_smoothing(struct scene *s)
{
    s->style.smooth = 1;
}

static void no_noise(struct scene *s)
{
    s->style.guide = 2;
    s->style.guide_noise = 0;
}

static void no_memory(struct scene *s)
{
    s->job.state.memory = NULL;
}

static void no_image_and_nothing_before(struct scene *s)
{
    s->job.image = -1;
}

static void no_image_of_classes(struct scene *s)
{
    s->job.image = -1;
    s->job.state.has_before = true;
    s->style.classes = true;
}

static void summary_of_classes(struct scene *s)
{
    static struct sac_matte_summary summary;
    s->job.summary = &summary;
    s->style.classes = true;
}

static void strange_image(struct scene *s)
{
    s->job.image = -2;
    s->job.state.has_before = true;
}

static void onto_itself(struct scene *s)
{
    s->job.out = NULL;
}

static void no_way(struct scene *s)
{
    s->job.map.scale_x = NAN;
}

static void odd_crop(struct scene *s)
{
    s->job.crop.y1 = INFINITY;
}

static void refuses_what_does_not_fit(void **state)
{
    static const struct {
        void (*spoil)(struct scene *s);
        sac_result want;
    } cases[] = {{no_cells, SAC_ERR_UNSUPPORTED},  {odd_numbers, SAC_ERR_UNSUPPORTED},
                 {low_over_high, SAC_ERR_ARG},     {much_smoothing, SAC_ERR_ARG},
                 {no_noise, SAC_ERR_ARG},          {no_memory, SAC_ERR_ARG},
                 {onto_itself, SAC_ERR_ARG},       {no_way, SAC_ERR_ARG},
                 {odd_crop, SAC_ERR_ARG},          {no_image_and_nothing_before, SAC_ERR_ARG},
                 {strange_image, SAC_ERR_ARG},     {no_image_of_classes, SAC_ERR_ARG},
                 {summary_of_classes, SAC_ERR_ARG}};
    struct scene s = scene_of(*state, SAC_PIXEL_GRAY8, 8, 8, 8, 8, 1);
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        assert_sac_error(refused(s, cases[i].spoil), cases[i].want);
    sac_frame *shared = sac_frame_ref(s.job.out);
    assert_sac_error(try_run(&s), SAC_ERR_ARG);
    sac_frame_unref(&shared);
    struct sac_vision_ops        ops = *s.dev->ops->vision; /* a device without */
    struct sac_device_ops        table = *s.dev->ops;
    const struct sac_device_ops *own = s.dev->ops;
    ops.matte = NULL;
    table.vision = &ops;
    s.dev->ops = &table;
    const sac_result res = try_run(&s);
    s.dev->ops = own;
    assert_int_equal(res, SAC_ERR_UNSUPPORTED);
    finish(&s);
}

int main(void)
{
    sac_device             *dev = test_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_form_and_type, dev),
        cmocka_unit_test_prestate(numbers_that_are_none, dev),
        cmocka_unit_test_prestate(follows_the_reference, dev),
        cmocka_unit_test_prestate(only_the_crop_is_written, dev),
        cmocka_unit_test_prestate(letterbox_borders_are_no_picture, dev),
        cmocka_unit_test_prestate(ten_bits_as_eight, dev),
        cmocka_unit_test_prestate(edges_follow_luma, dev),
        cmocka_unit_test_prestate(small_gaps_close_and_wide_ones_stay, dev),
        cmocka_unit_test_prestate(shares_move_with_the_picture, dev),
        cmocka_unit_test_prestate(nothing_lags, dev),
        cmocka_unit_test(what_is_kept),
        cmocka_unit_test_prestate(a_frame_alone_takes_the_matte_along, dev),
        cmocka_unit_test_prestate(summaries, dev),
        cmocka_unit_test_prestate(flicker_falls, dev),
        cmocka_unit_test_prestate(a_new_stream_knows_nothing, dev),
        cmocka_unit_test_prestate(likeliest_class, dev),
        cmocka_unit_test_prestate(labels_are_not_blended, dev),
        cmocka_unit_test_prestate(any_size, dev),
        cmocka_unit_test_prestate(crops_outside_and_between, dev),
        cmocka_unit_test_prestate(all_ways_agree, dev),
        cmocka_unit_test_prestate(refuses_what_does_not_fit, dev),
    };
    const int failed = cmocka_run_group_tests_name("vision/matte", tests, NULL, NULL);
    sac_device_unref(&dev);
    return failed;
}
