/* SPDX-License-Identifier: Apache-2.0 */
/* An embedder runs crops of one frame through a network and returns rows of length 1, so that the
 * dot product of two rows is their cosine. */
#include <math.h>
#include <string.h>

#include "vision/embed.h"
#include "vision/fit.h"
#include "reid/embedder.h"

struct sac_embedder_params sac_embedder_params_default(void)
{
    return (struct sac_embedder_params){.batch_max = 16};
}

/* ---- creation ---- */

static sac_result set_up(struct sac_embedder *emb, const struct sac_embedder_params *p)
{
    sac_context           *ctx = emb->dev->ctx;
    const struct sac_head *head = &sac_head_embedding;
    struct sac_preprocess *pre = &emb->contract.pre;
    struct sac_head_view   view;
    sac_result             res = sac_head_view_init(ctx, emb->model, &view);
    if (res != SAC_OK)
        return res;
    const char *path = sac_model_path(emb->model);
    if (view.feed.count != 1 || view.feed.single)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: an embedder has one input, a batch of pictures", path);
    if (!head->recognise(&view))
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: it has no output of one row of numbers per image", path);
    if (!view.width || !view.height)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: its input size is open; an embedder needs a fixed one", path);
    res = sac_head_preprocess(ctx, head, &view, pre);
    if (res == SAC_OK)
        res = sac_model_contract_read(emb->model, p->preprocess, &emb->contract);
    if (res != SAC_OK)
        return res;
    if (pre->width != view.width || pre->height != view.height)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "preprocess: size %dx%d; the input of %s is fixed to %dx%d", pre->width,
                        pre->height, path, view.width, view.height);
    emb->dim = (int)view.output[0].desc.shape[1];
    emb->batch = sac_model_batches(emb->model) ? p->batch_max : 1;
    return sac_embedder_device_open(emb);
}

sac_result sac_embedder_create(sac_device *dev, const char *model_path,
                               const struct sac_embedder_params *params, sac_embedder **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), model_path);
    SAC_NEEDS(sac_device_context(dev), out);
    SAC_NEEDS_NO_LATER_FIELD(dev->ctx, params);
    struct sac_embedder_params p = params ? *params : sac_embedder_params_default();
    if (p.batch_max < 1 || p.batch_max > 1024)
        return SAC_FAIL(dev->ctx, SAC_ERR_ARG, "batch_max is %d; have 1 to 1024", p.batch_max);
    struct sac_embedder *emb = sac_new(struct sac_embedder);
    if (!emb)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for an embedder");
    struct sac_model_params model = sac_model_params_default();
    model.precision = p.precision;
    emb->dev = sac_device_ref(dev);
    sac_result res = sac_model_load(dev, model_path, &model, &emb->model);
    if (res == SAC_OK)
        res = set_up(emb, &p);
    if (res == SAC_OK)
        *out = emb;
    else
        sac_embedder_destroy(&emb);
    return res;
}

void sac_embedder_destroy(sac_embedder **emb_at)
{
    struct sac_embedder *emb = emb_at ? *emb_at : NULL;
    if (!emb)
        return;
    sac_embedder_device_close(emb);
    sac_model_contract_finish(&emb->contract);
    sac_model_unref(&emb->model);
    sac_device_unref(&emb->dev);
    sac_free(emb);
    *emb_at = NULL;
}

/* ---- a run ---- */

sac_result sac_embedder_run(sac_embedder *emb, const sac_frame *frame,
                            const struct sac_detection *boxes, size_t n, float *out)
{
    SAC_NEEDS(emb ? emb->dev->ctx : NULL, emb);
    SAC_NEEDS(emb ? emb->dev->ctx : NULL, frame);
    SAC_NEEDS_ARRAY(emb ? emb->dev->ctx : NULL, boxes, n);
    SAC_NEEDS_ARRAY(emb ? emb->dev->ctx : NULL, out, n);
    emb->times = (struct sac_run_times){.begun_ns = sac_time_ns()};
    return sac_embedder_run_there(emb, frame, boxes, n, out);
}

/* ---- questions ---- */

void sac_embedder_get_times(const sac_embedder *emb, struct sac_run_times *out)
{
    if (!emb || !out)
        return;
    *out = emb->times;
}

int sac_embedder_dim(const sac_embedder *emb)
{
    if (!emb)
        return 0;
    return emb->dim;
}

const struct sac_model_contract *sac_embedder_contract(const sac_embedder *emb)
{
    if (!emb)
        return NULL;
    return &emb->contract;
}

sac_model *sac_embedder_model(const sac_embedder *emb)
{
    if (!emb)
        return NULL;
    return emb->model;
}
