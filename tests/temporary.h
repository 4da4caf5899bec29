/* SPDX-License-Identifier: Apache-2.0 */
/* The temporary files beside an output: NAME.XXXXXXXX.part. */
#ifndef SAC_TESTS_TEMPORARY_H
#define SAC_TESTS_TEMPORARY_H

#include <glob.h>
#include <stdio.h>

/* How many there are; the first one's path into buf, [size], empty when there is none; NULL: not
 * wanted. */
static inline int temporaries_of(const char *output, char *buf, size_t size)
{
    char   pattern[512];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%.480s.????????.part", output);
    int n = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    if (buf)
        snprintf(buf, size, "%s", n ? found.gl_pathv[0] : "");
    globfree(&found);
    return n;
}

#endif
