/* SPDX-License-Identifier: Apache-2.0 */
/* Frames with two eyes: each eye is what a frame of its own would be, to the last bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu.h"
#include "tests/heads/segmenters.h"
#include "tests/vision/frames.h"

enum { EYE_WIDTH = 88, EYE_HEIGHT = 60, COUNT = 5 };

/* ---- frames ---- */

static sac_frame part_of(const sac_frame *both, enum sac_stereo stereo, int eye)
{
    const bool across = stereo == SAC_STEREO_SBS;
    return sac_frame_part(both, across ? eye * EYE_WIDTH : 0, across ? 0 : eye * EYE_HEIGHT,
                          EYE_WIDTH, EYE_HEIGHT);
}

/* Two pictures, and both in one. */
struct pictures {
    sac_frame *eye[2], *both;
};

static struct pictures make_pictures(sac_device *dev, sac_device *cpu, enum sac_stereo stereo,
                                     enum sac_pixel_format format)
{
    const bool      across = stereo == SAC_STEREO_SBS;
    struct pictures p;
    sac_frame      *both = test_frame(cpu, format, across ? 2 * EYE_WIDTH : EYE_WIDTH,
                                 across ? EYE_HEIGHT : 2 * EYE_HEIGHT);
    for (int i = 0; i < 2; i++) {
        const sac_frame part = part_of(both, stereo, i);
        sac_frame      *eye = test_frame(cpu, format, EYE_WIDTH, EYE_HEIGHT);
        test_fill(eye, 40 + 80 * i, 200, 120, 136);
        eye->stream_id = i;
        sac_frame_copy_planes(eye, &part);
        p.eye[i] = test_moved(dev, eye);
        sac_frame_unref(&eye);
    }
    p.both = test_moved(dev, both);
    sac_frame_unref(&both);
    return p;
}

/* slack: of 255 */
static void compare(sac_device *cpu, const sac_frame *both, sac_frame *const alone[2],
                    enum sac_stereo stereo, int slack, const char *what)
{
    sac_frame *got = test_moved(cpu, both);
    for (int i = 0; i < 2; i++) {
        const sac_frame part = part_of(got, stereo, i);
        sac_frame      *want = test_moved(cpu, alone[i]);
        for (int y = 0; y < EYE_HEIGHT; y++)
            for (int x = 0; x < EYE_WIDTH; x++) {
                const int a = want->plane[0][(size_t)y * want->pitch_bytes[0] + (size_t)x],
                          b = part.plane[0][(size_t)y * part.pitch_bytes[0] + (size_t)x];
                if (abs(a - b) > slack)
                    fail_msg("%s, eye %d at %d,%d: %d, alone %d", what, i, x, y, b, a);
            }
        sac_frame_unref(&want);
    }
    sac_frame_unref(&got);
}

/* ---- one stream against two ---- */

static sac_frame *run_one(sac_segmenter *seg, struct sac_segmenter_ask ask, sac_frame *frame,
                          struct sac_segmenter_summary *summary)
{
    struct sac_batch_times times;
    sac_frame             *matte = NULL;
    ask.frame = frame;
    assert_sac_ok(sac_segmenter_begin(seg, 0, &ask, 1));
    assert_sac_ok(sac_segmenter_end(seg, 0, &matte, summary, NULL, &times));
    return matte;
}

/* Around what either eye shows, and as unsure as the unsurer. */
static void check_summary(const struct sac_segmenter_summary *s,
                          const struct sac_segmenter_summary  of[2])
{
    assert_true(s->kept == of[0].kept && s->unsure == SAC_MAX(of[0].unsure, of[1].unsure));
    for (int i = 0; i < 2; i++)
        if (of[i].found.x0 < of[i].found.x1)
            assert_true(s->found.x0 <= of[i].found.x0 && s->found.y0 <= of[i].found.y0 &&
                        s->found.x1 >= of[i].found.x1 && s->found.y1 >= of[i].found.y1);
    assert_true(s->found.x1 == SAC_MAX(of[0].found.x1, of[1].found.x1));
}

/* Frames smoothed along time, of regions, kept; in batches of several where the network takes
 * them. slack: where the network's numbers depend on the batch. */
static void check_stereo(sac_device *dev, const char *model, enum sac_stereo stereo,
                         enum sac_pixel_format format, int slack)
{
    static const bool            keep[COUNT] = {false, false, true, false, true};
    struct sac_segmenter_params  p = sac_segmenter_params_default();
    sac_device                  *cpu = test_device();
    struct pictures              pictures[COUNT];
    sac_frame                   *alone[COUNT][2], *together[COUNT];
    struct sac_segmenter_ask     asks[COUNT];
    struct sac_segmenter_summary of[COUNT][2], of_both[COUNT];
    struct sac_batch_times       times;
    char                         what[128];
    sac_segmenter               *mono = test_segmenter(dev, model, &p);
    p.batch_max = 4; /* images: two frames, or one where the network takes one image */
    p.stereo = stereo;
    sac_segmenter *seg = test_segmenter(dev, model, &p);
    const bool     recurrent = sac_feed_has(&seg->view.feed, SAC_FEED_STATE);
    assert_int_equal(seg->batch, recurrent ? 1 : 2);
    sac_segmenter_summarise(mono, true);
    sac_segmenter_summarise(seg, true);
    for (int i = 0; i < COUNT; i++) {
        asks[i] = (struct sac_segmenter_ask){.keep = keep[i]};
        if (i >= 3)
            asks[i].region = (struct sac_rect){10, 5, 71, 50};
        pictures[i] = make_pictures(dev, cpu, stereo, format);
        for (int e = 0; e < 2; e++)
            alone[i][e] = run_one(mono, asks[i], pictures[i].eye[e], &of[i][e]);
        asks[i].frame = pictures[i].both;
    }
    for (int i = 0, n; i < COUNT; i += n) {
        n = SAC_MIN(seg->batch, COUNT - i);
        assert_sac_ok(sac_segmenter_begin(seg, 0, asks + i, n));
        assert_sac_ok(sac_segmenter_end(seg, 0, together + i, of_both + i, NULL, &times));
    }
    for (int i = 0; i < COUNT; i++) {
        assert_true(together[i]->width == asks[i].frame->width &&
                    together[i]->height == asks[i].frame->height &&
                    sac_frame_is_writable(together[i]));
        assert_int_equal(of_both[i].kept, keep[i] && !recurrent);
        if (!slack)
            check_summary(&of_both[i], of[i]);
        snprintf(what, sizeof what, "%s, %s, stereo %d, frame %d", model,
                 sac_pixel_format_name(format), (int)stereo, i);
        compare(cpu, together[i], alone[i], stereo, slack, what);
        for (int e = 0; e < 2; e++) {
            sac_frame_unref(&pictures[i].eye[e]);
            sac_frame_unref(&alone[i][e]);
        }
        sac_frame_unref(&together[i]);
        sac_frame_unref(&pictures[i].both);
    }
    sac_segmenter_destroy(&mono);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&cpu);
}

static void check_all(sac_device *dev, int slack)
{
    static const enum sac_pixel_format formats[] = {SAC_PIXEL_I420, SAC_PIXEL_NV12, SAC_PIXEL_P010,
                                                    SAC_PIXEL_RGB24};
    for (size_t m = 0; m < test_kind_count(slack); m++)
        for (size_t f = 0; f < SAC_COUNT(formats); f++)
            for (int stereo = SAC_STEREO_SBS; stereo <= SAC_STEREO_TB; stereo++)
                check_stereo(dev, test_kinds[m], (enum sac_stereo)stereo, formats[f], slack);
}

static void each_eye_is_an_image_of_its_own(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    check_all(dev, 0);
    sac_device_unref(&dev);
}

static void on_the_gpu_too(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL);
    check_all(gpu, test_slack(gpu));
    sac_device_unref(&gpu);
}

static void frames_without_two_halves_are_refused(void **state)
{
    (void)state;
    static const struct {
        enum sac_stereo       stereo;
        enum sac_pixel_format format;
        int                   width, height;
        const char           *why; /* NULL: taken */
    } cases[] = {
        {SAC_STEREO_SBS, SAC_PIXEL_RGB24, 33, 32,
         "segmenter: no two eyes side by side in a frame of 33x32, rgb24: its width must be a "
         "multiple of 2"},
        {SAC_STEREO_SBS, SAC_PIXEL_RGB24, 34, 31, NULL},
        {SAC_STEREO_SBS, SAC_PIXEL_NV12, 34, 32, "its width must be a multiple of 4"},
        {SAC_STEREO_SBS, SAC_PIXEL_NV12, 36, 31, NULL},
        {SAC_STEREO_TB, SAC_PIXEL_I420, 33, 30, "its height must be a multiple of 4"},
        {SAC_STEREO_TB, SAC_PIXEL_I420, 33, 32, NULL},
        {SAC_STEREO_TB, SAC_PIXEL_GRAY8, 1, 2, NULL},
    };
    sac_device *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_segmenter_params p = sac_segmenter_params_default();
        char                        why[512] = "";
        p.stereo = cases[i].stereo;
        p.batch_max = 1;
        sac_segmenter *seg = test_segmenter(dev, "maps_matte", &p);
        assert_true(seg->batch == 1 && seg->buckets.list[seg->buckets.sizes.count - 1].size == 2);
        sac_frame *frame = test_frame(dev, cases[i].format, cases[i].width, cases[i].height);
        sac_frame *matte = NULL;
        test_fill(frame, 60, 200, 120, 136);
        const sac_result res = sac_segmenter_run(seg, &frame, 1, &matte);
        if (res != SAC_OK)
            sac_context_last_error(test_context(), why, sizeof why);
        if (res != (cases[i].why ? SAC_ERR_UNSUPPORTED : SAC_OK) ||
            (cases[i].why && !strstr(why, cases[i].why)))
            fail_msg("case %zu: %s, '%s'", i, sac_result_name(res), why);
        sac_frame_unref(&matte);
        sac_frame_unref(&frame);
        sac_segmenter_destroy(&seg);
    }
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_eye_is_an_image_of_its_own),
        cmocka_unit_test(on_the_gpu_too),
        cmocka_unit_test(frames_without_two_halves_are_refused),
    };
    test_without_onednn();
    return cmocka_run_group_tests_name("heads/stereo", tests, NULL, NULL);
}
