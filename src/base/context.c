/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

enum { SENTENCE_MAX = 1024 };

/* A thread's own last sentence, so that two threads that fail at once don't read each other's. */
struct own_sentence {
    uint64_t serial;
    char     text[SENTENCE_MAX];
};

static struct own_sentence *own_sentence(void)
{
    static _Thread_local struct own_sentence own;
    return &own;
}

struct sac_context {
    sac_refcount              refs; /* its owner's, and of what others may keep longer */
    struct sac_context_params params;
    /* Of the library that created the context: a plug-in has a copy of this file, with its own
     * thread-local sentence that is never read. */
    struct own_sentence *(*own)(void);
    atomic_int          level;
    atomic_int_fast64_t track_ids; /* handed out so far */
    uint64_t            serial;    /* tells contexts apart that reuse an address */
    pthread_mutex_t     lock;      /* guards the rest, and calls of log_fn */
    bool                ended;     /* destroyed by its owner: nothing is logged any more */
    char                latest[SENTENCE_MAX];
};

struct sac_context_params sac_context_params_default(void)
{
    return (struct sac_context_params){.log_level = SAC_LOG_INFO};
}

sac_result sac_context_create(const struct sac_context_params *params, sac_context **out)
{
    SAC_NEEDS(NULL, out);
    SAC_NEEDS_NO_LATER_FIELD(NULL, params, "context parameters");
    static atomic_uint_fast64_t serial;
    sac_context                *ctx = sac_new(sac_context);
    if (!ctx)
        return SAC_ERR_MEMORY;
    ctx->params = params ? *params : sac_context_params_default();
    ctx->own = own_sentence;
    ctx->serial = atomic_fetch_add(&serial, 1) + 1;
    atomic_init(&ctx->level, (int)ctx->params.log_level);
    atomic_init(&ctx->track_ids, 0);
    pthread_mutex_init(&ctx->lock, NULL);
    sac_refcount_init(&ctx->refs);
    *out = ctx;
    return SAC_OK;
}

sac_context *sac_context_hold(sac_context *ctx)
{
    sac_refcount_inc(&ctx->refs);
    return ctx;
}

void sac_context_release(sac_context *ctx)
{
    if (!sac_refcount_dec(&ctx->refs))
        return;
    pthread_mutex_destroy(&ctx->lock);
    sac_free(ctx);
}

void sac_context_destroy(sac_context **ctx_at)
{
    sac_context *ctx = ctx_at ? *ctx_at : NULL;
    if (!ctx)
        return;
    *ctx_at = NULL;
    atomic_store(&ctx->level, SAC_LOG_SILENT);
    pthread_mutex_lock(&ctx->lock); /* what is behind the callback may be gone when this returns */
    ctx->ended = true;
    pthread_mutex_unlock(&ctx->lock);
    sac_context_release(ctx);
}

size_t sac_context_last_error(const sac_context *ctx, char *buf, size_t size)
{
    size_t len = 0;
    size = buf ? size : 0;
    if (size)
        buf[0] = '\0';
    if (!ctx)
        return 0;
    const struct own_sentence *own = ctx->own();
    if (own->serial == ctx->serial) {
        len = strlen(own->text);
        if (size)
            snprintf(buf, size, "%s", own->text);
        return len;
    }
    pthread_mutex_t *lock = (pthread_mutex_t *)&ctx->lock;
    pthread_mutex_lock(lock);
    len = strlen(ctx->latest);
    if (size)
        snprintf(buf, size, "%s", ctx->latest);
    pthread_mutex_unlock(lock);
    return len;
}

void sac_context_set_log_level(sac_context *ctx, enum sac_log_level level)
{
    if (!ctx)
        return;
    atomic_store(&ctx->level, (int)level);
}

int64_t sac_context_next_track_id(sac_context *ctx)
{
    return atomic_fetch_add_explicit(&ctx->track_ids, 1, memory_order_relaxed) + 1;
}

bool sac_log_enabled(const sac_context *ctx, enum sac_log_level level)
{
    return ctx && ctx->params.log_fn && (int)level <= atomic_load(&ctx->level);
}

/* Every line and sentence passes here, also what others say of an address: FFmpeg, or a file's
 * text. */
static void write_sentence(char *out, size_t size, const char *fmt, va_list ap)
{
    char plain[2 * SENTENCE_MAX]; /* longer, so that an address is not cut where its password still
                                     looks like a host */
    vsnprintf(plain, sizeof plain, fmt, ap);
    sac_hide_secrets(plain, out, size);
}

static void emit(sac_context *ctx, enum sac_log_level level, const char *message)
{
    pthread_mutex_lock(&ctx->lock);
    if (!ctx->ended)
        ctx->params.log_fn(ctx->params.log_user, level, message);
    pthread_mutex_unlock(&ctx->lock);
}

void sac_log(sac_context *ctx, enum sac_log_level level, const char *fmt, ...)
{
    if (!sac_log_enabled(ctx, level))
        return;
    char    message[SENTENCE_MAX];
    va_list ap;
    va_start(ap, fmt);
    write_sentence(message, sizeof message, fmt, ap);
    va_end(ap);
    emit(ctx, level, message);
}

static void keep(sac_context *ctx, const char *sentence)
{
    struct own_sentence *own = ctx->own();
    own->serial = ctx->serial;
    snprintf(own->text, sizeof own->text, "%s", sentence);
    pthread_mutex_lock(&ctx->lock);
    snprintf(ctx->latest, sizeof ctx->latest, "%s", sentence);
    pthread_mutex_unlock(&ctx->lock);
}

sac_result sac_fail(sac_context *ctx, sac_result res, const char *fmt, ...)
{
    char    sentence[SENTENCE_MAX];
    va_list ap;
    if (!ctx)
        return res;
    va_start(ap, fmt);
    write_sentence(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    keep(ctx, sentence);
#ifdef SAC_DEBUG_ABORT
    if (res == SAC_ERR_ARG) {
        fprintf(stderr, "saccade: %s\n", sentence);
        abort();
    }
#endif
    /* The user of the library decides whether a fault is shown, so the log has it at debug only:
     * else a command line would print it twice. */
    sac_log(ctx, SAC_LOG_DEBUG, "%s: %s", sac_result_name(res), sentence);
    return res;
}

bool sac_is_zero(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        if (at[i])
            return false;
    return true;
}

sac_result sac_numbers_check(sac_context *ctx, const char *of, const struct sac_number *numbers,
                             size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(numbers[i].value >= numbers[i].min && numbers[i].value <= numbers[i].max))
            return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: %s is %.10g; it takes %.10g to %.10g", of,
                            numbers[i].name, numbers[i].value, numbers[i].min, numbers[i].max);
    return SAC_OK;
}

sac_result sac_fail_prefix(sac_context *ctx, sac_result res, const char *fmt, ...)
{
    char    place[SENTENCE_MAX / 2], sentence[SENTENCE_MAX], whole[SENTENCE_MAX];
    va_list ap;
    if (!ctx)
        return res;
    va_start(ap, fmt);
    write_sentence(place, sizeof place, fmt, ap);
    va_end(ap);
    sac_context_last_error(ctx, sentence, sizeof sentence);
    snprintf(whole, sizeof whole, "%s%.*s", place, (int)(sizeof whole - 1 - strlen(place)),
             sentence);
    keep(ctx, whole);
    return res;
}

void sac_error_clear(sac_context *ctx)
{
    struct own_sentence *own = ctx ? ctx->own() : NULL;
    if (own && own->serial == ctx->serial)
        own->text[0] = '\0';
}

void sac_error_take(sac_context *ctx, char *out, size_t size)
{
    sac_context_last_error(ctx, out, size);
    sac_error_clear(ctx);
}
