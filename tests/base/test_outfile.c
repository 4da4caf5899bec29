/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/outfile.h"
#include "tests/temporary.h"
#include "tests/test.h"

static char path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/saccade-test-outfile-%d", (int)getpid());
    return 0;
}

static void appears_when_it_is_whole(void **state)
{
    (void)state;
    struct sac_outfile out;
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    fputs("text", out.file);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(temporaries_of(path, NULL, 0), 1);
    assert_sac_ok(sac_outfile_check(&out));
    assert_sac_ok(sac_outfile_finish(&out));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(temporaries_of(path, NULL, 0), 0);
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
    assert_int_equal(temporaries_of(path, NULL, 0), 0);
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

static void write_text(const char *file, const char *text)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
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
                expect_text(out.name.file, "line 0\n");
        }
        assert_int_equal(res == SAC_OK, !keep); /* the buffer holds it all until it is flushed */
        if (!keep)
            assert_sac_error(sac_outfile_finish(&out), SAC_ERR_IO);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_non_null(strstr(why, "File too large"));
        assert_int_equal(strstr(why, "it holds what was written before") != NULL, keep);
        sac_outfile_abandon(&out);
        assert_int_equal(temporaries_of(path, NULL, 0), 0);
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
    assert_int_equal(temporaries_of(path, NULL, 0), 0);
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
    /* One that leads nowhere is written through, at the end too. */
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    fputs("again", out.file);
    assert_int_equal(access(target, F_OK), -1);
    assert_sac_ok(sac_outfile_finish(&out));
    expect_text(target, "again");
    unlink(target);
    unlink(path);
}

/* ---- one name, several writers ---- */

static void what_has_a_likely_name_is_kept(void **state)
{
    (void)state;
    struct sac_outfile out;
    char               part[96], precious[96];
    snprintf(part, sizeof part, "%s.part", path);
    snprintf(precious, sizeof precious, "%s.precious", path);
    write_text(precious, "precious");
    assert_int_equal(symlink(precious, part), 0);
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    fputs("text", out.file);
    assert_sac_ok(sac_outfile_finish(&out));
    expect_text(precious, "precious");
    expect_text(path, "text");
    struct stat st;
    assert_true(lstat(part, &st) == 0 && S_ISLNK(st.st_mode));
    unlink(part);
    unlink(precious);
    unlink(path);
}

static void the_last_of_two_writers_has_the_name(void **state)
{
    (void)state;
    struct sac_outfile a, b;
    assert_sac_ok(sac_outfile_open(test_context(), path, &a));
    assert_sac_ok(sac_outfile_open(test_context(), path, &b));
    assert_string_not_equal(a.name.file, b.name.file);
    assert_int_equal(temporaries_of(path, NULL, 0), 2);
    for (int i = 0; i < 3; i++) {
        fputs("a", a.file);
        fputs("b", b.file);
    }
    assert_sac_ok(sac_outfile_finish(&b));
    expect_text(path, "bbb");
    assert_sac_ok(sac_outfile_finish(&a));
    expect_text(path, "aaa");
    assert_int_equal(temporaries_of(path, NULL, 0), 0);
    unlink(path);
}

static mode_t mode_of(const char *file)
{
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    return st.st_mode & 07777;
}

static void a_replaced_file_keeps_its_mode(void **state)
{
    (void)state;
    static const mode_t modes[] = {0, 0640, 0600, 0222, 0666};
    const mode_t        former = umask(027);
    for (size_t i = 0; i < SAC_COUNT(modes); i++) {
        struct sac_outfile out;
        unlink(path);
        if (modes[i]) {
            write_text(path, "former");
            assert_int_equal(chmod(path, modes[i]), 0);
        }
        assert_sac_ok(sac_outfile_open(test_context(), path, &out));
        assert_int_equal(mode_of(out.name.file) & 07 & ~modes[i], 0); /* nobody reads along who
                                                                         could not before */
        assert_sac_ok(sac_outfile_finish(&out));
        assert_int_equal(mode_of(path), modes[i] ? modes[i] : 0640);
    }
    umask(former);
    unlink(path);
}

static void what_may_not_be_written_is_not_replaced(void **state)
{
    (void)state;
    struct sac_outfile out;
    const uid_t        me = geteuid();
    write_text(path, "kept");
    assert_int_equal(chmod(path, 0444), 0);
    if (me == 0) /* who may write everything */
        assert_int_equal(seteuid(65534), 0);
    assert_sac_error(sac_outfile_open(test_context(), path, &out), SAC_ERR_IO);
    assert_int_equal(seteuid(me), 0);
    expect_text(path, "kept");
    unlink(path);
}

static void a_long_name_is_no_hindrance(void **state)
{
    (void)state;
    static const char *const letters[] = {"x", "\xc3\xa4"}; /* of one byte and of two */
    for (size_t i = 0; i < SAC_COUNT(letters); i++) {
        struct sac_outfile out;
        char               longest[300] = "/tmp/";
        while (strlen(longest) + strlen(letters[i]) <= 5 + 255)
            strcat(longest, letters[i]);
        assert_sac_ok(sac_outfile_open(test_context(), longest, &out));
        if (i == 1) /* cut between two letters */
            assert_int_equal((unsigned char)strchr(out.name.file, '.')[-1], 0xa4);
        assert_sac_ok(sac_outfile_finish(&out));
        assert_int_equal(unlink(longest), 0);
    }
}

/* The name is a folder's meanwhile: what was written in hours is not thrown away. */
static void what_gets_no_name_is_kept(void **state)
{
    (void)state;
    struct sac_outfile out;
    char               why[512], part[512];
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    fputs("text", out.file);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_sac_error(sac_outfile_finish(&out), SAC_ERR_IO);
    assert_int_equal(temporaries_of(path, part, sizeof part), 1);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, part));
    expect_text(part, "text");
    unlink(part);
    rmdir(path);
}

/* ---- a second Ctrl-C ---- */

static int left;

static void count_left(const char *file)
{
    left += strncmp(file, path, strlen(path)) == 0;
}

static void a_program_that_ends_at_once_leaves_nothing(void **state)
{
    (void)state;
    enum { FILES = 300, DONE = 170, GONE = 3 };
    static struct sac_outfile out[FILES];
    char                      names[FILES][96];
    for (int i = 0; i < FILES; i++) {
        snprintf(names[i], sizeof names[i], "%s-%d", path, i);
        assert_sac_ok(sac_outfile_open(test_context(), names[i], &out[i]));
    }
    assert_sac_ok(sac_outfile_finish(&out[DONE]));
    assert_int_equal(unlink(out[GONE].name.file), 0); /* by somebody else: nothing is left of it */
    left = 0;
    assert_int_equal(sac_unfinished_outputs_remove(count_left), FILES - 2);
    assert_int_equal(left, 0);
    assert_int_equal(sac_unfinished_outputs_remove(NULL), 0);
    for (int i = 0; i < FILES; i++) {
        assert_int_equal(temporaries_of(names[i], NULL, 0), 0);
        assert_int_equal(access(names[i], F_OK), i == DONE ? 0 : -1);
    }
    /* A name that the handler took is not freed: in a program that does end, nobody would. */
    for (int i = 0; i < FILES; i++) {
        char *taken = out[i].name.file;
        if (i != DONE) {
            sac_outfile_abandon(&out[i]);
            sac_free(taken);
        }
    }
    unlink(names[DONE]);
}

static void what_could_not_be_removed_is_told(void **state)
{
    (void)state;
    struct sac_outfile out;
    assert_sac_ok(sac_outfile_open(test_context(), path, &out));
    char *taken = out.name.file;
    assert_int_equal(unlink(taken), 0);
    assert_int_equal(mkdir(taken, 0777), 0); /* unlink fails, as in a folder without the right to */
    left = 0;
    assert_int_equal(sac_unfinished_outputs_remove(count_left), 0);
    assert_int_equal(left, 1);
    assert_int_equal(rmdir(taken), 0);
    sac_outfile_abandon(&out);
    sac_free(taken);
}

/* As `saccade --jsonl /dev/stdout >>all.txt`: what the file held stays. */
static void what_is_open_already_is_added_to(void **state)
{
    (void)state;
    struct sac_outfile out;
    char               descriptor[64];
    write_text(path, "former ");
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    snprintf(descriptor, sizeof descriptor, "/dev/fd/%d", fd);
    assert_sac_ok(sac_outfile_open(test_context(), descriptor, &out));
    assert_false(out.name.renames);
    fputs("newer", out.file);
    assert_sac_ok(sac_outfile_finish(&out));
    expect_text(path, "former newer");
    close(fd);
    unlink(path);
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
        cmocka_unit_test(what_has_a_likely_name_is_kept),
        cmocka_unit_test(the_last_of_two_writers_has_the_name),
        cmocka_unit_test(a_replaced_file_keeps_its_mode),
        cmocka_unit_test(what_may_not_be_written_is_not_replaced),
        cmocka_unit_test(a_long_name_is_no_hindrance),
        cmocka_unit_test(what_gets_no_name_is_kept),
        cmocka_unit_test(a_program_that_ends_at_once_leaves_nothing),
        cmocka_unit_test(what_could_not_be_removed_is_told),
        cmocka_unit_test(what_is_open_already_is_added_to),
        cmocka_unit_test(writes_to_pipes_and_links_in_place),
        cmocka_unit_test(names_what_it_cannot_write),
    };
    return cmocka_run_group_tests_name("base/outfile", tests, set_up, NULL);
}
