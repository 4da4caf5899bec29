/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/nearest.h"
#include "tests/test.h"

static void counts_slips(void **state)
{
    (void)state;
    assert_int_equal(sac_word_distance("track", "track"), 0);
    assert_int_equal(sac_word_distance("trak", "track"), 1);
    assert_int_equal(sac_word_distance("tarck", "track"), 1); /* a swap is one slip */
    assert_int_equal(sac_word_distance("", "abc"), 3);
    assert_int_equal(sac_word_distance("kitten", "sitting"), 3);
    char longest[80];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(sac_word_distance(longest, "a"), 64);
}

static const char *suggest(const char *typed)
{
    static const char *const words[] = {"track", "trails", "threads", "detector", "detections"};
    struct sac_nearest       best = {0};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        sac_nearest_offer(&best, typed, words[i]);
    return best.word;
}

static void suggests_only_what_is_near(void **state)
{
    (void)state;
    assert_string_equal(suggest("trak"), "track");
    assert_string_equal(suggest("detektor"), "detector");
    assert_string_equal(suggest("thread"), "threads");
    assert_string_equal(suggest("det"), "detector"); /* cut short */
    assert_null(suggest("colour"));
    assert_null(suggest("t"));
    assert_null(suggest(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_slips),
        cmocka_unit_test(suggests_only_what_is_near),
    };
    return cmocka_run_group_tests_name("base/nearest", tests, NULL, NULL);
}
