/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "options.h"

#define AT(field) offsetof(struct settings, field), sizeof((struct settings *)0)->field

enum { THREADS_MAX = 1024 };

static const char *const log_levels[] = {"silent", "error", "warn", "info", "debug", "trace", NULL};
static const char *const zero_copy_modes[] = {"off", "on", "strict", NULL};
static const char *const precisions[] = {"default", "fp32", "tf32", "fp16", "int8", "fp8", NULL};
static const char *const decode_modes[] = {"device", "auto", "gpu", "cpu", NULL};
static const int         decode_values[] = {SAC_DECODE_DEFAULT, SAC_DECODE_AUTO, SAC_DECODE_GPU,
                                            SAC_DECODE_CPU};
static const char *const cache_words[] = {"auto", "off", NULL};
static const char *const class_words[] = {"auto", "all", NULL};
static const char *const rotations[] = {"auto", "none", "0", "90", "180", "270", NULL};
static const int         rotation_values[] = {SAC_ROTATE_AUTO, SAC_ROTATE_NONE, SAC_ROTATE_NONE,
                                              SAC_ROTATE_90,   SAC_ROTATE_180,  SAC_ROTATE_270};
static const char *const mask_values[] = {"auto", "alpha", "objects", "classes", NULL};
const char *const        option_trackers[] = {"sort", "bytetrack", "ocsort", "botsort", NULL};
const char *const option_segment_kinds[] = {"overlay", "mask", "cutout", "alpha", "alpha-packed",
                                            "classes", "png",  "coco",   "none",  NULL};
static const char *const segment_modes[] = {"throughput", "vr", NULL};
static const char *const stereo_layouts[] = {"mono", "sbs", "tb", NULL};
static const char *const projections[] = {"flat", "fisheye", "equirect180", NULL};
static const char *const facet_sets[] = {"none", "all", "front", NULL};
static const char *const paddings[] = {"auto", "none", "power", "full", NULL};
static const char *const lates[] = {"run", "refuse", NULL};
static const char *const goals[] = {"none", "latency", "throughput", NULL};
static const char *const optimize_goals[] = {"fps", "latency", "vram", "watts", NULL};
static const char *const scale_words[] = {"0.5,1,2", "0.5,1,1.75", NULL};
static const char *const background_words[] = {"blur", NULL};
static const char *const sorts[] = {"time", "bytes", "flops", "memory", NULL};
static const char *const tasks[] = {"track", "segment", "model", NULL};
static const char *const presets[] = {"ultrafast", "superfast", "veryfast", "faster",   "fast",
                                      "medium",    "slow",      "slower",   "veryslow", NULL};

/* `saccade config` prints the rows in this order, so rows of one YAML section are adjacent and rows
 * without a section come first. A name is unique within a verb, a key in the whole table. */
const struct option options[] = {
    {"help", 'h', VERB_ALL, SECTION_RUN, OPTION_FLAG, AT(help), NULL, NULL,
     "print this help and exit"},
    {"version", 'V', VERB_ALL, SECTION_RUN, OPTION_FLAG, AT(version), NULL, NULL,
     "print the version and exit"},
    {"config", 'c', VERB_WORK, SECTION_RUN, OPTION_TEXT, AT(config), NULL, "FILE",
     "read options from a YAML file; the command line overrides it. 'saccade config' prints a "
     "template with every key"},

    {"device", 'd', VERB_MODEL, SECTION_RUN, OPTION_TEXT, AT(run.job.device), "device", "NAME",
     "where models and image work run: auto (a GPU if it has all it needs, else the CPU), cpu, "
     "cuda or cuda:N"},
    {"gpus", 0, VERB_VIDEO, SECTION_RUN, OPTION_TEXT, AT(gpus), "gpus", "LIST",
     "distribute the inputs over these GPUs, such as 0,1"},
    {"precision", 0, VERB_MODEL, SECTION_RUN, OPTION_CHOICE, AT(run.job.detector_params.precision),
     "precision", "NAME",
     "number format of the networks; int8 and, on a GPU, fp8 are of those that 'saccade build' has "
     "quantised; default: fp16 on a GPU, fp32 on the CPU, which has no other of float",
     .choices = precisions},
    {"deterministic", 0, VERB_VIDEO | VERB_INFER | VERB_BENCH | VERB_SERVE | VERB_TUNE, SECTION_RUN,
     OPTION_FLAG, AT(run.job.device_params.deterministic), "deterministic", NULL,
     "the networks' numbers have the same bits in every run with the same options on the same "
     "machine: a GPU's kernels are chosen by rules and not by measurement, and track, segment and "
     "serve fill batches up to one size; slower"},
    {"zero-copy", 0, VERB_VIDEO, SECTION_RUN, OPTION_TEXT, AT(zero_copy), "zero_copy", "MODE",
     "copies of frames and tensors between stages; off: frames that a GPU decodes are copied to "
     "the host and back, for comparison; on: copied only where it can't be avoided; strict: such a "
     "copy makes the run fail, and the error names it",
     .choices = zero_copy_modes},
    {"threads", 't', VERB_MODEL, SECTION_RUN, OPTION_INT, AT(run.job.device_params.threads),
     "threads", "N", "CPU threads for models and image work; 0: half of the machine's", 0,
     THREADS_MAX},
    {"processes", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(processes), "processes", "N",
     "on the CPU: run each input as a process of its own, N of them at once; --threads 0 is then "
     "each one's share of the CPUs. 1: one process has all inputs together",
     1, 256},
    {"log-level", 'l', VERB_WORK, SECTION_RUN, OPTION_TEXT, AT(log_level), "log_level", "LEVEL",
     "how much is logged; SACCADE_LOG sets it too, and DEBUG=1 means debug", .choices = log_levels},
    {"quiet", 'q', VERB_WORK, SECTION_RUN, OPTION_FLAG, AT(quiet), NULL, NULL,
     "print errors only; the same as --log-level error"},
    {"verbose", 'v', VERB_WORK, SECTION_RUN, OPTION_FLAG, AT(verbose), NULL, NULL,
     "print models, stages, memory, copies and what would make the run faster; the same as "
     "--log-level debug"},
    {"timers", 0, VERB_VIDEO, SECTION_RUN, OPTION_FLAG, AT(run.job.timers), "timers", NULL,
     "time the stages: --verbose then prints a table and the bottleneck, and --stats has both"},
    {"frame-times", 0, VERB_VIDEO, SECTION_RUN, OPTION_FLAG, AT(run.job.frame_times), "frame_times",
     NULL,
     "log how long each stage of each frame took, at --log-level debug (DEBUG=1); at other levels "
     "it costs nothing"},
    {"disk-cache", 0, VERB_TRACK | VERB_CACHE, SECTION_RUN, OPTION_TEXT, AT(run.disk_cache),
     "disk_cache", "DIR",
     "keep the boxes, embeddings and camera motion of video files in this folder, and take them "
     "from there when the same video is tracked again with the same networks; auto: the user's "
     "cache "
     "folder (SACCADE_CACHE); off: neither",
     .words = cache_words},
    {"disk-cache-gb", 0, VERB_TRACK, SECTION_RUN, OPTION_REAL, AT(disk_cache_gb), "disk_cache_gb",
     "GB",
     "bound of what --disk-cache keeps, in units of 1e9 bytes; the least recently used is "
     "removed",
     0.001, 1e6},
    {"disk-cache-frames", 0, VERB_TRACK, SECTION_RUN, OPTION_FLAG, AT(run.disk_cache_frames),
     "disk_cache_frames", NULL,
     "keep prepared frames there, too: what the detector takes of each frame, for another that "
     "takes the same, other thresholds or another precision, without decoding the video again; on "
     "the CPU, where nothing else wants pixels; some MB a frame"},
    {"plan-cache-limit", 0, VERB_MODEL, SECTION_RUN, OPTION_BYTES,
     AT(run.job.device_params.plan_cache_bytes), "plan_cache_limit", "BYTES",
     "bound of the plans and kernels that networks keep in the user's cache folder, such as 2G; "
     "the "
     "least recently used is removed; 0: 4G",
     0, 1e15},
    {"json", 'j',
     VERB_INFER | VERB_BENCH | VERB_SERVE | VERB_INSPECT | VERB_EVAL | VERB_DOCTOR | VERB_MONITOR |
         VERB_CACHE,
     SECTION_OUT, OPTION_FLAG, AT(json), "json", NULL, "print JSON instead of text"},

    {"task", 0, VERB_PROFILE | VERB_OPTIMIZE, SECTION_RUN, OPTION_CHOICE, AT(task), "profile.task",
     "TASK",
     "what the measured run does; model (profile's alone): a network by itself, as it is for one "
     "that is neither a detector nor a segmenter",
     .choices = tasks},
    {"rows", 0, VERB_PROFILE, SECTION_OUT, OPTION_INT, AT(profile_rows), "profile.rows", "N",
     "so many of the network's steps are shown, and of the largest allocations", 1, 10000},
    {"sort", 0, VERB_PROFILE, SECTION_OUT, OPTION_CHOICE, AT(profile_sort), "profile.sort", "KEY",
     "which of the steps come first: those that take the most time, move the most bytes, compute "
     "the most, or whose results take the most memory; with memory the page begins with the "
     "largest "
     "allocations",
     .choices = sorts},
    {"shapes", 0, VERB_PROFILE, SECTION_OUT, OPTION_FLAG, AT(profile_shapes), "profile.shapes",
     NULL, "show what comes out of each step, its type and shape"},
    {"stack", 0, VERB_PROFILE, SECTION_RUN, OPTION_FLAG, AT(profile_stacks), "profile.stack", NULL,
     "sample the call stacks of all threads on the CPU: a flame graph, the functions that take the "
     "most time, and REPORT.folded"},
    {"against", 0, VERB_PROFILE, SECTION_IN, OPTION_TEXT, AT(against), "profile.against", "FILE",
     "compare with this earlier run: the JSON of a profile, or of --stats"},

    {"monitor", 0, VERB_VIDEO, SECTION_RUN, OPTION_FLAG, AT(watched), "monitor.enabled", NULL,
     "watch the run: log what is unusual, keep the figures' history for --stats, and let 'saccade "
     "monitor' see it"},
    {"once", 0, VERB_MONITOR, SECTION_RUN, OPTION_FLAG, AT(once), "monitor.once", NULL,
     "print it once, after one interval, and end"},
    {"monitor-interval", 0, VERB_WATCH, SECTION_RUN, OPTION_INT, AT(monitor.interval_ms),
     "monitor.interval_ms", "MS", "milliseconds between samples", 100, 60000},
    {"monitor-utilisation", 0, VERB_WATCH, SECTION_RUN, OPTION_REAL, AT(monitor.utilisation_max),
     "monitor.utilisation", "SHARE",
     "warn of CPUs, a GPU or its decoder that are busy for this share of a minute; a run does so "
     "only for cameras and with --realtime; 0: never",
     0, 1},
    {"monitor-memory", 0, VERB_WATCH, SECTION_RUN, OPTION_REAL, AT(monitor.memory_max),
     "monitor.memory", "SHARE",
     "warn when this share of the machine's or a GPU's memory is used; 0: never", 0, 1},
    {"monitor-temperature", 0, VERB_WATCH, SECTION_RUN, OPTION_REAL, AT(monitor.temperature_max),
     "monitor.temperature", "C", "warn of a GPU this hot, in degrees Celsius; 0: never", 0, 200},
    {"monitor-power", 0, VERB_WATCH, SECTION_RUN, OPTION_REAL, AT(monitor.power_max),
     "monitor.power", "SHARE", "warn of a GPU at this share of its power limit; 0: never", 0, 2},
    {"monitor-hold", 0, VERB_WATCH, SECTION_RUN, OPTION_REAL, AT(monitor.hold_s), "monitor.hold_s",
     "SECONDS", "report only what lasts for this long, and its end as late", 0.1, 3600},
    {"monitor-growth", 0, VERB_WATCH, SECTION_RUN, OPTION_REAL, AT(monitor.growth_min),
     "monitor.growth", "SHARE",
     "warn of memory or descriptors that only grow for three minutes, by this share in all; 0: "
     "never",
     0, 10},
    {"anomaly-ratio", 0, VERB_WATCH, SECTION_RUN, OPTION_REAL, AT(monitor.anomaly_ratio),
     "monitor.anomaly_ratio", "N",
     "report a stage's time, the latency or memory at this many times its usual value, and the "
     "frame rate at as small a part; 1 or more, 0: never",
     0, 100},
    {"anomaly-spread", 0, VERB_WATCH, SECTION_RUN, OPTION_REAL, AT(monitor.anomaly_spread),
     "monitor.anomaly_spread", "N",
     "and only outside this many standard deviations of the last minute, and of the last five", 1,
     100},

    {"memory-limit", 0, VERB_MODEL, SECTION_RUN, OPTION_BYTES,
     AT(run.job.device_params.memory_limit_bytes), "memory.limit", "BYTES",
     "limit of the memory for frames and tensors, such as 1500000, 512M or 2G; 0: none", 0, 1e15},

    {"target-utilization", 0, VERB_VIDEO, SECTION_RUN, OPTION_REAL, AT(run.job.memory_target),
     "memory.target_utilization", "SHARE",
     "batches that became smaller since memory ran out grow again while less than this share of "
     "the limit is in use",
     0, 1},
    {"max-memory-percent", 0, VERB_VIDEO | VERB_INFER | VERB_BENCH | VERB_SERVE, SECTION_RUN,
     OPTION_REAL, AT(run.job.device_params.memory_share_max), "memory.max_memory_percent", "SHARE",
     "limit of a GPU's memory where none is given in bytes, as a share of what it has: 0.9 is 90 "
     "%; 0: none",
     0, 1},

    {"vram-limit", 0, VERB_VIDEO | VERB_INFER | VERB_BENCH | VERB_SERVE, SECTION_RUN, OPTION_BYTES,
     AT(run.job.device_params.vram_limit_bytes), "pool.vram_limit", "BYTES",
     "limit of the GPU memory for frames, tensors, weights and decoders, such as 24G; 0: the value "
     "of --memory-limit",
     0, 1e15},
    {"host-limit", 0, VERB_VIDEO, SECTION_RUN, OPTION_BYTES,
     AT(run.job.device_params.host_limit_bytes), "pool.host_limit", "BYTES",
     "limit of the page-locked memory for frames copied between CPU and GPU (those that the CPU "
     "decodes or encodes), such as 2G; 0: 512M",
     0, 1e15},
    {"pool-buffers", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(run.job.device_params.buffers_max),
     "pool.buffers", "N",
     "limit of the buffers in the pool, in use and idle; an idle one makes way for a new one; 0: "
     "none",
     0, 1e9},
    {"leak-age", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(run.job.device_params.leak_age_s),
     "pool.leak_age_s", "SECONDS",
     "name in the log, with their owner, buffers of one size of which ever more are held for "
     "longer than this; 0: don't look",
     0, 1e9},
    {"trim-frames", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(run.job.device_params.trim_frames),
     "pool.trim_frames", "N",
     "every N frames, return the pool's idle memory to the system; 0: never", 0, 1000000},

    {"older", 0, VERB_CACHE, SECTION_RUN, OPTION_REAL, AT(cache_older), "cache.older", "DAYS",
     "clear only what was not used for so many days", 0, 1e5},

    {"detections", 0, VERB_TRACK, SECTION_IN, OPTION_TEXT, AT(run.detections), "input.detections",
     "FILE", "track these MOTChallenge detections instead of running a detector"},
    {"fps", 'f', VERB_VIDEO | VERB_TUNE, SECTION_IN, OPTION_REAL, AT(run.fps), "input.fps", "N",
     "frames per second of an image folder, a pattern, an array or detections without a video (a "
     "video has timestamps of its own); 0: 25 for images and arrays, seqinfo.ini for detections",
     0, 1000},
    {"input-timeout", 0, VERB_VIDEO, SECTION_IN, OPTION_SECONDS, AT(run.source.timeout_us),
     "input.timeout_s", "SECONDS", "give up a network input that sends nothing for this long", 0.1,
     3600},

    {"start", 0, VERB_VIDEO, SECTION_IN, OPTION_TIME, AT(run.source.start_us), "input.start",
     "TIME",
     "begin at this time of the video: seconds or HH:MM:SS.mmm; frames keep the times and numbers "
     "that they have in the whole video, but the video of --output begins at 0",
     0, 1e8},
    {"duration", 0, VERB_VIDEO, SECTION_IN, OPTION_TIME, AT(run.source.duration_us),
     "input.duration", "TIME", "stop after this much of the video; 0: at its end", 0, 1e8},
    {"every", 0, VERB_VIDEO, SECTION_IN, OPTION_INT, AT(run.source.every), "input.every", "N",
     "use only every Nth frame", 1, 1000000},
    {"realtime", 0, VERB_VIDEO, SECTION_IN, OPTION_FLAG, AT(run.realtime), "input.realtime", NULL,
     "read a file at its own frame rate, as if it were a camera"},
    {"rotate", 0, VERB_VIDEO, SECTION_IN, OPTION_CHOICE, AT(run.source.rotate), "input.rotate",
     "DEGREES",
     "rotate the frames clockwise; auto: as the file says (phones record how they were held), none "
     "or 0: not at all",
     .choices = rotations, .values = rotation_values},

    {"decode", 0, VERB_VIDEO, SECTION_IN, OPTION_CHOICE, AT(run.source.decode), "decode.where",
     "WHERE",
     "where video is decoded; device: on --device (images and motion JPEG on the CPU); auto: the "
     "same, but the CPU decodes what the GPU can't, which is logged; with --device auto, device "
     "means auto",
     .choices = decode_modes, .values = decode_values},
    {"decode-threads", 0, VERB_VIDEO, SECTION_IN, OPTION_INT, AT(run.source.decode_threads),
     "decode.threads", "N", "threads of the video decoder; 0: as --threads, or all with a GPU", 0,
     THREADS_MAX},
    {"prefetch", 0, VERB_VIDEO, SECTION_IN, OPTION_INT, AT(run.source.prefetch), "decode.prefetch",
     "N", "frames decoded ahead; 0: none", 0, 256},

    {"output", 'o', VERB_VIDEO, SECTION_OUT, OPTION_TEXT, AT(run.video_out), "output.video", "FILE",
     "write the annotated video, or what --as says; the file extension chooses the container; "
     "none: no file, but segment composes the picture, to measure. In a folder the file is named "
     "after the input; several inputs need a folder, or a path with {name} or {folder} in it"},
    {"jsonl", 0, VERB_TRACK, SECTION_OUT, OPTION_TEXT, AT(run.jsonl_out), "output.jsonl", "FILE",
     "write the tracks as JSON lines, a header and one object per frame; - is standard output. "
     "Folders as with --output. If no output is given: NAME.tracks.jsonl; none: no file"},
    {"mot", 0, VERB_TRACK, SECTION_OUT, OPTION_TEXT, AT(run.mot_out), "output.mot", "FILE",
     "write the tracks as MOTChallenge lines; - is standard output. Folders as with --output"},
    {"csv", 0, VERB_TRACK, SECTION_OUT, OPTION_TEXT, AT(run.csv_out), "output.csv", "FILE",
     "write the tracks as CSV, one line per object and frame; - is standard output. Folders as "
     "with --output"},
    {"kitti", 0, VERB_TRACK, SECTION_OUT, OPTION_TEXT, AT(run.kitti_out), "output.kitti", "FILE",
     "write the tracks as KITTI tracking labels; - is standard output. Folders as with --output"},
    {"coco", 0, VERB_TRACK, SECTION_OUT, OPTION_TEXT, AT(run.coco_out), "output.coco", "FILE",
     "write the boxes as COCO results, with track_id; - is standard output. Folders as with "
     "--output"},
    {"save-crops", 0, VERB_TRACK, SECTION_OUT, OPTION_TEXT, AT(run.crops_out), "output.crops",
     "DIR",
     "write the best view of each object as DIR/CLASS/ID.jpg; with several inputs: "
     "DIR/INPUT/CLASS/ID.jpg"},
    {"clip-boxes", 0, VERB_TRACK, SECTION_OUT, OPTION_FLAG, AT(run.clip_boxes), "output.clip_boxes",
     NULL, "clip written boxes to the picture, and leave out those outside it"},
    {"audio", 0, VERB_VIDEO, SECTION_OUT, OPTION_FLAG, AT(audio), "output.audio", NULL,
     "copy the input's audio into the annotated video"},
    {"trace", 0, VERB_VIDEO, SECTION_OUT, OPTION_TEXT, AT(run.job.trace_out), "output.trace",
     "FILE",
     "write a Chrome trace of what each thread did when; Perfetto (ui.perfetto.dev) opens it"},
    {"stats", 0, VERB_VIDEO, SECTION_OUT, OPTION_TEXT, AT(run.job.stats_out), "output.stats",
     "FILE",
     "write the run's statistics as JSON: stages, queues, batches, memory, copies, bottleneck"},
    {"progress", 0, VERB_VIDEO | VERB_TUNE, SECTION_OUT, OPTION_FLAG, AT(progress),
     "output.progress", NULL, "show a progress line if standard error is a terminal"},

    {"labels", 0, VERB_TRACK, SECTION_OUT, OPTION_TEXT, AT(labels), "draw.labels", "LIST",
     "text beside each box: id, class and score, comma-separated, or none; auto: the id, and the "
     "class if several are kept"},
    {"trails", 0, VERB_TRACK, SECTION_OUT, OPTION_FLAG, AT(run.draw_trails), "draw.trails", NULL,
     "draw the path of each object"},
    {"trail", 0, VERB_TRACK, SECTION_OUT, OPTION_REAL, AT(run.trail_s), "draw.trail_s", "SECONDS",
     "length of a trail", 0, 60},

    {"encoder", 0, VERB_VIDEO, SECTION_OUT, OPTION_TEXT, AT(run.sink.encoder), "encode.encoder",
     "NAME", "FFmpeg's name of the video encoder; empty: libx264, else the best one available"},
    {"encode-threads", 0, VERB_VIDEO, SECTION_OUT, OPTION_INT, AT(run.sink.threads),
     "encode.threads", "N", "threads of the video encoder; 0: as --threads, or all with a GPU", 0,
     THREADS_MAX},
    {"crf", 0, VERB_VIDEO, SECTION_OUT, OPTION_INT, AT(run.sink.crf), "encode.crf", "N",
     "quality on libx264's scale: a lower number gives a better and larger video", 0, 51},
    {"preset", 0, VERB_VIDEO, SECTION_OUT, OPTION_TEXT, AT(run.sink.preset), "encode.preset",
     "NAME", "libx264's preset: speed against size", .choices = presets},

    {"detector", 0, VERB_TRACK | VERB_TUNE, SECTION_DETECTOR, OPTION_TEXT, AT(run.job.detector),
     "detector.model", "MODEL",
     "the detector: an ONNX file, or the name of a model that comes with saccade (person_det, "
     "person_det_fast); auto: person_det, or none with --detections"},
    {"head", 0, VERB_TRACK | VERB_INSPECT | VERB_BUILD, SECTION_DETECTOR, OPTION_TEXT,
     AT(run.job.detector_params.head), "detector.head", "NAME",
     "how the detector's outputs are decoded: a head's name or a plug-in's file; empty: recognised "
     "from the model"},
    {"preprocess", 0, VERB_TRACK | VERB_INSPECT | VERB_BUILD, SECTION_DETECTOR, OPTION_TEXT,
     AT(run.job.detector_params.preprocess), "detector.preprocess", "LIST",
     "override the detector's preprocessing: "
     "bgr,mean=0,scale=1,letterbox=topleft,fill=114,size=416x416"},
    {"classes", 0, VERB_TRACK | VERB_TUNE, SECTION_DETECTOR, OPTION_TEXT,
     AT(run.job.detector_params.classes), "detector.classes", "LIST",
     "classes to keep: all, or names or numbers, comma-separated; auto: persons if the model has "
     "that class, else all",
     .words = class_words},
    {"score-min", 0, VERB_TRACK | VERB_TUNE, SECTION_DETECTOR, OPTION_REAL,
     AT(run.job.detector_params.score_min), "detector.score_min", "SCORE",
     "drop boxes below this score; trackers use low scores too", 0, 1},
    {"nms-iou", 0, VERB_TRACK | VERB_TUNE, SECTION_DETECTOR, OPTION_REAL,
     AT(run.job.detector_params.nms_iou), "detector.nms_iou", "IOU",
     "of two boxes of one class that overlap more than this, keep the better one", 0, 1},
    {"boxes-max", 0, VERB_TRACK | VERB_TUNE, SECTION_DETECTOR, OPTION_INT,
     AT(run.job.detector_params.detection_max), "detector.boxes_max", "N",
     "most boxes per frame; the best are kept", 1, 100000},

    {"reid", 0, VERB_TRACK, SECTION_REID, OPTION_TEXT, AT(run.job.reid), "reid.model", "MODEL",
     "the appearance network: an ONNX file, person_reid, which comes with saccade, or none; auto: "
     "person_reid if the tracker uses appearance and the detector finds only persons"},
    {"reid-preprocess", 0, VERB_TRACK, SECTION_REID, OPTION_TEXT,
     AT(run.job.reid_params.preprocess), "reid.preprocess", "LIST",
     "override the appearance network's preprocessing"},
    {"reid-batch", 0, VERB_TRACK, SECTION_REID, OPTION_INT, AT(run.job.reid_params.batch_max),
     "reid.batch_max", "N",
     "most crops in one batch of the appearance network; 0: chosen for the device", 0, 1024},

    {"reid-every", 0, VERB_TRACK, SECTION_REID, OPTION_FLAG, AT(run.job.reid_every), "reid.every",
     NULL,
     "compute the appearance of every detection, even of those matched by motion alone (for "
     "measurements)"},

    {"tracker", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_CHOICE, AT(run.job.tracker.kind),
     "tracker.kind", "NAME", "the tracker", .choices = option_trackers},
    {"score-high", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_REAL,
     AT(run.job.tracker.score_high), "tracker.score_high", "SCORE",
     "detections with at least this score are matched first", 0, 1},
    {"score-low", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_REAL,
     AT(run.job.tracker.score_low), "tracker.score_low", "SCORE",
     "detections between this score and --score-high are matched second", 0, 1},
    {"score-new", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_REAL,
     AT(run.job.tracker.score_new), "tracker.score_new", "SCORE",
     "least score of a detection that starts a new track", 0, 1},
    {"match-iou", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_REAL,
     AT(run.job.tracker.match_iou), "tracker.match_iou", "IOU",
     "least overlap of a match in the first round", 0, 1},
    {"lost-max", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_REAL,
     AT(run.job.tracker.lost_max_s), "tracker.lost_max_s", "SECONDS",
     "keep a lost track for this long", 0, 3600},
    {"confirm", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_REAL,
     AT(run.job.tracker.confirm_s), "tracker.confirm_s", "SECONDS",
     "report a track once it has been seen for this long", 0, 60},
    {"reid-distance", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_REAL,
     AT(run.job.tracker.reid_distance_max), "tracker.reid_distance", "DISTANCE",
     "largest cosine distance between appearances that match", 0, 2},
    {"gallery", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_INT,
     AT(run.job.tracker.gallery_max), "tracker.gallery_max", "N", "appearances kept for each track",
     1, 1024},
    {"track-max", 0, VERB_TRACK | VERB_TUNE, SECTION_TRACKER, OPTION_INT,
     AT(run.job.tracker.track_max), "tracker.track_max", "N",
     "most live and lost tracks together; the oldest lost one is removed first", 1, 1000000},
    {"camera-motion", 0, VERB_TRACK, SECTION_TRACKER, OPTION_FLAG,
     AT(run.job.tracker.camera_motion), "tracker.camera_motion", NULL,
     "compensate for a moving camera (botsort)"},

    {"model", 'm', VERB_SEGMENT, SECTION_SEGMENTER, OPTION_TEXT, AT(segment.model), "segment.model",
     "MODEL",
     "the network: an ONNX file, or the name of one that comes with saccade; auto: person_seg"},
    {"head", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_TEXT, AT(segment.segmenter.head),
     "segment.head", "NAME",
     "how the network's output is read: a head's name; empty: recognised from the model"},
    {"preprocess", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_TEXT,
     AT(segment.segmenter.preprocess), "segment.preprocess", "LIST",
     "override the network's preprocessing, as track's option of that name"},
    {"classes", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_TEXT, AT(segment.segmenter.classes),
     "segment.classes", "LIST",
     "classes whose pixels are cut out: names or numbers, comma-separated; all: all but the first, "
     "which is the background; auto: persons if the model has that class, else all",
     .words = class_words},
    {"as", 'a', VERB_SEGMENT, SECTION_OUT, OPTION_CHOICE, AT(segment.as), "segment.as", "KIND",
     "what --output shows: overlay (people tinted), mask (the matte in grey), cutout (people over "
     "--background), alpha (the frame with the matte as its alpha, in .webm, .mov or .mkv), "
     "alpha-packed (the matte inside the picture, as VR players take it: see --stereo, "
     "--projection), classes (each class tinted), png (a folder of grey pictures), coco "
     "(run-length masks in COCO's JSON), none (nothing is written, to measure)",
     .choices = option_segment_kinds},
    {"mode", 0, VERB_SEGMENT, SECTION_RUN, OPTION_CHOICE, AT(segment.mode), "segment.mode", "NAME",
     "throughput: many frames a second, in batches of one file's frames too; vr: each frame as "
     "soon as possible, for a headset: one at a time, nothing is decoded ahead",
     .choices = segment_modes},
    {"background", 0, VERB_SEGMENT, SECTION_OUT, OPTION_TEXT, AT(background), "segment.background",
     "WHAT",
     "behind a cutout: a colour as #00b140, a picture's file, or blur, or blur:N with the radius "
     "in pixels",
     .words = background_words},
    {"stereo", 0, VERB_SEGMENT, SECTION_OUT, OPTION_CHOICE, AT(segment.stereo), "segment.stereo",
     "LAYOUT",
     "how the eyes lie in the frames: mono (one), sbs (side by side), tb (left above right); the "
     "network sees each by itself",
     .choices = stereo_layouts},
    {"projection", 0, VERB_SEGMENT, SECTION_OUT, OPTION_CHOICE, AT(segment.projection),
     "segment.projection", "NAME",
     "how each eye sees the world: flat, fisheye (a circle of 190 degrees) or equirect180; of the "
     "latter two the network sees --facets; an alpha-packed matte goes into a fisheye's corners, "
     "else below the picture",
     .choices = projections},
    {"facets", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_CHOICE, AT(segment.segmenter.facets),
     "segment.facets", "SET",
     "the undistorted pictures that the network sees of a fisheye or equirect180 eye, each an "
     "image "
     "of the batch: front (one of 110 degrees; the matte is 0 beside it), all (five, which show a "
     "half sphere) or none (the eye's picture as it is)",
     .choices = facet_sets},
    {"tint", 0, VERB_SEGMENT, SECTION_OUT, OPTION_REAL, AT(segment.strength), "segment.tint",
     "SHARE", "how strongly an overlay is tinted", 0, 1},
    {"guide", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_INT, AT(segment.segmenter.guide),
     "segment.guide", "CELLS",
     "half the window, in cells of the network's map, in which edges of the matte follow those of "
     "the picture; 0: they do not",
     0, 8},
    {"smooth", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_REAL, AT(segment.segmenter.smooth),
     "segment.smooth", "SHARE",
     "how much of the former frame's matte stays where the network is unsure; it follows motion; "
     "0: each frame by itself",
     0, 0.95},
    {"holes", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_INT, AT(segment.segmenter.hole),
     "segment.holes", "CELLS", "close gaps inside a body up to this many cells of the map", 0, 8},
    {"scales", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_TEXT, AT(scales), "segment.scales",
     "LIST",
     "let the network see each frame at these scales (0.25 to 2, up to four, such as 0.5,1,2) and "
     "take the mean: above 1 in parts, larger in its input, each an image of the batch; empty: "
     "once, as it is",
     .words = scale_words},
    {"region", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_FLAG, AT(segment.region),
     "segment.region", NULL,
     "let the network see the part of a frame where people were, larger in its input, instead of "
     "all of it"},
    {"region-margin", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_REAL, AT(segment.region_margin),
     "segment.region_margin", "SHARE",
     "what --region adds around the people, on each side, as a share of their extent", 0, 4},
    {"region-every", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_INT, AT(segment.region_every),
     "segment.region_every", "N", "with --region, look at the whole frame once in N frames", 0,
     1000000},
    {"small-model", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_TEXT, AT(segment.small_model),
     "segment.small_model", "MODEL",
     "a second, faster network that sees all frames first; where it is sure its matte is taken, "
     "and --model sees only the other frames; with --region, these where the first one found "
     "people: a coarse look and a fine one"},
    {"small-confidence", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_REAL,
     AT(segment.small_confidence), "segment.small_confidence", "SHARE",
     "how sure --small-model must be; 1: of every cell of its map; 0: its matte is always taken", 0,
     1},
    {"feather", 0, VERB_SEGMENT, SECTION_SEGMENTER, OPTION_REAL, AT(feather), "segment.feather",
     "SHARE", "softness of edges: 0 is a hard one, 1 the network's own", 0, 1},

    {"max-batch", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(run.job.inference_batch_max),
     "inference.max_batch", "N",
     "most frames in one batch of the network, from one input or from several; 0: chosen for the "
     "device",
     0, 256},
    {"min-batch", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(run.job.inference_batch_min),
     "inference.min_batch", "N",
     "frames from which on a batch begins as soon as the device has nothing to do, without waiting "
     "for more; 0: a full batch, and 1 where inputs are live",
     0, 256},
    {"batch-timeout", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(run.job.timeout_ms),
     "inference.timeout_ms", "MS", "longest wait for a batch to fill", 0, 10000},

    {"preprocess-streams", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(run.job.preprocess_streams),
     "preprocess.streams", "N",
     "streams of a GPU for the network's inputs; 1: the network's own; 2: inputs are made and "
     "results read on streams beside it, for twice the memory; 0: 2 for mattes, else 1",
     0, 2},
    {"postprocess-threads", 0, VERB_TRACK, SECTION_RUN, OPTION_INT, AT(run.job.postprocess_threads),
     "postprocess.threads", "N",
     "threads that follow the camera on the CPU, for frames of several inputs side by side; 0: one",
     0, 64},

    {"batch-padding", 0, VERB_VIDEO, SECTION_RUN, OPTION_CHOICE, AT(run.job.batch_padding),
     "inference.padding", "HOW",
     "a batch that is not full; auto: in several runs of sizes that are planned; none: in one of "
     "its own size, which takes a plan for each; power: filled up to a power of two; full: filled "
     "up to a full one, with one plan",
     .choices = paddings},
    {"skip-still", 0, VERB_VIDEO, SECTION_RUN, OPTION_REAL, AT(run.job.skip_still), "skip.still",
     "LEVEL",
     "the network does not see frames whose brightness differs by no more than this, a share of "
     "full scale, on average, from the last one that it saw; tracks are predicted, mattes moved "
     "along; 0.01 is a good level; 0: it sees all",
     0, 1},
    {"skip-max", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(run.job.skip_max), "skip.max", "N",
     "most frames in a row that --skip-still leaves out", 0, 1000},

    {"queue-length", 0, VERB_VIDEO, SECTION_RUN, OPTION_INT, AT(run.job.queue_length),
     "queue.length", "N", "frames that may wait between two stages", 1, 256},

    {"input", 'i', VERB_INFER, SECTION_IN, OPTION_LIST, AT(infer_inputs), "infer.inputs",
     "[NAME=]X.npy", "an input tensor; without NAME, in the model's order"},
    {"output", 'o', VERB_INFER, SECTION_OUT, OPTION_TEXT, AT(infer_output), "infer.output", "DIR",
     "write each output as DIR/NAME.npy"},
    {"repeat", 'n', VERB_INFER, SECTION_RUN, OPTION_INT, AT(infer_repeat), "infer.repeat", "N",
     "timed runs, after one that is not counted", 1, 1000000},
    {"optimize", 0, VERB_INFER, SECTION_RUN, OPTION_FLAG, AT(infer_optimize), "infer.optimize",
     NULL, "fuse nodes, fold constants and choose layouts; off: run the graph node by node"},
    {"reference", 0, VERB_INFER, SECTION_RUN, OPTION_FLAG, AT(infer_reference), "infer.reference",
     NULL, "use only the plain C kernels"},

    {"batch", 'b', VERB_BENCH | VERB_PROFILE, SECTION_RUN, OPTION_TEXT, AT(bench_batch),
     "bench.batch", "LIST",
     "batch sizes of a model by itself, such as 1,8,32; default: the model's own, or 1"},
    {"shape", 's', VERB_BENCH | VERB_PROFILE, SECTION_IN, OPTION_LIST, AT(bench_shapes),
     "bench.shapes", "NAME=1,3,640,640",
     "size of a model's input, if the model leaves it open; --batch says the first number where "
     "it is 1 here"},
    {"seconds", 0, VERB_BENCH | VERB_PROFILE, SECTION_RUN, OPTION_REAL, AT(bench_seconds),
     "bench.seconds", "SECONDS", "how long to measure each batch size of a model by itself", 0.001,
     3600},
    {"layers", 0, VERB_BENCH, SECTION_OUT, OPTION_FLAG, AT(bench_layers), "bench.layers", NULL,
     "print each layer: kernel, time, bytes, arithmetic, and what bounds it"},

    {"clients", 0, VERB_SERVE, SECTION_RUN, OPTION_INT, AT(serve_clients), "serve.clients", "N",
     "threads that submit requests", 1, 256},
    {"load", 0, VERB_SERVE, SECTION_RUN, OPTION_REAL, AT(serve_load), "serve.load", "SHARE",
     "requests a second, as a share of what the server was measured to do", 0.01, 10},
    {"seconds", 0, VERB_SERVE, SECTION_RUN, OPTION_REAL, AT(serve_seconds), "serve.seconds",
     "SECONDS", "how long the load lasts, and each of the two measurements before it", 0.01, 3600},
    {"priorities", 0, VERB_SERVE, SECTION_RUN, OPTION_INT, AT(serve_priorities), "serve.priorities",
     "N", "priorities that the requests have, in turn", 1, 10},
    {"deadline", 0, VERB_SERVE, SECTION_RUN, OPTION_REAL, AT(serve_deadline_ms),
     "serve.deadline_ms", "MS", "deadline of every request; 0: none", 0, 1e6},
    {"late", 0, VERB_SERVE, SECTION_RUN, OPTION_CHOICE, AT(serve.late), "serve.late", "WHAT",
     "a request whose deadline passes while it waits; run: it runs all the same; refuse: it is "
     "answered with a fault",
     .choices = lates},
    {"max-batch", 0, VERB_SERVE, SECTION_RUN, OPTION_INT, AT(serve.batch_max), "serve.max_batch",
     "N", "most items in one batch; 0: the device's best", 0, SAC_SERVER_BATCH_MAX},
    {"preferred-batch", 0, VERB_SERVE, SECTION_RUN, OPTION_INT, AT(serve.batch_preferred),
     "serve.preferred_batch", "N",
     "items from which on a batch waits for no more, also while another runs; 0: a full batch", 0,
     SAC_SERVER_BATCH_MAX},
    {"min-batch", 0, VERB_SERVE, SECTION_RUN, OPTION_INT, AT(serve.batch_min), "serve.min_batch",
     "N", "the same while the device has nothing to do; 0: a full batch", 0, SAC_SERVER_BATCH_MAX},
    {"timeout", 0, VERB_SERVE, SECTION_RUN, OPTION_INT, AT(serve.timeout_us), "serve.timeout_us",
     "US", "longest wait of an item for others, in microseconds", 0, 1000000000},
    {"streams", 0, VERB_SERVE, SECTION_RUN, OPTION_INT, AT(serve.streams), "serve.streams", "N",
     "batches that a GPU computes at the same time, over one copy of the weights; 0: 1", 0,
     SAC_SERVER_STREAMS_MAX},
    {"batch-padding", 0, VERB_SERVE, SECTION_RUN, OPTION_CHOICE, AT(serve.padding), "serve.padding",
     "HOW", "as of track", .choices = paddings},
    {"goal", 0, VERB_SERVE, SECTION_RUN, OPTION_CHOICE, AT(serve.goal), "serve.goal", "WHAT",
     "how the largest batch is chosen, up to --max-batch; latency: as large as --goal-ms lets it "
     "be; throughput: the smallest with nearly the most items a second; none: it is --max-batch",
     .choices = goals},
    {"goal-ms", 0, VERB_SERVE, SECTION_RUN, OPTION_REAL, AT(serve.goal_ms), "serve.goal_ms", "MS",
     "longest run of a batch, with --goal latency", 0.001, 1e6},
    {"host-tensors", 0, VERB_SERVE, SECTION_RUN, OPTION_FLAG, AT(serve.host_outputs),
     "serve.host_tensors", NULL,
     "inputs come from the host's memory and outputs return there; off: they stay on the device"},
    {"size", 0, VERB_SERVE, SECTION_IN, OPTION_TEXT, AT(serve_size), "serve.size", "WxH",
     "size of the images, if the model leaves it open"},

    {"output", 'o', VERB_BUILD, SECTION_OUT, OPTION_TEXT, AT(build_output), "build.output", "FILE",
     "the plan's file; default: the model's name with the extension .plan, in the current folder"},
    {"batch", 'b', VERB_BUILD, SECTION_RUN, OPTION_TEXT, AT(build_batch), "build.batch",
     "MIN:OPT:MAX",
     "batches to plan for: these and the powers of two between; one number stands for all three. "
     "Others between them need no planning either"},
    {"size", 0, VERB_BUILD, SECTION_RUN, OPTION_TEXT, AT(build_size), "build.size", "WxH[:WxH:WxH]",
     "size of the images, if the model leaves it open; or the least, the usual and the greatest, "
     "such as 320x320:640x640:1280x1280: each is planned, and sizes between need no planning"},
    {"shape", 's', VERB_BUILD, SECTION_IN, OPTION_LIST, AT(build_shapes), "build.shapes",
     "NAME=1,77[:1,77:1,77]",
     "size of another input, if the model leaves it open, such as the length of a sequence; or the "
     "least, the usual and the greatest, such as tokens=1,16:1,77:1,512. The first number is the "
     "batch, which --batch says"},
    {"calibrate", 0, VERB_BUILD, SECTION_IN, OPTION_TEXT, AT(build_calibrate), "build.calibrate",
     "DIR|VIDEO",
     "pictures of what the network will see, a folder or a video: 64 of them are run in float32, "
     "and steps whose numbers FP16 is too narrow for stay in float32; with --precision int8 or fp8 "
     "they say which range has 8 bits, and what that loses"},
    {"max-loss", 0, VERB_BUILD, SECTION_RUN, OPTION_REAL, AT(build_loss_max), "build.max_loss", "L",
     "with int8 and fp8: what the network may lose beside float32, as a share; auto: 0.005 of the "
     "AP of boxes, 0.03 of the IoU of masks, 0.01 of the cosine of embeddings, 0.05 of other "
     "numbers. If it loses more, no file is written",
     1e-9, 1},
    {"calibration-method", 0, VERB_BUILD, SECTION_RUN, OPTION_TEXT, AT(build_method),
     "build.calibration_method", "NAME",
     "with int8 and fp8: how ranges are found: min-max, percentile or entropy; without it min-max, "
     "unless that loses too much and another less than half of it"},

    {"gt", 'g', VERB_EVAL | VERB_TUNE, SECTION_IN, OPTION_LIST, AT(eval_gt), "eval.gt", "GT",
     "ground truth: a MOTChallenge file, a sequence's folder, or a folder of such folders"},
    {"tracks", 0, VERB_EVAL, SECTION_IN, OPTION_LIST, AT(eval_tracks), "eval.tracks", "T",
     "tracks to score: a file for each ground truth, by their names if these are the sequences', "
     "else in that order, or a folder with SEQUENCE.txt in it"},
    {"masks", 0, VERB_EVAL, SECTION_IN, OPTION_TEXT, AT(eval_masks), "eval.masks", "MASKS",
     "masks to score, instead of tracks: a folder of PNG files, also in folders of sequences, a "
     "COCO file, or a video; --gt is then one of these too"},
    {"video", 0, VERB_EVAL, SECTION_IN, OPTION_TEXT, AT(eval_mask.video), "eval.video", "VIDEO",
     "what the masks were made of, for their flicker: a video, a folder of pictures, or a folder "
     "with one for each sequence"},
    {"gt-values", 0, VERB_EVAL, SECTION_IN, OPTION_CHOICE, AT(eval_mask.gt_values),
     "eval.gt_values", "WHAT",
     "what the pixels of the ground truth's masks are: alpha (0 to 255), numbers of objects, which "
     "are one mask together, or of classes, which are scored apart, 255 not at all; auto: objects "
     "in a palette, else alpha",
     .choices = mask_values},
    {"mask-values", 0, VERB_EVAL, SECTION_IN, OPTION_CHOICE, AT(eval_mask.mask_values),
     "eval.mask_values", "WHAT", "the same of the masks to score", .choices = mask_values},
    {"classes", 0, VERB_EVAL, SECTION_IN, OPTION_TEXT, AT(eval_mask.classes), "eval.classes",
     "LIST",
     "classes of masks to score: numbers, or names of COCO's categories, comma-separated; empty: "
     "all, or persons where one side is a matte"},
    {"area-min", 0, VERB_EVAL, SECTION_RUN, OPTION_REAL, AT(eval_mask.area_min), "eval.area_min",
     "SHARE", "score only masks that cover at least this share of the picture in the ground truth",
     0, 1},
    {"score-min", 0, VERB_EVAL, SECTION_RUN, OPTION_REAL, AT(eval_mask.score_min), "eval.score_min",
     "SCORE", "leave out COCO results below this score", 0, 1},
    {"tolerance", 0, VERB_EVAL, SECTION_RUN, OPTION_REAL, AT(eval_mask.tolerance), "eval.tolerance",
     "SHARE", "how far from each other contours may lie, as a share of the picture's diagonal", 0,
     0.1},
    {"preprocess", 0, VERB_EVAL | VERB_TUNE, SECTION_RUN, OPTION_FLAG, AT(eval_preprocess),
     "eval.preprocess", NULL,
     "leave out what the MOTChallenge benchmark ignores: distractors and rows marked 0"},

    {"detections", 0, VERB_TUNE, SECTION_IN, OPTION_LIST, AT(tune_detections), "tune.detections",
     "FILE",
     "MOTChallenge detections: a file for each ground truth, by their names if these are the "
     "sequences', else in that order, or a folder with SEQUENCE.txt in it; "
     "default: det.txt, det/det.txt or the one det*.txt in the sequence's folder, else the "
     "detector's boxes of img1 or of the one video there"},
    {"reid", 0, VERB_TUNE, SECTION_IN, OPTION_TEXT, AT(tune_reid), "tune.reid", "MODEL",
     "track by appearance too, and search its parameters: person_reid or an ONNX file, which runs "
     "once over the boxes, in img1 or the one video in each sequence's folder; default: motion "
     "alone"},
    {"output", 'o', VERB_TUNE, SECTION_OUT, OPTION_TEXT, AT(tune_output), "tune.output", "FILE",
     "write the parameters as YAML, for --config; default: standard output"},
    {"trials", 'n', VERB_TUNE, SECTION_RUN, OPTION_INT, AT(tune_trials), "tune.trials", "N",
     "most points that each search tries", 1, 100000},

    {"budget", 0, VERB_TUNE, SECTION_RUN, OPTION_REAL, AT(budget_s), "search.budget_s", "SECONDS",
     "how long the search may take", 0.001, 1e6},
    {"seed", 0, VERB_TUNE | VERB_OPTIMIZE, SECTION_RUN, OPTION_INT, AT(seed), "search.seed", "N",
     "of where a search begins again; the same one tries the same points", 0, 1000000000},

    {"goal", 'g', VERB_OPTIMIZE, SECTION_RUN, OPTION_CHOICE, AT(optimize.goal), "optimize.goal",
     "WHAT",
     "what is to be best; fps: frames a second; latency: the 95th percentile, at the input's own "
     "rate where the machine keeps up with it; vram: memory of the GPU, without one of the "
     "process; watts: frames for a watt-second of the GPU",
     .choices = optimize_goals},
    {"budget", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_REAL, AT(optimize.budget_s),
     "optimize.budget_s", "SECONDS", "how long it may take, with the closing comparison", 0.001,
     1e6},
    {"trial", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_REAL, AT(optimize.trial_s), "optimize.trial_s",
     "SECONDS", "how long each run is to be measured; long ones vary less", 0.1, 3600},
    {"keep-fps", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_REAL, AT(optimize.keep_fps),
     "optimize.keep_fps", "SHARE",
     "what of the default's frames a second must stay, for the other goals", 0, 1},
    {"memory-share", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_REAL, AT(optimize.memory_max),
     "optimize.memory_share", "SHARE",
     "settings that need more of the GPU's memory are not taken; without one, of the machine's",
     0.01, 1},
    {"precisions", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_TEXT, AT(optimize.precisions),
     "optimize.precisions", "LIST",
     "precisions that may be tried, such as fp32,tf32,fp16, each taken only where --max-loss "
     "allows "
     "it; empty: it stays as it is"},
    {"interval-max", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_INT, AT(optimize.interval_max),
     "optimize.interval_max", "N",
     "the network may see only one of up to so many frames, where --max-loss allows it; 1: it sees "
     "all",
     1, 30},
    {"max-loss", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_REAL, AT(optimize.loss_max),
     "optimize.max_loss", "SHARE",
     "how much results may differ from those of fp32 that sees every frame: 1 - MOTA of tracks, 1 "
     "- "
     "IoU of mattes",
     0, 1},
    {"max-streams", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_INT, AT(optimize.streams_max),
     "optimize.max_streams", "N",
     "find out how many streams at once keep up with their own rate, up to so many; the inputs are "
     "repeated; 0: do not",
     0, 256},
    {"encode", 0, VERB_OPTIMIZE, SECTION_OUT, OPTION_FLAG, AT(optimize.encodes), "optimize.encode",
     NULL, "the runs encode a video too, which is thrown away"},
    {"auto-optimize", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_FLAG, AT(optimize.follows),
     "optimize.auto", NULL,
     "turn only what bounds the run, then what bounds it after that, instead of all: sooner done"},
    {"detect-bottlenecks", 0, VERB_OPTIMIZE, SECTION_OUT, OPTION_FLAG, AT(optimize.bottlenecks),
     "optimize.bottlenecks", NULL,
     "say what bounds the default and the tuned run, how that was found, and what would help"},
    {"dry-run", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_FLAG, AT(optimize.dry_run),
     "optimize.dry_run", NULL, "print what would be tried, and run nothing"},
    {"resume", 0, VERB_OPTIMIZE, SECTION_RUN, OPTION_FLAG, AT(optimize.resume), "optimize.resume",
     NULL, "go on with a search that ended early: its measurements are in OUTPUT.runs"},
};
const size_t option_count = sizeof options / sizeof options[0];

const char *option_renamed(const char *old)
{
    static const struct {
        const char *old, *now;
    } renamed[] = {{"optimise", "optimize"}, {"infer.optimise", "infer.optimize"}};
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(renamed[i].old, old) == 0)
            return renamed[i].now;
    return NULL;
}

const char *option_section_title(enum option_section section)
{
    static const char *const titles[SECTION_COUNT] = {
        [SECTION_IN] = "Input",          [SECTION_OUT] = "Output",
        [SECTION_DETECTOR] = "Detector", [SECTION_REID] = "Appearance (ReID)",
        [SECTION_TRACKER] = "Tracker",   [SECTION_SEGMENTER] = "Segmenter",
        [SECTION_RUN] = "Running",
    };
    return titles[section];
}

const struct option *option_find(const char *name, unsigned verb)
{
    for (size_t i = 0; i < option_count; i++)
        if ((options[i].verbs & verb) && strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

const struct option *option_find_key(const char *key)
{
    for (size_t i = 0; i < option_count; i++)
        if (options[i].key && strcmp(options[i].key, key) == 0)
            return &options[i];
    return NULL;
}
