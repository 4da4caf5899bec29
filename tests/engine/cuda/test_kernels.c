/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that NVRTC compiles for cuDNN are compiled once for all shapes, and are then the same as
 * if they were compiled for each: without a GPU (described.h), with a stand-in for its driver
 * (driver.c). Skipped where cuDNN is not there, or does not compile so. */
#include <string.h>

#include "engine/cuda/products/cudnn_kernels.h"
#include "tests/engine/cuda/described.h"

static struct cudnn_kernels kernels;

static int open_kernels(void **state)
{
    cudnn_kernels_init(&kernels);
    return open_cudnn(state);
}

static int close_kernels(void **state)
{
    cudnn_kernels_finish(&kernels);
    return close_cudnn(state);
}

/* [n,c,size,size] by [c,c,3,3], with a bias and an activation behind. */
static struct conv_spec spec_of(int64_t n, int64_t c, int64_t size, struct sac_activation act)
{
    struct conv_spec s = {
        .precision = SAC_PRECISION_FP16, .n = n, .groups = 1, .bias = true, .act = act};
    s.in = (struct conv_map){
        .c = c, .size = {1, size, size}, .pixel = c, .sample = c * size * size, .align = 16};
    s.out = s.in;
    for (int d = 0; d < CONV_DIMS; d++) {
        s.kernel[d] = d == 0 ? 1 : 3;
        s.pad_begin[d] = s.pad_end[d] = d == 0 ? 0 : 1;
        s.stride[d] = s.dilation[d] = 1;
    }
    return s;
}

static const struct sac_activation silu = {.kind = SAC_ACT_SILU},
                                   steep = {.kind = SAC_ACT_LEAKY_RELU, .alpha = 0.2f},
                                   flat = {.kind = SAC_ACT_LEAKY_RELU, .alpha = 0.1f};

/* The last way that is compiled: the smallest kernel, of three. */
static bool compiled_choice(const struct conv_spec *s, struct conv_choice *out)
{
    struct cudnn_graph     g;
    struct cudnn_candidate found[8];
    int                    n = 0;
    bool                   any = false;
    if (cudnn_graph_make(&target, s, true, CUDNN_THIS_SHAPE, &g))
        n = cudnn_graph_candidates(&target, &g, s, CUDNN_HEUR_MODE_A, found, 8);
    for (int i = 0; i < n; i++)
        if (found[i].runtime) {
            assert_true(cudnn_graph_compiles(&target, &g, &found[i].choice));
            *out = found[i].choice;
            any = true;
        }
    cudnn_graph_finish(&g);
    return any;
}

static void need_compiler(void)
{
    const struct conv_spec s = spec_of(1, 64, 40, silu);
    struct conv_choice     choice;
    struct cudnn_graph     g;
    struct cudnn_plan      p;
    if (!target.device || !compiled_choice(&s, &choice))
        skip();
    const bool shares = cudnn_kernels_plan(&kernels, &target, &s, &choice, &g, &p);
    cudnn_plan_finish(&p);
    cudnn_graph_finish(&g);
    if (!shares && !CUDNN_HAS_KERNEL_CACHE)
        skip();
    assert_true(shares);
}

/* The kernel's code in a plan's text; sac_free. */
static char *code_of(const struct cudnn_plan *plan)
{
    static const char name[] = "\"cubin\":\"";
    size_t            size = 0;
    char             *text = cudnn_plan_text(plan, &size);
    const char       *at = text ? strstr(text, name) : NULL;
    assert_non_null(at);
    at += strlen(name);
    char *code = sac_asprintf("%.*s", (int)strcspn(at, "\""), at);
    assert_true(strlen(code) > 10000);
    sac_free(text);
    return code;
}

/* Compiled for this shape alone. */
static char *own_code(const struct conv_spec *s, const struct conv_choice *choice)
{
    struct cudnn_graph g;
    struct cudnn_plan  p;
    assert_true(cudnn_graph_make(&target, s, true, CUDNN_THIS_SHAPE, &g));
    assert_true(cudnn_plan_make(&target, &g, choice, NULL, &p));
    char *code = code_of(&p);
    cudnn_plan_finish(&p);
    cudnn_graph_finish(&g);
    return code;
}

static char *shared_code(const struct conv_spec *s, const struct conv_choice *choice, int64_t *ns)
{
    struct cudnn_graph g;
    struct cudnn_plan  p, again;
    const int64_t      began = sac_time_ns();
    size_t             size = 0;
    assert_true(cudnn_kernels_plan(&kernels, &target, s, choice, &g, &p));
    *ns = sac_time_ns() - began;
    char *code = code_of(&p), *text = cudnn_plan_text(&p, &size);
    assert_true(cudnn_plan_read(&target, text, size, &again)); /* it can be kept */
    assert_int_equal(again.workspace, p.workspace);
    sac_free(text);
    cudnn_plan_finish(&again);
    cudnn_plan_finish(&p);
    cudnn_graph_finish(&g);
    return code;
}

static void one_kernel_serves_all_shapes(void **state)
{
    const struct conv_spec specs[] = {spec_of(1, 64, 40, silu), spec_of(8, 64, 40, silu),
                                      spec_of(2, 128, 23, silu)};
    struct conv_choice     choice;
    int64_t                began = sac_time_ns(), ns;
    (void)state;
    need_compiler();
    assert_true(compiled_choice(&specs[0], &choice));
    char         *own = own_code(&specs[0], &choice);
    const int64_t compiling_ns = sac_time_ns() - began;
    for (size_t i = 0; i < SAC_COUNT(specs); i++) {
        char *shared = shared_code(&specs[i], &choice, &ns);
        assert_string_equal(shared, own);
        assert_true(ns * 4 < compiling_ns); /* it was compiled above, by need_compiler */
        sac_free(shared);
    }
    sac_free(own);
}

/* cuDNN would give the one's kernel to the other. */
static void another_slope_is_another_kernel(void **state)
{
    const struct conv_spec a = spec_of(1, 64, 40, flat), b = spec_of(1, 64, 40, steep);
    struct conv_choice     choice;
    int64_t                ns;
    (void)state;
    need_compiler();
    assert_true(compiled_choice(&a, &choice));
    char *first = shared_code(&a, &choice, &ns), *second = shared_code(&b, &choice, &ns),
         *own = own_code(&b, &choice);
    assert_string_not_equal(first, second);
    assert_string_equal(second, own);
    sac_free(first);
    sac_free(second);
    sac_free(own);
}

static size_t earlier(void)
{
    return CUDNN_KERNEL_CACHE_SINCE - 100;
}

/* The headers may be newer than the library that is there at run time. */
static void an_older_library_shares_nothing(void **state)
{
    const struct cudnn_api    old = {.version = earlier};
    const struct cudnn_target nothing = {.api = &old};
    const struct conv_spec    s = spec_of(1, 64, 40, silu);
    const struct conv_choice  choice = {.way = CONV_CUDNN_FUSED};
    struct cudnn_graph        g;
    struct cudnn_plan         p;
    (void)state;
    assert_false(cudnn_kernels_plan(&kernels, &nothing, &s, &choice, &g, &p));
    cudnn_plan_finish(&p);
    cudnn_graph_finish(&g);
}

struct crowd {
    struct conv_choice choice;
    char              *code[8];
};

/* Whatever they find, they find the same. */
static void plan_one(void *arg, int piece, int worker)
{
    struct crowd          *c = arg;
    const struct conv_spec s = spec_of(1 + piece, 64, 20 + piece, steep);
    struct cudnn_graph     g;
    struct cudnn_plan      p;
    (void)worker;
    if (cudnn_kernels_plan(&kernels, &target, &s, &c->choice, &g, &p))
        c->code[piece] = code_of(&p);
    cudnn_plan_finish(&p);
    cudnn_graph_finish(&g);
}

static void threads_wait_for_the_first(void **state)
{
    const struct conv_spec  s = spec_of(1, 64, 40, steep);
    struct sac_worker_pool *pool = NULL;
    struct crowd            crowd = {.code = {NULL}};
    (void)state;
    need_compiler();
    assert_true(compiled_choice(&s, &crowd.choice));
    assert_int_equal(sac_worker_pool_create(test_context(), 4, &pool), SAC_OK);
    sac_worker_pool_run(pool, (int)SAC_COUNT(crowd.code), plan_one, &crowd);
    sac_worker_pool_destroy(&pool);
    for (size_t i = 0; i < SAC_COUNT(crowd.code); i++) {
        assert_non_null(crowd.code[i]);
        assert_string_equal(crowd.code[i], crowd.code[0]);
    }
    for (size_t i = 0; i < SAC_COUNT(crowd.code); i++)
        sac_free(crowd.code[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_kernel_serves_all_shapes),
        cmocka_unit_test(threads_wait_for_the_first),
        cmocka_unit_test(another_slope_is_another_kernel),
        cmocka_unit_test(an_older_library_shares_nothing),
    };
    return cmocka_run_group_tests_name("engine/cuda/kernels", tests, open_kernels, close_kernels);
}
