/* SPDX-License-Identifier: Apache-2.0 */
/* Files that appear under their names only when they are whole: written as NAME.XXXXXXXX.part in
 * the same folder, a fresh file each time, then renamed. Of two runs with one output the last that
 * finishes has the name; what either wrote is whole.
 *
 * A file that is replaced keeps its mode; one that may not be written is not replaced. What exists
 * and is no regular file (a pipe, a device), or is open already (/dev/stdout), is written in place.
 * A symbolic link stays one: the file that it leads to is replaced, or made. */
#ifndef SAC_BASE_OUTFILE_H
#define SAC_BASE_OUTFILE_H

#include <stdio.h>
#include <sys/types.h>

#include "base/base.h"

/* ---- the name: for callers that write the file themselves ---- */

struct sac_outname {
    sac_context *ctx;
    char        *path;   /* as given, for sentences */
    char        *target; /* what the file is called in the end: path, or where that link leads */
    char        *file;   /* write here: the temporary file, or path itself */
    mode_t       mode;   /* of the file that is replaced; 0: there is none */
    bool         renames;
    _Atomic(char *) *claim; /* its place among the files that sac_unfinished_outputs_remove removes;
                               NULL: none */
};
/* Make the temporary file, which is empty then.
 * fd       of it, or of what is written in place; the caller closes it. NULL: the caller opens
 *          name.file.
 * Errors   SAC_ERR_IO (a folder; unwritable), SAC_ERR_MEMORY. */
sac_result sac_outname_open(sac_context *ctx, const char *path, struct sac_outname *out, int *fd);
/* To the disk, and only then under its name: after a power cut there is the former file or the
 * whole new one.
 * Errors   SAC_ERR_IO; the file is then removed, unless the name alone could not be given: the
 *          sentence says where it is. */
sac_result sac_outname_commit(struct sac_outname *name);
/* Remove the file unless it was committed or is written in place. Accepts a zeroed struct. */
void sac_outname_finish(struct sac_outname *name);

/* ---- a stream to such a file ---- */

struct sac_outfile {
    struct sac_outname name;
    FILE              *file; /* write here; errors are found by check and finish */
    bool               keep; /* set by the user: what was written up to the latest check is worth
                              * having by itself; after a failed write it gets the name */
    int64_t whole;           /* bytes up to the latest check, with keep */
};
/* path     "-" is standard output.
 * Errors   SAC_ERR_IO (with the system's reason), SAC_ERR_MEMORY. */
sac_result sac_outfile_open(sac_context *ctx, const char *path, struct sac_outfile *out);
/* SAC_ERR_IO when a write so far failed. With keep, what was written leaves the process. */
sac_result sac_outfile_check(struct sac_outfile *out);
/* Flush to the disk, close and rename. On failure the temporary file is removed. */
sac_result sac_outfile_finish(struct sac_outfile *out);
/* Close and remove the temporary file, unless it was finished. Accepts a zeroed struct. */
void sac_outfile_abandon(struct sac_outfile *out);

#endif
