/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/cuda/cuda.h"

const struct sac_vision_ops cuda_vision = {
    .preprocess = cuda_preprocess,
    .convert = cuda_convert,
    .draw = cuda_draw,
    .detect = cuda_detect,
    .normalise = cuda_normalise,
    .picture = cuda_picture,
    .appearance = cuda_appearance,
    .camera = cuda_camera,
    .reserve = cuda_reserve,
    .instances = cuda_instances,
    .matte = cuda_matte,
    .difference = cuda_difference,
    .facets = cuda_facets,
    .facet_shares = cuda_facet_shares,
    .facet_maps = cuda_facet_maps,
    .scale_maps = cuda_scale_maps,
    .composite = cuda_composite,
};
