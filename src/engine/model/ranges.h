/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen of a network's numbers in float32, and what that means for FP16 (ranges.c). */
#ifndef SAC_ENGINE_MODEL_RANGES_H
#define SAC_ENGINE_MODEL_RANGES_H

#include "engine/model/model.h"

/* Of one value. */
struct sac_range {
    float   most;         /* the largest magnitude */
    int     sample;       /* of the calibration data, in which that was seen; -1: noise */
    int64_t some, little; /* numbers that are not 0; of them those below the least normal one */
    float   rounded;      /* the most that rounding it changes it, as a share of its largest; */
    float   lost;         /* and the results of a step, as a share of theirs */
    bool    leaves;       /* it must be kept in float32 */
    bool    weights;      /* because float16 does not hold those that it is a product with */
};
/* What rounding a value may change results by: a third of what a whole network may differ by. */
#define SAC_LOST 0.01f
/* watch.c: adds numbers of it to what was seen. */
void sac_range_look(struct sac_range *r, const float *numbers, int64_t count, int sample);

/* ranges.c: it is small throughout. Where such numbers are only added or multiplied, they lose no
 * more than what is beside them. */
bool sac_range_is_small(const struct sac_range *r);
/* weight_range.c: does float16 not hold the weights of the product n, so that its result would be
 * another? ranges: by value id; whoever was not seen is taken for large. */
bool sac_weights_leave(const struct sac_node *n, const struct sac_value *result,
                       const struct sac_range *ranges);

/* watch.c: a model's graph on the CPU in float32, run again and again. */
struct sac_watch {
    sac_model         *model;
    struct sac_range  *ranges; /* [id_count], by value id; the caller's */
    int                sample; /* of the run under way */
    sac_device        *cpu;
    struct sac_plan   *plan;
    struct sac_buffer *activations;
    sac_tensor       **tensors; /* [inputs and outputs] of the run under way */
    /* rounding.c */
    void                *room;
    size_t               room_bytes;
    struct sac_rounding *roundings; /* of the run under way, as its steps follow each other */
    int                  rounding_count, rounding_room;
};

/* A plan for these shapes. sac_watch_close accepts what failed. */
sac_result sac_watch_open(struct sac_watch *w, sac_model *model, const struct sac_operand *shapes,
                          struct sac_range *ranges);
void       sac_watch_close(struct sac_watch *w);
/* Adds to the ranges what the values are with such inputs, [inputs], which may be of any device
 * that is the CPU. sample: what ranges are to say of where they were seen. */
sac_result sac_watch_run(struct sac_watch *w, sac_tensor *const *in, int sample);

/* rounding.c: adds to the ranges of a step's inputs what rounding them changes; after it has run,
 * with its inputs and outputs in place. */
void sac_watch_round(struct sac_watch *w, struct sac_plan *plan, const struct sac_step *step);
/* After a run: adds what becomes of rounding errors in the steps behind. */
void sac_watch_trace(struct sac_watch *w);

/* Calibration data that was seen, as the book keeps it. */
struct sac_calibrated {
    const char        *name;  /* of the data */
    int                count; /* samples */
    float              low, high;
    const char *const *samples; /* [count] their names */
};
/* ranges.c: with what calibration data showed, the steps are known, and the book keeps that.
 * False: no memory. */
bool sac_model_take_ranges(sac_model *model, struct sac_range *ranges,
                           const struct sac_calibrated *seen);
/* For inspection, in any precision: names the steps that a calibrated plan keeps in float32. */
void sac_model_list_ranges(sac_model *model);

#endif
