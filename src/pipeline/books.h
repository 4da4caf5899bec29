/* SPDX-License-Identifier: Apache-2.0 */
/* What a job writes down about itself: timers, trace, counts, and the two reports at its end. One
 * call records a stage's work in its histogram, in the trace and in a profiler's timeline. */
#ifndef SAC_PIPELINE_BOOKS_H
#define SAC_PIPELINE_BOOKS_H

#include "base/outfile.h"
#include "pipeline/job.h"
#include "pipeline/stage.h"

struct sac_run_watch;
struct sac_books {
    /* Constant once created. */
    sac_context            *ctx;
    sac_device             *dev;        /* the job's */
    sac_timers             *timers;     /* id = enum sac_stage */
    sac_timers             *gpu_timers; /* same ids; time on the device, measured with events */
    struct sac_trace       *trace;      /* NULL: none is written */
    const struct sac_books *leader;     /* owns the three above; NULL: these books do */
    int                   gpu_infer, gpu_matte, gpu_finish; /* in the trace: tracks of the device */
    bool                  measures;     /* timers or trace are on, or frame_times */
    bool                  tells_frames; /* params.frame_times: at the debug level */
    struct sac_gpu_watch *gpu;          /* NULL: no GPU, or no NVML */
    struct sac_run_watch *watch;        /* params.monitor's, while and after the run; NULL: none */
    struct sac_outfile    stats_file;   /* with params.stats_out; finish_reports' */

    atomic_uint          whole; /* SAC_OUTPUT_TRACE, SAC_OUTPUT_STATS; finish_reports writes it */
    atomic_int_fast64_t  first_ns;                            /* whoever pushes the first item */
    atomic_int_fast64_t  frames, detections, tracks;          /* the finishing thread */
    atomic_int_fast64_t  last_ns;                             /* the same, and the sink threads */
    atomic_int           objects;                             /* the same */
    atomic_int_fast64_t  composites_late;                     /* the sink threads */
    atomic_uint_fast64_t still;                               /* the finishing thread */
    atomic_uint_fast64_t batches, batch_frames, batches_full; /* the inference thread */
    atomic_uint          shrunk, grown;                       /* the same */
    atomic_uint_fast64_t regions, region_millionths;          /* the same */
    atomic_uint_fast64_t small, large, padded, united;        /* the same */
    atomic_uint_fast64_t scales, looks;                       /* the same */
};

/* Of a device that may not be open yet; watch, once it is, follows what it does.
 * leader: the books whose timers and trace these use, and which must outlive them; NULL: they have
 * their own. */
sac_result sac_books_create(sac_device *dev, const struct sac_track_job_params *params,
                            const struct sac_books *leader, struct sac_books **out);
void       sac_books_watch(struct sac_books *b, int gpu_interval_ms); /* 0: the usual one */
void       sac_books_destroy(struct sac_books **books);               /* half-built too */

/* Time a stage's work on one frame; call both on the thread that does the work. begin: 0 when not
 * measuring. */
int64_t sac_books_begin(struct sac_books *b, enum sac_stage stage);
void    sac_books_finish(struct sac_books *b, enum sac_stage stage, int64_t begun,
                         const struct sac_item *item);
/* Work measured elsewhere that the calling thread did on n frames at once. */
void sac_books_record(struct sac_books *b, enum sac_stage stage, int64_t begun_ns, int64_t ended_ns,
                      struct sac_item *const *items, int n);
/* The same, only for the trace or only for the timer. */
void sac_books_trace(struct sac_books *b, enum sac_stage stage, int64_t begun_ns, int64_t ended_ns,
                     struct sac_item *const *items, int n);
void sac_books_time(struct sac_books *b, enum sac_stage stage, int64_t duration_ns);
/* The time that a batch took on the device. begun_ns: on the host's clock, for the trace; 0:
 * unknown. */
void sac_books_record_gpu(struct sac_books *b, enum sac_stage stage, int64_t begun_ns,
                          int64_t duration_ns, struct sac_item *const *items, int n);
/* For sac_source_params.on_decoded, with the books as its user. */
void sac_books_on_decoded(void *books, const sac_frame *frame, int64_t begun_ns, int64_t ended_ns);

/* An item enters; a batch begins; an item that was done leaves for its sink. */
void sac_books_enter(struct sac_books *b, const struct sac_item *item);
void sac_books_count_batch(struct sac_books *b, int frames, bool full);
void sac_books_count_limit(struct sac_books *b, bool grown); /* of batches; else it fell */
void sac_books_count_item(struct sac_books *b, struct sac_item *item);
/* A video is complete: its last frames waited for the encoder after they had left. */
void sac_books_count_video(struct sac_books *b, struct sac_lane *lane);
/* The network saw a region of a frame, or of each of its eyes; an empty one is the whole frame and
 * is not counted. Frames that a small network was sure of; those that the large one saw too. */
void sac_books_count_region(struct sac_books *b, const sac_frame *frame, int eyes,
                            const struct sac_rect *region);
void sac_books_count_early(struct sac_books *b, int small, int large);
/* The network saw a frame at several scales, in so many images. */
void sac_books_count_scales(struct sac_books *b, int looks);
/* A sink thread has the item's composite complete. */
void sac_books_count_composite(struct sac_books *b, const struct sac_item *item);

#endif
