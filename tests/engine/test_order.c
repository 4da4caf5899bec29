/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps wait for which, by what they read and write: plans made by hand, of storages alone.
 */
#include "base/base.h"
#include "engine/plan/plan.h"
#include "tests/test.h"

enum { STEPS = 8, SLOTS = 16, PORTS = 4, NONE = -1 };

struct plan {
    struct sac_plan       plan;
    struct sac_step       step[STEPS];
    struct sac_value_slot slot[SLOTS];
    struct sac_storage    storage[SLOTS];
    int                   ports[STEPS][PORTS];
};

/* Each slot has a storage of its own, a map of 8 channels and 4 x 4 pixels, until a test says else.
 */
static void begin(struct plan *p)
{
    *p = (struct plan){.plan = {.steps = p->step, .slots = p->slot, .storages = p->storage}};
    for (int i = 0; i < SLOTS; i++)
        p->slot[i] =
            (struct sac_value_slot){.desc = {.dtype = SAC_F32, .rank = 4, .dims = {1, 8, 4, 4}},
                                    .layout = SAC_LAYOUT_CHANNELS_LAST,
                                    .storage = i,
                                    .parent = -1};
}

/* Reads a and b (NONE: left out), writes out. */
static void step(struct plan *p, int a, int b, int out)
{
    const size_t i = p->plan.step_count++;
    p->ports[i][0] = a;
    p->ports[i][1] = b;
    p->ports[i][2] = out;
    p->step[i] = (struct sac_step){.kind = SAC_STEP_KERNEL,
                                   .slots = p->ports[i],
                                   .in_count = 2,
                                   .out_count = 1,
                                   .scratch = -1};
}

/* A part of `channels` channels from `channel` on, of `rows` rows from `row` on, of slot `whole`.
 */
static void part(struct plan *p, int slot, int whole, int channel, int channels, int row, int rows)
{
    struct sac_value_slot *s = &p->slot[slot];
    s->storage = p->slot[whole].storage;
    s->parent = whole;
    s->pixel = 8;
    s->sample = 128;
    s->desc.dims[1] = channels;
    s->desc.dims[2] = rows;
    s->offset = (size_t)(row * 4 * 8 + channel) * sizeof(float);
}

/* The steps that each waits for, "- 0 0 12" for four. */
static void check(struct plan *p, const char *waits)
{
    struct sac_order o;
    char             text[64] = "", *at = text;
    assert_true(sac_order_make(&p->plan, &o));
    for (size_t i = 0; i < p->plan.step_count; i++) {
        int       after[STEPS];
        const int count = sac_order_waits(&o, i, after);
        if (i)
            *at++ = ' ';
        if (count == 0)
            *at++ = '-';
        for (int k = 0; k < count; k++)
            *at++ = (char)('0' + after[k]);
    }
    assert_string_equal(text, waits);
    sac_order_free(&o);
}

static void branches_wait_for_what_they_read(void **state)
{
    (void)state;
    struct plan      p;
    struct sac_order o;
    begin(&p);
    step(&p, 0, NONE, 1);
    step(&p, 1, NONE, 2);
    step(&p, 1, NONE, 3);
    step(&p, 2, 3, 4);
    step(&p, 4, 1, 5); /* step 0, too, which step 3 waits for by the others */
    check(&p, "- 0 0 12 3");
    assert_true(sac_order_make(&p.plan, &o));
    assert_true(sac_order_before(&o, 0, 4) && sac_order_before(&o, 2, 3));
    assert_false(sac_order_before(&o, 1, 2) || sac_order_before(&o, 2, 1));
    assert_false(sac_order_is_chain(&o));
    sac_order_free(&o);
}

static void a_chain_is_one(void **state)
{
    (void)state;
    struct plan      p;
    struct sac_order o;
    begin(&p);
    step(&p, 0, NONE, 1);
    step(&p, 1, NONE, 2);
    step(&p, 2, 1, 3);
    assert_true(sac_order_make(&p.plan, &o));
    assert_true(sac_order_is_chain(&o));
    sac_order_free(&o);
}

static void who_overwrites_waits_for_the_readers(void **state)
{
    (void)state;
    struct plan p;
    begin(&p);
    step(&p, 0, NONE, 1);
    step(&p, 1, NONE, 2);
    p.slot[3].storage = 1; /* in place */
    step(&p, 1, NONE, 3);
    check(&p, "- 0 1");
}

static void parts_wait_where_they_share_elements(void **state)
{
    (void)state;
    struct plan p;
    begin(&p);
    step(&p, 0, NONE, 1);
    part(&p, 2, 5, 0, 4, 0, 4);
    part(&p, 3, 5, 4, 4, 0, 2);
    part(&p, 4, 5, 4, 4, 2, 2); /* beside the first, below the second */
    step(&p, 1, NONE, 2);
    step(&p, 1, NONE, 3);
    step(&p, 1, NONE, 4);
    step(&p, 5, NONE, 6); /* the whole */
    check(&p, "- 0 0 0 123");
    part(&p, 3, 5, 3, 4, 1, 2); /* a corner of both others */
    check(&p, "- 0 1 2 3");
    p.slot[4].pixel = 16; /* other steps between pixels: nobody knows */
    part(&p, 3, 5, 4, 4, 0, 2);
    check(&p, "- 0 0 12 3");
}

static void scratch_is_for_one_at_a_time(void **state)
{
    (void)state;
    struct plan p;
    begin(&p);
    step(&p, 0, NONE, 1);
    step(&p, 0, NONE, 2);
    check(&p, "- -"); /* they only read the same */
    p.step[0].scratch = p.step[1].scratch = 7;
    check(&p, "- 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_wait_for_what_they_read),
        cmocka_unit_test(a_chain_is_one),
        cmocka_unit_test(who_overwrites_waits_for_the_readers),
        cmocka_unit_test(parts_wait_where_they_share_elements),
        cmocka_unit_test(scratch_is_for_one_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
