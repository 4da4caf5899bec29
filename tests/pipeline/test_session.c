/* SPDX-License-Identifier: Apache-2.0 */
/* The push form, on the networks of tests/heads: small, and they see the same boxes in every
 * frame. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <saccade/pipeline.h>

#include "base/base.h"
#include "device/device.h"
#include "tests/test.h"

static struct sac_session_params with_models(void)
{
    struct sac_session_params params = sac_session_params_default();
    params.job.device = "cpu";
    params.job.detector = SOURCE_ROOT "/tests/heads/end2end.onnx";
    params.job.reid = SOURCE_ROOT "/tests/heads/embedding_nchw.onnx";
    return params;
}

static sac_session *started(const struct sac_session_params *params)
{
    sac_session *s = NULL;
    assert_sac_ok(sac_session_create(test_context(), params, &s));
    assert_sac_ok(sac_session_start(s));
    return s;
}

/* Frame `number` of a stream at 10 frames/s, with a little texture for the camera's motion. */
static sac_frame *frame_of(sac_session *s, int64_t number, int stream_id)
{
    sac_frame *frame = NULL, desc = {.format = SAC_PIXEL_RGB24, .width = 128, .height = 96};
    desc.number = number;
    desc.pts_us = number * 100000;
    desc.stream_id = stream_id;
    assert_sac_ok(sac_frame_create(sac_session_device(s), &desc, &frame));
    for (int y = 0; y < desc.height; y++)
        for (int x = 0; x < desc.width * 3; x++)
            frame->plane[0][(size_t)y * frame->pitch_bytes[0] + (size_t)x] =
                (uint8_t)(100 + (x * 7 + y * 13) % 50);
    return frame;
}

static sac_result submit(sac_session *s, int64_t number, int stream_id)
{
    sac_frame *frame = frame_of(s, number, stream_id);
    sac_result res = sac_session_submit(s, frame, 1000 + number);
    sac_frame_unref(&frame);
    return res;
}

static void check_times(const struct sac_session_result *r)
{
    double parts =
        r->queue_ms + r->preprocess_ms + r->inference_ms + r->head_ms + r->reid_ms + r->tracking_ms;
    assert_true(r->inference_ms > 0);
    assert_true(r->preprocess_ms > 0);
    assert_true(r->total_ms >= r->inference_ms);
    assert_true(parts >= r->total_ms * 0.999 && parts <= r->total_ms * 1.001);
}

static void results_come_in_order(void **state)
{
    (void)state;
    enum { FRAMES = 12 };
    for (int batch = 1; batch <= 4; batch += 3) {
        struct sac_session_params params = with_models();
        struct sac_session_result r;
        struct sac_pipeline_stats stats;
        params.job.inference_batch_max = batch;
        params.submit_max = FRAMES;
        sac_session *s = started(&params);
        for (int64_t i = 0; i < FRAMES; i++)
            assert_sac_ok(submit(s, i, 0));
        sac_session_end(s);
        for (int64_t i = 0; i < FRAMES; i++) {
            assert_sac_ok(sac_session_result_wait(s, -1, &r));
            assert_int_equal(r.id, 1000 + i);
            assert_int_equal(r.pts_us, i * 100000);
            assert_int_equal(r.status, SAC_OK);
            assert_non_null(r.frame);
            check_times(&r);
            if (i == FRAMES - 1)
                assert_true(r.count >= 1); /* somebody is in the picture */
            sac_session_result_finish(&r);
        }
        assert_sac_error(sac_session_result_wait(s, -1, &r), SAC_EOS);
        sac_session_get_stats(s, &stats);
        assert_int_equal(stats.frames, FRAMES);
        assert_true(stats.tracks >= 1);
        assert_true(stats.fps > 0);
        assert_string_not_equal(stats.bottleneck, "");
        assert_string_not_equal(stats.engine, "");
        assert_string_equal(stats.head, "end2end");
        assert_string_not_equal(stats.reid, "");
        assert_int_equal(stats.queue_count, 3);
        assert_true(stats.queue[0].length_max >= 1);
        sac_session_destroy(&s);
    }
}

/* A batch of one need not wait an hour for the others, where one is enough for an idle device. */
static void an_idle_device_waits_for_no_more_than_the_least(void **state)
{
    (void)state;
    struct sac_session_params params = with_models();
    struct sac_session_result r;
    params.job.inference_batch_max = 4;
    params.job.inference_batch_min = 1;
    params.job.timeout_ms = 3600000;
    sac_session *s = started(&params);
    assert_sac_ok(submit(s, 0, 0));
    assert_sac_ok(sac_session_result_wait(s, 60000000000, &r));
    sac_session_result_finish(&r);
    sac_session_end(s);
    sac_session_destroy(&s);
    /* but a batch of two does */
    params.job.inference_batch_min = 2;
    s = started(&params);
    assert_sac_ok(submit(s, 0, 0));
    assert_sac_error(sac_session_result_wait(s, 100000000, &r), SAC_AGAIN);
    assert_sac_ok(submit(s, 1, 0));
    assert_sac_ok(sac_session_result_wait(s, 60000000000, &r));
    sac_session_result_finish(&r);
    sac_session_end(s);
    sac_session_destroy(&s);
}

static void says_when_it_is_full(void **state)
{
    (void)state;
    struct sac_session_params params = with_models();
    struct sac_session_result r;
    params.submit_max = 2;
    sac_session *s = started(&params);
    assert_sac_error(sac_session_result_wait(s, 0, &r), SAC_AGAIN);
    assert_sac_ok(submit(s, 0, 0));
    assert_sac_ok(submit(s, 1, 0));
    assert_sac_error(submit(s, 2, 0), SAC_AGAIN);
    assert_sac_ok(sac_session_result_wait(s, -1, &r));
    sac_session_result_finish(&r);
    assert_sac_ok(submit(s, 2, 0));
    sac_session_end(s);
    assert_sac_error(submit(s, 3, 0), SAC_ERR_ARG);
    sac_session_destroy(&s); /* with results that nobody took */
}

static void a_bad_frame_spoils_no_other(void **state)
{
    (void)state;
    static const int64_t      numbers[] = {0, 5, 3, 6}; /* the third steps back in time */
    struct sac_session_params params = with_models();
    struct sac_session_result r;
    char                      why[512];
    sac_session              *s = started(&params);
    for (int i = 0; i < 4; i++)
        assert_sac_ok(submit(s, numbers[i], 0));
    sac_session_end(s);
    for (int i = 0; i < 4; i++) {
        assert_sac_ok(sac_session_result_wait(s, -1, &r));
        assert_int_equal(r.id, 1000 + numbers[i]);
        assert_int_equal(r.status, i == 2 ? SAC_ERR_ARG : SAC_OK);
        sac_session_result_finish(&r);
    }
    sac_context_last_error(test_context(), why, sizeof why);
    assert_int_not_equal(strlen(why), 0);
    sac_session_destroy(&s);
}

static void streams_have_their_own_ids(void **state)
{
    (void)state;
    struct sac_session_params params = with_models();
    struct sac_session_result r;
    int64_t                   seen[2] = {0};
    params.submit_max = 16;
    sac_session *s = started(&params);
    for (int64_t i = 0; i < 8; i++)
        for (int stream = 0; stream < 2; stream++)
            assert_sac_ok(submit(s, i, stream));
    sac_session_end(s);
    while (sac_session_result_wait(s, -1, &r) == SAC_OK) {
        assert_int_equal(r.status, SAC_OK);
        if (r.count)
            seen[r.stream_id] = r.tracks[0].id;
        sac_session_result_finish(&r);
    }
    assert_true(seen[0] > 0 && seen[1] > 0);
    assert_int_not_equal(seen[0], seen[1]);
    sac_session_destroy(&s);
}

/* ---- frames from the program's own memory ---- */

static const struct sac_device_ops *home_ops;
static struct sac_device_ops        remote_ops;
static sac_device                  *remote;
static int                          records;

/* A frame on its way records two events, the last thing before it goes to the stages: these see the
 * CPU again. */
static sac_result record_and_go_home(struct sac_event *event, struct sac_device_stream *stream)
{
    if (++records % 2 == 0)
        remote->ops = home_ops;
    return home_ops->event_record(event, stream);
}

/* For the next frame, memory of the session's device is not the host's. */
static void go_away(sac_device *dev)
{
    remote = dev;
    home_ops = dev->ops;
    remote_ops = *home_ops;
    remote_ops.host_memory = false;
    remote_ops.event_record = record_and_go_home;
    dev->ops = &remote_ops;
}

static void count_release(void *user)
{
    ++*(int *)user;
}

/* As cv::Mat has it: B first, rows longer than their pixels. */
static sac_frame *wrapped(sac_device *host, int64_t number, int *released)
{
    enum { WIDTH = 128, HEIGHT = 96, PITCH = 3 * WIDTH + 7 };
    static uint8_t pixels[HEIGHT * PITCH];
    sac_frame *frame = NULL, desc = {.format = SAC_PIXEL_BGR24, .width = WIDTH, .height = HEIGHT};
    desc.number = number;
    desc.pts_us = number * 100000;
    desc.plane[0] = pixels;
    desc.pitch_bytes[0] = PITCH;
    for (int i = 0; i < HEIGHT * PITCH; i++)
        pixels[i] = (uint8_t)(i * 7 % 251);
    assert_sac_ok(sac_frame_wrap(host, &desc, count_release, released, &frame));
    return frame;
}

static void host_memory_goes_into_any_session(void **state)
{
    (void)state;
    enum { FRAMES = 6 };
    struct sac_session_params params = with_models();
    sac_device               *host = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &host));
    for (int far = 0; far < 2; far++) {
        struct sac_session_result r;
        struct sac_ledger         ledger;
        sac_session              *s = started(&params);
        sac_device               *dev = sac_session_device(s);
        int                       released = 0;
        for (int i = 0; i < FRAMES; i++) {
            sac_frame *frame = wrapped(host, i, &released);
            if (far)
                go_away(dev);
            assert_sac_ok(sac_session_submit(s, frame, i));
            assert_sac_ok(sac_session_result_wait(s, -1, &r));
            assert_int_equal(r.status, SAC_OK);
            assert_ptr_equal(r.frame, frame);
            sac_frame_unref(&frame);
            assert_int_equal(released, i);
            sac_session_result_finish(&r);
            assert_int_equal(released, i + 1);
        }
        sac_device_ledger(dev, &ledger);
        assert_int_equal(ledger.reason[SAC_COPY_FRAME_UPLOAD].calls, far ? FRAMES : 0);
        sac_session_destroy(&s);
    }
    sac_device_unref(&host);
}

static void a_frame_that_is_turned_stays_the_programs(void **state)
{
    (void)state;
    struct sac_session_params params = with_models();
    struct sac_session_result r;
    sac_device               *host = NULL;
    int                       released = 0;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &host));
    sac_session *s = started(&params);
    sac_frame   *frame = wrapped(host, 0, &released);
    *frame = sac_frame_as_turned(frame, SAC_TURN_90);
    assert_sac_ok(sac_session_submit(s, frame, 0));
    assert_int_equal(released, 0);
    assert_sac_ok(sac_session_result_wait(s, -1, &r));
    assert_int_equal(r.status, SAC_OK);
    assert_ptr_equal(r.frame, frame);
    sac_session_result_finish(&r);
    assert_int_equal(released, 0);
    sac_frame_unref(&frame);
    assert_int_equal(released, 1);
    sac_session_destroy(&s);
    sac_device_unref(&host);
}

static void a_refused_upload_costs_its_frame_alone(void **state)
{
    (void)state;
    struct sac_session_params params = with_models();
    struct sac_session_result r;
    char                      why[512];
    sac_device               *host = NULL;
    int                       released = 0;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &host));
    params.submit_max = 1;
    sac_session *s = started(&params);
    sac_device  *dev = sac_session_device(s);
    sac_frame   *frame = wrapped(host, 0, &released);
    go_away(dev);
    atomic_store(&dev->strict, 1);
    assert_sac_error(sac_session_submit(s, frame, 0), SAC_ERR_COPY);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "sac_session_device"));
    atomic_store(&dev->strict, 0);
    dev->ops = home_ops;
    assert_sac_ok(sac_session_submit(s, frame, 0)); /* its place is free again */
    assert_sac_ok(sac_session_result_wait(s, -1, &r));
    sac_session_result_finish(&r);
    sac_frame_unref(&frame);
    assert_int_equal(released, 1);
    sac_session_destroy(&s);
    sac_device_unref(&host);
}

static void checks_its_arguments(void **state)
{
    (void)state;
    struct sac_session_params params = sac_session_params_default();
    struct sac_session_result r;
    sac_session              *s = NULL;
    sac_device               *other = NULL;
    sac_frame *frame = NULL, desc = {.format = SAC_PIXEL_GRAY8, .width = 8, .height = 8};
    params.job.device = "cpu";
    params.job.detector = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &other));
    assert_sac_ok(sac_frame_create(other, &desc, &frame));
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    assert_sac_error(sac_session_submit(s, frame, 0), SAC_ERR_ARG); /* not started */
    assert_sac_error(sac_session_result_wait(s, 0, &r), SAC_ERR_ARG);
    assert_sac_error(sac_session_start(s), SAC_ERR_ARG); /* no detector */
    sac_session_destroy(&s);
    params.job.detector = "/nowhere/m.onnx";
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    assert_sac_error(sac_session_start(s), SAC_ERR_IO);
    sac_session_destroy(&s);
    params.job.detector = "nobody"; /* a name is looked for at once */
    assert_sac_error(sac_session_create(test_context(), &params, &s), SAC_ERR_IO);
    params.job.detector = "auto";
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    assert_sac_ok(sac_session_start(s)); /* with the model that comes with saccade */
    sac_session_destroy(&s);
    params.job.device = "abacus";
    assert_sac_error(sac_session_create(test_context(), &params, &s), SAC_ERR_ARG);
    assert_null(s);
    params = with_models();
    s = started(&params);
    assert_sac_error(sac_session_start(s), SAC_ERR_ARG);
    static struct sac_device_ops other_gpu;
    other_gpu = *other->ops;
    other_gpu.host_memory = false;
    other->ops = &other_gpu;
    assert_sac_error(sac_session_submit(s, frame, 0), SAC_ERR_ARG); /* of another GPU */
    assert_sac_error(sac_session_submit(s, NULL, 0), SAC_ERR_ARG);
    sac_session_destroy(&s);
    sac_frame_unref(&frame);
    sac_device_unref(&other);
}

/* One frame's way through a session of its own; its status, or why it did not get so far. */
static sac_result run_one_frame(const struct sac_session_params *params)
{
    struct sac_session_result r = {0};
    sac_session              *s = NULL;
    sac_frame *frame = NULL, desc = {.format = SAC_PIXEL_GRAY8, .width = 64, .height = 64};
    sac_result res = sac_session_create(test_context(), params, &s);
    if (res == SAC_OK)
        res = sac_session_start(s);
    if (res == SAC_OK)
        res = sac_frame_create(sac_session_device(s), &desc, &frame);
    if (res == SAC_OK) {
        for (int y = 0; y < desc.height; y++)
            memset(frame->plane[0] + (size_t)y * frame->pitch_bytes[0], 128, 64);
        res = sac_session_submit(s, frame, 0);
    }
    if (res == SAC_OK)
        res = sac_session_result_wait(s, -1, &r);
    if (res == SAC_OK)
        res = r.status;
    sac_session_result_finish(&r);
    sac_frame_unref(&frame);
    sac_session_destroy(&s);
    return res;
}

static size_t read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
    unlink(path);
    return length;
}

static void reports_are_whole_once_it_is_destroyed(void **state)
{
    (void)state;
    static char               text[65536];
    struct sac_session_params params = with_models();
    struct sac_session_result r;
    char                      stats[64], trace[64];
    snprintf(stats, sizeof stats, "/tmp/saccade-test-session-%d.stats", (int)getpid());
    snprintf(trace, sizeof trace, "/tmp/saccade-test-session-%d.trace", (int)getpid());
    params.job.stats_out = stats;
    params.job.trace_out = trace;
    sac_session *s = started(&params);
    for (int64_t i = 0; i < 3; i++)
        assert_sac_ok(submit(s, i, 0));
    assert_sac_ok(sac_session_result_wait(s, -1, &r));
    sac_session_result_finish(&r);
    sac_session_destroy(&s); /* with results that nobody took */
    assert_true(read_text(stats, text, sizeof text) > 0);
    assert_non_null(strstr(text, "\"format\":\"saccade-stats\""));
    assert_non_null(strstr(text, "{\"name\":\"reid\",\"count\":"));
    size_t length = read_text(trace, text, sizeof text);
    assert_non_null(strstr(text, "\"name\":\"inference\""));
    assert_string_equal(text + length - 3, "\n]\n");
}

/* Some failures are survived (another kernel, a smaller step), so a success does not mean the
 * end. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct sac_session_params params = with_models();
    int                       failures = 0;
    for (long n = 1; n <= 600; n++) {
        sac_alloc_fail_at(n);
        sac_result res = run_one_frame(&params);
        sac_alloc_fail_at(0);
        assert_true(res == SAC_OK || res == SAC_ERR_MEMORY);
        failures += res != SAC_OK;
    }
    assert_in_range(failures, 100, 599);
}

static void a_session_overwrites_no_model(void **state)
{
    (void)state;
    char model[] = "/tmp/saccade-test-model-XXXXXX", command[256], out[64];
    int  fd = mkstemp(model);
    assert_true(fd >= 0);
    close(fd);
    snprintf(command, sizeof command, "cp '%s' '%s'", with_models().job.detector, model);
    assert_int_equal(system(command), 0);
    struct sac_session_params params = with_models();
    sac_session              *s = NULL;
    snprintf(out, sizeof out, "/tmp/../tmp/%s", model + 5);
    params.job.detector = model;
    params.job.stats_out = out;
    assert_sac_error(sac_session_create(test_context(), &params, &s), SAC_ERR_ARG);
    assert_null(s);
    unlink(model);
}

/* Frames of a program are watched as a run's are. */
static void a_session_can_be_watched(void **state)
{
    (void)state;
    struct sac_session_params params = with_models();
    struct sac_monitor_params watched = sac_monitor_params_default();
    struct sac_session_result result;
    sac_session              *s = NULL;
    params.job.monitor = &watched;
    watched.interval_ms = 1;
    assert_why(sac_session_create(test_context(), &params, &s), SAC_ERR_ARG, "interval_ms");
    watched.interval_ms = 100;
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    watched.interval_ms = 0; /* it was copied */
    assert_null(sac_session_monitor(s));
    assert_sac_ok(sac_session_start(s));
    assert_non_null(sac_session_monitor(s));
    for (int i = 0; i < 600 && sac_monitor_figure_count(sac_session_monitor(s)) < 5; i++) {
        assert_sac_ok(submit(s, i, 0));
        assert_sac_ok(sac_session_result_wait(s, -1, &result));
        sac_session_result_finish(&result);
        usleep(50000);
    }
    assert_true(sac_monitor_figure_count(sac_session_monitor(s)) >= 5);
    sac_session_destroy(&s);
    assert_null(sac_session_monitor(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_overwrites_no_model),
        cmocka_unit_test(results_come_in_order),
        cmocka_unit_test(an_idle_device_waits_for_no_more_than_the_least),
        cmocka_unit_test(says_when_it_is_full),
        cmocka_unit_test(a_bad_frame_spoils_no_other),
        cmocka_unit_test(streams_have_their_own_ids),
        cmocka_unit_test(host_memory_goes_into_any_session),
        cmocka_unit_test(a_frame_that_is_turned_stays_the_programs),
        cmocka_unit_test(a_refused_upload_costs_its_frame_alone),
        cmocka_unit_test(checks_its_arguments),
        cmocka_unit_test(reports_are_whole_once_it_is_destroyed),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_session_can_be_watched),
    };
    return cmocka_run_group_tests_name("pipeline/session", tests, NULL, NULL);
}
