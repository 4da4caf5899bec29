/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics as JSON (docs/stats.schema.json). What they hold is said by the rows of
 * observe/figures.c; what a run does not have is null. */
#include <stdio.h>

#include "observe/figures.h"
#include "observe/stacks.h"
#include "pipeline/report.h"

/* Incremented when a reader of the former version could misread it. */
enum { FORMAT_VERSION = 1 };

static void add_stacks(struct sac_json *json, const sac_stacks *stacks)
{
    struct sac_sampled      sampled = {.known = stacks != NULL};
    int                     n;
    const struct sac_stack *list = sac_stacks_list(stacks, &n);
    sac_stacks_get_summary(stacks, &sampled.summary);
    sac_figures_write(json, &sac_figures_sampled, &sampled);
    sac_figures_write_list(json, "stacks", &sac_figures_stack, list, sizeof *list, n);
}

static void add_document(struct sac_text *text, const struct sac_report *r)
{
    static const struct sac_monitor_view none;

    struct sac_json json = {.text = text};
    sac_json_open(&json, NULL, '{');
    sac_json_string(&json, "format", "saccade-stats");
    sac_json_int(&json, "version", FORMAT_VERSION);
    json.gap = "\n";
    sac_json_string(&json, "program", "saccade " SAC_VERSION);
    sac_figures_write(&json, &sac_figures_run, r->stats);
    sac_figures_write_list(&json, "streams", &sac_figures_stream, r->streams, sizeof *r->streams,
                           r->stream_count);
    sac_figures_write(&json, &sac_figures_judgement, r->stats);
    sac_figures_write(&json, &sac_figures_held, r->held);
    add_stacks(&json, r->stacks);
    sac_figures_write(&json, &sac_figures_watched, r->view ? r->view : &none);
    json.gap = "\n";
    sac_json_close(&json, '}');
    sac_text_add(text, "\n");
}

sac_result sac_report_write(sac_context *ctx, struct sac_outfile *file,
                            const struct sac_report *report)
{
    struct sac_text text = {0};
    add_document(&text, report);
    if (text.failed) {
        sac_text_finish(&text);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "'%s': no memory for the statistics", file->name.path);
    }
    fwrite(text.data, 1, text.length, file->file);
    sac_text_finish(&text);
    return sac_outfile_finish(file);
}
