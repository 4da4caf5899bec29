/* SPDX-License-Identifier: Apache-2.0 */
/* The figures are compared with TrackEval's in test_trackeval.py; here is what every build can check. */
#include <string.h>

#include <saccade/eval.h>

#include "base/base.h"
#include "tests/test.h"

enum { FRAMES = 10, PEOPLE = 3 };

static struct sac_mot_row rows_gt[FRAMES * PEOPLE], rows_tracks[FRAMES * PEOPLE];

static struct sac_mot_file file_of(struct sac_mot_row *rows, size_t count)
{
    return (struct sac_mot_file){
        .rows = rows, .count = count, .frame_max = count ? rows[count - 1].frame : 0};
}

/* Three people far apart; the tracks lie on them, with the ids 10 higher. */
static void fill(struct sac_mot_file *gt, struct sac_mot_file *tracks)
{
    for (int i = 0; i < FRAMES * PEOPLE; i++) {
        rows_gt[i] = (struct sac_mot_row){
            .frame = i / PEOPLE + 1, .id = i % PEOPLE + 1, .x = 200 * (i % PEOPLE), .y = 10,
            .w = 40, .h = 80, .conf = 1, .class_id = 1, .visibility = 1};
        rows_tracks[i] = rows_gt[i];
        rows_tracks[i].id += 10;
    }
    *gt = file_of(rows_gt, FRAMES * PEOPLE);
    *tracks = file_of(rows_tracks, FRAMES * PEOPLE);
}

static struct sac_eval_result score(const struct sac_mot_file *gt,
                                    const struct sac_mot_file *tracks)
{
    struct sac_eval_result r;
    assert_sac_ok(sac_eval_sequence(test_context(), "seq", gt, tracks, NULL, &r));
    return r;
}

static void perfect_tracks_score_one(void **state)
{
    (void)state;
    struct sac_mot_file gt, tracks;
    fill(&gt, &tracks);
    struct sac_eval_result r = score(&gt, &tracks);
    assert_string_equal(r.name, "seq");
    assert_float_equal(r.hota, 1, 1e-12);
    assert_float_equal(r.mota, 1, 1e-12);
    assert_float_equal(r.idf1, 1, 1e-12);
    assert_float_equal(r.loc_a, 1, 1e-12);
    assert_int_equal(r.mt, PEOPLE);
    assert_int_equal(r.frames, FRAMES);
    assert_int_equal(r.ids, PEOPLE);
}

static void a_swap_in_the_middle(void **state)
{
    (void)state;
    struct sac_mot_file gt, tracks;
    fill(&gt, &tracks);
    for (size_t i = tracks.count / 2; i < tracks.count; i++)
        if (tracks.rows[i].id <= 12)
            tracks.rows[i].id = 23 - tracks.rows[i].id;
    struct sac_eval_result r = score(&gt, &tracks);
    assert_int_equal(r.idsw, 2);
    assert_int_equal(r.tp, FRAMES * PEOPLE);
    assert_int_equal(r.idtp, FRAMES * PEOPLE - FRAMES);
    assert_float_equal(r.det_a, 1, 1e-12);
    assert_float_equal(r.ass_a, (1 + 2 * 1.0 / 3) / 3, 1e-12); /* 5 of 15 for the swapped two */
    assert_float_equal(r.mota, 1 - 2.0 / 30, 1e-12);
}

static void a_box_on_a_distractor_is_not_wrong(void **state)
{
    (void)state;
    struct sac_eval_params plain = {.preprocess = 0};
    struct sac_mot_file    gt, tracks;
    struct sac_eval_result r;
    fill(&gt, &tracks);
    for (size_t i = 0; i < gt.count; i += PEOPLE)
        gt.rows[i].class_id = 8;
    r = score(&gt, &tracks);
    assert_int_equal(r.gt_dets, FRAMES * (PEOPLE - 1));
    assert_int_equal(r.fp, 0);
    assert_sac_ok(sac_eval_sequence(test_context(), "seq", &gt, &tracks, &plain, &r));
    assert_int_equal(r.tp, FRAMES * PEOPLE);
}

static void combines_counts_and_not_shares(void **state)
{
    (void)state;
    struct sac_mot_file    gt, tracks, none = {0};
    struct sac_eval_result parts[2], all;
    fill(&gt, &tracks);
    parts[0] = score(&gt, &tracks);
    parts[1] = score(&gt, &none);
    sac_eval_combine(parts, 2, &all);
    assert_float_equal(parts[1].mota, 0, 1e-12);
    assert_float_equal(all.recall, 0.5, 1e-12);
    assert_float_equal(all.precision, 1, 1e-12);
    assert_float_equal(all.det_a, 0.5, 1e-12);
    assert_float_equal(all.ass_a, 1, 1e-12);
    assert_int_equal(all.frames, 2 * FRAMES);
}

static void refuses_what_cannot_be_scored(void **state)
{
    (void)state;
    struct sac_mot_file    gt, tracks;
    struct sac_eval_result r = {.tp = 77};
    struct sac_eval_params params = sac_eval_params_default();
    fill(&gt, &tracks);
    tracks.rows[1].id = tracks.rows[0].id;
    assert_sac_error(sac_eval_sequence(test_context(), "s", &gt, &tracks, NULL, &r), SAC_ERR_FORMAT);
    fill(&gt, &tracks);
    params.frames = FRAMES - 1;
    assert_sac_error(sac_eval_sequence(test_context(), "s", &gt, &tracks, &params, &r),
                     SAC_ERR_FORMAT);
    fill(&gt, &tracks);
    gt.rows[3].class_id = 99;
    assert_sac_error(sac_eval_sequence(test_context(), "s", &gt, &tracks, NULL, &r), SAC_ERR_FORMAT);
    assert_int_equal(r.tp, 77); /* outputs stay untouched */
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    struct sac_mot_file    gt, tracks;
    struct sac_eval_result r;
    sac_result             res = SAC_ERR_MEMORY;
    long                   n = 1;
    fill(&gt, &tracks);
    for (; n < 100 && res != SAC_OK; n++) {
        sac_alloc_fail_at(n);
        res = sac_eval_sequence(test_context(), "seq", &gt, &tracks, NULL, &r);
        sac_alloc_fail_at(0);
        if (res != SAC_OK)
            assert_int_equal(res, SAC_ERR_MEMORY);
    }
    assert_int_equal(res, SAC_OK);
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perfect_tracks_score_one),
        cmocka_unit_test(a_swap_in_the_middle),
        cmocka_unit_test(a_box_on_a_distractor_is_not_wrong),
        cmocka_unit_test(combines_counts_and_not_shares),
        cmocka_unit_test(refuses_what_cannot_be_scored),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("track/eval", tests, NULL, NULL);
}
