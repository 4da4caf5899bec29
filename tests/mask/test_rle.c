/* SPDX-License-Identifier: Apache-2.0 */
/* The texts are pycocotools' own. */
#include <stdlib.h>
#include <string.h>

#include "mask/rle.h"
#include "tests/test.h"

enum { SIDE = 300 };

/* The text that is written for a mask, "" on top of a failure. */
static const char *text_of(const uint8_t *pixels, size_t pitch, int width, int height,
                           uint8_t inside_min)
{
    static char     text[4096];
    struct sac_rle  rle = {0};
    struct sac_text out = {0};
    struct sac_json json = {.text = &out};
    assert_sac_ok(sac_rle_encode(test_context(), pixels, pitch, width, height, inside_min, &rle));
    sac_rle_json(&rle, &json, NULL);
    assert_false(out.failed || out.length >= sizeof text);
    memcpy(text, out.data, out.length);
    text[out.length] = '\0';
    sac_text_finish(&out);
    sac_rle_finish(&rle);
    return text;
}

static void writes_cocos_text(void **state)
{
    (void)state;
    static uint8_t pixels[2000 * 1500];
    assert_string_equal(text_of(pixels, 3, 3, 2, 1), "{\"size\":[2,3],\"counts\":\"6\"}");
    memset(pixels, 200, 6);
    assert_string_equal(text_of(pixels, 3, 3, 2, 128), "{\"size\":[2,3],\"counts\":\"06\"}");
    assert_string_equal(text_of(pixels, 3, 3, 2, 201), "{\"size\":[2,3],\"counts\":\"6\"}");
    assert_string_equal(text_of(pixels, 1, 1, 1, 1), "{\"size\":[1,1],\"counts\":\"01\"}");

    memset(pixels, 0, sizeof pixels);
    for (int y = 1; y < 4; y++)
        memset(pixels + y * 7 + 2, 255, 4);
    pixels[2 * 7 + 3] = 0;
    assert_string_equal(text_of(pixels, 7, 7, 5, 128),
                        "{\"size\":[5,7],\"counts\":\";32NO012004\"}");

    memset(pixels, 0, sizeof pixels);
    pixels[3 * 1500 + 700] = 1;
    for (int y = 10; y < 1900; y++)
        pixels[y * 1500 + 701] = 1;
    assert_string_equal(text_of(pixels, 1500, 1500, 2000, 1),
                        "{\"size\":[2000,1500],\"counts\":\"SVgZ11fn1Qk1^gd`1\"}");
}

static void gives_back_what_was_encoded(void **state)
{
    (void)state;
    static uint8_t  pixels[SIDE * SIDE], back[SIDE * SIDE];
    struct sac_rle  rle = {0}, read = {0};
    struct sac_text out = {0};
    srand(7);
    for (int round = 0; round < 200; round++) {
        int      width = 1 + rand() % SIDE, height = 1 + rand() % (round % 2 ? SIDE : 9);
        int      share = rand() % 101;
        uint64_t area = 0;
        for (int i = 0; i < width * height; i++)
            area += pixels[i] = (uint8_t)(rand() % 100 < share);
        assert_sac_ok(
            sac_rle_encode(test_context(), pixels, (size_t)width, width, height, 1, &rle));
        assert_int_equal(rle.total, width * height);
        assert_int_equal(sac_rle_area(&rle), area);
        struct sac_json json = {.text = &out};
        sac_text_clear(&out);
        sac_rle_json(&rle, &json, NULL);

        assert_sac_ok(sac_rle_begin(test_context(), width, height, &read));
        assert_sac_ok(sac_rle_add_text(test_context(), &read, rle.text.data, rle.text.length));
        assert_sac_ok(sac_rle_check(test_context(), &read));
        assert_int_equal(read.count, rle.count);
        memset(back, 0, sizeof back);
        sac_rle_draw(&read, 1, back, (size_t)width);
        assert_memory_equal(back, pixels, (size_t)width * (size_t)height);
    }
    sac_text_finish(&out);
    sac_rle_finish(&rle);
    sac_rle_finish(&read);
}

/* The runs of a part are those of the whole with nothing around it. */
static void a_part_is_a_whole_with_nothing_around(void **state)
{
    (void)state;
    static uint8_t whole[SIDE * SIDE], part[SIDE * SIDE];
    struct sac_rle a = {0}, b = {0};
    srand(11);
    for (int round = 0; round < 300; round++) {
        const int           width = 1 + rand() % SIDE, height = 1 + rand() % SIDE;
        const int           share = rand() % 3 * 50;
        struct sac_rle_part p = {.pixels = part, .pitch_bytes = SIDE};
        p.x = round % 4 == 0 ? 0 : rand() % width;
        p.y = round % 5 == 0 ? 0 : rand() % height;
        p.width = round % 3 == 0 ? width - p.x : rand() % (width - p.x + 1);
        p.height = round % 7 == 0 ? height - p.y : rand() % (height - p.y + 1);
        memset(whole, 0, sizeof whole);
        for (int y = 0; y < p.height; y++)
            for (int x = 0; x < p.width; x++)
                part[y * SIDE + x] = whole[(p.y + y) * SIDE + p.x + x] =
                    (uint8_t)(rand() % 100 < share);
        assert_sac_ok(sac_rle_encode(test_context(), whole, SIDE, width, height, 1, &a));
        assert_sac_ok(sac_rle_encode_part(test_context(), &p, width, height, 1, &b));
        assert_int_equal(a.count, b.count);
        assert_int_equal(b.total, width * height);
        assert_memory_equal(a.runs, b.runs, a.count * sizeof *a.runs);
    }
    sac_rle_finish(&a);
    sac_rle_finish(&b);
}

static void leaves_other_pixels_and_padding_alone(void **state)
{
    (void)state;
    struct sac_rle rle = {0};
    uint8_t        pixels[3 * 5];
    memset(pixels, 9, sizeof pixels);
    assert_sac_ok(sac_rle_begin(test_context(), 4, 3, &rle));
    static const int runs[] = {2, 3, 0, 1, 6}; /* down the columns, past the first one's end */
    for (int i = 0; i < 5; i++)
        assert_sac_ok(sac_rle_add_run(test_context(), &rle, runs[i]));
    assert_sac_ok(sac_rle_check(test_context(), &rle));
    sac_rle_draw(&rle, 1, pixels, 5);
    static const uint8_t expected[] = {9, 1, 9, 9, 9, 9, 1, 9, 9, 9, 1, 1, 9, 9, 9};
    assert_memory_equal(pixels, expected, sizeof expected);
    sac_rle_finish(&rle);
}

static void refuses(const char *text, size_t length, sac_result code)
{
    struct sac_rle rle = {0};
    assert_sac_ok(sac_rle_begin(test_context(), 4, 3, &rle));
    sac_result res = sac_rle_add_text(test_context(), &rle, text, length);
    if (res == SAC_OK)
        res = sac_rle_check(test_context(), &rle);
    assert_sac_error(res, code);
    sac_rle_finish(&rle);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct sac_rle rle = {0};
    refuses("=", 1, SAC_ERR_FORMAT); /* 13 of 12 pixels */
    refuses("6", 1, SAC_ERR_FORMAT); /* 6 of 12 */
    refuses("", 0, SAC_ERR_FORMAT);
    refuses("X", 1, SAC_ERR_FORMAT);           /* more should follow */
    refuses("oooooooooo", 10, SAC_ERR_FORMAT); /* a number without an end */
    refuses("60 ", 3, SAC_ERR_FORMAT);         /* no such character */
    refuses("6\xff", 2, SAC_ERR_FORMAT);
    refuses("6O", 2, SAC_ERR_FORMAT); /* less than nothing */
    assert_sac_error(sac_rle_begin(test_context(), 0, 5, &rle), SAC_ERR_LIMIT);
    assert_sac_error(sac_rle_begin(test_context(), 5, 1e9, &rle), SAC_ERR_LIMIT);
    assert_sac_error(sac_rle_begin(test_context(), 5, 0.0 / 0.0, &rle), SAC_ERR_LIMIT);
    assert_sac_ok(sac_rle_begin(test_context(), 4, 3, &rle));
    assert_sac_error(sac_rle_add_run(test_context(), &rle, 1.5), SAC_ERR_FORMAT);
    assert_sac_error(sac_rle_add_run(test_context(), &rle, -1), SAC_ERR_FORMAT);
    assert_sac_error(sac_rle_add_run(test_context(), &rle, 1e300), SAC_ERR_FORMAT);
    sac_rle_finish(&rle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_cocos_text),
        cmocka_unit_test(gives_back_what_was_encoded),
        cmocka_unit_test(a_part_is_a_whole_with_nothing_around),
        cmocka_unit_test(leaves_other_pixels_and_padding_alone),
        cmocka_unit_test(refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests_name("mask/rle", tests, NULL, NULL);
}
