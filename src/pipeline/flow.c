/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/flow.h"
#include "pipeline/stage.h"

/* With fewer frames or less time, the figures describe the start rather than the run. */
static const double ELAPSED_MIN_S = 0.5;
enum { FRAMES_MIN = 30 };
/* Advice that would save a smaller share of the run's time is not given. */
static const double GAIN_MIN = 0.03;
/* Up to this many new buffers late in a run are not reported. */
enum { WARM_NEW_MAX = 20 };
/* Copy rates, to estimate the time of copies: in host memory (EPYC, one thread, out of cache),
 * between host and device (half of the rate of PCIe 5 to an H200 from page-locked memory,
 * 2026-11-21), on a device (the H200 has 4,260, the smallest cards that the kernels run on a tenth
 * of that). */
static const double HOST_BYTES_PER_S = 5e9, CROSSING_BYTES_PER_S = 25e9, DEVICE_BYTES_PER_S = 400e9;

/* ---- threads ---- */

struct busy {
    double                          share;   /* of the run's time; of all the threads of its kind */
    const struct sac_timer_summary *longest; /* stage on it */
};

/* What is known of a stage of the statistics. */
static const struct sac_stage_row *row_of(const struct sac_timer_summary *stage)
{
    return &sac_stages[sac_stage_find(stage->name)];
}

/* Each has an inference and a finishing thread. */
static int devices_of(const struct sac_pipeline_stats *stats)
{
    return SAC_MAX(stats->shard_count, 1);
}

static void add_up(const struct sac_pipeline_stats *stats, const struct sac_flow_facts *facts,
                   struct busy busy[SAC_THREAD_COUNT])
{
    for (int i = 0; i < stats->stage_count; i++) {
        const struct sac_timer_summary *stage = &stats->stage[i];
        enum sac_stage_thread           thread = row_of(stage)->thread;
        bool   many = thread == SAC_THREAD_DECODE || thread == SAC_THREAD_SINK;
        double time_ms =
            stats->elapsed_s * 1e3 * (many ? SAC_MAX(facts->streams, 1) : devices_of(stats));
        busy[thread].share += time_ms > 0 ? stage->total_ms / time_ms : 0;
        if (!busy[thread].longest || stage->total_ms > busy[thread].longest->total_ms)
            busy[thread].longest = stage;
    }
    for (int t = 0; t < SAC_THREAD_COUNT; t++)
        busy[t].share = SAC_MIN(busy[t].share, 1); /* work before the first frame and after the last
                                                    */
}

/* The busiest thread is the one that the others wait for, at its queues. */
static void rank(const struct busy busy[SAC_THREAD_COUNT], int *first, int *second)
{
    *first = *second = -1;
    for (int t = 0; t < SAC_THREAD_COUNT; t++) {
        if (!busy[t].longest)
            continue;
        if (*first < 0 || busy[t].share > busy[*first].share) {
            *second = *first;
            *first = t;
        } else if (*second < 0 || busy[t].share > busy[*second].share)
            *second = t;
    }
}

/* ---- a device of its own ---- */

/* Below this share only the input limits the run. */
static const double IDLE_MAX = 0.5;
/* Above this share the device is the limit, however busy the threads are: the rest is gaps between
 * launches. */
static const double DEVICE_BUSY_MIN = 0.85;

/* The share of the run that the device computed for a thread's stages, measured with events; two of
 * its streams may overlap. longest: the longest of these stages. */
static double device_share(const struct sac_pipeline_stats *stats,
                           const struct sac_timer_summary **longest)
{
    double total_ms = 0;
    *longest = NULL;
    for (int i = 0; i < stats->stage_count; i++) {
        const struct sac_timer_summary *gpu = &stats->stage_gpu[i];
        if (gpu->count == 0)
            continue;
        total_ms += gpu->total_ms;
        if (!*longest || gpu->total_ms > (*longest)->total_ms)
            *longest = gpu;
    }
    const double time_ms = stats->elapsed_s * 1e3 * devices_of(stats);
    return time_ms > 0 ? SAC_MIN(total_ms / time_ms, 1) : 0;
}

static double decoder_load(const struct sac_pipeline_stats *stats)
{
    double sum = 0;
    for (int i = 0; i < stats->shard_count; i++)
        sum += stats->shard[i].gpu.decoder_load;
    return stats->shard_count ? sum / stats->shard_count : stats->gpu.decoder_load;
}

/* What limits a run's speed. */
enum limit { LIMIT_THREAD, LIMIT_DEVICE, LIMIT_DECODER };

struct judged {
    enum limit                      limit;
    double                          device; /* share of the run that it computed */
    const struct sac_timer_summary *stage;  /* the one that the others wait for */
    double                          share;  /* of the run's time that it was busy */
};

/* The inference thread waits for its device within its stages, so only the device's own figures
 * tell whether the thread or the device is busy. A decode thread waits for the decoder in the same
 * way. */
static struct judged judge(const struct sac_pipeline_stats *stats,
                           const struct sac_flow_facts     *facts,
                           const struct busy busy[SAC_THREAD_COUNT], int first)
{
    const struct sac_timer_summary *longest;
    const struct busy              *decode = &busy[SAC_THREAD_DECODE];
    struct judged                   j = {.limit = LIMIT_THREAD};
    j.stage = busy[first].longest;
    j.share = busy[first].share;
    if (!facts->device)
        return j;
    j.device = device_share(stats, &longest);
    if (longest && j.device >= DEVICE_BUSY_MIN) {
        j.limit = LIMIT_DEVICE;
        j.stage = longest;
        j.share = j.device;
    } else if (decode->longest && decoder_load(stats) >= DEVICE_BUSY_MIN) {
        j.limit = LIMIT_DECODER;
        j.stage = decode->longest;
        j.share = decoder_load(stats);
    }
    return j;
}

static int percent(double share)
{
    return (int)(share * 100 + 0.5);
}

/* The queue that a thread takes from, or NULL; the statistics have them in the threads' order. */
static const struct sac_queue_info *queue_before(const struct sac_pipeline_stats *stats,
                                                 enum sac_stage_thread            thread)
{
    const int i = (int)thread - SAC_THREAD_INFER;
    return i >= 0 && i < stats->queue_count ? &stats->queue[i] : NULL;
}

static void append(char *out, size_t size, const char *fmt, ...) SAC_PRINTF(3, 4);
static void append(char *out, size_t size, const char *fmt, ...)
{
    const size_t used = strlen(out);
    va_list      ap;
    va_start(ap, fmt);
    vsnprintf(out + used, size - used, fmt, ap);
    va_end(ap);
}

static void say_why(struct sac_pipeline_stats *stats, const struct sac_flow_facts *facts,
                    const struct judged *j, const struct busy busy[SAC_THREAD_COUNT], int first,
                    int second)
{
    char                       *out = stats->bottleneck_why;
    const size_t                size = sizeof stats->bottleneck_why;
    const enum sac_stage_thread thread =
        j->limit == LIMIT_THREAD ? (enum sac_stage_thread)first : row_of(j->stage)->thread;
    const struct sac_queue_info *queue = queue_before(stats, thread);
    if (j->limit == LIMIT_DEVICE)
        append(out, size, "the device computed for %d %% of the run", percent(j->share));
    else if (j->limit == LIMIT_DECODER)
        append(out, size, "the card's decoders were busy for %d %% of the run", percent(j->share));
    else
        append(out, size, "its thread was busy for %d %% of the run", percent(busy[first].share));
    if (j->limit == LIMIT_THREAD && second >= 0)
        append(out, size, ", the next (%s) for %d %%", busy[second].longest->name,
               percent(busy[second].share));
    if (j->limit == LIMIT_THREAD && facts->device)
        append(out, size, "; the device computed for %d %%", percent(j->device));
    if (queue && queue->full > 0)
        append(out, size, "; the queue before it was full %" PRIu64 " of %" PRIu64 " times",
               queue->full, queue->passed);
    else if (queue && queue->empty > queue->passed / 2 && j->limit == LIMIT_THREAD &&
             j->share < IDLE_MAX)
        append(out, size, "; the queue before it was mostly empty: the input sets the pace");
}

/* ---- advice ---- */

struct advice {
    double gain; /* share of the run's time, estimated */
    char   text[256];
};
enum { ADVICE_KINDS = 12 };
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

/* Advice for a decoder on the GPU, or NULL. */
static const char *remedy_for_decoder(const struct sac_flow_facts *facts, enum limit limit)
{
    if (limit == LIMIT_DECODER)
        return "it is as fast as this card decodes; HEVC is decoded faster than H.264, and a "
               "second GPU decodes as much again";
    return facts->streams == 1 ? "more streams at once would use the other decoders" : NULL;
}

/* Advice to make this stage faster, or NULL. */
static const char *remedy(const struct sac_flow_facts *facts, const struct judged *j, char *buf,
                          size_t size)
{
    const enum sac_stage        stage = sac_stage_find(j->stage->name);
    const struct sac_stage_row *row = &sac_stages[stage];
    const bool                  models = row->thread == SAC_THREAD_INFER;
    if (models && !facts->device && facts->threads < facts->cpus) {
        snprintf(buf, size, "--threads %d would use all CPUs, it ran on %d", facts->cpus,
                 facts->threads);
        return buf;
    }
    if (models && facts->device && j->limit == LIMIT_THREAD)
        return "the host, not the device, is the slow one there: a larger --max-batch asks less "
               "of it";
    if (stage == SAC_STAGE_DECODE && facts->device)
        return remedy_for_decoder(facts, j->limit);
    if (stage == SAC_STAGE_TRACKING && !facts->camera_motion)
        return NULL;
    return row->relief;
}

/* Without the busiest thread the run would take as long as the next busiest. */
static void note_bottleneck(struct notes *notes, const struct sac_flow_facts *facts,
                            const struct judged *j, const struct busy busy[SAC_THREAD_COUNT],
                            int second)
{
    char   buf[160];
    double gain = j->share - (second >= 0 && j->limit == LIMIT_THREAD ? busy[second].share : 0);
    const char *what = remedy(facts, j, buf, sizeof buf);
    if (j->share < IDLE_MAX) /* all of them waited: the input sets the pace */
        return;
    struct advice *a = note(notes, gain);
    snprintf(a->text, sizeof a->text, "The others wait for %s (%d %% of the run)%s%s.",
             j->stage->name, percent(j->share), what ? ": " : "", what ? what : "");
}

/* busy: the share of the run that batches took. */
static void note_batches(struct notes *notes, const struct sac_pipeline_stats *stats, double busy)
{
    const struct sac_batch_stats *batch = &stats->batch;
    double fill = batch->max > 1 && batch->count ? batch->mean / batch->max : 1;
    if (fill >= 0.6)
        return;
    /* Half of what an empty place costs is the run's own cost, which a fuller batch shares. */
    struct advice *a = note(notes, (1 - fill) * busy * 0.5);
    snprintf(a->text, sizeof a->text,
             "Batches of up to %d frames held %.1f in the mean (%" PRIu64 " of %" PRIu64
             " full): more streams or a longer --batch-timeout would fill them, a lower "
             "--max-batch would wait less.",
             batch->max, batch->mean, batch->full, batch->count);
}

static double bytes_per_s(const struct sac_pipeline_stats *stats,
                          const struct sac_flow_facts *facts, enum sac_copy_reason reason)
{
    if (!facts->device || (reason == SAC_COPY_FRAME_CONVERT && stats->source.converted))
        return HOST_BYTES_PER_S;
    return reason == SAC_COPY_FRAME_CONVERT || reason == SAC_COPY_DRAW ? DEVICE_BYTES_PER_S
                                                                       : CROSSING_BYTES_PER_S;
}

static double copy_share(const struct sac_pipeline_stats *stats, const struct sac_flow_facts *facts,
                         enum sac_copy_reason reason)
{
    return (double)stats->ledger.reason[reason].bytes / bytes_per_s(stats, facts, reason) /
           stats->elapsed_s;
}

/* Advises "3 frames (20 MB) were", followed by what. weight: their cost in copies of these bytes;
 * 2 where they are copied back too. */
static void note_copied(struct notes *notes, const struct sac_pipeline_stats *stats,
                        const struct sac_flow_facts *facts, enum sac_copy_reason reason,
                        double weight, const char *noun, const char *what)
{
    const struct sac_ledger_entry *entry = &stats->ledger.reason[reason];
    if (!entry->calls)
        return;
    struct advice *a = note(notes, weight * copy_share(stats, facts, reason));
    snprintf(a->text, sizeof a->text, "%" PRIu64 " %s%s (%.0f MB) %s %s", entry->calls, noun,
             entry->calls == 1 ? "" : "s", (double)entry->bytes * 1e-6,
             entry->calls == 1 ? "was" : "were", what);
}

static void note_copies(struct notes *notes, const struct sac_pipeline_stats *stats,
                        const struct sac_flow_facts *facts)
{
    /* a scaler works on every byte, on the thread that decodes */
    note_copied(notes, stats, facts, SAC_COPY_FRAME_CONVERT, 4, "frame",
                stats->source.converted
                    ? "converted twice, since no stage takes the decoder's pixel format: 4:2:0 "
                      "video of 8 or 10 bit is converted once."
                    : "converted for the detector and once more for the encoder, which takes "
                      "another format or size.");
    note_copied(notes, stats, facts, SAC_COPY_DRAW, 1, "frame",
                "copied to be drawn on, since the decoder still predicts from the original: a run "
                "without --output needs no copy.");
    note_copied(notes, stats, facts, SAC_COPY_OVERLAY, 1, "annotated frame",
                "copied to the host to be encoded: a card with an encoder, or a run without "
                "--output, needs no copy.");
    if (stats->ledger.reason[SAC_COPY_FRAME_DOWNLOAD].calls)
        note_copied(notes, stats, facts, SAC_COPY_FRAME_DOWNLOAD, 2, "frame",
                    "copied from the device to the host and back: without --zero-copy off, frames "
                    "stay there.");
    else
        note_copied(notes, stats, facts, SAC_COPY_FRAME_UPLOAD, 2, "frame",
                    "decoded on the host and copied to the device: decoded there, none would "
                    "cross.");
}

/* Tensors that are copied because a device lacks operators of a network. */
static void note_tensors(struct notes *notes, const struct sac_pipeline_stats *stats,
                         const struct sac_flow_facts *facts)
{
    if (!facts->device)
        return;
    note_copied(notes, stats, facts, SAC_COPY_TENSOR_LAYOUT, 2, "tensor",
                "copied between device and host, where operators run that the device does not "
                "have: --log-level info names them.");
    note_copied(notes, stats, facts, SAC_COPY_TENSOR_DOWNLOAD, 2, "network output",
                "copied to the host, where the head is decoded: a head that the device knows needs "
                "no copy.");
}

/* After warm-up a frame path allocates nothing. */
static void note_pool(struct notes *notes, const struct sac_pipeline_stats *stats)
{
    const struct sac_pool_stats *pool = &stats->pool;
    if (pool->fragmentation) {
        struct advice *a = note(notes, 0.1);
        snprintf(a->text, sizeof a->text,
                 "%" PRIu64 " request%s for memory failed although enough was free in pieces: a "
                 "higher memory limit, or fewer streams, would end that.",
                 pool->fragmentation, pool->fragmentation == 1 ? "" : "s");
    } else if (pool->allocations_warm > WARM_NEW_MAX &&
               pool->allocations_warm > pool->requests_warm / 20) {
        struct advice *a =
            note(notes, pool->allocations_warm > pool->requests_warm / 2 ? 0.1 : 0.05);
        snprintf(
            a->text, sizeof a->text,
            "After its first %d frames the run still took %" PRIu64
            " new buffers from the system, of %" PRIu64
            " that were asked for: frames of changing size, or a memory limit that is too low.",
            SAC_POOL_WARM_FRAMES, pool->allocations_warm, pool->requests_warm);
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
    struct busy  busy[SAC_THREAD_COUNT] = {0};
    struct notes notes = {0};
    int          first, second;
    stats->advice_count = 0;
    stats->bottleneck[0] = stats->bottleneck_why[0] = '\0';
    add_up(stats, facts, busy);
    rank(busy, &first, &second);
    if (first < 0)
        return;
    const struct judged j = judge(stats, facts, busy, first);
    snprintf(stats->bottleneck, sizeof stats->bottleneck, "%s", j.stage->name);
    say_why(stats, facts, &j, busy, first, second);
    if (stats->elapsed_s < ELAPSED_MIN_S || stats->frames < FRAMES_MIN)
        return;
    note_bottleneck(&notes, facts, &j, busy, second);
    note_batches(&notes, stats, facts->device ? j.device : busy[SAC_THREAD_INFER].share);
    note_tensors(&notes, stats, facts);
    note_copies(&notes, stats, facts);
    note_pool(&notes, stats);
    take_best(&notes, stats);
}
