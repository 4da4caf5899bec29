/* SPDX-License-Identifier: Apache-2.0 */
/* Text files with one record for each track in each frame. Each format is a row of the table below;
 * the columns are explained in docs/formats.md. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/outfile.h"
#include "heads/heads.h"
#include "pipeline/output.h"

struct records {
    struct sac_output              base;
    const struct record_format    *format;
    const struct sac_output_setup *setup;
    sac_context                   *ctx;
    struct sac_job                *job;
    struct sac_outfile             file;
    struct sac_text                text;
    bool                           any;          /* a record was written */
    bool                           coco_classes; /* all classes are COCO's: use its numbers */
};

struct record_format {
    struct sac_output_ops ops;
    const char           *what; /* for sentences */
    size_t                path; /* in struct sac_pipeline_params */
    const char           *begin, *between, *end;
    bool                  cut; /* what was written before a fault is a file of this format */
    void (*add)(struct records *r, int64_t frame, int64_t pts_us, const struct sac_track *t);
};

/* ---- columns ---- */

static void add_column(struct sac_text *text, const char *before, double value, int decimals)
{
    sac_text_add(text, before);
    sac_text_fixed(text, value, decimals);
}

/* Pixels to 1/100, scores to 1/10000: finer than any detector is right. */
static void add_corners(struct sac_text *text, const char *before, const struct sac_track *t)
{
    const float edge[4] = {t->x0, t->y0, t->x1, t->y1};
    for (int i = 0; i < 4; i++)
        add_column(text, before, (double)edge[i], 2);
}

/* Left, top, width, height. */
static void box_of(const struct sac_track *t, double box[4])
{
    box[0] = (double)t->x0;
    box[1] = (double)t->y0;
    box[2] = (double)t->x1 - (double)t->x0;
    box[3] = (double)t->y1 - (double)t->y0;
}

/* ---- MOTChallenge ---- */

/* Three columns are world coordinates, which a 2-D tracker leaves at -1. */
static void add_mot(struct records *r, int64_t frame, int64_t pts_us, const struct sac_track *t)
{
    double box[4];
    (void)pts_us;
    box_of(t, box);
    sac_text_int(&r->text, frame + 1);
    sac_text_add(&r->text, ",");
    sac_text_int(&r->text, t->id);
    for (int i = 0; i < 4; i++)
        add_column(&r->text, ",", box[i], 2);
    add_column(&r->text, ",", (double)t->score, 4);
    sac_text_add(&r->text, ",-1,-1,-1\n");
}

/* ---- CSV ---- */

static void add_csv(struct records *r, int64_t frame, int64_t pts_us, const struct sac_track *t)
{
    const char *name = sac_job_class_name(r->job, t->class_id);
    sac_text_int(&r->text, frame);
    add_column(&r->text, ",", (double)pts_us * 1e-6, 6);
    sac_text_add(&r->text, ",");
    sac_text_int(&r->text, t->id);
    sac_text_add(&r->text, ",");
    sac_text_int(&r->text, t->class_id);
    sac_text_add(&r->text, ",");
    sac_text_csv(&r->text, name ? name : "");
    add_column(&r->text, ",", (double)t->score, 4);
    add_corners(&r->text, ",", t);
    sac_text_add(&r->text, "\n");
}

/* ---- KITTI ---- */

/* KITTI's evaluation knows only these types, and calls persons pedestrians; other classes keep
 * their names. Columns are separated by blanks. */
static void add_kitti_type(struct sac_text *text, const char *name)
{
    static const char *const types[] = {"Car",     "Van",  "Truck", "Pedestrian", "Person_sitting",
                                        "Cyclist", "Tram", "Misc"};
    if (!name || !name[0])
        name = "Misc";
    if (strcasecmp(name, "person") == 0)
        name = "Pedestrian";
    for (size_t i = 0; i < SAC_COUNT(types); i++)
        if (strcasecmp(name, types[i]) == 0)
            name = types[i];
    for (; *name; name++) {
        const char letter[2] = {
            isspace((unsigned char)*name) || iscntrl((unsigned char)*name) ? '_' : *name};
        sac_text_add(text, letter);
    }
}

/* Fields that a 2-D tracker can't know have the values that KITTI's development kit defines as
 * unknown. */
static void add_kitti(struct records *r, int64_t frame, int64_t pts_us, const struct sac_track *t)
{
    (void)pts_us;
    sac_text_int(&r->text, frame);
    sac_text_add(&r->text, " ");
    sac_text_int(&r->text, t->id);
    sac_text_add(&r->text, " ");
    add_kitti_type(&r->text, sac_job_class_name(r->job, t->class_id));
    sac_text_add(&r->text, " -1 -1 -10");
    add_corners(&r->text, " ", t);
    sac_text_add(&r->text, " -1 -1 -1 -1000 -1000 -1000 -10");
    add_column(&r->text, " ", (double)t->score, 4);
    sac_text_add(&r->text, "\n");
}

/* ---- COCO ---- */

/* Detectors with 90 classes use these names for COCO's unused numbers. */
static bool is_gap(const char *name)
{
    return !name || !name[0] || strcasecmp(name, "n/a") == 0 ||
           strcasecmp(name, "background") == 0 || strcasecmp(name, "__background__") == 0;
}

bool sac_output_has_coco_classes(const struct sac_job *job)
{
    int known = 0;
    for (int i = 0; i < job->run->class_count; i++) {
        const char *name = sac_job_class_name(job, i);
        const bool  gap = is_gap(name);
        if (!gap && !sac_coco_number(name))
            return false;
        known += !gap;
    }
    return known > 0;
}

static int category_of(const struct records *r, int class_id)
{
    const char *name = sac_job_class_name(r->job, class_id);
    const int   number = r->coco_classes && name ? sac_coco_number(name) : 0;
    return number ? number : class_id + 1;
}

static void add_coco(struct records *r, int64_t frame, int64_t pts_us, const struct sac_track *t)
{
    struct sac_json json = {.text = &r->text};
    double          box[4];
    (void)pts_us;
    box_of(t, box);
    sac_json_open(&json, NULL, '{');
    sac_json_int(&json, "image_id", frame + 1);
    sac_json_int(&json, "category_id", category_of(r, t->class_id));
    sac_json_open(&json, "bbox", '[');
    for (int i = 0; i < 4; i++)
        sac_json_fixed(&json, NULL, box[i], 2);
    sac_json_close(&json, ']');
    sac_json_fixed(&json, "score", (double)t->score, 4);
    sac_json_int(&json, "track_id", t->id);
    sac_json_close(&json, '}');
}

/* ---- the output ---- */

static sac_result write_text(struct records *r)
{
    if (r->text.failed)
        return SAC_FAIL(r->ctx, SAC_ERR_MEMORY, "'%s': no memory for its lines", r->file.name.path);
    if (r->text.length)
        fwrite(r->text.data, 1, r->text.length, r->file.file);
    sac_text_clear(&r->text);
    return sac_outfile_check(&r->file);
}

static sac_result records_write(struct sac_output *out, struct sac_item *item)
{
    struct records *r = (struct records *)out;
    for (size_t i = 0; i < item->track_count; i++) {
        struct sac_track track;
        if (!sac_output_clip(r->setup, item, &item->tracks[i], &track))
            continue;
        sac_text_add(&r->text, r->any ? r->format->between : "");
        r->format->add(r, item->number, item->pts_us, &track);
        r->any = true;
    }
    return write_text(r);
}

static sac_result records_finish(struct sac_output *out)
{
    struct records *r = (struct records *)out;
    sac_text_add(&r->text, r->format->end);
    sac_result res = write_text(r);
    return res == SAC_OK ? sac_outfile_finish(&r->file) : res;
}

static void records_destroy(struct sac_output *out)
{
    struct records *r = (struct records *)out;
    sac_outfile_abandon(&r->file);
    sac_text_finish(&r->text);
    sac_free(r);
}

#define OPS(name_, bit_)                                                              \
    {                                                                                 \
        .name = name_, .bit = bit_, .write = records_write, .finish = records_finish, \
        .destroy = records_destroy                                                    \
    }
#define PATH(field) offsetof(struct sac_pipeline_params, field)

static const struct record_format mot = {
    OPS("mot", SAC_OUTPUT_MOT), "the MOTChallenge lines", PATH(mot_out), "", "", "", true, add_mot};
static const struct record_format csv = {OPS("csv", SAC_OUTPUT_CSV),
                                         "the CSV lines",
                                         PATH(csv_out),
                                         "frame,time_s,id,class_id,class,score,x0,y0,x1,y1\n",
                                         "",
                                         "",
                                         true,
                                         add_csv};
static const struct record_format kitti = {OPS("kitti", SAC_OUTPUT_KITTI),
                                           "the KITTI lines",
                                           PATH(kitti_out),
                                           "",
                                           "",
                                           "",
                                           true,
                                           add_kitti};
static const struct record_format coco = {OPS("coco", SAC_OUTPUT_COCO),
                                          "the COCO results",
                                          PATH(coco_out),
                                          "[\n",
                                          ",\n",
                                          "\n]\n",
                                          false,
                                          add_coco};

static sac_result create(const struct sac_output_setup *setup, const struct record_format *format,
                         struct sac_output **out)
{
    const char     *path = *(const char *const *)((const char *)setup->params + format->path);
    struct records *r = sac_new(struct records);
    if (!r)
        return SAC_FAIL(setup->ctx, SAC_ERR_MEMORY, "no memory for %s", format->what);
    r->base.ops = &format->ops;
    r->format = format;
    r->setup = setup;
    r->ctx = setup->ctx;
    r->job = setup->job;
    r->coco_classes = sac_output_has_coco_classes(setup->job);
    sac_result res = sac_outfile_open(setup->ctx, path, &r->file);
    r->file.keep = format->cut;
    sac_text_add(&r->text, format->begin);
    if (res == SAC_OK)
        res = write_text(r);
    r->file.whole = 0; /* a header alone is worth no name */
    if (res == SAC_OK)
        *out = &r->base;
    else
        records_destroy(&r->base);
    return res;
}

sac_result sac_mot_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    return create(setup, &mot, out);
}

sac_result sac_csv_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    return create(setup, &csv, out);
}

sac_result sac_kitti_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    return create(setup, &kitti, out);
}

sac_result sac_coco_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    return create(setup, &coco, out);
}
