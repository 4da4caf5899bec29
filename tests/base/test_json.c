/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/test.h"

static void fill(struct sac_json *json)
{
    sac_json_open(json, NULL, '{');
    sac_json_open(json, "list", '[');
    sac_json_int(json, NULL, -1);
    sac_json_real(json, NULL, 0.5);
    sac_json_real(json, NULL, (double)NAN);
    sac_json_fixed(json, NULL, 0.5, 2);
    sac_json_close(json, ']');
    sac_json_open(json, "empty", '{');
    sac_json_close(json, '}');
    sac_json_bool(json, "yes", true);
    sac_json_string(json, "text", "a\"b");
    sac_json_string(json, "no", NULL);
    sac_json_close(json, '}');
}

static void writes(struct sac_json json, void (*fn)(struct sac_json *), const char *expected)
{
    struct sac_text text = {0};
    json.text = &text;
    fn(&json);
    sac_text_add(&text, "\n");
    assert_int_equal(text.length, strlen(expected));
    assert_memory_equal(text.data, expected, text.length);
    sac_text_finish(&text);
}

static void nests_and_separates(void **state)
{
    (void)state;
    writes((struct sac_json){0}, fill,
           "{\"list\":[-1,0.5,null,0.50],\"empty\":{},\"yes\":true,\"text\":\"a\\\"b\","
           "\"no\":null}\n");
    writes((struct sac_json){.spaced = true}, fill,
           "{\"list\": [-1, 0.5, null, 0.50], \"empty\": {}, \"yes\": true, \"text\": \"a\\\"b\", "
           "\"no\": null}\n");
}

static void fill_lines(struct sac_json *json)
{
    sac_json_open(json, NULL, '[');
    for (int i = 1; i <= 2; i++) {
        json->gap = "\n  ";
        sac_json_int(json, NULL, i);
    }
    json->gap = "\n";
    sac_json_close(json, ']');
}

static void breaks_lines_where_told(void **state)
{
    (void)state;
    writes((struct sac_json){0}, fill_lines, "[\n  1,\n  2\n]\n");
}

static void fill_large(struct sac_json *json)
{
    sac_json_open(json, NULL, '[');
    sac_json_int(json, NULL, INT64_MIN);
    sac_json_real(json, NULL, 1234567.25);
    sac_json_real(json, NULL, 1e-7);
    sac_json_real(json, NULL, -0.5);
    sac_json_close(json, ']');
}

static void numbers_are_the_same_in_every_locale(void **state)
{
    (void)state;
    /* Where they are installed: with a point, a comma, and U+066B. */
    static const char *const locales[] = {"C", "de_DE.UTF-8", "ps_AF.UTF-8"};
    for (size_t i = 0; i < SAC_COUNT(locales); i++) {
        setlocale(LC_ALL, locales[i]);
        writes((struct sac_json){0}, fill_large, "[-9223372036854775808,1234567.25,1e-07,-0.5]\n");
    }
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nests_and_separates),
        cmocka_unit_test(breaks_lines_where_told),
        cmocka_unit_test(numbers_are_the_same_in_every_locale),
    };
    return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}
