/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms by their definition, determinants, losses. */
#ifndef SAC_ENGINE_CUDA_KERNELS_SIGNAL_H
#define SAC_ENGINE_CUDA_KERNELS_SIGNAL_H

#include "engine/cuda/kernels/types.h"

/* DFT: lines [outer][size][inner] of `given` numbers each, to [outer][out][inner] of `parts`.
 * STFT: frames of a signal [batch][size], `hop` apart, weighted by a window. */
struct ops_dft {
    int64_t outer, inner, size, length, out, frames, hop;
    int32_t given, parts, inverse, mirrors, stft;
    int32_t in_type, out_type, window_type; /* 0: no window */
};
OPS_LAUNCHER(ops_launch_dft);

struct ops_det {
    int64_t count, n; /* matrices in scratch, as double */
    int32_t in_type, out_type;
};
OPS_LAUNCHER(ops_launch_det);

/* Scores [N,classes,plane]. Without reduction each loss is an output; else they are summed through
 * scratch. */
struct ops_loss {
    int64_t count, classes, plane, ignored;
    int32_t cross_entropy, reduces, mean, ignores;
    int32_t in_type, target_type, weight_type, out_type, log_type; /* 0: there is none */
};
OPS_LAUNCHER(ops_launch_loss);

#endif
