/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to results: what a batch of them brings becomes the network's inputs, it runs, and each
 * gets its part of the outputs.
 *
 * A batch is cut into runs of the sizes that have plans (heads/sizes.h). Batches under way have a
 * stream and tensors each, which stay, so a run is one launch; runs of an instance of the network
 * follow each other, and the copies of one batch are beside the run of another. */
#ifndef SAC_SERVE_RUNS_H
#define SAC_SERVE_RUNS_H

#include "heads/sizes.h"
#include "serve/collect.h"
#include "serve/request.h"

struct sac_runs_slot {
    struct sac_device_stream *stream;
    struct sac_event         *done;
    sac_tensor              **in;    /* [inputs], of `capacity` items */
    sac_tensor              **view;  /* [sizes][inputs]: the first items of these */
    sac_tensor              **out;   /* [sizes][outputs]; NULL before the first run */
    struct sac_buffer       **stage; /* [inputs] host memory on the way to `in`; NULL: none */
    struct sac_buffer       **fetch; /* [outputs] and from the outputs; NULL: none yet */
};

struct sac_runs {
    sac_device *dev, *host; /* host: of outputs there; NULL: they stay */
    sac_model  *model;
    sac_model  *instance[SAC_BATCHES_MAX]; /* [streams]: the model, and twins; slots have them in
                                              turn */
    int                     streams;
    int                     inputs, outputs;
    struct sac_tensor_desc *item; /* [inputs] of one */
    bool                    pictures;
    struct sac_preprocess   pre;      /* of pictures */
    char                    why[256]; /* there are none */
    bool                    varies;   /* outputs are of another shape each time: one item a run */
    struct sac_sizes        sizes;
    int                     capacity, depth;
    atomic_uint_fast64_t    padded; /* items that runs were filled up with */
    struct sac_runs_slot    slot[SAC_BATCHES_MAX];
};

/* The model, or its twin, that runs what this slot holds. */
static inline sac_model *sac_runs_model_of(const struct sac_runs *r, int slot)
{
    return r->instance[slot % r->streams];
}

/* item.c: what one item is; params: width, height, preprocess, host_outputs. */
sac_result sac_runs_init(struct sac_runs *r, sac_model *model,
                         const struct sac_server_params *params);
/* slots.c: for batches of up to batch_max items, depth of them under way, `streams` of which run at
 * the same time: takes the memory and makes the plans, as sac_buckets_warm_up does. What has no
 * memory is left out, and sizes says so. */
sac_result sac_runs_open(struct sac_runs *r, enum sac_batch_padding padding, int batch_max,
                         int streams, int depth);
/* Nothing is under way; half-open too. */
void sac_runs_finish(struct sac_runs *r);

/* slots.c, for runs.c: queue a run of size number s on the slot's stream; what its outputs held is
 * not needed again; bytes of one item of an input. */
sac_result sac_runs_queue(struct sac_runs *r, struct sac_runs_slot *slot, int s);
void       sac_runs_drop_outputs(struct sac_runs *r, struct sac_runs_slot *slot);
size_t     sac_runs_item_bytes(const struct sac_runs *r, int input);

/* runs.c: queue the requests, whose `at` and outputs it sets. After a fault nothing of it is under
 * way. */
sac_result sac_runs_begin(struct sac_runs *r, int slot, sac_request *const *requests, int n);
bool       sac_runs_arrived(const struct sac_runs *r, int slot);
/* Wait for them; the outputs are complete. */
sac_result sac_runs_end(struct sac_runs *r, int slot, sac_request *const *requests, int n);

/* tune.c: the size of batch for a goal, of powers of two up to batch_max, by measurement. */
sac_result sac_runs_tune(struct sac_runs *r, enum sac_server_goal goal, double goal_ms,
                         int batch_max, int *best);
struct sac_tuned {
    int    size;
    double ms; /* a run */
};
/* Of runs [n], from the smallest. */
int sac_tuned_choose(const struct sac_tuned *runs, int n, enum sac_server_goal goal,
                     double goal_ms);

#endif
