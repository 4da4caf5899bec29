/* SPDX-License-Identifier: Apache-2.0 */
/* How the kernels for few input channels (conv_stem.cu, conv_stem_unit.cu) lay out a window and the
 * part of a map that a block reads. Shared by what packs weights on the host and by the kernels. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_STEM_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_STEM_H

#ifdef __CUDACC__
#define CONV_ANYWHERE __host__ __device__ static inline
#else
#define CONV_ANYWHERE static inline
#endif

/* The taps of a window's row are contiguous in memory, so that a pair of them is one word for the
 * matrix units. Output channels are in tiles of 8, `tiles` of them per block, and of these four
 * (then two) make a group: of a tile's columns 2 t and 2 t + 1 thread t of a quad has the sums, and
 * its channels of a group lie side by side. */
struct conv_stem_shape {
    /* of the input in shared memory: one more where pairs would not be word-aligned */
    int channels;
    int lead;  /* 1: a tap of weight zero precedes each row, so that windows are word-aligned */
    int pairs; /* in a row of the window */
    int steps; /* of 16 multiplications over the window */
    int tiles; /* 2, 4 or 6 */
};

enum { CONV_STEM_SIDE = 16 /* pixels of a block's square */, CONV_STEM_SHARED_MAX = 96 << 10 };

/* The column of a channel among those of its block. */
CONV_ANYWHERE int conv_stem_column(int tiles, int channel)
{
    const int first = channel / 32 * 32, group = tiles * 8 - first < 32 ? 2 : 4,
              in = channel - first, t = in / (2 * group), pair = in % (2 * group) / 2;
    return first + pair * 8 + 2 * t + in % 2;
}

/* Words of one row of the part of the input that a block reads: two more than its pixels need, as
 * the last window's last pair may reach over them. */
CONV_ANYWHERE int conv_stem_pitch(int channels, int kernel_w, int stride)
{
    return (((CONV_STEM_SIDE - 1) * stride + kernel_w) * channels + 1) / 2 + 2;
}

CONV_ANYWHERE int conv_stem_rows(int kernel_h, int stride)
{
    return (CONV_STEM_SIDE - 1) * stride + kernel_h;
}

/* Weights, where each pair of taps lies, the part of the input. */
CONV_ANYWHERE int conv_stem_shared_bytes(const struct conv_stem_shape *s, int kernel_h,
                                         int kernel_w, int stride)
{
    return s->steps * s->tiles * 256 + s->steps * 8 * 4 +
           conv_stem_rows(kernel_h, stride) * conv_stem_pitch(s->channels, kernel_w, stride) * 4;
}

/* ---- on Hopper (conv_stem_unit.cu) ---- */

/* A block computes squares of CONV_STEM_SIDE pixels by four rows for each pass. The copy engine
 * brings what their windows see, `rows` of `pitch` words: `part` bytes. It begins at sixteens of
 * bytes alone, so that `before` words lie before a row's first tap. `tiles` of channels are
 * computed at once, and may be more than conv_stem.cu's: two whole blocks of it. */
struct conv_stem_square {
    int tiles, passes, before, pitch, rows, part;
};
/* At most; parts of a block; blocks of a multiprocessor, at most. */
enum { CONV_STEM_PASSES = 4, CONV_STEM_PARTS = 2, CONV_STEM_BLOCKS = 5 };

CONV_ANYWHERE int conv_stem_square_bytes(const struct conv_stem_shape  *s,
                                         const struct conv_stem_square *square)
{
    return s->steps * square->tiles * 256 + CONV_STEM_PARTS * square->part + s->steps * 8 * 4 +
           CONV_STEM_PARTS * 8;
}

#endif
