/* SPDX-License-Identifier: Apache-2.0 */
/* A wave: one frame each of several streams, tracked with one trip to the device that their embeddings and
 * pixels are on. What a device is asked for, camera motion and distances between looks, is small, and each
 * trip costs the same however much it asks for.
 *
 *     for each stream that has a frame:               // while sac_wave_fits says so
 *         res = sac_wave_add(wave, trk, &input);  // on failure it is not in the wave
 *     res = sac_wave_run(wave);                   // waits for the device; on failure no member has tracks
 *     for (size_t i = 0; i < sac_wave_count(wave); i++)
 *         sac_wave_finish(wave, i, &view);        // the matching, on the host
 *     sac_wave_settle(wave);
 *     sac_wave_clear(wave);
 *
 * What is in host memory is done on the host: a wave of such frames never touches the device. */
#ifndef SAC_TRACK_WAVE_H
#define SAC_TRACK_WAVE_H

#include <saccade/track.h>

#include "reid/features.h"

/* Embeddings of a frame's detections. */
struct sac_look_rows {
    sac_device          *dev;   /* whose memory it is; NULL: the host's */
    const float         *base;  /* [count,dim], each of length 1; NULL: there are none */
    int                  count, dim;
    const int32_t       *row;   /* [detections], -1: none of this one; NULL: row i is detection i's */
    struct sac_features *features; /* what holds the rows on a device: one of the two */
    sac_tensor          *tensor;
};

/* What a tracker is given of one frame; borrowed until its tracks are out, but looks on a device, of which
 * the tracker takes a reference until they are blended into those of its objects. */
struct sac_tracker_input {
    const struct sac_detection *det;
    size_t                      count;
    struct sac_look_rows        looks;
    const sac_frame            *frame; /* for camera motion, or NULL */
    int64_t                     pts_us;
};

struct sac_wave;
/* Destroy it before the device. */
sac_result sac_wave_create(sac_device *dev, struct sac_wave **out);
void       sac_wave_destroy(struct sac_wave **wave);

/* What trips need of the device, taken before the first one. */
sac_result sac_wave_warm_up(struct sac_wave *wave);

/* Whether one more frame goes into what was taken for a trip: if not, run the wave first. One alone always goes,
 * and takes more when it must. */
bool       sac_wave_fits(const struct sac_wave *wave, const sac_tracker *trk, const struct sac_tracker_input *in);
/* At most one frame of each tracker. Errors as sac_tracker_update; SAC_ERR_ARG for looks or a frame on
 * another device. The tracker is then unchanged. */
sac_result sac_wave_add(struct sac_wave *wave, sac_tracker *trk, const struct sac_tracker_input *in);
/* Errors   SAC_ERR_DEVICE, SAC_ERR_MEMORY, ...: the wave is empty then, and the looks and the camera of its
 *          members that were on the device start anew. */
sac_result sac_wave_run(struct sac_wave *wave);
/* Measure trips from now on, by the device's own clock. Returns the latest run's time, 0 when it took none or
 * nobody measures; *begun_ns: when that began, on the host's clock. */
void       sac_wave_measure(struct sac_wave *wave);
int64_t    sac_wave_device_ns(const struct sac_wave *wave, int64_t *begun_ns);
size_t     sac_wave_count(const struct sac_wave *wave);
void       sac_wave_finish(struct sac_wave *wave, size_t member, struct sac_track_view *out);
void       sac_wave_clear(struct sac_wave *wave);
/* Once all members are finished: have their looks blended into those of their objects now, and not with each
 * one's next frame. The wave holds their embeddings until the device has done it: until the next trip is over,
 * or sac_wave_rest, which waits for it. A member is destroyed after that. */
void       sac_wave_settle(struct sac_wave *wave);
void       sac_wave_rest(struct sac_wave *wave);

/* Memory for track_max objects, or as many as go into a few megabytes, and for the camera's motion, so that
 * frames take none. looks: where embeddings will be; NULL: the host, or there are none. like: a frame's size,
 * format and device; NULL: frames have no pixels. */
sac_result sac_tracker_prepare(sac_tracker *trk, sac_device *looks, const sac_frame *like);

/* One frame of one tracker; a device is reached by a wave of its own. */
sac_result sac_tracker_track(sac_tracker *trk, const struct sac_tracker_input *in,
                             struct sac_track_view *out);

#endif
