/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a difference that was measured a few times is more than noise. */
#ifndef SAC_CLI_GAIN_H
#define SAC_CLI_GAIN_H

#include <stdbool.h>

struct gain {
    double mean;
    double noise; /* half the 95 % interval of the mean; INFINITY of fewer than two */
    int    count;
};
/* Student's interval of n differences, in any unit. */
struct gain gain_of(const double *differences, int n);
/* The whole interval lies above 0. */
bool gain_is_real(const struct gain *gain);

#endif
