/* SPDX-License-Identifier: Apache-2.0 */
/* MOTChallenge lines: frame (from 1), id, left, top, width, height, score, and three columns that a
 * tracker in the plane leaves at -1. */
#include "base/outfile.h"
#include "pipeline/output.h"
#include "base/text.h"

struct mot_sink {
    struct sac_output  base;
    sac_context       *ctx;
    struct sac_outfile file;
    struct sac_text    lines;
};

static void add_row(struct sac_text *lines, int64_t frame, const struct sac_track *t)
{
    const double box[4] = {(double)t->x0, (double)t->y0, (double)t->x1 - (double)t->x0,
                           (double)t->y1 - (double)t->y0};
    sac_text_int(lines, frame);
    sac_text_add(lines, ",");
    sac_text_int(lines, t->id);
    for (int i = 0; i < 4; i++) {
        sac_text_add(lines, ",");
        sac_text_fixed(lines, box[i], 2);
    }
    sac_text_add(lines, ",");
    sac_text_fixed(lines, (double)t->score, 4);
    sac_text_add(lines, ",-1,-1,-1\n");
}

static sac_result mot_sink_write(struct sac_output *out, struct sac_item *item)
{
    struct mot_sink *m = (struct mot_sink *)out;
    sac_text_clear(&m->lines);
    for (size_t i = 0; i < item->track_count; i++)
        add_row(&m->lines, item->number + 1, &item->tracks[i]);
    if (m->lines.failed)
        return SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "'%s': no memory for its lines", m->file.name.path);
    if (m->lines.length)
        fwrite(m->lines.data, 1, m->lines.length, m->file.file);
    return sac_outfile_check(&m->file);
}

static sac_result mot_sink_finish(struct sac_output *out)
{
    return sac_outfile_finish(&((struct mot_sink *)out)->file);
}

static void mot_sink_destroy(struct sac_output *out)
{
    struct mot_sink *m = (struct mot_sink *)out;
    sac_outfile_abandon(&m->file);
    sac_text_finish(&m->lines);
    sac_free(m);
}

static const struct sac_output_ops mot_sink_ops = {
    .name = "mot",
    .bit = SAC_OUTPUT_MOT,
    .write = mot_sink_write,
    .finish = mot_sink_finish,
    .destroy = mot_sink_destroy,
};

sac_result sac_mot_sink_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    struct mot_sink *m = sac_new(struct mot_sink);
    if (!m)
        return SAC_FAIL(setup->ctx, SAC_ERR_MEMORY, "no memory for the MOTChallenge lines");
    m->base.ops = &mot_sink_ops;
    m->ctx = setup->ctx;
    sac_result res = sac_outfile_open(setup->ctx, setup->params->mot_out, &m->file);
    m->file.keep = true;
    if (res == SAC_OK)
        *out = &m->base;
    else
        mot_sink_destroy(&m->base);
    return res;
}
