/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as frames: what lies as a frame is one, all else becomes RGB24, on the CPU as the numbers
 * say, on the CUDA device to the same bytes. */
#include <string.h>

#include <saccade/image.h>

#include "tests/gpu.h"
#include "tests/parity/bytes.h"
#include "tests/vision/frames.h"

enum { SIDE_MAX = 75, NUMBERS_MAX = 2 * 4 * SIDE_MAX * SIDE_MAX };

static union {
    uint8_t  bytes[NUMBERS_MAX];
    uint16_t halves[NUMBERS_MAX];
    float    floats[NUMBERS_MAX];
} numbers;

static uint16_t half_of(float f) /* of what is exactly one */
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return f == 0 ? 0 : (uint16_t)((bits >> 13) - 0x1c000);
}

/* Whole numbers 0 to 255, so that each type holds them; white: their full brightness. */
static void fill(enum sac_dtype dtype, int64_t n, uint8_t *kept)
{
    for (int64_t i = 0; i < n; i++) {
        const float f = (float)test_between(0, 255);
        uint32_t    bits;
        memcpy(&bits, &f, sizeof bits);
        kept[i] = (uint8_t)f;
        switch (dtype) {
        case SAC_U8: numbers.bytes[i] = (uint8_t)f; break;
        case SAC_F16: numbers.halves[i] = half_of(f); break;
        case SAC_BF16: numbers.halves[i] = (uint16_t)(bits >> 16); break;
        default: numbers.floats[i] = f; break;
        }
    }
}

static sac_tensor *tensor_of(sac_device *dev, const struct sac_tensor_desc *desc)
{
    sac_tensor *t = NULL;
    assert_sac_ok(sac_tensor_create(dev, desc, "picture", &t));
    assert_sac_ok(sac_tensor_upload(t, &numbers));
    return t;
}

/* The pixels of image i as RGB in host memory; free() them. */
static uint8_t *pixels_of(sac_device *dev, const struct sac_tensor_desc *desc, int64_t i,
                          const struct sac_picture_params *params)
{
    sac_device *cpu = test_device();
    sac_tensor *t = tensor_of(dev, desc);
    sac_frame  *frame = NULL, *near = NULL;
    assert_sac_ok(sac_frame_from_tensor(t, i, params, &frame));
    const size_t row = (size_t)frame->width * 3;
    uint8_t     *rgb = malloc(row * (size_t)frame->height);
    assert_non_null(rgb);
    assert_sac_ok(sac_frame_create(cpu, frame, &near));
    assert_sac_ok(sac_frame_copy(frame, near));
    const int  step = near->format == SAC_PIXEL_GRAY8                                    ? 1
                      : near->format == SAC_PIXEL_RGBA || near->format == SAC_PIXEL_BGRA ? 4
                                                                                         : 3;
    const bool bgr = near->format == SAC_PIXEL_BGR24 || near->format == SAC_PIXEL_BGRA;
    for (int y = 0; y < near->height; y++)
        for (int x = 0; x < near->width; x++)
            for (int c = 0; c < 3; c++)
                rgb[(size_t)y * row + (size_t)(3 * x + c)] =
                    near->plane[0][(size_t)y * near->pitch_bytes[0] +
                                   (size_t)(step * x + (step == 1 ? 0
                                                        : bgr     ? 2 - c
                                                                  : c))];
    sac_frame_unref(&near);
    sac_frame_unref(&frame);
    sac_tensor_unref(&t);
    sac_device_unref(&cpu);
    return rgb;
}

static const enum sac_dtype dtypes[] = {SAC_U8, SAC_F32, SAC_F16, SAC_BF16};

/* A random tensor, and which of its pictures. */
static struct sac_tensor_desc any_tensor(int round, struct sac_picture_params *params,
                                         int64_t *image)
{
    static const int       channels[] = {1, 3, 4};
    const int64_t          w = test_between(5, SIDE_MAX), h = test_between(5, SIDE_MAX);
    const int64_t          c = channels[test_between(0, 2)];
    struct sac_tensor_desc desc = {.dtype = dtypes[round % 4], .rank = 4, .shape = {2, c, h, w}};
    *params = sac_picture_params_default();
    params->order = test_between(0, 1) ? SAC_ORDER_BGR : SAC_ORDER_RGB;
    params->white = desc.dtype == SAC_U8 ? 0 : 255;
    params->channels = SAC_CHANNELS_FIRST;
    *image = test_between(0, 1);
    if (round / 4 % 2) {
        desc = (struct sac_tensor_desc){desc.dtype, 4, {2, h, w, c}};
        params->channels = test_between(0, 1) ? SAC_CHANNELS_LAST : SAC_CHANNELS_AUTO;
    }
    return desc;
}

static void the_numbers_are_the_pixels(void **state)
{
    static uint8_t kept[NUMBERS_MAX];
    (void)state;
    sac_device *cpu = test_device();
    for (int round = 0; round < 80; round++) {
        struct sac_picture_params    params;
        int64_t                      image;
        const struct sac_tensor_desc desc = any_tensor(round, &params, &image);
        const bool                   first = params.channels == SAC_CHANNELS_FIRST;
        const int64_t                h = desc.shape[first ? 2 : 1], w = desc.shape[first ? 3 : 2],
                      n = desc.shape[first ? 1 : 3];
        fill(desc.dtype, 2 * n * h * w, kept);
        uint8_t *rgb = pixels_of(cpu, &desc, image, &params);
        for (int64_t i = 0; i < h * w; i++)
            for (int64_t c = 0; c < 3; c++) {
                const int64_t from = n == 1 ? 0 : params.order == SAC_ORDER_BGR ? 2 - c : c;
                const int64_t at = image * n * h * w + (first ? from * h * w + i : i * n + from);
                assert_int_equal(rgb[3 * i + c], kept[at]);
            }
        free(rgb);
    }
    sac_device_unref(&cpu);
}

static void the_gpu_gives_the_same(void **state)
{
    static uint8_t kept[NUMBERS_MAX];
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (int round = 0; round < gpu_rounds(80); round++) {
        struct sac_picture_params    params;
        int64_t                      image;
        const struct sac_tensor_desc desc = any_tensor(round, &params, &image);
        const int64_t                n = sac_tensor_desc_elements(&desc);
        fill(desc.dtype, n, kept);
        if (desc.dtype == SAC_F32)
            for (int64_t i = 0; i < n; i++)
                numbers.floats[i] = (float)test_between(-20, 280) + 0.25f;
        const int64_t size =
            n / 2 / (params.channels == SAC_CHANNELS_FIRST ? desc.shape[1] : desc.shape[3]);
        uint8_t *want = pixels_of(cpu, &desc, image, &params),
                *got = pixels_of(gpu, &desc, image, &params);
        for (int64_t i = 0; i < 3 * size; i++)
            if (want[i] != got[i])
                fail_msg("%s, number %lld of %lld: %d, the CPU has %d", sac_dtype_name(desc.dtype),
                         (long long)i, (long long)(3 * size), got[i], want[i]);
        free(want);
        free(got);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

static void bytes_that_lie_as_a_frame_are_one(void **state)
{
    static const struct {
        struct sac_tensor_desc desc;
        enum sac_channel_order order;
        enum sac_pixel_format  format;
    } rows[] = {
        {{SAC_U8, 3, {20, 30, 3}}, SAC_ORDER_RGB, SAC_PIXEL_RGB24},
        {{SAC_U8, 4, {2, 20, 30, 3}}, SAC_ORDER_BGR, SAC_PIXEL_BGR24},
        {{SAC_U8, 4, {2, 20, 30, 4}}, SAC_ORDER_RGB, SAC_PIXEL_RGBA},
        {{SAC_U8, 3, {20, 30, 4}}, SAC_ORDER_BGR, SAC_PIXEL_BGRA},
        {{SAC_U8, 2, {20, 30}}, SAC_ORDER_RGB, SAC_PIXEL_GRAY8},
        {{SAC_U8, 4, {2, 1, 20, 30}}, SAC_ORDER_RGB, SAC_PIXEL_GRAY8},
    };
    struct sac_device_params strict = sac_device_params_default();
    (void)state;
    strict.zero_copy_strict = 1;
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &strict, &dev));
    for (size_t i = 0; i < SAC_COUNT(rows); i++) {
        struct sac_picture_params params = sac_picture_params_default();
        sac_frame                *frame = NULL;
        sac_tensor               *t = tensor_of(dev, &rows[i].desc);
        const int64_t             count = rows[i].desc.rank == 4 ? 2 : 1;
        params.order = rows[i].order;
        params.pts_us = 40000;
        params.number = 7;
        params.stream_id = 3;
        assert_int_equal(sac_picture_count(t, &params), count);
        assert_sac_ok(sac_frame_from_tensor(t, count - 1, &params, &frame));
        const int64_t bytes = sac_tensor_desc_bytes(&rows[i].desc);
        assert_ptr_equal(frame->plane[0],
                         (uint8_t *)sac_tensor_data(t) + bytes / count * (count - 1));
        assert_int_equal(frame->format, rows[i].format);
        assert_int_equal(frame->width, 30);
        assert_int_equal(frame->height, 20);
        assert_int_equal(frame->pts_us, 40000);
        assert_int_equal(frame->number, 7);
        assert_int_equal(frame->stream_id, 3);
        assert_false(sac_frame_is_writable(frame));
        sac_tensor_unref(&t);
        frame->plane[0][0]++; /* the frame keeps it */
        assert_sac_ok(sac_frame_wait(frame));
        sac_frame_unref(&frame);
    }
    /* Planes are no frame: that takes a pass, which strict devices refuse. */
    const struct sac_tensor_desc planes = {SAC_U8, 3, {3, 20, 30}};
    sac_tensor                  *t = tensor_of(dev, &planes);
    sac_frame                   *frame = NULL;
    assert_sac_error(sac_frame_from_tensor(t, 0, NULL, &frame), SAC_ERR_COPY);
    assert_null(frame);
    sac_tensor_unref(&t);
    sac_device_unref(&dev);
}

static void says_what_is_no_picture(void **state)
{
    static const struct {
        struct sac_tensor_desc desc;
        int                    channels;
    } rows[] = {
        {{SAC_U8, 1, {30}}, 0},         {{SAC_U8, 5, {1, 1, 20, 30, 3}}, 0},
        {{SAC_I32, 3, {20, 30, 3}}, 0}, {{SAC_U8, 3, {20, 30, 5}}, 0},
        {{SAC_U8, 3, {20, 30, 3}}, 2},  {{SAC_U8, 2, {20, 30}}, 2},
        {{SAC_U8, 3, {0, 30, 3}}, 0},   {{SAC_F64, 3, {3, 20, 30}}, 0},
    };
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *frame = NULL;
    for (size_t i = 0; i < SAC_COUNT(rows); i++) {
        struct sac_picture_params params = sac_picture_params_default();
        sac_tensor               *t = NULL;
        params.channels = (enum sac_channel_place)rows[i].channels;
        assert_sac_ok(sac_tensor_create(dev, &rows[i].desc, "test", &t));
        assert_sac_error(sac_frame_from_tensor(t, 0, &params, &frame), SAC_ERR_ARG);
        sac_tensor_unref(&t);
    }
    const struct sac_tensor_desc desc = {SAC_U8, 3, {20, 30, 3}};
    sac_tensor                  *t = tensor_of(dev, &desc);
    struct sac_picture_params    params = sac_picture_params_default();
    assert_sac_error(sac_frame_from_tensor(t, 1, NULL, &frame), SAC_ERR_ARG);
    assert_sac_error(sac_frame_from_tensor(t, -1, NULL, &frame), SAC_ERR_ARG);
    params.white = -1;
    assert_sac_error(sac_frame_from_tensor(t, 0, &params, &frame), SAC_ERR_ARG);
    params.white = 0;
    params.prepared = 1;
    assert_sac_error(sac_frame_from_tensor(t, 0, &params, &frame), SAC_ERR_ARG);
    assert_int_equal(sac_picture_count(NULL, NULL), 0);
    sac_tensor_unref(&t);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_the_pixels),
        cmocka_unit_test(bytes_that_lie_as_a_frame_are_one),
        cmocka_unit_test(says_what_is_no_picture),
        cmocka_unit_test(the_gpu_gives_the_same),
    };
    return cmocka_run_group_tests_name("parity/picture", tests, NULL, NULL);
}
