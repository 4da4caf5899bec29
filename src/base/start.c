/* SPDX-License-Identifier: Apache-2.0 */
#include "base/start.h"

#include "base/base.h"

static _Thread_local struct sac_start      *record;
static _Thread_local struct sac_start_span *innermost;

static const char *const names[SAC_START_PARTS] = {
    [SAC_START_DEVICE] = "device",       [SAC_START_INPUTS] = "inputs",
    [SAC_START_LIBRARIES] = "libraries", [SAC_START_READ] = "read",
    [SAC_START_PASSES] = "passes",       [SAC_START_KEPT] = "kept",
    [SAC_START_RANGES] = "ranges",       [SAC_START_PLAN] = "plan",
    [SAC_START_KERNELS] = "kernels",     [SAC_START_TRIALS] = "trials",
    [SAC_START_WEIGHTS] = "weights",     [SAC_START_CHECK] = "check",
    [SAC_START_RUNS] = "runs",           [SAC_START_GRAPHS] = "graphs",
    [SAC_START_OUTPUTS] = "outputs",
};

const char *sac_start_part_name(enum sac_start_part part)
{
    return names[part];
}

struct sac_start *sac_start_use(struct sac_start *start)
{
    struct sac_start *const before = record;
    record = start;
    return before;
}

struct sac_start *sac_start_used(void)
{
    return record;
}

void sac_start_give_up(struct sac_start *start)
{
    atomic_store(&start->given_up, true);
}

bool sac_start_given_up(void)
{
    return record && atomic_load(&record->given_up);
}

static bool is_whole(enum sac_start_part part)
{
    return part == SAC_START_RANGES || part == SAC_START_CHECK;
}

void sac_start_begin(struct sac_start_span *span, enum sac_start_part part)
{
    span->on = record && !(innermost && is_whole(innermost->part));
    if (!span->on)
        return;
    span->outer = innermost;
    span->part = part;
    span->inside_ns = 0;
    span->begun_ns = sac_time_ns();
    innermost = span;
}

void sac_start_end(struct sac_start_span *span)
{
    if (!span->on)
        return;
    const int64_t ns = sac_time_ns() - span->begun_ns;
    innermost = span->outer;
    if (innermost)
        innermost->inside_ns += ns;
    if (record)
        atomic_fetch_add(&record->ns[span->part], ns - span->inside_ns);
}

sac_result sac_start_step(struct sac_start *start, enum sac_start_part part,
                          sac_result (*step)(void *arg), void         *arg)
{
    struct sac_start_span   span;
    struct sac_start *const before = sac_start_use(start);
    sac_start_begin(&span, part);
    const sac_result res = step(arg);
    sac_start_end(&span);
    sac_start_use(before);
    return res;
}
