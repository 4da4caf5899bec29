/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "tests/test.h"
#include "track/gallery.h"

enum { DIM = 11 }; /* not a multiple of the inner loop's eight */

/* Unit vector between two axes. */
static const float *look(int axis, double angle)
{
    static float rows[8][DIM];
    static int   next;
    float       *row = rows[next++ % 8];
    memset(row, 0, sizeof rows[0]);
    row[axis] = (float)cos(angle);
    row[DIM - 1] = (float)sin(angle);
    return row;
}

static void assert_distance(const struct sac_gallery *g, int slot, const float *embedding,
                            double want)
{
    float got = sac_gallery_distance(g, slot, embedding);
    if (fabs(got - want) > 1e-4)
        fail_msg("distance %g, expected %g", got, want);
}

static void keeps_looks_apart(void **state)
{
    (void)state;
    struct sac_gallery g;
    sac_gallery_init(&g, DIM, 3);
    assert_true(sac_gallery_reserve(&g, 2));
    int a = sac_gallery_take(&g), b = sac_gallery_take(&g);
    assert_int_not_equal(a, b);
    assert_distance(&g, a, look(0, 0), 2);
    for (int axis = 0; axis < 3; axis++)
        sac_gallery_add(&g, a, look(axis, 0), axis);
    sac_gallery_add(&g, b, look(5, 0), 0);
    for (int axis = 0; axis < 3; axis++)
        assert_distance(&g, a, look(axis, 0), 0);
    assert_distance(&g, a, look(5, 0), 1);
    assert_distance(&g, b, look(5, 0), 0);
    sac_gallery_add(&g, a, look(0, 0), 3); /* met again, so the second is the oldest now */
    sac_gallery_add(&g, a, look(4, 0), 4);
    assert_distance(&g, a, look(1, 0), 1);
    assert_distance(&g, a, look(0, 0), 0);
    assert_distance(&g, a, look(4, 0), 0);
    sac_gallery_finish(&g);
}

/* The same look in one second, seen 5 or 50 times, weighs the same. */
static void fades_with_time_not_with_pictures(void **state)
{
    (void)state;
    float distance[2];
    for (int k = 0; k < 2; k++) {
        int                pictures = k ? 50 : 5;
        struct sac_gallery g;
        sac_gallery_init(&g, DIM, 1);
        assert_true(sac_gallery_reserve(&g, 1));
        int slot = sac_gallery_take(&g);
        sac_gallery_add(&g, slot, look(0, 0), 0);
        for (int i = 1; i <= pictures; i++)
            sac_gallery_add(&g, slot, look(0, 0.3), (double)i / pictures);
        distance[k] = sac_gallery_distance(&g, slot, look(0, 0));
        sac_gallery_finish(&g);
    }
    assert_true(distance[0] > 0.001f);
    assert_true(fabsf(distance[0] - distance[1]) < 0.05f * distance[0]);
}

static void recycles_slots_and_survives_no_memory(void **state)
{
    (void)state;
    struct sac_gallery g;
    sac_gallery_init(&g, DIM, 2);
    assert_true(sac_gallery_reserve(&g, 4));
    for (int round = 0; round < 1000; round++) {
        int slot = sac_gallery_take(&g);
        assert_distance(&g, slot, look(0, 0), 2);
        sac_gallery_add(&g, slot, look(0, 0), round);
        sac_gallery_give_back(&g, slot);
    }
    sac_alloc_fail_at(1);
    assert_false(sac_gallery_reserve(&g, 10000));
    sac_alloc_fail_at(0);
    assert_in_range(g.count, 4, 100);
    for (size_t i = 0; i < g.count; i++)
        assert_in_range(sac_gallery_take(&g), 0, g.count - 1);
    assert_int_equal(g.free, -1);
    sac_gallery_finish(&g);
}

/* A C library's to the last bit of a float, but where its double lies between two of them. */
static void fades_as_an_exponential(void **state)
{
    (void)state;
    int off = 0;
    for (int i = 0; i <= 400000; i++) {
        double gone_s = i < 200000 ? i * 1e-5 : (i - 200000) * 0.013;
        float got = sac_appearance_keep(gone_s), want = (float)exp(-gone_s / SAC_APPEARANCE_FADE_S);
        off += got != want;
        if (fabsf(got - want) > 1e-7f * want)
            fail_msg("after %g s %.9g is left, not %.9g", gone_s, (double)got, (double)want);
    }
    assert_in_range(off, 0, 4);
    assert_true(sac_appearance_keep(0) == 1);
    assert_true(sac_appearance_keep(1e9) == 0);
    assert_true(sac_appearance_keep(NAN) == 0);
}

static void tells_unit_rows(void **state)
{
    (void)state;
    struct sac_gallery g;
    sac_gallery_init(&g, DIM, 1);
    float row[DIM] = {0};
    assert_false(sac_gallery_is_unit(&g, row));
    row[10] = 1;
    assert_true(sac_gallery_is_unit(&g, row));
    row[3] = NAN;
    assert_false(sac_gallery_is_unit(&g, row));
    row[3] = 5;
    assert_false(sac_gallery_is_unit(&g, row));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_looks_apart),
        cmocka_unit_test(fades_with_time_not_with_pictures),
        cmocka_unit_test(recycles_slots_and_survives_no_memory),
        cmocka_unit_test(fades_as_an_exponential),
        cmocka_unit_test(tells_unit_rows),
    };
    return cmocka_run_group_tests_name("track/gallery", tests, NULL, NULL);
}
