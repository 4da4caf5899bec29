/* SPDX-License-Identifier: Apache-2.0 */
/* The .npy files of a model's outputs: NAME.npy, one for each. The names come from the model, so
 * characters that can't be in a file name or lead out of the folder become "_", long names are cut,
 * and a name that is taken gets a number: of "a/b" and "a_b" the second keeps its name, the first
 * is a_b-2.npy. */
#ifndef SAC_CLI_ARRAY_FILES_H
#define SAC_CLI_ARRAY_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct array_files {
    char **path; /* [count] */
    size_t count;
};

/* false: no memory; call array_files_finish even then. */
bool array_files_plan(struct array_files *files, const char *folder, const char *const *names,
                      size_t count);
/* Call it before file i is written, in order: on a file system where "A" and "a" are one file, i
 * gets another path. false: no memory. */
bool array_files_settle(struct array_files *files, size_t i);
void array_files_finish(struct array_files *files);

#endif
