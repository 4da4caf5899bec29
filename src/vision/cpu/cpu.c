/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/cpu/cpu.h"

const struct sac_vision_ops sac_vision_cpu = {
    .preprocess = sac_cpu_preprocess,
    .convert = sac_cpu_convert,
    .draw = sac_cpu_draw,
    .detect = sac_cpu_detect,
    .normalise = sac_cpu_normalise,
    .picture = sac_cpu_picture,
    .appearance = sac_cpu_appearance,
    .camera = sac_cpu_camera,
    .matte = sac_cpu_matte,
    .instances = sac_cpu_instances,
    .composite = sac_cpu_composite,
    .difference = sac_cpu_difference,
    .facets = sac_cpu_facets,
    .facet_shares = sac_cpu_facet_shares,
    .facet_maps = sac_cpu_facet_maps,
    .scale_maps = sac_cpu_scale_maps,
};
