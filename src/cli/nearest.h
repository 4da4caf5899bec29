/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the known word that is fewest typing slips away. */
#ifndef SAC_CLI_NEAREST_H
#define SAC_CLI_NEAREST_H

#include <stddef.h>

/* Insertions, deletions, changes and swaps of neighbours between a and b (optimal string alignment);
 * words longer than 63 bytes are not compared: 64. */
size_t word_distance(const char *a, const char *b);

struct nearest {
    const char *word; /* best so far, or NULL */
    size_t      distance;
};
/* Consider one candidate. Words that differ in more than a third are no suggestion. */
void nearest_offer(struct nearest *best, const char *typed, const char *candidate);

#endif
