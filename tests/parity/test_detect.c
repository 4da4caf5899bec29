/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes that a device makes of an output tensor: the CPU's are what was asked for, the CUDA
 * device's equal them, box by box and bit by bit. */
#include <stdio.h>

#include "vision/detect.h"
#include "heads/heads.h"
#include "tests/gpu.h"
#include "tests/parity/bytes.h"
#include "tests/vision/frames.h"

static sac_device *cpu;

static int open_cpu(void **state)
{
    (void)state;
    cpu = test_device();
    return 0;
}

static int close_cpu(void **state)
{
    (void)state;
    sac_device_unref(&cpu);
    return 0;
}

/* ---- cases ---- */

enum { IMAGES_MAX = 5, NAMES = 80 };

struct subject {
    const struct sac_head *head;
    struct sac_head_tensor tensor[SAC_DETECT_TENSORS_MAX]; /* of one image; data of the first */
    enum sac_dtype         dtype[SAC_DETECT_TENSORS_MAX];
    int                    count, width, height;
    struct sac_head_facts  facts;
    struct sac_detect_spec spec;
    struct sac_fit_map     maps[IMAGES_MAX];
    int                    wanted[64], wanted_count, n;
    float                 *numbers[SAC_DETECT_TENSORS_MAX]; /* [n][image] */
    void                  *stored[SAC_DETECT_TENSORS_MAX];  /* the same, in the tensor's dtype */
};

/* How the numbers of one image are. */
struct mood {
    bool raw;     /* YOLOX as trained; scores as logits; boxes in pixels */
    bool many;    /* most cells are boxes */
    bool strange; /* here and there what no network should say */
    int  rows;    /* the rest is behind the end */
};

static float unit(void)
{
    return (float)test_between(0, 10000) / 10000;
}

/* To nearest, well inside the range of normal halves. */
static uint16_t half_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude < 0x38800000)
        return (uint16_t)sign;
    return (uint16_t)(sign | ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13));
}

static float strange(float v)
{
    static const float list[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e30f, -5, 0, 65504};
    return test_between(0, 2000) ? v : list[test_between(0, 7)];
}

static float place(int size)
{
    return (float)test_between(0, size * 4) / 4;
}

static float score(const struct mood *m, bool quiet)
{
    float v = (float)test_between(0, 40) / 40;
    return quiet && !m->many && test_between(0, 60) ? v * 0.05f : v;
}

static float logit(const struct mood *m)
{
    return m->many || test_between(0, 60) == 0 ? unit() * 4 - 1 : unit() * 3 - 7;
}

static float share(float v, bool pixels, int size)
{
    return pixels ? v * (float)size : v;
}

/* Number k of a cell, by head. */
static float of_yolo(const struct subject *s, const struct mood *m, int k)
{
    const bool yolox = s->head == &sac_head_yolox, objectness = s->head != &sac_head_yolov8;
    if (k < 2)
        return yolox && m->raw ? unit() * 3 - 1 : place(k ? s->height : s->width);
    if (k < 4)
        return yolox && m->raw ? unit() * 4 - 1 : unit() * 90;
    return score(m, k == 4 || !objectness);
}

static float of_end2end(const struct subject *s, const struct mood *m, int k)
{
    if (s->facts.paddle) /* class, score, box */
        k = (k + 4) % 6 == 4 ? 5 : (k + 4) % 6 == 5 ? 4 : k - 2;
    if (k < 4)
        return place(k % 2 ? s->height : s->width) / 2 + (k < 2 ? 0 : 20);
    return k == 4 ? score(m, true) : (float)test_between(0, 9);
}

static float of_ssd(const struct subject *s, const struct mood *m, int row, int k)
{
    if (k < 3)
        return k == 0   ? (row < m->rows ? 0.0f : -1.0f)
               : k == 1 ? (float)test_between(0, 9)
                        : score(m, true);
    return share((float)test_between(0, 64) / 128 + (k < 5 ? 0 : 0.3f), false,
                 k % 2 ? s->width : s->height);
}

static float of_boxes(const struct subject *s, const struct mood *m, int tensor, int k)
{
    if (s->tensor[tensor].rank == 1 && !strstr(s->tensor[tensor].name, "score"))
        return (float)test_between(0, 9);
    if (s->tensor[tensor].rank == 1 || k == 4)
        return score(m, true);
    return share((float)test_between(0, 64) / 128 + (k < 2 ? 0 : 0.3f), m->raw,
                 k % 2 ? s->height : s->width);
}

static float of_detr(const struct subject *s, const struct mood *m, int tensor, int k)
{
    if (s->count == 1 ? k < 4 : s->tensor[tensor].shape[1] == 4)
        return k < 2 ? (float)test_between(0, 64) / 64 : unit() / 2;
    return m->raw ? logit(m) : score(m, true);
}

static float of_nanodet(const struct subject *s, const struct mood *m, int tensor, int k)
{
    if (s->count == 1 ? k < s->facts.names : strstr(s->tensor[tensor].name, "cls") != NULL)
        return m->raw ? logit(m) : score(m, true);
    return unit() * 8 - 4;
}

static float number_of(const struct subject *s, const struct mood *m, int tensor, int row, int k)
{
    if (s->head == &sac_head_nanodet)
        return of_nanodet(s, m, tensor, k);
    if (s->head == &sac_head_detr)
        return of_detr(s, m, tensor, k);
    if (s->head == &sac_head_ssd)
        return of_ssd(s, m, row, k);
    if (s->head == &sac_head_boxes)
        return of_boxes(s, m, tensor, k);
    return s->head == &sac_head_end2end ? of_end2end(s, m, k) : of_yolo(s, m, k);
}

static size_t image_numbers(const struct subject *s, int tensor)
{
    size_t n = 1;
    for (int i = 0; i < s->tensor[tensor].rank; i++)
        n *= (size_t)s->tensor[tensor].shape[i];
    return n;
}

static void store(struct subject *s, int tensor, size_t at, float v)
{
    char *stored = s->stored[tensor];
    float seen = v;
    switch (s->dtype[tensor]) {
    case SAC_F16:
        ((uint16_t *)(void *)stored)[at] = half_of(fminf(fmaxf(v, -60000), 60000));
        seen = sac_float_of_half(((uint16_t *)(void *)stored)[at]);
        break;
    case SAC_I32: ((int32_t *)(void *)stored)[at] = (int32_t)v; break;
    case SAC_I64: ((int64_t *)(void *)stored)[at] = (int64_t)v; break;
    default: ((float *)(void *)stored)[at] = v; break;
    }
    s->numbers[tensor][at] = seen;
}

/* One image of a tensor [rows, columns], or [columns, rows] where it stands upright. Rows repeat
 * now and then: of finished boxes those that are equal must become one. */
static void fill_image(struct subject *s, const struct mood *m, int tensor, size_t first)
{
    const struct sac_head_tensor *t = &s->tensor[tensor];
    const bool upright = s->head == &sac_head_yolov8 && t->shape[0] == s->spec.classes + 4;
    const int  columns = t->rank == 1 ? 1 : (int)t->shape[upright ? 0 : t->rank - 1];
    const int  rows = (int)(image_numbers(s, tensor) / (size_t)columns);
    const bool whole = s->dtype[tensor] == SAC_I32 || s->dtype[tensor] == SAC_I64;
    const bool finished = s->spec.form == SAC_DETECT_ROWS && columns > 1;
    for (int row = 0; row < rows; row++) {
        const bool again = finished && row && test_between(0, 5) == 0;
        for (int k = 0; k < columns; k++) {
            size_t at = first + (upright ? (size_t)(k * rows + row) : (size_t)(row * columns + k));
            float  v = number_of(s, m, tensor, row, k);
            if (again && (columns == 4 || (columns == 6 ? k < 4 : k > 2)))
                v = s->numbers[tensor][at - (size_t)columns];
            /* what must stay raw stays */
            else if (m->strange && !whole && (k >= 4 || !(s->head == &sac_head_yolox && m->raw)))
                v = strange(v);
            store(s, tensor, at, v);
        }
    }
}

static void subject_fill(struct subject *s)
{
    for (int t = 0; t < s->count; t++) {
        const size_t all = (size_t)s->n * image_numbers(s, t);
        s->numbers[t] = sac_alloc(all * sizeof *s->numbers[t]);
        s->stored[t] = sac_alloc(all * sac_dtype_bytes(s->dtype[t]));
        assert_true(s->numbers[t] && s->stored[t]);
    }
    for (int image = 0; image < s->n; image++) {
        const struct mood m = {test_between(0, 1), test_between(0, 9) == 0, test_between(0, 2) == 0,
                               test_between(0, s->spec.cells)};
        for (int t = 0; t < s->count; t++)
            fill_image(s, &m, t, (size_t)image * image_numbers(s, t));
    }
}

/* ---- shapes, by head ---- */

static void add_tensor(struct subject *s, const char *name, int64_t rows, int64_t columns)
{
    s->tensor[s->count++] =
        (struct sac_head_tensor){.name = name, .rank = columns ? 2 : 1, .shape = {rows, columns}};
}

static void shape_cells(struct subject *s, int classes)
{
    const int64_t cells = sac_grid_of(s->width, s->height, 3).cells;
    const int64_t columns = classes + (s->head == &sac_head_yolov8 ? 4 : 5);
    if (s->head == &sac_head_yolov8 && test_between(0, 1))
        add_tensor(s, "out", columns, cells);
    else
        add_tensor(s, "out", s->head == &sac_head_yolov5 ? cells * 3 : cells, columns);
}

static void shape_nanodet(struct subject *s, int classes)
{
    static const char *const cls[] = {"cls8", "cls16", "cls32", "cls64"}, *const dis[] = {
                                                                              "d8", "d16", "d32",
                                                                              "d64"};
    const int             levels = test_between(3, 4), bins = test_between(0, 1) ? 8 : 5;
    const struct sac_grid g = sac_grid_of(s->width, s->height, levels);
    s->facts.names = classes;
    const int  last = levels - 1; /* maps of equal size could not be told apart */
    const bool distinct = g.columns[last] * g.rows[last] != g.columns[last - 1] * g.rows[last - 1];
    if (!distinct || test_between(0, 1)) {
        add_tensor(s, "out", g.cells, classes + 4 * bins);
        return;
    }
    for (int i = 0; i < levels; i++) {
        add_tensor(s, cls[i], (int64_t)g.columns[i] * g.rows[i], classes);
        add_tensor(s, dis[i], (int64_t)g.columns[i] * g.rows[i], 4 * bins);
    }
}

static void shape_boxes(struct subject *s)
{
    const int  rows = test_between(1, 300);
    const bool scored = test_between(0, 1);
    add_tensor(s, "labels", rows, 0);
    add_tensor(s, test_between(0, 2) ? "boxes" : "detection_boxes", rows, scored ? 5 : 4);
    if (!scored)
        add_tensor(s, "scores", rows, 0);
    s->dtype[0] = (enum sac_dtype[]){SAC_I64, SAC_I32, SAC_F32}[test_between(0, 2)];
    s->facts.sized = test_between(0, 1);
}

static void shape_end2end(struct subject *s)
{
    s->facts.paddle = test_between(0, 3) == 0;
    s->facts.keypoints = s->facts.paddle ? 0 : test_between(0, 5);
    add_tensor(s, "out", test_between(1, 300), 6 + s->facts.keypoints);
}

static void shape_detr(struct subject *s, int classes)
{
    const int queries = test_between(1, 300);
    if (test_between(0, 2) == 0) {
        add_tensor(s, "out", queries, 4 + classes);
        return;
    }
    const bool first = test_between(0, 1);
    s->facts.names = test_between(0, 1) ? classes : 0; /* then one column says "no object" */
    if (first)
        add_tensor(s, "boxes", queries, 4);
    add_tensor(s, "scores", queries, classes + (s->facts.names > 0));
    if (!first)
        add_tensor(s, "boxes", queries, 4);
}

static void shape(struct subject *s, int classes_max)
{
    /* no count that the four of a box could be taken for */
    const int classes = test_between(0, 4) ? test_between(5, classes_max) : 1;
    if (s->head == &sac_head_nanodet)
        shape_nanodet(s, classes);
    else if (s->head == &sac_head_detr)
        shape_detr(s, classes);
    else if (s->head == &sac_head_ssd)
        add_tensor(s, "out", test_between(1, 300), 7);
    else if (s->head == &sac_head_boxes)
        shape_boxes(s);
    else if (s->head == &sac_head_end2end)
        shape_end2end(s);
    else
        shape_cells(s, classes);
}

static struct sac_head_input input_of(const struct subject         *s,
                                      const struct sac_head_tensor *tensors)
{
    return (struct sac_head_input){tensors, s->count, s->width, s->height, s->spec.score_min};
}

static void choose_classes(struct subject *s)
{
    const int some = test_between(0, 2) ? 0 : test_between(0, 2) ? test_between(1, 64) : 1;
    const int classes = s->spec.form == SAC_DETECT_ROWS ? 10 : s->spec.classes;
    for (int i = 0; i < some; i++)
        s->wanted[s->wanted_count++] = test_between(0, classes - 1);
    for (int i = 0; i < s->wanted_count; i++)
        s->spec.wanted[s->wanted[i] / 32] |= 1u << (s->wanted[i] % 32);
    s->spec.all_classes = s->wanted_count == 0;
}

static void subject_init(struct subject *s, int round, int side_max, int classes_max)
{
    static const struct sac_head *const heads[] = {
        &sac_head_yolox, &sac_head_yolov8,  &sac_head_yolov5, &sac_head_nanodet,
        &sac_head_detr,  &sac_head_end2end, &sac_head_ssd,    &sac_head_boxes};
    *s = (struct subject){.head = heads[(size_t)round % SAC_COUNT(heads)]};
    s->width = test_between(1, side_max / 32) * 32;
    s->height = test_between(1, side_max / 32) * 32;
    s->n = test_between(1, IMAGES_MAX);
    shape(s, classes_max);
    for (int i = 0; i < s->count; i++)
        if (s->dtype[i] == SAC_DTYPE_NONE)
            s->dtype[i] = test_between(0, 1) ? SAC_F16 : SAC_F32;
    s->spec.tensor_count = s->count;
    s->spec.input_width = s->width;
    s->spec.input_height = s->height;
    s->spec.score_min = (float)test_between(0, 60) / 100;
    s->spec.nms_iou = (float)test_between(0, 100) / 100;
    s->spec.nms = s->head->needs_nms;
    const struct sac_head_input in = input_of(s, s->tensor);
    assert_true(s->head->layout(&in, &s->facts, &s->spec));
    sac_detect_set_dtypes(&s->spec, s->dtype);
    s->spec.keep = test_between(1, SAC_MIN(300, s->spec.cells));
    choose_classes(s);
    for (int i = 0; i < s->n; i++)
        s->maps[i] =
            (struct sac_fit_map){0.1f + unit() * 2, 0.1f + unit() * 2, unit() * 50, unit() * 50};
    subject_fill(s);
}

static void subject_finish(struct subject *s)
{
    for (int t = 0; t < s->count; t++) {
        sac_free(s->numbers[t]);
        sac_free(s->stored[t]);
    }
}

/* ---- boxes ---- */

static void by_device(sac_device *dev, const struct subject *s, struct sac_detections *found)
{
    const size_t       out_bytes = sac_detect_out_bytes(&s->spec, s->n);
    struct sac_buffer *in[SAC_DETECT_TENSORS_MAX] = {NULL}, *out = NULL;
    const void        *tensors[SAC_DETECT_TENSORS_MAX];
    assert_sac_ok(sac_buffer_create(dev, out_bytes, "boxes", &out));
    void *poison = sac_alloc(out_bytes);
    assert_non_null(poison);
    memset(poison, 0x5b, out_bytes);
    for (int t = 0; t < s->count; t++) {
        const size_t all = (size_t)s->n * image_numbers(s, t) * sac_dtype_bytes(s->dtype[t]);
        assert_sac_ok(sac_buffer_create(dev, all, "tensor", &in[t]));
        assert_sac_ok(sac_device_copy(dev, NULL, sac_buffer_data(in[t]), s->stored[t], all,
                                      SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "test"));
        tensors[t] = sac_buffer_data(in[t]);
    }
    assert_sac_ok(sac_device_copy(dev, NULL, sac_buffer_data(out), poison, out_bytes,
                                  SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "test"));
    assert_sac_ok(
        sac_detect_run(dev, NULL, &s->spec, tensors, s->maps, s->n, sac_buffer_data(out)));
    assert_sac_ok(sac_detect_fetch(dev, NULL, &s->spec, sac_buffer_data(out), s->n, found));
    sac_free(poison);
    for (int t = 0; t < s->count; t++)
        sac_buffer_unref(&in[t]);
    sac_buffer_unref(&out);
}

static void compare(const struct subject *s, int round, int image,
                    const struct sac_detections *want, const struct sac_detections *got)
{
    char what[200];
    snprintf(what, sizeof what,
             "round %d, image %d of %d: %s %dx%d, %d cells, %d classes, %d tensors of %s", round,
             image, s->n, s->head->name, s->width, s->height, s->spec.cells, s->spec.classes,
             s->count, sac_dtype_name(s->dtype[0]));
    if (want->count != got->count)
        fail_msg("%s: %zu boxes, expected %zu", what, got->count, want->count);
    for (size_t i = 0; i < want->count; i++) {
        const struct sac_detection *a = &want->items[i], *b = &got->items[i];
        if (memcmp(a, b, sizeof *a) != 0)
            fail_msg("%s: box %zu is %.9g %.9g %.9g %.9g, %.9g, %d, expected %.9g %.9g %.9g %.9g, "
                     "%.9g, %d",
                     what, i, (double)b->x0, (double)b->y0, (double)b->x1, (double)b->y1,
                     (double)b->score, b->class_id, (double)a->x0, (double)a->y0, (double)a->x1,
                     (double)a->y1, (double)a->score, a->class_id);
    }
}

static void finish_all(struct sac_detections list[IMAGES_MAX])
{
    for (int i = 0; i < IMAGES_MAX; i++)
        sac_detections_finish(&list[i]);
}

static void check_list(const struct subject *s, const struct sac_detections *list)
{
    assert_true(list->count <= (size_t)s->spec.keep);
    for (size_t i = 0; i < list->count; i++) {
        const struct sac_detection *d = &list->items[i];
        assert_true(d->score >= s->spec.score_min && d->score <= 1 && d->x1 > d->x0 &&
                    d->y1 > d->y0 && sac_detect_wants(&s->spec, d->class_id));
        for (size_t k = 0; k < i; k++)
            assert_true(sac_detect_order(&list->items[k], d) <= 0 &&
                        !sac_detect_excludes(&s->spec, &list->items[k], d));
    }
}

/* Of every head: what is asked for, best first, none twice. What the boxes are is heads/heads'. */
static void boxes_are_listed_best_first(void **state)
{
    (void)state;
    enum { HEADS = 8 };
    size_t boxes[HEADS] = {0};
    for (int round = 0; round < 50 * HEADS; round++) {
        struct subject        s;
        struct sac_detections got[IMAGES_MAX] = {{0}};
        subject_init(&s, round, 160, 20);
        by_device(cpu, &s, got);
        for (int i = 0; i < s.n; i++) {
            check_list(&s, &got[i]);
            boxes[round % HEADS] += got[i].count;
        }
        finish_all(got);
        subject_finish(&s);
    }
    for (int head = 0; head < HEADS; head++)
        if (boxes[head] < 300)
            fail_msg("head %d: only %zu boxes", head, boxes[head]);
}

static void check_gpu(int rounds, int side_max, int classes_max)
{
    sac_device *gpu = gpu_open(NULL);
    for (int round = 0; round < gpu_rounds(rounds); round++) {
        struct subject        s;
        struct sac_detections want[IMAGES_MAX] = {{0}}, got[IMAGES_MAX] = {{0}};
        subject_init(&s, round, side_max, classes_max);
        by_device(cpu, &s, want);
        by_device(gpu, &s, got);
        for (int i = 0; i < s.n; i++)
            compare(&s, round, i, &want[i], &got[i]);
        finish_all(want);
        finish_all(got);
        subject_finish(&s);
    }
    sac_device_unref(&gpu);
}

static void the_gpu_gives_the_boxes_of_the_cpu(void **state)
{
    (void)state;
    check_gpu(350, 320, 40);
}

static void also_of_large_inputs(void **state)
{
    (void)state;
    check_gpu(21, 1280, 90);
}

static void refuses_what_has_no_room(void **state)
{
    (void)state;
    struct sac_detect_spec       s = {.tensor_count = 1, .cells = 9, .classes = 1, .keep = 1};
    const void                  *tensors[] = {&s};
    enum sac_dtype               dtype = SAC_F32;
    const struct sac_device_ops *usual = cpu->ops;
    struct sac_device_ops        small = *usual;
    small.detect_cells_max = 8;
    cpu->ops = &small;
    sac_detect_set_dtypes(&s, &dtype);
    assert_sac_error(sac_detect_run(cpu, NULL, &s, tensors, NULL, 1, &s), SAC_ERR_UNSUPPORTED);
    cpu->ops = usual;
    s.cells = 8;
    dtype = SAC_U8;
    sac_detect_set_dtypes(&s, &dtype);
    assert_sac_error(sac_detect_run(cpu, NULL, &s, tensors, NULL, 1, &s), SAC_ERR_UNSUPPORTED);
    dtype = SAC_F32;
    sac_detect_set_dtypes(&s, &dtype);
    s.score[0].tensor = 1;
    assert_sac_error(sac_detect_run(cpu, NULL, &s, tensors, NULL, 1, &s), SAC_ERR_ARG);
    s.score[0].tensor = 0;
    s.keep = 9;
    assert_sac_error(sac_detect_run(cpu, NULL, &s, tensors, NULL, 1, &s), SAC_ERR_ARG);
    s.keep = 8;
    assert_sac_ok(sac_detect_run(cpu, NULL, &s, tensors, NULL, 0, NULL));
    assert_sac_ok(sac_detect_fetch(cpu, NULL, &s, NULL, 0, NULL));
}

/* ---- lists as they cross to the host ---- */

enum { LISTS_MAX = 32, ROWS = 40, COLUMNS = 6 };

/* Finished rows of images far apart, so many of each at its front; all of one class, or of two. */
struct rows {
    float                  numbers[LISTS_MAX][ROWS][COLUMNS];
    int                    n, count[LISTS_MAX], classes;
    struct sac_fit_map     maps[LISTS_MAX];
    struct sac_detect_spec spec;
};

static void rows_init(struct rows *r, int n, int classes, int most)
{
    const int64_t image = (int64_t)ROWS * COLUMNS;
    *r = (struct rows){.n = n, .classes = classes};
    r->spec = (struct sac_detect_spec){.form = SAC_DETECT_ROWS,
                                       .tensor_count = 1,
                                       .input_width = 640,
                                       .input_height = 640,
                                       .cells = ROWS,
                                       .classes = 80,
                                       .box = {{0, SAC_F32, 0, image, COLUMNS, 1}},
                                       .score = {{0, SAC_F32, 4, image, COLUMNS, 1}},
                                       .label = {0, SAC_F32, 5, image, COLUMNS, 1},
                                       .score_min = 0.1f,
                                       .keep = ROWS};
    r->spec.wanted[1] = classes > 1 ? 1u << 5 | 1u << 7 : 1u << 5;
    for (int i = 0; i < n; i++) {
        r->maps[i] = (struct sac_fit_map){1, 1, 0, 0};
        r->count[i] = test_between(0, most);
        for (int k = 0; k < r->count[i]; k++) {
            float *row = r->numbers[i][k];
            row[0] = (float)(i * 100 + k);
            row[1] = (float)k;
            row[2] = row[0] + 9;
            row[3] = row[1] + 7;
            row[4] = 0.9f - (float)k * 0.01f;
            row[5] = k % 2 && classes > 1 ? 39 : 37;
        }
    }
}

static void expect_rows(const struct rows *r, const struct sac_detections *found)
{
    for (int i = 0; i < r->n; i++) {
        assert_int_equal(found[i].count, r->count[i]);
        for (int k = 0; k < r->count[i]; k++) {
            const struct sac_detection *d = &found[i].items[k];
            assert_memory_equal(d, r->numbers[i][k], 5 * sizeof(float));
            assert_int_equal(d->class_id, (int)r->numbers[i][k][5]);
        }
    }
}

/* From fewer boxes expected than there are, which takes a second copy, to more. */
static void fetch_rows(sac_device *dev, struct rows *r, size_t expected)
{
    struct sac_detections found[LISTS_MAX] = {{0}};
    struct sac_buffer    *in = test_room(dev, sizeof r->numbers), *host = NULL,
                      *out = test_room(dev, sac_detect_out_bytes(&r->spec, r->n));
    const void *tensors[] = {sac_buffer_data(in)};
    test_write(dev, in, r->numbers, sizeof r->numbers);
    assert_sac_ok(
        sac_host_buffer_create(dev, sac_detect_out_bytes(&r->spec, r->n), "boxes", &host));
    assert_sac_ok(
        sac_detect_run(dev, NULL, &r->spec, tensors, r->maps, r->n, sac_buffer_data(out)));
    assert_sac_ok(sac_detect_fetch_begin(dev, NULL, &r->spec, sac_buffer_data(out), r->n, expected,
                                         sac_buffer_data(host)));
    assert_sac_ok(sac_device_wait(dev));
    assert_sac_ok(sac_detect_fetch_end(dev, NULL, &r->spec, sac_buffer_data(out), r->n, &expected,
                                       sac_buffer_data(host), found));
    expect_rows(r, found);
    for (int i = 0; i < r->n; i++)
        sac_detections_finish(&found[i]);
    sac_buffer_unref(&in);
    sac_buffer_unref(&out);
    sac_buffer_unref(&host);
}

static void lists_arrive_whole(void **state)
{
    static const size_t expected[] = {0, 1, 30, LISTS_MAX * ROWS};
    static struct rows  r;
    sac_device         *gpu = gpu_open(NULL);
    (void)state;
    for (int i = 0; i < 24; i++) {
        rows_init(&r, i % 2 ? LISTS_MAX : 1, 1 + i / 2 % 2, i / 4 % 3 ? ROWS : 0);
        for (size_t k = 0; k < SAC_COUNT(expected); k++) {
            fetch_rows(cpu, &r, expected[k]);
            fetch_rows(gpu, &r, expected[k]);
        }
    }
    sac_device_unref(&gpu);
}

static void one_class_need_not_cross(void **state)
{
    struct sac_detect_spec s = {.form = SAC_DETECT_CENTRE, .classes = 80};
    (void)state;
    assert_int_equal(sac_detect_only_class(&s), -1);
    s.wanted[2] = 1u << 31;
    assert_int_equal(sac_detect_only_class(&s), 95);
    assert_int_equal(sac_detect_box_bytes(&s), 20);
    s.origins = true;
    assert_int_equal(sac_detect_box_bytes(&s), 24);
    s.wanted[2] |= 1;
    assert_int_equal(sac_detect_only_class(&s), -1);
    s.wanted[2] = s.wanted[63] = 1;
    assert_int_equal(sac_detect_only_class(&s), -1);
    s.wanted[2] = 0;
    assert_int_equal(sac_detect_only_class(&s), SAC_DETECT_CLASSES_MAX - 32);
    s.all_classes = true;
    assert_int_equal(sac_detect_only_class(&s), -1);
    s.classes = 1;
    assert_int_equal(sac_detect_only_class(&s), 0);
    s.form = SAC_DETECT_ROWS; /* whose labels say what they like */
    assert_int_equal(sac_detect_only_class(&s), -1);
}

/* Against the C library's, over all that it takes. */
static void the_exponential_is_one(void **state)
{
    (void)state;
    for (float x = -86; x < 88; x += 0.00097f)
        if (fabs((double)sac_exp(x) / exp((double)x) - 1) > 3e-7)
            fail_msg("e^%.9g is %.9g", (double)x, (double)sac_exp(x));
    assert_true(sac_exp(0) == 1.0f && sac_exp(-200) == 0 && sac_exp(NAN) == 0 &&
                isinf(sac_exp(100)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exponential_is_one),
        cmocka_unit_test(refuses_what_has_no_room),
        cmocka_unit_test(one_class_need_not_cross),
        cmocka_unit_test(lists_arrive_whole),
        cmocka_unit_test(boxes_are_listed_best_first),
        cmocka_unit_test(the_gpu_gives_the_boxes_of_the_cpu),
        cmocka_unit_test(also_of_large_inputs),
    };
    return cmocka_run_group_tests_name("parity/detect", tests, open_cpu, close_cpu);
}
