/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a run reads and writes, gathered so that no output overwrites another file of the
 * run:
 *
 *     struct sac_files files = {.ctx = ctx};
 *     sac_files_add_input(&files, "in.mp4");
 *     sac_files_add_output(&files, "out.mp4", "in.mp4");
 *     sac_result res = sac_files_judge(&files);      // also says whether there was memory
 *     sac_files_finish(&files);
 */
#ifndef SAC_BASE_FILES_H
#define SAC_BASE_FILES_H

#include <sys/types.h>

#include <saccade/files.h>

#include "base/base.h"

struct sac_file_use {
    /* Of a file that is there: device, inode and "". Of one that is not: those of the nearest
     * folder that is, and the rest of the path. */
    dev_t       device;
    ino_t       inode;
    const char *rest;
    const char *path;  /* as given */
    const char *owner; /* the input that an output belongs to, for the sentence; NULL: the run's own
                        */
    bool   output;
    size_t order; /* as added */
};

struct sac_files {
    sac_context         *ctx;
    struct sac_arena     strings;
    struct sac_file_use *uses; /* [count] */
    size_t               count, capacity;
    bool                 failed; /* no memory */
};

/* path   copied; NULL is skipped. */
void sac_files_add_input(struct sac_files *files, const char *path);
/* owner  borrowed until sac_files_finish. */
void sac_files_add_output(struct sac_files *files, const char *path, const char *owner);
/* Errors   SAC_ERR_ARG, SAC_ERR_MEMORY. */
sac_result sac_files_judge(struct sac_files *files);
void       sac_files_finish(struct sac_files *files);

/* Where a path leads in the end: links followed, also one to a file that is not there yet. NULL: no
 * memory.
 * descriptor   set where one of them stands for something that is open, as /dev/stdout does, which
 *              another file of that name would not be; may be NULL. */
char *sac_path_follow(const char *path, bool *descriptor);

#endif
