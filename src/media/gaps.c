/* SPDX-License-Identifier: Apache-2.0 */
#include "media/media.h"

bool sac_gaps_note(struct sac_gaps *gaps, int64_t us)
{
    const int64_t from = gaps->last_us + gaps->max_us;
    const bool    too_long = gaps->started && gaps->max_us > 0 && us > from;
    if (too_long) {
        gaps->from_us = from;
        gaps->to_us = us;
        gaps->left_us += us - from;
    }
    gaps->started = true;
    gaps->last_us = us;
    return too_long;
}

int64_t sac_gaps_apply(const struct sac_gaps *gaps, int64_t us)
{
    if (us >= gaps->to_us)
        return us - gaps->left_us;
    const int64_t before = gaps->left_us - (gaps->to_us - gaps->from_us);
    return gaps->left_us > 0 && us > gaps->from_us ? SAC_TIME_NONE : us - before;
}
