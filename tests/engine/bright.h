/* SPDX-License-Identifier: Apache-2.0 */
/* A network whose numbers leave float16's range with a bright picture alone: noise does not show
 * it. And pictures for it. */
#ifndef SAC_TESTS_ENGINE_BRIGHT_H
#define SAC_TESTS_ENGINE_BRIGHT_H

#include <math.h>
#include <stdio.h>

#include "engine/model/model.h"
#include "tests/engine/proto.h"
#include "tests/test.h"

enum { BRIGHT_SIDE = 32, BRIGHT_OUT = 8, BRIGHT_WIDE = 3 };

/* images [?,3,32,32], as an embedder's: each patch's brightness, and what is above 1 of it times
 * 60000, which is the convolution's -> over; the most of neighbours; most / (most + 1), mean of all
 * patches -> y [?,8]. */
static inline void bright_write(const char *path)
{
    enum { FLOAT32 = 1, SIDE = 8, WEIGHTS = BRIGHT_OUT * 3 * SIDE * SIDE };
    static float weights[WEIGHTS];
    const float  one = 1, much = 60000;
    struct proto graph = {0}, model = {0}, conv = {0}, pool = {0};
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] = 1.0f / (3 * SIDE * SIDE);
    proto_attr_ints(&conv, "kernel_shape", "8 8");
    proto_attr_ints(&conv, "strides", "8 8");
    proto_node(&graph, "Conv", "images w", "mean", &conv);
    proto_node(&graph, "Sub", "mean one", "above", NULL);
    proto_node(&graph, "Relu", "above", "bright", NULL);
    proto_node(&graph, "Mul", "bright much", "over", NULL);
    proto_attr_ints(&pool, "kernel_shape", "2 2"); /* or it were one step, float32 within */
    proto_node(&graph, "MaxPool", "over", "most", &pool);
    proto_node(&graph, "Add", "most one", "under", NULL);
    proto_node(&graph, "Div", "most under", "share", NULL);
    proto_node(&graph, "GlobalAveragePool", "share", "pooled", NULL);
    proto_node(&graph, "Flatten", "pooled", "y", NULL);
    proto_initializer(&graph, "w", FLOAT32, "8 3 8 8", weights, sizeof weights);
    proto_initializer(&graph, "one", FLOAT32, "1", &one, sizeof one);
    proto_initializer(&graph, "much", FLOAT32, "1", &much, sizeof much);
    proto_input(&graph, "images", FLOAT32, "? 3 32 32");
    proto_output(&graph, "y", FLOAT32, "? 8");
    proto_model(&model, &graph, 17);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model.bytes, 1, model.size, f), model.size);
    fclose(f);
    proto_free(&model);
}

/* A grey picture; 255: one that the network can't take in float16. */
static inline void bright_picture(const char *path, int grey)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fprintf(f, "P6\n48 40\n255\n");
    for (int i = 0; i < 48 * 40 * 3; i++)
        fputc(grey, f);
    fclose(f);
}

/* What it gives for a white picture: all of y is 1, but for a hundred-thousandth. */
static inline bool bright_is_right(sac_device *dev, sac_model *m)
{
    const struct sac_tensor_desc desc = {
        .dtype = SAC_F32, .rank = 4, .shape = {1, 3, BRIGHT_SIDE, BRIGHT_SIDE}};
    float       numbers[3 * BRIGHT_SIDE * BRIGHT_SIDE];
    sac_tensor *x = NULL, *y = NULL;
    bool        right = true;
    for (size_t i = 0; i < SAC_COUNT(numbers); i++)
        numbers[i] = 2.4f;
    assert_int_equal(sac_tensor_create(dev, &desc, "test", &x), SAC_OK);
    assert_int_equal(sac_tensor_upload(x, numbers), SAC_OK);
    assert_int_equal(sac_model_run(m, &x, &y), SAC_OK);
    assert_int_equal(sac_tensor_download(y, numbers), SAC_OK);
    for (int i = 0; i < BRIGHT_OUT; i++)
        right &= fabsf(numbers[i] - 1) < 2e-3f;
    sac_tensor_unref(&x);
    sac_tensor_unref(&y);
    return right;
}

#endif
