/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/parity/half_maps.h"

#include <math.h>
#include <string.h>

#include "tests/test.h"

struct conv_spec half_spec(const struct subject *s, struct sac_kernel_plan plan)
{
    static struct sac_weights weights; /* conv_spec_read only looks whether there are any */
    struct conv_spec          v;
    char                      why[128];
    plan.call = s->call;
    plan.precision = SAC_PRECISION_FP16;
    plan.weights = &weights;
    if (!conv_spec_read(&plan, &v, why, sizeof why))
        fail_msg("%s: %s", s->node.op->name, why);
    return v;
}

size_t half_map_bytes(const struct conv_map *m, int64_t n)
{
    return (size_t)(n * m->sample) * 2;
}

uint16_t *half_map_lay(const struct conv_map *m, int64_t n, const float *from)
{
    const int64_t pixels = m->size[1] * m->size[2];
    uint16_t     *map = sac_alloc_aligned(64, half_map_bytes(m, n));
    assert_non_null(map);
    memset(map, HALF_BESIDE & 0xff, half_map_bytes(m, n));
    for (int64_t i = 0; from && i < n * m->c * pixels; i++)
        map[i / pixels / m->c * m->sample + i % pixels * m->pixel + i / pixels % m->c] =
            sac_float_to_half(from[i]);
    return map;
}

void half_map_compare(const struct subject *s, const struct conv_spec *v, const uint16_t *y,
                      int variant)
{
    const int64_t pixels = v->out.size[1] * v->out.size[2];
    const float  *want = s->call->out[0].data;
    const double  most = subject_largest(&s->call->out[0]);
    for (int64_t i = 0; i < v->n * v->out.sample; i++) {
        const int64_t n = i / v->out.sample, at = i % v->out.sample, p = at / v->out.pixel,
                      k = at % v->out.pixel;
        if (k >= v->out.c || p >= pixels) {
            assert_int_equal(y[i], HALF_BESIDE);
            continue;
        }
        const double expected = (double)want[(n * v->out.c + k) * pixels + p],
                     error = (double)sac_half_to_float(y[i]) - expected;
        if (!(fabs(error) <= 1e-3 * fabs(expected) + 1e-5 * most))
            fail_msg("variant %d: [%d,%d,%d] is off by %g of %g", variant, (int)n, (int)k, (int)p,
                     error, expected);
    }
}
