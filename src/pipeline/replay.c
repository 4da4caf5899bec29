/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/replay.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <saccade/models.h>

#include "heads/heads.h"
#include "media/media.h"
#include "pipeline/task.h"
#include "pipeline/tasks/track.h"
#include "reid/embeddings.h"
#include "track/core.h"

/* Incremented when what is recorded changes its form or its meaning. */
enum { REPLAY_VERSION = 1, MOTION_VERSION = 1, FRAMES_VERSION = 1 };

sac_result sac_replay_open_cache(sac_context *ctx, const struct sac_pipeline_params *params,
                                 sac_cache **out)
{
    const char *folder = params->disk_cache;
    if (!folder || !*folder || strcmp(folder, "off") == 0)
        return SAC_OK;
    struct sac_cache_params p = sac_cache_params_default();
    p.folder = strcmp(folder, "auto") == 0 ? NULL : folder;
    if (params->disk_cache_bytes)
        p.bytes_max = params->disk_cache_bytes;
    return sac_cache_open(ctx, &p, out);
}

/* ---- the keys: all that boxes and embeddings depend on, and nothing of trackers ---- */

/* A text of the user's, with its length, so that none can look like the next line. */
static void add_text(FILE *key, const char *name, const char *text)
{
    fprintf(key, "%s %zu:%s\n", name, text ? strlen(text) : 0, text ? text : "");
}

/* To the last bit, in any locale. */
static void add_number(FILE *key, const char *name, float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    fprintf(key, "%s %08x\n", name, (unsigned)bits);
}

static sac_result add_file(const struct sac_job *job, FILE *key, const char *name, const char *path)
{
    uint64_t   sum[2], bytes;
    char       text[SAC_SUM_TEXT];
    sac_result res = sac_sum_file(job->ctx, path, job->unwanted, job->unwanted_user, sum, &bytes);
    if (res != SAC_OK)
        return res;
    sac_sum_text(sum, text);
    fprintf(key, "%s %llu %s\n", name, (unsigned long long)bytes, text);
    return SAC_OK;
}

/* A model's file, and the YAML file beside it. */
static sac_result add_model(const struct sac_job *job, FILE *key, const char *path)
{
    sac_result res = add_file(job, key, "model", path);
    char      *yaml = sac_contract_yaml_path(path);
    if (res == SAC_OK && yaml && access(yaml, F_OK) == 0)
        res = add_file(job, key, "contract", yaml);
    sac_free(yaml);
    return res;
}

static void add_source(FILE *key, const struct sac_source_params *p)
{
    fprintf(key, "part %lld %lld %d\nrotate %d\ndecode %d\n", (long long)p->start_us,
            (long long)p->duration_us, SAC_MAX(p->every, 1), (int)p->rotate, (int)p->decode);
    uint64_t fps; /* an array's frames have no other times */
    memcpy(&fps, &p->fps, sizeof fps);
    fprintf(key, "fps %016llx\n", (unsigned long long)fps);
}

static void add_skipping(FILE *key, const struct sac_track_job_params *p)
{
    add_number(key, "skip_still", p->skip_still);
    fprintf(key, "skip_max %d\n", p->skip_still > 0 ? p->skip_max : 0);
}

static sac_result add_detector(const struct sac_job *job, FILE *key)
{
    const struct sac_track_job_params *p = &job->params;
    const struct sac_detector_params  *det = &p->detector_params;
    sac_result                         res = add_model(job, key, p->detector);
    add_text(key, "head", det->head);
    if (res == SAC_OK && det->head && sac_head_is_library(det->head))
        res = add_file(job, key, "plugin", det->head);
    add_text(key, "preprocess", det->preprocess);
    add_text(key, "classes", det->classes);
    add_number(key, "score_min", det->score_min);
    add_number(key, "nms_iou", det->nms_iou);
    fprintf(key, "detection_max %d\nprecision %d\n", det->detection_max, (int)det->precision);
    if (p->device_params.deterministic) /* a batch's size has kernels of its own */
        fprintf(key, "deterministic, batches of %d, %d\n", p->inference_batch_max, det->batch_max);
    add_skipping(key, p);
    return res;
}

/* A key that is being written. */
struct key {
    FILE  *file;
    char  *text;
    size_t size;
};

static sac_result fail_memory(const struct sac_job *job)
{
    return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a key of the disk cache");
}

static sac_result key_begin(const struct sac_job *job, struct key *k)
{
    k->file = open_memstream(&k->text, &k->size);
    return k->file ? SAC_OK : fail_memory(job);
}

static sac_result key_end(const struct sac_job *job, struct key *k, sac_result res, char **out)
{
    if (fclose(k->file) != 0 && res == SAC_OK)
        res = fail_memory(job);
    if (res == SAC_OK)
        *out = k->text;
    else
        free(k->text);
    return res;
}

sac_result sac_replay_base(const struct sac_job *job, const struct sac_source_params *source,
                           const char *input, char **out)
{
    struct key k;
    sac_result res = key_begin(job, &k);
    if (res != SAC_OK)
        return res;
    fprintf(k.file, "saccade " SAC_VERSION "\n");
    res = add_file(job, k.file, "clip", input);
    add_source(k.file, source);
    add_text(k.file, "device", job->dev->ops->name);
    add_text(k.file, "which", sac_device_description(job->dev));
    if (getenv("SACCADE_WITHOUT")) /* optimisations change the last bits, or there is a fault */
        add_text(k.file, "without", getenv("SACCADE_WITHOUT"));
    return key_end(job, &k, res, out);
}

sac_result sac_replay_key(const struct sac_job *job, const char *base, char **out)
{
    struct key k;
    sac_result res = key_begin(job, &k);
    if (res != SAC_OK)
        return res;
    fprintf(k.file, "boxes %d of\n%s", (int)REPLAY_VERSION, base);
    return key_end(job, &k, add_detector(job, k.file), out);
}

sac_result sac_replay_looks_key(const struct sac_job *job, const char *boxes, const char *reid,
                                char **out)
{
    const struct sac_embedder_params *p = &job->params.reid_params;
    struct key                        k;
    sac_result                        res = key_begin(job, &k);
    if (res != SAC_OK)
        return res;
    fprintf(k.file, "embeddings of\n%s", boxes);
    res = add_model(job, k.file, reid);
    add_text(k.file, "preprocess", p->preprocess);
    fprintf(k.file, "precision %d\n", (int)p->precision);
    if (job->params.device_params.deterministic)
        fprintf(k.file, "deterministic, batches of %d\n", p->batch_max);
    return key_end(job, &k, res, out);
}

sac_result sac_replay_motion_key(const struct sac_job *job, const char *boxes, char **out)
{
    char *key = NULL;
    if (asprintf(&key, "camera motion %d of\n%s", (int)MOTION_VERSION, boxes) < 0)
        return fail_memory(job);
    *out = key;
    return SAC_OK;
}

sac_result sac_replay_frames_key(const struct sac_job *job, const char *base,
                                 const struct sac_preprocess *pre, char **out)
{
    struct key k;
    sac_result res = key_begin(job, &k);
    if (res != SAC_OK)
        return res;
    fprintf(k.file, "prepared frames %d of\n%s", (int)FRAMES_VERSION, base);
    fprintf(k.file, "size %dx%d\nfit %d\nfilter %d\norder %d\nlayout %d\ndtype %d\n", pre->width,
            pre->height, (int)pre->fit, (int)pre->filter, (int)pre->order, (int)pre->layout,
            (int)pre->dtype);
    for (int i = 0; i < 3; i++) {
        add_number(k.file, "mean", pre->mean[i]);
        add_number(k.file, "scale", pre->scale[i]);
        add_number(k.file, "fill", pre->fill[i]);
    }
    add_skipping(k.file, &job->params);
    return key_end(job, &k, SAC_OK, out);
}

sac_result sac_replay_times_key(const struct sac_job *job, const char *frames, char **out)
{
    char *key = NULL;
    if (asprintf(&key, "times of\n%s", frames) < 0)
        return fail_memory(job);
    *out = key;
    return SAC_OK;
}

/* ---- looking up ---- */

const struct sac_replay_about *sac_replay_about(const struct sac_replay *r)
{
    return sac_cached_bytes(r->boxes, NULL);
}

const char *sac_replay_class(const struct sac_replay *r, int i)
{
    const char *name = (const char *)(sac_replay_about(r) + 1);
    while (i-- > 0)
        name += strlen(name) + 1;
    return name;
}

/* Behind the names of the classes, at an address that 8 divides; NULL: they don't fit. */
static const uint8_t *frames_of(const uint8_t *bytes, size_t size)
{
    const struct sac_replay_about *about = (const void *)bytes;
    size_t                         at = sizeof *about;
    if (size < at || about->version != REPLAY_VERSION || about->bytes != sizeof *about ||
        about->class_count < 0)
        return NULL;
    for (int i = 0; i < about->class_count; i++) {
        const uint8_t *end = memchr(bytes + at, 0, size - at);
        if (!end)
            return NULL;
        at = (size_t)(end - bytes) + 1;
    }
    at = (at + 7) / 8 * 8;
    return at <= size ? bytes + at : NULL;
}

/* Nothing is believed that the sum alone has checked: the entry may be another program's. */
static bool count_frames(struct sac_replay *r, size_t *boxes)
{
    size_t         size;
    const uint8_t *bytes = sac_cached_bytes(r->boxes, &size),
                  *at = bytes ? frames_of(bytes, size) : NULL, *end = bytes + size;
    r->at = at;
    *boxes = 0;
    for (r->frames = 0; at && at < end; r->frames++) {
        const struct sac_replay_frame *frame = (const void *)at;
        if ((size_t)(end - at) < sizeof *frame ||
            frame->count > ((size_t)(end - at) - sizeof *frame) / sizeof(struct sac_detection))
            return false;
        at += sizeof *frame + frame->count * sizeof(struct sac_detection);
        *boxes += frame->count;
    }
    return at != NULL && r->frames > 0;
}

static void drop(struct sac_replay *r, sac_cached **cached, const char *what)
{
    sac_cached_release(cached);
    sac_log(r->ctx, SAC_LOG_WARN,
            "%s: %s in the disk cache are not what they should be; they are "
            "made anew",
            r->name, what);
}

static sac_result look_up_boxes(struct sac_replay *r, size_t *boxes)
{
    size_t     size;
    sac_result res = sac_cache_get(r->cache, r->key, &r->boxes);
    if (res != SAC_OK)
        return res == SAC_AGAIN ? SAC_OK : res;
    if (!count_frames(r, boxes)) {
        drop(r, &r->boxes, "boxes");
        return SAC_OK;
    }
    const void *bytes = sac_cached_bytes(r->boxes, &size);
    sac_sum_init(&r->sum_out);
    sac_sum_add(&r->sum_out, bytes, size);
    sac_sum_end(&r->sum_out, r->sum);
    return SAC_OK;
}

/* The model of the embeddings that such a run wants; "": none. */
static sac_result reid_of(const struct sac_replay *r, const struct sac_job *job, char *out,
                          size_t size)
{
    const struct sac_track_job_params *p = &job->params;
    const struct sac_track_run        *t = (const struct sac_track_run *)job->run;
    const bool uses = sac_tracker_kind_uses_appearance(p->tracker.kind) != 0;
    out[0] = '\0';
    if (p->reid && (uses || p->reid_every))
        return sac_models_find(job->ctx, p->reid, out, size);
    if (!t->reid_auto || !uses || !r->boxes || !sac_replay_about(r)->persons)
        return SAC_OK;
    if (sac_models_find(job->ctx, "person_reid", out, size) == SAC_OK)
        return SAC_OK;
    sac_error_clear(job->ctx); /* tracking without appearance, as the task will log */
    out[0] = '\0';
    return SAC_OK;
}

/* dim and 0, [boxes,dim] float32, the sum of the boxes that they belong to. */
static bool fits(struct sac_replay *r, size_t boxes)
{
    size_t         size;
    int32_t        dim[4];
    uint64_t       sum[2];
    const uint8_t *bytes = sac_cached_bytes(r->looks, &size);
    if (size < sizeof dim + sizeof sum)
        return false;
    memcpy(dim, bytes, sizeof dim);
    memcpy(sum, bytes + size - sizeof sum, sizeof sum);
    if (dim[0] < 1 || (size - sizeof dim - sizeof sum) / sizeof(float) / (size_t)dim[0] != boxes ||
        boxes * (size_t)dim[0] * sizeof(float) != size - sizeof dim - sizeof sum ||
        sum[0] != r->sum[0] || sum[1] != r->sum[1])
        return false;
    r->dim = dim[0];
    r->look_at = (const void *)(bytes + sizeof dim);
    return true;
}

static sac_result look_up_looks(struct sac_replay *r, const struct sac_job *job, size_t boxes)
{
    char       reid[PATH_MAX], *key = NULL;
    sac_result res = reid_of(r, job, reid, sizeof reid);
    if (res != SAC_OK || !r->boxes || !reid[0])
        return res;
    res = sac_replay_looks_key(job, r->key, reid, &key);
    if (res == SAC_OK)
        res = sac_cache_get(r->cache, key, &r->looks);
    free(key);
    if (res == SAC_OK && !fits(r, boxes))
        drop(r, &r->looks, "embeddings");
    return res == SAC_AGAIN ? SAC_OK : res;
}

static bool wants_motion(const struct sac_job *job)
{
    const struct sac_tracker_params *p = &job->params.tracker;
    return p->camera_motion && sac_tracker_row_of(p->kind)->camera;
}

/* Of each frame what was seen in it, then the sum of the boxes that it belongs to. */
static bool fits_motion(struct sac_replay *r)
{
    size_t         size;
    uint64_t       sum[2];
    const uint8_t *at = sac_cached_bytes(r->motion, &size), *end = at + size;
    if (size < sizeof sum)
        return false;
    end -= sizeof sum;
    memcpy(sum, end, sizeof sum);
    r->motion_at = at;
    for (int64_t i = 0; i < r->frames; i++) {
        const struct sac_replay_motion *m = (const void *)at;
        if ((size_t)(end - at) < sizeof *m || m->count < 0 ||
            (size_t)m->count >
                ((size_t)(end - at) - sizeof *m) / sizeof(struct sac_camera_corner) ||
            m->shrink < 0 || m->shrink > SAC_CAMERA_SIZE_MAX)
            return false;
        at += sizeof *m + (size_t)m->count * sizeof(struct sac_camera_corner);
    }
    return at == end && sum[0] == r->sum[0] && sum[1] == r->sum[1];
}

static sac_result look_up_motion(struct sac_replay *r, const struct sac_job *job)
{
    char *key = NULL;
    if (!r->boxes || !wants_motion(job))
        return SAC_OK;
    sac_result res = sac_replay_motion_key(job, r->key, &key);
    if (res == SAC_OK)
        res = sac_cache_get(r->cache, key, &r->motion);
    free(key);
    if (res == SAC_OK && !fits_motion(r))
        drop(r, &r->motion, "camera motions");
    return res == SAC_AGAIN ? SAC_OK : res;
}

bool sac_replay_lacks_motion(const struct sac_replay *r, const struct sac_job *job)
{
    return !r->motion && wants_motion(job);
}

bool sac_replay_lacks_looks(const struct sac_replay *r, const struct sac_job *job)
{
    char reid[PATH_MAX];
    return !r->looks && reid_of(r, job, reid, sizeof reid) == SAC_OK && reid[0];
}

/* A picture is a run of one frame, which is no archive; a folder's are not read for a sum. */
static bool is_clip(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && !sac_name_is_picture(path);
}

sac_result sac_replay_open(sac_cache *cache, const struct sac_job *job,
                           const struct sac_pipeline_params *params, const char *name,
                           struct sac_replay **out)
{
    const char *path = params->input ? sac_input_path(params->input) : NULL;
    size_t      boxes = 0;
    if (path && access(path, F_OK) != 0)
        return SAC_OK; /* whoever opens it reports that */
    if (!path || !is_clip(path) || !job->params.detector || params->source.picture_count > 0) {
        sac_log(job->ctx, SAC_LOG_INFO, "%s: the disk cache keeps clips of files, and this is none",
                name);
        return SAC_OK;
    }
    struct sac_replay *r = sac_new(struct sac_replay);
    if (!r || !(r->name = sac_strdup(name)) || !(r->detector = sac_strdup(job->params.detector))) {
        sac_replay_close(&r);
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for what the disk cache keeps");
    }
    r->ctx = job->ctx;
    r->cache = cache;
    sac_result res = sac_replay_base(job, &params->source, path, &r->base);
    if (res == SAC_OK)
        res = sac_replay_key(job, r->base, &r->key);
    if (res == SAC_OK)
        res = look_up_boxes(r, &boxes);
    if (res == SAC_OK)
        res = look_up_looks(r, job, boxes);
    if (res == SAC_OK)
        res = look_up_motion(r, job);
    if (res == SAC_OK)
        *out = r;
    else
        sac_replay_close(&r);
    return res;
}

static void abandon(struct sac_replay *r)
{
    sac_cache_abandon(&r->boxes_out);
    sac_cache_abandon(&r->looks_out);
    sac_cache_abandon(&r->motion_out);
}

void sac_replay_close(struct sac_replay **replay)
{
    struct sac_replay *r = *replay;
    if (!r)
        return;
    *replay = NULL;
    abandon(r);
    sac_cached_release(&r->boxes);
    sac_cached_release(&r->looks);
    sac_cached_release(&r->motion);
    sac_free(r->rows);
    sac_free(r->name);
    sac_free(r->detector);
    free(r->base);
    free(r->key);
    sac_free(r);
}

/* ---- replaying ---- */

sac_result sac_replay_next(struct sac_replay *r, struct sac_item *item)
{
    const struct sac_replay_frame *frame = (const void *)r->at;
    if (r->taken == r->frames)
        return SAC_EOS;
    if (item->frame && (item->number != frame->number || item->pts_us != frame->pts_us))
        return SAC_FAIL(r->ctx, SAC_ERR_FORMAT,
                        "%s: frame %lld at %lld us, and the disk cache has frame %lld at %lld us: "
                        "clear it",
                        r->name, (long long)item->number, (long long)item->pts_us,
                        (long long)frame->number, (long long)frame->pts_us);
    item->number = frame->number;
    item->pts_us = frame->pts_us;
    item->source_pts_us = frame->source_pts_us;
    item->kept = frame;
    item->kept_looks = r->look_at;
    item->kept_motion = (const void *)r->motion_at;
    if (r->look_at)
        r->look_at += (size_t)frame->count * (size_t)r->dim;
    if (r->motion_at)
        r->motion_at += sizeof *item->kept_motion +
                        (size_t)item->kept_motion->count * sizeof(struct sac_camera_corner);
    r->at += sizeof *frame + frame->count * sizeof(struct sac_detection);
    r->taken++;
    return SAC_OK;
}

sac_result sac_replay_fill(sac_context *ctx, struct sac_item *item)
{
    const struct sac_replay_frame *frame = item->kept;
    if (!sac_grow((void **)&item->found.items, &item->found.capacity, frame->count,
                  sizeof *item->found.items))
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for %u detections", (unsigned)frame->count);
    if (frame->count)
        memcpy(item->found.items, frame + 1, frame->count * sizeof *item->found.items);
    item->found.count = frame->count;
    item->decided = true;
    item->still = frame->still != 0;
    return SAC_OK;
}

/* ---- recording ---- */

static void give_up(struct sac_replay *r, const char *why)
{
    abandon(r);
    sac_log(r->ctx, SAC_LOG_WARN, "%s: %s is kept in the disk cache: %s", r->name,
            r->boxes || r->boxes_kept ? "nothing but boxes" : "nothing", why);
}

static void give_up_for_fault(struct sac_replay *r)
{
    char why[512];
    sac_error_take(r->ctx, why, sizeof why);
    give_up(r, why);
}

static void put_boxes(struct sac_replay *r, const void *bytes, size_t size)
{
    sac_cache_add(&r->boxes_out, bytes, size);
    sac_sum_add(&r->sum_out, bytes, size);
}

static void begin_boxes(struct sac_replay *r, const struct sac_job *job,
                        const struct sac_source_info *info)
{
    const struct sac_track_run *t = (const struct sac_track_run *)job->run;
    static const char           zeros[8];
    size_t                      at = sizeof(struct sac_replay_about);
    struct sac_replay_about     about = {.version = REPLAY_VERSION,
                                         .bytes = sizeof about,
                                         .class_count = t->base.class_count,
                                         .class_kept = t->base.class_kept,
                                         .persons = sac_detector_keeps_only(t->det, "person"),
                                         .info = *info};
    memcpy(about.head, t->head, sizeof about.head);
    memcpy(about.kept, t->kept, sizeof about.kept);
    memcpy(about.engine, t->engine, sizeof about.engine);
    sac_sum_init(&r->sum_out);
    put_boxes(r, &about, sizeof about);
    for (int i = 0; i < t->base.class_count; i++) {
        const char *name = t->base.classes[i] ? t->base.classes[i] : "";
        put_boxes(r, name, strlen(name) + 1);
        at += strlen(name) + 1;
    }
    put_boxes(r, zeros, (8 - at % 8) % 8);
}

static sac_result begin_looks(struct sac_replay *r, const struct sac_job *job)
{
    const int32_t          dim[4] = {job->params.tracker.embedding_dim};
    char                  *key = NULL;
    sac_result             res = sac_replay_looks_key(job, r->key, job->params.reid, &key);
    struct sac_cache_label label = {
        .key = key, .kind = "embeddings", .clip = r->name, .model = job->params.reid};
    if (res == SAC_OK)
        res = sac_cache_begin(r->cache, &label, &r->looks_out);
    if (res == SAC_OK)
        sac_cache_add(&r->looks_out, dim, sizeof dim);
    r->records_looks = res == SAC_OK;
    free(key);
    return res;
}

static sac_result begin_motion(struct sac_replay *r, const struct sac_job *job)
{
    char                  *key = NULL;
    sac_result             res = sac_replay_motion_key(job, r->key, &key);
    struct sac_cache_label label = {.key = key, .kind = "motion", .clip = r->name};
    if (res == SAC_OK)
        res = sac_cache_begin(r->cache, &label, &r->motion_out);
    r->records_motion = res == SAC_OK;
    free(key);
    return res;
}

/* Its sum is of the file that is named alone. */
static bool has_more_files(const sac_model *model)
{
    return model && sac_model_file(model, 1);
}

void sac_replay_record(struct sac_replay *r, const struct sac_job *job,
                       const struct sac_source_info *info)
{
    const struct sac_track_run  *t = (const struct sac_track_run *)job->run;
    const struct sac_cache_label label = {
        .key = r->key, .kind = "boxes", .clip = r->name, .model = r->detector};
    sac_result res = SAC_OK;
    if ((t->det && has_more_files(sac_detector_model(t->det))) ||
        (t->emb && has_more_files(sac_embedder_model(t->emb)))) {
        give_up(r, "a model has weights in other files, which its key does not know");
        return;
    }
    if (!r->boxes)
        res = sac_cache_begin(r->cache, &label, &r->boxes_out);
    if (res == SAC_OK && !r->boxes)
        begin_boxes(r, job, info);
    if (res == SAC_OK && t->embeds && !r->looks)
        res = begin_looks(r, job);
    if (res == SAC_OK && sac_replay_lacks_motion(r, job) && !sac_device_apart(job->dev))
        res = begin_motion(r, job); /* a device's stays there */
    if (res != SAC_OK)
        give_up_for_fault(r);
}

/* Rows that may lie on a device, [count] of them from `first` on. */
static const float *rows_on_host(struct sac_replay *r, const struct sac_embeddings *f, size_t first,
                                 size_t count)
{
    const size_t       n = count * (size_t)f->dim;
    const float       *rows = sac_embeddings_data(f) + first * (size_t)f->dim;
    struct sac_device *dev = sac_device_apart(f->dev);
    sac_result         res = SAC_OK;
    if (!dev)
        return rows;
    if (!sac_grow((void **)&r->rows, &r->rows_capacity, n, sizeof *r->rows))
        res = SAC_FAIL(r->ctx, SAC_ERR_MEMORY, "no memory for %zu embeddings", count);
    if (res == SAC_OK)
        res = dev->ops->event_wait(f->ready);
    if (res == SAC_OK)
        res = sac_device_copy(dev, NULL, r->rows, rows, n * sizeof *rows, SAC_COPY_DEVICE_TO_HOST,
                              SAC_COPY_TENSOR_DOWNLOAD, "embeddings for the disk cache");
    return res == SAC_OK ? r->rows : NULL;
}

/* A frame's rows follow each other, as all its boxes have one. */
static void add_looks(struct sac_replay *r, const struct sac_item *item,
                      const struct sac_embeddings *f, const int32_t *row)
{
    const float *rows =
        f && row[0] >= 0 ? rows_on_host(r, f, (size_t)row[0], item->found.count) : NULL;
    if (rows)
        sac_cache_add(&r->looks_out, rows, item->found.count * (size_t)f->dim * sizeof *rows);
    else if (f)
        give_up_for_fault(r);
    else
        give_up(r, "a frame has no embeddings");
}

static void add_motion(struct sac_replay *r, const struct sac_camera_corners *corners)
{
    const struct sac_replay_motion motion = {.shrink = corners->shrink, .count = corners->count};
    sac_cache_add(&r->motion_out, &motion, sizeof motion);
    if (motion.count > 0)
        sac_cache_add(&r->motion_out, corners->at, (size_t)motion.count * sizeof *corners->at);
}

static bool records(const struct sac_replay *r)
{
    return r->boxes_out.file || r->looks_out.file || r->motion_out.file;
}

void sac_replay_add(struct sac_replay *r, const struct sac_item *item,
                    const struct sac_embeddings *embeddings, const int32_t *row,
                    const struct sac_camera_corners *corners)
{
    const size_t                  count = item->found.count;
    const struct sac_replay_frame frame = {.number = item->number,
                                           .pts_us = item->pts_us,
                                           .source_pts_us = item->source_pts_us,
                                           .count = (uint32_t)(item->still ? 0 : count),
                                           .still = item->still};
    if (!records(r))
        return;
    if (r->boxes_out.file) {
        put_boxes(r, &frame, sizeof frame);
        put_boxes(r, item->found.items, frame.count * sizeof *item->found.items);
    }
    if (r->looks_out.file && frame.count > 0)
        add_looks(r, item, embeddings, row);
    if (r->motion_out.file)
        add_motion(r, corners);
    r->recorded++;
}

/* What belongs to the boxes ends with their sum. */
static sac_result commit_for_boxes(const struct sac_replay *r, struct sac_cache_writer *out)
{
    if (!out->file)
        return SAC_OK;
    sac_cache_add(out, r->sum, sizeof r->sum);
    return sac_cache_commit(out);
}

void sac_replay_commit(struct sac_replay *r)
{
    if (!records(r))
        return;
    if (!r->ended || r->sent == 0 || r->recorded != r->sent) {
        abandon(r);
        sac_log(r->ctx, SAC_LOG_INFO,
                "%s: it was not seen to its end: nothing is kept in the disk "
                "cache",
                r->name);
        return;
    }
    if (r->boxes_out.file)
        sac_sum_end(&r->sum_out, r->sum);
    sac_result res = r->boxes_out.file ? sac_cache_commit(&r->boxes_out) : SAC_OK;
    r->boxes_kept = res == SAC_OK;
    if (res == SAC_OK)
        res = commit_for_boxes(r, &r->looks_out);
    if (res == SAC_OK)
        res = commit_for_boxes(r, &r->motion_out);
    if (res != SAC_OK)
        give_up_for_fault(r);
    else
        sac_log(r->ctx, SAC_LOG_DEBUG, "%s: %lld frames are kept in '%s'", r->name,
                (long long)r->recorded, sac_cache_folder_of(r->cache));
}
