/* SPDX-License-Identifier: Apache-2.0 */
/* Chain's kernel, which takes an Add, Sub, Mul, Div, Max or Min of two as well, however they are
 * broadcast. Its state begins with a struct sac_units and is freed by sac_free. */
#ifndef SAC_ENGINE_CPU_CHAIN_H
#define SAC_ENGINE_CPU_CHAIN_H

#include "engine/kernel/kernel.h"

struct sac_kernel_offer sac_cpu_chain_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q);
sac_result              sac_cpu_chain_prepare(struct sac_device *dev, struct sac_kernel_plan *plan);

#endif
