/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "vision/detect.h"
#include "heads/heads.h"
#include "tests/test.h"

static uint32_t next(void)
{
    static uint32_t state = 99;
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

static struct sac_detections random_list(int n, int classes)
{
    struct sac_detections list = {0};
    for (int i = 0; i < n; i++) {
        float                x = (float)(next() % 60), y = (float)(next() % 60);
        struct sac_detection d = {x,
                                  y,
                                  x + 1 + (float)(next() % 30),
                                  y + 1 + (float)(next() % 30),
                                  (float)(next() % 1000) / 1000,
                                  (int)(next() % (uint32_t)classes)};
        assert_true(sac_detections_push(&list, &d));
    }
    return list;
}

/* From the definition: a box stays unless a box that stays, of its class and with a higher score,
 * overlaps it too much. Quadratic, and without the order that the fast way leans on. */
static size_t brute_force(const struct sac_detections *in, float iou_max, bool *stays)
{
    size_t settled = 0, count = 0;
    bool  *done = sac_calloc(in->count + 1, sizeof *done);
    memset(stays, 0, in->count * sizeof *stays);
    while (settled < in->count) {
        size_t best = in->count;
        for (size_t i = 0; i < in->count; i++)
            if (!done[i] && (best == in->count || in->items[i].score > in->items[best].score))
                best = i;
        bool free = true;
        for (size_t i = 0; i < in->count && free; i++)
            free = !(stays[i] && in->items[i].class_id == in->items[best].class_id &&
                     sac_detect_iou(&in->items[i], &in->items[best]) > iou_max);
        stays[best] = free;
        count += free;
        done[best] = true;
        settled++;
    }
    sac_free(done);
    return count;
}

static void agrees_with_the_definition(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct sac_detections list = random_list((int)(next() % 120), 1 + (int)(next() % 4));
        for (size_t i = 0; i < list.count; i++) /* distinct scores: ties have no definition */
            list.items[i].score += (float)i * 1e-6f;
        float                iou_max = (float)(next() % 100) / 100;
        bool                 stays[128];
        struct sac_detection all[128];
        size_t               count = list.count, want = brute_force(&list, iou_max, stays);
        if (count)
            memcpy(all, list.items, count * sizeof *all);
        sac_nms(&list, iou_max, 1000);
        assert_int_equal(list.count, want);
        for (size_t i = 0; i < count; i++) {
            bool kept = false;
            for (size_t k = 0; k < list.count; k++)
                kept = kept || !memcmp(&all[i], &list.items[k], sizeof all[i]);
            assert_int_equal(kept, stays[i]);
        }
        sac_detections_finish(&list);
    }
}

/* A network that finishes by itself may name one place twice, as a car and as a truck. */
static void of_equal_boxes_the_best_stays(void **state)
{
    (void)state;
    struct sac_detection  boxes[] = {{1, 2, 30, 40, 0.5f, 7},
                                     {9, 9, 20, 20, 0.6f, 1},
                                     {1, 2, 30, 40, 0.8f, 2},
                                     {1, 2, 30, 41, 0.4f, 2},
                                     {9, 9, 20, 20, 0.6f, 0}};
    struct sac_detections list = {0};
    for (size_t i = 0; i < SAC_COUNT(boxes); i++)
        assert_true(sac_detections_push(&list, &boxes[i]));
    sac_detections_distinct(&list, 10);
    assert_int_equal(list.count, 3);
    assert_memory_equal(&list.items[0], &boxes[2], sizeof boxes[0]);
    assert_memory_equal(&list.items[1], &boxes[4], sizeof boxes[0]);
    assert_memory_equal(&list.items[2], &boxes[3], sizeof boxes[0]);
    sac_detections_distinct(&list, 1);
    assert_int_equal(list.count, 1);
    sac_detections_finish(&list);
}

static void keeps_the_best_only(void **state)
{
    (void)state;
    struct sac_detections list = random_list(100, 2);
    sac_nms(&list, 1.0f, 10); /* nothing overlaps more than wholly */
    assert_int_equal(list.count, 10);
    for (size_t i = 1; i < list.count; i++)
        assert_true(list.items[i - 1].score >= list.items[i].score);
    sac_detections_best(&list, 3);
    assert_int_equal(list.count, 3);
    sac_detections_finish(&list);
    sac_nms(&list, 0.5f, 10);
    assert_int_equal(list.count, 0);
    sac_detections_finish(&list);
    sac_detections_finish(NULL);
}

static void overlap_is_shared_area_over_all(void **state)
{
    (void)state;
    struct sac_detection a = {0, 0, 10, 10, 1, 0}, b = {5, 0, 15, 10, 1, 0},
                         c = {10, 0, 20, 10, 1, 0};
    assert_float_equal(sac_detect_iou(&a, &b), 1.0 / 3, 1e-6);
    assert_float_equal(sac_detect_iou(&a, &a), 1, 1e-6);
    assert_float_equal(sac_detect_iou(&a, &c), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_definition),
        cmocka_unit_test(keeps_the_best_only),
        cmocka_unit_test(of_equal_boxes_the_best_stays),
        cmocka_unit_test(overlap_is_shared_area_over_all),
    };
    return cmocka_run_group_tests_name("heads/nms", tests, NULL, NULL);
}
