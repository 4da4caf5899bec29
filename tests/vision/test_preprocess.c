/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "vision/fit.h"
#include "tests/vision/frames.h"

/* Convert to RGB first, then resize pixel by pixel: the definition that the fast way must meet. */
static void oracle_pixel(const sac_frame *f, const struct sac_rect *crop, int width, int height,
                         enum sac_filter filter, int x, int y, double rgb[3])
{
    double step_x = ((double)crop->x1 - crop->x0) / width,
           step_y = ((double)crop->y1 - crop->y0) / height;
    double area_x = filter == SAC_FILTER_AREA && step_x > 1,
           area_y = filter == SAC_FILTER_AREA && step_y > 1;
    double left = crop->x0 + x * step_x, top = crop->y0 + y * step_y;
    double from_x = area_x ? left : left + step_x / 2 - 0.5,
           from_y = area_y ? top : top + step_y / 2 - 0.5;
    double to_x = area_x ? left + step_x : from_x + 1, to_y = area_y ? top + step_y : from_y + 1;
    double total = 0;
    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int sy = (int)floor(from_y); sy < to_y; sy++)
        for (int sx = (int)floor(from_x); sx < to_x; sx++) {
            /* Bilinear is the overlap of a box of one pixel with the grid, area that of a larger
             * one. */
            double w = fmax(0, fmin(sx + 1, to_x) - fmax(sx, from_x)) *
                       fmax(0, fmin(sy + 1, to_y) - fmax(sy, from_y));
            double one[3];
            test_rgb(f, sx, sy, one);
            total += w;
            for (int c = 0; c < 3; c++)
                rgb[c] += w * one[c];
        }
    for (int c = 0; c < 3; c++)
        rgb[c] /= total;
}

static double half_to_double(uint16_t h)
{
    int    exponent = h >> 10 & 31;
    double mantissa = h & 1023;
    double v = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return h & 0x8000 ? -v : v;
}

static double element(const struct sac_preprocess *pre, const void *data, int image, int x, int y,
                      int c)
{
    size_t plane = (size_t)pre->width * (size_t)pre->height;
    size_t pixel = (size_t)y * (size_t)pre->width + (size_t)x;
    size_t at =
        (size_t)image * plane * 3 +
        (pre->layout == SAC_TENSOR_LAYOUT_NCHW ? (size_t)c * plane + pixel : pixel * 3 + (size_t)c);
    if (pre->dtype == SAC_F32)
        return ((const float *)data)[at];
    return pre->dtype == SAC_F16 ? half_to_double(((const uint16_t *)data)[at])
                                 : ((const uint8_t *)data)[at];
}

static void check_image(const struct sac_preprocess *pre, const struct sac_preprocess_job *job,
                        const void *data, int image)
{
    struct sac_rect    crop = sac_job_crop(job);
    struct sac_fit_box box = sac_fit_box_of(pre, &crop);
    /* uint8 is rounded; float16 has 11 bits; the rest is the weights' 14 bits and the samples' 7 */
    double tolerance = pre->dtype == SAC_U8 ? 0.55 : pre->dtype == SAC_F16 ? 0.15 : 0.04;
    for (int y = 0; y < pre->height; y++)
        for (int x = 0; x < pre->width; x++) {
            double rgb[3];
            bool   inside =
                x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
            if (inside)
                oracle_pixel(job->frame, &crop, box.width, box.height, pre->filter, x - box.x,
                             y - box.y, rgb);
            for (int c = 0; c < 3; c++) {
                double want =
                    inside ? rgb[pre->order == SAC_ORDER_BGR ? 2 - c : c] : (double)pre->fill[c];
                double got = element(pre, data, image, x, y, c);
                if (pre->dtype != SAC_U8)
                    got = got / (double)pre->scale[c] + (double)pre->mean[c];
                if (fabs(got - want) > tolerance)
                    fail_msg(
                        "%s %dx%d -> %dx%d fit %d filter %d dtype %s at %d,%d,%d: %f, expected %f",
                        sac_pixel_format_name(job->frame->format), job->frame->width,
                        job->frame->height, pre->width, pre->height, pre->fit, pre->filter,
                        sac_dtype_name(pre->dtype), x, y, c, got, want);
            }
        }
}

static sac_tensor *run(sac_device *dev, const struct sac_preprocess *pre,
                       const struct sac_preprocess_job *jobs, int n)
{
    struct sac_tensor_desc desc = sac_preprocess_desc(pre, n);
    sac_tensor            *t = NULL;
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    assert_sac_ok(sac_preprocess_run(dev, pre, jobs, n, t));
    return t;
}

/* Colours that stay inside the RGB cube: outside it the two orders differ, as rows.h says. */
static sac_frame *random_frame(sac_device *dev)
{
    bool       tiny = test_between(0, 4) == 0;
    sac_frame *f = test_frame(dev, test_any_format(), test_between(1, tiny ? 3 : 150),
                              test_between(1, tiny ? 3 : 90));
    f->matrix = (enum sac_colour_matrix)test_between(0, 2);
    f->range = (enum sac_colour_range)test_between(0, 1);
    test_fill(f, 90, 160, 108, 148);
    return f;
}

static void matches_convert_then_resize(void **state)
{
    (void)state;
    enum { IMAGES = 3 };
    sac_device *dev = test_device();
    for (int round = 0; round < 150; round++) {
        struct sac_preprocess     pre = test_random_preprocess(70, 50);
        struct sac_preprocess_job jobs[IMAGES];
        for (int i = 0; i < IMAGES; i++) {
            jobs[i].frame = random_frame(dev);
            jobs[i].crop = test_random_crop(jobs[i].frame);
        }
        sac_tensor *t = run(dev, &pre, jobs, IMAGES);
        for (int i = 0; i < IMAGES; i++) {
            check_image(&pre, &jobs[i], sac_tensor_data(t), i);
            sac_frame_unref((sac_frame **)&jobs[i].frame);
        }
        sac_tensor_unref(&t);
    }
    sac_device_unref(&dev);
}

/* What OpenCV makes of the same pictures: rounded to 8 bit, with weights of 11 bits: one level. */
static void agrees_with_opencv(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    FILE       *file = fopen(TEST_SOURCE_DIR "/opencv.bin", "rb");
    int32_t     head[5];
    int         cases = 0;
    assert_non_null(file);
    for (; fread(head, sizeof head, 1, file) == 1; cases++) {
        sac_frame            *frame = test_frame(dev, SAC_PIXEL_RGB24, head[0], head[1]);
        struct sac_preprocess pre = sac_preprocess_default();
        pre.fit = SAC_FIT_STRETCH;
        pre.width = head[2];
        pre.height = head[3];
        pre.filter = head[4] ? SAC_FILTER_AREA : SAC_FILTER_BILINEAR;
        pre.layout = SAC_TENSOR_LAYOUT_NHWC;
        for (int c = 0; c < 3; c++)
            pre.scale[c] = 1;
        for (int y = 0; y < head[1]; y++)
            assert_int_equal(fread(frame->plane[0] + (size_t)y * frame->pitch_bytes[0], 3,
                                   (size_t)head[0], file),
                             head[0]);
        struct sac_preprocess_job job = {.frame = frame};
        sac_tensor               *t = run(dev, &pre, &job, 1);
        const float              *ours = sac_tensor_data(t);
        for (int i = 0; i < head[2] * head[3] * 3; i++) {
            int theirs = fgetc(file);
            if (fabsf(ours[i] - (float)theirs) > 1.0f)
                fail_msg("case %d, number %d: %f, OpenCV %d", cases, i, (double)ours[i], theirs);
        }
        sac_tensor_unref(&t);
        sac_frame_unref(&frame);
    }
    assert_int_equal(cases, 8);
    fclose(file);
    sac_device_unref(&dev);
}

static void fits_as_the_makers_of_the_models_do(void **state)
{
    (void)state;
    struct sac_preprocess pre = sac_preprocess_default();
    struct sac_rect       vga = {0, 0, 768, 576}, tall = {10, 20, 110, 320};
    pre.width = pre.height = 416;
    pre.fit = SAC_FIT_LETTERBOX_TOPLEFT;
    struct sac_fit_box box = sac_fit_box_of(&pre, &vga);
    assert_int_equal(box.width, 416);
    assert_int_equal(box.height, 312);
    assert_int_equal(box.y, 0);
    pre.fit = SAC_FIT_LETTERBOX_CENTRE;
    box = sac_fit_box_of(&pre, &vga);
    assert_int_equal(box.y, 52);
    box = sac_fit_box_of(&pre, &tall); /* 416 / 300 * 100 = 138.67 */
    assert_int_equal(box.width, 139);
    assert_int_equal(box.x, 138);
    struct sac_fit_map map = sac_fit_map_of(&pre, &tall);
    assert_float_equal(10 * map.scale_x + map.offset_x, 138, 1e-3);
    assert_float_equal(110 * map.scale_x + map.offset_x, 138 + 139, 1e-3);
    assert_float_equal(320 * map.scale_y + map.offset_y, 416, 1e-3);
}

static void a_crop_of_any_box_has_a_pixel_of_the_frame(void **state)
{
    (void)state;
    static const float edges[] = {NAN, -INFINITY, -1e9f, -3, 0, 7.5f, 63, 64, 90, 1e9f, INFINITY};
    enum { EDGES = sizeof edges / sizeof *edges };
    for (int i = 0; i < EDGES * EDGES * EDGES * EDGES; i++) {
        const struct sac_detection box = {
            .x0 = edges[i % EDGES],
            .y0 = edges[i / EDGES % EDGES],
            .x1 = edges[i / EDGES / EDGES % EDGES],
            .y1 = edges[i / EDGES / EDGES / EDGES],
        };
        const struct sac_rect crop = sac_crop_of_box(&box, 64, 48);
        assert_true(crop.x0 >= 0 && crop.x0 + 1 <= crop.x1 && crop.x1 <= 64);
        assert_true(crop.y0 >= 0 && crop.y0 + 1 <= crop.y1 && crop.y1 <= 48);
    }
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    sac_device               *dev = test_device();
    sac_frame                *frame = test_frame(dev, SAC_PIXEL_NV12, 8, 8);
    struct sac_preprocess     pre = sac_preprocess_default();
    struct sac_preprocess_job job = {.frame = frame};
    test_fill(frame, 0, 255, 0, 255);
    pre.width = pre.height = 4;
    sac_tensor *t = run(dev, &pre, &job, 1);
    assert_sac_error(sac_preprocess_run(dev, &pre, &job, 2, t), SAC_ERR_ARG);
    pre.width = 5;
    assert_sac_error(sac_preprocess_run(dev, &pre, &job, 1, t), SAC_ERR_ARG);
    pre.width = 0;
    assert_sac_error(sac_preprocess_run(dev, &pre, &job, 1, t), SAC_ERR_ARG);
    pre.width = 4;
    pre.dtype = SAC_I64;
    assert_sac_error(sac_preprocess_run(dev, &pre, &job, 1, t), SAC_ERR_ARG);
    pre.dtype = SAC_F32;
    job.crop = (struct sac_rect){0, 0, NAN, 1};
    assert_sac_error(sac_preprocess_run(dev, &pre, &job, 1, t), SAC_ERR_ARG);
    job.crop = (struct sac_rect){0, 0, 1e9f, 1};
    assert_sac_error(sac_preprocess_run(dev, &pre, &job, 1, t), SAC_ERR_ARG);
    job = (struct sac_preprocess_job){.frame = NULL};
    assert_sac_error(sac_preprocess_run(dev, &pre, &job, 1, t), SAC_ERR_ARG);
    assert_sac_ok(sac_preprocess_run(dev, &pre, NULL, 0, t));
    sac_tensor_unref(&t);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

/* The frame path takes its memory from the pool: nothing new after the first run. */
static void allocates_only_once(void **state)
{
    (void)state;
    sac_device               *dev = test_device();
    sac_frame                *frame = test_frame(dev, SAC_PIXEL_NV12, 320, 240);
    struct sac_preprocess     pre = sac_preprocess_default();
    struct sac_preprocess_job job = {.frame = frame};
    struct sac_pool_stats     first, later;
    test_fill(frame, 0, 255, 0, 255);
    pre.width = pre.height = 96;
    sac_tensor *t = run(dev, &pre, &job, 1);
    sac_device_pool_stats(dev, &first);
    for (int i = 0; i < 10; i++)
        assert_sac_ok(sac_preprocess_run(dev, &pre, &job, 1, t));
    sac_device_pool_stats(dev, &later);
    assert_int_equal(first.allocations, later.allocations);
    sac_tensor_unref(&t);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_convert_then_resize),
        cmocka_unit_test(agrees_with_opencv),
        cmocka_unit_test(fits_as_the_makers_of_the_models_do),
        cmocka_unit_test(a_crop_of_any_box_has_a_pixel_of_the_frame),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(allocates_only_once),
    };
    return cmocka_run_group_tests_name("vision/preprocess", tests, NULL, NULL);
}
