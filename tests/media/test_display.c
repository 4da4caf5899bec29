/* SPDX-License-Identifier: Apache-2.0 */
/* The orientation of frames: from the container, the picture or the user, and as a sink writes
 * it. */
#include <math.h>
#include <string.h>

#include <libavcodec/avcodec.h>

#include <saccade/sink.h>

#include "media/media.h"
#include "tests/media/reading.h"

static struct sac_source_params turning(enum sac_rotate rotate)
{
    struct sac_source_params params = sac_source_params_default();
    params.rotate = rotate;
    return params;
}

/* ---- matrices ---- */

static struct sac_display display_of(double a, double b, double c, double d)
{
    const double numbers[] = {a, b, 0, c, d, 0, 100, 200, 0};
    int32_t      matrix[9];
    for (int i = 0; i < 9; i++)
        matrix[i] = (int32_t)lround(numbers[i] * 65536);
    return sac_display_of(matrix);
}

static void each_matrix_is_understood(void **state)
{
    (void)state;
    static const struct {
        double               a, b, c, d;
        enum sac_orientation orientation;
        double               degrees;
    } cases[] = {
        {1, 0, 0, 1, SAC_UPRIGHT, 0},
        {0, 1, -1, 0, SAC_TURN_90, 90},
        {-1, 0, 0, -1, SAC_TURN_180, 180},
        {0, -1, 1, 0, SAC_TURN_270, 270},
        {-1, 0, 0, 1, SAC_MIRROR, 0}, /* hflip */
        {0, -1, -1, 0, SAC_MIRROR_TURN_90, 90},
        {1, 0, 0, -1, SAC_MIRROR_TURN_180, 180}, /* vflip */
        {0, 1, 1, 0, SAC_MIRROR_TURN_270, 270},  /* transpose */
        {2, 0, 0, 1, SAC_UPRIGHT, 0},            /* pixels that are not square */
        {0, 1, -4.0 / 3, 0, SAC_TURN_90, 90},
        {0.99999, 0.004, -0.004, 0.99999, SAC_UPRIGHT, 0}, /* a quarter of a degree */
        {0.0001, -0.9999, 1, 0, SAC_TURN_270, 270},
        {0.99999, -0.004, 0.004, 0.99999, SAC_UPRIGHT, 0}, /* just under 360 */
        {0, 0, 0, 0, SAC_UPRIGHT, 0},
        {1, 1, 1, 1, SAC_UPRIGHT, 0},
    };
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_display d = display_of(cases[i].a, cases[i].b, cases[i].c, cases[i].d);
        if (d.orientation != cases[i].orientation || d.degrees != cases[i].degrees || !d.can_turn ||
            d.mirrored != (cases[i].orientation >= SAC_MIRROR))
            fail_msg("case %zu: %s, %g degrees", i, sac_orientation_name(d.orientation), d.degrees);
    }
    for (int degrees = 5; degrees < 360; degrees += 10) {
        const double       x = cos(degrees * M_PI / 180), y = sin(degrees * M_PI / 180);
        struct sac_display plain = display_of(x, y, -y, x), mirrored = display_of(-x, -y, -y, x);
        assert_true(fabs(plain.degrees - degrees) < 0.01 &&
                    fabs(mirrored.degrees - degrees) < 0.01);
        assert_true(!plain.mirrored && mirrored.mirrored && !plain.can_turn && !mirrored.can_turn);
        assert_int_equal(plain.orientation, SAC_UPRIGHT);
    }
    assert_false(display_of(1, 0.5, 0, 1).can_turn); /* sheared */
}

/* ---- frames ---- */

/* A sample's place in the stored plane of width x height goes step by step to its place in the
 * upright one. */
static void show(enum sac_orientation o, int width, int height, int *x, int *y)
{
    if (o & SAC_MIRROR)
        *x = width - 1 - *x;
    for (int turns = o & 3; turns > 0; turns--) {
        const int from_x = *x, side = width;
        *x = height - 1 - *y;
        *y = from_x;
        width = height;
        height = side;
    }
}

static void compare_turned(const sac_frame *stored, const sac_frame *shown, enum sac_orientation o,
                           const char *path)
{
    assert_int_equal(shown->format, SAC_PIXEL_I420);
    assert_int_equal(shown->orientation, SAC_UPRIGHT);
    assert_int_equal(shown->width, o & 1 ? stored->height : stored->width);
    assert_int_equal(shown->height, o & 1 ? stored->width : stored->height);
    assert_int_equal(shown->pts_us, stored->pts_us);
    for (int p = 0; p < 3; p++) {
        const int width = p ? (stored->width + 1) / 2 : stored->width,
                  height = p ? (stored->height + 1) / 2 : stored->height;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                int to_x = x, to_y = y;
                show(o, width, height, &to_x, &to_y);
                if (shown->plane[p][(size_t)to_y * shown->pitch_bytes[p] + (size_t)to_x] !=
                    stored->plane[p][(size_t)y * stored->pitch_bytes[p] + (size_t)x])
                    fail_msg("%s, %s: plane %d, %d,%d", path, sac_orientation_name(o), p, x, y);
            }
    }
}

/* Every frame as the file or the user says, beside the frame as it is stored. */
static void compare_clips(const char *path, enum sac_rotate rotate, enum sac_orientation want)
{
    const struct sac_source_params plain = turning(SAC_ROTATE_NONE), turned = turning(rotate);
    struct sac_source_info         info;
    sac_source                    *a = NULL, *b = NULL;
    sac_frame                     *stored = NULL, *shown = NULL;
    int                            frames = 0;
    assert_sac_ok(sac_source_open(dev, path, &plain, &a));
    assert_sac_ok(sac_source_open(dev, path, &turned, &b));
    sac_source_describe(b, &info);
    assert_int_equal(info.orientation, want);
    for (; sac_source_read_wait(a, &stored) == SAC_OK; frames++) {
        assert_sac_ok(sac_source_read_wait(b, &shown));
        assert_int_equal(info.width, shown->width);
        assert_int_equal(info.height, shown->height);
        compare_turned(stored, shown, want, path);
        sac_frame_unref(&stored);
        sac_frame_unref(&shown);
    }
    assert_int_equal(frames, 3);
    sac_source_close(&a);
    sac_source_close(&b);
}

/* What the container can say of it; an older libavformat's Matroska cannot. */
static bool can_say(const char *path, int degrees, bool mirrored)
{
    const struct reading r = read_all(path, NULL);
    assert_int_equal(r.end, SAC_EOS);
    if (strstr(path, ".mkv") && !r.info.rotation && !r.info.mirrored)
        return false;
    assert_int_equal(lround(r.info.rotation), degrees);
    assert_int_equal(r.info.mirrored, mirrored);
    return true;
}

static void frames_are_turned_as_the_file_says(void **state)
{
    (void)state;
    static const char *const endings[] = {"mp4", "mov", "mkv"};
    for (size_t i = 0; i < SAC_COUNT(endings); i++)
        for (int o = 0; o < SAC_ORIENTATION_COUNT; o++) {
            const char *path = scratch("shown%d.%s", o, endings[i]);
            const bool  mirrored = o & SAC_MIRROR;
            clip_write(path, &(struct clip){.frames = 3,
                                            .width = 322,
                                            .height = 190,
                                            .rotation = (o & 3) * 90,
                                            .mirrored = mirrored});
            if (can_say(path, (o & 3) * 90, mirrored))
                compare_clips(path, SAC_ROTATE_AUTO, (enum sac_orientation)o);
        }
}

/* Also pictures whose pixel format is converted on the way, and of odd sizes. */
static void the_user_says_better(void **state)
{
    (void)state;
    const char *said = scratch("said.mp4"), *silent = scratch("silent.mkv");
    clip_write(said, &(struct clip){.frames = 3, .rotation = 180});
    clip_write(silent, &(struct clip){.frames = 3,
                                      .width = 323,
                                      .height = 191,
                                      .codec = "ffv1",
                                      .pixels = AV_PIX_FMT_YUV444P});
    for (int k = 0; k < 3; k++) {
        compare_clips(said, (enum sac_rotate)(SAC_ROTATE_90 + k),
                      (enum sac_orientation)(SAC_TURN_90 + k));
        compare_clips(silent, (enum sac_rotate)(SAC_ROTATE_90 + k),
                      (enum sac_orientation)(SAC_TURN_90 + k));
    }
    compare_clips(said, SAC_ROTATE_NONE, SAC_UPRIGHT);
    compare_clips(silent, SAC_ROTATE_AUTO, SAC_UPRIGHT);
}

/* ---- what is logged ---- */

struct said {
    char lines[4096];
};

static void note(void *user, enum sac_log_level level, const char *text)
{
    struct said *said = user;
    if (level <= SAC_LOG_INFO)
        snprintf(said->lines + strlen(said->lines), sizeof said->lines - strlen(said->lines),
                 "%s\n", text);
}

static void another_angle_is_told_and_left(void **state)
{
    (void)state;
    const char               *path = scratch("askew.mp4");
    struct said               said = {""};
    struct sac_context_params params = sac_context_params_default();
    sac_context              *ctx = NULL;
    sac_device               *own = NULL, *usual = dev;
    struct reading            r;
    params.log_fn = note;
    params.log_user = &said;
    params.log_level = SAC_LOG_INFO;
    assert_sac_ok(sac_context_create(&params, &ctx));
    assert_sac_ok(sac_device_open(ctx, "cpu", NULL, &own));
    dev = own;
    clip_write(path, &(struct clip){.frames = 3, .rotation = 45});
    r = read_all(path, NULL);
    assert_int_equal(r.frames, 3);
    assert_int_equal(r.number[2], 2); /* as it is stored */
    assert_true(fabs(r.info.rotation - 45) < 0.01);
    assert_int_equal(r.info.orientation, SAC_UPRIGHT);
    assert_non_null(strstr(said.lines, "turned by 45 degrees; only quarter turns are made"));
    assert_ptr_equal(strchr(said.lines, '\n'), strrchr(said.lines, '\n')); /* one line */
    said.lines[0] = 0;
    clip_write(path, &(struct clip){.frames = 3, .rotation = 90});
    read_all(path, NULL);
    assert_non_null(strstr(said.lines, "its frames are turned by 90 degrees, as it says\n"));
    said.lines[0] = 0;
    const struct sac_source_params plain = turning(SAC_ROTATE_NONE);
    read_all(path, &plain);
    assert_string_equal(said.lines, "");
    sac_device_unref(&own);
    sac_context_destroy(&ctx);
    dev = usual;
}

/* ---- pictures that say it themselves ---- */

/* What a camera writes into a JPEG: EXIF with the tag 274, orientation. */
static void save_exif(const char *path, const uint8_t *jpeg, size_t size, uint8_t orientation)
{
    const uint8_t exif[] = {0xff, 0xe1, 0, 34, 'E', 'x',         'i', 'f', 0, 0,    'M', 'M',
                            0,    42,   0, 0,  0,   8,           0,   1,   1, 0x12, 0,   3,
                            0,    0,    0, 1,  0,   orientation, 0,   0,   0, 0,    0,   0};
    uint8_t      *out = sac_alloc(size + sizeof exif);
    assert_non_null(out);
    memcpy(out, jpeg, 2);
    memcpy(out + 2, exif, sizeof exif);
    memcpy(out + 2 + sizeof exif, jpeg + 2, size - 2);
    file_save(path, out, size + sizeof exif);
    sac_free(out);
}

static void photographs_are_turned(void **state)
{
    (void)state;
    static const enum sac_orientation meant[] = {
        [1] = SAC_UPRIGHT,         [2] = SAC_MIRROR,          [3] = SAC_TURN_180,
        [4] = SAC_MIRROR_TURN_180, [5] = SAC_MIRROR_TURN_270, [6] = SAC_TURN_90,
        [7] = SAC_MIRROR_TURN_90,  [8] = SAC_TURN_270};
    const char *plain = scratch("plain.jpg"), *path = scratch("photo.jpg");
    size_t      size;
    clip_write(plain, &(struct clip){.frames = 1,
                                     .format = "image2pipe",
                                     .codec = "mjpeg",
                                     .pixels = AV_PIX_FMT_YUVJ420P});
    uint8_t *jpeg = file_load(plain, &size);
    for (uint8_t k = 1; k <= 8; k++) {
        const struct sac_source_params none = turning(SAC_ROTATE_NONE);
        struct sac_source_info         info;
        sac_source                    *src = NULL;
        sac_frame                     *stored = NULL, *shown = NULL;
        save_exif(path, jpeg, size, k);
        assert_sac_ok(sac_source_open(dev, path, &none, &src));
        assert_sac_ok(sac_source_read_wait(src, &stored));
        sac_source_close(&src);
        assert_sac_ok(sac_source_open(dev, path, NULL, &src));
        assert_sac_ok(sac_source_read_wait(src, &shown));
        sac_source_describe(src, &info);
        assert_int_equal(info.orientation, meant[k]);
        assert_int_equal(info.width, shown->width);
        compare_turned(stored, shown, meant[k], path);
        sac_frame_unref(&stored);
        sac_frame_unref(&shown);
        sac_source_close(&src);
    }
    free(jpeg);
}

/* ---- what is written ---- */

static void transcode(const char *from, const char *to, enum sac_rotate rotate)
{
    const struct sac_source_params params = turning(rotate);
    sac_source                    *src = NULL;
    sac_sink                      *sink = NULL;
    sac_frame                     *frame = NULL;
    assert_sac_ok(sac_source_open(dev, from, &params, &src));
    assert_sac_ok(sac_sink_create(dev, to, src, NULL, &sink));
    while (sac_source_read_wait(src, &frame) == SAC_OK) {
        assert_sac_ok(sac_sink_write_wait(sink, frame));
        sac_frame_unref(&frame);
    }
    assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    sac_source_close(&src);
}

static AVRational aspect_of(const char *path)
{
    sac_source *src = NULL;
    assert_sac_ok(sac_source_open(dev, path, NULL, &src));
    AVRational aspect = sac_source_input(src)->video->sample_aspect_ratio;
    sac_source_close(&src);
    return aspect;
}

/* Frames that were turned need no player to do it again. */
static void a_file_of_turned_frames_does_not_say_it_again(void **state)
{
    (void)state;
    const char *from = scratch("from.mp4"), *to = scratch("to.mp4");
    clip_write(from, &(struct clip){.frames = 3, .rotation = 270, .aspect = 2});
    transcode(from, to, SAC_ROTATE_AUTO);
    struct reading r = read_all(to, NULL);
    assert_true(r.info.rotation == 0);
    assert_int_equal(r.info.width, 192);
    assert_int_equal(r.info.height, 320);
    assert_int_equal(aspect_of(to).num * 2, aspect_of(to).den);
    transcode(from, to, SAC_ROTATE_180);
    r = read_all(to, NULL);
    assert_true(r.info.rotation == 0);
    assert_int_equal(r.info.width, 320);
    assert_int_equal(aspect_of(to).num, 2 * aspect_of(to).den);
}

static void frames_as_they_are_stored_keep_what_the_file_says(void **state)
{
    (void)state;
    const char *from = scratch("kept.mp4"), *to = scratch("kept-out.mp4");
    clip_write(from, &(struct clip){.frames = 3, .rotation = 270, .mirrored = true});
    transcode(from, to, SAC_ROTATE_NONE);
    struct reading r = read_all(to, NULL);
    assert_true(r.info.rotation == 270);
    assert_int_equal(r.info.mirrored, 1);
    clip_write(from, &(struct clip){.frames = 3, .rotation = 45});
    transcode(from, to, SAC_ROTATE_AUTO);
    r = read_all(to, NULL);
    assert_int_equal(lround(r.info.rotation), 45);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_matrix_is_understood),
        cmocka_unit_test(frames_are_turned_as_the_file_says),
        cmocka_unit_test(the_user_says_better),
        cmocka_unit_test(another_angle_is_told_and_left),
        cmocka_unit_test(photographs_are_turned),
        cmocka_unit_test(a_file_of_turned_frames_does_not_say_it_again),
        cmocka_unit_test(frames_as_they_are_stored_keep_what_the_file_says),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
