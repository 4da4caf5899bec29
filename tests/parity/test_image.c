/* SPDX-License-Identifier: Apache-2.0 */
/* The image operations of the CUDA device against the CPU's, on random, extreme and odd-sized
 * frames, upright and lying on any side: equal to the last bit, as both compute by vision/sample.h.
 * The same arithmetic, pixel by pixel, is checked on the host first. */
#include <stdio.h>

#include "vision/cpu/resample.h"
#include "vision/fit.h"
#include "tests/gpu.h"
#include "tests/vision/frames.h"

static sac_device *cpu;

static int open_cpu(void **state)
{
    (void)state;
    cpu = test_device();
    return 0;
}

static int close_cpu(void **state)
{
    (void)state;
    sac_device_unref(&cpu);
    return 0;
}

/* ---- cases ---- */

static sac_frame *random_frame(int width_max, int height_max)
{
    bool       tiny = test_between(0, 4) == 0;
    sac_frame *f = test_frame(cpu, test_any_format(), test_between(1, tiny ? 3 : width_max),
                              test_between(1, tiny ? 3 : height_max));
    f->matrix = (enum sac_colour_matrix)test_between(0, 2);
    f->range = (enum sac_colour_range)test_between(0, 1);
    test_fill(f, 0, 255, 0, 255);
    return f;
}

static const char *describe(const struct sac_preprocess *pre, const sac_frame *f, char out[200])
{
    snprintf(
        out, 200, "%s %dx%d matrix %d range %d -> %dx%d fit %d filter %d order %d layout %d %s",
        sac_pixel_format_name(f->format), f->width, f->height, f->matrix, f->range, pre->width,
        pre->height, pre->fit, pre->filter, pre->order, pre->layout, sac_dtype_name(pre->dtype));
    return out;
}

/* ---- the arithmetic on the host ---- */

enum { TAPS_MAX = 512 };

/* The kernels' body for a format: all orders of R, G and B have one. */
static enum sac_pixel_format body_for(enum sac_pixel_format format)
{
    return sac_rgb_step(format) ? SAC_PIXEL_RGB24 : format;
}

/* Weights from a table, as the kernels have them for most sizes; false: too many. */
static bool weights_of(const struct sac_axis_spec *spec, int at, int32_t one,
                       int32_t weight[TAPS_MAX], struct sac_taps *out)
{
    struct sac_axis_walk w;
    sac_axis_walk_begin(&w, spec, at, one);
    *out = (struct sac_taps){.first = w.first, .weight = weight, .stride = 1};
    while (w.given < one && out->taps < TAPS_MAX) {
        weight[out->taps] = sac_axis_walk_next(&w, spec, w.first + out->taps, one);
        out->taps++;
    }
    return w.given == one;
}

static struct sac_reading reading_of(const struct sac_surface *s)
{
    return (struct sac_reading){body_for(s->format), s->turned || test_between(0, 1)};
}

static void check_table(const struct sac_surface *s, const struct sac_axis_spec *ax, int x,
                        const struct sac_axis_spec *ay, int y, const float want[3])
{
    int32_t         weight_x[TAPS_MAX], weight_y[TAPS_MAX];
    struct sac_taps tx, ty;
    float           rgb[3];
    if (!weights_of(ax, x, 1 << SAC_COLUMN_WEIGHT_BITS, weight_x, &tx) ||
        !weights_of(ay, y, 1 << SAC_ROW_WEIGHT_BITS, weight_y, &ty))
        return;
    sac_sample_taps(s, reading_of(s), &tx, &ty, rgb);
    assert_memory_equal(rgb, want, sizeof rgb);
}

static void sample_pixel(const struct sac_surface *s, const struct sac_axis_spec *ax, int x,
                         const struct sac_axis_spec *ay, int y, float rgb[3])
{
    if (ax->area || ay->area)
        sac_sample_area(s, reading_of(s), ax, x, ay, y, rgb);
    else
        sac_sample_bilinear(s, reading_of(s), sac_axis_tap(ax, x, 1 << SAC_COLUMN_WEIGHT_BITS),
                            sac_axis_tap(ay, y, 1 << SAC_ROW_WEIGHT_BITS), rgb);
    check_table(s, ax, x, ay, y, rgb);
}

/* lying: the job's frame as it may be stored. */
static void check_pixels(const struct sac_preprocess *pre, const struct sac_preprocess_job *job,
                         const sac_frame *lying, const float *image)
{
    const sac_frame     *f = job->frame;
    struct sac_rect      r = sac_job_crop(job);
    struct sac_fit_box   box = sac_fit_box_of(pre, &r);
    struct sac_surface   s = sac_surface_of(lying);
    struct sac_axis_spec ax =
        sac_axis_spec_of(box.width, f->width, r.x0, (double)r.x1 - r.x0, pre->filter);
    struct sac_axis_spec ay =
        sac_axis_spec_of(box.height, f->height, r.y0, (double)r.y1 - r.y0, pre->filter);
    char what[200];
    for (int y = 0; y < box.height; y++)
        for (int x = 0; x < box.width; x++) {
            float rgb[3];
            sample_pixel(&s, &ax, x, &ay, y, rgb);
            if (sac_is_yuv(f->format))
                sac_colour_apply(&s.colour, rgb);
            const float *want =
                image + ((size_t)(y + box.y) * (size_t)pre->width + (size_t)(x + box.x)) * 3;
            for (int c = 0; c < 3; c++)
                if (rgb[sac_rgb_place(f->format, c)] != want[c])
                    fail_msg("%s, stored %s, at %d,%d,%d: %.9g, the rows give %.9g",
                             describe(pre, f, what), sac_orientation_name(lying->orientation), x, y,
                             c, (double)rgb[sac_rgb_place(f->format, c)], (double)want[c]);
        }
}

static void a_pixel_is_what_the_rows_give(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct sac_preprocess pre = test_random_preprocess(50, 40);
        pre.layout = SAC_TENSOR_LAYOUT_NHWC;
        pre.order = SAC_ORDER_RGB;
        pre.dtype = SAC_F32;
        for (int c = 0; c < 3; c++) {
            pre.mean[c] = 0;
            pre.scale[c] = 1;
        }
        sac_frame *f = random_frame(150, 90), *lying = test_lying(cpu, f, test_orientation());
        struct sac_preprocess_job job = {f, test_random_crop(f)};
        struct sac_tensor_desc    desc = sac_preprocess_desc(&pre, 1);
        sac_tensor               *t = NULL;
        assert_sac_ok(sac_tensor_create(cpu, &desc, "test", &t));
        assert_sac_ok(sac_preprocess_run(cpu, &pre, &job, 1, t));
        check_pixels(&pre, &job, lying, sac_tensor_data(t));
        sac_tensor_unref(&t);
        sac_frame_unref(&lying);
        sac_frame_unref(&f);
    }
}

/* ---- the device ---- */

static sac_frame *upload(sac_device *gpu, const sac_frame *f)
{
    sac_frame *out = NULL;
    assert_sac_ok(sac_frame_create(gpu, f, &out));
    assert_sac_ok(sac_frame_copy(f, out));
    return out;
}

static void compare_tensors(const struct sac_preprocess *pre, const struct sac_preprocess_job *jobs,
                            int n, const sac_tensor *want, const sac_tensor *got)
{
    const size_t   bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(want));
    const size_t   image = bytes / (size_t)n, size = sac_dtype_bytes(pre->dtype);
    uint8_t       *host = sac_alloc(bytes);
    const uint8_t *ref = sac_tensor_data(want);
    size_t         differ = 0, first = bytes;
    char           what[200];
    assert_non_null(host);
    assert_sac_ok(sac_tensor_download(got, host));
    for (size_t i = 0; i < bytes; i += size)
        if (memcmp(host + i, ref + i, size) != 0) {
            first = differ ? first : i;
            differ++;
        }
    sac_free(host);
    if (differ)
        fail_msg("%s: %zu of %zu numbers differ, the first in image %zu, number %zu",
                 describe(pre, jobs[first / image].frame, what), differ, bytes / size,
                 first / image, first % image / size);
}

/* Of one launch all are upright, all lie, or some do. */
static enum sac_orientation orientation_for(int image)
{
    static int kind;
    if (image == 0)
        kind = test_between(0, 2);
    return kind == 0   ? SAC_UPRIGHT
           : kind == 1 ? (enum sac_orientation)test_between(1, 7)
                       : test_orientation();
}

static void check_preprocess(sac_device *gpu, const struct sac_preprocess *pre,
                             const struct sac_preprocess_job *jobs, int n)
{
    struct sac_tensor_desc     desc = sac_preprocess_desc(pre, n);
    sac_tensor                *want = NULL, *got = NULL;
    struct sac_preprocess_job *there = sac_calloc((size_t)n, sizeof *there);
    char                      *poison;
    assert_non_null(there);
    assert_sac_ok(sac_tensor_create(cpu, &desc, "want", &want));
    assert_sac_ok(sac_tensor_create(gpu, &desc, "got", &got));
    poison = sac_alloc((size_t)sac_tensor_desc_bytes(&desc));
    assert_non_null(poison);
    memset(poison, 0xb7, (size_t)sac_tensor_desc_bytes(&desc));
    assert_sac_ok(sac_tensor_upload(got, poison));
    for (int i = 0; i < n; i++)
        there[i] = (struct sac_preprocess_job){test_lying(gpu, jobs[i].frame, orientation_for(i)),
                                               jobs[i].crop};
    assert_sac_ok(sac_preprocess_run(cpu, pre, jobs, n, want));
    assert_sac_ok(sac_preprocess_run(gpu, pre, there, n, got));
    compare_tensors(pre, jobs, n, want, got);
    for (int i = 0; i < n; i++)
        sac_frame_unref((sac_frame **)&there[i].frame);
    sac_free(there);
    sac_free(poison);
    sac_tensor_unref(&want);
    sac_tensor_unref(&got);
}

static void preprocess_of_random_frames(void **state)
{
    (void)state;
    enum { IMAGES_MAX = 5 };
    sac_device *gpu = gpu_open(NULL);
    for (int round = 0; round < gpu_rounds(300); round++) {
        struct sac_preprocess     pre = test_random_preprocess(150, 50);
        struct sac_preprocess_job jobs[IMAGES_MAX];
        int                       n = test_between(1, IMAGES_MAX);
        for (int i = 0; i < n; i++) {
            jobs[i].frame = random_frame(200, 120);
            jobs[i].crop = test_random_crop(jobs[i].frame);
        }
        check_preprocess(gpu, &pre, jobs, n);
        for (int i = 0; i < n; i++)
            sac_frame_unref((sac_frame **)&jobs[i].frame);
    }
    sac_device_unref(&gpu);
}

/* As a detector and a matting network see video; and as much shrinking as there can be. */
static void preprocess_of_large_frames(void **state)
{
    (void)state;
    static const int sizes[][4] = {{1920, 1080, 640, 640}, {3840, 2160, 640, 384},
                                   {1919, 1079, 417, 415}, {7680, 4320, 64, 36},
                                   {31, 4001, 3, 640},     {64, 48, 1283, 721}};
    sac_device      *gpu = gpu_open(NULL);
    for (int i = 0; i < gpu_rounds(SAC_COUNT(sizes)); i++)
        for (int format = SAC_PIXEL_NV12; format <= SAC_PIXEL_P010; format++) {
            struct sac_preprocess pre = test_random_preprocess(1, 1);
            sac_frame *f = test_frame(cpu, (enum sac_pixel_format)format, sizes[i][0], sizes[i][1]);
            pre.width = sizes[i][2];
            pre.height = sizes[i][3];
            pre.dtype = format == SAC_PIXEL_NV12 ? SAC_F16 : SAC_F32;
            pre.filter = i % 2 ? SAC_FILTER_AREA : SAC_FILTER_BILINEAR;
            test_fill(f, 0, 255, 0, 255);
            struct sac_preprocess_job job = {.frame = f};
            check_preprocess(gpu, &pre, &job, 1);
            sac_frame_unref(&f);
        }
    sac_device_unref(&gpu);
}

/* More crops than one launch takes, of one frame: what a re-identification network asks for. */
static void preprocess_of_many_crops(void **state)
{
    (void)state;
    enum { CROPS = 401 };
    sac_device               *gpu = gpu_open(NULL);
    struct sac_preprocess     pre = test_random_preprocess(1, 1);
    sac_frame                *f = test_frame(cpu, SAC_PIXEL_NV12, 640, 360);
    struct sac_preprocess_job jobs[CROPS];
    test_fill(f, 0, 255, 0, 255);
    pre.width = 32;
    pre.height = 64;
    for (int n = 1; n <= CROPS; n += 100) {
        for (int i = 0; i < n; i++)
            jobs[i] = (struct sac_preprocess_job){f, test_random_crop(f)};
        check_preprocess(gpu, &pre, jobs, n);
    }
    sac_frame_unref(&f);
    sac_device_unref(&gpu);
}

static void compare_frames(const sac_frame *want, const sac_frame *got, const char *what)
{
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    int                     n = sac_frame_planes(want->format, want->width, want->height, planes);
    for (int p = 0; p < n; p++)
        for (int y = 0; y < planes[p].rows; y++)
            for (size_t x = 0; x < planes[p].row_bytes; x++) {
                int a = want->plane[p][(size_t)y * want->pitch_bytes[p] + x];
                int b = got->plane[p][(size_t)y * got->pitch_bytes[p] + x];
                if (a != b)
                    fail_msg("%s: plane %d, row %d, byte %zu is %d, the CPU has %d", what, p, y, x,
                             b, a);
            }
}

static void convert_of_any_pair(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL);
    for (int round = 0; round < gpu_rounds(500); round++) {
        sac_frame *src = random_frame(150, 90), *want = random_frame(150, 90);
        sac_frame *back = test_frame(cpu, want->format, want->width, want->height);
        if (round % 5 == 0) { /* the same size */
            sac_frame_unref(&want);
            sac_frame_unref(&back);
            want = test_frame(cpu, test_any_format(), src->width, src->height);
            back = test_frame(cpu, want->format, want->width, want->height);
        }
        sac_frame      *there = test_lying(gpu, src, test_orientation()), *got = NULL;
        enum sac_filter filter = (enum sac_filter)test_between(0, 1);
        char            what[200];
        snprintf(what, sizeof what, "%s %dx%d, stored %s -> %s %dx%d filter %d",
                 sac_pixel_format_name(src->format), src->width, src->height,
                 sac_orientation_name(there->orientation), sac_pixel_format_name(want->format),
                 want->width, want->height, filter);
        assert_sac_ok(sac_frame_create(gpu, want, &got));
        assert_sac_ok(sac_frame_convert(src, filter, want));
        assert_sac_ok(sac_frame_convert(there, filter, got));
        assert_sac_ok(sac_frame_copy(got, back));
        compare_frames(want, back, what);
        sac_frame_unref(&src);
        sac_frame_unref(&want);
        sac_frame_unref(&back);
        sac_frame_unref(&there);
        sac_frame_unref(&got);
    }
    sac_device_unref(&gpu);
}

/* A copy and planes in the user's hands. */
static void copies_are_upright(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL);
    for (int round = 0; round < gpu_rounds(100); round++) {
        sac_frame *f = random_frame(150, 90),
                  *back = test_frame(cpu, f->format, f->width, f->height);
        sac_frame *there =
                      test_lying(gpu, f, (enum sac_orientation)(round % SAC_ORIENTATION_COUNT)),
                  *other = NULL;
        sac_tensor *plane = NULL;
        assert_sac_ok(sac_frame_copy(there, back));
        compare_frames(f, back, sac_orientation_name(there->orientation));
        assert_sac_ok(sac_frame_create(gpu, there, &other));
        assert_int_equal(other->orientation, SAC_UPRIGHT);
        assert_sac_ok(sac_frame_copy(there, other));
        assert_sac_ok(sac_frame_copy(other, back));
        compare_frames(f, back, sac_orientation_name(there->orientation));
        assert_int_equal(sac_frame_is_writable(there), there->orientation == SAC_UPRIGHT);
        assert_sac_ok(sac_frame_plane_tensor(there, 0, &plane));
        assert_int_equal(sac_tensor_describe(plane)->shape[0],
                         there->orientation & 1 ? f->width : f->height);
        sac_tensor_unref(&plane);
        sac_frame_unref(&f);
        sac_frame_unref(&back);
        sac_frame_unref(&there);
        sac_frame_unref(&other);
    }
    sac_device_unref(&gpu);
}

static struct sac_shape random_shape(const sac_frame *f)
{
    static const char *const texts[] = {"17", "person 0.93", "#2041", "Wg~@ il|.", ""};
    const int                reach = test_between(0, 9) ? 30 : 100000;
    struct sac_shape         s = {
                .kind = (enum sac_shape_kind)test_between(0, 3),
                .rect = {(float)test_between(-reach, f->width + reach),
                         (float)test_between(-reach, f->height + reach),
                         (float)test_between(-reach, f->width + reach),
                         (float)test_between(-reach, f->height + reach)},
                .colour = {(uint8_t)test_between(0, 255), (uint8_t)test_between(0, 255),
                           (uint8_t)test_between(0, 255)},
                .alpha = (float)test_between(0, 100) / 100,
                .thickness = test_between(-1, test_between(0, 3) ? 4 : 30),
                .text = texts[test_between(0, 4)],
    };
    s.rect.x0 += (float)test_between(0, 9) / 10;
    s.rect.y1 += (float)test_between(0, 9) / 10;
    return s;
}

/* Each frame is drawn on twice in a row, with a few shapes and with many, as a run of frames
 * does. */
static void drawing_of_random_shapes(void **state)
{
    (void)state;
    enum { SHAPES_MAX = 300 };
    static struct sac_shape shapes[SHAPES_MAX];
    sac_device             *gpu = gpu_open(NULL);
    for (int round = 0; round < gpu_rounds(200); round++) {
        sac_frame *want = random_frame(300, 200), *there = upload(gpu, want);
        sac_frame *back = test_frame(cpu, want->format, want->width, want->height);
        char       what[200];
        for (int turn = 0; turn < 2; turn++) {
            int n = test_between(0, test_between(0, 4) ? 12 : SHAPES_MAX);
            for (int i = 0; i < n; i++)
                shapes[i] = random_shape(want);
            assert_sac_ok(sac_frame_draw(want, shapes, n));
            assert_sac_ok(sac_frame_draw(there, shapes, n));
            snprintf(what, sizeof what, "round %d, %d shapes on %s %dx%d", round, n,
                     sac_pixel_format_name(want->format), want->width, want->height);
        }
        assert_sac_ok(sac_frame_copy(there, back));
        compare_frames(want, back, what);
        sac_frame_unref(&want);
        sac_frame_unref(&there);
        sac_frame_unref(&back);
    }
    sac_device_unref(&gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pixel_is_what_the_rows_give),
        cmocka_unit_test(preprocess_of_random_frames),
        cmocka_unit_test(preprocess_of_large_frames),
        cmocka_unit_test(preprocess_of_many_crops),
        cmocka_unit_test(convert_of_any_pair),
        cmocka_unit_test(copies_are_upright),
        cmocka_unit_test(drawing_of_random_shapes),
    };
    return cmocka_run_group_tests_name("parity/image", tests, open_cpu, close_cpu);
}
