/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "src/cli/summary.h"
#include "tests/test.h"

/* Valid until the next call. */
static const char *summary_of(const struct sac_pipeline_stats *stats)
{
    static char text[4096];
    FILE       *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    summary_print(stats, out);
    summary_print_details(stats, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static struct sac_pipeline_stats two_stages(void)
{
    struct sac_pipeline_stats stats = {.frames = 300, .elapsed_s = 10, .fps = 30, .stage_count = 2};
    stats.stage[0] =
        (struct sac_timer_summary){.name = "decode", .count = 300, .mean_ms = 1, .p99_ms = 2};
    stats.stage[1] =
        (struct sac_timer_summary){.name = "inference", .count = 40, .mean_ms = 3, .p99_ms = 4};
    return stats;
}

static void a_device_has_columns_of_its_own(void **state)
{
    (void)state;
    struct sac_pipeline_stats stats = two_stages();
    stats.stage_gpu[1] = (struct sac_timer_summary){
        .name = "inference", .count = 40, .mean_ms = 12.345, .p99_ms = 23.456};
    const char *text = summary_of(&stats);
    assert_non_null(strstr(text, "gpu mean ms  gpu p99 ms\n"));
    const char *decode = strstr(text, "  decode "), *inference = strstr(text, "  inference ");
    assert_true(decode && inference);
    assert_non_null(strstr(inference, " 12.345      23.456\n"));
    assert_ptr_equal(strchr(decode, '\n') + 1, inference); /* nothing of the device in its row */
}

static void without_one_there_are_none(void **state)
{
    (void)state;
    struct sac_pipeline_stats stats = two_stages();
    const char               *text = summary_of(&stats);
    assert_non_null(strstr(text, "memory MB\n"));
    assert_null(strstr(text, "gpu"));
}

static void says_which_classes_are_kept(void **state)
{
    (void)state;
    struct sac_pipeline_stats stats = two_stages();
    assert_null(strstr(summary_of(&stats), "classes"));
    stats.class_count = 80;
    stats.class_kept = 1;
    strcpy(stats.classes, "person (1 of 80)");
    assert_non_null(
        strstr(summary_of(&stats), "\nclasses     person (1 of 80); --classes all keeps all\n"));
    stats.class_kept = 80;
    strcpy(stats.classes, "all 80");
    assert_non_null(strstr(summary_of(&stats), "\nclasses     all 80\n"));
}

static void a_word_for_one(void **state)
{
    (void)state;
    struct sac_pipeline_stats stats = {.frames = 1, .tracks = 1, .elapsed_s = 1, .fps = 1};
    stats.source.pts_repaired = 1;
    const char *text = summary_of(&stats);
    assert_non_null(strstr(text, "1 object in 1 frame: 1.0 frames/s"));
    assert_non_null(strstr(text, "input       1 timestamp repaired\n"));
    stats.frames = stats.tracks = stats.source.pts_repaired = 0;
    assert_non_null(strstr(summary_of(&stats), "0 objects in 0 frames: "));
    stats.frames = stats.tracks = stats.source.pts_repaired = 2;
    assert_non_null(strstr(summary_of(&stats), "2 objects in 2 frames: "));
    assert_non_null(strstr(summary_of(&stats), "input       2 timestamps repaired\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_has_columns_of_its_own),
        cmocka_unit_test(without_one_there_are_none),
        cmocka_unit_test(says_which_classes_are_kept),
        cmocka_unit_test(a_word_for_one),
    };
    return cmocka_run_group_tests_name("cli/summary", tests, NULL, NULL);
}
