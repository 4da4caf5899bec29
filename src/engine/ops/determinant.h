/* SPDX-License-Identifier: Apache-2.0 */
/* Determinants by elimination with pivots, for both the reference row and the CUDA kernel. */
#ifndef SAC_ENGINE_OPS_DETERMINANT_H
#define SAC_ENGINE_OPS_DETERMINANT_H

#include <math.h>
#include <stdint.h>

#include "base/anywhere.h"

/* a   [n,n], overwritten. */
SAC_ANYWHERE double sac_determinant(double *a, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            pivot = fabs(a[i * n + k]) > fabs(a[pivot * n + k]) ? i : pivot;
        if (a[pivot * n + k] == 0)
            return 0;
        for (int64_t j = k; j < n && pivot != k; j++) {
            const double swap = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = swap;
        }
        det *= pivot != k ? -a[k * n + k] : a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

#endif
