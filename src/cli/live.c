/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "live.h"
#include "term.h"

static pthread_t   thread;
static bool        started;
static atomic_bool ended;

static sigset_t the_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return set;
}

static void print_line(void *user, const char *line)
{
    int *count = user;
    ++*count;
    term_line(line);
}

/* Runs on its own thread: a signal handler must not print. */
static void *wait_and_print(void *arg)
{
    const sigset_t set = the_signal();
    int            number;
    while (sigwait(&set, &number) == 0 && !atomic_load(&ended)) {
        char line[64];
        int  count = 0;
        sac_pipeline_dump_live(arg, print_line, &count);
        snprintf(line, sizeof line, "live buffers: %d", count);
        term_line(line);
    }
    return NULL;
}

void live_hold(void)
{
    const sigset_t set = the_signal();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void live_start(sac_pipeline *pipe)
{
    atomic_store(&ended, false);
    started = pthread_create(&thread, NULL, wait_and_print, pipe) == 0;
}

void live_stop(void)
{
    if (!started)
        return;
    started = false;
    atomic_store(&ended, true);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
}
