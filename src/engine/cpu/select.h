/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of Where and of what asks, which takes a Pow as well, however its two operands are
 * broadcast. It runs by sac_units_run; its state is freed by sac_free. */
#ifndef SAC_ENGINE_CPU_SELECT_H
#define SAC_ENGINE_CPU_SELECT_H

#include "engine/cpu/cpu.h"

struct sac_kernel_offer sac_cpu_select_supports(struct sac_device                *dev,
                                                const struct sac_kernel_question *q);
sac_result sac_cpu_select_prepare(struct sac_device *dev, struct sac_kernel_plan *plan);

#endif
