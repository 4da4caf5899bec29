/* SPDX-License-Identifier: Apache-2.0 */
/* The size of batch for a goal: each power of two is measured. */
#include <string.h>

#include "serve/runs.h"

enum { TRIED_MAX = 16 };
static const double SECONDS = 0.1; /* of measuring for each */
static const double NEARLY = 0.95; /* of the best rate: larger batches only take longer */
/* Runs of this long that gain nothing are the last: 32 mattes on two cores took a minute. */
static const double LONG_MS = 250;

static double rate(const struct sac_tuned *run)
{
    return run->size / run->ms;
}

int sac_tuned_choose(const struct sac_tuned *runs, int n, enum sac_server_goal goal, double goal_ms)
{
    double most = 0;
    int    best = 0;
    for (int i = 0; i < n; i++)
        most = SAC_MAX(most, rate(&runs[i]));
    if (goal == SAC_GOAL_THROUGHPUT)
        while (rate(&runs[best]) < NEARLY * most)
            best++;
    for (int i = 0; i < n && goal == SAC_GOAL_LATENCY; i++)
        if (runs[i].ms <= goal_ms)
            best = i;
    return runs[best].size;
}

static sac_result make_inputs(struct sac_runs *r, int size, sac_tensor **in)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < r->inputs && res == SAC_OK; i++) {
        struct sac_tensor_desc desc = r->item[i];
        desc.shape[0] = size;
        res = sac_tensor_create(r->dev, &desc, "to measure", &in[i]);
        void *zeros =
            res == SAC_OK ? sac_calloc((size_t)sac_tensor_desc_bytes(&desc) + 1, 1) : NULL;
        if (res == SAC_OK)
            res = zeros ? sac_tensor_upload(in[i], zeros)
                        : SAC_FAIL(r->dev->ctx, SAC_ERR_MEMORY, "no memory to measure with");
        sac_free(zeros);
    }
    return res;
}

static sac_result measure(struct sac_runs *r, struct sac_tuned *out)
{
    struct sac_model_times times = {0};
    sac_tensor           **in = sac_calloc((size_t)r->inputs, sizeof(sac_tensor *));
    if (!in)
        return SAC_FAIL(r->dev->ctx, SAC_ERR_MEMORY, "no memory to measure with");
    sac_result res = make_inputs(r, out->size, in);
    if (res == SAC_OK)
        res = sac_model_time(r->model, in, SECONDS, &times);
    for (int i = 0; i < r->inputs; i++)
        sac_tensor_unref(&in[i]);
    sac_free(in);
    out->ms = SAC_MAX(times.median_ms, 1e-6);
    return res;
}

sac_result sac_runs_tune(struct sac_runs *r, enum sac_server_goal goal, double goal_ms,
                         int batch_max, int *best)
{
    struct sac_tuned runs[TRIED_MAX];
    double           most = 0;
    int              n = 0;
    sac_result       res = SAC_OK;
    for (int size = 1; size <= batch_max && n < TRIED_MAX && res == SAC_OK; size *= 2) {
        runs[n].size = size;
        res = measure(r, &runs[n]);
        if (sac_is_out_of_memory(res) && n > 0) { /* what fits is what there is */
            sac_error_clear(r->dev->ctx);
            sac_device_pool_trim(r->dev);
            res = SAC_OK;
            break;
        }
        if (res == SAC_OK)
            sac_log(r->dev->ctx, SAC_LOG_DEBUG, "%s: a batch of %d takes %.3f ms",
                    sac_model_path(r->model), size, runs[n].ms);
        if (res == SAC_OK && n > 0 && runs[n].ms > LONG_MS && NEARLY * rate(&runs[n]) < most) {
            n++;
            break;
        }
        most = res == SAC_OK ? SAC_MAX(most, rate(&runs[n])) : most;
        n++;
    }
    if (res == SAC_OK)
        *best = sac_tuned_choose(runs, n, goal, goal_ms);
    return res;
}
