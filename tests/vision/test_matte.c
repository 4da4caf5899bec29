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
    };
    const int failed = cmocka_run_group_tests_name("vision/matte", tests, NULL, NULL);
    sac_device_unref(&dev);
    return failed;
}
