/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of convolutions as cuDNN itself takes them, without a GPU (described.h). Skipped where
 * cuDNN is not there. */
#include <stdio.h>
#include <string.h>

#include "tests/engine/cuda/described.h"
#include "tests/parity/subject.h"

static struct conv_spec spec_of(const struct parity_case *pc, enum sac_precision precision,
                                int64_t room, int align)
{
    struct subject            s;
    struct conv_spec          spec;
    static struct sac_weights weights;
    char                      why[128] = "";
    subject_init(&s, pc, FILL_RANDOM);
    assert_sac_ok(subject_shape(&s));
    struct sac_kernel_plan plan = {.call = s.call,
                                   .precision = precision,
                                   .weights = &weights,
                                   .out_align[0] = align,
                                   .in_align[0] = align};
    plan.in_pixel[0] = room ? s.call->in[0].dims[1] + room : 0;
    plan.out_pixel[0] = room ? s.call->out[0].dims[1] + room : 0;
    if (!conv_spec_read(&plan, &spec, why, sizeof why))
        fail_msg("%s", why);
    subject_finish(&s);
    return spec;
}

/* A plan comes back from its text. */
static void check_text(const struct cudnn_plan *plan)
{
    struct cudnn_plan again;
    size_t            size = 0;
    char             *text = cudnn_plan_text(plan, &size), why[600];
    assert_non_null(text);
    if (!cudnn_plan_read(&target, text, size, &again)) {
        cudnn_say(&again.set, why, sizeof why);
        fail_msg("%zu bytes: %s", size, why);
    }
    assert_int_equal(again.workspace, plan->workspace);
    cudnn_plan_finish(&again);
    sac_free(text);
}

/* How many ready kernels are offered; the first two must make a plan, also by way of their text. */
static int offered(const struct conv_spec *spec, bool fused)
{
    struct cudnn_graph     g;
    struct cudnn_candidate found[8];
    char                   why[600], text[512];
    int                    ready = 0;
    if (!cudnn_graph_make(&target, spec, fused, CUDNN_THIS_SHAPE, &g)) {
        cudnn_say(&g.set, why, sizeof why);
        fail_msg("%s", why);
    }
    int n =
        cudnn_graph_candidates(&target, &g, spec, CUDNN_HEUR_MODE_A, found, (int)SAC_COUNT(found));
    if (n == 0)
        n = cudnn_graph_candidates(&target, &g, spec, CUDNN_HEUR_MODE_FALLBACK, found,
                                   (int)SAC_COUNT(found));
    for (int i = 0; i < n; i++) {
        struct cudnn_plan  plan;
        struct conv_choice again;
        if (found[i].runtime)
            continue; /* compiling needs the driver */
        assert_true(conv_choice_print(&found[i].choice, text, sizeof text) > 0);
        assert_true(conv_choice_parse(text, &again) && conv_choice_same(&again, &found[i].choice));
        if (ready++ > 1)
            continue;
        if (!cudnn_plan_make(&target, &g, &again, NULL, &plan)) {
            cudnn_say(&plan.set, why, sizeof why);
            fail_msg("%s: %s", text, why);
        }
        assert_true(plan.workspace >= 0);
        check_text(&plan);
        cudnn_plan_finish(&plan);
    }
    cudnn_graph_finish(&g);
    return ready;
}

static void need_cudnn(void)
{
    if (!target.device)
        skip();
}

static void sums_are_planned(void **state)
{
    static const struct parity_case cases[] = {
        {"Conv", "[1,64,20,20] [64,64,3,3]!", "pads=1,1,1,1"},
        {"Conv", "[1,64,17,19] [64,64,3,3]!", "pads=0,0,1,1 strides=2,2"},
        {"Conv", "[1,3,64,64] [32,3,6,6]!", "pads=2,2,2,2 strides=2,2"},
        {"Conv", "[1,64,14,14] [64,16,3,3]!", "group=4 pads=1,1,1,1"},
        {"Conv", "[1,32,28] [48,32,5]!", "pads=2,2 strides=2"},
        {"Conv", "[1,16,6,10,9] [24,16,3,3,3]!", "pads=1,1,1,1,1,1"},
        {"Conv", "[1,64,17,19] [32,64,3,3]!", "pads=4,4,4,4 dilations=4,4"},
        {"ConvTranspose", "[1,32,10,12] [32,16,2,2]!", "strides=2,2"},
        {"ConvTranspose", "[1,16,9,7] [16,8,3,3]!",
         "strides=2,2 pads=1,1,1,1 output_padding=1,1 group=2"},
    };
    (void)state;
    need_cudnn();
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        for (int p = SAC_PRECISION_FP32; p <= SAC_PRECISION_FP16; p++) {
            const struct conv_spec spec = spec_of(&cases[i], (enum sac_precision)p, 0, 0);
            if (offered(&spec, false) == 0)
                fail_msg("%s { %s } precision %d: nothing is offered", cases[i].inputs,
                         cases[i].attrs, p);
        }
}

static void slices_of_maps_are_planned(void **state)
{
    static const struct parity_case pc = {"Conv", "[2,64,20,20] [64,64,3,3]!", "pads=1,1,1,1"};
    (void)state;
    need_cudnn();
    const struct conv_spec spec = spec_of(&pc, SAC_PRECISION_FP16, 64, 16),
                           loose = spec_of(&pc, SAC_PRECISION_FP16, 12, 8);
    assert_true(offered(&spec, false) > 0);
    assert_true(offered(&loose, false) > 0);
}

/* ReLU, bias and a residual before it: cuDNN has kernels ready, so nothing is compiled for
 * ResNets. */
static void relu_and_residual_have_ready_kernels(void **state)
{
    static const struct parity_case cases[] = {
        {"FusedConv", "[2,64,16,8] [256,64,1,1]! [256]! [2,256,16,8]", "activation=1 residual=1"},
        {"FusedConv", "[2,64,16,8] [64,64,3,3]! [64]!", "pads=1,1,1,1 activation=1"},
        {"FusedConv", "[2,64,16,8] [64,64,3,3]! [64]!", "pads=1,1,1,1"},
    };
    (void)state;
    need_cudnn();
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        const struct conv_spec spec = spec_of(&cases[i], SAC_PRECISION_FP16, 0, 0);
        assert_true(cudnn_graph_can_fuse(&spec));
        assert_true(offered(&spec, true) > 0);
    }
}

/* Every activation that we say can be fused makes a graph that cuDNN takes. */
static void fused_graphs_are_taken(void **state)
{
    (void)state;
    need_cudnn();
    for (int kind = 0; kind < SAC_ACT_COUNT; kind++)
        for (int residual = 0; residual < SAC_RESIDUAL_COUNT; residual++) {
            char attrs[96];
            snprintf(attrs, sizeof attrs,
                     "pads=1,1,1,1 activation=%d alpha=0.5 beta=0.75 residual=%d", kind, residual);
            const struct parity_case pc = {"FusedConv",
                                           residual ? "[1,64,8,8] [64,64,3,3]! [64]! [1,64,8,8]"
                                                    : "[1,64,8,8] [64,64,3,3]! [64]!",
                                           attrs};
            const struct conv_spec   spec = spec_of(&pc, SAC_PRECISION_FP16, 0, 0);
            struct cudnn_graph       g;
            const bool ours = kind == SAC_ACT_HARD_SIGMOID || kind == SAC_ACT_HARD_SWISH ||
                              kind == SAC_ACT_GELU_TANH || kind == SAC_ACT_SQUARED_RELU;
            assert_int_equal(cudnn_graph_can_fuse(&spec), !ours);
            if (ours)
                continue;
            const bool made = cudnn_graph_make(&target, &spec, true, CUDNN_THIS_SHAPE, &g);
            char       why[600] = "";
            cudnn_say(&g.set, why, sizeof why);
            cudnn_graph_finish(&g);
            if (!made)
                fail_msg("%s: %s", attrs, why);
        }
}

static bool takes(const struct conv_spec *spec, bool fused, const struct conv_choice *choice)
{
    struct cudnn_graph g;
    struct cudnn_plan  plan;
    assert_true(cudnn_graph_make(&target, spec, fused, CUDNN_THIS_SHAPE, &g));
    const bool taken = cudnn_plan_make(&target, &g, choice, NULL, &plan);
    cudnn_plan_finish(&plan);
    cudnn_graph_finish(&g);
    return taken;
}

/* What plans for a range of sizes rest on: a kernel and its settings that were chosen for one size
 * make a plan for another. */
static void choices_serve_other_sizes(void **state)
{
    static const struct parity_case cases[][2] = {
        {{"FusedConv", "[4,64,40,40] [64,64,3,3]! [64]!", "pads=1,1,1,1 activation=1"},
         {"FusedConv", "[3,64,30,52] [64,64,3,3]! [64]!", "pads=1,1,1,1 activation=1"}},
        {{"FusedConv", "[1,64,80,80] [128,64,1,1]! [128]!", "activation=1"},
         {"FusedConv", "[2,64,61,33] [128,64,1,1]! [128]!", "activation=1"}},
        {{"FusedConv", "[8,128,20,20] [256,128,3,3]! [256]!", "pads=1,1,1,1 strides=2,2"},
         {"FusedConv", "[5,128,32,14] [256,128,3,3]! [256]!", "pads=1,1,1,1 strides=2,2"}},
        {{"FusedConv", "[1,3,320,320] [32,3,3,3]! [32]!", "pads=1,1,1,1 strides=2,2 activation=1"},
         {"FusedConv", "[3,3,480,352] [32,3,3,3]! [32]!", "pads=1,1,1,1 strides=2,2 activation=1"}},
    };
    (void)state;
    need_cudnn();
    for (size_t i = 0; i < SAC_COUNT(cases); i++)
        for (int fused = 0; fused < 2; fused++) {
            const struct conv_spec lends = spec_of(&cases[i][0], SAC_PRECISION_FP16, 0, 0),
                                   borrows = spec_of(&cases[i][1], SAC_PRECISION_FP16, 0, 0);
            struct cudnn_candidate found[8];
            struct cudnn_graph     g;
            int                    ready = 0, taken = 0;
            assert_true(cudnn_graph_make(&target, &lends, fused, CUDNN_THIS_SHAPE, &g));
            const int n = cudnn_graph_candidates(&target, &g, &lends, CUDNN_HEUR_MODE_A, found,
                                                 (int)SAC_COUNT(found));
            cudnn_graph_finish(&g);
            for (int k = 0; k < n; k++)
                if (!found[k].runtime) {
                    ready++;
                    taken += takes(&borrows, fused, &found[k].choice);
                }
            if (ready == 0 || taken < ready * 3 / 4) /* all of them with cuDNN 9.19 */
                fail_msg("%s%s: %d of %d", cases[i][0].inputs, fused ? ", fused" : "", taken,
                         ready);
        }
}

static void nonsense_is_refused(void **state)
{
    static const struct parity_case pc = {"Conv", "[1,64,20,20] [64,64,3,3]!", "pads=1,1,1,1"};
    static const char *const        texts[] = {
               "plain 9999",
               "plain 45 2=4000000000",
               "plain 45 43=1,43=1,43=1",
               "plain 9999999999 9999=1",
    };
    struct cudnn_graph g;
    (void)state;
    need_cudnn();
    const struct conv_spec spec = spec_of(&pc, SAC_PRECISION_FP16, 0, 0);
    assert_true(cudnn_graph_make(&target, &spec, false, CUDNN_THIS_SHAPE, &g));
    for (size_t i = 0; i < SAC_COUNT(texts); i++) {
        struct conv_choice choice;
        struct cudnn_plan  plan;
        char               why[600] = "";
        assert_true(conv_choice_parse(texts[i], &choice));
        if (cudnn_plan_make(&target, &g, &choice, NULL, &plan))
            fail_msg("'%s' makes a plan", texts[i]);
        cudnn_say(&plan.set, why, sizeof why);
        assert_true(strlen(why) > 10);
        cudnn_plan_finish(&plan);
    }
    cudnn_graph_finish(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_planned),
        cmocka_unit_test(slices_of_maps_are_planned),
        cmocka_unit_test(relu_and_residual_have_ready_kernels),
        cmocka_unit_test(fused_graphs_are_taken),
        cmocka_unit_test(choices_serve_other_sizes),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("engine/cuda/cudnn", tests, open_cudnn, close_cudnn);
}
