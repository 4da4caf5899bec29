/* SPDX-License-Identifier: Apache-2.0 */
/* Eyes of 180 degrees and more, seen as facets: what is found in them is what is found in a flat
 * picture of the same scene, at its place; each eye and each stream is what it would be alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu.h"
#include "tests/heads/segmenters.h"
#include "tests/vision/frames.h"

enum { EYE = 512, FLAT = 256, EDGE = 12 /* at its own edge the facet's map ends */ };
static const double pi = 3.14159265358979323846;

/* ---- a scene ---- */

struct direction {
    double x, y, z;
};

static struct direction towards(double right, double down)
{
    const double a = right * pi / 180, b = down * pi / 180;
    return (struct direction){cos(b) * sin(a), sin(b), cos(b) * cos(a)};
}

static double angle_between(struct direction a, struct direction b)
{
    const double n =
        sqrt((a.x * a.x + a.y * a.y + a.z * a.z) * (b.x * b.x + b.y * b.y + b.z * b.z));
    const double c = (a.x * b.x + a.y * b.y + a.z * b.z) / n;
    return acos(fmin(fmax(c, -1), 1)) * 180 / pi;
}

/* Bright discs, ahead and all about; degrees. */
static const struct {
    double right, down, radius;
} discs[] = {{0, 0, 8},    {25, 10, 9},  {-28, -14, 7}, {-10, 32, 8},  {40, -5, 5},
             {-60, 5, 12}, {70, 20, 10}, {10, 62, 11},  {-20, -58, 9}, {58, -50, 8}};

/* Degrees from the nearest disc's edge, below 0 inside. */
static double from_edge(struct direction d)
{
    double nearest = 180;
    for (size_t i = 0; i < SAC_COUNT(discs); i++)
        nearest = fmin(nearest,
                       angle_between(d, towards(discs[i].right, discs[i].down)) - discs[i].radius);
    return nearest;
}

/* What a picture of a size shows at a point; false: nothing. */
static bool seen_at(enum sac_projection projection, double x, double y, struct direction *out)
{
    const double u = 2 * x - 1, v = 2 * y - 1, edge = tan(55 * pi / 180);
    if (projection == SAC_PROJECTION_FLAT) {
        *out = (struct direction){u * edge, v * edge, 1};
        return true;
    }
    if (projection == SAC_PROJECTION_EQUIRECT180) {
        *out = towards(90 * u, 90 * v);
        return true;
    }
    const double r = hypot(u, v), a = r * 95 * pi / 180;
    *out = (struct direction){r > 0 ? u / r * sin(a) : 0, r > 0 ? v / r * sin(a) : 0, cos(a)};
    return r <= 1;
}

/* The way back, for directions ahead. */
static void place_of(enum sac_projection projection, struct direction d, double *x, double *y)
{
    const double n = sqrt(d.x * d.x + d.y * d.y + d.z * d.z), wide = hypot(d.x, d.y);
    if (projection == SAC_PROJECTION_EQUIRECT180) {
        *x = 0.5 + atan2(d.x, d.z) / pi;
        *y = 0.5 + asin(d.y / n) / pi;
        return;
    }
    const double r = atan2(wide, d.z) / (95 * pi / 180) / 2;
    *x = 0.5 + (wide > 0 ? d.x / wide * r : 0);
    *y = 0.5 + (wide > 0 ? d.y / wide * r : 0);
}

/* Without colours. */
static sac_frame *picture_of(sac_device *dev, enum sac_projection projection,
                             enum sac_pixel_format format, int size)
{
    sac_device *cpu = test_device();
    sac_frame  *f = test_frame(cpu, format, size, size), *out = NULL;
    test_fill(f, 128, 128, 128, 128);
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            struct direction d;
            const double     px = (x + 0.5) / size, py = (y + 0.5) / size;
            const double     inside =
                seen_at(projection, px, py, &d) ? 0.5 - from_edge(d) / (180.0 / size) : 0;
            const int step = format == SAC_PIXEL_RGB24 ? 3 : 1;
            for (int c = 0; c < step; c++)
                f->plane[0][(size_t)y * f->pitch_bytes[0] + (size_t)(step * x + c)] =
                    (uint8_t)lrint(40 + 170 * fmin(fmax(inside, 0), 1));
        }
    assert_sac_ok(sac_frame_create(dev, f, &out));
    assert_sac_ok(sac_frame_copy(f, out));
    sac_frame_unref(&f);
    sac_device_unref(&cpu);
    return out;
}

static struct sac_segmenter_params wide_params(enum sac_projection projection,
                                               enum sac_facets     facets)
{
    struct sac_segmenter_params p = test_plain_params();
    p.projection = projection;
    p.facets = facets;
    return p;
}

static sac_frame *matte_of(sac_device *dev, const char *network, struct sac_segmenter_params p,
                           sac_frame *picture)
{
    sac_segmenter *seg = test_segmenter(dev, network, &p);
    sac_frame     *matte = test_matte_of(seg, picture), *host = test_on_host(matte);
    sac_frame_unref(&matte);
    sac_segmenter_destroy(&seg);
    return host;
}

static double between(const sac_frame *f, double x, double y)
{
    const int    last = f->width - 2;
    const double in_x = fmin(fmax(x * f->width - 0.5, 0), last),
                 in_y = fmin(fmax(y * f->height - 0.5, 0), last);
    const int    at_x = (int)in_x, at_y = (int)in_y;
    const double right = in_x - at_x, below = in_y - at_y;
    return (test_matte_pixel(f, at_x, at_y) * (1 - right) +
            test_matte_pixel(f, at_x + 1, at_y) * right) *
               (1 - below) +
           (test_matte_pixel(f, at_x, at_y + 1) * (1 - right) +
            test_matte_pixel(f, at_x + 1, at_y + 1) * right) *
               below;
}

/* ---- there and back ---- */

static const enum sac_projection wide[] = {SAC_PROJECTION_FISHEYE, SAC_PROJECTION_EQUIRECT180};

/* A network of 64 cells, 2.6 degrees each in the middle. Measured: means of 2.5 and 2.7 of 255, and
 * 0.5 % of the pixels on the other side of a half. */
static void a_flat_picture_s_matte_comes_back(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *flat = picture_of(dev, SAC_PROJECTION_FLAT, SAC_PIXEL_RGB24, FLAT);
    sac_frame  *want = matte_of(dev, "maps_matte", test_plain_params(), flat);
    for (size_t i = 0; i < SAC_COUNT(wide); i++) {
        sac_frame *eye = picture_of(dev, wide[i], SAC_PIXEL_RGB24, EYE);
        sac_frame *got = matte_of(dev, "maps_matte", wide_params(wide[i], SAC_FACETS_FRONT), eye);
        double     sum = 0;
        int        wrong = 0, n = 0, bright = 0;
        for (int y = EDGE; y < FLAT - EDGE; y++)
            for (int x = EDGE; x < FLAT - EDGE; x++, n++) {
                struct direction d;
                double           px, py;
                assert_true(seen_at(SAC_PROJECTION_FLAT, (x + 0.5) / FLAT, (y + 0.5) / FLAT, &d));
                place_of(wide[i], d, &px, &py);
                const double a = test_matte_pixel(want, x, y), b = between(got, px, py);
                sum += fabs(a - b);
                bright += a > 127;
                if ((a > 127.5) == (b > 127.5))
                    continue;
                wrong++;
                if (fabs(from_edge(d)) > 1.5)
                    fail_msg("projection %d at %d,%d, %g degrees from an edge: %g, flat %g",
                             (int)wide[i], x, y, from_edge(d), b, a);
            }
        print_message("projection %d: mean difference %.2f of 255, %.2f %% on the other side\n",
                      (int)wide[i], sum / n, 100.0 * wrong / n);
        assert_true(bright > n / 20 && sum / n < 4 && wrong < n / 100);
        sac_frame_unref(&eye);
        sac_frame_unref(&got);
    }
    sac_frame_unref(&flat);
    sac_frame_unref(&want);
    sac_device_unref(&dev);
}

/* Five facets find all that is there, where it is; the one ahead nothing beside it. */
static void facets_show_a_half_sphere(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (size_t i = 0; i < 2 * SAC_COUNT(wide); i++) {
        const enum sac_projection projection = wide[i / 2];
        const enum sac_facets     facets = i % 2 ? SAC_FACETS_FRONT : SAC_FACETS_ALL;
        sac_frame                *eye = picture_of(dev, projection, SAC_PIXEL_NV12, EYE);
        sac_frame *got = matte_of(dev, "maps_matte", wide_params(projection, facets), eye);
        for (int y = 0; y < EYE; y++)
            for (int x = 0; x < EYE; x++) {
                struct direction d;
                const bool       seen = seen_at(projection, (x + 0.5) / EYE, (y + 0.5) / EYE, &d);
                const double     ahead = seen ? angle_between(d, towards(0, 0)) : 180,
                             edge = seen ? from_edge(d) : 180;
                const bool sees =
                    facets == SAC_FACETS_ALL
                        ? seen
                        : d.z > 0 && fmax(fabs(d.x), fabs(d.y)) / d.z < tan(55 * pi / 180);
                const int  v = test_matte_pixel(got, x, y);
                const bool near = facets == SAC_FACETS_FRONT && ahead > 50 && ahead < 72;
                if (near || fabs(edge) < 2.5 || ahead > 88)
                    continue;
                if ((v > 127) != (sees && edge < 0))
                    fail_msg("projection %d, facets %d at %d,%d, %g degrees from an edge, %g from "
                             "the middle: %d",
                             (int)projection, (int)facets, x, y, edge, ahead, v);
            }
        sac_frame_unref(&eye);
        sac_frame_unref(&got);
    }
    sac_device_unref(&dev);
}

/* ---- streams, eyes, runs ---- */

/* Two eyes together are what each is alone; a batch of several frames, of a network that takes one
 * image in a run, of a recurrent one, and frames that are kept. */
static void check_eyes(sac_device *dev, const char *network, enum sac_pixel_format format,
                       int slack)
{
    enum { FRAMES = 4, SIDE = 96 };
    struct sac_segmenter_params p = sac_segmenter_params_default();
    sac_frame                  *both[FRAMES], *together[FRAMES];
    struct sac_segmenter_ask    asks[FRAMES];
    struct sac_batch_times      times;
    sac_device                 *cpu = test_device();
    p.projection = SAC_PROJECTION_EQUIRECT180;
    p.facets = SAC_FACETS_ALL;
    sac_segmenter *mono = test_segmenter(dev, network, &p);
    p.batch_max = 20;
    p.stereo = SAC_STEREO_SBS;
    sac_segmenter *seg = test_segmenter(dev, network, &p);
    assert_int_equal(seg->batch, seg->run_max > 1 ? 2 : 1);
    for (int i = 0; i < FRAMES; i++) {
        sac_frame *host = test_frame(cpu, format, 2 * SIDE, SIDE);
        test_fill(host, 20, 235, 100, 156);
        assert_sac_ok(sac_frame_create(dev, host, &both[i]));
        assert_sac_ok(sac_frame_copy(host, both[i]));
        sac_frame_unref(&host);
        asks[i] = (struct sac_segmenter_ask){.frame = both[i], .keep = i == 2};
    }
    for (int i = 0, n; i < FRAMES; i += n) {
        n = SAC_MIN(seg->batch, FRAMES - i);
        assert_sac_ok(sac_segmenter_begin(seg, 0, asks + i, n));
        assert_sac_ok(sac_segmenter_end(seg, 0, together + i, NULL, NULL, &times));
    }
    for (int i = 0; i < FRAMES; i++) {
        sac_frame *got = test_on_host(together[i]);
        for (int e = 0; e < 2; e++) {
            sac_frame  part = sac_frame_part(both[i], e * SIDE, 0, SIDE, SIDE);
            sac_frame *eye = NULL, *alone = NULL;
            assert_sac_ok(sac_frame_create(dev, &part, &eye));
            assert_sac_ok(sac_frame_rescale_on(NULL, &part, SAC_FILTER_AREA, eye));
            eye->stream_id = e;
            struct sac_segmenter_ask ask = {.frame = eye, .keep = i == 2};
            assert_sac_ok(sac_segmenter_begin(mono, 0, &ask, 1));
            assert_sac_ok(sac_segmenter_end(mono, 0, &alone, NULL, NULL, &times));
            sac_frame *want = test_on_host(alone);
            for (int y = 0; y < SIDE; y++)
                for (int x = 0; x < SIDE; x++)
                    if (abs(test_matte_pixel(got, e * SIDE + x, y) - test_matte_pixel(want, x, y)) >
                        slack)
                        fail_msg("%s, %s, frame %d, eye %d at %d,%d: %d, alone %d", network,
                                 sac_pixel_format_name(format), i, e, x, y,
                                 test_matte_pixel(got, e * SIDE + x, y),
                                 test_matte_pixel(want, x, y));
            sac_frame_unref(&eye);
            sac_frame_unref(&alone);
            sac_frame_unref(&want);
        }
        sac_frame_unref(&got);
        sac_frame_unref(&together[i]);
        sac_frame_unref(&both[i]);
    }
    sac_segmenter_destroy(&seg);
    sac_segmenter_destroy(&mono);
    sac_device_unref(&cpu);
}

static void check_all(sac_device *dev, int slack)
{
    static const enum sac_pixel_format formats[] = {SAC_PIXEL_NV12, SAC_PIXEL_P010,
                                                    SAC_PIXEL_RGB24};
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

/* A network that counts its frames: were a state another facet's, it would count five times as
 * fast. */
static void each_facet_has_its_own_state(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    sac_frame  *flat = test_frame(dev, SAC_PIXEL_RGB24, FLAT, FLAT),
              *eye = test_frame(dev, SAC_PIXEL_RGB24, EYE, EYE);
    const struct sac_segmenter_params plain = test_plain_params(),
                                      p = wide_params(SAC_PROJECTION_EQUIRECT180, SAC_FACETS_ALL);
    sac_segmenter *one = test_segmenter(dev, "maps_recurrent_fixed", &plain),
                  *seg = test_segmenter(dev, "maps_recurrent_fixed", &p);
    test_fill(flat, 230, 230, 230, 230);
    test_fill(eye, 230, 230, 230, 230);
    for (int i = 0, last = 0; i < 4; i++) {
        sac_frame *a = test_matte_of(one, flat), *b = test_matte_of(seg, eye);
        const int  want = test_matte_pixel(a, FLAT / 2, FLAT / 2);
        assert_true(i == 0 || want > last);
        assert_in_range(test_matte_pixel(b, EYE / 2, EYE / 2), SAC_MAX(want - 1, 0), want + 1);
        last = want;
        sac_frame_unref(&a);
        sac_frame_unref(&b);
    }
    sac_segmenter_destroy(&one);
    sac_segmenter_destroy(&seg);
    sac_frame_unref(&flat);
    sac_frame_unref(&eye);
    sac_device_unref(&dev);
}

/* The whole way, of which all but the network is shared arithmetic. */
static void the_gpu_s_matte_is_the_cpu_s(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (size_t i = 0; i < SAC_COUNT(wide); i++) {
        struct sac_segmenter_params p = sac_segmenter_params_default();
        p.projection = wide[i];
        p.facets = SAC_FACETS_ALL;
        sac_frame *there = picture_of(gpu, wide[i], SAC_PIXEL_NV12, EYE),
                  *here = picture_of(cpu, wide[i], SAC_PIXEL_NV12, EYE);
        sac_frame *a = matte_of(cpu, "maps_matte", p, here),
                  *b = matte_of(gpu, "maps_matte", p, there);
        const int slack = test_slack(gpu);
        for (int y = 0; y < EYE; y++)
            for (int x = 0; x < EYE; x++)
                if (abs(test_matte_pixel(a, x, y) - test_matte_pixel(b, x, y)) > slack)
                    fail_msg("projection %d at %d,%d: %d, on the CPU %d", (int)wide[i], x, y,
                             test_matte_pixel(b, x, y), test_matte_pixel(a, x, y));
        sac_frame_unref(&there);
        sac_frame_unref(&here);
        sac_frame_unref(&a);
        sac_frame_unref(&b);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

static sac_frame *plain_picture(sac_device *dev, int grey)
{
    sac_frame *f = test_frame(dev, SAC_PIXEL_RGB24, EYE, EYE);
    test_fill(f, grey, grey, grey, grey);
    return f;
}

static void check_refused(sac_device *dev, const char *network,
                          const struct sac_segmenter_params *p)
{
    static const int refused[] = {191, 128};
    sac_frame       *white = plain_picture(dev, 255);
    sac_segmenter   *seg = test_segmenter(dev, network, p);
    sac_frame       *want = test_matte_of(seg, white);
    const int        width = seg->net.width, height = seg->net.height;
    for (size_t i = 0; i < SAC_COUNT(refused); i++) {
        sac_frame *grey = plain_picture(dev, refused[i]), *none = NULL;
        char       why[64];
        snprintf(why, sizeof why, "cells after ones of %dx%d; have one size", width, height);
        assert_why(sac_segmenter_run(seg, &grey, 1, &none), SAC_ERR_UNSUPPORTED, why);
        assert_null(none);
        assert_true(seg->net.width == width && seg->net.height == height);
        sac_frame_unref(&grey);
    }
    sac_frame *again = test_matte_of(seg, white);
    for (int y = 0; y < EYE; y++)
        for (int x = 0; x < EYE; x++)
            assert_int_equal(test_matte_pixel(again, x, y), test_matte_pixel(want, x, y));
    sac_frame_unref(&again);
    sac_frame_unref(&want);
    sac_segmenter_destroy(&seg);
    sac_frame_unref(&white);
}

/* Networks whose map is another one each time, while memory is for the first. Of 4000 and of 2997
 * columns at two scales an eye's map is of one size, the largest. */
static void a_refused_size_changes_nothing(void **state)
{
    (void)state;
    struct sac_segmenter_params faceted = wide_params(SAC_PROJECTION_EQUIRECT180, SAC_FACETS_ALL),
                                scaled = test_plain_params();
    sac_device *dev = test_device();
    scaled.scales[0] = 1;
    scaled.scales[1] = 2;
    check_refused(dev, "maps_varying", &faceted);
    check_refused(dev, "maps_varying_wide", &scaled);
    sac_device_unref(&dev);
}

static void maps_of_classes_have_no_facets(void **state)
{
    (void)state;
    struct sac_segmenter_params p = wide_params(SAC_PROJECTION_FISHEYE, SAC_FACETS_FRONT);
    sac_device                 *dev = test_device();
    sac_segmenter              *seg = NULL;
    char                        why[256];
    p.class_map = 1;
    assert_int_equal(sac_segmenter_create(dev, test_network("maps_torchvision"), &p, &seg),
                     SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "a map of classes is not put together from facets"));
    p.facets = SAC_FACETS_NONE;
    assert_sac_ok(sac_segmenter_create(dev, test_network("maps_torchvision"), &p, &seg));
    assert_int_equal(seg->looks, 1);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_picture_s_matte_comes_back),
        cmocka_unit_test(facets_show_a_half_sphere),
        cmocka_unit_test(each_eye_is_what_it_is_alone),
        cmocka_unit_test(each_facet_has_its_own_state),
        cmocka_unit_test(on_the_gpu_too),
        cmocka_unit_test(the_gpu_s_matte_is_the_cpu_s),
        cmocka_unit_test(a_refused_size_changes_nothing),
        cmocka_unit_test(maps_of_classes_have_no_facets),
    };
    test_without_onednn();
    return cmocka_run_group_tests_name("heads/facets", tests, NULL, NULL);
}
