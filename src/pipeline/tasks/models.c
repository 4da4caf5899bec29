/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tasks/models.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <saccade/models.h>

#include "engine/engine.h"
#include "heads/heads.h"
#include "pipeline/task.h"

bool sac_task_is_word(const char *model, const char *word)
{
    return model && strcmp(model, word) == 0;
}

sac_result sac_task_find_model(struct sac_job *job, const char **model)
{
    char       path[PATH_MAX];
    sac_result res = sac_models_find(job->ctx, *model, path, sizeof path);
    if (res != SAC_OK)
        return res;
    const char *copy = sac_arena_strndup(&job->strings, path, strlen(path));
    if (!copy)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the path of a model");
    *model = copy;
    return SAC_OK;
}

const char *sac_task_precision(const struct sac_job *job, enum sac_precision wanted)
{
    if (wanted == SAC_PRECISION_INT8 || wanted == SAC_PRECISION_FP8)
        return wanted == SAC_PRECISION_INT8 ? "int8" : "float8";
    switch (sac_engine_precision(job->dev, wanted)) {
    case SAC_PRECISION_FP16: return "float16";
    case SAC_PRECISION_TF32: return "tf32";
    default: return "float32";
    }
}

void sac_task_add_model(struct sac_files *files, const sac_model *model)
{
    const char *file;
    for (int i = 0; (file = sac_model_file(model, i)); i++)
        sac_files_add_input(files, file);
    char *yaml = sac_contract_yaml_path(sac_model_path(model));
    if (yaml && access(yaml, F_OK) == 0)
        sac_files_add_input(files, yaml);
    sac_free(yaml);
}

void sac_task_record(const struct sac_task_run *run, const struct sac_batch_times *t,
                     enum sac_stage head, struct sac_item *const *items, int n)
{
    struct sac_books          *books = run->job->books;
    const enum sac_stage       stages[] = {SAC_STAGE_PREPROCESS, SAC_STAGE_INFERENCE, head};
    const struct sac_run_times times = sac_batch_run_times(t);
    for (int i = 0; i < n; i++)
        items[i]->times = times;
    if (!books->measures)
        return;
    sac_books_record(books, SAC_STAGE_PREPROCESS, t->begun_ns, t->prepared_ns, items, n);
    sac_books_time(books, SAC_STAGE_INFERENCE, times.inference_ns);
    sac_books_trace(books, SAC_STAGE_INFERENCE, t->prepared_ns, t->queued_ns, items, n);
    sac_books_time(books, head, times.head_ns);
    sac_books_trace(books, head, t->queued_ns, t->decoded_ns, items, n);
    if (run->job->dev->ops->async) { /* elsewhere all was done when it was queued */
        sac_books_trace(books, SAC_STAGE_INFERENCE, t->waited_ns, t->arrived_ns, items, n);
        sac_books_trace(books, head, t->arrived_ns, t->ended_ns, items, n);
    }
    for (size_t i = 0; i < SAC_COUNT(stages) && t->gpu_ns[1]; i++)
        sac_books_record_gpu(books, stages[i], t->gpu_begun_ns[i], t->gpu_ns[i], items, n);
}
