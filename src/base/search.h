/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_BASE_SEARCH_H
#define SAC_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* The index of the first of rows [count] whose number is at least this one; count: there is none.
 * Rows are in rising order of what number_of returns for them. */
size_t sac_lower_bound(const void *rows, size_t count, int64_t number,
                       int64_t (*number_of)(const void *rows, size_t i));

#endif
