/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at several scales and the maps put together from theirs: they lie where the geometry says,
 * and the CUDA device's numbers equal the CPU's bit by bit. */
#include <math.h>

#include "vision/scales.h"
#include "vision/vision.h"
#include "tests/gpu.h"
#include "tests/parity/bytes.h"
#include "tests/vision/frames.h"

enum { PICTURES = 6 };

struct subject {
    float                 scale[SAC_SCALES_MAX];
    int                   count, looks, width, height, pictures;
    struct sac_preprocess pre;
    struct sac_matte_spec net;
    struct sac_rect       whole[PICTURES];
    int16_t              *shares;
};

static size_t share_count(const struct subject *s)
{
    return (size_t)(s->pictures * s->looks * s->net.width * s->net.height);
}

static size_t map_count(const struct subject *s)
{
    return (size_t)(s->pictures * s->width * s->height);
}

/* Of a picture that is a part of a frame. */
static struct sac_rect rect(int least, int most)
{
    struct sac_rect r = {(float)test_between(0, 50), (float)test_between(0, 50), 0, 0};
    r.x1 = r.x0 + (float)test_between(least, most);
    r.y1 = r.y0 + (float)test_between(least, most);
    return r;
}

/* least: cells of the network's map, and pixels of a picture. */
static void subject_init(struct subject *s, int least)
{
    static const float scales[] = {0.25f, 0.5f, 0.7f, 1, 1.25f, 1.5f, 1.75f, 2};
    *s = (struct subject){.count = test_between(1, SAC_SCALES_MAX),
                          .pictures = test_between(1, PICTURES),
                          .pre = sac_preprocess_default()};
    for (int i = 0; i < s->count; i++)
        s->scale[i] = scales[test_between(0, (int)SAC_COUNT(scales) - 1)];
    s->pre.width = test_between(least, 120);
    s->pre.height = test_between(least, 120);
    s->pre.fit = (enum sac_fit)test_between(0, SAC_FIT_LETTERBOX_CENTRE);
    s->net = (struct sac_matte_spec){.width = test_between(least, 60),
                                     .height = test_between(least, 60),
                                     .input_width = s->pre.width,
                                     .input_height = s->pre.height};
    s->looks = sac_scales_looks(s->scale, s->count);
    sac_scales_map_size(s->scale, s->count, &s->net, &s->width, &s->height);
    for (int i = 0; i < s->pictures; i++)
        s->whole[i] = rect(least, 2000);
    s->shares = malloc(share_count(s) * sizeof *s->shares);
    assert_non_null(s->shares);
    for (size_t i = 0; i < share_count(s); i++)
        s->shares[i] = (int16_t)test_between(0, SAC_MATTE_ONE);
}

static float *maps_by(sac_device *dev, const struct subject *s)
{
    struct sac_scales  pictures[PICTURES];
    struct sac_buffer *shares = test_put(dev, s->shares, share_count(s) * sizeof(int16_t)),
                      *maps = test_room(dev, map_count(s) * sizeof(float));
    const struct sac_scale_maps spec = {.pictures = pictures,
                                        .looks = s->looks,
                                        .net_width = s->net.width,
                                        .net_height = s->net.height,
                                        .width = s->width,
                                        .height = s->height};
    for (int i = 0; i < s->pictures; i++)
        pictures[i] =
            sac_scales_of(s->scale, s->count, &s->pre, &s->net, &s->whole[i], s->width, s->height);
    assert_sac_ok(sac_scale_maps_run_on(dev, NULL, &spec, sac_buffer_data(shares), s->pictures,
                                        sac_buffer_data(maps)));
    float *out = test_get(dev, maps, map_count(s) * sizeof(float));
    sac_buffer_unref(&shares);
    sac_buffer_unref(&maps);
    return out;
}

/* ---- crops ---- */

/* They are as large as the scale says, reach from edge to edge, and neighbours overlap. */
static void crops_show_all_of_a_picture(void **state)
{
    (void)state;
    for (int k = 25; k <= 200; k++) {
        const float           scale = (float)k / 100;
        const int             n = sac_scale_crops(scale);
        const struct sac_rect whole = rect(100, 1000);
        const float           w = whole.x1 - whole.x0, h = whole.y1 - whole.y0;
        struct sac_rect       crop[SAC_SCALE_CROPS_MAX * SAC_SCALE_CROPS_MAX];
        assert_in_range(n, k <= 100 ? 1 : 2, k <= 100 ? 1 : SAC_SCALE_CROPS_MAX);
        sac_scales_look(&scale, 1, &whole, crop);
        for (int i = 0; i < n * n; i++) {
            assert_true(fabsf((crop[i].x1 - crop[i].x0) * scale - w) < 0.01f);
            assert_true(fabsf((crop[i].y1 - crop[i].y0) * scale - h) < 0.01f);
            if (i % n)
                assert_true(crop[i - 1].x1 - crop[i].x0 >= 0.249f * w / scale);
            if (i >= n)
                assert_true(crop[i - n].y1 - crop[i].y0 >= 0.249f * h / scale);
        }
        const struct sac_rect *last = &crop[n * n - 1];
        const float            past = k < 100 ? (1 / scale - 1) / 2 : 0;
        assert_true(fabsf(whole.x0 - past * w - crop[0].x0) < 0.01f);
        assert_true(fabsf(whole.y0 - past * h - crop[0].y0) < 0.01f);
        assert_true(fabsf(whole.x1 + past * w - last->x1) < 0.01f);
        assert_true(fabsf(whole.y1 + past * h - last->y1) < 0.01f);
        if (k == 100)
            assert_memory_equal(&crop[0], &whole, sizeof whole);
    }
}

/* ---- maps ---- */

/* Where a cell of a map lies in a picture, from 0 to 1. */
static double at_of(int cell, int cells, int input, float scale, float offset, float low,
                    float high)
{
    const double pixel = ((cell + 0.5) * input / cells - (double)offset) / (double)scale;
    return (pixel - (double)low) / ((double)high - (double)low);
}

/* The looks' maps show how far across or down each of their cells lies: so does the picture's. Near
 * its edges a coarse map has no more cells, and at the border between crops one that has fewer is
 * half a cell wrong: places may be off by a cell of the coarsest look. */
static void cells_lie_where_the_looks_show_them(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    for (int round = 0; round < 200; round++) {
        struct subject  s;
        struct sac_rect crop[SAC_SCALE_LOOKS_MAX];
        const bool      down = round % 2;
        int             checked = 0;
        subject_init(&s, 24);
        s.pictures = 1;
        sac_scales_look(s.scale, s.count, &s.whole[0], crop);
        const int                cells = s.net.width * s.net.height;
        const struct sac_rect    w = s.whole[0];
        const struct sac_fit_map own = sac_fit_map_of(&s.pre, &w);
        float                    least = 2;
        for (int i = 0; i < s.count; i++)
            least = fminf(least, s.scale[i]);
        for (int i = 0; i < s.looks * cells; i++) {
            const struct sac_fit_map m = sac_fit_map_of(&s.pre, &crop[i / cells]);
            const int                x = i % cells % s.net.width, y = i % cells / s.net.width;
            const double             across =
                             at_of(x, s.net.width, s.pre.width, m.scale_x, m.offset_x, w.x0, w.x1),
                         along = at_of(y, s.net.height, s.pre.height, m.scale_y, m.offset_y, w.y0,
                                       w.y1),
                         at = down ? along : across;
            s.shares[i] = (int16_t)lrint(fmin(fmax(at, 0), 1) * SAC_MATTE_ONE);
        }
        float *map = maps_by(cpu, &s);
        /* The part of the network's input that shows the picture. */
        const double shown = down ? (double)((w.y1 - w.y0) * own.scale_y) / s.pre.height
                                  : (double)((w.x1 - w.x0) * own.scale_x) / s.pre.width;
        const double cell = 1 / (shown * (down ? s.net.height : s.net.width) * (double)least);
        for (int i = 0; i < s.width * s.height; i++) {
            const double x = at_of(i % s.width, s.width, s.pre.width, own.scale_x, own.offset_x,
                                   w.x0, w.x1),
                         y = at_of(i / s.width, s.height, s.pre.height, own.scale_y, own.offset_y,
                                   w.y0, w.y1);
            const double want = down ? y : x, off = fabs((double)map[i] - want);
            const bool   inner = fmin(want, 1 - want) > cell;
            if (x < 0 || x > 1 || y < 0 || y > 1)
                continue;
            checked += inner;
            if (off > (inner ? 0.002 + 0.25 * cell : 0.002 + cell))
                fail_msg("round %d: %d scales from %g, %dx%d cells of %dx%d, fit %d, cell %d: %g "
                         "instead of %g",
                         round, s.count, (double)least, s.net.width, s.net.height, s.pre.width,
                         s.pre.height, (int)s.pre.fit, i, (double)map[i], want);
        }
        assert_true(checked > 0 || cell > 0.3);
        free(map);
        free(s.shares);
    }
    sac_device_unref(&cpu);
}

/* Each scale counts as much as any other, wherever its crops meet: to a hundredth where a picture
 * has 24 cells each way. However few they are, some crop counts everywhere. */
static void the_mean_is_that_of_the_scales(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    for (int round = 0; round < 60; round++) {
        struct subject s;
        double         want = 0, least = 1, most = 0;
        subject_init(&s, 1);
        const int cells = s.net.width * s.net.height;
        for (int i = 0, at = 0; i < s.count; i++) {
            const int16_t share = (int16_t)test_between(0, SAC_MATTE_ONE);
            const int     n = sac_scale_crops(s.scale[i]);
            want += share / (double)SAC_MATTE_ONE / s.count;
            least = fmin(least, share / (double)SAC_MATTE_ONE);
            most = fmax(most, share / (double)SAC_MATTE_ONE);
            for (int k = 0; k < n * n * cells; k++, at++)
                for (int p = 0; p < s.pictures; p++)
                    s.shares[p * s.looks * cells + at] = share;
        }
        float *map = maps_by(cpu, &s);
        for (int p = 0; p < s.pictures; p++) {
            const struct sac_rect    w = s.whole[p];
            const struct sac_fit_map m = sac_fit_map_of(&s.pre, &w);
            const float across = (w.x1 - w.x0) * m.scale_x, down = (w.y1 - w.y0) * m.scale_y;
            const bool  fine = across * (float)s.net.width >= 24 * (float)s.pre.width &&
                              down * (float)s.net.height >= 24 * (float)s.pre.height;
            for (int i = 0; i < s.width * s.height; i++) {
                const double x = at_of(i % s.width, s.width, s.pre.width, m.scale_x, m.offset_x,
                                       w.x0, w.x1),
                             y = at_of(i / s.width, s.height, s.pre.height, m.scale_y, m.offset_y,
                                       w.y0, w.y1);
                const double got = (double)map[p * s.width * s.height + i];
                if (x < 0 || x > 1 || y < 0 || y > 1)
                    continue;
                if (got < least - 0.001 || got > most + 0.001 || (fine && fabs(got - want) > 0.01))
                    fail_msg("round %d, cell %d of %dx%d: %g instead of %g", round, i, s.width,
                             s.height, got, want);
            }
        }
        free(map);
        free(s.shares);
    }
    sac_device_unref(&cpu);
}

/* Of the scale 1 alone a map is the network's own. */
static void one_scale_is_none(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    for (int round = 0; round < 60; round++) {
        struct subject s;
        subject_init(&s, 1);
        s.count = s.looks = 1;
        s.scale[0] = 1;
        sac_scales_map_size(s.scale, 1, &s.net, &s.width, &s.height);
        assert_int_equal(s.width, s.net.width);
        assert_int_equal(s.height, s.net.height);
        float *map = maps_by(cpu, &s);
        for (int p = 0; p < s.pictures; p++) {
            struct sac_matte_axis      x, y;
            const sac_frame            frame = {.width = 4096, .height = 4096};
            const struct sac_matte_job job = {
                .frame = &frame, .crop = s.whole[p], .map = sac_fit_map_of(&s.pre, &s.whole[p])};
            const size_t first = (size_t)(p * s.width * s.height);
            sac_matte_axes_of(&s.net, &job, &x, &y);
            for (int j = y.first; j < y.first + y.cells; j++)
                for (int i = x.first; i < x.first + x.cells; i++) {
                    const size_t at = first + (size_t)(j * s.width + i);
                    assert_int_equal(sac_matte_share(map[at]), s.shares[at]);
                }
        }
        free(map);
        free(s.shares);
    }
    sac_device_unref(&cpu);
}

static void the_gpu_equals_the_cpu(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (int round = 0; round < gpu_rounds(60); round++) {
        struct subject s;
        subject_init(&s, 1);
        float *want = maps_by(cpu, &s), *got = maps_by(gpu, &s);
        assert_memory_equal(want, got, map_count(&s) * sizeof(float));
        free(want);
        free(got);
        free(s.shares);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops_show_all_of_a_picture),
        cmocka_unit_test(cells_lie_where_the_looks_show_them),
        cmocka_unit_test(the_mean_is_that_of_the_scales),
        cmocka_unit_test(one_scale_is_none),
        cmocka_unit_test(the_gpu_equals_the_cpu),
    };
    return cmocka_run_group_tests_name("parity/scales", tests, NULL, NULL);
}
