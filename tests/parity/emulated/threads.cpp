/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <ucontext.h>

#include "cuda_runtime_api.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

enum { THREADS_MAX = 1024, STACK_BYTES = 64 << 10, BARRIERS_MAX = 16, TURNS_MAX = 1 << 20 };

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
    int     threads, current, alive;
    jmp_buf scheduler;
    void (*fn)(void *);
    void              *arg;
    barrier            block, groups[BARRIERS_MAX], lanes[THREADS_MAX / 32][BARRIERS_MAX];
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

/* A fiber lives for all blocks of its launch. */
void live()
{
    for (;;) {
        all.fn(all.arg);
        all.of[all.current].done = true;
        all.alive--;
        if (all.block.come && all.block.come >= all.alive) /* those that are left wait for each
                                                              other */
            pass(&all.block);
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
    threadIdx = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
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

void run_block()
{
    all.alive = all.threads;
    all.block = {};
    memset(all.groups, 0, sizeof all.groups);
    memset(all.lanes, 0, sizeof all.lanes);
    for (int i = 0; i < all.threads; i++)
        all.of[i].done = false;
    for (int turn = 0; all.alive > 0; turn++) {
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

void run(dim3 grid, dim3 block, void (*fn)(void *), void *arg)
{
    gridDim = grid;
    blockDim = block;
    all.threads = (int)(block.x * block.y * block.z);
    all.fn = fn;
    all.arg = arg;
    if (all.threads > THREADS_MAX)
        abort();
    for (int i = 0; i < all.threads; i++)
        make_fiber(&all.of[i]);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                run_block();
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

void wait_block()
{
    wait_for(&all.block, all.alive);
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
