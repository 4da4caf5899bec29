/* SPDX-License-Identifier: Apache-2.0 */
/* Generated tensors and simple rearrangements: constants, ranges, identity matrices, one-hot lines,
 * triangles, reversed lines; DynamicQuantizeLinear. */
#ifndef SAC_ENGINE_CUDA_KERNELS_MAKE_H
#define SAC_ENGINE_CUDA_KERNELS_MAKE_H

#include "engine/cuda/kernels/types.h"

/* start + i * step in out's dtype, or `bytes` of `pattern` over and over. */
enum ops_make_kind { OPS_MAKE_RANGE, OPS_MAKE_PATTERN, OPS_MAKE_EYE, OPS_MAKE_WINDOW };
struct ops_make {
    int64_t count, columns, diagonal;
    int32_t kind, type, pattern_bytes;
    double  start, step;
    double  a, b, c, period; /* of a window: a - b cos + c cos 2 */
    uint8_t pattern[512];
};
OPS_LAUNCHER(ops_launch_make);

struct ops_one_hot {
    int64_t count, inner, depth;
    int32_t index_type, bytes;
};
OPS_LAUNCHER(ops_launch_one_hot);

/* Trilu, as bytes; ReverseSequence: [time,batch,run] or [batch,time,run]. */
struct ops_trilu {
    int64_t count, rows, columns, k;
    int32_t upper, bytes;
};
OPS_LAUNCHER(ops_launch_trilu);
struct ops_reverse {
    int64_t count, first, second, run; /* sizes of the first two dimensions, elements behind them */
    int32_t time_first, bytes;
};
OPS_LAUNCHER(ops_launch_reverse);

/* MelWeightMatrix: triangles between corners that the host computed. */
enum { OPS_MEL_BINS = 512 };
struct ops_mel {
    int64_t rows, columns;
    int32_t type;
    int32_t corner[OPS_MEL_BINS + 2];
};
OPS_LAUNCHER(ops_launch_mel);

/* DynamicQuantizeLinear: the range in scratch, as two floats that all parts lower and raise. */
struct ops_dynamic_quantize {
    int64_t n;
    int32_t in_type, wants; /* bit i: output i */
};
OPS_LAUNCHER(ops_launch_dynamic_quantize);

#endif
