/* SPDX-License-Identifier: Apache-2.0 */
/* A context that keeps what it says, for tests of plans. */
#ifndef SAC_TESTS_ENGINE_SAID_H
#define SAC_TESTS_ENGINE_SAID_H

#include "base/base.h"
#include "tests/test.h"

static sac_context *ctx;
static char         said[1 << 16];

static inline void keep(void *user, enum sac_log_level level, const char *message)
{
    (void)user;
    if (level <= SAC_LOG_INFO && strlen(said) + strlen(message) + 2 < sizeof said)
        strcat(strcat(said, message), "\n");
}

static inline bool said_open(void)
{
    struct sac_context_params params = sac_context_params_default();
    params.log_fn = keep;
    said[0] = '\0';
    return sac_context_create(&params, &ctx) == SAC_OK;
}

static inline const char *last_error(void)
{
    static char why[1024];
    sac_context_last_error(ctx, why, sizeof why);
    return why;
}

static inline void ok(sac_result res)
{
    if (res != SAC_OK)
        fail_msg("%s: %s", sac_result_name(res), last_error());
}

static inline void expect_said(const char *words)
{
    if (!strstr(said, words))
        fail_msg("'%s' does not say '%s'", said, words);
}

#endif
