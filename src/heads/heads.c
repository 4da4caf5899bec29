/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "heads/heads.h"

/* Asked from top to bottom: those with the narrowest shapes first. */
static const struct sac_head *const heads[] = {
    &sac_head_yolox,     /* as many rows as cells of three strides */
    &sac_head_yolov5,    /* three times as many */
    &sac_head_yolov8,    /* as many columns as cells */
    &sac_head_nanodet,   /* as many rows as cells of four strides, or two outputs per stride */
    &sac_head_end2end,   /* any rows of 6 */
    &sac_head_ssd,       /* rows of 7, or boxes, labels and scores */
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

/* The file's own word counts for more than its shapes; a head that this build lacks is no word. */
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
    for (size_t i = 0; i < SAC_COUNT(heads); i++)
        fn(user, heads[i]->name, heads[i]->what);
}

void sac_head_names(char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < SAC_COUNT(heads) && used < size; i++)
        if (heads[i]->decode)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", heads[i]->name);
}

const char *sac_head_recognise(const sac_model *model)
{
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

sac_result sac_head_view_init(sac_context *ctx, const sac_model *model, struct sac_head_view *v)
{
    const struct sac_model_port *in = sac_model_input(model, 0);
    int                          outputs = sac_model_output_count(model);
    if (sac_model_input_count(model) != 1 || in->desc.rank != 4)
        return SAC_FAIL(
            ctx, SAC_ERR_UNSUPPORTED,
            "%s: %d inputs, the first of rank %d; a head needs one image input of rank 4",
            sac_model_path(model), sac_model_input_count(model), in ? in->desc.rank : 0);
    const int64_t *shape = in->desc.shape;
    bool           last = shape[3] == 3 && shape[1] != 3;
    if (shape[last ? 3 : 1] != 3 && shape[last ? 3 : 1] != SAC_DIM_UNKNOWN)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s: input '%s' has %lld channels; have 3",
                        sac_model_path(model), in->name, (long long)shape[last ? 3 : 1]);
    if (outputs < 1 || outputs > SAC_HEAD_OUTPUTS_MAX)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s: %d outputs; a head takes 1 to %d",
                        sac_model_path(model), outputs, SAC_HEAD_OUTPUTS_MAX);
    *v = (struct sac_head_view){.model = model,
                                .width = known(shape[last ? 2 : 3]),
                                .height = known(shape[last ? 1 : 2]),
                                .channels_last = last,
                                .output_count = outputs,
                                .names = sac_contract_count_names(model),
                                .named = sac_model_metadata(model, "saccade.head")};
    for (int i = 0; i < outputs; i++)
        v->output[i] = *sac_model_output(model, i);
    return SAC_OK;
}

sac_result sac_head_preprocess(sac_context *ctx, const struct sac_head *head,
                               const struct sac_head_view *v, struct sac_preprocess *pre)
{
    const struct sac_model_port *in = sac_model_input(v->model, 0);
    enum sac_dtype               dtype = in->desc.dtype;
    if (dtype != SAC_F32 && dtype != SAC_F16 && dtype != SAC_U8)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: input '%s' is %s; pixels come as float32, float16 or uint8",
                        sac_model_path(v->model), in->name, sac_dtype_name(dtype));
    *pre = sac_preprocess_default();
    pre->width = v->width ? v->width : 640;
    pre->height = v->height ? v->height : 640;
    pre->layout = v->channels_last ? SAC_LAYOUT_NHWC : SAC_LAYOUT_NCHW;
    pre->dtype = dtype;
    if (head->defaults)
        head->defaults(v, pre);
    if (head->plugin && head->plugin->defaults)
        head->plugin->defaults(pre);
    return SAC_OK;
}
