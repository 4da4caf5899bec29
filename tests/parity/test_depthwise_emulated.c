/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device's kernels for depthwise convolutions, their threads emulated, against the
 * reference row: every template, sizes that fit nothing, each precision, dense and as slices of
 * wider maps. What is not written, or written beside a slice, shows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_launch.h"
#include "engine/cuda/products/conv_spec.h"
#include "tests/parity/subject.h"
#include "tests/test.h"

static const struct parity_case cases[] = {
    /* 3x3, 5x5, 7x7 down the rows, by four channels and by two */
    {"FusedConv", "[2,16,9,11] [16,1,3,3]! [16]!", "group=16 pads=1,1,1,1 activation=5"},
    {"FusedConv", "[1,6,9,11] [6,1,3,3]! [6]!", "group=6 pads=1,1,1,1 activation=1"},
    {"FusedConv", "[2,16,15,14] [16,1,3,3]! [16]!",
     "group=16 pads=0,1,1,0 strides=2,2 activation=8 "
     "alpha=0.1666667 beta=0.5"},
    {"FusedConv", "[1,10,8,9] [10,1,3,3]!", "group=10 pads=1,1,1,1 strides=2,2"},
    {"FusedConv", "[1,8,13,17] [8,1,5,5]! [8]!",
     "group=8 pads=2,2,2,2 activation=7 "
     "alpha=0.1666667 beta=0.5"},
    {"FusedConv", "[1,8,14,11] [8,1,5,5]! [8]! [1,8,7,5]",
     "group=8 pads=1,1,2,1 strides=2,2 activation=1 residual=2"},
    {"FusedConv", "[2,12,16,15] [12,1,7,7]! [12]!", "group=12 pads=3,3,3,3"},
    {"FusedConv", "[1,8,14,14] [8,1,7,7]! [8]! [1,8,14,14]",
     "group=8 pads=3,3,3,3 activation=1 residual=1"},
    {"FusedConv", "[1,4,15,16] [4,1,7,7]! [4]!", "group=4 pads=3,2,3,1 strides=2,2 activation=4"},
    /* maps smaller than the window, and windows that reach beyond both edges */
    {"FusedConv", "[2,8,1,1] [8,1,3,3]! [8]!", "group=8 pads=1,1,1,1 activation=1"},
    {"FusedConv", "[1,8,1,1] [8,1,7,7]! [8]!", "group=8 pads=3,3,3,3"},
    {"FusedConv", "[1,8,2,3] [8,1,7,7]! [8]! [1,8,2,3]",
     "group=8 pads=3,3,3,3 activation=5 residual=2"},
    {"FusedConv", "[1,8,3,2] [8,1,5,5]!", "group=8 pads=4,4,4,4 strides=2,2 activation=9"},
    {"FusedConv", "[1,8,1,9] [8,1,5,5]! [8]!", "group=8 pads=2,2,2,2"},
    {"FusedConv", "[1,8,9,1] [8,1,3,3]! [8]!", "group=8 pads=4,3,6,5"},
    /* GELU */
    {"FusedConv", "[2,16,9,11] [16,1,3,3]! [16]!", "group=16 pads=1,1,1,1 activation=10"},
    {"FusedConv", "[1,6,9,11] [6,1,5,5]! [6]! [1,6,9,11]",
     "group=6 pads=2,2,2,2 activation=11 residual=2"},
    /* numbers for each channel behind it, and for the residual */
    {"FusedConv", "[2,16,9,11] [16,1,3,3]! [16]! - [3,16]!", "group=16 pads=1,1,1,1 activation=10"},
    {"FusedConv", "[1,6,9,11] [6,1,7,7]! [6]! [1,6,9,11] [3,6]!",
     "group=6 pads=3,3,3,3 activation=10 residual=2"},
    {"FusedConv", "[1,10,8,9] [10,1,3,3]! - [1,10,4,5] [3,10]!",
     "group=10 pads=1,1,1,1 strides=2,2 residual=2"},
    {"FusedConv", "[1,5,9,8] [5,1,9,9]! [5]! [1,5,9,8] [3,5]!",
     "group=5 pads=4,4,4,4 activation=1 residual=1"},
    /* dilated */
    {"FusedConv", "[1,8,13,12] [8,1,3,3]! [8]!", "group=8 pads=2,2,2,2 dilations=2,2 activation=1"},
    {"FusedConv", "[1,6,7,5] [6,1,3,3]! [6]! [1,6,7,5]",
     "group=6 pads=6,6,6,6 dilations=6,6 activation=5 residual=1"},
    {"FusedConv", "[1,4,12,9] [4,1,5,5]!", "group=4 pads=2,6,2,6 dilations=1,3"},
    {"FusedConv", "[1,4,17,19] [4,1,7,7]! [4]!", "group=4 pads=6,9,7,8 dilations=2,3"},
    {"FusedConv", "[1,8,12,12] [8,1,3,3]! [8]!",
     "group=8 pads=2,2,2,2 dilations=2,2 strides=2,2 activation=3 alpha=0. beta=6."},
    /* large and oblong windows: across the columns, also turned */
    {"FusedConv", "[1,6,11,19] [6,1,9,9]! [6]!", "group=6 pads=4,4,4,4 activation=1"},
    {"FusedConv", "[1,4,13,12] [4,1,11,11]! [4]! [1,4,13,12]",
     "group=4 pads=5,5,5,5 activation=5 residual=2"},
    {"FusedConv", "[1,4,9,21] [4,1,1,11]! [4]!", "group=4 pads=0,5,0,5"},
    {"FusedConv", "[2,4,21,9] [4,1,11,1]! [4]!", "group=4 pads=5,0,5,0"},
    {"FusedConv", "[1,4,20,5] [4,1,7,1]! [4]! [1,4,18,5]",
     "group=4 pads=2,0,2,0 activation=2 alpha=0.1 residual=1"},
    {"FusedConv", "[1,4,9,10] [4,1,3,7]! [4]!", "group=4 pads=1,3,1,3"},
    {"FusedConv", "[1,4,18,8] [4,1,9,1]!", "group=4 pads=8,0,8,0 dilations=2,1"},
    /* any other */
    {"FusedConv", "[1,16,9,10] [16,1,3,5]! [16]!",
     "group=16 pads=1,2,1,2 strides=1,2 activation=8 "
     "alpha=0.1666667 beta=0.5"},
    {"FusedConv", "[1,6,9,10] [6,1,2,2]! [6]!", "group=6 strides=2,2 pads=1,0,0,1"},
    {"FusedConv", "[1,8,13,14] [8,1,3,3]! [8]!", "group=8 strides=3,3 pads=1,1,1,1 activation=1"},
    {"FusedConv", "[2,7,9,10] [7,1,3,3]! [7]! [2,7,9,10]",
     "group=7 pads=1,1,1,1 activation=5 residual=2"},
    {"FusedConv", "[1,3,6,8] [3,1,7,7]! [3]!", "group=3 pads=3,3,3,3 strides=2,2"},
    {"Conv", "[1,8,23] [8,1,5]! [8]!", "group=8 pads=2,2"},
    {"Conv", "[1,4,23] [4,1,9]! [4]!", "group=4 pads=4,4"},
};

struct layout {
    enum sac_precision precision;
    int64_t            skip, room; /* channels of a wider map before ours, and in all */
};
static const struct layout layouts[] = {
    {SAC_PRECISION_FP32, 0, 0}, {SAC_PRECISION_FP32, 8, 24}, {SAC_PRECISION_FP32, 2, 6},
    {SAC_PRECISION_FP32, 1, 3}, {SAC_PRECISION_FP16, 0, 0},  {SAC_PRECISION_FP16, 8, 24},
    {SAC_PRECISION_FP16, 2, 6}, {SAC_PRECISION_FP16, 1, 3},
};

/* A map on the device: bytes from a multiple of 16 on. */
struct map {
    char  *bytes, *at; /* of all channels, and of ours */
    size_t size;
};

static void put(const struct layout *l, void *to, int64_t i, float v)
{
    if (l->precision == SAC_PRECISION_FP16)
        ((uint16_t *)to)[i] = sac_float_to_half(v);
    else
        ((float *)to)[i] = v;
}

static float get(const struct layout *l, const void *from, int64_t i)
{
    return l->precision == SAC_PRECISION_FP16 ? sac_half_to_float(((const uint16_t *)from)[i])
                                              : ((const float *)from)[i];
}

static struct map map_of(const struct layout *l, const struct sac_operand *o,
                         const struct conv_map *m, bool filled)
{
    const int64_t c = o->dims[1], pixels = sac_operand_elements(o) / o->dims[0] / c;
    const size_t  element = l->precision == SAC_PRECISION_FP16 ? 2 : 4;
    struct map    p = {.size = (size_t)(o->dims[0] * m->sample) * element};
    p.bytes = sac_alloc_aligned(16, p.size);
    assert_non_null(p.bytes);
    p.at = p.bytes + (l->room ? (size_t)l->skip * element : 0);
    memset(p.bytes, 0xff, p.size); /* NaNs */
    for (int64_t n = 0; n < o->dims[0] && filled; n++)
        for (int64_t k = 0; k < c; k++)
            for (int64_t i = 0; i < pixels; i++)
                put(l, p.at, n * m->sample + i * m->pixel + k,
                    ((const float *)o->data)[(n * c + k) * pixels + i]);
    return p;
}

/* To what float16 holds, so that only sums and results may differ. */
struct attempt {
    const struct parity_case *pc;
    const struct subject     *s;
    const struct layout      *l;
    struct conv_spec          spec;
    int                       variant;
    double                    before; /* the largest number before the activation */
};

static void complain(const struct attempt *a, const char *what, double error)
{
    fail_msg("%s { %s } %s, %d channels before and in all %d more, variant %d: %s %g",
             a->pc->inputs, a->pc->attrs, sac_precision_name(a->l->precision), (int)a->l->skip,
             (int)a->l->room, a->variant, what, error);
}

/* As test_conv_cuda.c judges. */
static void compare(const struct attempt *a, const struct map *got)
{
    const struct sac_operand *y = &a->s->call->out[0];
    const struct conv_map    *m = &a->spec.out;
    const int64_t             c = m->c, pixels = m->size[0] * m->size[1] * m->size[2];
    const float              *want = y->data;
    double                    most = 1e-3, worst = 0;
    for (int64_t i = 0; i < a->spec.n * c * pixels; i++)
        most = fmax(most, fabs((double)want[i]));
    for (int64_t i = 0; i < a->spec.n * pixels; i++)
        for (int64_t k = -a->l->skip; k < m->pixel - a->l->skip; k++) {
            const int64_t at = i / pixels * m->sample + i % pixels * m->pixel + k;
            if (k < 0 || k >= c) {
                const unsigned char *byte =
                    (const unsigned char *)got->at + at * (int64_t)conv_element(&a->spec);
                if (*byte != 0xff)
                    complain(a, "wrote beside its slice at channel", (double)k);
                continue;
            }
            const double error = fabs((double)get(a->l, got->at, at) -
                                      (double)want[(i / pixels * c + k) * pixels + i % pixels]);
            worst = error <= worst ? worst : isnan(error) ? INFINITY : error;
        }
    const bool half = a->l->precision == SAC_PRECISION_FP16;
    if (!(worst <= (half ? 8e-4 * most + 1e-5 * a->before : 2e-5 * fmax(most, a->before))))
        complain(a, "error", worst);
}

static void run(const struct attempt *a)
{
    const struct conv_spec   *v = &a->spec;
    const struct sac_op_call *c = a->s->call;
    struct map                x = map_of(a->l, &c->in[0], &v->in, true), residual = {.bytes = NULL},
               y = map_of(a->l, &c->out[0], &v->out, false);
    char *w = sac_alloc_aligned(16, conv_weights_bytes(v, CONV_FORM_TAPS)),
         *bias = sac_alloc_aligned(16, (size_t)v->out.c * 4);
    conv_weights_pack(v, CONV_FORM_TAPS, c->in[1].data, w);
    for (int64_t i = 0; i < v->out.c && v->bias; i++)
        put(a->l, bias, i, ((const float *)c->in[2].data)[i]);
    if (v->residual.c)
        residual = map_of(a->l, &c->in[3], &v->residual, true);
    const struct conv_depthwise_params p = {
        .finish = {.act = (int)v->act.kind,
                   .alpha = v->act.alpha,
                   .beta = v->act.beta,
                   .residual_kind = (int)v->residual_kind,
                   .bias = v->bias ? bias : NULL,
                   .residual = residual.at,
                   .residual_pixel = v->residual.pixel,
                   .residual_sample = v->residual.sample,
                   .ending = v->ending ? c->in[SAC_ENDING].data : NULL,
                   .ending_c = v->out.c},
        .half = a->l->precision == SAC_PRECISION_FP16,
        .x = x.at,
        .w = w,
        .y = y.at,
        .n = (int)v->n,
        .c = (int)v->out.c,
        .in_h = (int)v->in.size[1],
        .in_w = (int)v->in.size[2],
        .out_h = (int)v->out.size[1],
        .out_w = (int)v->out.size[2],
        .kernel_h = (int)v->kernel[1],
        .kernel_w = (int)v->kernel[2],
        .stride_h = (int)v->stride[1],
        .stride_w = (int)v->stride[2],
        .dilation_h = (int)v->dilation[1],
        .dilation_w = (int)v->dilation[2],
        .pad_top = (int)v->pad_begin[1],
        .pad_left = (int)v->pad_begin[2],
        .rows = conv_depthwise_rows[a->variant],
        .x_pixel = v->in.pixel,
        .x_sample = v->in.sample,
        .y_pixel = v->out.pixel,
        .y_sample = v->out.sample};
    assert_int_equal(conv_launch_depthwise(&p, NULL), cudaSuccess);
    compare(a, &y);
    sac_free(x.bytes);
    sac_free(y.bytes);
    sac_free(residual.bytes);
    sac_free(w);
    sac_free(bias);
}

/* The largest number of the result without its activation. */
static double largest_before(struct subject *s)
{
    int64_t kind = 0;
    for (int i = 0; i < s->node.attr_count; i++)
        if (strcmp(s->attrs[i].name, "activation") == 0) {
            kind = s->attrs[i].i;
            s->attrs[i].i = SAC_ACT_NONE;
        }
    assert_sac_ok(s->node.op->ref(s->call));
    const double most = subject_largest(&s->call->out[0]);
    for (int i = 0; i < s->node.attr_count; i++)
        if (strcmp(s->attrs[i].name, "activation") == 0)
            s->attrs[i].i = kind;
    return most;
}

static void check(const struct parity_case *pc, const struct layout *l)
{
    static struct sac_weights weights; /* conv_spec_read only looks whether there are any */
    struct subject            s;
    char                      why[128];
    subject_seed(11);
    subject_init(&s, pc, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    subject_round(&s);
    struct attempt         a = {.pc = pc, .s = &s, .l = l, .before = largest_before(&s)};
    struct sac_op_call    *c = s.call;
    struct sac_kernel_plan plan = {.call = c, .precision = l->precision, .weights = &weights};
    assert_sac_ok(s.node.op->ref(c));
    for (int i = 0; i < 4 && l->room; i += 3)
        plan.in_pixel[i] = sac_op_has(c, i) ? c->in[i].dims[1] + l->room : 0;
    plan.out_pixel[0] = l->room ? c->out[0].dims[1] + l->room : 0;
    if (!conv_spec_read(&plan, &a.spec, why, sizeof why))
        fail_msg("%s { %s }: %s", pc->inputs, pc->attrs, why);
    assert_true(conv_is_depthwise(&a.spec));
    for (int v = 0; v < CONV_DEPTHWISE_VARIANTS; v++) {
        a.variant = v;
        if (v == 0 || conv_depthwise_rows[v - 1] < a.spec.out.size[1])
            run(&a);
    }
    subject_finish(&s);
}

static void kernels_compute_what_the_reference_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        for (size_t l = 0; l < SAC_COUNT(layouts); l++)
            check(&cases[i], &layouts[l]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_compute_what_the_reference_does)};
    return cmocka_run_group_tests_name("parity/depthwise_emulated", tests, NULL, NULL);
}
