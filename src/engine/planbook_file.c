/* SPDX-License-Identifier: Apache-2.0 */
/* Where books of plans lie on the disk. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/planbook.h"

static bool make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

/* SACCADE_CACHE itself, else "saccade" in the user's cache folder. Folders that are missing are made. */
static bool cache_folder(char *out, size_t size)
{
    const char *own = getenv("SACCADE_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int         length;
    if (own)
        length = snprintf(out, size, "%s", own);
    else if (xdg && *xdg)
        length = make_folder(xdg) ? snprintf(out, size, "%s/saccade", xdg) : 0;
    else if (home && *home)
        length = snprintf(out, size, "%s/.cache", home) < (int)size && make_folder(out)
                     ? snprintf(out, size, "%s/.cache/saccade", home) : 0;
    else
        return false;
    return length > 0 && (size_t)length < size && make_folder(out);
}

bool sac_book_cache_path(const struct sac_plan_book *book, char *out, size_t size)
{
    char folder[PATH_MAX], hash[33];
    if (!cache_folder(folder, sizeof folder))
        return false;
    sac_book_hash(book, hash);
    return (size_t)snprintf(out, size, "%s/%s.plan", folder, hash) < size;
}

static bool write_whole(const char *path, const char *text, size_t size)
{
    FILE *f = fopen(path, "wb");
    bool  good = f && fwrite(text, 1, size, f) == size && fflush(f) == 0 && fsync(fileno(f)) == 0;
    if (f && fclose(f) != 0)
        good = false;
    return good;
}

/* Several processes may write the same one at once: each its own beside it, and the last one stays. */
sac_result sac_book_save(sac_context *ctx, const struct sac_plan_book *book, const char *path)
{
    size_t size = 0;
    char  *text = sac_book_text(book, 0, &size);
    char  *beside = sac_asprintf("%s.%ld", path, (long)getpid());
    bool   good = false;
    if (!text || !beside) {
        free(text);
        sac_free(beside);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory to keep a plan");
    }
    good = write_whole(beside, text, size) && rename(beside, path) == 0;
    const int why = errno;
    if (!good)
        unlink(beside);
    free(text);
    sac_free(beside);
    return good ? SAC_OK : SAC_FAIL(ctx, SAC_ERR_IO, "cannot keep the plan in '%s': %s", path, strerror(why));
}
