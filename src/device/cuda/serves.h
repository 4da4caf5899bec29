/* SPDX-License-Identifier: Apache-2.0 */
/* Do driver and card serve what this plug-in was compiled with, and for? Plain numbers, so that
 * each answer can be tested without a GPU. */
#ifndef SAC_DEVICE_CUDA_SERVES_H
#define SAC_DEVICE_CUDA_SERVES_H

#include <stdbool.h>
#include <stddef.h>

enum { CUDA_COMPUTE_MIN = 80 }; /* Ampere: the oldest that the kernels are built for */

struct cuda_build {
    int        cuda; /* 12040: CUDA 12.4 */
    const int *code; /* [code_count] compute capabilities with code of their own; the largest also
                        as PTX, which drivers compile for newer cards */
    int code_count;
};

/* driver   CUDA's version that it is for, 13000.
 * why      otherwise: half a sentence, with what mends it. */
bool cuda_driver_serves(const struct cuda_build *build, int driver, char *why, size_t size);
/* major, minor   compute capability; the driver does. */
bool cuda_card_serves(const struct cuda_build *build, int driver, const char *name, int major,
                      int minor, char *why, size_t size);
/* Of a card that is served: may kernels be launched early (early.c)? Compute capability 9.0 has it;
 * CUDA graphs since 12.3; and the card's code must wait, as only code for 9.0 and later does. */
bool cuda_card_launches_early(const struct cuda_build *build, int driver, int major);

#endif
