/* SPDX-License-Identifier: Apache-2.0 */
/* The YAML file: every option's key, as `saccade config` prints them. */
#ifndef SAC_CLI_CONFIG_H
#define SAC_CLI_CONFIG_H

#include <stdio.h>

#include "options.h"

/* Set what the file sets. Faults name file and line: a key that no option has (with the nearest one
 * that there is), a key given twice, a value of the wrong type or out of range. The settings are
 * then partly changed. */
int config_read(struct settings *s, const char *path, struct fault *fault);
/* The same from memory; name stands in the sentences. */
int config_read_memory(struct settings *s, const void *bytes, size_t size, const char *name,
                       struct fault *fault);

/* The commented template with all keys and their defaults. */
void config_print(FILE *out);

#endif
