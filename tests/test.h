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

#include <saccade/context.h>

#include "base/bad_end.h"

/* Under the address and thread sanitizers what a process holds says nothing: they keep freed memory
 * for a while, and records of every access. */
#define TEST_SANITIZED SAC_SANITIZED

/* An assertion or a signal in a thread that cmocka doesn't know ends the program with exit(-1) and
 * no word. That thread runs what on_exit() keeps, so its stack says where it was. A program that
 * hangs gets SIGTERM, from `timeout` or Meson, and its threads show theirs. */
#ifdef __GLIBC__
static void show_stack_of_end(int status, void *arg)
{
    (void)arg;
    if (status == -1)
        sac_stack_show("ended by one of its threads, which was at\n");
}

static void show_all_stacks(int number)
{
    sac_stacks_show(0);
    _exit(128 + number);
}

__attribute__((constructor)) static void show_stacks_at_bad_ends(void)
{
    sac_stacks_prepare();
    on_exit(show_stack_of_end, NULL);
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
