/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/test.h"
#include "track/mot.h"

static sac_result parse(const char *text, struct sac_mot_file *out)
{
    return sac_mot_parse(test_context(), "x.txt", text, strlen(text), out);
}

/* The text is refused, and the sentence holds `why`. */
static void refuses(const char *text, const char *why)
{
    struct sac_mot_file file = {.frame_max = 77};
    char                said[512];
    assert_sac_error(parse(text, &file), SAC_ERR_FORMAT);
    assert_int_equal(file.frame_max, 77);
    sac_context_last_error(test_context(), said, sizeof said);
    if (!strstr(said, why))
        fail_msg("'%s' does not say '%s'", said, why);
}

static void reads_every_column(void **state)
{
    (void)state;
    struct sac_mot_file f;
    assert_sac_ok(parse("1,3,10.5,-20,30.25,4e1,0.75,2,0.5\n", &f));
    assert_int_equal(f.count, 1);
    const struct sac_mot_row *r = f.rows;
    assert_int_equal(r->frame, 1);
    assert_int_equal(r->id, 3);
    assert_true(r->x == 10.5 && r->y == -20 && r->w == 30.25 && r->h == 40);
    assert_true(r->conf == 0.75f && r->visibility == 0.5f);
    assert_int_equal(r->class_id, 2);
    sac_mot_finish(&f);
}

static void takes_no_class_from_places_in_the_world(void **state)
{
    (void)state;
    struct sac_mot_file f;
    assert_sac_ok(parse("1,3,10,20,30,40,1,4.4852,5.5016,0\n", &f));
    assert_int_equal(f.rows[0].class_id, -1);
    assert_true(f.rows[0].visibility == 1);
    sac_mot_finish(&f);
}

static void fills_missing_columns_and_accepts_odd_layouts(void **state)
{
    (void)state;
    struct sac_mot_file f;
    assert_sac_ok(parse("\xef\xbb\xbf"
                        "2, -1, 1, 2, 3, 4\r\n\r\n  \n1 7 1 2 3 4 0.5\n2,9.0,5,6,7,8,",
                        &f));
    assert_int_equal(f.count, 3);
    assert_int_equal(f.frame_max, 2);
    assert_int_equal(f.rows[0].id, 7);  /* sorted by frame, ... */
    assert_int_equal(f.rows[1].id, -1); /* ... and as in the file within one */
    assert_int_equal(f.rows[2].id, 9);
    assert_true(f.rows[1].conf == 1 && f.rows[1].visibility == 1);
    assert_int_equal(f.rows[1].class_id, -1);
    sac_mot_finish(&f);
    assert_sac_ok(parse("", &f));
    assert_int_equal(f.count, 0);
    sac_mot_finish(&f);
}

static void sorts_and_keeps_the_order_in_a_frame(void **state)
{
    (void)state;
    char   text[20000];
    size_t len = 0;
    for (int i = 0; i < 500; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%d,%d,0,0,1,1\n", 1 + i * 7919 % 23,
                                i);
    struct sac_mot_file f;
    assert_sac_ok(parse(text, &f));
    assert_int_equal(f.count, 500);
    for (size_t i = 1; i < f.count; i++) {
        assert_true(f.rows[i - 1].frame <= f.rows[i].frame);
        if (f.rows[i - 1].frame == f.rows[i].frame)
            assert_true(f.rows[i - 1].id < f.rows[i].id);
    }
    sac_mot_finish(&f);
}

static void names_the_line_of_a_fault(void **state)
{
    (void)state;
    refuses("1,1,0,0,1,1\nhello\n", "x.txt:2: field 1 (frame) is 'hello'");
    refuses("1,1,0,0,1\n1,2,0,0,1,1\n", "x.txt:1: the line ends before field 6 (height)");
    refuses("1,1,,0,1,1\n", "field 3 (x) is ''");
    refuses("1,1,5x,0,1,1\n", "field 3 (x) is '5x'");
    refuses("1,1,nan,0,1,1\n", "field 3 (x)");
    refuses("1,1,0,inf,1,1\n", "field 4 (y)");
    refuses("1,1,0,1e999,1,1\n", "field 4 (y)");
    refuses("0,1,0,0,1,1\n", "frame is 0");
    refuses("1.5,1,0,0,1,1\n", "frame is 1.5");
    refuses("99999999,1,0,0,1,1\n", "1 to 10000000");
    refuses("1,0.5,0,0,1,1\n", "id is 0.5");
    refuses("1,4e9,0,0,1,1\n", "id is 4e+09");
    refuses("1,1,0,0,1,1\n1,1,\n5,5,5", "x.txt:2: the line ends");
}

static void takes_a_zero_byte_as_a_fault(void **state)
{
    (void)state;
    static const char   text[] = "1,1,0,0,1,1\n1,\0002,0,0,1,1\n";
    struct sac_mot_file f;
    assert_sac_error(sac_mot_parse(test_context(), "x", text, sizeof text - 1, &f), SAC_ERR_FORMAT);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    for (int n = 1; n < 10; n++) {
        struct sac_mot_file f = {0};
        sac_alloc_fail_at(n);
        sac_result res = parse("2,1,0,0,1,1\n1,1,0,0,1,1\n", &f);
        sac_alloc_fail_at(0);
        assert_true(res == SAC_OK || res == SAC_ERR_MEMORY);
        assert_true((res == SAC_OK) == (f.count == 2));
        sac_mot_finish(&f);
    }
}

static void reads_files_and_says_what_is_wrong_with_them(void **state)
{
    (void)state;
    char path[] = "/tmp/saccade-mot-XXXXXX";
    int  fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *out = fdopen(fd, "w");
    for (int i = 1; i <= 3000; i++)
        fprintf(out, "%d,-1,1.25,2,3,4,0.5,-1,-1,-1\n", i);
    fclose(out);
    struct sac_mot_file f;
    assert_sac_ok(sac_mot_read(test_context(), path, &f));
    assert_int_equal(f.count, 3000);
    assert_int_equal(f.rows[2999].frame, 3000);
    sac_mot_finish(&f);
    unlink(path);
    assert_sac_error(sac_mot_read(test_context(), path, &f), SAC_ERR_IO);
    assert_sac_error(sac_mot_read(test_context(), "/tmp", &f), SAC_ERR_IO);
}

static void reads_seqinfo(void **state)
{
    (void)state;
    static const char text[] = "[Sequence]\r\nname=PETS09-S2L1\r\n; a comment\nframeRate = 7.5\n"
                               "seqLength=795\nimWidth=768\nimHeight=576\nimExt=.jpg\n\n";
    struct sac_mot_seqinfo info;
    assert_sac_ok(sac_mot_parse_seqinfo(test_context(), "s.ini", text, sizeof text - 1, &info));
    assert_string_equal(info.name, "PETS09-S2L1");
    assert_true(info.fps == 7.5);
    assert_int_equal(info.length, 795);
    assert_int_equal(info.width, 768);
    assert_int_equal(info.height, 576);
}

static void refuses_a_bad_seqinfo(void **state)
{
    (void)state;
    static const char *const bad[] = {"frameRate=fast\n", "frameRate=-1\n",  "frameRate=25 fps\n",
                                      "seqLength=0\n",    "imWidth=1e300\n", "frameRate=\n7\n",
                                      "frameRate\n"};
    for (size_t i = 0; i < SAC_COUNT(bad); i++) {
        struct sac_mot_seqinfo info = {.length = 5};
        char                   said[256];
        assert_sac_error(
            sac_mot_parse_seqinfo(test_context(), "s.ini", bad[i], strlen(bad[i]), &info),
            SAC_ERR_FORMAT);
        assert_int_equal(info.length, 5);
        sac_context_last_error(test_context(), said, sizeof said);
        assert_non_null(strstr(said, "s.ini:1: "));
    }
    struct sac_mot_seqinfo info;
    assert_sac_error(sac_mot_read_seqinfo(test_context(), "/nowhere/seqinfo.ini", &info),
                     SAC_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_column),
        cmocka_unit_test(takes_no_class_from_places_in_the_world),
        cmocka_unit_test(fills_missing_columns_and_accepts_odd_layouts),
        cmocka_unit_test(sorts_and_keeps_the_order_in_a_frame),
        cmocka_unit_test(names_the_line_of_a_fault),
        cmocka_unit_test(takes_a_zero_byte_as_a_fault),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(reads_files_and_says_what_is_wrong_with_them),
        cmocka_unit_test(reads_seqinfo),
        cmocka_unit_test(refuses_a_bad_seqinfo),
    };
    return cmocka_run_group_tests_name("track/mot", tests, NULL, NULL);
}
