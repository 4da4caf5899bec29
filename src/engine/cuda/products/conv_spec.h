/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a convolution that all its GPU implementations use, and the chosen variant.
 * Host code without CUDA, so that it can be tested without a GPU. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CONV_SPEC_H
#define SAC_ENGINE_CUDA_PRODUCTS_CONV_SPEC_H

#include "engine/cuda/products/conv_stem.h"
#include "engine/ops/fused.h"
#include "engine/kernel/kernel.h"

enum { CONV_DIMS = 3 }; /* depth, height, width; with fewer, the leading ones are 1 */

/* A map in channels-last order: elements from one pixel, and from one sample, to the next. */
struct conv_map {
    int64_t c, size[CONV_DIMS], pixel, sample;
    int     align; /* alignment of its address in bytes, 16 at most */
};

static inline int64_t conv_map_pixels(const struct conv_map *m) /* of one sample */
{
    return m->size[0] * m->size[1] * m->size[2];
}

struct conv_spec {
    enum sac_precision    precision;
    bool                  transposed;
    bool                  turned; /* the weights are [C,K], a matrix product's */
    int64_t               n, groups;
    struct conv_map       in, out, residual; /* residual.c 0: none */
    int64_t               kernel[CONV_DIMS], stride[CONV_DIMS], dilation[CONV_DIMS];
    int64_t               pad_begin[CONV_DIMS], pad_end[CONV_DIMS];
    bool                  bias;
    enum sac_residual     residual_kind;
    struct sac_activation act;
    bool                  ending; /* something is done to each channel behind it */
};

/* false: why says what is not covered. Checks everything that the kernels trust. */
bool conv_spec_read(const struct sac_kernel_plan *plan, struct conv_spec *out, char *why,
                    size_t why_size);
/* The same of any dtype (quant_spec.h). */
bool conv_spec_read_any(const struct sac_kernel_plan *plan, struct conv_spec *out, char *why,
                        size_t why_size);
/* One printable line, equal for convolutions that one kernel computes: all numbers are exact.
 * Returns its length, or 0 when it does not fit. */
size_t  conv_spec_text(const struct conv_spec *s, char *out, size_t size);
int64_t conv_spec_flops(const struct conv_spec *s);
/* Bytes read and written, each counted once, weights included. */
int64_t conv_spec_bytes(const struct conv_spec *s);
size_t  conv_element(const struct conv_spec *s); /* bytes: 2 or 4 */
/* Elements that a map spans from its first to its last. */
int64_t conv_map_span(const struct conv_map *m, int64_t n);

/* ---- weights ---- */

/* [K,C/g,k..] (or [C,K/g,k..] of a transposed one), as files have them, in another order; float16
 * with FP16. */
enum conv_form {
    CONV_FORM_LAST = 0, /* the channels last: [K,k..,C/g] */
    CONV_FORM_TAPS,     /* the first ones last: [k..,C/g,K] (or [k..,C,K/g]) */
    CONV_FORM_STEM,     /* by sixteen taps a row of each column: see conv_stem_shape_of */
    CONV_FORM_PATCHES,  /* the channels last, and zeros up to conv_patches_row: float16 */
    CONV_FORM_BUNDLES   /* [K][taps][depth] of conv_bundle_of: float16 */
};
size_t conv_weights_bytes(const struct conv_spec *s, enum conv_form form);
void conv_weights_pack(const struct conv_spec *s, enum conv_form form, const float *from, void *to);

/* ---- our own kernels ---- */

/* A window of one that goes over all pixels? */
bool conv_is_flat(const struct conv_spec *s);
/* Has the residual fewer channels than the output? */
bool conv_residual_is_part(const struct conv_spec *s);
/* Is every channel computed by itself, over two dimensions at most, with a residual of all or none?
 * Of any variant. */
bool conv_is_depthwise(const struct conv_spec *s);
/* Rows of the output that a thread of conv_depthwise.cu goes down, by variant: the more, the less
 * often a row of the input is loaded; the fewer, the more threads. */
enum { CONV_DEPTHWISE_VARIANTS = 7 };
extern const int conv_depthwise_rows[CONV_DEPTHWISE_VARIANTS];
/* Can it be the fastest on a GPU? */
bool conv_depthwise_worth(const struct conv_spec *s, int variant);
/* The one that likely is. */
int conv_depthwise_likely(const struct conv_spec *s);
/* Few input channels, in float16? If so, returns the window's layout in words of two taps
 * (conv_stem.h). */
bool conv_stem_shape_of(const struct conv_spec *s, struct conv_stem_shape *out);

/* How conv_tile.cu takes the channels. Groups too narrow for a tile are taken by bundles, a dense
 * convolution each, whose weights between the groups are zeros. */
struct conv_bundle {
    int64_t groups, count; /* of a bundle; bundles */
    int64_t in, out;       /* channels of one */
    int64_t depth;         /* in, rounded up to eights */
    int     unit; /* bytes of a pixel's channels that are copied at once: 16, 8, 4; 0: fewer */
};
struct conv_bundle conv_bundle_of(const struct conv_spec *s);

/* Pixels and channels of a block of conv_tile.cu, by variant. */
enum { CONV_TILE_VARIANTS = 8 };
extern const struct conv_tile_size {
    int pixels, channels;
} conv_tile_sizes[CONV_TILE_VARIANTS];
/* Can a variant compute it? This says nothing about speed: too large a tile is slow. */
bool conv_tile_fits(const struct conv_spec *s, int64_t variant);
bool conv_tile_worth(const struct conv_spec *s, int variant);
/* Does its window go over the map in patches beside each other, as a vision transformer's first
 * one, or is it a single pixel? conv_patches.cu makes a row of each patch, and conv_tile.cu or
 * conv_tensor.cuh multiplies these (tensor_spec.h). */
bool    conv_is_patches(const struct conv_spec *s);
int64_t conv_patches_row(const struct conv_spec *s);   /* numbers, a multiple of 8 */
int64_t conv_patches_bytes(const struct conv_spec *s); /* of all rows */
/* The convolution of the rows, pixels of so many channels, by a window of one. */
struct conv_spec conv_patches_product(const struct conv_spec *s);

/* ---- what was chosen ---- */

enum conv_way {
    CONV_CUDNN_FUSED = 0, /* one cuDNN plan does everything */
    CONV_CUDNN_PLAIN,     /* a cuDNN plan for the sums, then saccade's pass over them */
    CONV_DEPTHWISE,       /* saccade's own depthwise kernel */
    CONV_DIRECT,          /* saccade's own plain kernel, when there is no other */
    CONV_STEM,            /* saccade's own for few input channels */
    CONV_TILE,            /* saccade's own by tensor cores, also of groups */
    CONV_PATCHES,         /* the same, or CONV_TENSOR's, over rows that were patches */
    CONV_BYTES,           /* saccade's own of 8-bit numbers (quant_spec.h) */
    CONV_BYTES_PLAIN,     /* the same for any of these, when there is no other */
    CONV_STREAM,          /* saccade's own of 8-bit numbers, by blocks that stay for many tiles */
    CONV_LT,              /* a product of E4M3 numbers by cuBLASLt (quant_lt.h) */
    CONV_TENSOR,          /* saccade's own by Hopper's copy engine (tensor_spec.h) */
    CONV_WAY_COUNT
};
enum { CONV_KNOBS_MAX = 24 };

struct conv_choice {
    enum conv_way way;
    int64_t       engine; /* of cuDNN, or the variant of saccade's own kernel */
    int           knob_count;
    struct {
        int64_t type, value;
    } knobs[CONV_KNOBS_MAX];
};
/* "fused 12 3=1,8=0"; 0: it does not fit. */
size_t conv_choice_print(const struct conv_choice *c, char *out, size_t size);
/* The text may come from a damaged file. */
bool conv_choice_parse(const char *text, struct conv_choice *out);
bool conv_choice_same(const struct conv_choice *a, const struct conv_choice *b);

#endif
