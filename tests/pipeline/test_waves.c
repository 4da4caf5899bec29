/* SPDX-License-Identifier: Apache-2.0 */
/* The tracking thread with several streams on a device with memory of its own (the CPU used like a
 * GPU): waiting frames are tracked in waves, each stream's in order, and the tracks equal those of
 * trackers on the host. On the CPU as such, too, where several threads follow their cameras. */
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "pipeline/tasks/track.h"
#include "tests/vision/frames.h"
#include "tests/track/picture.h"
#include "track/wave.h"
#include "vision/cpu/cpu.h"

enum { STREAMS = 6, FRAMES = 25, PEOPLE = 4, WIDTH = 320, HEIGHT = 200 };

static struct sac_device_ops remote_ops;
static struct sac_vision_ops remote_vision;
static atomic_int  largest, trips, fail_at; /* waves: frames of one, how many, which one fails */
static atomic_bool held;                    /* no wave ends */

/* Slow enough that the inference thread brings the next frames meanwhile. */
static sac_result camera(struct sac_device *dev, struct sac_device_stream *stream,
                         const struct sac_camera_job *jobs, int n, struct sac_camera_move *out)
{
    const struct timespec pause = {.tv_nsec = 3000000};
    largest = SAC_MAX(largest, n);
    do
        nanosleep(&pause, NULL);
    while (held);
    if (++trips == fail_at)
        return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "test: the device fails");
    return sac_vision_cpu.camera(dev, stream, jobs, n, out);
}

/* ---- what the streams show ---- */

static struct sac_mot_row rows[STREAMS][FRAMES * PEOPLE];

static void make_rows(void)
{
    for (int s = 0; s < STREAMS; s++)
        for (int k = 0; k < FRAMES; k++)
            for (int i = 0; i < PEOPLE; i++)
                rows[s][k * PEOPLE + i] = (struct sac_mot_row){.frame = k + 1,
                                                               .id = -1,
                                                               .x = 20 + 70 * i + (s + 1) * 0.5 * k,
                                                               .y = 40 + 5 * sin(k * 0.3 + s),
                                                               .w = 30,
                                                               .h = 90,
                                                               .conf = 0.9f,
                                                               .class_id = -1};
}

static sac_frame *make_frame(sac_device *dev, int stream, int number)
{
    const struct sac_similarity look = {1, 0, (stream + 1) * 0.5 * number,
                                        5 * sin(number * 0.3 + stream)};
    sac_frame                  *f = test_frame(dev, SAC_PIXEL_NV12, WIDTH, HEIGHT);
    picture_take(f, &look);
    return f;
}

/* ---- the job ---- */

static size_t tracker_count(const struct sac_job *job)
{
    return ((const struct sac_track_run *)job->run)->tracker_count;
}

struct run {
    struct sac_job *job;
    struct sac_rows rows[STREAMS];
    struct sac_lane lane[STREAMS];
};

static void look_like_a_gpu(sac_device *dev)
{
    remote_ops = *dev->ops;
    remote_ops.host_memory = false;
    remote_ops.vision = &remote_vision;
    remote_vision = sac_vision_cpu;
    remote_vision.camera = camera;
    dev->ops = &remote_ops;
}

static void open_run(struct run *r, sac_context *ctx, bool remote, int threads)
{
    struct sac_track_job_params p = sac_pipeline_params_default().job;
    p.device = "cpu";
    p.detector = p.reid = "none";
    p.postprocess_threads = threads;
    assert_sac_ok(
        sac_job_create(ctx, &sac_task_track_rows, &p, STREAMS * (FRAMES + 1), NULL, &r->job));
    assert_sac_ok(sac_job_open_device(r->job));
    if (remote)
        look_like_a_gpu(r->job->dev);
    largest = trips = 0;
    for (int s = 0; s < STREAMS; s++) {
        r->rows[s] = (struct sac_rows){
            .file = {.rows = rows[s], .count = FRAMES * PEOPLE, .frame_max = FRAMES}};
        r->lane[s] = (struct sac_lane){.rows = &r->rows[s]};
        assert_sac_ok(sac_queue_create(ctx, FRAMES + 1, &r->lane[s].done));
    }
    assert_sac_ok(sac_job_start(r->job));
}

static sac_frame *drawn[STREAMS][FRAMES];

static void push(struct run *r, int stream, int number)
{
    struct sac_item *item = sac_job_item(r->job);
    assert_non_null(item);
    item->lane = &r->lane[stream];
    item->stream_id = stream;
    item->number = number;
    item->pts_us = number * 40000;
    item->last = number == FRAMES;
    if (!item->last)
        item->frame = drawn[stream][number];
    assert_sac_ok(sac_job_push_wait(r->job, item));
}

/* The first wave on a device lasts until all frames are there; they are drawn before. */
static void push_all(struct run *r, bool stream_by_stream)
{
    const int inner = stream_by_stream ? FRAMES + 1 : STREAMS;
    for (int i = 0; i < STREAMS * FRAMES; i++)
        drawn[i % STREAMS][i / STREAMS] = make_frame(r->job->dev, i % STREAMS, i / STREAMS);
    held = true;
    for (int i = 0; i < STREAMS * (FRAMES + 1); i++) {
        const int a = i / inner, b = i % inner;
        push(r, stream_by_stream ? a : b, stream_by_stream ? b : a);
    }
    held = false;
}

static void close_run(struct run *r)
{
    struct sac_pool_stats stats;
    sac_device           *dev = sac_device_ref(r->job->dev);
    sac_job_destroy(&r->job);
    for (int s = 0; s < STREAMS; s++)
        sac_queue_destroy(&r->lane[s].done);
    sac_device_pool_stats(dev, &stats);
    assert_int_equal(stats.bytes_live, 0);
    sac_device_unref(&dev);
}

/* ---- tests ---- */

static bool same_track(const struct sac_track *a, const struct sac_track *b)
{
    return a->id == b->id && memcmp(&a->x0, &b->x0, 5 * sizeof a->x0) == 0 &&
           a->class_id == b->class_id && a->state == b->state &&
           memcmp(&a->vx, &b->vx, 2 * sizeof a->vx) == 0 && a->first_us == b->first_us &&
           a->last_us == b->last_us && a->detection == b->detection;
}

static void compare(struct run *r, sac_tracker *trk, sac_device *cpu, int stream, int number)
{
    struct sac_detection  det[PEOPLE];
    struct sac_track_view view;
    void                 *popped = NULL;
    sac_frame            *frame = make_frame(cpu, stream, number);
    for (int i = 0; i < PEOPLE; i++) {
        const struct sac_mot_row *m = &rows[stream][number * PEOPLE + i];
        det[i] = (struct sac_detection){(float)m->x,          (float)m->y, (float)(m->x + m->w),
                                        (float)(m->y + m->h), m->conf,     0};
    }
    assert_sac_ok(sac_tracker_update(trk, det, PEOPLE, NULL, frame, number * 40000, &view));
    assert_sac_ok(sac_queue_pop_wait(r->lane[stream].done, 10000000000, &popped));
    const struct sac_item *item = popped;
    assert_int_equal(item->number, number);
    assert_int_equal(item->status, SAC_OK);
    assert_int_equal(item->track_count, view.count);
    for (size_t i = 0; i < view.count; i++)
        assert_true(same_track(&item->tracks[i], &view.tracks[i]));
    sac_job_recycle(r->job, popped);
    sac_frame_unref(&frame);
}

/* Returns the most streams of a turn. */
static int check_tracks(bool remote, int threads)
{
    struct sac_pipeline_stats stats;
    sac_context              *ctx = NULL, *other = NULL;
    sac_device               *cpu = test_device();
    sac_tracker              *trk[STREAMS] = {NULL};
    struct run                r;
    void                     *last;
    make_rows();
    assert_sac_ok(sac_context_create(NULL, &ctx));
    assert_sac_ok(sac_context_create(NULL, &other));
    open_run(&r, ctx, remote, threads);
    push_all(&r, false);
    for (int s = 0; s < STREAMS; s++)
        assert_sac_ok(sac_tracker_create(other, NULL, &trk[s]));
    for (int k = 0; k < FRAMES; k++)
        for (int s = 0; s < STREAMS; s++)
            compare(&r, trk[s], cpu, s, k);
    for (int s = 0; s < STREAMS; s++) {
        assert_sac_ok(sac_queue_pop_wait(r.lane[s].done, 10000000000, &last));
        assert_true(((struct sac_item *)last)->last);
        sac_job_recycle(r.job, last);
        assert_int_equal(r.lane[s].frames_done, FRAMES);
        sac_tracker_destroy(&trk[s]);
    }
    assert_int_equal(tracker_count(r.job), 0); /* they ended with their streams */
    sac_job_get_stats(r.job, &stats);
    assert_int_equal(stats.postprocess_threads, remote ? 1 : SAC_MAX(threads, 1));
    close_run(&r);
    sac_device_unref(&cpu);
    sac_context_destroy(&ctx);
    sac_context_destroy(&other);
    return (int)stats.postprocess_together;
}

static void the_tracks_are_those_of_the_host(void **state)
{
    (void)state;
    assert_in_range(check_tracks(true, 0), 2, STREAMS); /* waves, in which no stream is twice */
    assert_in_range(largest, 2, STREAMS);
}

/* On the CPU waves are for them; a device needs none. */
static void threads_change_no_track(void **state)
{
    (void)state;
    assert_in_range(check_tracks(true, 3), 2, STREAMS);
    assert_int_equal(check_tracks(false, 0), 1);
    assert_int_equal(check_tracks(false, 1), 1);
    assert_in_range(check_tracks(false, 3), 2, STREAMS);
}

/* Streams whose frames come one stream behind the other share waves all the same, and keep their
 * order. */
static void frames_that_come_in_bursts_share_waves(void **state)
{
    (void)state;
    sac_context *ctx = NULL;
    struct run   r;
    make_rows();
    assert_sac_ok(sac_context_create(NULL, &ctx));
    open_run(&r, ctx, true, 0);
    push_all(&r, true);
    for (int s = 0; s < STREAMS; s++)
        for (int k = 0; k <= FRAMES; k++) {
            void *popped = NULL;
            assert_sac_ok(sac_queue_pop_wait(r.lane[s].done, 10000000000, &popped));
            struct sac_item *item = popped;
            assert_int_equal(item->number, k);
            assert_int_equal(item->status, SAC_OK);
            assert_true(item->last == (k == FRAMES));
            sac_job_recycle(r.job, item);
        }
    assert_in_range(largest, 2, STREAMS);
    assert_int_equal(tracker_count(r.job), 0);
    close_run(&r);
    sac_context_destroy(&ctx);
}

/* The frames of a wave that fails say so; all others have their tracks. */
static void a_wave_that_fails_is_one_frame_of_its_streams(void **state)
{
    (void)state;
    sac_context *ctx = NULL;
    struct run   r;
    int          failed = 0, tracked = 0;
    make_rows();
    assert_sac_ok(sac_context_create(NULL, &ctx));
    fail_at = 4;
    open_run(&r, ctx, true, 2);
    push_all(&r, false);
    for (int s = 0; s < STREAMS; s++) {
        int of_stream = 0;
        for (int k = 0; k <= FRAMES; k++) {
            void *popped = NULL;
            assert_sac_ok(sac_queue_pop_wait(r.lane[s].done, 10000000000, &popped));
            struct sac_item *item = popped;
            if (item->status != SAC_OK)
                assert_string_equal(item->why, "test: the device fails");
            of_stream += item->status != SAC_OK;
            tracked += item->track_count == PEOPLE;
            sac_job_recycle(r.job, item);
        }
        assert_in_range(of_stream, 0, 1);
        failed += of_stream;
    }
    fail_at = 0;
    assert_in_range(failed, 1, STREAMS);
    assert_in_range(tracked, STREAMS * (FRAMES - 1), STREAMS * FRAMES);
    close_run(&r);
    sac_context_destroy(&ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tracks_are_those_of_the_host),
        cmocka_unit_test(threads_change_no_track),
        cmocka_unit_test(frames_that_come_in_bursts_share_waves),
        cmocka_unit_test(a_wave_that_fails_is_one_frame_of_its_streams),
    };
    return cmocka_run_group_tests_name("pipeline/waves", tests, NULL, NULL);
}
