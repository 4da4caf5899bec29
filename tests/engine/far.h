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
    int kernels, relayouts, launches, captures;
    int prepared, measured, told; /* kernels made; with leave to measure; with a choice from a plan
                                     file */
    int         taken;            /* constants that kernels took */
    bool        capture_fails;    /* in: the next captures do */
    bool        full;             /* in: it has no memory left */
    bool        wrong;            /* in: what kernels compute is wrong, */
    const char *wrong_op;         /* in: those of this operator alone; NULL: all */
    float       drift; /* in: every kernel's numbers are larger by that part of themselves */
};
extern struct far_counts far_counts;

/* Kernels that are asked before its own, or NULL; set before it is opened. */
extern const struct sac_kernel_provider *far_first;
/* For them: when the stream comes to it, run is called with addresses that the host can use. */
typedef void far_run_fn(const void *state, void *const *in, void *const *out, void *scratch);
void far_queue(struct sac_device_stream *stream, far_run_fn *run, const void *state, int in_count,
               void *const *in, int out_count, void *const *out, void *scratch);

sac_result far_open(sac_context *ctx, const struct sac_device_params *params, sac_device **out);

#endif
