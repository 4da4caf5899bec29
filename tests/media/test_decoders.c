/* SPDX-License-Identifier: Apache-2.0 */
/* Which decoder a stream gets, as far as that can be tested without a GPU. */
#include <stdio.h>
#include <string.h>

#include "media/media.h"
#include "tests/media/apart.h"
#include "tests/media/reading.h"

static void a_gpus_decoder_is_the_one_with_a_cuda_configuration(void **state)
{
    (void)state;
    static const enum AVCodecID ids[] = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC,
                                         AV_CODEC_ID_VP9,  AV_CODEC_ID_VP8,
                                         AV_CODEC_ID_AV1,  AV_CODEC_ID_MPEG2VIDEO};
    for (size_t i = 0; i < SAC_COUNT(ids); i++) {
        const AVCodec *codec = sac_nvdec_codec(ids[i]);
        if (!codec) { /* an FFmpeg without CUDA */
            print_message("%s: this FFmpeg has no decoder for a GPU\n", avcodec_get_name(ids[i]));
            continue;
        }
        assert_int_equal(codec->id, ids[i]);
        assert_null(strstr(codec->name, "cuvid")); /* these copy every picture */
        assert_null(strstr(codec->name, "dav1d")); /* FFmpeg's first choice, which has none */
    }
    assert_null(sac_nvdec_codec(AV_CODEC_ID_PNG));
    assert_null(sac_nvdec_codec(AV_CODEC_ID_FFV1));
    assert_null(sac_nvdec_codec(AV_CODEC_ID_NONE));
}

/* A decoder without memory ends the stream; a packet that it can't make sense of is left out. */
static void no_memory_is_not_damage(void **state)
{
    (void)state;
    char                     why[512];
    const struct sac_decoder dec = {.dev = dev, .source_name = "a.mp4", .name = "nvdec h264"};
    sac_ffmpeg_log_begin(test_context());
    assert_int_equal(sac_ffmpeg_verdict(&dec, 0), SAC_OK);
    assert_int_equal(sac_ffmpeg_verdict(&dec, AVERROR(EAGAIN)), SAC_AGAIN);
    assert_int_equal(sac_ffmpeg_verdict(&dec, AVERROR_EOF), SAC_EOS);
    assert_int_equal(sac_ffmpeg_verdict(&dec, AVERROR_INVALIDDATA), SAC_ERR_FORMAT);
    assert_int_equal(sac_ffmpeg_verdict(&dec, AVERROR_EXTERNAL), SAC_ERR_FORMAT);
    assert_int_equal(sac_ffmpeg_verdict(&dec, AVERROR(ENOMEM)), SAC_ERR_MEMORY);
    av_log(
        NULL, AV_LOG_ERROR,
        "decoder->cvdl->cuvidMapVideoFrame() failed -> CUDA_ERROR_OUT_OF_MEMORY: out of memory\n");
    assert_int_equal(sac_ffmpeg_verdict(&dec, AVERROR_EXTERNAL), SAC_ERR_MEMORY);
    sac_ffmpeg_log_end();
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "a.mp4: no memory for its decoder 'nvdec h264' on cpu"));
    assert_non_null(strstr(why, "OUT_OF_MEMORY"));
}

static struct reading read_with(const char *path, enum sac_decode decode)
{
    struct sac_source_params params = sac_source_params_default();
    params.decode = decode;
    return read_all(path, &params);
}

static void the_cpu_decodes_for_itself(void **state)
{
    (void)state;
    const char *path = scratch("a.mp4");
    clip_write(path, &(struct clip){.frames = 10});
    static const enum sac_decode modes[] = {SAC_DECODE_DEFAULT, SAC_DECODE_AUTO, SAC_DECODE_CPU};
    for (size_t i = 0; i < SAC_COUNT(modes); i++) {
        struct reading r = read_with(path, modes[i]);
        assert_int_equal(r.end, SAC_EOS);
        assert_int_equal(r.frames, 10);
        assert_string_equal(r.info.decoder, "mpeg4");
        assert_string_equal(r.info.decoder_note, "");
        assert_int_equal(r.info.surfaces, 0);
    }
}

static void a_gpu_that_is_none_is_a_sentence(void **state)
{
    (void)state;
    const char *path = scratch("b.mp4");
    char        why[512];
    clip_write(path, &(struct clip){.frames = 3});
    assert_int_equal(read_with(path, SAC_DECODE_GPU).end, SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "--decode gpu"));
    assert_non_null(strstr(why, "device cpu is no GPU"));
}

/* ---- a device that wants its frames uploaded, and decodes nothing itself ---- */

static int count_equal(sac_device *there, const char *path, const struct sac_source_params *params,
                       struct sac_source_info *info)
{
    sac_source *up = NULL, *plain = NULL;
    sac_frame  *a = NULL, *b = NULL;
    int         equal = 0;
    assert_sac_ok(sac_source_open(there, path, params, &up));
    assert_sac_ok(sac_source_open(dev, path, NULL, &plain));
    while (sac_source_read_wait(plain, &b) == SAC_OK) {
        sac_frame *host = NULL;
        assert_sac_ok(sac_source_read_wait(up, &a));
        assert_true(a->device == there && sac_frame_is_writable(a));
        assert_sac_ok(sac_frame_create(dev, a, &host));
        assert_sac_ok(sac_frame_copy(a, host));
        equal +=
            clip_number(host) == clip_number(b) && a->pts_us == b->pts_us && a->format == b->format;
        sac_frame_unref(&host);
        sac_frame_unref(&a);
        sac_frame_unref(&b);
    }
    assert_sac_error(sac_source_read_wait(up, &a), SAC_EOS);
    sac_source_describe(up, info);
    sac_source_close(&up);
    sac_source_close(&plain);
    return equal;
}

static void what_the_cpu_decodes_is_uploaded(void **state)
{
    (void)state;
    static const enum AVPixelFormat pixels[] = {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUV422P};
    for (size_t i = 0; i < SAC_COUNT(pixels); i++) { /* as it is, and converted */
        struct sac_source_params params = sac_source_params_default();
        struct sac_source_info   info;
        struct sac_ledger        ledger;
        sac_device              *there = apart_open(NULL);
        const char              *path = scratch("up%d.mkv", (int)i);
        clip_write(path, &(struct clip){.frames = 20, .codec = "ffv1", .pixels = pixels[i]});
        params.decode = i ? SAC_DECODE_AUTO : SAC_DECODE_CPU;
        assert_int_equal(count_equal(there, path, &params, &info), 20);
        sac_device_ledger(there, &ledger);
        assert_int_equal(ledger.reason[SAC_COPY_FRAME_UPLOAD].calls, 20);
        /* as they lie: rows of chroma begin at multiples of 64 bytes */
        assert_int_equal(ledger.reason[SAC_COPY_FRAME_UPLOAD].bytes,
                         20 * (320 * 192 + 2 * 192 * 96));
        assert_int_equal(ledger.reason[SAC_COPY_FRAME_CONVERT].calls, i ? 20 : 0);
        assert_string_equal(info.decoder, "ffv1");
        assert_true(info.decoder_note[0] != '\0');
        struct sac_pool_stats pool;
        sac_device_pool_stats(there, &pool);
        assert_int_equal(pool.bytes_live, 0);
        sac_device_host_pool_stats(there, &pool);
        assert_int_equal(pool.bytes_live, 0);
        sac_device_unref(&there);
    }
}

static void without_leave_the_cpu_does_not_step_in(void **state)
{
    (void)state;
    struct sac_device_params strict = sac_device_params_default();
    struct sac_source_params params = sac_source_params_default();
    sac_device              *there = apart_open(NULL);
    sac_source              *src = NULL;
    sac_frame               *frame = NULL;
    char                     why[512];
    const char              *path = scratch("c.avi");
    clip_write(path, &(struct clip){.frames = 3});
    assert_sac_error(sac_source_open(there, path, &params, &src), SAC_ERR_UNSUPPORTED);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "has no decoder on apart:0 for codec 'mpeg4'"));
    assert_non_null(strstr(why, "--decode auto"));
    sac_device_unref(&there);
    strict.zero_copy_strict = 1;
    there = apart_open(&strict);
    params.decode = SAC_DECODE_CPU;
    assert_sac_ok(sac_source_open(there, path, &params, &src));
    assert_sac_error(sac_source_read_wait(src, &frame), SAC_ERR_COPY);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "--decode gpu"));
    assert_non_null(strstr(why, "frame-upload"));
    sac_source_close(&src);
    sac_device_unref(&there);
}

/* NVDEC is asked for nothing. */
static sac_result not_called(struct sac_device *there, void *hwctx, struct sac_device_stream **out)
{
    (void)there, (void)hwctx, (void)out;
    fail_msg("motion JPEG reached the driver");
    return SAC_ERR_DEVICE;
}

/* Opened as usual, then with a driver for video. */
static sac_device *apart_open_with_video(const struct sac_device_params *params)
{
    static struct sac_device_ops ops;
    sac_device                  *there = apart_open(params);
    ops = *there->ops;
    ops.video_context = not_called;
    there->ops = &ops;
    return there;
}

static void motion_jpeg_is_left_to_the_cpu(void **state)
{
    (void)state;
    struct sac_device_params strict = sac_device_params_default();
    struct sac_source_params params = sac_source_params_default();
    struct sac_source_info   info;
    sac_device              *there = apart_open_with_video(NULL);
    sac_source              *src = NULL;
    sac_frame               *frame = NULL;
    char                     why[512];
    const char              *path = scratch("m.avi");
    clip_write(path, &(struct clip){.frames = 10, .codec = "mjpeg", .pixels = AV_PIX_FMT_YUVJ420P});
    params.decode = SAC_DECODE_GPU;
    assert_sac_error(sac_source_open(there, path, &params, &src), SAC_ERR_UNSUPPORTED);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "m.avi: NVDEC does not decode mjpeg; --decode auto or cpu"));
    for (int automatic = 0; automatic < 2; automatic++) {
        params.decode = automatic ? SAC_DECODE_AUTO : SAC_DECODE_DEFAULT;
        assert_int_equal(count_equal(there, path, &params, &info), 10);
        assert_string_equal(info.decoder, "mjpeg");
        assert_string_equal(info.decoder_note, "NVDEC does not decode mjpeg");
    }
    sac_device_unref(&there);
    strict.zero_copy_strict = 1;
    there = apart_open_with_video(&strict);
    assert_sac_ok(sac_source_open(there, path, &params, &src));
    assert_sac_error(sac_source_read_wait(src, &frame), SAC_ERR_COPY);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "upload of a frame (NVDEC does not decode mjpeg)"));
    sac_source_close(&src);
    sac_device_unref(&there);
}

static void images_are_uploaded_by_default(void **state)
{
    (void)state;
    sac_device            *there = apart_open(NULL);
    struct sac_source_info info;
    for (int i = 0; i < 4; i++)
        clip_write(scratch("img%d.png", i), &(struct clip){.frames = 1,
                                                           .first = i,
                                                           .format = "image2pipe",
                                                           .codec = "png",
                                                           .pixels = AV_PIX_FMT_RGB24});
    assert_int_equal(count_equal(there, scratch("img%%d.png"), NULL, &info), 4);
    sac_device_unref(&there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpus_decoder_is_the_one_with_a_cuda_configuration),
        cmocka_unit_test(no_memory_is_not_damage),
        cmocka_unit_test(the_cpu_decodes_for_itself),
        cmocka_unit_test(a_gpu_that_is_none_is_a_sentence),
        cmocka_unit_test(what_the_cpu_decodes_is_uploaded),
        cmocka_unit_test(without_leave_the_cpu_does_not_step_in),
        cmocka_unit_test(motion_jpeg_is_left_to_the_cpu),
        cmocka_unit_test(images_are_uploaded_by_default),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
