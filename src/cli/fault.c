/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "fault.h"

/* An argument that a sentence quotes may be the address of a camera with its password. */
static void write_sentence(struct fault *fault, const char *fmt, va_list ap)
{
    char plain[2 * sizeof fault->sentence];
    vsnprintf(plain, sizeof plain, fmt, ap);
    sac_hide_secrets(plain, fault->sentence, sizeof fault->sentence);
}

int fault_failure(struct fault *fault, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    write_sentence(fault, fmt, ap);
    va_end(ap);
    return STATUS_FAILURE;
}

int fault_usage(struct fault *fault, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    write_sentence(fault, fmt, ap);
    va_end(ap);
    return STATUS_USAGE;
}

int fault_library(struct fault *fault, const sac_context *ctx, sac_result res)
{
    if (sac_context_last_error(ctx, fault->sentence, sizeof fault->sentence) == 0)
        snprintf(fault->sentence, sizeof fault->sentence, "%s", sac_result_name(res));
    return STATUS_FAILURE;
}
