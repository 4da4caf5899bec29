/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's load and memory, and a process's threads, as the kernel's files tell them. Loads
 * are those since the look before; what a kernel does not tell is NAN. */
#ifndef SAC_OBSERVE_MACHINE_H
#define SAC_OBSERVE_MACHINE_H

#include "base/base.h"

struct sac_machine {
    const char *proc;     /* NULL: /proc */
    const char *cpu_stat; /* of the control group; NULL: looked for */
    /* of the look before */
    uint64_t busy, total, stolen, held_us, disk_us;
    int64_t  looked_ns;
};
struct sac_machine_load {
    double cpu;    /* of all CPUs, 0..1; with what is stolen */
    double stolen; /* of it: what the machine's host gave to other machines */
    double memory; /* 1 - what is available */
    double held;   /* share of the time that the control group's limit held the CPUs back */
    double disk;   /* share of the time that some program waited for a disk */
};
void sac_machine_look(struct sac_machine *machine, struct sac_machine_load *out);
int  sac_machine_cpus(void); /* those of the machine, which a process may not all run on */

enum { SAC_THREADS_MAX = 512, SAC_THREAD_GROUPS_MAX = 24 };
/* Threads of one name, without a number at its end. */
struct sac_thread_group {
    char   name[16];
    int    threads;
    double cores;   /* CPU time in a second */
    double waiting; /* of the thread that waited most: ready to run, but no CPU was free; 0..1 */
    double stretch; /* of the thread that it made slowest: time ready to run / time it ran */
};
struct sac_thread_times {
    int      tid;
    char     name[16];
    uint64_t ran_ns, waited_ns;
    bool     seen;
};
struct sac_threads {
    const char             *task;                    /* NULL: /proc/self/task */
    struct sac_thread_times thread[SAC_THREADS_MAX]; /* of the look before */
    int                     count;
    int64_t                 looked_ns;
    struct sac_thread_group group[SAC_THREAD_GROUPS_MAX];
    int                     group_count;
};
/* Of this process; more threads than SAC_THREADS_MAX are not looked at. */
void sac_threads_look(struct sac_threads *threads);

#endif
