/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "engine/layout.h"
#include "tests/test.h"

static const enum sac_layout layouts[] = {SAC_LAYOUT_PLAIN, SAC_LAYOUT_CHANNELS_LAST,
                                          SAC_LAYOUT_BLOCKED8, SAC_LAYOUT_BLOCKED16};

/* Where element (n,c,s) of a [2,C,H,W] tensor belongs, as graph.h says. */
static int64_t place(enum sac_layout layout, int64_t C, int64_t S, int64_t n, int64_t c, int64_t s)
{
    int64_t b = layout == SAC_LAYOUT_BLOCKED8 ? 8 : 16;
    if (layout == SAC_LAYOUT_PLAIN)
        return (n * C + c) * S + s;
    if (layout == SAC_LAYOUT_CHANNELS_LAST)
        return (n * S + s) * C + c;
    return ((n * ((C + b - 1) / b) + c / b) * S + s) * b + c % b;
}

static void fill(uint16_t *data, enum sac_layout layout, int64_t C, int64_t S)
{
    for (int64_t n = 0; n < 2; n++)
        for (int64_t c = 0; c < C; c++)
            for (int64_t s = 0; s < S; s++)
                data[place(layout, C, S, n, c, s)] = (uint16_t)(1 + (n * C + c) * S + s);
}

static void converts_between_all(void **state)
{
    (void)state;
    for (int64_t C = 1; C <= 33; C++)
        for (size_t a = 0; a < 4; a++)
            for (size_t b = 0; b < 4; b++) {
                struct sac_operand o = {.dtype = SAC_F16, .rank = 4, .dims = {2, C, 3, 5}};
                size_t    from = sac_layout_bytes(&o, layouts[a]), to = sac_layout_bytes(&o, layouts[b]);
                uint16_t *src = calloc(1, from), *dst = malloc(to), *want = calloc(1, to);
                memset(dst, 0xff, to);
                fill(src, layouts[a], C, 15);
                fill(want, layouts[b], C, 15); /* padding channels zero */
                sac_layout_convert(&o, dst, layouts[b], src, layouts[a]);
                assert_memory_equal(dst, want, to);
                free(src);
                free(dst);
                free(want);
            }
}

static void knows_equal_layouts(void **state)
{
    (void)state;
    struct sac_operand pooled = {.dtype = SAC_F32, .rank = 4, .dims = {3, 32, 1, 1}};
    struct sac_operand odd = {.dtype = SAC_F32, .rank = 4, .dims = {3, 30, 1, 1}};
    struct sac_operand map = {.dtype = SAC_F32, .rank = 4, .dims = {1, 32, 2, 2}};
    assert_true(sac_layout_same(&pooled, SAC_LAYOUT_BLOCKED16, SAC_LAYOUT_PLAIN));
    assert_true(sac_layout_same(&pooled, SAC_LAYOUT_BLOCKED8, SAC_LAYOUT_CHANNELS_LAST));
    assert_false(sac_layout_same(&odd, SAC_LAYOUT_BLOCKED16, SAC_LAYOUT_PLAIN));
    assert_true(sac_layout_same(&odd, SAC_LAYOUT_CHANNELS_LAST, SAC_LAYOUT_PLAIN));
    assert_false(sac_layout_same(&map, SAC_LAYOUT_CHANNELS_LAST, SAC_LAYOUT_PLAIN));
    assert_false(sac_layout_same(&map, SAC_LAYOUT_BLOCKED8, SAC_LAYOUT_BLOCKED16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converts_between_all),
        cmocka_unit_test(knows_equal_layouts),
    };
    return cmocka_run_group_tests_name("engine/layout", tests, NULL, NULL);
}
