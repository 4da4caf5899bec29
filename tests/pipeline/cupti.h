/* SPDX-License-Identifier: Apache-2.0 */
/* Counts every memcpy of the process on a GPU with the driver's tracing library, independently of
 * our ledger. Loaded at run time; the parts declared here have been its ABI since CUDA 8. The
 * bitstream that the video engine reads is not counted: the driver moves it by itself. */
#ifndef SAC_TESTS_PIPELINE_CUPTI_H
#define SAC_TESTS_PIPELINE_CUPTI_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum cupti_way { CUPTI_TO_DEVICE, CUPTI_TO_HOST, CUPTI_ON_DEVICE, CUPTI_OTHER, CUPTI_WAYS };
static const char *const cupti_way_names[CUPTI_WAYS] = {"host to device", "device to host",
                                                        "on the device", "other"};

struct cupti_count {
    uint64_t calls, bytes, largest;
};
struct cupti_counts {
    struct cupti_count way[CUPTI_WAYS];
    uint64_t           dropped;
};

/* The beginning of a record; what follows grows from version to version. */
struct cupti_record {
    uint32_t kind;
    uint8_t  copy, from, to, flags;
    uint64_t bytes;
};
enum { CUPTI_MEMCPY = 1, CUPTI_FLUSH_FORCED = 1, CUPTI_BUFFER = 1 << 20 };

static struct {
    int (*enable)(int kind);
    int (*callbacks)(void (*request)(uint8_t **, size_t *, size_t *),
                     void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t));
    int (*next)(uint8_t *buffer, size_t size, struct cupti_record **record);
    int (*flush)(uint32_t flags);
    int (*dropped)(void *context, uint32_t stream, size_t *dropped);
} cupti;
static pthread_mutex_t     cupti_lock = PTHREAD_MUTEX_INITIALIZER; /* guards cupti_seen */
static struct cupti_counts cupti_seen;

static enum cupti_way cupti_way_of(const struct cupti_record *r)
{
    switch (r->copy) {
    case 1:
    case 3: return CUPTI_TO_DEVICE; /* memory or an array */
    case 2:
    case 4: return CUPTI_TO_HOST;
    case 5:
    case 6:
    case 7:
    case 8: return CUPTI_ON_DEVICE;
    default: return CUPTI_OTHER;
    }
}

static void cupti_request(uint8_t **buffer, size_t *size, size_t *records)
{
    *buffer = aligned_alloc(8, CUPTI_BUFFER);
    *size = *buffer ? CUPTI_BUFFER : 0;
    *records = 0;
}

static void cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                           size_t valid)
{
    struct cupti_record *r = NULL;
    size_t               dropped = 0;
    (void)size;
    pthread_mutex_lock(&cupti_lock);
    while (valid && cupti.next(buffer, valid, &r) == 0) {
        struct cupti_count *c = &cupti_seen.way[cupti_way_of(r)];
        if (r->kind != CUPTI_MEMCPY)
            continue;
        c->calls++;
        c->bytes += r->bytes;
        c->largest = r->bytes > c->largest ? r->bytes : c->largest;
    }
    if (cupti.dropped(context, stream, &dropped) == 0)
        cupti_seen.dropped += dropped;
    pthread_mutex_unlock(&cupti_lock);
    free(buffer);
}

static void *cupti_open_below(const char *folder, size_t length)
{
    static const char *const places[] = {"", "cu13/lib/", "cuda_cupti/lib/", "nvidia/cu13/lib/",
                                         "nvidia/cuda_cupti/lib/"};
    static const char *const files[] = {"libcupti.so.13", "libcupti.so.12"};
    char                     path[1024];
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            snprintf(path, sizeof path, "%.*s%s%s%s", (int)length, folder, length ? "/" : "",
                     places[p], files[f]);
            void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (library)
                return library;
        }
    return NULL;
}

/* Begin to count; before the first use of the GPU. false: there is no such library. */
static inline bool cupti_begin(void)
{
    const char *list = getenv("SACCADE_CUDA_LIBS");
    void       *library = NULL;
    for (; list && *list && !library; list += strspn(list, ":")) {
        size_t length = strcspn(list, ":");
        library = cupti_open_below(list, length);
        list += length;
    }
    if (!library && !(library = cupti_open_below("", 0)) &&
        !(library = cupti_open_below("/usr/local/cuda/lib64", 21)))
        library = cupti_open_below("/usr/local/cuda/extras/CUPTI/lib64", 34);
    if (!library)
        return false;
    *(void **)&cupti.enable = dlsym(library, "cuptiActivityEnable");
    *(void **)&cupti.callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
    *(void **)&cupti.next = dlsym(library, "cuptiActivityGetNextRecord");
    *(void **)&cupti.flush = dlsym(library, "cuptiActivityFlushAll");
    *(void **)&cupti.dropped = dlsym(library, "cuptiActivityGetNumDroppedRecords");
    return cupti.enable && cupti.callbacks && cupti.next && cupti.flush && cupti.dropped &&
           cupti.callbacks(cupti_request, cupti_complete) == 0 && cupti.enable(CUPTI_MEMCPY) == 0;
}

/* What is done by now, and the largest of each way since the last call. Nothing may be under way:
 * records of what is would be lost. */
static inline struct cupti_counts cupti_read(void)
{
    cupti.flush(CUPTI_FLUSH_FORCED); /* also buffers that are not full */
    pthread_mutex_lock(&cupti_lock);
    struct cupti_counts counts = cupti_seen;
    for (int w = 0; w < CUPTI_WAYS; w++)
        cupti_seen.way[w].largest = 0;
    pthread_mutex_unlock(&cupti_lock);
    return counts;
}

#endif
