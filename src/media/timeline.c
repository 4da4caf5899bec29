/* SPDX-License-Identifier: Apache-2.0 */
#include "media/media.h"

enum { STEP_DEFAULT_US = 40000 };

/* A larger step back means that the clock was reset (a camera restarted, files were joined); a
 * smaller one is a single bad timestamp. */
enum { CLOCK_RESET_US = 1000000 };

int64_t sac_time_us(int64_t ts, AVRational time_base)
{
    if (ts == AV_NOPTS_VALUE || time_base.num <= 0 || time_base.den <= 0)
        return SAC_TIME_NONE;
    int64_t us = av_rescale_q(ts, time_base, AV_TIME_BASE_Q);
    /* Damaged files hold any number; a quarter of the range avoids overflow in sums. */
    return us > INT64_MAX / 4 || us < INT64_MIN / 4 ? SAC_TIME_NONE : us;
}

/* The next time at an even step. */
static int64_t expected(const struct sac_timeline *line)
{
    return line->started ? line->last_us + line->step_us : 0;
}

static int64_t mend(struct sac_timeline *line, int64_t ts_us)
{
    line->repaired++;
    if (ts_us != SAC_TIME_NONE && line->last_us - (ts_us - line->origin_us) > CLOCK_RESET_US)
        line->origin_us = ts_us - expected(line);
    return expected(line);
}

int64_t sac_timeline_next(struct sac_timeline *line, int64_t ts_us, int64_t duration_us)
{
    int64_t pts;
    if (line->step_us <= 0)
        line->step_us = STEP_DEFAULT_US;
    if (ts_us != SAC_TIME_NONE && !line->anchored) {
        line->origin_us = ts_us - expected(line);
        line->anchored = true;
    }
    if (ts_us == SAC_TIME_NONE)
        pts = mend(line, ts_us);
    else if (line->started && ts_us - line->origin_us <= line->last_us)
        pts = mend(line, ts_us);
    else
        pts = ts_us - line->origin_us;
    line->started = true;
    line->last_us = pts;
    if (duration_us > 0 && duration_us < CLOCK_RESET_US)
        line->step_us = duration_us;
    return pts;
}
