/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static bool is_special(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

bool whole_file_is_stream(const char *path)
{
    return strcmp(path, "-") == 0 || is_special(path);
}

const char *whole_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}

/* What a symbolic link leads to is replaced, not the link. */
static void follow(const char *path, char *target)
{
    char resolved[PATH_SIZE];
    snprintf(target, PATH_SIZE, "%s", realpath(path, resolved) ? resolved : path);
}

static void folder_of(const char *path, char *folder)
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, PATH_SIZE, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

int whole_file_check(const char *path, struct fault *fault)
{
    char        folder[PATH_SIZE], target[PATH_SIZE];
    struct stat about;
    if (whole_file_is_stream(path))
        return STATUS_OK;
    if (strlen(path) > PATH_SIZE - 64)
        return fault_usage(fault, "'%.200s...': the name is too long", path);
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return fault_usage(fault, "'%s' is a folder; the output is a file", path);
    if (stat(path, &about) == 0 && access(path, W_OK) != 0)
        return fault_failure(fault, "'%s' can't be written: %s", path, strerror(errno));
    follow(path, target);
    folder_of(target, folder);
    if (access(folder, W_OK | X_OK) != 0)
        return fault_failure(fault, "'%s' can't be written: %s: %s", path, folder, strerror(errno));
    return STATUS_OK;
}

/* The mode that the former file has, or that a new one would get. */
static mode_t mode_for(const char *target)
{
    struct stat  about;
    const mode_t mask = umask(0);
    umask(mask);
    return stat(target, &about) == 0 ? about.st_mode & 0777 : 0666 & ~mask;
}

static bool fill(FILE *out, void (*put)(const void *user, FILE *out), const void *user)
{
    put(user, out);
    return fflush(out) == 0 && !ferror(out);
}

static int replace(const char *path, const char *target, void (*put)(const void *user, FILE *out),
                   const void *user, struct fault *fault)
{
    char temporary[PATH_SIZE + 16];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX.part", target);
    const int fd = mkstemps(temporary, 5);
    FILE     *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool ok = out && fill(out, put, user) && fchmod(fd, mode_for(target)) == 0 && fsync(fd) == 0;
    int  why = errno;
    if (out ? fclose(out) != 0 && ok : fd >= 0 && close(fd) != 0) {
        ok = false;
        why = errno;
    }
    if (ok && rename(temporary, target) == 0)
        return STATUS_OK;
    if (ok)
        why = errno;
    if (fd >= 0)
        unlink(temporary);
    return fault_failure(fault, "'%s' can't be written: %s", path, strerror(why));
}

int whole_file_write(const char *path, void (*put)(const void *user, FILE *out), const void *user,
                     struct fault *fault)
{
    char target[PATH_SIZE];
    if (strcmp(path, "-") == 0) /* main finds what could not be written */
        return fill(stdout, put, user)
                   ? STATUS_OK
                   : fault_failure(fault, "cannot write standard output: %s", strerror(errno));
    if (is_special(path)) {
        FILE      *out = fopen(path, "we");
        const bool ok = out && fill(out, put, user);
        if (out)
            fclose(out);
        return ok ? STATUS_OK
                  : fault_failure(fault, "'%s' can't be written: %s", path, strerror(errno));
    }
    follow(path, target);
    return replace(path, target, put, user, fault);
}
