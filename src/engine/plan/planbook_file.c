/* SPDX-License-Identifier: Apache-2.0 */
/* The files of books of plans. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cache.h"
#include "engine/plan/planbook.h"

bool sac_book_cache_path(const struct sac_plan_book *book, char *out, size_t size)
{
    char folder[PATH_MAX], hash[33];
    if (!sac_cache_folder(folder, sizeof folder))
        return false;
    sac_book_hash(book, hash);
    return (size_t)snprintf(out, size, "%s/%s.plan", folder, hash) < size;
}

sac_result sac_book_save(sac_context *ctx, const struct sac_plan_book *book, const char *path)
{
    size_t size = 0;
    char  *text = sac_book_text(book, 0, &size);
    if (!text)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory to keep a plan");
    const bool good = sac_cache_write(path, text, size, true);
    const int  why = errno;
    free(text);
    return good
               ? SAC_OK
               : SAC_FAIL(ctx, SAC_ERR_IO, "cannot keep the plan in '%s': %s", path, strerror(why));
}
