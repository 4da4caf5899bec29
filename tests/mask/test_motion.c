/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "mask/mask.h"
#include "tests/test.h"

enum { WIDTH = 203, HEIGHT = 141, COLUMNS = (WIDTH + 7) / 8, ROWS = (HEIGHT + 7) / 8 };

static uint8_t texture[HEIGHT + 100][WIDTH + 100], before[HEIGHT][WIDTH], now[HEIGHT][WIDTH];
static struct sac_motion_vector vectors[ROWS][COLUMNS];

/* Noise that is smooth enough to be followed from coarse to fine. */
static void make_texture(void)
{
    enum { HEIGHT_ALL = HEIGHT + 100, WIDTH_ALL = WIDTH + 100 };
    static uint8_t noise[HEIGHT_ALL / 8 + 2][WIDTH_ALL / 8 + 2];
    srand(3);
    for (size_t i = 0; i < sizeof noise; i++)
        (&noise[0][0])[i] = (uint8_t)(rand() % 256);
    for (int y = 0; y < HEIGHT_ALL; y++)
        for (int x = 0; x < WIDTH_ALL; x++) {
            int fx = x % 8, fy = y % 8;
            int top = noise[y / 8][x / 8] * (8 - fx) + noise[y / 8][x / 8 + 1] * fx;
            int low = noise[y / 8 + 1][x / 8] * (8 - fx) + noise[y / 8 + 1][x / 8 + 1] * fx;
            texture[y][x] = (uint8_t)((top * (8 - fy) + low * fy) / 64);
        }
}

static void take(uint8_t picture[HEIGHT][WIDTH], int x0, int y0)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            picture[y][x] = texture[y0 + y][x0 + x];
}

static void finds_how_a_picture_moved(void **state)
{
    static const int moves[][2] = {{0, 0}, {1, 0}, {-3, 2}, {11, -7}, {-20, 24}};
    (void)state;
    make_texture();
    take(before, 50, 50);
    for (size_t m = 0; m < SAC_COUNT(moves); m++) {
        int right = 0;
        take(now, 50 + moves[m][0], 50 + moves[m][1]);
        assert_sac_ok(sac_motion_find(test_context(), &before[0][0], &now[0][0], WIDTH, HEIGHT,
                                      &vectors[0][0]));
        for (int y = 4; y < ROWS - 4; y++)
            for (int x = 4; x < COLUMNS - 4; x++)
                right += vectors[y][x].found && vectors[y][x].x == moves[m][0] &&
                         vectors[y][x].y == moves[m][1];
        if (right < 0.95 * (ROWS - 8) * (COLUMNS - 8))
            fail_msg("%d blocks moved by %d, %d", right, moves[m][0], moves[m][1]);
    }
}

static void says_where_nothing_is_the_same(void **state)
{
    (void)state;
    make_texture();
    take(before, 0, 0);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            now[y][x] = x < 96 ? before[y][x] : (uint8_t)(rand() % 256);
    assert_sac_ok(
        sac_motion_find(test_context(), &before[0][0], &now[0][0], WIDTH, HEIGHT, &vectors[0][0]));
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS - 1; x++)
            assert_int_equal(vectors[y][x].found, x < 12);
}

static void any_size_goes(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {1, 40}, {65, 3}, {64, 64}, {129, 70}};
    for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
        assert_sac_ok(sac_motion_find(test_context(), &before[0][0], &before[0][0], sizes[i][0],
                                      sizes[i][1], &vectors[0][0]));
        assert_true(vectors[0][0].found && vectors[0][0].x == 0 && vectors[0][0].y == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_how_a_picture_moved),
        cmocka_unit_test(says_where_nothing_is_the_same),
        cmocka_unit_test(any_size_goes),
    };
    return cmocka_run_group_tests_name("mask/motion", tests, NULL, NULL);
}
