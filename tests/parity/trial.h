/* SPDX-License-Identifier: Apache-2.0 */
/* Any provider's kernels against the reference rows, on any device, in float32 and float16: says on
 * one line what is wrong and goes on, since a run on a GPU must tell the most. */
#ifndef SAC_TESTS_PARITY_TRIAL_H
#define SAC_TESTS_PARITY_TRIAL_H

#include "tests/parity/subject.h"

#include "engine/kernel/kernel.h"

/* Beside those of cases.h. */
extern const struct parity_case trial_larger[];
extern const int                trial_larger_count;

struct trial {
    sac_device                       *dev;
    const struct sac_kernel_provider *provider;
    const char                       *only;  /* an operator's name, or NULL */
    const char                       *after; /* begin with the operator behind this one, or NULL */
    bool weights; /* constants of 8-bit convolutions and products are kept on the device; those of
                     others have parity/conv_cuda */
    bool small;   /* without the cases that are large for a library's sake */
    int  part, parts; /* of the cases each parts-th, from part on; parts 0: all */
    int  run, failed; /* nodes tried, in all layouts and precisions; of them wrong */
    bool broken; /* the device answers no more, as after an invalid address: a new process has to go
                    on */
};

/* All cases: random and extreme numbers, from each layout; a list of rows none of whose cases a
 * kernel took, and of how many rows have no kernel. Returns NULL, or the operator that broke the
 * device. */
const char *trial_all(struct trial *t);

#endif
