/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "src/cli/names.h"
#include "tests/test.h"

static void inputs_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *input, *name, *folder;
    } cases[] = {
        {"/x/cam1/a.mp4", "a", "cam1"},
        {"/x/cam1/a.b.mp4", "a.b", "cam1"},
        {"/x/cam1/", "cam1", "x"},
        {"/a.mp4", "a", "input"},
        {"rtsp://10.0.0.1/door?x=1", "door", "10.0.0.1"},
        {"rtsp://user:word@10.0.0.1/door", "door", "10.0.0.1"},
        {"rtsp://10.0.0.1", "10.0.0.1", "input"},
        {"/x/img%05d.jpg", "img_05d", "x"},
        {"/x/*.jpg", "_", "x"},
        {"/dev/video0", "video0", "dev"},
        {"/x/.hidden", ".hidden", "x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct naming n;
        naming_init(&n, cases[i].input);
        if (strcmp(n.name, cases[i].name) != 0 || strcmp(n.folder, cases[i].folder) != 0)
            fail_msg("'%s': '%s' in '%s'", cases[i].input, n.name, n.folder);
    }
    struct naming n;
    naming_init(&n, "-");
    assert_string_equal(n.name, "stdin");
}

/* The names of up to four inputs, with spaces between. */
static const char *parted(const char *const *inputs, size_t count, bool by_ending)
{
    static struct naming all[4];
    static char          text[1024];
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        naming_init(&all[i], inputs[i]);
    naming_part(all, count, by_ending);
    for (size_t i = 0; i < count; i++) {
        strcat(text, i ? " " : "");
        strcat(text, all[i].unique);
    }
    return text;
}
#define PARTED(by_ending, ...)                 \
    parted((const char *const[]){__VA_ARGS__}, \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), by_ending)

static void names_that_clash_are_told_apart(void **state)
{
    (void)state;
    assert_string_equal(PARTED(false, "/x/1/a.mp4", "/x/2/b.mp4"), "a b");
    assert_string_equal(PARTED(false, "/x/1/a.mp4", "/x/2/a.mp4", "/b.mp4"), "1_a 2_a b");
    assert_string_equal(PARTED(false, "/x/1/a.mp4", "/y/1/a.mp4"), "x_a y_a");
    assert_string_equal(PARTED(false, "/x/1/a.mp4", "/x/2/a.mp4", "/y/1/a.mp4"), "x_1_a 2_a y_1_a");
    assert_string_equal(PARTED(false, "/x/a.mp4", "/x/a.mkv"), "a_mp4 a_mkv");
    assert_string_equal(PARTED(true, "/x/a.mp4", "/x/a.mkv"), "a a");
    assert_string_equal(PARTED(true, "/x/a.mp4", "/x/a.mp4"), "a_1 a_2");
    assert_string_equal(PARTED(false, "rtsp://one/live", "rtsp://two/live"), "one_live two_live");
    assert_string_equal(PARTED(false, "rtsp://u:p@one/live", "rtsp://u:q@two/live"),
                        "one_live two_live");
}

static void templates_are_filled(void **state)
{
    (void)state;
    struct naming n;
    char          path[64], unknown[64];
    naming_init(&n, "/x/cam/a.mp4");
    assert_false(template_is("out/a.mp4"));
    assert_false(template_is("out/{1}.mp4"));
    assert_true(template_is("{odd}"));
    assert_true(template_expand("{folder}/{name}-{index}-{stream}{{{name}}}{", &n, 4, path,
                                sizeof path, unknown));
    assert_string_equal(path, "cam/a-5-4{a}{");
    assert_string_equal(unknown, "");
    template_expand("{naem}", &n, 0, path, sizeof path, unknown);
    assert_string_equal(unknown, "{naem}");
    assert_false(template_expand("{name}{name}{name}", &n, 0, path, 3, unknown));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_have_names),
        cmocka_unit_test(names_that_clash_are_told_apart),
        cmocka_unit_test(templates_are_filled),
    };
    return cmocka_run_group_tests_name("cli/names", tests, NULL, NULL);
}
