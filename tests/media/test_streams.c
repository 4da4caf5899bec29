/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <saccade/source.h>

#include "tests/media/clip.h"
#include "tests/test.h"

static sac_device *dev;

static int open_device(void **state)
{
    (void)state;
    return sac_device_open(test_context(), "cpu", NULL, &dev) == SAC_OK ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    sac_device_unref(&dev);
    scratch_remove();
    return 0;
}

static void lists_video_and_audio(void **state)
{
    (void)state;
    const char *path = scratch("two.mkv");
    clip_write(path, &(struct clip){.frames = 10, .audio = 1, .audio_codec = "mp2"});
    sac_source            *src = NULL;
    struct sac_stream_info info[4];
    assert_sac_ok(sac_source_open(dev, path, NULL, &src));
    assert_int_equal(sac_source_streams(src, info, 4), 2);
    const struct sac_stream_info *video = &info[0], *audio = &info[1];
    if (strcmp(video->kind, "video") != 0) {
        video = &info[1];
        audio = &info[0];
    }
    assert_string_equal(video->kind, "video");
    assert_string_equal(video->codec, "mpeg4");
    assert_string_equal(video->format, "yuv420p");
    assert_int_equal(video->width, 320);
    assert_int_equal(video->height, 192);
    assert_true(video->fps > 24.9 && video->fps < 25.1);
    assert_true(video->chosen);
    assert_string_equal(audio->kind, "audio");
    assert_string_equal(audio->codec, "mp2");
    assert_true(audio->sample_rate > 0);
    assert_true(audio->channels > 0);
    assert_false(audio->chosen);
    /* fewer than there are: the rest stays untouched */
    strcpy(info[1].kind, "untouched");
    assert_int_equal(sac_source_streams(src, info, 1), 2);
    assert_string_equal(info[1].kind, "untouched");
    sac_source_close(&src);
}

static void an_image_is_one_stream(void **state)
{
    (void)state;
    const char *path = scratch("one.png");
    clip_write(path,
               &(struct clip){
                   .codec = "png", .pixels = AV_PIX_FMT_RGB24, .frames = 1, .format = "image2"});
    sac_source            *src = NULL;
    struct sac_stream_info info;
    assert_sac_ok(sac_source_open(dev, path, NULL, &src));
    assert_int_equal(sac_source_streams(src, &info, 1), 1);
    assert_string_equal(info.kind, "video");
    assert_string_equal(info.codec, "png");
    assert_int_equal(info.width, 320);
    assert_true(info.chosen);
    sac_source_close(&src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_video_and_audio),
        cmocka_unit_test(an_image_is_one_stream),
    };
    return cmocka_run_group_tests_name("media/streams", tests, open_device, close_device);
}
