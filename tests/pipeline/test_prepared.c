/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared frames as they are written and read. tests/cli/test_cache.py has whole runs. */
#include "pipeline/output.h"
#include "pipeline/prepared.h"
#include "tests/pipeline/folder.h"

enum { FRAMES = 6, BYTES = 2 * 2 * 3 * 4 };

static struct sac_job        job;
static struct sac_replay     replay;
static struct sac_preprocess pre;
static char                  name[] = "clip.mp4", base[] = "base\n";

/* The third is still. */
static struct sac_item item_of(int i, const sac_frame *frame)
{
    return (struct sac_item){.number = i,
                             .pts_us = 40 * i,
                             .source_pts_us = 1000 + 40 * i,
                             .still = i == 2,
                             .frame = (sac_frame *)frame};
}

static void image_of(int i, char image[BYTES])
{
    memset(image, 'a' + i, BYTES);
}

/* As the threads do it; each image twice, as after a batch that was tried again. */
static void record(int sent)
{
    const sac_frame      frame = {.width = 640, .height = 480};
    struct sac_prepared *p = sac_prepared_open(&replay, &job, &pre);
    assert_non_null(p);
    assert_false(sac_prepared_has(p));
    for (int i = 0; i < FRAMES; i++) {
        struct sac_item item = item_of(i, &frame);
        char            image[BYTES];
        image_of(i, image);
        for (int turn = 0; turn < 2 && !item.still; turn++)
            sac_prepared_keep(p, &item, image);
        sac_prepared_add(p, &item);
    }
    sac_prepared_commit(p, sent);
    sac_prepared_close(&p);
}

static void frames_come_back_as_they_were(void **state)
{
    (void)state;
    struct sac_item item = {0};
    record(FRAMES);
    struct sac_prepared *p = sac_prepared_open(&replay, &job, &pre);
    assert_true(sac_prepared_has(p));
    for (int i = 0; i < FRAMES; i++) {
        char image[BYTES];
        image_of(i, image);
        item = (struct sac_item){0};
        assert_sac_ok(sac_prepared_next(p, &item));
        assert_int_equal(item.number, i);
        assert_int_equal(item.pts_us, 40 * i);
        assert_int_equal(item.source_pts_us, 1000 + 40 * i);
        assert_true(item.decided && item.still == (i == 2));
        assert_int_equal(item.image == NULL, item.still);
        if (item.still)
            continue;
        assert_memory_equal(item.image, image, BYTES);
        assert_int_equal(item.prepared->width, 640);
        assert_int_equal(item.prepared->height, 480);
    }
    assert_int_equal(sac_prepared_next(p, &item), SAC_EOS);
    sac_prepared_close(&p);
    assert_sac_ok(sac_cache_clear(replay.cache, 0, NULL, NULL));
}

static void what_was_not_seen_to_its_end_is_not_kept(void **state)
{
    (void)state;
    for (int sent = 0; sent <= FRAMES + 1; sent++)
        if (sent != FRAMES)
            record(sent);
    assert_int_equal(count_files(".entry") + count_files(".part"), 0);
}

/* Whole entries, which do not belong together. */
static void other_numbers_of_images_are_made_anew(void **state)
{
    (void)state;
    char *key = NULL, bytes[FRAMES * BYTES] = "";
    assert_sac_ok(sac_replay_frames_key(&job, replay.base, &pre, &key));
    const struct sac_cache_label label = {.key = key};
    for (size_t size = 0; size <= sizeof bytes; size += BYTES / 2) {
        const bool fits = size == (FRAMES - 1) * BYTES;
        record(FRAMES);
        assert_sac_ok(sac_cache_put(replay.cache, &label, bytes, size));
        struct sac_prepared *p = sac_prepared_open(&replay, &job, &pre);
        assert_int_equal(sac_prepared_has(p), fits);
        sac_prepared_close(&p);
        assert_sac_ok(sac_cache_clear(replay.cache, 0, NULL, NULL));
    }
    free(key);
}

static int set_up(void **state)
{
    const struct sac_pipeline_params p = sac_pipeline_params_default();
    struct sac_cache_params          params = sac_cache_params_default();
    if (folder_create(state) != 0)
        return -1;
    job.ctx = test_context();
    job.params = p.job;
    pre = sac_preprocess_default();
    pre.width = pre.height = 2;
    params.folder = folder;
    replay = (struct sac_replay){.ctx = job.ctx, .name = name, .base = base};
    return sac_cache_open(job.ctx, &params, &replay.cache) == SAC_OK ? 0 : -1;
}

/* A clip may change its size: the first frame's is known of the run, each one's of the image. */
static void boxes_are_cut_to_the_frame_that_an_image_was_made_of(void **state)
{
    const struct sac_pipeline_params params = {.clip_boxes = 1};
    const struct sac_output_setup    setup = {.params = &params, .width = 640, .height = 480};
    const struct sac_track           track = {.x0 = -3, .y0 = 100, .x1 = 400, .y1 = 300};
    const struct sac_prepared_frame  small = {.width = 320, .height = 240};
    struct sac_item                  item = {.prepared = &small};
    struct sac_track                 cut;
    (void)state;
    assert_true(sac_output_clip(&setup, &item, &track, &cut));
    assert_true(cut.x0 == 0 && cut.y0 == 100 && cut.x1 == 320 && cut.y1 == 240);
    item.prepared = NULL;
    assert_true(sac_output_clip(&setup, &item, &track, &cut));
    assert_true(cut.x1 == 400 && cut.y1 == 300);
}

static int tear_down(void **state)
{
    sac_cache_close(&replay.cache);
    return folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_back_as_they_were),
        cmocka_unit_test(what_was_not_seen_to_its_end_is_not_kept),
        cmocka_unit_test(other_numbers_of_images_are_made_anew),
        cmocka_unit_test(boxes_are_cut_to_the_frame_that_an_image_was_made_of),
    };
    return cmocka_run_group_tests_name("pipeline/prepared", tests, set_up, tear_down);
}
