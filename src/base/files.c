/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/files.h"

enum { LINKS_MAX = 40 }; /* as the kernel's */

/* ---- links ---- */

/* The path that the link `path` holds, from here. */
static char *read_link(const char *path)
{
    char        held[PATH_MAX];
    ssize_t     length = readlink(path, held, sizeof held - 1);
    const char *slash = strrchr(path, '/');
    if (length <= 0)
        return sac_strdup(path);
    held[length] = '\0';
    return held[0] == '/' || !slash ? sac_strdup(held)
                                    : sac_asprintf("%.*s/%s", (int)(slash - path), path, held);
}

/* The links of /proc/PID/fd are no paths, only printed as such. */
static bool is_descriptor(const struct stat *link)
{
    struct stat proc;
    return stat("/proc/self", &proc) == 0 && link->st_dev == proc.st_dev;
}

char *sac_path_follow(const char *path, bool *descriptor)
{
    struct stat st;
    char       *at = sac_strdup(path);
    for (int i = 0; at && i < LINKS_MAX && lstat(at, &st) == 0 && S_ISLNK(st.st_mode); i++) {
        char *next = read_link(at);
        if (descriptor && is_descriptor(&st))
            *descriptor = true;
        sac_free(at);
        at = next;
    }
    return at;
}

/* ---- which file it is ---- */

/* "./a//b" becomes "a/b", in place: only the spelling changes. */
static char *tidy(char *path)
{
    char *to = path;
    for (char *from = path; *from;) {
        size_t length = strcspn(from, "/");
        char  *next = from + length + strspn(from + length, "/");
        if (length > 0 && !(length == 1 && *from == '.')) {
            if (to > path)
                *to++ = '/';
            memmove(to, from, length);
            to += length;
        }
        from = next;
    }
    *to = '\0';
    return path;
}

/* Of a file that is not there: cut the path where what is there ends. */
static bool identify_missing(struct sac_files *files, const char *path, struct sac_file_use *use)
{
    struct stat st = {0};
    char       *whole = sac_path_follow(path, NULL);
    char       *folder = whole ? sac_arena_strndup(&files->strings, whole, strlen(whole)) : NULL;
    sac_free(whole);
    if (!folder)
        return false;
    const char *copy = sac_arena_strndup(&files->strings, folder, strlen(folder));
    size_t      kept;
    do {
        char *slash = strrchr(folder, '/');
        kept = slash ? (size_t)(slash - folder) + 1 : 0;
        if (slash)
            *slash = '\0';
    } while (stat(kept > 1 ? folder : kept ? "/" : ".", &st) != 0 && kept > 1);
    use->device = st.st_dev;
    use->inode = st.st_ino;
    use->rest = copy ? tidy((char *)copy + kept) : NULL;
    return use->rest != NULL;
}

/* Writing to it more than once loses nothing. */
static bool is_null_device(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* false: a file that can clash with none, or no memory. */
static bool identify(struct sac_files *files, struct sac_file_use *use)
{
    struct stat st;
    const bool  standard = strcmp(use->path, "-") == 0;
    const int   fd = use->output ? STDOUT_FILENO : STDIN_FILENO;
    if ((standard ? fstat(fd, &st) : stat(use->path, &st)) == 0) {
        use->device = st.st_dev;
        use->inode = st.st_ino;
        use->rest = "";
        return use->output ? !is_null_device(&st) : S_ISREG(st.st_mode); /* what is read of a device
                                                                            is gone anyway */
    }
    if (standard)
        return false;
    files->failed |= !identify_missing(files, use->path, use);
    return !files->failed;
}

static void add(struct sac_files *files, const char *path, const char *owner, bool output)
{
    struct sac_file_use use = {.owner = owner, .output = output, .order = files->count};
    if (!path || files->failed)
        return;
    use.path = sac_arena_strndup(&files->strings, path, strlen(path));
    if (!use.path ||
        !sac_grow((void **)&files->uses, &files->capacity, files->count + 1, sizeof *files->uses))
        files->failed = true;
    else if (identify(files, &use))
        files->uses[files->count++] = use;
}

void sac_files_add_input(struct sac_files *files, const char *path)
{
    add(files, path, NULL, false);
}

void sac_files_add_output(struct sac_files *files, const char *path, const char *owner)
{
    add(files, path, owner, true);
}

/* ---- conflicts ---- */

static int compare_files(const struct sac_file_use *a, const struct sac_file_use *b)
{
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->inode != b->inode)
        return a->inode < b->inode ? -1 : 1;
    return strcmp(a->rest, b->rest);
}

/* By file; of one file its outputs first, in the order they were added. */
static int compare_uses(const void *x, const void *y)
{
    const struct sac_file_use *a = x, *b = y;
    const int                  order = compare_files(a, b);
    if (order)
        return order;
    if (a->output != b->output)
        return a->output ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

/* a: an output; b: the same file, spelled as it may be. */
static sac_result refuse(const struct sac_files *files, const struct sac_file_use *a,
                         const struct sac_file_use *b)
{
    const bool same = strcmp(a->path, b->path) == 0;
    if (!b->output && same)
        return SAC_FAIL(files->ctx, SAC_ERR_ARG, "output '%s' would overwrite an input", a->path);
    if (!b->output)
        return SAC_FAIL(files->ctx, SAC_ERR_ARG, "output '%s' would overwrite an input: it is '%s'",
                        a->path, b->path);
    if (a->owner && b->owner && a->owner != b->owner)
        return SAC_FAIL(files->ctx, SAC_ERR_ARG,
                        "inputs '%s' and '%s' would both write '%s': rename one, or run them apart",
                        a->owner, b->owner, b->path);
    if (same)
        return SAC_FAIL(files->ctx, SAC_ERR_ARG, "two outputs go to '%s'", a->path);
    return SAC_FAIL(files->ctx, SAC_ERR_ARG, "two outputs go to one file, '%s' and '%s'", a->path,
                    b->path);
}

sac_result sac_files_judge(struct sac_files *files)
{
    if (files->failed)
        return SAC_FAIL(files->ctx, SAC_ERR_MEMORY, "no memory for the names of %zu files",
                        files->count);
    if (files->count)
        qsort(files->uses, files->count, sizeof *files->uses, compare_uses);
    for (size_t i = 1; i < files->count; i++) {
        const struct sac_file_use *a = &files->uses[i - 1], *b = &files->uses[i];
        if (a->output && compare_files(a, b) == 0)
            return refuse(files, a, b);
    }
    return SAC_OK;
}

void sac_files_finish(struct sac_files *files)
{
    sac_arena_finish(&files->strings);
    sac_free(files->uses);
    *files = (struct sac_files){0};
}

sac_result sac_files_check(sac_context *ctx, const char *const *outputs, size_t output_count,
                           const char *const *inputs, size_t input_count)
{
    SAC_NEEDS_ARRAY(ctx, outputs, output_count);
    SAC_NEEDS_ARRAY(ctx, inputs, input_count);
    struct sac_files files = {.ctx = ctx};
    for (size_t i = 0; i < output_count; i++)
        sac_files_add_output(&files, outputs[i], NULL);
    for (size_t i = 0; i < input_count; i++)
        sac_files_add_input(&files, inputs[i]);
    sac_result res = sac_files_judge(&files);
    sac_files_finish(&files);
    return res;
}
