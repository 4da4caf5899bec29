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
    &sac_head_recurrent, /* states beside the picture */
    &sac_head_matte,     /* one number a pixel */
    &sac_head_semantic,  /* one a class */
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

enum sac_head_kind sac_head_kind_of(const char *name)
{
    const struct sac_head *head = name ? sac_head_find(name) : NULL;
    if (!head)
        return SAC_HEAD_UNKNOWN;
    return head->matte ? SAC_HEAD_MATTES : head->layout ? SAC_HEAD_BOXES : SAC_HEAD_EMBEDDINGS;
}

void sac_head_list(void (*fn)(void *user, const char *name, const char *what), void *user)
{
    if (!fn)
        return;
    for (size_t i = 0; i < SAC_COUNT(heads); i++)
        fn(user, heads[i]->name, heads[i]->what);
}

void sac_head_names(bool mattes, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < SAC_COUNT(heads) && used < size; i++)
        if (mattes ? heads[i]->matte || heads[i]->coefficients : heads[i]->layout != NULL)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", heads[i]->name);
}

const char *sac_head_recognise(const sac_model *model)
{
    if (!model)
        return NULL;
    struct sac_head_view view;
    if (sac_head_view_init(NULL, model, NULL, &view) != SAC_OK)
        return NULL;
    const struct sac_head *head = sac_head_of(&view);
    return head ? head->name : NULL;
}

const char *sac_head_prototypes(const sac_model *model)
{
    if (!model)
        return NULL;
    struct sac_head_view   view;
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    if (sac_head_view_init(NULL, model, NULL, &view) != SAC_OK ||
        !sac_head_has_instances(sac_head_of(&view), &view))
        return NULL;
    return view.output[sac_head_find_prototypes(t, sac_head_view_tensors(&view, t))].name;
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

void sac_head_why_not(const struct sac_head_view *view, bool mattes, char *out, size_t size)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    char                   shapes[512], names[256];
    int                    classes;
    const struct sac_head *head = head_without_names(view, &classes);
    sac_head_shapes_text(t, sac_head_view_tensors(view, t), shapes, sizeof shapes);
    sac_head_names(mattes, names, sizeof names);
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
    else if (mattes)
        snprintf(out, size,
                 "its outputs, of one picture %s, are no map of classes or of a matte that can be "
                 "told from other maps; --head takes %s",
                 shapes, names);
    else
        snprintf(out, size,
                 "its outputs, of one picture %s, are not those of a known network; --head takes "
                 "%s, or a "
                 "shared object of your own",
                 shapes, names);
}

/* ---- preprocessing ---- */

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

sac_result sac_head_check_size(sac_context *ctx, const struct sac_head_view *v,
                               struct sac_model_contract *io)
{
    struct sac_preprocess *pre = &io->pre;
    const bool             fits =
        (!v->width || v->width == pre->width) && (!v->height || v->height == pre->height);
    if (!fits && io->size_from == SAC_FROM_USER)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "preprocess: size %dx%d; the input of %s is fixed to %dx%d", pre->width,
                        pre->height, sac_model_path(v->model), v->width, v->height);
    if (!fits) {
        pre->width = v->width ? v->width : pre->width;
        pre->height = v->height ? v->height : pre->height;
        io->size_from = SAC_FROM_HEAD;
    }
    return SAC_OK;
}
