/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_PIPELINE_REPORT_H
#define SAC_PIPELINE_REPORT_H

#include <saccade/stats.h>

#include "base/outfile.h"
#include "base/text.h"

/* The statistics as one JSON object (docs/stats.schema.json). */
void sac_report_text(struct sac_text *text, const struct sac_pipeline_stats *stats,
                     const struct sac_stream_stats *streams, int stream_count);
/* The same into a file, which is finished. */
sac_result sac_report_write(sac_context *ctx, struct sac_outfile *file,
                            const struct sac_pipeline_stats *stats,
                            const struct sac_stream_stats *streams, int stream_count);

#endif
