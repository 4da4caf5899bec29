/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "outputs.h"
#include "summary.h"

/* "1 frame", "2 frames" */
static const char *s_of(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* The GPU's own time, if a GPU took part; the rest of the row is host time. */
static void print_gpu_time(const struct sac_timer_summary *gpu, FILE *out)
{
    if (gpu->count)
        fprintf(out, " %11.3f %11.3f", gpu->mean_ms, gpu->p99_ms);
}

static void print_stages(const struct sac_pipeline_stats *stats, FILE *out)
{
    bool device = false;
    for (int i = 0; i < stats->stage_count; i++)
        device |= stats->stage_gpu[i].count > 0;
    if (stats->stage_count)
        fprintf(out,
                "  stage        calls    mean ms     p50 ms     p95 ms     p99 ms    total s  "
                "memory MB%s\n",
                device ? " gpu mean ms  gpu p99 ms" : "");
    for (int i = 0; i < stats->stage_count; i++) {
        const struct sac_timer_summary *stage = &stats->stage[i];
        fprintf(out, "  %-10s %7" PRId64 " %10.3f %10.3f %10.3f %10.3f %10.2f %10.1f", stage->name,
                stage->count, stage->mean_ms, stage->p50_ms, stage->p95_ms, stage->p99_ms,
                stage->total_ms / 1000, (double)stats->stage_bytes_peak[i] / 1e6);
        print_gpu_time(&stats->stage_gpu[i], out);
        fputs("\n", out);
    }
}

static void print_models(const struct sac_pipeline_stats *stats, FILE *out)
{
    if (stats->segmenter[0])
        fprintf(out, "segmenter   %s (%s)\n", stats->segmenter, stats->head);
    if (stats->detector[0])
        fprintf(out, "detector    %s (%s)\n", stats->detector, stats->head);
    if (stats->classes[0])
        fprintf(out, "classes     %s%s\n", stats->classes,
                stats->class_kept < stats->class_count - (stats->segmenter[0] != '\0')
                    ? "; --classes all keeps all"
                    : "");
    if (stats->reid[0])
        fprintf(out, "reid        %s\n", stats->reid);
    if (stats->tracker[0])
        fprintf(out, "tracker     %s\n", stats->tracker);
}

/* The copy ledger: what was copied, and why. */
static void print_copies(const struct sac_pipeline_stats *stats, FILE *out)
{
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++) {
        const struct sac_ledger_entry *entry = &stats->ledger.reason[i];
        if (entry->calls)
            fprintf(out, "copied      %s: %" PRIu64 " time%s, %.3f MB\n",
                    sac_copy_reason_name((enum sac_copy_reason)i), entry->calls,
                    s_of((int64_t)entry->calls), (double)entry->bytes / 1e6);
    }
    if (stats->ledger.crossed_bytes)
        fprintf(out, "crossed     %.3f MB/s between host and device, not counting weights\n",
                stats->crossed_per_s / 1e6);
}

static void print_gpu(const struct sac_gpu_stats *gpu, FILE *out)
{
    if (gpu->samples)
        fprintf(
            out,
            "gpu         %s: busy %.0f %%, its decoder %.0f %%, %.1f of %.1f GB in use at most\n",
            gpu->name, gpu->utilisation * 100, gpu->decoder_load * 100,
            (double)gpu->memory_peak_bytes / 1e9, (double)gpu->memory_total_bytes / 1e9);
}

static void print_shards(const struct sac_pipeline_stats *stats, FILE *out)
{
    for (int i = 0; i < stats->shard_count; i++) {
        const struct sac_shard_stats *s = &stats->shard[i];
        fprintf(out, "  %-9s %d stream%s, %" PRId64 " frame%s, %.1f frames/s", s->device,
                s->streams, s_of(s->streams), s->frames, s_of(s->frames), s->fps);
        if (s->batch.count)
            fprintf(out, ", batches of %.1f", s->batch.mean);
        if (s->gpu.samples)
            fprintf(out, ", busy %.0f %%", s->gpu.utilisation * 100);
        fputs("\n", out);
    }
}

static void print_memory(const struct sac_pipeline_stats *stats, FILE *out)
{
    const struct sac_pool_stats *pool = &stats->pool;
    const uint64_t               requests = pool->allocations + pool->reuses;
    fprintf(out, "memory      %.0f MB at most\n", (double)stats->rss_peak_bytes / 1e6);
    fprintf(out, "pool        %.0f MB at most; %.1f %% of %" PRIu64 " requests reused a buffer",
            (double)pool->bytes_peak / 1e6, stats->pool_reuse * 100, requests);
    if (requests > pool->requests_start)
        fprintf(out, ", %.1f %% of %" PRIu64 " after the start",
                100 - 100 * (double)(pool->allocations - pool->allocations_start) /
                          (double)(requests - pool->requests_start),
                requests - pool->requests_start);
    if (pool->requests_warm)
        fprintf(out, ", after the first %d frames %.1f %% of %" PRIu64, SAC_POOL_WARM_FRAMES,
                100 - 100 * (double)pool->allocations_warm / (double)pool->requests_warm,
                pool->requests_warm);
    else if (stats->frames > SAC_POOL_WARM_FRAMES)
        fprintf(out, ", no requests after the first %d frames", SAC_POOL_WARM_FRAMES);
    if (pool->trims)
        fprintf(out, "; %.0f MB given back in %" PRIu64 " trim%s",
                (double)pool->bytes_trimmed / 1e6, pool->trims, pool->trims == 1 ? "" : "s");
    fputs("\n", out);
}

static void print_line(void *out, const char *line)
{
    fprintf(out, "%s\n", line);
}

static void print_written(const char *path, size_t more, const char *encoder, FILE *out)
{
    fprintf(out, "wrote       %s", strcmp(path, "-") == 0 ? "standard output" : path);
    if (more)
        fprintf(out, " and %zu more", more);
    fprintf(out, *encoder ? " (%s)\n" : "\n", encoder);
}

static void print_kind(sac_pipeline *pipe, const struct sac_pipeline_stats *stats,
                       const struct output_kind *kind, const struct inputs *inputs, FILE *out)
{
    const char *first = NULL;
    size_t      count = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        struct sac_stream_stats s;
        sac_pipeline_get_stream_stats(pipe, (int)i, &s);
        if (s.outputs_whole & kind->bit && count++ == 0)
            first = *output_in_stream(kind, &inputs->streams[i]);
    }
    if (count)
        print_written(first, count - 1, kind->bit == SAC_OUTPUT_VIDEO ? stats->encoder : "", out);
}

void summary_print_files(sac_pipeline *pipe, const struct sac_pipeline_stats *stats,
                         const struct settings *s, const struct inputs *inputs, FILE *out)
{
    for (size_t i = 0; i < output_kind_count; i++)
        print_kind(pipe, stats, &output_kinds[i], inputs, out);
    if (stats->outputs_whole & SAC_OUTPUT_TRACE)
        print_written(s->run.job.trace_out, 0, "", out);
    if (stats->outputs_whole & SAC_OUTPUT_STATS)
        print_written(s->run.job.stats_out, 0, "", out);
}

void summary_print_streams(sac_pipeline *pipe, const struct sac_pipeline_stats *stats, int count,
                           FILE *out)
{
    const bool tracks = !stats->segmenter[0];
    fprintf(out, "  frames   frames/s%s  input\n", tracks ? "   objects      boxes" : "");
    for (int i = 0; i < count; i++) {
        struct sac_stream_stats s;
        sac_pipeline_get_stream_stats(pipe, i, &s);
        fprintf(out, "  %6" PRId64 " %10.1f", s.frames, s.fps);
        if (tracks)
            fprintf(out, " %9" PRId64 " %10" PRId64, s.tracks, s.detections);
        fprintf(out, "  %s%s\n", s.input, s.status == SAC_OK ? "" : " (failed)");
    }
}

void summary_print(const struct sac_pipeline_stats *stats, FILE *out)
{
    if (!stats->segmenter[0])
        fprintf(out, "%" PRId64 " object%s in ", stats->tracks, s_of(stats->tracks));
    fprintf(out, "%" PRId64 " frame%s: %.1f frames/s, %.2f s\n", stats->frames, s_of(stats->frames),
            stats->fps, stats->elapsed_s);
    sac_stats_lines(stats, false, print_line, out);
}

static void print_advice(const struct sac_pipeline_stats *stats, FILE *out)
{
    if (stats->bottleneck[0])
        fprintf(out, "bottleneck  %s: %s\n", stats->bottleneck, stats->bottleneck_why);
    for (int i = 0; i < stats->advice_count; i++)
        fprintf(out, "%s  %s\n", i ? "          " : "advice    ", stats->advice[i]);
}

void summary_print_details(const struct sac_pipeline_stats *stats, FILE *out)
{
    if (!stats->segmenter[0])
        fprintf(out, "boxes       %" PRId64 "\n", stats->detections);
    print_models(stats, out);
    fprintf(out, "device      %s\n", stats->device);
    print_shards(stats, out);
    if (stats->engine[0])
        fprintf(out, "engine      %s, %s\n", stats->engine, stats->precision);
    print_memory(stats, out);
    print_gpu(&stats->gpu, out);
    sac_stats_lines(stats, true, print_line, out);
    print_copies(stats, out);
    print_advice(stats, out);
    print_stages(stats, out);
}

void summary_print_monitor(sac_monitor *monitor, FILE *out)
{
    struct sac_monitor_event event;
    int                      anomalies = 0, warnings = 0;
    if (!monitor)
        return;
    const int count = sac_monitor_event_count(monitor);
    for (int i = 0; i < count && sac_monitor_get_event(monitor, i, &event) == SAC_OK; i++) {
        anomalies += event.kind == SAC_MONITOR_ANOMALY;
        warnings += event.kind == SAC_MONITOR_WARNING;
    }
    fprintf(out, "monitor     %.2f %% of one core; reported %d anomal%s, %d warning%s\n",
            100 * sac_monitor_cost(monitor), anomalies, anomalies == 1 ? "y" : "ies", warnings,
            s_of(warnings));
}
