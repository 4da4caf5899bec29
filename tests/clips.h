/* SPDX-License-Identifier: Apache-2.0 */
/* Where the clips of packaging/clips are: beside a test on a machine with a GPU, or in a bundle. */
#ifndef SAC_TESTS_CLIPS_H
#define SAC_TESTS_CLIPS_H

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/test.h"

/* Fails the test where it is not. The latest few stay valid. */
static inline const char *clip_path(const char *name)
{
    static char              paths[8][256];
    static unsigned          next;
    static const char *const folders[] = {"clips", "share/saccade/clips", "../share/saccade/clips",
                                          "../../share/saccade/clips"};
    char                    *path = paths[next++ % 8];
    for (size_t i = 0; i < SAC_COUNT(folders); i++) {
        snprintf(path, sizeof paths[0], "%s/%s", folders[i], name);
        if (access(path, R_OK) == 0)
            return path;
    }
    fail_msg("no clip '%s'; packaging/clips makes it", name);
    return NULL;
}

#endif
