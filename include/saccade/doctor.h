/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine has for the library, what is missing, and what mends it.
 *
 *     static void show(void *user, const struct sac_finding *f) { puts(f->text); }
 *     ...
 *     sac_doctor_run(ctx, show, NULL);
 */
#ifndef SACCADE_DOCTOR_H
#define SACCADE_DOCTOR_H

#include <saccade/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sac_finding_level {
    SAC_FINDING_OK = 0,  /* there */
    SAC_FINDING_NOTE,    /* not there, and nothing is lost by it here */
    SAC_FINDING_MISSING, /* something works less well, or not at all, without it */
    SAC_FINDING_FAULT    /* the main job, video in and tracks out, can't run */
};

struct sac_finding {
    const char            *area; /* "cpu", "ffmpeg", "onednn", "models", "gpu" */
    enum sac_finding_level level;
    const char            *text; /* one line */
    const char            *mend; /* a command that mends it, or NULL */
};

/* Look, and hand each finding to fn in order, areas together. The texts are borrowed for the call.
 * Opens nothing that stays open but, on a GPU, NVIDIA's libraries. Any thread. */
SAC_API void sac_doctor_run(sac_context *ctx,
                            void (*fn)(void *user, const struct sac_finding *finding), void *user);

#ifdef __cplusplus
}
#endif
#endif
