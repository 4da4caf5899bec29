/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/request.h"

#include <string.h>

struct sac_request_params sac_request_params_default(void)
{
    return (struct sac_request_params){.priority = 0};
}

static void drop_inputs(sac_request *r)
{
    for (int i = 0; r->in && i < r->input_count; i++)
        sac_tensor_unref(&r->in[i]);
    sac_frame_unref(&r->frame);
}

void sac_request_drop_outputs(sac_request *r)
{
    for (int i = 0; r->out && i < r->output_count; i++)
        sac_tensor_unref(&r->out[i]);
}

sac_result sac_request_create(sac_context *ctx, const struct sac_request_params *params,
                              int input_count, sac_tensor *const *in, sac_frame *frame,
                              int output_count, sac_request **out)
{
    sac_request *r = sac_new(sac_request);
    if (!r)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a request");
    sac_refcount_init(&r->refs);
    pthread_mutex_init(&r->lock, NULL);
    sac_cond_init(&r->changed);
    r->ctx = ctx;
    r->params = *params;
    r->input_count = input_count;
    r->output_count = output_count;
    r->in = sac_calloc((size_t)input_count + 1, sizeof(sac_tensor *));
    r->out = sac_calloc((size_t)output_count + 1, sizeof(sac_tensor *));
    if (!r->in || !r->out) {
        sac_request_unref(&r);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a request");
    }
    for (int i = 0; in && i < input_count; i++)
        r->in[i] = sac_tensor_ref(in[i]);
    r->frame = sac_frame_ref(frame);
    *out = r;
    return SAC_OK;
}

sac_request *sac_request_ref(sac_request *r)
{
    if (r)
        sac_refcount_inc(&r->refs);
    return r;
}

void sac_request_unref(sac_request **at)
{
    sac_request *r = at ? *at : NULL;
    if (!r)
        return;
    *at = NULL;
    if (!sac_refcount_dec(&r->refs))
        return;
    drop_inputs(r);
    sac_request_drop_outputs(r);
    sac_free(r->in);
    sac_free(r->out);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    sac_free(r);
}

void sac_request_fail(sac_request *r, sac_result res)
{
    r->status = res;
    sac_context_last_error(r->ctx, r->why, sizeof r->why);
    sac_request_drop_outputs(r);
}

void sac_request_describe(const sac_request *r, struct sac_answer *out)
{
    *out = (struct sac_answer){
        .id = r->params.id,
        .priority = r->params.priority,
        .status = r->status,
        .why = r->why,
        .outputs = r->status == SAC_OK ? r->out : NULL,
        .output_count = r->status == SAC_OK ? r->output_count : 0,
        .batch = r->batch,
        .late = r->deadline_ns > 0 && r->answered_ns > r->deadline_ns,
        .queue_ns = (r->batch ? r->begun_ns : r->answered_ns) - r->submitted_ns,
        .run_ns = r->batch ? r->done_ns - r->begun_ns : 0,
        .latency_ns = r->answered_ns - r->submitted_ns,
    };
}

void sac_request_settle(sac_request *r)
{
    drop_inputs(r);
    pthread_mutex_lock(&r->lock);
    r->answered = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (r->params.done) {
        struct sac_answer answer;
        sac_request_describe(r, &answer);
        r->params.done(r->params.user, &answer);
    }
}

sac_result sac_request_wait(sac_request *r, int64_t timeout_ns, struct sac_answer *answer)
{
    SAC_NEEDS(NULL, r);
    const int64_t now_ns = sac_time_ns();
    const int64_t end_ns = timeout_ns < 0                    ? -1
                           : timeout_ns < INT64_MAX - now_ns ? now_ns + timeout_ns
                                                             : -1; /* centuries */
    pthread_mutex_lock(&r->lock);
    while (!r->answered && sac_cond_wait_until(&r->changed, &r->lock, end_ns))
        ;
    const bool answered = r->answered;
    pthread_mutex_unlock(&r->lock);
    if (!answered)
        return SAC_AGAIN;
    if (answer)
        sac_request_describe(r, answer);
    return r->status == SAC_OK ? SAC_OK : SAC_FAIL(r->ctx, r->status, "%s", r->why);
}
