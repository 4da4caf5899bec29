/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/cudnn_store.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cache.h"
#include "base/disk_cache.h"

enum { STORE_MAX = 64 << 20 };

static uint64_t hash(const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    uint64_t             h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        h = (h ^ b[i]) * 1099511628211u;
    return h;
}

static bool path_of(const char *key, char *out, size_t size)
{
    char folder[PATH_MAX];
    if (!sac_cache_folder(folder, sizeof folder))
        return false;
    return (size_t)snprintf(out, size, "%s/cudnn-%016" PRIx64 ".json", folder,
                            hash(key, strlen(key))) < size;
}

/* "saccade cudnn 1 LENGTH SUM KEY\n", then the text. cuDNN would trust what it reads, so the sum is
 * checked. */
static char *header(const char *key, const char *text, size_t size)
{
    return sac_asprintf("saccade cudnn 1 %zu %016" PRIx64 " %s\n", size, hash(text, size), key);
}

bool cudnn_store_save(const char *key, const char *text, size_t size)
{
    char  path[PATH_MAX];
    char *head = header(key, text, size);
    bool  kept = false;
    if (head && path_of(key, path, sizeof path)) {
        const size_t length = strlen(head);
        char        *whole = sac_alloc(length + size);
        if (whole) {
            memcpy(whole, head, length);
            memcpy(whole + length, text, size);
            /* A network has a hundred of them, and a damaged one is recognised by its sum. */
            kept = sac_cache_write(path, whole, length + size, false);
        }
        sac_free(whole);
    }
    sac_free(head);
    return kept;
}

char *cudnn_store_load(const char *key, size_t *size)
{
    char   path[PATH_MAX];
    size_t whole = 0;
    char  *bytes = path_of(key, path, sizeof path) ? sac_cache_read(path, STORE_MAX, &whole) : NULL;
    char  *line = bytes ? memchr(bytes, '\n', whole) : NULL;
    char  *head = line ? header(key, line + 1, whole - (size_t)(line + 1 - bytes)) : NULL;
    bool   good = head && strlen(head) == (size_t)(line + 1 - bytes) &&
                memcmp(head, bytes, strlen(head)) == 0;
    sac_free(head);
    if (!good) {
        sac_free(bytes);
        return NULL;
    }
    *size = whole - (size_t)(line + 1 - bytes);
    sac_cache_touch(path);
    memmove(bytes, line + 1, *size + 1);
    return bytes;
}
