/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <ucontext.h>

#include "cuda_runtime_api.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

enum {
    THREADS_MAX = 2048, /* of all blocks of a cluster */
    BLOCKS_MAX = 8,
    ROOM_BYTES = 96 << 10,
    STACK_BYTES = 64 << 10,
    BARRIERS_MAX = 16,
    TURNS_MAX = 1 << 20
};

/* Whoever comes waits until all that it names have come. */
struct barrier {
    unsigned mask;
    int      come;
    unsigned turn;
};

struct fiber {
    ucontext_t begin;
    jmp_buf    at;
    char      *stack;
    bool       started, done;
};

struct {
    fiber   of[THREADS_MAX];
    int     threads, in_block, current, alive[BLOCKS_MAX], all_alive;
    dim3    first; /* block of the cluster */
    jmp_buf scheduler;
    void (*fn)(void *);
    void   *arg;
    barrier cluster, block[BLOCKS_MAX], groups[BARRIERS_MAX], lanes[THREADS_MAX / 32][BARRIERS_MAX];
    alignas(16) char room[BLOCKS_MAX][ROOM_BYTES];
    unsigned long long slot[THREADS_MAX / 32][32];
} all;

void give_way()
{
    if (_setjmp(all.of[all.current].at) == 0)
        _longjmp(all.scheduler, 1);
}

void pass(barrier *b)
{
    b->come = 0;
    b->turn++;
}

/* Those that are left wait for each other. */
void pass_if_all(barrier *b, int alive)
{
    if (b->come && b->come >= alive)
        pass(b);
}

/* A fiber lives for all blocks of its launch. */
void live()
{
    for (;;) {
        all.fn(all.arg);
        const int block = all.current / all.in_block;
        all.of[all.current].done = true;
        pass_if_all(&all.block[block], --all.alive[block]);
        pass_if_all(&all.cluster, --all.all_alive);
        give_way();
    }
}

void wait_for(barrier *b, int all_of_them)
{
    const unsigned turn = b->turn;
    if (++b->come >= all_of_them)
        pass(b);
    while (b->turn == turn)
        give_way();
}

void go_on(int i)
{
    fiber *f = &all.of[i];
    all.current = i;
    const unsigned own = i % all.in_block;
    threadIdx =
        dim3(own % blockDim.x, own / blockDim.x % blockDim.y, own / blockDim.x / blockDim.y);
    blockIdx = dim3(all.first.x + i / all.in_block, all.first.y, all.first.z);
    if (_setjmp(all.scheduler) != 0)
        return;
    if (f->started)
        _longjmp(f->at, 1);
    f->started = true;
    setcontext(&f->begin);
}

void make_fiber(fiber *f)
{
    if (!f->stack && !(f->stack = (char *)malloc(STACK_BYTES)))
        abort();
    getcontext(&f->begin);
    f->begin.uc_stack.ss_sp = f->stack;
    f->begin.uc_stack.ss_size = STACK_BYTES;
    f->begin.uc_link = NULL;
    makecontext(&f->begin, live, 0);
    f->started = false;
}

void run_cluster()
{
    all.all_alive = all.threads;
    all.cluster = {};
    for (int i = 0; i * all.in_block < all.threads; i++) {
        all.alive[i] = all.in_block;
        all.block[i] = {};
    }
    memset(all.groups, 0, sizeof all.groups);
    memset(all.lanes, 0, sizeof all.lanes);
    for (int i = 0; i < all.threads; i++)
        all.of[i].done = false;
    for (int turn = 0; all.all_alive > 0; turn++) {
        if (turn == TURNS_MAX) {
            fprintf(stderr, "emulated: the threads of a block wait for each other for ever\n");
            abort();
        }
        for (int i = 0; i < all.threads; i++)
            if (!all.of[i].done)
                go_on(i);
    }
}

} // namespace

namespace emulated
{

void run(dim3 grid, dim3 block, unsigned cluster, void (*fn)(void *), void *arg)
{
    gridDim = grid;
    blockDim = block;
    all.in_block = (int)(block.x * block.y * block.z);
    all.threads = all.in_block * (int)cluster;
    all.fn = fn;
    all.arg = arg;
    if (all.threads > THREADS_MAX || cluster > BLOCKS_MAX || grid.x % cluster ||
        (cluster > 1 && all.in_block % 32))
        abort();
    for (int i = 0; i < all.threads; i++)
        make_fiber(&all.of[i]);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x += cluster) {
                all.first = dim3(x, y, z);
                run_cluster();
            }
}

int lane()
{
    return all.current % 32;
}

unsigned long long *slots()
{
    return all.slot[all.current / 32];
}

int block()
{
    return all.current / all.in_block;
}

void *room(int block)
{
    return all.room[block];
}

void wait_cluster()
{
    wait_for(&all.cluster, all.all_alive);
}

void wait_block()
{
    wait_for(&all.block[block()], all.alive[block()]);
}

void wait_group(int number, int threads)
{
    wait_for(&all.groups[number], threads);
}

void wait_turn()
{
    give_way();
}

void wait_lanes(unsigned mask)
{
    barrier *b = all.lanes[all.current / 32];
    if (!(mask >> lane() & 1))
        abort(); /* a lane that does not name itself */
    for (int i = 0; i < BARRIERS_MAX; i++, b++)
        if (b->mask == mask || !b->mask)
            break;
    b->mask = mask;
    wait_for(b, __builtin_popcount(mask));
}

} // namespace emulated
