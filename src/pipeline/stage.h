/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a frame's way, one row each: what the statistics, the trace, the list of live
 * memory and the advice know of a stage is read from here. A task with a stage of its own adds a
 * row. */
#ifndef SAC_PIPELINE_STAGE_H
#define SAC_PIPELINE_STAGE_H

#include "device/device.h"

enum sac_stage {
    SAC_STAGE_DECODE = 0,
    SAC_STAGE_COMPARE,
    SAC_STAGE_PREPROCESS,
    SAC_STAGE_INFERENCE,
    SAC_STAGE_HEAD,
    SAC_STAGE_MATTE,
    SAC_STAGE_REID,
    SAC_STAGE_TRACKING,
    SAC_STAGE_CROP,
    SAC_STAGE_COMPOSITE,
    SAC_STAGE_DRAW,
    SAC_STAGE_ENCODE,
    SAC_STAGE_WRITE,
    SAC_STAGE_COUNT,
    SAC_SPAN_LATENCY = SAC_STAGE_COUNT, /* not stages: the timers after theirs */
    SAC_SPAN_COMPOSITE_LATENCY,
    SAC_SPAN_COUNT
};

/* The threads that stages run on; stages of one thread add up. A job has one INFER and one FINISH,
 * a stream one of each of the others. */
enum sac_stage_thread {
    SAC_THREAD_DECODE,
    SAC_THREAD_INFER,
    SAC_THREAD_FINISH,
    SAC_THREAD_SINK,
    SAC_THREAD_COUNT
};

struct sac_stage_row {
    const char           *name;
    enum sac_stage_thread thread;
    enum sac_memory_use   memory; /* SAC_MEMORY_OTHER: it holds none of its own */
    const char *relief; /* what makes it faster, as advice says it; NULL: nothing does, or see
                           flow.c */
};
extern const struct sac_stage_row sac_stages[SAC_SPAN_COUNT]; /* the last are latencies */

/* Statistics have stages by name; SAC_STAGE_COUNT: it is none. */
enum sac_stage sac_stage_find(const char *name);

#endif
