/* SPDX-License-Identifier: Apache-2.0 */
/* When a packet reaches the decoder: its picture's latency counts from then. A file that is paced
 * gives its packets as a camera would, each when it is due, so none is decoded ahead. */
#include <time.h>

#include "media/source.h"

enum { NAP_NS = 50 * 1000 * 1000 }; /* the longest time until a cancellation is noticed */

/* Packets come in the order of dts. */
static int64_t time_of(const struct sac_source *src)
{
    const AVPacket *packet = src->packet;
    return sac_time_us(packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts,
                       src->input.time_base);
}

static void sleep_until(struct sac_source *src, int64_t due_ns)
{
    for (int64_t now; (now = sac_time_ns()) < due_ns && !atomic_load(&src->cancelled);) {
        const int64_t   nap = SAC_MIN(due_ns - now, (int64_t)NAP_NS);
        struct timespec ts = {.tv_nsec = (long)nap};
        nanosleep(&ts, NULL);
    }
}

/* Late packets count from when they were due. */
static int64_t pace(struct sac_source *src)
{
    const int64_t us = time_of(src), now = sac_time_ns();
    if (us == SAC_TIME_NONE)
        return now;
    if (src->pace_start_ns == 0) {
        src->pace_start_ns = now;
        src->pace_first_us = us;
    }
    const int64_t due_ns = src->pace_start_ns + (us - src->pace_first_us) * 1000;
    sleep_until(src, due_ns);
    return due_ns;
}

void sac_arrival_note(struct sac_source *src)
{
    const AVPacket *packet = src->packet;
    const int64_t   ts = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    if (src->opening)
        return;
    const int64_t  ns = src->params.paced ? pace(src) : sac_time_ns();
    const unsigned at = src->arrivals.next++ % SAC_ARRIVALS_MAX;
    src->arrivals.ts[at] = ts;
    src->arrivals.ns[at] = ns;
}

/* The latest packet of a picture of two fields counts. */
int64_t sac_arrival_of(const struct sac_source *src, int64_t ts)
{
    const struct sac_arrivals *a = &src->arrivals;
    for (unsigned i = 1; i <= SAC_ARRIVALS_MAX && i <= a->next; i++) {
        const unsigned at = (a->next - i) % SAC_ARRIVALS_MAX;
        if (a->ts[at] == ts)
            return a->ns[at];
    }
    return 0;
}
