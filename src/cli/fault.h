/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, for the person at the terminal: one sentence and the exit status that goes with
 * it. The function that finds the fault fills it and returns the status; main prints it once. */
#ifndef SAC_CLI_FAULT_H
#define SAC_CLI_FAULT_H

#include <saccade/context.h>

enum {
    STATUS_OK = 0,
    STATUS_FAILURE = 1,      /* the work was tried and failed */
    STATUS_USAGE = 2,        /* the command line or the configuration is wrong */
    STATUS_INTERRUPTED = 130 /* 128 + SIGINT, as shells count */
};

struct fault {
    char sentence[1024];
};

int fault_failure(struct fault *fault, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int fault_usage(struct fault *fault, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The library's last error sentence. */
int fault_library(struct fault *fault, const sac_context *ctx, sac_result res);

#endif
