/* SPDX-License-Identifier: Apache-2.0 */
/* Moves between random orders of random dimensions against a walk over every element. */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "engine/kernel/move.h"
#include "tests/test.h"

enum { RANK = 5, FENCE = 64 };

static uint32_t random_below(uint32_t n)
{
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % n;
}

struct subject {
    size_t  bytes;
    int     rank;
    int64_t dims[RANK], to[RANK], from[RANK], target, source; /* elements of each side */
    int64_t first;                                            /* in the source */
};

/* Strides of the dimensions when they lie in a random order, `gap` elements wider than needed. */
static int64_t lay_out(const struct subject *s, int64_t *strides, int64_t gap)
{
    int     order[RANK] = {0};
    int64_t step = 1;
    for (int d = 0; d < s->rank; d++) {
        const int at = (int)random_below((uint32_t)d + 1);
        order[d] = order[at];
        order[at] = d;
    }
    for (int d = 0; d < s->rank; d++) {
        strides[order[d]] = step;
        step *= s->dims[order[d]];
        step += d == 0 ? gap : 0;
    }
    return step;
}

static struct subject random_subject(void)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 7, 8, 9, 16, 33};
    struct subject s = {.bytes = (size_t)1 << random_below(4), .rank = (int)random_below(RANK + 1)};
    for (int d = 0; d < s.rank; d++)
        s.dims[d] = sizes[random_below(s.rank > 3 ? 7 : SAC_COUNT(sizes))];
    if (s.rank > 0 && random_below(8) == 0)
        s.dims[random_below((uint32_t)s.rank)] = 300;
    if (s.rank > 0 && random_below(16) == 0)
        s.dims[0] = 0;
    s.target = lay_out(&s, s.to, random_below(4) == 0 ? 3 : 0);
    s.source = lay_out(&s, s.from, random_below(4) == 0 ? 5 : 0);
    for (int d = 0; d < s.rank && s.dims[d] > 0; d++) {
        const uint32_t kind = random_below(8);
        if (kind == 0) /* backwards */
            s.first += s.from[d] * (s.dims[d] - 1);
        s.from[d] *= kind == 0 ? -1 : kind == 1 ? 0 : 1; /* 0: repeated */
    }
    return s;
}

static void move_plainly(const struct subject *s, char *dst, const char *src)
{
    int64_t count = 1;
    for (int d = 0; d < s->rank; d++)
        count *= s->dims[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, to = 0, from = s->first;
        for (int d = s->rank - 1; d >= 0; d--) {
            to += rest % s->dims[d] * s->to[d];
            from += rest % s->dims[d] * s->from[d];
            rest /= s->dims[d];
        }
        memcpy(dst + to * (int64_t)s->bytes, src + from * (int64_t)s->bytes, s->bytes);
    }
}

static void moves_as_a_plain_walk(void **state)
{
    struct sac_worker_pool *workers = *state;
    for (int round = 0; round < 3000; round++) {
        const struct subject s = random_subject();
        const size_t         target = (size_t)s.target * s.bytes + FENCE;
        const size_t         source = (size_t)s.source * s.bytes;
        unsigned char  *src = malloc(source + 1), *dst = malloc(target), *want = malloc(target);
        struct sac_move move;
        assert_true(src && dst && want);
        for (size_t i = 0; i < source; i++)
            src[i] = (unsigned char)random_below(256);
        memset(dst, 0xa5, target);
        memset(want, 0xa5, target);
        move_plainly(&s, (char *)want, (const char *)src);
        sac_move_init(&move, s.bytes, s.rank, s.dims, s.to, s.from);
        sac_move_run(&move, round % 2 ? workers : NULL, dst, src + (size_t)s.first * s.bytes);
        assert_memory_equal(dst, want, target);
        free(src);
        free(dst);
        free(want);
    }
}

/* What stays together is moved together, whatever the dimensions are called. */
static void merges_dimensions(void **state)
{
    struct sac_move m;
    (void)state;
    sac_move_init(&m, 4, 4, (int64_t[]){2, 3, 5, 7}, (int64_t[]){105, 35, 7, 1},
                  (int64_t[]){105, 35, 7, 1});
    assert_int_equal(m.kind, SAC_MOVE_RUNS);
    assert_int_equal(m.row.count, 210);
    assert_int_equal(m.outer_count, 0);
    /* [2,3,5,7] with perm 0,2,3,1: two matrices of 3 rows and 35 columns */
    sac_move_init(&m, 4, 4, (int64_t[]){2, 5, 7, 3}, (int64_t[]){105, 21, 3, 1},
                  (int64_t[]){105, 7, 1, 35});
    assert_int_equal(m.kind, SAC_MOVE_TILES);
    assert_int_equal(m.row.count, 3);
    assert_int_equal(m.column.count, 35);
    assert_int_equal(m.outer_count, 1);
    /* pairs of floats that change places are elements of eight bytes */
    sac_move_init(&m, 4, 3, (int64_t[]){5, 4, 2}, (int64_t[]){8, 2, 1}, (int64_t[]){2, 10, 1});
    assert_int_equal(m.bytes, 8);
    assert_int_equal(m.kind, SAC_MOVE_TILES);
}

int main(void)
{
    struct sac_worker_pool *workers = NULL;
    if (sac_worker_pool_create(test_context(), 3, &workers) != SAC_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(moves_as_a_plain_walk, workers),
        cmocka_unit_test(merges_dimensions),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sac_worker_pool_destroy(&workers);
    return failed;
}
