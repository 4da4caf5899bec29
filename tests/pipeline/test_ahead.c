/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are begun before the one in front has landed, on the CPU used like a GPU: the
 * results are the same, row by row, as without that, whatever the batches; faults stay with their
 * frame. */
#include <math.h>
#include <sys/stat.h>

#include <saccade/pipeline.h>

#include "base/base.h"
#include "device/device.h"
#include "tests/pipeline/folder.h"

/* Under the sanitizers a network takes thirty times as long. */
enum { FRAMES = TEST_SANITIZED ? 11 : 27, STREAMS = 4 };

static char inputs[384], mots[STREAMS][384];

static int set_up(void **state)
{
    if (folder_create(state) != 0)
        return -1;
    write_images(FRAMES);
    snprintf(inputs, sizeof inputs, "%s", in_folder("img%03d.ppm"));
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

/* No person is in the pictures: with low thresholds there are boxes all the same, and they are
 * tracked. */
static struct sac_pipeline_params params_of(struct sac_stream_params streams[STREAMS], int count,
                                            int ahead)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    for (int i = 0; i < count; i++)
        streams[i] = (struct sac_stream_params){.input = inputs, .mot_out = mots[i]};
    params.streams = streams;
    params.stream_count = count;
    params.job.device = "cpu";
    params.job.detector = "person_det_fast";
    params.job.reid = "none";
    params.job.detector_params.score_min = 0.001f;
    params.job.tracker = sac_tracker_params_default(SAC_TRACKER_BYTETRACK);
    params.job.tracker.score_low = 0.001f;
    params.job.tracker.score_high = params.job.tracker.score_new = 0.004f;
    params.job.batches_ahead = ahead;
    params.job.inference_batch_max = 4;
    params.source.fps = 25;
    return params;
}

static struct sac_pipeline_stats run(const struct sac_pipeline_params *params)
{
    struct sac_pipeline_stats stats;
    sac_pipeline             *pipe = NULL;
    assert_sac_ok(sac_pipeline_create(test_context(), params, &pipe));
    assert_sac_ok(sac_pipeline_run(pipe));
    sac_pipeline_get_stats(pipe, &stats);
    sac_pipeline_destroy(&pipe);
    return stats;
}

static struct sac_mot_file read_mot(int i)
{
    struct sac_mot_file file = {0};
    assert_sac_ok(sac_mot_read(test_context(), mots[i], &file));
    return file;
}

static bool is_near(double a, double b, double most)
{
    return fabs(a - b) <= most;
}

/* Row by row, but for the ids: those differ by the order in which streams met their objects. A
 * network's sums depend on the batch. */
static void assert_same_tracks(const struct sac_mot_file *a, const struct sac_mot_file *b)
{
    int map[4096] = {0};
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct sac_mot_row *x = &a->rows[i], *y = &b->rows[i];
        int                      *known = &map[y->id % 4096];
        assert_int_equal(x->frame, y->frame);
        if (!is_near(x->x, y->x, 0.05) || !is_near(x->y, y->y, 0.05) ||
            !is_near(x->w, y->w, 0.05) || !is_near(x->h, y->h, 0.05) ||
            !is_near(x->conf, y->conf, 1e-4))
            fail_msg("frame %d: %g %g %g %g, %g, expected %g %g %g %g, %g", y->frame, y->x, y->y,
                     y->w, y->h, (double)y->conf, x->x, x->y, x->w, x->h, (double)x->conf);
        assert_true(!*known || *known == x->id);
        *known = x->id;
    }
}

static void is_what_comes_out_in_turn(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, 1, 1);
    struct sac_pipeline_stats  stats;
    params.job.inference_batch_max = 1;
    run(&params);
    struct sac_mot_file alone = read_mot(0);
    assert_true(alone.count > 20);
    for (int count = 1; count <= STREAMS; count += STREAMS - 1)
        for (int batch = 2; batch <= 8; batch *= 4) {
            params = params_of(streams, count, 2);
            params.job.inference_batch_max = params.job.detector_params.batch_max = batch;
            params.job.queue_length = batch == 2 ? 1 : 4;
            stats = run(&params);
            assert_int_equal(stats.frames, count * FRAMES);
            assert_int_equal(stats.batch.frames, count * FRAMES);
            for (int i = 0; i < count; i++) {
                struct sac_mot_file file = read_mot(i);
                assert_same_tracks(&alone, &file);
                sac_mot_finish(&file);
            }
        }
    sac_mot_finish(&alone);
}

/* Streams are dealt to two devices; what comes out is the same, and the figures add up. */
static void two_devices_share_the_streams(void **state)
{
    (void)state;
    static const char *const   devices[] = {"cpu", "cpu"};
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, 1, 1);
    params.job.trace_out = in_folder("trace.json");
    run(&params);
    struct sac_mot_file alone = read_mot(0);
    params = params_of(streams, STREAMS - 1, 2);
    params.devices = devices;
    params.device_count = 2;
    params.job.stats_out = in_folder("stats.json");
    params.job.trace_out = in_folder("trace.json");
    struct sac_pipeline_stats stats = run(&params);
    assert_int_equal(stats.frames, (STREAMS - 1) * FRAMES);
    assert_int_equal(stats.batch.frames, (STREAMS - 1) * FRAMES);
    assert_int_equal(stats.shard_count, 2);
    assert_int_equal(stats.shard[0].streams, STREAMS / 2);
    assert_int_equal(stats.shard[1].streams, (STREAMS - 1) / 2);
    assert_int_equal(stats.shard[0].frames + stats.shard[1].frames, stats.frames);
    assert_true(stats.fps > 0 && stats.shard[1].frames == (STREAMS - 1) / 2 * FRAMES);
    assert_non_null(strstr(stats.device, "and 1 more"));
    for (int i = 0; i < stats.queue_count; i++)
        assert_int_equal(stats.queue[i].passed, stats.frames);
    for (int i = 0; i < STREAMS - 1; i++) {
        struct sac_mot_file file = read_mot(i);
        assert_same_tracks(&alone, &file);
        sac_mot_finish(&file);
    }
    sac_mot_finish(&alone);
}

/* With a budget that only smaller batches fit, all frames come through; with none at all, a
 * sentence. */
static void memory_that_runs_out_makes_batches_small(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, 2, 2);
    struct sac_pipeline_stats  large, small;
    sac_pipeline              *pipe = NULL;
    params.job.inference_batch_max = params.job.detector_params.batch_max = 1;
    small = run(&params);
    params.job.inference_batch_max = params.job.detector_params.batch_max = 8;
    large = run(&params);
    assert_true(large.pool.bytes_peak > 2 * small.pool.bytes_peak);
    params.job.device_params.memory_limit_bytes =
        small.pool.bytes_peak + (large.pool.bytes_peak - small.pool.bytes_peak) / 3;
    small = run(&params);
    assert_int_equal(small.frames, 2 * FRAMES);
    assert_true(small.pool.bytes_peak <= params.job.device_params.memory_limit_bytes);
    params.job.device_params.memory_limit_bytes = 4 << 20;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_sac_error(sac_pipeline_run(pipe), SAC_ERR_LIMIT);
    sac_pipeline_destroy(&pipe);
}

static void bad_devices_are_refused(void **state)
{
    (void)state;
    static const char *const   devices[] = {"cpu", "gpu"};
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, STREAMS, 1);
    sac_pipeline              *pipe = NULL;
    params.devices = devices;
    params.device_count = 2;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    params.device_count = SAC_SHARDS_MAX + 1;
    const char *many[SAC_SHARDS_MAX + 1];
    for (size_t i = 0; i < SAC_COUNT(many); i++)
        many[i] = "cpu";
    params.devices = many;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
}

struct stopping {
    sac_pipeline *pipe;
    int           frames;
};

static int stop_soon(void *user, const sac_frame *frame, const struct sac_track *tracks, size_t n)
{
    struct stopping *s = user;
    (void)frame, (void)tracks, (void)n;
    return ++s->frames == 7;
}

static void a_stop_leaves_whole_beginnings(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, STREAMS, 2);
    struct stopping            s = {0};
    params.on_frame = stop_soon;
    params.on_frame_user = &s;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &s.pipe));
    for (int i = 0; i < STREAMS; i++)
        unlink(mots[i]); /* of the runs before */
    assert_sac_error(sac_pipeline_run(s.pipe), SAC_ERR_CANCELLED);
    bool whole[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        struct sac_stream_stats stats;
        sac_pipeline_get_stream_stats(s.pipe, i, &stats);
        whole[i] = stats.outputs_whole & SAC_OUTPUT_MOT;
    }
    sac_pipeline_destroy(&s.pipe);
    for (int i = 0; i < STREAMS; i++) { /* one that came to no frame has no file */
        assert_int_equal(access(mots[i], F_OK) == 0, whole[i]);
        if (!whole[i])
            continue;
        struct sac_mot_file file = read_mot(i);
        assert_true(file.frame_max <= FRAMES);
        sac_mot_finish(&file);
    }
}

static void a_stream_that_ends_early_leaves_the_others(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, STREAMS, 2);
    sac_pipeline              *pipe = NULL;
    char                       few[384];
    snprintf(few, sizeof few, "%s", in_folder("img00%d.ppm")); /* ten pictures */
    streams[1].input = few;
    streams[3].input = "/nowhere/in.mp4";
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_sac_error(sac_pipeline_run(pipe), SAC_ERR_IO);
    for (int i = 0; i < STREAMS; i++) {
        struct sac_stream_stats stats;
        sac_pipeline_get_stream_stats(pipe, i, &stats);
        assert_int_equal(stats.frames, i == 1 ? 10 : i == 3 ? 0 : FRAMES);
    }
    sac_pipeline_destroy(&pipe);
}

/* A batch of six is one of six, and is told so; where only three frames can be inside, three fill
 * one. */
static void batches_are_as_large_as_asked_for(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, STREAMS, 2);
    params.job.inference_batch_max = params.job.detector_params.batch_max = 6;
    params.job.timeout_ms = 2000;
    struct sac_pipeline_stats stats = run(&params);
    assert_int_equal(stats.batch.max, 6);
    assert_true(stats.batch.full > 0);
    if (!TEST_SANITIZED) /* the end of a stream ends a batch, which of few frames is much */
        assert_true(stats.batch.mean > 4.5);
    assert_string_equal(stats.queue[1].name, "track");
    assert_int_equal(stats.queue[1].capacity, 6); /* all of a batch may be tracked at once */
    struct sac_session_params push = sac_session_params_default();
    sac_session              *s = NULL;
    push.job = params.job;
    push.submit_max = 3;
    assert_sac_ok(sac_session_create(test_context(), &push, &s));
    sac_session_get_stats(s, &stats);
    assert_int_equal(stats.batch.max, 3);
    sac_session_destroy(&s);
}

/* Where all but one have ended, its frames cannot fill a batch that was meant for all; they wait
 * for each other alone, not until the batch's time is over. */
static void the_last_stream_does_not_wait_for_others(void **state)
{
    (void)state;
    enum { LONG_MS = 60000 };
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, STREAMS, 2);
    char                       one[384];
    snprintf(one, sizeof one, "%s", in_folder("img000.ppm"));
    for (int i = 1; i < STREAMS; i++)
        streams[i].input = one;
    params.job.inference_batch_max = params.job.detector_params.batch_max = 8;
    params.job.timeout_ms = LONG_MS;
    struct sac_pipeline_stats stats = run(&params);
    assert_int_equal(stats.frames, FRAMES + STREAMS - 1);
    assert_true(stats.elapsed_s * 1000 < LONG_MS);
}

/* A network whose batch cannot be made free takes its frames one by one. */
static void a_fixed_batch_takes_one_frame_at_a_time(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, STREAMS, 2);
    params.job.detector = TEST_HEADS "/fixed_batch.onnx";
    params.job.inference_batch_max = params.job.detector_params.batch_max = 8;
    params.job.timeout_ms = 1000;
    struct sac_pipeline_stats stats = run(&params);
    assert_int_equal(stats.frames, STREAMS * FRAMES);
    assert_int_equal(stats.detections, STREAMS * FRAMES);
    assert_int_equal(stats.batch.max, 1);
    assert_int_equal(stats.batch.count, STREAMS * FRAMES);
}

/* Of a session's frames one is of a format that no stage takes. */
static void a_frame_that_fails_does_so_alone(void **state)
{
    (void)state;
    enum { COUNT = 12, BAD = 5 };
    struct sac_session_params params = sac_session_params_default();
    struct sac_stream_params  streams[STREAMS];
    sac_session              *s = NULL;
    sac_device               *other = NULL;
    int                       failed = 0;
    params.job = params_of(streams, 1, 2).job;
    params.submit_max = COUNT;
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    assert_sac_ok(sac_session_start(s));
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &other));
    for (int i = 0; i < COUNT; i++) {
        sac_frame *frame = NULL;
        sac_frame  desc = {
             .format = SAC_PIXEL_RGB24, .width = 160, .height = 192, .pts_us = i * 40000};
        assert_sac_ok(sac_frame_create(sac_session_device(s), &desc, &frame));
        memset(frame->plane[0], 40 + i, frame->pitch_bytes[0] * 192);
        if (i == BAD)
            frame->width = 0;
        assert_sac_ok(sac_session_submit(s, frame, i));
        sac_frame_unref(&frame);
    }
    sac_session_end(s);
    for (int i = 0; i < COUNT; i++) {
        struct sac_session_result result;
        assert_sac_ok(sac_session_result_wait(s, -1, &result));
        assert_int_equal(result.id, i);
        failed += result.status != SAC_OK;
        assert_true((result.status != SAC_OK) == (i == BAD));
        sac_session_result_finish(&result);
    }
    assert_int_equal(failed, 1);
    sac_session_destroy(&s);
    sac_device_unref(&other);
}

static void push(sac_session *s, int stream_id, int side, int number)
{
    sac_frame *frame = NULL;
    sac_frame  desc = {.format = SAC_PIXEL_RGB24,
                       .width = side,
                       .height = side,
                       .pts_us = number * 40000,
                       .stream_id = stream_id};
    assert_sac_ok(sac_frame_create(sac_session_device(s), &desc, &frame));
    memset(frame->plane[0], 80, frame->pitch_bytes[0] * (size_t)side);
    assert_sac_ok(sac_session_submit(s, frame, stream_id));
    sac_frame_unref(&frame);
}

/* How many of the frames pushed came back well. */
static int take(sac_session *s, int count, bool ok[2])
{
    int well = 0;
    ok[0] = ok[1] = false;
    for (int i = 0; i < count; i++) {
        struct sac_session_result result;
        char                      why[512];
        assert_sac_ok(sac_session_result_wait(s, -1, &result));
        sac_context_last_error(test_context(), why, sizeof why);
        assert_true(result.status == SAC_OK || *why);
        ok[result.id] |= result.status == SAC_OK;
        well += result.status == SAC_OK;
        sac_session_result_finish(&result);
    }
    return well;
}

/* The budget is used up while a session begins, and given back later. */
static void memory_that_runs_out_costs_frames_not_the_session(void **state)
{
    (void)state;
    struct sac_session_params params = sac_session_params_default();
    struct sac_stream_params  streams[STREAMS];
    struct sac_buffer        *taken[4096];
    sac_session              *s = NULL;
    bool                      ok[2];
    int                       n = 0;
    params.job = params_of(streams, 1, 2).job;
    params.job.device_params.memory_limit_bytes = 255 << 20; /* pieces of 16 MB, and smaller ones */
    params.submit_max = 4;
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    assert_sac_ok(sac_session_start(s));
    for (size_t bytes = 16 << 20; bytes >= 1024; bytes /= 2)
        while (n < 4096 &&
               sac_buffer_create(sac_session_device(s), bytes, "a neighbour", &taken[n]) == SAC_OK)
            n++;
    for (int i = 0; i<n; i += n> 8 ? n / 8 : 1) /* room for a frame's own pixels */
        if (sac_buffer_bytes(taken[i]) <= 1 << 20)
            sac_buffer_unref(&taken[i]);
    for (int i = 0; i < 4; i++)
        push(s, i % 2, 40, 2 + i / 2);
    assert_true(take(s, 4, ok) < 4);
    for (int i = 0; i < n; i++)
        sac_buffer_unref(&taken[i]);
    for (int i = 0; i < 4; i++)
        push(s, 0, 160, 10 + i);
    assert_int_equal(take(s, 4, ok), 4); /* the oldest stream at least goes on */
    sac_session_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(is_what_comes_out_in_turn, remove_outputs),
        cmocka_unit_test_teardown(two_devices_share_the_streams, remove_outputs),
        cmocka_unit_test_teardown(memory_that_runs_out_makes_batches_small, remove_outputs),
        cmocka_unit_test_teardown(bad_devices_are_refused, remove_outputs),
        cmocka_unit_test_teardown(a_stop_leaves_whole_beginnings, remove_outputs),
        cmocka_unit_test_teardown(a_stream_that_ends_early_leaves_the_others, remove_outputs),
        cmocka_unit_test_teardown(the_last_stream_does_not_wait_for_others, remove_outputs),
        cmocka_unit_test_teardown(a_fixed_batch_takes_one_frame_at_a_time, remove_outputs),
        cmocka_unit_test_teardown(batches_are_as_large_as_asked_for, remove_outputs),
        cmocka_unit_test(a_frame_that_fails_does_so_alone),
        cmocka_unit_test(memory_that_runs_out_costs_frames_not_the_session),
    };
    return cmocka_run_group_tests_name("pipeline/ahead", tests, set_up, folder_remove);
}
