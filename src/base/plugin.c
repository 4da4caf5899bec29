/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

struct search {
    const char *file, *symbol;
    char       *missing;
    size_t      size;
};

/* NULL when the file is missing or unusable; missing says why. */
static void *open_in(const struct search *s, const char *folder, size_t length, const char *under)
{
    char path[1024];
    snprintf(path, sizeof path, "%.*s/%s%s", (int)length, folder, under, s->file);
    FILE *there = fopen(path, "rb");
    if (!there)
        return NULL;
    fclose(there);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *found = handle ? dlsym(handle, s->symbol) : NULL;
    if (!handle)
        snprintf(s->missing, s->size, "%.200s", dlerror());
    else if (!found)
        snprintf(s->missing, s->size, "%.160s is of another build of saccade: no %s", path,
                 s->symbol);
    return found;
}

static void *search_path(const struct search *s, const char *folders)
{
    void *found = NULL;
    while (*folders && !found) {
        const size_t length = strcspn(folders, ":");
        found = open_in(s, folders, length, "");
        folders += length + (folders[length] == ':');
    }
    return found;
}

static void *search_beside_library(const struct search *s, const char *build_folder)
{
    const char *const under[] = {"", "saccade/", build_folder};
    static const char here;
    void             *found = NULL;
    Dl_info           self;
    if (!dladdr(&here, &self) || !self.dli_fname)
        return NULL;
    const char *slash = strrchr(self.dli_fname, '/');
    for (size_t i = 0; i < SAC_COUNT(under) && slash && !found; i++)
        found = open_in(s, self.dli_fname, (size_t)(slash - self.dli_fname), under[i]);
    return found;
}

void *sac_plugin_open(const char *file, const char *build_folder, const char *symbol, char *missing,
                      size_t size)
{
    const struct search s = {file, symbol, missing, size};
    const char         *folders = getenv("SACCADE_PLUGIN_PATH");
    snprintf(missing, size, "%s is not there", file);
    void *found =
        folders && *folders ? search_path(&s, folders) : search_beside_library(&s, build_folder);
    if (found)
        missing[0] = '\0';
    return found;
}
