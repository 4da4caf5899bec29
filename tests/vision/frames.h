/* SPDX-License-Identifier: Apache-2.0 */
/* Frames with known pixels for the image tests. */
#ifndef SAC_TESTS_IMAGE_FRAMES_H
#define SAC_TESTS_IMAGE_FRAMES_H

#include <math.h>
#include <string.h>

#include "tests/test.h"
#include "vision/vision.h"

/* What was asked of a device's pool until now. */
static inline uint64_t test_requests(sac_device *dev)
{
    struct sac_pool_stats stats;
    sac_device_pool_stats(dev, &stats);
    return stats.allocations + stats.reuses;
}

static inline sac_device *test_device(void)
{
    sac_device              *dev = NULL;
    struct sac_device_params params = sac_device_params_default();
    params.threads = 2;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &params, &dev));
    return dev;
}

static inline uint32_t test_random(void)
{
    static uint32_t state = 12345;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static inline int test_between(int low, int high)
{
    return low + (int)(test_random() % (uint32_t)(high - low + 1));
}

static inline enum sac_pixel_format test_any_format(void)
{
    return (enum sac_pixel_format)test_between(SAC_PIXEL_NONE + 1, SAC_PIXEL_FORMAT_COUNT - 1);
}

static inline sac_frame *test_frame(sac_device *dev, enum sac_pixel_format format, int width,
                                    int height)
{
    sac_frame *frame = NULL;
    sac_frame  desc = {.format = format, .width = width, .height = height};
    assert_sac_ok(sac_frame_create(dev, &desc, &frame));
    return frame;
}

/* Random samples between two levels on the scale of 8 bit; one level is that exactly. */
static inline void test_fill(sac_frame *f, int luma_low, int luma_high, int chroma_low,
                             int chroma_high)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    int                     n = sac_frame_planes(f->format, f->width, f->height, planes);
    for (int p = 0; p < n; p++)
        for (int y = 0; y < planes[p].rows; y++) {
            uint8_t *row = f->plane[p] + (size_t)y * f->pitch_bytes[p];
            bool     words = f->format == SAC_PIXEL_P010;
            for (size_t x = 0; x < planes[p].row_bytes / (words ? 2 : 1); x++) {
                int v =
                    p ? test_between(chroma_low, chroma_high) : test_between(luma_low, luma_high);
                if (words)
                    ((uint16_t *)(void *)row)[x] =
                        (uint16_t)((v * 4 + (luma_low < luma_high ? test_between(0, 3) : 0)) << 6);
                else
                    row[x] = (uint8_t)v;
            }
        }
}

static inline enum sac_orientation test_orientation(void)
{
    return (enum sac_orientation)(test_between(0, 1) ? test_between(0, SAC_ORIENTATION_COUNT - 1)
                                                     : SAC_UPRIGHT);
}

/* The frame of the CPU's as a device has it whose decoder stored it so: turned upright it is the
 * same. */
static inline sac_frame *test_lying(sac_device *dev, const sac_frame *f,
                                    enum sac_orientation orientation)
{
    const int turns = orientation & 3,
              back = orientation & SAC_MIRROR ? (int)orientation : (4 - turns) & 3;
    sac_frame  lying = sac_frame_as_turned(f, (enum sac_orientation)back);
    sac_frame *stored = NULL, *there = NULL;
    assert_sac_ok(sac_frame_wrap(f->device, &lying, NULL, NULL, &stored));
    assert_sac_ok(sac_frame_create(dev, stored, &there));
    assert_sac_ok(sac_frame_copy(stored, there));
    lying = sac_frame_as_turned(there, orientation);
    there->width = lying.width;
    there->height = lying.height;
    there->orientation = orientation;
    sac_frame_unref(&stored);
    return there;
}

/* Bytes of a pixel with R, G and B side by side; 0: another format. */
static inline int test_rgb_bytes(enum sac_pixel_format format)
{
    switch (format) {
    case SAC_PIXEL_RGB24:
    case SAC_PIXEL_BGR24: return 3;
    case SAC_PIXEL_RGBA:
    case SAC_PIXEL_BGRA: return 4;
    default: return 0;
    }
}

/* Sample c (Y, U, V or R, G, B) of the pixel x, y on the scale of 8 bit. */
static inline double test_sample(const sac_frame *f, int x, int y, int c)
{
    int            pixel = test_rgb_bytes(f->format);
    bool           rgb = pixel > 0, wide = f->format == SAC_PIXEL_P010;
    int            plane = rgb || c == 0 ? 0 : f->format == SAC_PIXEL_I420 ? c : 1;
    int            step = rgb ? pixel : plane == 1 && f->format != SAC_PIXEL_I420 ? 2 : 1;
    int            place = f->format == SAC_PIXEL_BGR24 || f->format == SAC_PIXEL_BGRA ? 2 - c : c;
    int            at = (plane ? x / 2 : x) * step + (rgb ? place : step == 2 ? c - 1 : 0);
    const uint8_t *row = f->plane[plane] + (size_t)(plane ? y / 2 : y) * f->pitch_bytes[plane];
    return wide ? (((const uint16_t *)(const void *)row)[at] >> 6) / 4.0 : row[at];
}

/* The pixel as R, G, B in 0..255: straight from the definitions of the standards. */
static inline void test_rgb(const sac_frame *f, int x, int y, double rgb[3])
{
    static const double weights[3][2] = {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}};
    x = SAC_CLAMP(x, 0, f->width - 1);
    y = SAC_CLAMP(y, 0, f->height - 1);
    if (test_rgb_bytes(f->format) || f->format == SAC_PIXEL_GRAY8) {
        for (int c = 0; c < 3; c++)
            rgb[c] = test_sample(f, x, y, f->format == SAC_PIXEL_GRAY8 ? 0 : c);
        return;
    }
    bool   full = f->range == SAC_RANGE_FULL;
    double top = f->format == SAC_PIXEL_P010 ? 1023 / 4.0 : 255;
    double luma = test_sample(f, x, y, 0), cb = test_sample(f, x, y, 1),
           cr = test_sample(f, x, y, 2);
    luma = full ? luma / top : (luma - 16) / 219;
    cb = (cb - 128) / (full ? top : 224);
    cr = (cr - 128) / (full ? top : 224);
    double kr = weights[f->matrix][0], kb = weights[f->matrix][1];
    double r = luma + 2 * (1 - kr) * cr, b = luma + 2 * (1 - kb) * cb;
    double all[3] = {r, (luma - kr * r - kb * b) / (1 - kr - kb), b};
    for (int c = 0; c < 3; c++)
        rgb[c] = SAC_CLAMP(all[c] * 255, 0.0, 255.0);
}

/* Any preprocessing, to at most width_max x height_max. */
static inline struct sac_preprocess test_random_preprocess(int width_max, int height_max)
{
    static const enum sac_dtype dtypes[] = {SAC_F32, SAC_F16, SAC_U8};
    struct sac_preprocess       pre = sac_preprocess_default();
    pre.width = test_between(1, width_max);
    pre.height = test_between(1, height_max);
    pre.fit = (enum sac_fit)test_between(0, 2);
    pre.filter = (enum sac_filter)test_between(0, 1);
    pre.order = (enum sac_channel_order)test_between(0, 1);
    pre.layout = (enum sac_tensor_layout)test_between(0, 1);
    pre.dtype = dtypes[test_between(0, 2)];
    for (int c = 0; c < 3; c++) {
        pre.mean[c] = (float)test_between(0, 128);
        pre.scale[c] = 1.0f / (float)test_between(1, 255);
        pre.fill[c] = (float)test_between(0, 255);
    }
    return pre;
}

/* None in a third of the cases, else one that may reach over the edges. */
static inline struct sac_rect test_random_crop(const sac_frame *f)
{
    if (test_between(0, 2) == 0)
        return (struct sac_rect){0, 0, 0, 0};
    float x0 = (float)test_between(-400, f->width * 10) / 10.0f,
          y0 = (float)test_between(-400, f->height * 10) / 10.0f;
    return (struct sac_rect){x0, y0, x0 + (float)test_between(5, 1200) / 10.0f,
                             y0 + (float)test_between(5, 1200) / 10.0f};
}

#endif
