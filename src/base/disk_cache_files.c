/* SPDX-License-Identifier: Apache-2.0 */
#include "base/disk_cache_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cache.h"

/* ---- which files are ours ---- */

static const struct form {
    const char *prefix, *suffix;
    size_t      digits;
    const char *magic; /* NULL: it may have no bytes yet */
    const char *kind;  /* NULL: its label says so */
    unsigned    which; /* 0: what is being written */
} forms[] = {
    {"", SAC_ENTRY_SUFFIX, 32, SAC_ENTRY_MAGIC, NULL, SAC_FILES_ENTRIES},
    {"", ".plan", 32, "saccade plan ", "plan", SAC_FILES_PLANS},
    {"cudnn-", ".json", 16, "saccade cudnn ", "kernels", SAC_FILES_PLANS},
};
static const struct form unfinished = {"", SAC_ENTRY_SUFFIX ".", 32, NULL, NULL, 0};
/* No run takes longer to make an entry without writing to it. */
enum { UNFINISHED_S = 24 * 3600 };

/* What follows the form's name; NULL: it is another's. */
static const char *after_form(const struct form *form, const char *name)
{
    const size_t prefix = strlen(form->prefix), suffix = strlen(form->suffix);
    if (strncmp(name, form->prefix, prefix) != 0 ||
        strspn(name + prefix, "0123456789abcdef") != form->digits ||
        strncmp(name + prefix + form->digits, form->suffix, suffix) != 0)
        return NULL;
    return name + prefix + form->digits + suffix;
}

static bool is_unfinished(const char *name)
{
    const char *rest = after_form(&unfinished, name);
    if (!rest)
        return false;
    rest += strspn(rest, "0123456789");
    rest += *rest == '.';
    rest += strspn(rest, "0123456789");
    return strcmp(rest, SAC_ENTRY_UNFINISHED) == 0;
}

static const struct form *form_of(const char *name)
{
    for (size_t i = 0; i < SAC_COUNT(forms); i++) {
        const char *rest = after_form(&forms[i], name);
        if (rest && !*rest)
            return &forms[i];
    }
    return is_unfinished(name) ? &unfinished : NULL;
}

/* ---- a folder's files ---- */

struct file {
    const struct form *form;
    char              *name;
    uint64_t           bytes;
    struct timespec    used;
    char              *texts; /* of an entry: kind, clip and model, each with a zero behind it */
};

struct files {
    struct file *list;
    size_t       count, capacity;
    bool         failed; /* no memory */
};

static void free_files(struct files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        sac_free(files->list[i].name);
        sac_free(files->list[i].texts);
    }
    sac_free(files->list);
}

static ssize_t read_at(int fd, void *out, size_t size, off_t at)
{
    ssize_t n;
    do
        n = pread(fd, out, size, at);
    while (n < 0 && errno == EINTR);
    return n;
}

/* The texts behind the key, with two zeros behind them in any case; NULL: damaged, or no memory. */
static char *read_texts(int fd)
{
    enum { LABEL_MAX = SAC_ENTRY_KEY_MAX + 4 * SAC_ENTRY_TEXT_MAX };
    struct sac_entry_head head;
    if (read_at(fd, &head, sizeof head, 0) != sizeof head || head.at < sizeof head ||
        head.at - sizeof head > LABEL_MAX)
        return NULL;
    const size_t size = (size_t)head.at - sizeof head;
    char        *texts = sac_calloc(1, size + 4);
    if (!texts || read_at(fd, texts, size, sizeof head) != (ssize_t)size) {
        sac_free(texts);
        return NULL;
    }
    const size_t key = strlen(texts) + 1;
    memmove(texts, texts + key, size + 4 - key);
    memset(texts + size + 4 - key, 0, key);
    return texts;
}

static bool begins_as(int fd, const struct form *form)
{
    char         begin[16];
    const size_t length = form->magic ? strlen(form->magic) : 0;
    return read_at(fd, begin, length, 0) == (ssize_t)length &&
           (length == 0 || memcmp(begin, form->magic, length) == 0);
}

static void add_file(struct files *files, int folder, const char *name, const struct form *form,
                     bool texts)
{
    struct stat st;
    const int   fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && begins_as(fd, form)) {
        struct file file = {.form = form,
                            .name = sac_strdup(name),
                            .bytes = (uint64_t)st.st_size,
                            .used = st.st_mtim,
                            .texts = texts && form->magic && !form->kind ? read_texts(fd) : NULL};
        if (file.name && sac_grow((void **)&files->list, &files->capacity, files->count + 1,
                                  sizeof *files->list)) {
            files->list[files->count++] = file;
        } else {
            sac_free(file.name);
            sac_free(file.texts);
            files->failed = true;
        }
    }
    close(fd);
}

static int by_use(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? 1 : -1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* The latest used first. false: the folder can't be read; errno says why. */
static bool read_files(const char *path, bool texts, struct files *out)
{
    struct files   files = {0};
    DIR           *dir = opendir(path);
    struct dirent *entry;
    if (!dir)
        return false;
    while ((entry = readdir(dir)) != NULL) {
        const struct form *form = form_of(entry->d_name);
        if (form)
            add_file(&files, dirfd(dir), entry->d_name, form, texts);
    }
    closedir(dir);
    if (files.count > 0)
        qsort(files.list, files.count, sizeof *files.list, by_use);
    *out = files;
    return true;
}

static double age_of(const struct file *file)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double age = (double)(now.tv_sec - file->used.tv_sec) +
                       (double)(now.tv_nsec - file->used.tv_nsec) * 1e-9;
    return SAC_MAX(age, 0.0);
}

static bool remove_file(const char *folder, const char *name)
{
    char      *path = sac_asprintf("%s/%s", folder, name);
    const bool gone = path && (unlink(path) == 0 || errno == ENOENT);
    sac_free(path);
    return gone;
}

/* ---- the bound ---- */

void sac_cache_bound(const char *folder, unsigned which, uint64_t bytes_max)
{
    struct files files;
    uint64_t     bytes = 0;
    if (!read_files(folder, false, &files))
        return;
    for (size_t i = 0; i < files.count; i++) {
        const struct file *file = &files.list[i];
        if (!file->form->which && age_of(file) > UNFINISHED_S)
            remove_file(folder, file->name);
        if (!(file->form->which & which))
            continue;
        bytes += file->bytes;
        if (bytes_max && bytes > bytes_max && remove_file(folder, file->name))
            bytes -= file->bytes;
    }
    free_files(&files);
}

void sac_cache_bound_plans(uint64_t bytes_max)
{
    static const uint64_t USUAL = 4ull << 30;
    char                  folder[PATH_MAX];
    if (sac_cache_folder(folder, sizeof folder))
        sac_cache_bound(folder, SAC_FILES_PLANS, bytes_max ? bytes_max : USUAL);
}

void sac_cache_touch(const char *path)
{
    utimensat(AT_FDCWD, path, NULL, 0);
}

/* ---- list and clear ---- */

static sac_result read_all(sac_cache *cache, bool texts, struct files *out)
{
    if (!read_files(cache->folder, texts, out))
        return SAC_FAIL(cache->ctx, SAC_ERR_IO, "cannot read folder '%s': %s", cache->folder,
                        strerror(errno));
    if (!out->failed)
        return SAC_OK;
    free_files(out);
    return SAC_FAIL(cache->ctx, SAC_ERR_MEMORY, "no memory for the files of '%s'", cache->folder);
}

sac_result sac_cache_list(sac_cache *cache,
                          void (*fn)(void *user, const struct sac_cache_entry *entry), void *user)
{
    SAC_NEEDS(NULL, cache);
    SAC_NEEDS(cache->ctx, fn);
    struct files files;
    sac_result   res = read_all(cache, true, &files);
    if (res != SAC_OK)
        return res;
    for (size_t i = 0; i < files.count; i++) {
        const struct file *file = &files.list[i];
        const char        *kind = file->texts ? file->texts : "",
                   *clip = file->texts ? kind + strlen(kind) + 1 : "",
                   *model = file->texts ? clip + strlen(clip) + 1 : "";
        const struct sac_cache_entry entry = {.file = file->name,
                                              .kind = file->form->kind    ? file->form->kind
                                                      : file->form->which ? kind
                                                                          : "unfinished",
                                              .clip = clip,
                                              .model = model,
                                              .bytes = file->bytes,
                                              .age_s = age_of(file)};
        fn(user, &entry);
    }
    free_files(&files);
    return SAC_OK;
}

sac_result sac_cache_clear(sac_cache *cache, double older_s, int *removed, uint64_t *bytes)
{
    SAC_NEEDS(NULL, cache);
    if (!(older_s >= 0 && isfinite(older_s)))
        return SAC_FAIL(cache->ctx, SAC_ERR_ARG, "cache: %g seconds; want 0 or more", older_s);
    struct files files;
    int          gone = 0;
    uint64_t     freed = 0;
    sac_result   res = read_all(cache, false, &files);
    if (res != SAC_OK)
        return res;
    for (size_t i = 0; i < files.count; i++) {
        const struct file *file = &files.list[i];
        const double       least = file->form->which ? older_s : SAC_MAX(older_s, UNFINISHED_S);
        if (age_of(file) < least)
            continue;
        if (remove_file(cache->folder, file->name)) {
            gone++;
            freed += file->bytes;
        } else {
            res = SAC_FAIL(cache->ctx, SAC_ERR_IO, "cannot remove '%s/%s': %s", cache->folder,
                           file->name, strerror(errno));
        }
    }
    free_files(&files);
    if (removed)
        *removed = gone;
    if (bytes)
        *bytes = freed;
    return res;
}
