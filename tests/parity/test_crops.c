/* SPDX-License-Identifier: Apache-2.0 */
/* Crops of boxes that a device holds: the CPU's against crops that the host asks for one by one,
 * the GPU's against the CPU's. Equal, bit by bit. */
#include <stdio.h>

#include "device/detect.h"
#include "device/fit.h"
#include "tests/gpu.h"
#include "tests/image/frames.h"

enum { IMAGES_MAX = 9, BOXES_MAX = 400, CROPS_MAX = 96, SIDE_MAX = 48 };

struct subject {
    struct sac_preprocess pre;
    sac_frame            *frames[IMAGES_MAX];
    int32_t               count[IMAGES_MAX];
    struct sac_detection  box[IMAGES_MAX * BOXES_MAX];
    int                   n, boxes, max;
    float                 score_min;
};

static float coordinate(int size)
{
    static const float strange[] = {NAN, -1e9f, 1e9f, INFINITY};
    return test_between(0, 200) ? (float)test_between(-2 * size, 6 * size) / 4
                                : strange[test_between(0, 3)];
}

static void subject_init(struct subject *s, sac_device *cpu)
{
    s->pre = sac_preprocess_default();
    s->pre.width = test_between(1, SIDE_MAX);
    s->pre.height = test_between(1, SIDE_MAX);
    s->pre.fit = (enum sac_fit)test_between(0, 2);
    s->pre.filter = (enum sac_filter)test_between(0, 1);
    s->pre.layout = (enum sac_tensor_layout)test_between(0, 1);
    s->pre.dtype = (enum sac_dtype[]){SAC_F32, SAC_F16, SAC_U8}[test_between(0, 2)];
    s->n = test_between(1, IMAGES_MAX);
    s->max = test_between(0, CROPS_MAX);
    s->score_min = (float)test_between(0, 90) / 100;
    s->boxes = 0;
    const bool many = test_between(0, 5) == 0; /* more than a block's threads */
    for (int i = 0; i < s->n; i++) {
        s->frames[i] =
            test_frame(cpu, test_any_format(), 2 * test_between(1, 60), 2 * test_between(1, 60));
        test_fill(s->frames[i], 0, 255, 0, 255);
        s->count[i] = test_between(0, 2) ? test_between(0, many ? BOXES_MAX : 20) : 0;
        for (int k = 0; k < s->count[i]; k++) {
            const int w = s->frames[i]->width, h = s->frames[i]->height;
            s->box[s->boxes++] = (struct sac_detection){coordinate(w),
                                                        coordinate(h),
                                                        coordinate(w),
                                                        coordinate(h),
                                                        (float)test_between(0, 100) / 100,
                                                        0};
        }
    }
}

static void subject_finish(struct subject *s)
{
    for (int i = 0; i < s->n; i++)
        sac_frame_unref(&s->frames[i]);
}

static size_t tensor_bytes(const struct subject *s)
{
    const struct sac_tensor_desc desc = sac_preprocess_desc(&s->pre, CROPS_MAX);
    return (size_t)sac_tensor_desc_bytes(&desc);
}

/* The tensor begins as 0x5b everywhere: what is no crop must stay so. */
static sac_tensor *poisoned(sac_device *dev, const struct subject *s)
{
    const struct sac_tensor_desc desc = sac_preprocess_desc(&s->pre, CROPS_MAX);
    sac_tensor                  *t = NULL;
    void                        *poison = sac_alloc(tensor_bytes(s));
    assert_non_null(poison);
    memset(poison, 0x5b, tensor_bytes(s));
    assert_sac_ok(sac_tensor_create(dev, &desc, "crops", &t));
    assert_sac_ok(sac_tensor_upload(t, poison));
    sac_free(poison);
    return t;
}

/* Crop by crop. */
static int by_host(sac_device *cpu, const struct subject *s, void *out)
{
    struct sac_preprocess_job jobs[CROPS_MAX];
    sac_tensor               *t = poisoned(cpu, s);
    int                       found = 0, at = 0;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->count[i]; k++, at++)
            if (s->box[at].score >= s->score_min) {
                if (found < s->max)
                    jobs[found] = (struct sac_preprocess_job){
                        s->frames[i],
                        sac_crop_of_box(&s->box[at], s->frames[i]->width, s->frames[i]->height)};
                found++;
            }
    assert_sac_ok(sac_preprocess_run(cpu, &s->pre, jobs, SAC_MIN(found, s->max), t));
    memcpy(out, sac_tensor_data(t), tensor_bytes(s));
    sac_tensor_unref(&t);
    return found;
}

static int by_device(sac_device *dev, sac_device *cpu, const struct subject *s, void *out)
{
    const size_t       boxes_at = sac_detect_boxes_at(s->n), bytes = boxes_at + sizeof s->box;
    struct sac_buffer *buf = NULL, *count = NULL;
    sac_frame         *frames[IMAGES_MAX];
    char              *packed = sac_calloc(1, bytes);
    sac_tensor        *t = poisoned(dev, s);
    int32_t            found = -1;
    const bool         lie = test_between(0, 1);
    assert_non_null(packed);
    memcpy(packed, s->count, sizeof s->count);
    memcpy(packed + boxes_at, s->box, sizeof s->box);
    assert_sac_ok(sac_buffer_create(dev, bytes, "boxes", &buf));
    assert_sac_ok(sac_buffer_create(dev, sizeof found, "count", &count));
    assert_sac_ok(sac_device_copy(dev, NULL, sac_buffer_data(buf), packed, bytes,
                                  SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "test"));
    for (int i = 0; i < s->n; i++) {
        frames[i] = dev == cpu
                        ? sac_frame_ref(s->frames[i])
                        : test_lying(dev, s->frames[i], lie ? test_orientation() : SAC_UPRIGHT);
    }
    const struct sac_crops_job job = {&s->pre,      frames, s->n, sac_buffer_data(buf),
                                      s->score_min, s->max};
    assert_sac_ok(sac_preprocess_boxes(dev, NULL, &job, t, sac_buffer_data(count)));
    assert_sac_ok(sac_device_copy(dev, NULL, &found, sac_buffer_data(count), sizeof found,
                                  SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_USER, "test"));
    assert_sac_ok(sac_tensor_download(t, out));
    for (int i = 0; i < s->n; i++)
        sac_frame_unref(&frames[i]);
    sac_tensor_unref(&t);
    sac_buffer_unref(&buf);
    sac_buffer_unref(&count);
    sac_free(packed);
    return found;
}

static void check(sac_device *dev, sac_device *cpu, int rounds)
{
    struct subject *s = sac_new(struct subject);
    const size_t    most = (size_t)CROPS_MAX * SIDE_MAX * SIDE_MAX * 3 * sizeof(float);
    char           *want = sac_alloc(most), *got = sac_alloc(most);
    int             crops = 0;
    assert_true(s && want && got);
    for (int round = 0; round < rounds; round++) {
        subject_init(s, cpu);
        const int expected = by_host(cpu, s, want), found = by_device(dev, cpu, s, got);
        if (expected != found)
            fail_msg("round %d: %d crops, expected %d", round, found, expected);
        for (size_t i = 0; i < tensor_bytes(s); i++)
            if (want[i] != got[i])
                fail_msg("round %d: %d images, %d boxes, %d crops of %d: byte %zu of %zu differs "
                         "(%s, fit %d, filter %d)",
                         round, s->n, s->boxes, found, s->max, i, tensor_bytes(s),
                         sac_dtype_name(s->pre.dtype), (int)s->pre.fit, (int)s->pre.filter);
        crops += SAC_MIN(found, s->max);
        subject_finish(s);
    }
    assert_true(crops > 10 * rounds);
    sac_free(want);
    sac_free(got);
    sac_free(s);
}

static void are_those_of_the_host(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    check(cpu, cpu, 80);
    sac_device_unref(&cpu);
}

static void also_on_the_gpu(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    check(gpu, cpu, 150);
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

static void refuses_what_has_no_room(void **state)
{
    (void)state;
    sac_device                  *cpu = test_device();
    const struct sac_preprocess  pre = {.width = 4, .height = 4, .dtype = SAC_F32};
    const struct sac_tensor_desc desc = sac_preprocess_desc(&pre, 2);
    struct sac_crops_job         job = {.pre = &pre, .max = 3};
    sac_tensor                  *t = NULL;
    int32_t                      count = 0;
    assert_sac_ok(sac_tensor_create(cpu, &desc, "test", &t));
    assert_sac_error(sac_preprocess_boxes(cpu, NULL, &job, t, &count), SAC_ERR_ARG);
    job.max = 2;
    job.n = SAC_CROPS_FRAMES_MAX + 1;
    assert_sac_error(sac_preprocess_boxes(cpu, NULL, &job, t, &count), SAC_ERR_ARG);
    sac_tensor_unref(&t);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_those_of_the_host),
        cmocka_unit_test(refuses_what_has_no_room),
        cmocka_unit_test(also_on_the_gpu),
    };
    return cmocka_run_group_tests_name("parity/crops", tests, NULL, NULL);
}
