/* SPDX-License-Identifier: Apache-2.0 */
/* The k best numbers of a line as the CUDA device finds them, with emulated threads. */
#ifndef SAC_TESTS_EMULATED_TOPK_H
#define SAC_TESTS_EMULATED_TOPK_H

#include <stdbool.h>
#include <stdint.h>

struct emulated_topk {
    const uint32_t *bits; /* [n] numbers of `width` bits */
    int             width, n, k, threads;
    uint32_t        infinity;
    bool            least;
    uint32_t       *out; /* [k] their indices */
};

#ifdef __cplusplus
extern "C"
#endif
    void
    emulated_topk(const struct emulated_topk *t);

#endif
