/* SPDX-License-Identifier: Apache-2.0 */
/* The main job as a user starts it, with the models that come with saccade, on vtest.avi (which is
 * PETS09-S2L1 frame by frame): 795 frames, 19 people, 5.85 of them in a frame. Counts must be
 * plausible; where the ground truth is at hand, scores reach a bar some points under what was
 * measured on 2026-11-21 (tracker botsort):
 *
 *     detector          reid           boxes a frame   ids   HOTA   MOTA
 *     person_det        none                    5.26    26   54.7   76.3
 *     person_det_fast   none                    4.94    30   49.4   73.5
 *     person_det        person_reid             5.24    25   58.4   77.1 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <saccade/eval.h>
#include <saccade/models.h>
#include <saccade/pipeline.h>

#include "base/base.h"
#include "tests/test.h"

enum { FRAMES = 795 };

static struct bar {
    const char *detector, *reid;
    double      per_frame_min, per_frame_max; /* tracked boxes */
    int         ids_min, ids_max;
    double      hota_min, mota_min;
} bars[] = {
    {"person_det", "none", 4.5, 6.5, 15, 40, 0.51, 0.73},
    {"person_det_fast", "none", 4.3, 6.5, 15, 40, 0.46, 0.70},
    {"person_det", "person_reid", 4.5, 6.5, 15, 40, 0.55, 0.74},
};

static const char *clip(void)
{
    const char *path = getenv("SACCADE_VTEST");
    return path ? path : TEST_CLIP;
}

static bool is_there(const char *path)
{
    bool there = access(path, R_OK) == 0;
    if (!there)
        print_message("needs %s\n", path);
    return there;
}

static void skip_without_model(const char *name)
{
    char path[4096];
    if (strcmp(name, "none") == 0 ||
        sac_models_find(test_context(), name, path, sizeof path) == SAC_OK)
        return;
    print_message("needs the model %s\n", name);
    skip();
}

static void check_counts(const struct bar *bar, const struct sac_pipeline_stats *stats,
                         const struct sac_mot_file *tracks)
{
    double per_frame = (double)tracks->count / FRAMES;
    print_message("%s, reid %s: %.2f boxes a frame, %lld ids\n", bar->detector, bar->reid,
                  per_frame, (long long)stats->tracks);
    assert_int_equal(stats->frames, FRAMES);
    assert_in_range(stats->tracks, bar->ids_min, bar->ids_max);
    assert_true(per_frame >= bar->per_frame_min && per_frame <= bar->per_frame_max);
}

static void check_scores(const struct bar *bar, const struct sac_mot_file *tracks)
{
    const char            *shared = getenv("SACCADE_SHARED");
    char                   path[1024];
    struct sac_mot_file    gt = {0};
    struct sac_eval_params params = sac_eval_params_default();
    struct sac_eval_result score;
    snprintf(path, sizeof path, "%s/data/mot/PETS09-S2L1/gt.txt", shared ? shared : TEST_SHARED);
    if (!is_there(path))
        return;
    assert_sac_ok(sac_mot_read(test_context(), path, &gt));
    params.preprocess = 0;
    params.frames = FRAMES;
    assert_sac_ok(sac_eval_sequence(test_context(), "PETS09-S2L1", &gt, tracks, &params, &score));
    print_message("  HOTA %.1f, MOTA %.1f\n", 100 * score.hota, 100 * score.mota);
    assert_true(score.hota >= bar->hota_min && score.mota >= bar->mota_min);
    sac_mot_finish(&gt);
}

static void finds_the_people_of_the_clip(void **state)
{
    const struct bar          *bar = *state;
    struct sac_pipeline_params params = sac_pipeline_params_default();
    struct sac_pipeline_stats  stats;
    struct sac_mot_file        tracks = {0};
    sac_pipeline              *pipe = NULL;
    char                       out[] = "/tmp/test_own_XXXXXX";
    if (!is_there(clip()))
        skip();
    skip_without_model(bar->detector);
    skip_without_model(bar->reid);
    int fd = mkstemp(out);
    assert_true(fd >= 0);
    close(fd);
    params.input = clip();
    params.job.detector = bar->detector;
    params.job.reid = bar->reid;
    params.mot_out = out;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_sac_ok(sac_pipeline_run(pipe));
    sac_pipeline_get_stats(pipe, &stats);
    sac_pipeline_destroy(&pipe);
    assert_sac_ok(sac_mot_read(test_context(), out, &tracks));
    unlink(out);
    check_counts(bar, &stats, &tracks);
    check_scores(bar, &tracks);
    sac_mot_finish(&tracks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(finds_the_people_of_the_clip, &bars[0]),
        cmocka_unit_test_prestate(finds_the_people_of_the_clip, &bars[1]),
        cmocka_unit_test_prestate(finds_the_people_of_the_clip, &bars[2]),
    };
    return cmocka_run_group_tests_name("golden/own", tests, NULL, NULL);
}
