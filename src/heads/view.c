/* SPDX-License-Identifier: Apache-2.0 */
/* What a model looks like, gathered once for all heads that are asked. */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "heads/heads.h"
#include "vision/fit.h"

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
    bool fits = text && sscanf(text, "[%9d , %9d ]", &points, &numbers) == 2 && points > 0 &&
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
    for (int i = 0; i < v->output_count; i++)
        f.ending[i] = sac_model_ending(m, i);
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

sac_result sac_head_view_init(sac_context *ctx, const sac_model *model, const char *user,
                              struct sac_head_view *v)
{
    int outputs = sac_model_output_count(model);
    *v = (struct sac_head_view){.model = model, .output_count = outputs};
    sac_result res = sac_feed_init(ctx, model, user, &v->feed);
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

sac_result sac_head_probe(sac_model *model, const struct sac_preprocess *pre,
                          struct sac_head_view *view)
{
    const struct sac_tensor_desc pixels = sac_preprocess_desc(pre, 1);
    struct sac_tensor_desc       in[SAC_FEED_INPUTS_MAX], out[SAC_HEAD_OUTPUTS_MAX];
    sac_feed_describe(&view->feed, model, &pixels, in);
    sac_result res = sac_model_probe(model, in, out);
    for (int i = 0; i < view->output_count && res == SAC_OK; i++)
        view->output[i].desc = out[i];
    return res;
}
