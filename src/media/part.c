/* SPDX-License-Identifier: Apache-2.0 */
/* The wanted part of an input: from a start time, for a duration, every n-th frame. */
#include <math.h>

#include "media/source.h"

int64_t sac_part_frames_before(const struct sac_source *src, int64_t us)
{
    return (int64_t)ceil((double)us * av_q2d(src->input.average) / 1e6 - 1e-6);
}

bool sac_part_is_over(const struct sac_source *src, int64_t pts_us)
{
    const struct sac_source_params *p = &src->params;
    return p->duration_us > 0 && pts_us - p->start_us >= p->duration_us;
}

bool sac_part_takes(struct sac_source *src, const sac_frame *frame)
{
    if (frame->pts_us < src->params.start_us)
        return false;
    if (src->part_first < 0)
        src->part_first = frame->number;
    return (frame->number - src->part_first) % SAC_MAX(src->params.every, 1) == 0;
}

void sac_part_describe(const struct sac_source *src, struct sac_source_info *info)
{
    const struct sac_source_params *p = &src->params;
    const int                       every = SAC_MAX(p->every, 1);
    const int64_t                   before = sac_part_frames_before(src, p->start_us);
    const int64_t                   end_us = p->start_us + p->duration_us;
    if (p->duration_us > 0 && (info->duration_us == 0 || end_us < info->duration_us)) {
        info->duration_us = p->duration_us;
        info->frames = sac_part_frames_before(src, end_us) - before;
    } else {
        info->duration_us = SAC_MAX(info->duration_us - p->start_us, 0);
        info->frames = SAC_MAX(info->frames - before, 0);
    }
    info->frames = (info->frames + every - 1) / every;
    info->fps /= every;
    info->fps_den *= every;
}

sac_result sac_part_fail_empty(struct sac_source *src)
{
    const int64_t lasts = src->input.duration_us > 0
                              ? src->input.duration_us
                              : src->timeline.last_us + src->timeline.step_us;
    const double  start_s = (double)src->params.start_us * 1e-6;
    if (src->params.duration_us > 0 && src->params.start_us < lasts)
        return SAC_FAIL(src->ctx, SAC_ERR_ARG, "%s: no frame in the %.3f s from %.3f s on",
                        src->name, (double)src->params.duration_us * 1e-6, start_s);
    return SAC_FAIL(src->ctx, SAC_ERR_ARG, "%s: no frame at %.3f s or later; it lasts %.3f s",
                    src->name, start_s, (double)lasts * 1e-6);
}

/* ---- packets ---- */

static AVRational base_of(const struct sac_input *in, int kept)
{
    return kept < 0 ? in->time_base : in->kept[kept]->time_base;
}

bool sac_part_time_of(const struct sac_source *src, const AVPacket *packet, int stream,
                      int64_t *out)
{
    const int64_t ts = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts;
    const int64_t us = sac_time_us(ts, base_of(&src->input, stream));
    *out = us - src->timeline.origin_us;
    return us != SAC_TIME_NONE && src->timeline.anchored;
}

bool sac_part_keeps(const struct sac_source *src, const AVPacket *packet, int stream)
{
    int64_t us;
    return !sac_part_time_of(src, packet, stream, &us) ||
           (us >= src->params.start_us && !sac_part_is_over(src, us));
}
