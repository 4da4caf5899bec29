/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of patches, made by the CUDA device's kernel with its threads emulated, times the weights as
 * they are packed for them: the convolution that the reference row computes. Units of every size,
 * samples apart, patches that leave a rest of the map. */
#include <math.h>
#include <string.h>

#include "engine/cuda/products/conv_launch.h"
#include "engine/cuda/products/tensor_spec.h"
#include "tests/parity/subject.h"
#include "tests/test.h"

static const struct parity_case cases[] = {
    {"Conv", "[2,3,32,48] [5,3,16,16]!", "strides=16,16"},
    {"Conv", "[1,3,8,12] [4,3,4,4]!", "strides=4,4"},
    {"Conv", "[2,3,29,42] [6,3,14,14]!", "strides=14,14"},
    {"Conv", "[3,3,15,11] [4,3,5,3]!", "strides=5,3"},
    {"Conv", "[1,1,9,20] [3,1,1,7]!", "strides=1,7"},
    {"Conv", "[2,7,13] [3,7,4]!", "strides=4"},
    {"Conv", "[2,16,6,8] [4,16,2,2]!", "strides=2,2"},
    {"Conv", "[2,58,5,7] [9,58,1,1]!", ""},
    {"Conv", "[2,13,9,8] [4,13,1,1]!", "strides=2,3"},
    {"Conv", "[3,24,4,6] [8,24,1,1]!", "strides=2,2"},
};

/* Channels last, float16, with NaNs between samples and pixels and behind the rows. */
static uint16_t *map_of(const struct sac_operand *x, const struct conv_map *m, int64_t n)
{
    const int64_t pixels = sac_operand_elements(x) / x->dims[0] / m->c;
    uint16_t     *map = sac_alloc_aligned(16, (size_t)(n * m->sample) * 2);
    assert_non_null(map);
    memset(map, 0xff, (size_t)(n * m->sample) * 2);
    for (int64_t i = 0; i < n * m->c * pixels; i++)
        map[i / pixels / m->c * m->sample + i % pixels * m->pixel + i / pixels % m->c] =
            sac_float_to_half(((const float *)x->data)[i]);
    return map;
}

static double product_of(const uint16_t *row, const uint16_t *weights, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)sac_half_to_float(row[i]) * (double)sac_half_to_float(weights[i]);
    return sum;
}

static void compare(const struct subject *s, const struct conv_spec *v, const uint16_t *rows,
                    const uint16_t *weights)
{
    const int64_t pixels = v->out.size[1] * v->out.size[2], row = conv_patches_row(v);
    const float  *want = s->call->out[0].data;
    const double  most = subject_largest(&s->call->out[0]);
    for (int64_t m = 0; m < v->n * pixels; m++)
        for (int64_t k = 0; k < v->out.c; k++) {
            const double error = product_of(rows + m * row, weights + k * row, row) -
                                 (double)want[(m / pixels * v->out.c + k) * pixels + m % pixels];
            if (!(fabs(error) <= 1e-5 * most))
                fail_msg("%s: patch %d, channel %d: off by %g of %g", s->node.op->name, (int)m,
                         (int)k, error, most);
        }
}

static void check(const struct parity_case *pc, int64_t apart)
{
    static struct sac_weights weights; /* conv_spec_read only looks whether there are any */
    struct subject            s;
    struct conv_spec          v;
    char                      why[128];
    subject_seed(17);
    subject_init(&s, pc, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    subject_round(&s);
    assert_sac_ok(s.node.op->ref(s.call));
    struct sac_kernel_plan plan = {
        .call = s.call, .precision = SAC_PRECISION_FP16, .weights = &weights};
    const struct sac_operand *x = &s.call->in[0];
    if (sac_dims_product(s.call->in[1].rank - 2, s.call->in[1].dims + 2) == 1)
        plan.in_pixel[0] = x->dims[1] + apart; /* of a wider map */
    plan.in_sample[0] =
        sac_operand_elements(x) / x->dims[0] / x->dims[1] * SAC_MAX(plan.in_pixel[0], x->dims[1]) +
        apart;
    if (!conv_spec_read(&plan, &v, why, sizeof why))
        fail_msg("%s: %s", pc->inputs, why);
    assert_true(conv_is_patches(&v));
    uint16_t *map = map_of(x, &v.in, v.n),
             *rows = sac_alloc_aligned(16, (size_t)conv_patches_bytes(&v)),
             *packed = sac_alloc_aligned(16, conv_weights_bytes(&v, CONV_FORM_PATCHES));
    struct conv_patches_params p = patches_params_of(&v);
    p.x = map;
    p.rows = rows;
    assert_non_null(rows);
    assert_non_null(packed);
    memset(rows, 0xff, (size_t)conv_patches_bytes(&v));
    conv_weights_pack(&v, CONV_FORM_PATCHES, s.call->in[1].data, packed);
    assert_int_equal(conv_launch_patches(&p, NULL), cudaSuccess);
    compare(&s, &v, rows, packed);
    sac_free(map);
    sac_free(rows);
    sac_free(packed);
    subject_finish(&s);
}

static void rows_times_weights_are_the_convolution(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        for (int64_t apart = 0; apart < 3; apart++)
            check(&cases[i], apart);
}

/* What is not in patches beside each other is not taken for such. */
static void others_are_not_patches(void **state)
{
    static const struct parity_case others[] = {
        {"Conv", "[1,3,8,8] [4,3,4,4]!", "strides=4,2"},
        {"Conv", "[1,3,8,8] [4,3,4,4]!", "strides=4,4 pads=1,0,0,0"},
        {"Conv", "[1,3,8,8] [4,3,2,2]!", "strides=2,2 dilations=2,2"},
        {"Conv", "[1,4,8,8] [4,2,4,4]!", "strides=4,4 group=2"},
        {"Conv", "[1,3,8,8] [4,3,1,1]!", "pads=1,0,0,0"},
        {"ConvTranspose", "[1,3,8,8] [3,4,4,4]!", "strides=4,4"},
    };
    static struct sac_weights weights;
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(others); i++) {
        struct subject   s;
        struct conv_spec v;
        char             why[128];
        subject_seed(1);
        subject_init(&s, &others[i], FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        struct sac_kernel_plan plan = {
            .call = s.call, .precision = SAC_PRECISION_FP16, .weights = &weights};
        assert_true(conv_spec_read(&plan, &v, why, sizeof why));
        if (conv_is_patches(&v))
            fail_msg("%s { %s } is taken", others[i].inputs, others[i].attrs);
        subject_finish(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_times_weights_are_the_convolution),
        cmocka_unit_test(others_are_not_patches),
    };
    return cmocka_run_group_tests_name("parity/patches_emulated", tests, NULL, NULL);
}
