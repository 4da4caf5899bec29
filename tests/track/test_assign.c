/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/test.h"
#include "track/assign.h"

enum { SMALL = 6, BIG = 300 };

static uint32_t seed = 1;

static uint32_t next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Pairs and their total cost: more pairs win when there is no limit. */
struct score {
    int    pairs;
    double total;
};

static bool better(struct score a, struct score b, double limit)
{
    if (isinf(limit))
        return a.pairs > b.pairs || (a.pairs == b.pairs && a.total < b.total);
    return a.total - limit * a.pairs < b.total - limit * b.pairs;
}

/* All assignments of the rows from `row` on. */
static struct score brute(const double *cost, int rows, int cols, double limit, int row,
                          unsigned used)
{
    if (row == rows)
        return (struct score){0, 0};
    struct score best = brute(cost, rows, cols, limit, row + 1, used);
    for (int j = 0; j < cols; j++) {
        double c = cost[row * cols + j];
        if ((used >> j & 1) || !isfinite(c))
            continue;
        struct score s = brute(cost, rows, cols, limit, row + 1, used | 1u << j);
        s.pairs++;
        s.total += c;
        if (better(s, best, limit))
            best = s;
    }
    return best;
}

static struct score solve(const double *cost, int rows, int cols, double limit)
{
    static struct sac_assign as;
    int                      col_of[BIG], row_of[BIG];
    struct score             s = {0, 0};
    assert_true(sac_assign_reserve(&as, rows, cols));
    sac_assign_solve(&as, cost, rows, cols, limit, col_of, row_of);
    for (int i = 0; i < rows; i++) {
        if (col_of[i] < 0)
            continue;
        assert_in_range(col_of[i], 0, cols - 1);
        assert_int_equal(row_of[col_of[i]], i);
        assert_true(isfinite(cost[i * cols + col_of[i]]));
        assert_true(cost[i * cols + col_of[i]] <= limit);
        s.pairs++;
        s.total += cost[i * cols + col_of[i]];
    }
    for (int j = 0; j < cols; j++)
        if (row_of[j] >= 0)
            assert_int_equal(col_of[row_of[j]], j);
    return s;
}

/* Few distinct values, so ties are everywhere; some pairs forbidden in each of the ways. */
static double tied_cost(void)
{
    static const double never[] = {INFINITY, -INFINITY, NAN};
    uint32_t            r = next_random() % 20;
    return r < 3 ? never[r] : (double)(next_random() % 7) - 2;
}

static double smooth_cost(void)
{
    return next_random() / 1e6 - 4;
}

static void compare_with_brute_force(double (*draw)(void), int rounds)
{
    static const double limits[] = {INFINITY, 3, 0.5, 0, -1.5};
    for (int round = 0; round < rounds; round++) {
        double cost[SMALL * SMALL];
        int    rows = (int)(next_random() % (SMALL + 1)), cols = (int)(next_random() % (SMALL + 1));
        for (int i = 0; i < rows * cols; i++)
            cost[i] = draw();
        for (size_t k = 0; k < SAC_COUNT(limits); k++) {
            struct score want = brute(cost, rows, cols, limits[k], 0, 0);
            struct score got = solve(cost, rows, cols, limits[k]);
            double       limit = isinf(limits[k]) ? 0 : limits[k];
            if (isinf(limits[k]))
                assert_int_equal(got.pairs, want.pairs);
            assert_true(fabs((got.total - limit * got.pairs) - (want.total - limit * want.pairs)) <
                        1e-9);
        }
    }
}

static void equals_brute_force_with_ties_and_forbidden_pairs(void **state)
{
    (void)state;
    compare_with_brute_force(tied_cost, 1500);
}

static void equals_brute_force_with_smooth_costs(void **state)
{
    (void)state;
    compare_with_brute_force(smooth_cost, 500);
}

/* Prices plus a slack that is zero on a hidden permutation: the optimum is the sum of the
 * prices. */
static void finds_a_hidden_optimum(void **state)
{
    (void)state;
    double *cost = malloc(sizeof(double) * BIG * BIG);
    assert_non_null(cost);
    for (int n = 1; n <= BIG; n = n * 2 + 1) {
        double u[BIG], v[BIG], want = 0;
        int    hidden[BIG];
        for (int i = 0; i < n; i++) {
            u[i] = next_random() % 1000;
            v[i] = next_random() % 1000;
            want += u[i] + v[i];
            hidden[i] = i;
        }
        for (int i = n - 1; i > 0; i--) {
            int j = (int)(next_random() % (uint32_t)(i + 1)), t = hidden[i];
            hidden[i] = hidden[j];
            hidden[j] = t;
        }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                cost[i * n + j] = u[i] + v[j] + (hidden[i] == j ? 0 : next_random() % 50);
        struct score got = solve(cost, n, n, INFINITY);
        assert_int_equal(got.pairs, n);
        assert_true(got.total == want);
    }
    free(cost);
}

/* The classical worst case for augmenting path methods: cost[i][j] = (i+1)(j+1). */
static void solves_the_product_matrix(void **state)
{
    (void)state;
    enum { N = 200 };
    double *cost = malloc(sizeof(double) * N * N), want = 0;
    assert_non_null(cost);
    for (int i = 0; i < N; i++) {
        want += (double)(i + 1) * (N - i);
        for (int j = 0; j < N; j++)
            cost[i * N + j] = (double)(i + 1) * (j + 1);
    }
    struct score got = solve(cost, N, N, INFINITY);
    assert_int_equal(got.pairs, N);
    assert_true(got.total == want);
    free(cost);
}

static void keeps_its_capacity_when_memory_ends(void **state)
{
    (void)state;
    struct sac_assign as = {0};
    assert_true(sac_assign_reserve(&as, 2, 2));
    sac_alloc_fail_at(1);
    assert_false(sac_assign_reserve(&as, 100, 100));
    sac_alloc_fail_at(0);
    const double cost[] = {1, 0, 0, 1};
    int          col_of[2], row_of[2];
    sac_assign_solve(&as, cost, 2, 2, INFINITY, col_of, row_of);
    assert_int_equal(col_of[0], 1);
    assert_int_equal(col_of[1], 0);
    sac_assign_finish(&as);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force_with_ties_and_forbidden_pairs),
        cmocka_unit_test(equals_brute_force_with_smooth_costs),
        cmocka_unit_test(finds_a_hidden_optimum),
        cmocka_unit_test(solves_the_product_matrix),
        cmocka_unit_test(keeps_its_capacity_when_memory_ends),
    };
    return cmocka_run_group_tests_name("track/assign", tests, NULL, NULL);
}
