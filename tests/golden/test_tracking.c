/* SPDX-License-Identifier: Apache-2.0 */
/* The trackers on two real sequences with ready-made detections must reach what well-known trackers
 * reach on the same (../shared/data/mot/PEERS.md, measured 2026-11-21), each with its one set of
 * defaults. With --reid, the cases that need a video and a network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/sequence.h"
#include "tests/test.h"

enum { PETS, TUD, SEQUENCES };

static const struct {
    const char *folder;
    double      fps; /* of the video; PETS09-S2L1's seqinfo.ini says 7, vtest.avi 10 */
} places[SEQUENCES] = {{"PETS09-S2L1", 10}, {"TUD-Stadtmitte", 25}};

/* HOTA, MOTA, IDF1 of the namesake. */
struct bar {
    double hota, mota, idf1;
};
static const struct bar bytetrack[SEQUENCES] = {{47.9, 59.9, 58.0}, {58.3, 75.1, 75.3}};
static const struct bar ocsort[SEQUENCES] = {{39.6, 47.7, 45.5}, {48.2, 57.1, 58.4}};
static const struct bar botsort[SEQUENCES] = {{50.8, 65.7, 64.8}, {58.7, 78.2, 77.5}};
static const struct bar botsort_reid[SEQUENCES] = {{52.5, 65.9, 69.9}, {50.3, 77.9, 65.6}};
/* HOTA of the best of all nine. */
static const double best[SEQUENCES] = {52.5, 59.1};

static const char *shared_folder(void)
{
    const char *folder = getenv("SACCADE_SHARED");
    return folder ? folder : TEST_SHARED;
}

/* The video of a sequence, or NULL where it is missing. */
static const char *video_of(int place)
{
    static char path[SEQUENCES][1024];
    const char *clip = getenv("SACCADE_VTEST");
    if (place == PETS)
        snprintf(path[place], sizeof path[place], "%s", clip ? clip : TEST_CLIP);
    else
        snprintf(path[place], sizeof path[place], "%s/data/mot/TUD-Stadtmitte/TUD-Stadtmitte.mp4",
                 shared_folder());
    return access(path[place], R_OK) == 0 ? path[place] : NULL;
}

static void open_or_skip(int place, struct sequence *seq)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/data/mot/%s", shared_folder(), places[place].folder);
    if (access(path, R_OK) != 0) {
        print_message("needs %s\n", path);
        skip();
    }
    assert_sac_ok(sequence_open(test_context(), path, video_of(place), places[place].fps, seq));
}

static void assert_over(const char *what, double got, double want)
{
    print_message("  %s %.1f (at least %.1f)\n", what, got, want);
    assert_true(got >= want);
}

static double assert_reaches(struct sequence *seq, const struct sequence_run *run,
                             const struct bar *bar)
{
    struct sequence_result r;
    assert_sac_ok(sequence_track(seq, run, &r));
    print_message("%s, %s:\n", sac_tracker_kind_name(run->params.kind), seq->info.name);
    assert_over("HOTA", 100 * r.score.hota, bar->hota);
    assert_over("MOTA", 100 * r.score.mota, bar->mota);
    assert_over("IDF1", 100 * r.score.idf1, bar->idf1);
    return 100 * r.score.hota;
}

static void reaches_bars(enum sac_tracker_kind kind, const struct bar *bars)
{
    for (int place = 0; place < SEQUENCES; place++) {
        struct sequence     seq;
        struct sequence_run run = sequence_run_default(kind);
        open_or_skip(place, &seq);
        assert_reaches(&seq, &run, &bars[place]);
        sequence_close(&seq);
    }
}

static void bytetrack_reaches_its_namesake(void **state)
{
    (void)state;
    reaches_bars(SAC_TRACKER_BYTETRACK, bytetrack);
}

static void ocsort_reaches_its_namesake(void **state)
{
    (void)state;
    reaches_bars(SAC_TRACKER_OCSORT, ocsort);
}

static void botsort_reaches_its_namesake(void **state)
{
    (void)state;
    reaches_bars(SAC_TRACKER_BOTSORT, botsort);
}

static void the_best_reaches_the_best(void **state)
{
    (void)state;
    for (int place = 0; place < SEQUENCES; place++) {
        static const enum sac_tracker_kind kinds[] = {SAC_TRACKER_BYTETRACK, SAC_TRACKER_OCSORT};
        double                             top = 0;
        struct sequence                    seq;
        open_or_skip(place, &seq);
        for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
            struct sequence_run    run = sequence_run_default(kinds[k]);
            struct sequence_result r;
            assert_sac_ok(sequence_track(&seq, &run, &r));
            top = SAC_MAX(top, 100 * r.score.hota);
        }
        assert_over("best HOTA", top, best[place]);
        sequence_close(&seq);
    }
}

/* HOTA with one frame in `step`, mean over the ways to drop the others. */
static double thinned(struct sequence *seq, enum sac_tracker_kind kind, int step, bool count)
{
    double sum = 0;
    for (int offset = 0; offset < step; offset++) {
        struct sequence_run    run = sequence_run_default(kind);
        struct sequence_result r;
        run.step = step;
        run.offset = offset;
        run.count_frames = count;
        assert_sac_ok(sequence_track(seq, &run, &r));
        sum += 100 * r.score.hota;
    }
    return sum / step;
}

/* Timestamps are worth more than a count of frames, over both sequences together. */
static void dropped_frames_cost_less_than_with_counting(void **state)
{
    (void)state;
    struct sequence seqs[SEQUENCES];
    for (int place = 0; place < SEQUENCES; place++)
        open_or_skip(place, &seqs[place]);
    for (int kind = SAC_TRACKER_SORT; kind <= SAC_TRACKER_BOTSORT; kind++) {
        for (int step = 2; step <= 4; step += 2) {
            double with_time = 0, counting = 0;
            for (int place = 0; place < SEQUENCES; place++) {
                with_time += thinned(&seqs[place], (enum sac_tracker_kind)kind, step, false) / 2;
                counting += thinned(&seqs[place], (enum sac_tracker_kind)kind, step, true) / 2;
            }
            print_message(
                "%s, one frame in %d: ", sac_tracker_kind_name((enum sac_tracker_kind)kind), step);
            assert_over("mean HOTA", with_time, counting);
        }
    }
    for (int place = 0; place < SEQUENCES; place++)
        sequence_close(&seqs[place]);
}

static void reid_case(int place)
{
    struct sequence     seq;
    char                model[1024];
    sac_device         *dev = NULL;
    struct sequence_run run = sequence_run_default(SAC_TRACKER_BOTSORT);
    snprintf(model, sizeof model, "%s/data/models/person_reid_0288.onnx", shared_folder());
    if (!video_of(place) || access(model, R_OK) != 0) {
        print_message("needs %s and the video of %s\n", model, places[place].folder);
        skip();
    }
    open_or_skip(place, &seq);
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    assert_sac_ok(sequence_embed(&seq, dev, model, run.params.score_high));
    run.camera = dev;
    assert_reaches(&seq, &run, &botsort[place]);
    run.embeddings = true;
    double hota = assert_reaches(&seq, &run, &botsort_reid[place]);
    assert_over("best HOTA", hota, best[place]);
    sequence_close(&seq);
    sac_device_unref(&dev);
}

static void botsort_with_reid_reaches_its_namesake_on_pets(void **state)
{
    (void)state;
    reid_case(PETS);
}

static void botsort_with_reid_reaches_its_namesake_on_tud(void **state)
{
    (void)state;
    reid_case(TUD);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest motion[] = {
        cmocka_unit_test(bytetrack_reaches_its_namesake),
        cmocka_unit_test(ocsort_reaches_its_namesake),
        cmocka_unit_test(botsort_reaches_its_namesake),
        cmocka_unit_test(the_best_reaches_the_best),
        cmocka_unit_test(dropped_frames_cost_less_than_with_counting),
    };
    const struct CMUnitTest reid[] = {
        cmocka_unit_test(botsort_with_reid_reaches_its_namesake_on_tud),
        cmocka_unit_test(botsort_with_reid_reaches_its_namesake_on_pets),
    };
    if (argc > 1 && strcmp(argv[1], "--reid") == 0)
        return cmocka_run_group_tests_name("golden/tracking_reid", reid, NULL, NULL);
    return cmocka_run_group_tests_name("golden/tracking", motion, NULL, NULL);
}
