/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "pipeline/job.h"

void sac_fault_init(struct sac_fault *fault)
{
    *fault = (struct sac_fault){.res = SAC_OK};
    pthread_mutex_init(&fault->lock, NULL);
}

void sac_fault_finish(struct sac_fault *fault)
{
    pthread_mutex_destroy(&fault->lock);
}

bool sac_fault_keep(struct sac_fault *fault, sac_context *ctx, sac_result res)
{
    if (res == SAC_OK)
        return false;
    char sentence[sizeof fault->sentence];
    sac_context_last_error(ctx, sentence, sizeof sentence);
    pthread_mutex_lock(&fault->lock);
    bool first = fault->res == SAC_OK;
    if (first) {
        fault->res = res;
        memcpy(fault->sentence, sentence, sizeof sentence);
    }
    pthread_mutex_unlock(&fault->lock);
    if (!first)
        sac_log(ctx, SAC_LOG_WARN, "and: %s", sentence);
    return first;
}

sac_result sac_fault_raise(struct sac_fault *fault, sac_context *ctx)
{
    pthread_mutex_lock(&fault->lock);
    sac_result res = fault->res;
    if (res != SAC_OK)
        res = SAC_FAIL(ctx, res, "%s", fault->sentence);
    pthread_mutex_unlock(&fault->lock);
    return res;
}
