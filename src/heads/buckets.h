/* SPDX-License-Identifier: Apache-2.0 */
/* A network that runs batch after batch, for a few sizes of batch, each with tensors that stay: a
 * run takes no memory, and on a device that works beside the host it is one launch.
 *
 *     res = sac_buckets_init(&b, dev, model, &pre, NULL, 32, false, "detector", use);
 *     for (int done = 0, n; done < total; done += n) {
 *         struct sac_bucket *bucket = sac_buckets_next(&b, total - done, &n);
 *         res = sac_bucket_run(&b, bucket, jobs + done, n, NULL, &times);
 *         ... queue what reads bucket->out on b.behind; the next run of the bucket comes after it
 *         res = sac_bucket_read(&b, bucket);
 *     }
 *     sac_buckets_finish(&b);
 */
#ifndef SAC_HEADS_BUCKETS_H
#define SAC_HEADS_BUCKETS_H

#include <stdatomic.h>

#include <saccade/head.h>

#include "device/device.h"
#include "engine/engine.h"
#include "engine/model/finite.h"
#include "heads/heads.h"
#include "heads/sizes.h"

enum { SAC_BUCKETS_MAX = SAC_SIZES_MAX };

struct sac_bucket {
    int         size;
    sac_tensor *in, *out[SAC_HEAD_OUTPUTS_MAX]; /* the pixels; out: after the first run */
    sac_tensor *inputs[SAC_FEED_INPUTS_MAX];    /* all, as the network takes them */
    bool        varies; /* outputs are of another shape each time, so they are created each time */
    bool        twins_turn; /* it was the last time */
    struct sac_event *read; /* of split buckets: the latest run's outputs are no longer needed */
};

/* An input of the network as sac_buckets.pre says it, which somebody has from an earlier run. */
struct sac_kept_image {
    const void *pixels;        /* NULL: there is none, and it is made of a frame */
    int         width, height; /* of the frame that it was made of */
};
/* The images of a batch that need not be made, and who wants the others. Where the host works on
 * the device's memory. */
struct sac_batch_images {
    const struct sac_kept_image *kept; /* of the whole batch; those that are made come first */
    /* Called with each that was made, as it lies in the network's input; again after a batch that
     * failed is tried again. NULL: nobody wants them. */
    void (*made)(void *user, int image, const void *pixels);
    void *user;
};

/* Points in a run, to measure between: a pair around each of its stages, which are making the
 * input, the network, and what the caller queues behind it. */
enum {
    SAC_MARK_BEGIN,
    SAC_MARK_INPUT,
    SAC_MARK_RUN,
    SAC_MARK_OUTPUT,
    SAC_MARK_HEAD,
    SAC_MARK_END,
    SAC_MARK_COUNT
};
enum { SAC_MARK_STAGES = SAC_MARK_COUNT / 2 };
struct sac_marks {
    struct sac_event *at[SAC_MARK_COUNT];
};

struct sac_buckets {
    sac_device           *dev;
    sac_model            *model;
    struct sac_preprocess pre;
    enum sac_layout       layout; /* that the inputs are in: pre says the same */
    struct sac_feed       feed;
    sac_tensor *given; /* runs take their images from it, in order, and preprocess none; NULL */
    int64_t     given_at;
    const struct sac_batch_images *images; /* of the batch that is begun, or NULL */
    int                            images_at;
    struct sac_device_stream      *stream; /* all runs are on it, */
    /* inputs are made on this one, and what reads outputs is queued on that one: the same unless
     * they are split */
    struct sac_device_stream *before, *behind;
    enum sac_memory_use       use;    /* of the inputs */
    const char               *owner;  /* of the tensors, for the live list */
    bool                      timed;  /* record marks */
    struct sac_event         *anchor; /* passed at anchor_ns of the host's clock; NULL: never */
    int64_t                   anchor_ns;
    int                       batch_max;
    enum sac_batch_padding    padding;
    atomic_uint_fast64_t     *padded; /* counts images that runs are filled up with; NULL: nobody
                                         asks */
    struct sac_sizes         sizes;
    struct sac_bucket        list[SAC_BUCKETS_MAX]; /* [sizes.count], from the smallest */
    struct sac_finite        finite;
    bool                     paired; /* each has a twin, and the two take turns */
    struct sac_bucket        twins[SAC_BUCKETS_MAX];
    bool                     unites; /* batches are one launch */
    struct sac_device_graph *graphs; /* of these, */
    atomic_uint_fast64_t    *united; /* counted here; NULL: nobody asks */
};

/* feed: NULL where the pixels are all. batch_max: images of one run. owner lives as long; the
 * inputs are held for `use`. patient: runs are long; other streams have priority. */
sac_result sac_buckets_init(struct sac_buckets *b, sac_device *dev, sac_model *model,
                            const struct sac_preprocess *pre, const struct sac_feed *feed,
                            int batch_max, bool patient, const char *owner,
                            enum sac_memory_use use);
/* Before the first run: a network runs beside what reads the outputs of the run before it, and
 * beside the making of the next one's input. These have streams of their own, and each size has two
 * buckets. Without effect on a device whose work is done when it is queued. */
sac_result sac_buckets_split(struct sac_buckets *b);
/* Before the first run that counts: 1 takes a split back, 2 splits; 0: as it is. */
sac_result sac_buckets_set_streams(struct sac_buckets *b, int streams);
/* As it is now: 1, or 2 of buckets that are split. */
int sac_buckets_streams(const struct sac_buckets *b);
/* Before the first run that counts, and instead: what a batch queues between unite_begin and
 * unite_end, on the one stream that it then has, is one launch. For batches that are to be done
 * soon rather than many. united: NULL, or counts them. Without effect on a device that cannot. */
sac_result sac_buckets_unite(struct sac_buckets *b, atomic_uint_fast64_t *united);
/* Around all of a batch but what crosses to the host. end: also after a fault, res; returns that,
 * or one of its own. */
void       sac_buckets_unite_begin(struct sac_buckets *b);
sac_result sac_buckets_unite_end(struct sac_buckets *b, sac_result res);
/* Until all that is queued is done. */
sac_result sac_buckets_wait(struct sac_buckets *b);
/* Waits for queued work. Accepts a zeroed struct. */
void sac_buckets_finish(struct sac_buckets *b);
/* Before the first run that counts: how batches are filled up, and where that is counted.
 * Errors   SAC_ERR_ARG: SAC_BATCH_PADDING_NONE of too large batches. */
sac_result sac_buckets_pad(struct sac_buckets *b, enum sac_batch_padding padding,
                           atomic_uint_fast64_t *padded);
/* The next bucket for the images that are left, and how many of them it takes: as many as it has
 * room for. */
struct sac_bucket *sac_buckets_next(struct sac_buckets *b, int left, int *n);
/* Let runs take marks for the device's own times from now on, or no more. */
sac_result sac_buckets_time(struct sac_buckets *b, bool on);
/* Create its input tensors, unless it has them: for who puts others in their place (states). */
sac_result sac_bucket_prepare(struct sac_buckets *b, struct sac_bucket *bucket);
/* Queue preprocessing and the network for n images; further images of the bucket are undefined.
 * marks: NULL, or all but the last are recorded. times: of the host's part, added.
 * Errors   those of sac_preprocess_run and sac_model_run; where memory was short,
 * that of all buckets is then freed. */
sac_result sac_bucket_run(struct sac_buckets *b, struct sac_bucket *bucket,
                          const struct sac_preprocess_job *jobs, int n,
                          const struct sac_marks *marks, struct sac_run_times *times);
/* From now on runs take their images from a tensor [N,3,H,W] or [N,H,W,3], as the contract says it,
 * that somebody has prepared, from image `first` on; NULL: no more. Borrowed; the images of a run
 * that fills its bucket are read where they are, if they lie as the network wants them. */
sac_result sac_buckets_give(struct sac_buckets *b, sac_tensor *given, int64_t first);
/* The runs from now on are those of a batch with such images, in order; NULL: no more. Borrowed. */
void sac_buckets_set_images(struct sac_buckets *b, const struct sac_batch_images *images);
/* What reads its outputs is queued on `behind`: the bucket may run again after that. */
sac_result sac_bucket_read(struct sac_buckets *b, struct sac_bucket *bucket);
/* Plan and run each bucket as often as the device asks, the largest first, so that later runs find
 * all they need. Buckets without enough memory are dropped, which is logged; the smallest one is
 * required. */
sac_result sac_buckets_warm_up(struct sac_buckets *b);
/* After a call that failed with res: where memory was short, the largest bucket is dropped, which
 * is logged. false: another fault, or there is no smaller bucket. */
bool sac_buckets_shrink(struct sac_buckets *b, sac_result res);

/* All, or none. destroy accepts none. */
sac_result sac_marks_create(sac_device *dev, struct sac_marks *marks);
void       sac_marks_destroy(sac_device *dev, struct sac_marks *marks);
/* Of each stage, ns [SAC_MARK_STAGES], added; all must have been waited for. */
sac_result sac_marks_add(sac_device *dev, const struct sac_marks *marks, int64_t *ns);

#endif
