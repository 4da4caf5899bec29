/* SPDX-License-Identifier: Apache-2.0 */
/* Where the CPU time of this process goes, by call stack.
 *
 * Each thread gets a timer of its own CPU time. Whenever that has grown by an interval, the thread
 * is interrupted (SIGPROF) and the functions that it is in are recorded: a thread that waits costs
 * nothing and has no samples. A thread of the sampler's own finds new threads, names the functions
 * and counts equal stacks. Names come from the symbols of the files that are loaded: those of their
 * symbol table, or where that was stripped, those that they export.
 *
 * Linux only, one sampler at a time. A handler for SIGPROF is put in place by the first one and
 * stays. Threads of the library take part if they were started after the sampler, other threads
 * unless they block SIGPROF.
 *
 *     sac_stacks *stacks = NULL;
 *     sac_stacks_start(ctx, NULL, &stacks);
 *     ... // work
 *     sac_stacks_stop(stacks);
 *     for (int i = 0; i < sac_stacks_count(stacks); i++) {
 *         struct sac_stack s;
 *         sac_stacks_get(stacks, i, &s);
 *         printf("%s %lld\n", s.text, (long long)s.samples); // what flame graphs are drawn from
 *     }
 *     sac_stacks_destroy(&stacks);
 */
#ifndef SACCADE_STACKS_H
#define SACCADE_STACKS_H

#include <stdint.h>
#include <saccade/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_stacks sac_stacks;

struct sac_stacks_params {
    int interval_us; /* of a thread's CPU time between two samples; 1000..1000000, default 10000.
                        The system may round it up to its own clock, which the samples' weights
                        correct
                      */
    uint64_t reserved[4]; /* 0 */
};
SAC_API struct sac_stacks_params sac_stacks_params_default(void);

/* Start sampling. All memory that samples need (2 MB) is taken here, that of symbols (as large as
 * the tables of names in the files that are loaded) while it runs. Errors   SAC_ERR_ARG where
 * another one samples, or for an interval out of range; SAC_ERR_MEMORY; SAC_ERR_UNSUPPORTED where a
 * thread's CPU time has no timers. */
SAC_API sac_result sac_stacks_start(sac_context *ctx, const struct sac_stacks_params *params,
                                    sac_stacks **out);
/* End it and put the stacks in order; does nothing when it has ended. One thread at a time.
 * Errors   SAC_ERR_MEMORY: there is no list then, but the sums below. */
SAC_API sac_result sac_stacks_stop(sac_stacks *stacks);
SAC_API void       sac_stacks_destroy(sac_stacks **stacks); /* stops it */

/* A stack, and how often it was seen. */
struct sac_stack {
    const char *text;     /* "sac-infer;infer_main;sac_plan_run;conv_lines": the thread, then its
                             functions from the outermost to the innermost; the sampler's own */
    uint64_t samples;     /* intervals of CPU time */
    uint64_t reserved[2]; /* 0 */
};
/* The stacks, the most frequent first; 0 before it has stopped. A function without a name is
 * "[FILE]" after the file that it is in, "[generated]" where it is in none; "[callers unknown]"
 * stands for those that can't be found, as assembler code often says nothing about them. */
SAC_API int        sac_stacks_count(const sac_stacks *stacks);
SAC_API sac_result sac_stacks_get(const sac_stacks *stacks, int i, struct sac_stack *out);

/* What the stacks are of. */
struct sac_stacks_summary {
    int      interval_us;
    uint64_t samples; /* all, in the list or not */
    uint64_t other;   /* of stacks that there was no room for: 4096 different ones are kept */
    uint64_t lost;    /* times that a thread was interrupted and found no room for what it does */
    double   elapsed_s;
    double   cpu_s;     /* CPU time of the process, of which samples times interval_us was seen */
    double   cost_s;    /* of it, what sampling took */
    char     note[256]; /* what went wrong meanwhile, such as memory for symbols; empty: nothing */
    uint64_t reserved[4]; /* 0 */
};
/* Any thread; until it has stopped, of the time so far. */
SAC_API void sac_stacks_get_summary(const sac_stacks *stacks, struct sac_stacks_summary *out);

#ifdef __cplusplus
}
#endif
#endif
