/* SPDX-License-Identifier: Apache-2.0 */
/* A task: what a job does with its frames, one row of functions. The loops that drive it
 * (inference.c, finish.c) collect batches from all streams, keep them under way, divide them when
 * memory runs out, refuse streams, let faults travel with their items and keep each stream's order;
 * the row knows networks, trackers and what they need.
 *
 *     inference thread   open, then for each batch:   begin ... arrived? ... land, follow; close
 *     finishing thread   for each wave of items:      finish;   after a stream's end: forget
 *
 * To add a task: a struct that begins with a struct sac_task_run, its functions and a row in
 * tasks/NAME.c; pass the row to sac_job_create. What a frame gets besides detections and tracks
 * lives in item->own, which the row makes on first use, clears and frees. A stage that no other
 * task has is a row of stage.c; record it with sac_books_record. examples/brightness_task.c is
 * a small one. */
#ifndef SAC_PIPELINE_TASK_H
#define SAC_PIPELINE_TASK_H

#include <saccade/pipeline.h>

#include "base/files.h"

struct sac_item;
struct sac_job;

enum { SAC_TASK_SLOTS = 2 }; /* batches under way at once */

/* A task within a job. What it says is set by open and constant from then on; a batch_max that
 * prepare sets is a limit for how many frames the job collects when it was told a number. */
struct sac_task_run {
    const struct sac_task *task;
    struct sac_job        *job;
    int                    batch_max; /* frames of one begin; 0: any number */
    int                    wave_max;  /* items of one finish, each of another stream; 0: one */
    bool in_order;                  /* a wave ends where a stream comes again: all items stay in the
                                       order in which they came, not each stream's alone */
    char **classes;                 /* [class_count] names or NULLs; memory of job->strings */
    int    class_count, class_kept; /* class_kept: how many of them are kept */
};

/* Functions may be NULL unless marked. Items are borrowed and have no fault so far; a row marks a
 * single one as failed with sac_job_fail_item. */
struct sac_task {
    const char *name;
    size_t      size; /* of its run, zeroed before prepare */
    /* Before any input or device memory is opened: check the names in job->params. */
    sac_result (*prepare)(struct sac_task_run *run);

    /* On the inference thread. Load what the frames need. A fault ends the start; out of memory,
     * close and open again, if a stream can be dropped for it. The device may still be on its way:
     * a model's loading waits for it, and whatever else asks it does so itself
     * (sac_device_await). */
    sac_result (*open)(struct sac_task_run *run);
    /* Queue the work of n frames; on a device of its own that is all it does. After a fault nothing
     * is under way, and land is not called. NULL: there is nothing to wait for. */
    sac_result (*begin)(struct sac_task_run *run, int slot, struct sac_item *const *items, int n);
    /* Would land return without waiting? With begin. */
    bool (*arrived)(const struct sac_task_run *run, int slot);
    /* Wait for what begin queued, results into the items. After a fault the loop begins and lands
     * parts of the batch: smaller ones out of memory, else single frames. Required. */
    sac_result (*land)(struct sac_task_run *run, int slot, struct sac_item *const *items, int n);
    /* Queue what depends on the results. all: these are the whole batch, at the first or second
     * try; after a fault each item is tried alone. */
    sac_result (*follow)(struct sac_task_run *run, struct sac_item *const *items, int n, bool all);
    void (*close)(struct sac_task_run *run); /* half-open too */

    /* A stream will bring frames of this size (0: without pixels); before its first frame, on the
     * thread that opens the stream. */
    sac_result (*expect)(struct sac_task_run *run, int stream_id, int width, int height);
    /* On the finishing thread: items of different streams, each stream's in order. */
    void (*finish)(struct sac_task_run *run, struct sac_item *const *items, int n);
    void (*rest)(struct sac_task_run *run); /* nothing waits: free what others may need */
    void (*forget)(struct sac_task_run *run, int stream_id); /* the stream has ended */
    void (*release)(struct sac_task_run *run); /* both threads have ended; half-open too */

    /* item->own, which is not NULL: drop what it refers to, keep its memory; free it. */
    void (*own_clear)(void *own);
    void (*own_free)(void *own);

    /* Any thread, once opened; before that with what is known. */
    void (*describe)(const struct sac_task_run *run, struct sac_pipeline_stats *out);
    void (*add_files)(const struct sac_task_run *run, struct sac_files *files);
};

/* Detect, re-identify, track; the same with the boxes of item->lane->rows; mattes. */
extern const struct sac_task sac_task_track, sac_task_track_rows, sac_task_segment;

#endif
