/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program's threads are when it ends badly: their stacks on standard error, with glibc.
 * For programs, ours and the tests: a library installs no handlers. addr2line and gdb read the
 * offsets. What ended may hold the lock of malloc, so nothing here takes memory. Functions are
 * static, since programs of the public library alone use them too. */
#ifndef SAC_BASE_BAD_END_H
#define SAC_BASE_BAD_END_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SAC_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SAC_SANITIZED 1
#endif
#endif
#ifndef SAC_SANITIZED
#define SAC_SANITIZED 0
#endif

#ifdef __GLIBC__
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int sac_stacks_shown;

static inline void sac_stack_show(const char *what)
{
    void *frame[48];
    if (write(STDERR_FILENO, what, strlen(what)) > 0)
        backtrace_symbols_fd(frame, backtrace(frame, 48), STDERR_FILENO);
    atomic_fetch_add(&sac_stacks_shown, 1);
}

static inline void sac_stack_show_own(int number)
{
    (void)number;
    sac_stack_show("one of its threads is at\n");
}

/* Waits for it, up to 20 ms: it may block signals, or be in the kernel. */
static inline void sac_stack_show_of(int thread)
{
    const int before = atomic_load(&sac_stacks_shown);
    if (syscall(SYS_tgkill, getpid(), thread, SIGTRAP) != 0)
        return;
    for (int i = 0; i < 20 && atomic_load(&sac_stacks_shown) == before; i++)
        usleep(1000);
}

/* One after the other, but not that of thread `but`. */
static inline void sac_stacks_show(int but)
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
            if (thread->name[0] != '.' && atoi(thread->name) != but)
                sac_stack_show_of(atoi(thread->name));
            at += thread->bytes;
        }
}

/* Before the first thread, so that backtrace, whose first call takes memory, has had it. */
static inline void sac_stacks_prepare(void)
{
    const struct sigaction own = {.sa_handler = sac_stack_show_own, .sa_flags = SA_RESTART};
    void                  *frame[1];
    backtrace(frame, 1);
    sigaction(SIGTRAP, &own, NULL); /* which threads of the library let through, and cmocka leaves
                                       alone */
}
#endif
#endif
