/* SPDX-License-Identifier: Apache-2.0 */
/* What every other folder may use: errors, log, memory, references, time. Depends on nothing of
 * ours but the public result and context headers. Threads and queues: base/thread.h. */
#ifndef SAC_BASE_BASE_H
#define SAC_BASE_BASE_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <saccade/context.h>
#include <saccade/result.h>

#define SAC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define SAC_COUNT(array)      (sizeof(array) / sizeof((array)[0]))
#define SAC_MIN(a, b)         ((a) < (b) ? (a) : (b))
#define SAC_MAX(a, b)         ((a) > (b) ? (a) : (b))
#define SAC_CLAMP(v, lo, hi)  SAC_MAX(lo, SAC_MIN(v, hi))

/* Keep the sentence, log it at SAC_LOG_DEBUG (the user of the library shows it) and yield the code.
 * The function that finds a fault reports it, once; callers pass the code up. ctx may be NULL
 * (nothing is kept). */
#define SAC_FAIL(ctx, res, ...) sac_fail(ctx, res, __VA_ARGS__)
sac_result sac_fail(sac_context *ctx, sac_result res, const char *fmt, ...) SAC_PRINTF(3, 4);

/* First in a public function: what its caller must give, an array where its count is not 0. ctx may
 * be NULL. */
#define SAC_NEEDS(ctx, arg)                                                      \
    do {                                                                         \
        if (!(arg))                                                              \
            return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: %s is NULL", __func__, #arg); \
    } while (0)
#define SAC_NEEDS_ARRAY(ctx, array, count)                                                \
    do {                                                                                  \
        if ((count) != 0 && !(array))                                                     \
            return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: %s is NULL, and there should be %lld", \
                            __func__, #array, (long long)(count));                        \
    } while (0)

/* First in a public function too: that the tail which a struct of the caller's reserves for later
 * versions is 0 (saccade/saccade.h). what: the struct, for people: "device parameters". ctx and of
 * may be NULL. */
#define SAC_NEEDS_NO_LATER_FIELD(ctx, of, what)                                            \
    do {                                                                                   \
        if ((of) && !sac_is_zero((of)->reserved, sizeof(of)->reserved))                    \
            return SAC_FAIL(ctx, SAC_ERR_ARG,                                              \
                            "%s: a field is set that saccade " SAC_VERSION                 \
                            " does not have: the program was built with a later version's" \
                            " headers",                                                    \
                            what);                                                         \
    } while (0)
bool sac_is_zero(const void *bytes, size_t size);

/* Numbers of a caller's params; both ends belong to the range. SAC_ERR_ARG names the first that is
 * outside, as what is no number at all is. */
struct sac_number {
    const char *name;
    double      value, min, max;
};
sac_result sac_numbers_check(sac_context *ctx, const char *of, const struct sac_number *numbers,
                             size_t n);

/* Put a place before the sentence that a callee just kept: "model.onnx: " + sentence; passes res
 * through. Does not log again. */
sac_result sac_fail_prefix(sac_context *ctx, sac_result res, const char *fmt, ...) SAC_PRINTF(3, 4);

/* Forget this thread's sentence, after a fault that the caller has handled. */
void sac_error_clear(sac_context *ctx);
/* The same, after a copy of it. */
void sac_error_take(sac_context *ctx, char *out, size_t size);

/* For what the program may keep longer than the context: it stays until the last release. Any
 * thread. */
sac_context *sac_context_hold(sac_context *ctx);
void         sac_context_release(sac_context *ctx);

/* 1, 2, 3, ...: the ids of tracks, so that those of different streams never meet. Any thread. */
int64_t sac_context_next_track_id(sac_context *ctx);

bool sac_log_enabled(const sac_context *ctx, enum sac_log_level level);
void sac_log(sac_context *ctx, enum sac_log_level level, const char *fmt, ...) SAC_PRINTF(3, 4);

/* Memory. All host allocation goes through these, so that the fuzz target which makes allocations
 * fail reaches every site. Sizes are checked for overflow. */
void *sac_alloc(size_t size);                /* uninitialised */
void *sac_calloc(size_t count, size_t size); /* zeroed */
void *sac_realloc_array(void *p, size_t count, size_t size);
void *sac_alloc_aligned(size_t align, size_t size); /* freed by sac_free too */
void  sac_free(void *p);
char *sac_strdup(const char *s);
char *sac_strdup_hidden(const char *s); /* without the secrets of addresses: sac_hide_secrets */
char *sac_asprintf(const char *fmt, ...) SAC_PRINTF(1, 2);
#define sac_new(type) ((type *)sac_calloc(1, sizeof(type)))

/* Grow *items (of item_size) so that it holds `need`; doubles. false: no memory, array
 * unchanged. */
bool sac_grow(void **items, size_t *capacity, size_t need, size_t item_size);

/* Testing: let the n-th allocation from now fail (0: never). */
void sac_alloc_fail_at(long n);

/* Arena: many small objects with one lifetime. */
struct sac_arena_block;
struct sac_arena {
    struct sac_arena_block *head;
    size_t                  bytes; /* handed out */
};
void *sac_arena_alloc(struct sac_arena *arena, size_t size); /* zeroed, 16-byte aligned; or NULL */
char *sac_arena_strndup(struct sac_arena *arena, const char *s, size_t len);
/* Gives back p, of that size, if it has a block to itself, as what is large has. */
bool sac_arena_free(struct sac_arena *arena, const void *p, size_t size);
bool sac_arena_owns(const struct sac_arena *arena, const void *p);
void sac_arena_finish(struct sac_arena *arena);

/* Atomic reference count, starting at 1. */
typedef struct sac_refcount {
    atomic_int count;
} sac_refcount;
static inline void sac_refcount_init(sac_refcount *r)
{
    atomic_init(&r->count, 1);
}
static inline void sac_refcount_inc(sac_refcount *r)
{
    atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed);
}
/* True when the last reference went: the caller frees. */
static inline bool sac_refcount_dec(sac_refcount *r)
{
    return atomic_fetch_sub_explicit(&r->count, 1, memory_order_acq_rel) == 1;
}

bool    sac_is_out_of_memory(sac_result res); /* the machine's, or over a budget */
int64_t sac_time_ns(void);                    /* monotonic */

#endif
