/* SPDX-License-Identifier: Apache-2.0 */
#include "gain.h"

#include <math.h>

/* The 97.5 % point of Student's distribution; beyond the table the last, which is a little wide. */
static double student(int freedom)
{
    static const double points[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                    2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120};
    const int           count = sizeof points / sizeof points[0];
    return freedom <= count ? points[freedom - 1] : 2.12;
}

struct gain gain_of(const double *differences, int n)
{
    struct gain gain = {.noise = INFINITY, .count = n};
    double      squares = 0;
    for (int i = 0; i < n; i++)
        gain.mean += differences[i] / n;
    for (int i = 0; i < n; i++)
        squares += (differences[i] - gain.mean) * (differences[i] - gain.mean);
    if (n > 1)
        gain.noise = student(n - 1) * sqrt(squares / (n - 1) / n);
    return gain;
}

bool gain_is_real(const struct gain *gain)
{
    return gain->mean > 0 && gain->mean > gain->noise;
}
