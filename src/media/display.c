/* SPDX-License-Identifier: Apache-2.0 */
/* How pictures are shown, as one of eight orientations: from the container's display matrix, the
 * picture's own (H.264's display orientation, JPEG's EXIF) and the user's choice. */
#include <math.h>

#include "media/media.h"

static const double tolerance = 1; /* degrees: matrix entries are rounded, by some writers a lot */

static double degrees_of(double x, double y)
{
    const double degrees = atan2(y, x) * 180 / M_PI;
    return degrees < 0 ? degrees + 360 : degrees;
}

/* The angle between two directions, 0..180. */
static double apart(double a, double b)
{
    const double d = fabs(fmod(a - b, 360));
    return d > 180 ? 360 - d : d;
}

/* The matrix (ISO/IEC 14496-12, 6.2.2) maps x, y to a x + c y, b x + d y. Mirroring left to right
 * before turning leaves the image of "down" as it is and reverses that of "right". */
struct sac_display sac_display_of(const int32_t matrix[9])
{
    const double a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
    const bool   mirrored = a * d - b * c < 0;
    const double turn = degrees_of(d, -c),
                 by_right = mirrored ? degrees_of(-a, -b) : degrees_of(a, b);
    const int          quarters = (int)lround(turn / 90);
    struct sac_display out = {.can_turn = true};
    if (a * d - b * c == 0) /* singular: treated as none */
        return out;
    out.mirrored = mirrored;
    out.degrees = apart(turn, quarters * 90) <= tolerance ? quarters % 4 * 90 : turn;
    out.can_turn = out.degrees == quarters % 4 * 90 && apart(by_right, out.degrees) <= tolerance;
    if (out.can_turn)
        out.orientation = (enum sac_orientation)(quarters % 4 + (mirrored ? SAC_MIRROR : 0));
    return out;
}

enum sac_orientation sac_display_turn(enum sac_rotate rotate, const struct sac_display *display)
{
    switch (rotate) {
    case SAC_ROTATE_90: return SAC_TURN_90;
    case SAC_ROTATE_180: return SAC_TURN_180;
    case SAC_ROTATE_270: return SAC_TURN_270;
    case SAC_ROTATE_NONE: return SAC_UPRIGHT;
    case SAC_ROTATE_AUTO: break;
    }
    return display->orientation;
}

enum sac_orientation sac_picture_orientation(struct sac_decoder *dec, const AVFrame *picture)
{
    const AVFrameSideData *side = av_frame_get_side_data(picture, AV_FRAME_DATA_DISPLAYMATRIX);
    dec->shown = side && side->size >= 9 * sizeof(int32_t)
                     ? sac_display_of((const int32_t *)(const void *)side->data)
                     : dec->display;
    return sac_display_turn(dec->params->rotate, &dec->shown);
}
