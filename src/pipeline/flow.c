/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/flow.h"

/* Below these a figure says more about the start than about the flow. */
static const double ELAPSED_MIN_S = 0.5;
enum { FRAMES_MIN = 30 };
/* An advice that would gain less of the run's time is not worth a sentence. */
static const double GAIN_MIN = 0.03;
/* What a copy in host memory costs, to weigh copies against time (EPYC, one thread, out of cache). */
static const double COPY_BYTES_PER_S = 5e9;

/* ---- threads ---- */

enum thread { THREAD_DECODE, THREAD_INFER, THREAD_TRACK, THREAD_SINK, THREAD_COUNT };

/* The thread that each stage runs on: stages of one thread add up. */
static const struct {
    const char *name;
    enum thread thread;
} stages[] = {
    {"decode", THREAD_DECODE}, {"preprocess", THREAD_INFER}, {"inference", THREAD_INFER},
    {"head", THREAD_INFER},    {"reid", THREAD_INFER},       {"tracking", THREAD_TRACK},
    {"draw", THREAD_SINK},     {"encode", THREAD_SINK},      {"write", THREAD_SINK},
};

struct busy {
    double                          share;   /* of the run's time; of all the threads of its kind */
    const struct sac_timer_summary *longest; /* stage on it */
};

static enum thread thread_of(const char *stage)
{
    for (size_t i = 0; i < SAC_COUNT(stages); i++)
        if (!strcmp(stages[i].name, stage))
            return stages[i].thread;
    return THREAD_SINK;
}

static void add_up(const struct sac_pipeline_stats *stats, const struct sac_flow_facts *facts,
                   struct busy busy[THREAD_COUNT])
{
    for (int i = 0; i < stats->stage_count; i++) {
        const struct sac_timer_summary *stage = &stats->stage[i];
        enum thread                     thread = thread_of(stage->name);
        bool   many = thread == THREAD_DECODE || thread == THREAD_SINK;
        double time_ms = stats->elapsed_s * 1e3 * (many ? SAC_MAX(facts->streams, 1) : 1);
        busy[thread].share += time_ms > 0 ? stage->total_ms / time_ms : 0;
        if (!busy[thread].longest || stage->total_ms > busy[thread].longest->total_ms)
            busy[thread].longest = stage;
    }
    for (int t = 0; t < THREAD_COUNT; t++)
        busy[t].share = SAC_MIN(busy[t].share, 1); /* work before the first frame and after the last */
}

/* The busiest thread is the one that the others wait for: they stand at its queues meanwhile. */
static void rank(const struct busy busy[THREAD_COUNT], int *first, int *second)
{
    *first = *second = -1;
    for (int t = 0; t < THREAD_COUNT; t++) {
        if (!busy[t].longest)
            continue;
        if (*first < 0 || busy[t].share > busy[*first].share) {
            *second = *first;
            *first = t;
        } else if (*second < 0 || busy[t].share > busy[*second].share)
            *second = t;
    }
}

static int percent(double share)
{
    return (int)(share * 100 + 0.5);
}

/* The queue that a thread takes from, or NULL. */
static const struct sac_queue_info *queue_before(const struct sac_pipeline_stats *stats,
                                                 enum thread thread)
{
    static const char *const names[THREAD_COUNT] = {
        [THREAD_INFER] = "detect", [THREAD_TRACK] = "track", [THREAD_SINK] = "write"};
    for (int i = 0; i < stats->queue_count; i++)
        if (names[thread] && !strcmp(stats->queue[i].name, names[thread]))
            return &stats->queue[i];
    return NULL;
}

static void say_why(struct sac_pipeline_stats *stats, const struct busy busy[THREAD_COUNT],
                    int first, int second)
{
    char                        *out = stats->bottleneck_why;
    size_t                       size = sizeof stats->bottleneck_why;
    const struct sac_queue_info *queue = queue_before(stats, (enum thread)first);
    int used = snprintf(out, size, "its thread was busy for %d %% of the run",
                        percent(busy[first].share));
    if (second >= 0 && used > 0 && (size_t)used < size)
        used += snprintf(out + used, size - (size_t)used, ", the next (%s) for %d %%",
                         busy[second].longest->name, percent(busy[second].share));
    if (queue && queue->full > 0 && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used,
                 "; the queue before it was full %" PRIu64 " of %" PRIu64 " times", queue->full,
                 queue->passed);
}

/* ---- advice ---- */

struct advice {
    double gain; /* share of the run's time, estimated */
    char   text[256];
};
enum { ADVICE_KINDS = 8 };
struct notes {
    struct advice items[ADVICE_KINDS], ignored;
    int           count;
};

static struct advice *note(struct notes *notes, double gain)
{
    if (gain < GAIN_MIN || notes->count == ADVICE_KINDS)
        return &notes->ignored;
    notes->items[notes->count].gain = gain;
    return &notes->items[notes->count++];
}

/* What makes this stage faster, or NULL. */
static const char *remedy(const struct sac_pipeline_stats *stats,
                          const struct sac_flow_facts *facts, const char *stage, char *buf,
                          size_t size)
{
    bool models = thread_of(stage) == THREAD_INFER;
    if (models && facts->host_memory && facts->threads < facts->cpus) {
        snprintf(buf, size, "--threads %d would use all CPUs, it ran on %d", facts->cpus,
                 facts->threads);
        return buf;
    }
    if (!strcmp(stage, "reid")) {
        snprintf(buf, size, "fewer boxes (--score-high) or a smaller network would relieve it");
        return buf;
    }
    if (models && !strcmp(stats->detector, "person_det"))
        return "--detector person_det_fast is the faster one";
    if (models)
        return "a smaller detector would relieve it";
    if (!strcmp(stage, "decode"))
        return facts->host_memory ? "more --decode-threads, or a smaller video, would relieve it"
                                  : "more streams at once would use the other decoders";
    if (!strcmp(stage, "encode"))
        return "a faster --preset or more --encode-threads would relieve it";
    if (!strcmp(stage, "tracking"))
        return facts->camera_motion ? "--no-camera-motion saves its look at the pixels" : NULL;
    if (!strcmp(stage, "draw"))
        return "--no-trails draws less";
    return NULL;
}

/* Without the busiest thread the run would take as long as the next one. */
static void note_bottleneck(struct notes *notes, const struct sac_pipeline_stats *stats,
                            const struct sac_flow_facts *facts,
                            const struct busy busy[THREAD_COUNT], int first, int second)
{
    char        buf[128];
    double      gain = busy[first].share - (second >= 0 ? busy[second].share : 0);
    const char *stage = busy[first].longest->name;
    const char *what = remedy(stats, facts, stage, buf, sizeof buf);
    if (busy[first].share < 0.5) /* all of them waited: the input sets the pace */
        return;
    struct advice *a = note(notes, gain);
    snprintf(a->text, sizeof a->text, "The others wait for %s (%d %% of the run)%s%s.", stage,
             percent(busy[first].share), what ? ": " : "", what ? what : "");
}

static void note_batches(struct notes *notes, const struct sac_pipeline_stats *stats,
                         const struct busy busy[THREAD_COUNT])
{
    const struct sac_batch_stats *batch = &stats->batch;
    double fill = batch->max > 1 && batch->count ? batch->mean / batch->max : 1;
    if (fill >= 0.6)
        return;
    /* Half of what an empty place costs is the run's own cost, which a fuller batch shares. */
    struct advice *a = note(notes, (1 - fill) * busy[THREAD_INFER].share * 0.5);
    snprintf(a->text, sizeof a->text,
             "Batches of up to %d frames held %.1f in the mean (%" PRIu64 " of %" PRIu64
             " were full): more streams or a longer --batch-timeout would fill them, a lower "
             "--max-batch would wait less.",
             batch->max, batch->mean, batch->full, batch->count);
}

static double copy_share(const struct sac_pipeline_stats *stats, enum sac_copy_reason reason)
{
    return (double)stats->ledger.reason[reason].bytes / COPY_BYTES_PER_S / stats->elapsed_s;
}

static double megabytes(const struct sac_pipeline_stats *stats, enum sac_copy_reason reason)
{
    return (double)stats->ledger.reason[reason].bytes * 1e-6;
}

static void note_copies(struct notes *notes, const struct sac_pipeline_stats *stats,
                        const struct sac_flow_facts *facts)
{
    const struct sac_ledger_entry *reason = stats->ledger.reason;
    struct advice                 *a;
    if (reason[SAC_COPY_FRAME_CONVERT].calls) {
        /* a scaler's work on every byte, on the thread that decodes */
        a = note(notes, 4 * copy_share(stats, SAC_COPY_FRAME_CONVERT));
        snprintf(a->text, sizeof a->text,
                 stats->source.converted
                     ? "%" PRIu64 " frames (%.0f MB) were converted twice, since no stage takes the "
                       "decoder's pixel format: 4:2:0 video of 8 or 10 bit is converted once."
                     : "%" PRIu64 " frames (%.0f MB) were converted for the detector and once more "
                       "for the encoder, which takes another format or size than they have.",
                 reason[SAC_COPY_FRAME_CONVERT].calls,
                 megabytes(stats, SAC_COPY_FRAME_CONVERT));
    }
    if (reason[SAC_COPY_DRAW].calls) {
        a = note(notes, copy_share(stats, SAC_COPY_DRAW));
        snprintf(a->text, sizeof a->text,
                 "%" PRIu64 " frames (%.0f MB) were copied to be drawn on, since the decoder still "
                 "predicts from them: a run without --output needs no copy.",
                 reason[SAC_COPY_DRAW].calls, megabytes(stats, SAC_COPY_DRAW));
    }
    if (reason[SAC_COPY_OVERLAY].calls) {
        a = note(notes, copy_share(stats, SAC_COPY_OVERLAY));
        snprintf(a->text, sizeof a->text,
                 "%" PRIu64 " annotated frames (%.0f MB) came to the host to be encoded: a card with "
                 "an encoder, or a run without --output, needs no copy.",
                 reason[SAC_COPY_OVERLAY].calls, megabytes(stats, SAC_COPY_OVERLAY));
    }
    if (reason[SAC_COPY_FRAME_UPLOAD].calls) {
        a = note(notes, 2 * copy_share(stats, SAC_COPY_FRAME_UPLOAD));
        snprintf(a->text, sizeof a->text,
                 "%" PRIu64 " frames (%.0f MB) were decoded on the host and sent to the device: "
                 "decoded there, none would cross.",
                 reason[SAC_COPY_FRAME_UPLOAD].calls, megabytes(stats, SAC_COPY_FRAME_UPLOAD));
    }
    if (reason[SAC_COPY_FRAME_DOWNLOAD].calls) {
        a = note(notes, 2 * copy_share(stats, SAC_COPY_FRAME_DOWNLOAD));
        snprintf(a->text, sizeof a->text,
                 "%" PRIu64 " frames (%.0f MB) came from the device to the host: a stage there "
                 "looks at pixels%s.",
                 reason[SAC_COPY_FRAME_DOWNLOAD].calls,
                 megabytes(stats, SAC_COPY_FRAME_DOWNLOAD),
                 facts->camera_motion ? " (--no-camera-motion leaves them there)" : "");
    }
}

/* After warm-up a frame path allocates nothing. */
static void note_pool(struct notes *notes, const struct sac_pipeline_stats *stats)
{
    const struct sac_pool_stats *pool = &stats->pool;
    if (pool->fragmentation) {
        struct advice *a = note(notes, 0.1);
        snprintf(a->text, sizeof a->text,
                 "%" PRIu64 " requests for memory failed although enough was free in pieces: a "
                 "higher memory limit, or fewer streams, would end that.",
                 pool->fragmentation);
    } else if (pool->allocations > 2 * (uint64_t)stats->frames / 10 && stats->pool_reuse < 0.8) {
        struct advice *a = note(notes, 1 - stats->pool_reuse > 0.5 ? 0.1 : 0.05);
        snprintf(a->text, sizeof a->text,
                 "The pool served only %d %% of its requests from what came back (%" PRIu64
                 " new buffers): frames of changing size, or a memory limit that is too low.",
                 percent(stats->pool_reuse), pool->allocations);
    }
}

/* The best first. */
static void take_best(struct notes *notes, struct sac_pipeline_stats *stats)
{
    while (stats->advice_count < SAC_ADVICE_MAX) {
        struct advice *best = NULL;
        for (int i = 0; i < notes->count; i++)
            if (notes->items[i].gain > 0 && (!best || notes->items[i].gain > best->gain))
                best = &notes->items[i];
        if (!best)
            return;
        memcpy(stats->advice[stats->advice_count++], best->text, sizeof best->text);
        best->gain = 0;
    }
}

void sac_flow_judge(struct sac_pipeline_stats *stats, const struct sac_flow_facts *facts)
{
    struct busy  busy[THREAD_COUNT] = {0};
    struct notes notes = {0};
    int          first, second;
    stats->advice_count = 0;
    stats->bottleneck[0] = stats->bottleneck_why[0] = '\0';
    add_up(stats, facts, busy);
    rank(busy, &first, &second);
    if (first < 0)
        return;
    snprintf(stats->bottleneck, sizeof stats->bottleneck, "%s", busy[first].longest->name);
    say_why(stats, busy, first, second);
    if (stats->elapsed_s < ELAPSED_MIN_S || stats->frames < FRAMES_MIN)
        return;
    note_bottleneck(&notes, stats, facts, busy, first, second);
    note_batches(&notes, stats, busy);
    note_copies(&notes, stats, facts);
    note_pool(&notes, stats);
    take_best(&notes, stats);
}
