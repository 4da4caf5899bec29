/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers it wants before it, and a context that keeps the last error. */
#ifndef SAC_TESTS_TEST_H
#define SAC_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#ifdef __GLIBC__
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#endif

#include <saccade/context.h>

/* Under the address and thread sanitizers what a process holds says nothing: they keep freed memory
 * for a while, and records of every access. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

/* An assertion or a signal in a thread that cmocka doesn't know ends the program with exit(-1) and
 * no word. That thread runs what on_exit() keeps, so its stack says where it was. A program that
 * hangs gets SIGTERM, from `timeout` or Meson, and its threads show theirs, one after the other:
 * addr2line reads the offsets. What hangs may hold the lock of malloc, so nothing here takes
 * memory. */
#ifdef __GLIBC__
static atomic_int stacks_shown;

static void show_stack(const char *what)
{
    void *frame[48];
    if (write(STDERR_FILENO, what, strlen(what)) > 0)
        backtrace_symbols_fd(frame, backtrace(frame, 48), STDERR_FILENO);
    atomic_fetch_add(&stacks_shown, 1);
}

static void show_stack_of_end(int status, void *arg)
{
    (void)arg;
    if (status == -1)
        show_stack("ended by one of its threads, which was at\n");
}

static void show_own_stack(int signal)
{
    (void)signal;
    show_stack("one of its threads is at\n");
}

/* Waits for it, up to 20 ms: it may block signals, or be in the kernel. */
static void show_thread(int thread)
{
    const int before = atomic_load(&stacks_shown);
    if (syscall(SYS_tgkill, getpid(), thread, SIGRTMAX - 1) != 0)
        return;
    for (int i = 0; i < 20 && atomic_load(&stacks_shown) == before; i++)
        usleep(1000);
}

static void show_all_stacks(int signal)
{
    struct entry { /* as getdents64 has it */
        uint64_t       inode;
        int64_t        offset;
        unsigned short bytes;
        unsigned char  type;
        char           name[];
    };
    _Alignas(struct entry) char buffer[8192];
    const int                   folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    long                        size;
    while ((size = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0)
        for (const char *at = buffer; at < buffer + size;) {
            const struct entry *thread = (const void *)at;
            if (thread->name[0] != '.')
                show_thread(atoi(thread->name));
            at += thread->bytes;
        }
    _exit(128 + signal);
}

__attribute__((constructor)) static void show_stacks_at_bad_ends(void)
{
    const struct sigaction own = {.sa_handler = show_own_stack, .sa_flags = SA_RESTART};
    void                  *frame[1];
    backtrace(frame, 1); /* its first call takes memory */
    on_exit(show_stack_of_end, NULL);
    sigaction(SIGRTMAX - 1, &own, NULL); /* which no test uses */
    signal(SIGTERM, show_all_stacks);
}
#endif

static inline sac_context *test_context(void)
{
    static sac_context *ctx; /* one for the whole program; reachable, so no leak */
    if (!ctx && sac_context_create(NULL, &ctx) != SAC_OK)
        fail_msg("no context");
    return ctx;
}

/* On failure, print the sentence that came with it. */
#define assert_sac_ok(call)                                                    \
    do {                                                                       \
        sac_result assert_res_ = (call);                                       \
        if (assert_res_ != SAC_OK) {                                           \
            char why_[512];                                                    \
            sac_context_last_error(test_context(), why_, sizeof why_);         \
            fail_msg("%s: %s: %s", #call, sac_result_name(assert_res_), why_); \
        }                                                                      \
    } while (0)

#define assert_sac_error(call, code)                                             \
    do {                                                                         \
        sac_result assert_res_ = (call);                                         \
        if (assert_res_ != (code))                                               \
            fail_msg("%s: %s, expected %s", #call, sac_result_name(assert_res_), \
                     sac_result_name(code));                                     \
    } while (0)

/* A failure whose sentence has these words in it. */
static inline void assert_why(sac_result res, sac_result expected, const char *words)
{
    char why[512];
    assert_int_equal(res, expected);
    sac_context_last_error(test_context(), why, sizeof why);
    if (!strstr(why, words))
        fail_msg("'%s' does not say '%s'", why, words);
}

#endif
