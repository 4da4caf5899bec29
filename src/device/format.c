/* SPDX-License-Identifier: Apache-2.0 */
#include "device/format.h"

#include <stddef.h>

/* A row and its name in the list that sentences print. */
#define FORMATS(ROW)                   \
    ROW(NV12, "nv12", 2, 1, 1, 2, 0)   \
    ROW(P010, "p010", 2, 2, 1, 2, 0)   \
    ROW(I420, "i420", 3, 1, 1, 1, 1)   \
    ROW(RGB24, "rgb24", 1, 1, 3, 0, 0) \
    ROW(GRAY8, "gray8", 1, 1, 1, 0, 0) \
    ROW(BGR24, "bgr24", 1, 1, 3, 0, 0) \
    ROW(RGBA, "rgba", 1, 1, 4, 0, 0)   \
    ROW(BGRA, "bgra", 1, 1, 4, 0, 0)

#define INFO(id, name, planes, bytes, a, b, c) [SAC_PIXEL_##id] = {name, planes, bytes, {a, b, c}},
#define NAME(id, name, ...)                    ", " name

static const struct sac_format_info infos[SAC_PIXEL_FORMAT_COUNT] = {FORMATS(INFO)};

const struct sac_format_info *sac_format_info_of(enum sac_pixel_format format)
{
    return (unsigned)format < SAC_PIXEL_FORMAT_COUNT && infos[format].planes ? &infos[format]
                                                                             : NULL;
}

const char *sac_format_names(void)
{
    return &FORMATS(NAME)[2]; /* behind the first comma */
}

const char *sac_pixel_format_name(enum sac_pixel_format format)
{
    const struct sac_format_info *info = sac_format_info_of(format);
    return info ? info->name : format == SAC_PIXEL_NONE ? "none" : "unknown";
}
