/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "interrupt.h"

static _Atomic(sac_pipeline *) running;
static volatile sig_atomic_t   interrupts;

/* ---- in a signal handler: only what is async-signal-safe ---- */

static void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void say_number(int n)
{
    char  digits[16];
    char *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    say(at);
}

static void say_left(const char *file)
{
    say("saccade: could not remove '");
    say(file);
    say("'\n");
}

static void remove_unfinished(const char *how)
{
    say("\n");
    const int count = sac_unfinished_outputs_remove(say_left);
    say("saccade: ");
    say(how);
    say(": ");
    say_number(count);
    say(count == 1 ? " unfinished output file was removed\n"
                   : " unfinished output files were removed\n");
}

/* Ends by the signal's default action, so that a loop in a shell ends too. */
static void on_end(int number)
{
    remove_unfinished("interrupted");
    signal(number, SIG_DFL);
    raise(number); /* takes effect when this handler returns */
}

static void on_stop(int number)
{
    (void)number;
    if (interrupts++) {
        remove_unfinished("interrupted twice");
        _exit(STATUS_INTERRUPTED);
    }
    sac_pipeline *pipe = atomic_load(&running);
    if (pipe)
        sac_pipeline_stop(pipe);
}

static void on_count(int number)
{
    (void)number;
    interrupts++;
}

/* ---- for the verbs ---- */

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

static sigset_t the_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&set, numbers[i]);
    return set;
}

static void catch_signals(void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler, .sa_mask = the_signals()}; /* one at a time */
    struct sigaction former;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i] != SIGHUP || sigaction(SIGHUP, NULL, &former) != 0 ||
            former.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

void interrupt_ends(void)
{
    catch_signals(on_end);
}

void interrupt_stops(void)
{
    catch_signals(on_stop);
}

void interrupt_counts(void)
{
    catch_signals(on_count);
}

int interrupt_count(void)
{
    return (int)interrupts;
}

void interrupt_hold(void)
{
    const sigset_t set = the_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
}

void interrupt_forget(void)
{
    interrupts = 0;
}

void interrupt_release(void)
{
    const sigset_t set = the_signals();
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void interrupt_watch(sac_pipeline *pipe)
{
    atomic_store(&running, pipe);
    if (pipe && interrupts) /* a signal came while the pipeline was opening */
        sac_pipeline_stop(pipe);
}

bool interrupt_came(void)
{
    return interrupts != 0;
}
