/* SPDX-License-Identifier: Apache-2.0 */
/* JSON lines. They are written into one text, so that a line costs no allocation. */
#include <stdio.h>

#include "base/json.h"
#include "base/outfile.h"
#include "pipeline/output.h"

/* Incremented when a reader of the former version could misread a line. */
enum { FORMAT_VERSION = 1 };

struct jsonl {
    struct sac_output              base;
    const struct sac_output_setup *setup;
    struct sac_outfile             file;
    struct sac_text                line;
};

static void add_member(struct sac_json *json, const char *key, const char *value)
{
    if (value && value[0])
        sac_json_string(json, key, value);
}

/* An address is written without its secrets: results may be shared, passwords must not. */
static void add_hidden(struct sac_json *json, const char *key, const char *value)
{
    char *shown = value ? sac_strdup_hidden(value) : NULL;
    json->text->failed |= value && !shown;
    add_member(json, key, shown);
    sac_free(shown);
}

static void add_classes(struct sac_json *json, const struct sac_job *job)
{
    if (job->run->class_count == 0)
        return;
    sac_json_open(json, "classes", '[');
    for (int i = 0; i < job->run->class_count; i++) {
        const char *name = sac_job_class_name(job, i);
        sac_json_string(json, NULL, name ? name : "");
    }
    sac_json_close(json, ']');
}

static void add_size(struct sac_json *json, const struct sac_output_setup *setup)
{
    if (setup->width > 0) {
        sac_json_int(json, "width", setup->width);
        sac_json_int(json, "height", setup->height);
    }
    if (setup->fps > 0)
        sac_json_fixed(json, "fps", setup->fps, 6);
}

static sac_result write_line(struct jsonl *j)
{
    sac_text_add(&j->line, "\n");
    if (j->line.failed)
        return SAC_FAIL(j->setup->ctx, SAC_ERR_MEMORY, "'%s': no memory for a line",
                        j->file.name.path);
    fwrite(j->line.data, 1, j->line.length, j->file.file);
    sac_text_clear(&j->line);
    return sac_outfile_check(&j->file);
}

static sac_result write_header(struct jsonl *j)
{
    const struct sac_output_setup    *setup = j->setup;
    const struct sac_pipeline_params *p = setup->params;
    struct sac_json                   json = {.text = &j->line};
    struct sac_pipeline_stats         stats;
    sac_job_get_stats(setup->job, &stats);
    sac_json_open(&json, NULL, '{');
    sac_json_string(&json, "format", "saccade-tracks");
    sac_json_int(&json, "version", FORMAT_VERSION);
    sac_json_string(&json, "program", "saccade " SAC_VERSION);
    add_hidden(&json, "command", p->command);
    add_hidden(&json, "input", p->input);
    add_member(&json, "detections", p->detections);
    add_size(&json, setup);
    add_member(&json, "device", stats.device);
    add_member(&json, "engine", stats.engine);
    add_member(&json, "precision", stats.precision);
    add_member(&json, "detector", stats.detector);
    add_member(&json, "head", stats.head);
    add_member(&json, "reid", stats.reid);
    add_member(&json, "tracker", stats.tracker);
    add_classes(&json, setup->job);
    sac_json_close(&json, '}');
    return write_line(j);
}

/* Pixels to 1/100, scores to 1/10000: finer than any detector is right. */
static void add_track(struct sac_json *json, const struct sac_job *job, const struct sac_track *t)
{
    const char *name = sac_job_class_name(job, t->class_id);
    const float edge[4] = {t->x0, t->y0, t->x1, t->y1};
    char        number[16];
    snprintf(number, sizeof number, "%d", t->class_id);
    sac_json_open(json, NULL, '{');
    sac_json_int(json, "id", t->id);
    sac_json_open(json, "box", '[');
    for (int i = 0; i < 4; i++)
        sac_json_fixed(json, NULL, (double)edge[i], 2);
    sac_json_close(json, ']');
    sac_json_string(json, "class", name ? name : number);
    sac_json_fixed(json, "score", (double)t->score, 4);
    sac_json_close(json, '}');
}

static sac_result jsonl_write(struct sac_output *out, struct sac_item *item)
{
    struct jsonl   *j = (struct jsonl *)out;
    struct sac_json json = {.text = &j->line};
    sac_json_open(&json, NULL, '{');
    sac_json_int(&json, "frame", item->number);
    sac_json_fixed(&json, "pts", (double)item->pts_us * 1e-6, 6);
    if (item->source_pts_us != SAC_PTS_NONE)
        sac_json_fixed(&json, "source_pts", (double)item->source_pts_us * 1e-6, 6);
    sac_json_open(&json, "tracks", '[');
    for (size_t i = 0; i < item->track_count; i++) {
        struct sac_track track;
        if (sac_output_clip(j->setup, item, &item->tracks[i], &track))
            add_track(&json, j->setup->job, &track);
    }
    sac_json_close(&json, ']');
    sac_json_close(&json, '}');
    return write_line(j);
}

static sac_result jsonl_finish(struct sac_output *out)
{
    return sac_outfile_finish(&((struct jsonl *)out)->file);
}

static void jsonl_destroy(struct sac_output *out)
{
    struct jsonl *j = (struct jsonl *)out;
    sac_outfile_abandon(&j->file);
    sac_text_finish(&j->line);
    sac_free(j);
}

static const struct sac_output_ops jsonl_ops = {
    .name = "jsonl",
    .bit = SAC_OUTPUT_JSONL,
    .write = jsonl_write,
    .finish = jsonl_finish,
    .destroy = jsonl_destroy,
};

sac_result sac_jsonl_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    struct jsonl *j = sac_new(struct jsonl);
    if (!j)
        return SAC_FAIL(setup->ctx, SAC_ERR_MEMORY, "no memory for the JSON lines");
    j->base.ops = &jsonl_ops;
    j->setup = setup;
    sac_result res = sac_outfile_open(setup->ctx, setup->params->jsonl_out, &j->file);
    j->file.keep = true;
    if (res == SAC_OK)
        res = write_header(j);
    j->file.whole = 0; /* a file with only a header gets no name */
    if (res == SAC_OK)
        *out = &j->base;
    else
        jsonl_destroy(&j->base);
    return res;
}
