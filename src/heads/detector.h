/* SPDX-License-Identifier: Apache-2.0 */
/* A detector from inside. A batch is begun, which queues everything down to the copy of its boxes,
 * and ended, which waits for them: between the two the next one can be begun, so the device never
 * runs dry. On the CPU, whose streams run at once, it is done when begin returns.
 *
 *     res = sac_detector_begin(det, 0, frames, n);
 *     res = sac_detector_begin(det, 1, others, m);
 *     res = sac_detector_end(det, 0, found);
 */
#ifndef SAC_HEADS_DETECTOR_H
#define SAC_HEADS_DETECTOR_H

#include "vision/detect.h"
#include "heads/buckets.h"

enum { SAC_DETECTOR_SLOTS = 2 }; /* batches under way at once */

/* What the host did when for a batch, and the device's own times. Monotonic clock; 0: not
 * measured. */
struct sac_detector_times {
    /* begin: preprocessing, the network and the head of all parts, laid end to end */
    int64_t begun_ns, prepared_ns, queued_ns, decoded_ns;
    int64_t waited_ns, arrived_ns, ended_ns; /* end: from waited to arrived the thread slept */
    int64_t gpu_ns[SAC_MARK_COUNT - 1];      /* preprocess, network, head; 0 where not timed */
    int64_t gpu_begun_ns; /* when the device began, on the host's clock; 0: not known */
};

/* How long each stage took the host. */
static inline struct sac_run_times sac_detector_run_times(const struct sac_detector_times *t)
{
    return (struct sac_run_times){
        .begun_ns = t->begun_ns,
        .preprocess_ns = t->prepared_ns - t->begun_ns,
        .inference_ns = t->queued_ns - t->prepared_ns + t->arrived_ns - t->waited_ns,
        .head_ns = t->decoded_ns - t->queued_ns + t->ended_ns - t->arrived_ns};
}

/* A run of the network within a batch. */
struct sac_detector_part {
    struct sac_bucket *bucket;
    int                first, n; /* images of the batch */
    size_t             boxes_at; /* in the slot's buffers */
    size_t             expected; /* boxes that were fetched before their number was known */
    struct sac_marks   marks;    /* made on first use */
    sac_tensor        *out[SAC_HEAD_OUTPUTS_MAX]; /* for a head that decodes on the host */
};

/* A batch under way. */
struct sac_detector_slot {
    int                       n, part_count;
    struct sac_detector_part *parts; /* [batch] */
    struct sac_fit_map       *maps;  /* [batch] */
    struct sac_buffer        *boxes; /* in device memory */
    struct sac_mirror         host;  /* where they arrive */
    struct sac_event         *done;
    struct sac_detector_times times;
};

struct sac_detector_device {
    struct sac_buckets     buckets;
    struct sac_detect_spec spec;
    bool                   laid_out;       /* spec is known */
    bool                   on_host;        /* no device decodes the head: outputs are downloaded */
    size_t                 boxes_expected; /* in a hundred images */
    struct sac_stream     *fetch;  /* for boxes beyond those expected, beside the next batch */
    bool                   timed;  /* record marks */
    struct sac_event      *anchor; /* passed at anchor_ns of the host's clock; NULL: never timed */
    int64_t                anchor_ns;
    struct sac_detector_slot slots[SAC_DETECTOR_SLOTS];
};

struct sac_detector {
    sac_device                 *dev;
    sac_model                  *model;
    struct sac_head_view        view;
    struct sac_head_library     library; /* when the head is a plug-in */
    const struct sac_head      *head;
    struct sac_model_contract   contract;
    float                       score_min, nms_iou;
    size_t                      detection_max;
    int                         batch;  /* frames in one run */
    int                        *wanted; /* classes; NULL: all */
    size_t                      wanted_count, wanted_capacity;
    struct sac_head_outputs     outputs;
    struct sac_preprocess_job  *jobs; /* [batch] */
    struct sac_run_times        times;
    struct sac_detector_device *device;
};

/* detector_classes.c: list as params.classes. */
sac_result sac_detector_choose_classes(struct sac_detector *det, const char *list);

/* detector.c */
/* With the outputs loaded: the boxes of one image of them. */
sac_result sac_detector_decode_image(struct sac_detector *det, int image,
                                     const struct sac_fit_map *map, struct sac_detections *list);

/* detector_device.c */
sac_result sac_detector_device_open(struct sac_detector *det);
void sac_detector_device_close(struct sac_detector *det); /* waits for what is queued; half-built
                                                             too */
/* Plan and run once all that later runs need. */
sac_result sac_detector_warm_up(struct sac_detector *det);
/* Take marks for the device's own times from now on, or no more. */
sac_result sac_detector_time(struct sac_detector *det, bool on);
/* 1 <= n <= det->batch; frames are borrowed until end. After a fault the slot is free again. */
sac_result sac_detector_begin(struct sac_detector *det, int slot, sac_frame *const *frames, int n);
/* Whether end would return without waiting. */
bool sac_detector_arrived(const struct sac_detector *det, int slot);
/* found [n]: previous contents are replaced. */
sac_result sac_detector_end(struct sac_detector *det, int slot, struct sac_detections *found,
                            struct sac_detector_times *times);

#endif
