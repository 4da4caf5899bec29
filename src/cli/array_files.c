/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array_files.h"

enum { NAME_BYTES = 200 }; /* of 255; the rest is for a number and the ending */

/* Write the name as a file name, out[NAME_BYTES + 1]; true if it needed no change. */
static bool clean_name(const char *name, char *out)
{
    const char *from = *name ? name : "output";
    size_t      length = strlen(from);
    if (length > NAME_BYTES) /* between two characters of UTF-8 */
        for (length = NAME_BYTES; length > 0 && ((unsigned char)from[length] & 0xc0) == 0x80;)
            length--;
    snprintf(out, NAME_BYTES + 1, "%.*s", (int)length, from);
    for (char *p = out; *p; p++)
        if (*p == '/' || (unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '_';
    if (*out == '.') /* "..", and hidden files */
        *out = '_';
    return strcmp(name, out) == 0;
}

static bool is_taken(const struct array_files *files, size_t except, const char *path)
{
    for (size_t i = 0; i < files->count; i++)
        if (i != except && files->path[i] && strcmp(files->path[i], path) == 0)
            return true;
    return false;
}

/* The first free one of "stem.npy", "stem-2.npy", ..., counted from number. */
static char *free_path(const struct array_files *files, size_t i, const char *stem, int number)
{
    char *path = NULL;
    do {
        free(path);
        const int length = number > 1 ? asprintf(&path, "%s-%d.npy", stem, number)
                                      : asprintf(&path, "%s.npy", stem);
        number++;
        if (length < 0)
            return NULL;
    } while (is_taken(files, i, path));
    return path;
}

static bool choose(struct array_files *files, size_t i, const char *folder, const char *name)
{
    char *stem;
    if (asprintf(&stem, "%s/%s", folder, name) < 0)
        return false;
    files->path[i] = free_path(files, i, stem, 1);
    free(stem);
    return files->path[i] != NULL;
}

bool array_files_plan(struct array_files *files, const char *folder, const char *const *names,
                      size_t count)
{
    bool ok = true;
    files->path = calloc(count + 1, sizeof *files->path);
    if (!files->path)
        return false;
    files->count = count;
    for (int changed = 0; changed <= 1; changed++) /* names that need no change come first */
        for (size_t i = 0; i < count && ok; i++) {
            char name[NAME_BYTES + 1];
            if (clean_name(names[i], name) != changed)
                ok = choose(files, i, folder, name);
        }
    return ok;
}

static bool is_written(const struct array_files *files, size_t end, const struct stat *st)
{
    struct stat other;
    for (size_t i = 0; i < end; i++)
        if (stat(files->path[i], &other) == 0 && other.st_dev == st->st_dev &&
            other.st_ino == st->st_ino)
            return true;
    return false;
}

bool array_files_settle(struct array_files *files, size_t i)
{
    struct stat st;
    char       *stem = strdup(files->path[i]);
    if (!stem)
        return false;
    stem[strlen(stem) - strlen(".npy")] = '\0';
    for (int number = 2; stat(files->path[i], &st) == 0 && is_written(files, i, &st); number++) {
        char *path = free_path(files, i, stem, number);
        if (!path) {
            free(stem);
            return false;
        }
        free(files->path[i]);
        files->path[i] = path;
    }
    free(stem);
    return true;
}

void array_files_finish(struct array_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->path[i]);
    free(files->path);
    *files = (struct array_files){0};
}
