/* SPDX-License-Identifier: Apache-2.0 */
/* How conv_window.cuh tiles a map. Shared by the host and the kernel. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_WINDOW_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_WINDOW_H

/* A tile is `rows` rows of each of `samples` samples. Of the input the rows under their windows are
 * brought, `height` of each sample, of `width` pixels: a row of the output and what a window
 * reaches beyond it. Positions of a tile are counted over the same grid, so that a tap is so many
 * positions further; what lies beyond the output's row is computed and not stored. */
struct conv_window_shape {
    int width, height, rows, samples;
    int part; /* bytes of what is brought of a chunk of channels, and of what junk positions read */
};

/* A part is used while the next one comes; of weights at least so many taps are under way. Bytes at
 * most of what else lies in shared memory. */
enum { CONV_WINDOW_PARTS = 2, CONV_WINDOW_STAGES = 3, CONV_WINDOW_OTHERS = 8 << 10 };

#endif
