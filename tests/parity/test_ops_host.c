/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of the CUDA kernels, compiled for the host, on all parity cases: indexing, layouts and
 * arithmetic are proven where no GPU is.
 * usage: test_parity_ops [OPERATOR | PART/PARTS]     each PARTS-th case, from 0/PARTS on */
#include <stdio.h>

#include "engine/kernel/layout.h"
#include "tests/parity/ask.h"
#include "tests/parity/bodies.h"
#include "tests/parity/trial.h"
#include "tests/test.h"

/* In a plan of float16, is the result too? Constants that need more digits keep it in float32. */
static const struct {
    struct parity_case pc;
    bool               half;
} precisions[] = {
    {{"Add", "[2,5] f32(1,-3,0.00001,0,16)!", ""}, true},
    {{"Mul", "[2,5] f32(1,-3,0.00001,0,0.5)!", ""}, true},
    {{"Div", "[2,5] f32(1,-3,0.00001,2,0.5)!", ""}, false},
    {{"Add", "[2,1] f32=0.00001!", ""}, false},
    {{"Add", "[2,4] f32(0,0,-100,-100)!", ""}, true},
    {{"Add", "[2,4] f32(0,0,-1000000000,0)!", ""}, false},
    {{"Add", "[2,4] f32(0,-20,-100,0)!", ""}, false},
    {{"Add", "[2,4] f32(0,1,2,17)!", ""}, false},
    {{"Sub", "[2,1] f32=-100!", ""}, false},
};

static void try_precisions(struct trial *t)
{
    for (size_t i = 0; i < SAC_COUNT(precisions); i++) {
        const struct parity_case *pc = &precisions[i].pc;
        struct subject            s;
        subject_init(&s, pc, FILL_RANDOM);
        assert_sac_ok(subject_shape(&s));
        s.call->in[0].data = NULL;
        struct sac_kernel_plan plan = {
            .call = s.call, .precision = SAC_PRECISION_FP16, .in_layout = {SAC_LAYOUT_PLAIN_HALF}};
        const struct sac_kernel_offer offer =
            ask_kernel(t->dev, t->provider->kernels[s.node.op->id], &plan);
        if (!offer.taken || sac_layout_is_half(offer.out_layout[0]) != precisions[i].half) {
            printf("FAIL %s %s: %s\n", pc->op, pc->inputs,
                   precisions[i].half ? "not float16" : "float16");
            t->failed++;
        }
        subject_finish(&s);
    }
}

int main(int argc, char **argv)
{
    struct trial t = {.provider = &bodies, .small = true};
    if (argc > 1 && sscanf(argv[1], "%d/%d", &t.part, &t.parts) != 2)
        t.only = argv[1];
    if (sac_device_open(test_context(), "cpu", NULL, &t.dev) != SAC_OK)
        return 1;
    trial_all(&t);
    try_precisions(&t);
    sac_device_unref(&t.dev);
    return t.failed ? 1 : 0;
}
