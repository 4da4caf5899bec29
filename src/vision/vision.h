/* SPDX-License-Identifier: Apache-2.0 */
/* What computes on pictures and boxes: from frames to a network's input, from one format into
 * another, drawing, from a detector's output to boxes, from a map to mattes, composites,
 * embeddings, camera motion. One constant table per device, which dev->ops->vision points to.
 * Arguments are checked once, by the functions here and in the entries' headers, so each device may
 * trust its input.
 *
 * The arithmetic stands in headers that the host and the CUDA kernels share (sample.h, paint.h,
 * detect.h, appearance.h, camera.h, matte.h, instances.h, facets.h, scales.h, composite.h,
 * difference.h): all devices compute by it, and the results are equal to the last bit. The CPU's
 * table (cpu/) is the plain reference for all the others. */
#ifndef SAC_VISION_VISION_H
#define SAC_VISION_VISION_H

#include <saccade/image.h>

#include "device/device.h"

struct sac_camera_job;
struct sac_camera_move;
struct sac_camera_pyramid;
struct sac_detect_spec;
struct sac_facet_job;
struct sac_facet_maps;
struct sac_appearance_job;
struct sac_composite_job;
struct sac_difference_job;
struct sac_instances_spec;
struct sac_instances_sums;
struct sac_matte_job;
struct sac_matte_spec;
struct sac_matte_style;
struct sac_picture_job;
struct sac_scale_maps;

/* NULL stream: the device's own. Entries queue work and return. */
struct sac_vision_ops {
    /* Frames of a device with host_memory are upright; the others read through the orientation.
     * What is written to is upright everywhere. */
    sac_result (*preprocess)(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_preprocess     *pre,
                             const struct sac_preprocess_job *jobs, int n, void *dst);
    sac_result (*convert)(struct sac_device *dev, struct sac_device_stream *stream,
                          const sac_frame *src, enum sac_filter filter, sac_frame *dst);
    sac_result (*draw)(struct sac_device *dev, struct sac_device_stream *stream, sac_frame *frame,
                       const struct sac_shape *shapes, int n);
    /* See detect.h. */
    sac_result (*detect)(struct sac_device *dev, struct sac_device_stream *stream,
                         const struct sac_detect_spec *spec, const void *const *tensors,
                         const struct sac_fit_map *maps, int n, void *out);
    /* See embed.h. */
    sac_result (*normalise)(struct sac_device *dev, struct sac_device_stream *stream,
                            const void *in, enum sac_dtype dtype, int rows, int dim, float *out);
    /* See appearance.h. */
    sac_result (*appearance)(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_appearance_job *job);
    /* See camera.h; jobs in host memory, out [n] in the device's. NULL: none. */
    sac_result (*camera)(struct sac_device *dev, struct sac_device_stream *stream,
                         const struct sac_camera_job *jobs, int n, struct sac_camera_move *out);
    /* Memory for what is sent with many frames at once and, unless like is NULL, for the camera
     * motion of frames of such a size, so that the first ones find it. NULL: it needs none. */
    sac_result (*reserve)(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_camera_pyramid *like);
    /* See matte.h; jobs in host memory. NULL: the device makes no mattes. */
    sac_result (*matte)(struct sac_device *dev, struct sac_device_stream *stream,
                        const struct sac_matte_spec *spec, const struct sac_matte_style *style,
                        const void *const *tensors, const struct sac_matte_job *jobs, int n);
    /* See instances.h; found, out in device memory; sums may be NULL. NULL: none. */
    sac_result (*instances)(struct sac_device *dev, struct sac_device_stream *stream,
                            const struct sac_instances_spec *spec, const void *const *tensors,
                            const void *found, int n, float *out,
                            const struct sac_instances_sums *sums);
    /* See composite.h. NULL with matte. */
    sac_result (*composite)(struct sac_device *dev, struct sac_device_stream *stream,
                            const struct sac_composite_job *job);
    /* See difference.h; jobs in host memory, sums [n] in the device's. NULL: none. */
    sac_result (*difference)(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_difference_job *jobs, int n, uint32_t *sums);
    /* See facets.h; jobs in host memory. NULL, all three: none. */
    sac_result (*facets)(struct sac_device *dev, struct sac_device_stream *stream,
                         const struct sac_facet_job *jobs, int n);
    sac_result (*facet_shares)(struct sac_device *dev, struct sac_device_stream *stream,
                               const struct sac_matte_spec *net, const void *const *tensors, int n,
                               int16_t *out);
    sac_result (*facet_maps)(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_facet_maps *maps, const int16_t *shares, int n,
                             float *out);
    /* See scales.h; needs facet_shares too. NULL: none. */
    sac_result (*scale_maps)(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_scale_maps *maps, const int16_t *shares, int n,
                             float *out);
    /* See picture.h; the job is in host memory. NULL: none. */
    sac_result (*picture)(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_picture_job *job);
};

/* Of struct sac_vision_ops: plug-ins of another build have another table (device/devices.c). */
extern const uint32_t sac_vision_ops_size;

/* The public functions of saccade/image.h on a stream. The tensor is the caller's to keep until its
 * work is done; a conversion is counted under the reason. */
sac_result sac_preprocess_run_on(sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_preprocess     *pre,
                                 const struct sac_preprocess_job *jobs, int n, sac_tensor *dst);
sac_result sac_frame_convert_on(struct sac_device_stream *stream, const sac_frame *src,
                                enum sac_filter filter, sac_frame *dst, enum sac_copy_reason reason,
                                const char *what);
/* The same for a step of a computation, whose result is no copy of the frame: the ledger does not
 * count it. The caller has checked both frames, which may be parts of others. */
sac_result sac_frame_rescale_on(struct sac_device_stream *stream, const sac_frame *src,
                                enum sac_filter filter, sac_frame *dst);
/* frame out of focus, into out: as large, on the same device, of any format, writable, not the
 * frame itself. A point becomes a soft blot about as wide as twice the radius, in pixels; 0 and 1
 * leave the picture as it is. Not counted as a copy. Errors   SAC_ERR_ARG; SAC_ERR_MEMORY. */
sac_result sac_frame_blur_on(struct sac_device_stream *stream, const sac_frame *frame, int radius,
                             sac_frame *out);
sac_result sac_frame_draw_on(struct sac_device_stream *stream, sac_frame *frame,
                             const struct sac_shape *shapes, int n);

#endif
