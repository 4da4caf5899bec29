/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of the parity test: for every operator row, nodes with their inputs and attributes.
 *
 * inputs   one word each:
 *            [1,3,9,9]       float32 of that shape, random
 *            u8[4,4]         another dtype: f16 bf16 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool f8
 *            i64[2,3]%5      random numbers from 0 to 4
 *            f32[4]+         random, not under 0.1 (scales, variances)
 *            i64(1,-1,2)     these numbers
 *            f32=0.5         a scalar
 *            -               left out
 *            ...!            known when the node is planned, as weights are
 * attrs    name=1, name=1,2 (ints), name=1. or 0.5,2. (floats), name='text'; separated by spaces
 * outputs  how many the node has; 0 means one
 */
#ifndef SAC_TESTS_PARITY_CASES_H
#define SAC_TESTS_PARITY_CASES_H

#include <stdbool.h>

struct parity_case {
    const char *op;
    const char *inputs;
    const char *attrs;
    int         outputs;
    int         opset; /* 0: the newest */
    bool large; /* for a library or kernel that takes no smaller one: nothing new elsewhere */
};

extern const struct parity_case parity_cases[];
extern const int                parity_case_count;

#endif
