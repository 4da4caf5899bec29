/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "fault.h"

int fault_failure(struct fault *fault, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(fault->sentence, sizeof fault->sentence, fmt, ap);
    va_end(ap);
    return STATUS_FAILURE;
}

int fault_usage(struct fault *fault, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(fault->sentence, sizeof fault->sentence, fmt, ap);
    va_end(ap);
    return STATUS_USAGE;
}

int fault_library(struct fault *fault, const sac_context *ctx, sac_result res)
{
    if (sac_context_last_error(ctx, fault->sentence, sizeof fault->sentence) == 0)
        snprintf(fault->sentence, sizeof fault->sentence, "%s", sac_result_name(res));
    return STATUS_FAILURE;
}
