/* SPDX-License-Identifier: Apache-2.0 */
/* A run must not overwrite a file that it reads.
 *
 * A pipeline and a session check their own files. This is for a program that reads and writes
 * others:
 *     const char *const in[] = {"x.npy", sac_model_file(model, 0)}, *const out[] = {"y.npy"};
 *     sac_result        res = sac_files_check(ctx, out, 1, in, 2);
 */
#ifndef SACCADE_FILES_H
#define SACCADE_FILES_H

#include <stddef.h>
#include <saccade/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Check that no output would overwrite an input or another output. Files are compared by identity,
 * not by name: q.txt and ./q.txt, a path through a linked folder, symbolic and hard links are one
 * file.
 *
 * outputs, inputs   paths of files that may or may not exist; "-" is standard output or standard
 *                   input; NULL is skipped. The null device may be written any number of times.
 * Threads           any.
 * Errors            SAC_ERR_ARG: the sentence names both; SAC_ERR_MEMORY. */
SAC_API sac_result sac_files_check(sac_context *ctx, const char *const *outputs,
                                   size_t output_count, const char *const *inputs,
                                   size_t input_count);

#ifdef __cplusplus
}
#endif
#endif
