/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and products of 8-bit numbers by the CUDA device's kernels with their threads
 * emulated, every variant: the numbers that the reference rows compute. Maps are dense, or slices
 * of wider ones, where what lies beside them must stay. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_copies.h"
#include "engine/cuda/products/quant_params.h"
#include "tests/parity/subject.h"
#include "tests/test.h"

static const struct parity_case cases[] = {
    {"QuantConv", "i8[2,16,7,6] i8[24,16,3,3]! [24]! - [24]!",
     "pads=1,1,1,1 activation=1 y_type=3 y_scale=900."},
    {"QuantConv", "u8[1,32,9,5] i8[40,32,3,3]! [40]! u8[1,40,5,3] [40]+!",
     "pads=1,1,1,1 strides=2,2 x_zero=7 residual=1 r_scale=300. r_zero=9 activation=5 y_type=2 "
     "y_scale=700. y_zero=100"},
    {"QuantConv", "i8[3,48,5,5] i8[13,48,1,1]! - [3,13,5,5] [13]!", "residual=2 activation=1"},
    {"QuantConv", "i8[1,160,6,6] i8[130,160,2,2]! - - [130]!",
     "dilations=2,2 y_type=3 y_scale=9e3"},
    {"QuantConv", "f8[1,32,6,7] f8[64,32,3,3]! [64]! f8[1,64,6,7] [64]!",
     "pads=1,1,1,1 residual=1 r_scale=2. activation=1 y_type=17 y_scale=3."},
    {"QuantMatMul", "i8[3,7,64] i8[64,48]! [48]! - [48]!", "activation=10"},
    {"QuantMatMul", "f8[5,32] f8[32,80]! - [5,80] [80]!", "residual=1"},
    /* laid out for the tiles before */
    {"QuantConv", "u8[1,3,17,19] i8[16,3,5,5]! [16]! - [16]!",
     "strides=2,2 pads=2,2,2,2 x_zero=5 activation=1 y_type=2 y_scale=400."},
    {"QuantMatMul", "i8[7,24] i8[24,17]! [17]! - [17]!", ""},
    {"QuantConv", "i8[2,7,5] i8[6,7,3]! - - [6]!", "pads=1,1 y_type=3 y_scale=500."},
    /* the plain kernel alone */
    {"QuantConv", "u8[1,6,6,5] i8[9,2,3,3]! [9]! - [9]!", "group=3 pads=1,0,2,1 x_zero=3"},
};

/* For blocks that stay: several tiles each. */
static const struct parity_case streamed[] = {
    {"QuantConv", "i8[2,16,9,11] i8[48,16,3,3]! [48]! i8[2,48,9,11] [48]!",
     "pads=1,1,1,1 residual=1 r_scale=200. activation=1 y_type=3 y_scale=900."},
    {"QuantConv", "i8[3,64,9,9] i8[144,64,1,1]! [144]! i8[3,144,9,9] [144]!",
     "residual=2 r_scale=300. activation=5 y_type=3 y_scale=900."},
    {"QuantConv", "f8[2,160,12,12] f8[272,160,1,1]! [272]! - [272]!",
     "activation=3 alpha=-20. beta=40. y_type=17 y_scale=2."},
    {"QuantConv", "i8[2,32,17,15] i8[64,32,3,3]! [64]! i8[2,64,9,8] [64]!",
     "pads=1,1,1,1 strides=2,2 residual=2 r_scale=90. activation=3 alpha=-9000. beta=40000. "
     "y_type=3 y_scale=500."},
    {"QuantMatMul", "i8[3,67,272] i8[272,160]! [160]! i8[3,67,160] [160]!",
     "activation=7 alpha=0.0001 beta=0.5 residual=1 r_scale=10. y_type=3 y_scale=900."},
    {"QuantMatMul", "f8[300,64] f8[64,48]! [48]! - [48]!", "activation=10 y_type=17 y_scale=1."},
};

/* For the copy engine alone: rows of 32 and 64 bytes, taps that do not fill a turn, windows that
 * reach over all edges, far taps. half: the output, the residual of float16 then. */
enum { HALF_OUT = 1, HALF_RESIDUAL = 2, SAMPLES_APART = 4 };
static const struct {
    struct parity_case c;
    int                half;
} copied[] = {
    {{"QuantConv", "i8[2,32,9,8] i8[32,32,3,3]! [32]! - [32]!",
      "pads=1,1,1,1 activation=1 y_type=3 y_scale=500."},
     0},
    {{"QuantConv", "i8[3,48,11,7] i8[80,48,3,3]! [80]! i8[3,80,4,4] [80]!",
      "pads=0,2,1,0 strides=3,2 residual=1 r_scale=90. activation=1 y_type=3 y_scale=700."},
     0},
    {{"QuantConv", "f8[2,80,8,9] f8[208,80,3,3]! [208]! f8[2,208,8,9] [208]!",
      "pads=3,3,3,3 dilations=3,3 residual=2 r_scale=2. activation=5 y_type=17 y_scale=3."},
     0},
    {{"QuantConv", "i8[2,64,14,13] i8[64,64,1,1]! [64]! - [64]!", "strides=2,2 activation=5"},
     HALF_OUT},
    {{"QuantConv", "i8[1,192,12,13] i8[96,192,2,3]! [96]! [1,96,11,11] [96]!",
      "residual=2 activation=1"},
     HALF_OUT | HALF_RESIDUAL},
    {{"QuantConv", "i8[2,16,10,9] i8[272,16,5,5]! [272]! [2,272,10,9] [272]!",
      "pads=2,2,2,2 residual=1 activation=1 y_type=3 y_scale=900."},
     HALF_RESIDUAL},
    {{"QuantConv", "i8[70,96,2,2] i8[48,96,2,2]! [48]! - [48]!",
      "pads=1,1,0,0 activation=7 alpha=0.001 beta=0.5 y_type=3 y_scale=300."},
     0},
    {{"QuantMatMul", "i8[2,70,160] i8[160,208]! [208]! [2,70,208] [208]!", "residual=2"},
     HALF_OUT | HALF_RESIDUAL},
    {{"QuantMatMul", "f8[130,144] f8[144,400]! [400]! f8[130,400] [400]!",
      "residual=1 r_scale=3. activation=1"},
     HALF_OUT},
    {{"QuantConv", "i8[3,40,7,8] i8[32,40,3,3]! [32]! - [32]!",
      "pads=1,1,1,1 y_type=3 y_scale=600."},
     0},
    {{"QuantConv", "i8[2,64,19,21] i8[64,64,3,3]! [64]! - [64]!",
      "pads=1,1,1,1 strides=2,2 activation=5 y_type=3 y_scale=300."},
     0},
    {{"QuantConv", "i8[2,64,9,11] i8[64,64,1,1]! [64]! - [64]!", ""}, HALF_OUT},
    {{"QuantConv", "i8[2,64,9,11] i8[64,64,3,3]! [64]! - [64]!", "pads=1,1,1,1 activation=1"},
     HALF_OUT},
    {{"QuantConv", "f8[2,64,9,11] f8[64,64,1,1]! [64]! - [64]!", "y_type=17 y_scale=3."}, 0},
    {{"QuantConv", "i8[2,20,7,8] i8[32,20,3,3]! [32]! - [32]!",
      "pads=1,1,1,1 activation=1 y_type=3 y_scale=400."},
     0},
};

/* A map channels last with `more` other bytes behind each pixel; from: [N,C,pixels] or NULL. */
struct laid {
    uint8_t        *bytes;
    size_t          size;
    struct conv_map m;
};

static size_t number_bytes(enum conv_number n)
{
    return n == CONV_F32 ? 4 : n == CONV_F16 ? 2 : 1;
}

static struct laid lay(const struct conv_map *m, int64_t n, size_t each, const void *from)
{
    const int64_t pixels = m->size[1] * m->size[2];
    struct laid   l = {.size = (size_t)(n * m->sample) * each, .m = *m};
    l.bytes = sac_alloc_aligned(64, l.size);
    assert_non_null(l.bytes);
    memset(l.bytes, 0xee, l.size);
    for (int64_t i = 0; i < n * m->c * pixels && from; i++)
        memcpy(l.bytes + (size_t)(i / pixels / m->c * m->sample + i % pixels * m->pixel +
                                  i / pixels % m->c) *
                             each,
               (const char *)from + (size_t)i * each, each);
    return l;
}

/* [rows, columns] is [1, columns, rows] channels last already. */
static const void *in_order(const struct quant_spec *s, const void *data, int64_t c, size_t each,
                            void *room)
{
    const int64_t rows = s->conv.in.size[2];
    if (!s->conv.turned || !data)
        return data;
    for (int64_t i = 0; i < rows * c; i++)
        memcpy((char *)room + (size_t)(i % c * rows + i / c) * each,
               (const char *)data + (size_t)i * each, each);
    return room;
}

static double number_at(enum conv_number kind, const void *p, int64_t i)
{
    switch (kind) {
    case CONV_F32: return (double)((const float *)p)[i];
    case CONV_F16: return (double)sac_half_to_float(((const uint16_t *)p)[i]);
    case CONV_S8: return ((const int8_t *)p)[i];
    case CONV_U8: return ((const uint8_t *)p)[i];
    default: return (double)sac_f8_to_float(((const uint8_t *)p)[i]);
    }
}

struct job {
    struct subject           *s;
    struct quant_spec         v;
    struct laid               x, y, residual;
    float                    *bias;
    uint8_t                  *weights;
    struct conv_bytes_params  p, laid;
    struct conv_stream_params stream;
    struct quant_operands     operands; /* of what is laid out, if it is */
    uint8_t                  *room;     /* for the input as the tiles read it */
};

static void check_output(const struct job *j, int variant)
{
    const struct sac_operand *out = &j->s->call->out[0];
    const struct sac_op      *op = j->s->node.op;
    const double              most = subject_most(op, out);
    const int64_t             pixels = j->y.m.size[1] * j->y.m.size[2], c = j->y.m.c;
    const size_t              each = number_bytes(j->v.y);
    for (int64_t n = 0; n < j->v.conv.n; n++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t k = 0; k < j->y.m.pixel; k++) {
                const int64_t at = n * j->y.m.sample + p * j->y.m.pixel + k;
                const int64_t from = j->v.conv.turned ? p * c + k : (n * c + k) * pixels + p;
                if (k >= c) {
                    for (size_t b = 0; b < each; b++)
                        assert_int_equal(j->y.bytes[(size_t)at * each + b], 0xee);
                    continue;
                }
                const double got = number_at(j->v.y, j->y.bytes, at),
                             want =
                                 number_at(j->v.y == CONV_F16 ? CONV_F32 : j->v.y, out->data, from);
                const double rounded = j->v.y == CONV_F16 ? 1e-3 * most : 1e-5 * most;
                if (!(fabs(got - want) <= subject_bound(op, out->dtype, most, want) + rounded))
                    fail_msg("%s variant %d: [%lld,%lld,%lld] is %g, not %g", op->name, variant,
                             (long long)n, (long long)k, (long long)p, got, want);
            }
}

static void fill_params(struct job *j)
{
    const struct quant_operands o = {.x = j->x.bytes,
                                     .weights = j->weights,
                                     .scale = j->s->call->in[SAC_QUANT_SCALE].data,
                                     .bias = j->bias,
                                     .residual = j->residual.bytes,
                                     .y = j->y.bytes};
    struct quant_operands       there = o;
    j->operands = o;
    j->p = quant_params(&j->v, &o, false);
    j->laid = j->p;
    j->stream = quant_stream_params(&j->v, &o, false);
    if (j->v.conv.groups > 1 || quant_is_laid_out(&j->v))
        return;
    const size_t bytes = (size_t)quant_scratch_bytes(&j->v);
    assert_non_null(j->room = sac_alloc_aligned(64, bytes));
    memset(j->room, 0xee, bytes);
    const struct conv_bytes_lay_params lay = quant_lay_params(&j->v, j->x.bytes, j->room);
    assert_int_equal(conv_launch_bytes_lay(&lay, NULL), cudaSuccess);
    there.x = j->room;
    j->laid = quant_params(&j->v, &there, true);
    j->stream = quant_stream_params(&j->v, &there, true);
    j->operands = there;
}

static void make_constants(struct job *j)
{
    const struct sac_op_call *c = j->s->call;
    const float  *bias = sac_op_has(c, SAC_QUANT_BIAS) ? c->in[SAC_QUANT_BIAS].data : NULL;
    const int64_t outputs = j->v.conv.out.c;
    j->weights = sac_alloc_aligned(64, quant_weights_bytes(&j->v));
    j->bias = sac_alloc_aligned(64, (size_t)outputs * sizeof(float));
    assert_non_null(j->weights);
    assert_non_null(j->bias);
    quant_weights_pack(&j->v, c->in[1].data, j->weights, 0, outputs / 2);
    quant_weights_pack(&j->v, c->in[1].data, j->weights, outputs / 2, outputs);
    if (quant_moves_bias(&j->v))
        quant_bias_pack(&j->v, c->in[1].data, c->in[SAC_QUANT_SCALE].data, bias, j->bias);
    else
        for (int64_t i = 0; i < outputs; i++)
            j->bias[i] = bias ? bias[i] : 0;
}

static void run_tiles(struct job *j)
{
    int ran = 0;
    for (int v = -1; v < CONV_BYTES_VARIANTS; v++) {
        if (v >= 0 && !quant_fits(&j->v, v, 90))
            continue;
        memset(j->y.bytes, 0xee, j->y.size);
        assert_int_equal(v < 0 ? conv_launch_bytes_plain(&j->p, j->v.kind, NULL)
                               : conv_launch_bytes(&j->laid, j->v.kind, v, NULL),
                         cudaSuccess);
        check_output(j, v);
        ran++;
    }
    if (j->v.conv.groups == 1)
        assert_int_equal(ran, 1 + CONV_BYTES_VARIANTS);
}

/* Returns how many variants of blocks that stay ran. */
static int run_streams(struct job *j)
{
    int ran = 0;
    for (int v = 0; v < CONV_STREAM_VARIANTS; v++)
        if (quant_streams(&j->v, v, 90)) {
            memset(j->y.bytes, 0xee, j->y.size);
            const cudaError_t res = conv_launch_stream(&j->stream, j->v.kind, v, 5, NULL);
            if (v == CONV_STREAM_VARIANTS - 1 && res == cudaErrorNotSupported)
                continue; /* no room for so large a tile's residual */
            assert_int_equal(res, cudaSuccess);
            check_output(j, 100 + v);
            ran++;
        }
    return ran;
}

static cudaError_t launch_tensor(const struct job *j, int variant)
{
    struct conv_copy_shape    shapes[TENSOR_MAPS];
    struct conv_tensor_params p =
        quant_tensor_params(&j->v, &j->operands, j->room != NULL, variant, shapes);
    assert_int_equal(conv_copy_maps_make(shapes, p.maps), cudaSuccess);
    return conv_launch_tensor(&p, j->v.kind, variant, 3, NULL);
}

static int windows; /* variants that ran whose windows stay */

/* Returns how many variants of the copy engine's ran. */
static int run_tensors(struct job *j)
{
    int ran = 0;
    for (int v = 0; v < CONV_TENSOR_VARIANTS; v++)
        if (quant_tensors(&j->v, v, 90)) {
            windows += v >= CONV_TENSOR_WINDOWS;
            memset(j->y.bytes, 0xee, j->y.size);
            assert_int_equal(launch_tensor(j, v), cudaSuccess);
            check_output(j, 200 + v);
            ran++;
        }
    return ran;
}

/* Elements from one pixel to the next, of a slice. */
static int64_t apart(int64_t c, int64_t more)
{
    return more ? c + more : 0;
}

static uint16_t *halves_of(const float *from, int64_t count)
{
    uint16_t *to = sac_alloc((size_t)count * sizeof *to);
    assert_non_null(to);
    for (int64_t i = 0; i < count; i++)
        to[i] = sac_float_to_half(from[i]);
    return to;
}

/* By which kernels. */
enum { TILES = 1, STREAMS = 2, TENSORS = 4 };
struct ran {
    int streams, tensors; /* so many variants */
};
static struct ran check(const struct parity_case *pc, int64_t more, int by, int half)
{
    static struct sac_weights weights; /* only looked at whether there are any */
    struct subject            s;
    struct job                j = {.s = &s};
    char                      why[160];
    subject_seed(29);
    subject_init(&s, pc, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    for (int64_t i = 0; half & HALF_OUT && i < sac_operand_elements(&s.call->in[4]); i++)
        ((float *)(uintptr_t)s.call->in[4].data)[i] *= 1e-3f; /* results that float16 has */
    assert_sac_ok(s.node.op->ref(s.call));
    struct sac_kernel_plan plan = {
        .call = s.call, .precision = SAC_PRECISION_FP32, .weights = &weights};
    const struct sac_operand *in = s.call->in, *out = &s.call->out[0];
    const bool                conv = s.node.op->id == SAC_OP_QuantConv;
    if (half & HALF_OUT)
        plan.out_layout[0] = conv ? SAC_LAYOUT_CHANNELS_LAST_HALF : SAC_LAYOUT_PLAIN_HALF;
    if (half & HALF_RESIDUAL)
        plan.in_layout[3] = conv ? SAC_LAYOUT_CHANNELS_LAST_HALF : SAC_LAYOUT_PLAIN_HALF;
    plan.in_pixel[0] = conv ? apart(in[0].dims[1], more) : 0;
    plan.out_pixel[0] = conv ? apart(out->dims[1], more) : 0;
    plan.in_pixel[3] = conv && sac_op_has(s.call, 3) ? apart(out->dims[1], more) : 0;
    if (half & SAMPLES_APART) /* three pixels lie between them */
        plan.out_sample[0] = plan.in_sample[3] =
            (sac_operand_elements(out) / out->dims[0] / out->dims[1] + 3) *
            (plan.out_pixel[0] ? plan.out_pixel[0] : out->dims[1]);
    if (!quant_spec_read(&plan, &j.v, why, sizeof why))
        fail_msg("%s: %s", pc->inputs, why);
    const struct conv_spec *c = &j.v.conv;
    const size_t            most =
        4 * (size_t)sac_operand_elements(&in[0]) + 4 * (size_t)sac_operand_elements(out);
    void *room = sac_alloc(most);
    assert_non_null(room);
    j.x = lay(&c->in, c->n, 1, in_order(&j.v, in[0].data, c->in.c, 1, room));
    j.y = lay(&c->out, c->n, number_bytes(j.v.y), NULL);
    uint16_t *halves =
        half & HALF_RESIDUAL ? halves_of(in[3].data, sac_operand_elements(&in[3])) : NULL;
    if (c->residual_kind != SAC_RESIDUAL_NONE)
        j.residual = lay(&c->residual, c->n, number_bytes(j.v.residual),
                         in_order(&j.v, halves ? halves : in[3].data, c->out.c,
                                  number_bytes(j.v.residual), room));
    make_constants(&j);
    fill_params(&j);
    if (by & TILES)
        run_tiles(&j);
    const struct ran ran = {by & STREAMS ? run_streams(&j) : 0, by & TENSORS ? run_tensors(&j) : 0};
    void *all[] = {halves, room, j.room, j.x.bytes, j.y.bytes, j.residual.bytes, j.weights, j.bias};
    for (size_t i = 0; i < SAC_COUNT(all); i++)
        sac_free(all[i]);
    subject_finish(&s);
    return ran;
}

static void every_variant_is_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        check(&cases[i], 0, TILES | STREAMS, 0);
        if (strcmp(cases[i].op, "QuantConv") == 0)
            check(&cases[i], i % 2 ? 16 : 5, TILES | STREAMS, 0);
    }
}

static void blocks_that_stay_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(streamed); i++) {
        assert_true(check(&streamed[i], 0, STREAMS, 0).streams >= CONV_STREAM_VARIANTS - 1);
        if (strcmp(streamed[i].op, "QuantConv") == 0)
            assert_true(check(&streamed[i], 16, STREAMS, 0).streams >= CONV_STREAM_VARIANTS - 1);
    }
}

/* All, or those that bring pixels for each tap where windows do not overlap, step further than two,
 * or are of few channels. */
static void expect_tensors(const struct parity_case *c, int apart_by, int half)
{
    const int before = windows, ran = check(c, apart_by, TENSORS, half).tensors;
    assert_int_equal(ran - (windows - before), CONV_TENSOR_WINDOWS);
}

static void the_copy_engines_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(streamed); i++)
        expect_tensors(&streamed[i], 16 - (int)i % 2 * 16, 0);
    for (size_t i = 0; i < SAC_COUNT(copied); i++)
        expect_tensors(&copied[i].c, (int)i % 2 * 16, copied[i].half);
    for (size_t i = 0; i < SAC_COUNT(copied); i++)
        if (strcmp(copied[i].c.op, "QuantConv") == 0)
            expect_tensors(&copied[i].c, (int)i % 2 * 16, copied[i].half | SAMPLES_APART);
    assert_true(windows >= 3 * (CONV_TENSOR_VARIANTS - CONV_TENSOR_WINDOWS));
}

/* On GPUs before, Hopper's variants are not taken, nor E4M3 on those without it. */
static void older_cards_have_fewer(void **state)
{
    static struct sac_weights weights;
    struct subject            s;
    struct quant_spec         v;
    char                      why[160];
    (void)state;
    subject_seed(1);
    subject_init(&s, &cases[4], FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    struct sac_kernel_plan plan = {
        .call = s.call, .precision = SAC_PRECISION_FP16, .weights = &weights};
    assert_true(quant_spec_read(&plan, &v, why, sizeof why));
    assert_true(quant_fits(&v, CONV_BYTES_HOPPER, 90) && quant_fits(&v, 0, 89));
    assert_false(quant_fits(&v, CONV_BYTES_HOPPER, 100) || quant_fits(&v, 0, 86));
    assert_false(quant_fits(&v, -1, 90) || quant_fits(&v, CONV_BYTES_VARIANTS, 90));
    v.kind = CONV_BYTES_S8;
    assert_true(quant_fits(&v, 0, 80));
    assert_false(quant_fits(&v, 0, 75));
    subject_finish(&s);
}

/* The library takes products of E4M3 numbers that become float16, with one scale. */
static void the_library_takes_some_products(void **state)
{
    static struct sac_weights       weights;
    static const struct parity_case product = {"QuantMatMul", "f8[9,32] f8[32,48]! [48]! - [48]!",
                                               "activation=1"};
    struct sac_kernel_plan          plan = {.precision = SAC_PRECISION_FP16, .weights = &weights};
    const float                     one[48] = {0}, two[48] = {[47] = 1e5f};
    struct subject                  s;
    struct quant_spec               v;
    char                            why[160];
    (void)state;
    subject_init(&s, &product, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    plan.call = s.call;
    assert_true(quant_spec_read(&plan, &v, why, sizeof why));
    assert_false(quant_lt_fits(&v, 90)); /* float32 */
    v.y = CONV_F16;
    assert_true(quant_lt_fits(&v, 90) && quant_lt_fits(&v, 89) && !quant_lt_fits(&v, 86));
    v.kind = CONV_BYTES_S8;
    assert_false(quant_lt_fits(&v, 90));
    v.kind = CONV_BYTES_F8;
    v.conv.act.kind = SAC_ACT_GELU;
    assert_false(quant_lt_fits(&v, 90));
    v.conv.act.kind = SAC_ACT_RELU;
    v.conv.residual_kind = SAC_RESIDUAL_BEFORE;
    v.conv.residual = v.conv.out;
    v.residual = CONV_F16;
    assert_true(quant_lt_fits(&v, 90));
    v.conv.residual_kind = SAC_RESIDUAL_AFTER;
    assert_false(quant_lt_fits(&v, 90));
    assert_true(quant_lt_takes(&v, one, NULL) && quant_lt_takes(&v, one, one));
    assert_false(quant_lt_takes(&v, two, NULL) || quant_lt_takes(&v, one, two));
    subject_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_is_right),
        cmocka_unit_test(blocks_that_stay_are_right),
        cmocka_unit_test(the_copy_engines_are_right),
        cmocka_unit_test(older_cards_have_fewer),
        cmocka_unit_test(the_library_takes_some_products),
    };
    return cmocka_run_group_tests_name("parity/bytes_emulated", tests, NULL, NULL);
}
