/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a tensor as a picture: of any type and order of dimensions to a frame of RGB24,
 * where they do not lie as one already. */
#ifndef SAC_VISION_PICTURE_H
#define SAC_VISION_PICTURE_H

#include "vision/sample.h"

struct sac_picture_job {
    const void    *numbers;
    enum sac_dtype dtype; /* SAC_U8, SAC_F32, SAC_F16 or SAC_BF16 */
    int            width, height;
    /* From a number to the next one of its row, its column and its pixel; channel 0: grey. */
    int64_t  right, down, channel;
    bool     bgr;   /* B comes first */
    float    scale; /* to 0..255 */
    uint8_t *rows;  /* of the frame */
    size_t   pitch;
};

SAC_ANYWHERE float sac_picture_number(const struct sac_picture_job *job, int64_t at)
{
    float    f;
    uint32_t bits;
    switch (job->dtype) {
    case SAC_U8: return ((const uint8_t *)job->numbers)[at];
    case SAC_F16: return sac_float_of_half(((const uint16_t *)job->numbers)[at]);
    case SAC_BF16:
        bits = (uint32_t)((const uint16_t *)job->numbers)[at] << 16;
        memcpy(&f, &bits, sizeof f);
        return f;
    default: return ((const float *)job->numbers)[at];
    }
}

/* R, G and B of a pixel; what is no number is 0. */
SAC_ANYWHERE void sac_picture_pixel(const struct sac_picture_job *job, int x, int y, uint8_t rgb[3])
{
    const int64_t at = x * job->right + y * job->down;
    for (int c = 0; c < 3; c++) {
        const int   from = job->bgr ? 2 - c : c;
        const float v = sac_picture_number(job, at + from * job->channel) * job->scale;
        rgb[c] = sac_byte_of(v > 0.0f ? v : 0.0f);
    }
}

#endif
