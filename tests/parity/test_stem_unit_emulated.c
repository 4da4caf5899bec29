/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of few channels by the CUDA device's kernel for Hopper, its threads emulated: the
 * numbers that the reference row computes, and nothing beside them. */
#include "engine/cuda/products/conv_copies.h"
#include "engine/cuda/products/stem_spec.h"
#include "tests/parity/half_maps.h"
#include "tests/test.h"

/* more: channels beside the output's. */
static struct conv_spec read_spec(const struct subject *s, int64_t more)
{
    struct sac_kernel_plan plan = {.call = NULL};
    plan.out_pixel[0] = s->call->out[0].dims[1] + more;
    return half_spec(s, plan);
}

static void begin(struct subject *s, const struct parity_case *pc)
{
    subject_seed(29);
    subject_init(s, pc, FILL_RANDOM);
    assert_sac_ok(subject_shape(s));
    subject_round(s);
}

/* Returns how many passes a square has for so many processors. */
static int check(const struct parity_case *pc, int64_t more, int processors)
{
    struct subject               s;
    struct conv_stem_unit_params p;
    begin(&s, pc);
    assert_sac_ok(s.node.op->ref(s.call));
    const struct sac_operand *in = s.call->in;
    const struct conv_spec    v = read_spec(&s, more);
    const struct conv_map     biases = {
            .c = v.out.c, .size = {1, 1, 1}, .pixel = v.out.c, .sample = v.out.c};
    uint16_t *x = half_map_lay(&v.in, v.n, in[0].data), *y = half_map_lay(&v.out, v.n, NULL),
             *bias = v.bias ? half_map_lay(&biases, 1, in[2].data) : NULL,
             *weights = sac_alloc_aligned(64, conv_weights_bytes(&v, CONV_FORM_STEM));
    assert_non_null(weights);
    conv_weights_pack(&v, CONV_FORM_STEM, in[1].data, weights);
    assert_true(stem_takes(&v, CONV_STEM_UNIT, 90));
    assert_true(stem_params_of(&v, &p.s) && stem_square_of(&v, processors, &p.square));
    p.s.x = x;
    p.s.w = weights;
    p.s.y = y;
    p.s.finish = (struct conv_finish){
        .act = (int)v.act.kind, .alpha = v.act.alpha, .beta = v.act.beta, .bias = bias};
    const struct conv_copy_shape map = stem_copy(&v, &p.square, x);
    assert_int_equal(conv_copy_map_make(&map, &p.x), cudaSuccess);
    assert_int_equal(conv_launch_stem_unit(&p, processors, NULL), cudaSuccess);
    half_map_compare(&s, &v, y, CONV_STEM_UNIT);
    uint16_t *const all[] = {x, y, bias, weights};
    for (size_t i = 0; i < SAC_COUNT(all); i++)
        sac_free(all[i]);
    subject_finish(&s);
    return p.square.passes;
}

/* Networks' own windows, maps that end amid a square, odd and even numbers of steps, a row that
 * begins amid a word, every number of channels at once, every ending. */
static void numbers_are_those_of_the_reference(void **state)
{
    static const struct parity_case cases[] = {
        {"FusedConv", "[2,3,50,72] [64,3,7,7]! [64]!", "pads=3,3,3,3 strides=2,2 activation=1"},
        {"FusedConv", "[9,3,72,40] [32,3,6,6]! [32]!", "pads=2,2,2,2 strides=2,2 activation=5"},
        {"FusedConv", "[1,3,33,64] [16,3,3,3]! -", "pads=1,1,1,1 strides=2,2 activation=10"},
        {"FusedConv", "[2,4,19,22] [96,4,3,3]! [96]!", "pads=1,0,1,1 activation=2 alpha=0.1"},
        {"FusedConv", "[1,8,40,20] [128,8,5,3]! [128]!", "pads=2,1,2,1 activation=6"},
        {"FusedConv", "[1,1,80,64] [48,1,4,4]! [48]!", "strides=4,4 activation=11"},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        check(&cases[i], i % 2 * 8, 1); /* a block has several squares */
}

/* Where the map has too few squares for the processors they are lower. */
static void small_maps_have_lower_squares(void **state)
{
    static const struct parity_case small = {"FusedConv", "[4,3,60,64] [32,3,3,3]! [32]!",
                                             "pads=1,1,1,1 strides=2,2 activation=1"};
    (void)state;
    assert_int_equal(check(&small, 0, 1), 4);
    assert_int_equal(check(&small, 0, 2), 2);
    assert_int_equal(check(&small, 8, 100), 1);
}

static void others_are_not_taken(void **state)
{
    static const struct parity_case others[] = {
        {"Conv", "[1,3,9,12] [32,3,3,3]!", "strides=2,2"},  /* rows of 72 bytes */
        {"Conv", "[1,3,9,16] [32,3,3,3]!", "pads=1,1,1,1"}, /* windows amid a word */
        {"Conv", "[1,8,16,16] [32,8,3,3]!", "strides=2,2"}, /* rows of 272 numbers */
        {"Conv", "[1,3,16,16] [24,3,3,3]!", "strides=2,2"}, /* channels by eights */
        {"ConvTranspose", "[1,8,16,16] [8,32,3,3]!", ""},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(others); i++) {
        struct subject s;
        begin(&s, &others[i]);
        const struct conv_spec v = read_spec(&s, 0);
        if (stem_takes(&v, CONV_STEM_UNIT, 90))
            fail_msg("%s { %s } is taken", others[i].inputs, others[i].attrs);
        subject_finish(&s);
    }
}

static void only_hopper_has_the_unit(void **state)
{
    static const struct parity_case pc = {"Conv", "[1,3,16,16] [32,3,3,3]!", "strides=2,2"};
    struct subject                  s;
    (void)state;
    begin(&s, &pc);
    struct conv_spec v = read_spec(&s, 0);
    assert_true(stem_takes(&v, CONV_STEM_UNIT, 90) && stem_takes(&v, CONV_STEM_WARPS, 80));
    assert_false(stem_takes(&v, CONV_STEM_UNIT, 89) || stem_takes(&v, CONV_STEM_UNIT, 100));
    assert_false(stem_takes(&v, -1, 90) || stem_takes(&v, CONV_STEM_VARIANTS, 90));
    v.in.sample += 4; /* no sixteen bytes */
    assert_false(stem_takes(&v, CONV_STEM_UNIT, 90));
    assert_true(stem_takes(&v, CONV_STEM_WARPS, 90));
    subject_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_reference),
        cmocka_unit_test(small_maps_have_lower_squares),
        cmocka_unit_test(others_are_not_taken),
        cmocka_unit_test(only_hopper_has_the_unit),
    };
    return cmocka_run_group_tests_name("parity/stem_unit_emulated", tests, NULL, NULL);
}
