/* SPDX-License-Identifier: Apache-2.0 */
/* Still frames: which ones the network does not see, in batches of any size, and what comes of
 * them. */
#include <string.h>

#include <saccade/models.h>
#include <saccade/pipeline.h>

#include "pipeline/books.h"
#include "pipeline/tasks/still.h"
#include "tests/gpu.h"

enum { WIDTH = 96, HEIGHT = 64, FRAMES_MAX = 24 };

/* ---- runs ---- */

static const char *where = "cpu";
static sac_device *host; /* that frames are made on */

/* A frame as a case has it: its luma, and its width's part of WIDTH. */
struct picture {
    int stream_id, luma, shrink;
};

struct run {
    const struct picture *pictures;
    int                   count, batch, skip_max;
    float                 level;
    bool                  tracks;
};

static sac_session *open_session(const struct run *r, struct sac_segment_params *segment)
{
    struct sac_session_params params = sac_session_params_default();
    sac_session              *s = NULL;
    segment->model = "person_seg";
    params.job.device = where;
    params.job.segment = r->tracks ? NULL : segment;
    params.job.detector = "person_det_fast";
    params.job.reid = NULL;
    params.job.inference_batch_max = r->batch;
    params.job.timeout_ms = 1000; /* batches fill up */
    params.job.skip_still = r->level;
    params.job.skip_max = r->skip_max;
    params.submit_max = FRAMES_MAX;
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    assert_sac_ok(sac_session_start(s));
    return s;
}

static void submit(sac_session *s, const struct picture *p, int number)
{
    sac_frame *frame = NULL;
    sac_frame  desc = {.format = SAC_PIXEL_GRAY8,
                       .width = WIDTH / (p->shrink ? p->shrink : 1),
                       .height = HEIGHT,
                       .number = number,
                       .pts_us = number * 40000,
                       .stream_id = p->stream_id};
    assert_sac_ok(sac_frame_create(host, &desc, &frame));
    for (int y = 0; y < HEIGHT; y++)
        memset(frame->plane[0] + (size_t)y * frame->pitch_bytes[0], p->luma, (size_t)desc.width);
    assert_sac_ok(sac_session_submit(s, frame, number));
    sac_frame_unref(&frame);
}

/* How many frames the network did not see. */
static int64_t skipped(const struct run *r)
{
    struct sac_segment_params segment = sac_segment_params_default();
    sac_session              *s = open_session(r, &segment);
    struct sac_session_result result;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &host));
    struct sac_pipeline_stats *stats = calloc(1, sizeof *stats);
    for (int i = 0; i < r->count; i++)
        submit(s, &r->pictures[i], i);
    sac_session_end(s);
    for (int i = 0; i < r->count; i++) {
        assert_sac_ok(sac_session_result_wait(s, -1, &result));
        assert_sac_ok(result.status);
        assert_int_equal(result.id, i);
        assert_true(r->tracks || result.matte->width == result.frame->width);
        sac_session_result_finish(&result);
    }
    sac_session_get_stats(s, stats);
    const int64_t still = (int64_t)stats->savings.still;
    assert_int_equal(stats->frames, r->count);
    assert_int_equal(stats->batch.frames, r->count - still); /* those that it did see */
    sac_session_destroy(&s);
    free(stats);
    sac_device_unref(&host);
    return still;
}

/* The same whether the batches are small or large, for tracks and mattes. */
static void expect(struct run r, int64_t want)
{
    static const int batches[] = {1, 3, 8};
    char             path[4096];
    const bool       segments = /* a bundle for a GPU need not have that model */
        sac_models_find(test_context(), "person_seg", path, sizeof path) == SAC_OK;
    for (size_t i = 0; i < SAC_COUNT(batches); i++)
        for (int tracks = !segments; tracks < 2; tracks++) {
            r.batch = batches[i];
            r.tracks = tracks;
            assert_int_equal(skipped(&r), want);
        }
}

/* ---- cases ---- */

static void nothing_is_left_out_by_default(void **state)
{
    (void)state;
    const struct picture same[6] = {{.luma = 90}};
    assert_true(sac_pipeline_params_default().job.skip_still == 0);
    expect((struct run){.pictures = same, .count = 6, .skip_max = 8}, 0);
    expect((struct run){.pictures = same, .count = 6, .level = 0.01f, .skip_max = 0}, 0);
}

/* 2.55 levels are a hundredth: each third frame is seen, however slowly they change. */
static void slow_changes_add_up(void **state)
{
    (void)state;
    struct picture slow[12];
    for (int i = 0; i < 12; i++)
        slow[i] = (struct picture){.luma = 60 + i};
    expect((struct run){.pictures = slow, .count = 12, .level = 0.01f, .skip_max = 8}, 8);
    expect((struct run){.pictures = slow, .count = 12, .level = 0.02f, .skip_max = 8}, 10);
}

static void a_row_has_an_end(void **state)
{
    (void)state;
    struct picture same[13];
    for (int i = 0; i < 13; i++)
        same[i] = (struct picture){.luma = 90};
    expect((struct run){.pictures = same, .count = 13, .level = 0.01f, .skip_max = 3}, 9);
}

static void what_changes_is_seen(void **state)
{
    (void)state;
    const struct picture cuts[] = {{0, 90, 0}, {0, 90, 0}, {0, 200, 0}, {0, 200, 0},
                                   {0, 90, 0}, {0, 90, 2}, {0, 90, 2},  {0, 90, 0}};
    expect((struct run){.pictures = cuts, .count = 8, .level = 0.01f, .skip_max = 8}, 3);
}

static void each_stream_has_its_own(void **state)
{
    (void)state;
    const struct picture two[] = {{0, 90, 0}, {1, 200, 0}, {0, 90, 0}, {1, 200, 0},
                                  {1, 90, 0}, {0, 90, 0},  {1, 90, 0}, {0, 200, 0}};
    expect((struct run){.pictures = two, .count = 8, .level = 0.01f, .skip_max = 8}, 4);
}

/* A batch for which there is no memory is halved where the next one is not. */
static void parts_of_batches_are_decided_to_their_end(void **state)
{
    (void)state;
    enum { FRAMES = 8 };
    struct sac_books books = {0};
    struct sac_job   job = {
          .ctx = test_context(), .books = &books, .params = {.skip_still = 0.01f, .skip_max = 4}};
    struct sac_still *still = NULL;
    struct sac_item   items[FRAMES] = {{0}}, *list[FRAMES];
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &job.dev));
    for (int i = 0; i < FRAMES; i++) {
        const sac_frame desc = {.format = SAC_PIXEL_GRAY8, .width = WIDTH, .height = HEIGHT};
        assert_sac_ok(sac_frame_create(job.dev, &desc, &items[i].frame));
        memset(items[i].frame->plane[0], 90, items[i].frame->pitch_bytes[0] * HEIGHT);
        list[i] = &items[i];
    }
    assert_sac_ok(sac_still_create(&job, &still));
    assert_sac_ok(sac_still_decide(still, list, 3));
    assert_sac_ok(sac_still_decide(still, list + 2, 2)); /* one of each */
    assert_sac_ok(sac_still_decide(still, list + 4, 4));
    for (int i = 0; i < FRAMES; i++) {
        assert_true(items[i].decided);
        assert_int_equal(items[i].still, i % 5 != 0);
        sac_frame_unref(&items[i].frame);
    }
    sac_still_destroy(&still);
    sac_device_unref(&job.dev);
}

static void bad_levels_are_refused(void **state)
{
    (void)state;
    struct sac_session_params params = sac_session_params_default();
    sac_session              *s = NULL;
    params.job.device = "cpu";
    params.job.skip_still = 1.5f;
    assert_sac_error(sac_session_create(test_context(), &params, &s), SAC_ERR_ARG);
    params.job.skip_still = 0.5f;
    params.job.skip_max = -1;
    assert_sac_error(sac_session_create(test_context(), &params, &s), SAC_ERR_ARG);
}

/* Where nobody can look at a frame, the same ones are left out. */
static void on_a_gpu_it_is_the_same(void **state)
{
    sac_device *gpu = gpu_open(NULL);
    sac_device_unref(&gpu);
    where = "cuda";
    slow_changes_add_up(state);
    what_changes_is_seen(state);
    each_stream_has_its_own(state);
    where = "cpu";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left_out_by_default),
        cmocka_unit_test(slow_changes_add_up),
        cmocka_unit_test(a_row_has_an_end),
        cmocka_unit_test(what_changes_is_seen),
        cmocka_unit_test(each_stream_has_its_own),
        cmocka_unit_test(parts_of_batches_are_decided_to_their_end),
        cmocka_unit_test(bad_levels_are_refused),
        cmocka_unit_test(on_a_gpu_it_is_the_same),
    };
    return cmocka_run_group_tests_name("pipeline/still", tests, NULL, NULL);
}
