/* SPDX-License-Identifier: Apache-2.0 */
/* How conv_window.cuh tiles a map. Shared by the host and the kernel. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_WINDOW_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_WINDOW_H

/* What is brought of a chunk of channels at once stays for several taps. A stride of two splits the
 * input into phases, pixels of even and of odd places, down and right: each is a map of its own,
 * over which all of its taps go in steps of one. */
enum { CONV_WINDOW_PHASES = 4, CONV_WINDOW_TAPS = 64 };

struct conv_window_phase {
    int from_y, from_x; /* its map's first pixel in the input */
    int down, right;    /* in it, the pixel under a tile's first; a tile's row is a row of it */
    int height;         /* rows that are brought */
    int taps;           /* those of the phases before it, and its own */
};
struct conv_window_tap {
    short at;    /* positions that it lies further */
    short index; /* of the window's */
};
/* A tile is `cols` columns of `rows` rows of each of `samples` samples. Of each phase the pixels
 * under their windows are brought, `width` of a row. Positions of a tile are counted over the same
 * grid, so that a tap is so many positions further; what lies beyond the tile's columns and rows is
 * computed and not stored. */
struct conv_window_shape {
    int                      cols, rows, samples;
    int                      width, height; /* of the grid */
    int                      part; /* bytes of what is brought, and of what junk positions read */
    int                      phases;
    struct conv_window_phase phase[CONV_WINDOW_PHASES];
    struct conv_window_tap   tap[CONV_WINDOW_TAPS];
};

/* A part is used while the next one comes; of weights at least so many taps are under way. Bytes at
 * most of what else lies in shared memory. */
enum { CONV_WINDOW_PARTS = 2, CONV_WINDOW_STAGES = 3, CONV_WINDOW_OTHERS = 8 << 10 };

#endif
