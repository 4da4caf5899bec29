/* SPDX-License-Identifier: Apache-2.0 */
/* A network that leaves batch and size open: x [?,3,?,?] -> y [?,pixels,16], with a matrix product
 * behind its convolutions. Sides must be multiples of 4. With a batch of 1 two of its steps are
 * views, so that the others have other numbers. */
#ifndef SAC_TESTS_ENGINE_OPEN_SIZE_H
#define SAC_TESTS_ENGINE_OPEN_SIZE_H

#include "tests/engine/proto.h"
#include "tests/test.h"

/* The transposed convolution is one more, and a move. */
enum { OPEN_SIZE_CHANNELS = 32, OPEN_SIZE_OUT = 16, OPEN_SIZE_CONVS = 3 };

/* Numbers that keep a map's about as large as it was. */
static inline void open_size_weights(struct proto *graph, const char *name, const char *dims,
                                     int count, float most)
{
    static float    numbers[OPEN_SIZE_CHANNELS * OPEN_SIZE_CHANNELS * 9];
    static uint32_t seed = 1;
    assert_true(count <= (int)SAC_COUNT(numbers));
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = ((float)(seed >> 8) / 16777216.0f - 0.4f) * most;
    }
    proto_initializer(graph, name, 1, dims, numbers, (size_t)count * sizeof *numbers);
}

static inline void open_size_conv(struct proto *graph, const char *op, const char *words,
                                  const char *result, const char *side)
{
    struct proto attrs = {0};
    proto_attr_ints(&attrs, "kernel_shape", side);
    proto_attr_ints(&attrs, "strides", "2 2");
    if (*side == '3')
        proto_attr_ints(&attrs, "pads", "1 1 1 1");
    proto_node(graph, op, words, result, &attrs);
}

static inline void open_size_transpose(struct proto *graph, const char *in, const char *result,
                                       const char *perm)
{
    struct proto attrs = {0};
    proto_attr_ints(&attrs, "perm", perm);
    proto_node(graph, "Transpose", in, result, &attrs);
}

static inline void open_size_keep(struct proto *model, const char *path)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model->bytes, 1, model->size, f), model->size);
    fclose(f);
    proto_free(model);
}

static inline void open_size_write(const char *path)
{
    static const int64_t rows[3] = {0, OPEN_SIZE_CHANNELS, -1};
    enum { C = OPEN_SIZE_CHANNELS, INT64 = 7 };
    struct proto graph = {0}, model = {0};
    open_size_weights(&graph, "v", "32 3 3 3", C * 3 * 9, 0.3f);
    open_size_weights(&graph, "w", "32 32 3 3", C * C * 9, 0.1f);
    open_size_weights(&graph, "up", "32 32 2 2", C * C * 4, 0.3f);
    open_size_weights(&graph, "p", "32 16", C * OPEN_SIZE_OUT, 0.3f);
    proto_initializer(&graph, "rows", INT64, "3", rows, sizeof rows);
    open_size_transpose(&graph, "x", "turned", "1 0 2 3");
    proto_node(&graph, "Trilu", "turned", "half", NULL);
    open_size_transpose(&graph, "half", "back", "1 0 2 3");
    open_size_conv(&graph, "Conv", "back v", "a", "3 3");
    proto_node(&graph, "Relu", "a", "b", NULL);
    open_size_conv(&graph, "Conv", "b w", "c", "3 3");
    open_size_conv(&graph, "ConvTranspose", "c up", "d", "2 2");
    proto_node(&graph, "Add", "d b", "e", NULL); /* half the size and a quarter, enlarged */
    proto_node(&graph, "Reshape", "e rows", "f", NULL);
    open_size_transpose(&graph, "f", "g", "0 2 1");
    proto_node(&graph, "MatMul", "g p", "h", NULL);
    proto_node(&graph, "Relu", "h", "y", NULL);
    proto_input(&graph, "x", 1, "? 3 ? ?");
    proto_output(&graph, "y", 1, "? ? 16");
    proto_model(&model, &graph, 17);
    open_size_keep(&model, path);
}

#endif
