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
    assert_false(out.name.renames);
    fputs("text", out.file);
    assert_sac_error(sac_outfile_finish(&out), SAC_ERR_IO);
    assert_sac_ok(sac_outfile_open(test_context(), "/dev/full", &out));
    for (int i = 0; i < 100000; i++)
        fputs("more than the buffer holds", out.file);
    assert_sac_error(sac_outfile_check(&out), SAC_ERR_IO);
    sac_outfile_abandon(&out);
    assert_int_equal(access("/dev/full", F_OK), 0);
}

static void expect_text(const char *file, const char *text)
{
    char  have[64] = "";
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    have[fread(have, 1, sizeof have - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(have, text);
}

/* A file size limit stands for a disk that fills up. */
static void what_was_whole_gets_the_name_when_asked(void **state)
{
    (void)state;
    struct sac_outfile out;
    struct rlimit      before, small;
    char               why[256];
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 16, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int keep = 0; keep <= 1; keep++) {
        sac_result res = SAC_OK;
        assert_sac_ok(sac_outfile_open(test_context(), path, &out));
        out.keep = keep;
        for (int i = 0; i < 4 && res == SAC_OK; i++) {
            fprintf(out.file, "line %d\n", i);
            res = sac_outfile_check(&out);
            if (keep && i == 0) /* who reads along does not wait for a buffer to fill */
                expect_text(part, "line 0\n");
        }
        assert_int_equal(res == SAC_OK, !keep); /* the buffer holds it all until it is flushed */
        if (!keep)
            assert_sac_error(sac_outfile_finish(&out), SAC_ERR_IO);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_non_null(strstr(why, "File too large"));
        assert_int_equal(strstr(why, "it holds what was written before") != NULL, keep);
        sac_outfile_abandon(&out);
        assert_int_equal(access(part, F_OK), -1);
        assert_int_equal(access(path, F_OK), keep ? 0 : -1);
    }
    expect_text(path, "line 0\nline 1\n");
    /* Where not even the first part fitted, the former file is worth more. */
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    out.keep = true;
    fputs("a line that is longer than the limit\n", out.file);
    assert_sac_error(sac_outfile_check(&out), SAC_ERR_IO);
    assert_sac_error(sac_outfile_check(&out), SAC_ERR_IO);
    assert_sac_error(sac_outfile_finish(&out), SAC_ERR_IO);
    assert_int_equal(access(part, F_OK), -1);
    expect_text(path, "line 0\nline 1\n");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    unlink(path);
}

static void a_link_stays_one(void **state)
{
    (void)state;
    char               target[96], text[128] = "";
    struct sac_outfile out;
    snprintf(target, sizeof target, "%s.target", path);
    FILE *file = fopen(target, "w");
    fputs("former", file);
    fclose(file);
    assert_int_equal(symlink(target, path), 0);
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    fputs("newer", out.file);
    expect_text(path, "former");
    assert_sac_ok(sac_outfile_finish(&out));
    assert_int_equal(readlink(path, text, sizeof text - 1), strlen(target));
    expect_text(target, "newer");
    unlink(target);
    /* One that leads nowhere is written through. */
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    fputs("again", out.file);
    assert_sac_ok(sac_outfile_finish(&out));
    expect_text(target, "again");
    unlink(target);
    unlink(path);
}

static void a_program_that_ends_at_once_leaves_nothing(void **state)
{
    (void)state;
    struct sac_outfile out[3];
    char               names[3][96];
    for (int i = 0; i < 3; i++) {
        snprintf(names[i], sizeof names[i], "%s-%d", path, i);
        assert_sac_ok(sac_outfile_open(test_context(), names[i], &out[i]));
    }
    assert_sac_ok(sac_outfile_finish(&out[1]));
    assert_int_equal(sac_unfinished_outputs_remove(), 2);
    assert_int_equal(sac_unfinished_outputs_remove(), 0);
    for (int i = 0; i < 3; i++) {
        char file[320];
        snprintf(file, sizeof file, "%s.part", names[i]);
        assert_int_equal(access(file, F_OK), -1);
        assert_int_equal(access(names[i], F_OK), i == 1 ? 0 : -1);
    }
    /* A name that the handler took is not freed: in a program that does end, nobody would. */
    for (int i = 0; i < 3; i += 2) {
        char *taken = out[i].name.file;
        sac_outfile_abandon(&out[i]);
        sac_free(taken);
    }
    unlink(names[1]);
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
        cmocka_unit_test(what_was_whole_gets_the_name_when_asked),
        cmocka_unit_test(a_link_stays_one),
        cmocka_unit_test(a_program_that_ends_at_once_leaves_nothing),
        cmocka_unit_test(writes_to_pipes_and_links_in_place),
        cmocka_unit_test(names_what_it_cannot_write),
    };
    return cmocka_run_group_tests_name("base/outfile", tests, set_up, NULL);
}
