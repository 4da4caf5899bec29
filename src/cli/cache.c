/* SPDX-License-Identifier: Apache-2.0 */
/* saccade cache: what lies in the cache's folder, and its removal. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <saccade/cache.h>

#include "term.h"
#include "verbs.h"
#include "wrap.h"

struct listing {
    struct sac_text text;
    struct sac_json json;
    uint64_t        bytes;
    int             count;
};

static void format_age(double seconds, char *out, size_t size)
{
    if (seconds < 3600)
        snprintf(out, size, "%.0f min", seconds / 60);
    else if (seconds < 48 * 3600.0)
        snprintf(out, size, "%.0f h", seconds / 3600);
    else
        snprintf(out, size, "%.0f days", seconds / 86400);
}

/* "person_det.onnx" */
static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_entry(void *user, const struct sac_cache_entry *e)
{
    struct listing *l = user;
    char            age[32], line[1024];
    if (l->count == 0)
        printf("%-12s %10s %10s  %-24s %s\n", "kind", "MB", "last used", "model", "clip");
    format_age(e->age_s, age, sizeof age);
    snprintf(line, sizeof line, "%-12.40s %10.3f %10s  %-24.200s %.500s", e->kind,
             (double)e->bytes / 1e6, age, e->model[0] ? file_of(e->model) : "-",
             e->clip[0] ? e->clip : e->file);
    print_clean(stdout, line);
    putchar('\n');
    l->bytes += e->bytes;
    l->count++;
}

static void json_entry(void *user, const struct sac_cache_entry *e)
{
    struct listing *l = user;
    sac_json_open(&l->json, NULL, '{');
    sac_json_string(&l->json, "file", e->file);
    sac_json_string(&l->json, "kind", e->kind);
    sac_json_string(&l->json, "clip", e->clip);
    sac_json_string(&l->json, "model", e->model);
    sac_json_int(&l->json, "bytes", (int64_t)e->bytes);
    sac_json_real(&l->json, "age_s", e->age_s);
    sac_json_close(&l->json, '}');
    l->bytes += e->bytes;
    l->count++;
}

static int list(const struct settings *s, sac_context *ctx, sac_cache *cache, struct fault *fault)
{
    struct listing l = {.count = 0};
    l.json.text = &l.text;
    sac_json_open(&l.json, NULL, '{');
    sac_json_string(&l.json, "folder", sac_cache_folder_of(cache));
    sac_json_open(&l.json, "entries", '[');
    const sac_result res = sac_cache_list(cache, s->json ? json_entry : print_entry, &l);
    sac_json_close(&l.json, ']');
    sac_json_int(&l.json, "bytes", (int64_t)l.bytes);
    sac_json_close(&l.json, '}');
    int status = res == SAC_OK ? STATUS_OK : fault_library(fault, ctx, res);
    if (status == STATUS_OK && s->json)
        status = print_json(&l.json, fault);
    else
        sac_text_finish(&l.text);
    if (status == STATUS_OK && !s->json)
        printf("%d file%s, %.3f MB in %s\n", l.count, l.count == 1 ? "" : "s",
               (double)l.bytes / 1e6, sac_cache_folder_of(cache));
    return status;
}

static int clear(const struct settings *s, sac_context *ctx, sac_cache *cache, struct fault *fault)
{
    int              removed = 0;
    uint64_t         bytes = 0;
    const sac_result res = sac_cache_clear(cache, s->cache_older * 86400, &removed, &bytes);
    if (res != SAC_OK)
        return fault_library(fault, ctx, res);
    if (s->json)
        printf("{\"removed\": %d, \"bytes\": %llu}\n", removed, (unsigned long long)bytes);
    else
        printf("%d file%s removed, %.3f MB, from %s\n", removed, removed == 1 ? "" : "s",
               (double)bytes / 1e6, sac_cache_folder_of(cache));
    return STATUS_OK;
}

static const char *folder_of(const struct settings *s)
{
    const char *folder = s->run.disk_cache;
    const bool  own = !folder || strcmp(folder, "off") == 0 || strcmp(folder, "auto") == 0;
    return own ? NULL : folder;
}

int verb_cache(struct settings *s, struct fault *fault)
{
    const char             *what = s->args.count ? s->args.items[0] : "list";
    const bool              clears = strcmp(what, "clear") == 0;
    sac_context            *ctx = NULL;
    sac_cache              *cache = NULL;
    struct sac_cache_params params = sac_cache_params_default();
    if (!clears && strcmp(what, "list") != 0)
        return fault_usage(fault, "cache '%s': it takes list or clear", what);
    params.folder = folder_of(s);
    struct stat st;
    if (params.folder && stat(params.folder, &st) != 0) /* opening would make it */
        return fault_failure(fault, "cannot read folder '%s': %s", params.folder, strerror(errno));
    int status = term_context(s, &ctx, fault);
    if (status != STATUS_OK)
        return status;
    const sac_result res = sac_cache_open(ctx, &params, &cache);
    if (res != SAC_OK)
        status = fault_library(fault, ctx, res);
    else
        status = clears ? clear(s, ctx, cache, fault) : list(s, ctx, cache, fault);
    sac_cache_close(&cache);
    sac_context_destroy(&ctx);
    return status;
}
