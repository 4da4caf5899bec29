/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_CLI_EXPAND_H
#define SAC_CLI_EXPAND_H

#include "fault.h"
#include "settings.h"

/* The arguments, with each folder of videos and each pattern replaced by what is in it; out is zero or a list.
 * Returns the exit status. */
int  expand_inputs(struct settings *s, struct text_list *out, struct fault *fault);
/* Several, and all of them pictures. */
bool are_pictures(const struct text_list *list);

#endif
