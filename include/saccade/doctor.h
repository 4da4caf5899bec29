/* SPDX-License-Identifier: Apache-2.0 */
/* What the library finds on this machine, what is missing, and how to fix that.
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

/* How a finding is meant. */
enum sac_finding_level {
    SAC_FINDING_OK = 0,  /* present */
    SAC_FINDING_NOTE,    /* absent, but this machine does not need it */
    SAC_FINDING_MISSING, /* without it something works less well, or not at all */
    SAC_FINDING_FAULT    /* the main job, video in and tracks out, can't run */
};

/* One thing that was examined. */
struct sac_finding {
    const char            *area; /* "cpu", "ffmpeg", "onednn", "models", "gpu" */
    enum sac_finding_level level;
    const char            *text; /* one line */
    const char            *mend; /* a command that fixes it, or NULL */
};

/* Examine the machine and call fn with each finding, sorted by area. The texts are borrowed for the
 * call. Only NVIDIA's libraries, on a machine with a GPU, stay open afterwards. Any thread. */
SAC_API void sac_doctor_run(sac_context *ctx,
                            void (*fn)(void *user, const struct sac_finding *finding), void *user);

#ifdef __cplusplus
}
#endif
#endif
