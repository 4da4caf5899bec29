/* SPDX-License-Identifier: Apache-2.0 */
/* The plain C row kernels: the reference. */
#define ROWS_TARGET
#include "device/cpu/cpu.h"
#include "vision/cpu/rows_template.h"

static void horizontal(const struct sac_axis *x, const int16_t *row, float *out)
{
    for (int i = 0; i < x->n; i++)
        out[i] = horizontal_at(x, row, i);
}

const struct sac_row_ops sac_row_ops_ref = {
    .vertical = vertical_plain,
    .horizontal = horizontal,
    .colour = colour_plain,
    .store = store_plain,
};

const struct sac_row_ops *sac_row_ops_best(void)
{
#if defined(__x86_64__)
    if (sac_cpu_level() >= SAC_CPU_AVX512)
        return &sac_row_ops_avx512;
    if (sac_cpu_level() >= SAC_CPU_AVX2)
        return &sac_row_ops_avx2;
#endif
    return &sac_row_ops_ref;
}
