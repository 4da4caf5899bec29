/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_CLI_WRAP_H
#define SAC_CLI_WRAP_H

#include <stdio.h>

#include "../base/json.h"
#include "fault.h"

/* Print text in lines of up to `width` columns, broken at spaces: the first line begins with first,
 * the others with rest. Ends with a newline. ASCII. */
void print_wrapped(FILE *out, const char *text, const char *first, const char *rest, int width);
/* Print untrusted text: control characters, which may control a terminal, become question marks. */
void print_clean(FILE *out, const char *text);
/* Print a whole document to standard output, with a newline, and free its text. */
int print_json(struct sac_json *json, struct fault *fault);

#endif
