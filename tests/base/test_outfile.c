/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/outfile.h"
#include "tests/test.h"

static char path[64], part[80];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/saccade-test-outfile-%d", (int)getpid());
    snprintf(part, sizeof part, "%s.part", path);
    return 0;
}

static void appears_when_it_is_whole(void **state)
{
    (void)state;
    struct sac_outfile out;
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    fputs("text", out.file);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(part, F_OK), 0);
    assert_sac_ok(sac_outfile_check(&out));
    assert_sac_ok(sac_outfile_finish(&out));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(access(part, F_OK), -1);
}

static void leaves_the_old_file_when_abandoned(void **state)
{
    (void)state;
    char               text[16] = "";
    struct sac_outfile out;
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    fputs("newer", out.file);
    sac_outfile_abandon(&out);
    sac_outfile_abandon(&out);
    assert_int_equal(access(part, F_OK), -1);
    FILE *file = fopen(path, "r");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "text");
    unlink(path);
}

static void finds_a_full_disk(void **state)
{
    (void)state;
    struct sac_outfile out;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_sac_ok(sac_outfile_open(test_context(), "/dev/full", &out));
    assert_null(out.part);
    fputs("text", out.file);
    assert_sac_error(sac_outfile_finish(&out), SAC_ERR_IO);
    assert_sac_ok(sac_outfile_open(test_context(), "/dev/full", &out));
    for (int i = 0; i < 100000; i++)
        fputs("more than the buffer holds", out.file);
    assert_sac_error(sac_outfile_check(&out), SAC_ERR_IO);
    sac_outfile_abandon(&out);
    assert_int_equal(access("/dev/full", F_OK), 0);
}

/* A file size limit stands for a disk that fills up. */
static void keeps_whole_lines_when_asked(void **state)
{
    (void)state;
    struct sac_outfile out;
    struct rlimit      before, small;
    char               why[256];
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int keep = 0; keep <= 1; keep++) {
        assert_sac_ok(sac_outfile_open(test_context(), path, &out));
        out.keep = keep;
        for (int i = 0; i < 10000; i++)
            fputs("a line\n", out.file);
        assert_sac_error(sac_outfile_finish(&out), SAC_ERR_IO);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(access(part, F_OK), keep ? 0 : -1);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_int_equal(strstr(why, part) != NULL, keep);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    unlink(part);
}

static void writes_to_pipes_and_links_in_place(void **state)
{
    (void)state;
    struct sac_outfile out;
    char               text[16] = "";
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    fputs("text", out.file);
    assert_sac_ok(sac_outfile_finish(&out));
    assert_int_equal(readlink(path, text, sizeof text - 1), strlen("/dev/null"));
    unlink(path);
}

static void names_what_it_cannot_write(void **state)
{
    (void)state;
    struct sac_outfile out;
    char               why[256];
    assert_sac_error(sac_outfile_open(test_context(), "/nowhere/file", &out), SAC_ERR_IO);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "cannot write '/nowhere/file': No such file or directory");
    assert_sac_error(sac_outfile_open(test_context(), "/tmp", &out), SAC_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appears_when_it_is_whole),
        cmocka_unit_test(leaves_the_old_file_when_abandoned),
        cmocka_unit_test(finds_a_full_disk),
        cmocka_unit_test(keeps_whole_lines_when_asked),
        cmocka_unit_test(writes_to_pipes_and_links_in_place),
        cmocka_unit_test(names_what_it_cannot_write),
    };
    return cmocka_run_group_tests_name("base/outfile", tests, set_up, NULL);
}
