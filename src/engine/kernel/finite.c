/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernel/finite.h"

#include <string.h>

/* All bits of the exponent are set in what is not finite. One more in the exponent's last place
 * carries into the sign then, and only then, so several numbers in a word don't disturb each other;
 * a little less than that carries where there is a mantissa too, as NaN has. */
bool sac_numbers_are_finite(const void *numbers, int64_t count, bool half, bool nan_alone)
{
    const uint64_t sizes = half ? UINT64_C(0x7fff7fff7fff7fff) : UINT64_C(0x7fffffff7fffffff),
                   place = half ? UINT64_C(0x0400040004000400) : UINT64_C(0x0080000000800000),
                   least = half ? UINT64_C(0x0001000100010001) : UINT64_C(0x0000000100000001),
                   one = nan_alone ? place - least : place;
    const size_t bytes = (size_t)count * (half ? 2 : 4), words = bytes / sizeof(uint64_t);
    const char  *at = numbers;
    uint64_t     sums[4] = {0}, word;
    size_t       i = 0;
    for (; i + 4 <= words; i += 4)
        for (int k = 0; k < 4; k++) {
            memcpy(&word, at + (i + (size_t)k) * sizeof word, sizeof word);
            sums[k] |= (word & sizes) + one;
        }
    for (; i < words; i++) {
        memcpy(&word, at + i * sizeof word, sizeof word);
        sums[0] |= (word & sizes) + one;
    }
    word = 0;
    memcpy(&word, at + i * sizeof word, bytes - i * sizeof word);
    sums[0] |= (word & sizes) + one;
    return ((sums[0] | sums[1] | sums[2] | sums[3]) & ~sizes) == 0;
}
