/* SPDX-License-Identifier: Apache-2.0 */
/* A small file that is there whole or not at all. */
#ifndef SAC_CLI_WHOLE_FILE_H
#define SAC_CLI_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "fault.h"

/* Call put with a stream to fill, then give the file its name: what was there before is replaced
 * in one step. path "-" is standard output; a pipe or a device is written in place. */
int whole_file_write(const char *path, void (*put)(const void *user, FILE *out), const void *user,
                     struct fault *fault);
/* "-", a pipe or a device: nothing lies beside it, and it can't be read again. */
bool whole_file_is_stream(const char *path);
/* As a sentence names it. */
const char *whole_file_name(const char *path);
/* Whether such a file can be written, before hours of work: the folder is there and open. */
int whole_file_check(const char *path, struct fault *fault);

#endif
