/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tasks/segment.h"

#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "pipeline/inference.h"
#include "pipeline/tasks/early.h"
#include "pipeline/tasks/models.h"
#include "pipeline/tasks/region.h"
#include "pipeline/tasks/still.h"

static struct sac_segment_run *of(struct sac_task_run *run)
{
    return (struct sac_segment_run *)run;
}

/* ---- opening ---- */

static sac_result prepare(struct sac_task_run *run)
{
    struct sac_segment_params *p = run->job->segment;
    struct sac_segment_run    *t = of(run);
    pthread_mutex_init(&t->ended_lock, NULL);
    t->ended_ready = true;
    p->segmenter.class_map = p->as == SAC_SEGMENT_CLASSES;
    p->segmenter.stereo = p->stereo;
    p->segmenter.projection = p->projection;
    sac_result res = sac_segmenter_check_params(run->job->ctx, &p->segmenter);
    if (res != SAC_OK)
        return res;
    if (p->region && sac_facets_count(p->projection, p->segmenter.facets))
        return SAC_FAIL(run->job->ctx, SAC_ERR_ARG,
                        "region: the network sees facets of the whole eye; leave region out, or "
                        "let it see the eye as it is (facets none)");
    if (p->small_model && p->as == SAC_SEGMENT_CLASSES)
        return SAC_FAIL(run->job->ctx, SAC_ERR_ARG,
                        "small_model: a map of classes does not tell how sure it is; mattes do");
    if (!p->model || sac_task_is_word(p->model, "auto"))
        p->model = "person_seg";
    res = sac_task_find_model(run->job, &p->model);
    return res == SAC_OK && p->small_model ? sac_task_find_model(run->job, &p->small_model) : res;
}

static sac_result copy_classes(struct sac_segment_run *t)
{
    struct sac_job *job = t->base.job;
    const int       n = sac_segmenter_class_count(t->seg);
    char          **names = sac_arena_alloc(&job->strings, (size_t)SAC_MAX(n, 1) * sizeof *names);
    for (int i = 0; names && i < n; i++) {
        const char *name = sac_segmenter_class_name(t->seg, i);
        if (!(names[i] = sac_arena_strndup(&job->strings, name, strlen(name))))
            names = NULL;
    }
    if (!names)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for the names of %d classes", n);
    t->base.classes = names;
    t->base.class_count = n;
    t->base.class_kept = sac_segmenter_kept_classes(t->seg);
    sac_segmenter_describe_classes(t->seg, t->kept, sizeof t->kept);
    snprintf(t->head, sizeof t->head, "%s", sac_segmenter_head_name(t->seg));
    return SAC_OK;
}

/* COCO's records are of instances, where the network tells them apart. */
static sac_result show_instances(struct sac_segment_run *t)
{
    const struct sac_job *job = t->base.job;
    if (job->segment->as != SAC_SEGMENT_COCO || !t->seg->instances.used)
        return SAC_OK;
    if (!sac_segmenter_has_looks(t->seg))
        return sac_segmenter_show_instances(t->seg);
    sac_log(job->ctx, SAC_LOG_WARN,
            "COCO's results have one mask a frame, as instances are not put together from facets "
            "or scales; without these each has its own");
    return SAC_OK;
}

static sac_result open_segmenter(struct sac_segment_run *t)
{
    struct sac_job             *job = t->base.job;
    struct sac_segment_params  *p = job->segment;
    const struct sac_inference *inf = job->inference;
    /* No more than fit inside: the network is planned for full batches and for single images. */
    const size_t n = (size_t)SAC_MIN(inf->batch_max, inf->batch_limit);
    p->segmenter.batch_max = (int)n;
    sac_result res = sac_segmenter_create(job->dev, p->model, &p->segmenter, &t->seg);
    if (res != SAC_OK)
        return res;
    t->asks = t->asks ? t->asks : sac_calloc(n, sizeof *t->asks);
    t->mattes = t->mattes ? t->mattes : sac_calloc(n, sizeof(*t->mattes));
    t->came_to = t->came_to ? t->came_to : sac_calloc(n, sizeof *t->came_to);
    t->again = t->again ? t->again : sac_calloc(n, sizeof(*t->again));
    t->found = t->found ? t->found : sac_calloc(n, sizeof *t->found);
    if (!t->asks || !t->mattes || !t->came_to || !t->again || !t->found)
        return SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a batch of %zu frames", n);
    t->room = t->room ? t->room : n;
    t->base.batch_max = t->seg->batch;
    res = show_instances(t);
    return res == SAC_OK ? copy_classes(t) : res;
}

static bool has_states(const sac_segmenter *seg)
{
    struct sac_segmenter_info info;
    sac_segmenter_inspect(seg, &info);
    return info.states > 0;
}

static sac_result open_small(struct sac_segment_run *t)
{
    struct sac_job                  *job = t->base.job;
    const struct sac_segment_params *p = job->segment;
    struct sac_segmenter_params      params = p->segmenter;
    if (!p->small_model)
        return SAC_OK;
    if (t->seg->instances.shown)
        return SAC_FAIL(job->ctx, SAC_ERR_ARG,
                        "small_model: its answer has no instances, of which COCO's results are; "
                        "%s sees every frame",
                        p->model);
    params.head = params.preprocess = NULL; /* those are the large one's, as are the scales */
    memset(params.scales, 0, sizeof params.scales);
    sac_result res = sac_segmenter_create(job->dev, p->small_model, &params, &t->small);
    if (res != SAC_OK)
        return res;
    if (has_states(t->seg))
        return SAC_FAIL(job->ctx, SAC_ERR_ARG,
                        "small_model: %s carries states from frame to frame, and would miss frames",
                        p->model);
    t->base.batch_max = SAC_MIN(t->seg->batch, t->small->batch);
    sac_segmenter_summarise(t->small, true);
    return t->early ? SAC_OK
                    : sac_early_create(job->ctx, t->base.batch_max, p->small_confidence, &t->early);
}

static sac_result open_region(struct sac_segment_run *t)
{
    struct sac_job *job = t->base.job;
    if (!job->segment->region)
        return SAC_OK;
    if (!job->segment->segmenter.class_map) {
        sac_segmenter_summarise(t->seg, true); /* opened again it is another one */
        return t->region ? SAC_OK : sac_region_create(job, &t->region);
    }
    sac_log(job->ctx, SAC_LOG_WARN,
            "region: whole frames are seen, as a map of classes does not "
            "tell where people are");
    return SAC_OK;
}

/* Only a matte can be moved along: a map of classes, and a network's states, need every frame. */
static sac_result open_still(struct sac_segment_run *t)
{
    struct sac_job                  *job = t->base.job;
    const struct sac_segment_params *p = job->segment;
    const bool states = has_states(t->seg) || (t->small && has_states(t->small));
    if (t->still)
        return SAC_OK;
    if (!p->segmenter.class_map && !t->seg->instances.shown && !states)
        return sac_still_create(job, &t->still);
    if (job->params.skip_still > 0)
        sac_log(job->ctx, SAC_LOG_WARN, "skip_still: %s sees all frames, as %s",
                sac_model_path(sac_segmenter_model(t->seg)),
                states                    ? "it carries states from frame to frame"
                : t->seg->instances.shown ? "instances cannot be moved along"
                                          : "maps of classes cannot be moved along");
    return SAC_OK;
}

static sac_result warm_up(struct sac_segment_run *t, sac_segmenter *seg)
{
    const struct sac_job *job = t->base.job;
    sac_result res = sac_buckets_pad(&seg->buckets, job->params.batch_padding, &job->books->padded);
    if (res == SAC_OK && !sac_feed_has(&seg->view.feed, SAC_FEED_STATE)) /* see batch_open */
        res = sac_buckets_set_streams(&seg->buckets, job->params.preprocess_streams);
    if (res == SAC_OK && sac_job_is_prompt(job))
        res = sac_buckets_unite(&seg->buckets, &job->books->united);
    if (seg == t->seg)
        t->streams = sac_buckets_streams(&seg->buckets);
    if (res == SAC_OK)
        res = sac_segmenter_warm_up(seg);
    return res == SAC_OK && job->books->measures && job->dev->ops->async
               ? sac_buckets_time(&seg->buckets, true)
               : res;
}

static sac_result open_task(struct sac_task_run *run)
{
    struct sac_segment_run *t = of(run);
    struct sac_job         *job = run->job;
    const int64_t           begun = sac_time_ns();
    sac_result              res = open_segmenter(t);
    if (res == SAC_OK)
        res = open_small(t);
    if (res == SAC_OK)
        res = open_still(t);
    if (res == SAC_OK)
        res = open_region(t);
    if (t->seg)
        sac_engine_describe(job->dev, t->engine, sizeof t->engine);
    if (res == SAC_OK)
        res = warm_up(t, t->seg);
    if (res == SAC_OK && t->small)
        res = warm_up(t, t->small);
    sac_log(job->ctx, SAC_LOG_DEBUG, "network ready for batches of up to %d frames after %.1f s",
            job->inference->batch_max, (double)(sac_time_ns() - begun) * 1e-9);
    return res;
}

static void close_task(struct sac_task_run *run)
{
    sac_segmenter_destroy(&of(run)->seg);
    sac_segmenter_destroy(&of(run)->small);
}

static void release(struct sac_task_run *run)
{
    struct sac_segment_run *t = of(run);
    sac_still_destroy(&t->still);
    sac_region_destroy(&t->region);
    sac_early_destroy(&t->early);
    sac_free(t->asks);
    sac_free(t->mattes);
    sac_free(t->came_to);
    sac_free(t->again);
    for (size_t i = 0; t->found && i < t->room; i++)
        sac_segmenter_found_finish(&t->found[i]);
    sac_free(t->found);
    sac_free(t->composites);
    sac_free(t->ended);
    if (t->ended_ready)
        pthread_mutex_destroy(&t->ended_lock);
}

/* ---- streams that come and end ---- */

static sac_result expect(struct sac_task_run *run, int stream_id, int width, int height)
{
    (void)stream_id;
    return sac_segmenter_check_eyes(run->job->ctx, run->job->segment->stereo, SAC_PIXEL_NONE, width,
                                    height);
}

/* The network may be at work for other streams: it forgets this one before its next batch. Without
 * memory for that note the state stays until the run ends. */
static void forget(struct sac_task_run *run, int stream_id)
{
    struct sac_segment_run *t = of(run);
    sac_still_forget(t->still, stream_id);
    pthread_mutex_lock(&t->ended_lock);
    if (sac_grow((void **)&t->ended, &t->ended_capacity, t->ended_count + 1, sizeof *t->ended))
        t->ended[t->ended_count++] = stream_id;
    pthread_mutex_unlock(&t->ended_lock);
}

static void forget_ended(struct sac_segment_run *t)
{
    pthread_mutex_lock(&t->ended_lock);
    while (t->ended_count > 0) {
        const int id = t->ended[--t->ended_count];
        sac_segmenter_forget(t->seg, id);
        sac_segmenter_forget(t->small, id);
        sac_region_forget(t->region, id);
    }
    pthread_mutex_unlock(&t->ended_lock);
}

/* ---- composites with the mattes ---- */

struct sac_composite_job sac_segment_composite_of(const struct sac_segment_params *p)
{
    static const enum sac_composite_kind kinds[SAC_SEGMENT_AS_COUNT] = {
        [SAC_SEGMENT_OVERLAY] = SAC_COMPOSITE_TINT,
        [SAC_SEGMENT_CUTOUT] = SAC_COMPOSITE_BACKGROUND,
        [SAC_SEGMENT_CLASSES] = SAC_COMPOSITE_CLASSES};
    struct sac_composite_job c = {
        .kind = kinds[p->as], .strength = p->strength, .colour = {p->colour}, .colours = 1};
    if (p->as != SAC_SEGMENT_CLASSES)
        return c;
    c.colours = SAC_COMPOSITE_COLOURS_MAX;
    for (int i = 0; i < c.colours; i++)
        c.colour[i] = sac_colour_of_id(i);
    return c;
}

void sac_segment_compose_early(struct sac_job *job)
{
    const struct sac_segment_params *p = job->segment;
    const bool ground = p->as == SAC_SEGMENT_CUTOUT && (p->blur > 0 || p->background);
    if (sac_segment_composes(p->as) && p->as != SAC_SEGMENT_ALPHA_PACKED && !ground)
        atomic_store(&of(job->run)->composes, true);
}

/* A small network's mattes may not be the last ones. */
static bool composes(const struct sac_segment_run *t)
{
    return t->seg->buckets.unites && !t->small && atomic_load(&t->composes);
}

static sac_result ask_composite(struct sac_segment_run *t, struct sac_item *item, int i)
{
    struct sac_segment_own *own = item->own;
    sac_result              res = SAC_OK;
    if (!t->composites)
        t->composites = sac_calloc(t->room, sizeof *t->composites);
    if (!t->composites)
        return SAC_FAIL(t->base.job->ctx, SAC_ERR_MEMORY, "no memory for composites");
    const enum sac_memory_use before = sac_memory_use_set(SAC_MEMORY_DRAW);
    if (!own->composed)
        res = sac_frame_create(t->base.job->dev, item->frame, &own->composed);
    sac_memory_use_set(before);
    if (res != SAC_OK)
        return res;
    t->composites[i] = sac_segment_composite_of(t->base.job->segment);
    t->composites[i].out = own->composed;
    t->asks[i].composite = &t->composites[i];
    return SAC_OK;
}

/* ---- a batch ---- */

static sac_result own_of(struct sac_segment_run *t, struct sac_item *item,
                         struct sac_segment_own **out)
{
    *out = item->own = item->own ? item->own : sac_new(struct sac_segment_own);
    return *out ? SAC_OK
                : SAC_FAIL(t->base.job->ctx, SAC_ERR_MEMORY, "no memory for a frame's matte");
}

/* Decided once, as parts of a batch may come again. */
static void place(struct sac_segment_run *t, struct sac_item *item)
{
    struct sac_segment_own *own = item->own;
    if (!own->placed)
        own->region = sac_region_choose(t->region, item);
    own->placed = true;
}

/* What is asked for each frame. A small network sees whole frames: it finds the region for the
 * other. */
static sac_result ask(struct sac_segment_run *t, struct sac_item *const *items, int n)
{
    sac_result res = sac_still_decide(t->still, items, n);
    for (int i = 0; i < n && res == SAC_OK; i++) {
        struct sac_segment_own *own;
        res = own_of(t, items[i], &own);
        if (res == SAC_OK && !t->small)
            place(t, items[i]);
        if (res == SAC_OK)
            t->asks[i] = (struct sac_segmenter_ask){
                .frame = items[i]->frame, .keep = items[i]->still, .region = own->region};
        if (res == SAC_OK && composes(t))
            res = ask_composite(t, items[i], i);
    }
    return res;
}

static sac_segmenter *first_of(const struct sac_segment_run *t)
{
    return t->small ? t->small : t->seg;
}

static sac_result begin(struct sac_task_run *run, int slot, struct sac_item *const *items, int n)
{
    struct sac_segment_run *t = of(run);
    forget_ended(t);
    sac_result res = ask(t, items, n);
    return res == SAC_OK ? sac_segmenter_begin(first_of(t), slot, t->asks, n) : res;
}

static bool arrived(const struct sac_task_run *run, int slot)
{
    return sac_segmenter_arrived(first_of((const struct sac_segment_run *)run), slot);
}

/* The large network looks where the small one found people. */
static void place_again(struct sac_segment_run *t, struct sac_item *item, int i)
{
    const struct sac_rect whole = {0, 0, 0, 0};
    if (!t->region || sac_early_is_sure(t->early, &t->came_to[i]))
        return;
    sac_region_learn(t->region, item, whole, t->came_to[i].found);
    place(t, item);
    t->asks[i].region = ((const struct sac_segment_own *)item->own)->region;
}

static void count_scales(const struct sac_segment_run *t, const struct sac_segmenter_summary *s)
{
    if (t->seg->scales.count && !s->kept)
        sac_books_count_scales(t->base.job->books, t->seg->eyes * t->seg->looks);
}

/* Where the small network is not sure. Another batch was begun meanwhile: ask anew. */
static sac_result look_again(struct sac_segment_run *t, int slot, struct sac_item *const *items,
                             int n)
{
    struct sac_batch_times times;
    struct sac_books      *books = t->base.job->books;
    sac_result             res = ask(t, items, n);
    for (int i = 0; i < n && res == SAC_OK; i++)
        place_again(t, items[i], i);
    if (res == SAC_OK)
        res =
            sac_early_look_again(t->early, t->seg, slot, t->asks, n, t->mattes, t->came_to, &times);
    if (res != SAC_OK)
        return res;
    const int again = sac_early_count(t->early);
    int       small = 0, large = 0; /* looked; a frame that is kept had neither */
    for (int i = 0; i < n; i++)
        small += !t->came_to[i].kept;
    for (int i = 0; i < again; i++) {
        const struct sac_segmenter_summary *came_to = &t->came_to[sac_early_index(t->early, i)];
        t->again[i] = items[sac_early_index(t->early, i)];
        count_scales(t, came_to);
        large += !came_to->kept;
    }
    if (again)
        sac_task_record(&t->base, &times, SAC_STAGE_MATTE, t->again, again);
    sac_books_count_early(books, small - large, large);
    return SAC_OK;
}

/* The item's take turns with the batch's, so that their memory is used again. */
static void keep_found(struct sac_segment_run *t, struct sac_segment_own *own, int i)
{
    const struct sac_segmenter_found old = own->found;
    if (!t->seg->instances.shown)
        return;
    own->found = t->found[i];
    t->found[i] = old;
    sac_segmenter_found_clear(&t->found[i]);
}

/* What a frame came to, into its item, and for those that follow. */
static void keep(struct sac_segment_run *t, struct sac_item *item, int i)
{
    struct sac_segment_own             *own = item->own;
    const struct sac_segmenter_summary *came_to = &t->came_to[i];
    item->still = came_to->kept;
    sac_frame_unref(&own->matte); /* of a batch that is tried again */
    own->matte = t->mattes[i];
    t->mattes[i] = NULL;
    keep_found(t, own, i);
    if (!t->small)
        count_scales(t, came_to);
    if (!t->region || item->still)
        return;
    if (!t->small)
        sac_region_learn(t->region, item, own->region, came_to->found);
    sac_books_count_region(t->base.job->books, item->frame, t->seg->eyes, &own->region);
}

static sac_result land(struct sac_task_run *run, int slot, struct sac_item *const *items, int n)
{
    struct sac_segment_run *t = of(run);
    struct sac_batch_times  times;
    sac_result res = sac_segmenter_end(first_of(t), slot, t->mattes, t->came_to, t->found, &times);
    if (res == SAC_OK)
        sac_task_record(run, &times, SAC_STAGE_MATTE, items, n);
    if (res == SAC_OK && t->small)
        res = look_again(t, slot, items, n);
    for (int i = 0; i < n && res == SAC_OK; i++)
        keep(t, items[i], i);
    for (int i = 0; i < n; i++)
        sac_frame_unref(&t->mattes[i]);
    return res;
}

/* ---- items ---- */

static void own_clear(void *own)
{
    struct sac_segment_own *o = own;
    sac_frame_unref(&o->matte);
    sac_frame_unref(&o->composed);
    sac_segmenter_found_clear(&o->found);
    *o = (struct sac_segment_own){.found = o->found};
}

static void own_free(void *own)
{
    struct sac_segment_own *o = own;
    own_clear(own);
    sac_segmenter_found_finish(&o->found);
    sac_free(own);
}

/* ---- questions ---- */

static void describe(const struct sac_task_run *run, struct sac_pipeline_stats *out)
{
    const struct sac_segment_run    *t = (const struct sac_segment_run *)run;
    const struct sac_segment_params *p = run->job->segment;
    snprintf(out->segmenter, sizeof out->segmenter, "%s", p->model);
    if (!t->engine[0])
        return;
    snprintf(out->engine, sizeof out->engine, "%s", t->engine);
    snprintf(out->head, sizeof out->head, "%s", t->head);
    snprintf(out->precision, sizeof out->precision, "%s",
             sac_task_precision(run->job, p->segmenter.precision));
    snprintf(out->classes, sizeof out->classes, "%s", t->kept);
    out->preprocess_streams = t->streams;
}

static void add_files(const struct sac_task_run *run, struct sac_files *files)
{
    const struct sac_segment_run *t = (const struct sac_segment_run *)run;
    if (t->seg)
        sac_task_add_model(files, sac_segmenter_model(t->seg));
    if (t->small)
        sac_task_add_model(files, sac_segmenter_model(t->small));
}

const struct sac_task sac_task_segment = {
    .name = "segment",
    .size = sizeof(struct sac_segment_run),
    .prepare = prepare,
    .open = open_task,
    .begin = begin,
    .arrived = arrived,
    .land = land,
    .close = close_task,
    .expect = expect,
    .forget = forget,
    .release = release,
    .own_clear = own_clear,
    .own_free = own_free,
    .describe = describe,
    .add_files = add_files,
};
