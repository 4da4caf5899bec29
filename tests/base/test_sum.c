/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/sum.h"
#include "tests/test.h"

enum { SIZE = 1000 };
static uint8_t bytes[SIZE];

static void sum_of(const void *data, size_t size, size_t piece, uint64_t out[2])
{
    struct sac_sum sum;
    sac_sum_init(&sum);
    for (size_t at = 0; at < size; at += piece)
        sac_sum_add(&sum, (const uint8_t *)data + at, SAC_MIN(piece, size - at));
    sac_sum_end(&sum, out);
}

static void does_not_depend_on_pieces(void **state)
{
    (void)state;
    uint64_t whole[2], parts[2];
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 50);
    sum_of(bytes, SIZE, SIZE, whole);
    for (size_t piece = 1; piece < 100; piece++) {
        sum_of(bytes, SIZE, piece, parts);
        assert_memory_equal(whole, parts, sizeof whole);
    }
}

/* Each bit matters, and zeros at the end do too. */
static void tells_contents_apart(void **state)
{
    (void)state;
    uint64_t whole[2], other[2];
    sum_of(bytes, SIZE, SIZE, whole);
    assert_true(whole[0] != whole[1]);
    for (int bit = 0; bit < SIZE * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        sum_of(bytes, SIZE, SIZE, other);
        assert_true(whole[0] != other[0] && whole[1] != other[1]);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    const uint8_t zeros[64] = {0};
    for (size_t n = 0; n < sizeof zeros; n++) {
        sum_of(zeros, n, 64, whole);
        sum_of(zeros, n + 1, 64, other);
        assert_true(whole[0] != other[0] && whole[1] != other[1]);
    }
}

/* A large clip takes long, and Ctrl-C should not. */
static int has_enough(void *left)
{
    return (*(int *)left)-- == 0;
}

static void reads_files(void **state)
{
    (void)state;
    char     path[] = "/tmp/saccade-sum-XXXXXX";
    uint64_t whole[2], read[2], size;
    int      fd = mkstemp(path);
    assert_int_equal(write(fd, bytes, SIZE), SIZE);
    close(fd);
    sum_of(bytes, SIZE, SIZE, whole);
    assert_sac_ok(sac_sum_file(test_context(), path, NULL, NULL, read, &size));
    assert_memory_equal(whole, read, sizeof whole);
    assert_int_equal(size, SIZE);
    int left = 1;
    assert_int_equal(sac_sum_file(test_context(), path, has_enough, &left, read, &size),
                     SAC_ERR_CANCELLED);
    unlink(path);
    assert_int_equal(sac_sum_file(test_context(), path, NULL, NULL, read, &size), SAC_ERR_IO);
    assert_int_equal(sac_sum_file(test_context(), "/tmp", NULL, NULL, read, &size), SAC_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_not_depend_on_pieces),
        cmocka_unit_test(tells_contents_apart),
        cmocka_unit_test(reads_files),
    };
    return cmocka_run_group_tests_name("base/sum", tests, NULL, NULL);
}
