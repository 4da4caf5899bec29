/* SPDX-License-Identifier: Apache-2.0 */
/* The examples that work on a GPU, as a reader would run them; test_examples.py runs all of them on
 * the CPU. */
#include "tests/clips.h"
#include "tests/gpu.h"
#include "tests/pipeline/folder.h"

int gpu_tensor_main(int argc, char **argv);
int push_main(int argc, char **argv);
int segment_main(int argc, char **argv);
#define main gpu_tensor_main
#include "examples/gpu_tensor.c"
#undef main
#define main push_main
#include "examples/push.c"
#undef main
#define main segment_main
#include "examples/segment.c"
#undef main

/* Skips without a GPU. */
static void need_gpu(void)
{
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
}

/* What the example prints; its status must be 0. */
static void run(int (*example)(int, char **), int argc, const char *const *argv, char *text,
                size_t size)
{
    const int kept = dup(STDOUT_FILENO);
    fflush(stdout);
    assert_non_null(freopen(in_folder("said"), "w", stdout));
    const int status = example(argc, (char **)(uintptr_t)argv);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    FILE  *file = fopen(in_folder("said"), "r");
    size_t length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
    if (status != 0)
        fail_msg("status %d: %s", status, text);
}

/* The pixels of a clip's first frames as a program would have them: in host memory, B first. */
static void write_pixels(const char *path, int frames, struct sac_source_info *info)
{
    sac_device *cpu = NULL;
    sac_source *src = NULL;
    FILE       *file = fopen(path, "w");
    assert_non_null(file);
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(sac_source_open(cpu, clip_path("people_h264.mp4"), NULL, &src));
    sac_source_describe(src, info);
    for (int i = 0; i < frames; i++) {
        sac_frame *frame = NULL, *bgr = NULL;
        assert_sac_ok(sac_source_read_wait(src, &frame));
        sac_frame like = {
            .format = SAC_PIXEL_BGR24, .width = frame->width, .height = frame->height};
        assert_sac_ok(sac_frame_create(cpu, &like, &bgr));
        assert_sac_ok(sac_frame_convert(frame, SAC_FILTER_BILINEAR, bgr));
        for (int y = 0; y < bgr->height; y++)
            assert_int_equal(fwrite(bgr->plane[0] + (size_t)y * bgr->pitch_bytes[0], 3,
                                    (size_t)bgr->width, file),
                             bgr->width);
        sac_frame_unref(&frame);
        sac_frame_unref(&bgr);
    }
    fclose(file);
    sac_source_close(&src);
    sac_device_unref(&cpu);
}

static void frames_reach_a_network_without_crossing(void **state)
{
    (void)state;
    char               text[4096], clip[256];
    const char        *argv[] = {"gpu_tensor", clip, "person_det_fast", "cuda", NULL};
    long               frames = 0;
    unsigned long long crossed = 0;
    need_gpu();
    snprintf(clip, sizeof clip, "%s", clip_path("people_h264.mp4"));
    run(gpu_tensor_main, 4, argv, text, sizeof text);
    assert_int_equal(sscanf(text, "%ld frames, %llu bytes", &frames, &crossed), 2);
    assert_int_equal(frames, 30);
    assert_true(crossed < 10000); /* a frame is half a million */
}

static void a_programs_own_pixels_are_tracked(void **state)
{
    (void)state;
    enum { FRAMES = 10 };
    static char            text[65536];
    char                   width[16], height[16], last[32];
    const char            *argv[] = {"push", "person_det_fast", width, height, "10", NULL};
    struct sac_source_info info;
    need_gpu();
    write_pixels(in_folder("pixels"), FRAMES, &info);
    snprintf(width, sizeof width, "%d", info.width);
    snprintf(height, sizeof height, "%d", info.height);
    assert_non_null(freopen(in_folder("pixels"), "r", stdin));
    run(push_main, 5, argv, text, sizeof text);
    assert_int_equal(strncmp(text, "on cuda:", 8), 0);
    snprintf(last, sizeof last, "frame %d: ", FRAMES - 1);
    const char *at = strstr(text, last);
    assert_non_null(at);
    assert_true(atoi(at + strlen(last)) >= 3); /* of the seven people */
}

static void people_are_cut_out(void **state)
{
    (void)state;
    char                   text[4096], clip[256], out[256];
    const char            *argv[] = {"segment", clip, out, NULL};
    struct sac_source_info info, cut;
    sac_device            *cpu = NULL;
    sac_source            *src = NULL;
    sac_frame             *frame = NULL;
    int                    frames = 0;
    need_gpu();
    snprintf(clip, sizeof clip, "%s", clip_path("people_h264.mp4"));
    snprintf(out, sizeof out, "%s", in_folder("people.mkv"));
    run(segment_main, 3, argv, text, sizeof text);
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(sac_source_open(cpu, clip, NULL, &src));
    sac_source_describe(src, &info);
    sac_source_close(&src);
    assert_sac_ok(sac_source_open(cpu, out, NULL, &src));
    sac_source_describe(src, &cut);
    for (; sac_source_read_wait(src, &frame) == SAC_OK; frames++)
        sac_frame_unref(&frame);
    assert_int_equal(frames, 30);
    assert_string_equal(cut.codec, "ffv1");
    assert_true(cut.width == info.width && cut.height == info.height);
    sac_source_close(&src);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_reach_a_network_without_crossing),
        cmocka_unit_test(a_programs_own_pixels_are_tracked),
        cmocka_unit_test(people_are_cut_out),
    };
    return cmocka_run_group_tests_name("pipeline/examples_gpu", tests, folder_create,
                                       folder_remove);
}
