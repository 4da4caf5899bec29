/* SPDX-License-Identifier: Apache-2.0 */
/* A detector from inside. A batch is begun, which queues everything down to the copy of its boxes,
 * and ended, which waits for them: between the two the next one can be begun, so the device never
 * runs dry. On the CPU, whose streams run at once, it is done when begin returns.
 *
 *     res = sac_detector_begin(det, 0, frames, NULL, n);
 *     res = sac_detector_begin(det, 1, others, NULL, m);
 *     res = sac_detector_end(det, 0, found);
 */
#ifndef SAC_HEADS_DETECTOR_H
#define SAC_HEADS_DETECTOR_H

#include "vision/detect.h"
#include "heads/batch.h"

enum { SAC_DETECTOR_SLOTS = 2 }; /* batches under way at once */

/* What is behind a run of the network within a batch. */
struct sac_detector_part {
    struct sac_batch_part *run;
    struct sac_detect_spec spec;     /* how its outputs become boxes */
    size_t                 boxes_at; /* in the slot's buffers */
    size_t                 expected; /* boxes that were fetched before their number was known */
    sac_tensor            *out[SAC_HEAD_OUTPUTS_MAX]; /* for who decodes on the host */
};

/* A batch under way. */
struct sac_detector_slot {
    struct sac_batch_slot     batch;
    struct sac_detector_part *parts; /* [batch] as the batch's */
    struct sac_fit_map       *maps;  /* [batch] */
    struct sac_buffer        *boxes; /* in device memory */
    struct sac_mirror         host;  /* where they arrive */
};

struct sac_detector {
    sac_device                *dev;
    sac_model                 *model;
    struct sac_head_view       view;
    struct sac_head_library    library; /* when the head is a plug-in */
    const struct sac_head     *head;
    struct sac_model_contract  contract;
    float                      score_min, nms_iou;
    size_t                     detection_max;
    int                        batch;  /* frames in one run */
    int                       *wanted; /* classes; NULL: all */
    size_t                     wanted_count, wanted_capacity;
    struct sac_run_times       times; /* of the latest public run */
    struct sac_preprocess_job *jobs;  /* [batch] */
    struct sac_buckets         buckets;
    struct sac_detector_slot   slots[SAC_DETECTOR_SLOTS];
    /* Boxes. */
    struct sac_detect_spec    spec;
    bool                      laid_out;       /* spec is known */
    int                       boxes_max;      /* of an image */
    size_t                    boxes_expected; /* in a hundred images */
    struct sac_device_stream *fetch;   /* for those beyond the expected, beside the next batch */
    bool                      on_host; /* a plug-in decodes, or the device has no room */
    bool                      said;    /* that outputs are copied for it */
    sac_device               *host;    /* that has the room; NULL: not needed yet */
    struct sac_head_outputs   outputs; /* on the host */
};

/* detector_classes.c: list as params.classes. */
sac_result sac_detector_choose_classes(struct sac_detector *det, const char *list);

/* detector_boxes.c: from the outputs of a run to boxes. */
/* The sentence for outputs that are not the head's. */
sac_result sac_detector_refuse_shapes(const struct sac_detector    *det,
                                      const struct sac_head_tensor *t, int count);
/* What can be known before a run. */
sac_result sac_detector_boxes_open(struct sac_detector *det);
/* Fill in what the bucket's latest run shows. */
sac_result sac_detector_lay_out(struct sac_detector *det, const struct sac_bucket *bucket,
                                struct sac_detect_spec *out);
/* Memory for a slot's boxes; nothing where they are decoded on the host. */
sac_result sac_detector_reserve_boxes(struct sac_detector *det, struct sac_detector_slot *slot);
/* Queue the head and the copy of the boxes behind a part's run. */
sac_result sac_detector_queue_boxes(struct sac_detector *det, struct sac_detector_slot *slot,
                                    struct sac_detector_part *part);
/* Once that is done; found: of its images. */
sac_result sac_detector_take_boxes(struct sac_detector *det, struct sac_detector_slot *slot,
                                   struct sac_detector_part *part, struct sac_detections *found);
/* A device keeps scratch for as many images as it met at once: those of the largest bucket. */
sac_result sac_detector_warm_up_boxes(struct sac_detector *det);

/* detector_batch.c */
sac_result sac_detector_batch_open(struct sac_detector *det);
/* Waits for what is queued; half-built too. */
void sac_detector_batch_close(struct sac_detector *det);
/* For the public runs: end what was begun in slot 0, and count its times; `begun` says whether it
 * was. */
sac_result sac_detector_finish_run(struct sac_detector *det, sac_result begun,
                                   struct sac_detections *found);
/* Plan and run once all that later runs need, on a device that asks for it. */
sac_result sac_detector_warm_up(struct sac_detector *det);
/* 1 <= n <= det->batch; frames are borrowed until end. images: NULL, or those of which some are
 * kept, whose frames are not looked at; borrowed for the call. After a fault the slot is free
 * again. */
sac_result sac_detector_begin(struct sac_detector *det, int slot, sac_frame *const *frames,
                              const struct sac_batch_images *images, int n);
/* The same for images [first, first + n) of a tensor that somebody else prepared: boxes are in the
 * pixels of the network's input. Borrowed until end. */
sac_result sac_detector_begin_given(struct sac_detector *det, int slot, sac_tensor *images,
                                    int64_t first, int n);
/* Whether end would return without waiting. */
bool sac_detector_arrived(const struct sac_detector *det, int slot);
/* found [n]: previous contents are replaced. */
sac_result sac_detector_end(struct sac_detector *det, int slot, struct sac_detections *found,
                            struct sac_batch_times *times);

#endif
