/* SPDX-License-Identifier: Apache-2.0 */
/* A wave: one frame each of several streams, tracked with one trip to the device that their
 * embeddings and pixels are on. The device's work, camera motion and distances between embeddings,
 * is small, and each trip costs about the same however much it contains.
 *
 *     for each stream that has a frame:           // while sac_wave_fits says so
 *         res = sac_wave_add(wave, trk, &input);  // on failure it is not in the wave
 *     res = sac_wave_run(wave);                   // waits; on failure no member has tracks
 *     for (size_t i = 0; i < sac_wave_count(wave); i++)
 *         sac_wave_finish(wave, i, &view);        // the matching, on the host
 *     sac_wave_settle(wave);
 *     sac_wave_clear(wave);
 *
 * Data in host memory is processed on the host: a wave of such frames never uses the device. */
#ifndef SAC_TRACK_WAVE_H
#define SAC_TRACK_WAVE_H

#include <saccade/track.h>

#include "reid/embeddings.h"
#include "vision/camera.h"

/* Embeddings of a frame's detections. */
struct sac_embedding_rows {
    sac_device            *dev;  /* the device that the rows are on; NULL: the host */
    const float           *base; /* [count,dim], each of length 1; NULL: there are none */
    int                    count, dim;
    const int32_t         *row;   /* [detections], -1: no embedding; NULL: row i is detection i's */
    struct sac_embeddings *batch; /* owner of the rows on a device: one of the two */
    sac_tensor            *tensor;
};

/* A tracker's input of one frame. It is borrowed until the frame's tracks are returned; of
 * embeddings on a device the tracker takes a reference until they are blended into those of its
 * objects. */
struct sac_tracker_input {
    const struct sac_detection *det;
    size_t                      count;
    struct sac_embedding_rows   embeddings;
    const sac_frame            *frame;   /* for camera motion, or NULL */
    struct sac_camera_corners   corners; /* shrink > 0: instead of frame, what was seen in it */
    bool                        keeps_corners; /* of frame, for sac_tracker_corners */
    int64_t                     pts_us;
    bool unseen; /* nobody looked for objects in this frame: tracks go on as predicted, and nothing
                    is said about them; det, embeddings and frame are none */
};

struct sac_wave;
/* Destroy it before the device. */
sac_result sac_wave_create(sac_device *dev, struct sac_wave **out);
void       sac_wave_destroy(struct sac_wave **wave);

/* Allocates the device resources of trips before the first one. */
sac_result sac_wave_warm_up(struct sac_wave *wave);
/* Also what trips with this tracker need, once it was prepared. */
sac_result sac_wave_prepare(struct sac_wave *wave, const sac_tracker *trk);

/* Does one more frame fit the memory reserved for a trip? If not, run the wave first. A single
 * frame always fits; more memory is allocated when needed. */
bool sac_wave_fits(const struct sac_wave *wave, const sac_tracker *trk,
                   const struct sac_tracker_input *in);
/* At most one frame of each tracker. Errors as sac_tracker_update; SAC_ERR_ARG for embeddings or a
 * frame on another device. The tracker is then unchanged. */
sac_result sac_wave_add(struct sac_wave *wave, sac_tracker *trk,
                        const struct sac_tracker_input *in);
/* Errors   SAC_ERR_DEVICE, SAC_ERR_MEMORY, ...: the wave is empty then, and its members' appearance
 * and camera motion on the device are reset. */
sac_result sac_wave_run(struct sac_wave *wave);
/* sac_wave_measure times trips from now on, by the device's clock; sac_wave_device_ns returns the
 * latest run's time, 0 when it made no trip or trips are not timed; *begun_ns: its start on the
 * host's clock. */
void    sac_wave_measure(struct sac_wave *wave);
int64_t sac_wave_device_ns(const struct sac_wave *wave, int64_t *begun_ns);
size_t  sac_wave_count(const struct sac_wave *wave);
/* Of a wave that has run: what a member takes from pixels in host memory. Members may be looked at
 * by several threads; finish does it for those that were not. */
void sac_wave_look(struct sac_wave *wave, size_t member);
void sac_wave_finish(struct sac_wave *wave, size_t member, struct sac_track_view *out);
void sac_wave_clear(struct sac_wave *wave);
/* Call it once all members are finished: blends their embeddings into those of their objects now,
 * instead of with each one's next frame. The wave keeps a reference to their embeddings until the
 * device has done so: until the next trip ends, or sac_wave_rest, which waits for it. Members must
 * not be destroyed before that. */
void sac_wave_settle(struct sac_wave *wave);
void sac_wave_rest(struct sac_wave *wave);

/* Reserves memory for track_max objects, or as many as fit a few megabytes, and for camera motion,
 * so that frames allocate none. embedding_dev: where embeddings are; NULL: the host, or no
 * embeddings. like: a frame's size, format and device; NULL: frames have no pixels. */
sac_result sac_tracker_prepare(sac_tracker *trk, sac_device *embedding_dev, const sac_frame *like);

/* What the frame tracked last was with keeps_corners; none where a device found its motion. Valid
 * until the tracker's next frame. */
struct sac_camera_corners sac_tracker_corners(const sac_tracker *trk);

/* Tracks one frame of one tracker; on a device it uses a wave of its own. */
sac_result sac_tracker_track(sac_tracker *trk, const struct sac_tracker_input *in,
                             struct sac_track_view *out);

#endif
