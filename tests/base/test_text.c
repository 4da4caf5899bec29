/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tests/test.h"

static struct sac_text text;

static const char *taken(void)
{
    static char out[256];
    assert_false(text.failed);
    assert_in_range(text.length, 0, sizeof out - 1);
    if (text.length)
        memcpy(out, text.data, text.length);
    out[text.length] = '\0';
    sac_text_clear(&text);
    return out;
}

static void fixed(double value, int decimals, const char *expect)
{
    sac_text_fixed(&text, value, decimals);
    assert_string_equal(taken(), expect);
}

static void writes_fixed_point(void **state)
{
    (void)state;
    fixed(0, 2, "0.00");
    fixed(1.005, 0, "1");
    fixed(12.345678, 2, "12.35");
    fixed(-0.5, 1, "-0.5");
    fixed(-0.001, 2, "0.00"); /* no minus zero */
    fixed(0.999, 2, "1.00");
    fixed(0.05, 6, "0.050000");
    fixed(1e300, 2, "1000000000000.00");
    fixed(-INFINITY, 0, "-1000000000000");
    fixed((double)NAN, 1, "0.0");
    for (int i = -2000; i <= 2000; i++) {
        char expect[32];
        snprintf(expect, sizeof expect, "%.3f", i / 8.0);
        fixed(i / 8.0, 3, expect);
    }
}

static void writes_integers(void **state)
{
    (void)state;
    static const int64_t values[] = {0, 7, -7, 1234567890123, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < SAC_COUNT(values); i++) {
        char expect[32];
        snprintf(expect, sizeof expect, "%lld", (long long)values[i]);
        sac_text_int(&text, values[i]);
        assert_string_equal(taken(), expect);
    }
}

static void string(const char *in, const char *expect)
{
    sac_text_json_string(&text, in);
    assert_string_equal(taken(), expect);
}

static void escapes_json_strings(void **state)
{
    (void)state;
    string("", "\"\"");
    string("a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\"");
    string("tab\tnewline\n\x7f\x01", "\"tab\\u0009newline\\u000a\\u007f\\u0001\"");
    string("Stra\xc3\x9f"
           "e \xe2\x82\xac \xf0\x9f\x98\x80",
           "\"Stra\xc3\x9f"
           "e \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

static void replaces_what_is_no_utf8(void **state)
{
    (void)state;
    string("\xff", "\"\xef\xbf\xbd\"");
    string("a\x80"
           "b",
           "\"a\xef\xbf\xbd"
           "b\"");
    string("\xc3", "\"\xef\xbf\xbd\"");                                 /* cut short */
    string("\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* overlong */
    string("\xe0\x80\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* and longer */
    string("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* a surrogate */
    string("\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    string("\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void field(const char *in, const char *expect)
{
    sac_text_csv(&text, in);
    assert_string_equal(taken(), expect);
}

static void quotes_csv_fields(void **state)
{
    (void)state;
    field("", "");
    field("person", "person");
    field("traffic light", "traffic light");
    field("cat, small", "\"cat, small\"");
    field("19\" rack", "\"19\"\" rack\"");
    field("two\nlines", "\"two\nlines\"");
    field("\r", "\"\r\"");
    field("caf\xc3\xa9", "caf\xc3\xa9");
    field("caf\xe9,", "\"caf\xef\xbf\xbd,\"");
}

static void says_when_memory_ran_out(void **state)
{
    (void)state;
    struct sac_text small = {0};
    sac_alloc_fail_at(1);
    sac_text_add(&small, "text");
    sac_alloc_fail_at(0);
    assert_true(small.failed);
    sac_text_finish(&small);
    sac_text_finish(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_fixed_point),   cmocka_unit_test(writes_integers),
        cmocka_unit_test(escapes_json_strings), cmocka_unit_test(replaces_what_is_no_utf8),
        cmocka_unit_test(quotes_csv_fields),    cmocka_unit_test(says_when_memory_ran_out),
    };
    return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
