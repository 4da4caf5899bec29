/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample: each output interpolates over the taps of up to three axes, computed on the
 * fly. */
#ifndef SAC_ENGINE_CUDA_KERNELS_RESIZE_H
#define SAC_ENGINE_CUDA_KERNELS_RESIZE_H

#include "engine/cuda/kernels/window.h"

enum ops_coordinates {
    OPS_HALF_PIXEL,
    OPS_HALF_PIXEL_SYMMETRIC,
    OPS_PYTORCH_HALF_PIXEL,
    OPS_ALIGN_CORNERS,
    OPS_ASYMMETRIC,
    OPS_TF_HALF_PIXEL,
    OPS_CROP
};
enum ops_nearest {
    OPS_NEAREST_PREFER_FLOOR,
    OPS_NEAREST_PREFER_CEIL,
    OPS_NEAREST_FLOOR,
    OPS_NEAREST_CEIL
};
enum ops_resize_mode { OPS_RESIZE_NEAREST, OPS_RESIZE_LINEAR, OPS_RESIZE_CUBIC };

struct ops_resize_axis {
    int32_t            dim; /* of [N,C,depth,height,width] */
    int32_t            in, out, taps, crops;
    struct ops_divisor whole; /* d not 0: output x reads input x / d */
    double             scale, shrink, roi_start, roi_end;
    double             slope, shift; /* blends: output x lies at x * slope + shift */
};
enum { OPS_RESIZE_AXES = 3 };
struct ops_resize {
    struct ops_window      w;       /* its steps alone */
    struct ops_places      units;   /* of up to 8 channels; of one where channels are resized */
    struct ops_places      fours;   /* the same of four columns, with `run` */
    struct ops_places      sources; /* units of the input, with `repeats` */
    int32_t                repeats, times[5]; /* each input stands so often along each dimension */
    int32_t                run, whole;     /* whole: four columns lie side by side in the output */
    int32_t                x_axis, y_axis; /* of a run; y_axis -1: rows stay */
    struct ops_resize_axis axis[OPS_RESIZE_AXES]; /* unused ones: one tap at 0 */
    int32_t                channels, axes, mode, coordinates, nearest, exclude_outside;
    int32_t in_type, out_type, vector, floats; /* floats: else bytes of in_type are copied */
    double  cubic_a, extrapolation;
};
OPS_LAUNCHER(ops_launch_resize);

#endif
