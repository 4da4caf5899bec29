/* SPDX-License-Identifier: Apache-2.0 */
/* What one item of a model is: a tensor for each input, or a frame. */
#include "serve/runs.h"

#include <stdio.h>

#include "heads/heads.h"
#include "vision/fit.h"

/* Of networks whose head nobody knows, such as classifiers. */
static const struct sac_head no_head = {.name = "none"};

static sac_result read_contract(struct sac_runs *r, const struct sac_server_params *params,
                                const struct sac_head_view *view)
{
    sac_context              *ctx = r->dev->ctx;
    const struct sac_head    *head = sac_head_of(view);
    struct sac_model_contract contract = {0};
    sac_result res = sac_head_preprocess(ctx, head ? head : &no_head, view, &contract.pre);
    if (res == SAC_OK && params->width > 0 && params->height > 0) {
        contract.pre.width = params->width;
        contract.pre.height = params->height;
    }
    if (res == SAC_OK)
        res = sac_model_contract_read(r->model, params->preprocess, &contract);
    if (res == SAC_OK)
        res = sac_head_check_size(ctx, view, &contract);
    if (res == SAC_OK) {
        sac_contract_expect(r->model, &contract);
        r->pre = contract.pre;
        r->item[0] = sac_preprocess_desc(&r->pre, 1);
        r->pictures = true;
    }
    sac_model_contract_finish(&contract);
    return res;
}

/* Frames can be submitted to a model with one input that is a picture. */
static sac_result look_for_pictures(struct sac_runs *r, const struct sac_server_params *params)
{
    struct sac_head_view view;
    snprintf(r->why, sizeof r->why, "it has %d inputs", r->inputs);
    if (r->inputs != 1)
        return SAC_OK;
    sac_result res = sac_head_view_init(r->dev->ctx, r->model, params->preprocess, &view);
    if (res == SAC_OK && !view.feed.single)
        return read_contract(r, params, &view);
    if (res == SAC_OK)
        snprintf(r->why, sizeof r->why, "its picture has no batch dimension");
    else
        sac_error_take(r->dev->ctx, r->why, sizeof r->why);
    return res == SAC_ERR_UNSUPPORTED ? SAC_OK : res;
}

/* The sides of an image that the model leaves open, channels first or last. */
static void give_size(struct sac_tensor_desc *d, const struct sac_server_params *params)
{
    const bool last = d->rank == 4 && d->shape[3] >= 1 && d->shape[3] <= 4 && d->shape[1] < 0;
    const int  y = last ? 1 : 2;
    if (d->rank != 4 || params->width <= 0 || params->height <= 0)
        return;
    d->shape[y] = d->shape[y] < 0 ? params->height : d->shape[y];
    d->shape[y + 1] = d->shape[y + 1] < 0 ? params->width : d->shape[y + 1];
}

static sac_result check_item(struct sac_runs *r, int i)
{
    const struct sac_model_port *port = sac_model_input(r->model, i);
    struct sac_tensor_desc      *d = &r->item[i];
    char                         text[128];
    if (d->rank > 0 && (d->shape[0] == SAC_DIM_UNKNOWN || d->shape[0] == 1))
        d->shape[0] = 1;
    else
        return SAC_FAIL(r->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: input '%s' has no first dimension for items: it is no batch of 1",
                        sac_model_path(r->model), port->name);
    for (int k = 1; k < d->rank; k++)
        if (d->shape[k] < 0) {
            sac_tensor_desc_print(&port->desc, text, sizeof text);
            return SAC_FAIL(r->dev->ctx, SAC_ERR_ARG,
                            "%s: input '%s' (%s) leaves its size open: say it with width and "
                            "height",
                            sac_model_path(r->model), port->name, text);
        }
    return SAC_OK;
}

static sac_result provide_host(struct sac_runs *r)
{
    struct sac_device_params params = sac_device_params_default();
    params.threads = 1;
    return sac_device_open(r->dev->ctx, "cpu", &params, &r->host);
}

sac_result sac_runs_init(struct sac_runs *r, sac_model *model,
                         const struct sac_server_params *params)
{
    *r = (struct sac_runs){.model = sac_model_ref(model),
                           .dev = sac_device_ref(sac_model_device(model)),
                           .inputs = sac_model_input_count(model),
                           .outputs = sac_model_output_count(model)};
    sac_result res = SAC_OK;
    if (r->inputs == 0)
        return SAC_FAIL(r->dev->ctx, SAC_ERR_UNSUPPORTED, "%s: it has no inputs",
                        sac_model_path(model));
    r->item = sac_calloc((size_t)r->inputs, sizeof *r->item);
    if (!r->item)
        return SAC_FAIL(r->dev->ctx, SAC_ERR_MEMORY, "no memory for a server");
    for (int i = 0; i < r->inputs; i++) {
        r->item[i] = sac_model_input(model, i)->desc;
        give_size(&r->item[i], params);
    }
    res = look_for_pictures(r, params);
    for (int i = 0; i < r->inputs && res == SAC_OK; i++)
        res = check_item(r, i);
    if (res == SAC_OK && params->host_outputs && sac_device_apart(r->dev))
        res = provide_host(r);
    return res;
}
