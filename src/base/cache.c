/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

bool sac_cache_folder(char *out, size_t size)
{
    const char *own = getenv("SACCADE_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int length = 0;
    if (own)
        length = snprintf(out, size, "%s", own);
    else if (xdg && *xdg)
        length = make_folder(xdg) ? snprintf(out, size, "%s/saccade", xdg) : 0;
    else if (home && *home)
        length = snprintf(out, size, "%s/.cache", home) < (int)size && make_folder(out)
                     ? snprintf(out, size, "%s/.cache/saccade", home)
                     : 0;
    return length > 0 && (size_t)length < size && make_folder(out);
}

static bool write_whole(const char *path, const void *bytes, size_t size, bool lasting)
{
    FILE *f = fopen(path, "wb");
    bool  good = f && fwrite(bytes, 1, size, f) == size && fflush(f) == 0 &&
                (!lasting || fsync(fileno(f)) == 0);
    if (f && fclose(f) != 0)
        good = false;
    return good;
}

bool sac_cache_write(const char *path, const void *bytes, size_t size, bool lasting)
{
    static atomic_uint number; /* threads of one process write beside each other too */
    char *beside = sac_asprintf("%s.%ld.%u", path, (long)getpid(), atomic_fetch_add(&number, 1));
    if (!beside) {
        errno = ENOMEM;
        return false;
    }
    const bool good = write_whole(beside, bytes, size, lasting) && rename(beside, path) == 0;
    const int  why = errno;
    if (!good)
        unlink(beside);
    sac_free(beside);
    errno = why;
    return good;
}

void *sac_cache_read(const char *path, size_t max, size_t *size)
{
    struct stat st;
    FILE       *f = fopen(path, "rb");
    char       *bytes = NULL;
    if (!f)
        return NULL;
    if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= max)
        bytes = sac_alloc((size_t)st.st_size + 1);
    if (bytes && fread(bytes, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        sac_free(bytes);
        bytes = NULL;
    }
    fclose(f);
    if (bytes) {
        bytes[st.st_size] = '\0';
        *size = (size_t)st.st_size;
    }
    return bytes;
}
