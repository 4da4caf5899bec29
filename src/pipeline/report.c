/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics as JSON (docs/stats.schema.json): figures that a run does not have are null. */
#include "pipeline/report.h"

/* Incremented when a reader of the former version could misread it. */
enum { FORMAT_VERSION = 1 };

static void open(struct sac_text *t, const char *key, const char *bracket)
{
    sac_text_add(t, "\"");
    sac_text_add(t, key);
    sac_text_add(t, "\":");
    sac_text_add(t, bracket);
}

/* Every member but the last of an object ends in a comma: these write both. */
static void add_int(struct sac_text *t, const char *key, int64_t value, const char *after)
{
    open(t, key, "");
    sac_text_int(t, value);
    sac_text_add(t, after);
}

static void add_real(struct sac_text *t, const char *key, double value, const char *after)
{
    open(t, key, "");
    sac_text_fixed(t, value, 6);
    sac_text_add(t, after);
}

static void add_string(struct sac_text *t, const char *key, const char *value, const char *after)
{
    open(t, key, value && value[0] ? "" : "null");
    if (value && value[0])
        sac_text_json_string(t, value);
    sac_text_add(t, after);
}

static void add_times(struct sac_text *t, const struct sac_timer_summary *s)
{
    add_int(t, "count", s->count, ",");
    add_real(t, "total_ms", s->total_ms, ",");
    add_real(t, "mean_ms", s->mean_ms, ",");
    add_real(t, "p50_ms", s->p50_ms, ",");
    add_real(t, "p95_ms", s->p95_ms, ",");
    add_real(t, "p99_ms", s->p99_ms, ",");
    add_real(t, "max_ms", s->max_ms, "");
}

static void add_stages(struct sac_text *t, const struct sac_pipeline_stats *s)
{
    open(t, "stages", "[");
    for (int i = 0; i < s->stage_count; i++) {
        sac_text_add(t, i ? ",\n  {" : "\n  {");
        add_string(t, "name", s->stage[i].name, ",");
        add_times(t, &s->stage[i]);
        sac_text_add(t, s->stage_gpu[i].count ? ",\"gpu\":{" : ",\"gpu\":null");
        if (s->stage_gpu[i].count) {
            add_times(t, &s->stage_gpu[i]);
            sac_text_add(t, "}");
        }
        sac_text_add(t, ",");
        add_int(t, "memory_bytes", (int64_t)s->stage_bytes[i], ",");
        add_int(t, "memory_peak_bytes", (int64_t)s->stage_bytes_peak[i], "}");
    }
    sac_text_add(t, "],\n");
    open(t, "other_memory", "{");
    add_int(t, "bytes", (int64_t)s->other_bytes, ",");
    add_int(t, "peak_bytes", (int64_t)s->other_bytes_peak, "},\n");
}

static void add_latency(struct sac_text *t, const struct sac_timer_summary *latency)
{
    if (latency->count == 0) {
        sac_text_add(t, "\"latency\":null,\n");
        return;
    }
    open(t, "latency", "{");
    add_times(t, latency);
    sac_text_add(t, "},\n");
}

static void add_queues(struct sac_text *t, const struct sac_pipeline_stats *s)
{
    open(t, "queues", "[");
    for (int i = 0; i < s->queue_count; i++) {
        const struct sac_queue_info *q = &s->queue[i];
        sac_text_add(t, i ? ",\n  {" : "\n  {");
        add_string(t, "name", q->name, ",");
        add_int(t, "capacity", (int64_t)q->capacity, ",");
        add_int(t, "length", (int64_t)q->length, ",");
        add_int(t, "length_max", (int64_t)q->length_max, ",");
        add_int(t, "passed", (int64_t)q->passed, ",");
        add_int(t, "full", (int64_t)q->full, ",");
        add_int(t, "empty", (int64_t)q->empty, ",");
        add_real(t, "push_wait_ms", q->push_wait_ms, ",");
        add_real(t, "pop_wait_ms", q->pop_wait_ms, "}");
    }
    sac_text_add(t, "],\n");
}

static void add_batches(struct sac_text *t, const struct sac_batch_stats *b)
{
    if (b->max == 0) {
        sac_text_add(t, "\"batches\":null,\n");
        return;
    }
    open(t, "batches", "{");
    add_int(t, "count", (int64_t)b->count, ",");
    add_int(t, "frames", (int64_t)b->frames, ",");
    add_int(t, "full", (int64_t)b->full, ",");
    add_int(t, "max", b->max, ",");
    add_real(t, "mean", b->mean, ",");
    add_real(t, "fill", b->mean / b->max, "},\n");
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static void add_pool(struct sac_text *t, const char *key, const struct sac_pool_stats *p)
{
    open(t, key, "{");
    add_int(t, "allocations", (int64_t)p->allocations, ",");
    add_int(t, "reuses", (int64_t)p->reuses, ",");
    add_int(t, "returns", (int64_t)p->returns, ",");
    add_int(t, "leaks", (int64_t)p->leaks, ",");
    add_int(t, "fragmentation", (int64_t)p->fragmentation, ",");
    add_int(t, "bytes_live", (int64_t)p->bytes_live, ",");
    add_int(t, "bytes_idle", (int64_t)p->bytes_idle, ",");
    add_int(t, "bytes_peak", (int64_t)p->bytes_peak, ",");
    add_real(t, "reuse_share", share(p->reuses, p->allocations + p->reuses), ",");
    add_int(t, "requests_warm", (int64_t)p->requests_warm, ",");
    add_int(t, "allocations_warm", (int64_t)p->allocations_warm, ",");
    add_real(t, "reuse_share_warm", 1 - share(p->allocations_warm, p->requests_warm), "},\n");
}

static void add_copies(struct sac_text *t, const struct sac_ledger *ledger)
{
    open(t, "copies", "{");
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++) {
        sac_text_add(t, i ? ",\n  " : "\n  ");
        open(t, sac_copy_reason_name((enum sac_copy_reason)i), "{");
        add_int(t, "calls", (int64_t)ledger->reason[i].calls, ",");
        add_int(t, "bytes", (int64_t)ledger->reason[i].bytes, "}");
    }
    sac_text_add(t, "},\n");
}

static void add_gpu(struct sac_text *t, const struct sac_gpu_stats *gpu, const char *end)
{
    if (!gpu->known) {
        sac_text_add(t, "\"gpu\":null");
        sac_text_add(t, end);
        return;
    }
    open(t, "gpu", "{");
    add_string(t, "name", gpu->name, ",");
    add_int(t, "samples", gpu->samples, ",");
    add_real(t, "utilisation", gpu->utilisation, ",");
    add_real(t, "utilisation_1m", gpu->utilisation_1m, ",");
    add_real(t, "utilisation_5m", gpu->utilisation_5m, ",");
    add_real(t, "decoder_load", gpu->decoder_load, ",");
    add_real(t, "decoder_load_1m", gpu->decoder_load_1m, ",");
    add_real(t, "decoder_load_5m", gpu->decoder_load_5m, ",");
    add_real(t, "encoder_load", gpu->encoder_load, ",");
    add_int(t, "memory_bytes", (int64_t)gpu->memory_bytes, ",");
    add_int(t, "memory_peak_bytes", (int64_t)gpu->memory_peak_bytes, ",");
    add_int(t, "memory_total_bytes", (int64_t)gpu->memory_total_bytes, "}");
    sac_text_add(t, end);
}

/* Only where several devices share the run. */
static void add_shards(struct sac_text *t, const struct sac_pipeline_stats *s)
{
    if (s->shard_count == 0)
        return;
    open(t, "devices", "[");
    for (int i = 0; i < s->shard_count; i++) {
        const struct sac_shard_stats *shard = &s->shard[i];
        sac_text_add(t, i ? ",\n  {" : "\n  {");
        add_string(t, "device", shard->device, ",");
        add_int(t, "streams", shard->streams, ",");
        add_int(t, "frames", shard->frames, ",");
        add_real(t, "fps", shard->fps, ",");
        add_int(t, "batches", (int64_t)shard->batch.count, ",");
        add_real(t, "batch_mean", shard->batch.mean, ",");
        add_int(t, "memory_peak_bytes", (int64_t)shard->memory_bytes_peak, ",");
        add_gpu(t, &shard->gpu, "}");
    }
    sac_text_add(t, "],\n");
}

static void add_source(struct sac_text *t, const struct sac_source_stats *source, const char *after)
{
    open(t, "source", "{");
    add_int(t, "frames", (int64_t)source->frames, ",");
    add_int(t, "packets", (int64_t)source->packets, ",");
    add_int(t, "bytes", (int64_t)source->bytes, ",");
    add_int(t, "corrupt", (int64_t)source->corrupt, ",");
    add_int(t, "pts_repaired", (int64_t)source->pts_repaired, ",");
    add_int(t, "size_changes", (int64_t)source->size_changes, ",");
    add_int(t, "converted", (int64_t)source->converted, after);
}

static void add_streams(struct sac_text *t, const struct sac_stream_stats *streams, int n)
{
    open(t, "streams", "[");
    for (int i = 0; i < n; i++) {
        const struct sac_stream_stats *s = &streams[i];
        sac_text_add(t, i ? ",\n  {" : "\n  {");
        add_string(t, "input", s->input, ",");
        add_int(t, "stream", s->stream_id, ",");
        add_int(t, "frames", s->frames, ",");
        add_int(t, "frames_total", s->frames_total, ",");
        add_int(t, "detections", s->detections, ",");
        add_int(t, "tracks", s->tracks, ",");
        add_real(t, "elapsed_s", s->elapsed_s, ",");
        add_real(t, "fps", s->fps, ",");
        add_string(t, "decoder", s->decoder, ",");
        add_string(t, "decoder_note", s->decoder_note, ",");
        add_int(t, "surface_bytes", (int64_t)s->surface_bytes, ",");
        add_string(t, "encoder", s->encoder, ",");
        add_string(t, "fault", s->why, ",");
        add_source(t, &s->source, "}}");
    }
    sac_text_add(t, "],\n");
}

static void add_judgement(struct sac_text *t, const struct sac_pipeline_stats *s)
{
    if (s->bottleneck[0]) {
        open(t, "bottleneck", "{");
        add_string(t, "stage", s->bottleneck, ",");
        add_string(t, "why", s->bottleneck_why, "},\n");
    } else
        sac_text_add(t, "\"bottleneck\":null,\n");
    open(t, "advice", "[");
    for (int i = 0; i < s->advice_count; i++) {
        sac_text_add(t, i ? ",\n  " : "\n  ");
        sac_text_json_string(t, s->advice[i]);
    }
    sac_text_add(t, "]\n");
}

static void add_run(struct sac_text *t, const struct sac_pipeline_stats *s)
{
    sac_text_add(t, "{\"format\":\"saccade-stats\",");
    add_int(t, "version", FORMAT_VERSION, ",\n");
    add_string(t, "program", "saccade " SAC_VERSION, ",\n");
    add_string(t, "device", s->device, ",\n");
    add_string(t, "engine", s->engine, ",\n");
    add_string(t, "precision", s->precision, ",\n");
    add_string(t, "detector", s->detector, ",\n");
    add_string(t, "head", s->head, ",\n");
    add_string(t, "classes", s->classes, ",\n");
    add_string(t, "reid", s->reid, ",\n");
    add_string(t, "tracker", s->tracker, ",\n");
    add_string(t, "encoder", s->encoder, ",\n");
    add_int(t, "frames", s->frames, ",\n");
    add_int(t, "frames_total", s->frames_total, ",\n");
    add_int(t, "detections", s->detections, ",\n");
    add_int(t, "tracks", s->tracks, ",\n");
    add_real(t, "elapsed_s", s->elapsed_s, ",\n");
    add_real(t, "fps", s->fps, ",\n");
    add_real(t, "cpu_s", s->cpu_s, ",\n");
    add_int(t, "rss_bytes", (int64_t)s->rss_bytes, ",\n");
    add_int(t, "rss_peak_bytes", (int64_t)s->rss_peak_bytes, ",\n");
}

void sac_report_text(struct sac_text *t, const struct sac_pipeline_stats *s,
                     const struct sac_stream_stats *streams, int stream_count)
{
    add_run(t, s);
    add_stages(t, s);
    add_latency(t, &s->latency);
    add_queues(t, s);
    add_batches(t, &s->batch);
    add_pool(t, "pool", &s->pool);
    add_pool(t, "host_pool", &s->host_pool);
    add_copies(t, &s->ledger);
    open(t, "crossed", "{");
    add_int(t, "bytes", (int64_t)s->ledger.crossed_bytes, ",");
    add_real(t, "bytes_per_s", s->crossed_per_s, "},\n");
    add_gpu(t, &s->gpu, ",\n");
    add_shards(t, s);
    add_source(t, &s->source, "},\n");
    add_streams(t, streams, stream_count);
    add_judgement(t, s);
    sac_text_add(t, "}\n");
}

sac_result sac_report_write(sac_context *ctx, struct sac_outfile *file,
                            const struct sac_pipeline_stats *stats,
                            const struct sac_stream_stats *streams, int stream_count)
{
    struct sac_text text = {0};
    sac_report_text(&text, stats, streams, stream_count);
    if (text.failed) {
        sac_text_finish(&text);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "'%s': no memory for the statistics", file->name.path);
    }
    fwrite(text.data, 1, text.length, file->file);
    sac_text_finish(&text);
    return sac_outfile_finish(file);
}
