/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes as COCO results: a run-length mask for each frame, or, where the network tells them apart,
 * for each instance. */
#include "base/json.h"
#include "base/outfile.h"
#include "heads/heads.h"
#include "mask/rle.h"
#include "media/media.h"
#include "pipeline/output.h"
#include "pipeline/tasks/segment.h"

struct coco {
    struct sac_output   base;
    sac_context        *ctx;
    struct sac_job     *job;
    struct sac_download down; /* of a GPU's mattes, of the size below */
    int                 width, height;
    struct sac_outfile  file;
    struct sac_text     text;
    struct sac_rle      rle;
    int                 category;
    bool                any; /* a record was written */
    /* Of instances: */
    bool                     each; /* a record for each */
    bool                     coco_classes;
    struct sac_instance_mask mask;
};

static sac_result write_text(struct coco *c)
{
    if (c->text.failed)
        return SAC_FAIL(c->ctx, SAC_ERR_MEMORY, "no memory for the COCO results");
    fwrite(c->text.data, 1, c->text.length, c->file.file);
    sac_text_clear(&c->text);
    return sac_outfile_check(&c->file);
}

/* The mean of the matte inside, as results need a score. */
static double score_of(const sac_frame *matte)
{
    uint64_t sum = 0, count = 0;
    for (int y = 0; y < matte->height; y++) {
        const uint8_t *row = matte->plane[0] + (size_t)y * matte->pitch_bytes[0];
        for (int x = 0; x < matte->width; x++) {
            sum += row[x] >= 128 ? row[x] : 0;
            count += row[x] >= 128;
        }
    }
    return count ? (double)sum / (255.0 * (double)count) : 0;
}

/* The matte in host memory; *memory, if set, holds it. */
static sac_result bring(struct coco *c, sac_frame *matte, sac_frame *host,
                        struct sac_buffer **memory)
{
    sac_device *gpu = sac_device_apart(matte->device);
    *host = *matte;
    if (!gpu)
        return sac_frame_wait(matte);
    if (matte->width != c->width || matte->height != c->height)
        sac_download_close(&c->down);
    c->width = matte->width;
    c->height = matte->height;
    sac_result res = c->down.dev ? SAC_OK : sac_download_open(&c->down, gpu, matte);
    if (res == SAC_OK)
        res = sac_download_begin(&c->down, matte, true, matte);
    return res == SAC_OK ? sac_download_end_wait(&c->down, host, memory) : res;
}

static void open_record(struct coco *c, struct sac_json *json, const struct sac_item *item,
                        int category)
{
    sac_text_add(&c->text, c->any ? ",\n" : "");
    c->any = true;
    *json = (struct sac_json){.text = &c->text};
    sac_json_open(json, NULL, '{');
    sac_json_int(json, "image_id", item->number + 1);
    sac_json_int(json, "category_id", category);
}

/* A frame without anybody has no record, as everywhere in COCO. */
static sac_result write_record(struct coco *c, const struct sac_item *item, const sac_frame *matte)
{
    sac_result res = sac_rle_encode(c->ctx, matte->plane[0], matte->pitch_bytes[0], matte->width,
                                    matte->height, 128, &c->rle);
    if (res != SAC_OK || sac_rle_area(&c->rle) == 0)
        return res;
    struct sac_json json;
    open_record(c, &json, item, c->category);
    sac_rle_json(&c->rle, &json, "segmentation");
    sac_json_fixed(&json, "score", score_of(matte), 4);
    sac_json_close(&json, '}');
    return write_text(c);
}

/* ---- each instance ---- */

/* As in the tracks' COCO file. */
static int category_of_class(const struct coco *c, int class_id)
{
    const char *name = sac_job_class_name(c->job, class_id + 1); /* behind the background */
    const int   number = c->coco_classes && name ? sac_coco_number(name) : 0;
    return number ? number : class_id + 1;
}

/* Within the eye. */
static void add_box(struct sac_json *json, const struct sac_segmenter_found_eye *eye,
                    const struct sac_detection *b)
{
    const struct sac_matte_axis *x = &eye->view.x, *y = &eye->view.y;
    const float                  x0 = SAC_CLAMP(b->x0, (float)x->from, (float)x->until),
                x1 = SAC_CLAMP(b->x1, (float)x->from, (float)x->until),
                y0 = SAC_CLAMP(b->y0, (float)y->from, (float)y->until),
                y1 = SAC_CLAMP(b->y1, (float)y->from, (float)y->until);
    sac_json_open(json, "bbox", '[');
    sac_json_fixed(json, NULL, (double)x0 + eye->left, 2);
    sac_json_fixed(json, NULL, (double)y0 + eye->top, 2);
    sac_json_fixed(json, NULL, (double)x1 - (double)x0, 2);
    sac_json_fixed(json, NULL, (double)y1 - (double)y0, 2);
    sac_json_close(json, ']');
}

/* A box that has no pixel inside is no instance. */
static sac_result write_instance(struct coco *c, const struct sac_item *item,
                                 const struct sac_segmenter_found_eye *eye,
                                 const struct sac_instance            *one)
{
    struct sac_instance_mask *m = &c->mask;
    sac_result                res = sac_instance_draw(c->ctx, one, &eye->view, m);
    if (res != SAC_OK)
        return res;
    const struct sac_rle_part part = {m->pixels,        (size_t)(m->x1 - m->x0), eye->left + m->x0,
                                      eye->top + m->y0, m->x1 - m->x0,           m->y1 - m->y0};
    res = sac_rle_encode_part(c->ctx, &part, item->frame->width, item->frame->height, 1, &c->rle);
    const uint64_t area = res == SAC_OK ? sac_rle_area(&c->rle) : 0;
    if (area == 0)
        return res;
    struct sac_json json;
    open_record(c, &json, item, category_of_class(c, one->box.class_id));
    add_box(&json, eye, &one->box);
    sac_json_int(&json, "area", (int64_t)area);
    sac_rle_json(&c->rle, &json, "segmentation");
    sac_json_fixed(&json, "score", (double)one->box.score, 4);
    sac_json_close(&json, '}');
    return write_text(c);
}

static sac_result write_instances(struct coco *c, const struct sac_item *item)
{
    const struct sac_segmenter_found *found = sac_segment_found(item);
    sac_result                        res = SAC_OK;
    for (int i = 0; found && i < SAC_SEGMENTER_EYES_MAX; i++)
        for (size_t k = 0; k < found->eye[i].count && res == SAC_OK; k++)
            res = write_instance(c, item, &found->eye[i], &found->eye[i].items[k]);
    return res;
}

/* ---- the file ---- */

static sac_result coco_write(struct sac_output *out, struct sac_item *item)
{
    struct coco       *c = (struct coco *)out;
    struct sac_buffer *memory = NULL;
    sac_frame          matte;
    if (c->each)
        return write_instances(c, item);
    sac_result res = bring(c, sac_segment_matte(item), &matte, &memory);
    if (res == SAC_OK)
        res = write_record(c, item, &matte);
    sac_buffer_unref(&memory);
    return res;
}

static sac_result coco_finish(struct sac_output *out)
{
    struct coco *c = (struct coco *)out;
    sac_text_add(&c->text, "\n]\n");
    sac_result res = write_text(c);
    return res == SAC_OK ? sac_outfile_finish(&c->file) : res;
}

static void coco_destroy(struct sac_output *out)
{
    struct coco *c = (struct coco *)out;
    sac_outfile_abandon(&c->file);
    sac_text_finish(&c->text);
    sac_rle_finish(&c->rle);
    sac_instance_mask_finish(&c->mask);
    sac_download_close(&c->down);
    sac_free(c);
}

static const struct sac_output_ops coco_ops = {
    .name = "matte records",
    .bit = SAC_OUTPUT_VIDEO,
    .write = coco_write,
    .finish = coco_finish,
    .destroy = coco_destroy,
};

static const struct sac_segmenter *segmenter_of(const struct sac_job *job)
{
    return ((const struct sac_segment_run *)job->run)->seg;
}

/* Of whole mattes: COCO's number of the one class that is the matte, else the class counted from 1;
 * a person where there are no classes, or several together. */
static int category_of(const struct sac_job *job)
{
    const struct sac_segmenter *seg = segmenter_of(job);
    if (seg->wanted_count != 1)
        return sac_coco_number("person");
    const int number = sac_coco_number(sac_segmenter_class_name(seg, seg->wanted[0]));
    return number ? number : seg->wanted[0] + !seg->instances.used; /* whose background is 0 */
}

/* Checked before the first frame. */
static sac_result check_strict(const struct sac_job *job)
{
    sac_device *dev = job->dev;
    if (!sac_device_apart(dev) || !atomic_load(&dev->strict))
        return SAC_OK;
    const bool each = segmenter_of(job)->instances.shown;
    return SAC_FAIL(dev->ctx, SAC_ERR_COPY,
                    "COCO's masks are encoded on the host, so every %s of %s would be downloaded "
                    "(%s), and zero-copy is strict",
                    each ? "mask" : "matte", sac_device_name(dev),
                    sac_copy_reason_name(each ? SAC_COPY_MASK : SAC_COPY_OVERLAY));
}

sac_result sac_matte_records_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    sac_result res = check_strict(setup->job);
    if (res != SAC_OK)
        return res;
    struct coco *c = sac_new(struct coco);
    if (!c)
        return SAC_FAIL(setup->ctx, SAC_ERR_MEMORY, "no memory for the COCO results");
    c->base.ops = &coco_ops;
    c->ctx = setup->ctx;
    c->job = setup->job;
    c->each = segmenter_of(setup->job)->instances.shown;
    c->coco_classes = sac_output_has_coco_classes(setup->job);
    c->category = category_of(setup->job);
    res = sac_outfile_open(setup->ctx, setup->params->video_out, &c->file);
    sac_text_add(&c->text, "[\n");
    if (res == SAC_OK)
        res = write_text(c);
    if (res == SAC_OK)
        *out = &c->base;
    else
        coco_destroy(&c->base);
    return res;
}
