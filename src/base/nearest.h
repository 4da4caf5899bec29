/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known word with the fewest typing errors. The library asks it for names of
 * classes; the program, which sees nothing else inside the library, compiles it for its options. */
#ifndef SAC_BASE_NEAREST_H
#define SAC_BASE_NEAREST_H

#include <stddef.h>

/* Insertions, deletions, changes and swaps of neighbours between a and b (optimal string
 * alignment); words longer than 63 bytes are not compared: 64. */
size_t sac_word_distance(const char *a, const char *b);

struct sac_nearest {
    const char *word; /* best so far, or NULL */
    size_t      distance;
};
/* Consider one candidate. Words that differ in more than a third are not suggested. */
void sac_nearest_offer(struct sac_nearest *best, const char *typed, const char *candidate);

#endif
