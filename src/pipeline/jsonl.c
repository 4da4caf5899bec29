/* SPDX-License-Identifier: Apache-2.0 */
/* JSON lines. Written by hand: the shape is fixed, and a line must not cost an allocation. */
#include "base/outfile.h"
#include "pipeline/output.h"
#include "base/text.h"

/* Incremented when a reader of the former version could misread a line. */
enum { FORMAT_VERSION = 1 };

struct jsonl {
    struct sac_output              base;
    const struct sac_output_setup *setup;
    struct sac_outfile             file;
    struct sac_text                line;
};

static void add_member(struct sac_text *line, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    sac_text_add(line, ",\"");
    sac_text_add(line, key);
    sac_text_add(line, "\":");
    sac_text_json_string(line, value);
}

/* An address is written without its secrets: results may be shared, passwords must not. */
static void add_hidden(struct sac_text *line, const char *key, const char *value)
{
    char *shown = value ? sac_strdup_hidden(value) : NULL;
    line->failed |= value && !shown;
    add_member(line, key, shown);
    sac_free(shown);
}

static void add_classes(struct sac_text *line, const struct sac_job *job)
{
    if (job->class_count == 0)
        return;
    sac_text_add(line, ",\"classes\":[");
    for (int i = 0; i < job->class_count; i++) {
        const char *name = sac_job_class_name(job, i);
        sac_text_add(line, i ? "," : "");
        sac_text_json_string(line, name ? name : "");
    }
    sac_text_add(line, "]");
}

static void add_size(struct sac_text *line, const struct sac_output_setup *setup)
{
    if (setup->width > 0) {
        sac_text_add(line, ",\"width\":");
        sac_text_int(line, setup->width);
        sac_text_add(line, ",\"height\":");
        sac_text_int(line, setup->height);
    }
    if (setup->fps > 0) {
        sac_text_add(line, ",\"fps\":");
        sac_text_fixed(line, setup->fps, 6);
    }
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
    struct sac_pipeline_stats         stats;
    struct sac_text                  *line = &j->line;
    sac_job_get_stats(setup->job, &stats);
    sac_text_add(line, "{\"format\":\"saccade-tracks\",\"version\":");
    sac_text_int(line, FORMAT_VERSION);
    add_member(line, "program", "saccade " SAC_VERSION);
    add_hidden(line, "command", p->command);
    add_hidden(line, "input", p->input);
    add_member(line, "detections", p->detections);
    add_size(line, setup);
    add_member(line, "device", stats.device);
    add_member(line, "engine", stats.engine);
    add_member(line, "precision", stats.precision);
    add_member(line, "detector", stats.detector);
    add_member(line, "head", stats.head);
    add_member(line, "reid", stats.reid);
    add_member(line, "tracker", stats.tracker);
    add_classes(line, setup->job);
    sac_text_add(line, "}");
    return write_line(j);
}

/* Pixels to 1/100, scores to 1/10000: finer than any detector is right. */
static void add_track(struct jsonl *j, const struct sac_track *t)
{
    struct sac_text *line = &j->line;
    const char      *name = sac_job_class_name(j->setup->job, t->class_id);
    const float      edge[4] = {t->x0, t->y0, t->x1, t->y1};
    sac_text_add(line, "{\"id\":");
    sac_text_int(line, t->id);
    sac_text_add(line, ",\"box\":[");
    for (int i = 0; i < 4; i++) {
        sac_text_add(line, i ? "," : "");
        sac_text_fixed(line, (double)edge[i], 2);
    }
    sac_text_add(line, "],\"class\":");
    if (name)
        sac_text_json_string(line, name);
    else {
        sac_text_add(line, "\"");
        sac_text_int(line, t->class_id);
        sac_text_add(line, "\"");
    }
    sac_text_add(line, ",\"score\":");
    sac_text_fixed(line, (double)t->score, 4);
    sac_text_add(line, "}");
}

static sac_result jsonl_write(struct sac_output *out, struct sac_item *item)
{
    struct jsonl    *j = (struct jsonl *)out;
    struct sac_text *line = &j->line;
    sac_text_add(line, "{\"frame\":");
    sac_text_int(line, item->number);
    sac_text_add(line, ",\"pts\":");
    sac_text_fixed(line, (double)item->pts_us * 1e-6, 6);
    if (item->source_pts_us != SAC_PTS_NONE) {
        sac_text_add(line, ",\"source_pts\":");
        sac_text_fixed(line, (double)item->source_pts_us * 1e-6, 6);
    }
    sac_text_add(line, ",\"tracks\":[");
    for (size_t i = 0, written = 0; i < item->track_count; i++) {
        struct sac_track track;
        if (!sac_output_clip(j->setup, item, &item->tracks[i], &track))
            continue;
        sac_text_add(line, written++ ? "," : "");
        add_track(j, &track);
    }
    sac_text_add(line, "]}");
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
