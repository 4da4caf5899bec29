/* SPDX-License-Identifier: Apache-2.0 */
/* Ways of convolutions that are made ahead, and which of them are made once others were measured:
 * without a GPU, cuDNN and its driver replaced by counts. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_kernel.h"
#include "tests/test.h"

/* ---- stand-ins ---- */

static struct products_gpu gpu = {.tuning = PTHREAD_MUTEX_INITIALIZER};
static atomic_int          lists, made, live, live_most;
static atomic_bool         given_up;

static bool is_given_up(void)
{
    return atomic_load(&given_up);
}

static struct sac_device dev = {.name = "far:0", .given_up = is_given_up};

struct products_gpu *products_gpu_of(struct sac_device *d)
{
    (void)d;
    return &gpu;
}

struct products_loan products_borrow(struct products_gpu *g, int number)
{
    (void)number;
    return (struct products_loan){.cudnn = g->cudnn};
}

void products_give_back(struct products_gpu *g, const struct products_loan *loan)
{
    (void)g, (void)loan;
}

sac_result cuda_enter(struct sac_device *d)
{
    (void)d;
    return SAC_OK;
}

void cuda_leave(void)
{
}

bool conv_known_choice(const struct sac_kernel_plan *plan, const struct conv_spec *spec,
                       const char *key, struct conv_choice *out)
{
    (void)spec, (void)key;
    return plan->choice && conv_choice_parse(plan->choice, out);
}

/* The state of a plan that is not prepared yet points to it. */
bool conv_spec_read(const struct sac_kernel_plan *plan, struct conv_spec *out, char *why,
                    size_t why_size)
{
    (void)why, (void)why_size;
    *out = *(const struct conv_spec *)plan->state;
    return true;
}

size_t conv_spec_text(const struct conv_spec *s, char *out, size_t size)
{
    return (size_t)snprintf(out, size, "n%d c%d size%d", (int)s->n, (int)s->in.c,
                            (int)s->out.size[2]);
}

char *cudnn_kernels_key(const struct conv_spec *s, const struct conv_choice *choice)
{
    (void)s;
    return sac_asprintf("%d", (int)choice->engine);
}

/* Two that are compiled, three that are not, two of ours. */
static const struct cudnn_candidate ways[] = {
    {{.way = CONV_CUDNN_FUSED, .engine = 7}, true},
    {{.way = CONV_CUDNN_FUSED, .engine = 8}, true},
    {{.way = CONV_CUDNN_PLAIN, .engine = 1}, false},
    {{.way = CONV_CUDNN_PLAIN, .engine = 2}, false},
    {{.way = CONV_CUDNN_PLAIN, .engine = 3}, false},
    {{.way = CONV_TILE, .engine = 0}, false},
    {{.way = CONV_TILE, .engine = 1}, false},
};
enum { WAYS = (int)SAC_COUNT(ways) };

void conv_ways_list(const struct products_gpu *products, const struct cudnn_target *t,
                    const struct conv_spec *s, struct conv_ways *out)
{
    (void)products, (void)t, (void)s;
    atomic_fetch_add(&lists, 1);
    out->count = WAYS;
    memcpy(out->items, ways, sizeof ways);
}

struct conv_ready *conv_ready_make(struct sac_device *d, const struct cudnn_target *target,
                                   const char *key, const struct conv_spec *spec,
                                   const struct conv_choice *choice)
{
    struct conv_ready *r = sac_new(struct conv_ready);
    (void)d, (void)target, (void)key, (void)spec;
    if (!r)
        return NULL;
    r->choice = *choice;
    r->users = 1;
    atomic_fetch_add(&made, 1);
    const int now = atomic_fetch_add(&live, 1) + 1;
    if (now > atomic_load(&live_most))
        atomic_store(&live_most, now);
    return r;
}

void conv_ready_destroy(struct conv_ready *r)
{
    atomic_fetch_sub(&live, r != NULL);
    sac_free(r);
}

/* ---- convolutions of a plan ---- */

static struct conv_spec spec_of(int64_t n, int64_t c, int64_t size)
{
    return (struct conv_spec){
        .n = n, .in.c = c, .in.size = {1, size, size}, .out.size = {1, size, size}};
}

static void foresee(struct conv_spec *s, bool measure, const char *choice)
{
    const struct sac_kernel_plan plan = {.state = s, .measure = measure, .choice = choice};
    dev.ctx = test_context();
    conv_foresee(&dev, &plan);
}

static int take(const struct conv_spec *s, bool all, struct conv_ready *ready[CONV_TRIED_MAX],
                struct conv_ways *list)
{
    char key[CONV_KEY_MAX];
    int  count = 0;
    memset(ready, 0, CONV_TRIED_MAX * sizeof(*ready));
    assert_true(conv_key(&dev, s, key));
    assert_true(conv_ahead_ways(&dev, key, s, all, list, ready));
    for (int i = 0; i < CONV_TRIED_MAX; i++)
        count += ready[i] != NULL;
    return count;
}

static void drop(struct conv_ready *ready[CONV_TRIED_MAX])
{
    for (int i = 0; i < CONV_TRIED_MAX; i++)
        conv_ready_destroy(ready[i]);
}

static int begin(void **state)
{
    (void)state;
    dev.ctx = test_context();
    atomic_store(&given_up, false);
    lists = made = live = live_most = 0;
    return 0;
}

/* No more than some convolutions' ways live at once, and each is made once. */
static void some_are_made_together(void **state)
{
    enum { COUNT = 60 };
    struct conv_spec   specs[COUNT];
    struct conv_ways   list;
    struct conv_ready *ready[CONV_TRIED_MAX];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        specs[i] = spec_of(1, 1000 + i, 8);
        foresee(&specs[i], true, NULL);
        foresee(&specs[i], true, NULL); /* a second layer like it */
    }
    assert_int_equal(lists, 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(take(&specs[i], true, ready, &list), WAYS);
        for (int w = 0; w < WAYS; w++)
            assert_true(conv_choice_same(&ready[w]->choice, &list.items[w].choice));
        drop(ready);
    }
    assert_int_equal(lists, COUNT);
    assert_int_equal(made, COUNT * WAYS);
    assert_true(live_most < COUNT * WAYS / 2);
    assert_int_equal(live, 0);
    conv_forget();
}

/* A choice that is known is all that is made of it, and all of these at once. */
static void what_is_known_is_made_alone(void **state)
{
    struct conv_spec         specs[40];
    const struct conv_choice known = {.way = CONV_CUDNN_PLAIN, .engine = 2};
    char                     key[CONV_KEY_MAX];
    (void)state;
    for (int i = 0; i < 40; i++) {
        specs[i] = spec_of(1, 2000 + i, 8);
        foresee(&specs[i], true, i < 39 ? "plain 2" : "tile 1"); /* ours need no making */
    }
    assert_true(conv_key(&dev, &specs[5], key));
    struct conv_ready *r = conv_ahead_take(&dev, key, &known);
    assert_non_null(r);
    assert_null(conv_ahead_take(&dev, key, &known));
    assert_int_equal(lists, 0);
    assert_int_equal(made, 39);
    conv_ready_destroy(r);
    conv_forget();
    assert_int_equal(live, 0);
}

/* Where nothing may be measured, one is made. */
static void the_likely_one_is_made(void **state)
{
    struct conv_spec   s = spec_of(1, 3000, 8);
    struct conv_ways   list;
    struct conv_ready *ready[CONV_TRIED_MAX];
    (void)state;
    foresee(&s, false, NULL);
    assert_int_equal(take(&s, false, ready, &list), 1);
    assert_int_equal(list.count, WAYS);
    assert_non_null(ready[0]);
    drop(ready);
    conv_forget();
}

static bool has(const struct conv_ways *list, struct conv_ready *const *ready, enum conv_way way,
                int engine)
{
    for (int i = 0; i < list->count; i++)
        if (ready[i] && ready[i]->choice.way == way && ready[i]->choice.engine == engine)
            return true;
    return false;
}

/* Of another batch, or another size: ours, the heuristics' first ones, and what was nearly the
 * fastest, or if it is compiled the fastest. */
static void what_was_measured_narrows_the_next(void **state)
{
    static const double took[CONV_TRIED_MAX] = {30, 40, 20, 9.9, 10, 11, -1};
    struct conv_spec    s = spec_of(32, 4000, 8), next = spec_of(8, 4000, 8), far = s;
    struct conv_ways    list;
    struct conv_ready  *ready[CONV_TRIED_MAX];
    (void)state;
    assert_int_equal(take(&s, true, ready, &list), WAYS);
    list.items[4].choice.engine = 33; /* one that the heuristics do not name for the next */
    conv_near_note(&dev, &s, &list, took);
    drop(ready);
    assert_int_equal(take(&next, true, ready, &list), 6);
    assert_true(has(&list, ready, CONV_CUDNN_FUSED, 7) && has(&list, ready, CONV_CUDNN_PLAIN, 1));
    assert_false(has(&list, ready, CONV_CUDNN_PLAIN, 3) || has(&list, ready, CONV_CUDNN_FUSED, 8));
    assert_true(has(&list, ready, CONV_CUDNN_PLAIN, 2) && has(&list, ready, CONV_CUDNN_PLAIN, 33));
    assert_true(has(&list, ready, CONV_TILE, 0) && has(&list, ready, CONV_TILE, 1));
    drop(ready);
    far.in.c = 4001; /* other channels: nothing is known of it */
    assert_int_equal(take(&far, true, ready, &list), WAYS);
    drop(ready);
    conv_forget();
}

static void what_is_compiled_has_to_win(void **state)
{
    static const double near[CONV_TRIED_MAX] = {30, 10, 20, 20, 20, 9.9, -1},
                        won[CONV_TRIED_MAX] = {30, 9.8, 20, 20, 20, 9.9, -1};
    struct conv_spec   s = spec_of(32, 4100, 8), next = spec_of(8, 4100, 8);
    struct conv_ways   list = {.count = WAYS};
    struct conv_ready *ready[CONV_TRIED_MAX];
    (void)state;
    memcpy(list.items, ways, sizeof ways);
    conv_near_note(&dev, &s, &list, near);
    assert_int_equal(take(&next, true, ready, &list), 4);
    assert_false(has(&list, ready, CONV_CUDNN_FUSED, 8));
    drop(ready);
    s.in.c = next.in.c = 4101;
    memcpy(list.items, ways, sizeof ways);
    list.count = WAYS;
    conv_near_note(&dev, &s, &list, won);
    assert_int_equal(take(&next, true, ready, &list), 5);
    assert_true(has(&list, ready, CONV_CUDNN_FUSED, 8));
    drop(ready);
    conv_forget();
}

/* Where only ours were measured, or nothing ran, cuDNN's are as unknown as before. */
static void what_was_not_asked_tells_nothing(void **state)
{
    static const double ours[CONV_TRIED_MAX] = {-1, -1, -1, -1, -1, 11, -1},
                        nothing[CONV_TRIED_MAX] = {-1, -1, -1, -1, -1, -1, -1};
    const double *const notes[] = {ours, nothing};
    struct conv_ready  *ready[CONV_TRIED_MAX];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct conv_spec s = spec_of(32, 4200 + i, 8), next = spec_of(8, 4200 + i, 8);
        struct conv_ways list = {.count = WAYS};
        memcpy(list.items, ways, sizeof ways);
        conv_near_note(&dev, &s, &list, notes[i]);
        assert_int_equal(take(&next, true, ready, &list), WAYS);
        drop(ready);
    }
    conv_forget();
}

/* Of those that were measured and are as large, the smallest counts: of a larger one none does. */
static void the_nearest_size_tells(void **state)
{
    static const double first[CONV_TRIED_MAX] = {1, 9, 9, 9, 9, 9, 9},
                        second[CONV_TRIED_MAX] = {9, 1, 9, 9, 9, 9, 9};
    struct conv_spec   large = spec_of(32, 5000, 64), small = spec_of(4, 5000, 8), s = small;
    struct conv_ways   list = {.count = WAYS};
    struct conv_ready *ready[CONV_TRIED_MAX];
    (void)state;
    memcpy(list.items, ways, sizeof ways);
    conv_near_note(&dev, &large, &list, first);
    conv_near_note(&dev, &small, &list, second);
    s.n = 2;
    take(&s, true, ready, &list);
    assert_true(has(&list, ready, CONV_CUDNN_FUSED, 8));
    drop(ready);
    s = spec_of(16, 5000, 64);
    take(&s, true, ready, &list);
    assert_false(has(&list, ready, CONV_CUDNN_FUSED, 8));
    drop(ready);
    s.n = 64;
    assert_int_equal(take(&s, true, ready, &list), WAYS);
    drop(ready);
    conv_forget();
}

/* Later convolutions of one plan profit from earlier ones. */
static void those_of_a_plan_too(void **state)
{
    static const double took[CONV_TRIED_MAX] = {1, 9, 9, 9, 9, 9, 9};
    struct conv_spec    specs[40];
    struct conv_ways    list;
    struct conv_ready  *ready[CONV_TRIED_MAX];
    (void)state;
    for (int i = 0; i < 40; i++) {
        specs[i] = spec_of(1, 6000, 47 - i);
        foresee(&specs[i], true, NULL);
    }
    assert_int_equal(take(&specs[0], true, ready, &list), WAYS);
    assert_int_equal(made, 16 * WAYS);
    conv_near_note(&dev, &specs[0], &list, took);
    drop(ready);
    assert_int_equal(take(&specs[39], true, ready, &list), 4); /* one of each kind, two of ours */
    assert_int_equal(made, 16 * WAYS + 4); /* for those between nothing is compiled a second time */
    drop(ready);
    conv_forget();
    assert_int_equal(live, 0);
}

static void nothing_is_made_of_a_start_that_is_given_up(void **state)
{
    struct conv_spec   s = spec_of(1, 7000, 8);
    struct conv_ways   list;
    struct conv_ready *ready[CONV_TRIED_MAX] = {NULL};
    char               key[CONV_KEY_MAX];
    (void)state;
    foresee(&s, true, NULL);
    atomic_store(&given_up, true);
    assert_true(conv_key(&dev, &s, key));
    assert_false(conv_ahead_ways(&dev, key, &s, true, &list, ready));
    assert_int_equal(made, 0);
    conv_forget();
}

/* It is not taken for a convolution that no way computes. */
static void without_memory_it_is_said(void **state)
{
    struct conv_spec   s = spec_of(1, 8000, 8);
    struct conv_ways   list;
    struct conv_ready *ready[CONV_TRIED_MAX] = {NULL};
    char               key[CONV_KEY_MAX];
    bool               good = false;
    int                failures = 0;
    (void)state;
    assert_true(conv_key(&dev, &s, key));
    for (long n = 1; n <= 5; n++) { /* the notes, what is to be made, its ways, their keys */
        sac_alloc_fail_at(n);
        good = conv_ahead_ways(&dev, key, &s, true, &list, ready);
        sac_alloc_fail_at(0);
        failures += !good;
        assert_true(!good || list.count == WAYS);
        drop(ready);
        memset(ready, 0, sizeof ready);
        conv_forget();
    }
    assert_in_range(failures, 4, 5);
    assert_int_equal(live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(some_are_made_together, begin),
        cmocka_unit_test_setup(what_is_known_is_made_alone, begin),
        cmocka_unit_test_setup(the_likely_one_is_made, begin),
        cmocka_unit_test_setup(what_was_measured_narrows_the_next, begin),
        cmocka_unit_test_setup(what_is_compiled_has_to_win, begin),
        cmocka_unit_test_setup(what_was_not_asked_tells_nothing, begin),
        cmocka_unit_test_setup(the_nearest_size_tells, begin),
        cmocka_unit_test_setup(those_of_a_plan_too, begin),
        cmocka_unit_test_setup(nothing_is_made_of_a_start_that_is_given_up, begin),
        cmocka_unit_test_setup(without_memory_it_is_said, begin),
    };
    return cmocka_run_group_tests_name("engine/cuda/ahead", tests, NULL, NULL);
}
