/* SPDX-License-Identifier: Apache-2.0 */
/* A device's own kernels on tensors of the size that YOLOX-S and vision transformers have at batch
 * 32, and of smaller ones that mobile networks, Swin, ConvNeXt and DETR have at 1 and 8: time and
 * the bytes that each must read and write, beside a copy on the same device; of attention also its
 * arithmetic. On a GPU in float16, fifty calls in one CUDA graph, as a plan's steps are; on the CPU
 * in float32, call by call, each beside one of the reference row, and how many times as long that
 * takes.
 * usage: bench_ops [DEVICE [OPERATOR [THREADS]]]     default: cuda, all, a thread for each core */
#include <stdio.h>
#include <string.h>

#include "bench/must.h"
#include "tests/parity/ask.h"
#include "engine/kernel/layout.h"
#include "engine/ops/util.h"

enum { REPEATS = 9, PER_REPEAT = 50, IN_MAX = 5, RANK_MAX = 5, ATTRS_MAX = 6 };
enum { REFERENCE_REPEATS = 5 }; /* it may take seconds */

/* ---- what is run ---- */

static const int64_t five[] = {5, 5}, two_pads[] = {2, 2, 2, 2}, last[] = {0, 2, 3, 1};
static const int64_t three[] = {3, 3}, two[] = {2, 2}, ones[] = {1, 1, 1, 1};
static const int64_t best[] = {300}, second[] = {1};
static const int64_t around[] = {1, 1, 1, 1, 1, 1}, before_and_after[] = {1, 0, 0, 1, 0, 0};
static const int64_t around_stem[] = {1, 3, 3, 1, 3, 3}, stem_steps[] = {1, 2, 2};
static const int64_t flat[] = {1, 3, 3}, around_flat[] = {0, 1, 1, 0, 1, 1};
static const float   gamma_of_srgb[] = {2.4f};
static const float   twice[] = {1, 1, 2, 2}, eight_times[] = {1, 1, 8, 8};

enum lie {
    LAST,
    PLAIN,
    OUTPUT
}; /* channels last, ONNX's order, the first become a model's output of float32 */
struct bench_case {
    const char     *op, *what;
    enum lie        lie;
    int             in_count, rank;
    int64_t         dims[IN_MAX][RANK_MAX];
    struct sac_attr attrs[ATTRS_MAX];
    const void     *constant; /* of the last input */
    enum sac_dtype  dtype;    /* of all inputs; 0: float32, but a Where's condition, and counts */
    unsigned        weights;  /* bits of inputs that are known when the node is planned */
};
#define INT(n, v)                                           \
    {                                                       \
        .name = n, .kind = SAC_ATTR_INT, .count = 1, .i = v \
    }
#define INTS(n, list)                                                            \
    {                                                                            \
        .name = n, .kind = SAC_ATTR_INTS, .count = SAC_COUNT(list), .ints = list \
    }
#define TEXT(n, text)                                                           \
    {                                                                           \
        .name = n, .kind = SAC_ATTR_STRING, .count = sizeof text - 1, .s = text \
    }
static const struct bench_case cases[] = {
    {"Activation", "SiLU", LAST, 1, 4, {{32, 64, 160, 160}}, {INT("activation", 5)}, NULL},
    {"Add", "equal shapes", LAST, 2, 4, {{32, 64, 160, 160}, {32, 64, 160, 160}}, {{0}}, NULL},
    {"Mul", "a gate per channel", LAST, 2, 4, {{32, 64, 160, 160}, {32, 64, 1, 1}}, {{0}}, NULL},
    {"MaxPool",
     "5x5",
     LAST,
     1,
     4,
     {{32, 256, 20, 20}},
     {INTS("kernel_shape", five), INTS("pads", two_pads)},
     NULL},
    {"MaxPool",
     "3x3 in steps of two",
     LAST,
     1,
     4,
     {{32, 64, 256, 256}},
     {INTS("kernel_shape", three), INTS("strides", two), INTS("pads", ones)},
     NULL},
#define AVERAGE(what, lie, size, ...)                              \
    {                                                              \
        "AveragePool", what, lie, 1, 4, {__VA_ARGS__},             \
            {INTS("kernel_shape", size), INTS("pads", ones)}, NULL \
    }
    AVERAGE("3x3", LAST, three, {32, 64, 56, 56}),
    AVERAGE("3x3, 26 channels", LAST, three, {32, 26, 56, 56}),
    AVERAGE("3x3", PLAIN, three, {32, 64, 56, 56}),
    {"AveragePool",
     "3x3 in steps of two",
     LAST,
     1,
     4,
     {{32, 128, 56, 56}},
     {INTS("kernel_shape", three), INTS("strides", two), INTS("pads", ones)},
     NULL},
    {"AveragePool",
     "3x3 in steps of two",
     PLAIN,
     1,
     4,
     {{32, 128, 56, 56}},
     {INTS("kernel_shape", three), INTS("strides", two), INTS("pads", ones)},
     NULL},
    {"AveragePool",
     "2x2",
     LAST,
     1,
     4,
     {{32, 256, 56, 56}},
     {INTS("kernel_shape", two), INTS("strides", two)},
     NULL},
#define REDUCE(op, what, ...)                                    \
    {                                                            \
        op, what, PLAIN, 2, 5, {__VA_ARGS__, {1}}, {{0}}, second \
    }
    REDUCE("ReduceSum", "[32,2,128,56,56], 1", {32, 2, 128, 56, 56}),
    REDUCE("ReduceSum", "[32,2,512,7,7], 1", {32, 2, 512, 7, 7}),
    REDUCE("ReduceMax", "[8,40,3,100,100], 1", {8, 40, 3, 100, 100}),
    REDUCE("ReduceMin", "[8,12,1,101,103], 1", {8, 12, 1, 101, 103}),
    {"Resize",
     "nearest, twice",
     LAST,
     3,
     4,
     {{32, 128, 40, 40}, {0}, {4}},
     {TEXT("mode", "nearest"), TEXT("coordinate_transformation_mode", "asymmetric"),
      TEXT("nearest_mode", "floor")},
     twice},
    {"Resize",
     "linear, twice",
     LAST,
     3,
     4,
     {{32, 128, 40, 40}, {0}, {4}},
     {TEXT("mode", "linear")},
     twice},
    {"Resize",
     "linear to an output",
     OUTPUT,
     3,
     4,
     {{8, 21, 64, 64}, {0}, {4}},
     {TEXT("mode", "linear")},
     eight_times},
    {"Concat",
     "two of 128 channels",
     LAST,
     2,
     4,
     {{32, 128, 80, 80}, {32, 128, 80, 80}},
     {INT("axis", 1)},
     NULL},
    {"GlobalAveragePool", "", LAST, 1, 4, {{32, 512, 20, 20}}, {{0}}, NULL},
    {"GlobalAveragePool", "of 64x64", LAST, 1, 4, {{8, 2048, 64, 64}}, {{0}}, NULL},
    {"Transpose", "NCHW to NHWC", PLAIN, 1, 4, {{32, 64, 80, 80}}, {INTS("perm", last)}, NULL},
    {"Softmax", "lines of 197", PLAIN, 1, 4, {{32, 12, 197, 197}}, {INT("axis", -1)}, NULL},
    {"LayerNormalization",
     "lines of 768",
     PLAIN,
     2,
     3,
     {{32, 197, 768}, {768}},
     {INT("axis", -1)},
     NULL},
    {"BatchNormalization",
     "maps",
     LAST,
     5,
     4,
     {{32, 64, 160, 160}, {64}, {64}, {64}, {64}},
     {{0}},
     NULL},
    {"BatchNormalization",
     "maps",
     PLAIN,
     5,
     4,
     {{32, 64, 160, 160}, {64}, {64}, {64}, {64}},
     {{0}},
     NULL},
    {"Add", "a bias per line", PLAIN, 2, 3, {{32, 197, 768}, {768}}, {{0}}, NULL},
#define ROW(op, what, ...)                                            \
    {                                                                 \
        op, what, PLAIN, 1, 4, {__VA_ARGS__}, {INT("axis", -1)}, NULL \
    }
#define NORM(what, rank, length, ...)                                                           \
    {                                                                                           \
        "LayerNormalization", what, PLAIN, 2, rank, {__VA_ARGS__, {length}}, {INT("axis", -1)}, \
            NULL                                                                                \
    }
#define POOL(what, ...)                                                   \
    {                                                                     \
        "GlobalAveragePool", what, LAST, 1, 4, {__VA_ARGS__}, {{0}}, NULL \
    }
#define TWO(op, what, rank, ...)                             \
    {                                                        \
        op, what, PLAIN, 2, rank, {__VA_ARGS__}, {{0}}, NULL \
    }
    NORM("[1,197,768]", 3, 768, {1, 197, 768}),
    NORM("[8,197,768]", 3, 768, {8, 197, 768}),
    NORM("[8,56,56,96]", 4, 96, {8, 56, 56, 96}),
    ROW("Softmax", "[1,12,197,197]", {1, 12, 197, 197}),
    ROW("Softmax", "[8,12,197,197]", {8, 12, 197, 197}),
    ROW("Softmax", "[512,3,49,49]", {512, 3, 49, 49}),
    ROW("Softmax", "[8,8,1024,1024]", {8, 8, 1024, 1024}),
    POOL("[1,32,112,112]", {1, 32, 112, 112}),
    POOL("[8,32,112,112]", {8, 32, 112, 112}),
    POOL("[1,480,14,14]", {1, 480, 14, 14}),
    POOL("[8,1280,7,7]", {8, 1280, 7, 7}),
    TWO("Add", "+ [1,3,49,49]", 4, {512, 3, 49, 49}, {1, 3, 49, 49}),
    TWO("Add", "+ [1,64,1,49,49]", 5, {8, 64, 3, 49, 49}, {1, 64, 1, 49, 49}),
    TWO("Mul", "* [8,1,49,49]", 4, {8, 192, 49, 49}, {8, 1, 49, 49}),
    {"IsNaN", "[64,950,950]", PLAIN, 1, 3, {{64, 950, 950}}, {{0}}, NULL},
    {"Where",
     "[64,950,950]",
     PLAIN,
     3,
     3,
     {{64, 950, 950}, {1, 1, 1}, {64, 950, 950}},
     {{0}},
     NULL},
    {"Gelu", "[8,197,3072]", PLAIN, 1, 3, {{8, 197, 3072}}, {{0}}, NULL},
    {"Erf", "[8,197,3072]", PLAIN, 1, 3, {{8, 197, 3072}}, {{0}}, NULL},
    {"Softmax", "[32,16,4,8400], 1", PLAIN, 1, 4, {{32, 16, 4, 8400}}, {INT("axis", 1)}, NULL},
#define INSTANCES(what, ...)                                                              \
    {                                                                                     \
        "InstanceNormalization", what, LAST, 3, 4, {__VA_ARGS__, {16}, {16}}, {{0}}, NULL \
    }
    INSTANCES("[1,16,256,256]", {1, 16, 256, 256}),
    INSTANCES("[32,16,256,256]", {32, 16, 256, 256}),
    {"InstanceNormalization",
     "[1,8,512,512]",
     LAST,
     3,
     4,
     {{1, 8, 512, 512}, {8}, {8}},
     {{0}},
     NULL},
    {"GroupNormalization",
     "[8,256,64,64] by 32",
     LAST,
     3,
     4,
     {{8, 256, 64, 64}, {256}, {256}},
     {INT("num_groups", 32)},
     NULL},
    {"SampleNorm", "[8,64,128,128]", LAST, 1, 4, {{8, 64, 128, 128}}, {{0}}, NULL},
#define SAMPLES(what, channels, ...)                                                       \
    {                                                                                      \
        "SampleNorm", what, LAST, 3, 4, {__VA_ARGS__, {channels}, {channels}}, {{0}}, NULL \
    }
    SAMPLES("[1,64,56,56]", 64, {1, 64, 56, 56}),
    SAMPLES("[32,64,56,56]", 64, {32, 64, 56, 56}),
    SAMPLES("[1,320,14,14]", 320, {1, 320, 14, 14}),
    SAMPLES("[32,320,14,14]", 320, {32, 320, 14, 14}),
    SAMPLES("[32,512,7,7]", 512, {32, 512, 7, 7}),
    {"GroupNormalization",
     "[1,320,64,64] by 32",
     LAST,
     3,
     4,
     {{1, 320, 64, 64}, {320}, {320}},
     {INT("num_groups", 32)},
     NULL},
    {"GroupNormalization",
     "[32,64,56,56] by 32",
     PLAIN,
     3,
     4,
     {{32, 64, 56, 56}, {64}, {64}},
     {INT("num_groups", 32)},
     NULL},
    {"Resize",
     "linear, 35 channels",
     LAST,
     3,
     4,
     {{32, 35, 256, 256}, {0}, {4}},
     {TEXT("mode", "linear")},
     twice},
    {"TopK", "300 of [1,8400]", PLAIN, 2, 2, {{1, 8400}, {1}}, {{0}}, best},
    {"TopK", "300 of [32,8400]", PLAIN, 2, 2, {{32, 8400}, {1}}, {{0}}, best},
    {"Log", "[8,197,3072]", PLAIN, 1, 3, {{8, 197, 3072}}, {{0}}, NULL},
    {"Pow", "[8,197,3072] by 2.4", PLAIN, 2, 3, {{8, 197, 3072}, {1}}, {{0}}, gamma_of_srgb},
    TWO("Pow", "[8,197,3072] by as many", 3, {8, 197, 3072}, {8, 197, 3072}),
    TWO("Equal", "[64,950,950]", 3, {64, 950, 950}, {64, 950, 950}),
    TWO("Greater", "[8,192,49,49], [192,1,1]", 4, {8, 192, 49, 49}, {1, 192, 1, 1}),
    TWO("Less", "[8,197,3072], [1]", 3, {8, 197, 3072}, {1}),
    {"And", "[64,950,950]", PLAIN, 2, 3, {{64, 950, 950}, {64, 950, 950}}, {{0}}, NULL, SAC_BOOL},
    {"Not", "[64,950,950]", PLAIN, 1, 3, {{64, 950, 950}}, {{0}}, NULL, SAC_BOOL},
    {"CumSum", "[8,64,64,64], 1", PLAIN, 2, 4, {{8, 64, 64, 64}, {1}}, {{0}}, second},
    {"CumSum", "[4096,512], 1", PLAIN, 2, 2, {{4096, 512}, {1}}, {{0}}, second},
    ROW("LpNormalization", "[1,1,4096,512]", {1, 1, 4096, 512}),
    {"LpNormalization",
     "[8,128,64,64], 1",
     PLAIN,
     1,
     4,
     {{8, 128, 64, 64}},
     {INT("axis", 1)},
     NULL},
#define DEEP(op, what, x, w, channels, ...)                                                     \
    {                                                                                           \
        op, what, LAST, 3, 5, {x, w, {channels}}, {__VA_ARGS__}, NULL, SAC_F32, 1 << 1 | 1 << 2 \
    }
#define DIMS(...)   \
    {               \
        __VA_ARGS__ \
    }
    {"Conv",
     "R3D-18, first layer",
     PLAIN,
     3,
     5,
     {{1, 3, 16, 112, 112}, {64, 3, 3, 7, 7}, {64}},
     {INTS("pads", around_stem), INTS("strides", stem_steps)},
     NULL,
     SAC_F32,
     1 << 1 | 1 << 2},
    DEEP("Conv", "3x3x3, 64 at 16x56x56", DIMS(1, 64, 16, 56, 56), DIMS(64, 64, 3, 3, 3), 64,
         INTS("pads", around)),
    DEEP("Conv", "3x3x3, 256 at 4x14x14", DIMS(1, 256, 4, 14, 14), DIMS(256, 256, 3, 3, 3), 256,
         INTS("pads", around)),
    DEEP("Conv", "3x1x1, 144 at 16x56x56", DIMS(1, 144, 16, 56, 56), DIMS(64, 144, 3, 1, 1), 64,
         INTS("pads", before_and_after)),
    DEEP("Conv", "3x3x3 depthwise, 108", DIMS(1, 108, 16, 28, 28), DIMS(108, 1, 3, 3, 3), 108,
         INT("group", 108), INTS("pads", around)),
    {"MaxPool",
     "1x3x3, 64 at 16x112x112",
     LAST,
     1,
     5,
     {{1, 64, 16, 112, 112}},
     {INTS("kernel_shape", flat), INTS("strides", stem_steps), INTS("pads", around_flat)},
     NULL},
#define SEQUENCE(op, gates, what, steps, batch, inputs, h, d, ...)                        \
    {                                                                                     \
        op, what, PLAIN, 4, 3,                                                            \
            {{steps, batch, inputs},                                                      \
             {d, (gates) * (h), inputs},                                                  \
             {d, (gates) * (h), h},                                                       \
             {d, 2 * (gates) * (h)}},                                                     \
            {INT("hidden_size", h), __VA_ARGS__}, NULL, SAC_F32, 1 << 1 | 1 << 2 | 1 << 3 \
    }
    SEQUENCE("LSTM", 4, "64 steps x 8 x 256", 64, 8, 256, 256, 1, {0}),
    SEQUENCE("LSTM", 4, "64 steps x 1 x 256", 64, 1, 256, 256, 1, {0}),
    SEQUENCE("LSTM", 4, "26 x 1 x 512, two ways", 26, 1, 512, 256, 2,
             TEXT("direction", "bidirectional")),
    SEQUENCE("GRU", 3, "26 x 1 x 512", 26, 1, 512, 256, 1, INT("linear_before_reset", 1)),
    SEQUENCE("GRU", 3, "64 steps x 8 x 256", 64, 8, 256, 256, 1, {0}),
    {"DeformConv",
     "3x3, 64 at 64x64",
     LAST,
     5,
     4,
     {{1, 64, 64, 64}, {64, 64, 3, 3}, {1, 18, 64, 64}, {64}, {1, 9, 64, 64}},
     {INTS("pads", ones)},
     NULL,
     SAC_F32,
     1 << 1 | 1 << 3},
    {"DeformConv",
     "3x3, 256 at 28x28",
     LAST,
     5,
     4,
     {{1, 256, 28, 28}, {256, 256, 3, 3}, {1, 18, 28, 28}, {256}, {1, 9, 28, 28}},
     {INTS("pads", ones)},
     NULL,
     SAC_F32,
     1 << 1 | 1 << 3},
#define GATE(what, n, channels, hidden)                                                          \
    {                                                                                            \
        "Excitation", what, LAST, 5, 4,                                                          \
            {{n, channels, 1, 1}, {hidden, channels}, {hidden}, {channels, hidden}, {channels}}, \
            {INT("inner", 1), INT("activation", 4)}, NULL                                        \
    }
    GATE("[1,960,1,1] by 240", 1, 960, 240),
    GATE("[32,960,1,1] by 240", 32, 960, 240),
    GATE("[32,72,1,1] by 24", 32, 72, 24),
/* Heads out of one product [B,T,3,H D]; masked: with a mask for each of 64 windows and each head.
 */
#define VIEW(attribute, first, b, t, h, d, row)                                         \
    {                                                                                   \
        .name = attribute, .kind = SAC_ATTR_INTS, .count = 9, .ints = (const int64_t[]) \
        {                                                                               \
            first, b, h, t, d, (int64_t)(t) * (row), d, row, 1                          \
        }                                                                               \
    }
#define ATTENTION(what, b, t, h, d, inputs, ...)                                             \
    {                                                                                        \
        "FusedAttention", what, PLAIN, inputs, 4,                                            \
            {{b, t, 3, (h) * (d)}, {b, t, 3, (h) * (d)}, {b, t, 3, (h) * (d)}, __VA_ARGS__}, \
            {VIEW("q", 0, b, t, h, d, 3 * (h) * (d)),                                        \
             VIEW("k", (h) * (d), b, t, h, d, 3 * (h) * (d)),                                \
             VIEW("v", 2 * (h) * (d), b, t, h, d, 3 * (h) * (d)),                            \
             VIEW("y", 0, b, t, h, d, (h) * (d)),                                            \
             {.name = "shape",                                                               \
              .kind = SAC_ATTR_INTS,                                                         \
              .count = 3,                                                                    \
              .ints = (const int64_t[]){b, t, (h) * (d)}},                                   \
             {.name = "scale", .kind = SAC_ATTR_FLOAT, .count = 1, .f = 0.125f}},            \
            NULL                                                                             \
    }
    ATTENTION("[1,12,197,64]", 1, 197, 12, 64, 3, {0}),
    ATTENTION("[8,12,197,64]", 8, 197, 12, 64, 3, {0}),
    ATTENTION("[32,12,197,64]", 32, 197, 12, 64, 3, {0}),
    ATTENTION("[32,12,50,64]", 32, 50, 12, 64, 3, {0}),
    ATTENTION("[1,6,257,64]", 1, 257, 6, 64, 3, {0}),
    ATTENTION("[32,6,257,64]", 32, 257, 6, 64, 3, {0}),
    ATTENTION("[512,3,49,32] masked", 512, 49, 3, 32, 4, {64, 3, 49, 49}),
    ATTENTION("[1,8,1050,32]", 1, 1050, 8, 32, 3, {0}),
/* Products of heads out of one product [B,T,3,H D]: of channels with channels, and these times the
 * values; of tokens with tokens, and these times the values. */
#define LIE(attribute, ...)                                                             \
    {                                                                                   \
        .name = attribute, .kind = SAC_ATTR_INTS, .count = 9, .ints = (const int64_t[]) \
        {                                                                               \
            __VA_ARGS__                                                                 \
        }                                                                               \
    }
#define SHAPE(length, ...)                                                                 \
    {                                                                                      \
        .name = "shape", .kind = SAC_ATTR_INTS, .count = length, .ints = (const int64_t[]) \
        {                                                                                  \
            __VA_ARGS__                                                                    \
        }                                                                                  \
    }
#define CHANNELS(what, n, t, h, d)                                                          \
    {"HeadMatMul",                                                                          \
     "channels " what,                                                                      \
     PLAIN,                                                                                 \
     2,                                                                                     \
     4,                                                                                     \
     {{n, t, 3, (h) * (d)}, {n, t, 3, (h) * (d)}},                                          \
     {LIE("a", 0, n, h, d, t, 3 * (t) * (h) * (d), d, 1, 3 * (h) * (d)),                    \
      LIE("b", (h) * (d), n, h, t, d, 3 * (t) * (h) * (d), d, 3 * (h) * (d), 1),            \
      LIE("y", 0, n, h, d, d, (h) * (d) * (d), (d) * (d), d, 1), SHAPE(4, n, h, d, d)},     \
     NULL},                                                                                 \
    {                                                                                       \
        "HeadMatMul", "values of " what, PLAIN, 2, 4, {{n, h, d, d}, {n, t, 3, (h) * (d)}}, \
            {LIE("a", 0, n, h, d, d, (h) * (d) * (d), (d) * (d), d, 1),                     \
             LIE("b", 2 * (h) * (d), n, h, d, t, 3 * (t) * (h) * (d), d, 1, 3 * (h) * (d)), \
             LIE("y", 0, n, h, d, t, (t) * (h) * (d), d, 1, (h) * (d)),                     \
             SHAPE(3, n, t, (h) * (d))},                                                    \
            NULL                                                                            \
    }
#define TOKENS(what, n, t, h, d)                                                            \
    {"HeadMatMul",                                                                          \
     "tokens " what,                                                                        \
     PLAIN,                                                                                 \
     2,                                                                                     \
     4,                                                                                     \
     {{n, t, 3, (h) * (d)}, {n, t, 3, (h) * (d)}},                                          \
     {LIE("a", 0, n, h, t, d, 3 * (t) * (h) * (d), d, 3 * (h) * (d), 1),                    \
      LIE("b", (h) * (d), n, h, d, t, 3 * (t) * (h) * (d), d, 1, 3 * (h) * (d)),            \
      LIE("y", 0, n, h, t, t, (h) * (t) * (t), (t) * (t), t, 1), SHAPE(4, n, h, t, t)},     \
     NULL},                                                                                 \
    {                                                                                       \
        "HeadMatMul", "values of " what, PLAIN, 2, 4, {{n, h, t, t}, {n, t, 3, (h) * (d)}}, \
            {LIE("a", 0, n, h, t, t, (h) * (t) * (t), (t) * (t), t, 1),                     \
             LIE("b", 2 * (h) * (d), n, h, t, d, 3 * (t) * (h) * (d), d, 3 * (h) * (d), 1), \
             LIE("y", 0, n, h, t, d, (t) * (h) * (d), d, (h) * (d), 1),                     \
             SHAPE(3, n, t, (h) * (d))},                                                    \
            NULL                                                                            \
    }
    CHANNELS("[1,4,784,48]", 1, 784, 4, 48),
    CHANNELS("[32,4,784,48]", 32, 784, 4, 48),
    CHANNELS("[1,3,3136,32]", 1, 3136, 3, 32),
    CHANNELS("[32,3,3136,32]", 32, 3136, 3, 32),
    CHANNELS("[32,8,49,64]", 32, 49, 8, 64),
    CHANNELS("[8,4,1024,16]", 8, 1024, 4, 16),
    TOKENS("[1,4,197,48]", 1, 197, 4, 48),
    TOKENS("[32,4,197,48]", 32, 197, 4, 48),
    TOKENS("[32,4,196,48]", 32, 196, 4, 48),
};

struct bench {
    sac_device               *dev;
    struct sac_device_stream *stream;
    const struct sac_kernel  *kernel;
    struct sac_node           node;
    struct sac_op_call       *call;
    struct sac_kernel_plan    plan;
    sac_tensor               *in[IN_MAX], *out, *scratch;
    float                    *weights[IN_MAX];
    void                     *in_at[SAC_OP_INPUTS_MAX], *out_at[SAC_OP_OUTPUTS_MAX];
};

static sac_tensor *memory(struct bench *b, size_t bytes)
{
    struct sac_tensor_desc desc = {
        .dtype = SAC_U8, .rank = 1, .shape = {(int64_t)SAC_MAX(bytes, 1)}};
    sac_tensor *t = NULL;
    must(sac_tensor_create(b->dev, &desc, "bench", &t));
    return t;
}

/* Numbers of which functions have a value, and whose arithmetic is not that of NaN. */
static void fill(const struct sac_operand *o, void *to)
{
    for (int64_t i = 0, n = sac_operand_elements(o); i < n; i++)
        if (o->dtype == SAC_BOOL)
            ((uint8_t *)to)[i] = (uint8_t)(i * 7919 / 16 % 2);
        else
            ((float *)to)[i] = (float)(i * 7919 % 1000 + 1) / 500;
}

static void describe(struct bench *b, const struct bench_case *bc)
{
    struct sac_op_call  *c = b->call = sac_calloc(1, sizeof *c);
    const struct sac_op *op = sac_op_find("", bc->op);
    op = op ? op : sac_op_find("saccade", bc->op);
    b->node = (struct sac_node){.op = op,
                                .name = "",
                                .op_type = bc->op,
                                .domain = op->domain,
                                .opset = op->opset_max,
                                .attrs = (struct sac_attr *)bc->attrs,
                                .input_count = bc->in_count,
                                .output_count = 1};
    while (b->node.attr_count < ATTRS_MAX && bc->attrs[b->node.attr_count].name)
        b->node.attr_count++;
    c->ctx = ctx;
    c->node = &b->node;
    c->in_count = bc->in_count;
    c->out_count = 1;
    c->out[0].present = true;
    for (int i = 0; i < bc->in_count; i++) {
        struct sac_operand *o = &c->in[i];
        const bool          small = i > 0 && !bc->dims[i][1];
        const bool          matrix = i > 0 && !small && !bc->dims[i][2];
        const bool          counts =
            i == 1 && (strcmp(bc->op, "TopK") == 0 || strcmp(bc->op, "CumSum") == 0 ||
                       strncmp(bc->op, "Reduce", 6) == 0);
        const bool asks = i == 0 && strcmp(bc->op, "Where") == 0;
        *o = (struct sac_operand){.dtype = bc->dtype ? bc->dtype
                                           : asks    ? SAC_BOOL
                                           : counts  ? SAC_I64
                                                     : SAC_F32,
                                  .rank = small    ? 1
                                          : matrix ? 2
                                                   : bc->rank,
                                  .present = bc->dims[i][0] > 0};
        memcpy(o->dims, bc->dims[i], sizeof bc->dims[i]);
        o->data = i == bc->in_count - 1 ? (void *)bc->constant : NULL;
        if (bc->weights & 1u << i) {
            o->data = b->weights[i] = sac_alloc((size_t)sac_operand_elements(o) * sizeof(float));
            fill(o, b->weights[i]);
        }
    }
    must(op->shape(c));
}

static bool on_host(const struct bench *b)
{
    return b->dev->ops->host_memory;
}

static enum sac_layout layout_of(const struct bench *b, enum lie lie)
{
    if (on_host(b))
        return lie == PLAIN ? SAC_LAYOUT_PLAIN : SAC_LAYOUT_CHANNELS_LAST;
    return lie == PLAIN ? SAC_LAYOUT_PLAIN_HALF : SAC_LAYOUT_CHANNELS_LAST_HALF;
}

/* In host memory kernel and reference row both run on the same operands. */
static void lend(struct bench *b)
{
    struct sac_op_call *c = b->call;
    for (int i = 0; i < c->in_count; i++)
        if (b->in_at[i] && !c->in[i].data) {
            fill(&c->in[i], b->in_at[i]);
            c->in[i].data = b->in_at[i];
        }
    c->out[0].data = b->out_at[0];
    c->workers = b->dev->workers;
}

/* False: no kernel takes it. */
static bool prepare(struct bench *b, const struct bench_case *bc)
{
    const struct sac_op_call *c = b->call;
    b->plan = (struct sac_kernel_plan){
        .call = b->call, .precision = on_host(b) ? SAC_PRECISION_FP32 : SAC_PRECISION_FP16};
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].rank == bc->rank && c->in[i].dtype == SAC_F32)
            b->plan.in_layout[i] = layout_of(b, bc->lie);
    const struct sac_kernel_offer offer = ask_kernel(b->dev, b->kernel, &b->plan);
    if (!offer.taken) {
        printf("%-20s %s: %s\n", bc->op, bc->what, offer.why);
        return false;
    }
    if (bc->lie == OUTPUT && offer.writes_any)
        b->plan.out_layout[0] = SAC_LAYOUT_PLAIN;
    must(b->kernel->prepare(b->dev, &b->plan));
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].present && !b->plan.in_taken[i]) {
            b->in[i] = memory(b, sac_layout_bytes(&c->in[i], b->plan.in_layout[i]));
            b->in_at[i] = sac_tensor_data(b->in[i]);
            if (c->in[i].data)
                must(sac_tensor_upload(b->in[i], c->in[i].data));
        }
    b->out = memory(b, sac_layout_bytes(&c->out[0], b->plan.out_layout[0]));
    b->out_at[0] = sac_tensor_data(b->out);
    b->scratch = memory(b, b->plan.scratch_bytes);
    if (on_host(b))
        lend(b);
    return true;
}

static void finish(struct bench *b)
{
    if (b->plan.state)
        b->kernel->release(b->plan.state);
    for (int i = 0; i < IN_MAX; i++) {
        sac_tensor_unref(&b->in[i]);
        sac_free(b->weights[i]);
    }
    sac_tensor_unref(&b->out);
    sac_tensor_unref(&b->scratch);
    sac_free(b->call);
}

/* ---- measuring ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_kernel(struct bench *b)
{
    must(b->kernel->run(b->dev, b->plan.state, b->in_at, b->out_at, sac_tensor_data(b->scratch),
                        b->stream));
}

/* As many as the input and the output both have. */
static size_t copied_bytes(const struct bench *b)
{
    return (size_t)SAC_MIN(sac_tensor_desc_bytes(sac_tensor_describe(b->in[0])),
                           sac_tensor_desc_bytes(sac_tensor_describe(b->out)));
}

static void run_copy(struct bench *b)
{
    must(b->dev->ops->copy(b->dev, b->stream, b->out_at[0], b->in_at[0], copied_bytes(b),
                           SAC_COPY_ON_DEVICE));
}

static void run_reference(struct bench *b)
{
    must(b->node.op->ref(b->call));
}

/* The median seconds of one call on the host. */
static double host_time_of(struct bench *b, void (*fn)(struct bench *b))
{
    const int repeats = fn == run_reference ? REFERENCE_REPEATS : REPEATS;
    double    seconds[REPEATS];
    for (int i = -1; i < repeats; i++) {
        const int64_t begin = sac_time_ns();
        fn(b);
        if (i >= 0)
            seconds[i] = (double)(sac_time_ns() - begin) * 1e-9;
    }
    qsort(seconds, (size_t)repeats, sizeof *seconds, by_value);
    return seconds[repeats / 2];
}

/* The median seconds of one call of many in a graph: the host would take longer to queue a small
 * kernel than the GPU to run it. */
static double time_of(struct bench *b, void (*fn)(struct bench *b))
{
    const struct sac_device_ops *ops = b->dev->ops;
    struct sac_device_graph     *graph = NULL;
    double                       seconds[REPEATS];
    if (on_host(b))
        return host_time_of(b, fn);
    fn(b); /* what a first call loads is no part of a graph */
    must(ops->stream_wait(b->stream));
    must(ops->capture_begin(b->dev, b->stream));
    for (int k = 0; k < PER_REPEAT; k++)
        fn(b);
    must(ops->capture_end(b->dev, b->stream, &graph));
    for (int i = -2; i < REPEATS; i++) {
        const int64_t begin = sac_time_ns();
        must(ops->graph_launch(b->dev, b->stream, graph));
        must(ops->stream_wait(b->stream));
        if (i >= 0)
            seconds[i] = (double)(sac_time_ns() - begin) * 1e-9 / PER_REPEAT;
    }
    ops->graph_destroy(b->dev, &graph);
    qsort(seconds, REPEATS, sizeof *seconds, by_value);
    return seconds[REPEATS / 2];
}

static double bytes_of(const struct bench *b)
{
    double bytes = (double)sac_tensor_desc_bytes(sac_tensor_describe(b->out));
    for (int i = 0; i < IN_MAX; i++)
        bytes += b->in[i] ? (double)sac_tensor_desc_bytes(sac_tensor_describe(b->in[i])) : 0;
    return bytes;
}

/* Multiplications and additions, of attention and where the row counts them; of others 0. */
static double flops_of(const struct bench *b)
{
    const int64_t *q, *k;
    if (b->node.op->flops)
        return (double)b->node.op->flops(b->call);
    if (!sac_attr_ints(&b->node, "q", &q) || !sac_attr_ints(&b->node, "k", &k))
        return 0;
    return 4.0 * (double)(q[1] * q[2] * q[3] * q[4] * k[3]);
}

static const struct sac_kernel *kernel_of(sac_device *dev, const char *name)
{
    int                                      count;
    const struct sac_kernel_provider *const *list = sac_kernel_providers(dev, &count);
    const struct sac_op                     *op = sac_op_find("", name);
    op = op ? op : sac_op_find("saccade", name);
    for (int i = 0; i < count; i++)
        if (strcmp(list[i]->name, dev->ops->name) == 0 || (count == 1 && list[i]->kernels[op->id]))
            return list[i]->kernels[op->id];
    return NULL;
}

int main(int argc, char **argv)
{
    struct sac_device_params  params = sac_device_params_default();
    sac_device               *dev = NULL;
    struct sac_device_stream *stream = NULL;
    must(sac_context_create(NULL, &ctx));
    params.threads = argc > 3 ? atoi(argv[3]) : 0;
    must(sac_device_open(ctx, argc > 1 ? argv[1] : "cuda", &params, &dev));
    must(dev->ops->stream_create(dev, &stream));
    printf("%s, %s, channels last or (plain) ONNX's order\n", dev->description,
           dev->ops->host_memory ? "float32" : "float16");
    bool copied = false;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        if (argc > 2 && strcmp(argv[2], cases[i].op) != 0)
            continue;
        struct bench b = {.dev = dev, .stream = stream, .kernel = kernel_of(dev, cases[i].op)};
        if (b.kernel) {
            describe(&b, &cases[i]);
            if (prepare(&b, &cases[i])) {
                const double bytes = bytes_of(&b);
                if (!copied) { /* the ceiling */
                    const double s = time_of(&b, run_copy);
                    printf("%-20s %-22s %8.1f us %6.0f GB/s\n", "copy", "on the device", s * 1e6,
                           2.0 * (double)copied_bytes(&b) / s * 1e-9);
                    copied = true;
                }
                const double s = time_of(&b, run_kernel);
                printf("%-20s %-22s %8.1f us %6.0f GB/s%s", cases[i].op, cases[i].what, s * 1e6,
                       bytes / s * 1e-9, cases[i].lie == PLAIN ? "  plain" : "");
                if (flops_of(&b) > 0)
                    printf(" %6.0f GFLOP/s", flops_of(&b) / s * 1e-9);
                if (dev->ops->host_memory) {
                    const double reference = time_of(&b, run_reference);
                    printf("  reference %9.1f us, %5.1f", reference * 1e6, reference / s);
                }
                printf("\n");
            }
        }
        finish(&b);
    }
    dev->ops->stream_destroy(&stream);
    sac_device_unref(&dev);
    return 0;
}
