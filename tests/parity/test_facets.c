/* SPDX-License-Identifier: Apache-2.0 */
/* Facets of wide pictures and the maps put together from theirs: the tables are those of the
 * geometry, the CPU's numbers those of a formula in double precision, and the CUDA device's equal
 * them bit by bit. */
#include <math.h>

#include "vision/facets.h"
#include "vision/vision.h"
#include "tests/gpu.h"
#include "tests/parity/bytes.h"
#include "tests/vision/frames.h"

static const enum sac_projection wide[] = {SAC_PROJECTION_FISHEYE, SAC_PROJECTION_EQUIRECT180};

static float unit(void)
{
    return (float)test_between(0, 10000) / 10000;
}

/* ---- a subject ---- */

struct subject {
    enum sac_projection   projection;
    enum sac_facets       set;
    struct sac_preprocess pre;
    struct sac_matte_spec net;
    int                   count, side, width, height, images;
    size_t                numbers; /* of an image */
    float                *value;
    void                 *stored;
};

static void store(struct subject *s, size_t at, float v)
{
    s->value[at] = v;
    if (s->net.value.dtype == SAC_I64)
        ((int64_t *)s->stored)[at] = (int64_t)v;
    else
        ((float *)s->stored)[at] = v;
}

static void subject_init(struct subject *s, bool odd)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY, 1e30f};
    *s = (struct subject){.projection = wide[test_between(0, 1)],
                          .set = test_between(0, 1) ? SAC_FACETS_ALL : SAC_FACETS_FRONT};
    s->pre = sac_preprocess_default();
    s->pre.width = test_between(1, 90);
    s->pre.height = test_between(0, 1) ? s->pre.width : test_between(1, 90);
    s->pre.fit = (enum sac_fit)test_between(0, SAC_FIT_LETTERBOX_CENTRE);
    s->net = (struct sac_matte_spec){.form = (enum sac_matte_form)test_between(0, SAC_MATTE_LABEL),
                                     .width = test_between(1, 40),
                                     .height = test_between(1, 40),
                                     .input_width = s->pre.width,
                                     .input_height = s->pre.height,
                                     .classes = test_between(1, 9)};
    const int cells = s->net.width * s->net.height;
    if (s->net.form < SAC_MATTE_CLASS_LOGITS || s->net.form == SAC_MATTE_LABEL)
        s->net.classes = 1;
    s->net.wanted[0] = (uint32_t)test_between(0, 511);
    s->numbers = (size_t)(cells * s->net.classes);
    const bool last = test_between(0, 1); /* the numbers of a cell lie together */
    s->net.value =
        (struct sac_detect_field){.dtype = s->net.form == SAC_MATTE_LABEL ? SAC_I64 : SAC_F32,
                                  .image = (int64_t)s->numbers,
                                  .cell = last ? s->net.classes : 1,
                                  .number = last ? 1 : cells};
    s->count = sac_facets_count(s->projection, s->set);
    s->side = sac_facets_side(&s->pre);
    s->images = s->count * test_between(1, 3);
    sac_facets_map_size(s->projection, s->set, &s->net, &s->width, &s->height);
    const size_t n = (size_t)s->images * s->numbers;
    s->value = malloc(n * sizeof *s->value);
    s->stored = malloc(n * sizeof(int64_t));
    assert_true(s->value && s->stored);
    for (size_t i = 0; i < n; i++)
        store(s, i,
              s->net.form == SAC_MATTE_LABEL    ? (float)test_between(-1, 12)
              : odd && test_between(0, 50) == 0 ? strange[test_between(0, 3)]
                                                : unit() * 8 - 4);
}

static void subject_finish(struct subject *s)
{
    free(s->value);
    free(s->stored);
}

/* ---- a device's way ---- */

struct result {
    int16_t *shares;
    float   *maps;
};

static size_t share_count(const struct subject *s)
{
    return (size_t)(s->images * s->net.width * s->net.height);
}

static size_t map_count(const struct subject *s)
{
    return (size_t)(s->images / s->count * s->width * s->height);
}

static struct sac_facet_cell *cells_of(const struct subject *s)
{
    struct sac_facet_cell *cells = calloc((size_t)(s->width * s->height), sizeof *cells);
    assert_non_null(cells);
    sac_facets_tap(s->projection, s->set, &s->pre, &s->net, s->width, s->height, cells);
    return cells;
}

static struct result maps_by(sac_device *dev, const struct subject *s)
{
    struct sac_facet_cell *cells = cells_of(s);
    const size_t           size = s->net.value.dtype == SAC_I64 ? sizeof(int64_t) : sizeof(float);
    struct sac_buffer     *in = test_put(dev, s->stored, (size_t)s->images * s->numbers * size);
    struct sac_buffer *at = test_put(dev, cells, (size_t)(s->width * s->height) * sizeof *cells);
    struct sac_buffer *shares = test_room(dev, share_count(s) * sizeof(int16_t)),
                      *maps = test_room(dev, map_count(s) * sizeof(float));
    const void                 *tensors[SAC_MATTE_TENSORS_MAX] = {sac_buffer_data(in)};
    const struct sac_facet_maps spec = {.facets = s->count,
                                        .net_width = s->net.width,
                                        .net_height = s->net.height,
                                        .width = s->width,
                                        .height = s->height,
                                        .cells = sac_buffer_data(at)};
    assert_sac_ok(
        sac_facet_shares_run_on(dev, NULL, &s->net, tensors, s->images, sac_buffer_data(shares)));
    assert_sac_ok(sac_facet_maps_run_on(dev, NULL, &spec, sac_buffer_data(shares),
                                        s->images / s->count, sac_buffer_data(maps)));
    const struct result r = {test_get(dev, shares, share_count(s) * sizeof(int16_t)),
                             test_get(dev, maps, map_count(s) * sizeof(float))};
    sac_buffer_unref(&in);
    sac_buffer_unref(&at);
    sac_buffer_unref(&shares);
    sac_buffer_unref(&maps);
    free(cells);
    return r;
}

static void result_finish(struct result *r)
{
    free(r->shares);
    free(r->maps);
}

/* An eye's picture, random, as all devices get it. */
static sac_frame *eye_of(int width, int height)
{
    sac_device *cpu = test_device();
    sac_frame  *f = test_frame(cpu, SAC_PIXEL_RGB24, width, height);
    test_fill(f, 0, 255, 0, 255);
    sac_device_unref(&cpu);
    return f;
}

/* All facets of it, on the host. */
static uint8_t *pictures_by(sac_device *dev, const struct subject *s, const sac_frame *host)
{
    const size_t            pixels = (size_t)s->side * (size_t)s->side;
    struct sac_facet_place *places = calloc((size_t)s->count * pixels, sizeof *places);
    uint8_t                *all = malloc((size_t)s->count * pixels * 3);
    struct sac_facet_job    jobs[SAC_FACETS_MAX];
    sac_frame *eye = NULL, desc = {.format = SAC_PIXEL_RGB24, .width = s->side, .height = s->side};
    assert_true(places && all);
    sac_facets_place(s->projection, s->set, s->side, places);
    struct sac_buffer *at = test_put(dev, places, (size_t)s->count * pixels * sizeof *places);
    assert_sac_ok(sac_frame_create(dev, host, &eye));
    assert_sac_ok(sac_frame_copy(host, eye));
    for (int i = 0; i < s->count; i++) {
        jobs[i] = (struct sac_facet_job){
            eye, (struct sac_facet_place *)sac_buffer_data(at) + (size_t)i * pixels, NULL};
        assert_sac_ok(sac_frame_create(dev, &desc, &jobs[i].out));
    }
    assert_sac_ok(sac_facets_run_on(dev, NULL, jobs, s->count));
    for (int i = 0; i < s->count; i++) {
        sac_device *cpu = test_device();
        sac_frame  *out = NULL;
        assert_sac_ok(sac_frame_create(cpu, &desc, &out));
        assert_sac_ok(sac_frame_copy(jobs[i].out, out));
        for (int y = 0; y < s->side; y++)
            memcpy(all + ((size_t)i * pixels + (size_t)(y * s->side)) * 3,
                   out->plane[0] + (size_t)y * out->pitch_bytes[0], (size_t)s->side * 3);
        sac_frame_unref(&out);
        sac_frame_unref(&jobs[i].out);
        sac_device_unref(&cpu);
    }
    sac_frame_unref(&eye);
    sac_buffer_unref(&at);
    free(places);
    return all;
}

/* ---- tests ---- */

/* What a tap says is where the facet's pixel comes from: two tables, made each its own way, agree.
 * Weights are all of one, or none where no facet looks. */
static void taps_lead_back_to_places(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        struct subject s;
        subject_init(&s, false);
        s.net.width = s.pre.width;
        s.net.height = s.pre.height;
        s.pre.fit = SAC_FIT_STRETCH;
        s.pre.height = s.net.height = s.net.input_height = s.pre.width;
        s.side = s.pre.width;
        sac_facets_map_size(s.projection, s.set, &s.net, &s.width, &s.height);
        struct sac_facet_cell  *cells = cells_of(&s);
        struct sac_facet_place *places =
            calloc((size_t)(s.count * s.side * s.side), sizeof *places);
        int covered = 0, ahead = 0;
        assert_non_null(places);
        sac_facets_place(s.projection, s.set, s.side, places);
        for (int i = 0; i < s.width * s.height; i++) {
            int sum = 0;
            for (int k = 0; k < SAC_FACET_TAPS && cells[i].tap[k].weight > 0; k++) {
                const struct sac_facet_tap *t = &cells[i].tap[k];
                const double x = (i % s.width + 0.5) / s.width, y = (i / s.width + 0.5) / s.height;
                sum += t->weight;
                ahead += t->cell < s.side * s.side && t->weight > 1 << 9;
                /* Not between pixels that are far apart: about the poles. */
                if (s.side < 30 || x < 0.1 || x > 0.9 || y < 0.2 || y > 0.8)
                    continue;
                const struct sac_facet_place *p = &places[t->cell], *q = p + s.side + 1;
                if (p->x < 0 || q->x < 0)
                    continue;
                const double right = t->right / 256.0, below = t->below / 256.0,
                             of = 1 << SAC_FACET_PLACE_BITS;
                const double px = (p->x + (q->x - p->x) * right) / of,
                             py = (p->y + (q->y - p->y) * below) / of;
                if (hypot(px - x, py - y) > 0.02)
                    fail_msg("projection %d, cell %d of %dx%d at %g,%g: facets of %d show %g,%g",
                             (int)s.projection, i, s.width, s.height, x, y, s.side, px, py);
            }
            assert_true(sum == 0 || sum == 1 << SAC_FACET_WEIGHT_BITS);
            covered += sum > 0;
        }
        const double share = (double)covered / (s.width * s.height);
        if (s.width > 30 && (share < (s.set == SAC_FACETS_ALL ? 0.75 : 0.25) || ahead == 0))
            fail_msg("projection %d, facets %d: %g of the eye is seen", (int)s.projection,
                     (int)s.set, share);
        free(cells);
        free(places);
        subject_finish(&s);
    }
}

static double share_of(const struct subject *s, int image, int cell)
{
    const struct sac_detect_field *f = &s->net.value;
    const float *v = s->value + (size_t)image * s->numbers + (size_t)(cell * f->cell);
    double       most = -INFINITY, all = 0, wanted = 0;
    if (s->net.form == SAC_MATTE_LABEL)
        return *v >= 0 && s->net.wanted[0] >> (int)*v & 1;
    if (s->net.form == SAC_MATTE_SHARE || s->net.form == SAC_MATTE_LOGIT)
        return fmin(
            fmax(s->net.form == SAC_MATTE_SHARE ? (double)*v : 1 / (1 + exp((double)-*v)), 0), 1);
    for (int k = 0; k < s->net.classes; k++)
        most = fmax(most, (double)v[k * f->number]);
    for (int k = 0; k < s->net.classes; k++) {
        const double one = (double)v[k * f->number],
                     e = s->net.form == SAC_MATTE_CLASS_SHARES ? one : exp(one - most);
        all += e;
        wanted += s->net.wanted[0] >> k & 1 ? e : 0;
    }
    return s->net.form == SAC_MATTE_CLASS_SHARES ? fmin(fmax(wanted, 0), 1) : wanted / all;
}

static void maps_are_those_of_the_formula(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    for (int round = 0; round < 40; round++) {
        struct subject s;
        subject_init(&s, false);
        struct result          r = maps_by(cpu, &s);
        struct sac_facet_cell *cells = cells_of(&s);
        const int              net = s.net.width * s.net.height, own = s.width * s.height;
        for (size_t i = 0; i < share_count(&s); i++)
            assert_true(fabs(r.shares[i] / (double)SAC_MATTE_ONE -
                             share_of(&s, (int)i / net, (int)i % net)) <= 0.51 / SAC_MATTE_ONE);
        for (size_t i = 0; i < map_count(&s); i++) {
            const struct sac_facet_cell *c = &cells[i % (size_t)own];
            double                       want = 0;
            for (int k = 0; k < SAC_FACET_TAPS; k++) {
                const struct sac_facet_tap *t = &c->tap[k];
                const int16_t              *v = r.shares + (int)i / own * s.count * net + t->cell;
                const int    right = s.net.width > 1, down = s.net.height > 1 ? s.net.width : 0;
                const double x = t->right / 256.0, y = t->below / 256.0;
                want += t->weight / 1024.0 / SAC_MATTE_ONE *
                        ((v[0] * (1 - x) + v[right] * x) * (1 - y) +
                         (v[down] * (1 - x) + v[down + right] * x) * y);
            }
            assert_true(fabs(want - (double)r.maps[i]) < 1e-5);
        }
        result_finish(&r);
        free(cells);
        subject_finish(&s);
    }
    sac_device_unref(&cpu);
}

static void the_gpu_equals_the_cpu(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (int round = 0; round < gpu_rounds(60); round++) {
        struct subject s;
        subject_init(&s, round % 2);
        sac_frame    *eye = eye_of(test_between(1, 200), test_between(1, 200));
        struct result want = maps_by(cpu, &s), got = maps_by(gpu, &s);
        uint8_t      *here = pictures_by(cpu, &s, eye), *there = pictures_by(gpu, &s, eye);
        assert_memory_equal(want.shares, got.shares, share_count(&s) * sizeof(int16_t));
        assert_memory_equal(want.maps, got.maps, map_count(&s) * sizeof(float));
        assert_memory_equal(here, there, (size_t)(s.count * s.side * s.side) * 3);
        result_finish(&want);
        result_finish(&got);
        free(here);
        free(there);
        sac_frame_unref(&eye);
        subject_finish(&s);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

/* A picture that is its own coordinates: a facet's pixels tell where they come from. */
static void facets_show_what_lies_there(void **state)
{
    (void)state;
    enum { SIZE = 256 };
    sac_device *cpu = test_device();
    for (size_t i = 0; i < SAC_COUNT(wide); i++) {
        struct subject s = {.projection = wide[i],
                            .set = SAC_FACETS_ALL,
                            .side = 48,
                            .count = sac_facets_count(wide[i], SAC_FACETS_ALL)};
        sac_frame     *eye = eye_of(SIZE, SIZE);
        for (int y = 0; y < SIZE; y++)
            for (int x = 0; x < SIZE; x++) {
                uint8_t *p = eye->plane[0] + (size_t)y * eye->pitch_bytes[0] + 3 * (size_t)x;
                p[0] = (uint8_t)x, p[1] = (uint8_t)y, p[2] = 255;
            }
        const int               n = s.count * s.side * s.side;
        struct sac_facet_place *places = calloc((size_t)n, sizeof *places);
        uint8_t                *pixels = pictures_by(cpu, &s, eye);
        int                     black = 0;
        assert_non_null(places);
        sac_facets_place(s.projection, s.set, s.side, places);
        for (int k = 0; k < n; k++) {
            const uint8_t *p = pixels + 3 * (size_t)k;
            const double   x = places[k].x / 65536.0 - 0.5, y = places[k].y / 65536.0 - 0.5;
            black += places[k].x < 0;
            if (places[k].x < 0)
                assert_true(p[0] == 0 && p[1] == 0 && p[2] == 0);
            else
                assert_true(fabs(p[0] - fmin(fmax(x, 0), SIZE - 1)) <= 0.51 &&
                            fabs(p[1] - fmin(fmax(y, 0), SIZE - 1)) <= 0.51 && p[2] == 255);
        }
        /* Of 106 degrees about 50, what lies behind. */
        assert_true(black > n / 50 && black < n / 3);
        free(places);
        free(pixels);
        sac_frame_unref(&eye);
    }
    sac_device_unref(&cpu);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    sac_device                *cpu = test_device();
    sac_frame                 *eye = eye_of(8, 8), *grey = test_frame(cpu, SAC_PIXEL_GRAY8, 4, 4);
    struct sac_facet_place     place[16] = {{0, 0}};
    const struct sac_facet_job job = {eye, place, grey};
    char                       why[256];
    assert_int_equal(sac_facets_run_on(cpu, NULL, &job, 1), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "facets: job 0 of 1 has no two upright pictures in rgb24 on cpu");
    assert_sac_ok(sac_facets_run_on(cpu, NULL, &job, 0));
    sac_frame_unref(&eye);
    sac_frame_unref(&grey);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taps_lead_back_to_places),
        cmocka_unit_test(maps_are_those_of_the_formula),
        cmocka_unit_test(the_gpu_equals_the_cpu),
        cmocka_unit_test(facets_show_what_lies_there),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests_name("parity/facets", tests, NULL, NULL);
}
