/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/outfile.h"

/* ---- what a program that ends at once must remove ---- */

/* The .part files that are there now. A signal handler takes names out, so each is taken whole or not
 * at all; with all places full a file is only not removed. */
enum { CLAIMS_MAX = 64 };
static _Atomic(char *) claims[CLAIMS_MAX];

static void claim(char *file)
{
    for (int i = 0; i < CLAIMS_MAX; i++) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&claims[i], &none, file))
            return;
    }
}

/* false: a signal handler has it, so it must not be freed. */
static bool unclaim(char *file)
{
    bool known = false;
    for (int i = 0; i < CLAIMS_MAX && !known; i++) {
        char *mine = file;
        known = atomic_compare_exchange_strong(&claims[i], &mine, NULL);
    }
    return known;
}

int sac_unfinished_outputs_remove(void)
{
    int count = 0;
    for (int i = 0; i < CLAIMS_MAX; i++) {
        char *file = atomic_exchange(&claims[i], NULL);
        count += file && unlink(file) == 0;
    }
    return count;
}

/* ---- names ---- */

/* A link to a file is followed, so that it stays one; one that leads nowhere is written through. */
static bool leads_to_file(const char *path, char **target)
{
    struct stat st;
    bool        there = lstat(path, &st) == 0;
    if (there && S_ISLNK(st.st_mode)) {
        if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
            return false;
        char *real = realpath(path, NULL);
        *target = real ? sac_strdup(real) : NULL;
        free(real);
        return true;
    }
    *target = sac_strdup(path);
    return !there || S_ISREG(st.st_mode);
}

sac_result sac_outname_choose(sac_context *ctx, const char *path, struct sac_outname *out)
{
    struct stat        st;
    struct sac_outname name = {.ctx = ctx, .path = sac_strdup(path)};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        sac_outname_finish(&name);
        return SAC_FAIL(ctx, SAC_ERR_IO, "cannot write '%s': it is a folder", path);
    }
    name.renames = leads_to_file(path, &name.target);
    if (!name.renames)
        name.file = sac_strdup(path);
    else if (name.target)
        name.file = sac_asprintf("%s.part", name.target);
    if (!name.path || !name.file) {
        sac_outname_finish(&name);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for its name", path);
    }
    *out = name;
    return SAC_OK;
}

void sac_outname_created(struct sac_outname *name)
{
    name->created = true;
    if (name->renames)
        claim(name->file);
}

/* The file is not to be removed any more, or it is gone. */
static void release(struct sac_outname *name)
{
    bool claimed = name->created && name->renames;
    name->created = false;
    if (claimed && !unclaim(name->file))
        name->file = NULL; /* lost to a process that ends now */
}

static sac_result fail_write(struct sac_outname *name, int why)
{
    return SAC_FAIL(name->ctx, SAC_ERR_IO, "cannot write '%s': %s", name->path,
                    why ? strerror(why) : "an earlier write failed");
}

/* 0, or errno. Some systems notice only now that there is no room; some file systems can't sync. */
static int sync_file(const char *file)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC), why = 0;
    if (fd < 0 || fsync(fd) != 0)
        why = errno;
    if (fd >= 0)
        close(fd);
    bool unable = fd >= 0 && (why == EINVAL || why == EROFS || why == ENOTSUP || why == ENOSYS);
    return unable ? 0 : why;
}

sac_result sac_outname_commit(struct sac_outname *name)
{
    if (!name->renames)
        return SAC_OK;
    int why = sync_file(name->file);
    if (!why && rename(name->file, name->target) != 0)
        why = errno;
    if (why)
        unlink(name->file);
    release(name);
    return why ? fail_write(name, why) : SAC_OK;
}

void sac_outname_finish(struct sac_outname *name)
{
    if (name->created && name->renames)
        unlink(name->file);
    release(name);
    sac_free(name->path);
    sac_free(name->target);
    sac_free(name->file);
    *name = (struct sac_outname){0};
}

/* ---- streams ---- */

/* A copy of the descriptor: closing the stream must not close standard output. */
static sac_result open_standard_output(sac_context *ctx, struct sac_outfile *out)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    out->name = (struct sac_outname){.ctx = ctx, .path = sac_strdup("standard output")};
    if (!out->name.path) {
        if (fd >= 0)
            close(fd);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "standard output: no memory for its name");
    }
    out->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out->file)
        return SAC_OK;
    sac_result res = fail_write(&out->name, errno);
    if (fd >= 0)
        close(fd);
    return res;
}

static sac_result open_file(sac_context *ctx, const char *path, struct sac_outfile *out)
{
    sac_result res = sac_outname_choose(ctx, path, &out->name);
    if (res != SAC_OK)
        return res;
    out->file = fopen(out->name.file, "we");
    if (!out->file)
        return fail_write(&out->name, errno);
    sac_outname_created(&out->name);
    return SAC_OK;
}

sac_result sac_outfile_open(sac_context *ctx, const char *path, struct sac_outfile *out)
{
    *out = (struct sac_outfile){0};
    sac_result res = strcmp(path, "-") == 0 ? open_standard_output(ctx, out)
                                            : open_file(ctx, path, out);
    if (res != SAC_OK)
        sac_outfile_abandon(out);
    return res;
}

static int cut_to(const char *file, int64_t bytes)
{
    int why = truncate(file, bytes) == 0 ? 0 : errno;
    return why ? why : sync_file(file);
}

/* What was written before the failure gets the name, where it is worth that. The stream goes first: it
 * may still hold, and write, the rest of what failed. */
static sac_result fail_stream(struct sac_outfile *out, int why)
{
    if (out->file)
        fclose(out->file);
    out->file = NULL;
    if (!out->keep || !out->name.renames || out->whole == 0 ||
        cut_to(out->name.file, out->whole) != 0 || sac_outname_commit(&out->name) != SAC_OK)
        return fail_write(&out->name, why);
    return SAC_FAIL(out->name.ctx, SAC_ERR_IO,
                    "cannot write '%s': %s; it holds what was written before", out->name.path,
                    strerror(why ? why : EIO));
}

sac_result sac_outfile_check(struct sac_outfile *out)
{
    if (!out->file)
        errno = 0;
    if (!out->file || ferror(out->file) || (out->keep && fflush(out->file) != 0))
        return fail_stream(out, errno);
    if (out->keep && out->name.renames)
        out->whole = ftello(out->file);
    return SAC_OK;
}

sac_result sac_outfile_finish(struct sac_outfile *out)
{
    sac_result res;
    if (!out->file)
        errno = 0;
    if (!out->file || ferror(out->file) || fflush(out->file) != 0) {
        res = fail_stream(out, errno);
    } else {
        int why = fclose(out->file) == 0 ? 0 : errno;
        out->file = NULL;
        res = why ? fail_stream(out, why) : sac_outname_commit(&out->name);
    }
    sac_outfile_abandon(out);
    return res;
}

void sac_outfile_abandon(struct sac_outfile *out)
{
    if (out->file)
        fclose(out->file);
    sac_outname_finish(&out->name);
    *out = (struct sac_outfile){0};
}
