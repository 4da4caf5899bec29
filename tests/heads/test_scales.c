/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that the network sees at several scales: of 1 alone the matte is that of a plain look, of
 * a larger one it is finer; each eye and each stream is what it would be alone. */
#include <math.h>

#include "tests/gpu.h"
#include "tests/heads/segmenters.h"

static const enum sac_pixel_format formats[] = {SAC_PIXEL_NV12, SAC_PIXEL_P010, SAC_PIXEL_RGB24};

static struct sac_segmenter_params at_scales(struct sac_segmenter_params p, float a, float b,
                                             float c)
{
    p.scales[0] = a;
    p.scales[1] = b;
    p.scales[2] = c;
    return p;
}

static sac_frame *on_device(sac_device *dev, sac_frame *host)
{
    sac_frame *f = test_moved(dev, host);
    sac_frame_unref(&host);
    return f;
}

static sac_frame *noise(sac_device *dev, enum sac_pixel_format format, int width, int height)
{
    sac_device *cpu = test_device();
    sac_frame  *host = test_frame(cpu, format, width, height);
    test_fill(host, 20, 235, 100, 156);
    sac_device_unref(&cpu);
    return on_device(dev, host);
}

/* The matte of an ask, in host memory. */
static sac_frame *ask(sac_segmenter *seg, struct sac_segmenter_ask a,
                      struct sac_segmenter_summary *summary)
{
    struct sac_batch_times times;
    sac_frame             *matte = NULL;
    assert_sac_ok(sac_segmenter_begin(seg, 0, &a, 1));
    assert_sac_ok(sac_segmenter_end(seg, 0, &matte, summary, NULL, &times));
    sac_frame *host = test_on_host(matte);
    sac_frame_unref(&matte);
    return host;
}

/* x: from where the second one's pixels are compared. */
static void expect_alike(const sac_frame *a, const sac_frame *b, int x, int slack, const char *what)
{
    for (int y = 0; y < a->height; y++)
        for (int i = 0; i < a->width; i++)
            if (abs(test_matte_pixel(a, i, y) - test_matte_pixel(b, x + i, y)) > slack)
                fail_msg("%s, %dx%d at %d,%d: %d and %d", what, a->width, a->height, i, y,
                         test_matte_pixel(a, i, y), test_matte_pixel(b, x + i, y));
}

/* ---- what comes out ---- */

/* Frames of any shape, kept ones and regions, over time. */
static void one_scale_is_a_plain_look(void **state)
{
    (void)state;
    static const int            sizes[][2] = {{96, 96}, {160, 90}, {50, 120}, {7, 5}, {1, 1}};
    struct sac_segmenter_params plain = sac_segmenter_params_default();
    sac_device                 *dev = test_device();
    for (size_t m = 0; m < 2 * SAC_COUNT(test_kinds); m++) {
        plain.preprocess =
            m % 2 ? "rgb,letterbox=centre,fill=114,mean=0,scale=1/255" : "rgb,stretch";
        const struct sac_segmenter_params p = at_scales(plain, 1, 0, 0);
        sac_segmenter                    *one = test_segmenter(dev, test_kinds[m / 2], &plain),
                      *seg = test_segmenter(dev, test_kinds[m / 2], &p);
        assert_true(seg->scales.count == 1 && seg->looks == 1 && one->scales.count == 0);
        sac_segmenter_summarise(one, true);
        sac_segmenter_summarise(seg, true);
        for (size_t k = 0; k < SAC_COUNT(sizes); k++)
            for (int i = 0; i < 5; i++) {
                const int       w = sizes[k][0], h = sizes[k][1];
                sac_frame      *f = noise(dev, formats[i % 3], w, h);
                struct sac_rect part = {1, 2, (float)w - 2, (float)h - 1}, all = {0, 0, 0, 0};
                struct sac_segmenter_ask a = {
                    .frame = f, .keep = i == 2, .region = i >= 3 ? part : all};
                struct sac_segmenter_summary came_to[2];
                sac_frame *want = ask(one, a, &came_to[0]), *got = ask(seg, a, &came_to[1]);
                expect_alike(want, got, 0, 0, test_kinds[m / 2]);
                assert_memory_equal(&came_to[0].found, &came_to[1].found, sizeof part);
                assert_true(came_to[0].unsure == came_to[1].unsure &&
                            came_to[0].kept == came_to[1].kept);
                sac_frame_unref(&want);
                sac_frame_unref(&got);
                sac_frame_unref(&f);
            }
        sac_segmenter_destroy(&one);
        sac_segmenter_destroy(&seg);
    }
    sac_device_unref(&dev);
}

enum { SIDE = 256, DISC = 3, APART = 17 };

static bool in_disc(int x, int y)
{
    const double u = x % APART - APART / 2.0, v = y % APART - APART / 2.0;
    return u * u + v * v < DISC * DISC;
}

/* Bright discs that are not two cells of the network's map wide. */
static sac_frame *discs(sac_device *dev, int width, int height)
{
    sac_device *cpu = test_device();
    sac_frame  *f = test_frame(cpu, SAC_PIXEL_RGB24, width, height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            memset(f->plane[0] + (size_t)y * f->pitch_bytes[0] + 3 * (size_t)x,
                   in_disc(x, y) ? 235 : 20, 3);
    sac_device_unref(&cpu);
    return on_device(dev, f);
}

/* The mean distance of a matte from what is there; a network that sees brightness, as it is. */
static double error_of(sac_device *dev, float a, float b, float c, int width, int height)
{
    const struct sac_segmenter_params p = at_scales(test_plain_params(), a, b, c);
    sac_frame                        *f = discs(dev, width, height);
    sac_segmenter                    *seg = test_segmenter(dev, "maps_matte", &p);
    sac_frame *matte = ask(seg, (struct sac_segmenter_ask){.frame = f}, NULL);
    double     sum = 0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            sum += fabs(test_matte_pixel(matte, x, y) - (in_disc(x, y) ? 255.0 : 0.0));
    sac_frame_unref(&matte);
    sac_frame_unref(&f);
    sac_segmenter_destroy(&seg);
    return sum / (width * height);
}

static void a_larger_scale_shows_more(void **state)
{
    (void)state;
    static const int sizes[][2] = {{SIDE, SIDE}, {SIDE, 150}, {170, SIDE}};
    sac_device      *dev = test_device();
    for (size_t i = 0; i < SAC_COUNT(sizes); i++) {
        const int    w = sizes[i][0], h = sizes[i][1];
        const double half = error_of(dev, 0.5f, 0, 0, w, h), one = error_of(dev, 1, 0, 0, w, h),
                     most = error_of(dev, 1.75f, 0, 0, w, h), two = error_of(dev, 2, 0, 0, w, h),
                     mean = error_of(dev, 1, 2, 0, w, h);
        print_message("%dx%d: %.1f, %.1f, %.1f, %.1f, mean %.1f\n", w, h, half, one, most, two,
                      mean);
        assert_true(half > 1.1 * one && one > 1.1 * most && most > two);
        assert_true(mean > two && mean < one);
    }
    sac_device_unref(&dev);
}

/* Where all is alike, all scales see the same; on the way to it nothing is read that is not there.
 */
static void frames_of_any_size_are_seen(void **state)
{
    (void)state;
    static const int            sizes[][2] = {{1, 1}, {3, 2}, {4096, 16}, {5, 700}, {333, 1}};
    struct sac_segmenter_params p = test_plain_params();
    sac_device                 *dev = test_device();
    for (size_t i = 0; i < 2 * SAC_COUNT(sizes); i++) {
        p.preprocess = i % 2 ? "rgb,letterbox=topleft,fill=0,mean=0,scale=1/255" : NULL;
        const struct sac_segmenter_params several = at_scales(p, 0.25f, 1.3f, 2);
        const int                         w = sizes[i / 2][0], h = sizes[i / 2][1];
        sac_frame                        *f = test_frame(dev, SAC_PIXEL_RGB24, w, h);
        sac_segmenter                    *seg = test_segmenter(dev, "maps_matte", &several),
                      *one = test_segmenter(dev, "maps_matte", &p);
        for (int y = 0; y < h; y++)
            memset(f->plane[0] + (size_t)y * f->pitch_bytes[0], 200, 3 * (size_t)w);
        sac_frame *got = ask(seg, (struct sac_segmenter_ask){.frame = f}, NULL),
                  *want = ask(one, (struct sac_segmenter_ask){.frame = f}, NULL);
        expect_alike(want, got, 0, 1, p.preprocess ? p.preprocess : "stretch");
        sac_frame_unref(&f);
        sac_frame_unref(&got);
        sac_frame_unref(&want);
        sac_segmenter_destroy(&seg);
        sac_segmenter_destroy(&one);
    }
    sac_device_unref(&dev);
}

/* A network that counts its frames: were a state another look's, it would count as many times as
 * fast. */
static void each_look_has_its_own_state(void **state)
{
    (void)state;
    sac_device                       *dev = test_device();
    sac_frame                        *f = test_frame(dev, SAC_PIXEL_RGB24, SIDE, SIDE);
    const struct sac_segmenter_params plain = test_plain_params(), p = at_scales(plain, 0.5f, 1, 2);
    sac_segmenter                    *one = test_segmenter(dev, "maps_recurrent_fixed", &plain),
                  *seg = test_segmenter(dev, "maps_recurrent_fixed", &p);
    test_fill(f, 230, 230, 230, 230);
    assert_int_equal(seg->looks, 11);
    for (int i = 0, last = 0; i < 4; i++) {
        sac_frame *a = test_matte_of(one, f), *b = test_matte_of(seg, f);
        const int  want = test_matte_pixel(a, SIDE / 2, SIDE / 2);
        assert_true(i == 0 || want > last);
        assert_in_range(test_matte_pixel(b, SIDE / 2, SIDE / 2), SAC_MAX(want - 1, 0), want + 1);
        last = want;
        sac_frame_unref(&a);
        sac_frame_unref(&b);
    }
    sac_segmenter_destroy(&one);
    sac_segmenter_destroy(&seg);
    sac_frame_unref(&f);
    sac_device_unref(&dev);
}

/* ---- streams, eyes, runs ---- */

/* Two eyes together are what each is alone, in batches of several frames, some of which are kept;
 * and so are frames of different sizes in one batch. */
static void check_eyes(sac_device *dev, const char *network, enum sac_pixel_format format,
                       int slack)
{
    enum { FRAMES = 5, EYE = 96, ROWS = 60 };
    struct sac_segmenter_params p = at_scales(sac_segmenter_params_default(), 0.5f, 1, 1.75f);
    sac_frame                  *both[FRAMES], *together[FRAMES];
    struct sac_segmenter_ask    asks[FRAMES];
    struct sac_batch_times      times;
    sac_segmenter              *mono = test_segmenter(dev, network, &p);
    p.batch_max = 36;
    p.stereo = SAC_STEREO_SBS;
    sac_segmenter *seg = test_segmenter(dev, network, &p);
    assert_int_equal(seg->looks, 6);
    assert_int_equal(seg->batch, seg->run_max > 1 ? 3 : 1);
    for (int i = 0; i < FRAMES; i++) {
        both[i] = noise(dev, format, 2 * EYE, i == 3 ? 2 * ROWS : ROWS);
        both[i]->stream_id = i == 3;
        asks[i] = (struct sac_segmenter_ask){.frame = both[i], .keep = i == 1 || i == 4};
    }
    for (int i = 0, n; i < FRAMES; i += n) {
        n = SAC_MIN(seg->batch, FRAMES - i);
        assert_sac_ok(sac_segmenter_begin(seg, 0, asks + i, n));
        assert_sac_ok(sac_segmenter_end(seg, 0, together + i, NULL, NULL, &times));
    }
    for (int e = 0; e < 2; e++)
        for (int i = 0; i < FRAMES; i++) {
            sac_frame  part = sac_frame_part(both[i], e * EYE, 0, EYE, both[i]->height);
            sac_frame *eye = NULL, *got = test_on_host(together[i]);
            assert_sac_ok(sac_frame_create(dev, &part, &eye));
            assert_sac_ok(sac_frame_rescale_on(NULL, &part, SAC_FILTER_AREA, eye));
            eye->stream_id = 2 * e + both[i]->stream_id;
            sac_frame *want =
                ask(mono, (struct sac_segmenter_ask){.frame = eye, .keep = asks[i].keep}, NULL);
            expect_alike(want, got, e * EYE, slack, network);
            sac_frame_unref(&eye);
            sac_frame_unref(&want);
            sac_frame_unref(&got);
        }
    for (int i = 0; i < FRAMES; i++) {
        sac_frame_unref(&together[i]);
        sac_frame_unref(&both[i]);
    }
    sac_segmenter_destroy(&seg);
    sac_segmenter_destroy(&mono);
}

static void check_all(sac_device *dev, int slack)
{
    for (size_t m = 0; m < test_kind_count(slack); m++)
        for (size_t f = 0; f < SAC_COUNT(formats); f++)
            check_eyes(dev, test_kinds[m], formats[f], slack);
}

static void each_eye_is_what_it_is_alone(void **state)
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

/* The whole way, of which all but the network is shared arithmetic. */
static void the_gpu_s_matte_is_the_cpu_s(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (size_t i = 0; i < SAC_COUNT(test_kinds); i++) {
        const struct sac_segmenter_params p = at_scales(sac_segmenter_params_default(), 0.5f, 1, 2);
        const int                         slack = test_slack(gpu);
        sac_segmenter                    *here = test_segmenter(cpu, test_kinds[i], &p),
                      *there = test_segmenter(gpu, test_kinds[i], &p);
        sac_frame *near = discs(cpu, SIDE, 150), *far = discs(gpu, SIDE, 150);
        for (int k = 0; k < 2 && i < test_kind_count(slack); k++) {
            sac_frame *a = ask(here, (struct sac_segmenter_ask){.frame = near}, NULL),
                      *b = ask(there, (struct sac_segmenter_ask){.frame = far}, NULL);
            expect_alike(a, b, 0, slack, test_kinds[i]);
            sac_frame_unref(&a);
            sac_frame_unref(&b);
        }
        sac_frame_unref(&near);
        sac_frame_unref(&far);
        sac_segmenter_destroy(&here);
        sac_segmenter_destroy(&there);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

/* ---- refusals ---- */

static void expect_refused(sac_device *dev, const char *network, struct sac_segmenter_params p,
                           const char *words)
{
    sac_segmenter *seg = NULL;
    char           why[512];
    assert_int_equal(sac_segmenter_create(dev, test_network(network), &p, &seg), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    if (!strstr(why, words))
        fail_msg("'%s' has no '%s'", why, words);
}

static void what_has_no_mean_is_refused(void **state)
{
    (void)state;
    const struct sac_segmenter_params plain = sac_segmenter_params_default();
    struct sac_segmenter_params       p = at_scales(plain, 1, 2, 0);
    sac_device                       *dev = test_device();
    expect_refused(dev, "maps_matte", at_scales(plain, 0.2f, 0, 0), "scales");
    expect_refused(dev, "maps_matte", at_scales(plain, 1, 2.5f, 0), "scales");
    expect_refused(dev, "maps_matte", at_scales(plain, NAN, 0, 0), "scales");
    p.class_map = 1;
    expect_refused(dev, "maps_torchvision", p, "a map of classes is not averaged over scales");
    p.class_map = 0;
    p.projection = SAC_PROJECTION_FISHEYE;
    p.facets = SAC_FACETS_FRONT;
    expect_refused(dev, "maps_matte", p, "facets are seen once");
    p.facets = SAC_FACETS_NONE;
    sac_segmenter *seg = test_segmenter(dev, "maps_matte", &p);
    assert_int_equal(seg->looks, 10);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_scale_is_a_plain_look),
        cmocka_unit_test(a_larger_scale_shows_more),
        cmocka_unit_test(frames_of_any_size_are_seen),
        cmocka_unit_test(each_look_has_its_own_state),
        cmocka_unit_test(each_eye_is_what_it_is_alone),
        cmocka_unit_test(on_the_gpu_too),
        cmocka_unit_test(the_gpu_s_matte_is_the_cpu_s),
        cmocka_unit_test(what_has_no_mean_is_refused),
    };
    test_without_onednn();
    return cmocka_run_group_tests_name("heads/scales", tests, NULL, NULL);
}
