/* SPDX-License-Identifier: Apache-2.0 */
/* A file read at a camera's pace: each frame is held back until it is due. It was decoded before
 * that, so latency is measured from the time at which it is due. */
#include <time.h>

#include "pipeline/pipeline.h"

enum { NAP_NS = 50 * 1000 * 1000 }; /* the longest time until a stop is noticed */

/* The end of a run, or of this stream, does not wait for a frame that is due in an hour. */
static void sleep_until(const struct sac_stream_run *s, int64_t due_ns)
{
    for (int64_t now; (now = sac_time_ns()) < due_ns && !atomic_load(&s->pipe->stopped) &&
                      !atomic_load(&s->failed);) {
        int64_t         nap = SAC_MIN(due_ns - now, (int64_t)NAP_NS);
        struct timespec ts = {.tv_nsec = (long)nap};
        nanosleep(&ts, NULL);
    }
}

void sac_stream_pace(struct sac_stream_run *s, struct sac_item *item)
{
    if (s->pace_start_ns == 0) {
        s->pace_start_ns = sac_time_ns();
        s->pace_first_us = item->pts_us;
    }
    item->submitted_ns = s->pace_start_ns + (item->pts_us - s->pace_first_us) * 1000;
    sleep_until(s, item->submitted_ns);
}
