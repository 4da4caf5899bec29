/* SPDX-License-Identifier: Apache-2.0 */
/* The context: one per program, or per independent user of the library inside a program.
 *
 * It carries the log callback and the last error's sentence. Every other object is created from a
 * context, keeps a pointer to it and must be destroyed before it.
 *
 *     sac_context *ctx = NULL;
 *     if (sac_context_create(NULL, &ctx) != SAC_OK)
 *         return 1;
 *     ...
 *     if (res != SAC_OK) {
 *         char why[512];
 *         sac_context_last_error(ctx, why, sizeof why);
 *         fprintf(stderr, "%s\n", why);
 *     }
 *     sac_context_destroy(&ctx);
 */
#ifndef SACCADE_CONTEXT_H
#define SACCADE_CONTEXT_H

#include <stddef.h>
#include <stdint.h>
#include <saccade/result.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_context sac_context;

/* How much is logged. */
enum sac_log_level {
    SAC_LOG_SILENT = 0,
    SAC_LOG_ERROR = 1,
    SAC_LOG_WARN = 2,
    SAC_LOG_INFO = 3, /* the default: a few lines a run, never one per frame */
    SAC_LOG_DEBUG = 4,
    SAC_LOG_TRACE = 5
};

/* message  one line without a newline, borrowed for the call. Called from any thread, one call at
 *          a time per context. Must not call back into the library. */
typedef void (*sac_log_fn)(void *user, enum sac_log_level level, const char *message);

struct sac_context_params {
    sac_log_fn         log_fn;      /* NULL: nothing is logged (the library never prints) */
    void              *log_user;    /* handed to log_fn */
    enum sac_log_level log_level;   /* messages above it are dropped; default SAC_LOG_INFO */
    uint64_t           reserved[4]; /* 0 */
};

SAC_API struct sac_context_params sac_context_params_default(void);

/* params   NULL: the defaults; copied.
 * out      owned by the caller, destroyed with sac_context_destroy.
 * Errors   SAC_ERR_MEMORY. */
SAC_API sac_result sac_context_create(const struct sac_context_params *params, sac_context **out);
SAC_API void       sac_context_destroy(sac_context **ctx);

/* Copy the calling thread's last error sentence into buf; where this thread had no error, the
 * context's latest one. buf is always terminated, and empty when there was no error. Returns the
 * sentence's full length in bytes. Any thread. */
SAC_API size_t sac_context_last_error(const sac_context *ctx, char *buf, size_t size);

/* Copy text into buf (always terminated) and replace what may be secret in the addresses in it by
 * three stars: user and password, and all values of a query except a few that are known to be
 * harmless ("channel=1&token=***"). Everything that the library logs or writes about an input,
 * error sentences included, has passed this function; use it for addresses that your program prints
 * as well. Returns the full length in bytes. text and buf must not overlap. Any thread. */
SAC_API size_t sac_hide_secrets(const char *text, char *buf, size_t size);

/* Raise or lower the level while running. Any thread. */
SAC_API void sac_context_set_log_level(sac_context *ctx, enum sac_log_level level);

/* For a program that ends immediately, for example at a second Ctrl-C: remove the temporary files
 * (NAME.XXXXXXXX.part) of all unfinished outputs. Returns how many were removed. Async-signal-safe;
 * the process must end right after, without another call into the library.
 *
 * on_left  called with the path of each file that could not be removed; may be NULL. */
SAC_API int sac_unfinished_outputs_remove(void (*on_left)(const char *file));

/* The library's version, "major.minor.patch". */
SAC_API const char *sac_version(void);

#ifdef __cplusplus
}
#endif
#endif
