/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "media/turns.h"
#include "tests/test.h"

enum { W = 320, H = 240, GROUP = 5, ENCODERS = 3, WAITING = 7, COUNT = 38, SQUARE = 32 };

static atomic_int alive; /* pictures that somebody holds */

static void free_picture(void *opaque, uint8_t *data)
{
    (void)opaque;
    free(data);
    atomic_fetch_sub(&alive, 1);
}

static int luma_of(int n)
{
    return 20 + 5 * n;
}

/* A texture that stands still, and a grey square by which the picture is known. Noisy ones take an
 * encoder several times as long. */
static void draw(AVFrame *picture, int n, bool noisy)
{
    const size_t    bytes = W * H * 3 / 2;
    uint8_t        *data = malloc(bytes);
    static uint32_t seed = 1;
    assert_non_null(data);
    memset(data + W * H, 128, W * H / 2);
    for (int i = 0; i < W * H; i++)
        data[i] = (uint8_t)(64 + (i % W * 7 ^ i / W * 5) % 128);
    for (int i = 0; noisy && i < W * H; i++)
        data[i] = (uint8_t)(data[i] + ((seed = seed * 1664525 + 1013904223) >> 28));
    for (int y = 0; y < SQUARE; y++)
        memset(data + y * W, luma_of(n), SQUARE);
    *picture = (AVFrame){0};
    AVFrame *fresh = av_frame_alloc();
    av_frame_move_ref(picture, fresh);
    av_frame_free(&fresh);
    picture->buf[0] = av_buffer_create(data, bytes, free_picture, NULL, 0);
    picture->format = AV_PIX_FMT_YUV420P;
    picture->width = W;
    picture->height = H;
    picture->data[0] = data;
    picture->data[1] = data + W * H;
    picture->data[2] = data + W * H * 5 / 4;
    picture->linesize[0] = W;
    picture->linesize[1] = picture->linesize[2] = W / 2;
    picture->pts = n;
    picture->quality = FF_QP2LAMBDA * 4;
    atomic_fetch_add(&alive, 1);
}

static AVCodecContext *open_encoder(void)
{
    const AVCodec  *codec = avcodec_find_encoder_by_name("mpeg4");
    AVCodecContext *avc = avcodec_alloc_context3(codec);
    assert_non_null(avc);
    avc->width = W;
    avc->height = H;
    avc->pix_fmt = AV_PIX_FMT_YUV420P;
    avc->time_base = (AVRational){1, 25};
    avc->gop_size = 100; /* the turns ask for key frames */
    avc->flags |= AV_CODEC_FLAG_QSCALE | AV_CODEC_FLAG_GLOBAL_HEADER;
    avc->global_quality = FF_QP2LAMBDA * 4;
    assert_int_equal(avcodec_open2(avc, codec, NULL), 0);
    return avc;
}

static struct sac_turns *create(AVCodecContext **first)
{
    AVCodecContext   *avc[ENCODERS];
    struct sac_turns *turns = NULL;
    for (int i = 0; i < ENCODERS; i++)
        avc[i] = open_encoder();
    *first = avc[0];
    assert_sac_ok(sac_turns_create(test_context(), avc, ENCODERS, GROUP, WAITING, &turns));
    return turns;
}

/* Encode COUNT pictures, those of the first encoder slowly; the packets. */
static int encode_all(struct sac_turns *turns, AVPacket **out)
{
    AVPacket *packet = av_packet_alloc();
    AVFrame  *picture = av_frame_alloc();
    int       n = 0;
    for (int i = 0; i <= COUNT; i++) {
        while (sac_turns_receive_wait(turns, packet) == 0) {
            out[n++] = av_packet_clone(packet);
            av_packet_unref(packet);
        }
        if (i < COUNT)
            draw(picture, i, i / GROUP % ENCODERS == 0);
        assert_int_equal(sac_turns_send_wait(turns, i < COUNT ? picture : NULL), 0);
        assert_in_range(atomic_load(&alive), 0, WAITING + ENCODERS); /* each keeps its last one */
    }
    for (int err; (err = sac_turns_receive_wait(turns, packet)) != AVERROR_EOF;) {
        assert_int_equal(err, 0);
        out[n++] = av_packet_clone(packet);
        av_packet_unref(packet);
    }
    av_frame_free(&picture);
    av_packet_free(&packet);
    return n;
}

static int luma_in(const AVFrame *picture)
{
    int sum = 0;
    for (int y = 0; y < SQUARE; y++)
        for (int x = 0; x < SQUARE; x++)
            sum += picture->data[0][y * picture->linesize[0] + x];
    return sum / (SQUARE * SQUARE);
}

static void packets_come_in_the_order_of_pictures(void **state)
{
    (void)state;
    AVCodecContext   *first, *decoder;
    struct sac_turns *turns = create(&first);
    AVPacket         *packet[COUNT + 1] = {0};
    AVFrame          *picture = av_frame_alloc();
    int               keys = 0;
    assert_int_equal(encode_all(turns, packet), COUNT);
    decoder = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_MPEG4));
    decoder->extradata = av_mallocz((size_t)first->extradata_size + AV_INPUT_BUFFER_PADDING_SIZE);
    decoder->extradata_size = first->extradata_size;
    memcpy(decoder->extradata, first->extradata, (size_t)first->extradata_size);
    decoder->thread_count = 1;
    decoder->flags |= AV_CODEC_FLAG_LOW_DELAY;
    decoder->err_recognition = AV_EF_EXPLODE;
    assert_int_equal(avcodec_open2(decoder, NULL, NULL), 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(packet[i]->pts, i);
        assert_int_equal(packet[i]->dts, i);
        keys += !!(packet[i]->flags & AV_PKT_FLAG_KEY);
        assert_true(i % GROUP > 0 || packet[i]->flags & AV_PKT_FLAG_KEY);
        assert_int_equal(avcodec_send_packet(decoder, packet[i]), 0);
        assert_int_equal(avcodec_receive_frame(decoder, picture), 0);
        assert_in_range(luma_in(picture) + 2 - luma_of(i), 0, 4);
        av_packet_free(&packet[i]);
    }
    assert_in_range(keys, 1, COUNT / 2); /* the others need those before them */
    av_frame_free(&picture);
    avcodec_free_context(&decoder);
    sac_turns_destroy(&turns);
    avcodec_free_context(&first);
    assert_int_equal(atomic_load(&alive), 0);
}

/* What one encoder says of a picture is heard at that picture, not before. */
static void a_failure_has_its_place(void **state)
{
    (void)state;
    enum { BAD = GROUP + 2 }; /* of the second encoder; the first is still at work */
    AVCodecContext   *first;
    struct sac_turns *turns = create(&first);
    AVPacket         *packet = av_packet_alloc();
    AVFrame          *picture = av_frame_alloc();
    int               n = 0, err = 0;
    for (int i = 0; i < WAITING + 2 && (err == 0 || err == AVERROR(EAGAIN)); i++) {
        draw(picture, i, i < GROUP);
        if (i == BAD)
            picture->pts = GROUP - 1; /* MPEG-4 refuses times that go back */
        assert_int_equal(sac_turns_send_wait(turns, picture), 0);
        for (; (err = sac_turns_receive_wait(turns, packet)) == 0; n++)
            av_packet_unref(packet);
    }
    assert_int_equal(sac_turns_send_wait(turns, NULL), 0);
    for (; err == AVERROR(EAGAIN) || err == 0; err = sac_turns_receive_wait(turns, packet)) {
        n += packet->data != NULL;
        av_packet_unref(packet);
    }
    assert_int_not_equal(err, AVERROR_EOF);
    assert_int_equal(n, BAD);
    av_frame_free(&picture);
    av_packet_free(&packet);
    sac_turns_destroy(&turns);
    avcodec_free_context(&first);
    assert_int_equal(atomic_load(&alive), 0);
}

/* As after a second Ctrl-C: without waiting for what is not encoded yet. */
static void what_waits_can_be_dropped(void **state)
{
    (void)state;
    AVCodecContext   *first;
    struct sac_turns *turns = create(&first);
    AVFrame          *picture = av_frame_alloc();
    for (int i = 0; i < WAITING; i++) {
        draw(picture, i, true);
        assert_int_equal(sac_turns_send_wait(turns, picture), 0);
    }
    sac_turns_destroy(&turns);
    avcodec_free_context(&first);
    av_frame_free(&picture);
    assert_int_equal(atomic_load(&alive), 0);
    sac_turns_destroy(&turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_come_in_the_order_of_pictures),
        cmocka_unit_test(a_failure_has_its_place),
        cmocka_unit_test(what_waits_can_be_dropped),
    };
    return cmocka_run_group_tests_name("media/turns", tests, NULL, NULL);
}
