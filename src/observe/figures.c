/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "observe/figures.h"

/* ---- the rows ---- */

#define FIELD(field) ((STATS *)0)->field
#define PLACE(field) .offset = offsetof(STATS, field), .size = sizeof FIELD(field)
#define ROW(type_, name_, ...)                                 \
    {                                                          \
        .name = name_, .type = SAC_FIGURE_##type_, __VA_ARGS__ \
    }
#define FIGURE(type, name, field, ...) ROW(type, name, PLACE(field), __VA_ARGS__)
#define COMPUTED(name, fn, ...)        ROW(SHARE, name, .compute = fn, __VA_ARGS__)
#define ADD                            .sum = SAC_SUM_ADD
#define UNIT(text)                     .unit = text
#define BYTES                          UNIT("bytes"), ADD
#define MEANS(text)                    .meaning = text
#define OF(figures)                    .group = &(figures)
#define LONG(field)                    .count = offsetof(STATS, field)
#define EACH(field)                    .stride = sizeof FIELD(field)[0]
#define SHOWN(when, label_, one_, many_) \
    .shown = SAC_SHOWN_##when, .label = label_, .one = one_, .many = many_
#define FIGURES(name_, rows_) .name = name_, .rows = rows_, .row_count = SAC_COUNT(rows_)

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

#define STATS struct sac_timer_summary
static const struct sac_figure times_rows[] = {
    FIGURE(COUNT, "count", count),
    FIGURE(AMOUNT, "total_ms", total_ms, UNIT("ms")),
    FIGURE(AMOUNT, "mean_ms", mean_ms, UNIT("ms")),
    FIGURE(AMOUNT, "p50_ms", p50_ms, UNIT("ms")),
    FIGURE(AMOUNT, "p95_ms", p95_ms, UNIT("ms")),
    FIGURE(AMOUNT, "p99_ms", p99_ms, UNIT("ms")),
    FIGURE(AMOUNT, "max_ms", max_ms, UNIT("ms")),
};
static bool is_timed(const void *group)
{
    return ((const STATS *)group)->count > 0;
}
static const struct sac_figures times = {FIGURES("times", times_rows), .is_known = is_timed};
#undef STATS

/* A stage's figures lie in several arrays of the run. */
#define STATS struct sac_pipeline_stats
static const struct sac_figure stage_rows[] = {
    FIGURE(NAME, "name", stage[0].name, EACH(stage)),
    FIGURE(INLINE, NULL, stage, OF(times), EACH(stage), MEANS("time on the host")),
    FIGURE(GROUP, "gpu", stage_gpu, OF(times), EACH(stage_gpu),
           MEANS("the device's own time, where it works by itself")),
    FIGURE(COUNT, "memory_bytes", stage_bytes[0], BYTES, EACH(stage_bytes),
           MEANS("of the device, held when the statistics were written")),
    FIGURE(COUNT, "memory_peak_bytes", stage_bytes_peak[0], BYTES, EACH(stage_bytes_peak),
           MEANS("the most that it ever held")),
};
static const struct sac_figures stage = {FIGURES("stage", stage_rows)};

static const struct sac_figure other_rows[] = {
    FIGURE(COUNT, "bytes", other_bytes, BYTES),
    FIGURE(COUNT, "peak_bytes", other_bytes_peak, BYTES),
};
static const struct sac_figures other = {FIGURES("other_memory", other_rows)};

static const struct sac_figure crossed_rows[] = {
    FIGURE(COUNT, "bytes", ledger.crossed_bytes, BYTES),
    FIGURE(AMOUNT, "bytes_per_s", crossed_per_s, UNIT("bytes/s")),
};
static const struct sac_figures crossed = {FIGURES("crossed", crossed_rows)};

static const struct sac_figure bottleneck_rows[] = {
    FIGURE(NAME, "stage", bottleneck),
    FIGURE(NAME, "why", bottleneck_why, MEANS("how it was found")),
};
static bool is_judged(const void *group)
{
    return ((const STATS *)group)->bottleneck[0] != '\0';
}
static const struct sac_figures bottleneck = {FIGURES("bottleneck", bottleneck_rows),
                                              .is_known = is_judged};
#undef STATS

#define STATS struct sac_queue_info
static const struct sac_figure queue_rows[] = {
    FIGURE(NAME, "name", name, MEANS("after the stage that takes from it")),
    FIGURE(COUNT, "capacity", capacity, ADD),
    FIGURE(COUNT, "length", length, ADD, MEANS("when the statistics were written")),
    FIGURE(COUNT, "length_max", length_max, ADD, MEANS("high-water mark")),
    FIGURE(COUNT, "passed", passed, ADD, MEANS("frames that were put in")),
    FIGURE(COUNT, "full", full, ADD, MEANS("times that a producer found no room")),
    FIGURE(COUNT, "empty", empty, ADD, MEANS("times that a consumer found nothing")),
    FIGURE(AMOUNT, "push_wait_ms", push_wait_ms, UNIT("ms"), ADD),
    FIGURE(AMOUNT, "pop_wait_ms", pop_wait_ms, UNIT("ms"), ADD),
};
const struct sac_figures sac_figures_queue = {FIGURES("queue", queue_rows)};
#undef STATS

#define STATS struct sac_batch_stats
static bool is_batched(const void *group)
{
    return ((const STATS *)group)->max > 0;
}
static double fill_of(const void *group)
{
    const STATS *b = group;
    return b->mean / b->max;
}
static const struct sac_figure batch_rows[] = {
    FIGURE(COUNT, "count", count, ADD),
    FIGURE(COUNT, "frames", frames, ADD),
    FIGURE(COUNT, "full", full, ADD, MEANS("runs that had max frames")),
    FIGURE(COUNT, "max", max),
    FIGURE(AMOUNT, "mean", mean, UNIT("frames")),
    FIGURE(COUNT, "padded", padded, ADD,
           MEANS("images that runs were filled up with (--batch-padding)"),
           SHOWN(DETAILS, "padded", "image that a run was filled up with",
                 "images that runs were filled up with")),
    FIGURE(COUNT, "whole", whole, ADD,
           MEANS("batches that were one launch from frames to mattes (--mode vr)"),
           SHOWN(DETAILS, "one launch", "batch from frames to mattes",
                 "batches from frames to mattes")),
    FIGURE(COUNT, "shrunk", shrunk, ADD,
           MEANS("times that the limit of a batch fell, since memory ran out"),
           SHOWN(ALWAYS, "memory", "time it was too short for a batch, which became smaller",
                 "times it was too short for a batch, which became smaller")),
    FIGURE(COUNT, "grown", grown, ADD, MEANS("times that it rose again"),
           SHOWN(ALWAYS, "memory", "time batches became larger again",
                 "times batches became larger again")),
    COMPUTED("fill", fill_of, MEANS("mean / max")),
};
static const struct sac_figures batch = {FIGURES("batches", batch_rows), .is_known = is_batched};
#undef STATS

#define STATS struct sac_saving_stats
static double region_share_of(const void *group)
{
    const STATS *s = group;
    return s->regions ? s->region_area / (double)s->regions : 0;
}
static const struct sac_figure saving_rows[] = {
    FIGURE(COUNT, "still", still, ADD,
           MEANS("frames like the last one that the network saw, which it did not see "
                 "(--skip-still)"),
           SHOWN(ALWAYS, "skipped", "still frame that the network did not see",
                 "still frames that the network did not see")),
    FIGURE(COUNT, "regions", regions, ADD, MEANS("frames of which it saw a part (--region)"),
           SHOWN(ALWAYS, "regions", "frame of which the network saw a part",
                 "frames of which the network saw a part")),
    FIGURE(AMOUNT, NULL, region_area, ADD),
    COMPUTED("region_share", region_share_of, MEANS("the mean part of these frames")),
    FIGURE(COUNT, "small", small, ADD,
           MEANS("frames that the small network was sure of (--small-model)"),
           SHOWN(ALWAYS, "small", "frame that the small network was sure of",
                 "frames that the small network was sure of")),
    FIGURE(
        COUNT, "large", large, ADD, MEANS("frames that the large one saw too"),
        SHOWN(ALWAYS, "large", "frame that it was not sure of", "frames that it was not sure of")),
    FIGURE(COUNT, "scales", scales, ADD,
           MEANS("frames that the network saw at several scales (--scales)"),
           SHOWN(ALWAYS, "scales", "frame that the network saw at several scales",
                 "frames that the network saw at several scales")),
    FIGURE(COUNT, "looks", looks, ADD, MEANS("images that it saw of these"),
           SHOWN(DETAILS, "looks", "image that it saw of these", "images that it saw of these")),
};
static const struct sac_figures savings = {FIGURES("savings", saving_rows)};
#undef STATS

#define STATS            struct sac_start_stats
#define PART(field, ...) FIGURE(COUNT, #field, field, UNIT("us"), ADD, __VA_ARGS__)
static const struct sac_figure start_rows[] = {
    FIGURE(COUNT, "total_us", total_us, UNIT("us"),
           MEANS("that passed before the first frame, while the run was created")),
    PART(device_us, MEANS("its plug-in, driver and context")),
    PART(inputs_us, MEANS("sources and decoders")),
    PART(libraries_us, MEANS("the engine's, and their handles")),
    PART(read_us, MEANS("models read from their files")),
    PART(passes_us, MEANS("constants folded, shapes inferred, nodes fused")),
    PART(kept_us, MEANS("plans that were kept: found, read, written")),
    PART(ranges_us, MEANS("what FP16 is too narrow for, watched on the CPU")),
    PART(plan_us, MEANS("shapes, kernels and memory of each plan")),
    PART(kernels_us, MEANS("kernels made ready, as a plan names them")),
    PART(trials_us, MEANS("kernels tried, where no plan names them")),
    PART(weights_us, MEANS("brought into the kernels' forms, and to the device")),
    PART(check_us, MEANS("of batches, in models that leave none open")),
    PART(runs_us, MEANS("the first runs of each size of batch")),
    PART(graphs_us, MEANS("their steps captured as one launch")),
    PART(outputs_us, MEANS("sinks and encoders")),
};
#undef PART
static const struct sac_figures start = {FIGURES("start", start_rows)};
#undef STATS

#define STATS struct sac_pool_stats
static double reuse_of(const void *group)
{
    const STATS *p = group;
    return share(p->reuses, p->allocations + p->reuses);
}
static double warm_reuse_of(const void *group)
{
    const STATS *p = group;
    return 1 - share(p->allocations_warm, p->requests_warm);
}
/* Without what the start prepares, which nothing could have given back before. */
static double run_reuse_of(const void *group)
{
    const STATS *p = group;
    return 1 - share(p->allocations - p->allocations_start,
                     p->allocations + p->reuses - p->requests_start);
}
static const struct sac_figure pool_rows[] = {
    FIGURE(COUNT, "allocations", allocations, ADD, MEANS("buffers taken from the system")),
    FIGURE(COUNT, "reuses", reuses, ADD, MEANS("buffers served from the pool")),
    FIGURE(COUNT, "returns", returns, ADD),
    FIGURE(COUNT, "leaks", leaks, ADD),
    FIGURE(COUNT, "fragmentation", fragmentation, ADD,
           MEANS("requests that failed although enough was free in pieces")),
    FIGURE(COUNT, "bytes_live", bytes_live, BYTES),
    FIGURE(COUNT, "bytes_idle", bytes_idle, BYTES),
    FIGURE(COUNT, "bytes_peak", bytes_peak, BYTES),
    COMPUTED("reuse_share", reuse_of, MEANS("of all requests, the start's too")),
    FIGURE(COUNT, "requests_start", requests_start, ADD,
           MEANS("buffers asked for before the first frame was done")),
    FIGURE(COUNT, "allocations_start", allocations_start, ADD,
           MEANS("of them taken from the system")),
    COMPUTED("reuse_share_run", run_reuse_of,
             MEANS("of the requests after the start; 1 where there were none")),
    FIGURE(COUNT, "trims", trims, ADD,
           MEANS("times that idle buffers were given back to the system")),
    FIGURE(COUNT, "bytes_trimmed", bytes_trimmed, BYTES),
    FIGURE(COUNT, "requests_warm", requests_warm, ADD,
           MEANS("buffers asked for since 300 frames were done")),
    FIGURE(COUNT, "allocations_warm", allocations_warm, ADD,
           MEANS("of them taken from the system")),
    COMPUTED("reuse_share_warm", warm_reuse_of,
             MEANS("of them served from what came back; 1 where none were asked for")),
};
static const struct sac_figures pool = {FIGURES("pool", pool_rows)};
#undef STATS

#define STATS struct sac_ledger_entry
static const char *reason_name(int i)
{
    return sac_copy_reason_name((enum sac_copy_reason)i);
}
static const struct sac_figure copy_rows[] = {
    FIGURE(COUNT, "calls", calls, ADD),
    FIGURE(COUNT, "bytes", bytes, BYTES),
};
static const struct sac_figures copy = {FIGURES("copy", copy_rows)};
#undef STATS

#define STATS struct sac_gpu_stats
static bool is_watched(const void *group)
{
    return ((const STATS *)group)->known;
}
static const struct sac_figure gpu_rows[] = {
    FIGURE(NAME, "name", name),
    FIGURE(COUNT, "samples", samples),
    FIGURE(SHARE, "utilisation", utilisation, MEANS("mean share of the time that kernels ran")),
    FIGURE(SHARE, "utilisation_1m", utilisation_1m,
           MEANS("over the last minute, or what there is of it")),
    FIGURE(SHARE, "utilisation_5m", utilisation_5m),
    FIGURE(SHARE, "decoder_load", decoder_load),
    FIGURE(SHARE, "decoder_load_1m", decoder_load_1m),
    FIGURE(SHARE, "decoder_load_5m", decoder_load_5m),
    FIGURE(SHARE, "encoder_load", encoder_load),
    FIGURE(COUNT, "memory_bytes", memory_bytes, UNIT("bytes")),
    FIGURE(COUNT, "memory_peak_bytes", memory_peak_bytes, UNIT("bytes")),
    FIGURE(COUNT, "memory_total_bytes", memory_total_bytes, UNIT("bytes")),
    FIGURE(COUNT, "temperature_c", temperature_c, UNIT("C"),
           MEANS("this and what follows: the latest sample; 0: not reported")),
    FIGURE(COUNT, "temperature_peak_c", temperature_peak_c, UNIT("C")),
    FIGURE(COUNT, "power_mw", power_mw, UNIT("mW")),
    FIGURE(COUNT, "power_limit_mw", power_limit_mw, UNIT("mW")),
    FIGURE(COUNT, "clock_mhz", clock_mhz, UNIT("MHz")),
    FIGURE(COUNT, "clock_max_mhz", clock_max_mhz, UNIT("MHz")),
    FIGURE(COUNT, "memory_clock_mhz", memory_clock_mhz, UNIT("MHz")),
    FIGURE(COUNT, "pcie_rx_kb_s", pcie_rx_kb_s, UNIT("kB/s"), MEANS("over the bus to the card")),
    FIGURE(COUNT, "pcie_tx_kb_s", pcie_tx_kb_s, UNIT("kB/s"), MEANS("and from it")),
    FIGURE(COUNT, "processes", processes, MEANS("that compute on it, as far as NVML may tell")),
    FIGURE(COUNT, "throttle", throttle,
           MEANS("bits of what slows it down: 1 heat, 2 power, 4 another protection")),
    FIGURE(COUNT, "throttled", throttled, MEANS("samples with one of them")),
};
static const struct sac_figures gpu = {FIGURES("gpu", gpu_rows), .is_known = is_watched};
#undef STATS

#define STATS struct sac_shard_stats
static const struct sac_figure shard_rows[] = {
    FIGURE(NAME, "device", device),
    FIGURE(COUNT, "streams", streams, MEANS("inputs that were dealt to it")),
    FIGURE(COUNT, "frames", frames),
    FIGURE(AMOUNT, "fps", fps, UNIT("frames/s")),
    FIGURE(COUNT, "batches", batch.count),
    FIGURE(AMOUNT, "batch_mean", batch.mean, UNIT("frames"), MEANS("frames in a batch")),
    FIGURE(COUNT, "memory_peak_bytes", memory_bytes_peak, UNIT("bytes"), MEANS("of its pool")),
    FIGURE(GROUP, "gpu", gpu, OF(gpu)),
};
static const struct sac_figures shard = {FIGURES("device", shard_rows)};
#undef STATS

#define STATS struct sac_source_stats
static const struct sac_figure source_rows[] = {
    FIGURE(COUNT, "frames", frames, ADD),
    FIGURE(COUNT, "packets", packets, ADD),
    FIGURE(COUNT, "bytes", bytes, BYTES),
    FIGURE(COUNT, "corrupt", corrupt, ADD,
           SHOWN(ALWAYS, "input", "damaged packet or frame, left out or concealed",
                 "damaged packets or frames, left out or concealed")),
    FIGURE(COUNT, "pts_repaired", pts_repaired, ADD,
           SHOWN(ALWAYS, "input", "timestamp repaired", "timestamps repaired")),
    FIGURE(COUNT, "size_changes", size_changes, ADD,
           SHOWN(ALWAYS, "input", "change of the frame size", "changes of the frame size")),
    FIGURE(COUNT, "converted", converted, ADD,
           SHOWN(DETAILS, "converted", "frame from a pixel format that no stage accepts",
                 "frames from a pixel format that no stage accepts")),
};
const struct sac_figures sac_figures_source = {FIGURES("source", source_rows)};
#undef STATS

#define STATS struct sac_stream_stats
static const struct sac_figure stream_rows[] = {
    FIGURE(NAME, "input", input, MEANS("*** in place of a URL's user, password and tokens")),
    FIGURE(COUNT, "stream", stream_id, MEANS("its number")),
    FIGURE(COUNT, "frames", frames),
    FIGURE(COUNT, "frames_total", frames_total),
    FIGURE(COUNT, "detections", detections),
    FIGURE(COUNT, "tracks", tracks),
    FIGURE(AMOUNT, "elapsed_s", elapsed_s, UNIT("s")),
    FIGURE(AMOUNT, "fps", fps, UNIT("frames/s")),
    FIGURE(TEXT, "decoder", decoder, MEANS("'nvdec h264' on a GPU; null without a video")),
    FIGURE(TEXT, "decoder_note", decoder_note, MEANS("why the CPU decodes what a GPU works on")),
    FIGURE(COUNT, "surface_bytes", surface_bytes, UNIT("bytes"),
           MEANS("memory of a GPU that its decoder holds")),
    FIGURE(TEXT, "encoder", encoder),
    FIGURE(TEXT, "fault", why, MEANS("what went wrong with this one")),
    FIGURE(GROUP, "source", source, OF(sac_figures_source)),
};
const struct sac_figures sac_figures_stream = {FIGURES("stream", stream_rows)};
#undef STATS

#define STATS struct sac_pipeline_stats
static const struct sac_figure run_rows[] = {
    FIGURE(NAME, "device", device),
    FIGURE(TEXT, "engine", engine, MEANS("what computed the networks; null without one")),
    FIGURE(TEXT, "precision", precision),
    FIGURE(TEXT, "detector", detector),
    FIGURE(TEXT, "head", head),
    FIGURE(TEXT, "classes", classes,
           MEANS("the classes that are kept, for people: 'person (1 of 80)'")),
    FIGURE(TEXT, "reid", reid),
    FIGURE(TEXT, "tracker", tracker, MEANS("null where the run makes mattes")),
    FIGURE(TEXT, "segmenter", segmenter,
           MEANS("the network that mattes are made with; null where the run tracks")),
    FIGURE(TEXT, "encoder", encoder),
    FIGURE(COUNT, "frames", frames, ADD, MEANS("done")),
    FIGURE(COUNT, "frames_total", frames_total, ADD, MEANS("expected; 0: unknown")),
    FIGURE(COUNT, "detections", detections, ADD),
    FIGURE(COUNT, "tracks", tracks, ADD, MEANS("identities")),
    FIGURE(COUNT, NULL, objects, ADD),
    FIGURE(AMOUNT, "elapsed_s", elapsed_s, UNIT("s"),
           MEANS("wall clock from the first frame to the last; with a video written, "
                 "until it is complete")),
    FIGURE(AMOUNT, "fps", fps, UNIT("frames/s")),
    FIGURE(AMOUNT, "cpu_s", cpu_s, UNIT("s"), MEANS("CPU time of the process, start included")),
    FIGURE(COUNT, "rss_bytes", rss_bytes, UNIT("bytes")),
    FIGURE(COUNT, "rss_peak_bytes", rss_peak_bytes, UNIT("bytes")),
    ROW(LIST, "stages", OF(stage), LONG(stage_count), ADD,
        MEANS("those that ran, in the order of a frame's way; none without timers")),
    ROW(GROUP, "other_memory", OF(other), ADD,
        MEANS("of the device, held by none of the stages above; the peaks of its parts added up")),
    FIGURE(GROUP, "latency", latency, OF(times),
           MEANS("of a frame, from when it was decoded, submitted or (--realtime) due to when its "
                 "tracks were there; null without timers")),
    FIGURE(GROUP, "composite_latency", composite_latency, OF(times),
           MEANS("of a frame, from when its last packet reached the decoder (--mode vr), else as "
                 "latency, to when its composite was complete; null where none was timed")),
    FIGURE(COUNT, "composites_late", composites_late, ADD,
           MEANS("composites that took longer than the time of two frames")),
    FIGURE(LIST, "queues", queue, OF(sac_figures_queue), LONG(queue_count), EACH(queue), ADD),
    FIGURE(GROUP, "batches", batch, OF(batch), ADD,
           MEANS("runs of the detector; null without one")),
    FIGURE(COUNT, "preprocess_streams", preprocess_streams,
           MEANS("streams of the device that the network's inputs are made on "
                 "(--preprocess-streams); 0 without one")),
    FIGURE(COUNT, "postprocess_threads", postprocess_threads,
           MEANS("that follow the camera for several streams (--postprocess-threads)")),
    FIGURE(COUNT, "postprocess_together", postprocess_together,
           MEANS("the most streams whose frames were tracked in one turn")),
    FIGURE(GROUP, "savings", savings, OF(savings), ADD,
           MEANS("how often the switches acted that save work")),
    FIGURE(GROUP, "start", start, OF(start), ADD,
           MEANS("what passed before the first frame; a part's own time, so that parts which were "
                 "opened side by side, or on several devices, add up to more")),
    FIGURE(GROUP, "pool", pool, OF(pool), ADD, MEANS("of the device's memory")),
    FIGURE(GROUP, "host_pool", host_pool, OF(pool), ADD,
           MEANS("of page-locked host memory for what crosses; all 0 on the CPU")),
    FIGURE(LIST, "copies", ledger.reason, OF(copy), .fixed = SAC_COPY_REASON_COUNT,
           EACH(ledger.reason), .key = reason_name, ADD,
           MEANS("the copy ledger: every transfer between host and device and every copy of frame "
                 "data, by reason")),
    ROW(GROUP, "crossed", OF(crossed), ADD,
        MEANS("bytes between host and device, weights left out; 0 on the CPU")),
    FIGURE(GROUP, "gpu", gpu, OF(gpu),
           MEANS("what NVML says of the whole GPU, other programs included; null without a GPU or "
                 "NVML")),
    FIGURE(LIST, "devices", shard, OF(shard), LONG(shard_count), EACH(shard), .optional = true,
           MEANS("there only where several devices share the run; all other figures are their "
                 "sum, but gpu, which is the first one's")),
    FIGURE(GROUP, "source", source, OF(sac_figures_source), ADD, MEANS("of all inputs together")),
};
const struct sac_figures sac_figures_run = {FIGURES("run", run_rows)};

static const struct sac_figure judgement_rows[] = {
    ROW(GROUP, "bottleneck", OF(bottleneck),
        MEANS("the stage that the others wait for; null where no stage was timed")),
    FIGURE(LIST, "advice", advice, LONG(advice_count), EACH(advice),
           MEANS("what would make the flow better, from the figures of this run; the most worth "
                 "first")),
};
const struct sac_figures sac_figures_judgement = {FIGURES("judgement", judgement_rows)};
#undef STATS

#define STATS struct sac_allocation
static const struct sac_figure allocation_rows[] = {
    FIGURE(NAME, "owner", owner, MEANS("what they are for")),
    FIGURE(TEXT, "stage", stage, MEANS("that asked for the first; null: none of a run's stages")),
    FIGURE(NAME, "place", place, MEANS("a device, or page-locked host memory")),
    FIGURE(TEXT, "shape", shape, MEANS("of the last one; null where it is no tensor")),
    FIGURE(COUNT, "bytes", bytes, UNIT("bytes"), MEANS("of one, the most that was asked for")),
    FIGURE(COUNT, "count", count, MEANS("in use when the statistics were written")),
    FIGURE(COUNT, "count_peak", count_peak, MEANS("the most at once")),
    FIGURE(COUNT, "bytes_live", bytes_live, UNIT("bytes"),
           MEANS("this and the next: what they take, rounded up")),
    FIGURE(COUNT, "bytes_peak", bytes_peak, UNIT("bytes")),
    FIGURE(COUNT, "requests", requests, MEANS("how often one was asked for")),
    FIGURE(AMOUNT, "first_s", first_s, UNIT("s"),
           MEANS("when one was first asked for, since the device was opened")),
    FIGURE(AMOUNT, "last_s", last_s, UNIT("s"), MEANS("and last")),
};
static const struct sac_figures allocation = {FIGURES("allocation", allocation_rows)};
#undef STATS

#define STATS struct sac_held
static const struct sac_figure held_rows[] = {
    FIGURE(LIST, "allocations", item, OF(allocation), LONG(count), EACH(item),
           MEANS("buffers from the pools, alike ones as one: those that had the most bytes at "
                 "once, the largest first")),
};
const struct sac_figures sac_figures_held = {FIGURES("held", held_rows)};
#undef STATS

#define STATS struct sac_sampled
static bool is_sampled(const void *group)
{
    return ((const STATS *)group)->known;
}
static const struct sac_figure sampling_rows[] = {
    FIGURE(COUNT, "interval_us", summary.interval_us, UNIT("us"),
           MEANS("of a thread's CPU time between two samples")),
    FIGURE(COUNT, "samples", summary.samples, MEANS("all, in the list of stacks or not")),
    FIGURE(COUNT, "other", summary.other, MEANS("of stacks that there was no room for")),
    FIGURE(COUNT, "lost", summary.lost, MEANS("times that a thread found no room for a sample")),
    FIGURE(AMOUNT, "elapsed_s", summary.elapsed_s, UNIT("s")),
    FIGURE(AMOUNT, "cpu_s", summary.cpu_s, UNIT("s"),
           MEANS("CPU time of the process meanwhile, of which samples times interval_us was seen")),
    FIGURE(AMOUNT, "cost_s", summary.cost_s, UNIT("s"), MEANS("of it, what sampling took")),
    FIGURE(TEXT, "note", summary.note, MEANS("what went wrong meanwhile; null: nothing")),
};
static const struct sac_figures sampling = {FIGURES("sampling", sampling_rows),
                                            .is_known = is_sampled};
static const struct sac_figure  sampled_rows[] = {
     ROW(GROUP, "sampling", OF(sampling),
         MEANS("how call stacks were sampled (saccade profile --stack); null: they were not")),
};
const struct sac_figures sac_figures_sampled = {FIGURES("sampled", sampled_rows)};
#undef STATS

#define STATS struct sac_stack
static const struct sac_figure stack_rows[] = {
    FIGURE(HELD, "stack", text,
           MEANS("a thread, then its functions from the outermost to the innermost, with ';' "
                 "between them")),
    FIGURE(COUNT, "samples", samples),
};
const struct sac_figures sac_figures_stack = {FIGURES("stack", stack_rows)};
#undef STATS

#define STATS struct sac_monitor_figure
static const struct sac_figure watched_rows[] = {
    FIGURE(NAME, "name", name),
    FIGURE(TEXT, "unit", unit, MEANS("null: a count")),
    FIGURE(KNOWN, "now", now, MEANS("null: not measured in the last interval")),
    FIGURE(KNOWN, "mean_1m", mean_1m, MEANS("over the last minute, or what there is of it")),
    FIGURE(KNOWN, "mean_5m", mean_5m),
    FIGURE(KNOWN, "least", least),
    FIGURE(KNOWN, "most", most),
    FIGURE(AMOUNT, "step_s", history_step_s, UNIT("s"), MEANS("from one point to the next")),
    FIGURE(POINTS, "history", history, LONG(history_count),
           MEANS("the mean in each step; the last one ends now")),
};
static const struct sac_figures watched = {FIGURES("watched", watched_rows)};
#undef STATS

#define STATS struct sac_monitor_told
static const struct sac_figure event_rows[] = {
    FIGURE(NAME, "kind", kind, MEANS("warning or anomaly")),
    FIGURE(NAME, "figure", event.figure),
    FIGURE(AMOUNT, "begun_s", event.begun_s, UNIT("s"), MEANS("since the monitor began")),
    FIGURE(KNOWN, "ended_s", event.ended_s, UNIT("s"), MEANS("null: it went on")),
    FIGURE(KNOWN, "before", event.before, MEANS("the usual value, or the limit")),
    FIGURE(KNOWN, "after", event.after),
    FIGURE(NAME, "text", event.text),
};
static const struct sac_figures event = {FIGURES("event", event_rows)};
#undef STATS

#define STATS struct sac_monitor_view
static bool is_monitored(const void *group)
{
    return ((const STATS *)group)->known;
}
static const struct sac_figure monitor_rows[] = {
    FIGURE(AMOUNT, "interval_s", interval_s, UNIT("s"), MEANS("between samples")),
    FIGURE(AMOUNT, "elapsed_s", elapsed_s, UNIT("s"), MEANS("since it began")),
    FIGURE(AMOUNT, "cost", cost, MEANS("CPU time of the monitor, as a share of one core")),
    FIGURE(LIST, "figures", figure, OF(watched), LONG(figure_count), EACH(figure)),
    FIGURE(LIST, "events", event, OF(event), LONG(event_count), EACH(event),
           MEANS("the oldest first")),
};
const struct sac_figures       sac_figures_monitor = {FIGURES("monitor", monitor_rows),
                                                      .is_known = is_monitored};
static const struct sac_figure monitored_rows[] = {
    ROW(GROUP, "monitor", OF(sac_figures_monitor),
        MEANS("what the run's monitor saw; null where it had none")),
};
const struct sac_figures sac_figures_watched = {FIGURES("monitored", monitored_rows)};
#undef STATS

/* ---- what is done with them ---- */

static void *place(const struct sac_figure *row, const void *group, int index)
{
    return (char *)group + row->offset + (size_t)index * row->stride;
}

static int length_of(const struct sac_figure *list, const void *group)
{
    return list->fixed ? list->fixed : *(const int *)((const char *)group + list->count);
}

static int64_t read_count(const struct sac_figure *row, const void *at)
{
    return row->size == sizeof(int) ? *(const int *)at : *(const int64_t *)at;
}

static void write_rows(struct sac_json *json, const struct sac_figures *figures, const void *group,
                       int index, const char *gap);

static void write_list(struct sac_json *json, const struct sac_figure *list, const void *group)
{
    const int n = length_of(list, group);
    if (list->optional && n == 0)
        return;
    sac_json_open(json, list->name, list->key ? '{' : '[');
    for (int i = 0; i < n; i++) {
        json->gap = "\n  ";
        if (!list->group) {
            sac_json_string(json, NULL, place(list, group, i));
            continue;
        }
        sac_json_open(json, list->key ? list->key(i) : NULL, '{');
        write_rows(json, list->group, place(list, group, i), list->stride ? 0 : i, NULL);
        sac_json_close(json, '}');
    }
    sac_json_close(json, list->key ? '}' : ']');
}

static void write_group(struct sac_json *json, const struct sac_figure *row, const void *at)
{
    if (row->group->is_known && !row->group->is_known(at)) {
        sac_json_null(json, row->name);
        return;
    }
    sac_json_open(json, row->name, '{');
    write_rows(json, row->group, at, 0, NULL);
    sac_json_close(json, '}');
}

static void write_known(struct sac_json *json, const char *name, double value)
{
    if (isnan(value))
        sac_json_null(json, name);
    else
        sac_json_fixed(json, name, value, 4);
}

static void write_points(struct sac_json *json, const struct sac_figure *row, const void *group)
{
    const float *points = place(row, group, 0);
    sac_json_open(json, row->name, '[');
    for (int i = 0; i < length_of(row, group); i++)
        write_known(json, NULL, points[i]);
    sac_json_close(json, ']');
}

static void write_row(struct sac_json *json, const struct sac_figure *row, const void *group,
                      const void *at)
{
    switch (row->type) {
    case SAC_FIGURE_COUNT: sac_json_int(json, row->name, read_count(row, at)); break;
    case SAC_FIGURE_AMOUNT:
    case SAC_FIGURE_SHARE:
        sac_json_fixed(json, row->name, row->compute ? row->compute(group) : *(const double *)at,
                       6);
        break;
    case SAC_FIGURE_KNOWN: write_known(json, row->name, *(const double *)at); break;
    case SAC_FIGURE_POINTS: write_points(json, row, group); break;
    case SAC_FIGURE_NAME:
    case SAC_FIGURE_TEXT: sac_json_string(json, row->name, *(const char *)at ? at : NULL); break;
    case SAC_FIGURE_HELD: sac_json_string(json, row->name, *(const char *const *)at); break;
    case SAC_FIGURE_GROUP: write_group(json, row, at); break;
    case SAC_FIGURE_INLINE: write_rows(json, row->group, at, 0, NULL); break;
    case SAC_FIGURE_LIST: write_list(json, row, group); break;
    }
}

/* gap: before each member. */
static void write_rows(struct sac_json *json, const struct sac_figures *figures, const void *group,
                       int index, const char *gap)
{
    for (size_t i = 0; i < figures->row_count; i++) {
        const struct sac_figure *row = &figures->rows[i];
        if (!row->name && row->type != SAC_FIGURE_INLINE)
            continue;
        json->gap = gap ? gap : json->gap;
        write_row(json, row, group, place(row, group, index));
    }
}

void sac_figures_write(struct sac_json *json, const struct sac_figures *figures, const void *group)
{
    write_rows(json, figures, group, 0, "\n");
}

void sac_figures_write_list(struct sac_json *json, const char *key,
                            const struct sac_figures *figures, const void *first, size_t stride,
                            int n)
{
    const struct sac_figure list = {
        .name = key, .type = SAC_FIGURE_LIST, .stride = stride, .group = figures, .fixed = n};
    json->gap = "\n";
    if (n)
        write_list(json, &list, first);
    else {
        sac_json_open(json, key, '[');
        sac_json_close(json, ']');
    }
}

static void add_rows(const struct sac_figures *figures, void *sum, const void *one, int index);

static void add_list(const struct sac_figure *list, void *sum, const void *one)
{
    const int n = SAC_MIN(length_of(list, sum), length_of(list, one));
    for (int i = 0; i < n; i++)
        add_rows(list->group, place(list, sum, i), place(list, one, i), list->stride ? 0 : i);
}

static void add_count(const struct sac_figure *row, void *sum, const void *one)
{
    if (row->size == sizeof(int))
        *(int *)sum += *(const int *)one;
    else
        *(int64_t *)sum += *(const int64_t *)one;
}

static void add_rows(const struct sac_figures *figures, void *sum, const void *one, int index)
{
    for (size_t i = 0; i < figures->row_count; i++) {
        const struct sac_figure *row = &figures->rows[i];
        void                    *to = place(row, sum, index);
        const void              *from = place(row, one, index);
        if (row->sum == SAC_SUM_KEEP)
            continue;
        if (row->type == SAC_FIGURE_LIST)
            add_list(row, sum, one);
        else if (row->type == SAC_FIGURE_COUNT)
            add_count(row, to, from);
        else if (row->type == SAC_FIGURE_AMOUNT)
            *(double *)to += *(const double *)from;
        else if (row->group)
            add_rows(row->group, to, from, 0);
    }
}

void sac_figures_add(const struct sac_figures *figures, void *sum, const void *one)
{
    add_rows(figures, sum, one, 0);
}

void sac_figures_set_rates(struct sac_pipeline_stats *stats)
{
    const double s = stats->elapsed_s;
    stats->fps = s > 0 ? (double)stats->frames / s : 0;
    stats->crossed_per_s = s > 0 ? (double)stats->ledger.crossed_bytes / s : 0;
    stats->pool_reuse = reuse_of(&stats->pool);
    stats->batch.mean = share(stats->batch.frames, stats->batch.count);
}

/* ---- the summary's lines ---- */

struct lines {
    enum sac_figure_shown shown;
    void (*fn)(void *user, const char *line);
    void *user;
};

static void print_rows(const struct lines *lines, const struct sac_figures *figures,
                       const void *group)
{
    for (size_t i = 0; i < figures->row_count; i++) {
        const struct sac_figure *row = &figures->rows[i];
        const void              *at = place(row, group, 0);
        char                     line[160];
        if (row->type == SAC_FIGURE_GROUP)
            print_rows(lines, row->group, at);
        if (row->shown != lines->shown || read_count(row, at) == 0)
            continue;
        snprintf(line, sizeof line, "%-11s %lld %s", row->label, (long long)read_count(row, at),
                 read_count(row, at) == 1 ? row->one : row->many);
        lines->fn(lines->user, line);
    }
}

void sac_stats_lines(const struct sac_pipeline_stats *stats, int     details,
                     void (*fn)(void *user, const char *line), void *user)
{
    const struct lines lines = {details ? SAC_SHOWN_DETAILS : SAC_SHOWN_ALWAYS, fn, user};
    if (stats && fn)
        print_rows(&lines, &sac_figures_run, stats);
}
