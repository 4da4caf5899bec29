/* SPDX-License-Identifier: Apache-2.0 */
/* What a start consists of. Whoever starts a run has a record of its parts; while a thread has it
 * (sac_start_use), whatever that thread opens, reads, plans or tries adds its time. Without a
 * record a span costs a predicted branch, so plans that are made later in a run are not counted.
 *
 *     struct sac_start_span span;
 *     sac_start_begin(&span, SAC_START_READ);
 *     res = read_the_file();
 *     sac_start_end(&span);
 *
 * Spans nest, and each part has its own time, without that of the spans inside it; so on one thread
 * the parts add up. Parts of threads that work side by side add up to more than has passed.
 *
 * A start can be given up, as when an input cannot be opened while kernels are tried beside it for
 * seconds: what is long asks now and then whether it still is wanted. */
#ifndef SAC_BASE_START_H
#define SAC_BASE_START_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <saccade/result.h>

enum sac_start_part {
    SAC_START_DEVICE,    /* the device: its plug-in, driver and context */
    SAC_START_INPUTS,    /* the sources and their decoders */
    SAC_START_LIBRARIES, /* those of the engine, and their handles */
    SAC_START_READ,      /* a model's file, into a graph */
    SAC_START_PASSES,    /* folding, shapes, passes */
    SAC_START_KEPT,      /* the plans that were kept: hash of the model, files */
    SAC_START_RANGES,    /* what FP16 is too narrow for, watched on the CPU */
    SAC_START_PLAN,      /* shapes, kernels and memory of a plan */
    SAC_START_KERNELS,   /* kernels made ready, as the plan names them */
    SAC_START_TRIALS,    /* kernels tried, where no plan names them */
    SAC_START_WEIGHTS,   /* brought into the kernels' forms and to the device */
    SAC_START_CHECK,     /* whether a batch that saccade opened gives the same */
    SAC_START_RUNS,      /* the first runs of each size of batch */
    SAC_START_GRAPHS,    /* steps captured as one launch, among them */
    SAC_START_OUTPUTS,   /* the sinks and their encoders */
    SAC_START_PARTS
};

struct sac_start {
    atomic_int_fast64_t ns[SAC_START_PARTS];
    atomic_int_fast64_t total_ns; /* that passed; its owner adds to it */
    atomic_bool         given_up;
};

struct sac_start_span {
    struct sac_start_span *outer;
    enum sac_start_part    part;
    int64_t                begun_ns, inside_ns;
    bool                   on;
};

const char *sac_start_part_name(enum sac_start_part part);

/* The calling thread's record from now on, NULL for none; returns the one before. */
struct sac_start *sac_start_use(struct sac_start *start);
struct sac_start *sac_start_used(void);

/* Any thread. From then on sac_start_given_up is true on the threads that have the record: what
 * they do ends soon, with SAC_ERR_CANCELLED. */
void sac_start_give_up(struct sac_start *start);
bool sac_start_given_up(void);

/* Pairs on one thread. Within SAC_START_RANGES and SAC_START_CHECK, which load, plan and run a
 * network for themselves, all time is theirs. */
void sac_start_begin(struct sac_start_span *span, enum sac_start_part part);
void sac_start_end(struct sac_start_span *span);
/* A step whose record is `start`, in a span of a part; then the thread has the record it had. */
sac_result sac_start_step(struct sac_start *start, enum sac_start_part part,
                          sac_result (*step)(void *arg), void         *arg);

#endif
