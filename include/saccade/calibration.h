/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration data: what a network will see, shown to it while its plan is made. A network whose
 * numbers are small with noise may have large ones with a real picture; in FP16 they would become
 * infinite. So the pictures are prepared as the network's contract says, run through it in float32
 * on the CPU, and what leaves the range of float16 stays in float32. The plan keeps that.
 *
 *     sac_calibration *cal = NULL;
 *     sac_result       res = sac_calibration_open(ctx, "pictures/", NULL, &cal);
 *     struct sac_build_params params = sac_build_params_default();
 *     params.calibration = cal;
 *     res = sac_model_build(dev, "net.onnx", &params, "net.plan", NULL, NULL);
 *     sac_calibration_close(&cal);
 */
#ifndef SACCADE_CALIBRATION_H
#define SACCADE_CALIBRATION_H

#include <stdint.h>
#include <saccade/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_calibration sac_calibration;

struct sac_calibration_params {
    int         sample_max;  /* pictures that are shown, spread over all; 1 to 10000, default 64 */
    const char *head;        /* whose preprocessing: as of sac_detector_params; NULL: recognised */
    const char *preprocess;  /* NULL, or overrides of the contract, as of sac_detector_params */
    uint64_t    reserved[4]; /* 0 */
};
SAC_API struct sac_calibration_params sac_calibration_params_default(void);

/* Open a folder of pictures, a video, or another input of sac_source_open that can be read twice.
 * A network for parts of pictures, as for ReID, wants pictures of such parts. Of a recurrent
 * network each picture is the first one.
 *
 * params   NULL: the defaults.
 * out      owned by the caller, closed with sac_calibration_close.
 * Threads  one call at a time.
 * Errors   SAC_ERR_ARG for a camera, a pipe or other numbers; those of sac_source_open: SAC_ERR_IO
 *          (missing), SAC_ERR_FORMAT (no picture in it); SAC_ERR_MEMORY. */
SAC_API sac_result sac_calibration_open(sac_context *ctx, const char *url,
                                        const struct sac_calibration_params *params,
                                        sac_calibration                    **out);
SAC_API void       sac_calibration_close(sac_calibration **cal);

#ifdef __cplusplus
}
#endif
#endif
