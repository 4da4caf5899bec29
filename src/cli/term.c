/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "term.h"
#include "wrap.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char            progress[128]; /* what the line shows now; guarded by lock */

static void clear_line(void)
{
    if (progress[0])
        fputs("\r\033[K", stderr);
}

static void print_line(const char *prefix, const char *text)
{
    pthread_mutex_lock(&lock);
    clear_line();
    fputs(prefix, stderr);
    print_clean(stderr, text);
    fputc('\n', stderr);
    fputs(progress, stderr);
    pthread_mutex_unlock(&lock);
}

static void log_line(void *user, enum sac_log_level level, const char *message)
{
    static const char *const prefix[] = {
        [SAC_LOG_ERROR] = "error: ", [SAC_LOG_WARN] = "warning: ", [SAC_LOG_INFO] = "",
        [SAC_LOG_DEBUG] = "debug: ", [SAC_LOG_TRACE] = "trace: ",
    };
    (void)user;
    print_line(prefix[level], message);
}

void term_line(const char *text)
{
    print_line("", text);
}

void term_text(const char *text, size_t length)
{
    pthread_mutex_lock(&lock);
    clear_line();
    fwrite(text, 1, length, stderr);
    fputs(progress, stderr);
    pthread_mutex_unlock(&lock);
}

int term_context(const struct settings *s, sac_context **out, struct fault *fault)
{
    static const char *const  names[] = {"silent", "error", "warn", "info", "debug", "trace"};
    struct sac_context_params params = sac_context_params_default();
    params.log_fn = log_line;
    for (int level = SAC_LOG_SILENT; level <= SAC_LOG_TRACE; level++)
        if (strcmp(s->log_level, names[level]) == 0)
            params.log_level = (enum sac_log_level)level;
    if (sac_context_create(&params, out) != SAC_OK)
        return fault_failure(fault, "out of memory");
    return STATUS_OK;
}

bool term_is_terminal(void)
{
    return isatty(STDERR_FILENO);
}

void term_forget(void)
{
    progress[0] = '\0';
}

void term_progress(const char *text)
{
    pthread_mutex_lock(&lock);
    clear_line();
    snprintf(progress, sizeof progress, "%s", text ? text : "");
    fputs(progress, stderr);
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}
