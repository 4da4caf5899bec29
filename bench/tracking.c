/* SPDX-License-Identifier: Apache-2.0 */
/* The trackers' scores on ready-made detections, and the effect of the frame rate.
 *
 *     bench_tracking [DATA [VTEST]]
 *
 * DATA     folder with mot/ and models/; default $SACCADE_SHARED/data or ../shared/data.
 * VTEST    vtest.avi of Debian's package opencv-doc, which is PETS09-S2L1 frame by frame; default
 *          $SACCADE_VTEST or build/clips/vtest.avi. Without it that sequence has no camera motion
 *          and no embeddings.
 * Scores as in mot/PEERS.md: without the benchmark's preprocessing. Times are medians over the
 * frames of the slower sequence, embeddings included where used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/sequence.h"

enum { SEQUENCES = 2 };

struct job {
    const char           *name;
    enum sac_tracker_kind kind;
    bool                  camera, embeddings;
};

static const struct job jobs[] = {
    {"SORT", SAC_TRACKER_SORT, false, false},
    {"ByteTrack", SAC_TRACKER_BYTETRACK, false, false},
    {"OC-SORT", SAC_TRACKER_OCSORT, false, false},
    {"BoT-SORT without ReID", SAC_TRACKER_BOTSORT, true, false},
    {"BoT-SORT with ReID", SAC_TRACKER_BOTSORT, true, true},
};

static int fail(sac_context *ctx, const char *what)
{
    char why[512];
    sac_context_last_error(ctx, why, sizeof why);
    fprintf(stderr, "bench_tracking: %s: %s\n", what, why);
    return 1;
}

static const char *setting(const char *given, const char *variable, const char *otherwise)
{
    const char *value = getenv(variable);
    return given ? given : value ? value : otherwise;
}

/* ---- the tables ---- */

enum { CELL = 128 };

static void print_cell(char cell[CELL], const struct sac_eval_result *e)
{
    snprintf(cell, CELL, "%.1f / %.1f / %.1f / %.1f / %.1f / %d", 100 * e->hota, 100 * e->det_a,
             100 * e->ass_a, 100 * e->mota, 100 * e->idf1, (int)e->idsw);
}

static void print_head(const struct sequence *seqs, const char *time)
{
    printf("| tracker |%s %s: HOTA / DetA / AssA / MOTA / IDF1 / IDSW | %s: the same |\n"
           "| --- |%s --- | --- |\n",
           time, seqs[0].info.name, seqs[1].info.name, *time ? " --- |" : "");
}

/* One tracker on ready-made detections. */
static int print_row(struct sequence *seqs, sac_device *dev, const struct job *job)
{
    char   cells[SEQUENCES][CELL];
    double us = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        struct sequence_run    run = sequence_run_default(job->kind);
        struct sequence_result r;
        run.camera = job->camera && seqs[s].video ? dev : NULL;
        run.embeddings = job->embeddings;
        snprintf(cells[s], CELL, "no video");
        if (job->embeddings && !seqs[s].embedding)
            continue;
        if (sequence_track(&seqs[s], &run, &r) != SAC_OK)
            return fail(seqs[s].ctx, job->name);
        us = SAC_MAX(us, r.median_us);
        print_cell(cells[s], &r.score);
    }
    printf("| %s | %.1f | %s | %s |\n", job->name, us, cells[0], cells[1]);
    return 0;
}

/* One tracker from the video, with both models. */
static int print_video_row(struct sequence *seqs, const char *detector, const char *reid,
                           const struct job *job)
{
    char cells[SEQUENCES][CELL];
    for (int s = 0; s < SEQUENCES; s++) {
        struct sequence_result r;
        snprintf(cells[s], CELL, "no video");
        if (!seqs[s].video)
            continue;
        if (sequence_track_video(&seqs[s], job->kind, detector, job->embeddings ? reid : NULL,
                                 &r) != SAC_OK)
            return fail(seqs[s].ctx, job->name);
        print_cell(cells[s], &r.score);
    }
    printf("| %s | %s | %s |\n", job->name, cells[0], cells[1]);
    fflush(stdout);
    return 0;
}

static int print_tables(struct sequence *seqs, sac_device *dev, const char *detector,
                        const char *reid)
{
    int status = 0;
    printf("From ready-made detections\n");
    print_head(seqs, " us a frame |");
    for (size_t j = 0; j < SAC_COUNT(jobs) && status == 0; j++)
        status = print_row(seqs, dev, &jobs[j]);
    printf("\nFrom the video, with our own detections\n");
    print_head(seqs, "");
    for (size_t j = 0; j < SAC_COUNT(jobs) && status == 0; j++)
        status = print_video_row(seqs, detector, reid, &jobs[j]);
    return status;
}

/* ---- frame rates ---- */

/* Mean HOTA over all ways to keep one frame in `step`. */
static sac_result mean_hota(struct sequence *seq, const struct job *job, int step,
                            bool count_frames, double *out)
{
    double sum = 0;
    for (int offset = 0; offset < step; offset++) {
        struct sequence_run    run = sequence_run_default(job->kind);
        struct sequence_result r;
        run.step = step;
        run.offset = offset;
        run.count_frames = count_frames;
        run.embeddings = job->embeddings && seq->embedding;
        sac_result res = sequence_track(seq, &run, &r);
        if (res != SAC_OK)
            return res;
        sum += 100 * r.score.hota;
    }
    *out = sum / step;
    return SAC_OK;
}

/* HOTA in the columns of the second table: all frames, then thinned, then thinned and counted. */
enum { RATES = 5 };

static sac_result measure_rates(struct sequence *seq, const struct job *job, double hota[RATES])
{
    static const struct {
        int  step;
        bool count_frames;
    } rates[RATES] = {{1, false}, {2, false}, {4, false}, {2, true}, {4, true}};
    sac_result res = SAC_OK;
    for (int i = 0; i < RATES && res == SAC_OK; i++)
        res = mean_hota(seq, job, rates[i].step, rates[i].count_frames, &hota[i]);
    return res;
}

static void print_rate_row(const char *tracker, const char *sequence, const double hota[RATES])
{
    printf("| %s | %s | %.1f |", tracker, sequence, hota[0]);
    for (int i = 1; i < RATES; i++)
        printf(" %.1f (%+.1f) |", hota[i], hota[i] - hota[0]);
    printf("\n");
}

static int print_rates(struct sequence *seqs)
{
    printf(
        "\nHOTA with every frame, every second, every fourth; then with the same frames when the\n"
        "tracker counts frames instead of reading timestamps (mean over the ways to drop)\n"
        "| tracker | sequence | all | 1 in 2 | 1 in 4 | counting, 1 in 2 | counting, 1 in 4 |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t j = 0; j < SAC_COUNT(jobs); j++) {
        double mean[RATES] = {0};
        if (jobs[j].camera && !jobs[j].embeddings)
            continue; /* without frames, that is ByteTrack */
        for (int s = 0; s < SEQUENCES; s++) {
            double hota[RATES];
            if (measure_rates(&seqs[s], &jobs[j], hota) != SAC_OK)
                return fail(seqs[s].ctx, jobs[j].name);
            print_rate_row(jobs[j].name, seqs[s].info.name, hota);
            for (int i = 0; i < RATES; i++)
                mean[i] += hota[i] / SEQUENCES;
        }
        print_rate_row(jobs[j].name, "mean", mean);
    }
    return 0;
}

int main(int argc, char **argv)
{
    char        shared[1024], folder[2][1100], video[1200], detector[1100], reid[1100];
    const char *clip = setting(argc > 2 ? argv[2] : NULL, "SACCADE_VTEST", "build/clips/vtest.avi");
    sac_context    *ctx = NULL;
    sac_device     *dev = NULL;
    struct sequence seqs[SEQUENCES] = {0};
    snprintf(shared, sizeof shared, "%s/data", setting(NULL, "SACCADE_SHARED", "../shared"));
    const char *data = argc > 1 ? argv[1] : shared;
    snprintf(folder[0], sizeof folder[0], "%s/mot/PETS09-S2L1", data);
    snprintf(folder[1], sizeof folder[1], "%s/mot/TUD-Stadtmitte", data);
    snprintf(video, sizeof video, "%s/TUD-Stadtmitte.mp4", folder[1]);
    snprintf(detector, sizeof detector, "%s/models/yolox_nano_416.onnx", data);
    snprintf(reid, sizeof reid, "%s/models/person_reid_0288.onnx", data);
    if (sac_context_create(NULL, &ctx) != SAC_OK ||
        sac_device_open(ctx, "cpu", NULL, &dev) != SAC_OK)
        return fail(ctx, "cpu");
    if (sequence_open(ctx, folder[0], access(clip, R_OK) == 0 ? clip : NULL, 10, &seqs[0]) !=
            SAC_OK ||
        sequence_open(ctx, folder[1], access(video, R_OK) == 0 ? video : NULL, 25, &seqs[1]) !=
            SAC_OK)
        return fail(ctx, data);
    float strong = sac_tracker_params_default(SAC_TRACKER_BOTSORT).score_high;
    for (int s = 0; s < SEQUENCES; s++)
        if (seqs[s].video && sequence_embed(&seqs[s], dev, reid, strong) != SAC_OK)
            return fail(ctx, seqs[s].video);
    int status = print_tables(seqs, dev, detector, reid);
    if (status == 0)
        status = print_rates(seqs);
    for (int s = 0; s < SEQUENCES; s++)
        sequence_close(&seqs[s]);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return status;
}
