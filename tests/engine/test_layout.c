/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "engine/kernel/layout.h"
#include "tests/test.h"

/* Where element (n,c,s) of a [2,C,H,W] tensor belongs, as graph.h says. */
static int64_t place(enum sac_layout layout, int64_t C, int64_t S, int64_t n, int64_t c, int64_t s)
{
    return sac_layout_is_last(layout) ? (n * S + s) * C + c : (n * C + c) * S + s;
}

/* Whole numbers that float16 holds too. */
static void fill(void *data, enum sac_layout layout, int64_t C, int64_t S)
{
    for (int64_t n = 0; n < 2; n++)
        for (int64_t c = 0; c < C; c++)
            for (int64_t s = 0; s < S; s++) {
                const int64_t at = place(layout, C, S, n, c, s);
                const float   v = (float)(1 + (n * C + c) * S + s);
                if (sac_layout_is_half(layout))
                    ((uint16_t *)data)[at] = sac_float_to_half(v);
                else
                    ((float *)data)[at] = v;
            }
}

static void converts_between_all(void **state)
{
    (void)state;
    for (int64_t C = 1; C <= 33; C++)
        for (int a = 0; a < SAC_LAYOUT_COUNT; a++)
            for (int b = 0; b < SAC_LAYOUT_COUNT; b++) {
                const enum sac_layout from = (enum sac_layout)a, to = (enum sac_layout)b;
                struct sac_operand    o = {.dtype = SAC_F32, .rank = 4, .dims = {2, C, 3, 5}};
                const size_t          from_bytes = sac_layout_bytes(&o, from),
                             bytes = sac_layout_bytes(&o, to);
                void *src = malloc(from_bytes), *dst = malloc(bytes), *want = malloc(bytes);
                memset(dst, 0xff, bytes);
                fill(src, from, C, 15);
                fill(want, to, C, 15);
                sac_layout_convert(&o, dst, to, src, from);
                assert_memory_equal(dst, want, bytes);
                free(src);
                free(dst);
                free(want);
            }
}

static void knows_equal_layouts(void **state)
{
    (void)state;
    struct sac_operand pooled = {.dtype = SAC_F32, .rank = 4, .dims = {3, 32, 1, 1}};
    struct sac_operand map = {.dtype = SAC_F32, .rank = 4, .dims = {1, 32, 2, 2}};
    struct sac_operand whole = {.dtype = SAC_I64, .rank = 4, .dims = {1, 32, 2, 2}}; /* has no half
                                                                                      */
    assert_true(sac_layout_same(&pooled, SAC_LAYOUT_CHANNELS_LAST, SAC_LAYOUT_PLAIN));
    assert_true(sac_layout_same(&pooled, SAC_LAYOUT_CHANNELS_LAST_HALF, SAC_LAYOUT_PLAIN_HALF));
    assert_false(sac_layout_same(&pooled, SAC_LAYOUT_PLAIN_HALF, SAC_LAYOUT_PLAIN));
    assert_false(sac_layout_same(&map, SAC_LAYOUT_CHANNELS_LAST, SAC_LAYOUT_PLAIN));
    assert_false(sac_layout_same(&map, SAC_LAYOUT_CHANNELS_LAST_HALF, SAC_LAYOUT_CHANNELS_LAST));
    assert_true(sac_layout_same(&whole, SAC_LAYOUT_PLAIN_HALF, SAC_LAYOUT_PLAIN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converts_between_all),
        cmocka_unit_test(knows_equal_layouts),
    };
    return cmocka_run_group_tests_name("engine/layout", tests, NULL, NULL);
}
