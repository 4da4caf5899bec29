/* SPDX-License-Identifier: Apache-2.0 */
/* The loops drive a task of which they know nothing but its row: batches of several streams, each
 * stream's frames in order, a frame that fails alone. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "examples/brightness_task.c"
#include "device/device.h"
#include "pipeline/inference.h"
#include "tests/test.h"

enum { FRAMES = 30, BAD = 17 };

static void push(struct sac_job *job, int stream, int number)
{
    struct sac_item *item = sac_job_item(job);
    sac_frame        desc = {.format = SAC_PIXEL_GRAY8, .width = 8, .height = 4};
    assert_non_null(item);
    item->stream_id = stream;
    item->number = number;
    assert_sac_ok(sac_frame_create(job->dev, &desc, &item->frame));
    for (int y = 0; y < 4; y++)
        memset(item->frame->plane[0] + (size_t)y * item->frame->pitch_bytes[0],
               number * (stream + 1), 8);
    if (number == BAD && stream == 1) {
        sac_error_clear(job->ctx);
        sac_job_fail_item(job, item, SAC_FAIL(job->ctx, SAC_ERR_FORMAT, "test: a bad frame"));
    }
    assert_sac_ok(sac_job_push_wait(job, item));
}

static void a_task_is_driven_by_its_row(void **state)
{
    (void)state;
    struct sac_track_job_params params = sac_pipeline_params_default().job;
    struct sac_job             *job = NULL;
    int                         seen[TOY_STREAMS] = {0};
    params.device = "cpu";
    params.inference_batch_max = params.detector_params.batch_max = 8;
    assert_sac_ok(
        sac_job_create(test_context(), &toy_task, &params, FRAMES * TOY_STREAMS, NULL, &job));
    assert_sac_ok(sac_job_open_device(job));
    assert_sac_ok(sac_job_start(job));
    for (int i = 0; i < FRAMES; i++)
        for (int s = 0; s < TOY_STREAMS; s++)
            push(job, s, i);
    sac_job_end(job);
    for (int i = 0; i < FRAMES * TOY_STREAMS; i++) {
        struct sac_item *item = NULL;
        assert_sac_ok(sac_job_pop_wait(job, -1, &item));
        const int             s = item->stream_id, k = seen[s]++;
        const bool            bad = s == 1 && k == BAD;
        const struct toy_own *own = item->own;
        assert_int_equal(item->number, k);
        assert_int_equal(item->status, bad ? SAC_ERR_FORMAT : SAC_OK);
        if (!bad) {
            const int step = k == 0 ? 0 : s == 1 && k == BAD + 1 ? 2 : 1;
            assert_true(own->mean == k * (s + 1) && own->brighter == step * (s + 1));
        }
        sac_job_recycle(job, item);
    }
    struct sac_pipeline_stats stats;
    sac_job_get_stats(job, &stats);
    assert_int_equal(stats.frames, FRAMES * TOY_STREAMS - 1); /* one was not done */
    sac_job_destroy(&job);
}

/* ---- the ends of streams ---- */

enum { BATCH = 4, BATCHES = 3 };

static atomic_bool held; /* the device is at work */
static atomic_int  begun, sizes[BATCHES + 1];

static sac_result busy_begin(struct sac_task_run *run, int slot, struct sac_item *const *items,
                             int n)
{
    (void)run, (void)slot, (void)items;
    const int i = atomic_fetch_add(&begun, 1);
    atomic_store(&sizes[SAC_MIN(i, (int)BATCHES)], n);
    return SAC_OK;
}

static bool busy_arrived(const struct sac_task_run *run, int slot)
{
    (void)run, (void)slot;
    return !atomic_load(&held);
}

static void push_end(struct sac_job *job, int stream)
{
    struct sac_item *item = sac_job_item(job);
    assert_non_null(item);
    item->stream_id = stream;
    item->last = true;
    assert_sac_ok(sac_job_push_wait(job, item));
}

/* Streams that end while a batch is at work do not cut the next one, which is filled by others. */
static void ends_of_streams_do_not_cut_batches(void **state)
{
    (void)state;
    struct sac_task             busy = toy_task;
    struct sac_track_job_params params = sac_pipeline_params_default().job;
    struct sac_job             *job = NULL;
    const int                   frames = BATCH * BATCHES, ends = TOY_STREAMS - 1;
    busy.begin = busy_begin;
    busy.arrived = busy_arrived;
    params.device = "cpu";
    params.timeout_ms = 60000;
    params.batches_ahead = 2;
    params.inference_batch_max = params.detector_params.batch_max = BATCH;
    atomic_store(&held, true);
    assert_sac_ok(
        sac_job_create(test_context(), &busy, &params, (size_t)(frames + ends), NULL, &job));
    assert_sac_ok(sac_job_open_device(job));
    assert_sac_ok(sac_job_start(job));
    for (int i = 0; i < BATCH; i++)
        push(job, 0, i);
    while (atomic_load(&begun) == 0)
        usleep(1000);
    for (int s = 1; s <= ends; s++) {
        push(job, s, 0);
        push_end(job, s);
    }
    for (int i = BATCH; i < frames - ends; i++)
        push(job, 0, i);
    while (atomic_load(&begun) < 2)
        usleep(1000);
    atomic_store(&held, false);
    sac_job_end(job);
    for (int i = 0; i < frames + ends; i++) {
        struct sac_item *item = NULL;
        assert_sac_ok(sac_job_pop_wait(job, -1, &item));
        sac_job_recycle(job, item);
    }
    assert_int_equal(atomic_load(&begun), BATCHES);
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(atomic_load(&sizes[i]), BATCH);
    sac_job_destroy(&job);
}

/* ---- a start ---- */

static atomic_int  opens, closes;
static atomic_bool lasts; /* opening does, until it is given up */

static sac_result long_open(struct sac_task_run *run)
{
    atomic_fetch_add(&opens, 1);
    while (atomic_load(&lasts)) {
        if (sac_start_given_up())
            return SAC_FAIL(run->job->ctx, SAC_ERR_CANCELLED, "test: given up");
        usleep(1000);
    }
    return sac_device_await(run->job->dev);
}

static void long_close(struct sac_task_run *run)
{
    (void)run;
    atomic_fetch_add(&closes, 1);
}

static struct sac_job *create_long(bool last)
{
    static struct sac_task      task;
    struct sac_track_job_params params = sac_pipeline_params_default().job;
    struct sac_job             *job = NULL;
    task = toy_task;
    task.open = long_open;
    task.close = long_close;
    params.device = "cpu";
    params.inference_batch_max = params.detector_params.batch_max = BATCH;
    opens = closes = 0;
    atomic_store(&lasts, last);
    assert_sac_ok(sac_job_create(test_context(), &task, &params, FRAMES, NULL, &job));
    return job;
}

/* The device, or an input, cannot be opened: nobody waits for the networks beside it. */
static void opening_that_nobody_wants_is_given_up(void **state)
{
    (void)state;
    struct sac_job *job = create_long(true);
    assert_sac_ok(sac_inference_open(job->inference));
    assert_sac_ok(sac_job_open_device(job));
    sac_job_destroy(&job);
    job = create_long(false);
    assert_sac_ok(sac_inference_open(job->inference)); /* waits for a device that never comes */
    sac_job_destroy(&job);
    assert_int_equal(opens, 1);
}

static int after_a_while(void *user)
{
    int *const left = user;
    return --*left <= 0;
}

static void whoever_waits_for_a_start_may_give_it_up(void **state)
{
    (void)state;
    int             left = 2;
    struct sac_job *job = create_long(true);
    job->unwanted = after_a_while;
    job->unwanted_user = &left;
    assert_sac_ok(sac_job_open_device(job));
    assert_sac_error(sac_job_start(job), SAC_ERR_CANCELLED);
    sac_job_destroy(&job);
}

static void what_is_recalled_is_opened_again(void **state)
{
    (void)state;
    struct sac_job *job = create_long(false);
    assert_sac_ok(sac_inference_open(job->inference));
    assert_sac_ok(sac_job_open_device(job));
    sac_inference_recall(job->inference);
    assert_int_equal(opens, 1);
    assert_int_equal(closes, 1);
    sac_inference_recall(job->inference); /* by another input */
    assert_sac_ok(sac_job_start(job));
    assert_int_equal(opens, 2);
    push(job, 0, 0);
    sac_job_end(job);
    struct sac_item *item = NULL;
    assert_sac_ok(sac_job_pop_wait(job, -1, &item));
    assert_int_equal(item->status, SAC_OK);
    sac_job_recycle(job, item);
    sac_job_destroy(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_task_is_driven_by_its_row),
                                       cmocka_unit_test(ends_of_streams_do_not_cut_batches),
                                       cmocka_unit_test(opening_that_nobody_wants_is_given_up),
                                       cmocka_unit_test(whoever_waits_for_a_start_may_give_it_up),
                                       cmocka_unit_test(what_is_recalled_is_opened_again)};
    return cmocka_run_group_tests_name("pipeline/task", tests, NULL, NULL);
}
