/* SPDX-License-Identifier: Apache-2.0 */
/* A network as linear attention has it: numbers in the millions on the way to a quotient of about
 * 1, which FP16 alone can't do. */
#ifndef SAC_TESTS_ENGINE_RATIO_H
#define SAC_TESTS_ENGINE_RATIO_H

#include <math.h>

#include "engine/model/model.h"
#include "tests/engine/proto.h"
#include "tests/test.h"

/* x [1,8,256] times the constant -> k; (k k') k -> over; over / (over + k) -> Tanh -> y [1,8,256].
 */
static inline void ratio_write(struct proto *model, float constant)
{
    enum { FLOAT32 = 1 };
    struct proto graph = {0}, attrs = {0};
    proto_attr_ints(&attrs, "perm", "0 2 1");
    proto_node(&graph, "Mul", "x c", "k", NULL);
    proto_node(&graph, "Transpose", "k", "t", &attrs);
    proto_node(&graph, "MatMul", "k t", "sums", NULL);
    proto_node(&graph, "MatMul", "sums k", "over", NULL);
    proto_node(&graph, "Add", "over k", "under", NULL);
    proto_node(&graph, "Div", "over under", "share", NULL);
    proto_node(&graph, "Tanh", "share", "y", NULL);
    proto_initializer(&graph, "c", FLOAT32, "1", &constant, sizeof constant);
    proto_input(&graph, "x", FLOAT32, "1 8 256");
    proto_output(&graph, "y", FLOAT32, "1 8 256");
    proto_model(model, &graph, 17);
}

/* In FP16. watched: nobody looks at its ranges. */
static inline sac_model *ratio_load(sac_device *dev, float constant, bool watched)
{
    static struct proto     model; /* borrowed by the model */
    struct sac_model_params params = sac_model_params_default();
    sac_model              *m = NULL;
    params.precision = SAC_PRECISION_FP16;
    params.tune = 0;
    proto_free(&model);
    ratio_write(&model, constant);
    setenv("SACCADE_WITHOUT", "chain", 1); /* whose numbers between are float32 anyway */
    if (sac_model_load_memory(dev, model.bytes, model.size, "ratio", &params, &m) != SAC_OK)
        fail_msg("the network of ratios can't be loaded");
    unsetenv("SACCADE_WITHOUT");
    m->watched = watched;
    return m;
}

/* All between 1 and 2. */
static inline sac_tensor *ratio_input(sac_device *dev)
{
    const struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 3, .shape = {1, 8, 256}};
    float                        numbers[8 * 256];
    sac_tensor                  *t = NULL;
    for (size_t i = 0; i < SAC_COUNT(numbers); i++)
        numbers[i] = 1 + (float)(i % 97) / 97;
    assert_int_equal(sac_tensor_create(dev, &desc, "test", &t), SAC_OK);
    assert_int_equal(sac_tensor_upload(t, numbers), SAC_OK);
    return t;
}

/* Where the constant is large, over / (over + k) is 1 but for a thousandth. */
static inline bool ratio_is_right(const sac_tensor *y)
{
    float numbers[8 * 256];
    bool  right = true;
    assert_int_equal(sac_tensor_download(y, numbers), SAC_OK);
    for (size_t i = 0; i < SAC_COUNT(numbers); i++)
        right &= fabsf(numbers[i] - tanhf(1)) < 5e-3f;
    return right;
}

#endif
