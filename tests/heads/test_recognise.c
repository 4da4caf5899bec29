/* SPDX-License-Identifier: Apache-2.0 */
/* Recognition by the shapes that published models have. */
#include <string.h>

#include "heads/heads.h"
#include "tests/test.h"

static const struct known {
    const char *head; /* NULL: nothing fits */
    int         size, names, classes, count;
    struct {
        int64_t     dims[5]; /* up to the first 0 */
        const char *name;
    } output[6];
} known[] = {
    {"yolox", 416, 0, 80, 1, {{{1, 3549, 85}, "output"}}},
    {"yolox", 640, 0, 80, 1, {{{1, 8400, 85}, "output"}}},
    {"yolox", 640, 0, 1, 1, {{{1, 8400, 6}, "output"}}}, /* one class: rows of 6, but as many as
                                                            cells */
    {"yolov5", 640, 0, 80, 1, {{{1, 25200, 85}, "output0"}}},
    {"yolov5", 1280, 0, 80, 1, {{{1, 102000, 85}, "output0"}}}, /* P6 */
    {"yolov8", 640, 0, 80, 1, {{{1, 84, 8400}, "output0"}}},
    {"yolov8", 320, 1, 1, 1, {{{1, 5, 2100}, "output0"}}},
    {"yolov8", 640, 80, 80, 1, {{{1, 8400, 84}, "output0"}}}, /* on its side: only names tell */
    {"yolox", 640, 0, 79, 1, {{{1, 8400, 84}, "output0"}}},
    {"yolov8", 0, 80, 80, 1, {{{-1, 84, -1}, "output0"}}}, /* exported with open sizes */
    {"yolov5", 0, 80, 80, 1, {{{-1, -1, 85}, "output0"}}},
    {NULL, 0, 0, 0, 1, {{{-1, -1, 85}, "output0"}}}, /* nobody knows the classes */
    {"end2end", 640, 80, 0, 1, {{{1, 300, 6}, "output0"}}},
    {"end2end", 640, 0, 0, 1, {{{-1, 6}, "output"}}},
    {"nanodet", 416, 0, 80, 1, {{{1, 3598, 112}, "output"}}}, /* NanoDet-Plus */
    {"nanodet", 320, 0, 80, 1, {{{1, 2125, 112}, "output"}}},
    {"nanodet", 320, 2, 2, 1, {{{1, 2125, 34}, "output"}}},
    {"nanodet",
     320,
     0,
     80,
     6,
     {{{1, 1600, 80}, "cls_pred_stride_8"},
      {{1, 1600, 32}, "dis_pred_stride_8"},
      {{1, 400, 80}, "cls_pred_stride_16"},
      {{1, 400, 32}, "dis_pred_stride_16"},
      {{1, 100, 80}, "cls_pred_stride_32"},
      {{1, 100, 32}, "dis_pred_stride_32"}}},
    {"detr", 800, 0, 91, 2, {{{1, 100, 92}, "logits"}, {{1, 100, 4}, "pred_boxes"}}},
    {"detr", 640, 0, 80, 2, {{{1, 300, 80}, "logits"}, {{1, 300, 4}, "pred_boxes"}}},
    {"detr", 640, 0, 80, 2, {{{1, 300, 4}, "boxes"}, {{1, 300, 80}, "logits"}}},
    {"detr", 640, 80, 80, 1, {{{1, 300, 84}, "output0"}}}, /* RT-DETR in one output */
    {"ssd", 300, 0, 0, 1, {{{1, 1, 200, 7}, "detection_out"}}},
    {"ssd", 320, 0, 0, 3, {{{-1, 4}, "boxes"}, {{-1}, "labels"}, {{-1}, "scores"}}},
    {"ssd", 320, 0, 0, 3, {{{1, 100, 4}, "bboxes"}, {{1, 100}, "scores"}, {{1, 100}, "labels"}}},
    {"embedding", 256, 0, 0, 1, {{{1, 256}, "Identity:0"}}},
    {"embedding", 256, 0, 0, 1, {{{-1, 512, 1, 1}, "feat"}}},
    {NULL, 640, 0, 0, 1, {{{1, 21, 640, 640}, "map"}}}, /* a segmentation */
    {NULL, 0, 0, 0, 1, {{{-1, -1, -1}, "output"}}},     /* everything open */
    {NULL, 640, 0, 0, 2, {{{1, 10}, "a"}, {{1, 4}, "b"}}},
};

static struct sac_head_view view_of(const struct known *k)
{
    struct sac_head_view v = {
        .width = k->size, .height = k->size, .output_count = k->count, .names = k->names};
    for (int i = 0; i < k->count; i++) {
        v.output[i].name = k->output[i].name;
        v.output[i].desc.dtype = SAC_F32;
        while (v.output[i].desc.rank < 5 && k->output[i].dims[v.output[i].desc.rank]) {
            int d = v.output[i].desc.rank++;
            v.output[i].desc.shape[d] = k->output[i].dims[d];
        }
    }
    return v;
}

static void knows_published_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(known); i++) {
        struct sac_head_view   v = view_of(&known[i]);
        const struct sac_head *head = sac_head_of(&v);
        const char            *name = head ? head->name : "nothing";
        if (strcmp(name, known[i].head ? known[i].head : "nothing") != 0)
            fail_msg("shape %zu is %s, recognised as %s", i, known[i].head, name);
        if (head && head->class_count && head->class_count(&v) != known[i].classes)
            fail_msg("shape %zu: %d classes, expected %d", i, head->class_count(&v),
                     known[i].classes);
    }
}

static void count_row(void *user, const char *name, const char *what)
{
    assert_non_null(sac_head_find(name));
    assert_true(strlen(what) > 0);
    ++*(int *)user;
}

static void lists_its_rows(void **state)
{
    (void)state;
    int rows = 0;
    sac_head_list(count_row, &rows);
    assert_int_equal(rows, 8);
    assert_null(sac_head_find("nobody"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_published_shapes),
        cmocka_unit_test(lists_its_rows),
    };
    return cmocka_run_group_tests_name("heads/recognise", tests, NULL, NULL);
}
