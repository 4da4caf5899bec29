/* SPDX-License-Identifier: Apache-2.0 */
/* A device for tests whose memory is not the host's, without a GPU: its addresses cannot be read or
 * written, so whoever takes them for host memory crashes; its work is queued and done no sooner
 * than somebody waits for it; streams can be captured. Kernels are the reference rows between
 * conversions of layouts. */
#ifndef SAC_TESTS_ENGINE_FAR_H
#define SAC_TESTS_ENGINE_FAR_H

#include "device/device.h"
#include "engine/kernel/kernel.h"

/* What it did since far_reset. */
struct far_counts {
    int kernels, relayouts, launches, captures, branched; /* branched: captures that have parts */
    int prepared, measured, told; /* kernels made; with leave to measure; with a choice of their own
                                     from a plan file, */
    int         lent;             /* or with one that was made for other shapes */
    int         foreseen; /* of those prepared: told of before the first, and as they came then */
    int         taken;    /* constants that kernels took */
    int         united;   /* of the launches: those of what was gathered; graphs made for them */
    int         united_made;
    bool        capture_fails; /* in: the next captures do */
    bool        full;          /* in: it has no memory left */
    bool        goes_on;       /* in: it also works while it is only asked how far it is */
    bool        wrong;         /* in: what kernels compute is wrong, */
    const char *wrong_op;      /* in: those of this operator alone; NULL: all */
    float       drift; /* in: every kernel's numbers are larger by that part of themselves */
};
extern struct far_counts far_counts;

/* Kernels that are asked before its own, or NULL; set before it is opened. */
extern const struct sac_kernel_provider *far_first;
/* For them: when the stream comes to it, run is called with addresses that the host can use. */
typedef void far_run_fn(const void *state, void *const *in, void *const *out, void *scratch);
void far_queue(struct sac_device_stream *stream, far_run_fn *run, const void *state, int in_count,
               void *const *in, int out_count, void *const *out, void *scratch);

/* far_pictures.c: the entries that mattes take, computed by the CPU when the stream comes to them;
 * linked with it the device has them. Frames on their side are turned first. */
extern const struct sac_vision_ops far_pictures;
/* Queue one: run is called when the stream comes to it, with the CPU's device, then arg is freed.
 */
typedef void far_picture_fn(sac_device *cpu, void *arg);
void  far_queue_picture(sac_device *dev, struct sac_device_stream *stream, far_picture_fn *run,
                        void *arg);
void *far_near(const void *far); /* where the host finds it; NULL: NULL */

/* The table of the device; pictures: with entries for frames. */
const struct sac_device_ops *far_ops(const struct sac_vision_ops *pictures);

sac_result far_open(sac_context *ctx, const struct sac_device_params *params, sac_device **out);

#endif
