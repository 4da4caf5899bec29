/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of MP4 files that are to be shown in another orientation. */
#ifndef SAC_TESTS_DISPLAY_H
#define SAC_TESTS_DISPLAY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <saccade/frame.h>

#include "tests/test.h"

/* The linear part of a matrix that mirrors first and then turns; y grows downward. */
static inline void display_numbers(enum sac_orientation o, int32_t out[4])
{
    static const int right[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}}; /* where right goes to; down
                                                                          a turn further */
    const int turns = o & 3, sign = o & SAC_MIRROR ? -1 : 1;
    out[0] = sign * right[turns][0];
    out[1] = sign * right[turns][1];
    out[2] = -right[turns][1];
    out[3] = right[turns][0];
}

/* The first track, whose matrix stands 44 bytes behind the name of its header's box (ISO/IEC
 * 14496-12, 8.3.2, version 0): a, b, u, c, d, v, ... in 16.16. */
static inline void display_copy(const char *from, const char *to, enum sac_orientation o)
{
    static uint8_t bytes[32 << 20];
    int32_t        numbers[4];
    FILE          *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    const size_t size = fread(bytes, 1, sizeof bytes, in);
    size_t       at = 0;
    assert_in_range(size, 100, sizeof bytes - 1);
    while (at + 100 < size && memcmp(bytes + at, "tkhd", 4) != 0)
        at++;
    assert_int_equal(bytes[at + 4], 0); /* the version */
    display_numbers(o, numbers);
    for (int i = 0; i < 4; i++) {
        uint8_t *number = bytes + at + 44 + 4 * (i < 2 ? i : i + 1);
        number[0] = numbers[i] < 0 ? 0xff : 0;
        number[1] = numbers[i] < 0 ? 0xff : (uint8_t)numbers[i];
        number[2] = number[3] = 0;
    }
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

#endif
