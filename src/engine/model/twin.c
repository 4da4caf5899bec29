/* SPDX-License-Identifier: Apache-2.0 */
/* An instance of a model beside it. What was read from the file, the weights on the device and what
 * is known of kernels are the model's; plans, activations and the order of runs are its own, so
 * runs of both can be under way at the same time. */
#include <string.h>

#include "engine/model/model.h"

static void forget_own(sac_model *m)
{
    sac_refcount_init(&m->refs);
    memset(m->plans, 0, sizeof m->plans);
    m->clock = 0;
    m->activations = NULL;
    m->weights = (struct sac_weight_store){.dev = NULL};
    m->host = NULL;
    m->stream = m->capture = m->on = m->last = NULL;
    m->done = NULL;
    m->queued = false;
    m->profile = false;
    m->finite = (struct sac_finite){.dev = NULL};
    m->book = (struct sac_plan_book){.count = 0};
    m->book_path = NULL;
}

sac_result sac_model_twin(sac_model *of, sac_model **out)
{
    sac_model *m = sac_new(sac_model);
    if (!m)
        return SAC_FAIL(of->ctx, SAC_ERR_MEMORY, "%s: no memory for an instance", of->path);
    sac_model_batches(of); /* so that its check is not made again */
    pthread_mutex_lock(&of->lock);
    *m = *of;
    pthread_mutex_unlock(&of->lock);
    forget_own(m);
    pthread_mutex_init(&m->lock, NULL);
    m->of = sac_model_ref(of);
    sac_result res = sac_model_begin_runs(m);
    if (res == SAC_OK)
        *out = m;
    else
        sac_model_unref(&m);
    return res;
}
