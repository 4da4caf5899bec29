/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <string.h>

#include "base/json_read.h"
#include "tests/test.h"

static struct sac_json_reader reader;

static void begin(const char *text)
{
    sac_json_read_finish(&reader);
    reader = (struct sac_json_reader){.ctx = test_context(), .name = "x.json"};
    sac_json_read_begin(&reader, text, strlen(text));
}

static void reads_what_is_asked_and_skips_the_rest(void **state)
{
    (void)state;
    int    members = 0;
    double sum = 0;
    begin("\xef\xbb\xbf {\"a\": [1, 2.5, -3e0 ], \"b\" : {\"c\":[{},[],\"]}\",null,true]}, "
          "\"d\":{}}\n");
    assert_true(sac_json_read_open(&reader, '{'));
    for (; sac_json_read_member(&reader); members++) {
        if (strcmp(reader.key, "a") != 0) {
            sac_json_read_skip(&reader);
            continue;
        }
        assert_true(sac_json_read_open(&reader, '['));
        while (sac_json_read_element(&reader))
            sum += sac_json_read_number(&reader);
    }
    assert_sac_ok(sac_json_read_end(&reader));
    assert_int_equal(members, 3);
    assert_true(sum == 0.5);
}

static void numbers_are_the_nearest_in_every_locale(void **state)
{
    static const struct {
        const char *text;
        double      value;
    } cases[] = {
        {"0", 0},
        {"-0.0", 0},
        {"0.1", 0.1},
        {"123.45600128173828", 123.45600128173828},
        {"9007199254740993", 9007199254740992.},
        {"1e22", 1e22},
        {"2.5E-3", 0.0025},
        {"123456789012345678901234567890", 123456789012345678901234567890.},
        {"0.00000000000000000000000000000000001", 1e-35},
        {"1e-400", 0},
        {"0e999999999999", 0},
    };
    (void)state;
    setlocale(LC_NUMERIC, "de_DE.UTF-8");
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        begin(cases[i].text);
        double value = sac_json_read_number(&reader);
        assert_sac_ok(sac_json_read_end(&reader));
        if (value != cases[i].value)
            fail_msg("%s became %.17g", cases[i].text, value);
    }
    setlocale(LC_NUMERIC, "C");
}

static void strings_are_unescaped(void **state)
{
    (void)state;
    size_t length = 0;
    begin("\"a\\\"\\\\\\/"
          "\\b\\f\\n\\r\\t\\u00e4\\u20AC\\ud83d\\ude00\\ud83dx\\udc00\\u0000b\xc3\xa4\"");
    const char       *text = sac_json_read_string(&reader, &length);
    static const char expected[] = "a\"\\/\b\f\n\r\t\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"
                                   "\xef\xbf\xbdx\xef\xbf\xbd\0b\xc3\xa4";
    assert_non_null(text);
    assert_int_equal(length, sizeof expected - 1);
    assert_memory_equal(text, expected, sizeof expected);
    assert_sac_ok(sac_json_read_end(&reader));
}

static void what_is_no_json_is_refused(void **state)
{
    static const char *const texts[] = {
        "",         "{",     "[1,]",       "[1 2]",     "{\"a\"}",
        "{\"a\":}", "{a:1}", "{\"a\":1,}", "[01]",      "[1.]",
        "[.5]",     "[+1]",  "[1e]",       "[--1]",     "tru",
        "[nan]",    "\"a",   "\"\\x\"",    "\"\\u12\"", "\"\\ud83d\\u12g4\"",
        "\"\t\"",   "[1]]",  "[1e999]",    "\x01",
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(texts); i++) {
        begin(texts[i]);
        sac_json_read_skip(&reader);
        if (sac_json_read_end(&reader) != SAC_ERR_FORMAT)
            fail_msg("'%s' was taken", texts[i]);
    }
    sac_json_read_begin(&reader, "[]\0", 3);
    sac_json_read_skip(&reader);
    assert_sac_error(sac_json_read_end(&reader), SAC_ERR_FORMAT);
}

static void a_fault_names_its_line_and_ends_every_loop(void **state)
{
    (void)state;
    char said[256];
    int  steps = 0;
    begin("[\n[1,\n2,]]");
    assert_true(sac_json_read_open(&reader, '['));
    for (; sac_json_read_element(&reader); steps++)
        if (sac_json_read_open(&reader, '['))
            for (; sac_json_read_element(&reader); steps++)
                sac_json_read_number(&reader);
    assert_int_equal(steps, 4);
    assert_sac_error(sac_json_read_end(&reader), SAC_ERR_FORMAT);
    sac_context_last_error(test_context(), said, sizeof said);
    assert_non_null(strstr(said, "x.json:3: ']' where a number should be"));
}

static void levels_are_limited(void **state)
{
    (void)state;
    char text[2 * SAC_JSON_DEPTH_MAX + 3];
    for (int depth = SAC_JSON_DEPTH_MAX; depth <= SAC_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        begin(text);
        sac_json_read_skip(&reader);
        assert_int_equal(sac_json_read_end(&reader),
                         depth > SAC_JSON_DEPTH_MAX ? SAC_ERR_LIMIT : SAC_OK);
    }
    sac_json_read_finish(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_is_asked_and_skips_the_rest),
        cmocka_unit_test(numbers_are_the_nearest_in_every_locale),
        cmocka_unit_test(strings_are_unescaped),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(a_fault_names_its_line_and_ends_every_loop),
        cmocka_unit_test(levels_are_limited),
    };
    return cmocka_run_group_tests_name("base/json_read", tests, NULL, NULL);
}
