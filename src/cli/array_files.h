/* SPDX-License-Identifier: Apache-2.0 */
/* The .npy files of a model's outputs: NAME.npy, one for each. A model chose the names, so what can't be a file's name
 * or would lead out of the folder becomes "_", what is long is cut, and a file that would be another's gets a number:
 * of "a/b" and "a_b" the second keeps its name, the first is a_b-2.npy. */
#ifndef SAC_CLI_ARRAY_FILES_H
#define SAC_CLI_ARRAY_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct array_files {
    char **path; /* [count] */
    size_t count;
};

/* false: no memory; array_files_finish is right even then. */
bool array_files_plan(struct array_files *files, const char *folder, const char *const *names, size_t count);
/* Before number i is written, with those before it written: on a file system that takes "A" and "a" for one name it
 * gets another path. false: no memory. */
bool array_files_settle(struct array_files *files, size_t i);
void array_files_finish(struct array_files *files);

#endif
