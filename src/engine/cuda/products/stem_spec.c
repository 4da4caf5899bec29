/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/stem_spec.h"

bool stem_takes(const struct conv_spec *s, int64_t variant, int capability)
{
    struct conv_stem_shape  stem;
    struct conv_stem_square square;
    return (variant == CONV_STEM_WARPS && conv_stem_shape_of(s, &stem)) ||
           (variant == CONV_STEM_UNIT && capability == 90 && stem_square_of(s, 1, &square));
}

bool stem_params_of(const struct conv_spec *s, struct conv_stem_params *out)
{
    *out = (struct conv_stem_params){.n = (int)s->n,
                                     .in_c = (int)s->in.c,
                                     .in_h = (int)s->in.size[1],
                                     .in_w = (int)s->in.size[2],
                                     .out_c = (int)s->out.c,
                                     .out_h = (int)s->out.size[1],
                                     .out_w = (int)s->out.size[2],
                                     .kernel_h = (int)s->kernel[1],
                                     .kernel_w = (int)s->kernel[2],
                                     .stride = (int)s->stride[1],
                                     .pad_top = (int)s->pad_begin[1],
                                     .pad_left = (int)s->pad_begin[2],
                                     .x_sample = s->in.sample,
                                     .y_pixel = s->out.pixel,
                                     .y_sample = s->out.sample};
    return conv_stem_shape_of(s, &out->shape);
}

/* With half as many, blocks of a multiprocessor end apart: 1.55 squares of 16 rows for each block
 * took ResNet-50 20.7 us at batch 32, 3.1 of 8 rows 19.2 (one H100, 2026-11-28). */
enum { SQUARES_OF_BLOCK = 3 };

/* The engine wants rows, samples and boxes of sixteen bytes, and boxes of 256 numbers at most. */
bool stem_square_of(const struct conv_spec *s, int processors, struct conv_stem_square *out)
{
    struct conv_stem_shape stem;
    if (!conv_stem_shape_of(s, &stem) || stem.channels != s->in.c ||
        s->in.size[2] * s->in.c % 8 != 0 || s->in.sample % 8 != 0 || s->in.align < 16)
        return false;
    out->tiles = stem.tiles == 4 && s->out.c % 64 == 0 ? 8 : stem.tiles;
    out->before = (8 - ((int)(s->pad_begin[2] * s->in.c) + stem.lead) % 8) % 8 / 2;
    out->pitch =
        (out->before + conv_stem_pitch(stem.channels, (int)s->kernel[2], (int)s->stride[2]) + 3) /
        4 * 4;
    const int64_t columns = (s->out.size[2] + CONV_STEM_SIDE - 1) / CONV_STEM_SIDE * s->n *
                            (s->out.c / 8 / out->tiles),
                  many = (int64_t)SQUARES_OF_BLOCK * CONV_STEM_BLOCKS * processors;
    out->passes = CONV_STEM_PASSES;
    while (out->passes > 1 &&
           columns * ((s->out.size[1] + out->passes * 4 - 1) / (out->passes * 4)) < many)
        out->passes /= 2;
    out->rows = (out->passes * 4 - 1) * (int)s->stride[1] + (int)s->kernel[1];
    out->part = (out->rows * out->pitch * 4 + 127) / 128 * 128;
    return out->pitch * 2 <= 256 && out->rows <= 256 &&
           conv_stem_square_bytes(&stem, out) <= CONV_STEM_SHARED_MAX;
}

struct conv_copy_shape stem_copy(const struct conv_spec *s, const struct conv_stem_square *square,
                                 const void *x)
{
    const uint64_t row = (uint64_t)(s->in.size[2] * s->in.c);
    return (struct conv_copy_shape){.at = x,
                                    .rank = 3,
                                    .size = {row, (uint64_t)s->in.size[1], (uint64_t)s->n},
                                    .step = {2 * row, 2 * (uint64_t)s->in.sample},
                                    .box = {2 * (uint32_t)square->pitch, (uint32_t)square->rows, 1},
                                    .halves = true};
}
