/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and matrix products of the provider "products" against the reference rows: fixed and
 * random shapes, in each precision, dense and as slices of wider maps, by the likely best way, by a
 * way that leaves bias, activation and residual to a pass of ours, and by kernels of our own. All
 * numbers that go in are such that float16 and TF32 hold them, so only sums and results may differ.
 * Those of 8-bit numbers by each variant of each kernel that takes them.
 * A line for each that is wrong, with the largest error against the largest number; then it goes
 * on.
 * usage: test_parity_conv_cuda [FIRST [COUNT] | PART/PARTS]     of the shapes, numbered from 0; of
 * PARTS, the one numbered PART has every PARTS-th */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/fused.h"
#include "engine/kernel/layout.h"
#include "tests/gpu.h"
#include "tests/parity/ask.h"
#include "tests/parity/gpu_weights.h"
#include "tests/parity/subject.h"

static const struct parity_case fixed[] = {
    {"FusedConv", "[1,3,64,64] [32,3,6,6]! [32]!", "pads=2,2,2,2 strides=2,2 activation=5"},
    {"FusedConv", "[2,3,64,48] [64,3,7,7]! [64]!", "pads=3,3,3,3 strides=2,2 activation=1"},
    {"FusedConv", "[2,12,40,40] [32,12,3,3]! [32]!", "pads=1,1,1,1 activation=5"},
    {"FusedConv", "[1,3,33,47] [16,3,3,3]! [16]!", "pads=1,1,1,1 strides=2,2 activation=8"},
    {"FusedConv", "[1,3,70,61] [48,3,3,3]! [48]!", "pads=1,1,1,1 activation=5"},
    {"FusedConv", "[2,3,35,37] [96,3,4,4]!", "strides=4,4 activation=1"},
    {"FusedConv", "[2,3,70,56] [48,3,3,3]! [48]!", "pads=1,1,1,1 strides=2,2 activation=5"},
    {"FusedConv", "[16,1,640,512] [16,1,3,3]! [16]!", "pads=1,1,1,1 strides=2,2 activation=1"},
    {"FusedConv", "[1,1,40,33] [16,1,5,5]! [16]!", "pads=2,2,2,2 activation=5"},
    {"FusedConv", "[1,64,20,20] [64,64,3,3]! [64]! [1,64,20,20]",
     "pads=1,1,1,1 activation=1 residual=1"},
    {"FusedConv", "[1,64,20,20] [64,64,3,3]! [64]! [1,64,20,20]",
     "pads=1,1,1,1 activation=5 residual=2"},
    {"FusedConv", "[2,64,16,8] [256,64,1,1]! [256]! [2,256,16,8]", "activation=1 residual=1"},
    {"FusedConv", "[2,64,16,8] [144,64,1,1]! [144]! [2,40,16,8]", "residual=1"},
    {"FusedConv", "[2,64,16,8] [40,64,1,1]! [40]! [2,32,16,8]", "activation=5 residual=2"},
    {"FusedConv", "[2,64,16,8] [38,64,1,1]! [38]! [2,27,16,8]", "activation=1 residual=1"},
    {"FusedConv", "[2,32,16,8] [64,32,3,3]! [64]! [2,24,16,8]", "pads=1,1,1,1 residual=1"},
    {"FusedConv", "[1,128,13,13] [85,128,1,1]! [85]!", ""},
    {"FusedConv", "[1,128,13,13] [1,128,1,1]! [1]!", "activation=4"},
    {"FusedConv", "[1,64,17,19] [64,64,3,3]! [64]!", "pads=0,0,1,1 strides=2,2 activation=1"},
    {"FusedConv", "[1,64,17,19] [32,64,3,3]! [32]!", "pads=4,4,4,4 dilations=4,4 activation=1"},
    {"FusedConv", "[2,64,21,21] [64,1,3,3]! [64]!", "group=64 pads=1,1,1,1 activation=5"},
    {"FusedConv", "[2,64,21,21] [64,1,3,3]! [64]!",
     "group=64 pads=1,1,1,1 strides=2,2 activation=7 alpha=0.1666667 beta=0.5"},
    {"FusedConv", "[1,72,19,23] [72,1,5,5]! [72]!", "group=72 pads=2,2,2,2 activation=1"},
    {"FusedConv", "[1,72,19,23] [72,1,5,5]! [72]! [1,72,10,12]",
     "group=72 pads=2,2,2,2 strides=2,2 activation=1 residual=2"},
    {"FusedConv", "[1,36,19,23] [36,1,3,3]! [36]!",
     "group=36 pads=0,1,1,0 activation=3 alpha=0. beta=6."},
    {"FusedConv", "[1,33,9,9] [33,1,7,7]! [33]!",
     "group=33 pads=3,3,3,3 dilations=1,1 activation=2 alpha=0.1"},
    {"FusedConv", "[1,32,9,9] [32,1,3,3]! [32]!",
     "group=32 pads=2,2,2,2 dilations=2,2 activation=1"},
    {"FusedConv", "[2,96,23,29] [96,1,7,7]! [96]!", "group=96 pads=3,3,3,3"},
    {"FusedConv", "[3,768,7,7] [768,1,7,7]! [768]! [3,768,7,7]",
     "group=768 pads=3,3,3,3 activation=5 residual=2"},
    {"FusedConv", "[1,64,31,33] [64,1,7,7]! [64]!",
     "group=64 pads=2,3,3,2 strides=2,2 activation=1"},
    {"FusedConv", "[9,32,57,60] [32,1,3,3]! [32]!", "group=32 pads=1,1,1,1 activation=5"},
    {"FusedConv", "[1,30,21,22] [30,1,3,3]! [30]!",
     "group=30 pads=1,0,1,1 strides=2,2 activation=7 alpha=0.1666667 beta=0.5"},
    {"FusedConv", "[1,1152,1,1] [1152,1,5,5]! [1152]!", "group=1152 pads=2,2,2,2 activation=5"},
    {"FusedConv", "[4,96,28,28] [384,96,1,1]! [384]!", "activation=10"},
    {"FusedConv", "[4,384,28,28] [96,384,1,1]! [96]! [4,96,28,28]", "activation=5 residual=2"},
    {"FusedConv", "[5,144,27,31] [272,144,3,3]! [272]! [5,272,14,16]",
     "pads=1,1,1,1 strides=2,2 activation=11 residual=1"},
    {"FusedConv", "[1,40,33,35] [40,1,5,5]! [40]! [1,40,33,35]",
     "group=40 pads=6,6,6,6 dilations=3,3 activation=1 residual=1"},
    {"FusedConv", "[2,24,25,27] [24,1,7,7]! [24]!", "group=24 pads=6,9,6,9 dilations=2,3"},
    {"FusedConv", "[1,64,19,26] [64,1,9,9]! [64]!", "group=64 pads=4,4,4,4 activation=1"},
    {"FusedConv", "[2,48,20,21] [48,1,11,11]! [48]! [2,48,20,21]",
     "group=48 pads=5,5,5,5 activation=5 residual=2"},
    {"FusedConv", "[1,64,19,26] [64,1,1,11]! [64]!", "group=64 pads=0,5,0,5"},
    {"FusedConv", "[1,64,26,19] [64,1,11,1]! [64]!", "group=64 pads=5,0,5,0"},
    {"FusedConv", "[1,64,26,19] [64,1,7,1]! [64]! [1,64,26,19]",
     "group=64 pads=3,0,3,0 activation=1 residual=1"},
    {"FusedConv", "[2,64,20,21] [64,1,3,3]! [64]!", "group=64 pads=1,1,1,1 activation=10"},
    {"FusedConv", "[1,64,20,20] [96,64,3,3]! [96]!", "pads=1,1,1,1 activation=10"},
    {"FusedConv", "[1,3,64,48] [64,3,3,3]! [64]!", "pads=1,1,1,1 strides=2,2 activation=10"},
    {"FusedConv", "[1,64,20,20] [64,64,1,1]! [64]! [1,64,20,20]", "activation=11 residual=2"},
    {"FusedConv", "[1,32,26,19] [32,1,3,5]! [32]!", "group=32 pads=1,2,1,2 strides=1,2"},
    {"FusedConv", "[1,64,14,14] [64,16,3,3]! [64]!", "group=4 pads=1,1,1,1 activation=1"},
    {"FusedConv", "[1,20,14,14] [36,20,3,3]! [36]!",
     "pads=1,1,1,1 activation=6 alpha=0.2 beta=0.5"},
    {"FusedConv", "[1,16,9,9] [16,16,1,1]! [16]!", "activation=9"},
    {"FusedConv", "[1,17,7,5] [13,17,2,3]!", "activation=8"},
    {"Conv", "[1,32,28] [48,32,5]! [48]!", "pads=2,2 strides=2"},
    {"Conv", "[1,16,6,10,9] [24,16,3,3,3]! [24]!", "pads=1,1,1,1,1,1"},
    {"Conv", "[2,1,5,5] [1,1,3,3]!", ""},
    {"ConvTranspose", "[1,32,10,12] [32,16,2,2]! [16]!", "strides=2,2"},
    {"ConvTranspose", "[1,64,9,9] [64,64,4,4]! [64]!", "strides=2,2 pads=1,1,1,1"},
    {"ConvTranspose", "[1,16,9,7] [16,8,3,3]! [16]!",
     "strides=2,2 pads=1,1,1,1 output_padding=1,1 group=2"},
    {"ConvTranspose", "[1,4,9] [4,4,3]!", "strides=3 output_padding=1"},
    {"ConvTranspose", "[1,8,3,4,5] [8,6,2,2,2]! [6]!", "strides=2,2,2"},
    {"FusedConv", "[2,3,48,32] [64,3,16,16]! [64]!", "strides=16,16"},
    {"FusedConv", "[2,3,43,59] [40,3,14,14]! [40]! [2,40,3,4]",
     "strides=14,14 activation=10 residual=2"},
    {"FusedConv", "[3,5,22,27] [33,5,3,5]! [33]!", "strides=3,5 activation=1"},
    {"FusedConv", "[1,48,18,26] [96,48,2,2]! [96]!", "strides=2,2"},
    {"Gemm", "[96,64] [130,64]! [130]!", "transB=1"},
    {"Gemm", "[64,96] [64,128]! [128]!", "transA=1"},
    {"Gemm", "[5,33] [33,17]! [17]!", ""},
    {"Gemm", "[32,2048] [2048,256]!", "alpha=0.5"},
    {"Gemm", "[8,64] [64,32] [8,32]", "alpha=0.5 beta=2."},
    {"Gemm", "[1,2048] [751,2048]! [751]!", "transB=1"},
    {"MatMul", "[3,64,96] [3,96,64]", ""},
    {"MatMul", "[2,5,64,96] [1,5,96,64]", ""},
    {"MatMul", "[400,512] [512,512]!", ""},
    {"MatMul", "[2,7,33] [33,17]!", ""},
    {"MatMul", "[2,4,17,33] [2,4,33,9]", ""},
    {"MatMul", "[64] [64,10]!", ""},
    {"MatMul", "[2,3,64] [64]", ""},
    {"FusedMatMul", "[2,85,64] [64,96]! [96]!", "activation=10"},
    {"FusedMatMul", "[197,768] [768,40]! [40]!", "activation=5"},
    {"FusedMatMul", "[3,5,24] [24,136]!", "activation=11"},
    {"FusedMatMul", "[7,20] [20,24]! [24]!", "activation=10"},
    {"FusedMatMul", "[1700,64] [64,1344]! [1344]! [1700,1344]", "residual=1"},
    {"FusedMatMul", "[3,600,40] [40,1280]! [1280]!", "activation=1"},
    {"FusedMatMul", "[300,64] [64,96]! [96]! [300,96]", "activation=10 residual=1"},
    {"FusedConv", "[2,128,15,17] [128,4,3,3]! [128]! [2,128,15,17]",
     "group=32 pads=1,1,1,1 activation=1 residual=1"},
    {"FusedConv", "[1,96,14,13] [96,16,1,1]! [96]!", "group=6 activation=5"},
    {"FusedConv", "[3,72,20,11] [216,24,3,3]! [216]!", "group=3 pads=1,1,1,1 strides=2,2"},
    {"FusedConv", "[2,26,28,27] [26,26,3,3]! [26]! [2,26,28,27]",
     "pads=1,1,1,1 activation=1 residual=2"},
    {"FusedConv", "[1,52,19,14] [52,52,3,3]! [52]!", "pads=1,1,1,1 strides=2,2 activation=1"},
    {"FusedConv", "[2,20,9,11] [30,10,5,3]! [30]!", "group=2 pads=4,1,4,1 dilations=2,1"},
    {"FusedConv", "[1,40,12,10] [80,1,3,3]! [80]!", "group=40 pads=1,1,1,1 activation=5"},
    {"FusedConv", "[2,15,8,9] [21,5,3,3]! [21]!", "group=3 pads=1,1,1,1"},
};
/* Variants of the ways that are called so; those of "tensor" behind TENSORS keep their windows. */
enum { TILES = 8, TENSORS = 9, WINDOWS = 4 };
struct variants {
    const char *way;
    int         from, count;
    bool        alike; /* all of them are taken, or none */
};
enum { RANDOM_SHAPES = 40, RANDOM_QUANTISED = 40 };
enum { FIRST_RANDOM = 77 }; /* its number: another fixed shape leaves those as they are */
enum { FLOAT_SHAPES = (int)SAC_COUNT(fixed) + RANDOM_SHAPES };
enum { SHAPES = FLOAT_SHAPES + RANDOM_QUANTISED };

struct bench {
    sac_device                       *dev;
    const struct sac_kernel_provider *provider;
    int                               runs, tensors, windows, stems, units, wrong, refused;
    double                            worst[4]; /* by precision */
};

static int first_shape, shape_count = SHAPES, shape_step = 1;

/* ---- random shapes ---- */

struct text {
    char inputs[160], attrs[160];
};

static int pick(int from, int to)
{
    return from + (int)(subject_random() % (uint64_t)(to - from + 1));
}

static const char *random_case(int number, struct text *t)
{
    static const int channels[] = {1, 3, 8, 12, 16, 24, 32, 40, 64, 96, 100};
    subject_seed(0x5851f42d4c957f2dull * (uint64_t)(number + 1));
    const int kernel = pick(0, 2) ? 2 * pick(0, 2) + 1 : pick(1, 4), stride = pick(0, 2) ? 1 : 2;
    const int dilation = kernel > 1 && pick(0, 3) == 0 ? 2 : 1, h = pick(9, 40), w = pick(9, 40),
              n = pick(1, 3);
    const bool depthwise = pick(0, 4) == 0;
    const int  c = channels[pick(0, (int)SAC_COUNT(channels) - 1)];
    const int  k = depthwise ? c : channels[pick(0, (int)SAC_COUNT(channels) - 1)];
    int        pad[4];
    for (int i = 0; i < 4; i++)
        pad[i] = pick(0, kernel / 2);
    const int reach = (kernel - 1) * dilation + 1, oh = (h + pad[0] + pad[2] - reach) / stride + 1;
    const int ow = (w + pad[1] + pad[3] - reach) / stride + 1,
              residual = pick(0, 3) ? 0 : pick(1, 2);
    static const int kinds[] = {0, 1, 1, 5, 5, 3, 7, 4, 10};
    int at = snprintf(t->inputs, sizeof t->inputs, "[%d,%d,%d,%d] [%d,%d,%d,%d]! [%d]!", n, c, h, w,
                      k, depthwise ? 1 : c, kernel, kernel, k);
    if (residual)
        snprintf(t->inputs + at, sizeof t->inputs - (size_t)at, " [%d,%d,%d,%d]", n, k, oh, ow);
    snprintf(t->attrs, sizeof t->attrs,
             "group=%d pads=%d,%d,%d,%d strides=%d,%d dilations=%d,%d activation=%d "
             "alpha=0.1666667 beta=0.5 residual=%d",
             depthwise ? c : 1, pad[0], pad[1], pad[2], pad[3], stride, stride, dilation, dilation,
             kinds[pick(0, (int)SAC_COUNT(kinds) - 1)], residual);
    return "FusedConv";
}

/* Of 8-bit numbers; a residual and an output of floats are float16 then. */
static const char *random_quantised(int number, struct text *t)
{
    static const int channels[] = {16, 32, 48, 64, 80, 96, 128, 144, 192, 256, 272, 320};
    subject_seed(0x5851f42d4c957f2dull * (uint64_t)(number + 1));
    const int c = channels[pick(0, (int)SAC_COUNT(channels) - 1)],
              k = channels[pick(0, (int)SAC_COUNT(channels) - 1)];
    const bool       f8 = pick(0, 2) == 0, product = pick(0, 4) == 0, floats = pick(0, 3) == 0;
    const char      *kind = f8 ? "f8" : "i8", *other = pick(0, 1) ? kind : "";
    const int        residual = pick(0, 2);
    static const int kinds[] = {0, 1, 1, 1, 5, 5, 3, 7, 10};
    static const char *const clip[2][2] = {{"-0.5", "1.5"}, {"-2.", "3."}};
    const int                act = kinds[pick(0, (int)SAC_COUNT(kinds) - 1)];
    int                      at, end = 0;
    char                     map[64];
    if (product) {
        const int rows = pick(1, 300);
        snprintf(map, sizeof map, "[%d,%d]", rows, k);
        at = snprintf(t->inputs, sizeof t->inputs, "%s[%d,%d] %s[%d,%d]! [%d]!", kind, rows, c,
                      kind, c, k, k);
        t->attrs[0] = 0;
    } else {
        const int kernel = pick(0, 1) ? 1 : pick(2, 5), stride = pick(0, 2) ? 1 : pick(2, 3),
                  dilation = kernel > 1 && pick(0, 2) == 0 ? pick(2, 5) : 1;
        const int reach = (kernel - 1) * dilation + 1, n = pick(1, 5), h = reach + pick(0, 20),
                  w = reach + pick(0, 20);
        int pad[4];
        for (int i = 0; i < 4; i++)
            pad[i] = pick(0, reach / 2);
        snprintf(map, sizeof map, "[%d,%d,%d,%d]", n, k, (h + pad[0] + pad[2] - reach) / stride + 1,
                 (w + pad[1] + pad[3] - reach) / stride + 1);
        at = snprintf(t->inputs, sizeof t->inputs, "%s[%d,%d,%d,%d] %s[%d,%d,%d,%d]! [%d]!", kind,
                      n, c, h, w, kind, k, c, kernel, kernel, k);
        end = snprintf(t->attrs, sizeof t->attrs, "pads=%d,%d,%d,%d strides=%d,%d dilations=%d,%d ",
                       pad[0], pad[1], pad[2], pad[3], stride, stride, dilation, dilation);
    }
    snprintf(t->inputs + at, sizeof t->inputs - (size_t)at, " %s%s [%d]!", residual ? other : "-",
             residual ? map : "", k);
    end += snprintf(t->attrs + end, sizeof t->attrs - (size_t)end,
                    "activation=%d alpha=%s beta=%s residual=%d r_scale=%s", act,
                    act == 3 ? clip[f8][0] : "0.1666667", act == 3 ? clip[f8][1] : "0.5", residual,
                    f8 ? "1." : "0.02");
    if (!floats)
        snprintf(t->attrs + end, sizeof t->attrs - (size_t)end, " y_type=%d y_scale=%s",
                 f8 ? 17 : 3, f8 ? "0.1" : "0.03");
    return product ? "QuantMatMul" : "QuantConv";
}

/* ---- memory ---- */

/* A map in its layout, as a slice that begins `skip` elements into a map with `pixel` for each
 * pixel. */
struct placed {
    struct sac_buffer *buffer;
    char              *at; /* on the device */
    size_t             bytes, element;
    int64_t            skip, pixel, c, pixels; /* pixel 0: dense */
};

static void place(struct placed *p, sac_device *dev, const struct sac_operand *o,
                  enum sac_layout layout, bool slice)
{
    memset(p, 0, sizeof *p);
    p->element = sac_dtype_bytes(sac_layout_dtype(o->dtype, layout));
    p->bytes = sac_layout_bytes(o, layout);
    if (slice) {
        p->c = o->dims[1];
        p->pixels = sac_operand_elements(o) / p->c;
        p->skip = p->element == 1 ? 16 : 8;
        p->pixel = (p->c + 7) / 8 * 8 + 16;
        p->bytes = (size_t)(p->pixels * p->pixel) * p->element;
    }
    assert_sac_ok(sac_buffer_create(dev, p->bytes + 256, "test", &p->buffer));
    p->at = (char *)sac_buffer_data(p->buffer) + (size_t)p->skip * p->element;
}

static void copy_in(sac_device *dev, const struct placed *p, const char *dense)
{
    char *host = sac_alloc(p->bytes);
    assert_non_null(host);
    memset(host, 0xff, p->bytes); /* NaNs */
    for (int64_t i = 0; i < p->pixels && dense; i++)
        memcpy(host + (size_t)(i * p->pixel + p->skip) * p->element,
               dense + (size_t)(i * p->c) * p->element, (size_t)p->c * p->element);
    if (!p->pixel && dense)
        memcpy(host, dense, p->bytes);
    assert_sac_ok(sac_device_copy(dev, NULL, sac_buffer_data(p->buffer), host, p->bytes,
                                  SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "test"));
    sac_free(host);
}

/* Dense; false: something beside the slice was written. */
static bool copy_out(sac_device *dev, const struct placed *p, char *dense)
{
    bool  kept = true;
    char *host = sac_alloc(p->bytes);
    assert_non_null(host);
    assert_sac_ok(sac_device_copy(dev, NULL, host, sac_buffer_data(p->buffer), p->bytes,
                                  SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_USER, "test"));
    if (!p->pixel)
        memcpy(dense, host, p->bytes);
    for (int64_t i = 0; i < p->pixels; i++) {
        const char *pixel = host + (size_t)(i * p->pixel) * p->element;
        memcpy(dense + (size_t)(i * p->c) * p->element, pixel + (size_t)p->skip * p->element,
               (size_t)p->c * p->element);
        for (size_t b = 0; b < (size_t)p->pixel * p->element; b++)
            if (b < (size_t)p->skip * p->element || b >= (size_t)(p->skip + p->c) * p->element)
                kept = kept && (unsigned char)pixel[b] == 0xff;
    }
    sac_free(host);
    return kept;
}

/* ---- one run ---- */

struct attempt {
    struct bench             *b;
    const struct parity_case *pc;
    const struct subject     *s;
    struct sac_kernel_plan    plan;
    bool                      slices;
    int                       in_place; /* an input that the output may lie on; -1: none */
    double                    before;   /* the largest number before the activation */
};

static void complain(struct attempt *a, const char *what, double error)
{
    printf("WRONG %s %s { %s } %s, %s%s: %s", a->pc->op, a->pc->inputs, a->pc->attrs,
           sac_precision_name(a->plan.precision), a->plan.implementation,
           a->slices ? ", slices" : "", what);
    if (error >= 0)
        printf(" %.3g", error);
    putchar('\n');
    a->b->wrong++;
}

static void complain_result(struct attempt *a, const char *doing)
{
    char why[512] = "", text[600];
    sac_context_last_error(test_context(), why, sizeof why);
    snprintf(text, sizeof text, "%s: %s", doing, why);
    complain(a, text, -1);
}

/* A pass of ours reads sums that cuDNN has rounded to float16: what it is off by goes with the
 * sums. */
static double bound(const struct attempt *a, double most)
{
    if (a->plan.precision != SAC_PRECISION_FP16)
        return 2e-5 * fmax(most, a->before);
    return 8e-4 *
               (strncmp(a->plan.implementation, "plain", 5) == 0 ? fmax(most, a->before) : most) +
           1e-5 * a->before;
}

/* Of 8-bit numbers, or float16 that was made of such. */
static void compare_quantised(struct attempt *a, const char *dense)
{
    const struct sac_operand *y = &a->s->call->out[0];
    const struct sac_op      *op = a->s->node.op;
    const int64_t             count = sac_operand_elements(y);
    const double              most = subject_most(op, y);
    float                    *got = sac_alloc((size_t)count * sizeof *got);
    double                    worst = 0;
    /* Hopper's unit keeps some 14 bits of what it adds E4M3's products to: of 3,600 taps PyTorch's
     * product by the same unit, not carried over to float32, was off by 0.0028 of the largest sum,
     * of 400 by 0.0009 (one H200, 2026-11-29). The other kernels keep float32's. */
    const double sums = a->s->call->in[0].dtype == SAC_F8 ? 5e-3
                        : y->dtype == SAC_F32             ? 1e-3
                                                          : 1e-5;
    assert_non_null(got);
    sac_layout_convert(y, got, SAC_LAYOUT_PLAIN, dense, a->plan.out_layout[0]);
    for (int64_t i = 0; i < count; i++) {
        struct sac_operand other = *y;
        other.data = got;
        const double want = sac_operand_get(y, i), is = sac_operand_get(&other, i);
        const double may = subject_bound(op, y->dtype, most, want) + sums * most;
        const double error = fabs(is - want) / may;
        worst = error <= worst ? worst : isnan(error) ? INFINITY : error;
    }
    if (worst > 1)
        complain(a, "error, of what it may be", worst);
    sac_free(got);
}

static void compare(struct attempt *a, const char *dense)
{
    const struct sac_operand *y = &a->s->call->out[0];
    const int64_t             count = sac_operand_elements(y);
    float                    *got = sac_alloc((size_t)count * sizeof *got);
    double                    most = 1e-3, worst = 0;
    assert_non_null(got);
    sac_layout_convert(y, got, SAC_LAYOUT_PLAIN, dense, a->plan.out_layout[0]);
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)((const float *)y->data)[i]));
    for (int64_t i = 0; i < count; i++) {
        const double error = fabs((double)got[i] - (double)((const float *)y->data)[i]) / most;
        worst = error <= worst ? worst : isnan(error) ? INFINITY : error;
    }
    if (!(worst * most <= bound(a, most)))
        complain(a, "error", worst);
    a->b->worst[a->plan.precision] = fmax(a->b->worst[a->plan.precision], worst);
    sac_free(got);
}

static void run_once(struct attempt *a, const struct sac_kernel *k, void *const *in_at,
                     const struct placed *out, const struct placed *scratch)
{
    const struct sac_op_call *c = a->s->call;
    void                     *out_at[SAC_OP_OUTPUTS_MAX] = {out->at};
    if (k->run(a->b->dev, a->plan.state, in_at, out_at, scratch->at, NULL) != SAC_OK ||
        a->b->dev->ops->copy(a->b->dev, NULL, scratch->at, scratch->at, 1, SAC_COPY_ON_DEVICE) !=
            SAC_OK) {
        complain_result(a, "run");
        return;
    }
    char *dense = sac_alloc(sac_layout_bytes(&c->out[0], a->plan.out_layout[0]));
    assert_non_null(dense);
    if (!copy_out(a->b->dev, out, dense))
        complain(a, "wrote beside its slice", -1);
    if (strncmp(a->pc->op, "Quant", 5) == 0)
        compare_quantised(a, dense);
    else
        compare(a, dense);
    sac_free(dense);
}

static void run(struct attempt *a, const struct sac_kernel *k)
{
    const struct sac_op_call *c = a->s->call;
    struct placed             in[4], out, scratch;
    void                     *in_at[SAC_OP_INPUTS_MAX] = {NULL};
    const struct sac_operand  room = {
         .dtype = SAC_U8, .rank = 1, .dims = {(int64_t)a->plan.scratch_bytes + 1}};
    memset(in, 0, sizeof in);
    for (int i = 0; i < c->in_count && i < 4; i++) {
        if (!c->in[i].present || a->plan.in_taken[i])
            continue;
        place(&in[i], a->b->dev, &c->in[i], a->plan.in_layout[i], a->plan.in_pixel[i] > 0);
        char *host = sac_alloc(sac_layout_bytes(&c->in[i], a->plan.in_layout[i]));
        assert_non_null(host);
        sac_layout_convert(&c->in[i], host, a->plan.in_layout[i], c->in[i].data, SAC_LAYOUT_PLAIN);
        copy_in(a->b->dev, &in[i], host);
        sac_free(host);
        in_at[i] = in[i].at;
    }
    place(&out, a->b->dev, &c->out[0], a->plan.out_layout[0], a->plan.out_pixel[0] > 0);
    place(&scratch, a->b->dev, &room, SAC_LAYOUT_PLAIN, false);
    copy_in(a->b->dev, &out, NULL);
    run_once(a, k, in_at, &out, &scratch);
    if (a->in_place >= 0 && in[a->in_place].buffer && !a->slices) /* what it read is written over */
        run_once(a, k, in_at, &in[a->in_place], &scratch);
    for (int i = 0; i < 4; i++)
        sac_buffer_unref(&in[i].buffer);
    sac_buffer_unref(&out.buffer);
    sac_buffer_unref(&scratch.buffer);
    a->b->runs++;
}

static void slice(struct attempt *a, struct sac_op_call *c)
{
    struct placed p;
    for (int i = 0; i < 5; i += 1) {
        const bool                out = i == 4;
        const struct sac_operand *o = out ? &c->out[0] : &c->in[i];
        if (!out && (i >= c->in_count || !o->present || a->s->constant[i]))
            continue;
        p.pixel = (o->dims[1] + 7) / 8 * 8 + 16;
        *(out ? &a->plan.out_pixel[0] : &a->plan.in_pixel[i]) = p.pixel;
        *(out ? &a->plan.out_sample[0] : &a->plan.in_sample[i]) =
            p.pixel * sac_operand_elements(o) / o->dims[0] / o->dims[1];
    }
}

static void attempt(struct bench *b, const struct parity_case *pc, const struct subject *s,
                    struct gpu_weights *weights, enum sac_precision precision, const char *choice,
                    bool slices, double before)
{
    const struct sac_kernel *k = b->provider->kernels[s->node.op->id];
    struct sac_op_call      *c = sac_alloc(sizeof *c);
    struct attempt           a = {.b = b, .pc = pc, .s = s, .slices = slices, .before = before};
    assert_non_null(c);
    *c = *s->call;
    for (int i = 0; i < c->in_count; i++)
        if (!s->constant[i])
            c->in[i].data = NULL;
    c->out[0].data = NULL;
    a.plan = (struct sac_kernel_plan){.call = c, .precision = precision, .weights = &weights->base};
    const struct sac_kernel_offer offer = ask_kernel(b->dev, k, &a.plan);
    if (!offer.taken) {
        b->refused++;
        if (precision == SAC_PRECISION_FP16 && !choice)
            printf("not taken: %s %s { %s }: %s\n", pc->op, pc->inputs, pc->attrs, offer.why);
        sac_free(c);
        return;
    }
    a.in_place = offer.in_place;
    if (slices && offer.strided)
        slice(&a, c);
    a.plan.choice = choice;
    if (k->prepare(b->dev, &a.plan) != SAC_OK)
        complain_result(&a, "prepare");
    else if (!choice || strncmp(a.plan.chosen, choice, strlen(choice)) == 0)
        run(&a, k);
    if (a.plan.state)
        k->release(a.plan.state);
    sac_free(c);
}

/* The largest number of the result without its activation. */
static double largest_before(struct subject *s)
{
    double  most = 0;
    int64_t kind = 0;
    for (int i = 0; i < s->node.attr_count; i++)
        if (strcmp(s->attrs[i].name, "activation") == 0) {
            kind = s->attrs[i].i;
            s->attrs[i].i = SAC_ACT_NONE;
        }
    assert_sac_ok(s->node.op->ref(s->call));
    for (int64_t i = 0; i < sac_operand_elements(&s->call->out[0]); i++)
        most = fmax(most, fabs((double)((const float *)s->call->out[0].data)[i]));
    for (int i = 0; i < s->node.attr_count; i++)
        if (strcmp(s->attrs[i].name, "activation") == 0)
            s->attrs[i].i = kind;
    return most;
}

/* Results about as large as the residual and the bias are. */
static void scale_sums(struct subject *s)
{
    const struct sac_operand *w = &s->call->in[1];
    const double              taps = (double)sac_operand_elements(w) /
                        (double)sac_operand_elements(&s->call->in[4]),
                 step = w->dtype == SAC_I8 ? 5000 : 1;
    for (int64_t i = 0; i < sac_operand_elements(&s->call->in[4]); i++)
        ((float *)(uintptr_t)s->call->in[4].data)[i] *= (float)(1 / (step * sqrt(taps)));
}

static void begin_case(struct bench *b, const struct parity_case *pc, struct subject *s,
                       struct gpu_weights *weights)
{
    subject_seed(0x9e3779b97f4a7c15u);
    subject_init(s, pc, FILL_RANDOM);
    gpu_weights_init(weights, b->dev);
    assert_sac_ok(subject_shape(s));
    s->call->workers = b->dev->workers;
}

/* The variants of a way from one on, of float16 and smaller; every other one writes a slice. What
 * is not taken costs a search for another way, so the others of a kernel that takes all or none are
 * left out then. */
static void attempt_variants(struct bench *b, const struct parity_case *pc, const struct subject *s,
                             struct gpu_weights *weights, struct variants of, double before)
{
    for (int v = of.from; v < of.from + of.count; v++) {
        const int had = b->runs;
        char      choice[24];
        snprintf(choice, sizeof choice, "%s %d", of.way, v);
        attempt(b, pc, s, weights, SAC_PRECISION_FP16, choice, v % 2, before);
        if (of.alike && v == of.from && b->runs == had)
            return;
        b->tensors += strcmp(of.way, "tensor") == 0 && b->runs > had;
        b->windows += strcmp(of.way, "tensor") == 0 && v >= TENSORS && b->runs > had;
    }
}

static void check_quantised(struct bench *b, const struct parity_case *pc)
{
    static const struct variants ways[] = {{"tensor", 0, TENSORS, true},
                                           {"tensor", TENSORS, WINDOWS, false},
                                           {"stream", 0, 5, false},
                                           {"bytes", 0, 12, false},
                                           {"bytes-plain", 0, 1, false}};
    struct subject               s;
    struct gpu_weights           weights;
    begin_case(b, pc, &s, &weights);
    scale_sums(&s);
    if (s.call->in[3].present && s.call->in[3].dtype == SAC_F32)
        for (int64_t i = 0; i < sac_operand_elements(&s.call->in[3]); i++) {
            float *x = (float *)(uintptr_t)s.call->in[3].data + i;
            *x = sac_half_to_float(sac_float_to_half(*x));
        }
    assert_sac_ok(s.node.op->ref(s.call));
    for (size_t i = 0; i < SAC_COUNT(ways); i++)
        attempt_variants(b, pc, &s, &weights, ways[i], 0);
    gpu_weights_finish(&weights);
    subject_finish(&s);
}

static void attempt_stems(struct bench *b, const struct parity_case *pc, const struct subject *s,
                          struct gpu_weights *weights, double before)
{
    const int had = b->runs;
    attempt(b, pc, s, weights, SAC_PRECISION_FP16, "stem 0", false, before);
    const int by_warps = b->runs;
    attempt(b, pc, s, weights, SAC_PRECISION_FP16, "stem 1", false, before);
    b->stems += by_warps > had;
    b->units += b->runs > by_warps;
}

static void check_case(struct bench *b, const struct parity_case *pc)
{
    struct subject     s;
    struct gpu_weights weights;
    begin_case(b, pc, &s, &weights);
    subject_round(&s);
    const double before = largest_before(&s);
    assert_sac_ok(s.node.op->ref(s.call));
    const bool                   conv = strstr(pc->op, "Conv") != NULL;
    static const struct variants ways[] = {{"patches", 0, TILES, true},
                                           {"patches", TILES, TENSORS, true},
                                           {"tile", 0, TILES, true},
                                           {"tensor", 0, TENSORS, true},
                                           {"tensor", TENSORS, WINDOWS, false}};
    for (int p = SAC_PRECISION_FP32; p <= SAC_PRECISION_FP16; p++) {
        const enum sac_precision precision = (enum sac_precision)p;
        attempt(b, pc, &s, &weights, precision, NULL, false, before);
        if (!conv)
            continue;
        attempt(b, pc, &s, &weights, precision, "plain 1", false, before);
        attempt(b, pc, &s, &weights, precision, "direct 0", true, before);
        for (int v = 0; v < 7; v++) {
            char choice[16];
            snprintf(choice, sizeof choice, "depthwise %d", v);
            attempt(b, pc, &s, &weights, precision, choice, v % 2, before);
        }
        if (precision == SAC_PRECISION_FP16) {
            attempt_stems(b, pc, &s, &weights, before);
            attempt(b, pc, &s, &weights, precision, NULL, true, before);
            attempt(b, pc, &s, &weights, precision, "plain 1", true, before);
        }
    }
    for (size_t i = 0; i < SAC_COUNT(ways); i++)
        if (conv || strcmp(ways[i].way, "patches") != 0)
            attempt_variants(b, pc, &s, &weights, ways[i], before);
    gpu_weights_finish(&weights);
    subject_finish(&s);
}

static void all_shapes(void **state)
{
    struct bench b = {.dev = gpu_open(NULL)};
    int          count = 0;
    (void)state;
    const struct sac_kernel_provider *const *list = sac_kernel_providers(b.dev, &count);
    for (int i = 0; i < count; i++)
        if (strncmp(list[i]->name, "products", 8) == 0)
            b.provider = list[i];
    if (!b.provider)
        fail_msg("no provider 'products': %s", sac_kernel_plugin_missing(b.dev));
    printf("%s\n", b.provider->name);
    for (int i = first_shape; i < SHAPES && i < first_shape + shape_count; i += shape_step) {
        const int          number = i - (int)SAC_COUNT(fixed) + FIRST_RANDOM;
        struct text        text;
        struct parity_case pc =
            i < (int)SAC_COUNT(fixed) ? fixed[i] : (struct parity_case){.op = NULL};
        if (!pc.op)
            pc = (struct parity_case){.op = i < FLOAT_SHAPES ? random_case(number, &text)
                                                             : random_quantised(number, &text),
                                      .inputs = text.inputs,
                                      .attrs = text.attrs};
        if (i < FLOAT_SHAPES)
            check_case(&b, &pc);
        else
            check_quantised(&b, &pc);
        fflush(stdout);
    }
    printf("%d runs, %d of them by tensor, of which %d windows that stay, %d stems, of which %d by "
           "Hopper's unit, %d wrong, %d not taken; "
           "largest error: fp32 %.2g, "
           "tf32 %.2g, fp16 %.2g\n",
           b.runs, b.tensors, b.windows, b.stems, b.units, b.wrong, b.refused,
           b.worst[SAC_PRECISION_FP32], b.worst[SAC_PRECISION_TF32], b.worst[SAC_PRECISION_FP16]);
    sac_device_unref(&b.dev);
    assert_int_equal(b.wrong, 0);
    assert_true(b.tensors == 0 || b.stems < 3 || b.units > 0); /* on Hopper half of them suit it */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_shapes)};
    if (argc > 1 && sscanf(argv[1], "%d/%d", &first_shape, &shape_step) < 1)
        return 2;
    if (argc > 2)
        shape_count = atoi(argv[2]);
    return cmocka_run_group_tests_name("parity/conv_cuda", tests, NULL, NULL);
}
