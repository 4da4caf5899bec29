/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/stacks.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/base.h"
#include "base/text.h"
#include "base/thread.h"
#include "observe/symbols.h"

enum {
    DEPTH_MAX = 64,    /* functions of a stack; of a deeper one the innermost */
    SLOTS = 2048,      /* samples that wait to be counted: those of 200 busy threads */
    THREADS_MAX = 512, /* with a timer at once */
    NAMES_MAX = 256,   /* of threads */
    STACKS_MAX = 4096,
    PLACES = 2 * STACKS_MAX,     /* of the hash table, a power of two */
    WORDS_MAX = STACKS_MAX * 32, /* ids of functions in all stacks */
    LOOK_NS = 100000000,         /* between two looks for samples and threads, of 50 us each */
    INTERVAL_US = 10000,         /* a sample takes about 30 us where caches are cold: 0.3 % */
    INTERVAL_US_MIN = 1000,
    INTERVAL_US_MAX = 1000000
};

/* Ids below SAC_SYMBOL_FIRST. */
enum { ID_CALLERS = SAC_SYMBOL_GENERATED + 1, ID_DEEPER, ID_THREADS };

/* What the handler leaves. */
struct slot {
    int   thread; /* its place in threads */
    int   count, weight;
    bool  cut;           /* there are more */
    void *pc[DEPTH_MAX]; /* the innermost first */
};
enum { SLOT_EMPTY, SLOT_TAKEN, SLOT_FULL };

struct thread {
    pid_t   tid; /* 0: none */
    timer_t timer;
    int     name;
    bool    seen, named; /* named: it had the time to say its name, which is its creator's before */
};

struct counted {
    uint64_t samples;
    uint32_t hash, first, count; /* words[first..first+count) */
};

struct sac_stacks {
    sac_context *ctx;
    int          interval_us;
    int64_t      begun_ns, begun_cpu_ns;

    /* The handler's and the sampler's. */
    atomic_int           state[SLOTS];
    struct slot          slot[SLOTS];
    atomic_uint          turn;
    atomic_uint_fast64_t lost, handler_ns;

    /* The sampling thread's, and, once it has ended, the caller's. */
    pthread_t           sampler;
    struct sac_symbols *symbols;
    struct thread       threads[THREADS_MAX];
    char                name[NAMES_MAX][16];
    int                 name_count;
    struct counted      stack[STACKS_MAX];
    int                 stack_count;
    int                 place[PLACES]; /* 1 + the stack's number; 0: free */
    uint32_t            words[WORDS_MAX];
    uint32_t            word_count;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t  wake;
    bool            quit, stopped;
    uint64_t        samples, other;
    int64_t         sampler_ns;
    char            note[256];
    double          elapsed_s, cpu_s; /* once stopped */

    struct sac_stack *list; /* [list_count], once stopped */
    int               list_count;
    char             *text;
};

/* The one that samples. The handler counts itself in before it looks, so that who has cleared this
 * and sees none inside knows that none can look any more. */
static _Atomic(sac_stacks *) sampling;
static atomic_int            inside;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- in the handler ---- */

static uintptr_t interrupted_at(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* backtrace begins in the handler. Where the interrupted function is not found, as in a frame that
 * can't be unwound from a signal, it is all that is known. */
static void fill(struct slot *slot, const siginfo_t *info, const ucontext_t *context)
{
    void           *pc[DEPTH_MAX + 4];
    const uintptr_t at = interrupted_at(context);
    const int       n = backtrace(pc, DEPTH_MAX + 4);
    int             first = 0;
    while (first < n && (uintptr_t)pc[first] != at)
        first++;
    slot->thread = info->si_value.sival_int;
    slot->weight = 1 + SAC_MAX(info->si_overrun, 0);
    slot->count = SAC_MIN(n - first, (int)DEPTH_MAX);
    slot->cut = n == DEPTH_MAX + 4;
    memcpy(slot->pc, pc + first, (size_t)slot->count * sizeof *pc);
    if (slot->count)
        return;
    slot->pc[0] = (void *)at;
    slot->count = 1;
}

static void record(sac_stacks *s, const siginfo_t *info, const ucontext_t *context)
{
    const unsigned at = atomic_fetch_add(&s->turn, 1) % SLOTS;
    int            empty = SLOT_EMPTY;
    if (!atomic_compare_exchange_strong(&s->state[at], &empty, SLOT_TAKEN)) {
        atomic_fetch_add(&s->lost, 1);
        return;
    }
    fill(&s->slot[at], info, context);
    atomic_store(&s->state[at], SLOT_FULL);
}

static void on_sample(int number, siginfo_t *info, void *context)
{
    const int err = errno;
    (void)number;
    atomic_fetch_add(&inside, 1);
    sac_stacks *s = atomic_load(&sampling);
    if (s && info->si_code == SI_TIMER) {
        const int64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        record(s, info, context);
        atomic_fetch_add(&s->handler_ns, (uint64_t)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun));
    }
    atomic_fetch_sub(&inside, 1);
    errno = err;
}

/* ---- threads and their timers ---- */

static bool arm(const sac_stacks *s, pid_t tid, int place, timer_t *out)
{
    const clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6); /* its CPU time: clock_gettime(2)
                                                                   */
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF, .sigev_value.sival_int = place};
    const struct timespec   every = {s->interval_us / 1000000, s->interval_us % 1000000 * 1000};
    const struct itimerspec times = {.it_interval = every, .it_value = every};
#ifdef sigev_notify_thread_id
    event.sigev_notify_thread_id = tid;
#else
    event._sigev_un._tid = tid;
#endif
    if (timer_create(clock, &event, out) != 0)
        return false;
    if (timer_settime(*out, 0, &times, NULL) == 0)
        return true;
    timer_delete(*out);
    return false;
}

static void read_name(pid_t tid, char name[16])
{
    char path[48];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)tid);
    FILE *file = fopen(path, "re");
    name[0] = '\0';
    if (file && fgets(name, 16, file))
        name[strcspn(name, "\n")] = '\0';
    for (char *c = name; *c; c++) /* folded stacks have a meaning for them */
        if (*c == ';' || *c == ' ')
            *c = '_';
    if (!name[0])
        snprintf(name, 16, "thread");
    if (file)
        fclose(file);
}

/* Threads of one name are one; of too many the last name stands for all others. */
static int name_of(sac_stacks *s, pid_t tid)
{
    char name[16];
    int  i = 0;
    read_name(tid, name);
    while (i < s->name_count && strcmp(s->name[i], name) != 0)
        i++;
    if (i == NAMES_MAX)
        return NAMES_MAX - 1;
    if (i == s->name_count) {
        memcpy(s->name[i], name, sizeof name);
        s->name_count++;
    }
    return i;
}

static void note(sac_stacks *s, const char *sentence)
{
    pthread_mutex_lock(&s->lock);
    const bool is_first = !s->note[0];
    if (is_first)
        snprintf(s->note, sizeof s->note, "%s", sentence);
    pthread_mutex_unlock(&s->lock);
    if (is_first)
        sac_log(s->ctx, SAC_LOG_WARN, "call stacks: %s", sentence);
}

static void watch(sac_stacks *s, pid_t tid)
{
    struct thread *room = NULL;
    for (int i = 0; i < THREADS_MAX; i++) {
        if (s->threads[i].tid == tid) {
            if (!s->threads[i].named)
                s->threads[i].name = name_of(s, tid);
            s->threads[i].seen = s->threads[i].named = true;
            return;
        }
        if (!s->threads[i].tid && !room)
            room = &s->threads[i];
    }
    if (!room || !arm(s, tid, (int)(room - s->threads), &room->timer)) {
        /* a thread may have ended meanwhile */
        if (!room || errno != EINVAL)
            note(s, room ? "a thread has no timer, as the system has no more of them"
                         : "only 512 threads at once have a timer");
        return;
    }
    room->tid = tid;
    room->name = name_of(s, tid);
    room->seen = true;
    room->named = false;
}

static void forget(struct thread *t)
{
    timer_delete(t->timer);
    t->tid = 0;
}

static void look_for_threads(sac_stacks *s)
{
    const pid_t    own = gettid();
    DIR           *dir = opendir("/proc/self/task");
    struct dirent *entry;
    if (!dir) {
        note(s, "the list of threads, /proc/self/task, can't be read");
        return;
    }
    for (int i = 0; i < THREADS_MAX; i++)
        s->threads[i].seen = false;
    while ((entry = readdir(dir))) {
        const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && tid != own)
            watch(s, tid);
    }
    closedir(dir);
    for (int i = 0; i < THREADS_MAX; i++)
        if (s->threads[i].tid && !s->threads[i].seen)
            forget(&s->threads[i]);
}

/* ---- counting ---- */

static uint32_t hash_of(const uint32_t *ids, int n)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < n; i++)
        hash = ((hash ^ (ids[i] & 0xffff)) * 16777619u ^ (ids[i] >> 16)) * 16777619u;
    return hash;
}

/* NULL: there is no room for one more. */
static struct counted *find(sac_stacks *s, const uint32_t *ids, int n)
{
    const uint32_t hash = hash_of(ids, n);
    uint32_t       at = hash % PLACES;
    for (; s->place[at]; at = (at + 1) % PLACES) {
        struct counted *c = &s->stack[s->place[at] - 1];
        if (c->hash == hash && c->count == (uint32_t)n &&
            memcmp(s->words + c->first, ids, (size_t)n * sizeof *ids) == 0)
            return c;
    }
    if (s->stack_count == STACKS_MAX || s->word_count + (uint32_t)n > WORDS_MAX)
        return NULL;
    struct counted *c = &s->stack[s->stack_count++];
    *c = (struct counted){.hash = hash, .first = s->word_count, .count = (uint32_t)n};
    memcpy(s->words + c->first, ids, (size_t)n * sizeof *ids);
    s->word_count += (uint32_t)n;
    s->place[at] = s->stack_count;
    return c;
}

/* Of a caller the address is that after the call, which may be the next function's. */
static uintptr_t place_in(const struct slot *slot, int i)
{
    return (uintptr_t)slot->pc[i] - (i > 0);
}

/* The thread's name, what is not known of its callers, its functions from the outermost. */
static int name_stack(sac_stacks *s, const struct slot *slot, uint32_t *ids)
{
    int n = 0, outer = slot->count - 1;
    ids[n++] = ID_THREADS + (uint32_t)s->threads[slot->thread].name;
    if (slot->cut)
        ids[n++] = ID_DEEPER;
    else if (!sac_symbols_is_root(s->symbols, place_in(slot, outer)))
        ids[n++] = ID_CALLERS;
    else
        while (outer > 0 && sac_symbols_is_root(s->symbols, place_in(slot, outer)))
            outer--;
    for (; outer >= 0; outer--)
        ids[n++] = sac_symbols_find(s->symbols, place_in(slot, outer));
    return n;
}

static void count(sac_stacks *s, const struct slot *slot)
{
    uint32_t        ids[DEPTH_MAX + 2];
    struct counted *c = find(s, ids, name_stack(s, slot, ids));
    pthread_mutex_lock(&s->lock);
    s->samples += (uint64_t)slot->weight;
    s->other += c ? 0 : (uint64_t)slot->weight;
    pthread_mutex_unlock(&s->lock);
    if (c)
        c->samples += (uint64_t)slot->weight;
}

static void count_all(sac_stacks *s)
{
    sac_symbols_refresh(s->symbols);
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load(&s->state[i]) != SLOT_FULL)
            continue;
        count(s, &s->slot[i]);
        atomic_store(&s->state[i], SLOT_EMPTY);
    }
    if (sac_symbols_note(s->symbols)[0])
        note(s, sac_symbols_note(s->symbols));
}

/* ---- the sampler's thread ---- */

/* True: it is to end. */
static bool rest(sac_stacks *s)
{
    const int64_t due = sac_time_ns() + LOOK_NS;
    pthread_mutex_lock(&s->lock);
    s->sampler_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (!s->quit && sac_cond_wait_until(&s->wake, &s->lock, due))
        ;
    const bool quit = s->quit;
    pthread_mutex_unlock(&s->lock);
    return quit;
}

static void *sample(void *stacks)
{
    sac_stacks *s = stacks;
    do {
        count_all(s);
        look_for_threads(s);
    } while (!rest(s));
    for (int i = 0; i < THREADS_MAX; i++)
        if (s->threads[i].tid)
            forget(&s->threads[i]);
    atomic_store(&sampling, NULL);
    while (atomic_load(&inside))
        sched_yield();
    count_all(s);
    rest(s);
    return NULL;
}

/* ---- the list ---- */

static void name_id(const sac_stacks *s, uint32_t id, char *buf, size_t size)
{
    if (id == ID_CALLERS || id == ID_DEEPER)
        snprintf(buf, size, "%s", id == ID_CALLERS ? "[callers unknown]" : "[deeper]");
    else if (id >= ID_THREADS && id < ID_THREADS + NAMES_MAX)
        snprintf(buf, size, "%s", s->name[id - ID_THREADS]);
    else
        sac_symbols_name(s->symbols, id, buf, size);
}

static int by_text(const void *a, const void *b)
{
    const struct sac_stack *x = a, *y = b;
    return strcmp(x->text, y->text);
}

static int by_samples(const void *a, const void *b)
{
    const struct sac_stack *x = a, *y = b;
    return x->samples != y->samples ? (x->samples < y->samples) - (x->samples > y->samples)
                                    : by_text(a, b);
}

/* Functions of one name are one: what a compiler made of one of ours, or two files' own. */
static void merge(sac_stacks *s)
{
    int n = 0;
    qsort(s->list, (size_t)s->list_count, sizeof *s->list, by_text);
    for (int i = 0; i < s->list_count; i++)
        if (n && strcmp(s->list[n - 1].text, s->list[i].text) == 0)
            s->list[n - 1].samples += s->list[i].samples;
        else
            s->list[n++] = s->list[i];
    s->list_count = n;
    qsort(s->list, (size_t)n, sizeof *s->list, by_samples);
}

static void add_text(const sac_stacks *s, const struct counted *c, struct sac_text *text)
{
    char name[256];
    for (uint32_t i = 0; i < c->count; i++) {
        name_id(s, s->words[c->first + i], name, sizeof name);
        sac_text_add(text, i ? ";" : "");
        sac_text_add(text, name);
    }
}

static sac_result make_list(sac_stacks *s)
{
    struct sac_text text = {0};
    size_t         *begin = sac_calloc((size_t)s->stack_count + 1, sizeof *begin);
    s->list = sac_calloc((size_t)s->stack_count + 1, sizeof *s->list);
    for (int i = 0; begin && i < s->stack_count; i++) {
        begin[i] = text.length;
        add_text(s, &s->stack[i], &text);
        sac_text_add(&text, "\n"); /* where a 0 will be */
    }
    const bool failed = !begin || !s->list || text.failed;
    for (size_t i = 0; !failed && i < text.length; i++)
        if (text.data[i] == '\n')
            text.data[i] = '\0';
    for (int i = 0; !failed && i < s->stack_count; i++)
        s->list[i] =
            (struct sac_stack){.text = text.data + begin[i], .samples = s->stack[i].samples};
    sac_free(begin);
    if (failed) {
        sac_text_finish(&text);
        note(s, "no memory for their list");
        return SAC_FAIL(s->ctx, SAC_ERR_MEMORY, "call stacks: no memory for their list");
    }
    s->text = text.data;
    s->list_count = s->stack_count;
    merge(s);
    return SAC_OK;
}

/* ---- life ---- */

struct sac_stacks_params sac_stacks_params_default(void)
{
    return (struct sac_stacks_params){.interval_us = INTERVAL_US};
}

static void finish(sac_stacks *s)
{
    sac_symbols_destroy(&s->symbols);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    sac_free(s->list);
    sac_free(s->text);
    sac_context_release(s->ctx);
    sac_free(s);
}

/* The first backtrace loads the unwinder, which a handler must not. */
static void take_signal(void)
{
    void            *pc[4];
    struct sigaction action = {.sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    backtrace(pc, 4);
    sigemptyset(&action.sa_mask);
    sigaction(SIGPROF, &action, NULL);
    sac_thread_admit(SIGPROF);
}

/* Whether timers of a thread's CPU time are there at all, before a thread is started for them. */
static sac_result try_timer(sac_stacks *s)
{
    timer_t timer;
    if (!arm(s, gettid(), 0, &timer))
        return SAC_FAIL(s->ctx, SAC_ERR_UNSUPPORTED,
                        "call stacks: this system has no timer of a thread's CPU time: %s",
                        strerror(errno));
    timer_delete(timer);
    return SAC_OK;
}

sac_result sac_stacks_start(sac_context *ctx, const struct sac_stacks_params *params,
                            sac_stacks **out)
{
    const struct sac_stacks_params p = params ? *params : sac_stacks_params_default();
    sac_stacks                    *none = NULL;
    SAC_NEEDS(NULL, ctx);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "stacks parameters");
    if (p.interval_us < INTERVAL_US_MIN || p.interval_us > INTERVAL_US_MAX)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "call stacks: an interval of %d us; it takes %d to %d",
                        p.interval_us, (int)INTERVAL_US_MIN, (int)INTERVAL_US_MAX);
    sac_stacks *s = sac_new(sac_stacks);
    if (s)
        s->symbols = sac_symbols_create();
    if (!s || !s->symbols) {
        sac_free(s);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "call stacks: no memory for samples (%zu bytes)",
                        sizeof *s);
    }
    s->ctx = sac_context_hold(ctx);
    s->interval_us = p.interval_us;
    s->begun_ns = sac_time_ns();
    s->begun_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    pthread_mutex_init(&s->lock, NULL);
    sac_cond_init(&s->wake);
    take_signal();
    sac_result res = try_timer(s);
    if (res == SAC_OK && !atomic_compare_exchange_strong(&sampling, &none, s))
        res = SAC_FAIL(ctx, SAC_ERR_ARG, "call stacks: this process samples them already");
    if (res == SAC_OK) {
        res = sac_thread_start(ctx, &s->sampler, "sac-stacks", sample, s);
        if (res != SAC_OK)
            atomic_store(&sampling, NULL);
    }
    if (res == SAC_OK)
        *out = s;
    else
        finish(s);
    return res;
}

sac_result sac_stacks_stop(sac_stacks *s)
{
    SAC_NEEDS(NULL, s);
    if (s->stopped)
        return SAC_OK;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    s->elapsed_s = (double)(sac_time_ns() - s->begun_ns) * 1e-9;
    s->cpu_s = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - s->begun_cpu_ns) * 1e-9;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->sampler, NULL);
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_mutex_unlock(&s->lock);
    return make_list(s);
}

void sac_stacks_destroy(sac_stacks **stacks)
{
    sac_stacks *s = stacks ? *stacks : NULL;
    if (!s)
        return;
    *stacks = NULL;
    sac_stacks_stop(s);
    finish(s);
}

/* ---- questions ---- */

int sac_stacks_count(const sac_stacks *s)
{
    return s ? s->list_count : 0;
}

const struct sac_stack *sac_stacks_list(const sac_stacks *s, int *n)
{
    *n = sac_stacks_count(s);
    return s ? s->list : NULL;
}

sac_result sac_stacks_get(const sac_stacks *s, int i, struct sac_stack *out)
{
    SAC_NEEDS(NULL, s);
    SAC_NEEDS(s->ctx, out);
    if (i < 0 || i >= s->list_count)
        return SAC_FAIL(s->ctx, SAC_ERR_ARG, "call stacks: number %d of %d", i, s->list_count);
    *out = s->list[i];
    return SAC_OK;
}

void sac_stacks_get_summary(const sac_stacks *stacks, struct sac_stacks_summary *out)
{
    sac_stacks *s = (sac_stacks *)stacks; /* for its lock */
    if (!s || !out)
        return;
    *out = (struct sac_stacks_summary){.interval_us = s->interval_us};
    pthread_mutex_lock(&s->lock);
    out->samples = s->samples;
    out->other = s->other;
    out->lost = atomic_load(&s->lost);
    out->elapsed_s = s->elapsed_s;
    out->cpu_s = s->cpu_s;
    out->cost_s = (double)(s->sampler_ns + (int64_t)atomic_load(&s->handler_ns)) * 1e-9;
    memcpy(out->note, s->note, sizeof out->note);
    const bool stopped = s->stopped;
    pthread_mutex_unlock(&s->lock);
    if (stopped)
        return;
    out->elapsed_s = (double)(sac_time_ns() - s->begun_ns) * 1e-9;
    out->cpu_s = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - s->begun_cpu_ns) * 1e-9;
}
