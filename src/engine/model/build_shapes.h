/* SPDX-License-Identifier: Apache-2.0 */
/* Which shapes `saccade build` plans: each batch size of a range with each size of images and of
 * what else inputs leave open. */
#ifndef SAC_ENGINE_MODEL_BUILD_SHAPES_H
#define SAC_ENGINE_MODEL_BUILD_SHAPES_H

#include "engine/model/model.h"

enum { SAC_BUILD_BATCHES_MAX = 32, SAC_BUILD_SIZES_MAX = 3, SAC_BUILD_SHAPES_TEXT = 512 };

enum sac_build_point { SAC_BUILD_LEAST, SAC_BUILD_USUAL, SAC_BUILD_GREATEST };
struct sac_build_size {
    int                  width, height; /* 0: as the model has it */
    enum sac_build_point point;         /* of the shapes that are given */
};

struct sac_build_shapes {
    int                   batches[SAC_BUILD_BATCHES_MAX], batch_count; /* the smallest first */
    struct sac_build_size sizes[SAC_BUILD_SIZES_MAX];                  /* the least first */
    int                   size_count;
    const struct sac_build_shape *given; /* [given_count], the caller's */
    int64_t                       given_count;
};

/* Errors   SAC_ERR_ARG: a range that is upside down. */
sac_result sac_build_shapes_choose(sac_context *ctx, const struct sac_build_params *params,
                                   struct sac_build_shapes *out);
/* Input i of the model. Errors: SAC_ERR_ARG where a size stays open. */
sac_result sac_build_input(const sac_model *model, const struct sac_build_shapes *shapes, int i,
                           int batch, struct sac_build_size size, struct sac_tensor_desc *out);
/* Does the model take sizes and shapes, as far as its layers' shapes tell? Nothing runs. Where one
 * side is given the other becomes the file's. */
sac_result sac_build_shapes_check(sac_model *model, struct sac_build_shapes *shapes);
/* "tokens [8,77]": the shapes that are given, with this batch. */
void sac_build_shapes_print(const sac_model *model, const struct sac_build_shapes *shapes,
                            int batch, struct sac_build_size size, char *out, size_t bytes);
/* Has the model's book say the range, where there is more than one shape. */
sac_result sac_build_note_range(sac_model *model, const struct sac_build_shapes *shapes);

#endif
