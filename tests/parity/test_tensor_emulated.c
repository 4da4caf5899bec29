/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of float16 by the CUDA device's kernel for Hopper's copy engine, its threads
 * emulated, every variant: the numbers that the reference row computes. Maps are dense, or slices
 * of wider ones, where what lies beside them must stay. */
#include <string.h>

#include "engine/cuda/products/conv_copies.h"
#include "engine/cuda/products/tensor_spec.h"
#include "tests/parity/half_maps.h"
#include "tests/test.h"

enum { WINDOWS = CONV_TENSOR_VARIANTS - CONV_TENSOR_WINDOWS };

/* Channels that fill a row of the engine and that do not, windows that reach over all edges, far
 * taps, several tiles for a block, every ending that is written out and some others. */
static const struct parity_case cases[] = {
    {"FusedConv", "[2,16,9,8] [32,16,3,3]! [32]!", "pads=1,1,1,1 activation=1"},
    {"FusedConv", "[3,24,11,7] [80,24,3,3]! [80]! [3,80,4,4]",
     "pads=0,2,1,0 strides=3,2 residual=1 activation=1"},
    {"FusedConv", "[2,40,8,9] [208,40,3,3]! [208]! [2,208,8,9]",
     "pads=3,3,3,3 dilations=3,3 residual=2 activation=5"},
    {"FusedConv", "[2,64,14,13] [64,64,1,1]! -", "strides=2,2 activation=6"},
    {"FusedConv", "[2,64,14,13] [64,64,1,1]! [64]!", "activation=5"},
    {"FusedConv", "[2,64,14,13] [80,64,1,1]! [80]!", "activation=3 alpha=-0.2 beta=0.3"},
    {"FusedConv", "[2,64,14,13] [272,64,1,1]! -", "activation=7 alpha=0.2 beta=0.5"},
    {"FusedConv", "[2,64,14,13] [64,64,1,1]! [64]! [2,64,14,13]", "residual=2"},
    {"FusedConv", "[2,64,9,7] [144,64,1,1]! [144]! - [3,144]!", "activation=10"},
    {"FusedConv", "[2,64,9,7] [48,64,1,1]! [48]! [2,48,9,7] [3,48]!", "residual=2"},
    {"FusedConv", "[1,64,9,7] [80,64,3,3]! - [1,80,9,7] [3,80]!",
     "pads=1,1,1,1 activation=10 residual=2"},
    {"FusedConv", "[1,64,9,7] [80,64,3,3]! [80]! [1,32,9,7] [3,80]!",
     "pads=1,1,1,1 activation=5 residual=1"},
    {"FusedConv", "[2,64,9,7] [64,64,1,1]! [64]!", ""},
    {"FusedConv", "[2,64,9,7] [144,64,1,1]! [144]! [2,40,9,7]", "residual=1"},
    {"FusedConv", "[2,64,9,7] [48,64,1,1]! [48]! [2,32,9,7]", "residual=2 activation=5"},
    {"FusedConv", "[1,96,12,13] [96,96,2,3]! [96]! [1,96,11,11]", "residual=1"},
    {"FusedConv", "[2,64,17,17] [272,64,1,1]! [272]!", "activation=10"},
    {"FusedConv", "[2,8,10,9] [48,8,5,5]! [48]!", "pads=2,2,2,2 activation=2 alpha=0.1"},
    {"FusedConv", "[150,136,2,1] [144,136,1,1]! [144]! [150,144,2,1]", "residual=2 activation=11"},
};

/* What the kernel does not take: groups, channels that are not sixteens, far strides. */
static const struct parity_case others[] = {
    {"Conv", "[1,32,8,8] [32,16,3,3]!", "group=2"},
    {"Conv", "[1,32,8,8] [40,32,3,3]!", ""},
    {"Conv", "[1,12,8,8] [16,12,3,3]!", ""},
    {"Conv", "[1,16,8,8] [16,16,3,3]!", "strides=9,9"},
    {"ConvTranspose", "[1,16,8,8] [16,16,3,3]!", ""},
};

static struct conv_tile_params places_of(const struct conv_spec *v, const uint16_t *x,
                                         const uint16_t *weights, const uint16_t *bias,
                                         const uint16_t *residual, const float *ending, uint16_t *y)
{
    const int64_t pixels = v->out.size[1] * v->out.size[2];
    return (struct conv_tile_params){
        .finish = {.act = (int)v->act.kind,
                   .alpha = v->act.alpha,
                   .beta = v->act.beta,
                   .residual_kind = (int)v->residual_kind,
                   .bias = bias,
                   .residual = residual,
                   .residual_pixel = v->residual.pixel,
                   .residual_sample = v->residual.sample,
                   .ending = ending,
                   .ending_c = v->out.c},
        .x = x,
        .w = weights,
        .y = y,
        .m = v->n * pixels,
        .pixels = (int)pixels,
        .in_c = (int)v->in.c,
        .in_h = (int)v->in.size[1],
        .in_w = (int)v->in.size[2],
        .out_c = (int)v->out.c,
        .out_w = (int)v->out.size[2],
        .kernel_h = (int)v->kernel[1],
        .kernel_w = (int)v->kernel[2],
        .taps = (int)(v->kernel[1] * v->kernel[2] * v->in.c),
        .stride_h = (int)v->stride[1],
        .stride_w = (int)v->stride[2],
        .dilation_h = (int)v->dilation[1],
        .dilation_w = (int)v->dilation[2],
        .pad_top = (int)v->pad_begin[1],
        .pad_left = (int)v->pad_begin[2],
        .x_pixel = v->in.pixel,
        .x_sample = v->in.sample,
        .y_pixel = v->out.pixel,
        .y_sample = v->out.sample,
    };
}

/* more: channels beside these; apart: pixels between samples of the output and the residual. */
static struct conv_spec read_spec(const struct subject *s, int64_t more, int64_t apart)
{
    struct sac_kernel_plan plan = {.call = NULL};
    plan.in_pixel[0] = s->call->in[0].dims[1] + more;
    plan.out_pixel[0] = plan.in_pixel[3] = s->call->out[0].dims[1] + more;
    const struct sac_operand *y = &s->call->out[0];
    if (apart)
        plan.out_sample[0] = plan.in_sample[3] =
            (sac_operand_elements(y) / y->dims[0] / y->dims[1] + apart) * plan.out_pixel[0];
    return half_spec(s, plan);
}

/* Returns how many variants of those whose windows stay ran. */
static int check(const struct parity_case *pc, int64_t more, int64_t apart)
{
    int            windows = 0;
    struct subject s;
    subject_seed(31);
    subject_init(&s, pc, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    subject_round(&s);
    assert_sac_ok(s.node.op->ref(s.call));
    const struct sac_operand *in = s.call->in;
    const struct conv_spec    v = read_spec(&s, more, apart);
    const struct conv_map     biases = {
            .c = v.out.c, .size = {1, 1, 1}, .pixel = v.out.c, .sample = v.out.c};
    const bool added = v.residual_kind != SAC_RESIDUAL_NONE;
    uint16_t  *x = half_map_lay(&v.in, v.n, in[0].data), *y = half_map_lay(&v.out, v.n, NULL),
             *bias = v.bias ? half_map_lay(&biases, 1, in[2].data) : NULL,
             *residual = added ? half_map_lay(&v.residual, v.n, in[3].data) : NULL,
             *weights = sac_alloc_aligned(64, conv_weights_bytes(&v, CONV_FORM_LAST));
    assert_non_null(weights);
    conv_weights_pack(&v, CONV_FORM_LAST, in[1].data, weights);
    const struct conv_tile_params at =
        places_of(&v, x, weights, bias, residual, v.ending ? in[SAC_ENDING].data : NULL, y);
    for (int variant = 0; variant < CONV_TENSOR_VARIANTS; variant++) {
        struct conv_copy_shape shapes[TENSOR_MAPS];
        if (variant >= CONV_TENSOR_WINDOWS && !tensor_takes_half(&v, variant, 90))
            continue;
        assert_true(tensor_takes_half(&v, variant, 90));
        windows += variant >= CONV_TENSOR_WINDOWS;
        struct conv_tensor_params p = tensor_half_params(&v, &at, variant, shapes);
        assert_int_equal(conv_copy_maps_make(shapes, p.maps), cudaSuccess);
        memset(y, HALF_BESIDE & 0xff, half_map_bytes(&v.out, v.n));
        assert_int_equal(conv_launch_tensor(&p, CONV_BYTES_F16, variant, 3, NULL), cudaSuccess);
        half_map_compare(&s, &v, y, variant);
    }
    uint16_t *const all[] = {x, y, bias, residual, weights};
    for (size_t i = 0; i < SAC_COUNT(all); i++)
        sac_free(all[i]);
    subject_finish(&s);
    return windows;
}

static void every_variant_is_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        check(&cases[i], i % 2 ? 8 : 0, 0);
}

/* As those of a detector's grid are, with the other levels between them. */
static void samples_may_lie_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        check(&cases[i], i % 2 ? 0 : 8, 1 + (int64_t)i);
}

/* Rows of a sample, several samples, a tile that ends amid both, rows as wide as a tile and cut in
 * parts, also where it is wider than the engine's boxes, steps of two with all phases and with
 * some, chunks of channels that are not full and of half a row. */
static void windows_that_stay_are_right(void **state)
{
    static const struct parity_case windows[] = {
        {"FusedConv", "[2,64,19,38] [80,64,3,3]! [80]! [2,80,19,38]",
         "pads=1,1,1,1 residual=1 activation=1"},
        {"FusedConv", "[7,72,5,4] [48,72,3,3]! [48]! [7,48,5,4]",
         "pads=1,1,1,1 residual=2 activation=5"},
        {"FusedConv", "[2,32,11,9] [144,32,3,3]! [144]!", "pads=4,4,4,4 dilations=4,4"},
        {"FusedConv", "[1,136,4,122] [16,136,1,5]! -", "pads=0,2,0,2 activation=10"},
        {"FusedConv", "[2,64,9,30] [64,64,5,2]! [64]!", "pads=0,0,2,1 activation=6"},
        {"FusedConv", "[1,64,3,300] [64,64,3,3]! [64]!", "pads=1,1,1,1 activation=6"},
        {"FusedConv", "[2,64,19,77] [80,64,3,3]! [80]! [2,80,10,39]",
         "pads=1,1,1,1 strides=2,2 residual=1 activation=1"},
        {"FusedConv", "[7,72,9,8] [48,72,3,3]! [48]! [7,48,4,3]",
         "strides=2,2 residual=2 activation=5"},
        {"FusedConv", "[2,32,31,40] [144,32,5,4]! [144]!", "pads=2,2,2,2 strides=2,2"},
        {"FusedConv", "[2,136,40,4] [16,136,5,1]! -", "pads=2,0,2,0 strides=2,1 activation=10"},
        {"FusedConv", "[2,64,20,33] [64,64,2,3]! [64]!", "strides=1,2 dilations=3,2 activation=7"},
        {"FusedConv", "[1,64,9,601] [64,64,3,3]! [64]!", "pads=1,1,1,1 strides=2,2 activation=5"},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(windows); i++) {
        assert_int_equal(check(&windows[i], i % 2 * 8, 0), WINDOWS);
        assert_int_equal(check(&windows[i], 0, 1), WINDOWS);
    }
}

/* What a tile of 128 positions is cut from. */
static void rows_are_cut_into_few_tiles(void **state)
{
    static const struct {
        struct parity_case c;
        int                cols, rows, samples, phases;
    } cut[] = {
        {{"Conv", "[2,64,80,80] [64,64,3,3]!", "pads=1,1,1,1"}, 40, 3, 1, 1},
        {{"Conv", "[2,64,40,40] [64,64,3,3]!", "pads=1,1,1,1"}, 40, 3, 1, 1},
        {{"Conv", "[9,64,6,6] [64,64,3,3]!", "pads=1,1,1,1"}, 6, 6, 2, 1},
        {{"Conv", "[2,64,80,80] [64,64,3,3]!", "pads=1,1,1,1 strides=2,2"}, 20, 6, 1, 4},
        {{"Conv", "[2,64,4,300] [64,64,1,3]!", "pads=0,1,0,1"}, 60, 2, 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cut); i++) {
        struct subject           s;
        struct conv_window_shape w;
        subject_seed(1);
        subject_init(&s, &cut[i].c, FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        const struct conv_spec v = read_spec(&s, 0, 0);
        assert_true(tensor_window(&v, CONV_TENSOR_VARIANTS - 1, 128, &w));
        assert_int_equal(w.cols, cut[i].cols);
        assert_int_equal(w.rows, cut[i].rows);
        assert_int_equal(w.samples, cut[i].samples);
        assert_int_equal(w.phases, cut[i].phases);
        assert_true(tensor_worth(&v, CONV_TENSOR_VARIANTS - 1));
        subject_finish(&s);
    }
}

/* Nothing stays where windows lie beside each other. */
static void windows_beside_each_other_are_for_tiles(void **state)
{
    static const struct parity_case beside = {"Conv", "[2,64,80,80] [64,64,2,2]!", "strides=2,2"};
    struct subject                  s;
    (void)state;
    subject_seed(1);
    subject_init(&s, &beside, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    const struct conv_spec v = read_spec(&s, 0, 0);
    assert_false(tensor_worth(&v, CONV_TENSOR_VARIANTS - 1));
    assert_true(tensor_worth(&v, 7));
    subject_finish(&s);
}

static void others_are_not_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(others); i++) {
        struct subject s;
        subject_seed(1);
        subject_init(&s, &others[i], FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        const struct conv_spec v = read_spec(&s, 0, 0);
        if (tensor_takes_half(&v, 0, 90))
            fail_msg("%s { %s } is taken", others[i].inputs, others[i].attrs);
        subject_finish(&s);
    }
}

/* Rows of patches, of channels that are no eights; out of sixteens. */
static void it_multiplies_patches(void **state)
{
    static const struct parity_case patches[] = {
        {"Conv", "[2,3,32,24] [32,3,8,8]!", "strides=8,8"},
        {"Conv", "[2,3,32,24] [40,3,8,8]!", "strides=8,8"},
        {"Conv", "[2,3,32,24] [32,3,8,8]!", "strides=4,8"},
    };
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct subject s;
        subject_seed(1);
        subject_init(&s, &patches[i], FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        const struct conv_spec v = read_spec(&s, 0, 0), rows = conv_patches_product(&v);
        assert_int_equal(patches_fits(&v, CONV_TILE_VARIANTS, 90), i == 0);
        assert_false(patches_fits(&v, CONV_TILE_VARIANTS, 80));
        assert_int_equal(patches_fits(&v, 0, 80), i < 2);
        assert_int_equal(rows.in.c, 192);
        assert_int_equal(tensor_takes_half(&rows, 0, 90), i != 1);
        subject_finish(&s);
    }
}

static void only_hopper_has_the_engine(void **state)
{
    struct subject s;
    (void)state;
    subject_seed(1);
    subject_init(&s, &cases[0], FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    struct conv_spec v = read_spec(&s, 0, 0);
    assert_true(tensor_takes_half(&v, 0, 90));
    assert_false(tensor_takes_half(&v, 0, 89) || tensor_takes_half(&v, 0, 100));
    assert_false(tensor_takes_half(&v, -1, 90) || tensor_takes_half(&v, CONV_TENSOR_VARIANTS, 90));
    v.out.sample += 4; /* no sixteen bytes */
    assert_false(tensor_takes_half(&v, 0, 90));
    v.out.sample -= 4;
    assert_true(tensor_takes_half(&v, 0, 90));
    v.precision = SAC_PRECISION_TF32;
    assert_false(tensor_takes_half(&v, 0, 90));
    subject_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_is_right),
        cmocka_unit_test(samples_may_lie_apart),
        cmocka_unit_test(windows_that_stay_are_right),
        cmocka_unit_test(rows_are_cut_into_few_tiles),
        cmocka_unit_test(windows_beside_each_other_are_for_tiles),
        cmocka_unit_test(others_are_not_taken),
        cmocka_unit_test(it_multiplies_patches),
        cmocka_unit_test(only_hopper_has_the_engine),
    };
    return cmocka_run_group_tests_name("parity/tensor_emulated", tests, NULL, NULL);
}
