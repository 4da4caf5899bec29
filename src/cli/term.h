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
/* Print whole lines that are clean already, as those that another process wrote. */
void term_text(const char *text, size_t length);
/* Redraw the progress line; NULL removes it. For terminals. */
void term_progress(const char *text);
/* In a process that was forked: the line that its parent shows is not its own. */
void term_forget(void);

#endif
