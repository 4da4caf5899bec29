/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that are filled in pieces: each number once, whatever their count and size. */
#include "engine/cuda/products/products.h"
#include "tests/engine/device.h"

enum { COUNT_MAX = 1000, MANY_BYTES = 1 << 20 };

struct filled {
    int        times[COUNT_MAX];
    atomic_int calls;
};

static void fill(void *arg, int64_t begin, int64_t end)
{
    struct filled *f = arg;
    assert_true(begin < end);
    atomic_fetch_add(&f->calls, 1);
    for (int64_t i = begin; i < end; i++)
        f->times[i]++;
}

static void each_number_is_filled_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 3, 8, 9, COUNT_MAX};
    for (size_t i = 0; i < 2 * SAC_COUNT(counts); i++) {
        const int64_t count = counts[i / 2];
        struct filled f = {.calls = 0};
        fill_in_pieces(device(), i % 2 ? MANY_BYTES : 64, count, fill, &f);
        for (int64_t k = 0; k < COUNT_MAX; k++)
            assert_int_equal(f.times[k], k < count);
        if (i % 2)
            assert_true(count < 8 ? f.calls == count : f.calls == 8);
        else
            assert_int_equal(f.calls, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_number_is_filled_once)};
    return cmocka_run_group_tests_name("engine/cuda/pieces", tests, NULL, close_device);
}
