/* SPDX-License-Identifier: Apache-2.0 */
/* Maps that a device makes of boxes, coefficients and prototypes, and the sums of each box: the
 * CPU's are those of the formula in double precision, the CUDA device's equal them bit by bit. The
 * cells that boxes came from too. */
#include <math.h>
#include <stdio.h>

#include "vision/instances.h"
#include "tests/gpu.h"
#include "tests/parity/bytes.h"
#include "tests/vision/frames.h"

enum { IMAGES_MAX = 5, KEEP_MAX = 60, TENSORS = 2 };

/* How a network's rows are: box, scores, coefficients. */
enum form { UPRIGHT, ROWS, FINISHED };

struct subject {
    enum form                 form;
    int                       n, before;        /* numbers of a cell before its coefficients */
    size_t                    numbers[TENSORS]; /* of an image */
    enum sac_dtype            dtype[TENSORS];
    float                    *value[TENSORS]; /* as they are stored */
    void                     *stored[TENSORS];
    struct sac_detect_spec    boxes;
    struct sac_instances_spec spec;
    struct sac_fit_map        maps[IMAGES_MAX];
    struct sac_instances_sums sums; /* no room: not asked */
};

/* What a device makes of it. */
struct result {
    unsigned char *found;
    float         *map, *sums;
};

/* ---- subjects ---- */

static float unit(void)
{
    return (float)test_between(0, 10000) / 10000;
}

static uint16_t half_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude < 0x38800000)
        return (uint16_t)sign;
    return (uint16_t)(sign | ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13));
}

static float strange(float v)
{
    static const float list[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e30f, -65000};
    return test_between(0, 400) ? v : list[test_between(0, 5)];
}

static void store(struct subject *s, int tensor, size_t at, float v)
{
    if (s->dtype[tensor] == SAC_F16) {
        uint16_t *half = s->stored[tensor];
        half[at] = isfinite(v) ? half_of(fminf(fmaxf(v, -60000), 60000)) : 0x7e00;
        v = sac_float_of_half(half[at]);
    } else {
        ((float *)s->stored[tensor])[at] = v;
    }
    s->value[tensor][at] = v;
}

static size_t place(const struct subject *s, int image, int cell, int number)
{
    const size_t all = (size_t)s->before + (size_t)s->spec.numbers, cells = (size_t)s->boxes.cells;
    return (size_t)image * s->numbers[0] + (s->form == UPRIGHT
                                                ? (size_t)number * cells + (size_t)cell
                                                : (size_t)cell * all + (size_t)number);
}

static void fill_cell(struct subject *s, int image, int cell, bool odd)
{
    const float w = (float)s->spec.input_width, h = (float)s->spec.input_height;
    const float x = unit() * w, y = unit() * h, wide = 2 + unit() * w / 2,
                high = 2 + unit() * h / 2;
    float head[32];
    for (int k = 0; k < s->before; k++)
        head[k] = test_between(0, 5) ? unit() * 0.3f : unit();
    head[0] = s->form == FINISHED ? x - wide / 2 : x;
    head[1] = s->form == FINISHED ? y - high / 2 : y;
    head[2] = s->form == FINISHED ? x + wide / 2 : wide;
    head[3] = s->form == FINISHED ? y + high / 2 : high;
    if (s->form == FINISHED)
        head[5] = (float)test_between(0, 9);
    for (int k = 0; k < s->before; k++)
        store(s, 0, place(s, image, cell, k), head[k]);
    for (int k = 0; k < s->spec.numbers; k++) {
        const float v = unit() * 2 - 1;
        store(s, 0, place(s, image, cell, s->before + k), odd ? strange(v) : v);
    }
}

static void fill(struct subject *s, bool odd)
{
    for (int t = 0; t < TENSORS; t++) {
        s->value[t] = calloc((size_t)s->n * s->numbers[t], sizeof(float));
        s->stored[t] = calloc((size_t)s->n * s->numbers[t], sizeof(float));
        assert_true(s->value[t] && s->stored[t]);
    }
    for (int image = 0; image < s->n; image++)
        for (int cell = 0; cell < s->boxes.cells; cell++)
            fill_cell(s, image, cell, odd);
    for (size_t i = 0; i < (size_t)s->n * s->numbers[1]; i++)
        store(s, 1, i, odd ? strange(unit() * 2 - 1) : unit() * 2 - 1);
}

static struct sac_detect_field field(const struct subject *s, int first)
{
    const int all = s->before + s->spec.numbers;
    return (struct sac_detect_field){.tensor = 0,
                                     .dtype = s->dtype[0],
                                     .first = (int64_t)place(s, 0, 0, first),
                                     .image = (int64_t)s->numbers[0],
                                     .cell = s->form == UPRIGHT ? 1 : all,
                                     .number = s->form == UPRIGHT ? s->boxes.cells : 1};
}

static void subject_init(struct subject *s, bool odd)
{
    const int classes = test_between(1, 12);
    *s = (struct subject){.form = (enum form)test_between(0, 2), .n = test_between(1, IMAGES_MAX)};
    s->spec = (struct sac_instances_spec){
        .width = test_between(1, 50),
        .height = test_between(1, 40),
        .input_width = test_between(1, 6) * 32,
        .input_height = test_between(1, 6) * 32,
        .numbers = test_between(0, 1) ? 32 : test_between(1, 48),
        .labels = test_between(0, 1),
    };
    s->before = s->form == UPRIGHT ? 4 + classes : s->form == ROWS ? 5 + classes : 6;
    s->boxes =
        (struct sac_detect_spec){.form = s->form == FINISHED ? SAC_DETECT_ROWS : SAC_DETECT_CENTRE,
                                 .tensor_count = TENSORS,
                                 .input_width = s->spec.input_width,
                                 .input_height = s->spec.input_height,
                                 .cells = test_between(1, 200),
                                 .classes = s->form == FINISHED ? 0 : classes,
                                 .objectness = s->form == ROWS,
                                 .score_min = 0.3f,
                                 .nms_iou = 0.7f,
                                 .nms = s->form != FINISHED,
                                 .all_classes = test_between(0, 2) > 0,
                                 .origins = true};
    s->boxes.keep = s->spec.keep = test_between(1, SAC_MIN(s->boxes.cells, KEEP_MAX));
    const int cells = s->spec.width * s->spec.height;
    s->sums = (struct sac_instances_sums){
        .room = test_between(0, 3)
                    ? test_between(0, 1) ? KEEP_MAX * cells : test_between(1, 3 * cells)
                    : 0,
        .margin_x = test_between(1, 3),
        .margin_y = test_between(1, 3)};
    s->boxes.wanted[0] = 5;
    s->numbers[0] = (size_t)s->boxes.cells * (size_t)(s->before + s->spec.numbers);
    s->numbers[1] = (size_t)(s->spec.numbers * s->spec.width * s->spec.height);
    for (int t = 0; t < TENSORS; t++)
        s->dtype[t] = test_between(0, 1) ? SAC_F16 : SAC_F32;
    s->boxes.box[0] = field(s, 0);
    s->boxes.score[0] = field(s, 4);
    s->boxes.label = field(s, s->form == FINISHED ? 5 : 0);
    s->spec.coefficient = field(s, s->before);
    const bool last = test_between(0, 3) == 0; /* the numbers of a cell lie together */
    s->spec.prototype =
        (struct sac_detect_field){.tensor = 1,
                                  .dtype = s->dtype[1],
                                  .image = (int64_t)s->numbers[1],
                                  .cell = last ? s->spec.numbers : 1,
                                  .number = last ? 1 : (int64_t)s->spec.width * s->spec.height};
    for (int i = 0; i < s->n; i++)
        s->maps[i] = (struct sac_fit_map){.scale_x = 1, .scale_y = 1};
    fill(s, odd);
}

static void subject_finish(struct subject *s)
{
    for (int t = 0; t < TENSORS; t++) {
        free(s->value[t]);
        free(s->stored[t]);
    }
}

/* ---- a device's way ---- */

static size_t map_cells(const struct subject *s)
{
    return (size_t)(s->n * s->spec.width * s->spec.height);
}

static size_t sums_of(const struct subject *s)
{
    return (size_t)s->n * (size_t)s->sums.room;
}

/* Of a size, filled with what no sum is. */
static struct sac_buffer *poisoned(sac_device *dev, size_t bytes)
{
    struct sac_buffer *buf = test_room(dev, bytes);
    void              *poison = malloc(bytes);
    assert_non_null(poison);
    memset(poison, 0x5b, bytes);
    test_write(dev, buf, poison, bytes);
    free(poison);
    return buf;
}

static struct result by_device(sac_device *dev, const struct subject *s)
{
    const size_t found_bytes = sac_detect_out_bytes(&s->boxes, s->n),
                 map_bytes = map_cells(s) * sizeof(float),
                 sums_bytes = (sums_of(s) + 1) * sizeof(float);
    struct sac_buffer *in[TENSORS], *found = poisoned(dev, found_bytes),
                                    *map = test_room(dev, map_bytes),
                                    *sums = poisoned(dev, sums_bytes);
    const void               *tensors[SAC_DETECT_TENSORS_MAX] = {NULL};
    struct sac_instances_sums asked = s->sums;
    asked.out = sac_buffer_data(sums);
    for (int t = 0; t < TENSORS; t++) {
        const size_t bytes = (size_t)s->n * s->numbers[t] * sac_dtype_bytes(s->dtype[t]);
        in[t] = test_room(dev, bytes);
        test_write(dev, in[t], s->stored[t], bytes);
        tensors[t] = sac_buffer_data(in[t]);
    }
    assert_sac_ok(
        sac_detect_run(dev, NULL, &s->boxes, tensors, s->maps, s->n, sac_buffer_data(found)));
    assert_sac_ok(sac_instances_run(dev, NULL, &s->spec, tensors, sac_buffer_data(found), s->n,
                                    sac_buffer_data(map), s->sums.room ? &asked : NULL));
    const struct result r = {test_get(dev, found, found_bytes), test_get(dev, map, map_bytes),
                             test_get(dev, sums, sums_bytes)};
    for (int t = 0; t < TENSORS; t++)
        sac_buffer_unref(&in[t]);
    sac_buffer_unref(&found);
    sac_buffer_unref(&map);
    sac_buffer_unref(&sums);
    return r;
}

static void result_finish(struct result *r)
{
    free(r->found);
    free(r->map);
    free(r->sums);
}

/* ---- the formula ---- */

/* Of the lists: where an image's boxes and their cells begin. */
static const struct sac_detection *boxes_of(const struct subject *s, const struct result *r,
                                            int image, int *count, const int32_t **origins)
{
    const int32_t              *counts = (const void *)r->found;
    const struct sac_detection *box = (const void *)(r->found + sac_detect_boxes_at(s->n));
    *origins = (const void *)(r->found + sac_detect_origins_at(s->boxes.keep, s->n));
    for (int i = 0; i < image; i++) {
        box += counts[i];
        *origins += counts[i];
    }
    *count = counts[image];
    return box;
}

/* A box is what its cell says. */
static void check_origin(const struct subject *s, int image, const struct sac_detection *box,
                         int32_t cell)
{
    float at[4];
    assert_in_range(cell, 0, s->boxes.cells - 1);
    for (int k = 0; k < 4; k++)
        at[k] = s->value[0][place(s, image, cell, k)];
    const float x0 = s->form == FINISHED ? at[0] : at[0] - at[2] * 0.5f,
                y1 = s->form == FINISHED ? at[3] : at[1] + at[3] * 0.5f;
    if (x0 != box->x0 || y1 != box->y1)
        fail_msg("cell %d has a box from %g down to %g, not from %g down to %g", (int)cell,
                 (double)x0, (double)y1, (double)box->x0, (double)box->y1);
}

/* Whether a number lies from low to high; *near: it is too near to tell. */
static bool between(double v, double low, double high, bool *near)
{
    *near = *near || fabs(v - low) < 1e-3 || fabs(v - high) < 1e-3;
    return v >= low && v < high;
}

static double product(const struct subject *s, int image, int32_t origin, int x, int y)
{
    const struct sac_detect_field *p = &s->spec.prototype;
    double                         sum = 0;
    for (int k = 0; k < s->spec.numbers; k++)
        sum += (double)s->value[0][place(s, image, origin, s->before + k)] *
               (double)s->value[1][(int64_t)image * p->image + (y * s->spec.width + x) * p->cell +
                                   k * p->number];
    return sum;
}

/* How many cells could be told for sure. */
static int check_cell(const struct subject *s, const struct result *r, int image, int x, int y)
{
    const double across = (double)s->spec.width / s->spec.input_width,
                 down = (double)s->spec.height / s->spec.input_height;
    const int32_t              *origins;
    int                         count, label = 0;
    bool                        near = false;
    double                      most = s->spec.labels ? 0 : -INFINITY, second = -INFINITY;
    const struct sac_detection *box = boxes_of(s, r, image, &count, &origins);
    for (int i = 0; i < count; i++) {
        const bool in_x = between(x, (double)box[i].x0 * across, (double)box[i].x1 * across, &near),
                   in_y = between(y, (double)box[i].y0 * down, (double)box[i].y1 * down, &near);
        if (!in_x || !in_y)
            continue;
        const double sum = product(s, image, origins[i], x, y);
        second = sum > most ? most : fmax(sum, second);
        label = sum > most ? box[i].class_id + 1 : label;
        most = fmax(sum, most);
    }
    if (near || (s->spec.labels && most - second < 1e-3))
        return 0;
    const double want = s->spec.labels ? label : 1 / (1 + exp(-most));
    const double got =
        (double)
            r->map[((size_t)image * (size_t)s->spec.height + (size_t)y) * (size_t)s->spec.width +
                   (size_t)x];
    if (fabs(want - got) > 1e-5)
        fail_msg("image %d, cell %d, %d of %dx%d, %d boxes: %g, expected %g", image, x, y,
                 s->spec.width, s->spec.height, count, got, want);
    return 1;
}

/* All cells that a pixel within the box can lie between, however far apart pixels are. */
static void check_window(const struct subject *s, const struct sac_detection *box,
                         const struct sac_instances_window *w)
{
    const double across = (double)s->spec.width / s->spec.input_width,
                 down = (double)s->spec.height / s->spec.input_height;
    const double x0 = floor((double)box->x0 * across - 0.5 + 1e-3),
                 x1 = floor((double)box->x1 * across + s->sums.margin_x - 0.5 - 1e-3) + 1,
                 y0 = floor((double)box->y0 * down - 0.5 + 1e-3),
                 y1 = floor((double)box->y1 * down + s->sums.margin_y - 0.5 - 1e-3) + 1;
    assert_true(w->x0 >= 0 && w->y0 >= 0 && w->x1 <= s->spec.width && w->y1 <= s->spec.height);
    assert_true(w->x0 <= fmax(x0, 0) && w->x1 > fmin(x1, s->spec.width - 1));
    assert_true(w->y0 <= fmax(y0, 0) && w->y1 > fmin(y1, s->spec.height - 1));
}

/* Their bits are another device's. */
static void expect_numbers(const float *sums, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_false(isnan(sums[i]));
}

static bool is_poison(float v)
{
    static const unsigned char poison[4] = {0x5b, 0x5b, 0x5b, 0x5b};
    return memcmp(&v, poison, sizeof v) == 0;
}

/* One behind the other; nothing behind the last that has room. Returns how many have. */
static int check_sums(const struct subject *s, const struct result *r, int image)
{
    const int32_t              *origins;
    int                         count, i = 0;
    const struct sac_detection *box = boxes_of(s, r, image, &count, &origins);
    const float                *at = r->sums + (size_t)image * (size_t)s->sums.room;
    int64_t                     left = s->sums.room;
    size_t                      numbers;
    for (; i < count && s->sums.room; i++) {
        const struct sac_instances_window w = sac_instances_about(&s->spec, &s->sums, &box[i]);
        if (sac_instances_area(&w) > left)
            break;
        check_window(s, &box[i], &w);
        left -= sac_instances_area(&w);
        for (int y = w.y0; y < w.y1; y++)
            for (int x = w.x0; x < w.x1; x++, at++)
                if (!(fabs((double)*at - product(s, image, origins[i], x, y)) < 1e-4))
                    fail_msg("box %d, cell %d, %d: %g, expected %g", i, x, y, (double)*at,
                             product(s, image, origins[i], x, y));
    }
    for (; left > 0; left--)
        assert_true(is_poison(*at++));
    if (s->sums.room)
        assert_int_equal(sac_instances_room_for(&s->spec, &s->sums, box, count, &numbers), i);
    return i;
}

static void maps_are_those_of_the_formula(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    int64_t     told = 0, all = 0, boxes = 0, summed = 0, crowded = 0;
    for (int round = 0; round < 60; round++) {
        struct subject s;
        subject_init(&s, false);
        struct result r = by_device(cpu, &s);
        for (int image = 0; image < s.n; image++) {
            const int32_t              *origins;
            int                         count;
            const struct sac_detection *box = boxes_of(&s, &r, image, &count, &origins);
            for (int i = 0; i < count; i++)
                check_origin(&s, image, &box[i], origins[i]);
            for (int y = 0; y < s.spec.height; y++)
                for (int x = 0; x < s.spec.width; x++)
                    told += check_cell(&s, &r, image, x, y);
            boxes += count;
            const int n = check_sums(&s, &r, image);
            summed += n;
            crowded += s.sums.room && n < count;
        }
        all += (int64_t)map_cells(&s);
        result_finish(&r);
        subject_finish(&s);
    }
    if (told < all * 4 / 5 || boxes < 500)
        fail_msg("of %lld cells with %lld boxes only %lld could be told", (long long)all,
                 (long long)boxes, (long long)told);
    if (summed < boxes / 4 || crowded < 10)
        fail_msg("of %lld boxes %lld have sums, %lld images are crowded", (long long)boxes,
                 (long long)summed, (long long)crowded);
    sac_device_unref(&cpu);
}

/* An image without a box, between others; none at all. */
static void images_without_boxes_are_empty(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL), *cpu = test_device();
    for (int round = 0; round < 8; round++) {
        struct subject s;
        subject_init(&s, false);
        s.boxes.score_min = round % 2 ? 2 : 0.3f;
        for (int cell = 0; cell < s.boxes.cells; cell++) /* of image 0 */
            for (int k = 4; k < s.before; k++)
                store(&s, 0, place(&s, 0, cell, k), 0);
        struct result want = by_device(cpu, &s), got = by_device(dev, &s);
        const size_t  cells = map_cells(&s), empty = round % 2 ? cells : cells / (size_t)s.n;
        for (size_t i = 0; i < empty; i++)
            assert_true(want.map[i] == 0 && !signbit(want.map[i]));
        assert_memory_equal(want.map, got.map, cells * sizeof(float));
        result_finish(&want);
        result_finish(&got);
        subject_finish(&s);
    }
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

static void the_gpu_equals_the_cpu(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (int round = 0; round < gpu_rounds(120); round++) {
        struct subject s;
        subject_init(&s, round % 2);
        struct result  want = by_device(cpu, &s), got = by_device(gpu, &s);
        const int32_t *a = (const void *)want.found, *b = (const void *)got.found;
        size_t         boxes = 0;
        assert_memory_equal(a, b, (size_t)s.n * sizeof *a);
        for (int i = 0; i < s.n; i++)
            boxes += (size_t)a[i];
        const size_t box_at = sac_detect_boxes_at(s.n),
                     origin_at = sac_detect_origins_at(s.boxes.keep, s.n);
        assert_memory_equal(want.found + box_at, got.found + box_at,
                            boxes * sizeof(struct sac_detection));
        assert_memory_equal(want.found + origin_at, got.found + origin_at, boxes * sizeof(int32_t));
        for (size_t i = 0; i < map_cells(&s); i++)
            if (memcmp(&want.map[i], &got.map[i], sizeof(float)) != 0)
                fail_msg("round %d, number %zu of %d images of %dx%d with %d prototypes: %.9g, "
                         "expected %.9g",
                         round, i, s.n, s.spec.width, s.spec.height, s.spec.numbers,
                         (double)got.map[i], (double)want.map[i]);
        expect_numbers(want.sums, sums_of(&s));
        if (memcmp(want.sums, got.sums, (sums_of(&s) + 1) * sizeof(float)) != 0)
            fail_msg("round %d: other sums of %d images of %dx%d with %d prototypes", round, s.n,
                     s.spec.width, s.spec.height, s.spec.numbers);
        result_finish(&want);
        result_finish(&got);
        subject_finish(&s);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    sac_device    *cpu = test_device();
    struct subject s;
    char           why[256];
    float          map[1];
    const void    *tensors[SAC_DETECT_TENSORS_MAX] = {NULL};
    subject_init(&s, false);
    struct sac_instances_spec spec = s.spec;
    spec.numbers = SAC_INSTANCES_NUMBERS_MAX + 1;
    assert_int_equal(sac_instances_run(cpu, NULL, &spec, tensors, map, 1, map, NULL),
                     SAC_ERR_UNSUPPORTED);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "instances: 257 prototypes; have 1 to 256");
    spec = s.spec;
    spec.prototype.dtype = SAC_I32;
    assert_int_equal(sac_instances_run(cpu, NULL, &spec, tensors, map, 1, map, NULL),
                     SAC_ERR_UNSUPPORTED);
    spec = s.spec;
    spec.width = 5000;
    assert_int_equal(sac_instances_run(cpu, NULL, &spec, tensors, map, 1, map, NULL),
                     SAC_ERR_UNSUPPORTED);
    static const struct sac_instances_sums none = {0, 1, 1, NULL}, close = {9, 1, 0, NULL};
    assert_int_equal(sac_instances_run(cpu, NULL, &s.spec, tensors, map, 1, map, &none),
                     SAC_ERR_ARG);
    assert_int_equal(sac_instances_run(cpu, NULL, &s.spec, tensors, map, 1, map, &close),
                     SAC_ERR_ARG);
    spec = s.spec;
    spec.coefficient.tensor = -1;
    assert_int_equal(sac_instances_run(cpu, NULL, &spec, tensors, map, 1, map, NULL), SAC_ERR_ARG);
    assert_sac_ok(sac_instances_run(cpu, NULL, &s.spec, tensors, map, 0, map, NULL));
    subject_finish(&s);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_are_those_of_the_formula),
        cmocka_unit_test(images_without_boxes_are_empty),
        cmocka_unit_test(the_gpu_equals_the_cpu),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("parity/instances", tests, NULL, NULL);
}
