/* SPDX-License-Identifier: Apache-2.0 */
/* A detector on tensors: as frames, or as its network's input. */
#include "heads/detector.h"
#include "vision/fit.h"

static sac_result check_prepared(const struct sac_detector *det, const sac_tensor *t)
{
    const struct sac_tensor_desc input = sac_preprocess_desc(&det->contract.pre, -1);
    struct sac_tensor_spec       want = {.device = det->dev, .dtype = input.dtype, .rank = 4};
    for (int i = 0; i < 4; i++)
        want.shape[i] = input.shape[i];
    return sac_tensor_check(det->dev->ctx, sac_model_path(det->model), t, &want);
}

static sac_result run_prepared(struct sac_detector *det, sac_tensor *t,
                               struct sac_detections *found)
{
    sac_result res = check_prepared(det, t);
    if (res != SAC_OK)
        return res;
    const int64_t n = sac_tensor_describe(t)->shape[0];
    for (int64_t i = 0, batch; i < n && res == SAC_OK; i += batch) {
        batch = SAC_MIN(n - i, det->batch);
        res = sac_detector_finish_run(det, sac_detector_begin_given(det, 0, t, i, (int)batch),
                                      found + i);
    }
    return res;
}

static sac_result run_batch(struct sac_detector *det, sac_tensor *t,
                            const struct sac_picture_params *params, int64_t first, int64_t n,
                            sac_frame **frames, struct sac_detections *found)
{
    sac_result res = SAC_OK;
    for (int64_t i = 0; i < n && res == SAC_OK; i++)
        res = sac_frame_from_tensor(t, first + i, params, &frames[i]);
    if (res == SAC_OK)
        res = sac_detector_finish_run(det, sac_detector_begin(det, 0, frames, NULL, (int)n), found);
    for (int64_t i = 0; i < n; i++)
        sac_frame_unref(&frames[i]);
    return res;
}

static sac_result run_pictures(struct sac_detector *det, sac_tensor *t,
                               const struct sac_picture_params *params,
                               struct sac_detections           *found)
{
    /* What is no picture has one that fails, with its sentence. */
    const int64_t n = SAC_MAX(sac_picture_count(t, params), 1);
    sac_frame   **frames = sac_calloc((size_t)det->batch, sizeof(sac_frame *));
    sac_result    res =
        frames ? SAC_OK
                  : SAC_FAIL(det->dev->ctx, SAC_ERR_MEMORY, "no memory for %d frames", det->batch);
    for (int64_t i = 0, batch; i < n && res == SAC_OK; i += batch) {
        batch = SAC_MIN(n - i, det->batch);
        res = run_batch(det, t, params, i, batch, frames, found + i);
    }
    sac_free(frames);
    return res;
}

sac_result sac_detector_run_tensor(sac_detector *det, sac_tensor *t,
                                   const struct sac_picture_params *params,
                                   struct sac_detections           *found)
{
    SAC_NEEDS(det ? det->dev->ctx : NULL, det);
    SAC_NEEDS(det->dev->ctx, t);
    SAC_NEEDS(det->dev->ctx, found);
    SAC_NEEDS_NO_LATER_FIELD(det->dev->ctx, params, "picture parameters");
    det->times = (struct sac_run_times){.begun_ns = sac_time_ns()};
    return params && params->prepared ? run_prepared(det, t, found)
                                      : run_pictures(det, t, params, found);
}
