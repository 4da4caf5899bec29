/* SPDX-License-Identifier: Apache-2.0 */
/* A frame's planes: the bytes of each, how to walk over those that lie on their side as over the
 * upright picture, and copies in host memory. */
#include <string.h>

#include "device/device.h"
#include "device/format.h"

int sac_frame_planes(enum sac_pixel_format format, int width, int height,
                     struct sac_plane_layout out[SAC_PLANES_MAX])
{
    const struct sac_format_info *info = sac_format_info_of(format);
    const int                     planes = info ? info->planes : 0;
    for (int i = 0; i < planes; i++) {
        const int across = i ? (width + 1) / 2 : width;
        out[i].row_bytes = (size_t)across * (size_t)(info->step[i] * info->number_bytes);
        out[i].rows = i ? (height + 1) / 2 : height;
    }
    return planes;
}

const char *sac_orientation_name(enum sac_orientation orientation)
{
    static const char *const names[SAC_ORIENTATION_COUNT] = {
        [SAC_UPRIGHT] = "upright",
        [SAC_TURN_90] = "turned by 90 degrees",
        [SAC_TURN_180] = "turned by 180 degrees",
        [SAC_TURN_270] = "turned by 270 degrees",
        [SAC_MIRROR] = "mirrored",
        [SAC_MIRROR_TURN_90] = "mirrored and turned by 90 degrees",
        [SAC_MIRROR_TURN_180] = "mirrored and turned by 180 degrees",
        [SAC_MIRROR_TURN_270] = "mirrored and turned by 270 degrees",
    };
    return (unsigned)orientation < SAC_ORIENTATION_COUNT ? names[orientation] : "unknown";
}

bool sac_orientation_swaps_sides(enum sac_orientation orientation)
{
    return orientation & SAC_TURN_90; /* the lowest bit: a turn by 90 or 270 degrees */
}

sac_frame sac_frame_as_turned(const sac_frame *frame, enum sac_orientation orientation)
{
    sac_frame out = *frame;
    if (sac_orientation_swaps_sides(orientation) !=
        sac_orientation_swaps_sides(frame->orientation)) {
        out.width = frame->height;
        out.height = frame->width;
    }
    out.orientation = orientation;
    return out;
}

int sac_frame_stored_planes(const sac_frame *frame, struct sac_plane_layout out[SAC_PLANES_MAX])
{
    const sac_frame stored = sac_frame_as_turned(frame, SAC_UPRIGHT);
    return sac_frame_planes(stored.format, stored.width, stored.height, out);
}

struct sac_plane_walk sac_plane_walk_of(const sac_frame *frame, int plane)
{
    /* By quarter turns clockwise: does the upright picture begin at the right, at the bottom of the
     * stored one, and which way is across there? Down is a quarter turn further. */
    static const struct {
        int at_right, at_bottom, across_x, across_y;
    } turns[4] = {{0, 0, 1, 0}, {0, 1, 0, -1}, {1, 1, -1, 0}, {1, 0, 0, 1}};
    const sac_frame stored = sac_frame_as_turned(frame, SAC_UPRIGHT);
    const int       turn = frame->orientation & 3, sign = frame->orientation & SAC_MIRROR ? -1 : 1;
    const bool      right = turns[turn].at_right != (sign < 0);
    struct sac_plane_layout one[SAC_PLANES_MAX], all[SAC_PLANES_MAX];
    sac_frame_planes(frame->format, 1, 1, one); /* so a row is a sample */
    sac_frame_planes(frame->format, stored.width, stored.height, all);
    const ptrdiff_t sample = (ptrdiff_t)one[plane].row_bytes,
                    pitch = (ptrdiff_t)frame->pitch_bytes[plane];
    const ptrdiff_t last_x = (ptrdiff_t)all[plane].row_bytes - sample,
                    last_y = (all[plane].rows - 1) * pitch;
    return (struct sac_plane_walk){
        .first = frame->plane[plane] + (right ? last_x : 0) + (turns[turn].at_bottom ? last_y : 0),
        .sample_bytes = one[plane].row_bytes,
        .across = sign * turns[turn].across_x * sample + turns[turn].across_y * pitch,
        .down = turns[turn].across_x * pitch - sign * turns[turn].across_y * sample,
    };
}

/* The first of n samples of a part that is stored, from the first of the upright one. */
static ptrdiff_t stored_from(ptrdiff_t step, int first, int n)
{
    return step * (step < 0 ? first + n - 1 : first);
}

sac_frame sac_frame_part(const sac_frame *frame, int x, int y, int width, int height)
{
    sac_frame               part = *frame;
    struct sac_plane_layout planes[SAC_PLANES_MAX], before[SAC_PLANES_MAX];
    const int               n = sac_frame_planes(frame->format, width, height, planes);
    sac_frame_planes(frame->format, x, y, before);
    for (int i = 0; i < n; i++) {
        const struct sac_plane_walk walk = sac_plane_walk_of(frame, i);
        const int                   at = (int)(before[i].row_bytes / walk.sample_bytes),
                  samples = (int)(planes[i].row_bytes / walk.sample_bytes);
        const ptrdiff_t from = stored_from(walk.across, at, samples) +
                               stored_from(walk.down, before[i].rows, planes[i].rows);
        part.plane[i] += walk.first + from - frame->plane[i];
    }
    part.width = width;
    part.height = height;
    return part;
}

/* ---- copies ---- */

void sac_frame_copy_planes(const sac_frame *src, const sac_frame *dst)
{
    struct sac_plane_layout plane[SAC_PLANES_MAX];
    int                     count = sac_frame_planes(src->format, src->width, src->height, plane);
    for (int p = 0; p < count; p++)
        for (int y = 0; y < plane[p].rows; y++)
            memcpy(dst->plane[p] + (size_t)y * dst->pitch_bytes[p],
                   src->plane[p] + (size_t)y * src->pitch_bytes[p], plane[p].row_bytes);
}

/* Squares that stay in the first-level cache with the lines of both sides. */
enum { TILE = 32 };

static inline void turn_tile(uint8_t *out, size_t pitch, int columns, int rows, const uint8_t *in,
                             const struct sac_plane_walk *from, size_t size)
{
    for (int y = 0; y < rows; y++, out += pitch, in += from->down) {
        const uint8_t *at = in;
        for (int x = 0; x < columns; x++, at += from->across)
            memcpy(out + (size_t)x * size, at, size);
    }
}

static void turn_plane(uint8_t *dst, size_t pitch, int width, int height,
                       const struct sac_plane_walk *from)
{
    for (int y = 0; y < height; y += TILE)
        for (int x = 0; x < width; x += TILE) {
            uint8_t       *out = dst + (size_t)y * pitch + (size_t)x * from->sample_bytes;
            const uint8_t *in = from->first + y * from->down + x * from->across;
            const int      columns = SAC_MIN(TILE, width - x), rows = SAC_MIN(TILE, height - y);
            switch (from->sample_bytes) { /* a size that is known when this is compiled is one move
                                           */
            case 1: turn_tile(out, pitch, columns, rows, in, from, 1); break;
            case 2: turn_tile(out, pitch, columns, rows, in, from, 2); break;
            case 3: turn_tile(out, pitch, columns, rows, in, from, 3); break;
            default: turn_tile(out, pitch, columns, rows, in, from, 4); break;
            }
        }
}

void sac_frame_turn(const sac_frame *src, const sac_frame *dst)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    const int               n = sac_frame_planes(dst->format, dst->width, dst->height, planes);
    for (int i = 0; i < n; i++) {
        const struct sac_plane_walk from = sac_plane_walk_of(src, i);
        turn_plane(dst->plane[i], dst->pitch_bytes[i],
                   (int)(planes[i].row_bytes / from.sample_bytes), planes[i].rows, &from);
    }
}
