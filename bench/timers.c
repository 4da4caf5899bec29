/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of measuring: a stage's begin and finish on one frame with timers off, on, and with a
 * trace written, with times of frames asked for but not logged and logged, and the same for a whole
 * run of the lightest pipeline (ready-made detections, no video, tracking and one output), where
 * nothing hides it. usage: bench_timers [FRAMES] (default 50000) */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <saccade/pipeline.h>

#include "base/range.h"
#include "pipeline/books.h"
#include "pipeline/task.h"

enum { ROUNDS = 15, STAGE_ROUNDS = 100, PAIRS = 8000 /* under half of the trace's ring */ };

static char folder[64] = "/tmp/saccade-bench-timers-XXXXXX";
static char detections[96], tracks[96], trace[96];

static const struct {
    const char *name;
    int         timers;
    bool        traced, frames, debug;
} modes[] = {{"off", 0},
             {"timers", 1},
             {"timers and trace", 1, .traced = true},
             {"frame times, info", 1, .frames = true},
             {"frame times, debug", 1, .frames = true, .debug = true}};

/* Lines are made and written, as for a file or a terminal. */
static void write_line(void *user, enum sac_log_level level, const char *line)
{
    (void)level;
    fprintf(user, "%s\n", line);
}

static void die(sac_context *ctx)
{
    char why[512];
    sac_context_last_error(ctx, why, sizeof why);
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static struct sac_pipeline_params params_of(int mode)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    params.job.device = "cpu";
    params.job.reid = NULL;
    params.job.tracker = sac_tracker_params_default(SAC_TRACKER_SORT);
    params.job.timers = modes[mode].timers;
    params.job.trace_out = modes[mode].traced ? trace : NULL;
    params.job.frame_times = modes[mode].frames;
    params.detections = detections;
    params.fps = 25;
    params.mot_out = tracks;
    return params;
}

/* ---- one stage, one frame ---- */

static double stage_ns(sac_context *ctx, int mode)
{
    struct sac_pipeline_params params = params_of(mode);
    double                     best = 1e30;
    sac_context_set_log_level(ctx, modes[mode].debug ? SAC_LOG_DEBUG : SAC_LOG_INFO);
    for (int round = 0; round < STAGE_ROUNDS; round++) {
        struct sac_job       *job = NULL;
        const struct sac_item item = {.number = round};
        if (sac_job_create(ctx, &sac_task_track, &params.job, 1, NULL, &job) != SAC_OK)
            die(ctx);
        int64_t begun = sac_time_ns();
        for (int i = 0; i < PAIRS; i++)
            sac_books_finish(job->books, SAC_STAGE_TRACKING,
                             sac_books_begin(job->books, SAC_STAGE_TRACKING), &item);
        double ns = (double)(sac_time_ns() - begun) / PAIRS;
        best = SAC_MIN(best, ns);
        sac_job_destroy(&job);
    }
    return best;
}

/* ---- a run ---- */

/* CPU time of all threads: the wall clock of threads that hand frames to each other tells more
 * about the scheduler and the neighbours. */
static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double run_ns(sac_context *ctx, int mode, int frames)
{
    struct sac_pipeline_params params = params_of(mode);
    sac_pipeline              *pipe = NULL;
    sac_context_set_log_level(ctx, modes[mode].debug ? SAC_LOG_DEBUG : SAC_LOG_INFO);
    if (sac_pipeline_create(ctx, &params, &pipe) != SAC_OK)
        die(ctx);
    double begun = cpu_ns();
    if (sac_pipeline_run(pipe) != SAC_OK)
        die(ctx);
    double ns = (cpu_ns() - begun) / frames;
    sac_pipeline_destroy(&pipe);
    return ns;
}

static void write_detections(int frames)
{
    FILE *file = fopen(detections, "w");
    for (int i = 0; file && i < frames; i++)
        fprintf(file, "%d,-1,%d,80,48,96,0.9\n", i + 1, 20 + i % 200);
    if (!file || fclose(file) != 0) {
        fprintf(stderr, "cannot write %s\n", detections);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    int          frames = argc > 1 ? SAC_MAX(atoi(argv[1]), 1) : 50000;
    sac_context *ctx = NULL;
    double       run[SAC_COUNT(modes)][ROUNDS];
    FILE        *sink = fopen("/dev/null", "w");

    struct sac_context_params quiet = sac_context_params_default();
    quiet.log_fn = write_line;
    quiet.log_user = sink;
    if (!sink || sac_context_create(&quiet, &ctx) != SAC_OK || !mkdtemp(folder))
        return 1;
    snprintf(detections, sizeof detections, "%s/det.txt", folder);
    snprintf(tracks, sizeof tracks, "%s/tracks.txt", folder);
    snprintf(trace, sizeof trace, "%s/trace.json", folder);
    write_detections(frames);

    printf("NVTX: %s\n", sac_ranges_open() ? "there" : "not there");
    printf("one stage on one frame, best of %d rounds:\n", STAGE_ROUNDS);
    for (size_t m = 0; m < SAC_COUNT(modes); m++)
        printf("  %-18s %8.1f ns\n", modes[m].name, stage_ns(ctx, (int)m));

    /* Alternating, so that other load on the machine affects all of them. */
    for (int round = 0; round < ROUNDS; round++)
        for (size_t m = 0; m < SAC_COUNT(modes); m++)
            run[m][round] = run_ns(ctx, (int)m, frames);
    for (size_t m = 0; m < SAC_COUNT(modes); m++)
        qsort(run[m], ROUNDS, sizeof run[m][0], compare);
    printf("a run of %d frames (tracking, write), CPU time a frame, %d rounds:\n", frames, ROUNDS);
    for (size_t m = 0; m < SAC_COUNT(modes); m++)
        printf("  %-18s best %8.1f ns, %+.1f to off (median %.1f)\n", modes[m].name, run[m][0],
               run[m][0] - run[0][0], run[m][ROUNDS / 2]);

    unlink(detections), unlink(tracks), unlink(trace), rmdir(folder);
    sac_context_destroy(&ctx);
    fclose(sink);
    return 0;
}
