/* SPDX-License-Identifier: Apache-2.0 */
/* Images read or written at positions given by other tensors. */
#ifndef SAC_ENGINE_CUDA_KERNELS_SPATIAL_H
#define SAC_ENGINE_CUDA_KERNELS_SPATIAL_H

#include "engine/cuda/kernels/window.h"

/* A grid's places [N,(depth,)height,width,2 or 3]; window steps of input and output. vector:
 * channels side by side by eights, which the units count. */
struct ops_grid_sample {
    struct ops_window w;
    struct ops_places places, units;
    int32_t mode, padding, align, rank, in_type, grid_type, out_type; /* enum sac_sample_... */
    int32_t size[3];
    bool    vector;
};
OPS_LAUNCHER(ops_launch_grid_sample);

struct ops_affine {
    int64_t count, size[3]; /* of places in all; depth, height, width */
    int32_t rank, align, in_type, out_type;
};
OPS_LAUNCHER(ops_launch_affine);

struct ops_roi_align {
    struct ops_window w;
    struct ops_places places;
    int32_t           height, width, bins_y, bins_x, sampling, max, old, images;
    int32_t           in_type, roi_type, out_type;
    double            scale, offset;
};
OPS_LAUNCHER(ops_launch_roi_align);

enum { OPS_COL_DIMS = SAC_RANK_MAX - 2 };
struct ops_col2im {
    int64_t count, pixels, taps, columns;
    int32_t rank, in_type, out_type;
    int64_t image[OPS_COL_DIMS], block[OPS_COL_DIMS], places[OPS_COL_DIMS];
    int64_t stride[OPS_COL_DIMS], dilation[OPS_COL_DIMS], pad[OPS_COL_DIMS];
};
OPS_LAUNCHER(ops_launch_col2im);

struct ops_deform {
    struct ops_window w;
    struct ops_places places;
    int32_t           in_each, out_each, channels, per_offset, offset_groups;
    int32_t           type[5], out_type; /* x, weights, offset, bias, mask; 0: there is none */
};
OPS_LAUNCHER(ops_launch_deform);

struct ops_unpool {
    int64_t count, out_count, whole_count;
    int32_t rank, bytes;
    int64_t whole[SAC_RANK_MAX], step[SAC_RANK_MAX];
};
OPS_LAUNCHER(ops_launch_unpool);

#endif
