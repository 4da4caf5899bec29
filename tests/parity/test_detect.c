/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes that a device makes of an output tensor: the CPU's against the heads' own decoding with NMS on
 * the host, the CUDA device's against the CPU's. Equal, box by box and bit by bit. */
#include <stdio.h>

#include "device/detect.h"
#include "heads/heads.h"
#include "tests/gpu.h"
#include "tests/image/frames.h"

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

enum { IMAGES_MAX = 5 };

struct subject {
    const struct sac_head *head;
    struct sac_head_tensor shape; /* of one image */
    struct sac_detect_spec spec;
    struct sac_fit_map     maps[IMAGES_MAX];
    int                    wanted[64], wanted_count, n;
    float                 *numbers; /* [n][image] */
    uint16_t              *halves;  /* the same, when the spec says float16 */
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

/* Number k of a cell: places that overlap, scores with ties. many: most cells are boxes. */
static float number_of(const struct subject *s, int k, bool raw, bool many)
{
    const struct sac_detect_spec *d = &s->spec;
    if (k < 2 && raw)
        return unit() * 3 - 1;
    if (k < 4 && raw)
        return unit() * 4 - 1;
    if (k < 2)
        return (float)test_between(0, (k ? d->input_height : d->input_width) * 4) / 4;
    if (k < 4)
        return unit() * 90;
    bool high = many || test_between(0, 60) == 0;
    float score = (float)test_between(0, 40) / 40;
    return d->form == SAC_DETECT_YOLOX && k == 4 ? (high ? score : score * 0.05f)
           : d->form == SAC_DETECT_YOLOX         ? score
                                                 : (high ? score : score * 0.05f);
}

static void subject_fill(struct subject *s)
{
    const struct sac_detect_spec *d = &s->spec;
    const int    numbers = d->classes + (d->form == SAC_DETECT_YOLOX ? 5 : 4);
    const size_t all = (size_t)s->n * (size_t)d->step_image;
    const bool   many = test_between(0, 9) == 0;
    s->numbers = sac_alloc(all * sizeof *s->numbers);
    s->halves = sac_alloc(all * sizeof *s->halves);
    assert_true(s->numbers && s->halves);
    for (int image = 0; image < s->n; image++) {
        const bool raw = d->form == SAC_DETECT_YOLOX && test_between(0, 1);
        for (int cell = 0; cell < d->cells; cell++)
            for (int k = 0; k < numbers; k++) {
                int64_t at = image * d->step_image + cell * d->step_cell + k * d->step_number;
                float   v = number_of(s, k, raw, many);
                s->numbers[at] = k >= 4 || !raw ? strange(v) : v; /* what is raw must stay so */
                if (d->dtype == SAC_F16) {
                    s->halves[at] = half_of(fminf(fmaxf(v, -60000), 60000));
                    s->numbers[at] = sac_float_of_half(s->halves[at]);
                }
            }
    }
}

static void subject_init(struct subject *s, int side_max, int classes_max)
{
    const bool yolox = test_between(0, 1);
    *s = (struct subject){.head = yolox ? &sac_head_yolox : &sac_head_yolov8};
    const int width = test_between(1, side_max / 32) * 32, height = test_between(1, side_max / 32) * 32;
    const int64_t cells = sac_grid_of(width, height, 3).cells, classes = test_between(1, classes_max);
    const bool    upright = !yolox && test_between(0, 1);
    s->n = test_between(1, IMAGES_MAX);
    s->shape.rank = 2;
    s->shape.shape[upright ? 1 : 0] = cells;
    s->shape.shape[upright ? 0 : 1] = classes + (yolox ? 5 : 4);
    s->spec.dtype = test_between(0, 1) ? SAC_F16 : SAC_F32;
    s->spec.input_width = width;
    s->spec.input_height = height;
    s->spec.score_min = (float)test_between(0, 60) / 100;
    s->spec.nms_iou = (float)test_between(0, 100) / 100;
    assert_true(s->head->layout(&s->shape, width, height, &s->spec));
    s->spec.keep = test_between(1, SAC_MIN(300, s->spec.cells));
    const int some = test_between(0, 2) ? 0 : test_between(1, 64);
    for (int i = 0; i < some; i++)
        s->wanted[s->wanted_count++] = test_between(0, (int)classes - 1);
    for (int c = 0; c < (int)classes && !s->wanted_count; c++)
        s->spec.wanted[c / 32] |= 1u << (c % 32);
    for (int i = 0; i < s->wanted_count; i++)
        s->spec.wanted[s->wanted[i] / 32] |= 1u << (s->wanted[i] % 32);
    for (int i = 0; i < s->n; i++)
        s->maps[i] = (struct sac_fit_map){0.1f + unit() * 2, 0.1f + unit() * 2, unit() * 50, unit() * 50};
    subject_fill(s);
}

static void subject_finish(struct subject *s)
{
    sac_free(s->numbers);
    sac_free(s->halves);
}

/* ---- three ways ---- */

static void by_head(const struct subject *s, int image, struct sac_detections *out)
{
    struct sac_head_tensor t = s->shape;
    struct sac_head_input  in = {&t, 1, s->spec.input_width, s->spec.input_height, s->spec.score_min};
    struct sac_gather      gather = {.wanted = s->wanted_count ? s->wanted : NULL,
                                     .wanted_count = (size_t)s->wanted_count,
                                     .score_min = s->spec.score_min,
                                     .map = s->maps[image],
                                     .list = out};
    t.data = s->numbers + (size_t)image * (size_t)s->spec.step_image;
    assert_int_equal(s->head->decode(s->head, &in, s->spec.classes, sac_gather_box, &gather), SAC_OK);
    assert_false(gather.out_of_memory);
    sac_nms(out, s->spec.nms_iou, (size_t)s->spec.keep);
}

static void by_device(sac_device *dev, const struct subject *s, struct sac_detections *found)
{
    const size_t all = (size_t)s->n * (size_t)s->spec.step_image * sac_dtype_bytes(s->spec.dtype);
    const size_t out_bytes = sac_detect_out_bytes(&s->spec, s->n);
    struct sac_buffer *in = NULL, *out = NULL;
    assert_sac_ok(sac_buffer_create(dev, all, "tensor", &in));
    assert_sac_ok(sac_buffer_create(dev, out_bytes, "boxes", &out));
    const void *numbers = s->spec.dtype == SAC_F16 ? (const void *)s->halves : s->numbers;
    void       *poison = sac_alloc(out_bytes);
    assert_non_null(poison);
    memset(poison, 0x5b, out_bytes);
    assert_sac_ok(sac_device_copy(dev, NULL, sac_buffer_data(in), numbers, all, SAC_COPY_HOST_TO_DEVICE,
                                  SAC_COPY_TENSOR_USER, "test"));
    assert_sac_ok(sac_device_copy(dev, NULL, sac_buffer_data(out), poison, out_bytes,
                                  SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "test"));
    assert_sac_ok(sac_detect_run(dev, NULL, &s->spec, sac_buffer_data(in), s->maps, s->n,
                                 sac_buffer_data(out)));
    assert_sac_ok(sac_detect_fetch(dev, NULL, &s->spec, sac_buffer_data(out), s->n, found));
    sac_free(poison);
    sac_buffer_unref(&in);
    sac_buffer_unref(&out);
}

static void compare(const struct subject *s, int round, int image, const struct sac_detections *want,
                    const struct sac_detections *got)
{
    char what[200];
    snprintf(what, sizeof what, "round %d, image %d of %d: %s %dx%d, %d cells, %d classes, %s", round, image,
             s->n, s->head->name, s->spec.input_width, s->spec.input_height, s->spec.cells, s->spec.classes,
             sac_dtype_name(s->spec.dtype));
    if (want->count != got->count)
        fail_msg("%s: %zu boxes, expected %zu", what, got->count, want->count);
    for (size_t i = 0; i < want->count; i++) {
        const struct sac_detection *a = &want->items[i], *b = &got->items[i];
        if (memcmp(a, b, sizeof *a) != 0)
            fail_msg("%s: box %zu is %.9g %.9g %.9g %.9g, %.9g, %d, expected %.9g %.9g %.9g %.9g, %.9g, %d",
                     what, i, (double)b->x0, (double)b->y0, (double)b->x1, (double)b->y1, (double)b->score,
                     b->class_id, (double)a->x0, (double)a->y0, (double)a->x1, (double)a->y1,
                     (double)a->score, a->class_id);
    }
}

static void finish_all(struct sac_detections list[IMAGES_MAX])
{
    for (int i = 0; i < IMAGES_MAX; i++)
        sac_detections_finish(&list[i]);
}

static void a_device_gives_the_boxes_of_the_head(void **state)
{
    (void)state;
    size_t boxes = 0;
    for (int round = 0; round < 150; round++) {
        struct subject        s;
        struct sac_detections want[IMAGES_MAX] = {{0}}, got[IMAGES_MAX] = {{0}};
        subject_init(&s, 160, 20);
        by_device(cpu, &s, got);
        for (int i = 0; i < s.n; i++) {
            by_head(&s, i, &want[i]);
            compare(&s, round, i, &want[i], &got[i]);
            boxes += want[i].count;
        }
        finish_all(want);
        finish_all(got);
        subject_finish(&s);
    }
    assert_true(boxes > 1000);
}

static void check_gpu(int rounds, int side_max, int classes_max)
{
    sac_device *gpu = gpu_open(NULL);
    for (int round = 0; round < rounds; round++) {
        struct subject        s;
        struct sac_detections want[IMAGES_MAX] = {{0}}, got[IMAGES_MAX] = {{0}};
        subject_init(&s, side_max, classes_max);
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
    check_gpu(200, 320, 40);
}

static void also_of_large_inputs(void **state)
{
    (void)state;
    check_gpu(12, 1280, 90);
}

static void refuses_what_has_no_room(void **state)
{
    (void)state;
    struct sac_detect_spec s = {.dtype = SAC_F32, .cells = SAC_DETECT_CELLS_MAX + 1, .classes = 1, .keep = 1};
    assert_sac_error(sac_detect_run(cpu, NULL, &s, &s, NULL, 1, &s), SAC_ERR_UNSUPPORTED);
    s.cells = 8;
    s.classes = SAC_DETECT_CLASSES_MAX + 1;
    assert_sac_error(sac_detect_run(cpu, NULL, &s, &s, NULL, 1, &s), SAC_ERR_UNSUPPORTED);
    s.classes = 1;
    s.dtype = SAC_I8;
    assert_sac_error(sac_detect_run(cpu, NULL, &s, &s, NULL, 1, &s), SAC_ERR_UNSUPPORTED);
    s.dtype = SAC_F32;
    s.keep = 9;
    assert_sac_error(sac_detect_run(cpu, NULL, &s, &s, NULL, 1, &s), SAC_ERR_ARG);
    s.keep = 8;
    assert_sac_ok(sac_detect_run(cpu, NULL, &s, NULL, NULL, 0, NULL));
    assert_sac_ok(sac_detect_fetch(cpu, NULL, &s, NULL, 0, NULL));
}

/* Against the C library's, over all that it takes. */
static void the_exponential_is_one(void **state)
{
    (void)state;
    for (float x = -86; x < 88; x += 0.00097f)
        if (fabs((double)sac_exp(x) / exp((double)x) - 1) > 3e-7)
            fail_msg("e^%.9g is %.9g", (double)x, (double)sac_exp(x));
    assert_true(sac_exp(0) == 1.0f && sac_exp(-200) == 0 && sac_exp(NAN) == 0 && isinf(sac_exp(100)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exponential_is_one),
        cmocka_unit_test(refuses_what_has_no_room),
        cmocka_unit_test(a_device_gives_the_boxes_of_the_head),
        cmocka_unit_test(the_gpu_gives_the_boxes_of_the_cpu),
        cmocka_unit_test(also_of_large_inputs),
    };
    return cmocka_run_group_tests_name("parity/detect", tests, open_cpu, close_cpu);
}
