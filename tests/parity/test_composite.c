/* SPDX-License-Identifier: Apache-2.0 */
/* Composites of the CUDA device against the CPU's, which tests/vision/test_composite.c holds
 * against the formulas: equal to the last bit. */
#include <stdio.h>

#include "device/format.h"
#include "tests/gpu.h"
#include "tests/vision/frames.h"
#include "vision/composite.h"
#include "vision/packing.h"

static sac_device *cpu, *gpu;

static void open_both(void)
{
    gpu = gpu_open(NULL);
    cpu = test_device();
}

static void close_both(void)
{
    sac_device_unref(&cpu);
    sac_device_unref(&gpu);
}

/* ---- frames on both ---- */

/* Of the colours of another one, with rubbish in it. */
static sac_frame *like(const sac_frame *f, enum sac_pixel_format format)
{
    sac_frame *out = test_frame(cpu, format, f->width, f->height);
    out->matrix = f->matrix;
    out->range = f->range;
    test_fill(out, 0, 255, 0, 255);
    return out;
}

static sac_frame *there(const sac_frame *f)
{
    return test_lying(gpu, f, SAC_UPRIGHT);
}

static void compare(const sac_frame *want, const sac_frame *far, const char *what)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    sac_frame              *got = test_frame(cpu, want->format, want->width, want->height);
    const int               n = sac_frame_planes(want->format, want->width, want->height, planes);
    assert_sac_ok(sac_frame_copy(far, got));
    for (int p = 0; p < n; p++)
        for (int y = 0; y < planes[p].rows; y++) {
            const uint8_t *a = want->plane[p] + (size_t)y * want->pitch_bytes[p];
            const uint8_t *b = got->plane[p] + (size_t)y * got->pitch_bytes[p];
            for (size_t x = 0; x < planes[p].row_bytes; x++)
                if (a[x] != b[x])
                    fail_msg("%s: plane %d, row %d, byte %zu is %d, the CPU has %d", what, p, y, x,
                             b[x], a[x]);
        }
    sac_frame_unref(&got);
}

/* ---- one composite ---- */

/* Mostly of 0 and 255 in blobs, with numbers in between; classes are few. */
static void fill_matte(enum sac_composite_kind kind, sac_frame *matte)
{
    const int blob = test_between(1, 40), most = test_between(0, 255);
    test_fill(matte, 0, 255, 0, 0);
    for (int y = 0; y < matte->height; y++)
        for (int x = 0; x < matte->width; x++) {
            uint8_t *m = matte->plane[0] + (size_t)y * matte->pitch_bytes[0] + x;
            if (kind == SAC_COMPOSITE_CLASSES)
                *m = *m < most ? (uint8_t)(x / blob + y / blob) : *m % 7;
            else if (*m < most)
                *m = (x / blob + y / blob) % 2 ? 255 : 0;
        }
}

static enum sac_pixel_format any_output(enum sac_pixel_format frame)
{
    const enum sac_pixel_format formats[] = {frame, SAC_PIXEL_I420, SAC_PIXEL_NV12};
    return formats[sac_is_yuv(frame) ? test_between(0, 2) : 0];
}

static struct sac_composite_job any_job(enum sac_composite_kind kind)
{
    struct sac_composite_job job = {.kind = kind, .strength = (float)test_between(0, 100) / 100};
    job.colours = test_between(0, 4) ? test_between(0, 5) : SAC_COMPOSITE_COLOURS_MAX;
    for (int i = 0; i < SAC_COMPOSITE_COLOURS_MAX; i++)
        job.colour[i] = sac_colour_of_id(test_between(0, 23));
    return job;
}

/* The GPU's frame lies as its decoder may have stored it. */
static void run_case(enum sac_composite_kind kind, enum sac_pixel_format format, int width,
                     int height)
{
    const enum sac_orientation lies = test_orientation();
    struct sac_composite_job   job = any_job(kind), far = job;
    sac_frame                 *frame = test_frame(cpu, format, width, height), *far_frame = NULL;
    frame->matrix = (enum sac_colour_matrix)test_between(0, 2);
    frame->range = (enum sac_colour_range)test_between(0, 1);
    test_fill(frame, 0, 255, 0, 255);
    sac_frame *matte = test_frame(cpu, SAC_PIXEL_GRAY8, width, height), *far_matte = NULL;
    fill_matte(kind, matte);
    sac_frame *background = test_between(0, 1) ? like(frame, format) : NULL;
    sac_frame *far_background = background ? there(background) : NULL;
    const bool in_place = lies == SAC_UPRIGHT && test_between(0, 1);
    sac_frame *out = in_place ? frame : like(frame, any_output(format));
    far_frame = test_lying(gpu, frame, lies);
    far_matte = there(matte);
    sac_frame *far_out = in_place ? far_frame : there(out);
    job.frame = frame, job.matte = matte, job.background = background, job.out = out;
    far.frame = far_frame, far.matte = far_matte, far.background = far_background,
    far.out = far_out;
    assert_sac_ok(sac_composite_run_on(cpu, NULL, &job));
    assert_sac_ok(sac_composite_run_on(gpu, NULL, &far));
    char what[200];
    snprintf(what, sizeof what, "kind %d, %s %dx%d, stored %s -> %s%s", kind,
             sac_pixel_format_name(format), width, height, sac_orientation_name(lies),
             sac_pixel_format_name(out->format), background ? ", background" : "");
    compare(out, far_out, what);
    if (!in_place) {
        sac_frame_unref(&out);
        sac_frame_unref(&far_out);
    }
    sac_frame *all[] = {frame, far_frame, matte, far_matte, background, far_background};
    for (size_t i = 0; i < SAC_COUNT(all); i++)
        sac_frame_unref(&all[i]);
}

static void any_frame(void **state)
{
    (void)state;
    open_both();
    for (int kind = SAC_COMPOSITE_BACKGROUND; kind <= SAC_COMPOSITE_PAINT; kind++)
        for (int format = SAC_PIXEL_NONE + 1; format < SAC_PIXEL_FORMAT_COUNT; format++)
            for (int round = 0; round < gpu_rounds(16); round++)
                run_case((enum sac_composite_kind)kind, (enum sac_pixel_format)format,
                         test_between(1, round % 4 ? 90 : 700), test_between(1, 60));
    close_both();
}

/* A pixel; a row of pixels; more columns than a tile's; where tiles and runs end. */
static void sizes_where_something_ends(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1},    {2, 2},     {1, 9},    {9, 1},
                                   {8, 2},    {7, 3},     {256, 16}, {257, 17},
                                   {255, 15}, {4096, 16}, {3, 1025}, {264, 33}};
    open_both();
    for (size_t i = 0; i < SAC_COUNT(sizes); i++)
        for (int kind = SAC_COMPOSITE_BACKGROUND; kind <= SAC_COMPOSITE_PAINT; kind++)
            for (int format = SAC_PIXEL_NONE + 1; format < SAC_PIXEL_FORMAT_COUNT; format++)
                if (gpu_rounds(10) == 10 || (kind + format + (int)i) % 2)
                    run_case((enum sac_composite_kind)kind, (enum sac_pixel_format)format,
                             sizes[i][0], sizes[i][1]);
    close_both();
}

/* Larger pictures have wider outlines. */
static void wide_outlines(void **state)
{
    (void)state;
    open_both();
    run_case(SAC_COMPOSITE_TINT, SAC_PIXEL_NV12, 1081, 1083);
    run_case(SAC_COMPOSITE_TINT, SAC_PIXEL_GRAY8, 1921, 1803);
#ifndef SAC_EMULATED_GPU /* which is slow */
    for (int side = 2200; side <= 5100; side += 700)
        run_case(SAC_COMPOSITE_TINT, SAC_PIXEL_NV12, side + 1, side);
#endif
    close_both();
}

/* A frame of one number, of which the whole window of most pixels is inside or outside. */
static void plain_mattes(void **state)
{
    (void)state;
    open_both();
    for (int value = 0; value < 256; value += 51) {
        struct sac_composite_job job = any_job(SAC_COMPOSITE_TINT), far = job;
        sac_frame *frame = test_frame(cpu, SAC_PIXEL_NV12, 300, 40), *far_frame = NULL,
                  *matte = test_frame(cpu, SAC_PIXEL_GRAY8, 300, 40), *far_matte = NULL;
        test_fill(frame, 0, 255, 0, 255);
        test_fill(matte, value, value, 0, 0);
        matte->plane[0][20 * matte->pitch_bytes[0] + 255] ^= 0x80;
        far_frame = there(frame);
        far_matte = there(matte);
        job.frame = job.out = frame, job.matte = matte;
        far.frame = far.out = far_frame, far.matte = far_matte;
        assert_sac_ok(sac_composite_run_on(cpu, NULL, &job));
        assert_sac_ok(sac_composite_run_on(gpu, NULL, &far));
        compare(frame, far_frame, "a plain matte");
        sac_frame_unref(&frame);
        sac_frame_unref(&far_frame);
        sac_frame_unref(&matte);
        sac_frame_unref(&far_matte);
    }
    close_both();
}

/* ---- what is made of composites ---- */

/* Parts of frames, whose planes begin anywhere. */
static void packed(void **state)
{
    (void)state;
    static const int widths[] = {40, 92, 248};
    open_both();
    for (size_t i = 0; i < SAC_COUNT(widths); i++)
        for (int fisheye = 0; fisheye < 2; fisheye++)
            for (int sbs = 0; sbs < 2; sbs++) {
                const int          height = widths[i] / (sbs ? 2 : 1);
                struct sac_packing packing;
                assert_sac_ok(sac_packing_init(
                    test_context(), fisheye ? SAC_PACKING_FISHEYE : SAC_PACKING_FLAT,
                    sbs ? SAC_PACKING_SBS : SAC_PACKING_MONO, widths[i], height, &packing));
                sac_frame *frame = test_frame(cpu, SAC_PIXEL_NV12, widths[i], height),
                          *matte = test_frame(cpu, SAC_PIXEL_GRAY8, widths[i], height),
                          *out = test_frame(cpu, SAC_PIXEL_NV12, packing.width, packing.height);
                test_fill(frame, 0, 255, 0, 255);
                test_fill(out, 0, 255, 0, 255);
                fill_matte(SAC_COMPOSITE_PAINT, matte);
                sac_frame *far_frame = there(frame), *far_matte = there(matte),
                          *far_out = there(out);
                assert_sac_ok(sac_packing_write_on(NULL, &packing, frame, matte, out));
                assert_sac_ok(sac_packing_write_on(NULL, &packing, far_frame, far_matte, far_out));
                compare(out, far_out, "packed");
                sac_frame *all[] = {frame, matte, out, far_frame, far_matte, far_out};
                for (size_t k = 0; k < SAC_COUNT(all); k++)
                    sac_frame_unref(&all[k]);
            }
    close_both();
}

/* Out of focus, which is made of conversions: the emulated ones are the CPU's, of upright frames.
 */
static void blurred(void **state)
{
    (void)state;
    open_both();
#ifdef SAC_EMULATED_GPU
    const bool upright = true;
#else
    const bool upright = false;
#endif
    for (int radius = 0; radius < 40; radius += 13)
        for (int format = SAC_PIXEL_NV12; format <= SAC_PIXEL_I420; format++) {
            sac_frame *frame = test_frame(cpu, (enum sac_pixel_format)format, 203, 117);
            test_fill(frame, 0, 255, 0, 255);
            sac_frame *out = like(frame, frame->format),
                      *far_frame =
                          test_lying(gpu, frame, upright ? SAC_UPRIGHT : test_orientation()),
                      *far_out = there(out);
            assert_sac_ok(sac_frame_blur_on(NULL, frame, radius, out));
            assert_sac_ok(sac_frame_blur_on(NULL, far_frame, radius, far_out));
            compare(out, far_out, "blurred");
            sac_frame *all[] = {frame, out, far_frame, far_out};
            for (size_t k = 0; k < SAC_COUNT(all); k++)
                sac_frame_unref(&all[k]);
        }
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_frame),     cmocka_unit_test(sizes_where_something_ends),
        cmocka_unit_test(wide_outlines), cmocka_unit_test(plain_mattes),
        cmocka_unit_test(packed),        cmocka_unit_test(blurred),
    };
    return cmocka_run_group_tests_name("parity/composite", tests, NULL, NULL);
}
