/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: a graph made ready to run for one set of input shapes.
 *
 * Making one infers all shapes, folds what is constant, picks a kernel for each node that is left,
 * puts conversions where two kernels disagree on the layout, lets the inputs of a Concat be written
 * where it would copy them, lets views and in-place nodes share memory, and places the rest in one
 * arena by lifetime. What cannot be known before the data is (the
 * count of NonZero, a Loop) is left to the tail, which runs node by node after the steps (dynamic.h).
 *
 *     struct sac_plan *plan = NULL;
 *     res = sac_plan_create(dev, graph, shapes, &params, &plan);
 *     res = sac_plan_run(plan, arena, in, out);
 *     sac_plan_destroy(&plan);
 */
#ifndef SAC_ENGINE_PLAN_H
#define SAC_ENGINE_PLAN_H

#include "engine/infer.h"
#include "engine/kernel.h"

struct sac_plan_params {
    bool     reference;    /* plain C kernels only */
    bool     tolerant;     /* for inspection: leave out what cannot run. Such a plan is never run */
    uint64_t memory_limit; /* bytes of activations */
    enum sac_precision precision; /* never SAC_PRECISION_DEFAULT */
};

enum sac_place {
    SAC_PLACE_ARENA = 0,
    SAC_PLACE_CONSTANT, /* data */
    SAC_PLACE_INPUT,    /* the caller's tensor number port */
    SAC_PLACE_OUTPUT    /* the tensor that output number port will be */
};

/* A piece of memory that one or more slots share. */
struct sac_storage {
    enum sac_place place;
    int            port;
    const void    *data;
    size_t         bytes, offset; /* offset: in the arena */
    int            first, last;   /* steps; last also the plan's step_count: until the end */
};

/* A value in one layout. A value that several kernels want in several layouts has several slots. */
struct sac_slot {
    struct sac_operand desc; /* dtype and dims; data unused */
    enum sac_layout    layout;
    int                value;   /* id; -1: scratch */
    int                next;    /* another slot of the same value, -1 */
    int                storage; /* -1 until placed */
    int                last;    /* last step that reads it */
    int                port;    /* the graph output that it becomes, -1 */
    /* Part of another slot (placement.c); then, in elements, where it begins there and how far apart
     * its pixels and samples are. */
    int                parent;  /* -1: none */
    int64_t            part_offset, pixel, sample; /* pixel, sample 0: dense */
    size_t             offset;  /* bytes from the storage's start */
};

enum sac_step_kind {
    SAC_STEP_REFERENCE, /* node->op->ref */
    SAC_STEP_KERNEL,    /* kernel->run */
    SAC_STEP_CONVERT,   /* slots[0] into slots[1], another layout or a copy */
    SAC_STEP_COPY,      /* slots[0]'s bytes into slots[1]: a view that cannot share */
    SAC_STEP_VIEW       /* slots[1] shares slots[0]'s memory: takes no time, kept for the lifetimes */
};

struct sac_step {
    enum sac_step_kind         kind;
    const struct sac_node     *node; /* of CONVERT: the one that wanted it, or NULL */
    const struct sac_kernel   *kernel;
    void                      *state;
    int                       *slots; /* inputs, then outputs; -1: left out */
    int                        in_count, out_count;
    int                        scratch;  /* slot, -1: none */
    int                        in_place; /* input whose memory slots[in_count] may take, -1 */
    bool                       strided;  /* the kernel takes parts of other slots */
    int64_t                    time_ns, runs; /* when profiling */
    char                       implementation[80];
};

struct sac_plan {
    struct sac_device     *dev;
    const struct sac_graph *graph;
    struct sac_plan_params params;
    struct sac_infer       infer; /* shapes and constants, and the work list */
    struct sac_slot       *slots;
    size_t                 slot_count, slot_cap;
    int                   *slot_of; /* by value id: its first slot, -1 */
    struct sac_storage    *storages;
    size_t                 storage_count, storage_cap;
    struct sac_step       *steps;
    size_t                 step_count, step_cap;
    void                 **address; /* by slot, for the run */
    const struct sac_node **tail;
    size_t                 tail_count;
    size_t                 arena_bytes;
    struct sac_arena       arena_of_steps; /* small objects: slot lists */
    struct sac_op_call    *call;
    bool                   profile;
    uint64_t               used_at; /* the cache's clock */
};

/* shapes   one per graph input: dtype and dims, all known.
 * Errors   SAC_ERR_UNSUPPORTED, SAC_ERR_FORMAT, SAC_ERR_LIMIT, SAC_ERR_MEMORY. */
sac_result sac_plan_create(struct sac_device *dev, struct sac_graph *graph,
                           const struct sac_operand *shapes, const struct sac_plan_params *params,
                           struct sac_plan **out);
void       sac_plan_destroy(struct sac_plan **plan);

/* Once all steps are there: let inputs of channels-last Concats be parts of their outputs,
 * and outputs of Splits parts of their inputs. */
void sac_plan_place_concats(struct sac_plan *plan);

/* Does the plan hold for these input shapes? */
bool sac_plan_fits(const struct sac_plan *plan, const struct sac_operand *shapes);

/* arena    plan->arena_bytes at least; may be NULL when that is 0.
 * in, out  as of sac_model_run. */
sac_result sac_plan_run(struct sac_plan *plan, void *arena, sac_tensor *const *in, sac_tensor **out);

/* Run a node's reference kernel, on the device's workers when no other thread has them just now. */
sac_result sac_reference_run(struct sac_device *dev, struct sac_op_call *c);

/* The operand of a value that the plan knows, with its address for this run. */
struct sac_operand sac_plan_operand(const struct sac_plan *plan, int value);

#endif
