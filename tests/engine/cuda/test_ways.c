/* SPDX-License-Identifier: Apache-2.0 */
/* Which ways of a convolution are listed: without a GPU, cuDNN's heuristics replaced by what they
 * may say. */
#include "engine/cuda/products/conv_kernel.h"
#include "engine/cuda/products/cudnn_store.h"
#include "engine/cuda/products/stem_spec.h"
#include "tests/test.h"

/* ---- stand-ins ---- */

static struct products_gpu gpu;
static bool                precompiled;    /* do the heuristics know of kernels that are? */
static bool                plain_compiles; /* else kernels that do not fuse are */
static bool                hopper_code = true;

bool conv_bytes_has_hopper(void)
{
    return hopper_code;
}

int cudnn_graph_candidates(const struct cudnn_target *t, const struct cudnn_graph *g,
                           const struct conv_spec *s, cudnnBackendHeurMode_t mode,
                           struct cudnn_candidate *out, int max)
{
    const enum conv_way way = g->fused ? CONV_CUDNN_FUSED : CONV_CUDNN_PLAIN;
    int                 n = 0;
    (void)t, (void)s, (void)mode, (void)max;
    for (int engine = 4; engine < 8; engine++)
        out[n++] = (struct cudnn_candidate){.choice = {.way = way, .engine = engine},
                                            .runtime = g->fused || plain_compiles};
    if (precompiled)
        out[n++] = (struct cudnn_candidate){.choice = {.way = way, .engine = 40}};
    return n;
}

bool cudnn_graph_make(const struct cudnn_target *t, const struct conv_spec *s, bool fused,
                      enum cudnn_shape shape, struct cudnn_graph *out)
{
    (void)t, (void)s, (void)shape;
    *out = (struct cudnn_graph){.fused = fused};
    return true;
}

void cudnn_graph_finish(struct cudnn_graph *g)
{
    (void)g;
}

bool cudnn_graph_can_fuse(const struct conv_spec *s)
{
    (void)s;
    return true;
}

/* Nothing is made here. */
bool cudnn_graph_compiles(const struct cudnn_target *t, const struct cudnn_graph *g,
                          const struct conv_choice *choice)
{
    (void)t, (void)g, (void)choice;
    fail();
    return false;
}

bool cudnn_plan_make(const struct cudnn_target *t, const struct cudnn_graph *g,
                     const struct conv_choice *choice, cudnn_desc cache, struct cudnn_plan *out)
{
    (void)t, (void)g, (void)choice, (void)cache, (void)out;
    fail();
    return false;
}

bool cudnn_kernels_plan(struct cudnn_kernels *k, const struct cudnn_target *t,
                        const struct conv_spec *s, const struct conv_choice *choice,
                        struct cudnn_graph *graph, struct cudnn_plan *plan)
{
    (void)k, (void)t, (void)s, (void)choice, (void)graph, (void)plan;
    fail();
    return false;
}

void cudnn_plan_finish(struct cudnn_plan *p)
{
    (void)p;
    fail();
}

char *cudnn_plan_text(const struct cudnn_plan *p, size_t *size)
{
    (void)p, (void)size;
    fail();
    return NULL;
}

bool cudnn_plan_read(const struct cudnn_target *t, const char *text, size_t size,
                     struct cudnn_plan *out)
{
    (void)t, (void)text, (void)size, (void)out;
    fail();
    return false;
}

void cudnn_say(const struct cudnn_set *s, char *out, size_t size)
{
    (void)s, (void)out, (void)size;
    fail();
}

char *cudnn_store_load(const char *key, size_t *size)
{
    (void)key, (void)size;
    fail();
    return NULL;
}

bool cudnn_store_save(const char *key, const char *text, size_t size)
{
    (void)key, (void)text, (void)size;
    fail();
    return false;
}

struct products_gpu *products_gpu_of(struct sac_device *dev)
{
    (void)dev;
    return &gpu;
}

const struct sac_kernel_provider sac_kernels_products = {.name = "products"};

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

/* ---- convolutions ---- */

static int begin(void **state)
{
    (void)state;
    gpu.capability = 90;
    gpu.processors = 132;
    precompiled = plain_compiles = false;
    hopper_code = true;
    return 0;
}

/* Windows of size by size over [n,in,40,40], in float16, with a bias and SiLU behind. `pixel`:
 * channels from one pixel of the output to the next. */
static struct conv_spec spec_of(int64_t n, int64_t in, int64_t out, int64_t size, int64_t pixel)
{
    struct conv_spec s = {.precision = SAC_PRECISION_FP16,
                          .n = n,
                          .groups = 1,
                          .bias = true,
                          .act = {.kind = SAC_ACT_SILU}};
    s.in = (struct conv_map){
        .c = in, .size = {1, 40, 40}, .pixel = in, .sample = in * 1600, .align = 16};
    s.out = (struct conv_map){
        .c = out, .size = {1, 40, 40}, .pixel = pixel, .sample = pixel * 1600, .align = 16};
    for (int d = 0; d < CONV_DIMS; d++) {
        s.kernel[d] = d == 0 ? 1 : size;
        s.pad_begin[d] = s.pad_end[d] = d == 0 ? 0 : size / 2;
        s.stride[d] = s.dilation[d] = 1;
    }
    return s;
}

/* Ways of cuDNN's: those that are compiled, or all. */
static int cudnn_ways(const struct conv_spec *s, bool compiled)
{
    const struct cudnn_target target = {.handle = (cudnnHandle_t)&gpu};
    struct conv_ways          l;
    int                       count = 0;
    conv_ways_list(&gpu, &target, s, &l);
    for (int i = 0; i < l.count; i++)
        count += l.items[i].choice.way <= CONV_CUDNN_PLAIN && (!compiled || l.items[i].runtime);
    return count;
}

/* Does the list have one of this kind? */
static bool has(const struct conv_spec *s, enum conv_way way, int64_t engine)
{
    const struct cudnn_target target = {.handle = (cudnnHandle_t)&gpu};
    struct conv_ways          l;
    conv_ways_list(&gpu, &target, s, &l);
    for (int i = 0; i < l.count; i++)
        if (l.items[i].choice.way == way && l.items[i].choice.engine == engine)
            return true;
    return false;
}

/* ---- tests ---- */

/* A first convolution: every second pixel. */
static struct conv_spec stem_of(int64_t n)
{
    struct conv_spec s = spec_of(n, 3, 32, 3, 32);
    s.stride[1] = s.stride[2] = 2;
    s.out.size[1] = s.out.size[2] = 20;
    s.out.sample /= 4;
    return s;
}

static void beside_the_unit_a_stem_asks_cudnn_nothing(void **state)
{
    struct conv_spec s = stem_of(1), apart = stem_of(4);
    apart.out.sample *= 2;
    (void)state;
    assert_true(has(&s, CONV_STEM, CONV_STEM_UNIT));
    assert_int_equal(cudnn_ways(&s, false), 0);
    assert_true(has(&apart, CONV_STEM, CONV_STEM_UNIT));
    assert_int_equal(cudnn_ways(&apart, false), 0);
    s = spec_of(1, 16, 96, 1, 96); /* channels that cuDNN does not pad */
    assert_true(cudnn_ways(&s, false) > 0);
}

static void without_the_unit_it_does(void **state)
{
    const struct conv_spec s = stem_of(1);
    (void)state;
    gpu.capability = 80;
    assert_false(has(&s, CONV_STEM, CONV_STEM_UNIT));
    assert_true(cudnn_ways(&s, false) > 0);
    gpu.capability = 90;
    hopper_code = false; /* of this build */
    assert_false(has(&s, CONV_STEM, CONV_STEM_UNIT));
    assert_true(cudnn_ways(&s, false) > 0);
}

/* 85 channels: what is compiled stores 16 bytes at once. */
static void odd_pixels_are_for_tiles(void **state)
{
    struct conv_spec s = spec_of(1, 128, 80, 1, 85);
    (void)state;
    assert_true(has(&s, CONV_TILE, 7));
    assert_int_equal(cudnn_ways(&s, true), 0);
    s = spec_of(1, 128, 80, 1, 88);
    assert_true(cudnn_ways(&s, true) > 0);
}

/* An odd number of channels: tiles take them by two at least. */
static void where_tiles_do_not_fit_they_are_compiled(void **state)
{
    const struct conv_spec s = spec_of(1, 21, 80, 1, 85);
    (void)state;
    assert_false(has(&s, CONV_TILE, 7));
    assert_true(cudnn_ways(&s, true) > 0);
}

static void where_kernels_exist_none_is_compiled(void **state)
{
    const struct conv_spec s = spec_of(1, 128, 128, 3, 128);
    (void)state;
    assert_int_equal(cudnn_ways(&s, true), 1);
    precompiled = true;
    assert_int_equal(cudnn_ways(&s, true), 0);
    assert_true(has(&s, CONV_CUDNN_FUSED, 40));
}

/* Hopper's own, of many tiles and of pixels that fill a piece of 128 bytes, leave nothing to gain.
 */
static void beside_many_tiles_none_is_compiled(void **state)
{
    const struct conv_spec few = spec_of(1, 128, 128, 3, 128), many = spec_of(8, 128, 128, 3, 128),
                           narrow = spec_of(8, 32, 128, 3, 128);
    struct conv_spec bare = many;
    (void)state;
    assert_int_equal(cudnn_ways(&few, true), 1);
    assert_int_equal(cudnn_ways(&many, false), 0);
    assert_int_equal(cudnn_ways(&narrow, true), 1);
    precompiled = true; /* these cost nothing */
    assert_true(cudnn_ways(&many, false) > 0);
    precompiled = false;
    bare.bias = false;
    bare.act.kind = SAC_ACT_NONE;
    assert_true(cudnn_ways(&bare, false) > 0);
    plain_compiles = true;
    assert_int_equal(cudnn_ways(&bare, false), 0);
    hopper_code = false;
    assert_int_equal(cudnn_ways(&many, true), 2);
    assert_int_equal(cudnn_ways(&bare, true), 2);
}

/* Of 64 pixels by 64 channels: 25 by 10 and by 11 of 1,600 pixels. */
static void few_tiles_are_two_for_each_multiprocessor(void **state)
{
    const struct conv_spec few = spec_of(1, 128, 640, 1, 640), many = spec_of(1, 128, 704, 1, 704);
    (void)state;
    assert_int_equal(cudnn_ways(&few, true), 1);
    assert_int_equal(cudnn_ways(&many, true), 0);
}

/* A product of 40x40 rows a sample. */
static struct conv_spec product_of(int64_t n, int64_t columns, enum sac_activation_kind act)
{
    struct conv_spec s = spec_of(n, 384, columns, 1, columns);
    s.turned = true;
    s.act.kind = act;
    return s;
}

/* What cuBLASLt does in one step is for Hopper's kernels alone, where it fills the card. */
static void plain_products_are_for_our_tiles(void **state)
{
    struct conv_spec s = product_of(4, 384, SAC_ACT_NONE);
    (void)state;
    assert_true(conv_ways_for(&gpu, &s));
    assert_true(has(&s, CONV_TENSOR, 8));
    assert_int_equal(cudnn_ways(&s, false), 0);
    s = product_of(1, 384, SAC_ACT_RELU);
    assert_false(conv_ways_for(&gpu, &s));
    gpu.capability = 80;
    s = product_of(4, 384, SAC_ACT_NONE);
    assert_false(conv_ways_for(&gpu, &s));
    s = product_of(1, 384, SAC_ACT_GELU);
    assert_true(conv_ways_for(&gpu, &s));
    assert_true(cudnn_ways(&s, false) > 0);
}

/* The planner may write it over its residual, which a plan of cuDNN's may still read. */
static void products_with_a_residual_ask_cudnn_nothing(void **state)
{
    struct conv_spec s = product_of(4, 384, SAC_ACT_GELU);
    (void)state;
    s.residual_kind = SAC_RESIDUAL_BEFORE;
    s.residual = s.out;
    assert_true(has(&s, CONV_TENSOR, 8));
    assert_int_equal(cudnn_ways(&s, false), 0);
    gpu.capability = 80;
    assert_true(has(&s, CONV_TILE, 0) || has(&s, CONV_TILE, 1) || has(&s, CONV_TILE, 2));
    assert_int_equal(cudnn_ways(&s, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(beside_the_unit_a_stem_asks_cudnn_nothing, begin),
        cmocka_unit_test_setup(without_the_unit_it_does, begin),
        cmocka_unit_test_setup(odd_pixels_are_for_tiles, begin),
        cmocka_unit_test_setup(where_tiles_do_not_fit_they_are_compiled, begin),
        cmocka_unit_test_setup(where_kernels_exist_none_is_compiled, begin),
        cmocka_unit_test_setup(beside_many_tiles_none_is_compiled, begin),
        cmocka_unit_test_setup(few_tiles_are_two_for_each_multiprocessor, begin),
        cmocka_unit_test_setup(plain_products_are_for_our_tiles, begin),
        cmocka_unit_test_setup(products_with_a_residual_ask_cudnn_nothing, begin),
    };
    return cmocka_run_group_tests_name("engine/cuda/ways", tests, NULL, NULL);
}
