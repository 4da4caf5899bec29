/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "observe/process.h"
#include "tests/test.h"

static void memory_and_time_grow_with_use(void **state)
{
    (void)state;
    enum { BYTES = 64 << 20 };
    struct sac_process_usage before, with, after;
    sac_process_usage(&before);
    assert_true(before.rss_bytes > 0);
    char *p = malloc(BYTES);
    assert_non_null(p);
    for (int i = 0; i < 10; i++)
        memset(p, i + 1, BYTES);
    volatile char keep = p[BYTES / 2];
    (void)keep;
    sac_process_usage(&with);
    free(p);
    sac_process_usage(&after);
    assert_true(with.rss_bytes >= before.rss_bytes + BYTES / 2);
    assert_true(with.rss_peak_bytes >= with.rss_bytes / 2);
    assert_true(after.rss_peak_bytes >= with.rss_peak_bytes);
    assert_true(with.cpu_s > before.cpu_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_and_time_grow_with_use)};
    return cmocka_run_group_tests_name("observe/process", tests, NULL, NULL);
}
