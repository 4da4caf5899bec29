/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "media/media.h"
#include "tests/media/apart.h"
#include "tests/media/reading.h"

static char warning[256];

static void keep_warning(void *user, enum sac_log_level level, const char *message)
{
    (void)user;
    if (level == SAC_LOG_WARN)
        snprintf(warning, sizeof warning, "%s", message);
}

static struct sac_encoder_setup setup_for(const char *const *names)
{
    return (struct sac_encoder_setup){.names = names,
                                      .preset = "veryfast",
                                      .crf = 23,
                                      .threads = 1,
                                      .width = 160,
                                      .height = 96,
                                      .time_base = {1, 90000},
                                      .fps = {25, 1},
                                      .matrix = SAC_MATRIX_BT601,
                                      .reordering = true};
}

static void says_which_encoder_stands_in(void **state)
{
    (void)state;
    static const char *const  names[] = {"not-in-this-ffmpeg", "mpeg4", NULL};
    struct sac_context_params params = sac_context_params_default();
    struct sac_encoder_setup  setup = setup_for(names);
    struct sac_encoder        enc = {0};
    sac_context              *ctx = NULL;
    sac_device               *own = NULL;
    params.log_fn = keep_warning;
    assert_sac_ok(sac_context_create(&params, &ctx));
    assert_sac_ok(sac_device_open(ctx, "cpu", NULL, &own));
    assert_sac_ok(sac_encoder_open(&enc, own, "o.mp4", &setup));
    assert_string_equal(enc.avc->codec->name, "mpeg4");
    assert_non_null(strstr(warning, "no working not-in-this-ffmpeg; encoding with mpeg4"));
    sac_encoder_close(&enc);
    sac_device_unref(&own);
    sac_context_destroy(&ctx);
}

static void says_that_there_is_none(void **state)
{
    (void)state;
    static const char *const names[] = {"not-in-this-ffmpeg", NULL};
    struct sac_encoder_setup setup = setup_for(names);
    struct sac_encoder       enc = {0};
    char                     why[256];
    assert_sac_error(sac_encoder_open(&enc, dev, "o.mp4", &setup), SAC_ERR_UNSUPPORTED);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "o.mp4: encoder not-in-this-ffmpeg: "));
    sac_encoder_close(&enc);
}

/* Encode frames at these times; the packets' times, in the encoder's ticks, sorted as they come. */
static int encode(struct sac_encoder *enc, const int64_t *pts_us, int n, AVPacket **out)
{
    sac_frame *frame = NULL;
    int        count = 0;
    for (int i = 0; i <= n; i++) {
        sac_frame  desc = enc->layout;
        sac_result res;
        if (i < n) {
            desc.pts_us = pts_us[i];
            desc.duration_us = i + 1 < n ? pts_us[i + 1] - pts_us[i] : 0;
            assert_sac_ok(sac_frame_create(dev, &desc, &frame));
            for (int p = 0; p < 3; p++)
                memset(frame->plane[p], 100, frame->pitch_bytes[p] * (size_t)(p ? 48 : 96));
        }
        assert_sac_ok(sac_encoder_send(enc, frame, NULL));
        sac_frame_unref(&frame);
        for (;;) {
            out[count] = av_packet_alloc();
            res = sac_encoder_receive(enc, out[count]);
            if (res != SAC_OK)
                break;
            count++;
        }
        av_packet_free(&out[count]);
        assert_int_equal(res, i < n ? SAC_AGAIN : SAC_EOS);
    }
    return count;
}

static void keeps_times_and_durations(void **state)
{
    (void)state;
    static const char *const names[] = {"libx264", "mpeg4", NULL};
    static const int64_t     pts[] = {0, 33333, 66667, 500000, 500001, 540000};
    struct sac_encoder_setup setup = setup_for(names);
    struct sac_encoder       enc = {0};
    AVPacket                *packets[32];
    assert_sac_ok(sac_encoder_open(&enc, dev, "o.mp4", &setup));
    int n = encode(&enc, pts, SAC_COUNT(pts), packets);
    assert_int_equal(n, SAC_COUNT(pts));
    for (int i = 0; i < n; i++) {
        int64_t shown = -1;
        for (size_t k = 0; k < SAC_COUNT(pts); k++) {
            int64_t ticks = av_rescale_q(pts[k], AV_TIME_BASE_Q, enc.avc->time_base);
            if (packets[i]->pts == ticks + (pts[k] == 500001)) /* the same tick: one later */
                shown = (int64_t)k;
        }
        assert_true(shown >= 0);
        if (pts[shown] == 66667) /* until 500000 */
            assert_in_range(av_rescale_q(packets[i]->duration, enc.avc->time_base, AV_TIME_BASE_Q),
                            433000, 434000);
        av_packet_free(&packets[i]);
    }
    sac_encoder_close(&enc);
}

/* MPEG-4 has 16 bits for ticks a second. */
static void coarsens_ticks_where_the_codec_must(void **state)
{
    (void)state;
    static const char *const names[] = {"mpeg4", NULL};
    struct sac_encoder_setup setup = setup_for(names);
    struct sac_encoder       enc = {0};
    assert_sac_ok(sac_encoder_open(&enc, dev, "o.mp4", &setup));
    assert_int_equal(enc.avc->time_base.den, 60000);
    sac_encoder_close(&enc);
    setup.time_base = (AVRational){1001, 30000};
    assert_sac_ok(sac_encoder_open(&enc, dev, "o.mp4", &setup));
    assert_int_equal(enc.avc->time_base.den, 30000);
    sac_encoder_close(&enc);
}

/* Frames of noise, each its own or all alike; *key_frames of the packets, and their bytes. */
static size_t noise_bytes(const char *name, int crf, int frames, bool still, int *key_frames)
{
    const char *const        names[] = {name, NULL};
    struct sac_encoder_setup setup = setup_for(names);
    struct sac_encoder       enc = {0};
    AVPacket                *packet = av_packet_alloc();
    size_t                   bytes = 0;
    uint32_t                 seed = 1;
    setup.crf = crf;
    assert_sac_ok(sac_encoder_open(&enc, dev, "o.mp4", &setup));
    *key_frames = 0;
    for (int i = 0; i <= frames; i++) {
        sac_frame *frame = NULL, desc = enc.layout;
        desc.pts_us = i * 40000;
        seed = still ? 1 : seed;
        if (i < frames) {
            assert_sac_ok(sac_frame_create(dev, &desc, &frame));
            for (int p = 0; p < 3; p++)
                for (size_t k = 0; k < frame->pitch_bytes[p] * (size_t)(p ? 48 : 96); k++)
                    frame->plane[p][k] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 25);
        }
        assert_sac_ok(sac_encoder_send(&enc, frame, NULL));
        sac_frame_unref(&frame);
        while (sac_encoder_receive(&enc, packet) == SAC_OK) {
            bytes += (size_t)packet->size;
            *key_frames += packet->flags & AV_PKT_FLAG_KEY ? 1 : 0;
            av_packet_unref(packet);
        }
    }
    av_packet_free(&packet);
    sac_encoder_close(&enc);
    return bytes;
}

/* A step of 6 on that scale doubles the quantiser, whose bits show in noise. */
static void every_encoder_follows_the_quality(void **state)
{
    (void)state;
    static const char *const names[] = {"libx264", "libopenh264", "mpeg4"};
    for (size_t i = 0; i < SAC_COUNT(names); i++) {
        int    keys;
        size_t last = SIZE_MAX / 16;
        for (int crf = 17; crf <= 35 && sac_encoder_exists(names[i]); crf += 6) {
            size_t bytes = noise_bytes(names[i], crf, 12, false, &keys);
            assert_in_range(bytes, 1, last * 9 / 10);
            last = bytes;
        }
    }
}

static int threads_given(const char *name, int threads, int beside)
{
    const char *const        names[] = {name, NULL};
    struct sac_encoder_setup setup = setup_for(names);
    struct sac_encoder       enc = {0};
    setup.threads = threads;
    setup.beside = beside;
    assert_sac_ok(sac_encoder_open(&enc, dev, "o.mp4", &setup));
    int given = enc.avc->thread_count;
    sac_encoder_close(&enc);
    return given;
}

static void an_encoder_has_the_threads_it_was_given(void **state)
{
    (void)state;
    assert_int_equal(threads_given("mpeg4", 3, 0), 3);
    assert_int_equal(threads_given("mpeg4", 3, 7), 3);
}

/* How many take turns for a video of this size. */
static int turns_given(struct sac_encoder_setup setup, int threads, int beside, int height)
{
    static const char *const names[] = {"libopenh264", NULL};
    struct sac_encoder       enc = {0};
    setup.names = names;
    setup.threads = threads;
    setup.beside = beside;
    setup.width = height * 16 / 9;
    setup.height = height;
    assert_sac_ok(sac_encoder_open(&enc, dev, "o.mp4", &setup));
    const int given = enc.turns ? enc.encoders : enc.avc->thread_count == 1 ? 1 : 0;
    sac_encoder_close(&enc);
    return given;
}

static void encoders_of_one_pool_take_turns(void **state)
{
    (void)state;
    if (!sac_encoder_exists("libopenh264")) {
        print_message("skipped: this FFmpeg has no OpenH264; a bundle's has it\n");
        skip();
    }
    struct sac_encoder_setup setup = setup_for(NULL);
    assert_int_equal(turns_given(setup, 1, 0, 96), 1);
    assert_int_equal(turns_given(setup, 1, 7, 96), 1);
    assert_int_equal(turns_given(setup, 3, 0, 96), 3);
    assert_int_equal(turns_given(setup, 2, 7, 96), 2);
    assert_int_equal(turns_given(setup, 16, 0, 1080), 4);
    assert_int_equal(turns_given(setup, 16, 0, 2160), 2); /* for the memory of frames that wait */
    assert_int_equal(turns_given(setup, 2, 7, 1080), 2);
    assert_int_equal(turns_given(setup, 2, 31, 1080), 1); /* all of a run hold 1 GB */
    setup.prompt = true;
    assert_int_equal(turns_given(setup, 2, 7, 96), 1);
    assert_int_equal(turns_given(setup, 16, 0, 96), 0); /* the pool */
    assert_int_equal(threads_given("libopenh264", 16, 7), 1);
}

/* In order, with the durations that the frames had, each group beginning with a key frame. */
static void turns_give_one_video(void **state)
{
    (void)state;
    static const char *const all[] = {"libopenh264", "mpeg4"};
    enum { N = 250 };
    static int64_t pts[N];
    for (int i = 0; i < N; i++)
        pts[i] = i * 40000 + (i > 100 ? 160000 : 0);
    for (size_t k = 0; k < SAC_COUNT(all); k++) {
        const char *const        names[] = {all[k], NULL};
        struct sac_encoder_setup setup = setup_for(names);
        struct sac_encoder       enc = {0};
        static AVPacket         *packets[N + 1];
        char                     how[64];
        if (!sac_encoder_exists(all[k]))
            continue;
        setup.turns = 3;
        assert_sac_ok(sac_encoder_open(&enc, dev, "o.mp4", &setup));
        sac_encoder_describe(&enc, how, sizeof how);
        assert_string_equal(how, "3 that take turns of 48 frames");
        assert_int_equal(encode(&enc, pts, N, packets), N);
        for (int i = 0; i < N; i++) {
            const AVRational base = enc.avc->time_base;
            assert_int_equal(packets[i]->pts, av_rescale_q(pts[i], AV_TIME_BASE_Q, base));
            assert_int_equal(packets[i]->dts, packets[i]->pts);
            if (i + 1 < N)
                assert_int_equal(packets[i]->duration,
                                 av_rescale_q(pts[i + 1] - pts[i], AV_TIME_BASE_Q, base));
            assert_int_equal(!!(packets[i]->flags & AV_PKT_FLAG_KEY), i % 48 == 0);
            av_packet_free(&packets[i]);
        }
        sac_encoder_close(&enc);
    }
}

/* Page-locked memory is short: videos whose encoders take turns need no more of it than others. */
static void waiting_pictures_are_in_plain_memory(void **state)
{
    (void)state;
    enum { N = 150 };
    static const char *const names[] = {"mpeg4", NULL};
    struct sac_device_params few = sac_device_params_default();
    few.host_limit_bytes = 4 * 96 * 96 * 3 / 2; /* 3 pictures */
    sac_device              *apart = apart_open(&few);
    struct sac_encoder_setup setup = setup_for(names);
    struct sac_encoder       enc = {0};
    sac_frame               *frame = NULL, desc = {0};
    AVPacket                *packet = av_packet_alloc();
    int                      packets = 0;
    setup.width = setup.height = 96;
    setup.turns = 3;
    assert_sac_ok(sac_encoder_open(&enc, apart, "o.mp4", &setup));
    assert_non_null(enc.turns);
    desc = enc.layout;
    for (int i = 0; i <= N; i++) {
        desc.pts_us = i * 40000;
        if (i < N)
            assert_sac_ok(sac_frame_create(apart, &desc, &frame));
        for (int p = 0; p < 3 && frame; p++)
            memset(frame->plane[p], i, frame->pitch_bytes[p] * (size_t)(p ? 48 : 96));
        assert_sac_ok(sac_encoder_send(&enc, frame, NULL));
        sac_frame_unref(&frame);
        for (; sac_encoder_receive(&enc, packet) == SAC_OK; packets++)
            av_packet_unref(packet);
    }
    assert_int_equal(packets, N);
    av_packet_free(&packet);
    sac_encoder_close(&enc);
    sac_device_unref(&apart);
}

/* Without key frames nobody can seek. */
static void has_key_frames(void **state)
{
    (void)state;
    static const char *const names[] = {"libx264", "libopenh264", "mpeg4"};
    for (size_t i = 0; i < SAC_COUNT(names); i++) {
        int keys = 2;
        if (sac_encoder_exists(names[i]))
            noise_bytes(names[i], 30, 260, true, &keys);
        assert_in_range(keys, 2, 5);
    }
}

/* What a GPU's encoder gets: the frame itself where its planes follow each other as it reads them,
 * else a copy. */
static void a_gpus_encoder_gets_planes_in_one_piece(void **state)
{
    (void)state;
    enum { W = 64, H = 32, CODED = 48 };
    static uint8_t surface[W * CODED * 3 / 2];
    sac_device    *apart = apart_open(NULL);
    sac_frame      desc = {.format = SAC_PIXEL_NV12, .width = W, .height = H}, *ours = NULL,
              *decoders = NULL, *got = NULL;
    struct sac_encoder enc = {.dev = apart, .layout = desc};
    for (size_t i = 0; i < sizeof surface; i++)
        surface[i] = (uint8_t)(i / W);
    assert_sac_ok(sac_download_open(&enc.down, apart, &desc));
    assert_sac_ok(sac_frame_create(apart, &desc, &ours));
    assert_sac_ok(sac_nvenc_fit(&enc, ours, true, &got));
    assert_ptr_equal(got, ours);
    sac_frame_unref(&got);
    desc.plane[0] = surface;
    desc.plane[1] = surface + W * CODED; /* behind rows that are not shown */
    desc.pitch_bytes[0] = desc.pitch_bytes[1] = W;
    assert_sac_ok(sac_frame_wrap(apart, &desc, NULL, NULL, &decoders));
    assert_sac_ok(sac_nvenc_fit(&enc, decoders, true, &got));
    assert_ptr_not_equal(got, decoders);
    assert_ptr_equal(got->plane[1], got->plane[0] + H * got->pitch_bytes[0]);
    assert_int_equal(got->plane[0][got->pitch_bytes[0] * (H - 1)], H - 1);
    assert_int_equal(got->plane[1][0], CODED);
    sac_frame_unref(&got);
    sac_frame_unref(&ours);
    sac_frame_unref(&decoders);
    sac_download_close(&enc.down);
    sac_device_unref(&apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_which_encoder_stands_in),
        cmocka_unit_test(says_that_there_is_none),
        cmocka_unit_test(keeps_times_and_durations),
        cmocka_unit_test(coarsens_ticks_where_the_codec_must),
        cmocka_unit_test(every_encoder_follows_the_quality),
        cmocka_unit_test(has_key_frames),
        cmocka_unit_test(an_encoder_has_the_threads_it_was_given),
        cmocka_unit_test(encoders_of_one_pool_take_turns),
        cmocka_unit_test(turns_give_one_video),
        cmocka_unit_test(waiting_pictures_are_in_plain_memory),
        cmocka_unit_test(a_gpus_encoder_gets_planes_in_one_piece),
    };
    return cmocka_run_group_tests_name("media/encoder", tests, open_device, close_device);
}
