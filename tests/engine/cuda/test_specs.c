/* SPDX-License-Identifier: Apache-2.0 */
/* How convolutions and matrix products are described to the GPU's libraries, without a GPU: the
 * description is computed here in plain loops and must give what the reference rows give. And the
 * texts of choices. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_spec.h"
#include "engine/cuda/products/matmul_spec.h"
#include "tests/parity/subject.h"
#include "tests/test.h"

/* ---- a convolution by its description ---- */

struct conv_job {
    const struct conv_spec *s;
    const float            *x, *w, *bias, *residual, *ending;
    float                  *y;
};

static int64_t map_at(const struct conv_map *m, int64_t n, int64_t z, int64_t h, int64_t w)
{
    return n * m->sample + ((z * m->size[1] + h) * m->size[2] + w) * m->pixel;
}

/* Of a transposed one, which input a tap of an output reads; -1: none. */
static int64_t source(const struct conv_spec *s, int d, int64_t at, int64_t tap)
{
    const int64_t from = s->transposed ? at + s->pad_begin[d] - tap * s->dilation[d]
                                       : at * s->stride[d] + tap * s->dilation[d] - s->pad_begin[d];
    if (!s->transposed)
        return from >= 0 && from < s->in.size[d] ? from : -1;
    return from >= 0 && from % s->stride[d] == 0 && from / s->stride[d] < s->in.size[d]
               ? from / s->stride[d]
               : -1;
}

static double sum_at(const struct conv_job *j, int64_t n, const int64_t at[3], int64_t k,
                     enum conv_form form)
{
    const struct conv_spec *s = j->s;
    const int64_t           kg = s->out.c / s->groups, cg = s->in.c / s->groups, g = k / kg;
    const int64_t outer = s->transposed ? s->in.c : s->out.c, inner = s->transposed ? kg : cg;
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    double        sum = 0;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t tap[3] = {t / s->kernel[2] / s->kernel[1], t / s->kernel[2] % s->kernel[1],
                                t % s->kernel[2]};
        int64_t       from[3];
        bool          inside = true;
        for (int d = 0; d < 3; d++) {
            from[d] = source(s, d, at[d], tap[d]);
            inside = inside && from[d] >= 0;
        }
        for (int64_t c = 0; c < cg && inside; c++) {
            const int64_t o = s->transposed ? g * cg + c : k, i = s->transposed ? k % kg : c;
            const int64_t w = form == CONV_FORM_LAST ? (o * taps + t) * inner + i
                              : s->transposed        ? (t * outer + o) * inner + i
                                                     : (t * inner + i) * outer + o;
            sum += (double)j->x[map_at(&s->in, n, from[0], from[1], from[2]) + g * cg + c] *
                   (double)j->w[w];
        }
    }
    return sum;
}

/* What is stored of channel k, of the numbers behind its activation and its residual there. */
static float ended(const struct conv_job *j, int64_t k, float v, float residual)
{
    const float *const a = j->ending ? j->ending + k : NULL;
    const int64_t      channels = j->s->out.c;
    return a ? v * a[SAC_ENDING_SCALE * channels] + a[SAC_ENDING_SHIFT * channels] +
                   residual * a[SAC_ENDING_RESIDUAL * channels]
             : v + residual;
}

static void compute(const struct conv_job *j, enum conv_form form)
{
    const struct conv_spec *s = j->s;
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t p = 0; p < s->out.size[0] * s->out.size[1] * s->out.size[2]; p++) {
            const int64_t at[3] = {p / s->out.size[2] / s->out.size[1],
                                   p / s->out.size[2] % s->out.size[1], p % s->out.size[2]};
            for (int64_t k = 0; k < s->out.c; k++) {
                float       v = (float)sum_at(j, n, at, k, form) + (s->bias ? j->bias[k] : 0);
                const float r = s->residual_kind == SAC_RESIDUAL_NONE || k >= s->residual.c
                                    ? 0
                                    : j->residual[map_at(&s->residual, n, at[0], at[1], at[2]) + k];
                v = sac_activate(s->residual_kind == SAC_RESIDUAL_BEFORE ? v + r : v, &s->act);
                j->y[map_at(&s->out, n, at[0], at[1], at[2]) + k] =
                    ended(j, k, v, s->residual_kind == SAC_RESIDUAL_AFTER ? r : 0);
            }
        }
}

/* A map with room around its channels, in which what is not written stays as it was. */
static float *spread(const struct sac_operand *o, const struct conv_map *m)
{
    const int64_t pixels = sac_operand_elements(o) / o->dims[0] / o->dims[1],
                  all = o->dims[0] * m->sample;
    float *out = sac_alloc((size_t)all * sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < all; i++)
        out[i] = -77;
    for (int64_t n = 0; n < o->dims[0] && o->data; n++)
        for (int64_t c = 0; c < o->dims[1]; c++)
            for (int64_t p = 0; p < pixels; p++)
                out[n * m->sample + p * m->pixel + c] =
                    ((const float *)o->data)[(n * o->dims[1] + c) * pixels + p];
    return out;
}

static void check_map(const struct sac_operand *o, const struct conv_map *m, const float *got)
{
    const int64_t pixels = sac_operand_elements(o) / o->dims[0] / o->dims[1];
    for (int64_t n = 0; n < o->dims[0]; n++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = 0; c < m->pixel; c++) {
                const double have = got[n * m->sample + p * m->pixel + c];
                const double want =
                    c < m->c ? ((const float *)o->data)[(n * m->c + c) * pixels + p] : -77;
                if (fabs(have - want) > 1e-4 * fmax(1, fabs(want)))
                    fail_msg("element %lld,%lld,%lld is %g, not %g", (long long)n, (long long)c,
                             (long long)p, have, want);
            }
}

static struct sac_weights *some_weights(void)
{
    static struct sac_weights w; /* conv_spec_read only looks whether there are any */
    return &w;
}

static void check_conv(const struct parity_case *pc, int64_t room)
{
    static const struct sac_operand none;
    struct subject                  s;
    struct conv_spec                spec;
    char                            why[128] = "", text[512];
    subject_seed(7);
    subject_init(&s, pc, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    assert_sac_ok(s.node.op->ref(s.call));
    struct sac_op_call    *c = s.call;
    struct sac_kernel_plan plan = {
        .call = c, .precision = SAC_PRECISION_FP32, .weights = some_weights()};
    for (int i = 0; i < 4; i += 3)
        plan.in_pixel[i] = sac_op_has(c, i) && room ? c->in[i].dims[1] + room : 0;
    plan.out_pixel[0] = room ? c->out[0].dims[1] + room : 0;
    const bool empty_one = sac_operand_elements(&c->out[0]) == 0; /* which another kernel takes */
    if (conv_spec_read(&plan, &spec, why, sizeof why) == empty_one)
        fail_msg("%s { %s }: %s", pc->inputs, pc->attrs, why);
    if (empty_one) {
        subject_finish(&s);
        return;
    }
    assert_true(conv_spec_text(&spec, text, sizeof text) > 0);
    assert_int_equal(conv_spec_flops(&spec), s.node.op->flops(c));
    assert_int_equal(conv_weights_bytes(&spec, CONV_FORM_LAST), sac_operand_bytes(&c->in[1]));
    for (int form = CONV_FORM_LAST; form <= CONV_FORM_TAPS; form++) {
        struct conv_job    job = {.s = &spec,
                                  .x = spread(&c->in[0], &spec.in),
                                  .bias = spec.bias ? c->in[2].data : NULL,
                                  .ending = spec.ending ? c->in[SAC_ENDING].data : NULL};
        struct sac_operand empty = c->out[0];
        float             *w = sac_alloc(conv_weights_bytes(&spec, CONV_FORM_LAST));
        float             *residual = spec.residual.c ? spread(&c->in[3], &spec.residual) : NULL;
        empty.data = none.data;
        conv_weights_pack(&spec, (enum conv_form)form, c->in[1].data, w);
        job.w = w;
        job.residual = residual;
        job.y = spread(&empty, &spec.out);
        compute(&job, (enum conv_form)form);
        check_map(&c->out[0], &spec.out, job.y);
        sac_free((void *)job.x);
        sac_free(w);
        sac_free(residual);
        sac_free(job.y);
    }
    subject_finish(&s);
}

/* Convolutions of one text share a kernel, which has the slope in it. */
static void slopes_that_differ_by_a_bit_have_texts_of_their_own(void **state)
{
    static const struct parity_case pc = {"FusedConv", "[1,4,6,6] [8,4,3,3]! [8]!",
                                          "activation=2 alpha=0.1"};
    struct subject                  s;
    struct conv_spec                spec;
    char                            why[128], text[512], other[512];
    (void)state;
    subject_seed(7);
    subject_init(&s, &pc, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    const struct sac_kernel_plan plan = {
        .call = s.call, .precision = SAC_PRECISION_FP32, .weights = some_weights()};
    assert_true(conv_spec_read(&plan, &spec, why, sizeof why));
    assert_true(conv_spec_text(&spec, text, sizeof text) > 0);
    spec.act.alpha = nextafterf(spec.act.alpha, 1);
    assert_true(conv_spec_text(&spec, other, sizeof other) > 0);
    assert_string_not_equal(text, other);
    subject_finish(&s);
}

static void convolutions_mean_what_the_reference_computes(void **state)
{
    (void)state;
    int checked = 0;
    for (int i = 0; i < parity_case_count; i++) {
        const struct parity_case *pc = &parity_cases[i];
        struct subject            s;
        if (strcmp(pc->op, "Conv") != 0 && strcmp(pc->op, "FusedConv") != 0 &&
            strcmp(pc->op, "ConvTranspose") != 0)
            continue;
        subject_init(&s, pc, FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        const bool small =
            s.call->in[0].dtype == SAC_F32 && s.constant[1] && s.node.op->flops(s.call) < 3e6;
        subject_finish(&s);
        if (!small)
            continue;
        check_conv(pc, 0);
        check_conv(pc, 8);
        checked++;
    }
    assert_true(checked > 15);
}

/* What files pad beyond the last window, and windows that end early, cuDNN must not see. */
static void pads_reach_as_far_as_windows_do(void **state)
{
    static const struct parity_case cases[] = {
        {"Conv", "[1,2,8,8] [3,2,3,3]!", "pads=1,1,1,1 strides=2,2"},
        {"Conv", "[1,2,9,8] [3,2,2,2]!", "strides=3,3"},
        {"Conv", "[1,2,7,7] [3,2,3,3]!", "auto_pad='SAME_UPPER' strides=2,2"},
        {"ConvTranspose", "[1,2,5,5] [2,3,3,3]!", "strides=2,2 pads=1,1,1,1 output_padding=1,1"},
        {"ConvTranspose", "[1,2,5] [2,3,3]!", "strides=3 output_padding=2"},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct subject   s;
        struct conv_spec v;
        char             why[128];
        check_conv(&cases[i], 0);
        subject_init(&s, &cases[i], FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        struct sac_kernel_plan plan = {
            .call = s.call, .precision = SAC_PRECISION_FP16, .weights = some_weights()};
        assert_true(conv_spec_read(&plan, &v, why, sizeof why));
        for (int d = 0; d < 3; d++) { /* the formula by which cuDNN counts outputs */
            const int64_t over = v.transposed ? v.out.size[d] : v.in.size[d];
            const int64_t windows = v.transposed ? v.in.size[d] : v.out.size[d];
            const int64_t reach = (v.kernel[d] - 1) * v.dilation[d] + 1;
            assert_true(v.pad_begin[d] >= 0 && v.pad_end[d] >= 0);
            assert_int_equal((over + v.pad_begin[d] + v.pad_end[d] - reach) / v.stride[d] + 1,
                             windows);
        }
        subject_finish(&s);
    }
}

static void what_is_not_covered_is_refused(void **state)
{
    static const struct parity_case cases[] = {
        {"Conv", "f64[1,2,8,8] f64[3,2,3,3]!", ""},
        {"Conv", "[1,2,8,8] [3,2,3,3]", ""},
        {"Conv", "[1,2,8,8] [3,2,3,3]! [3]", ""},
        {"Conv", "[0,2,8,8] [3,2,3,3]!", ""},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct subject   s;
        struct conv_spec v;
        char             why[128] = "";
        subject_init(&s, &cases[i], FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        for (int k = 0; k < s.call->in_count; k++)
            if (!s.constant[k])
                s.call->in[k].data = NULL;
        struct sac_kernel_plan plan = {
            .call = s.call, .precision = SAC_PRECISION_FP16, .weights = some_weights()};
        assert_false(conv_spec_read(&plan, &v, why, sizeof why));
        assert_true(why[0] != '\0');
        subject_finish(&s);
    }
}

static void weights_in_float16(void **state)
{
    const float      from[] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint16_t         to[8];
    struct conv_spec s = {
        .precision = SAC_PRECISION_FP16, .groups = 1, .in.c = 2, .out.c = 2, .kernel = {1, 1, 2}};
    const float last[] = {1, 3, 2, 4, 5, 7, 6, 8}, taps[] = {1, 5, 3, 7, 2, 6, 4, 8};
    (void)state;
    assert_int_equal(conv_weights_bytes(&s, CONV_FORM_LAST), sizeof to);
    conv_weights_pack(&s, CONV_FORM_LAST, from, to);
    for (int i = 0; i < 8; i++)
        assert_float_equal(sac_half_to_float(to[i]), last[i], 0);
    conv_weights_pack(&s, CONV_FORM_TAPS, from, to);
    for (int i = 0; i < 8; i++)
        assert_float_equal(sac_half_to_float(to[i]), taps[i], 0);
}

/* Of a matrix product, the file has them as [C,K]. */
static void weights_of_a_product(void **state)
{
    const float      from[] = {1, 2, 3, 4, 5, 6}, last[] = {1, 4, 2, 5, 3, 6};
    uint16_t         to[6];
    struct conv_spec s = {.precision = SAC_PRECISION_FP16,
                          .groups = 1,
                          .turned = true,
                          .in.c = 2,
                          .out.c = 3,
                          .kernel = {1, 1, 1}};
    (void)state;
    conv_weights_pack(&s, CONV_FORM_LAST, from, to);
    for (int i = 0; i < 6; i++)
        assert_float_equal(sac_half_to_float(to[i]), last[i], 0);
    conv_weights_pack(&s, CONV_FORM_TAPS, from, to);
    for (int i = 0; i < 6; i++)
        assert_float_equal(sac_half_to_float(to[i]), from[i], 0);
}

/* Of groups in bundles, and of channels that are no eights: a group's weights lie where its
 * channels do, and all around them are zeros. */
static void weights_in_bundles(void **state)
{
    static const struct {
        int64_t groups, in, out, together, depth;
        int     unit;
    } cases[] = {{32, 4, 4, 8, 32, 16}, {3, 5, 7, 3, 16, 0},  {1, 26, 9, 1, 32, 4},
                 {4, 12, 32, 1, 16, 8}, {12, 2, 6, 6, 16, 8}, {2, 6, 64, 1, 8, 4}};
    enum { TAPS = 2, MOST = 64 * 26 * TAPS * 2 };
    static float    from[MOST];
    static uint16_t to[2 * MOST];
    (void)state;
    for (int i = 0; i < MOST; i++)
        from[i] = (float)(i % 2000 + 1);
    for (size_t n = 0; n < SAC_COUNT(cases); n++) {
        const int64_t    groups = cases[n].groups, inner = cases[n].in, outer = cases[n].out;
        struct conv_spec s = {.precision = SAC_PRECISION_FP16,
                              .groups = groups,
                              .in = {.c = groups * inner, .pixel = groups * inner, .align = 16},
                              .out.c = groups * outer,
                              .kernel = {1, 1, TAPS}};
        s.in.sample = 8 * s.in.pixel;
        const struct conv_bundle b = conv_bundle_of(&s);
        assert_int_equal(b.groups, cases[n].together);
        assert_int_equal(b.groups * b.count, groups);
        assert_int_equal(b.depth, cases[n].depth);
        assert_int_equal(b.unit, cases[n].unit);
        assert_true(conv_weights_bytes(&s, CONV_FORM_BUNDLES) <= sizeof to);
        conv_weights_pack(&s, CONV_FORM_BUNDLES, from, to);
        for (int64_t i = 0; i < s.out.c * TAPS * b.depth; i++) {
            const int64_t o = i / b.depth / TAPS, t = i / b.depth % TAPS,
                          c = i % b.depth - o / outer % b.groups * inner;
            const float want = c >= 0 && c < inner ? from[(o * inner + c) * TAPS + t] : 0;
            assert_float_equal(sac_half_to_float(to[i]), want, 0);
        }
    }
}

/* Threads pack some of the outputs each: what they write is that part of the whole. */
static void weights_in_parts(void **state)
{
    enum { OUTER = 6, INNER = 4, TAPS = 3, EACH = INNER * TAPS };
    float from[OUTER * EACH], whole[OUTER * EACH], parts[OUTER * EACH];
    (void)state;
    for (int i = 0; i < OUTER * EACH; i++)
        from[i] = (float)i;
    for (int transposed = 0; transposed < 2; transposed++) {
        struct conv_spec s = {.precision = SAC_PRECISION_FP32,
                              .groups = 2,
                              .transposed = transposed,
                              .in.c = transposed ? OUTER : 2 * INNER,
                              .out.c = transposed ? 2 * INNER : OUTER,
                              .kernel = {1, 1, TAPS}};
        int64_t         *outer = transposed ? &s.in.c : &s.out.c;
        conv_weights_pack(&s, CONV_FORM_LAST, from, whole);
        for (int o = 0; o < OUTER; o += 2) {
            *outer = 2;
            conv_weights_pack(&s, CONV_FORM_LAST, from + o * EACH, parts + o * EACH);
        }
        assert_memory_equal(parts, whole, sizeof whole);
    }
}

/* ---- few input channels ---- */

/* What the matrix units would sum for channel k at a pixel: the row of the column that has the
 * channel, times the pairs of numbers that lie where conv_stem.cu looks for them. */
static double stem_sum(const struct conv_spec *s, const struct conv_stem_shape *stem,
                       const uint16_t *w, const float *x, int64_t n, int64_t oy, int64_t ox,
                       int64_t k)
{
    const int64_t block = k / (stem->tiles * 8),
                  column = block * stem->tiles * 8 +
                           conv_stem_column(stem->tiles, (int)(k % (stem->tiles * 8)));
    double sum = 0;
    for (int64_t step = 0; step < stem->steps; step++)
        for (int64_t i = 0; i < 16; i++) {
            const int64_t pair = step * 8 + i / 2, r = pair / stem->pairs;
            const float   weight =
                sac_half_to_float(w[(step * s->out.c + column) * 16 + (i ^ (column / 4 % 2 * 8))]);
            const int64_t at = (ox * s->stride[2] - s->pad_begin[2]) * stem->channels - stem->lead +
                               2 * (pair % stem->pairs) + i % 2;
            const int64_t y = oy * s->stride[1] - s->pad_begin[1] + r,
                          c = (at % stem->channels + stem->channels) % stem->channels;
            const int64_t x_at = (at - c) / stem->channels;
            if (r < s->kernel[1] && y >= 0 && y < s->in.size[1] && x_at >= 0 &&
                x_at < s->in.size[2] && c < s->in.c)
                sum += (double)weight * (double)x[map_at(&s->in, n, 0, y, x_at) + c];
            else if (r >= s->kernel[1] || c >= s->in.c)
                assert_true(weight == 0);
        }
    return sum;
}

static void words_of_a_stem_are_its_windows(void **state)
{
    static const struct parity_case cases[] = {
        {"Conv", "[1,3,11,10] [32,3,6,6]!", "pads=2,2,2,2 strides=2,2"}, /* YOLOX */
        {"Conv", "[1,3,9,12] [64,3,7,7]!", "pads=3,3,3,3 strides=2,2"},  /* ResNet */
        {"Conv", "[2,12,5,6] [16,12,3,3]!", "pads=1,1,1,1"},
        {"Conv", "[1,3,6,5] [48,3,3,3]!", "pads=1,0,1,1"},
        {"Conv", "[1,1,6,5] [32,1,5,3]!", "pads=2,1,2,1"},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct subject         s;
        struct conv_spec       v;
        struct conv_stem_shape stem;
        char                   why[128];
        subject_seed(23);
        subject_init(&s, &cases[i], FILL_RANDOM);
        for (int k = 0; k < 2; k++)
            for (int64_t e = 0; e < sac_operand_elements(&s.call->in[k]); e++)
                ((float *)s.call->in[k].data)[e] =
                    sac_half_to_float(sac_float_to_half(((float *)s.call->in[k].data)[e]));
        assert_sac_ok(subject_shape(&s));
        assert_sac_ok(s.node.op->ref(s.call));
        struct sac_kernel_plan plan = {
            .call = s.call, .precision = SAC_PRECISION_FP16, .weights = some_weights()};
        assert_true(conv_spec_read(&plan, &v, why, sizeof why) && conv_stem_shape_of(&v, &stem));
        uint16_t    *w = sac_alloc(conv_weights_bytes(&v, CONV_FORM_STEM));
        float       *x = spread(&s.call->in[0], &v.in);
        const float *want = s.call->out[0].data;
        assert_non_null(w);
        conv_weights_pack(&v, CONV_FORM_STEM, s.call->in[1].data, w);
        for (int64_t e = 0; e < sac_operand_elements(&s.call->out[0]); e++) {
            const int64_t ox = e % v.out.size[2], oy = e / v.out.size[2] % v.out.size[1];
            const int64_t k = e / v.out.size[2] / v.out.size[1] % v.out.c,
                          n = e / v.out.size[2] / v.out.size[1] / v.out.c;
            const double got = stem_sum(&v, &stem, w, x, n, oy, ox, k), at = want[e];
            if (fabs(got - at) > 1e-4 * fmax(1, fabs(at)))
                fail_msg("%s { %s }: element %lld is %g, not %g", cases[i].inputs, cases[i].attrs,
                         (long long)e, got, at);
        }
        sac_free(w);
        sac_free(x);
        subject_finish(&s);
    }
}

/* ---- by itself, each channel ---- */

static struct conv_spec depthwise(int64_t n, int64_t c, int64_t size, int64_t kernel)
{
    const struct conv_map map = {
        .c = c, .size = {1, size, size}, .pixel = c, .sample = c * size * size, .align = 16};
    return (struct conv_spec){.precision = SAC_PRECISION_FP16,
                              .n = n,
                              .groups = c,
                              .in = map,
                              .out = map,
                              .kernel = {1, kernel, kernel},
                              .stride = {1, 1, 1},
                              .dilation = {1, 1, 1}};
}

/* Few rows where few threads would be left, many where the map is large, and never none to try. */
static void rows_of_a_thread_follow_the_map(void **state)
{
    static const int64_t batches[] = {1, 8, 32, 128}, sizes[] = {1, 7, 14, 28, 56, 112, 400};
    (void)state;
    for (size_t b = 0; b < SAC_COUNT(batches); b++)
        for (size_t i = 0; i < SAC_COUNT(sizes); i++)
            for (int64_t kernel = 3; kernel <= 11; kernel += 2) {
                const struct conv_spec s = depthwise(batches[b], 96, sizes[i], kernel);
                const int              likely = conv_depthwise_likely(&s);
                int                    worth = 0;
                assert_true(conv_is_depthwise(&s));
                for (int v = 0; v < CONV_DEPTHWISE_VARIANTS; v++)
                    worth += conv_depthwise_worth(&s, v);
                assert_in_range(worth, 1, CONV_DEPTHWISE_VARIANTS);
                assert_true(conv_depthwise_worth(&s, likely) || likely == 0);
                assert_true(kernel <= 7 || (worth == 1 && likely == 0));
            }
    const struct conv_spec small = depthwise(1, 384, 14, 7), large = depthwise(32, 96, 112, 3);
    assert_int_equal(conv_depthwise_rows[conv_depthwise_likely(&small)], 1);
    assert_true(conv_depthwise_rows[conv_depthwise_likely(&large)] >= 28);
}

/* ---- products ---- */

static void check_product(const struct parity_case *pc)
{
    struct subject     s;
    struct matmul_spec v;
    char               why[128] = "", text[400];
    subject_seed(11);
    subject_init(&s, pc, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    assert_sac_ok(s.node.op->ref(s.call));
    struct sac_op_call    *c = s.call;
    struct sac_kernel_plan plan = {.call = c, .precision = SAC_PRECISION_FP32};
    if (!matmul_spec_read(&plan, &v, why, sizeof why))
        fail_msg("%s { %s }: %s", pc->inputs, pc->attrs, why);
    assert_true(matmul_spec_text(&v, text, sizeof text) > 0);
    assert_int_equal(v.turns * v.batch * v.m * v.n, sac_operand_elements(&c->out[0]));
    const float *a = c->in[0].data, *b = c->in[1].data, *bias = c->in[2].data,
                *whole = c->in[v.c_port].data, *want = c->out[0].data;
    for (int64_t t = 0; t < v.turns * v.batch; t++)
        for (int64_t i = 0; i < v.m * v.n; i++) {
            const int64_t row = i / v.n, column = i % v.n, turn = t / v.batch, one = t % v.batch;
            double        sum = 0;
            for (int64_t k = 0; k < v.k; k++)
                sum += (double)a[v.a_at[turn] + one * v.a_step +
                                 (v.a_transposed ? k * v.m + row : row * v.k + k)] *
                       (double)b[v.b_at[turn] + one * v.b_step +
                                 (v.b_transposed ? column * v.k + k : k * v.n + column)];
            sum = (double)v.alpha * sum + (v.bias ? (double)(v.bias_scale * bias[column]) : 0) +
                  (v.matrix ? (double)(v.beta * whole[i]) : 0);
            sum = (double)sac_activate((float)sum, &v.act);
            if (v.residual_in_pass)
                sum += (double)((const float *)c->in[3].data)[i];
            const double at = want[t * v.y_step + i];
            if (fabs(sum - at) > 1e-4 * fmax(1, fabs(at)))
                fail_msg("%s { %s }: product %lld, element %lld is %g, not %g", pc->inputs,
                         pc->attrs, (long long)t, (long long)i, sum, at);
        }
    subject_finish(&s);
}

static void products_mean_what_the_reference_computes(void **state)
{
    static const struct parity_case cases[] = {
        {"Gemm", "[6,4] [5,4]! [5]!", "transB=1"},
        {"Gemm", "[4,6] [4,5]! [5]!", "transA=1"},
        {"Gemm", "[4,6] [5,4]! [1,5]!", "transA=1 transB=1 alpha=0.5 beta=3."},
        {"Gemm", "[6,4] [4,5]! [6,5]", "alpha=0.5 beta=2."},
        {"Gemm", "[6,4] [4,5]! [5]!", "beta=0."},
        {"Gemm", "[1,4] [4,5]! [1,5]!", "beta=2."},
        {"MatMul", "[3,4] [4,5]", ""},
        {"MatMul", "[2,3,4] [4,5]", ""},
        {"MatMul", "[3,4] [2,4,5]", ""},
        {"MatMul", "[2,3,4] [2,4,5]", ""},
        {"MatMul", "[2,1,3,4] [1,6,4,5]", ""},
        {"MatMul", "[2,6,3,4] [1,6,4,5]", ""},
        {"MatMul", "[2,6,3,4] [2,1,4,5]", ""},
        {"MatMul", "[2,1,6,3,4] [2,3,1,4,5]", ""},
        {"MatMul", "[2,7,6,3,4] [2,1,1,4,5]", ""},
        {"MatMul", "[2,6,3,4] [1,1,4,5]", ""},
        {"MatMul", "[2,1,3,4] [2,6,4,5]", ""},
        {"MatMul", "[6,3,4] [2,1,4,5]", ""},
        {"MatMul", "[4] [4,5]", ""},
        {"MatMul", "[3,4] [4]", ""},
        {"MatMul", "[4] [4]", ""},
        {"MatMul", "[4] [2,4,5]", ""},
        {"MatMul", "[2,3,4] [4]", ""},
        {"FusedMatMul", "[2,3,4] [4,5]! [5]!", "activation=10"},
        {"FusedMatMul", "[2,3,4] [4,5]! - [2,3,5]", "residual=2"},
        {"FusedMatMul", "[2,3,4] [4,5]! [5]! [2,3,5]", "activation=1 residual=1"},
        {"FusedMatMul", "[2,3,4] [4,5]! [5]! [2,3,5]", "activation=5 residual=2"},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        check_product(&cases[i]);
}

/* Heads that share a matrix are rows, so that one call does for all batches; others are not. */
static void what_shares_a_matrix_is_rows(void **state)
{
    static const struct {
        struct parity_case of;
        int64_t            m, batch;
        int                turns;
    } cases[] = {
        {{"MatMul", "[9,4,3,4] [9,1,4,5]", ""}, 12, 9, 1},
        {{"MatMul", "[9,2,4,3,4] [9,1,1,4,5]", ""}, 24, 9, 1},
        {{"MatMul", "[9,4,3,4] [1,1,4,5]", ""}, 108, 1, 1},
        {{"MatMul", "[9,4,3,4] [9,4,4,5]", ""}, 3, 36, 1},
        {{"MatMul", "[9,1,3,4] [9,4,4,5]", ""}, 3, 4, 9},
        {{"MatMul", "[9,4,3,4] [1,4,4,5]", ""}, 3, 4, 9},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct subject     s;
        struct matmul_spec v;
        char               why[128];
        subject_init(&s, &cases[i].of, FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        struct sac_kernel_plan plan = {.call = s.call, .precision = SAC_PRECISION_FP16};
        assert_true(matmul_spec_read(&plan, &v, why, sizeof why));
        assert_int_equal(v.m, cases[i].m);
        assert_int_equal(v.batch, cases[i].batch);
        assert_int_equal(v.turns, cases[i].turns);
        subject_finish(&s);
    }
}

/* What cuBLASLt's epilogue does, and whether the pass follows. */
static void endings_of_products_are_divided(void **state)
{
    static const struct {
        const char              *attrs;
        enum sac_precision       precision;
        bool                     bare, bias, pass, matrix;
        enum sac_activation_kind kind;
    } cases[] = {
        {"", SAC_PRECISION_FP16, false, true, false, false, SAC_ACT_NONE},
        {"residual=1", SAC_PRECISION_FP16, false, true, false, true, SAC_ACT_NONE},
        {"residual=2", SAC_PRECISION_FP16, false, true, false, true, SAC_ACT_NONE},
        {"activation=1", SAC_PRECISION_FP32, false, true, false, false, SAC_ACT_RELU},
        {"activation=1", SAC_PRECISION_FP32, true, false, true, false, SAC_ACT_NONE},
        {"activation=1 residual=1", SAC_PRECISION_FP16, false, true, false, true, SAC_ACT_RELU},
        {"activation=1 residual=2", SAC_PRECISION_FP16, false, true, true, false, SAC_ACT_RELU},
        {"activation=10", SAC_PRECISION_FP16, false, true, true, false, SAC_ACT_NONE},
        {"activation=11", SAC_PRECISION_FP16, false, true, true, false, SAC_ACT_NONE},
        {"activation=11", SAC_PRECISION_FP32, false, true, true, false, SAC_ACT_NONE},
        {"residual=1", SAC_PRECISION_FP16, true, false, true, true, SAC_ACT_NONE},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        const bool               residual = strstr(cases[i].attrs, "residual") != NULL;
        const struct parity_case pc = {"FusedMatMul",
                                       residual ? "[3,4] [4,5]! [5]! [3,5]" : "[3,4] [4,5]! [5]!",
                                       cases[i].attrs};
        struct subject           s;
        struct matmul_spec       v;
        char                     why[128] = "", text[400], other[400];
        subject_seed(11);
        subject_init(&s, &pc, FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        struct sac_kernel_plan plan = {.call = s.call, .precision = cases[i].precision};
        assert_true(matmul_spec_read(&plan, &v, why, sizeof why));
        matmul_spec_text(&v, other, sizeof other);
        v.bare = cases[i].bare;
        assert_int_equal(matmul_ends_with_bias(&v), cases[i].bias);
        assert_int_equal(matmul_ends_with(&v), cases[i].kind);
        assert_int_equal(matmul_needs_pass(&v), cases[i].pass);
        assert_int_equal(v.matrix, cases[i].matrix);
        matmul_spec_text(&v, text, sizeof text);
        assert_int_equal(strcmp(text, other) != 0, cases[i].bare);
        subject_finish(&s);
    }
}

static void products_that_are_not_covered_are_refused(void **state)
{
    static const struct parity_case cases[] = {
        {"Gemm", "[6,4] [4,5]! [6,1]!", ""},
        {"Gemm", "[6,4] [4,5]! [1]!", ""},
        {"Gemm", "[6,4] [4,5]! [5]", "beta=2."}, /* only a constant can be scaled ahead */
        {"MatMul", "[0,4] [4,5]", ""},
        {"MatMul", "i32[3,4] i32[4,5]", ""},
        {"MatMul", "[65,1,2,3,4] [1,2,1,4,5]", ""}, /* too many turns */
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct subject     s;
        struct matmul_spec v;
        char               why[128] = "";
        subject_init(&s, &cases[i], FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        for (int k = 0; k < s.call->in_count; k++)
            if (!s.constant[k])
                s.call->in[k].data = NULL;
        struct sac_kernel_plan plan = {.call = s.call, .precision = SAC_PRECISION_FP16};
        if (matmul_spec_read(&plan, &v, why, sizeof why))
            fail_msg("%s { %s } is taken", cases[i].inputs, cases[i].attrs);
        assert_true(why[0] != '\0');
        subject_finish(&s);
    }
}

/* ---- texts ---- */

static void choices_of_convolutions_come_back(void **state)
{
    struct conv_choice c = {.way = CONV_CUDNN_FUSED,
                            .engine = 41,
                            .knob_count = 2,
                            .knobs = {{2, 3}, {13, 1}}},
                       got;
    char text[128];
    (void)state;
    assert_int_equal(conv_choice_print(&c, text, sizeof text), strlen("fused 41 2=3,13=1"));
    assert_string_equal(text, "fused 41 2=3,13=1");
    assert_true(conv_choice_parse(text, &got) && conv_choice_same(&c, &got));
    for (int way = 0; way < CONV_WAY_COUNT; way++) {
        c = (struct conv_choice){.way = (enum conv_way)way, .engine = 9999999999};
        assert_true(conv_choice_print(&c, text, sizeof text) > 0);
        assert_true(conv_choice_parse(text, &got) && conv_choice_same(&c, &got));
    }
    c.knob_count = CONV_KNOBS_MAX;
    assert_int_equal(conv_choice_print(&c, text, 20), 0);
}

static void damaged_choices_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "fused",
                                      "fused ",
                                      "fused -1",
                                      "fused 1 ",
                                      "fused 1 2",
                                      "fused 1 2=",
                                      "fused 1 2=3,",
                                      "fused 1 2=3;",
                                      "fused 12345678901",
                                      "fast 1",
                                      "fused 1 2=3 4=5",
                                      "fused 0x1",
                                      " fused 1",
                                      "fused 1\n",
                                      "fused 1 2=99999999999"};
    struct conv_choice       got;
    char                     many[400] = "plain 1 0=0";
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(bad); i++)
        if (conv_choice_parse(bad[i], &got))
            fail_msg("'%s' is taken", bad[i]);
    assert_false(conv_choice_parse(NULL, &got));
    for (int i = 0; i < CONV_KNOBS_MAX; i++)
        strcat(many, ",1=1");
    assert_false(conv_choice_parse(many, &got));
}

static void choices_of_products_have_a_check_sum(void **state)
{
    unsigned char bytes[MATMUL_CHOICE_BYTES], got[MATMUL_CHOICE_BYTES];
    char          text[SAC_KERNEL_CHOICE_MAX];
    (void)state;
    for (int i = 0; i < MATMUL_CHOICE_BYTES; i++)
        bytes[i] = (unsigned char)(i * 37);
    matmul_choice_print(bytes, text, sizeof text);
    assert_true(matmul_choice_parse(text, got));
    assert_memory_equal(bytes, got, sizeof got);
    for (size_t i = 0; i < strlen(text); i++) { /* any one character */
        const char kept = text[i];
        text[i] = kept == '0' ? '1' : '0';
        assert_false(matmul_choice_parse(text, got));
        text[i] = '\0';
        assert_false(matmul_choice_parse(text, got));
        text[i] = kept;
    }
    strcat(text, "0");
    assert_false(matmul_choice_parse(text, got));
    assert_false(matmul_choice_parse(NULL, got));
    assert_false(matmul_choice_parse("fused 1", got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_mean_what_the_reference_computes),
        cmocka_unit_test(slopes_that_differ_by_a_bit_have_texts_of_their_own),
        cmocka_unit_test(pads_reach_as_far_as_windows_do),
        cmocka_unit_test(what_is_not_covered_is_refused),
        cmocka_unit_test(weights_in_float16),
        cmocka_unit_test(weights_of_a_product),
        cmocka_unit_test(weights_in_parts),
        cmocka_unit_test(weights_in_bundles),
        cmocka_unit_test(words_of_a_stem_are_its_windows),
        cmocka_unit_test(rows_of_a_thread_follow_the_map),
        cmocka_unit_test(products_mean_what_the_reference_computes),
        cmocka_unit_test(what_shares_a_matrix_is_rows),
        cmocka_unit_test(endings_of_products_are_divided),
        cmocka_unit_test(products_that_are_not_covered_are_refused),
        cmocka_unit_test(choices_of_convolutions_come_back),
        cmocka_unit_test(damaged_choices_are_refused),
        cmocka_unit_test(choices_of_products_have_a_check_sum),
    };
    return cmocka_run_group_tests_name("engine/cuda/specs", tests, NULL, NULL);
}
