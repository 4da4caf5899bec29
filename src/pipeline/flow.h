/* SPDX-License-Identifier: Apache-2.0 */
/* What the figures of a run say: which stage holds the others up, and what would help. */
#ifndef SAC_PIPELINE_FLOW_H
#define SAC_PIPELINE_FLOW_H

#include <saccade/stats.h>

#include "base/base.h"

/* What the statistics do not tell. */
struct sac_flow_facts {
    int  streams;        /* threads that decode, and that write */
    int  cpus, threads;  /* of the machine; of models and image work */
    bool camera_motion;  /* the tracker looks at pixels */
    bool host_memory;    /* the device is the host */
};
/* Fills bottleneck, bottleneck_why and advice from all the rest. */
void sac_flow_judge(struct sac_pipeline_stats *stats, const struct sac_flow_facts *facts);

#endif
