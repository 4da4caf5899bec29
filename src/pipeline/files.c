/* SPDX-License-Identifier: Apache-2.0 */
/* No output may overwrite a file that the run reads, or another output. Checked twice: by name
 * before anything is opened, and again once it is known which pictures and model files are read. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "media/media.h"
#include "pipeline/output.h"
#include "pipeline/pipeline.h"
#include "pipeline/task.h"

/* ---- by name ---- */

/* A word ("auto", "person_det", "none") is a file only if one of that name exists. */
static void add_named(struct sac_files *files, const char *given)
{
    if (given && (strpbrk(given, "./") || access(given, F_OK) == 0))
        sac_files_add_input(files, given);
}

static void add_job(struct sac_files *files, const struct sac_track_job_params *job)
{
    sac_files_add_output(files, job->trace_out, NULL);
    sac_files_add_output(files, job->stats_out, NULL);
    add_named(files, job->detector);
    add_named(files, job->reid);
    add_named(files, job->detector_params.head);
    if (job->segment) {
        add_named(files, job->segment->model);
        add_named(files, job->segment->segmenter.head);
        sac_files_add_input(files, job->segment->background);
    }
}

static void add_stream(struct sac_files *files, const struct sac_stream_params *params)
{
    struct sac_stream_params p = *params;
    const char              *name = p.input ? p.input : p.detections;
    for (int i = 0; i < SAC_OUTPUT_ROWS; i++)
        sac_files_add_output(files, *sac_output_path_of_stream(&p, i), name);
    if (p.input)
        sac_files_add_input(files, sac_input_path(p.input));
    sac_files_add_input(files, p.detections);
}

/* Crops are written as CLASS/ID.jpg below their folder. An input's picture may have such a path, if
 * it is a crop of a former run. */
static bool is_like_a_crop(const char *folder, const char *file)
{
    const size_t length = strlen(folder);
    if (strncmp(file, folder, length) != 0 || file[length] != '/')
        return false;
    const char *name = strchr(file + length + 1, '/');
    return name && name[1 + strspn(name + 1, "0123456789")] == '.' &&
           strcmp(strrchr(name, '.'), ".jpg") == 0;
}

/* Mattes are written as 000000.png and so on. */
static bool is_like_a_matte(const char *folder, const char *file)
{
    const size_t length = strlen(folder);
    if (strncmp(file, folder, length) != 0 || file[length] != '/')
        return false;
    return sac_matte_is_picture(file + length + 1);
}

/* Files that are written into a folder may have an input's name. */
static sac_result check_folder(const struct sac_files *files, const char *folder,
                               bool (*is_written)(const char *folder, const char *file),
                               const char *what)
{
    char      *real = folder ? realpath(folder, NULL) : NULL; /* NULL: it does not exist yet */
    sac_result res = SAC_OK;
    for (size_t i = 0; real && i < files->count && res == SAC_OK; i++) {
        char *file = files->uses[i].output ? NULL : realpath(files->uses[i].path, NULL);
        if (file && is_written(real, file))
            res = SAC_FAIL(files->ctx, SAC_ERR_ARG, "%s in '%s' would overwrite an input: '%s'",
                           what, folder, files->uses[i].path);
        free(file);
    }
    free(real);
    return res;
}

static sac_result check_folders(const struct sac_files          *files,
                                const struct sac_segment_params *segment,
                                const struct sac_stream_params  *p)
{
    sac_result res = check_folder(files, p->crops_out, is_like_a_crop, "crops");
    if (res == SAC_OK && segment && segment->as == SAC_SEGMENT_PNG)
        res = check_folder(files, p->video_out, is_like_a_matte, "mattes");
    return res;
}

static bool is_standard_input(const struct sac_stream_params *p)
{
    return p->input && strcmp(p->input, "-") == 0;
}

static sac_result check_standard_input(sac_context *ctx, const struct sac_stream_params *list,
                                       int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += is_standard_input(&list[i]);
    return count < 2 ? SAC_OK : SAC_FAIL(ctx, SAC_ERR_ARG, "standard input can be an input once");
}

/* What the program itself reads and writes beside the run. */
static void add_programs(struct sac_files *files, const struct sac_pipeline_params *params)
{
    for (int i = 0; i < params->read_count; i++)
        sac_files_add_input(files, params->reads[i]);
    for (int i = 0; i < params->write_count; i++)
        sac_files_add_output(files, params->writes[i], NULL);
}

static void add_all(struct sac_files *files, const struct sac_pipeline_params *params,
                    const struct sac_stream_params *list, int n)
{
    for (int i = 0; i < n; i++)
        add_stream(files, &list[i]);
    add_job(files, &params->job);
    add_programs(files, params);
}

struct sac_stream_params sac_pipeline_only_stream(const struct sac_pipeline_params *params)
{
    struct sac_pipeline_params p = *params;
    struct sac_stream_params   one = {.input = p.input, .detections = p.detections};
    for (int i = 0; i < SAC_OUTPUT_ROWS; i++)
        *sac_output_path_of_stream(&one, i) = *sac_output_path(&p, i);
    return one;
}

sac_result sac_pipeline_check_files(sac_context *ctx, const struct sac_pipeline_params *params)
{
    SAC_NEEDS(ctx, params);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "pipeline parameters");
    SAC_NEEDS_ARRAY(ctx, params->streams, params->stream_count);
    SAC_NEEDS_ARRAY(ctx, params->reads, params->read_count);
    SAC_NEEDS_ARRAY(ctx, params->writes, params->write_count);
    struct sac_files                files = {.ctx = ctx};
    const struct sac_stream_params  one = sac_pipeline_only_stream(params);
    const bool                      many = params->stream_count > 0;
    const struct sac_stream_params *list = many ? params->streams : &one;
    const int                       n = many ? params->stream_count : 1;
    sac_result                      res = check_standard_input(ctx, list, n);
    add_all(&files, params, list, n);
    for (int i = 0; i < n && res == SAC_OK; i++)
        res = check_folders(&files, params->job.segment, &list[i]);
    if (res == SAC_OK)
        res = sac_files_judge(&files);
    sac_files_finish(&files);
    return res;
}

/* ---- what was opened ---- */

void sac_job_add_files(const struct sac_job *job, struct sac_files *files)
{
    add_job(files, &job->params);
    if (job->run->task->add_files)
        job->run->task->add_files(job->run, files);
}

static void add_opened_stream(struct sac_files *files, struct sac_stream_run *s)
{
    const char *file;
    for (size_t i = 0; s->src && (file = sac_source_file(s->src, i)); i++)
        sac_files_add_input(files, file);
    sac_files_add_input(files, s->rows.seqinfo);
    const struct sac_stream_params p = sac_pipeline_only_stream(&s->params);
    add_stream(files, &p);
}

static sac_result check_opened_folders(const struct sac_files *files, struct sac_stream_run *s)
{
    const struct sac_stream_params p = sac_pipeline_only_stream(&s->params);
    return check_folders(files, s->job->segment, &p);
}

sac_result sac_pipeline_check_opened(sac_pipeline *pipe, const struct sac_pipeline_params *params)
{
    struct sac_files files = {.ctx = pipe->ctx};
    for (int i = 0; i < pipe->stream_count; i++)
        add_opened_stream(&files, &pipe->streams[i]);
    sac_job_add_files(pipe->jobs[0], &files);
    add_programs(&files, params);
    sac_result res = SAC_OK;
    for (int i = 0; i < pipe->stream_count && res == SAC_OK; i++)
        res = check_opened_folders(&files, &pipe->streams[i]);
    if (res == SAC_OK)
        res = sac_files_judge(&files);
    sac_files_finish(&files);
    return res;
}
