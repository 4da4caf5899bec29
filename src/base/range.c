/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/range.h"

/* CUDA 13 ships NVTX as the first, earlier ones as the second. */
static const char *const files[] = {"libnvtx3interop.so.1", "libnvToolsExt.so.1"};
/* Where NVIDIA's Python packages put them, below a folder of SACCADE_CUDA_LIBS. */
static const char *const places[] = {"", "cu13/lib/", "nvtx/lib/"};

_Atomic(const struct sac_range_ops *) sac_range_ops;

static void *open_below(const char *folder, size_t length)
{
    char  path[1024];
    void *library = NULL;
    for (size_t f = 0; f < SAC_COUNT(files); f++)
        for (size_t p = 0; p < SAC_COUNT(places) && !library; p++)
            if (snprintf(path, sizeof path, "%.*s/%s%s", (int)length, folder, places[p], files[f]) <
                (int)sizeof path)
                library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void *open_library(void)
{
    const char *list = getenv("SACCADE_CUDA_LIBS");
    void       *library = NULL;
    while (list && *list && !library) {
        size_t length = strcspn(list, ":");
        if (length > 0)
            library = open_below(list, length);
        list += length + (list[length] == ':');
    }
    for (size_t f = 0; f < SAC_COUNT(files) && !library; f++)
        library = dlopen(files[f], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void open_once(void)
{
    static struct sac_range_ops ops;
    void                       *library = open_library();
    if (!library)
        return;
    *(void **)&ops.push = dlsym(library, "nvtxRangePushA");
    *(void **)&ops.pop = dlsym(library, "nvtxRangePop");
    if (ops.push && ops.pop)
        atomic_store_explicit(&sac_range_ops, &ops, memory_order_release);
}

bool sac_ranges_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return atomic_load(&sac_range_ops) != NULL;
}
