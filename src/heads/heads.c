/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "heads/heads.h"

/* Asked from top to bottom: those with the narrowest shapes first. */
static const struct sac_head *const heads[] = {
    &sac_head_yolox,     /* as many rows as cells of three strides */
    &sac_head_yolov5,    /* three times as many */
    &sac_head_yolov8,    /* as many columns as cells */
    &sac_head_nanodet,   /* as many rows as cells of four strides, or two outputs per stride */
    &sac_head_end2end,   /* rows of 6, and what is beside them */
    &sac_head_ssd,       /* rows of 7 */
    &sac_head_boxes,     /* boxes, labels and scores in outputs of their own */
    &sac_head_detr,      /* a few hundred queries */
    &sac_head_embedding, /* one row of numbers */
};

const struct sac_head *sac_head_find(const char *name)
{
    for (size_t i = 0; i < SAC_COUNT(heads); i++)
        if (!strcmp(heads[i]->name, name))
            return heads[i];
    return NULL;
}

/* The head named by the file comes before its shapes; a name that this build lacks is ignored. */
const struct sac_head *sac_head_of(const struct sac_head_view *view)
{
    const struct sac_head *named = view->named ? sac_head_find(view->named) : NULL;
    if (named)
        return named;
    for (size_t i = 0; i < SAC_COUNT(heads); i++)
        if (heads[i]->recognise(view))
            return heads[i];
    return NULL;
}

void sac_head_list(void (*fn)(void *user, const char *name, const char *what), void *user)
{
    if (!fn)
        return;
    for (size_t i = 0; i < SAC_COUNT(heads); i++)
        fn(user, heads[i]->name, heads[i]->what);
}

void sac_head_names(char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < SAC_COUNT(heads) && used < size; i++)
        if (heads[i]->layout)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", heads[i]->name);
}

const char *sac_head_recognise(const sac_model *model)
{
    if (!model)
        return NULL;
    struct sac_head_view view;
    if (sac_head_view_init(NULL, model, &view) != SAC_OK)
        return NULL;
    const struct sac_head *head = sac_head_of(&view);
    return head ? head->name : NULL;
}

/* ---- what a model looks like ---- */

static int known(int64_t dim)
{
    return dim > 0 && dim <= 32768 ? (int)dim : 0;
}

int sac_head_view_tensors(const struct sac_head_view *v, struct sac_head_tensor *out)
{
    for (int i = 0; i < v->output_count; i++) {
        const struct sac_tensor_desc *d = &v->output[i].desc;
        out[i] = (struct sac_head_tensor){.name = v->output[i].name,
                                          .rank = d->rank > 0 ? d->rank - 1 : -1};
        for (int k = 1; k < d->rank; k++)
            out[i].shape[k - 1] = d->shape[k];
    }
    return v->output_count;
}

/* Of the file as it was read, whatever passes made of it. */
static int operators_of(const sac_model *model, const char *name)
{
    for (int i = 0; i < model->info.operator_count; i++)
        if (!strcmp(model->info.operators[i].name, name) && !*model->info.operators[i].domain)
            return model->info.operators[i].count;
    return 0;
}

static enum sac_head_task task_of(const char *text)
{
    static const struct {
        const char        *name;
        enum sac_head_task task;
    } tasks[] = {{"detect", SAC_TASK_DETECT},
                 {"segment", SAC_TASK_SEGMENT},
                 {"pose", SAC_TASK_POSE},
                 {"obb", SAC_TASK_ORIENTED},
                 {"classify", SAC_TASK_OTHER}};
    for (size_t i = 0; text && i < SAC_COUNT(tasks); i++)
        if (!strcmp(tasks[i].name, text))
            return tasks[i].task;
    return SAC_TASK_UNKNOWN;
}

/* "[17, 3]": points, and numbers of each. */
static int keypoints_of(const char *text)
{
    int  points, numbers;
    bool fits = text && sscanf(text, "[%d , %d ]", &points, &numbers) == 2 && points > 0 &&
                points <= 1000 && numbers > 0 && numbers <= 16;
    return fits ? points * numbers : 0;
}

static struct sac_head_facts facts_of(const struct sac_head_view *v)
{
    const sac_model       *m = v->model;
    const struct sac_feed *feed = &v->feed;
    const char            *description = sac_model_metadata(m, "description");
    struct sac_head_facts  f = {.names = sac_contract_count_names(m),
                                .task = task_of(sac_model_metadata(m, "task")),
                                .keypoints = keypoints_of(sac_model_metadata(m, "kpt_shape")),
                                .angles = operators_of(m, "Sin") && operators_of(m, "Cos"),
                                .queries = description && strcasestr(description, "rtdetr"),
                                .ranked = operators_of(m, "TopK") > 1,
                                .flat = v->output[0].desc.rank == 2,
                                .single = feed->single,
                                .sized = sac_feed_has(feed, SAC_FEED_WIDTH_HEIGHT) ||
                                         sac_feed_has(feed, SAC_FEED_HEIGHT_WIDTH),
                                .paddle = sac_feed_has(feed, SAC_FEED_ONES),
                                .masked = sac_feed_has(feed, SAC_FEED_MASK)};
    for (int i = 0; i < v->output_count; i++)
        if (v->output[i].desc.dtype == SAC_I64 || v->output[i].desc.dtype == SAC_I32)
            f.whole |= 1u << i;
    return f;
}

static sac_result view_picture(sac_context *ctx, struct sac_head_view *v)
{
    const struct sac_model_port *in = sac_model_input(v->model, v->feed.image);
    const int64_t               *dims = in->desc.shape + (v->feed.single ? 0 : 1);
    bool                         last = dims[2] == 3 && dims[0] != 3;
    if (dims[last ? 2 : 0] != 3 && dims[last ? 2 : 0] != SAC_DIM_UNKNOWN)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s: input '%s' has %lld channels; have 3",
                        sac_model_path(v->model), in->name, (long long)dims[last ? 2 : 0]);
    v->channels_last = last;
    v->width = known(dims[last ? 1 : 2]);
    v->height = known(dims[last ? 0 : 1]);
    v->batch_open = !v->feed.single && in->desc.shape[0] == SAC_DIM_UNKNOWN;
    return SAC_OK;
}

sac_result sac_head_view_init(sac_context *ctx, const sac_model *model, struct sac_head_view *v)
{
    int outputs = sac_model_output_count(model);
    *v = (struct sac_head_view){.model = model, .output_count = outputs};
    sac_result res = sac_feed_init(ctx, model, &v->feed);
    if (res == SAC_OK)
        res = view_picture(ctx, v);
    if (res != SAC_OK)
        return res;
    if (outputs < 1 || outputs > SAC_HEAD_OUTPUTS_MAX)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s: %d outputs; a head takes 1 to %d",
                        sac_model_path(model), outputs, SAC_HEAD_OUTPUTS_MAX);
    for (int i = 0; i < outputs; i++)
        v->output[i] = *sac_model_output(model, i);
    v->named = sac_model_metadata(model, "saccade.head");
    v->facts = facts_of(v);
    return SAC_OK;
}

/* The head that would know the outputs if they had other names for their classes. */
static const struct sac_head *head_without_names(const struct sac_head_view *view, int *classes)
{
    struct sac_head_view   other = *view;
    const struct sac_head *head;
    other.named = NULL;
    other.facts.names = 0;
    head = view->facts.names ? sac_head_of(&other) : NULL;
    *classes = head && head->class_count ? head->class_count(&other) : 0;
    return *classes ? head : NULL;
}

void sac_head_why_not(const struct sac_head_view *view, char *out, size_t size)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    char                   shapes[512], names[256];
    int                    classes;
    const struct sac_head *head = head_without_names(view, &classes);
    sac_head_shapes_text(t, sac_head_view_tensors(view, t), shapes, sizeof shapes);
    sac_head_names(names, sizeof names);
    if (view->facts.task == SAC_TASK_ORIENTED ||
        (view->facts.angles && sac_head_yolov8.class_count(view)))
        snprintf(out, size,
                 "its boxes have an angle (%s), and saccade tracks upright ones: export a model "
                 "that was "
                 "trained to detect",
                 view->facts.task == SAC_TASK_ORIENTED ? "its metadata says task obb"
                                                       : "it computes sines and cosines");
    else if (view->facts.task == SAC_TASK_OTHER)
        snprintf(out, size,
                 "it is a classifier by its metadata (task classify) and gives no boxes");
    else if (head)
        snprintf(out, size,
                 "by its outputs, %s, it is '%s' with %d classes, but it has %d class names: mend "
                 "those in "
                 "its metadata or in the YAML file beside it",
                 shapes, head->name, classes, view->facts.names);
    else
        snprintf(out, size,
                 "its outputs, of one picture %s, are not those of a known detector; --head takes "
                 "%s, or a "
                 "shared object of your own",
                 shapes, names);
}

/* ---- preprocessing ---- */

void sac_head_normalise(struct sac_preprocess *pre, enum sac_channel_order order)
{
    static const float mean[3] = {123.675f, 116.28f, 103.53f},
                       deviation[3] = {58.395f, 57.12f, 57.375f};
    pre->order = order;
    for (int c = 0; c < 3; c++) {
        const int from = order == SAC_ORDER_BGR ? 2 - c : c;
        pre->mean[c] = mean[from];
        pre->scale[c] = 1 / deviation[from];
    }
}

sac_result sac_head_preprocess(sac_context *ctx, const struct sac_head *head,
                               const struct sac_head_view *v, struct sac_preprocess *pre)
{
    const struct sac_model_port *in = sac_model_input(v->model, v->feed.image);
    enum sac_dtype               dtype = in->desc.dtype;
    if (dtype != SAC_F32 && dtype != SAC_F16 && dtype != SAC_U8)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: input '%s' is %s; pixels come as float32, float16 or uint8",
                        sac_model_path(v->model), in->name, sac_dtype_name(dtype));
    *pre = sac_preprocess_default();
    pre->width = v->width ? v->width : 640;
    pre->height = v->height ? v->height : 640;
    pre->layout = v->channels_last ? SAC_TENSOR_LAYOUT_NHWC : SAC_TENSOR_LAYOUT_NCHW;
    pre->dtype = dtype;
    if (head->defaults)
        head->defaults(v, pre);
    if (head->plugin && head->plugin->defaults)
        head->plugin->defaults(pre);
    return SAC_OK;
}
