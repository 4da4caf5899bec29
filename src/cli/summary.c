/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "summary.h"

static void print_stages(const struct sac_pipeline_stats *stats, FILE *out)
{
    if (stats->stage_count)
        fputs("  stage        calls    mean ms     p50 ms     p95 ms     p99 ms    total s\n", out);
    for (int i = 0; i < stats->stage_count; i++) {
        const struct sac_timer_summary *stage = &stats->stage[i];
        fprintf(out, "  %-10s %7" PRId64 " %10.3f %10.3f %10.3f %10.3f %10.2f\n", stage->name,
                stage->count, stage->mean_ms, stage->p50_ms, stage->p95_ms, stage->p99_ms,
                stage->total_ms / 1000);
    }
}

static void print_models(const struct sac_pipeline_stats *stats, FILE *out)
{
    if (stats->detector[0])
        fprintf(out, "detector    %s (%s)\n", stats->detector, stats->head);
    if (stats->reid[0])
        fprintf(out, "reid        %s\n", stats->reid);
    fprintf(out, "tracker     %s\n", stats->tracker);
}

/* What was survived on the way; nothing to say most of the time. */
static void print_troubles(const struct sac_source_stats *source, FILE *out)
{
    const struct {
        uint64_t    count;
        const char *what;
    } troubles[] = {
        {source->corrupt, "damaged packets or frames skipped"},
        {source->pts_repaired, "timestamps repaired"},
        {source->size_changes, "changes of the frame size"},
        {source->converted, "frames converted from a pixel format that no stage takes"},
    };
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++)
        if (troubles[i].count)
            fprintf(out, "input       %" PRIu64 " %s\n", troubles[i].count, troubles[i].what);
}

static void print_file(const struct sac_pipeline_stats *stats, unsigned output, const char *path,
                       FILE *out)
{
    const char *encoder = output == SAC_OUTPUT_VIDEO ? stats->encoder : "";
    if (stats->outputs_whole & output)
        fprintf(out, "wrote       %s%s%s%s\n", strcmp(path, "-") == 0 ? "standard output" : path,
                *encoder ? " (" : "", encoder, *encoder ? ")" : "");
}

void summary_print_files(const struct sac_pipeline_stats *stats, const struct settings *s,
                         FILE *out)
{
    print_file(stats, SAC_OUTPUT_VIDEO, s->video_out, out);
    print_file(stats, SAC_OUTPUT_JSONL, s->jsonl_out, out);
    print_file(stats, SAC_OUTPUT_MOT, s->mot_out, out);
    print_file(stats, SAC_OUTPUT_TRACE, s->trace_out, out);
    print_file(stats, SAC_OUTPUT_STATS, s->stats_out, out);
}

void summary_print_streams(sac_pipeline *pipe, int count, FILE *out)
{
    fputs("  frames   frames/s   objects      boxes  input\n", out);
    for (int i = 0; i < count; i++) {
        struct sac_stream_stats s;
        sac_pipeline_get_stream_stats(pipe, i, &s);
        fprintf(out, "  %6" PRId64 " %10.1f %9" PRId64 " %10" PRId64 "  %s%s\n", s.frames, s.fps,
                s.tracks, s.detections, s.input, s.status == SAC_OK ? "" : " (failed)");
    }
}

void summary_print(const struct sac_pipeline_stats *stats, FILE *out)
{
    fprintf(out, "%" PRId64 " frames in %.2f s: %.1f frames/s\n", stats->frames,
            stats->elapsed_s, stats->fps);
    fprintf(out, "tracks      %" PRId64 " objects from %" PRId64 " boxes\n", stats->tracks,
            stats->detections);
    print_models(stats, out);
    fprintf(out, "device      %s\n", stats->device);
    if (stats->engine[0])
        fprintf(out, "engine      %s, %s\n", stats->engine, stats->precision);
    fprintf(out, "memory      %.0f MB at most\n", (double)stats->rss_peak_bytes / 1e6);
    if (stats->bottleneck[0])
        fprintf(out, "bottleneck  %s: %s\n", stats->bottleneck, stats->bottleneck_why);
    for (int i = 0; i < stats->advice_count; i++)
        fprintf(out, "%s  %s\n", i ? "          " : "advice    ", stats->advice[i]);
    print_troubles(&stats->source, out);
    print_stages(stats, out);
}
