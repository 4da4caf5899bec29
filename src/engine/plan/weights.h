/* SPDX-License-Identifier: Apache-2.0 */
/* Constants in the memory of a device whose memory is not the host's: one copy for each form that
 * kernels read, packed into few buffers. A model's store serves all its plans. Constants that a
 * plan folded live only as long as the plan, and their host addresses may be reused: each plan
 * keeps them in a store of its own, which forwards everything else to the model's. */
#ifndef SAC_ENGINE_PLAN_WEIGHTS_H
#define SAC_ENGINE_PLAN_WEIGHTS_H

#include "engine/kernel/kernel.h"

struct sac_weight_entry;
struct sac_weight_block;

struct sac_weight_store {
    struct sac_weights       face; /* what kernels see; first */
    struct sac_device       *dev;
    const char              *owner;  /* for the live list and messages; borrowed */
    struct sac_weight_store *shared; /* of the model; NULL: this is the model's */
    const struct sac_arena  *mine;   /* constants in this arena are not shared */
    struct sac_weight_entry *entries;
    size_t                   count, cap;
    struct sac_weight_block *blocks;
    size_t                   block_count, block_cap;
    size_t                   bytes; /* on the device, all blocks */
};

void sac_weight_store_init(struct sac_weight_store *store, struct sac_device *dev,
                           const char *owner, struct sac_weight_store *shared,
                           const struct sac_arena *mine);
/* No queued work may read it any more. */
void sac_weight_store_finish(struct sac_weight_store *store);

/* The device copy of constant o in a layout. */
sac_result sac_weight_upload(struct sac_weights *w, const struct sac_operand *o,
                             enum sac_layout layout, void **device);

#endif
