/* SPDX-License-Identifier: Apache-2.0 */
/* Finds from a run's statistics which stage limits the speed, and what would help. */
#ifndef SAC_PIPELINE_FLOW_H
#define SAC_PIPELINE_FLOW_H

#include <saccade/stats.h>

#include "base/base.h"

/* Facts that the statistics do not contain. */
struct sac_flow_facts {
    int  streams;       /* each has a thread that decodes and one that writes */
    int  cpus, threads; /* CPUs of the machine; threads of models and image work */
    bool camera_motion; /* the tracker looks at pixels */
    bool device;        /* it computes beside the host: copies to it are counted */
};
/* Fills bottleneck, bottleneck_why and advice from all the rest. */
void sac_flow_judge(struct sac_pipeline_stats *stats, const struct sac_flow_facts *facts);

#endif
