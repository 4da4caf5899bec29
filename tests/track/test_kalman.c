/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/base.h"
#include "tests/test.h"
#include "track/kalman.h"

static const struct sac_motion motion = {
    .place = {.measure = 0.05, .position_walk = 0.2, .velocity_walk = 0.6, .velocity_start = 2},
    .size = {.measure = 0.06, .position_walk = 0.1, .velocity_walk = 0.1, .velocity_start = 0.5},
};
static const struct sac_box person = {100, 200, 140, 300};

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance * SAC_MAX(1, fabs(b))))
        fail_msg("%.12g is not %.12g", a, b);
}

static void assert_same_filter(const struct sac_kalman *a, const struct sac_kalman *b,
                               double tolerance)
{
    for (int i = 0; i < SAC_AXES; i++) {
        assert_near(a->axis[i].x, b->axis[i].x, tolerance);
        assert_near(a->axis[i].v, b->axis[i].v, tolerance);
        assert_near(a->axis[i].xx, b->axis[i].xx, tolerance);
        assert_near(a->axis[i].xv, b->axis[i].xv, tolerance);
        assert_near(a->axis[i].vv, b->axis[i].vv, tolerance);
    }
}

/* The textbook's matrices for one axis, to compare with. */
struct textbook {
    double x[2], p[2][2];
};

static void textbook_predict(struct textbook *t, double dt, double qx, double qv)
{
    const double f[2][2] = {{1, dt}, {0, 1}};
    const double q[2][2] = {{qx * dt + qv * dt * dt * dt / 3, qv * dt * dt / 2},
                            {qv * dt * dt / 2, qv * dt}};
    double       p[2][2];
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            p[i][j] = q[i][j];
            for (int k = 0; k < 2; k++)
                for (int l = 0; l < 2; l++)
                    p[i][j] += f[i][k] * t->p[k][l] * f[j][l];
        }
    }
    for (int i = 0; i < 4; i++)
        t->p[i / 2][i % 2] = p[i / 2][i % 2];
    t->x[0] += dt * t->x[1];
}

static void textbook_update(struct textbook *t, double z, double r)
{
    double k[2] = {t->p[0][0] / (t->p[0][0] + r), t->p[1][0] / (t->p[0][0] + r)};
    double off = z - t->x[0], top[2] = {t->p[0][0], t->p[0][1]};
    for (int i = 0; i < 2; i++) {
        t->x[i] += k[i] * off;
        for (int j = 0; j < 2; j++)
            t->p[i][j] -= k[i] * top[j];
    }
}

/* Irregular steps and boxes of constant height, so that the scale of the noise stays put. */
static void equals_the_textbook(void **state)
{
    (void)state;
    struct sac_kalman f;
    struct textbook   t = {{120, 0}, {{25, 0}, {0, 40000}}}; /* (0.05 * 100)^2, (2 * 100)^2 */
    sac_kalman_start(&f, &motion, &person);
    for (int i = 1; i < 40; i++) {
        double         dt = 0.01 * (1 + i % 7);
        struct sac_box box = person;
        box.x0 += (float)(i * 3 + i % 5);
        box.x1 = box.x0 + 40;
        sac_kalman_predict(&f, &motion, dt);
        textbook_predict(&t, dt, 20 * 20, 60 * 60);
        sac_kalman_update(&f, &motion, &box, 0.5);
        textbook_update(&t, box.x0 + 20, 10 * 10);
        assert_near(f.axis[SAC_AXIS_X].x, t.x[0], 1e-9);
        assert_near(f.axis[SAC_AXIS_X].v, t.x[1], 1e-9);
        assert_near(f.axis[SAC_AXIS_X].xx, t.p[0][0], 1e-9);
        assert_near(f.axis[SAC_AXIS_X].xv, t.p[0][1], 1e-9);
        assert_near(f.axis[SAC_AXIS_X].vv, t.p[1][1], 1e-9);
        assert_near(f.axis[SAC_AXIS_HEIGHT].x, 100, 1e-9);
    }
}

static void one_step_is_many_small_ones(void **state)
{
    (void)state;
    for (int parts = 2; parts <= 50; parts += 12) {
        struct sac_kalman whole, split;
        sac_kalman_start(&whole, &motion, &person);
        whole.axis[SAC_AXIS_X].v = 80;
        whole.axis[SAC_AXIS_Y].v = -30;
        split = whole;
        sac_kalman_predict(&whole, &motion, 0.5);
        for (int i = 0; i < parts; i++)
            sac_kalman_predict(&split, &motion, 0.5 / parts);
        assert_same_filter(&whole, &split, 1e-9);
    }
}

/* With a growing box the noise grows on the way, so the covariance is close only. */
static void one_step_is_nearly_many_when_the_size_changes(void **state)
{
    (void)state;
    struct sac_kalman whole, split;
    sac_kalman_start(&whole, &motion, &person);
    whole.axis[SAC_AXIS_HEIGHT].v = 10;
    split = whole;
    sac_kalman_predict(&whole, &motion, 0.4);
    sac_kalman_predict(&split, &motion, 0.2);
    sac_kalman_predict(&split, &motion, 0.2);
    for (int i = 0; i < SAC_AXES; i++) {
        assert_near(whole.axis[i].x, split.axis[i].x, 1e-12);
        assert_near(whole.axis[i].xx, split.axis[i].xx, 0.05);
    }
}

static void learns_a_steady_speed_at_any_rate(void **state)
{
    (void)state;
    static const double rates[] = {60, 25, 10, 3};
    for (size_t r = 0; r < SAC_COUNT(rates); r++) {
        struct sac_kalman f;
        sac_kalman_start(&f, &motion, &person);
        for (int i = 1; i <= 4 * rates[r]; i++) {
            struct sac_box box = person;
            box.x0 += (float)(150 * i / rates[r]);
            box.x1 = box.x0 + 40;
            sac_kalman_predict(&f, &motion, 1 / rates[r]);
            sac_kalman_update(&f, &motion, &box, 1);
        }
        assert_near(f.axis[SAC_AXIS_X].v, 150, 0.05);
        assert_near(f.axis[SAC_AXIS_X].x, 120 + 600, 0.005);
    }
}

static void moves_with_the_picture(void **state)
{
    (void)state;
    struct sac_kalman           f;
    const double                zoom = 1.1, angle = 0.2;
    const struct sac_similarity s = {zoom * cos(angle), zoom * sin(angle), 5, -7};
    sac_kalman_start(&f, &motion, &person);
    f.axis[SAC_AXIS_X].v = 10;
    struct sac_kalman g = f;
    sac_kalman_move(&g, &s);
    assert_near(g.axis[SAC_AXIS_X].x, s.a * 120 - s.b * 250 + 5, 1e-12);
    assert_near(g.axis[SAC_AXIS_Y].x, s.b * 120 + s.a * 250 - 7, 1e-12);
    assert_near(g.axis[SAC_AXIS_X].v, 10 * s.a, 1e-12);
    assert_near(g.axis[SAC_AXIS_Y].v, 10 * s.b, 1e-12);
    assert_near(g.axis[SAC_AXIS_WIDTH].x, 44, 1e-12);
    assert_near(g.axis[SAC_AXIS_HEIGHT].x, 110, 1e-12);
    assert_near(g.axis[SAC_AXIS_X].vv, f.axis[SAC_AXIS_X].vv * 1.21, 1e-12);
}

static void never_gives_an_empty_box(void **state)
{
    (void)state;
    struct sac_kalman f;
    sac_kalman_start(&f, &motion, &person);
    f.axis[SAC_AXIS_HEIGHT].v = f.axis[SAC_AXIS_WIDTH].v = -1000;
    sac_kalman_predict(&f, &motion, 3);
    struct sac_box box = sac_kalman_box(&f);
    assert_true(box.x1 - box.x0 >= 1 && box.y1 - box.y0 >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_textbook),
        cmocka_unit_test(one_step_is_many_small_ones),
        cmocka_unit_test(one_step_is_nearly_many_when_the_size_changes),
        cmocka_unit_test(learns_a_steady_speed_at_any_rate),
        cmocka_unit_test(moves_with_the_picture),
        cmocka_unit_test(never_gives_an_empty_box),
    };
    return cmocka_run_group_tests_name("track/kalman", tests, NULL, NULL);
}
