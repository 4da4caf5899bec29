/* SPDX-License-Identifier: Apache-2.0 */
#include "base/search.h"

size_t sac_lower_bound(const void *rows, size_t count, int64_t number,
                       int64_t (*number_of)(const void *rows, size_t i))
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (number_of(rows, middle) < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
