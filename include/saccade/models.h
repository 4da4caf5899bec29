/* SPDX-License-Identifier: Apache-2.0 */
/* The models that come with saccade: small networks of its own, called by their names.
 *
 * Wherever a model's file is asked for (sac_model_load, sac_detector_create, the parameters of a
 * pipeline or a session) such a name does too: "person_det". A file of that name comes first, so
 * "./person_det" is always a file. NAME.onnx is looked for in these folders, the first that has it
 * counts:
 *
 *     $SACCADE_MODELS                         where it is set; models of your own may lie there too
 *     models/                                 beside the program, as in a bundle
 *     ../share/saccade/models/                from the program's folder, then from the library's
 *     the source tree's models/               for a program that is run from its build folder
 *     DATADIR/saccade/models/                 where `meson install` puts them
 */
#ifndef SACCADE_MODELS_H
#define SACCADE_MODELS_H

#include <stddef.h>
#include <saccade/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a model is.
 *
 * model    a file's path, which is handed back as it is, there or not; or a name, which has neither
 *          a slash nor a dot in it.
 * path     [size] the file's path, terminated.
 * Threads  any, while nobody changes the environment.
 * Errors   SAC_ERR_IO for a name that is in none of the folders: the sentence names them;
 *          SAC_ERR_LIMIT for a path that does not fit. */
SAC_API sac_result sac_models_find(sac_context *ctx, const char *model, char *path, size_t size);

struct sac_shipped_model {
    const char *name; /* "person_det" */
    const char *what; /* a line for people */
    const char *path; /* the file, or NULL where it is in none of the folders */
};
/* Hand each model that comes with saccade to fn, found or not; borrowed for the call. Threads as
 * above. */
SAC_API void sac_models_list(void (*fn)(void *user, const struct sac_shipped_model *model),
                             void *user);

#ifdef __cplusplus
}
#endif
#endif
