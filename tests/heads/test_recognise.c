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
    bool                  batch_open;
    struct sac_head_facts facts; /* names are those above */
} known[] = {
    /* clang-format off: a model a row */
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
    {"boxes", 320, 0, 0, 3, {{{-1, 4}, "boxes"}, {{-1}, "labels"}, {{-1}, "scores"}}},
    {"boxes", 320, 0, 0, 3, {{{1, 100, 4}, "bboxes"}, {{1, 100}, "scores"}, {{1, 100}, "labels"}}},
    /* torchvision, whose outputs may have no names that tell; with masks; with keypoints */
    {"boxes",
     0,
     0,
     91,
     3,
     {{{-1, 4}, "2770"}, {{-1}, "2772"}, {{-1}, "2771"}},
     .facts = {.single = true, .whole = 2}},
    {"boxes",
     0,
     3,
     3,
     4,
     {{{-1, 4}, "boxes"}, {{-1}, "labels"}, {{-1}, "scores"}, {{-1, 1, -1, -1}, "masks"}},
     .facts = {.single = true, .whole = 2}},
    {"boxes",
     0,
     0,
     91,
     5,
     {{{-1, 4}, "boxes"},
      {{-1}, "labels"},
      {{-1}, "scores"},
      {{-1, 17, 3}, "keypoints"},
      {{-1, 17}, "keypoints_scores"}},
     .facts = {.single = true, .whole = 2}},
    /* RT-DETR, D-FINE, DEIM, deployed */
    {"boxes",
     640,
     0,
     80,
     3,
     {{{-1, 300}, "labels"}, {{-1, 300, 4}, "boxes"}, {{-1, 300}, "scores"}},
     true,
     {.sized = true, .whole = 1}},
    {"boxes",
     640,
     366,
     366,
     3,
     {{{1, 300}, "labels"}, {{1, 300, 4}, "boxes"}, {{1, 300}, "scores"}},
     .facts = {.sized = true, .whole = 1}},
    /* TensorFlow; YOLO-NAS with NMS inside */
    {"boxes",
     0,
     0,
     91,
     4,
     {{{1, 100, 4}, "detection_boxes:0"},
      {{1, 100}, "detection_classes:0"},
      {{1, 100}, "detection_scores:0"},
      {{1}, "num_detections:0"}}},
    {"boxes",
     640,
     0,
     0,
     4,
     {{{1, 1}, "num_predictions"},
      {{1, 1000, 4}, "pred_boxes"},
      {{1, 1000}, "pred_scores"},
      {{1, 1000}, "pred_classes"}},
     .facts = {.whole = 9}},
    /* mmdeploy, its sizes open or not, with masks */
    {"boxes", 0, 0, 0, 2, {{{-1, -1, 5}, "dets"}, {{-1, -1}, "labels"}}, .facts = {.whole = 2}},
    {"boxes",
     640,
     80,
     80,
     3,
     {{{1, 100, 5}, "dets"}, {{1, 100}, "labels"}, {{1, 100, 28, 28}, "masks"}},
     .facts = {.whole = 2}},
    /* Ultralytics' siblings: masks, poses; named or not, of open size */
    {"yolov8",
     640,
     80,
     80,
     2,
     {{{1, 116, 8400}, "output0"}, {{1, 32, 160, 160}, "output1"}},
     .facts = {.task = SAC_TASK_SEGMENT}},
    {"yolov8", 640, 0, 80, 2, {{{1, 116, 8400}, "output0"}, {{1, 32, 160, 160}, "output1"}}},
    {"yolov8", 0, 80, 80, 2, {{{-1, 116, -1}, "output0"}, {{-1, 32, -1, -1}, "output1"}}},
    {"yolov8", 640, 80, 80, 1, {{{1, 116, 8400}, "output0"}}, .facts = {.task = SAC_TASK_SEGMENT}},
    {"yolov8",
     640,
     1,
     1,
     1,
     {{{1, 56, 8400}, "output0"}},
     .facts = {.task = SAC_TASK_POSE, .keypoints = 51}},
    {"yolov8", 640, 0, 1, 1, {{{1, 56, 8400}, "output0"}}},
    {"yolov8", 640, 52, 52, 1, {{{1, 56, 8400}, "output0"}}, .facts = {.task = SAC_TASK_DETECT}},
    {"yolov8",
     640,
     2,
     2,
     1,
     {{{1, 14, 8400}, "output0"}},
     .facts = {.task = SAC_TASK_POSE, .keypoints = 8}},
    /* names count 16 */
    {"yolov8", 1024, 16, 16, 1, {{{1, 20, 21504}, "output0"}}, .facts = {.angles = true}},
    {"yolov5",
     640,
     80,
     80,
     2,
     {{{1, 25200, 117}, "output0"}, {{1, 32, 160, 160}, "output1"}},
     .facts = {.task = SAC_TASK_SEGMENT}},
    {"yolov5", 640, 0, 80, 2, {{{1, 25200, 117}, "output0"}, {{1, 32, 160, 160}, "output1"}}},
    {"yolov5", 640, 0, 1, 1, {{{1, 25200, 57}, "output"}}}, /* a pose of YOLOv7 */
    {"end2end", 640, 80, 0, 2, {{{1, 300, 38}, "output0"}, {{1, 32, 160, 160}, "output1"}}},
    {"end2end",
     640,
     1,
     0,
     1,
     {{{1, 300, 57}, "output0"}},
     .facts = {.task = SAC_TASK_POSE, .keypoints = 51}},
    {"end2end", 640, 0, 0, 1, {{{1, 300, 57}, "output0"}}},
    {"end2end", 640, 0, 0, 1, {{{-1, 7}, "output"}}}, /* YOLOv7 with NMS */
    /* PP-YOLOE */
    {"end2end", 640, 0, 0, 2, {{{-1, 6}, "multiclass_nms"}, {{-1}, "num"}}, true, {.paddle = true}},
    {"end2end", 640, 2, 0, 1, {{{1, 300, 6}, "output0"}}}, /* YOLOv10 of two classes */
    /* RT-DETR of two */
    {"detr", 640, 2, 2, 1, {{{1, 300, 6}, "output0"}}, .facts = {.queries = true}},
    /* RT-DETR that ranks its classes, of eighty and of two; without, rows of 6 fit no eighty */
    {"end2end",
     640,
     80,
     0,
     1,
     {{{1, 300, 6}, "output0"}},
     .facts = {.queries = true, .ranked = true}},
    {"end2end",
     640,
     2,
     0,
     1,
     {{{1, 300, 6}, "output0"}},
     .facts = {.queries = true, .ranked = true}},
    {NULL, 640, 80, 0, 1, {{{1, 300, 6}, "output0"}}, .facts = {.queries = true}},
    {"detr", 640, 1, 1, 1, {{{1, 300, 5}, "output0"}}},
    {"detr", 560, 0, 91, 2, {{{1, 300, 4}, "dets"}, {{1, 300, 91}, "labels"}}}, /* RF-DETR */
    {"detr",
     560,
     3,
     3,
     3,
     {{{1, 300, 4}, "dets"}, {{1, 300, 4}, "labels"}, {{1, 300, 140, 140}, "masks"}}},
    {"detr",
     800,
     0,
     91,
     3,
     {{{-1, 100, 92}, "logits"},
      {{-1, 100, 4}, "pred_boxes"},
      {{-1, 100, 256}, "last_hidden_state"}},
     true,
     {.masked = true}},
    {"embedding", 256, 0, 0, 1, {{{1, 256}, "Identity:0"}}},
    {"embedding", 256, 0, 0, 1, {{{-1, 512, 1, 1}, "feat"}}},
    {NULL, 0, 0, 0, 1, {{{-1, -1, -1}, "output"}}}, /* everything open */
    {NULL, 640, 0, 0, 2, {{{1, 10}, "a"}, {{1, 4}, "b"}}},
    /* Segmentation: torchvision's DeepLabV3 and LR-ASPP; channels last; SegFormer; of open size */
    {"semantic", 520, 0, 21, 2, {{{1, 21, 520, 520}, "out"}, {{1, 21, 520, 520}, "aux"}}},
    {"semantic", 520, 0, 21, 2, {{{1, 21, 520, 520}, "aux"}, {{1, 21, 520, 520}, "out"}}},
    {"semantic", 520, 0, 21, 1, {{{-1, 21, 520, 520}, "out"}}, true},
    {"semantic", 513, 0, 21, 1, {{{1, 129, 129, 21}, "ResizeBilinear"}}},
    {"semantic", 512, 0, 150, 1, {{{-1, 150, 128, 128}, "logits"}}, true},
    {"semantic", 0, 0, 19, 1, {{{-1, 19, -1, -1}, "logits"}}, true},
    {"semantic", 640, 0, 21, 1, {{{1, 21, 640, 640}, "map"}}},
    {"semantic", 640, 0, 2, 1, {{{1, 2, 640, 640}, "output"}}},
    {"semantic", 640, 3, 3, 1, {{{1, 3, 640, 640}, "output"}}},
    {"semantic",
     640,
     0,
     3,
     1,
     {{{1, 3, 640, 640}, "output"}},
     .facts = {.ending = {{SAC_ENDS_SOFTMAX, 0}}}},
    {"semantic",
     640,
     0,
     3,
     1,
     {{{1, 3, 640, 640}, "output"}},
     .facts = {.ending = {{.kind = SAC_ENDS_LINEAR, .enlarged = true}}}},
    /* of open size, without names: torchvision with its auxiliary classifier */
    {"semantic", 0, 0, 21, 2, {{{-1, 21, -1, -1}, "536"}, {{-1, 21, -1, -1}, "550"}}, true},
    /* BiSeNet as it is trained; its names; without names, of one shape */
    {"semantic",
     640,
     0,
     19,
     3,
     {{{1, 19, 640, 640}, "out"}, {{1, 19, 640, 640}, "aux16"}, {{1, 19, 640, 640}, "aux32"}}},
    {"semantic",
     640,
     0,
     19,
     3,
     {{{1, 19, 640, 640}, "preds"}, {{1, 19, 640, 640}, "1201"}, {{1, 19, 640, 640}, "1207"}}},
    /* transformers with its hidden states */
    {"semantic",
     512,
     0,
     150,
     3,
     {{{1, 150, 128, 128}, "logits"}, {{1, 32, 128, 128}, "h0"}, {{1, 64, 64, 64}, "h1"}}},
    /* ArgMax inside: with and without a batch, of known and unknown classes; as float */
    {"semantic",
     512,
     0,
     19,
     1,
     {{{1, 512, 512}, "output"}},
     .facts = {.whole = 1, .ending = {{SAC_ENDS_CHOICE, 19}}}},
    {"semantic", 512, 0, 0, 1, {{{1, 1, 512, 512}, "output"}}, .facts = {.whole = 1}},
    {"semantic", 512, 0, 0, 1, {{{512, 512}, "output"}}, .facts = {.whole = 1}},
    {"semantic",
     512,
     0,
     19,
     1,
     {{{1, 512, 512}, "output"}},
     .facts = {.ending = {{SAC_ENDS_CHOICE, 19}}}},
    /* Mattes: MODNet, U2-Net, one class without a sigmoid, channels last, foreground beside */
    {"matte",
     512,
     0,
     0,
     1,
     {{{1, 1, 512, 512}, "output"}},
     .facts = {.ending = {{SAC_ENDS_SHARE, 0}}}},
    {"matte",
     0,
     0,
     0,
     1,
     {{{-1, 1, -1, -1}, "output"}},
     .facts = {.ending = {{SAC_ENDS_SHARE, 0}}}},
    {"matte",
     320,
     0,
     0,
     3,
     {{{1, 1, 320, 320}, "1959"}, {{1, 1, 320, 320}, "1960"}, {{1, 1, 320, 320}, "1961"}},
     .facts = {.ending = {{SAC_ENDS_SHARE, 0}, {SAC_ENDS_SHARE, 0}, {SAC_ENDS_SHARE, 0}}}},
    {"matte",
     512,
     0,
     0,
     1,
     {{{1, 1, 128, 128}, "output"}},
     .facts = {.ending = {{SAC_ENDS_LINEAR, 0}}}},
    {"matte",
     256,
     0,
     0,
     1,
     {{{1, 256, 256, 1}, "activation"}},
     .facts = {.ending = {{SAC_ENDS_SHARE, 0}}}},
    {"matte", 512, 0, 0, 2, {{{1, 3, 512, 512}, "fgr"}, {{1, 1, 512, 512}, "pha"}}},
    {"matte", 512, 0, 0, 1, {{{1, 512, 512}, "alpha"}}},
    /* Maps of other things: a picture, a larger one, depth, features, heatmaps, anchors, queries */
    {NULL,
     512,
     0,
     0,
     1,
     {{{1, 3, 512, 512}, "output"}},
     .facts = {.ending = {{SAC_ENDS_LINEAR, 0}}}},
    {NULL,
     256,
     0,
     0,
     1,
     {{{1, 3, 1024, 1024}, "output"}},
     .facts = {.ending = {{.enlarged = true}}}},
    {NULL,
     512,
     0,
     0,
     1,
     {{{1, 1, 512, 512}, "output"}},
     .facts = {.ending = {{SAC_ENDS_POSITIVE, 0}}}},
    {NULL, 512, 0, 0, 1, {{{1, 1, 512, 512}, "output"}}}, /* times the greatest depth */
    {NULL, 1024, 0, 0, 1, {{{1, 256, 64, 64}, "image_embeddings"}}},
    {NULL, 640, 0, 0, 1, {{{1, 512, 80, 80}, "output"}}},
    {NULL, 224, 0, 0, 1, {{{1, 2048, 7, 7}, "output"}}},
    {NULL, 256, 0, 0, 1, {{{1, 17, 64, 64}, "heatmaps"}}},
    {NULL, 0, 0, 0, 1, {{{-1, 255, -1, -1}, "output"}}},
    {NULL, 416, 0, 0, 2, {{{1, 255, 52, 52}, "a"}, {{1, 255, 26, 26}, "b"}}},
    {NULL, 640, 0, 0, 2, {{{1, 19, 80, 80}, "a"}, {{1, 19, 40, 40}, "b"}}},
    {NULL, 368, 0, 0, 2, {{{1, 38, 46, 46}, "pafs"}, {{1, 19, 46, 46}, "parts"}}},
    {NULL, 512, 0, 0, 2, {{{1, 100, 134}, "class_queries"}, {{1, 100, 128, 128}, "masks_queries"}}},
    {NULL,
     256,
     0,
     0,
     2,
     {{{1, 20, 20}, "class_queries_logits"}, {{1, 20, 64, 64}, "masks_queries_logits"}}},
    {NULL, 0, 0, 0, 1, {{{-1, 257, 384}, "output"}}, true, {.ending = {{SAC_ENDS_LINEAR, 0}}}},
    {NULL, 0, 0, 0, 1, {{{-1, -1, -1}, "output"}}, true, {.ending = {{SAC_ENDS_LINEAR, 0}}}},
    {NULL, 640, 80, 0, 1, {{{1, 21, 640, 640}, "map"}}}, /* 80 names of 21 classes */
    /* What only looks like a detector */
    /* DINOv2 */
    {NULL, 0, 0, 0, 1, {{{-1, 257, 384}, "last_hidden_state"}}, true},
    {NULL,
     224,
     0,
     0,
     2,
     {{{-1, 197, 768}, "last_hidden_state"}, {{-1, 768}, "pooler_output"}},
     true},
    {NULL, 518, 0, 0, 1, {{{1, 518, 518}, "predicted_depth"}}},
    /* a classifier of six */
    {NULL, 640, 0, 0, 1, {{{-1, 6}, "output"}}, true},
    {NULL, 640, 0, 0, 1, {{{1, 6}, "output"}}},
    {NULL, 640, 0, 0, 1, {{{1, 7}, "output"}}},
    {NULL, 1024, 15, 0, 1, {{{1, 20, 21504}, "output0"}}, .facts = {.task = SAC_TASK_ORIENTED}},
    {NULL, 1024, 0, 0, 1, {{{1, 20, 21504}, "output0"}}, .facts = {.angles = true}},
    {NULL, 1024, 15, 0, 1, {{{1, 20, 21504}, "output0"}}}, /* 16 columns, 15 names */
    {NULL, 640, 15, 0, 1, {{{1, 300, 7}, "output0"}}, .facts = {.task = SAC_TASK_ORIENTED}},
    {NULL, 640, 0, 0, 1, {{{1, 300, 7}, "output0"}}},
    {NULL, 640, 80, 0, 1, {{{1, 116, 8400}, "output0"}}}, /* masks of unknown kind */
    {NULL, 640, 80, 0, 2, {{{1, 84, 8400}, "output0"}, {{1, 10}, "other"}}},
    /* YOLO-NAS: wants NMS */
    {NULL, 640, 0, 0, 2, {{{1, 8400, 4}, "boxes"}, {{1, 8400, 80}, "scores"}}},
    {NULL, 256, 0, 0, 2, {{{1, 1344, 4}, "boxes"}, {{1, 1344, 80}, "scores"}}},
    {NULL, 640, 0, 0, 3, {{{1, 100, 256}, "a"}, {{1, 100, 4}, "b"}, {{1, 100, 32}, "c"}}},
    {NULL, 112, 0, 0, 3, {{{1, 4}, "box"}, {{1}, "label"}, {{1}, "score"}}}, /* one box a picture */
    {NULL, 640, 0, 0, 1, {{{1, 300, 38}, "output0"}}},
    {NULL, 640, 0, 0, 1, {{{1, 300, 58}, "output0"}}},
    {NULL, 640, 0, 0, 2, {{{1, 300, 5}, "dets"}, {{1, 200}, "labels"}}, .facts = {.whole = 2}},
    {NULL, 256, 0, 0, 2, {{{1, 17, 3}, "keypoints"}, {{1, 17}, "scores"}}},
    /* clang-format on */
};

static struct sac_head_view view_of(const struct known *k)
{
    struct sac_head_view v = {
        .width = k->size, .height = k->size, .output_count = k->count, .facts = k->facts};
    v.batch_open = k->batch_open;
    v.facts.names = k->names;
    for (int i = 0; i < k->count; i++) {
        v.output[i].name = k->output[i].name;
        v.output[i].desc.dtype = SAC_F32;
        while (v.output[i].desc.rank < 5 && k->output[i].dims[v.output[i].desc.rank]) {
            int d = v.output[i].desc.rank++;
            v.output[i].desc.shape[d] = k->output[i].dims[d];
        }
    }
    v.facts.flat = v.output[0].desc.rank == 2;
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
    assert_int_equal(rows, 12);
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
