/* SPDX-License-Identifier: Apache-2.0 */
/* The figures are compared with TrackEval's in test_trackeval.py; here is what every build can
 * check. */
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
        rows_gt[i] = (struct sac_mot_row){.frame = i / PEOPLE + 1,
                                          .id = i % PEOPLE + 1,
                                          .x = 200 * (i % PEOPLE),
                                          .y = 10,
                                          .w = 40,
                                          .h = 80,
                                          .conf = 1,
                                          .class_id = 1,
                                          .visibility = 1};
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

/* Each frame has people of its own: ids by ids there are ten thousand million pairs, of which a few
 * meet. */
static void ids_that_never_meet_cost_nothing(void **state)
{
    (void)state;
    enum { LENGTH = 100000 };
    struct sac_mot_row *gt_rows = calloc(LENGTH, sizeof *gt_rows),
                       *rows = calloc(LENGTH, sizeof *rows);
    struct sac_eval_result r;
    assert_non_null(gt_rows);
    assert_non_null(rows);
    for (int i = 0; i < LENGTH; i++) {
        gt_rows[i] = (struct sac_mot_row){
            .frame = i + 1, .id = i, .w = 40, .h = 80, .conf = 1, .class_id = 1};
        rows[i] = gt_rows[i];
        rows[i].id = -i;
        rows[i].x = i % 4 == 0 ? 100 : 0; /* every fourth is missed */
    }
    const struct sac_mot_file gt = file_of(gt_rows, LENGTH), tracks = file_of(rows, LENGTH);
    r = score(&gt, &tracks);
    assert_int_equal(r.ids, LENGTH);
    assert_int_equal(r.tp, LENGTH / 4 * 3);
    assert_int_equal(r.idtp, LENGTH / 4 * 3);
    assert_int_equal(r.idsw, 0);
    assert_float_equal(r.ass_a, 1, 1e-12);
    assert_float_equal(r.det_a, 0.6, 1e-12);
    free(gt_rows);
    free(rows);
}

static double random_share(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) / 16777216.0;
}

/* How much the best matching of a few ids has in common, by trying all. */
static int best_of(int common[5][5], int row, unsigned taken)
{
    int best = row == 5 ? 0 : best_of(common, row + 1, taken);
    for (int col = 0; row < 5 && col < 5; col++)
        if (!(taken & 1u << col))
            best = SAC_MAX(best, common[row][col] + best_of(common, row + 1, taken | 1u << col));
    return best;
}

static void identity_finds_the_best_matching(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 300; round++) {
        enum { LENGTH = 40 };
        struct sac_mot_row gt_rows[LENGTH], rows[LENGTH];
        int                common[5][5] = {{0}};
        for (int i = 0; i < LENGTH; i++) {
            const int  a = (int)(random_share(&seed) * 5), b = (int)(random_share(&seed) * 5);
            const bool meet = random_share(&seed) < 0.8;
            gt_rows[i] = (struct sac_mot_row){
                .frame = i + 1, .id = a, .w = 40, .h = 80, .conf = 1, .class_id = 1};
            rows[i] = gt_rows[i];
            rows[i].id = b;
            rows[i].x = meet ? 0 : 35; /* a little overlap all the same */
            common[a][b] += meet;
        }
        const struct sac_mot_file gt = file_of(gt_rows, LENGTH), tracks = file_of(rows, LENGTH);
        assert_int_equal(score(&gt, &tracks).idtp, best_of(common, 0, 0));
    }
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
    assert_sac_error(sac_eval_sequence(test_context(), "s", &gt, &tracks, NULL, &r),
                     SAC_ERR_FORMAT);
    fill(&gt, &tracks);
    params.frames = FRAMES - 1;
    assert_sac_error(sac_eval_sequence(test_context(), "s", &gt, &tracks, &params, &r),
                     SAC_ERR_FORMAT);
    fill(&gt, &tracks);
    gt.rows[3].class_id = 99;
    assert_sac_error(sac_eval_sequence(test_context(), "s", &gt, &tracks, NULL, &r),
                     SAC_ERR_FORMAT);
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
        cmocka_unit_test(ids_that_never_meet_cost_nothing),
        cmocka_unit_test(identity_finds_the_best_matching),
        cmocka_unit_test(combines_counts_and_not_shares),
        cmocka_unit_test(refuses_what_cannot_be_scored),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("track/eval", tests, NULL, NULL);
}
