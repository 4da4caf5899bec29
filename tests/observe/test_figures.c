/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of the statistics is made from the table of figures, so neither can have a figure that
 * the other lacks. After a change of the table:
 *
 *     SACCADE_WRITE=1 meson test -C build observe/figures
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/figures.h"
#include "tests/test.h"

#define SCHEMA SOURCE_ROOT "/docs/stats.schema.json"

/* ---- the schema ---- */

static const struct sac_figures *defs[32];
static int                       def_count;

static void need_def(const struct sac_figures *figures)
{
    for (int i = 0; i < def_count; i++)
        if (defs[i] == figures)
            return;
    defs[def_count++] = figures;
}

static void open_line(struct sac_json *json, int depth, const char *key)
{
    static char gap[40];
    snprintf(gap, sizeof gap, "\n%*s", 2 * depth, "");
    json->gap = gap;
    if (key)
        sac_json_open(json, key, '{');
}

static void add_ref(struct sac_json *json, const char *key, const char *def)
{
    char ref[64];
    snprintf(ref, sizeof ref, "#/$defs/%s", def);
    sac_json_open(json, key, '{');
    sac_json_string(json, "$ref", ref);
    sac_json_close(json, '}');
}

static void add_group(struct sac_json *json, const struct sac_figures *figures)
{
    need_def(figures);
    if (!figures->is_known) {
        char ref[64];
        snprintf(ref, sizeof ref, "#/$defs/%s", figures->name);
        sac_json_string(json, "$ref", ref);
        return;
    }
    sac_json_open(json, "oneOf", '[');
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "type", "null");
    sac_json_close(json, '}');
    add_ref(json, NULL, figures->name);
    sac_json_close(json, ']');
}

static void add_list(struct sac_json *json, const struct sac_figure *row)
{
    sac_json_string(json, "type", row->key ? "object" : "array");
    if (row->key) {
        sac_json_open(json, "required", '[');
        for (int i = 0; i < row->fixed; i++)
            sac_json_string(json, NULL, row->key(i));
        sac_json_close(json, ']');
    }
    sac_json_open(json, row->key ? "additionalProperties" : "items", '{');
    if (row->group)
        add_group(json, row->group);
    else
        sac_json_string(json, "type", "string");
    sac_json_close(json, '}');
}

static void add_points(struct sac_json *json)
{
    sac_json_string(json, "type", "array");
    add_ref(json, "items", "known");
}

static void add_type(struct sac_json *json, const struct sac_figure *row)
{
    static const char *const kinds[] = {
        [SAC_FIGURE_COUNT] = "#/$defs/count", [SAC_FIGURE_AMOUNT] = "#/$defs/amount",
        [SAC_FIGURE_SHARE] = "#/$defs/share", [SAC_FIGURE_KNOWN] = "#/$defs/known",
        [SAC_FIGURE_NAME] = "#/$defs/name",   [SAC_FIGURE_TEXT] = "#/$defs/text",
        [SAC_FIGURE_HELD] = "#/$defs/name"};
    if (row->type == SAC_FIGURE_LIST)
        add_list(json, row);
    else if (row->type == SAC_FIGURE_POINTS)
        add_points(json);
    else if (row->group)
        add_group(json, row->group);
    else
        sac_json_string(json, "$ref", kinds[row->type]);
}

static void add_properties(struct sac_json *json, const struct sac_figures *figures, int depth)
{
    for (size_t i = 0; i < figures->row_count; i++) {
        const struct sac_figure *row = &figures->rows[i];
        if (row->type == SAC_FIGURE_INLINE)
            add_properties(json, row->group, depth);
        if (!row->name)
            continue;
        open_line(json, depth, row->name);
        add_type(json, row);
        if (row->unit)
            sac_json_string(json, "unit", row->unit);
        if (row->meaning)
            sac_json_string(json, "description", row->meaning);
        sac_json_close(json, '}');
    }
}

static void add_required(struct sac_json *json, const struct sac_figures *figures)
{
    for (size_t i = 0; i < figures->row_count; i++) {
        const struct sac_figure *row = &figures->rows[i];
        if (row->type == SAC_FIGURE_INLINE)
            add_required(json, row->group);
        else if (row->name && !row->optional)
            sac_json_string(json, NULL, row->name);
    }
}

static void add_def(struct sac_json *json, const struct sac_figures *figures)
{
    open_line(json, 2, figures->name);
    open_line(json, 3, NULL);
    sac_json_string(json, "type", "object");
    open_line(json, 3, NULL);
    sac_json_open(json, "required", '[');
    add_required(json, figures);
    sac_json_close(json, ']');
    open_line(json, 3, "properties");
    add_properties(json, figures, 4);
    open_line(json, 3, NULL);
    sac_json_close(json, '}');
    open_line(json, 2, NULL);
    sac_json_close(json, '}');
}

static void add_simple_def(struct sac_json *json, const char *name, const char *type,
                           const char *other, int maximum)
{
    open_line(json, 2, name);
    if (other) {
        sac_json_open(json, "type", '[');
        sac_json_string(json, NULL, type);
        sac_json_string(json, NULL, other);
        sac_json_close(json, ']');
    } else
        sac_json_string(json, "type", type);
    if (strcmp(type, "string") != 0)
        sac_json_int(json, "minimum", 0);
    if (maximum)
        sac_json_int(json, "maximum", maximum);
    sac_json_close(json, '}');
}

static const char *const head[] = {"format", "version", "program"};

static void add_head(struct sac_json *json)
{
    open_line(json, 2, "format");
    sac_json_string(json, "const", "saccade-stats");
    sac_json_close(json, '}');
    open_line(json, 2, "version");
    sac_json_int(json, "const", 1);
    sac_json_close(json, '}');
    open_line(json, 2, "program");
    sac_json_string(json, "type", "string");
    sac_json_string(json, "description", "name and version of the writer");
    sac_json_close(json, '}');
}

static void add_streams(struct sac_json *json)
{
    const struct sac_figure list = {.type = SAC_FIGURE_LIST, .group = &sac_figures_stream};
    open_line(json, 2, "streams");
    add_list(json, &list);
    sac_json_string(json, "description", "the inputs of the run; empty where frames were pushed");
    sac_json_close(json, '}');
}

static void add_stacks(struct sac_json *json)
{
    const struct sac_figure list = {.type = SAC_FIGURE_LIST, .group = &sac_figures_stack};
    open_line(json, 2, "stacks");
    add_list(json, &list);
    sac_json_string(
        json, "description",
        "call stacks that were sampled, the most frequent first; empty where none were");
    sac_json_close(json, '}');
}

static void add_all_required(struct sac_json *json)
{
    open_line(json, 1, NULL);
    sac_json_open(json, "required", '[');
    for (size_t i = 0; i < SAC_COUNT(head); i++)
        sac_json_string(json, NULL, head[i]);
    add_required(json, &sac_figures_run);
    sac_json_string(json, NULL, "streams");
    add_required(json, &sac_figures_judgement);
    add_required(json, &sac_figures_held);
    add_required(json, &sac_figures_sampled);
    sac_json_string(json, NULL, "stacks");
    add_required(json, &sac_figures_watched);
    sac_json_close(json, ']');
}

static void add_schema(struct sac_json *json)
{
    static const char what[] =
        "Written by --stats and by the library's stats_out. What a run does not have is null. A "
        "reader should check 'format' and 'version' and pass over members that it does not know.";
    sac_json_open(json, NULL, '{');
    open_line(json, 1, NULL);
    sac_json_string(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    open_line(json, 1, NULL);
    sac_json_string(json, "title", "saccade statistics of a run");
    open_line(json, 1, NULL);
    sac_json_string(json, "description", what);
    open_line(json, 1, NULL);
    sac_json_string(json, "type", "object");
    add_all_required(json);
    open_line(json, 1, "properties");
    add_head(json);
    add_properties(json, &sac_figures_run, 2);
    add_streams(json);
    add_properties(json, &sac_figures_judgement, 2);
    add_properties(json, &sac_figures_held, 2);
    add_properties(json, &sac_figures_sampled, 2);
    add_stacks(json);
    add_properties(json, &sac_figures_watched, 2);
    open_line(json, 1, NULL);
    sac_json_close(json, '}');
    open_line(json, 1, "$defs");
    add_simple_def(json, "count", "integer", NULL, 0);
    add_simple_def(json, "amount", "number", NULL, 0);
    add_simple_def(json, "known", "number", "null", 0);
    add_simple_def(json, "share", "number", NULL, 1);
    add_simple_def(json, "name", "string", NULL, 0);
    add_simple_def(json, "text", "string", "null", 0);
    for (int i = 0; i < def_count; i++) /* grows on the way */
        add_def(json, defs[i]);
    open_line(json, 1, NULL);
    sac_json_close(json, '}');
    open_line(json, 0, NULL);
    sac_json_close(json, '}');
    sac_text_add(json->text, "\n");
}

static void the_schema_is_that_of_the_table(void **state)
{
    (void)state;
    struct sac_text text = {0};
    struct sac_json json = {.text = &text, .spaced = true};
    add_schema(&json);
    assert_false(text.failed);
    FILE *file = fopen(SCHEMA, getenv("SACCADE_WRITE") ? "w+" : "r");
    if (!file && strcmp(SOURCE_ROOT, ".") == 0)
        skip(); /* a bundle has no documents */
    assert_non_null(file);
    if (getenv("SACCADE_WRITE"))
        fwrite(text.data, 1, text.length, file);
    rewind(file);
    char  *kept = malloc(text.length + 1);
    size_t n = fread(kept, 1, text.length + 1, file);
    fclose(file);
    if (n != text.length || memcmp(kept, text.data, n) != 0)
        fail_msg("%s is not what the table says: run this test with SACCADE_WRITE=1", SCHEMA);
    free(kept);
    sac_text_finish(&text);
}

/* ---- sums and lines ---- */

static void shards_add_up(void **state)
{
    (void)state;
    static struct sac_pipeline_stats sum, one;
    sum.stage_count = one.stage_count = 2;
    sum.queue_count = one.queue_count = 1;
    sum.frames = 3, one.frames = 4;
    sum.objects = 1, one.objects = 2;
    sum.elapsed_s = 2, one.elapsed_s = 5;
    sum.rss_bytes = one.rss_bytes = 100;
    sum.stage[1].count = one.stage[1].count = 7; /* the shards use the same timers */
    sum.stage_bytes[1] = 10, one.stage_bytes[1] = 20;
    sum.queue[0].push_wait_ms = 0.5, one.queue[0].push_wait_ms = 0.25;
    sum.batch = (struct sac_batch_stats){.count = 1, .frames = 4, .max = 4};
    one.batch = (struct sac_batch_stats){.count = 3, .frames = 4, .max = 4};
    sum.pool.reuses = 1, one.pool.allocations = 3;
    sum.ledger.reason[SAC_COPY_CROP].bytes = 5, one.ledger.reason[SAC_COPY_CROP].bytes = 6;
    sum.ledger.crossed_bytes = 8, one.ledger.crossed_bytes = 8;
    sac_figures_add(&sac_figures_run, &sum, &one);
    sac_figures_set_rates(&sum);
    assert_int_equal(sum.frames, 7);
    assert_int_equal(sum.objects, 3);
    assert_int_equal(sum.rss_bytes, 100);
    assert_int_equal(sum.stage[1].count, 7);
    assert_int_equal(sum.stage_bytes[1], 30);
    assert_true(sum.queue[0].push_wait_ms == 0.75);
    assert_int_equal(sum.batch.max, 4);
    assert_int_equal(sum.ledger.reason[SAC_COPY_CROP].bytes, 11);
    assert_true(sum.fps == 3.5 && sum.crossed_per_s == 8 && sum.batch.mean == 2);
    assert_true(sum.pool_reuse == 0.25);
}

static void add_to(void *user, const char *line)
{
    char *text = user;
    strcat(strcat(text, line), "\n");
}

static void the_summary_shows_what_is_not_0(void **state)
{
    (void)state;
    static struct sac_pipeline_stats stats;
    char                             lines[500] = "";
    sac_stats_lines(&stats, 0, add_to, lines);
    sac_stats_lines(&stats, 1, add_to, lines);
    assert_string_equal(lines, "");
    stats.source.corrupt = 1;
    stats.source.pts_repaired = 2;
    stats.source.converted = 3;
    sac_stats_lines(&stats, 0, add_to, lines);
    assert_string_equal(lines, "input       1 damaged packet or frame, left out or concealed\n"
                               "input       2 timestamps repaired\n");
    *lines = '\0';
    sac_stats_lines(&stats, 1, add_to, lines);
    assert_string_equal(lines, "converted   3 frames from a pixel format that no stage accepts\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schema_is_that_of_the_table),
        cmocka_unit_test(shards_add_up),
        cmocka_unit_test(the_summary_shows_what_is_not_0),
    };
    return cmocka_run_group_tests_name("observe/figures", tests, NULL, NULL);
}
