/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_PIPELINE_REPORT_H
#define SAC_PIPELINE_REPORT_H

#include <saccade/stacks.h>
#include <saccade/stats.h>

#include "base/outfile.h"

struct sac_held;
struct sac_monitor_view;

struct sac_report {
    const struct sac_pipeline_stats *stats;
    const struct sac_stream_stats   *streams; /* [stream_count] */
    int                              stream_count;
    const struct sac_held           *held;
    const sac_stacks                *stacks; /* or NULL */
    const struct sac_monitor_view   *view;   /* what the run's monitor saw, or NULL */
};

/* Write the statistics as one JSON object (docs/stats.schema.json) and finish the file. */
sac_result sac_report_write(sac_context *ctx, struct sac_outfile *file,
                            const struct sac_report *report);

#endif
