/* SPDX-License-Identifier: Apache-2.0 */
#include <libavcodec/avcodec.h>
#include <string.h>
#include <unistd.h>

#include "device/format.h"
#include "media/media.h"
#include "tests/media/apart.h"
#include "tests/media/reading.h"
#include "tests/temporary.h"

static AVFrame *decode(const char *path)
{
    size_t          size;
    uint8_t        *bytes = file_load(path, &size);
    AVCodecContext *avc = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_PNG));
    AVPacket       *packet = av_packet_alloc();
    AVFrame        *picture = av_frame_alloc();
    assert_int_equal(av_new_packet(packet, (int)size), 0);
    memcpy(packet->data, bytes, size);
    free(bytes);
    assert_int_equal(avcodec_open2(avc, NULL, NULL), 0);
    assert_int_equal(avcodec_send_packet(avc, packet), 0);
    assert_int_equal(avcodec_receive_frame(avc, picture), 0);
    av_packet_free(&packet);
    avcodec_free_context(&avc);
    return picture;
}

/* Noise in every byte, or one byte everywhere. */
static sac_frame *frame_of(sac_device *on, enum sac_pixel_format format, int width, int height,
                           int byte)
{
    sac_frame *frame = NULL, desc = {.format = format, .width = width, .height = height};
    uint32_t   seed = (uint32_t)(width + height + (int)format);
    assert_sac_ok(sac_frame_create(on, &desc, &frame));
    struct sac_plane_layout plane[SAC_PLANES_MAX];
    const int               n = sac_frame_planes(format, width, height, plane);
    for (int p = 0; p < n; p++)
        for (size_t k = 0; k < frame->pitch_bytes[p] * (size_t)plane[p].rows; k++) {
            seed = seed * 1664525 + 1013904223;
            frame->plane[p][k] = (uint8_t)(byte < 0 ? seed >> 24 : (uint32_t)byte);
        }
    return frame;
}

static const int sizes[][2] = {{1, 1}, {3, 1}, {1, 9}, {17, 33}, {4096, 16}, {321, 193}};

static void every_byte_comes_back(void **state)
{
    (void)state;
    static const enum sac_pixel_format formats[] = {SAC_PIXEL_GRAY8, SAC_PIXEL_RGB24,
                                                    SAC_PIXEL_BGR24, SAC_PIXEL_RGBA};
    struct sac_png                    *png = NULL;
    assert_sac_ok(sac_png_create(dev, &png));
    for (size_t f = 0; f < 2 * SAC_COUNT(formats); f++)
        for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
            const int                   w = sizes[i][0], h = sizes[i][1];
            const enum sac_pixel_format format = formats[f / 2];
            const bool                  over = f % 2, grey = format == SAC_PIXEL_GRAY8;
            const char                 *path = scratch("p.png");
            sac_frame                  *frame = frame_of(dev, format, w, h, -1);
            sac_frame *alpha = over ? frame_of(dev, SAC_PIXEL_GRAY8, w, h, -1) : NULL;
            assert_sac_ok(sac_png_write_wait(png, path, frame, alpha));
            AVFrame  *picture = decode(path);
            const int step = over ? 4 : grey ? 1 : 3, from = grey ? 1 : sac_rgb_step(format);
            assert_int_equal(picture->format, over   ? AV_PIX_FMT_RGBA
                                              : grey ? AV_PIX_FMT_GRAY8
                                                     : AV_PIX_FMT_RGB24);
            assert_int_equal(picture->width, w);
            assert_int_equal(picture->height, h);
            for (int y = 0; y < h; y++)
                for (int x = 0; x < w; x++) {
                    const uint8_t *got = picture->data[0] + y * picture->linesize[0] + step * x;
                    const uint8_t *want =
                        frame->plane[0] + (size_t)y * frame->pitch_bytes[0] + (size_t)(from * x);
                    for (int c = 0; c < SAC_MIN(step, 3); c++)
                        assert_int_equal(got[c], want[grey ? 0 : sac_rgb_place(format, c)]);
                    if (over)
                        assert_int_equal(
                            got[3], alpha->plane[0][(size_t)y * alpha->pitch_bytes[0] + (size_t)x]);
                }
            av_frame_free(&picture);
            sac_frame_unref(&frame);
            sac_frame_unref(&alpha);
        }
    sac_png_destroy(&png);
}

/* Black, white and red of video, in the video's range. */
static void a_videos_colours_become_rgb(void **state)
{
    (void)state;
    static const uint8_t colours[][6] = {
        {16, 128, 128, 0, 0, 0}, {235, 128, 128, 255, 255, 255}, {81, 90, 240, 255, 0, 0}};
    struct sac_png *png = NULL;
    assert_sac_ok(sac_png_create(dev, &png));
    for (size_t i = 0; i < SAC_COUNT(colours); i++) {
        sac_frame *frame = frame_of(dev, SAC_PIXEL_I420, 6, 4, 0);
        for (int p = 0; p < 3; p++)
            memset(frame->plane[p], colours[i][p], frame->pitch_bytes[p] * (size_t)(p ? 2 : 4));
        assert_sac_ok(sac_png_write_wait(png, scratch("c.png"), frame, NULL));
        AVFrame *picture = decode(scratch("c.png"));
        for (int c = 0; c < 3; c++)
            assert_in_range(picture->data[0][c] - colours[i][3 + c] + 2, 0, 4);
        av_frame_free(&picture);
        sac_frame_unref(&frame);
    }
    sac_png_destroy(&png);
}

static void assert_same_bytes(const char *a, const char *b)
{
    size_t   na, nb;
    uint8_t *x = file_load(a, &na), *y = file_load(b, &nb);
    assert_int_equal(na, nb);
    assert_memory_equal(x, y, na);
    free(x);
    free(y);
}

/* Also after other frames, and from a device with memory of its own. */
static void the_same_pixels_give_the_same_bytes(void **state)
{
    (void)state;
    sac_device *apart = apart_open(NULL);
    for (int kind = 0; kind < 4; kind++) {
        const enum sac_pixel_format format = kind < 2 ? SAC_PIXEL_GRAY8 : SAC_PIXEL_NV12;
        const bool                  over = kind % 2;
        sac_device *const           on[] = {dev, dev, apart};
        const char *const           names[] = {"first.png", "again.png", "apart.png"};
        struct sac_ledger           before, after;
        sac_device_ledger(apart, &before);
        for (int i = 0; i < 3; i++) {
            struct sac_png *png = NULL;
            sac_frame      *frame = frame_of(on[i], format, 50, 31, -1);
            sac_frame      *alpha = over ? frame_of(on[i], SAC_PIXEL_GRAY8, 50, 31, -1) : NULL;
            sac_frame      *other = frame_of(on[i], SAC_PIXEL_NV12, 20, 10, 7);
            assert_sac_ok(sac_png_create(on[i], &png));
            if (i == 1)
                assert_sac_ok(sac_png_write_wait(png, scratch("other.png"), other, NULL));
            assert_sac_ok(sac_png_write_wait(png, scratch("%s", names[i]), frame, alpha));
            assert_same_bytes(scratch("first.png"), scratch("%s", names[i]));
            sac_png_destroy(&png);
            sac_frame_unref(&frame);
            sac_frame_unref(&alpha);
            sac_frame_unref(&other);
        }
        sac_device_ledger(apart, &after);
        assert_int_equal(after.reason[SAC_COPY_OVERLAY].calls -
                             before.reason[SAC_COPY_OVERLAY].calls,
                         over ? 2 : 1);
        assert_int_equal(after.reason[SAC_COPY_FRAME_DOWNLOAD].calls, 0);
    }
    sac_device_unref(&apart);
}

static void a_file_is_whole_or_not_there(void **state)
{
    (void)state;
    struct sac_png *png = NULL;
    sac_frame      *frame = frame_of(dev, SAC_PIXEL_RGB24, 64, 64, -1);
    sac_frame      *small = frame_of(dev, SAC_PIXEL_GRAY8, 63, 64, -1);
    const char     *full = scratch("full.png"), *path = scratch("no.png");
    assert_sac_ok(sac_png_create(dev, &png));
    assert_int_equal(symlink("/dev/full", full), 0);
    assert_why(sac_png_write_wait(png, full, frame, NULL), SAC_ERR_IO, "No space left on device");
    assert_why(sac_png_write_wait(png, scratch("missing/p.png"), frame, NULL), SAC_ERR_IO,
               "No such file or directory");
    assert_why(sac_png_write_wait(png, path, frame, small), SAC_ERR_ARG, "alpha of 63x64");
    assert_why(sac_png_write_wait(png, path, frame, frame), SAC_ERR_ARG, "alpha in rgb24");
    assert_true(access(path, F_OK) != 0);
    assert_int_equal(temporaries_of(path, NULL, 0), 0);
    assert_sac_ok(sac_png_write_wait(png, path, frame, NULL)); /* none of that broke it */
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(temporaries_of(path, NULL, 0), 0);
    sac_png_destroy(&png);
    sac_frame_unref(&frame);
    sac_frame_unref(&small);
}

static void strict_mode_refuses(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    struct sac_png          *png = NULL;
    params.zero_copy_strict = 1;
    sac_device *apart = apart_open(&params);
    assert_why(sac_png_create(apart, &png), SAC_ERR_COPY, "overlay-download");
    sac_device_unref(&apart);
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    const char *path = scratch("allocations.png");
    sac_result  res = SAC_ERR_MEMORY;
    for (long n = 1; n < 200 && res != SAC_OK; n++) {
        struct sac_png *png = NULL;
        sac_frame      *frame = frame_of(dev, SAC_PIXEL_NV12, 64, 48, -1);
        sac_frame      *alpha = frame_of(dev, SAC_PIXEL_GRAY8, 64, 48, -1);
        sac_alloc_fail_at(n);
        res = sac_png_create(dev, &png);
        if (res == SAC_OK)
            res = sac_png_write_wait(png, path, frame, alpha);
        sac_alloc_fail_at(0);
        assert_true(res == SAC_OK || res == SAC_ERR_MEMORY);
        assert_true((access(path, F_OK) == 0) == (res == SAC_OK));
        sac_png_destroy(&png);
        sac_frame_unref(&frame);
        sac_frame_unref(&alpha);
    }
    assert_int_equal(res, SAC_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(a_videos_colours_become_rgb),
        cmocka_unit_test(the_same_pixels_give_the_same_bytes),
        cmocka_unit_test(a_file_is_whole_or_not_there),
        cmocka_unit_test(strict_mode_refuses),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("media/png", tests, open_device, close_device);
}
