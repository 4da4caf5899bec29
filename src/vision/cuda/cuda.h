/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of the CUDA device's vision table. Each is a C file that turns the caller's lists
 * into a kernel's parameters (launch.h), and a .cu file of the same name with kernel and launcher.
 */
#ifndef SAC_VISION_CUDA_CUDA_H
#define SAC_VISION_CUDA_CUDA_H

#include "device/cuda/common.h"
#include "vision/cuda/launch.h"
#include "vision/vision.h"

extern const struct sac_vision_ops cuda_vision;

/* SAC_ERR_UNSUPPORTED, with a sentence, for planes that the kernels cannot read. */
sac_result cuda_surface_of(struct sac_device *dev, const sac_frame *frame, struct sac_surface *out);

sac_result cuda_preprocess(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_preprocess *pre, const struct sac_preprocess_job *jobs,
                           int n, void *dst);
sac_result cuda_convert(struct sac_device *dev, struct sac_device_stream *stream,
                        const sac_frame *src, enum sac_filter filter, sac_frame *dst);
sac_result cuda_draw(struct sac_device *dev, struct sac_device_stream *stream, sac_frame *frame,
                     const struct sac_shape *shapes, int n);
sac_result cuda_detect(struct sac_device *dev, struct sac_device_stream *stream,
                       const struct sac_detect_spec *spec, const void *const *tensors,
                       const struct sac_fit_map *maps, int n, void *out);
sac_result cuda_normalise(struct sac_device *dev, struct sac_device_stream *stream, const void *in,
                          enum sac_dtype dtype, int rows, int dim, float *out);
sac_result cuda_picture(struct sac_device *dev, struct sac_device_stream *stream,
                        const struct sac_picture_job *job);
sac_result cuda_appearance(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_appearance_job *job);
sac_result cuda_camera(struct sac_device *dev, struct sac_device_stream *stream,
                       const struct sac_camera_job *jobs, int n, struct sac_camera_move *out);
sac_result cuda_composite(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_composite_job *job);
sac_result cuda_instances(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_instances_spec *spec, const void *const *tensors,
                          const void *found, int n, float *out,
                          const struct sac_instances_sums *sums);
sac_result cuda_matte(struct sac_device *dev, struct sac_device_stream *stream,
                      const struct sac_matte_spec *spec, const struct sac_matte_style *style,
                      const void *const *tensors, const struct sac_matte_job *jobs, int n);
sac_result cuda_reserve(struct sac_device *dev, struct sac_device_stream *stream,
                        const struct sac_camera_pyramid *like);
sac_result cuda_difference(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_difference_job *jobs, int n, uint32_t *sums);
sac_result cuda_facets(struct sac_device *dev, struct sac_device_stream *stream,
                       const struct sac_facet_job *jobs, int n);
sac_result cuda_facet_shares(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_matte_spec *net, const void *const *tensors, int n,
                             int16_t *out);
sac_result cuda_facet_maps(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_facet_maps *maps, const int16_t *shares, int n,
                           float *out);
sac_result cuda_scale_maps(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_scale_maps *maps, const int16_t *shares, int n,
                           float *out);

#endif
