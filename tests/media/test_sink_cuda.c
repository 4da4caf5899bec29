/* SPDX-License-Identifier: Apache-2.0 */
/* Frames drawn on a GPU and encoded on the host: the files are the same as the CPU's, and every
 * copied byte is in the ledger. Compiled with TEST_APART for the device of apart.h instead of a
 * GPU; else with the clips of packaging/clips. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <saccade/image.h>
#include <saccade/sink.h>

#include "pipeline/canvas.h"
#include "tests/gpu.h"
#include "tests/media/apart.h"
#include "tests/media/clip.h"

static sac_device *cpu, *gpu;

#ifdef TEST_APART
static sac_device *open_other(const struct sac_device_params *params)
{
    return apart_open(params);
}

/* Clips made here, which the CPU decodes. */
static const char *clip_path(const char *name)
{
    const char *path = scratch("%s.avi", name);
    const bool  odd = strstr(name, "cropped") != NULL;
    clip_write(path,
               &(struct clip){.frames = 30, .width = odd ? 414 : 320, .height = odd ? 310 : 192});
    return path;
}
#else
static sac_device *open_other(const struct sac_device_params *params)
{
    return gpu_open(params);
}

static const char *clip_path(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "clips/%s", name);
    if (access(path, R_OK) != 0)
        fail_msg("no clip '%s'; packaging/clips makes it", path);
    return path;
}
#endif

static int open_devices(void **state)
{
    (void)state;
    if (sac_device_open(test_context(), "cpu", NULL, &cpu) != SAC_OK)
        return -1;
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
    scratch_remove();
    return 0;
}

static void need_gpu(void)
{
    if (!gpu)
        gpu = open_other(NULL); /* skips the test where there is none */
}

static const struct sac_shape shapes[] = {
    {.kind = SAC_SHAPE_BOX,
     .rect = {20.5f, 30, 140, 200},
     .colour = {255, 40, 0},
     .alpha = 1,
     .thickness = 3},
    {.kind = SAC_SHAPE_FILL, .rect = {60, 80, 130, 99}, .colour = {0, 90, 255}, .alpha = 0.6f},
    {.kind = SAC_SHAPE_LINE,
     .rect = {5, 5, 300, 180},
     .colour = {20, 200, 20},
     .alpha = 0.7f,
     .thickness = 2},
    {.kind = SAC_SHAPE_TEXT,
     .rect = {62, 81, 130, 99},
     .colour = {255, 255, 255},
     .alpha = 1,
     .thickness = 16,
     .text = "7 person"},
};

/* The frame with the shapes on it, on the CPU. */
static sac_frame *drawn_on_cpu(const sac_frame *frame)
{
    sac_frame *copy = NULL;
    assert_sac_ok(sac_frame_create(cpu, frame, &copy));
    assert_sac_ok(sac_frame_copy(frame, copy));
    assert_sac_ok(sac_frame_draw(copy, shapes, (int)SAC_COUNT(shapes)));
    return copy;
}

/* Every frame of a clip into a video, drawn on or not; how many. One thread: so the bytes are
 * always the same. */
static int write_video(sac_device *dev, const char *clip, const char *path, bool draw,
                       sac_result *res)
{
    struct sac_source_params source = sac_source_params_default();
    struct sac_sink_params   params = sac_sink_params_default();
    struct sac_canvas        canvas = {0};
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    sac_frame               *frame = NULL;
    int                      frames = 0;
    params.threads = 1;
    source.decode_threads = 1;
#ifdef TEST_APART
    source.decode = SAC_DECODE_CPU;
#endif
    *res = sac_source_open(dev, clip, &source, &src);
    if (*res == SAC_OK)
        *res = sac_sink_create(dev, path, src, &params, &sink);
    while (*res == SAC_OK && sac_source_read_wait(src, &frame) == SAC_OK) {
        sac_frame *own = NULL, *out = frame;
        if (draw && dev == gpu)
            *res = sac_canvas_draw(&canvas, frame, shapes, (int)SAC_COUNT(shapes), &out);
        else if (draw)
            own = out = drawn_on_cpu(frame);
        if (*res == SAC_OK)
            *res = sac_sink_write_wait(sink, out);
        sac_frame_unref(&own);
        sac_frame_unref(&frame);
        frames++;
    }
    if (*res == SAC_OK)
        *res = sac_sink_finish(sink);
    sac_sink_destroy(&sink);
    sac_canvas_finish(&canvas);
    sac_source_close(&src);
    return frames;
}

static struct sac_ledger_entry counted(const struct sac_ledger *before, enum sac_copy_reason reason)
{
    struct sac_ledger now;
    sac_device_ledger(gpu, &now);
    return (struct sac_ledger_entry){now.reason[reason].calls - before->reason[reason].calls,
                                     now.reason[reason].bytes - before->reason[reason].bytes};
}

static void assert_same_bytes(const char *a, const char *b)
{
    size_t   na, nb;
    uint8_t *x = file_load(a, &na), *y = file_load(b, &nb);
    bool     same = na == nb && memcmp(x, y, na) == 0;
    free(x);
    free(y);
    if (!same)
        fail_msg("%s (%zu bytes) is not %s (%zu bytes)", a, na, b, nb);
}

static void writes_what_the_cpu_writes(void **state)
{
    (void)state;
    need_gpu();
    static const char *const clips[] = {"people_h264.mp4", "sizes.h264", "cropped_h264.mp4"};
    for (size_t i = 0; i < 2 * SAC_COUNT(clips); i++) {
        const bool        draw = i % 2;
        struct sac_ledger before;
        sac_result        res;
        const char       *here = scratch("here.mp4"), *there = scratch("there.mp4");
        sac_device_ledger(gpu, &before);
        int frames = write_video(gpu, clip_path(clips[i / 2]), there, draw, &res);
        assert_sac_ok(res);
        assert_int_equal(write_video(cpu, clip_path(clips[i / 2]), here, draw, &res), frames);
        assert_sac_ok(res);
        print_message("%s, %s: %d frames, %.1f MB came down\n", clips[i / 2],
                      draw ? "drawn on" : "as it is", frames,
                      (double)counted(&before, SAC_COPY_OVERLAY).bytes * 1e-6);
        assert_same_bytes(there, here);
        assert_int_equal(counted(&before, SAC_COPY_OVERLAY).calls, 3 * frames); /* a plane each */
        assert_int_equal(counted(&before, SAC_COPY_DRAW).calls, draw ? frames : 0);
        assert_int_equal(counted(&before, SAC_COPY_FRAME_DOWNLOAD).calls, 0);
#ifndef TEST_APART
        assert_int_equal(counted(&before, SAC_COPY_FRAME_UPLOAD).calls, 0);
#endif
    }
}

static void ten_bits_become_eight(void **state)
{
    (void)state;
    need_gpu();
    sac_result  res;
    const char *there = scratch("ten.mp4");
    int         frames = write_video(gpu, clip_path("people_hevc10.mkv"), there, true, &res);
    assert_sac_ok(res);
    assert_int_equal(frames, 30);
}

static void strict_mode_refuses_a_video(void **state)
{
    (void)state;
    need_gpu();
    struct sac_device_params params = sac_device_params_default();
    sac_device              *usual = gpu;
    sac_result               res;
    char                     why[512];
    params.zero_copy_strict = 1;
    gpu = open_other(&params);
    write_video(gpu, clip_path("people_h264.mp4"), scratch("no.mp4"), true, &res);
    assert_int_equal(res, SAC_ERR_COPY);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "overlay-download"));
    sac_device_unref(&gpu);
    gpu = usual;
}

static void leaves_nothing_behind(void **state)
{
    (void)state;
    need_gpu();
    struct sac_pool_stats before, after;
    sac_result            res;
    sac_device_pool_stats(gpu, &before);
    for (int i = 0; i < 3; i++)
        write_video(gpu, clip_path("people_h264.mp4"), scratch("again.mp4"), true, &res);
    sac_device_pool_stats(gpu, &after);
    assert_int_equal(after.bytes_live, before.bytes_live);
}

static void write_picture(const char *path, int shade)
{
    enum { WIDTH = 160, HEIGHT = 96 };
    static unsigned char rgb[HEIGHT][WIDTH][3];
    FILE                *file = fopen(path, "wb");
    assert_non_null(file);
    memset(rgb, shade, sizeof rgb);
    fprintf(file, "P6\n%d %d\n255\n", WIDTH, HEIGHT);
    assert_int_equal(fwrite(rgb, 1, sizeof rgb, file), sizeof rgb);
    assert_int_equal(fclose(file), 0);
}

/* The first frame may come long after the first ones of other streams. */
static void frames_take_no_memory_that_opening_did_not(void **state)
{
    (void)state;
    need_gpu();
    struct sac_source_params source = sac_source_params_default();
    struct sac_pool_stats    before, after;
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    sac_frame               *frame = NULL;
    for (int i = 0; i < 2; i++)
        write_picture(scratch("rgb%d.ppm", i), 40 + 90 * i);
    source.decode = SAC_DECODE_CPU;
    source.prefetch = 0;
    assert_sac_ok(sac_source_open(gpu, scratch("rgb%%d.ppm"), &source, &src));
    assert_sac_ok(sac_sink_create(gpu, scratch("rgb.mp4"), src, NULL, &sink));
    assert_sac_ok(sac_source_read_wait(src, &frame));
    assert_int_equal(frame->format, SAC_PIXEL_RGB24);
    sac_device_pool_stats(gpu, &before);
    assert_sac_ok(sac_sink_write_wait(sink, frame));
    sac_device_pool_stats(gpu, &after);
    assert_int_equal(after.bytes_live, before.bytes_live);
    sac_frame_unref(&frame);
    assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    sac_source_close(&src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_what_the_cpu_writes),
        cmocka_unit_test(ten_bits_become_eight),
        cmocka_unit_test(strict_mode_refuses_a_video),
        cmocka_unit_test(leaves_nothing_behind),
        cmocka_unit_test(frames_take_no_memory_that_opening_did_not),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
