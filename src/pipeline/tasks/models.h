/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks share that run networks. */
#ifndef SAC_PIPELINE_TASKS_MODELS_H
#define SAC_PIPELINE_TASKS_MODELS_H

#include <saccade/model.h>

#include "base/files.h"
#include "heads/detector.h"
#include "pipeline/books.h"

/* NULL is no word. */
bool sac_task_is_word(const char *model, const char *word);
/* Replace a model's name by its path; before an input is opened, which may take long. The path is
 * memory of job->strings. */
sac_result sac_task_find_model(struct sac_job *job, const char **model);
/* What a network of the job computes in: "float16". */
const char *sac_task_precision(const struct sac_job *job, enum sac_precision wanted);
/* All files that the model was read from. */
void sac_task_add_model(struct sac_files *files, const sac_model *model);
/* A batch's times into its items, timers and trace. head: the stage behind the network. */
void sac_task_record(const struct sac_task_run *run, const struct sac_batch_times *t,
                     enum sac_stage head, struct sac_item *const *items, int n);

#endif
