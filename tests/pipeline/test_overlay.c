/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "pipeline/overlay.h"
#include "tests/test.h"

static struct sac_track at(int64_t id, float x, float y)
{
    return (struct sac_track){.id = id, .x0 = x, .y0 = y, .x1 = x + 20, .y1 = y + 40};
}

static size_t count_kind(const struct sac_overlay *o, enum sac_shape_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < o->shape_count; i++)
        n += o->shapes[i].kind == kind;
    return n;
}

static const struct sac_shape *find_text(const struct sac_overlay *o, const char *text)
{
    for (size_t i = 0; i < o->shape_count; i++)
        if (o->shapes[i].kind == SAC_SHAPE_TEXT && !strcmp(o->shapes[i].text, text))
            return &o->shapes[i];
    return NULL;
}

static const char *name_of(void *user, int class_id)
{
    return class_id == 0 ? user : NULL;
}

static void draws_box_and_label_of_each_track(void **state)
{
    (void)state;
    struct sac_overlay o = {.labels = SAC_LABEL_ID};
    struct sac_track   tracks[2] = {at(7, 100, 100), at(1234567, 10, 0)};
    assert_true(sac_overlay_build(&o, tracks, 2, 0, 640, 480));
    assert_int_equal(count_kind(&o, SAC_SHAPE_BOX), 2);
    assert_int_equal(count_kind(&o, SAC_SHAPE_LINE), 0);
    const struct sac_shape *text = find_text(&o, "7");
    assert_non_null(text);
    assert_true(text->rect.y0 < 100); /* on top of the box */
    text = find_text(&o, "1234567");
    assert_non_null(text);
    assert_true(text->rect.y0 >= 0); /* no room above: inside */
    o.labels = SAC_LABEL_ID | SAC_LABEL_CLASS;
    o.class_name = name_of;
    o.user = (void *)(uintptr_t) "person"; /* only read */
    tracks[1].class_id = 5;
    assert_true(sac_overlay_build(&o, tracks, 2, 0, 640, 480));
    assert_non_null(find_text(&o, "7 person"));
    assert_non_null(find_text(&o, "1234567")); /* its class has no name */
    sac_overlay_finish(&o);
}

static void labels_hold_what_is_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *list, *label;
        unsigned    bits;
    } cases[] = {
        {"id", "7", SAC_LABEL_ID},
        {"class", "person", SAC_LABEL_CLASS},
        {"score", "0.98", SAC_LABEL_SCORE},
        {"score,id", "7 0.98", SAC_LABEL_ID | SAC_LABEL_SCORE},
        {"id,class,score", "7 person 0.98", SAC_LABEL_ID | SAC_LABEL_CLASS | SAC_LABEL_SCORE},
        {"none", NULL, 0},
    };
    struct sac_track track = at(7, 100, 100);
    track.score = 0.975f;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_overlay o = {.class_name = name_of, .user = (void *)(uintptr_t) "person"};
        assert_int_equal(sac_labels_parse(cases[i].list, &o.labels), SAC_OK);
        assert_int_equal(o.labels, cases[i].bits);
        assert_true(sac_overlay_build(&o, &track, 1, 0, 640, 480));
        assert_int_equal(count_kind(&o, SAC_SHAPE_TEXT), cases[i].label != NULL);
        assert_int_equal(count_kind(&o, SAC_SHAPE_FILL), cases[i].label != NULL);
        if (cases[i].label)
            assert_non_null(find_text(&o, cases[i].label));
        sac_overlay_finish(&o);
    }
    unsigned bits = 77;
    assert_int_equal(sac_labels_parse("auto", &bits), SAC_OK);
    assert_int_equal(bits, SAC_LABEL_AUTO);
    static const char *const wrong[] = {"",          "ids",     "id,",     ",id",
                                        "id,,class", "none,id", "id,auto", "id, class"};
    for (size_t i = 0; i < SAC_COUNT(wrong); i++)
        assert_int_equal(sac_labels_parse(wrong[i], &bits), SAC_ERR_ARG);
    assert_int_equal(bits, SAC_LABEL_AUTO);
}

/* A class name comes from a model's file: of any length, and not always text. */
static void a_long_class_name_is_cut(void **state)
{
    (void)state;
    char name[500];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    struct sac_overlay o = {.labels = SAC_LABEL_ID | SAC_LABEL_CLASS | SAC_LABEL_SCORE,
                            .class_name = name_of,
                            .user = name};
    struct sac_track   track = at(INT64_MAX, 100, 100);
    assert_true(sac_overlay_build(&o, &track, 1, 0, 640, 480));
    for (size_t i = 0; i < o.shape_count; i++)
        if (o.shapes[i].kind == SAC_SHAPE_TEXT)
            assert_in_range(strlen(o.shapes[i].text), 40, SAC_LABEL_BYTES - 1);
    sac_overlay_finish(&o);
}

/* Lines and text follow the picture's size, and stay legible where it is small. */
static void lines_and_text_fit_the_picture(void **state)
{
    (void)state;
    static const struct {
        int width, height, line, text;
    } cases[] = {{320, 240, 2, 14},   {768, 576, 2, 14},   {1280, 720, 2, 16}, {1920, 1080, 3, 24},
                 {1080, 1920, 3, 24}, {3840, 2160, 6, 48}, {64, 48, 2, 14}};
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_overlay o = {.labels = SAC_LABEL_ID};
        struct sac_track   track = at(1234567, (float)cases[i].width - 20, 100);
        assert_true(sac_overlay_build(&o, &track, 1, 0, cases[i].width, cases[i].height));
        assert_int_equal(o.shapes[0].thickness, cases[i].line);
        const struct sac_shape *text = find_text(&o, "1234567");
        assert_int_equal(text->thickness, cases[i].text);
        int right = (int)text->rect.x0 + sac_text_width(text->text, text->thickness);
        assert_true(right <= cases[i].width || text->rect.x0 < 4); /* whole, where there is room for
                                                                      it */
        sac_overlay_finish(&o);
    }
}

/* Text and what it stands on come after every box and trail. */
static void labels_lie_on_top(void **state)
{
    (void)state;
    struct sac_overlay o = {.trail_us = 1000000, .labels = SAC_LABEL_ID};
    struct sac_track   tracks[2] = {at(1, 100, 100), at(2, 105, 130)};
    size_t             first_label = 0, last_other = 0;
    assert_true(sac_overlay_build(&o, tracks, 2, 0, 640, 480));
    assert_true(sac_overlay_build(&o, tracks, 2, 40000, 640, 480));
    for (size_t i = o.shape_count; i-- > 0;) {
        bool of_label = o.shapes[i].kind == SAC_SHAPE_TEXT || o.shapes[i].kind == SAC_SHAPE_FILL;
        if (of_label)
            first_label = i;
        else
            last_other = SAC_MAX(last_other, i);
    }
    assert_true(last_other > 0 && last_other < first_label);
    sac_overlay_finish(&o);
}

static void the_colour_of_an_id_is_steady(void **state)
{
    (void)state;
    struct sac_overlay o = {.labels = SAC_LABEL_ID};
    struct sac_track   track = at(3, 0, 50);
    struct sac_colour  first;
    for (int frame = 0; frame < 5; frame++) {
        track.x0 += 5, track.x1 += 5;
        assert_true(sac_overlay_build(&o, &track, 1, frame * 40000, 640, 480));
        if (frame == 0)
            first = o.shapes[0].colour;
        assert_memory_equal(&o.shapes[0].colour, &first, sizeof first);
    }
    sac_overlay_finish(&o);
}

static void trails_last_their_time(void **state)
{
    (void)state;
    struct sac_overlay o = {.trail_us = 1000000, .labels = SAC_LABEL_ID};
    struct sac_track   track = at(1, 0, 50);
    for (int frame = 0; frame < 50; frame++) { /* 2 s at 25 frames/s */
        track.x0 += 4, track.x1 += 4;
        assert_true(sac_overlay_build(&o, &track, 1, frame * 40000, 640, 480));
    }
    assert_int_equal(count_kind(&o, SAC_SHAPE_LINE), 25);
    float left = 1e9f, right = 0;
    for (size_t i = 0; i < o.shape_count; i++)
        if (o.shapes[i].kind == SAC_SHAPE_LINE) {
            left = SAC_MIN(left, o.shapes[i].rect.x0);
            right = SAC_MAX(right, o.shapes[i].rect.x1);
        }
    assert_true(right - left == 100.0f); /* 4 pixels a frame, 25 frames */
    assert_true(right == (track.x0 + track.x1) / 2);
    /* Gone: the trail fades out and is forgotten. */
    assert_true(sac_overlay_build(&o, NULL, 0, 50 * 40000 + 500000, 640, 480));
    assert_in_range(count_kind(&o, SAC_SHAPE_LINE), 5, 20);
    assert_true(sac_overlay_build(&o, NULL, 0, 5000000, 640, 480));
    assert_int_equal(o.shape_count, 0);
    assert_int_equal(o.trail_count, 0);
    sac_overlay_finish(&o);
}

/* A camera that runs for long: 1000 frames/s, ids that come and go. */
static void memory_stays_bounded(void **state)
{
    (void)state;
    struct sac_overlay o = {.trail_us = 1000000, .labels = SAC_LABEL_ID};
    for (int64_t frame = 0; frame < 30000; frame++) {
        struct sac_track tracks[3];
        for (int i = 0; i < 3; i++) /* a new identity each 100 ms, in three places */
            tracks[i] = at(frame / 100 * 3 + i + 1, (float)(frame % 100), (float)(100 * i));
        assert_true(sac_overlay_build(&o, tracks, 3, frame * 1000, 640, 480));
    }
    assert_in_range(o.trail_made, 30, 36);
    assert_in_range(count_kind(&o, SAC_SHAPE_LINE), 30, 36 * 48);
    for (size_t i = 0; i + 1 < o.shape_count; i++)
        assert_true(o.shapes[i].alpha >= 0 && o.shapes[i].alpha <= 1);
    sac_overlay_finish(&o);
}

static void says_when_memory_ran_out(void **state)
{
    (void)state;
    for (long n = 1; n <= 4; n++) {
        struct sac_overlay o = {.trail_us = 1000000, .labels = SAC_LABEL_ID};
        struct sac_track   track = at(1, 0, 50);
        sac_alloc_fail_at(n);
        bool built = sac_overlay_build(&o, &track, 1, 0, 640, 480);
        sac_alloc_fail_at(0);
        assert_false(built);
        assert_true(sac_overlay_build(&o, &track, 1, 40000, 640, 480));
        sac_overlay_finish(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_box_and_label_of_each_track),
        cmocka_unit_test(labels_hold_what_is_asked_for),
        cmocka_unit_test(a_long_class_name_is_cut),
        cmocka_unit_test(lines_and_text_fit_the_picture),
        cmocka_unit_test(labels_lie_on_top),
        cmocka_unit_test(the_colour_of_an_id_is_steady),
        cmocka_unit_test(trails_last_their_time),
        cmocka_unit_test(memory_stays_bounded),
        cmocka_unit_test(says_when_memory_ran_out),
    };
    return cmocka_run_group_tests_name("pipeline/overlay", tests, NULL, NULL);
}
