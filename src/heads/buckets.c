/* SPDX-License-Identifier: Apache-2.0 */
#include "heads/buckets.h"

#include <string.h>

#include "base/range.h"
#include "base/start.h"
#include "vision/fit.h"
#include "vision/vision.h"

/* Outputs larger than these have no second place: the network waits until they are read. */
static const size_t TWIN_BYTES = (size_t)128 << 20;

/* ---- marks ---- */

sac_result sac_marks_create(sac_device *dev, struct sac_marks *marks)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < SAC_MARK_COUNT && res == SAC_OK; i++)
        res = dev->ops->event_create(dev, true, &marks->at[i]);
    if (res != SAC_OK)
        sac_marks_destroy(dev, marks);
    return res;
}

void sac_marks_destroy(sac_device *dev, struct sac_marks *marks)
{
    for (int i = 0; i < SAC_MARK_COUNT; i++)
        if (marks->at[i])
            dev->ops->event_destroy(&marks->at[i]);
}

sac_result sac_marks_add(sac_device *dev, const struct sac_marks *marks, int64_t *ns)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < SAC_MARK_STAGES && res == SAC_OK; i++) {
        int64_t part = 0;
        res = dev->ops->event_elapsed(marks->at[2 * i], marks->at[2 * i + 1], &part);
        ns[i] += part;
    }
    return res;
}

/* ---- sizes ---- */

/* Pixels are written as the network's first kernel reads them: float16, channels last, where it
 * wants that. */
static sac_result choose_input(struct sac_buckets *b, int batch_max)
{
    const struct sac_tensor_desc desc = sac_preprocess_desc(&b->pre, batch_max);
    enum sac_layout              layout;
    if (!b->model || b->feed.single || b->pre.layout != SAC_TENSOR_LAYOUT_NCHW ||
        b->pre.dtype != SAC_F32)
        return SAC_OK;
    sac_result res = sac_model_take_native(b->model, &desc, &layout);
    if (res != SAC_OK)
        return res;
    b->layout = layout;
    if (sac_layout_is_half(layout))
        b->pre.dtype = SAC_F16;
    if (sac_layout_is_last(layout))
        b->pre.layout = SAC_TENSOR_LAYOUT_NHWC;
    return SAC_OK;
}

static void list_sizes(struct sac_buckets *b)
{
    sac_sizes_list(&b->sizes, b->dev, b->padding, b->batch_max);
    for (int i = 0; i < b->sizes.count; i++)
        b->list[i].size = b->twins[i].size = b->sizes.size[i];
}

sac_result sac_buckets_init(struct sac_buckets *b, sac_device *dev, sac_model *model,
                            const struct sac_preprocess *pre, const struct sac_feed *feed,
                            int batch_max, bool patient, const char *owner, enum sac_memory_use use)
{
    *b = (struct sac_buckets){.dev = dev,
                              .model = model,
                              .pre = *pre,
                              .feed = {.count = 1},
                              .owner = owner,
                              .use = use,
                              .batch_max = batch_max};
    if (feed)
        b->feed = *feed;
    list_sizes(b);
    sac_result res = choose_input(b, batch_max);
    if (res != SAC_OK)
        return res;
    res = patient ? dev->ops->stream_create_patient(dev, &b->stream)
                  : dev->ops->stream_create(dev, &b->stream);
    b->before = b->behind = b->stream;
    sac_finite_open(&b->finite, dev);
    return res;
}

/* Patient streams too: their short kernels fill the cores that the network's leave idle, and do not
 * push in before them. */
sac_result sac_buckets_split(struct sac_buckets *b)
{
    const struct sac_device_ops *ops = b->dev->ops;
    struct sac_device_stream    *before = NULL, *behind = NULL;
    if (!ops->async)
        return SAC_OK;
    sac_result res = ops->stream_create_patient(b->dev, &before);
    if (res == SAC_OK)
        res = ops->stream_create_patient(b->dev, &behind);
    if (res != SAC_OK) {
        if (before)
            ops->stream_destroy(&before);
        return res;
    }
    b->before = before;
    b->behind = behind;
    b->paired = true;
    return SAC_OK;
}

static bool is_split(const struct sac_buckets *b)
{
    return b->behind != b->stream;
}

int sac_buckets_streams(const struct sac_buckets *b)
{
    return is_split(b) ? 2 : 1;
}

sac_result sac_buckets_wait(struct sac_buckets *b)
{
    struct sac_device_stream *const all[] = {b->before, b->stream, b->behind};
    sac_result                      res = SAC_OK;
    for (size_t i = 0; i < SAC_COUNT(all); i++) {
        const bool known = !all[i] || (i > 0 && all[i] == all[i - 1]);
        sac_result one = known ? SAC_OK : b->dev->ops->stream_wait(all[i]);
        res = res == SAC_OK ? one : res;
    }
    return res;
}

static void drop(const struct sac_buckets *b, sac_tensor **t)
{
    if (*t)
        sac_tensor_used(*t, b->stream);
    if (*t && is_split(b)) {
        sac_tensor_used(*t, b->before);
        sac_tensor_used(*t, b->behind);
    }
    sac_tensor_unref(t);
}

static void drop_outputs(struct sac_buckets *b, struct sac_bucket *bucket)
{
    for (int i = 0; i < SAC_HEAD_OUTPUTS_MAX; i++)
        drop(b, &bucket->out[i]);
}

static void bucket_finish(struct sac_buckets *b, struct sac_bucket *bucket)
{
    for (int i = 0; i < SAC_FEED_INPUTS_MAX; i++)
        drop(b, &bucket->inputs[i]);
    drop(b, &bucket->in);
    drop_outputs(b, bucket);
    if (bucket->read)
        b->dev->ops->event_destroy(&bucket->read);
}

static void release_all(struct sac_buckets *b)
{
    for (int i = 0; i < b->sizes.count; i++) {
        bucket_finish(b, &b->list[i]);
        bucket_finish(b, &b->twins[i]);
    }
}

static void say_odd(struct sac_buckets *b)
{
    if (!b->model)
        return;
    sac_finite_say(&b->finite, b->dev->ctx, sac_model_path(b->model),
                   sac_model_precision(b->model));
    if (!b->finite.said)
        sac_model_say_not_finite(b->model);
}

void sac_buckets_finish(struct sac_buckets *b)
{
    if (b->dev)
        sac_buckets_wait(b);
    say_odd(b);
    sac_finite_close(&b->finite);
    release_all(b);
    if (b->anchor)
        b->dev->ops->event_destroy(&b->anchor);
    if (b->graphs)
        b->dev->ops->graph_destroy(b->dev, &b->graphs);
    if (b->dev && is_split(b)) {
        b->dev->ops->stream_destroy(&b->before);
        b->dev->ops->stream_destroy(&b->behind);
    }
    if (b->stream)
        b->dev->ops->stream_destroy(&b->stream);
    *b = (struct sac_buckets){0};
}

/* ---- one stream again ---- */

static sac_result join(struct sac_buckets *b)
{
    sac_result res = sac_buckets_wait(b);
    release_all(b);
    if (is_split(b)) {
        b->dev->ops->stream_destroy(&b->before);
        b->dev->ops->stream_destroy(&b->behind);
    }
    b->before = b->behind = b->stream;
    b->paired = false;
    return res;
}

sac_result sac_buckets_set_streams(struct sac_buckets *b, int streams)
{
    sac_result res = SAC_OK;
    if (streams == 0 || streams == sac_buckets_streams(b))
        return SAC_OK;
    res = join(b);
    return res == SAC_OK && streams > 1 ? sac_buckets_split(b) : res;
}

/* ---- batches of one launch ---- */

sac_result sac_buckets_unite(struct sac_buckets *b, atomic_uint_fast64_t *united)
{
    const struct sac_device_ops *ops = b->dev->ops;
    if (!ops->gather_begin || (b->dev->without & SAC_WITHOUT_GATHERING))
        return SAC_OK;
    sac_result res = join(b);
    b->unites = true;
    b->united = united;
    return res;
}

void sac_buckets_unite_begin(struct sac_buckets *b)
{
    if (b->unites)
        b->dev->ops->gather_begin(b->dev, b->stream);
}

sac_result sac_buckets_unite_end(struct sac_buckets *b, sac_result res)
{
    bool one = false;
    if (!b->unites)
        return res;
    sac_result ended =
        b->dev->ops->gather_end(b->dev, b->stream, res == SAC_OK ? &b->graphs : NULL, &one);
    if (one && b->united)
        atomic_fetch_add(b->united, 1);
    return res == SAC_OK ? ended : res;
}

sac_result sac_buckets_pad(struct sac_buckets *b, enum sac_batch_padding padding,
                           atomic_uint_fast64_t *padded)
{
    if (padding == SAC_BATCH_PADDING_NONE && b->batch_max > SAC_BUCKETS_MAX)
        return SAC_FAIL(b->dev->ctx, SAC_ERR_ARG,
                        "%s: plans for each size of batch up to %d; have them up to %d",
                        sac_model_path(b->model), b->batch_max, (int)SAC_BUCKETS_MAX);
    b->padded = padded;
    if (padding == b->padding)
        return SAC_OK;
    release_all(b);
    for (int i = 0; i < SAC_BUCKETS_MAX; i++)
        b->list[i] = b->twins[i] = (struct sac_bucket){.size = 0};
    b->padding = padding;
    list_sizes(b);
    return SAC_OK;
}

sac_result sac_buckets_time(struct sac_buckets *b, bool on)
{
    const struct sac_device_ops *ops = b->dev->ops;
    sac_result                   res = SAC_OK;
    if (on && !b->anchor) {
        res = ops->event_create(b->dev, true, &b->anchor);
        if (res == SAC_OK)
            res = ops->event_record(b->anchor, b->stream);
        if (res == SAC_OK)
            res = ops->event_wait(b->anchor);
        b->anchor_ns = sac_time_ns();
    }
    b->timed = on && res == SAC_OK;
    return res;
}

/* How large outputs are is known once they were made. */
static bool has_twin(const struct sac_buckets *b, int i)
{
    const struct sac_bucket *bucket = &b->list[i];
    size_t                   bytes = 0;
    for (int k = 0; k < SAC_HEAD_OUTPUTS_MAX; k++)
        if (bucket->out[k])
            bytes += (size_t)sac_tensor_desc_bytes(sac_tensor_describe(bucket->out[k]));
    return b->paired && bytes > 0 && bytes <= TWIN_BYTES;
}

struct sac_bucket *sac_buckets_next(struct sac_buckets *b, int left, int *n)
{
    const int          i = sac_sizes_next(&b->sizes, left);
    struct sac_bucket *bucket = &b->list[i];
    *n = SAC_MIN(bucket->size, left);
    bucket->twins_turn = !bucket->twins_turn && has_twin(b, i);
    return bucket->twins_turn ? &b->twins[i] : bucket;
}

/* ---- runs ---- */

sac_result sac_bucket_prepare(struct sac_buckets *b, struct sac_bucket *bucket)
{
    struct sac_tensor_desc desc = sac_preprocess_desc(&b->pre, bucket->size);
    sac_result             res = SAC_OK;
    if (bucket->inputs[0])
        return SAC_OK;
    if (is_split(b) && !bucket->read)
        res = b->dev->ops->event_create(b->dev, false, &bucket->read);
    if (res != SAC_OK)
        return res;
    sac_tensor_unref(&bucket->in); /* left by a try that had no memory for the other inputs */
    const enum sac_memory_use before = sac_memory_use_set(b->use);
    res = sac_tensor_create(b->dev, &desc, b->owner, &bucket->in);
    if (res == SAC_OK)
        res = sac_tensor_clear(bucket->in); /* a batch that is not full runs on all of it */
    if (res == SAC_OK)
        res = sac_feed_make(&b->feed, b->dev, b->model, bucket->in, bucket->inputs);
    sac_memory_use_set(before);
    /* Work queued on the device's own stream may still use this memory. */
    if (res == SAC_OK && is_split(b))
        res = b->dev->ops->stream_after(b->dev, b->before, NULL);
    return res == SAC_OK ? b->dev->ops->stream_after(b->dev, b->stream, NULL) : res;
}

/* The host's time of a stage, in a profiler's timeline too. */
static int64_t stage_begin(const char *name)
{
    sac_range_push(name);
    return sac_time_ns();
}

static void stage_end(int64_t begun_ns, int64_t *ns)
{
    *ns += sac_time_ns() - begun_ns;
    sac_range_pop();
}

static sac_result mark(const struct sac_buckets *b, const struct sac_marks *marks, int which,
                       struct sac_device_stream *stream)
{
    return marks ? b->dev->ops->event_record(marks->at[which], stream) : SAC_OK;
}

/* ---- images that somebody has prepared ---- */

sac_result sac_buckets_give(struct sac_buckets *b, sac_tensor *given, int64_t first)
{
    b->given = given;
    b->given_at = first;
    return given ? b->dev->ops->stream_after(b->dev, b->before, NULL) : SAC_OK;
}

/* The next n images of the tensor in place of the bucket's own input. */
static sac_result lend_given(struct sac_buckets *b, struct sac_bucket *bucket, int n,
                             sac_tensor **out)
{
    const struct sac_tensor_desc *desc = sac_tensor_describe(bucket->inputs[b->feed.image]);
    const size_t                  bytes = (size_t)sac_tensor_desc_bytes(desc);
    sac_tensor                   *view = NULL;
    *out = NULL;
    if (b->layout != SAC_LAYOUT_PLAIN || n != bucket->size)
        return SAC_OK;
    sac_result res =
        sac_tensor_view(b->given, (size_t)b->given_at * (bytes / (size_t)n), desc, &view);
    if (res == SAC_OK && sac_tensor_is_aligned(view))
        *out = view;
    else
        sac_tensor_unref(&view);
    return res;
}

/* Into the bucket's own input, in its layout. */
static sac_result bring_given(struct sac_buckets *b, struct sac_bucket *bucket, int n)
{
    const struct sac_tensor_desc *d = sac_tensor_describe(b->given);
    const size_t                  image = (size_t)(sac_tensor_desc_bytes(d) / d->shape[0]);
    struct sac_operand            o = {.dtype = d->dtype, .rank = 4, .present = true};
    const char *from = (const char *)sac_tensor_data(b->given) + (size_t)b->given_at * image;
    void       *to = sac_tensor_data(bucket->in);
    char        what[200];
    sac_tensor_name(b->given, "images of", what, sizeof what);
    if (b->layout == SAC_LAYOUT_PLAIN)
        return sac_device_copy(b->dev, b->before, to, from, (size_t)n * image, SAC_COPY_ON_DEVICE,
                               SAC_COPY_TENSOR_LAYOUT, what);
    memcpy(o.dims, d->shape, sizeof o.dims);
    o.dims[0] = n;
    sac_result res = sac_device_count_copy(b->dev, (size_t)n * image, SAC_COPY_TENSOR_LAYOUT, what);
    return res == SAC_OK ? b->dev->ops->relayout(b->dev, b->before, &o, to, (int)b->layout, from,
                                                 SAC_LAYOUT_PLAIN)
                         : res;
}

/* lent: what the network is to read in place of the bucket's own input, or NULL. */
static sac_result take_given(struct sac_buckets *b, struct sac_bucket *bucket, int n,
                             sac_tensor **lent)
{
    sac_result res = lend_given(b, bucket, n, lent);
    if (res == SAC_OK && !*lent)
        res = bring_given(b, bucket, n);
    sac_tensor_used(b->given, b->before);
    b->given_at += n;
    return res;
}

/* ---- images of earlier runs ---- */

void sac_buckets_set_images(struct sac_buckets *b, const struct sac_batch_images *images)
{
    b->images = images;
    b->images_at = 0;
}

/* Those that are not kept; then the others, behind them. */
static sac_result make_images(struct sac_buckets *b, const struct sac_preprocess_job *jobs, int n,
                              sac_tensor *in)
{
    const struct sac_batch_images *x = b->images;
    const int                      at = b->images_at;
    const struct sac_tensor_desc   one = sac_preprocess_desc(&b->pre, 1);
    const size_t                   bytes = (size_t)sac_tensor_desc_bytes(&one);
    char                          *to = sac_tensor_data(in);
    int                            made = n;
    while (x && made > 0 && x->kept[at + made - 1].pixels)
        made--;
    sac_result res = sac_preprocess_run_on(b->dev, b->before, &b->pre, jobs, made, in);
    for (int i = 0; i < made && res == SAC_OK && x && x->made; i++)
        x->made(x->user, at + i, to + (size_t)i * bytes);
    for (int i = made; i < n && res == SAC_OK; i++)
        memcpy(to + (size_t)i * bytes, x->kept[at + i].pixels, bytes);
    b->images_at += n;
    return res;
}

static sac_result make_input(struct sac_buckets *b, struct sac_bucket *bucket,
                             const struct sac_preprocess_job *jobs, int n,
                             const struct sac_marks *marks, sac_tensor **lent)
{
    sac_result res = sac_bucket_prepare(b, bucket);
    /* What reads the outputs of its former run comes after all of that: the input was read too. */
    if (res == SAC_OK && is_split(b))
        res = b->dev->ops->stream_wait_event(b->dev, b->before, bucket->read);
    if (res == SAC_OK)
        res = mark(b, marks, SAC_MARK_BEGIN, b->before);
    if (res == SAC_OK && b->given && n > 0)
        res = take_given(b, bucket, n, lent);
    else if (res == SAC_OK)
        res = make_images(b, jobs, n, bucket->in);
    return res == SAC_OK ? mark(b, marks, SAC_MARK_INPUT, b->before) : res;
}

/* n: images that count; the others are earlier ones, or zeros. */
static sac_result run_network(struct sac_buckets *b, struct sac_bucket *bucket, int n,
                              const struct sac_marks *marks)
{
    sac_result res = SAC_OK;
    if (bucket->varies)
        drop_outputs(b, bucket);
    if (is_split(b)) /* and so after what the input is made after */
        res = b->dev->ops->stream_after(b->dev, b->stream, b->before);
    if (res == SAC_OK)
        res = mark(b, marks, SAC_MARK_RUN, b->stream);
    if (res == SAC_OK)
        res = sac_model_run_on(b->model, b->stream, bucket->inputs, bucket->out);
    if (res == SAC_OK && !bucket->varies)
        bucket->varies = sac_model_shapes_vary(b->model);
    if (n > 0)
        say_odd(b);
    if (res == SAC_OK && n > 0)
        res = sac_finite_look(&b->finite, b->dev, b->stream, bucket->out, SAC_HEAD_OUTPUTS_MAX, n,
                              bucket->size);
    if (res == SAC_OK)
        res = mark(b, marks, SAC_MARK_OUTPUT, b->stream);
    if (res == SAC_OK && is_split(b))
        res = b->dev->ops->stream_after(b->dev, b->behind, b->stream);
    return res == SAC_OK ? mark(b, marks, SAC_MARK_HEAD, b->behind) : res;
}

sac_result sac_bucket_run(struct sac_buckets *b, struct sac_bucket *bucket,
                          const struct sac_preprocess_job *jobs, int n,
                          const struct sac_marks *marks, struct sac_run_times *times)
{
    int64_t begun = stage_begin("preprocess");
    if (b->padded && n > 0)
        atomic_fetch_add(b->padded, (uint_fast64_t)(bucket->size - n));
    sac_tensor *lent = NULL;
    sac_result  res = make_input(b, bucket, jobs, n, marks, &lent);
    stage_end(begun, &times->preprocess_ns);
    begun = stage_begin("inference");
    sac_tensor *own = bucket->inputs[b->feed.image];
    if (lent)
        bucket->inputs[b->feed.image] = lent;
    if (res == SAC_OK)
        res = run_network(b, bucket, n, marks);
    if (lent) {
        sac_tensor_used(lent, b->stream);
        bucket->inputs[b->feed.image] = own;
        sac_tensor_unref(&lent);
    }
    stage_end(begun, &times->inference_ns);
    if (sac_is_out_of_memory(res)) { /* a smaller bucket may need what a larger one holds */
        release_all(b);
        b->paired = false;
    }
    return res;
}

sac_result sac_bucket_read(struct sac_buckets *b, struct sac_bucket *bucket)
{
    return is_split(b) ? b->dev->ops->event_record(bucket->read, b->behind) : SAC_OK;
}

static sac_result warm_up(struct sac_buckets *b, struct sac_bucket *bucket)
{
    struct sac_run_times times = {0};
    sac_result           res = SAC_OK;
    for (int turn = 0; turn < b->dev->ops->warm_runs && res == SAC_OK; turn++)
        res = sac_bucket_run(b, bucket, NULL, 0, NULL, &times);
    sac_result waited = sac_buckets_wait(b);
    sac_model_forget_not_finite(b->model);
    return res == SAC_OK ? waited : res;
}

bool sac_buckets_shrink(struct sac_buckets *b, sac_result res)
{
    const int last = b->sizes.count - 1;
    if (res == SAC_OK || last == 0 || !sac_is_out_of_memory(res))
        return false;
    sac_log(b->dev->ctx, SAC_LOG_WARN, "%s: %s has no memory for batches of %d: they have up to %d",
            sac_model_path(b->model), b->dev->name, b->list[last].size, b->list[last - 1].size);
    sac_error_clear(b->dev->ctx);
    bucket_finish(b, &b->list[last]);
    bucket_finish(b, &b->twins[last]);
    sac_device_pool_trim(b->dev);
    b->sizes.count = last;
    return true;
}

/* Rather than with smaller batches. */
static bool do_without_twins(struct sac_buckets *b, bool paired, sac_result res)
{
    if (!paired || !sac_is_out_of_memory(res))
        return false;
    sac_error_clear(b->dev->ctx);
    sac_device_pool_trim(b->dev);
    return true;
}

static sac_result warm_up_all(struct sac_buckets *b)
{
    for (int i = b->sizes.count - 1; i >= 0;) {
        const bool paired = b->paired;
        sac_result res = warm_up(b, &b->list[i]);
        if (res == SAC_OK && has_twin(b, i))
            res = warm_up(b, &b->twins[i]);
        if (res == SAC_OK)
            i--;
        else if (do_without_twins(b, paired, res) || sac_buckets_shrink(b, res))
            i = b->sizes.count - 1; /* the run that failed released those that were ready too */
        else
            return res;
    }
    return SAC_OK;
}

sac_result sac_buckets_warm_up(struct sac_buckets *b)
{
    struct sac_start_span span;
    sac_start_begin(&span, SAC_START_RUNS);
    sac_result res = warm_up_all(b);
    sac_start_end(&span);
    return res;
}
