/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears under its name only when it is whole: written as NAME.part, then renamed. A path
 * that exists and is no regular file (a pipe, /dev/stdout, a symbolic link) is written in place. */
#ifndef SAC_BASE_OUTFILE_H
#define SAC_BASE_OUTFILE_H

#include <stdio.h>

#include "base/base.h"

struct sac_outfile {
    sac_context *ctx;
    FILE        *file; /* write here; errors are found by check and finish */
    char        *path;
    char        *part; /* NULL: written in place */
    bool         keep; /* set by the user: after a failed write the .part file stays, since its whole
                        * lines are worth having, and the sentence says so */
};
/* Errors   SAC_ERR_IO (with the system's reason), SAC_ERR_MEMORY. */
sac_result sac_outfile_open(sac_context *ctx, const char *path, struct sac_outfile *out);
/* SAC_ERR_IO when a write so far failed. */
sac_result sac_outfile_check(struct sac_outfile *out);
/* Flush to the disk, close and rename. On failure the .part file is removed, or kept: see there. */
sac_result sac_outfile_finish(struct sac_outfile *out);
/* Close and remove the .part file, unless it was finished. Accepts a zeroed struct. */
void       sac_outfile_abandon(struct sac_outfile *out);

#endif
