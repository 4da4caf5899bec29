/* SPDX-License-Identifier: Apache-2.0 */
/* A font of strokes, drawn for this project: every glyph is a few polylines on a grid, so it can be
 * rendered at any height. All devices draw the same shapes from it. */
#ifndef SAC_VISION_FONT_H
#define SAC_VISION_FONT_H

enum {
    SAC_FONT_CELL_WIDTH = 11,  /* grid units from glyph to glyph; a glyph is 8 wide at most */
    SAC_FONT_CELL_HEIGHT = 18, /* capitals stand on 12, descenders reach 16, then air */
    SAC_FONT_LEFT = 1,         /* of a glyph inside its cell */
    SAC_FONT_TOP = 1
};

/* Strokes of a character ("" for those outside printable ASCII). Each stroke is a run of points
 * between spaces; a point is two letters, x in 'a'..'i' and y in 'a'..'q' (a = 0). A run of one
 * point is a dot. */
const char *sac_font_strokes(char c);

/* Pixels from one character to the next at a glyph height in pixels. */
static inline float sac_font_advance(int height)
{
    return (float)height * SAC_FONT_CELL_WIDTH / SAC_FONT_CELL_HEIGHT;
}

#endif
