/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nvidia.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { FILES_MAX = 3 };

/* What a library is called, newest first, and what tells its version. */
struct row {
    const char *name, *mend;
    const char *files[FILES_MAX];
    int         cuda[FILES_MAX]; /* CUDA that such a file is for; 0: ask it */
    const char *parts[8]; /* opened before it, by their full paths, where they lie beside it */
    void (*ask)(struct sac_nvidia_library *lib);
};

static void ask_cudnn(struct sac_nvidia_library *lib)
{
    size_t (*version)(void) = NULL, (*cudart)(void) = NULL;
    *(void **)&version = dlsym(lib->handle, "cudnnGetVersion");
    *(void **)&cudart = dlsym(lib->handle, "cudnnGetCudartVersion");
    const size_t v = version ? version() : 0; /* 91900: 9.19.0 */
    lib->version[0] = (int)(v / 10000);
    lib->version[1] = (int)(v / 100 % 100);
    lib->version[2] = (int)(v % 100);
    lib->cuda_major = cudart ? (int)(cudart() / 1000) : 0;
}

static void ask_cublaslt(struct sac_nvidia_library *lib)
{
    size_t (*version)(void) = NULL;
    *(void **)&version = dlsym(lib->handle, "cublasLtGetVersion");
    const size_t v = version ? version() : 0; /* 130100: 13.1.0; of CUDA 12: 120805 */
    lib->version[0] = (int)(v / 10000);
    lib->version[1] = (int)(v / 100 % 100);
    lib->version[2] = (int)(v % 100);
}

static void ask_nvrtc(struct sac_nvidia_library *lib)
{
    int (*version)(int *, int *) = NULL;
    *(void **)&version = dlsym(lib->handle, "nvrtcVersion");
    if (version)
        version(&lib->version[0], &lib->version[1]);
}

static const struct row rows[SAC_NVIDIA_COUNT] = {
    [SAC_NVIDIA_CUDNN] = {"cuDNN",
                          "pip install nvidia-cudnn-cu13 (cu12 for a driver for CUDA 12), then set "
                          "SACCADE_CUDA_LIBS to its site-packages folder",
                          {"libcudnn.so.9"},
                          {0},
                          {"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9",
                           "libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9",
                           "libcudnn_engines_runtime_compiled.so.9"},
                          ask_cudnn},
    [SAC_NVIDIA_CUBLASLT] = {"cuBLASLt",
                             "pip install nvidia-cublas (nvidia-cublas-cu12 for a driver for CUDA "
                             "12), then set SACCADE_CUDA_LIBS to its site-packages folder",
                             {"libcublasLt.so.13", "libcublasLt.so.12"},
                             {13, 12},
                             {NULL},
                             ask_cublaslt},
    [SAC_NVIDIA_NVRTC] = {"NVRTC",
                          "pip install nvidia-cuda-nvrtc (nvidia-cuda-nvrtc-cu12 for a driver for "
                          "CUDA 12), then set SACCADE_CUDA_LIBS to its site-packages folder",
                          {"libnvrtc.so.13", "libnvrtc.so.12"},
                          {13, 12},
                          {NULL},
                          ask_nvrtc},
};

/* Where files lie in a folder that was named. */
static const char *const under[] = {"",
                                    "/nvidia/cudnn/lib",
                                    "/nvidia/cu13/lib",
                                    "/nvidia/cublas/lib",
                                    "/nvidia/cuda_nvrtc/lib",
                                    "/nvidia/cu12/lib",
                                    "/lib64",
                                    "/lib"};

const char *sac_nvidia_name(enum sac_nvidia_id id)
{
    return rows[id].name;
}

const char *sac_nvidia_mend(enum sac_nvidia_id id)
{
    return rows[id].mend;
}

struct search {
    const struct row          *row;
    int                        file, cuda_major;
    struct sac_nvidia_library *out;
    char                       fault[300]; /* of a file that is there and does not do */
};

/* What the loader would not find by itself: it goes by names, and these are known by then. A part
 * that does not open is left to its library, which says what it misses. */
static void open_parts(const struct search *s, const char *folder)
{
    char path[640];
    for (size_t i = 0; i < SAC_COUNT(s->row->parts) && s->row->parts[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, s->row->parts[i]);
        dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    }
    if (s->row != &rows[SAC_NVIDIA_NVRTC])
        return;
    glob_t found;
    snprintf(path, sizeof path, "%s/libnvrtc-builtins.so.%d*", folder, s->row->cuda[s->file]);
    if (glob(path, 0, NULL, &found) == 0 && found.gl_pathc > 0)
        dlopen(found.gl_pathv[0], RTLD_LAZY | RTLD_GLOBAL);
    globfree(&found);
}

static bool fits(struct search *s, const char *path)
{
    struct sac_nvidia_library *lib = s->out;
    memset(lib->version, 0, sizeof lib->version);
    lib->cuda_major = s->row->cuda[s->file];
    s->row->ask(lib);
    if (lib->version[0] == 0)
        snprintf(s->fault, sizeof s->fault, "%.200s does not tell its version", path);
    else if (s->cuda_major && lib->cuda_major > s->cuda_major)
        snprintf(s->fault, sizeof s->fault, "%.200s is for CUDA %d and the driver for CUDA %d",
                 path, lib->cuda_major, s->cuda_major);
    else
        return true;
    return false;
}

/* Where a handle's file lies; the name that was asked for when the loader does not say. */
static void note_path(struct search *s, const char *path)
{
    Dl_info                  info;
    static const char *const symbols[] = {"cudnnGetVersion", "cublasLtGetVersion", "nvrtcVersion"};
    void                    *symbol = NULL;
    for (size_t i = 0; i < SAC_COUNT(symbols) && !symbol; i++)
        symbol = dlsym(s->out->handle, symbols[i]);
    const char *file = symbol && dladdr(symbol, &info) && info.dli_fname ? info.dli_fname : path;
    snprintf(s->out->path, sizeof s->out->path, "%s", file);
}

static bool open_path(struct search *s, const char *path)
{
    dlerror();
    s->out->handle = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    if (!s->out->handle) {
        const char *why = dlerror();
        if (strchr(path, '/'))
            snprintf(s->fault, sizeof s->fault, "%.280s", why ? why : path);
        return false;
    }
    if (fits(s, path)) {
        note_path(s, path);
        return true;
    }
    dlclose(s->out->handle);
    s->out->handle = NULL;
    return false;
}

static bool open_in(struct search *s, const char *folder, size_t length)
{
    char where[600], path[680];
    for (size_t i = 0; i < SAC_COUNT(under); i++) {
        snprintf(where, sizeof where, "%.*s%s", (int)SAC_MIN(length, (size_t)500), folder,
                 under[i]);
        snprintf(path, sizeof path, "%s/%s", where, s->row->files[s->file]);
        FILE *there = fopen(path, "rb");
        if (!there)
            continue;
        fclose(there);
        open_parts(s, where);
        if (open_path(s, path))
            return true;
    }
    return false;
}

static bool search_folders(struct search *s, const char *folders)
{
    while (*folders) {
        const size_t length = strcspn(folders, ":");
        if (length > 0 && open_in(s, folders, length))
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

static bool search_all(struct search *s, const char *folders)
{
    for (s->file = 0; s->file < FILES_MAX && s->row->files[s->file]; s->file++) {
        const int cuda = s->row->cuda[s->file];
        if (s->cuda_major && cuda > s->cuda_major)
            continue;
        if (search_folders(s, folders) || open_path(s, s->row->files[s->file]) ||
            search_folders(s, "/usr/local/cuda"))
            return true;
    }
    return false;
}

void sac_nvidia_open(enum sac_nvidia_id id, int cuda_major, struct sac_nvidia_library *out)
{
    const char   *folders = getenv("SACCADE_CUDA_LIBS");
    struct search s = {.row = &rows[id], .cuda_major = cuda_major, .out = out};
    *out = (struct sac_nvidia_library){0};
    if (search_all(&s, folders ? folders : ""))
        return;
    *out = (struct sac_nvidia_library){0};
    if (s.fault[0])
        snprintf(out->missing, sizeof out->missing, "%s cannot be used: %s", s.row->name, s.fault);
    else
        snprintf(out->missing, sizeof out->missing,
                 "%s (%s) is neither on the loader's path nor in %s%s", s.row->name,
                 s.row->files[0],
                 folders && *folders ? "the folders of SACCADE_CUDA_LIBS: " : "/usr/local/cuda",
                 folders && *folders ? folders : ", and SACCADE_CUDA_LIBS is not set");
}

/* It opens cuBLASLt by name, and aborts without it (9.19, 2026-11-21). */
static void check_cudnn(struct sac_nvidia_library *cudnn, const struct sac_nvidia_library *cublas)
{
    struct sac_nvidia_library own = *cublas;
    if (own.handle && cudnn->cuda_major && own.cuda_major != cudnn->cuda_major)
        sac_nvidia_open(SAC_NVIDIA_CUBLASLT, cudnn->cuda_major, &own);
    if (own.handle && (!cudnn->cuda_major || own.cuda_major == cudnn->cuda_major))
        return;
    snprintf(cudnn->missing, sizeof cudnn->missing,
             "cuDNN %d.%d.%d (%.300s) wants cuBLASLt for CUDA %d, which is not there",
             cudnn->version[0], cudnn->version[1], cudnn->version[2], cudnn->path,
             cudnn->cuda_major);
    cudnn->handle = NULL;
}

void sac_nvidia_open_all(int cuda_major, struct sac_nvidia_library out[SAC_NVIDIA_COUNT])
{
    for (int i = SAC_NVIDIA_COUNT - 1; i >= 0; i--)
        sac_nvidia_open((enum sac_nvidia_id)i, cuda_major, &out[i]);
    if (out[SAC_NVIDIA_CUDNN].handle)
        check_cudnn(&out[SAC_NVIDIA_CUDNN], &out[SAC_NVIDIA_CUBLASLT]);
}
