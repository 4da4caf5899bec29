/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/outfile.h"

/* ---- what a program that ends at once must remove ---- */

/* The temporary files that exist now. A signal handler may run at any instruction, so a place is
 * taken and released atomically, and the list never shrinks: it has as many places as there were
 * files at once. */
enum { CLAIMS_A_BLOCK = 64 };
struct claims {
    _Atomic(char *)          file[CLAIMS_A_BLOCK];
    _Atomic(struct claims *) next;
};
static struct claims claims;

static struct claims *next_block(struct claims *block)
{
    struct claims *next = atomic_load(&block->next), *made = next ? NULL : sac_new(struct claims);
    if (next || !made)
        return next;
    if (atomic_compare_exchange_strong(&block->next, &next, made))
        return made;
    sac_free(made); /* another thread was faster */
    return next;
}

/* NULL: no memory. */
static _Atomic(char *) *claim(char *file)
{
    for (struct claims *block = &claims; block; block = next_block(block))
        for (int i = 0; i < CLAIMS_A_BLOCK; i++) {
            char *none = NULL;
            if (atomic_compare_exchange_strong(&block->file[i], &none, file))
                return &block->file[i];
        }
    return NULL;
}

/* Release the place; a file that a signal handler has taken is not freed here. */
static void unclaim(struct sac_outname *name)
{
    char *mine = name->file;
    if (name->claim && !atomic_compare_exchange_strong(name->claim, &mine, NULL))
        name->file = NULL; /* lost to a process that ends now */
    name->claim = NULL;
}

int sac_unfinished_outputs_remove(void (*on_left)(const char *file))
{
    int count = 0;
    for (struct claims *block = &claims; block; block = atomic_load(&block->next))
        for (int i = 0; i < CLAIMS_A_BLOCK; i++) {
            char *file = atomic_exchange(&block->file[i], NULL);
            if (file && unlink(file) == 0)
                count++;
            else if (file && errno != ENOENT && on_left)
                on_left(file);
        }
    return count;
}

/* ---- names ---- */

static sac_result fail_write(struct sac_outname *name, int why)
{
    return SAC_FAIL(name->ctx, SAC_ERR_IO, "cannot write '%s': %s", name->path,
                    why ? strerror(why) : "an earlier write failed");
}

static sac_result no_memory(struct sac_outname *name, const char *path)
{
    return SAC_FAIL(name->ctx, SAC_ERR_MEMORY, "%s: no memory for its name", path);
}

/* A link to a file is followed, so that it stays one. */
static sac_result choose_target(struct sac_outname *name, const char *path)
{
    struct stat st;
    bool        descriptor = false, there = stat(path, &st) == 0;
    name->path = sac_strdup(path);
    name->target = sac_path_follow(path, &descriptor);
    if (!name->path || !name->target)
        return no_memory(name, path);
    if (there && S_ISDIR(st.st_mode))
        return SAC_FAIL(name->ctx, SAC_ERR_IO, "cannot write '%s': it is a folder", path);
    /* Renaming over a file needs only the folder's permission; a read-only file is meant to be
     * kept. */
    if (there && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return fail_write(name, errno);
    name->renames = !there || (S_ISREG(st.st_mode) && !descriptor);
    name->mode = there && name->renames ? st.st_mode & 0777 : 0;
    return SAC_OK;
}

/* So much of a file's name that the rest of a temporary one fits, in whole UTF-8 characters: file
 * systems that refuse others exist. */
static int clipped_length(const char *name)
{
    enum { NAME_BYTES = 120 };
    size_t length = strlen(name);
    if (length <= NAME_BYTES)
        return (int)length;
    for (length = NAME_BYTES; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;)
        length--;
    return (int)length;
}

/* TARGET.XXXXXXXX.part, which nobody can guess. NULL: no memory. */
static char *temporary_name(const char *target)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
    unsigned char     random[8];
    const char       *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return NULL;
    char *file = sac_asprintf("%.*s%.*s.XXXXXXXX.part", (int)(name - target), target,
                              clipped_length(name), name);
    char *at = file ? file + strlen(file) - strlen("XXXXXXXX.part") : NULL;
    for (size_t i = 0; at && i < sizeof random; i++)
        at[i] = letters[random[i] % (sizeof letters - 1)];
    return file;
}

/* An empty file that was not there before. The place in the list comes first: between the two a
 * handler finds a name without a file, which is better than a file without a name. Writable for us
 * until the end. */
static sac_result create_temporary(struct sac_outname *name, int *out)
{
    enum { TRIES = 16 };
    int why = EEXIST;
    for (int i = 0; i < TRIES && why == EEXIST; i++) {
        name->file = temporary_name(name->target);
        name->claim = name->file ? claim(name->file) : NULL;
        if (!name->claim)
            return no_memory(name, name->path);
        int fd = open(name->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                      name->mode ? name->mode | 0600 : 0666);
        if (fd >= 0 && out)
            *out = fd;
        else if (fd >= 0)
            close(fd);
        if (fd >= 0)
            return SAC_OK;
        why = errno;
        unclaim(name);
        sac_free(name->file);
        name->file = NULL;
    }
    return fail_write(name, why);
}

/* There already, and not ours to cut: a file behind a descriptor is added to. */
static sac_result open_in_place(struct sac_outname *name, int *fd)
{
    name->file = sac_strdup(name->path);
    if (!name->file)
        return no_memory(name, name->path);
    if (!fd)
        return SAC_OK;
    *fd = open(name->file, O_WRONLY | O_APPEND | O_CLOEXEC);
    return *fd >= 0 ? SAC_OK : fail_write(name, errno);
}

sac_result sac_outname_open(sac_context *ctx, const char *path, struct sac_outname *out, int *fd)
{
    struct sac_outname name = {.ctx = ctx};
    sac_result         res = choose_target(&name, path);
    if (res == SAC_OK)
        res = name.renames ? create_temporary(&name, fd) : open_in_place(&name, fd);
    if (res == SAC_OK)
        *out = name;
    else
        sac_outname_finish(&name);
    return res;
}

/* 0, or errno. Some systems notice only now that there is no room; some file systems can't sync.
 * mode: what it shall have, 0: what it has. */
static int sync_file(const char *file, mode_t mode)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC), why = 0;
    if (fd < 0 || fsync(fd) != 0)
        why = errno;
    const bool moded = fd >= 0 && mode && fchmod(fd, mode) == 0;
    (void)moded; /* else it keeps the one it was made with, which is as narrow */
    if (fd >= 0)
        close(fd);
    bool unable = fd >= 0 && (why == EINVAL || why == EROFS || why == ENOTSUP || why == ENOSYS);
    return unable ? 0 : why;
}

/* Everything was written and only the rename failed, for example because the name is a mount point:
 * keep the result under its temporary name. */
static sac_result fail_rename(struct sac_outname *name, int why)
{
    sac_result res = fail_write(name, why);
    if (access(name->file, F_OK) == 0)
        res = SAC_FAIL(name->ctx, SAC_ERR_IO, "cannot give '%s' its name: %s; all of it is in '%s'",
                       name->path, strerror(why), name->file);
    unclaim(name);
    return res;
}

sac_result sac_outname_commit(struct sac_outname *name)
{
    if (!name->renames)
        return SAC_OK;
    int why = sync_file(name->file, name->mode);
    if (!why && rename(name->file, name->target) != 0)
        return fail_rename(name, errno);
    if (why)
        unlink(name->file);
    unclaim(name);
    return why ? fail_write(name, why) : SAC_OK;
}

void sac_outname_finish(struct sac_outname *name)
{
    if (name->claim)
        unlink(name->file);
    unclaim(name);
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
    /* EINVAL: it is open, but for reading alone; a write would say EBADF. */
    sac_result res = fail_write(&out->name, errno == EINVAL ? EBADF : errno);
    if (fd >= 0)
        close(fd);
    return res;
}

static sac_result open_file(sac_context *ctx, const char *path, struct sac_outfile *out)
{
    int        fd = -1;
    sac_result res = sac_outname_open(ctx, path, &out->name, &fd);
    if (res != SAC_OK)
        return res;
    out->file = fdopen(fd, "w");
    if (out->file)
        return SAC_OK;
    res = fail_write(&out->name, errno);
    close(fd);
    return res;
}

sac_result sac_outfile_open(sac_context *ctx, const char *path, struct sac_outfile *out)
{
    *out = (struct sac_outfile){0};
    sac_result res =
        strcmp(path, "-") == 0 ? open_standard_output(ctx, out) : open_file(ctx, path, out);
    if (res != SAC_OK)
        sac_outfile_abandon(out);
    return res;
}

static int cut_to(const char *file, int64_t bytes)
{
    int why = truncate(file, bytes) == 0 ? 0 : errno;
    return why ? why : sync_file(file, 0);
}

/* What was written before the failure gets the name, where it is worth that. The stream goes first:
 * it may still hold, and write, the rest of what failed. */
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
