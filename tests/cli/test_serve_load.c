/* SPDX-License-Identifier: Apache-2.0 */
/* What serve-bench keeps of latencies: counts in steps of 1 %, of one size however long it runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/serve_load.h"

static struct serve_series series;

static void expect(double share, double ms)
{
    const double got = serve_percentile(&series, share);
    if (!(fabs(got - ms) <= 0.01 * ms))
        fail_msg("%g of all: %g ms, expected %g", share, got, ms);
}

static void percentiles_are_within_a_step(void **state)
{
    (void)state;
    series = (struct serve_series){.count = 0};
    assert_true(isnan(serve_percentile(&series, 0.5)));
    for (int i = 1; i <= 100000; i++) /* 0.01 to 1000 ms */
        serve_series_add(&series, i * 0.01);
    assert_int_equal(series.count, 100000);
    expect(0.01, 10);
    expect(0.5, 500);
    expect(0.95, 950);
    expect(0.99, 990);
    assert_true(serve_percentile(&series, 1) == 1000);
}

static void ends_of_the_scale_are_kept(void **state)
{
    (void)state;
    series = (struct serve_series){.count = 0};
    serve_series_add(&series, 0);
    serve_series_add(&series, 0.0000001);
    assert_true(serve_percentile(&series, 0.5) <= 0.0000001);
    serve_series_add(&series, 1e9); /* beyond the last step */
    serve_series_add(&series, 5);
    assert_true(serve_percentile(&series, 1) == 1e9);
    expect(0.75, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_within_a_step),
        cmocka_unit_test(ends_of_the_scale_are_kept),
    };
    return cmocka_run_group_tests_name("cli/serve_load", tests, NULL, NULL);
}
