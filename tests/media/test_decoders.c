/* SPDX-License-Identifier: Apache-2.0 */
/* Which decoder a stream gets, as far as that shows without a GPU. */
#include <stdio.h>
#include <string.h>

#include "media/media.h"
#include "tests/media/reading.h"

static void a_gpus_decoder_is_the_one_with_a_cuda_configuration(void **state)
{
    (void)state;
    static const enum AVCodecID ids[] = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_VP9, AV_CODEC_ID_VP8,
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpus_decoder_is_the_one_with_a_cuda_configuration),
        cmocka_unit_test(the_cpu_decodes_for_itself),
        cmocka_unit_test(a_gpu_that_is_none_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
