/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of the CPU's vision table. Rows of pixels are the unit of work: resample.h brings a
 * frame's rows to another size, rows.h has their kernels in plain C, AVX2 and AVX-512. */
#ifndef SAC_VISION_CPU_CPU_H
#define SAC_VISION_CPU_CPU_H

#include "vision/vision.h"

extern const struct sac_vision_ops sac_vision_cpu;

sac_result sac_cpu_preprocess(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_preprocess     *pre,
                              const struct sac_preprocess_job *jobs, int n, void *dst);
sac_result sac_cpu_convert(struct sac_device *dev, struct sac_device_stream *stream,
                           const sac_frame *src, enum sac_filter filter, sac_frame *dst);
sac_result sac_cpu_draw(struct sac_device *dev, struct sac_device_stream *stream, sac_frame *frame,
                        const struct sac_shape *shapes, int n);
sac_result sac_cpu_detect(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_detect_spec *spec, const void *const *tensors,
                          const struct sac_fit_map *maps, int n, void *out);
sac_result sac_cpu_normalise(struct sac_device *dev, struct sac_device_stream *stream,
                             const void *in, enum sac_dtype dtype, int rows, int dim, float *out);
sac_result sac_cpu_appearance(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_appearance_job *job);
sac_result sac_cpu_camera(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_camera_job *jobs, int n, struct sac_camera_move *out);
sac_result sac_cpu_matte(struct sac_device *dev, struct sac_device_stream *stream,
                         const struct sac_matte_spec *spec, const struct sac_matte_style *style,
                         const void *const *tensors, const struct sac_matte_job *jobs, int n);
sac_result sac_cpu_instances(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_instances_spec *spec, const void *const *tensors,
                             const void *found, int n, float *out,
                             const struct sac_instances_sums *sums);
sac_result sac_cpu_composite(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_composite_job *job);
sac_result sac_cpu_difference(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_difference_job *jobs, int n, uint32_t *sums);
sac_result sac_cpu_facets(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_facet_job *jobs, int n);
sac_result sac_cpu_facet_shares(struct sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_matte_spec *net, const void *const *tensors, int n,
                                int16_t *out);
sac_result sac_cpu_facet_maps(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_facet_maps *maps, const int16_t *shares, int n,
                              float *out);
sac_result sac_cpu_picture(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_picture_job *job);
sac_result sac_cpu_scale_maps(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_scale_maps *maps, const int16_t *shares, int n,
                              float *out);

#endif
