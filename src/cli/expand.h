/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_CLI_EXPAND_H
#define SAC_CLI_EXPAND_H

#include "fault.h"
#include "settings.h"

/* The arguments, with each folder of videos and each pattern replaced by its contents; out is zero
 * or a list. Returns the exit status. */
int expand_inputs(struct settings *s, struct text_list *out, struct fault *fault);
/* Whether there are several, and all are pictures. */
bool are_pictures(const struct text_list *list);

#endif
