/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device's selection of the best numbers of a line, its threads emulated, against the
 * order that ONNX and our reference have: NaN is the largest number, equal ones keep their
 * order. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/parity/emulated/topk.h"
#include "tests/parity/subject.h"
#include "tests/test.h"

#include "base/base.h"
#include "engine/ops/util.h"

enum kind { SPREAD, CLOSE, EQUAL, FEW, SPECIAL, KINDS };

struct number {
    float    value;
    uint32_t index;
};

static bool least;

static int by_order(const void *a, const void *b)
{
    const struct number *x = a, *y = b;
    const bool           nan_x = isnan(x->value), nan_y = isnan(y->value);
    int                  order =
        nan_x || nan_y ? (int)nan_y - (int)nan_x : (x->value < y->value) - (x->value > y->value);
    order = least ? -order : order;
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static float draw(enum kind kind)
{
    static const float special[] = {0,     -0.0f,  NAN,  -NAN,  INFINITY, -INFINITY,
                                    1e-7f, -1e-7f, 1.5f, -1.5f, 60000,    -60000};
    const uint64_t     r = subject_random();
    switch (kind) {
    case SPREAD: return (float)(int64_t)r * 1e-16f;
    case CLOSE: return 0.5f + (float)(r % 1000) * 1e-5f;
    case EQUAL: return 0.25f;
    case FEW: return (float)(r % 3) - 1;
    default: return special[r % SAC_COUNT(special)];
    }
}

static void try_line(enum kind kind, bool half, int n, int k, int threads)
{
    uint32_t *bits = sac_alloc((size_t)n * sizeof *bits), *out = sac_alloc((size_t)k * sizeof *out);
    struct number *want = sac_alloc((size_t)n * sizeof *want);
    assert_true(bits && out && want);
    for (int i = 0; i < n; i++) {
        const float    v = draw(kind);
        const uint16_t h = sac_float_to_half(v);
        want[i] = (struct number){half ? sac_half_to_float(h) : v, (uint32_t)i};
        memcpy(&bits[i], &v, sizeof v);
        bits[i] = half ? h : bits[i];
    }
    memset(out, 0xff, (size_t)k * sizeof *out);
    qsort(want, (size_t)n, sizeof *want, by_order);
    emulated_topk(&(struct emulated_topk){.bits = bits,
                                          .width = half ? 16 : 32,
                                          .infinity = half ? 0x7c00 : 0x7f800000,
                                          .n = n,
                                          .k = k,
                                          .threads = threads,
                                          .least = least,
                                          .out = out});
    for (int i = 0; i < k; i++)
        if (out[i] != want[i].index)
            fail_msg("numbers of kind %d, %d bits, %s: %d of %d by %d threads: at %d stands %u, "
                     "not %u (%g)",
                     kind, half ? 16 : 32, least ? "least" : "largest", k, n, threads, i, out[i],
                     want[i].index, (double)want[i].value);
    sac_free(bits);
    sac_free(out);
    sac_free(want);
}

static void best_numbers_come_in_order(void **state)
{
    static const struct {
        int n, k, threads;
    } lines[] = {{33, 1, 128},    {64, 64, 128},     {500, 50, 128},     {2048, 2048, 256},
                 {2049, 7, 1024}, {8400, 300, 1024}, {5000, 2048, 1024}, {4097, 2047, 1024}};
    (void)state;
    subject_seed(5);
    for (size_t i = 0; i < SAC_COUNT(lines); i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int half = 0; half < 2; half++)
                for (int last = 0; last < 2; last++) {
                    least = last;
                    try_line((enum kind)kind, half, lines[i].n, lines[i].k, lines[i].threads);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(best_numbers_come_in_order)};
    return cmocka_run_group_tests_name("parity/topk_emulated", tests, NULL, NULL);
}
