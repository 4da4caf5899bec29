/* SPDX-License-Identifier: Apache-2.0 */
/* Are the numbers that a network gives finite? A sum beyond float16's range becomes infinite, and
 * everything behind it NaN: nothing is found then, and nobody would learn why. So all outputs of
 * every run are looked at, where they lie; the device sets a word of host memory if one is not
 * finite, and the log says so once. Where an output is of integers, the plan looks at the numbers
 * that they are made of (engine/plan/finite.c). */
#ifndef SAC_ENGINE_MODEL_FINITE_H
#define SAC_ENGINE_MODEL_FINITE_H

#include "device/device.h"

struct sac_finite {
    sac_device        *dev; /* NULL: not opened; borrowed */
    volatile uint32_t *odd; /* 1: a number was NaN or infinite; kernels write it where it is */
    bool               said;
};

/* Without memory for it nothing is looked at. */
void sac_finite_open(struct sac_finite *f, sac_device *dev);
void sac_finite_close(struct sac_finite *f); /* with all looks done; accepts a zeroed struct */

/* Looks at `count` tensors, NULL and integer ones left out, once what is queued on the stream is
 * done; of those with `of` images only at the first n. */
sac_result sac_finite_look(struct sac_finite *f, sac_device *dev, struct sac_device_stream *stream,
                           sac_tensor *const *tensors, int count, int n, int of);
/* After runs with made-up input, which are done: what they gave is no fault. */
void sac_finite_forget(struct sac_finite *f);
/* Warns, once, if a look that is done has found something. path: of the model, which ran in this
 * precision. */
void sac_finite_say(struct sac_finite *f, sac_context *ctx, const char *path,
                    enum sac_precision precision);

#endif
