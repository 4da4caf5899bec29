/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_CLI_SUMMARY_H
#define SAC_CLI_SUMMARY_H

#include <stdio.h>

#include <saccade/pipeline.h>

#include "inputs.h"
#include "settings.h"

/* What a run found, how fast, and what was wrong with its input. */
void summary_print(const struct sac_pipeline_stats *stats, FILE *out);
/* Details: models, device, memory, copies, bottleneck, time by stage. */
void summary_print_details(const struct sac_pipeline_stats *stats, FILE *out);
/* What its monitor found and cost; NULL: nothing. */
void summary_print_monitor(sac_monitor *monitor, FILE *out);
/* A line for each of several inputs. */
void summary_print_streams(sac_pipeline *pipe, const struct sac_pipeline_stats *stats, int count,
                           FILE *out);
/* The complete files that it wrote, even if the run failed; of several inputs the first's, and how
 * many more. */
void summary_print_files(sac_pipeline *pipe, const struct sac_pipeline_stats *stats,
                         const struct settings *s, const struct inputs *inputs, FILE *out);

#endif
