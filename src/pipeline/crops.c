/* SPDX-License-Identifier: Apache-2.0 */
/* The best view of each object as a JPEG file, DIR/CLASS/ID.jpg.
 *
 * A view that is clearly better than the one before is cut out of the frame, on the frame's device,
 * and kept as JPEG. A view that has been the best for a while is written, so that a live run shows
 * its objects; the others are written at the end. Memory is bounded: with many objects the oldest
 * views are written sooner, and with very many the oldest objects are forgotten (if one comes back,
 * its file is written again). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/search.h"
#include "media/media.h"
#include "pipeline/output.h"
#include "vision/fit.h"
#include "vision/vision.h"

enum { VIEWS_MAX = 4096, HELD_BYTES_MAX = 32 << 20, SETTLED_US = 5000000 };
/* A view must be this much better to be cropped; a person who walks up to the camera is cropped
 * some tens of times. */
static const double worth_it = 1.2;

struct view {
    int64_t  id;
    double   quality;
    int64_t  taken_us, seen_us;
    int      class_id;
    bool     written; /* a file exists, in the folder of its class at the time */
    uint8_t *jpeg;    /* [bytes]; NULL: nothing to write */
    size_t   bytes;
};

struct crops {
    struct sac_output         base;
    sac_context              *ctx;
    struct sac_job           *job;
    struct sac_device_stream *stream;
    const char               *folder; /* the parameters' */
    struct view              *views;  /* [count], by rising id */
    size_t                    count, capacity, held;
};

/* ---- files ---- */

/* Create the folder and its missing parents. */
static sac_result make_folder(sac_context *ctx, const char *path)
{
    char part[4096];
    int  length = snprintf(part, sizeof part, "%s", path);
    if (length < 1 || length >= (int)sizeof part)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "crops: a folder's name of %d bytes", length);
    for (char *p = part + 1;; p++) {
        const char end = *p;
        if (end && end != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return SAC_FAIL(ctx, SAC_ERR_IO, "cannot make folder '%s': %s", part, strerror(errno));
        if (!end)
            break;
        *p = end;
    }
    struct stat st;
    errno = ENOTDIR;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, W_OK | X_OK) == 0)
        return SAC_OK;
    return SAC_FAIL(ctx, SAC_ERR_IO, "cannot write crops to '%s': %s", path, strerror(errno));
}

/* A class name is any text; as a folder name it must not lead out of our folder. */
static void name_folder(const struct crops *c, int class_id, char *out, size_t size)
{
    const char *name = sac_job_class_name(c->job, class_id);
    if (name && name[0])
        snprintf(out, size, "%.100s", name);
    else
        snprintf(out, size, "%d", class_id);
    for (char *p = out; *p; p++)
        if (*p == '/' || (unsigned char)*p < 0x20 || *p == 0x7f || (p == out && *p == '.'))
            *p = '_';
}

static sac_result write_file(struct crops *c, const struct view *v)
{
    struct sac_outfile file;
    char               name[128], path[4096];
    name_folder(c, v->class_id, name, sizeof name);
    int        length = snprintf(path, sizeof path, "%s/%s", c->folder, name);
    sac_result res = make_folder(c->ctx, path);
    if (res != SAC_OK)
        return res;
    if (length + 32 >= (int)sizeof path)
        return SAC_FAIL(c->ctx, SAC_ERR_ARG, "'%s': too long a name for a folder of crops",
                        c->folder);
    snprintf(path + length, sizeof path - (size_t)length, "/%05lld.jpg", (long long)v->id);
    res = sac_outfile_open(c->ctx, path, &file);
    if (res != SAC_OK)
        return res;
    fwrite(v->jpeg, 1, v->bytes, file.file);
    return sac_outfile_finish(&file);
}

static sac_result write_view(struct crops *c, struct view *v)
{
    if (!v->jpeg)
        return SAC_OK;
    sac_result res = write_file(c, v);
    c->held -= v->bytes;
    sac_free(v->jpeg);
    v->jpeg = NULL;
    if (res == SAC_OK)
        v->written = true, c->base.empty = false;
    return res;
}

/* ---- views ---- */

static int64_t id_of(const void *views, size_t i)
{
    return ((const struct view *)views)[i].id;
}

static sac_result forget_oldest(struct crops *c)
{
    size_t oldest = 0;
    for (size_t i = 1; i < c->count; i++)
        if (c->views[i].seen_us < c->views[oldest].seen_us)
            oldest = i;
    sac_result res = write_view(c, &c->views[oldest]);
    c->count--;
    memmove(&c->views[oldest], &c->views[oldest + 1], (c->count - oldest) * sizeof *c->views);
    return res;
}

static sac_result view_of(struct crops *c, int64_t id, struct view **out)
{
    size_t     at = sac_lower_bound(c->views, c->count, id, id_of);
    sac_result res = SAC_OK;
    if (at == c->count || c->views[at].id != id) {
        if (c->count == VIEWS_MAX)
            res = forget_oldest(c);
        if (!sac_grow((void **)&c->views, &c->capacity, c->count + 1, sizeof *c->views))
            res = SAC_FAIL(c->ctx, SAC_ERR_MEMORY, "no memory for the views of %zu objects",
                           c->count);
        if (res != SAC_OK)
            return res;
        at = sac_lower_bound(c->views, c->count, id, id_of);
        memmove(&c->views[at + 1], &c->views[at], (c->count - at) * sizeof *c->views);
        c->views[at] = (struct view){.id = id};
        c->count++;
    }
    *out = &c->views[at];
    return SAC_OK;
}

static double area_of(const struct sac_rect *r)
{
    return (double)(r->x1 - r->x0) * (double)(r->y1 - r->y0);
}

static double overlap_of(const struct sac_rect *r, const struct sac_track *t)
{
    double width = (double)SAC_MIN(r->x1, t->x1) - (double)SAC_MAX(r->x0, t->x0);
    double height = (double)SAC_MIN(r->y1, t->y1) - (double)SAC_MAX(r->y0, t->y0);
    return width > 0 && height > 0 ? width * height : 0;
}

/* A view's worth. Score counts more than size: the largest boxes of a track often hold two people
 * who pass each other. Area that another object's box covers counts nothing; a box that the frame's
 * edge may cut counts half. 0 when it is no better than `least`, found early. */
static double quality_of(const struct sac_item *item, size_t i, const struct sac_rect *crop,
                         double least)
{
    const struct sac_track *t = &item->tracks[i];
    const double            area = area_of(crop), score = (double)t->score;
    const double            upper = sqrt(area) * score * score;
    double                  covered = 0;
    if (!(upper > least))
        return 0;
    for (size_t k = 0; k < item->track_count; k++)
        if (k != i)
            covered = SAC_MAX(covered, overlap_of(crop, &item->tracks[k]));
    const bool edge = t->x0 <= 0 || t->y0 <= 0 || t->x1 >= (float)item->frame->width ||
                      t->y1 >= (float)item->frame->height;
    const double quality = upper * (1 - covered / area) * (edge ? 0.5 : 1);
    return quality > least ? quality : 0;
}

/* ---- pixels ---- */

/* Whole pixels, so that the crop is not resampled. */
static struct sac_rect crop_of(const struct sac_track *t, const sac_frame *frame)
{
    const struct sac_detection box = {
        .x0 = floorf(t->x0), .y0 = floorf(t->y0), .x1 = ceilf(t->x1), .y1 = ceilf(t->y1)};
    return sac_crop_of_box(&box, frame->width, frame->height);
}

static sac_result encode(struct crops *c, const uint8_t *rgb, const struct sac_preprocess *pre,
                         struct view *v)
{
    uint8_t   *jpeg = NULL;
    size_t     bytes = 0;
    sac_result res = sac_jpeg_encode(c->ctx, rgb, pre->width, pre->height, &jpeg, &bytes);
    if (res != SAC_OK)
        return res;
    c->held += bytes - (v->jpeg ? v->bytes : 0);
    sac_free(v->jpeg);
    v->jpeg = jpeg;
    v->bytes = bytes;
    return SAC_OK;
}

/* Copy a crop from a device with memory of its own. */
static sac_result download(struct crops *c, const sac_frame *frame, const void *from, size_t bytes,
                           struct sac_buffer **out)
{
    sac_device *dev = c->job->dev;
    char        what[128];
    sac_frame_name(frame, "a crop of", what, sizeof what);
    sac_result res = sac_host_buffer_create(dev, bytes, "crops", out);
    return res == SAC_OK ? sac_device_copy(dev, c->stream, sac_buffer_data(*out), from, bytes,
                                           SAC_COPY_DEVICE_TO_HOST, SAC_COPY_CROP, what)
                         : res;
}

static sac_result take(struct crops *c, const sac_frame *frame, const struct sac_rect *crop,
                       struct view *v)
{
    sac_device           *dev = c->job->dev;
    sac_tensor           *pixels = NULL;
    struct sac_buffer    *host = NULL;
    struct sac_preprocess pre = sac_preprocess_default();
    pre.width = (int)(crop->x1 - crop->x0);
    pre.height = (int)(crop->y1 - crop->y0);
    pre.fit = SAC_FIT_STRETCH;
    pre.layout = SAC_TENSOR_LAYOUT_NHWC;
    pre.dtype = SAC_U8;
    const struct sac_preprocess_job job = {frame, *crop};
    const struct sac_tensor_desc    desc = sac_preprocess_desc(&pre, 1);
    sac_result                      res = sac_tensor_create(dev, &desc, "crops", &pixels);
    if (res == SAC_OK) /* work queued there may still use the memory */
        res = dev->ops->stream_after(dev, c->stream, NULL);
    if (res == SAC_OK)
        res = sac_preprocess_run_on(dev, c->stream, &pre, &job, 1, pixels);
    if (res == SAC_OK && sac_device_apart(dev)) /* else the encoder reads them in place */
        res = download(c, frame, sac_tensor_data(pixels), (size_t)sac_tensor_desc_bytes(&desc),
                       &host);
    sac_result done = dev->ops->stream_wait(c->stream);
    res = res == SAC_OK ? done : res;
    if (res == SAC_OK)
        res = encode(c, host ? sac_buffer_data(host) : sac_tensor_data(pixels), &pre, v);
    sac_buffer_unref(&host);
    sac_tensor_unref(&pixels);
    return res;
}

static sac_result look_at(struct crops *c, const struct sac_item *item, size_t i)
{
    const struct sac_track *t = &item->tracks[i];
    const struct sac_rect   crop = crop_of(t, item->frame);
    struct view            *v = NULL;
    sac_result              res = view_of(c, t->id, &v);
    if (res != SAC_OK)
        return res;
    v->seen_us = item->pts_us;
    const double quality = quality_of(item, i, &crop, v->quality * worth_it);
    if (!(quality > 0))
        return SAC_OK;
    res = take(c, item->frame, &crop, v);
    v->quality = quality;
    v->taken_us = item->pts_us;
    if (!v->written)
        v->class_id = t->class_id;
    return res;
}

/* ---- the output ---- */

/* Write the views that have been the best for a while, and the oldest of too many. */
static sac_result write_settled(struct crops *c, int64_t now_us)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < c->count && res == SAC_OK; i++)
        if (now_us - c->views[i].taken_us >= SETTLED_US)
            res = write_view(c, &c->views[i]);
    while (c->held > HELD_BYTES_MAX && res == SAC_OK) {
        struct view *oldest = NULL;
        for (size_t i = 0; i < c->count; i++)
            if (c->views[i].jpeg && (!oldest || c->views[i].taken_us < oldest->taken_us))
                oldest = &c->views[i];
        res = write_view(c, oldest);
    }
    return res;
}

static sac_result crops_write(struct sac_output *out, struct sac_item *item)
{
    struct crops *c = (struct crops *)out;
    const int64_t begun = sac_books_begin(c->job->books, SAC_STAGE_CROP);
    sac_result    res = SAC_OK;
    for (size_t i = 0; i < item->track_count && res == SAC_OK; i++)
        res = look_at(c, item, i);
    if (res == SAC_OK)
        res = write_settled(c, item->pts_us);
    sac_books_finish(c->job->books, SAC_STAGE_CROP, begun, item);
    return res;
}

static sac_result crops_finish(struct sac_output *out)
{
    struct crops *c = (struct crops *)out;
    sac_result    res = SAC_OK;
    for (size_t i = 0; i < c->count && res == SAC_OK; i++)
        res = write_view(c, &c->views[i]);
    return res;
}

static void crops_destroy(struct sac_output *out)
{
    struct crops *c = (struct crops *)out;
    for (size_t i = 0; i < c->count; i++)
        sac_free(c->views[i].jpeg);
    sac_free(c->views);
    c->job->dev->ops->stream_destroy(&c->stream);
    sac_free(c);
}

static const struct sac_output_ops crops_ops = {
    .name = "crops",
    .bit = SAC_OUTPUT_CROPS,
    .times_itself = true,
    .write = crops_write,
    .finish = crops_finish,
    .destroy = crops_destroy,
};

static sac_result check(const struct sac_output_setup *setup)
{
    sac_device *dev = setup->job->dev;
    const char *folder = setup->params->crops_out;
    if (strcmp(folder, "-") == 0)
        return SAC_FAIL(setup->ctx, SAC_ERR_ARG,
                        "crops are files of a folder: they can't go to standard output");
    if (!setup->src)
        return SAC_FAIL(setup->ctx, SAC_ERR_ARG,
                        "'%s': crops need the video that they are cut from", folder);
    if (sac_device_apart(dev) && atomic_load(&dev->strict))
        return SAC_FAIL(
            setup->ctx, SAC_ERR_COPY,
            "'%s': crops come to the host from %s (crop-download), and zero-copy is strict", folder,
            sac_device_name(dev));
    return SAC_OK;
}

sac_result sac_crops_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    sac_device   *dev = setup->job->dev;
    sac_result    res = check(setup);
    struct crops *c = res == SAC_OK ? sac_new(struct crops) : NULL;
    if (res != SAC_OK)
        return res;
    if (!c)
        return SAC_FAIL(setup->ctx, SAC_ERR_MEMORY, "no memory for the crops");
    c->base.ops = &crops_ops;
    c->base.empty = true;
    c->ctx = setup->ctx;
    c->job = setup->job;
    c->folder = setup->params->crops_out;
    res = dev->ops->stream_create(dev, &c->stream);
    if (res == SAC_OK)
        res = make_folder(c->ctx, c->folder);
    if (res == SAC_OK)
        *out = &c->base;
    else
        crops_destroy(&c->base);
    return res;
}
