/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths are one file. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "tests/test.h"

static char folder[64];

/* One of the latest few. */
static const char *in(const char *name)
{
    static char     paths[4][128];
    static unsigned next;
    char           *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void make_file(const char *name)
{
    FILE *file = fopen(in(name), "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

/* DIR/ with a file and a hard link to it, a symbolic one, one that leads nowhere, and a linked
 * folder. */
static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/saccade-test-files-XXXXXX");
    if (!mkdtemp(folder) || mkdir(in("sub"), 0777) != 0 || chdir(folder) != 0)
        return -1;
    make_file("there");
    return link(in("there"), in("hard")) || symlink("there", in("soft")) ||
           symlink("new", in("nowhere")) || symlink("sub/../nowhere", in("twice")) ||
           symlink("sub", in("linked"));
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const names[] = {"there", "hard", "soft", "nowhere", "twice", "linked"};
    for (size_t i = 0; i < SAC_COUNT(names); i++)
        unlink(in(names[i]));
    return rmdir(in("sub")) || chdir("/") || rmdir(folder);
}

static sac_result two_outputs(const char *a, const char *b)
{
    return sac_files_check(test_context(), (const char *const[]){a, b}, 2, NULL, 0);
}

static sac_result output_and_input(const char *out, const char *in)
{
    return sac_files_check(test_context(), &out, 1, &in, 1);
}

static void one_file_has_many_names(void **state)
{
    (void)state;
    static const char *const same[][2] = {
        {"there", "there"},
        {"there", "./there"},
        {"there", "sub/../there"},
        {"there", "hard"},
        {"soft", "there"},
        {"q", "q"},
        {"q", "./q"},
        {"q", ".//./q"},
        {"linked/q", "sub/q"},
        {"q", "sub/../q"},
        {"new", "nowhere"},
        {"twice", "new"},
        {"none/q", "none//./q"},
        {"-", "/dev/stdout"},
    };
    for (size_t i = 0; i < SAC_COUNT(same); i++) {
        assert_sac_error(two_outputs(same[i][0], same[i][1]), SAC_ERR_ARG);
        if (i + 1 < SAC_COUNT(same)) {
            assert_sac_error(output_and_input(same[i][0], same[i][1]), SAC_ERR_ARG);
            assert_sac_error(output_and_input(same[i][1], same[i][0]), SAC_ERR_ARG);
        }
    }
    assert_sac_error(two_outputs("q", in("q")), SAC_ERR_ARG);
    assert_sac_error(two_outputs(in("none/q"), "none/q"), SAC_ERR_ARG);
}

static void different_files_go_together(void **state)
{
    (void)state;
    static const char *const different[][2] = {
        {"there", "q"},
        {"q", "sub/q"},
        {"q", "none/q"},
        {"soft", "nowhere"},
        {"q", "Q"},
        {"q", "q "},
        {"/dev/null", "/dev/null"},
        {"there", NULL},
    };
    for (size_t i = 0; i < SAC_COUNT(different); i++) {
        assert_sac_ok(two_outputs(different[i][0], different[i][1]));
        assert_sac_ok(output_and_input(different[i][0], different[i][1]));
    }
    assert_sac_ok(
        sac_files_check(test_context(), NULL, 0, (const char *const[]){"there", "hard"}, 2));
}

/* As a shell gives them: what standard input reads must not be replaced under it. */
static void standard_input_is_the_file_behind_it(void **state)
{
    (void)state;
    const int former = dup(STDIN_FILENO);
    assert_non_null(freopen(in("there"), "r", stdin));
    assert_sac_error(output_and_input("hard", "-"), SAC_ERR_ARG);
    assert_sac_ok(output_and_input("q", "-"));
    assert_true(dup2(former, STDIN_FILENO) >= 0);
    close(former);
}

static void sentences_name_both(void **state)
{
    (void)state;
    char why[256];
    assert_sac_error(output_and_input("linked/../there", "hard"), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "output 'linked/../there' would overwrite an input: it is 'hard'");
    assert_sac_error(two_outputs("q", "./q"), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "two outputs go to one file, 'q' and './q'");
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    for (int n = 1; n < 8; n++) {
        sac_alloc_fail_at(n);
        sac_result res = two_outputs("q", "none/w");
        sac_alloc_fail_at(0);
        assert_true(res == SAC_OK || res == SAC_ERR_MEMORY);
        if (n == 1)
            assert_int_equal(res, SAC_ERR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file_has_many_names),
        cmocka_unit_test(different_files_go_together),
        cmocka_unit_test(standard_input_is_the_file_behind_it),
        cmocka_unit_test(sentences_name_both),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("base/files", tests, set_up, tear_down);
}
