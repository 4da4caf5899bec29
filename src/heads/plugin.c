/* SPDX-License-Identifier: Apache-2.0 */
/* Heads from a shared object: the C ABI of struct sac_head_plugin seen as a row of the table. */
#include <dlfcn.h>

#include "heads/heads.h"

sac_result sac_head_plugin_decode(const struct sac_head *head, const struct sac_head_input *in,
                                  sac_head_emit emit, void *sink)
{
    int res = head->plugin->decode(in, emit, sink);
    return res < 0 ? (sac_result)res : SAC_OK;
}

static sac_result check(sac_context *ctx, const char *path, const struct sac_head_plugin *p)
{
    if (!p)
        return SAC_FAIL(ctx, SAC_ERR_FORMAT, "%s: it exports no sac_head_plugin", path);
    if (p->abi != SAC_HEAD_PLUGIN_ABI || p->struct_size != sizeof *p)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: head ABI %u with %u bytes; this build has %d with %zu: rebuild it",
                        path, p->abi, p->struct_size, SAC_HEAD_PLUGIN_ABI, sizeof *p);
    if (!p->name || !p->decode)
        return SAC_FAIL(ctx, SAC_ERR_FORMAT, "%s: the head lacks a name or decode", path);
    return SAC_OK;
}

bool sac_head_is_library(const char *head)
{
    const size_t len = strlen(head);
    return strchr(head, '/') || (len > 3 && !strcmp(head + len - 3, ".so"));
}

sac_result sac_head_library_open(sac_context *ctx, const char *path, struct sac_head_library *out)
{
    /* dlopen searches the system for a name without a slash; ours is a file the user named. */
    char *file = sac_asprintf("%s%s", path[0] == '/' ? "" : "./", path);
    if (!file)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory to open it", path);
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    sac_free(file);
    if (!handle)
        return SAC_FAIL(ctx, SAC_ERR_IO, "head %s: %s", path, dlerror());
    const struct sac_head_plugin *p = dlsym(handle, "sac_head_plugin");
    sac_result                    res = check(ctx, path, p);
    if (res != SAC_OK) {
        dlclose(handle);
        return res;
    }
    *out = (struct sac_head_library){
        .handle = handle,
        .head = {.name = p->name,
                 .what = "from a shared object",
                 .wants = "what the plug-in documents",
                 .needs_nms = p->needs_nms != 0,
                 .plugin = p},
    };
    return SAC_OK;
}

void sac_head_library_close(struct sac_head_library *lib)
{
    if (lib->handle)
        dlclose(lib->handle);
    *lib = (struct sac_head_library){0};
}
