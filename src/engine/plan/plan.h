/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: a graph prepared to run for one set of input shapes.
 *
 * Creating one (plan.c; build.h says in which order) infers all shapes, folds constants, selects a
 * kernel for each remaining node (steps.c, providers.c), adds conversions where two kernels
 * disagree on the layout, has the inputs of a Concat written directly to its output (placement.c),
 * lets views and in-place nodes share memory, and places the rest by lifetime (memory.c,
 * lifetimes.h). Nodes whose shapes depend on the data (the count of NonZero, a Loop) are left to
 * the tail, which runs node by node after the steps (dynamic.h). Running one is exec.c, on a device
 * with memory of its own exec_device.c. What kernels chose by measurement is kept in a planbook.
 *
 *     struct sac_plan *plan = NULL;
 *     res = sac_plan_create(dev, graph, shapes, &params, &plan);
 *     res = sac_plan_run(plan, stream, activations, in, out);
 *     sac_plan_destroy(&plan);
 */
#ifndef SAC_ENGINE_PLAN_PLAN_H
#define SAC_ENGINE_PLAN_PLAN_H

#include "engine/ops/infer.h"
#include "engine/kernel/kernel.h"
#include "engine/plan/order.h"
#include "engine/plan/weights.h"

struct sac_plan;
struct sac_step;

/* What can be left out of a plan, besides passes, without changing its results. */
enum sac_plan_without {
    SAC_WITHOUT_CONCATS = 1 << 0,       /* inputs of a Concat that are parts of its output */
    SAC_WITHOUT_IN_PLACE = 1 << 1,      /* steps that overwrite an input */
    SAC_WITHOUT_REUSE = 1 << 2,         /* memory that several activations have in turn */
    SAC_WITHOUT_CHANNELS_LAST = 1 << 3, /* values that lie so between two steps */
    SAC_WITHOUT_CAPTURE = 1 << 4,       /* all steps as one launch */
    SAC_WITHOUT_TRIALS = 1 << 5,        /* kernels that are chosen by measurement */
    SAC_WITHOUT_BRANCHES = 1 << 6,      /* steps of one launch that run at the same time */
    /* Those that change which kernels there are, or how their operands lie: their choices differ.
     */
    SAC_WITHOUT_OF_KERNELS = SAC_WITHOUT_CONCATS | SAC_WITHOUT_CHANNELS_LAST
};
struct sac_plan_params {
    bool     reference;    /* plain C kernels only */
    bool     tolerant;     /* for inspection: skip what cannot run. Such a plan is never run */
    uint64_t memory_limit; /* bytes of activations */
    enum sac_precision precision; /* never SAC_PRECISION_DEFAULT */
    uint32_t           without;   /* of enum sac_plan_without */
    /* By value id: 1 where the step that makes it stays in float32, in TF32, when the precision is
     * FP16. NULL: none does. */
    const char *wide;
    /* Set to 1 where a number is found that is not finite (finite.c): host memory that the device
     * can write, and that the caller reads once the run is done. NULL: nothing is checked. */
    volatile uint32_t *odd;
    /* On a device whose memory is the host's: called after each step, with its outputs in place.
     * NULL: nobody looks. */
    void (*watch)(void *user, struct sac_plan *plan, const struct sac_step *step);
    void *watcher;
    /* of the caller's input 0; PLAIN unless asked for */
    enum sac_layout first_input;
    bool            half_outputs; /* float32 outputs that are stored as float16 are returned so */
    struct sac_weight_store *weights; /* of the model; NULL on a device whose memory is the host's
                                       */
    bool measure;                     /* kernels may try their variants on the device */
    bool only_layouts; /* its steps and slots are looked at: no kernel is prepared, and it cannot
                          run */
    /* The kernels' choices from an earlier plan, by number of the kernel step; entries may be
     * NULL. */
    const char *const *choices;
    size_t             choice_count;
    /* They are from plans of other shapes, and by the id of the value that the step computes. */
    bool lent;
};

enum sac_place {
    SAC_PLACE_ACTIVATIONS = 0,
    SAC_PLACE_CONSTANT, /* data */
    SAC_PLACE_INPUT,    /* the caller's tensor number port */
    SAC_PLACE_OUTPUT    /* the tensor of output number port */
};

/* A piece of memory that one or more slots share. */
struct sac_storage {
    enum sac_place place;
    int            port;
    const void    *data;   /* of a constant, in host memory */
    int            slot;   /* of a constant: the slot with its shape and layout */
    void          *device; /* of a constant that kernels of another device read: its copy there */
    size_t         bytes, offset; /* offset: in the activations */
    int            first, last;   /* steps; last also the plan's step_count: until the end */
};

/* A value in one layout. A value that kernels read in several layouts has several slots. */
struct sac_value_slot {
    struct sac_operand desc; /* dtype and dims; data unused */
    enum sac_layout    layout;
    int                value;   /* id; -1: scratch */
    int                next;    /* another slot of the same value, -1 */
    int                storage; /* -1 until placed */
    int                last;    /* last step that reads it */
    int                port;    /* the graph output that it becomes, -1 */
    /* Part of another slot (placement.c); then, in elements, its offset there and the distance
     * between its pixels and between its samples. */
    int     parent;                     /* -1: none */
    int64_t part_offset, pixel, sample; /* pixel, sample 0: dense */
    size_t  offset;                     /* bytes from the storage's start */
};

enum sac_step_kind {
    SAC_STEP_REFERENCE, /* node->op->ref */
    SAC_STEP_KERNEL,    /* kernel->run */
    SAC_STEP_CONVERT,   /* slots[0] into slots[1], another layout or a copy */
    SAC_STEP_COPY,      /* slots[0]'s bytes into slots[1]: a view that cannot share */
    SAC_STEP_VIEW /* slots[1] shares slots[0]'s memory: takes no time, kept for the lifetimes */
};

struct sac_step {
    enum sac_step_kind       kind;
    const struct sac_node   *node; /* of CONVERT: the node that needs it, or NULL */
    const struct sac_kernel *kernel;
    void                    *state;
    int                     *slots; /* inputs, then outputs; -1: left out */
    int                      in_count, out_count;
    int                      scratch;       /* slot, -1: none */
    int                      in_place;      /* input whose memory slots[in_count] may take, -1 */
    bool                     strided;       /* the kernel can read and write parts of other slots */
    bool                     writes_any;    /* the kernel can write slots[in_count] in any layout */
    uint64_t                 taken;         /* bit i: the kernel's state holds input i */
    uint64_t                 checked;       /* bit i: are input i's numbers finite? (finite.c) */
    char                    *chosen;        /* the kernel's choice, NULL: nothing to choose */
    int64_t                  time_ns, runs; /* when profiling */
    char                     implementation[80];
};

enum { SAC_PLAN_GRAPHS_MAX = 4 }; /* sets of addresses kept captured */

/* All steps of a plan as one launch, for one set of addresses. */
struct sac_plan_graph {
    void                   **address; /* inputs, outputs, activations; NULL: unused */
    uint64_t                 used_at;
    int                      runs;
    struct sac_device_graph *graph; /* NULL: not captured yet */
};

struct sac_plan {
    struct sac_device      *dev;
    const struct sac_graph *graph;
    struct sac_plan_params  params;
    struct sac_infer        infer; /* shapes and constants, and the work list */
    struct sac_value_slot  *slots;
    size_t                  slot_count, slot_cap;
    int                    *slot_of; /* by value id: its first slot, -1 */
    struct sac_storage     *storages;
    size_t                  storage_count, storage_cap;
    struct sac_step        *steps;
    size_t                  step_count, step_cap;
    void                  **address; /* by slot, for the run */
    sac_tensor            **made;    /* by output, for the run */
    const struct sac_node **tail;
    size_t                  tail_count;
    size_t                  activation_bytes;
    struct sac_arena        arena; /* small objects: slot lists */
    struct sac_op_call     *call;
    bool                    profile;
    uint64_t                used_at; /* the cache's clock */
    /* On a device whose memory is not the host's: */
    struct sac_device      *host;    /* a CPU device, once the plan needs one; borrowed */
    struct sac_weight_store weights; /* of constants that this plan folded */
    struct sac_buffer      *staging; /* host memory for the steps that run on the host */
    int                     host_steps;
    /* for capturing only; borrowed; NULL: no capture */
    struct sac_device_stream *capture;
    struct sac_order          order; /* of captured steps; count 0: one after the other */
    struct sac_plan_graph     graphs[SAC_PLAN_GRAPHS_MAX];
    uint64_t                  runs;
};

/* shapes   one per graph input: dtype and dims, all known.
 * Errors   SAC_ERR_UNSUPPORTED, SAC_ERR_FORMAT, SAC_ERR_LIMIT, SAC_ERR_MEMORY. */
sac_result sac_plan_create(struct sac_device *dev, struct sac_graph *graph,
                           const struct sac_operand *shapes, const struct sac_plan_params *params,
                           struct sac_plan **out);
void       sac_plan_destroy(struct sac_plan **plan);

/* Called with all steps added: makes inputs of channels-last Concats parts of their outputs, and
 * outputs of Splits parts of their inputs. */
void sac_plan_place_concats(struct sac_plan *plan);

/* Marks the inputs of steps whose numbers each run checks. */
sac_result sac_plan_mark_checked(struct sac_plan *plan);
/* Checks those of a step that is about to run; on a device whose memory is not the host's that is
 * queued. */
sac_result sac_plan_check_finite(const struct sac_plan *plan, const struct sac_step *step,
                                 struct sac_device_stream *stream);

/* Is the plan for these input shapes? */
bool sac_plan_fits(const struct sac_plan *plan, const struct sac_operand *shapes);

/* On a device whose memory is the host's, during a run: one step, with what plan->address has. */
sac_result sac_plan_run_step(struct sac_plan *plan, const struct sac_step *step);

/* stream   of a device whose memory is not the host's: the steps are queued there, and the call
 * returns; only a plan that needs the host in between waits. NULL: the device's own. activations
 * plan->activation_bytes at least; may be NULL when that is 0. in as of sac_model_run. out entries
 * that are not NULL are written to (shape and dtype must be the output's); the others are filled,
 * and NULL again after an error. */
sac_result sac_plan_run(struct sac_plan *plan, struct sac_device_stream *stream, void *activations,
                        sac_tensor *const *in, sac_tensor **out);

/* exec_device.c: all steps, with the addresses bound. */
sac_result sac_plan_queue(struct sac_plan *plan, struct sac_device_stream *stream,
                          void *activations, sac_tensor *const *in, sac_tensor *const *out);
void       sac_plan_drop_graphs(struct sac_plan *plan);
/* One step, as sac_plan_queue would queue it. */
sac_result sac_plan_step_on_device(struct sac_plan *plan, const struct sac_step *step,
                                   struct sac_device_stream *stream);
/* Waits until all work queued on the stream is done. */
sac_result sac_plan_settle(const struct sac_plan *plan, struct sac_device_stream *stream);

/* The difference between a step and its reference row, relative to the output's largest number. */
struct sac_step_check {
    const struct sac_step *step;
    int                    number, output;
    int64_t                sample; /* the sample with the largest difference */
    double                 off;
};
/* verify.c: runs the steps one by one with the addresses of the latest run, whose inputs must still
 * exist, and reports the difference of each. On a device whose memory is not the host's; stream not
 * NULL.
 * cpu   whose workers the reference rows may use. */
sac_result sac_plan_verify(struct sac_plan *plan, struct sac_device_stream *stream,
                           struct sac_device *cpu,
                           void (*fn)(void *user, const struct sac_step_check *check), void *user);
/* The id of the first value that it computes, which is its own whatever the shapes; -1: of none. */
int sac_step_value(const struct sac_step *step);
/* "layer 14 (Conv) by onednn jit, 3 tiles" */
const char *sac_step_label(const struct sac_step *step, char *buf, size_t size);

/* exec.c, for it: */
void sac_step_fill_call(struct sac_plan *plan, const struct sac_step *step); /* plan->call, but data
                                                                              */
sac_result sac_step_run_kernel(struct sac_plan *plan, const struct sac_step *step,
                               struct sac_device_stream *stream);

/* steps.c: that of the plan, unless the step stays in float32. */
enum sac_precision sac_plan_precision(const struct sac_plan *plan, const struct sac_node *node);

/* Does a step, not the tail, compute output number `port`? */
bool sac_plan_makes(const struct sac_plan *plan, int port);
/* Bytes that a slot needs in the staging of a step on the host; 0: a constant, which the host
 * has. */
size_t sac_plan_staged_bytes(const struct sac_plan *plan, int slot);

/* Does the plan run nodes on the host although its device's memory is not the host's? */
bool sac_plan_needs_host(const struct sac_plan *plan);

/* Runs a node's reference kernel on host memory, with a CPU device's workers when no other thread
 * is using them. */
sac_result sac_reference_run(struct sac_device *dev, struct sac_op_call *c);

/* The operand of a value of the plan, with its address for this run. */
struct sac_operand sac_plan_operand(const struct sac_plan *plan, int value);

#endif
