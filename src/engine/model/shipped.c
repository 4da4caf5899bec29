/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the models that come with saccade, in the order that saccade/models.h describes. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/model/paths.h"

static const struct {
    const char *name, *what;
} shipped[] = {
    {"person_det", "persons as boxes; what track uses by default"},
    {"person_det_fast", "persons as boxes at half the cost, less accurate"},
    {"person_reid", "a person's appearance as 256 numbers"},
    {"person_seg", "a matte of the persons in a picture; what segment uses by default"},
    {"person_matte", "a better matte of them, at eleven times the cost"},
};

/* ---- the folders ---- */

/* Removes the last part of a path; false: it has only one. */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    slash[slash == path] = '\0'; /* keep the root's slash */
    return true;
}

static bool program_folder(char *buf, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", buf, size - 1);
    if (n <= 0)
        return false;
    buf[n] = '\0';
    return cut_last(buf);
}

static bool library_folder(char *buf, size_t size)
{
    char    real[PATH_MAX];
    Dl_info self;
    if (!dladdr(&shipped, &self) || !self.dli_fname || !realpath(self.dli_fname, real))
        return false;
    return cut_last(real) && (size_t)snprintf(buf, size, "%s", real) < size;
}

static bool append(char *buf, size_t size, const char *tail)
{
    size_t used = strlen(buf);
    return (size_t)snprintf(buf + used, size - used, "%s", tail) < size - used;
}

static bool in_build_folder(const char *folder)
{
    size_t length = strlen(SAC_BUILD_ROOT);
    return strncmp(folder, SAC_BUILD_ROOT, length) == 0 &&
           (folder[length] == '/' || !folder[length]);
}

/* Searches from the folder of a program or library upwards; a build folder holds no models. */
static bool models_beside(char *folder, size_t size)
{
    return !in_build_folder(folder) && append(folder, size, "/models");
}

static bool models_in_share(char *folder, size_t size)
{
    return !in_build_folder(folder) && cut_last(folder) &&
           append(folder, size, "/share/saccade/models");
}

enum { BY_ENVIRONMENT, BESIDE_PROGRAM, SHARED, SHARED_LIBRARY, SOURCE_TREE, INSTALLED, PLACES };

/* The folder of one place; false when this system has no such place. */
static bool folder_of(int place, char *buf, size_t size)
{
    const char *chosen = getenv("SACCADE_MODELS");
    switch (place) {
    case BY_ENVIRONMENT:
        return chosen && *chosen && (size_t)snprintf(buf, size, "%s", chosen) < size;
    case BESIDE_PROGRAM: return program_folder(buf, size) && models_beside(buf, size);
    case SHARED: return program_folder(buf, size) && models_in_share(buf, size);
    case SHARED_LIBRARY: return library_folder(buf, size) && models_in_share(buf, size);
    /* Before those of an installed saccade, whose models may be older than this program. */
    case SOURCE_TREE:
        return program_folder(buf, size) && in_build_folder(buf) &&
               (size_t)snprintf(buf, size, "%s", SAC_SOURCE_ROOT "/models") < size;
    default: return (size_t)snprintf(buf, size, "%s", SAC_DATADIR "/saccade/models") < size;
    }
}

/* A program and its library often share a prefix: each folder is listed once. */
static bool is_new(int place, const char *folder)
{
    char other[PATH_MAX];
    for (int i = 0; i < place; i++)
        if (folder_of(i, other, sizeof other) && strcmp(other, folder) == 0)
            return false;
    return true;
}

void sac_models_places(char *out, size_t size)
{
    char   folder[PATH_MAX];
    size_t used = 0;
    *out = '\0';
    for (int place = 0; place < PLACES && used < size; place++)
        if (folder_of(place, folder, sizeof folder) && is_new(place, folder))
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", folder);
}

/* ---- the models ---- */

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static bool is_name(const char *model)
{
    return *model && !strpbrk(model, "/.");
}

/* fits: whether the path fits the buffer. */
static bool find(const char *name, char *path, size_t size, bool *fits)
{
    char folder[PATH_MAX], file[PATH_MAX + NAME_MAX + 8];
    for (int place = 0; place < PLACES; place++) {
        if (!folder_of(place, folder, sizeof folder))
            continue;
        int n = snprintf(file, sizeof file, "%s/%.255s.onnx", folder, name);
        if (n < 0 || !is_file(file))
            continue;
        *fits = (size_t)snprintf(path, size, "%s", file) < size;
        return true;
    }
    return false;
}

static bool is_shipped(const char *name)
{
    for (size_t i = 0; i < SAC_COUNT(shipped); i++)
        if (strcmp(shipped[i].name, name) == 0)
            return true;
    return false;
}

static sac_result refuse(sac_context *ctx, const char *name)
{
    char places[768], names[160] = "";
    sac_models_places(places, sizeof places);
    for (size_t i = 0; i < SAC_COUNT(shipped); i++) {
        append(names, sizeof names, i ? ", " : "");
        append(names, sizeof names, shipped[i].name);
    }
    if (is_shipped(name))
        return SAC_FAIL(ctx, SAC_ERR_IO,
                        "saccade's own model '%s' is missing: give the file of another, or set "
                        "SACCADE_MODELS to the folder that has %s.onnx; looked in %s",
                        name, name, places);
    return SAC_FAIL(ctx, SAC_ERR_IO,
                    "no model '%s': it is neither a file nor one of saccade's own (%s); looked for "
                    "%.255s.onnx in %s",
                    name, names, name, places);
}

sac_result sac_models_find(sac_context *ctx, const char *model, char *path, size_t size)
{
    SAC_NEEDS(ctx, model);
    SAC_NEEDS_ARRAY(ctx, path, size);
    bool fits = true;
    if (!is_name(model) || is_file(model))
        fits = (size_t)snprintf(path, size, "%s", model) < size;
    else if (!find(model, path, size, &fits))
        return refuse(ctx, model);
    if (!fits)
        return SAC_FAIL(ctx, SAC_ERR_LIMIT, "the path of model '%.255s' is over %zu bytes", model,
                        size);
    return SAC_OK;
}

void sac_models_list(void (*fn)(void *user, const struct sac_shipped_model *model), void *user)
{
    if (!fn)
        return;
    for (size_t i = 0; i < SAC_COUNT(shipped); i++) {
        char                     path[PATH_MAX];
        bool                     fits = false;
        bool                     found = find(shipped[i].name, path, sizeof path, &fits) && fits;
        struct sac_shipped_model model = {shipped[i].name, shipped[i].what, found ? path : NULL};
        fn(user, &model);
    }
}
