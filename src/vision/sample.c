/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/sample.h"

#include "device/device.h"

struct sac_luma_weights sac_luma_weights_of(enum sac_colour_matrix matrix)
{
    switch (matrix) {
    case SAC_MATRIX_BT709: return (struct sac_luma_weights){0.2126, 0.7152, 0.0722};
    case SAC_MATRIX_BT2020: return (struct sac_luma_weights){0.2627, 0.6780, 0.0593};
    case SAC_MATRIX_BT601: break;
    }
    return (struct sac_luma_weights){0.299, 0.587, 0.114};
}

struct sac_colour_map sac_colour_map_of(const sac_frame *f)
{
    struct sac_luma_weights k = sac_luma_weights_of(f->matrix);
    bool                    full = f->range == SAC_RANGE_FULL;
    double y_scale = full ? 1.0 : 255.0 / 219.0, c_scale = full ? 1.0 : 255.0 / 224.0;
    /* Ten bits in full range reach 1023, which is 255.75 on the scale of eight. */
    if (full && f->format == SAC_PIXEL_P010)
        y_scale = c_scale = 255.0 / 255.75;
    return (struct sac_colour_map){
        .y_scale = (float)y_scale,
        .y_zero = full ? 0.0f : 16.0f,
        .c_zero = 128.0f,
        .r_v = (float)(c_scale * 2 * (1 - k.r)),
        .b_u = (float)(c_scale * 2 * (1 - k.b)),
        .g_u = (float)(-c_scale * 2 * (1 - k.b) * k.b / k.g),
        .g_v = (float)(-c_scale * 2 * (1 - k.r) * k.r / k.g),
    };
}

struct sac_surface sac_surface_of(const sac_frame *f)
{
    struct sac_surface      s = {.width = f->width,
                                 .height = f->height,
                                 .format = f->format,
                                 .turned = f->orientation != SAC_UPRIGHT,
                                 .colour = sac_colour_map_of(f)};
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    const int               n = sac_frame_stored_planes(f, planes);
    for (int i = 0; i < n; i++) {
        const struct sac_plane_walk walk = sac_plane_walk_of(f, i);
        s.plane[i] = walk.first;
        s.pitch[i] = (uint32_t)f->pitch_bytes[i];
        s.across[i] = (int32_t)walk.across;
        s.down[i] = (int32_t)walk.down;
    }
    return s;
}

static bool have_same_colours(const sac_frame *a, const sac_frame *b)
{
    if (!sac_is_yuv(a->format) || !sac_is_yuv(b->format) || a->matrix != b->matrix ||
        a->range != b->range)
        return false;
    /* Full range ends at 1023 in ten bits, which is not 4 * 255. */
    bool same_depth = (a->format == SAC_PIXEL_P010) == (b->format == SAC_PIXEL_P010);
    return same_depth || a->range == SAC_RANGE_LIMITED;
}

static struct sac_encode_map encode_map_of(const sac_frame *f)
{
    struct sac_luma_weights k = sac_luma_weights_of(f->matrix);
    struct sac_colour_map   decode = sac_colour_map_of(f);
    return (struct sac_encode_map){
        .r = (float)k.r,
        .g = (float)k.g,
        .b = (float)k.b,
        .y_scale = 1.0f / decode.y_scale,
        .y_zero = decode.y_zero,
        .u_scale = 1.0f / decode.b_u,
        .v_scale = 1.0f / decode.r_v,
    };
}

struct sac_recode sac_recode_of(const sac_frame *src, const sac_frame *dst)
{
    return (struct sac_recode){
        .same_colours = have_same_colours(src, dst),
        .from = src->format,
        .to = dst->format,
        .decode = sac_colour_map_of(src),
        .encode = encode_map_of(dst),
    };
}

bool sac_is_plain_copy(const sac_frame *a, const sac_frame *b)
{
    if (a->format != b->format || a->width != b->width || a->height != b->height ||
        a->orientation != b->orientation)
        return false;
    return !sac_is_yuv(a->format) || have_same_colours(a, b);
}
