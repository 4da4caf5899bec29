/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration data as the engine sees it: inputs of a network, one after the other. Pictures are
 * made to inputs above the engine (heads/calibration.c), so each kind is a row of functions.
 *
 *     res = cal->ops->prepare(cal, model);
 *     while (res == SAC_OK && !last)
 *         res = sac_calibration_gather(cal, model, desc, numbers, &samples, &last);
 */
#ifndef SAC_ENGINE_MODEL_CALIBRATION_H
#define SAC_ENGINE_MODEL_CALIBRATION_H

#include "engine/model/model.h"

/* What results came to, in the terms of what the network is for. */
struct sac_verdict {
    enum sac_quality measured;
    double           quality; /* 0 to 1, which is what float32 has */
};

struct sac_calibration_ops {
    /* Learns how the model's inputs are made, and sets low and high. The model outlives the use.
     * Errors   SAC_ERR_UNSUPPORTED: not from such data. */
    sac_result (*prepare)(sac_calibration *cal, const sac_model *model);
    /* The next one is the first again. */
    sac_result (*rewind)(sac_calibration *cal);
    /* in [inputs]: new references on a CPU device, a batch of 1, of sizes as in desc [inputs]. Sets
     * sample. SAC_EOS: there are no more. */
    sac_result (*next)(sac_calibration *cal, const struct sac_tensor_desc *desc, sac_tensor **in);
    /* The path of file i of those it reads; NULL past the last one. */
    const char *(*file)(const sac_calibration *cal, size_t i);
    void (*close)(sac_calibration *cal);
    /* Of one sample: want, what float32 made of it, and got, [outputs] in the model's order, float
     * or whole numbers on a CPU device. NULL: it does not know what outputs mean. */
    sac_result (*compare)(sac_calibration *cal, int outputs, sac_tensor *const *want,
                          sac_tensor *const *got);
    /* Of all that was compared since the last verdict. */
    struct sac_verdict (*verdict)(sac_calibration *cal);
};

struct sac_calibration {
    const struct sac_calibration_ops *ops;
    char                             *name;        /* of the data, for people */
    char                              sample[320]; /* of the latest sample, for people */
    float                             low, high;   /* of the picture's numbers; 0 0: not known */
};

/* Fills numbers [inputs], of these descs, with the next samples, as many as they hold; after the
 * last one it goes on with the first.
 * samples  how many of them came before the data's end; 0: none, and nothing is filled.
 * last     the data has ended.
 * Errors   those of next; SAC_ERR_FORMAT: they do not fit. */
sac_result sac_calibration_gather(sac_calibration *cal, const sac_model *model,
                                  const struct sac_tensor_desc *desc, void *const *numbers,
                                  int *samples, bool *last);
/* Shows the data to the model, in float32 on the CPU, and says which steps FP16 is too narrow for,
 * with a batch as in desc [inputs].
 * worst    the first sample of the run in which the largest number was seen. */
sac_result sac_model_calibrate(sac_model *model, sac_calibration *cal,
                               const struct sac_tensor_desc *desc, int *worst);

#endif
