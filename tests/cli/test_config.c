/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/config.h"
#include "tests/test.h"

static struct settings settings;
static struct fault    fault;

static int set_up(void **state)
{
    (void)state;
    settings_init(&settings);
    fault.sentence[0] = '\0';
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    settings_finish(&settings);
    return 0;
}

static int read_text(const char *text)
{
    return config_read_memory(&settings, text, strlen(text), "a.yaml", &fault);
}

static void sets_what_it_names(void **state)
{
    (void)state;
    assert_int_equal(read_text("threads: 3\n"
                               "tracker:\n  kind: ocsort\n  lost_max_s: 2.5\n"
                               "draw: {trails: off}\n"
                               "detector:\n  classes: person, car\n"
                               "eval:\n  gt: [a, b]\n  tracks: t.txt\n  gt_values: objects\n"),
                     STATUS_OK);
    assert_int_equal(settings.run.job.device_params.threads, 3);
    assert_int_equal(settings.run.job.tracker.kind, SAC_TRACKER_OCSORT);
    assert_true(settings.run.job.tracker.lost_max_s == 2.5);
    assert_false(settings.run.draw_trails);
    assert_string_equal(settings.run.job.detector_params.classes, "person, car");
    assert_int_equal(settings.eval_gt.count, 2);
    assert_string_equal(settings.eval_gt.items[1], "b");
    assert_int_equal(settings.eval_tracks.count, 1);
    assert_int_equal(settings.eval_mask.gt_values, SAC_MASK_VALUES_OBJECTS);
}

static void nothing_is_a_configuration_too(void **state)
{
    (void)state;
    assert_int_equal(read_text(""), STATUS_OK);
    assert_int_equal(read_text("# a comment alone\n"), STATUS_OK);
}

static void refuses(const char *text, const char *sentence)
{
    assert_int_equal(read_text(text), STATUS_USAGE);
    assert_string_equal(fault.sentence, sentence);
}

static void faults_name_file_and_line(void **state)
{
    (void)state;
    refuses("threads: 1\n\ntracker:\n  knid: sort\n",
            "a.yaml:4: unknown key 'tracker.knid'; did you mean 'tracker.kind'?");
    refuses("colour: red\n", "a.yaml:1: unknown key 'colour'; 'saccade config' prints all keys");
    refuses("threads: many\n", "a.yaml:1: threads: 'many' is not a whole number");
    refuses("encode:\n  crf: 77\n", "a.yaml:2: encode.crf: 77 is out of range; it takes 0 to 51");
    refuses("threads: [1]\n", "a.yaml:1: threads takes one value, not a list");
    refuses("threads: {a: 1}\n", "a.yaml:1: threads takes one value, not a mapping");
    refuses("tracker: sort\n", "a.yaml:1: tracker: expected 'key: value' lines");
    refuses("- a\n", "a.yaml:1: expected 'key: value' lines");
    refuses("threads: 1\nthreads: 2\n", "a.yaml:2: key 'threads' appears a second time");
    refuses("[a]: 1\n", "a.yaml:1: a key must be a word");
    refuses("threads: \"1\\0\"\n", "a.yaml:1: threads: the text contains a zero byte");
    refuses("eval:\n  gt: [a, [b]]\n", "a.yaml:2: eval.gt takes one value, not a list");
    refuses("threads: 1\n  bad: 2\n", "a.yaml:2: mapping values are not allowed in this context");
}

static void a_cycle_ends(void **state)
{
    (void)state;
    assert_int_equal(read_text("tracker: &x\n  kind: *x\n"), STATUS_USAGE);
    assert_int_equal(read_text("&x tracker: *x\n"), STATUS_USAGE);
}

static void the_template_sets_the_defaults(void **state)
{
    (void)state;
    char  *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    config_print(out);
    fclose(out);
    struct settings defaults;
    settings_init(&defaults);
    assert_int_equal(config_read_memory(&settings, text, size, "template", &fault), STATUS_OK);
    for (size_t i = 0; i < option_count; i++) {
        char read[64], expected[64];
        option_print(&settings, &options[i], read, sizeof read);
        option_print(&defaults, &options[i], expected, sizeof expected);
        assert_string_equal(read, expected);
    }
    settings_finish(&defaults);
    free(text);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(sets_what_it_names),
        CASE(nothing_is_a_configuration_too),
        CASE(faults_name_file_and_line),
        CASE(a_cycle_ends),
        CASE(the_template_sets_the_defaults),
    };
    return cmocka_run_group_tests_name("cli/config", tests, NULL, NULL);
}
