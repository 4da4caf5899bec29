/* SPDX-License-Identifier: Apache-2.0 */
/* Each output of a model has a file of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/array_files.h"
#include "tests/test.h"

static void expect(const char *const *names, const char *const *paths, size_t count)
{
    struct array_files files = {0};
    assert_true(array_files_plan(&files, "f", names, count));
    for (size_t i = 0; i < count; i++)
        assert_string_equal(files.path[i], paths[i]);
    array_files_finish(&files);
}

static void names_become_files(void **state)
{
    (void)state;
    expect((const char *const[]){"a", "b:0", "\xc3\xa4"},
           (const char *const[]){"f/a.npy", "f/b:0.npy", "f/\xc3\xa4.npy"}, 3);
    expect((const char *const[]){"a/b", "a_b", "a_b-2"},
           (const char *const[]){"f/a_b-3.npy", "f/a_b.npy", "f/a_b-2.npy"}, 3);
    expect((const char *const[]){"", "output", ".."},
           (const char *const[]){"f/output-2.npy", "f/output.npy", "f/_..npy"}, 3);
    expect((const char *const[]){"x\ny", "x/y"}, (const char *const[]){"f/x_y.npy", "f/x_y-2.npy"},
           2);
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char               a[402] = "", b[402];
    struct array_files files = {0};
    for (int i = 0; i < 200; i++)
        strcat(a, "\xc3\xa4");
    snprintf(b, sizeof b, "x%s", a);
    assert_true(array_files_plan(&files, "f", (const char *const[]){a, b, a}, 3));
    assert_int_equal(strlen(files.path[0]), 2 + 200 + 4);
    assert_int_equal(strlen(files.path[1]), 2 + 199 + 4);
    assert_int_equal(strlen(files.path[2]), 2 + 200 + 2 + 4);
    array_files_finish(&files);
}

/* A hard link stands for a file system that takes both for one name. */
static void one_file_of_two_names_gets_another(void **state)
{
    (void)state;
    char               folder[] = "/tmp/saccade-test-arrays-XXXXXX", first[64];
    struct array_files files = {0};
    assert_non_null(mkdtemp(folder));
    assert_true(array_files_plan(&files, folder, (const char *const[]){"a", "A"}, 2));
    assert_true(array_files_settle(&files, 0));
    FILE *file = fopen(files.path[0], "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(link(files.path[0], files.path[1]), 0);
    snprintf(first, sizeof first, "%s", files.path[1]);
    assert_true(array_files_settle(&files, 1));
    assert_string_equal(files.path[1] + strlen(folder), "/A-2.npy");
    unlink(first);
    unlink(files.path[0]);
    rmdir(folder);
    array_files_finish(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_files),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(one_file_of_two_names_gets_another),
    };
    return cmocka_run_group_tests_name("cli/array_files", tests, NULL, NULL);
}
