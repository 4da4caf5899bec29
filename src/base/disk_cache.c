/* SPDX-License-Identifier: Apache-2.0 */
/* Entries: written, got and checked. disk_cache_files.c looks after the folder. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/disk_cache.h"
#include "base/disk_cache_files.h"

struct sac_cached {
    void  *map;
    size_t map_bytes;
    size_t at, bytes; /* of the payload in it */
};

struct sac_cache_params sac_cache_params_default(void)
{
    return (struct sac_cache_params){.bytes_max = 10ull << 30};
}

/* ---- open and close ---- */

static sac_result choose_folder(sac_cache *cache, const char *folder)
{
    char own[PATH_MAX];
    if (!folder && !sac_cache_folder(own, sizeof own))
        return SAC_FAIL(cache->ctx, SAC_ERR_IO,
                        "there is no folder for a cache: SACCADE_CACHE and HOME name none that can "
                        "be made");
    cache->folder = sac_strdup(folder ? folder : own);
    if (!cache->folder)
        return SAC_FAIL(cache->ctx, SAC_ERR_MEMORY, "no memory for a cache");
    struct stat st;
    if (mkdir(cache->folder, 0777) != 0 && errno != EEXIST)
        return SAC_FAIL(cache->ctx, SAC_ERR_IO, "cannot make folder '%s': %s", cache->folder,
                        strerror(errno));
    if (stat(cache->folder, &st) != 0 || !S_ISDIR(st.st_mode))
        return SAC_FAIL(cache->ctx, SAC_ERR_IO, "cache: '%s' is not a folder", cache->folder);
    return SAC_OK;
}

sac_result sac_cache_open(sac_context *ctx, const struct sac_cache_params *params, sac_cache **out)
{
    SAC_NEEDS(ctx, ctx);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "cache parameters");
    const struct sac_cache_params defaults = sac_cache_params_default();
    sac_cache                    *cache = sac_new(sac_cache);
    params = params ? params : &defaults;
    if (!cache)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a cache");
    cache->ctx = sac_context_hold(ctx);
    cache->bytes_max = params->bytes_max;
    sac_result res = choose_folder(cache, params->folder);
    if (res == SAC_OK)
        *out = cache;
    else
        sac_cache_close(&cache);
    return res;
}

void sac_cache_close(sac_cache **cache)
{
    if (!cache || !*cache)
        return;
    sac_context_release((*cache)->ctx);
    sac_free((*cache)->folder);
    sac_free(*cache);
    *cache = NULL;
}

const char *sac_cache_folder_of(const sac_cache *cache)
{
    return cache ? cache->folder : NULL;
}

/* NULL: no memory. */
static char *path_of(const sac_cache *cache, const char *key)
{
    struct sac_sum sum;
    uint64_t       of_key[2];
    char           text[SAC_SUM_TEXT];
    sac_sum_init(&sum);
    sac_sum_add(&sum, key, strlen(key));
    sac_sum_end(&sum, of_key);
    sac_sum_text(of_key, text);
    return sac_asprintf("%s/%s" SAC_ENTRY_SUFFIX, cache->folder, text);
}

/* ---- writing ---- */

static sac_result check_label(const sac_cache *cache, const struct sac_cache_label *label)
{
    const char *const texts[] = {label->key, label->kind, label->clip, label->model};
    SAC_NEEDS(cache->ctx, label->key);
    SAC_NEEDS_NO_LATER_FIELD(cache->ctx, label, "cache label");
    for (size_t i = 0; i < SAC_COUNT(texts); i++)
        if (texts[i] && strlen(texts[i]) >= (i == 0 ? SAC_ENTRY_KEY_MAX : SAC_ENTRY_TEXT_MAX))
            return SAC_FAIL(cache->ctx, SAC_ERR_ARG, "cache: a %s of %zu bytes; %d are allowed",
                            i == 0 ? "key" : "label", strlen(texts[i]),
                            i == 0 ? SAC_ENTRY_KEY_MAX : SAC_ENTRY_TEXT_MAX);
    return SAC_OK;
}

static void write_raw(struct sac_cache_writer *w, const void *bytes, size_t size)
{
    if (!w->fault && size > 0 && fwrite(bytes, 1, size, w->file) != size)
        w->fault = errno;
}

static void add_raw(struct sac_cache_writer *w, const void *bytes, size_t size)
{
    if (w->fault)
        return;
    sac_sum_add(&w->sum, bytes, size);
    write_raw(w, bytes, size);
}

/* The head, whose size and sum are known at the end only, and the label. */
static void write_label(struct sac_cache_writer *w, const struct sac_cache_label *label)
{
    const char *const           texts[] = {label->key, label->kind, label->clip, label->model};
    const struct sac_entry_head none = {.at = 0};
    static const char           zeros[16];
    uint64_t                    at = sizeof none;
    write_raw(w, &none, sizeof none);
    for (size_t i = 0; i < SAC_COUNT(texts); i++) {
        const char *text = texts[i] ? texts[i] : "";
        add_raw(w, text, strlen(text) + 1);
        at += strlen(text) + 1;
    }
    add_raw(w, zeros, (16 - at % 16) % 16);
    w->at = at + (16 - at % 16) % 16;
}

sac_result sac_cache_begin(sac_cache *cache, const struct sac_cache_label *label,
                           struct sac_cache_writer *out)
{
    static atomic_uint number; /* threads of one process write beside each other too */
    sac_result         res = check_label(cache, label);
    if (res != SAC_OK)
        return res;
    struct sac_cache_writer w = {.cache = cache, .path = path_of(cache, label->key)};
    if (w.path)
        w.beside = sac_asprintf("%s.%ld.%u" SAC_ENTRY_UNFINISHED, w.path, (long)getpid(),
                                atomic_fetch_add(&number, 1));
    if (!w.beside) {
        sac_free(w.path);
        return SAC_FAIL(cache->ctx, SAC_ERR_MEMORY, "no memory for an entry of the cache");
    }
    w.file = fopen(w.beside, "wbe");
    if (!w.file) {
        res = SAC_FAIL(cache->ctx, SAC_ERR_IO, "cannot write '%s': %s", w.beside, strerror(errno));
        sac_free(w.path);
        sac_free(w.beside);
        return res;
    }
    sac_sum_init(&w.sum);
    write_label(&w, label);
    *out = w;
    return SAC_OK;
}

/* The bound would remove it as soon as it is whole. */
static bool is_over_bound(const struct sac_cache_writer *w)
{
    return w->cache->bytes_max && w->at + w->bytes > w->cache->bytes_max;
}

bool sac_cache_is_lost(const struct sac_cache_writer *w)
{
    return w->fault || is_over_bound(w);
}

void sac_cache_add(struct sac_cache_writer *w, const void *bytes, size_t size)
{
    w->bytes += size;
    if (w->file && !is_over_bound(w))
        add_raw(w, bytes, size);
}

static void finish_file(struct sac_cache_writer *w)
{
    struct sac_entry_head head = {.magic = SAC_ENTRY_MAGIC, .at = w->at, .bytes = w->bytes};
    sac_sum_end(&w->sum, head.sum);
    if (!w->fault && (fflush(w->file) != 0 || fseek(w->file, 0, SEEK_SET) != 0))
        w->fault = errno;
    write_raw(w, &head, sizeof head);
    if (fclose(w->file) != 0 && !w->fault)
        w->fault = errno;
    w->file = NULL;
    if (!w->fault && rename(w->beside, w->path) != 0)
        w->fault = errno;
    if (w->fault)
        unlink(w->beside);
}

/* No wait for the disk: a machine that stops leaves a damaged file at worst, which its sum tells.
 */
sac_result sac_cache_commit(struct sac_cache_writer *w)
{
    sac_cache *cache = w->cache;
    sac_result res = SAC_OK;
    if (is_over_bound(w)) {
        res = SAC_FAIL(cache->ctx, SAC_ERR_LIMIT, "%.3g MB are more than the bound of all, %.3g MB",
                       (double)(w->at + w->bytes) / 1e6, (double)cache->bytes_max / 1e6);
    } else {
        finish_file(w);
        if (w->fault)
            res = SAC_FAIL(cache->ctx, SAC_ERR_IO, "cannot keep '%s': %s", w->path,
                           strerror(w->fault));
    }
    sac_cache_abandon(w);
    if (res == SAC_OK)
        sac_cache_bound(cache->folder, SAC_FILES_ENTRIES, cache->bytes_max);
    return res;
}

void sac_cache_abandon(struct sac_cache_writer *w)
{
    if (w->file) {
        fclose(w->file);
        unlink(w->beside);
    }
    sac_free(w->path);
    sac_free(w->beside);
    *w = (struct sac_cache_writer){0};
}

sac_result sac_cache_put(sac_cache *cache, const struct sac_cache_label *label, const void *bytes,
                         size_t size)
{
    SAC_NEEDS(NULL, cache);
    SAC_NEEDS(cache->ctx, label);
    SAC_NEEDS_ARRAY(cache->ctx, bytes, size);
    struct sac_cache_writer w = {0};
    sac_result              res = sac_cache_begin(cache, label, &w);
    if (res != SAC_OK)
        return res;
    sac_cache_add(&w, bytes, size);
    return sac_cache_commit(&w);
}

/* ---- reading ---- */

static bool has_its_sum(const uint8_t *map, size_t size, const uint64_t expected[2])
{
    struct sac_sum sum;
    uint64_t       of_all[2];
    sac_sum_init(&sum);
    sac_sum_add(&sum, map + sizeof(struct sac_entry_head), size - sizeof(struct sac_entry_head));
    sac_sum_end(&sum, of_all);
    return of_all[0] == expected[0] && of_all[1] == expected[1];
}

/* Whole, and of this key? */
static bool is_whole(const uint8_t *map, size_t size, const char *key, bool reads, bool *other)
{
    struct sac_entry_head head;
    if (size < sizeof head)
        return false;
    memcpy(&head, map, sizeof head);
    if (memcmp(head.magic, SAC_ENTRY_MAGIC, sizeof head.magic) != 0 || head.at < sizeof head ||
        head.at > size || head.bytes != size - head.at ||
        (reads && !has_its_sum(map, size, head.sum)))
        return false;
    const size_t length = strlen(key) + 1;
    *other = head.at - sizeof head < length || memcmp(map + sizeof head, key, length) != 0;
    return !*other;
}

static sac_result take_map(sac_cache *cache, const char *path, const char *key, bool reads,
                           void *map, size_t size, sac_cached **out)
{
    bool        other = false;
    sac_cached *cached = is_whole(map, size, key, reads, &other) ? sac_new(sac_cached) : NULL;
    if (cached) {
        struct sac_entry_head head;
        memcpy(&head, map, sizeof head);
        *cached = (sac_cached){
            .map = map, .map_bytes = size, .at = (size_t)head.at, .bytes = (size_t)head.bytes};
        *out = cached;
        return SAC_OK;
    }
    munmap(map, size);
    if (!other)
        sac_log(cache->ctx, SAC_LOG_WARN, "%s is damaged and is not used; it is made anew", path);
    return SAC_AGAIN;
}

static sac_result map_entry(sac_cache *cache, const char *path, const char *key, bool reads, int fd,
                            sac_cached **out)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return SAC_AGAIN;
    void *map =
        st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (map == MAP_FAILED) {
        sac_log(cache->ctx, SAC_LOG_WARN, "%s can't be read; it is made anew", path);
        return SAC_AGAIN;
    }
    madvise(map, (size_t)st.st_size, MADV_SEQUENTIAL);
    sac_result res = take_map(cache, path, key, reads, map, (size_t)st.st_size, out);
    if (res == SAC_OK)
        futimens(fd, NULL); /* the latest used; where that is not allowed, by when it was made */
    return res;
}

static sac_result get(sac_cache *cache, const char *key, bool reads, sac_cached **out)
{
    char *path = path_of(cache, key);
    if (!path)
        return SAC_FAIL(cache->ctx, SAC_ERR_MEMORY, "no memory for an entry of the cache");
    sac_result res = SAC_AGAIN;
    const int  fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        res = map_entry(cache, path, key, reads, fd, out);
        close(fd);
    }
    sac_free(path);
    return res;
}

sac_result sac_cache_get(sac_cache *cache, const char *key, sac_cached **out)
{
    SAC_NEEDS(NULL, cache);
    SAC_NEEDS(cache->ctx, key);
    SAC_NEEDS(cache->ctx, out);
    return get(cache, key, true, out);
}

sac_result sac_cache_map(sac_cache *cache, const char *key, sac_cached **out)
{
    return get(cache, key, false, out);
}

/* Whole pages inside it, at a length that is no page's: the ends go with their neighbours. */
void sac_cached_drop_pages(const void *bytes, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)bytes;
    const uintptr_t first = begin / page * page, end = (begin + size) / page * page;
    if (end > first)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

void sac_cache_remove(sac_cache *cache, const char *key)
{
    char *path = path_of(cache, key);
    if (path)
        unlink(path);
    sac_free(path);
}

const void *sac_cached_bytes(const sac_cached *cached, size_t *size)
{
    if (size)
        *size = cached ? cached->bytes : 0;
    return cached && cached->bytes ? (const uint8_t *)cached->map + cached->at : NULL;
}

void sac_cached_release(sac_cached **cached)
{
    if (!cached || !*cached)
        return;
    munmap((*cached)->map, (*cached)->map_bytes);
    sac_free(*cached);
    *cached = NULL;
}
