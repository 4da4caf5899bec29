/* SPDX-License-Identifier: Apache-2.0 */
/* The models that come with saccade: small networks of its own, called by their names.
 *
 * Wherever a model's file is expected (sac_model_load, sac_detector_create, the parameters of a
 * pipeline or a session) such a name is accepted too: "person_det". A file of that name takes
 * precedence, so "./person_det" is always a file. NAME.onnx is searched for in these folders, and
 * the first one found is used:
 *
 *     $SACCADE_MODELS                         where it is set; may hold your own models too
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

/* Find a model's file.
 *
 * model    a file's path, which is returned unchanged whether the file exists or not; or a name,
 *          which contains neither a slash nor a dot.
 * path     [size] the file's path, terminated.
 * Threads  any, while nobody changes the environment.
 * Errors   SAC_ERR_IO for a name that is in none of the folders (the sentence lists them);
 *          SAC_ERR_LIMIT for a path that does not fit. */
SAC_API sac_result sac_models_find(sac_context *ctx, const char *model, char *path, size_t size);

/* A model that comes with saccade. */
struct sac_shipped_model {
    const char *name; /* "person_det" */
    const char *what; /* a line that describes it */
    const char *path; /* the file, or NULL where it is in none of the folders */
};
/* Call fn with each model that comes with saccade, found or not; it is borrowed for the call.
 * Threads as above. */
SAC_API void sac_models_list(void (*fn)(void *user, const struct sac_shipped_model *model),
                             void *user);

#ifdef __cplusplus
}
#endif
#endif
