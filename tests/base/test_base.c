/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/base.h"
#include "tests/test.h"

static void keeps_the_sentence(void **state)
{
    (void)state;
    sac_context *ctx = NULL;
    assert_int_equal(sac_context_create(NULL, &ctx), SAC_OK);
    char buf[64];
    assert_int_equal(sac_context_last_error(ctx, buf, sizeof buf), 0);
    assert_int_equal(SAC_FAIL(ctx, SAC_ERR_IO, "cannot open '%s'", "a"), SAC_ERR_IO);
    assert_int_equal(sac_fail_prefix(ctx, SAC_ERR_IO, "model: "), SAC_ERR_IO);
    assert_int_equal(sac_context_last_error(ctx, buf, sizeof buf),
                     strlen("model: cannot open 'a'"));
    assert_string_equal(buf, "model: cannot open 'a'");
    assert_int_equal(sac_context_last_error(ctx, buf, 6), strlen("model: cannot open 'a'"));
    assert_string_equal(buf, "model");
    sac_error_clear(ctx);
    assert_int_equal(sac_context_last_error(ctx, buf, sizeof buf), 0);
    sac_context_destroy(&ctx);
    assert_null(ctx);
}

static void count_log(void *user, enum sac_log_level level, const char *message)
{
    (void)level;
    (void)message;
    ++*(int *)user;
}

static void drops_messages_above_the_level(void **state)
{
    (void)state;
    int                       lines = 0;
    struct sac_context_params params = sac_context_params_default();
    params.log_fn = count_log;
    params.log_user = &lines;
    sac_context *ctx = NULL;
    assert_int_equal(sac_context_create(&params, &ctx), SAC_OK);
    sac_log(ctx, SAC_LOG_INFO, "one");
    sac_log(ctx, SAC_LOG_DEBUG, "not shown");
    sac_context_set_log_level(ctx, SAC_LOG_DEBUG);
    sac_log(ctx, SAC_LOG_DEBUG, "two");
    assert_int_equal(lines, 2);
    sac_context_destroy(&ctx);
}

static void arena_hands_out_zeroed_aligned_memory(void **state)
{
    (void)state;
    struct sac_arena arena = {0};
    for (size_t size = 1; size < 200000; size = size * 3 + 1) {
        unsigned char *p = sac_arena_alloc(&arena, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
    }
    sac_arena_finish(&arena);
    assert_int_equal(arena.bytes, 0);
}

static void arena_takes_back_what_is_large(void **state)
{
    enum { LARGE = 1 << 20 };
    (void)state;
    struct sac_arena arena = {0};
    char            *small = sac_arena_alloc(&arena, 16), *large = sac_arena_alloc(&arena, LARGE);
    char            *next = sac_arena_alloc(&arena, 16);
    assert_true(next == small + 16); /* the first block has room */
    assert_false(sac_arena_free(&arena, small, 16));
    assert_false(sac_arena_free(&arena, large + 16, LARGE)); /* what lies in it stays */
    assert_true(sac_arena_free(&arena, large, LARGE));
    assert_false(sac_arena_owns(&arena, large));
    assert_true(sac_arena_owns(&arena, small));
    assert_int_equal(arena.bytes, 32);
    sac_arena_finish(&arena);
}

static void grow_survives_a_failed_allocation(void **state)
{
    (void)state;
    int   *items = NULL;
    size_t cap = 0;
    assert_true(sac_grow((void **)&items, &cap, 5, sizeof *items));
    items[4] = 7;
    sac_alloc_fail_at(1);
    assert_false(sac_grow((void **)&items, &cap, 1000, sizeof *items));
    assert_int_equal(items[4], 7);
    assert_false(sac_grow((void **)&items, &cap, SIZE_MAX / 2, sizeof *items));
    sac_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_sentence),
        cmocka_unit_test(drops_messages_above_the_level),
        cmocka_unit_test(arena_hands_out_zeroed_aligned_memory),
        cmocka_unit_test(arena_takes_back_what_is_large),
        cmocka_unit_test(grow_survives_a_failed_allocation),
    };
    return cmocka_run_group_tests_name("base/base", tests, NULL, NULL);
}
