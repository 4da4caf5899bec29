/* SPDX-License-Identifier: Apache-2.0 */
/* A device that runs out of memory during a run: batches become smaller, which is logged, no frame
 * is lost or has other results, and when memory is free they become large again. Another user takes
 * the device's memory for a while; a batch's memory grows with its frames. On the CPU used like a
 * GPU, on the far device, and on a GPU. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/inference.h"
#include "pipeline/tasks/segment.h"
#include "pipeline/tasks/track.h"
#include "tests/gpu.h"
#include "tests/pipeline/folder.h"
#include "vision/vision.h"

enum {
    BATCH = 8,
    SIDE = 160,
    PIECES_MAX = 64,
    SMALL_MS = 30,
    LINES_MAX = 64,
    TRIAL_MAX = 8, /* refusals until batches are small enough */
    TURNS_MAX = 400
};
static size_t   frame_bytes = 16 << 20; /* that a frame of a batch wants */
static size_t   left_bytes = 44 << 20;  /* enough for two */
static uint64_t limit_bytes;            /* of the device: all of it is taken at times */

/* Allocators that fill what they give (MALLOC_PERTURB_, the sanitizers') touch all of it. */
static uint64_t limit_of(const char *device)
{
    if (getenv("SACCADE_TEST_FAR"))
        return 96 << 20;
    return strcmp(device, "cpu") ? UINT64_C(2) << 30 : UINT64_C(384) << 20;
}

/* ---- a device whose batches want memory ---- */

static const struct sac_vision_ops *usual_vision;
static struct sac_vision_ops        hungry_vision;
static struct sac_device_ops        hungry_ops, warm_ops;
static atomic_int                   largest, refused; /* batch that ran, and those that did not */
static atomic_bool                  held;             /* no batch begins */

static sac_result hungry_preprocess(struct sac_device *dev, struct sac_device_stream *stream,
                                    const struct sac_preprocess     *pre,
                                    const struct sac_preprocess_job *jobs, int n, void *dst)
{
    struct sac_buffer *work = NULL;
    while (atomic_load(&held))
        usleep(1000);
    sac_result res = sac_buffer_create(dev, (size_t)n * frame_bytes, "a batch's work", &work);
    if (res != SAC_OK) {
        atomic_fetch_add(&refused, 1);
        return res;
    }
    atomic_store(&largest, SAC_MAX(atomic_load(&largest), n));
    sac_buffer_unref(&work);
    return usual_vision->preprocess(dev, stream, pre, jobs, n, dst);
}

static void make_hungry(sac_device *dev)
{
    usual_vision = dev->ops->vision;
    hungry_vision = *usual_vision;
    hungry_vision.preprocess = hungry_preprocess;
    hungry_ops = *dev->ops;
    hungry_ops.vision = &hungry_vision;
    dev->ops = &hungry_ops;
}

/* ---- what the log says ---- */

static struct {
    pthread_mutex_t lock;
    char            lines[LINES_MAX][200];
    int             count;
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void hear(void *user, enum sac_log_level level, const char *line)
{
    (void)user, (void)level;
    if (!strstr(line, "batches of"))
        return;
    pthread_mutex_lock(&said.lock);
    if (said.count < LINES_MAX)
        snprintf(said.lines[said.count++], sizeof said.lines[0], "%s", line);
    pthread_mutex_unlock(&said.lock);
}

static int count_said(const char *words)
{
    int n = 0;
    pthread_mutex_lock(&said.lock);
    for (int i = 0; i < said.count; i++)
        n += strstr(said.lines[i], words) != NULL;
    pthread_mutex_unlock(&said.lock);
    return n;
}

/* ---- a neighbour ---- */

static struct sac_buffer *pieces[PIECES_MAX];
static int                piece_count;

static uint64_t bytes_left(sac_device *dev)
{
    struct sac_pool_stats stats;
    sac_device_pool_stats(dev, &stats);
    return limit_bytes - stats.bytes_live;
}

/* A size class is at most a quarter larger than what was asked for. */
static void take_all_but(sac_device *dev, size_t left)
{
    for (size_t bytes = 1 << 30; bytes >= 1 << 19; bytes /= 2)
        while (bytes_left(dev) >= left + bytes + bytes / 4) {
            assert_in_range(piece_count, 0, PIECES_MAX - 1);
            assert_sac_ok(sac_buffer_create(dev, bytes, "a neighbour", &pieces[piece_count]));
            piece_count++;
        }
}

static void give_all_back(void)
{
    while (piece_count > 0)
        sac_buffer_unref(&pieces[--piece_count]);
}

/* ---- frames through a job ---- */

static int                              rig_batch = BATCH;
static float                            rig_target = 1; /* small batches try larger ones anyway */
static bool                             rig_noise;      /* frames show something */
static const struct sac_segment_params *rig_segment;    /* NULL: it tracks */

static size_t tracker_count(const struct sac_job *job)
{
    return ((const struct sac_track_run *)job->run)->tracker_count;
}

struct rig {
    sac_context    *ctx;
    struct sac_job *job;
    int64_t         number;
};

/* give: what makes way for models that find no memory, or NULL. reid: "none" or a model. */
static void open_rig_with(struct rig *rig, const char *device, const char *reid,
                          bool (*give)(void *user, struct sac_job *job))
{
    struct sac_context_params   loud = sac_context_params_default();
    struct sac_track_job_params params = sac_pipeline_params_default().job;
    char                        why[512] = "";
    loud.log_fn = hear;
    said.count = 0;
    assert_sac_ok(sac_context_create(&loud, &rig->ctx));
    params.device = device;
    /* What batches are made of is the same for a small network; the CPU's sanitized takes long. */
    params.detector = (strcmp(device, "cpu") || give) && !rig_noise ? "person_det_fast"
                                                                    : TEST_HEADS "/yolov8.onnx";
    if (rig_noise)
        params.detector_params.score_min = 0.02f;
    params.memory_target = rig_target;
    params.reid = reid;
    params.tracker = sac_tracker_params_default(strcmp(reid, "none") ? SAC_TRACKER_BOTSORT
                                                                     : SAC_TRACKER_BYTETRACK);
    params.batches_ahead = 2;
    params.inference_batch_max = params.detector_params.batch_max = rig_batch;
    params.timeout_ms = 100;
    params.segment = rig_segment;
    params.device_params.memory_limit_bytes = limit_bytes = limit_of(device);
    const struct sac_task *task = rig_segment ? &sac_task_segment : &sac_task_track;
    sac_result res = sac_job_create(rig->ctx, task, &params, 4 * BATCH, NULL, &rig->job);
    if (res == SAC_OK)
        res = sac_job_open_device(rig->job);
    if (res == SAC_OK) {
        if (give) {
            warm_ops = *rig->job->dev->ops;
            warm_ops.warm_runs = SAC_MAX(warm_ops.warm_runs, 1); /* so that all is asked for now */
            rig->job->dev->ops = &warm_ops;
            take_all_but(rig->job->dev, 0);
        } else {
            make_hungry(rig->job->dev);
        }
        rig->job->give_way = give;
        rig->job->inference->small_ns = (int64_t)SMALL_MS * 1000000;
        res = sac_job_start(rig->job);
    }
    sac_context_last_error(rig->ctx, why, sizeof why);
    if (res != SAC_OK)
        fail_msg("%s", why);
    rig->number = 0;
}

static void open_rig(struct rig *rig, const char *device,
                     bool (*give)(void *user, struct sac_job *job))
{
    open_rig_with(rig, device, "none", give);
}

static void close_rig(struct rig *rig)
{
    struct sac_pool_stats stats;
    give_all_back();
    sac_device *dev = sac_device_ref(rig->job->dev);
    sac_job_destroy(&rig->job);
    sac_device_pool_stats(dev, &stats);
    assert_int_equal(stats.leaks, 0);
    sac_device_unref(&dev);
    sac_context_destroy(&rig->ctx);
}

/* Noise that tells the frame. */
static void fill(struct rig *rig, sac_frame *frame, int64_t number)
{
    sac_device *cpu = NULL;
    sac_frame  *near = NULL;
    uint64_t    random = (uint64_t)number + 1;
    assert_sac_ok(sac_device_open(rig->ctx, "cpu", NULL, &cpu));
    assert_sac_ok(sac_frame_create(cpu, frame, &near));
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < 3 * SIDE; x++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            near->plane[0][(size_t)y * near->pitch_bytes[0] + (size_t)x] = (uint8_t)(random >> 56);
        }
    assert_sac_ok(sac_frame_copy(near, frame));
    assert_sac_ok(sac_device_wait(frame->device));
    sac_frame_unref(&near);
    sac_device_unref(&cpu);
}

/* What came back, with rig_noise. */
struct outcome {
    size_t               count;
    struct sac_detection boxes[16];
    size_t               tracks;
    int64_t              first; /* identity */
};
static struct outcome outcomes[4 * BATCH];

static void keep_result(const struct sac_item *item)
{
    const size_t n = SAC_MIN(item->found.count, SAC_COUNT(outcomes[0].boxes));
    outcomes[item->id].count = item->found.count;
    memcpy(outcomes[item->id].boxes, item->found.items, n * sizeof *item->found.items);
    outcomes[item->id].tracks = item->track_count;
    outcomes[item->id].first = item->track_count ? item->tracks[0].id : -1;
}

/* All come back, in order and well. No batch begins before all are there: from the second on
 * they are as large as they may be. Returns the largest that ran. */
static int send(struct rig *rig, int frames)
{
    atomic_store(&largest, 0);
    atomic_store(&held, true);
    for (int i = 0; i < frames; i++) {
        struct sac_item *item = sac_job_item(rig->job);
        sac_frame        desc = {.format = SAC_PIXEL_RGB24, .width = SIDE, .height = SIDE};
        assert_non_null(item);
        assert_sac_ok(sac_frame_create(rig->job->dev, &desc, &item->frame));
        if (rig_noise)
            fill(rig, item->frame, rig->number + i);
        item->number = item->id = rig->number + i;
        item->pts_us = item->id * 40000;
        assert_sac_ok(sac_job_push_wait(rig->job, item));
    }
    atomic_store(&held, false);
    for (int i = 0; i < frames; i++) {
        struct sac_item *item = NULL;
        assert_sac_ok(sac_job_pop_wait(rig->job, -1, &item));
        if (item->status != SAC_OK)
            fail_msg("frame %d: %s", (int)item->id, item->why);
        assert_int_equal(item->id, rig->number + i);
        if (rig_noise)
            keep_result(item);
        sac_job_recycle(rig->job, item);
    }
    rig->number += frames;
    return atomic_load(&largest);
}

static void check(const char *device)
{
    struct rig rig;
    open_rig(&rig, device, NULL);
    assert_int_equal(send(&rig, 2 * BATCH), BATCH);
    assert_int_equal(atomic_load(&refused), 0);

    take_all_but(rig.job->dev, left_bytes);
    send(&rig, 3 * BATCH);
    assert_in_range(send(&rig, BATCH), 1, 2); /* a batch of two may run as two of one */
    assert_true(count_said("has no memory for batches of 8 frames: they have up to 4 now") >= 1);
    assert_true(count_said("has no memory for batches of 4 frames: they have up to 2 now") >= 1);

    /* Larger ones are tried now and then, and refused again: all frames come all the same. */
    for (int turn = 0; turn < TURNS_MAX && count_said("are tried again") < 2; turn++) {
        usleep(SMALL_MS * 1000);
        assert_in_range(send(&rig, BATCH), 1, 2);
    }
    assert_in_range(count_said("are tried again"), 2, LINES_MAX);
    assert_in_range(atomic_load(&refused), 2, TRIAL_MAX * (1 + count_said("are tried again")));

    give_all_back();
    int size = 2;
    for (int turn = 0; turn < TURNS_MAX && size < BATCH; turn++) {
        usleep(4 * SMALL_MS * 1000);
        size = send(&rig, 2 * BATCH);
    }
    assert_int_equal(size, BATCH);
    assert_true(count_said("batches of up to 4 frames are tried again") >= 1);
    assert_true(count_said("batches of up to 8 frames are tried again") >= 1);
    struct sac_pipeline_stats stats;
    sac_job_get_stats(rig.job, &stats);
    assert_int_equal(stats.batch.shrunk, count_said("has no memory for batches"));
    assert_int_equal(stats.batch.grown, count_said("are tried again"));
    print_message("%s: %d frames, %d batches refused; %d sentences\n", device, (int)rig.number,
                  atomic_load(&refused), said.count);
    close_rig(&rig);
}

/* While nearly all of the memory is in use, larger batches are not tried; below the target they
 * are. */
static void batches_grow_towards_their_target(void **state)
{
    (void)state;
    struct rig rig;
    rig_target = 0.85f;
    open_rig(&rig, "cpu", NULL);
    take_all_but(rig.job->dev, left_bytes); /* 0.89 of it is in use */
    send(&rig, 3 * BATCH);
    for (int turn = 0; turn < 10; turn++) {
        usleep(2 * SMALL_MS * 1000);
        assert_in_range(send(&rig, BATCH), 1, 2);
    }
    assert_int_equal(count_said("are tried again"), 0);
    give_all_back();
    take_all_but(rig.job->dev, (size_t)limit_bytes / 2);
    int size = 2;
    for (int turn = 0; turn < TURNS_MAX && size < BATCH; turn++) {
        usleep(4 * SMALL_MS * 1000);
        size = send(&rig, 2 * BATCH);
    }
    rig_target = 1;
    assert_int_equal(size, BATCH);
    close_rig(&rig);
}

/* The frames of a run without memory for its batches have the results of one with enough of it. */
static void check_results(const char *device)
{
    static struct outcome want[SAC_COUNT(outcomes)];
    struct rig            rig;
    size_t                boxes = 0;
    rig_noise = true;
    for (int starved = 0; starved < 2; starved++) {
        memset(outcomes, 0, sizeof outcomes);
        open_rig(&rig, device, NULL);
        if (starved)
            take_all_but(rig.job->dev, left_bytes);
        assert_int_equal(send(&rig, 4 * BATCH) > 2, !starved);
        assert_int_equal(count_said("has no memory for batches") > 0, starved);
        close_rig(&rig);
        if (!starved)
            memcpy(want, outcomes, sizeof want);
    }
    rig_noise = false;
    for (int i = 0; i < 4 * BATCH; i++)
        boxes += want[i].count;
    assert_true(boxes > 0);
    assert_memory_equal(want, outcomes, sizeof want);
    print_message("%s: %zu boxes of %d frames are the same\n", device, boxes, 4 * BATCH);
}

static void results_do_not_depend_on_memory(void **state)
{
    (void)state;
    check_results("cpu");
}

static void nor_do_they_on_a_gpu(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
    check_results("cuda");
}

/* ---- streams that end for the others ---- */

enum { LANES = 3, EACH = 6 };
static const size_t NOTHING_BYTES = 4 << 20; /* too little for one frame */
static const int    CLOSING_MS = 100;        /* until a refused stream's decoder is closed */

struct result {
    int well, failed;
};

static void push(struct rig *rig, struct sac_lane *lane, int stream, int64_t number, bool last)
{
    struct sac_item *item = sac_job_item(rig->job);
    sac_frame        desc = {.format = SAC_PIXEL_RGB24, .width = SIDE, .height = SIDE};
    assert_non_null(item);
    if (!last)
        assert_sac_ok(sac_frame_create(rig->job->dev, &desc, &item->frame));
    item->lane = lane;
    item->last = last;
    item->stream_id = stream;
    item->number = number;
    item->pts_us = number * 40000;
    assert_sac_ok(sac_job_push_wait(rig->job, item));
}

/* What a sink and a reader do: with its first fault a stream ends, and some time later the memory
 * of its decoder is free. */
static void take_results(struct rig *rig, struct sac_lane *lane, struct result *result)
{
    void *popped;
    for (bool last = false; !last;) {
        assert_sac_ok(sac_queue_pop_wait(lane->done, -1, &popped));
        struct sac_item *item = popped;
        last = item->last;
        if (!last && item->status == SAC_OK && result->failed == 0)
            assert_int_equal(item->number, result->well++);
        else if (!last && item->status != SAC_OK && result->failed++ == 0) {
            print_message("%s\n", item->why);
            usleep(CLOSING_MS * 1000);
            give_all_back();
        }
        sac_job_recycle(rig->job, item);
    }
}

/* Not even one frame fits until a stream has ended: the newest does, and no other. */
static void check_streams(const char *device, int batch_max)
{
    struct rig      rig;
    struct sac_lane lanes[LANES] = {{0}};
    struct result   results[LANES] = {{0}};
    rig_batch = batch_max;
    open_rig(&rig, device, NULL);
    rig_batch = BATCH;
    for (int k = 0; k < LANES; k++)
        assert_sac_ok(sac_queue_create(rig.ctx, EACH + 1, &lanes[k].done));
    take_all_but(rig.job->dev, NOTHING_BYTES);
    atomic_store(&held, true);
    for (int i = 0; i < EACH; i++)
        for (int k = 0; k < LANES; k++)
            push(&rig, &lanes[k], k, i, false);
    for (int k = 0; k < LANES; k++)
        push(&rig, &lanes[k], k, EACH, true);
    atomic_store(&held, false);
    for (int k = LANES - 1; k >= 0; k--)
        take_results(&rig, &lanes[k], &results[k]);
    assert_in_range(results[LANES - 1].failed, 1, EACH);
    for (int k = 0; k < LANES - 1; k++) {
        assert_int_equal(results[k].failed, 0);
        assert_int_equal(results[k].well, EACH);
    }
    for (int k = 0; k < LANES; k++)
        sac_queue_destroy(&lanes[k].done);
    close_rig(&rig);
}

static void one_stream_ends_for_the_others(void **state)
{
    (void)state;
    check_streams("cpu", BATCH);
    check_streams("cpu", 1);
}

static void so_it_does_on_a_gpu(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
    check_streams("cuda", BATCH);
    check_streams("cuda", 1);
}

static int given;

/* As a pipeline gives up a stream: some memory at a time. */
static bool give_a_piece(void *user, struct sac_job *job)
{
    (void)user, (void)job;
    if (piece_count == 0)
        return false;
    sac_buffer_unref(&pieces[--piece_count]);
    given++;
    return true;
}

static void check_models(const char *device)
{
    struct rig rig;
    given = 0;
    setenv("SACCADE_CACHE", folder, 1); /* what is planned with so little memory is nobody's to keep
                                         */
    open_rig(&rig, device, give_a_piece);
    assert_in_range(given, 1, PIECES_MAX);
    assert_true(piece_count > 0);           /* no more than it took */
    assert_int_equal(send(&rig, BATCH), 0); /* all come back; nobody counts batches */
    print_message("%s: the models were loaded when %d pieces were given back\n", device, given);
    close_rig(&rig);
    unsetenv("SACCADE_CACHE");
}

/* The network that is opened at last tells where people are, as the first one would have. */
static void regions_are_found_by_the_model_that_found_room(void **state)
{
    (void)state;
    struct rig                rig;
    struct sac_segment_params segment = sac_segment_params_default();
    segment.model = "person_seg";
    segment.region = 1;
    given = 0;
    setenv("SACCADE_CACHE", folder, 1);
    rig_segment = &segment;
    open_rig(&rig, "cpu", give_a_piece);
    rig_segment = NULL;
    const struct sac_segment_run *run = (const struct sac_segment_run *)rig.job->run;
    assert_in_range(given, 1, PIECES_MAX);
    assert_non_null(run->region);
    assert_true(run->seg->summarises);
    close_rig(&rig);
    unsetenv("SACCADE_CACHE");
}

/* A stream's tracker, with its objects' embeddings on the device, when that is full; the CPU's
 * memory is taken for a device's. */
static void check_tracker(const char *device)
{
    struct sac_device_ops apart;
    struct rig            rig;
    struct sac_pool_stats before, after;
    given = 0;
    setenv("SACCADE_CACHE", folder, 1);
    open_rig_with(&rig, device, "person_reid", give_a_piece);
    give_all_back();
    take_all_but(rig.job->dev, 0);
    const struct sac_device_ops *own = rig.job->dev->ops;
    apart = *own;
    apart.host_memory = false;
    rig.job->dev->ops = &apart;
    sac_device_pool_stats(rig.job->dev, &before);
    const int    stream = 2, taken = piece_count;
    const size_t trackers = tracker_count(rig.job); /* models ask the first stream's */
    sac_result   res = sac_job_expect(rig.job, stream, 0, 0);
    assert_true(sac_is_out_of_memory(res));
    assert_int_equal(tracker_count(rig.job), trackers); /* nothing of it stays */
    sac_device_pool_stats(rig.job->dev, &after);
    assert_int_equal(after.bytes_live, before.bytes_live);
    given = 0;
    while (sac_job_make_way(rig.job, res))
        res = sac_job_expect(rig.job, stream, 0, 0);
    assert_sac_ok(res);
    assert_int_equal(tracker_count(rig.job), trackers + 1);
    assert_in_range(given, 1, taken - 1); /* no more than it took */
    assert_false(sac_job_make_way(rig.job, SAC_ERR_IO));
    sac_job_forget(rig.job, stream);
    rig.job->dev->ops = own;
    close_rig(&rig);
    unsetenv("SACCADE_CACHE");
}

static void trackers_are_given_room(void **state)
{
    (void)state;
    check_tracker("cpu");
}

static void so_they_are_on_a_gpu(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
    check_tracker("cuda");
}

static void models_are_given_room(void **state)
{
    (void)state;
    check_models("cpu");
}

static void also_on_a_gpu(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
    check_models("cuda");
}

static void batches_become_small_and_large_again(void **state)
{
    (void)state;
    atomic_store(&refused, 0);
    check("cpu");
}

static void so_they_do_on_a_gpu(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
    atomic_store(&refused, 0);
    check("cuda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_become_small_and_large_again),
        cmocka_unit_test(so_they_do_on_a_gpu),
        cmocka_unit_test(batches_grow_towards_their_target),
        cmocka_unit_test(results_do_not_depend_on_memory),
        cmocka_unit_test(nor_do_they_on_a_gpu),
        cmocka_unit_test(one_stream_ends_for_the_others),
        cmocka_unit_test(so_it_does_on_a_gpu),
        cmocka_unit_test(models_are_given_room),
        cmocka_unit_test(also_on_a_gpu),
        cmocka_unit_test(regions_are_found_by_the_model_that_found_room),
        cmocka_unit_test(trackers_are_given_room),
        cmocka_unit_test(so_they_are_on_a_gpu),
    };
    if (getenv("SACCADE_TEST_FAR")) { /* its address space is small, and used once */
        frame_bytes /= 4;
        left_bytes /= 4;
        cmocka_set_test_filter("nor_do_they_on_a_gpu");
    }
    return cmocka_run_group_tests_name("pipeline/starved", tests, folder_create, folder_remove);
}
