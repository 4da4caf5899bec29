/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of lines that are spread over the registers of blocks, with the GPU's threads emulated, on
 * the parity cases of all norms whose lines can be: by one block and by clusters of each size. */
#include <math.h>
#include <stdio.h>

#include "engine/cuda/kernels/kernels.h"
#include "tests/parity/bodies.h"
#include "tests/parity/emulated/norm.h"
#include "tests/parity/trial.h"
#include "tests/test.h"

enum { WARP = 32, FIBERS_MAX = 1024, SHIFTS = OPS_SPREAD_SHIFT_MAX + 1, VECTOR_MAX = 8 };
static int launches, met[2][VECTOR_MAX + 1][2][SHIFTS]; /* by float16, vector, activation */

/* The fewest warps a block that hold the line between so many blocks. false: a cluster's fibers are
 * too few for it. */
static bool spread_over(struct ops_spread *s, int shift, int bytes)
{
    const int64_t units = (s->walk.count + (1 << shift) - 1) >> shift,
                  turns = OPS_SPREAD_TURNS(s->vector * bytes);
    s->shift = shift;
    s->threads = (int)((units + turns * WARP - 1) / (turns * WARP) * WARP);
    return s->threads << shift <= FIBERS_MAX;
}

/* Does what the planner chose hold the line? */
static bool holds(const struct ops_spread *s, int bytes)
{
    const int64_t room = (int64_t)s->threads * OPS_SPREAD_TURNS(s->vector * bytes) << s->shift;
    return s->walk.count <= room && s->threads <= OPS_SPREAD_THREADS_MAX &&
           s->threads % WARP == 0 && s->shift <= OPS_SPREAD_SHIFT_MAX;
}

static int launch(const void *params, const struct ops_ports *ports, void *stream)
{
    struct ops_norm p = *(const struct ops_norm *)params;
    const bool      half = p.in_type == SAC_F16;
    if (!emulated_norm_spreads(&p, ports))
        return ops_launch_norm(params, ports, stream);
    assert_true(holds(&p.spread, half ? 2 : 4));
    for (int k = 0; k < SHIFTS; k++) {
        const int shift = (launches + k) % SHIFTS;
        if (!spread_over(&p.spread, shift, half ? 2 : 4))
            continue;
        launches++;
        met[half][p.spread.vector][p.activation != 0][shift]++;
        return emulated_norm(&p, ports);
    }
    return ops_launch_norm(params, ports, stream);
}

static int missed(void)
{
    static const struct {
        bool half;
        int  vector;
    } kinds[] = {{true, 8}, {true, 2}, {true, 1}, {false, 4}, {false, 1}};
    int count = 0;
    for (size_t i = 0; i < SAC_COUNT(kinds); i++)
        for (int k = 0; k < 2 * SHIFTS; k++)
            if (!met[kinds[i].half][kinds[i].vector][k % 2][k / 2]) {
                printf("FAIL no case met %d numbers of float%d at once, %d blocks, %s activation\n",
                       kinds[i].vector, kinds[i].half ? 16 : 32, 1 << k / 2,
                       k % 2 ? "with an" : "without");
                count++;
            }
    return count;
}

/* Numbers whose squares would take all digits from what they differ by. */
static int far_from_zero(int shift)
{
    enum { COUNT = 3000, VECTOR = 4 };
    static float    x[COUNT], y[COUNT];
    double          mean = 0, squares = 0;
    struct ops_norm p = {.in_type = SAC_F32,
                         .out_type = SAC_F32,
                         .scale_port = -1,
                         .bias_port = -1,
                         .epsilon = 1e-5,
                         .lines = {.outer = {.rank = 1, .count = 1, .size = {1}},
                                   .inner = {.rank = 1, .count = COUNT}},
                         .spread = {.vector = VECTOR,
                                    .walk = {.count = COUNT / VECTOR,
                                             .inner = ops_divisor_of(COUNT / VECTOR),
                                             .step = {{0, VECTOR}, {0, VECTOR}}}}};
    p.lines.outer.dim[0] = ops_divisor_of(1);
    for (int i = 0; i < COUNT; i++) {
        /* blocks have other means */
        x[i] = 4096 + (float)(subject_random() % 1000 + (uint64_t)i) / 1000;
        mean += (double)x[i] / COUNT;
    }
    for (int i = 0; i < COUNT; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean) / COUNT;
    assert_true(spread_over(&p.spread, shift, sizeof *x));
    const struct ops_ports ports = {.in = {x}, .out = {y}};
    if (emulated_norm(&p, &ports) != 0)
        return 1;
    for (int i = 0; i < COUNT; i++) {
        const double want = ((double)x[i] - mean) / sqrt(squares + 1e-5);
        if (!(fabs(y[i] - want) <= 6e-4)) { /* as far as the mean is rounded to float32 */
            printf("FAIL %g becomes %g, not %g, by %d blocks\n", (double)x[i], (double)y[i], want,
                   1 << shift);
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    static const char *const ops[] = {"SampleNorm",         "GroupNormalization",
                                      "FusedGroupNorm",     "InstanceNormalization",
                                      "LayerNormalization", "MeanVarianceNormalization"};
    int                      failed = 0;
    sac_device              *dev = NULL;
    if (sac_device_open(test_context(), "cpu", NULL, &dev) != SAC_OK)
        return 1;
    bodies_instead = launch;
    for (size_t i = 0; i < SAC_COUNT(ops); i++) {
        struct trial t = {.dev = dev, .provider = &bodies, .only = ops[i]};
        trial_all(&t);
        failed += t.failed;
    }
    sac_device_unref(&dev);
    for (int shift = 0; shift < SHIFTS; shift++)
        failed += far_from_zero(shift);
    return failed || missed() ? 1 : 0;
}
