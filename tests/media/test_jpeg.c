/* SPDX-License-Identifier: Apache-2.0 */
#include <libavcodec/avcodec.h>
#include <string.h>

#include "media/media.h"
#include "tests/test.h"

static AVFrame *decode(uint8_t *bytes, size_t size)
{
    const AVCodec  *codec = avcodec_find_decoder(AV_CODEC_ID_MJPEG);
    AVCodecContext *avc = avcodec_alloc_context3(codec);
    AVPacket       *packet = av_packet_alloc();
    AVFrame        *picture = av_frame_alloc();
    assert_int_equal(av_new_packet(packet, (int)size), 0);
    memcpy(packet->data, bytes, size);
    assert_int_equal(avcodec_open2(avc, codec, NULL), 0);
    assert_int_equal(avcodec_send_packet(avc, packet), 0);
    assert_int_equal(avcodec_receive_frame(avc, picture), 0);
    av_packet_free(&packet);
    avcodec_free_context(&avc);
    return picture;
}

/* JFIF: full range, BT.601. */
static void a_colour_comes_back(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {3, 1}, {1, 9}, {17, 33}, {48, 91}, {640, 480}};
    for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
        const int width = sizes[i][0], height = sizes[i][1];
        uint8_t  *rgb = malloc((size_t)(3 * width * height)), *bytes = NULL;
        size_t    size = 0;
        for (int k = 0; k < 3 * width * height; k += 3)
            rgb[k] = 250, rgb[k + 1] = 20, rgb[k + 2] = 60;
        assert_int_equal(sac_jpeg_encode(test_context(), rgb, width, height, &bytes, &size),
                         SAC_OK);
        assert_true(size > 4 && bytes[0] == 0xff && bytes[1] == 0xd8);
        AVFrame *picture = decode(bytes, size);
        assert_int_equal(picture->width, width);
        assert_int_equal(picture->height, height);
        assert_in_range(picture->data[0][0], 92 - 3, 92 + 3);
        assert_in_range(picture->data[1][0], 110 - 3, 110 + 3);
        assert_in_range(picture->data[2][0], 240 - 3, 240 + 3);
        av_frame_free(&picture);
        sac_free(bytes);
        free(rgb);
    }
}

static void a_size_that_jpeg_has_not_is_refused(void **state)
{
    (void)state;
    uint8_t rgb[3] = {0}, *bytes = NULL;
    size_t  size = 0;
    assert_true(sac_jpeg_encode(test_context(), rgb, 0, 1, &bytes, &size) < 0);
    assert_null(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_colour_comes_back),
        cmocka_unit_test(a_size_that_jpeg_has_not_is_refused),
    };
    return cmocka_run_group_tests_name("media/jpeg", tests, NULL, NULL);
}
