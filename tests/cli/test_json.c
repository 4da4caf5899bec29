/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/cli/json.h"
#include "tests/test.h"

static void quotes(const char *text, const char *expected)
{
    char       *written = NULL;
    size_t      size = 0;
    struct json json = {.out = open_memstream(&written, &size)};
    json_text(&json, NULL, text);
    fclose(json.out);
    assert_string_equal(written, expected);
    free(written);
}

static void escapes_what_json_forbids(void **state)
{
    (void)state;
    quotes("plain", "\"plain\"");
    quotes("a\"b\\c", "\"a\\\"b\\\\c\"");
    quotes("\n\x1b[2J\x7f", "\"\\u000a\\u001b[2J\\u007f\"");
    quotes(NULL, "null");
}

static void keeps_utf8_and_replaces_the_rest(void **state)
{
    (void)state;
    quotes("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
           "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
    quotes("\xff\x80x", "\"\\ufffd\\ufffdx\"");
    quotes("\xc3", "\"\\ufffd\"");                                  /* cut short */
    quotes("\xc0\xaf", "\"\\ufffd\\ufffd\"");                       /* too long a form of '/' */
    quotes("\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\"");            /* and a longer one */
    quotes("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");            /* a surrogate */
    quotes("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* past U+10FFFF */
}

static void nests_and_separates(void **state)
{
    (void)state;
    char       *written = NULL;
    size_t      size = 0;
    struct json json = {.out = open_memstream(&written, &size)};
    json_open(&json, NULL, '{');
    json_open(&json, "list", '[');
    json_int(&json, NULL, -1);
    json_real(&json, NULL, 0.5);
    json_real(&json, NULL, (double)NAN);
    json_close(&json, ']');
    json_open(&json, "empty", '{');
    json_close(&json, '}');
    json_bool(&json, "yes", true);
    json_close(&json, '}');
    fclose(json.out);
    assert_string_equal(written, "{\"list\": [-1, 0.5, null], \"empty\": {}, \"yes\": true}");
    free(written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_what_json_forbids),
        cmocka_unit_test(keeps_utf8_and_replaces_the_rest),
        cmocka_unit_test(nests_and_separates),
    };
    return cmocka_run_group_tests_name("cli/json", tests, NULL, NULL);
}
