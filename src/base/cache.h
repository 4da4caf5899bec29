/* SPDX-License-Identifier: Apache-2.0 */
/* Files that take time to create and may be deleted at any moment: in the folder that SACCADE_CACHE
 * names, else in
 * "saccade" in the user's cache folder. */
#ifndef SAC_BASE_CACHE_H
#define SAC_BASE_CACHE_H

#include "base/base.h"

/* Made when it is missing. False: there is none (SACCADE_CACHE is empty, or no home), or it cannot
 * be made. */
bool sac_cache_folder(char *out, size_t size);
/* Written beside and renamed, so that readers see the former file or the new one, whoever else
 * writes it. False: errno says why.
 * lasting  waits until the disk has it, tens of milliseconds; else a machine that stops before
 *          leaves a damaged file, which its reader must recognise */
bool sac_cache_write(const char *path, const void *bytes, size_t size, bool lasting);
/* The whole file (sac_free), with a zero behind it; NULL: there is none, it cannot be read, or it
 * has more than max bytes. */
void *sac_cache_read(const char *path, size_t max, size_t *size);

#endif
