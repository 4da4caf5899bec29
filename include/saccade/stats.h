/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a run: one structure for the pipeline, the push interface and the JSON report
 * (docs/stats.schema.json).
 *
 *     struct sac_pipeline_stats stats;
 *     sac_pipeline_get_stats(pipe, &stats);
 *     printf("%.1f frames/s, held up by %s: %s\n", stats.fps, stats.bottleneck,
 *            stats.bottleneck_why);
 *     for (int i = 0; i < stats.advice_count; i++)
 *         puts(stats.advice[i]);
 */
#ifndef SACCADE_STATS_H
#define SACCADE_STATS_H

#include <saccade/device.h>
#include <saccade/source.h>
#include <saccade/timer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A bounded queue between two stages; named after the stage that takes from it. */
struct sac_queue_info {
    char     name[32];
    uint64_t length, capacity, length_max; /* items now; room; most items so far */
    uint64_t passed;                       /* frames that were put in */
    uint64_t full, empty; /* how often a producer found no room, a consumer no frame */
    double   push_wait_ms, pop_wait_ms; /* total time that producers and consumers waited */
    uint64_t reserved[4];               /* 0 */
};

/* Runs of the detector. */
struct sac_batch_stats {
    uint64_t count, frames, full; /* runs; frames in them; runs with max frames */
    int      max;                 /* upper limit of frames in a run, given how many may be inside at
                                     once; 0: no detector */
    double   mean;                /* frames in a run */
    uint64_t padded; /* images that runs were filled up with, whose results are nothing */
    uint64_t whole;  /* batches that were one launch from frames to mattes (SAC_SEGMENT_VR) */
    uint32_t shrunk, grown; /* times that the limit of a batch fell since memory ran out, and rose
                               again */
    uint64_t reserved[1];   /* 0 */
};

/* What slows a GPU down, as bits: its heat, its power limit, or another protection of the card. */
enum { SAC_THROTTLE_HEAT = 1, SAC_THROTTLE_POWER = 2, SAC_THROTTLE_HARDWARE = 4 };

/* Load and memory of the whole GPU during the run, other programs included, as read from NVML. */
struct sac_gpu_stats {
    int    known; /* 0: no GPU, or no NVML; all below is 0 */
    char   name[96];
    int    samples;      /* taken a few times a second */
    double utilisation;  /* mean share of the time in which kernels ran; 0 to 1 */
    double decoder_load; /* the same for the decoder and the encoder */
    double encoder_load;
    /* The same over the last minute and the last five minutes; over the whole run when that is
     * shorter. */
    double   utilisation_1m, utilisation_5m, decoder_load_1m, decoder_load_5m;
    uint64_t memory_bytes, memory_peak_bytes, memory_total_bytes;
    /* The latest sample; 0: the card does not report it. */
    int      temperature_c, temperature_peak_c; /* degrees Celsius; the highest of all samples */
    int      power_mw, power_limit_mw;          /* milliwatts */
    int      clock_mhz, clock_max_mhz, memory_clock_mhz; /* of the multiprocessors, of the memory */
    int      pcie_rx_kb_s, pcie_tx_kb_s; /* over the bus to the card and from it, kB a second */
    int      processes;                  /* that compute on it, as far as NVML may tell */
    unsigned throttle;                   /* SAC_THROTTLE_... bits */
    int      throttled;                  /* so many samples had one of them */
    uint64_t reserved[2];                /* 0 */
};

/* Bits. */
enum {
    SAC_OUTPUT_VIDEO = 1,
    SAC_OUTPUT_JSONL = 2,
    SAC_OUTPUT_MOT = 4,
    SAC_OUTPUT_TRACE = 8,
    SAC_OUTPUT_STATS = 16,
    SAC_OUTPUT_CSV = 32,
    SAC_OUTPUT_KITTI = 64,
    SAC_OUTPUT_COCO = 128,
    SAC_OUTPUT_CROPS = 256
};

enum { SAC_SHARDS_MAX = 16 };
/* One of several devices that share a run. */
struct sac_shard_stats {
    char                   device[16]; /* "cuda:1" */
    int                    streams;    /* assigned to it */
    int64_t                frames;
    double                 fps;
    struct sac_batch_stats batch;
    uint64_t               memory_bytes_peak; /* of its pool */
    struct sac_gpu_stats   gpu;
    uint64_t               reserved[8]; /* 0 */
};

/* How often the switches of a job acted that save work, or let the network see more (struct
 * sac_track_job_params). */
struct sac_saving_stats {
    uint64_t still;         /* skip_still: frames that the network did not see */
    uint64_t regions;       /* region: frames of which it saw a part */
    double   region_area;   /* these parts, added up: so many whole frames */
    uint64_t small, large;  /* small_model: frames that it was sure of; those that the other saw too
                             */
    uint64_t scales, looks; /* segmenter.scales: frames that it saw at them; images that these
                               were */
    uint64_t reserved[9];   /* 0 */
};

/* What passed before the first frame, in microseconds: while the pipeline was created, or the
 * session created and started. A part has its own time, without that of parts inside it; parts that
 * are opened side by side, and those of several devices, add up to more than has passed. */
struct sac_start_stats {
    int total_us;
    int device_us;    /* the device: its plug-in, driver and context */
    int inputs_us;    /* sources and decoders */
    int libraries_us; /* the engine's libraries and their handles */
    int read_us;      /* models read from their files */
    int passes_us;    /* constants folded, shapes inferred, nodes fused */
    int kept_us;      /* plans that were kept: found, read, written */
    int ranges_us;    /* what FP16 is too narrow for, watched on the CPU */
    int plan_us;      /* shapes, kernels and memory of each plan */
    int kernels_us;   /* kernels made ready, as a plan names them */
    int trials_us;    /* kernels tried, where no plan names them */
    int weights_us;   /* brought into the kernels' forms, and to the device */
    int check_us;     /* of batches, in models that leave none open */
    int runs_us;      /* the first runs of each size of batch */
    int graphs_us;    /* their steps captured as one launch */
    int outputs_us;   /* sinks and encoders */
};

enum { SAC_STAGE_MAX = 16, SAC_ADVICE_MAX = 2 };
/* The whole run. */
struct sac_pipeline_stats {
    int64_t frames, frames_total; /* done; expected (0: unknown) */
    int64_t detections, tracks;   /* boxes so far; identities so far */
    int     objects;              /* tracks in the latest frame */
    double  elapsed_s, fps;       /* wall clock from the first frame to the last, and to the
                                     last video's end; mean */
    double cpu_s;                 /* CPU time of the process so far */
    /* Those that ran of decode, compare, preprocess, inference, head, reid, tracking, crop, draw,
     * encode, write. One count is one frame; for compare, preprocess, inference and head it is one
     * batch. stage has time on the host, stage_gpu the GPU's own time for the same stage; count 0:
     * none. */
    struct sac_timer_summary stage[SAC_STAGE_MAX], stage_gpu[SAC_STAGE_MAX];
    /* Device memory that each stage holds, and its largest value so far; `other` belongs to no
     * stage. The pool's idle memory is not included. */
    uint64_t stage_bytes[SAC_STAGE_MAX], stage_bytes_peak[SAC_STAGE_MAX];
    uint64_t other_bytes, other_bytes_peak;
    int      stage_count;
    /* From the time a frame is available (decoded, submitted, or due with `realtime`) to its
     * tracks; count 0: not measured. For a file read at full speed, most of it is waiting in
     * queues. */
    struct sac_timer_summary latency;
    struct sac_queue_info    queue[SAC_STAGE_MAX]; /* detect, track, write */
    int                      queue_count;
    struct sac_batch_stats   batch;
    char bottleneck[32];      /* the stage that the others wait for; empty: not known */
    char bottleneck_why[256]; /* how it was found */
    /* What would make the run faster, judged by its own figures: one sentence each, the most useful
     * one first. None when nothing stands out or the run was too short. */
    char                  advice[SAC_ADVICE_MAX][256];
    int                   advice_count;
    struct sac_pool_stats pool;
    double pool_reuse; /* share of all requests that the pool served; 0 to 1. That of the time after
                          the start: pool.requests_start */
    struct sac_pool_stats host_pool; /* page-locked memory for transfers; 0 on the CPU */
    struct sac_ledger     ledger;
    double crossed_per_s;       /* bytes between host and device a second, without weights */
    struct sac_gpu_stats   gpu; /* the first one, of several */
    struct sac_shard_stats shard[SAC_SHARDS_MAX]; /* where several devices share the run; all else
                                                     is their sum */
    int                     shard_count;          /* 0: one device */
    struct sac_source_stats source;
    unsigned outputs_whole; /* SAC_OUTPUT_... bits: complete and renamed, for at least one
                               of the inputs */
    uint64_t rss_bytes, rss_peak_bytes; /* of the process */
    char     device[160];               /* "cpu (AMD EPYC, AVX-512, 2 threads)" */
    char     engine[128];               /* what computes the networks; empty without one */
    char     precision[16];             /* "float32" */
    char     detector[128], head[32], tracker[32], reid[128], encoder[64]; /* empty: none */
    char     classes[256];            /* those kept: "person (1 of 80)"; empty: no detector */
    int      class_count, class_kept; /* named by the network; kept */
    char     segmenter[128];          /* the network of mattes; empty: the run tracks */
    /* With sac_segment_params.on_composite: from the time at which a frame's last packet reached
     * the decoder (SAC_SEGMENT_VR) or at which the frame was available, to its composite, complete
     * on the device; and how many took longer than the time of two frames. */
    struct sac_timer_summary composite_latency;
    int64_t                  composites_late;
    struct sac_saving_stats  savings;
    struct sac_start_stats   start;
    /* As they are used: streams that the network's inputs are made on, threads that follow the
     * camera (of several devices, of one), and the most streams whose frames were tracked in one
     * turn. */
    int      preprocess_streams, postprocess_threads;
    int64_t  postprocess_together;
    uint64_t reserved[6]; /* 0 */
};

/* One input of a run. */
struct sac_stream_stats {
    char input[256]; /* the detections' file, without a video; shortened, without a URL's secrets */
    int  stream_id;
    int64_t    frames, frames_total, detections, tracks; /* as above */
    double     elapsed_s, fps;
    char       decoder[32];       /* "nvdec h264" on a GPU; empty: no video is read */
    char       decoder_note[256]; /* why the CPU decodes for a GPU; empty: it does not */
    uint64_t   surface_bytes;     /* memory of a GPU that its decoder holds */
    char       encoder[64];       /* empty: no video is written */
    sac_result status;            /* this input's; the other inputs continue */
    char       why[512];          /* its sentence; empty: none */
    unsigned   outputs_whole;     /* as above */
    struct sac_source_stats source;
    uint64_t                reserved[16]; /* 0 */
};

/* Call fn with one line for each figure that a summary shows where it is not 0, such as "input
 * 3 timestamps repaired". details 0: problems of the input that the run survived; 1: what only
 * explains the figures. line is valid during the call. */
SAC_API void sac_stats_lines(const struct sac_pipeline_stats *stats, int     details,
                             void (*fn)(void *user, const char *line), void *user);

#ifdef __cplusplus
}
#endif
#endif
