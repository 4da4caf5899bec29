/* SPDX-License-Identifier: Apache-2.0 */
/* A benchmark's context, and its exit at the first error, with the sentence. */
#ifndef SAC_BENCH_MUST_H
#define SAC_BENCH_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include <saccade/context.h>

static sac_context *ctx;

static void must(sac_result res)
{
    char why[512];
    if (res == SAC_OK)
        return;
    sac_context_last_error(ctx, why, sizeof why);
    fprintf(stderr, "%s\n", why);
    exit(1);
}

#endif
