/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/serves.h"

#include <stdio.h>

enum { OLDEST_TOOLKIT = 12, EARLY_MIN = 90, EARLY_DRIVER = 12030 };

/* A driver serves all builds of its own major version of CUDA and of those before. */
bool cuda_driver_serves(const struct cuda_build *build, int driver, char *why, size_t size)
{
    if (driver / 1000 >= build->cuda / 1000)
        return true;
    int at = snprintf(
        why, size,
        "the NVIDIA driver is for CUDA %d.%d and this build needs %d.0; install a newer driver",
        driver / 1000, driver % 1000 / 10, build->cuda / 1000);
    if (driver / 1000 >= OLDEST_TOOLKIT && (size_t)at < size)
        snprintf(why + at, size - (size_t)at, ", or build saccade with CUDA %d", driver / 1000);
    return false;
}

/* Code runs on cards of its own major number, from its minor one on. */
static bool has_code(const struct cuda_build *build, int card)
{
    for (int i = 0; i < build->code_count; i++)
        if (build->code[i] / 10 == card / 10 && build->code[i] <= card)
            return true;
    return false;
}

static int newest_code(const struct cuda_build *build)
{
    int newest = 0;
    for (int i = 0; i < build->code_count; i++)
        newest = build->code[i] > newest ? build->code[i] : newest;
    return newest;
}

bool cuda_card_serves(const struct cuda_build *build, int driver, const char *name, int major,
                      int minor, char *why, size_t size)
{
    const int card = major * 10 + minor;
    if (card < CUDA_COMPUTE_MIN)
        snprintf(why, size, "%.100s has compute capability %d.%d; the kernels need %d.%d", name,
                 major, minor, CUDA_COMPUTE_MIN / 10, CUDA_COMPUTE_MIN % 10);
    else if (has_code(build, card))
        return true;
    else if (card < newest_code(build))
        snprintf(why, size,
                 "%.100s has compute capability %d.%d, and this build has no code for it; build "
                 "saccade with -Dgpu_arch=%d",
                 name, major, minor, card);
    else if (driver / 10 < build->cuda / 10) /* PTX is of the toolkit's version, and older drivers
                                                don't read it */
        snprintf(why, size,
                 "%.100s has compute capability %d.%d, newer than this build's code, and a driver "
                 "for CUDA %d.%d cannot compile what CUDA %d.%d made; install a newer driver, or "
                 "build saccade with -Dgpu_arch=%d",
                 name, major, minor, driver / 1000, driver % 1000 / 10, build->cuda / 1000,
                 build->cuda % 1000 / 10, card);
    else
        return true;
    return false;
}

/* Newer cards than all code was made for run what their driver compiles of the newest. */
bool cuda_card_launches_early(const struct cuda_build *build, int driver, int major)
{
    return major * 10 >= EARLY_MIN && newest_code(build) >= EARLY_MIN && driver >= EARLY_DRIVER;
}
