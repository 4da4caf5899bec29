/* SPDX-License-Identifier: Apache-2.0 */
#include "device/format.h"
#include "tests/vision/frames.h"
#include "vision/composite.h"

/* ---- the same, number by number ---- */

/* Number c (Y, U, V or as stored) of a pixel or chroma sample, of 8 or 10 bits. */
static int number_at(const sac_frame *f, int x, int y, int c)
{
    const bool     yuv = sac_is_yuv(f->format), pairs = f->format != SAC_PIXEL_I420;
    const int      plane = yuv && c ? (pairs ? 1 : c) : 0;
    const int      step = sac_rgb_step(f->format);
    const int      at = step ? step * x + c : plane && pairs ? 2 * x + c - 1 : x;
    const uint8_t *row = f->plane[plane] + (size_t)y * f->pitch_bytes[plane];
    return f->format == SAC_PIXEL_P010 ? ((const uint16_t *)(const void *)row)[at] >> 6 : row[at];
}

static int matte_at(const struct sac_composite_job *job, int x, int y)
{
    return number_at(job->matte, SAC_CLAMP(x, 0, job->matte->width - 1),
                     SAC_CLAMP(y, 0, job->matte->height - 1), 0);
}

static int mixed(int from, int to, int weight)
{
    return (from * (255 - weight) + to * weight + 127) / 255;
}

/* A frame of one colour in the job's format gives its number. */
static int number_of(const struct sac_composite_job *job, struct sac_colour colour, int c)
{
    sac_frame *f = test_frame(job->frame->device, job->frame->format, 2, 2);
    f->matrix = job->frame->matrix;
    f->range = job->frame->range;
    const struct sac_shape fill = {
        .kind = SAC_SHAPE_FILL, .rect = {0, 0, 2, 2}, .colour = colour, .alpha = 1};
    test_fill(f, 7, 7, 7, 7);
    assert_sac_ok(sac_frame_draw(f, &fill, 1));
    const int number = number_at(f, 0, 0, c);
    sac_frame_unref(&f);
    return number;
}

static int cover_at(const struct sac_composite_job *job, int x, int y)
{
    const int r = sac_composite_radius(job->frame->width, job->frame->height);
    int       inside = 0;
    for (int dy = -r; dy <= r; dy++)
        for (int dx = -r; dx <= r; dx++)
            inside += matte_at(job, x + dx, y + dy) >= 128;
    const int all = (2 * r + 1) * (2 * r + 1);
    return (int)lrint(255.0 * 4 * inside * (all - inside) / ((double)all * all));
}

static int weight_at(const struct sac_composite_job *job, int x, int y)
{
    const int m = matte_at(job, x, y), strength = (int)lrintf(job->strength * 255);
    switch (job->kind) {
    case SAC_COMPOSITE_BACKGROUND: return 255 - m;
    case SAC_COMPOSITE_TINT:
    case SAC_COMPOSITE_PAINT: return (m * strength + 127) / 255;
    case SAC_COMPOSITE_CLASSES: break;
    }
    return m > 0 && m < job->colours ? strength : 0;
}

struct palette {
    int number[SAC_COMPOSITE_COLOURS_MAX];
};

static int expected(const struct sac_composite_job *job, const struct palette *palette, int x,
                    int y, int c, bool chroma)
{
    int weight = 0, cover = 0, classes = 0, count = 0;
    for (int i = 0; i < 4; i++) {
        const int px = chroma ? SAC_MIN(2 * x + (i & 1), job->frame->width - 1) : x;
        const int py = chroma ? SAC_MIN(2 * y + (i >> 1), job->frame->height - 1) : y;
        const int class_id = matte_at(job, px, py);
        weight += weight_at(job, px, py);
        cover += job->kind == SAC_COMPOSITE_TINT ? cover_at(job, px, py) : 0;
        if (class_id > 0 && class_id < job->colours) {
            classes += palette->number[class_id];
            count++;
        }
    }
    int to = palette->number[0];
    if (job->kind == SAC_COMPOSITE_CLASSES)
        to = count ? (classes + count / 2) / count : 0;
    if (job->kind == SAC_COMPOSITE_BACKGROUND && job->background)
        to = number_at(job->background, x, y, c);
    const int v = mixed(number_at(job->frame, x, y, c), to, (weight + 2) / 4);
    return mixed(v, palette->number[job->colours > 1], (cover + 2) / 4);
}

/* Of 8 bits where the frame has ten. */
static int narrowed(const struct sac_composite_job *job, int v)
{
    if (job->frame->format == job->out->format || job->frame->format != SAC_PIXEL_P010)
        return v;
    const bool full = job->frame->range == SAC_RANGE_FULL;
    return SAC_MIN((int)floor(v * (full ? 255.0 / 1023 : 0.25) + 0.5), 255);
}

/* before: the frame as it was. */
static void compare(const struct sac_composite_job *job, sac_frame *before)
{
    struct sac_composite_job was = *job;
    const bool               yuv = sac_is_yuv(job->frame->format);
    const int step = sac_rgb_step(job->frame->format), n = yuv ? 3 : SAC_MAX(step, 1);
    was.frame = before;
    for (int c = 0; c < n; c++) {
        const bool     chroma = yuv && c;
        struct palette palette = {{0}};
        for (int i = 0; i < SAC_MAX(job->colours, 1) && c < 3; i++)
            palette.number[i] = number_of(job, job->colour[i], c);
        for (int y = 0; y < (chroma ? (before->height + 1) / 2 : before->height); y++)
            for (int x = 0; x < (chroma ? (before->width + 1) / 2 : before->width); x++) {
                const int want = c == 3 ? number_at(before, x, y, 3)
                                        : narrowed(&was, expected(&was, &palette, x, y, c, chroma));
                if (number_at(job->out, x, y, c) != want)
                    fail_msg("kind %d, %s to %s, %dx%d at %d,%d,%d: %d instead of %d", job->kind,
                             sac_pixel_format_name(before->format),
                             sac_pixel_format_name(job->out->format), before->width, before->height,
                             x, y, c, number_at(job->out, x, y, c), want);
            }
    }
}

/* ---- cases ---- */

static sac_frame *like(const sac_frame *f, enum sac_pixel_format format)
{
    sac_frame *out = test_frame(f->device, format, f->width, f->height);
    out->matrix = f->matrix;
    out->range = f->range;
    test_fill(out, 0, 255, 0, 255);
    return out;
}

static enum sac_pixel_format any_output(enum sac_pixel_format frame)
{
    const enum sac_pixel_format formats[] = {frame, SAC_PIXEL_I420, SAC_PIXEL_NV12};
    return formats[sac_is_yuv(frame) ? test_between(0, 2) : 0];
}

/* Mostly of 0 and 255 in blobs, with numbers in between; classes are few. */
static void fill_matte(const struct sac_composite_job *job, sac_frame *matte)
{
    const int blob = test_between(1, 9);
    test_fill(matte, 0, 255, 0, 0);
    for (int y = 0; y < matte->height; y++)
        for (int x = 0; x < matte->width; x++) {
            uint8_t *m = matte->plane[0] + (size_t)y * matte->pitch_bytes[0] + x;
            if (job->kind == SAC_COMPOSITE_CLASSES)
                *m = (uint8_t)(*m % 7);
            else if (*m < 200)
                *m = (x / blob + y / blob) % 2 ? 255 : 0;
        }
}

static void run_case(sac_device *dev, enum sac_composite_kind kind, enum sac_pixel_format format,
                     int width, int height)
{
    sac_frame *frame = test_frame(dev, format, width, height);
    frame->matrix = (enum sac_colour_matrix)test_between(0, 2);
    frame->range = (enum sac_colour_range)test_between(0, 1);
    test_fill(frame, 0, 255, 0, 255);
    sac_frame *before = like(frame, format),
              *matte = test_frame(dev, SAC_PIXEL_GRAY8, width, height);
    sac_frame *background = test_between(0, 1) ? like(frame, format) : NULL;
    const bool in_place = test_between(0, 1);
    sac_frame *out = in_place ? frame : like(frame, any_output(format));
    assert_sac_ok(sac_frame_copy(frame, before));
    struct sac_composite_job job = {.kind = kind,
                                    .frame = frame,
                                    .matte = matte,
                                    .background = background,
                                    .strength = (float)test_between(0, 100) / 100,
                                    .colours = test_between(0, 5),
                                    .out = out};
    for (int i = 0; i < 5; i++)
        job.colour[i] = sac_colour_of_id(test_between(0, 23));
    fill_matte(&job, matte);
    assert_sac_ok(sac_composite_run_on(dev, NULL, &job));
    compare(&job, before);
    if (!in_place)
        sac_frame_unref(&out);
    sac_frame_unref(&frame);
    sac_frame_unref(&before);
    sac_frame_unref(&matte);
    sac_frame_unref(&background);
}

static void every_number_is_what_the_formula_says(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int kind = SAC_COMPOSITE_BACKGROUND; kind <= SAC_COMPOSITE_PAINT; kind++)
        for (int format = SAC_PIXEL_NONE + 1; format < SAC_PIXEL_FORMAT_COUNT; format++) {
            run_case(dev, (enum sac_composite_kind)kind, (enum sac_pixel_format)format, 1, 1);
            for (int round = 0; round < 8; round++)
                run_case(dev, (enum sac_composite_kind)kind, (enum sac_pixel_format)format,
                         test_between(1, 90), test_between(1, 100));
        }
    sac_device_unref(&dev);
}

static void long_thin_frames(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    for (int kind = SAC_COMPOSITE_BACKGROUND; kind <= SAC_COMPOSITE_PAINT; kind++) {
        run_case(dev, (enum sac_composite_kind)kind, SAC_PIXEL_NV12, 4096, 16);
        run_case(dev, (enum sac_composite_kind)kind, SAC_PIXEL_I420, 3, 4097);
    }
    sac_device_unref(&dev);
}

/* Larger pictures have wider outlines; the window then meets the edges of pieces of rows. */
static void wide_outlines(void **state)
{
    (void)state;
    sac_device *dev = test_device();
    run_case(dev, SAC_COMPOSITE_TINT, SAC_PIXEL_I420, 1081, 1083);
    sac_device_unref(&dev);
    for (int radius = 1; radius <= SAC_COMPOSITE_RADIUS_MAX; radius++) {
        const uint32_t all = (uint32_t)((2 * radius + 1) * (2 * radius + 1));
        assert_true(all < 256);
        assert_int_equal(sac_composite_outline(radius, 0), 0);
        assert_int_equal(sac_composite_outline(radius, all), 0);
        assert_in_range(sac_composite_outline(radius, all / 2), 250, 255);
    }
    assert_int_equal(sac_composite_radius(1, 32768), 1);
    assert_int_equal(sac_composite_radius(768, 576), 1);
    assert_int_equal(sac_composite_radius(1920, 1080), 2);
    assert_int_equal(sac_composite_radius(32768, 32768), SAC_COMPOSITE_RADIUS_MAX);
}

/* Nothing is lost at the ends, whatever the other side holds; between them it is the nearest. */
static void parts_are_exact(void **state)
{
    (void)state;
    for (uint32_t v = 0; v <= 1023 * 255; v++)
        assert_int_equal(sac_composite_part(v), (v + 127) / 255);
    for (uint32_t v = 0; v <= 255 * 255; v++)
        assert_int_equal(sac_composite_part_byte((uint16_t)v), (v + 127) / 255);
}

struct scene {
    sac_device              *dev;
    sac_frame               *frame, *matte, *out;
    struct sac_composite_job job;
};

static void open_scene(struct scene *s)
{
    s->dev = test_device();
    s->frame = test_frame(s->dev, SAC_PIXEL_NV12, 16, 8);
    s->matte = test_frame(s->dev, SAC_PIXEL_GRAY8, 16, 8);
    s->out = test_frame(s->dev, SAC_PIXEL_NV12, 16, 8);
    s->job = (struct sac_composite_job){
        .frame = s->frame, .matte = s->matte, .out = s->out, .strength = 0.5f};
}

static void close_scene(struct scene *s)
{
    sac_frame_unref(&s->frame);
    sac_frame_unref(&s->matte);
    sac_frame_unref(&s->out);
    sac_device_unref(&s->dev);
}

static void refuse(struct scene *s, sac_frame **field, enum sac_pixel_format format, int width)
{
    sac_frame *kept = *field;
    *field = test_frame(s->dev, format, width, 8);
    s->job.frame = s->frame;
    s->job.matte = s->matte;
    s->job.out = s->out;
    assert_sac_error(sac_composite_run_on(s->dev, NULL, &s->job), SAC_ERR_ARG);
    sac_frame_unref(field);
    *field = kept;
    s->job.frame = s->frame;
    s->job.matte = s->matte;
    s->job.out = s->out;
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    test_fill(s.frame, 0, 255, 0, 255);
    test_fill(s.matte, 0, 255, 0, 255);
    assert_sac_ok(sac_composite_run_on(s.dev, NULL, &s.job));
    refuse(&s, &s.matte, SAC_PIXEL_GRAY8, 15);
    refuse(&s, &s.matte, SAC_PIXEL_NV12, 16);
    refuse(&s, &s.out, SAC_PIXEL_NV12, 17);
    refuse(&s, &s.out, SAC_PIXEL_RGB24, 16);
    refuse(&s, &s.out, SAC_PIXEL_P010, 16);
    s.job.strength = 1.5f;
    assert_sac_error(sac_composite_run_on(s.dev, NULL, &s.job), SAC_ERR_ARG);
    s.job.strength = 0.5f;
    s.job.colours = SAC_COMPOSITE_COLOURS_MAX + 1;
    assert_sac_error(sac_composite_run_on(s.dev, NULL, &s.job), SAC_ERR_ARG);
    s.job.colours = 0;
    s.out->range = SAC_RANGE_FULL;
    assert_sac_error(sac_composite_run_on(s.dev, NULL, &s.job), SAC_ERR_ARG);
    s.out->range = s.frame->range;
    sac_frame *background = test_frame(s.dev, SAC_PIXEL_I420, 16, 8);
    s.job.background = background;
    assert_sac_error(sac_composite_run_on(s.dev, NULL, &s.job), SAC_ERR_ARG);
    s.job.background = s.out;
    assert_sac_error(sac_composite_run_on(s.dev, NULL, &s.job), SAC_ERR_ARG);
    s.job.background = NULL;
    sac_frame *again = sac_frame_ref(s.out);
    assert_sac_error(sac_composite_run_on(s.dev, NULL, &s.job), SAC_ERR_ARG);
    sac_frame_unref(&again);
    sac_frame_unref(&background);
    close_scene(&s);
}

/* A device whose table has no such entry. */
static void a_device_without_it_says_so(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    struct sac_device     dev = *s.dev;
    struct sac_device_ops ops = *dev.ops;
    struct sac_vision_ops vision = *ops.vision;
    vision.composite = NULL;
    ops.vision = &vision;
    dev.ops = &ops;
    assert_sac_error(sac_composite_run_on(&dev, NULL, &s.job), SAC_ERR_UNSUPPORTED);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_what_the_formula_says),
        cmocka_unit_test(long_thin_frames),
        cmocka_unit_test(wide_outlines),
        cmocka_unit_test(parts_are_exact),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_device_without_it_says_so),
    };
    return cmocka_run_group_tests_name("vision/composite", tests, NULL, NULL);
}
