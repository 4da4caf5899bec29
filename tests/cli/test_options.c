/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/options.h"
#include "src/cli/verbs.h"
#include "tests/test.h"

static struct settings settings;
static struct fault    fault;

static int set_up(void **state)
{
    (void)state;
    unsetenv("SACCADE_LOG");
    unsetenv("DEBUG");
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

/* Parse a command line written as one text. */
static int parse(unsigned verb, const char *text)
{
    static char line[512];
    char       *argv[32], *rest = line;
    int         argc = 0;
    snprintf(line, sizeof line, "%s", text);
    for (char *word; (word = strtok_r(rest, " ", &rest));)
        argv[argc++] = word;
    return options_parse(&settings, verb, argc, argv, &fault);
}

static void reads_every_spelling(void **state)
{
    (void)state;
    assert_int_equal(parse(VERB_TRACK, "in.mp4 -o out.mp4 --crf=30 --no-trails -t4 --fps 12.5"), 0);
    assert_int_equal(settings.args.count, 1);
    assert_string_equal(settings.args.items[0], "in.mp4");
    assert_string_equal(settings.run.video_out, "out.mp4");
    assert_int_equal(settings.run.sink.crf, 30);
    assert_false(settings.run.draw_trails);
    assert_int_equal(settings.run.job.device_params.threads, 4);
    assert_true(settings.run.fps == 12.5);
}

static void reads_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double      seconds; /* -1: it is none */
    } cases[] = {
        {"90", 90},      {"0.25", 0.25}, {"1:30", 90},    {"00:01:30.5", 90.5}, {"2:00:00", 7200},
        {"90:00", 5400}, {"1:60", -1},   {"1:2:3:4", -1}, {"-3", -1},           {"1.5:00", -1},
        {"", -1},        {"1:", -1},     {"5s", -1},      {"1e3", -1},          {"0x10", -1},
        {"nan", -1},     {":30", -1},    {"1:0x5", -1},   {"999999999", -1},    {"inf", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = option_set(&settings, option_find("start", VERB_TRACK), cases[i].text,
                                "--start", &fault);
        if (status != (cases[i].seconds < 0 ? 2 : 0) ||
            (status == 0 && settings.run.source.start_us != llround(cases[i].seconds * 1e6)))
            fail_msg("'%s': %d, %g", cases[i].text, status,
                     (double)settings.run.source.start_us * 1e-6);
    }
}

static void takes_what_follows_two_dashes_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(parse(VERB_TRACK, "-- --odd-name.mp4"), 0);
    assert_string_equal(settings.args.items[0], "--odd-name.mp4");
    assert_int_equal(parse(VERB_TRACK, "-"), 0);
    assert_string_equal(settings.args.items[1], "-");
}

static void lists_take_all_up_to_the_next_option(void **state)
{
    (void)state;
    assert_int_equal(parse(VERB_INFER, "net.onnx --input a.npy b.npy --output out -i c.npy"), 0);
    assert_int_equal(settings.infer_inputs.count, 3);
    assert_string_equal(settings.infer_inputs.items[2], "c.npy");
    assert_string_equal(settings.infer_output, "out");
    assert_int_equal(settings.args.count, 1);
}

static void reads_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t    bytes;
    } cases[] = {{"0", 0},           {"1500000", 1500000}, {"512M", 512ull << 20},
                 {"2G", 2ull << 30}, {"1.5K", 1536},       {"3GiB", 3ull << 30}};
    const struct option *option = option_find("memory-limit", VERB_TRACK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(option_set(&settings, option, cases[i].text, "x", &fault), 0);
        assert_true(settings.run.job.device_params.memory_limit_bytes == cases[i].bytes);
    }
    static const char *const bad[] = {"", "M", "2Q", "2GB", "-1", "inf", "nan", "1e30"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(option_set(&settings, option, bad[i], "x", &fault), STATUS_USAGE);
}

static void auto_is_the_trackers_own(void **state)
{
    (void)state;
    assert_true(isnan(settings.run.job.tracker.lost_max_s));
    assert_int_equal(parse(VERB_TRACK, "--lost-max 2.5 --score-high auto"), 0);
    settings_fill_tracker(&settings, SAC_TRACKER_SORT);
    assert_true(settings.run.job.tracker.lost_max_s == 2.5);
    assert_true(settings.run.job.tracker.score_high ==
                (double)sac_tracker_params_default(SAC_TRACKER_SORT).score_high);
    /* "auto" is for options that have it as their default */
    assert_int_equal(parse(VERB_TRACK, "--score-min auto"), STATUS_USAGE);
}

static void runs_are_watched_unless_told_otherwise(void **state)
{
    (void)state;
    const struct sac_monitor_params defaults = sac_monitor_params_default();
    assert_int_equal(parse(VERB_TRACK, ""), STATUS_OK);
    assert_true(settings.watched && settings.monitor.published);
    assert_int_equal(settings.monitor.interval_ms, defaults.interval_ms);
    assert_int_equal(parse(VERB_SEGMENT, "--no-monitor --monitor-interval 250"), STATUS_OK);
    assert_false(settings.watched);
    assert_int_equal(settings.monitor.interval_ms, 250);
    assert_int_equal(parse(VERB_MONITOR, "--once --monitor-temperature 60 --json"), STATUS_OK);
    assert_true(settings.once && settings.json && settings.monitor.temperature_max == 60);
    assert_int_equal(parse(VERB_TRACK, "--once"), STATUS_USAGE);
}

static void refuses(unsigned verb, const char *line, const char *sentence)
{
    assert_int_equal(parse(verb, line), STATUS_USAGE);
    assert_string_equal(fault.sentence, sentence);
}

static void mistakes_name_the_thing_and_the_remedy(void **state)
{
    (void)state;
    refuses(VERB_TRACK, "--detektor x", "unknown option '--detektor'; did you mean '--detector'?");
    refuses(VERB_TRACK, "--brightness", "unknown option '--brightness'; --help lists them");
    refuses(VERB_TRACK, "--no-crf", "unknown option '--no-crf'; did you mean '--crf'?");
    refuses(VERB_TRACK, "--gt x", "unknown option '--gt'; --help lists them"); /* eval's */
    refuses(VERB_TRACK, "--weights x", "unknown option '--weights'; here it is '--detector MODEL'");
    refuses(VERB_SEGMENT, "--weights x", "unknown option '--weights'; --help lists them");
    refuses(VERB_SEGMENT, "--out x", "unknown option '--out'; here it is '--output FILE'");
    refuses(VERB_TRACK, "-x", "unknown option '-x'; --help lists them");
    refuses(VERB_TRACK, "--crf", "--crf needs a value: --crf N");
    refuses(VERB_TRACK, "--crf 99", "--crf: 99 is out of range; it takes 0 to 51");
    refuses(VERB_TRACK, "--crf 2.5", "--crf: '2.5' is not a whole number");
    refuses(VERB_TRACK, "--threads 99999999999999999999",
            "--threads: 99999999999999999999 is out of range; it takes 0 to 1024");
    refuses(VERB_TRACK, "--trails=maybe", "--trails: 'maybe' is neither true nor false");
    refuses(VERB_TRACK, "--tracker sortt",
            "--tracker: 'sortt' is unknown; did you mean 'sort'? It takes sort, bytetrack, ocsort, "
            "botsort");
    refuses(VERB_EVAL, "--mask-values object",
            "--mask-values: 'object' is unknown; did you mean 'objects'? It takes auto, alpha, "
            "objects, classes");
    refuses(VERB_INFER, "--input --output x", "--input needs a value: --input [NAME=]X.npy");
}

static void the_environment_yields_to_the_command_line(void **state)
{
    (void)state;
    setenv("DEBUG", "1", 1);
    assert_int_equal(parse(VERB_TRACK, ""), 0);
    assert_string_equal(settings.log_level, "debug");
    setenv("SACCADE_LOG", "warn", 1);
    assert_int_equal(parse(VERB_TRACK, ""), 0);
    assert_string_equal(settings.log_level, "warn");
    assert_int_equal(parse(VERB_TRACK, "--log-level trace"), 0);
    assert_string_equal(settings.log_level, "trace");
    setenv("SACCADE_LOG", "loud", 1);
    refuses(VERB_TRACK, "",
            "SACCADE_LOG: 'loud' is unknown; it takes silent, error, warn, info, debug, trace");
}

static void the_table_is_consistent(void **state)
{
    (void)state;
    for (size_t i = 0; i < option_count; i++) {
        const struct option *a = &options[i];
        assert_true(a->verbs != 0);
        assert_true((a->type == OPTION_FLAG) == (a->value == NULL));
        for (size_t j = 0; j < i; j++) {
            const struct option *b = &options[j];
            assert_false((a->verbs & b->verbs) && strcmp(a->name, b->name) == 0);
            assert_false((a->verbs & b->verbs) && a->letter && a->letter == b->letter);
            assert_false(a->key && b->key && strcmp(a->key, b->key) == 0);
            /* no two rows share a field */
            assert_true(a->offset != b->offset);
        }
    }
    /* names of trackers and of kinds of mattes are the library's */
    for (int i = 0; i < SAC_SEGMENT_AS_COUNT; i++)
        assert_string_equal(sac_segment_as_name((enum sac_segment_as)i), option_segment_kinds[i]);
    assert_string_equal(option_segment_kinds[SAC_SEGMENT_AS_COUNT], "none");
    assert_null(option_segment_kinds[SAC_SEGMENT_AS_COUNT + 1]);
    for (size_t i = 0; option_trackers[i]; i++) {
        enum sac_tracker_kind kind;
        assert_int_equal(sac_tracker_kind_parse(option_trackers[i], &kind), SAC_OK);
        assert_string_equal(sac_tracker_kind_name(kind), option_trackers[i]);
    }
}

/* A default that its own option would refuse is a mistake in one of the two. */
static void every_default_is_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < option_count; i++) {
        char value[64];
        option_print(&settings, &options[i], value, sizeof value);
        if (options[i].type == OPTION_LIST || strcmp(value, "\"\"") == 0)
            continue;
        if (option_set(&settings, &options[i], value, options[i].name, &fault) != STATUS_OK)
            fail_msg("%s", fault.sentence);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(reads_every_spelling),
        CASE(reads_times),
        CASE(takes_what_follows_two_dashes_as_it_is),
        CASE(lists_take_all_up_to_the_next_option),
        CASE(reads_sizes),
        CASE(auto_is_the_trackers_own),
        CASE(runs_are_watched_unless_told_otherwise),
        CASE(mistakes_name_the_thing_and_the_remedy),
        CASE(the_environment_yields_to_the_command_line),
        CASE(the_table_is_consistent),
        CASE(every_default_is_accepted),
    };
    return cmocka_run_group_tests_name("cli/options", tests, NULL, NULL);
}
