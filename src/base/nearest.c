/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "nearest.h"

enum { WORD_MAX = 64 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t sac_word_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na >= WORD_MAX || nb >= WORD_MAX)
        return WORD_MAX;
    size_t rows[3][WORD_MAX]; /* i-2, i-1, i of the usual table, in turn */
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = rows[i % 3], *up = rows[(i + 2) % 3], *upup = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t change = up[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = least(change, least(up[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], upup[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

void sac_nearest_offer(struct sac_nearest *best, const char *typed, const char *candidate)
{
    size_t distance = sac_word_distance(typed, candidate);
    if (strlen(typed) >= 3 && strncmp(typed, candidate, strlen(typed)) == 0)
        distance = 1; /* cut short rather than misspelt */
    size_t limit = 1 + strlen(typed) / 3;
    if (distance > limit || distance >= strlen(typed))
        return;
    if (!best->word || distance < best->distance)
        *best = (struct sac_nearest){candidate, distance};
}
