/* SPDX-License-Identifier: Apache-2.0 */
/* Standard error: log lines from any thread and one progress line, never mixed on one line. */
#ifndef SAC_CLI_TERM_H
#define SAC_CLI_TERM_H

#include <stdbool.h>

#include "fault.h"
#include "settings.h"

/* A context that logs to standard error at the level of the settings. */
int  term_context(const struct settings *s, sac_context **out, struct fault *fault);
bool term_is_terminal(void);
void term_line(const char *text); /* print a line, above the progress line. Any thread */
/* Redraw the progress line; NULL removes it. For terminals. */
void term_progress(const char *text);

#endif
