/* SPDX-License-Identifier: Apache-2.0 */
/* The main job on a GPU: compared with the CPU, and with itself with other batches and streams;
 * without any copy of frames or tensors to the host; stopped, broken, and restarted. */
#include <math.h>
#include <unistd.h>

#include <saccade/pipeline.h>

#include "pipeline/job.h"
#include "tests/gpu.h"
#include "tests/pipeline/agreement.h"
#include "tests/pipeline/folder.h"

enum { STREAMS = 16 };

static char clip[384], mots[STREAMS][384];

/* One of packaging/clips: 30 frames, seven people. */
static bool find_clip(void)
{
    static const char *const folders[] = {"clips", "share/saccade/clips", "../share/saccade/clips",
                                          "../../share/saccade/clips", TEST_BUILD "/clips"};
    for (size_t i = 0; i < SAC_COUNT(folders); i++) {
        snprintf(clip, sizeof clip, "%s/people_h264.mp4", folders[i]);
        if (access(clip, R_OK) == 0)
            return true;
    }
    return false;
}

static int set_up(void **state)
{
    if (folder_create(state) != 0)
        return -1;
    for (int i = 0; i < STREAMS; i++) {
        char name[32];
        snprintf(name, sizeof name, "out%d.mot", i);
        snprintf(mots[i], sizeof mots[i], "%s", in_folder(name));
    }
    return 0;
}

static int remove_outputs(void **state)
{
    (void)state;
    for (int i = 0; i < STREAMS; i++)
        unlink(mots[i]);
    return 0;
}

/* Skips without a GPU or the clip. */
static void need_gpu(void)
{
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
    if (find_clip())
        return;
    if (getenv("SACCADE_TEST_GPU"))
        fail_msg("no people_h264.mp4; packaging/clips makes it");
    skip();
}

static struct sac_pipeline_params params_of(struct sac_stream_params streams[STREAMS], int count,
                                            const char *device)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    for (int i = 0; i < count; i++)
        streams[i] = (struct sac_stream_params){.input = clip, .mot_out = mots[i]};
    params.streams = streams;
    params.stream_count = count;
    params.job.device = device;
    params.job.detector = "person_det_fast";
    params.job.reid = "person_reid";
    params.job.inference_batch_max = params.job.detector_params.batch_max = 8;
    params.job.reid_params.batch_max = 32;
    return params;
}

static struct sac_pipeline_stats run(const struct sac_pipeline_params *params, sac_result want)
{
    struct sac_pipeline_stats stats = {0};
    sac_pipeline             *pipe = NULL;
    char                      why[512];
    sac_result                res = sac_pipeline_create(test_context(), params, &pipe);
    if (res == SAC_OK)
        res = sac_pipeline_run(pipe);
    sac_context_last_error(test_context(), why, sizeof why);
    if (res != want)
        fail_msg("the run ended with %s, expected %s: %s", sac_result_name(res),
                 sac_result_name(want), why);
    if (pipe) /* what is refused at once leaves none */
        sac_pipeline_get_stats(pipe, &stats);
    sac_pipeline_destroy(&pipe);
    if (want != SAC_OK) /* the sentence is the test's to read */
        SAC_FAIL(test_context(), want, "%s", why);
    return stats;
}

static struct sac_mot_file read_mot(int i)
{
    struct sac_mot_file file = {0};
    assert_sac_ok(sac_mot_read(test_context(), mots[i], &file));
    return file;
}

/* ---- how far two runs agree ---- */

static void expect_stream(const struct sac_mot_file *want, int stream, double least,
                          const char *what)
{
    struct sac_mot_file got = read_mot(stream);
    char                name[128];
    snprintf(name, sizeof name, "%s, stream %d", what, stream);
    expect_agreement(want, &got, least, name);
    sac_mot_finish(&got);
}

static struct sac_mot_file alone_on(const char *device, int batch)
{
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, 1, device);
    params.job.inference_batch_max = params.job.detector_params.batch_max = batch;
    run(&params, SAC_OK);
    return read_mot(0);
}

/* ---- tests ---- */

static void tracks_as_the_cpu_does(void **state)
{
    (void)state;
    need_gpu();
    struct sac_mot_file want = alone_on("cpu", 1);
    assert_true(want.count > 100);
    struct sac_mot_file got = alone_on("cuda", 8);
    sac_mot_finish(&got);
    expect_stream(&want, 0, 0.95, "CPU and GPU");
    sac_mot_finish(&want);
}

static void batches_and_neighbours_change_little(void **state)
{
    (void)state;
    need_gpu();
    struct sac_stream_params   streams[STREAMS];
    struct sac_mot_file        alone = alone_on("cuda", 1);
    struct sac_pipeline_params params = params_of(streams, STREAMS, "cuda");
    assert_true(alone.count > 100);
    params.job.inference_batch_max = params.job.detector_params.batch_max = 32;
    struct sac_pipeline_stats stats = run(&params, SAC_OK);
    assert_int_equal(stats.frames, STREAMS * alone.frame_max);
    print_message("16 streams: %.0f frames/s, batches of %.1f in the mean\n", stats.fps,
                  stats.batch.mean);
    for (int i = 0; i < STREAMS; i++)
        expect_stream(&alone, i, 0.97, "alone and among 16");
    sac_mot_finish(&alone);
}

static uint64_t copied(const struct sac_pipeline_stats *stats, enum sac_copy_reason reason)
{
    return stats->ledger.reason[reason].bytes;
}

/* Strict mode would have failed; the books say the same. */
static void nothing_but_boxes_crosses(void **state)
{
    (void)state;
    need_gpu();
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, 4, "cuda");
    params.job.device_params.zero_copy_strict = 1;
    struct sac_pipeline_stats stats = run(&params, SAC_OK);
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++)
        if (i != SAC_COPY_WEIGHTS && i != SAC_COPY_BOXES && i != SAC_COPY_COMMANDS &&
            copied(&stats, i))
            fail_msg("%llu bytes of %s", (unsigned long long)copied(&stats, i),
                     sac_copy_reason_name(i));
    print_message("%lld frames: boxes %llu bytes, commands %llu\n", (long long)stats.frames,
                  (unsigned long long)copied(&stats, SAC_COPY_BOXES),
                  (unsigned long long)copied(&stats, SAC_COPY_COMMANDS));
}

static void strict_mode_names_what_would_cross(void **state)
{
    (void)state;
    need_gpu();
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, 1, "cuda");
    char                       why[512];
    streams[0].video_out = in_folder("out.mp4");
    params.job.device_params.zero_copy_strict = 1;
    run(&params, SAC_ERR_COPY);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "zero-copy is strict"));
    assert_non_null(strstr(why, "cuda:0"));
    print_message("strict: %s\n", why);
}

/* Removes them. */
static int count_crops(const char *of_class)
{
    char path[768];
    int  n = 0;
    snprintf(path, sizeof path, "%s/%s", in_folder("crops"), of_class);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char file[1200];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        n += strstr(e->d_name, ".jpg") && unlink(file) == 0;
    }
    if (dir)
        closedir(dir);
    rmdir(path);
    rmdir(in_folder("crops"));
    return n;
}

/* Not the frames that they are cut from; where nothing may cross it is said before the run. */
static void crops_come_down_alone(void **state)
{
    (void)state;
    need_gpu();
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, 1, "cuda");
    char                       why[512];
    streams[0].crops_out = in_folder("crops");
    struct sac_pipeline_stats stats = run(&params, SAC_OK);
    const uint64_t            calls = stats.ledger.reason[SAC_COPY_CROP].calls;
    const int                 files = count_crops("person");
    print_message("%lld frames, %lld tracks: %d crops, %llu copied, %llu bytes\n",
                  (long long)stats.frames, (long long)stats.tracks, files,
                  (unsigned long long)calls, (unsigned long long)copied(&stats, SAC_COPY_CROP));
    assert_true(files > 2 && files <= stats.tracks && calls >= (uint64_t)files);
    assert_true(copied(&stats, SAC_COPY_CROP) > 1000 * (uint64_t)files);
    assert_int_equal(copied(&stats, SAC_COPY_FRAME_DOWNLOAD), 0);
    assert_int_equal(copied(&stats, SAC_COPY_FRAME_CONVERT), 0);
    assert_true(stats.outputs_whole & SAC_OUTPUT_CROPS);

    params.job.device_params.zero_copy_strict = 1;
    run(&params, SAC_ERR_COPY);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "crop-download"));
    assert_non_null(strstr(why, "zero-copy is strict"));
}

/* How many slices of a stage the trace has in the row of a name; -1: there is no such row. */
static int slices_in(const char *row_name, const char *stage)
{
    char  line[512], slice[64], named[64];
    int   row = 0, rows[64] = {0};
    FILE *file = fopen(in_folder("trace.json"), "r");
    assert_non_null(file);
    snprintf(slice, sizeof slice, "\"name\":\"%s\",\"tid\":", stage);
    snprintf(named, sizeof named, "\"name\":\"%s\"}", row_name);
    while (fgets(line, sizeof line, file)) {
        const char *at = strstr(line, slice), *tid = strstr(line, "\"tid\":");
        const int   number = tid ? atoi(tid + 6) : 0;
        if (at && number < 64)
            rows[number]++;
        else if (strstr(line, named))
            row = number;
    }
    fclose(file);
    return row > 0 && row < 64 ? rows[row] : -1;
}

static void the_device_has_times_of_its_own(void **state)
{
    (void)state;
    need_gpu();
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, 2, "cuda");
    params.job.trace_out = in_folder("trace.json");
    struct sac_pipeline_stats stats = run(&params, SAC_OK);
    int                       timed = 0;
    for (int i = 0; i < stats.stage_count; i++) {
        const struct sac_timer_summary *gpu = &stats.stage_gpu[i];
        if (gpu->count)
            print_message("%-10s %llu batches, %.3f ms each on the GPU, %.3f on the host\n",
                          stats.stage[i].name, (unsigned long long)gpu->count, gpu->mean_ms,
                          stats.stage[i].mean_ms);
        timed += gpu->count > 0 && gpu->mean_ms > 0;
    }
    assert_true(timed >= 4); /* preprocess, inference, head, reid */
    /* Two streams work at once: in one row their slices would overlap, which no viewer can show. */
    assert_true(slices_in("cuda:0", "inference") > 0);
    assert_int_equal(slices_in("cuda:0", "tracking"), 0);
    assert_true(slices_in("cuda:0 tracking", "tracking") > 0);
}

static int stop_soon(void *user, const sac_frame *frame, const struct sac_track *tracks, size_t n)
{
    (void)frame, (void)tracks, (void)n;
    return ++*(int *)user == 20;
}

static void a_stop_ends_it(void **state)
{
    (void)state;
    need_gpu();
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, 4, "cuda");
    int                        frames = 0;
    params.on_frame = stop_soon;
    params.on_frame_user = &frames;
    run(&params, SAC_ERR_CANCELLED);
}

static void a_bad_input_leaves_fifteen(void **state)
{
    (void)state;
    need_gpu();
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, STREAMS, "cuda");
    struct sac_mot_file        alone = alone_on("cuda", 8);
    char                       bytes[20000];
    snprintf(mots[0], sizeof mots[0], "%s", in_folder("out0.mot"));
    FILE *in = fopen(clip, "rb"), *out = fopen(in_folder("cut.mp4"), "wb");
    assert_true(in && out);
    fwrite(bytes, 1, fread(bytes, 1, sizeof bytes, in), out);
    fclose(in);
    fclose(out);
    streams[5].input = in_folder("cut.mp4");
    sac_pipeline *pipe = NULL;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_true(sac_pipeline_run(pipe) < 0);
    sac_pipeline_destroy(&pipe);
    for (int i = 0; i < STREAMS; i++)
        if (i != 5)
            expect_stream(&alone, i, 0.97, "beside a bad input");
    sac_mot_finish(&alone);
}

/* Frames of the program's own, on the session's device and in host memory. */
static void a_session_takes_frames_from_anywhere(void **state)
{
    (void)state;
    need_gpu();
    enum { COUNT = 12 };
    struct sac_session_params params = sac_session_params_default();
    struct sac_stream_params  streams[STREAMS];
    sac_session              *s = NULL;
    sac_device               *cpu = NULL;
    sac_frame                *here = NULL;
    params.job = params_of(streams, 1, "cuda").job;
    params.submit_max = COUNT;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    assert_sac_ok(sac_session_start(s));
    for (int i = 0; i < COUNT; i++) {
        sac_frame desc = {
            .format = SAC_PIXEL_NV12, .width = 640, .height = 360, .pts_us = i * 40000};
        sac_frame *there = NULL;
        sac_frame_unref(&here);
        assert_sac_ok(sac_frame_create(cpu, &desc, &here));
        memset(here->plane[0], 40 + i, here->pitch_bytes[0] * 360);
        memset(here->plane[1], 128, here->pitch_bytes[1] * 180);
        if (i % 2) { /* the session brings it there */
            assert_sac_ok(sac_session_submit(s, here, i));
            continue;
        }
        assert_sac_ok(sac_frame_create(sac_session_device(s), &desc, &there));
        assert_sac_ok(sac_frame_copy(here, there));
        assert_sac_ok(sac_session_submit(s, there, i));
        sac_frame_unref(&there);
    }
    struct sac_ledger ledger;
    sac_device_ledger(sac_session_device(s), &ledger);
    assert_in_range(ledger.reason[SAC_COPY_FRAME_UPLOAD].bytes, COUNT * 640 * 360 * 3 / 2,
                    COUNT * 640 * 360 * 3 / 2 + COUNT * 4096);
    sac_session_end(s);
    for (int i = 0; i < COUNT; i++) {
        struct sac_session_result result;
        assert_sac_ok(sac_session_result_wait(s, -1, &result));
        assert_int_equal(result.id, i);
        assert_int_equal(result.status, SAC_OK);
        assert_int_equal(result.frame->device == cpu, i % 2); /* as it was submitted */
        sac_session_result_finish(&result);
    }
    sac_session_destroy(&s);
    sac_frame_unref(&here);
    sac_device_unref(&cpu);
}

static uint64_t memory_in_use(void)
{
    uint64_t    free_bytes = 0, total_bytes = 0;
    sac_device *dev = gpu_open(NULL);
    assert_sac_ok(dev->ops->memory_info(dev, &free_bytes, &total_bytes));
    sac_device_unref(&dev);
    return total_bytes - free_bytes;
}

/* The first runs load libraries and kernels; what later ones took must be there again. */
static void runs_leave_no_memory_behind(void **state)
{
    (void)state;
    need_gpu();
    gpu_alone();
    enum { WARM = 5, RUNS = 20 };
    struct sac_stream_params streams[STREAMS];
    uint64_t                 before = 0, after;
    for (int i = 0; i < WARM + RUNS; i++) {
        struct sac_pipeline_params params = params_of(streams, 1 + i % 2, "cuda");
        params.job.detector = TEST_HEADS "/yolov8.onnx"; /* a small network: plans are made anew
                                                            each time */
        params.job.reid = NULL;
        params.job.inference_batch_max = 1;
        struct sac_pipeline_stats stats = run(&params, SAC_OK);
        assert_int_equal(stats.pool.leaks, 0);
        if (i == WARM - 1)
            before = memory_in_use();
    }
    after = memory_in_use();
    print_message("after %d runs %.1f MB more of the GPU's memory are in use\n", RUNS,
                  ((double)after - (double)before) * 1e-6);
    assert_true(after <= before + (8 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(tracks_as_the_cpu_does, remove_outputs),
        cmocka_unit_test_teardown(the_device_has_times_of_its_own, remove_outputs),
        cmocka_unit_test_teardown(nothing_but_boxes_crosses, remove_outputs),
        cmocka_unit_test_teardown(strict_mode_names_what_would_cross, remove_outputs),
        cmocka_unit_test_teardown(crops_come_down_alone, remove_outputs),
        cmocka_unit_test_teardown(batches_and_neighbours_change_little, remove_outputs),
        cmocka_unit_test_teardown(a_stop_ends_it, remove_outputs),
        cmocka_unit_test_teardown(a_bad_input_leaves_fifteen, remove_outputs),
        cmocka_unit_test(a_session_takes_frames_from_anywhere),
        cmocka_unit_test_teardown(runs_leave_no_memory_behind, remove_outputs),
    };
    return cmocka_run_group_tests_name("pipeline/cuda", tests, set_up, folder_remove);
}
