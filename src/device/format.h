/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a pixel format, one row each (format.c). The functions are for kernels as well,
 * where a format that is known when they are compiled leaves a constant. */
#ifndef SAC_DEVICE_FORMAT_H
#define SAC_DEVICE_FORMAT_H

#include <stdbool.h>

#include <saccade/frame.h>

#include "base/anywhere.h"

struct sac_format_info {
    const char *name;
    int         planes;       /* those after the first are 4:2:0 chroma */
    int         number_bytes; /* 2: ten bits in the high ones of 16 */
    int step[SAC_PLANES_MAX]; /* numbers from a pixel, or a chroma sample, to the next one */
};
/* NULL: no such format. */
const struct sac_format_info *sac_format_info_of(enum sac_pixel_format format);
/* "nv12, p010, ...", for sentences. */
const char *sac_format_names(void);

/* Numbers a pixel where R, G and B lie side by side, four with alpha, which is ignored; 0 for
 * other formats. */
SAC_ANYWHERE int sac_rgb_step(enum sac_pixel_format format)
{
    if (format == SAC_PIXEL_RGB24 || format == SAC_PIXEL_BGR24)
        return 3;
    return format == SAC_PIXEL_RGBA || format == SAC_PIXEL_BGRA ? 4 : 0;
}

/* Such a format with B first: R and B have changed places, nothing else. */
SAC_ANYWHERE bool sac_is_bgr(enum sac_pixel_format format)
{
    return format == SAC_PIXEL_BGR24 || format == SAC_PIXEL_BGRA;
}

/* Where channel c (R, G, B) of a pixel is among its numbers. */
SAC_ANYWHERE int sac_rgb_place(enum sac_pixel_format format, int c)
{
    return sac_is_bgr(format) ? 2 - c : c;
}

SAC_ANYWHERE bool sac_is_yuv(enum sac_pixel_format format)
{
    return format == SAC_PIXEL_NV12 || format == SAC_PIXEL_P010 || format == SAC_PIXEL_I420;
}

#endif
