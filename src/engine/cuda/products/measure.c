/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long work takes on the GPU. A kernel of 4 microseconds takes less time than its
 * launch from the host, so several iterations are captured into one graph and launched together, as
 * plans run later. */
#include "engine/cuda/products/products.h"

enum { TURNS_MAX = 16, ROUNDS = 3 };
static const double ROUND_US = 400; /* of turns in one graph */

struct clock {
    cudaEvent_t begin, end;
};

static double elapsed_us(const struct clock *c)
{
    float ms = -1;
    if (cudaEventSynchronize(c->end) != cudaSuccess ||
        cudaEventElapsedTime(&ms, c->begin, c->end) != cudaSuccess)
        return -1;
    return ms * 1e3;
}

static double one_turn(const struct measure *m, const struct clock *c)
{
    cudaError_t res = cudaEventRecord(c->begin, m->stream);
    if (res == cudaSuccess)
        res = m->queue(m->arg, m->stream);
    if (res == cudaSuccess)
        res = cudaEventRecord(c->end, m->stream);
    return res == cudaSuccess ? elapsed_us(c) : -1;
}

static cudaGraphExec_t capture(const struct measure *m, int turns)
{
    cudaGraph_t     graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaError_t     res = cudaStreamBeginCapture(m->stream, cudaStreamCaptureModeThreadLocal);
    if (res != cudaSuccess)
        return NULL;
    for (int i = 0; i < turns && res == cudaSuccess; i++)
        res = m->queue(m->arg, m->stream);
    const cudaError_t end = cudaStreamEndCapture(m->stream, &graph);
    if (res == cudaSuccess && end == cudaSuccess &&
        cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess)
        exec = NULL;
    if (graph)
        cudaGraphDestroy(graph);
    return exec;
}

static double best_round(const struct measure *m, const struct clock *c, cudaGraphExec_t exec,
                         int turns)
{
    double best = -1;
    for (int i = 0; i <= ROUNDS; i++) { /* the first warms up */
        cudaEventRecord(c->begin, m->stream);
        if (cudaGraphLaunch(exec, m->stream) != cudaSuccess ||
            cudaEventRecord(c->end, m->stream) != cudaSuccess)
            return -1;
        const double us = elapsed_us(c) / turns;
        if (us < 0)
            return -1;
        if (i > 0 && (best < 0 || us < best))
            best = us;
    }
    return best;
}

static double measure_with(const struct measure *m, const struct clock *c)
{
    double us = one_turn(m, c); /* loads what is loaded lazily */
    if (us >= 0)
        us = one_turn(m, c);
    if (us < 0 || (m->stop_us > 0 && us > m->stop_us))
        return us;
    const int       turns = (int)SAC_CLAMP(ROUND_US / SAC_MAX(us, 1.0), 1.0, (double)TURNS_MAX);
    cudaGraphExec_t exec = capture(m, turns);
    if (!exec)
        return -1;
    us = best_round(m, c, exec, turns);
    cudaGraphExecDestroy(exec);
    return us;
}

double measure_us(const struct measure *m)
{
    struct clock c = {NULL, NULL};
    double       us = -1;
    if (cudaEventCreate(&c.begin) == cudaSuccess && cudaEventCreate(&c.end) == cudaSuccess)
        us = measure_with(m, &c);
    if (c.begin)
        cudaEventDestroy(c.begin);
    if (c.end)
        cudaEventDestroy(c.end);
    if (us < 0)
        cudaGetLastError(); /* clear the error for the next call */
    return us;
}
