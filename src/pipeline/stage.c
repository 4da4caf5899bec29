/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/stage.h"

#include <string.h>

#define SMALLER "a smaller detector, as --detector person_det_fast, would relieve it"

const struct sac_stage_row sac_stages[SAC_SPAN_COUNT] = {
    [SAC_STAGE_DECODE] = {"decode", SAC_THREAD_DECODE, SAC_MEMORY_DECODE,
                          "more --decode-threads, or a smaller video, would relieve it"},
    [SAC_STAGE_COMPARE] = {"compare", SAC_THREAD_INFER, SAC_MEMORY_OTHER, NULL},
    [SAC_STAGE_PREPROCESS] = {"preprocess", SAC_THREAD_INFER, SAC_MEMORY_PREPROCESS, SMALLER},
    [SAC_STAGE_INFERENCE] = {"inference", SAC_THREAD_INFER, SAC_MEMORY_INFERENCE, SMALLER},
    [SAC_STAGE_HEAD] = {"head", SAC_THREAD_INFER, SAC_MEMORY_HEAD, SMALLER},
    [SAC_STAGE_MATTE] = {"matte", SAC_THREAD_INFER, SAC_MEMORY_HEAD,
                         "--guide 0 and --smooth 0 make coarser mattes in less time"},
    [SAC_STAGE_REID] = {"reid", SAC_THREAD_INFER, SAC_MEMORY_REID,
                        "fewer boxes (--score-high) or a smaller network would relieve it"},
    [SAC_STAGE_TRACKING] = {"tracking", SAC_THREAD_FINISH, SAC_MEMORY_TRACKING,
                            "--no-camera-motion saves its look at the pixels"},
    [SAC_STAGE_CROP] = {"crop", SAC_THREAD_SINK, SAC_MEMORY_OTHER, NULL},
    [SAC_STAGE_COMPOSITE] = {"composite", SAC_THREAD_SINK, SAC_MEMORY_DRAW, NULL},
    [SAC_STAGE_DRAW] = {"draw", SAC_THREAD_SINK, SAC_MEMORY_DRAW, "--no-trails draws less"},
    [SAC_STAGE_ENCODE] = {"encode", SAC_THREAD_SINK, SAC_MEMORY_ENCODE,
                          "a faster --preset or more --encode-threads would relieve it"},
    [SAC_STAGE_WRITE] = {"write", SAC_THREAD_SINK, SAC_MEMORY_OTHER, NULL},
    [SAC_SPAN_LATENCY] = {"latency", SAC_THREAD_SINK, SAC_MEMORY_OTHER, NULL},
    [SAC_SPAN_COMPOSITE_LATENCY] = {"composite latency", SAC_THREAD_SINK, SAC_MEMORY_OTHER, NULL},
};

enum sac_stage sac_stage_find(const char *name)
{
    int i = 0;
    while (i < SAC_STAGE_COUNT && strcmp(sac_stages[i].name, name) != 0)
        i++;
    return (enum sac_stage)i;
}
