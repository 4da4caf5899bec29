/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libavcodec/avcodec.h>

#include <saccade/source.h>

#include "device/device.h"
#include "tests/media/clip.h"
#include "tests/media/reading.h"
#include "tests/test.h"

static struct sac_source_params with_prefetch(int prefetch)
{
    struct sac_source_params params = sac_source_params_default();
    params.prefetch = prefetch;
    return params;
}

static void assert_even(const struct reading *r, int frames, int fps)
{
    assert_int_equal(r->end, SAC_EOS);
    assert_int_equal(r->frames, frames);
    for (int i = 0; i < frames; i++) {
        assert_int_equal(r->number[i], i);
        assert_in_range(r->pts_us[i] - (int64_t)i * 1000000 / fps + 1000, 0, 2000);
    }
}

static void assert_even_clip(const struct reading *r, int frames, int fps)
{
    assert_even(r, frames, fps);
    assert_int_equal(r->stats.frames, frames);
    assert_int_equal(r->stats.corrupt, 0);
    assert_int_equal(r->stats.pts_repaired, 0);
}

static void reads_every_frame_in_order(void **state)
{
    (void)state;
    static const char *const names[] = {"a.avi", "a.mp4", "a.mkv", "a.ts", "a.mov"};
    for (size_t i = 0; i < SAC_COUNT(names); i++) {
        const char *path = scratch("%s", names[i]);
        clip_write(path, &(struct clip){.frames = 60, .audio = 1, .audio_codec = "mp2"});
        for (int prefetch = 0; prefetch <= 4; prefetch += 4) {
            struct sac_source_params params = with_prefetch(prefetch);
            struct reading           r = read_all(path, &params);
            assert_even_clip(&r, 60, 25);
            assert_int_equal(r.info.width, 320);
            assert_int_equal(r.info.height, 192);
            assert_float_equal(r.info.fps, 25, 1e-6);
            assert_int_equal(r.info.format, SAC_PIXEL_I420);
            assert_int_equal(r.info.audio_streams, 1);
            assert_string_equal(r.info.codec, "mpeg4");
            assert_int_equal(r.info.live, 0);
            assert_int_equal(r.stats.converted, 0);
        }
    }
}

/* Each packet comes when it is due, and its frame says when that was. */
static void a_paced_file_comes_as_from_a_camera(void **state)
{
    (void)state;
    const char *path = scratch("paced.mp4");
    clip_write(path, &(struct clip){.frames = 8});
    struct sac_source_params params = with_prefetch(0);
    params.paced = params.low_delay = 1;
    sac_source   *src = NULL;
    sac_frame    *frame = NULL;
    const int64_t step_ns = 40000000;
    int64_t       second_ns = 0;
    assert_sac_ok(sac_source_open(dev, path, &params, &src));
    for (int i = 0; i < 8; i++) {
        assert_sac_ok(sac_source_read_wait(src, &frame));
        const int64_t now = sac_time_ns();
        if (i == 1)
            second_ns = frame->arrived_ns;
        if (i > 0) {
            assert_true(frame->arrived_ns > 0 && frame->arrived_ns <= now);
            assert_true(llabs(frame->arrived_ns - second_ns - (i - 1) * step_ns) < 1000000);
        }
        sac_frame_unref(&frame);
    }
    sac_source_close(&src);
}

/* Two files, one behind the other, in a third. */
static void join(const char *first, const char *second, const char *both)
{
    size_t   n1, n2;
    uint8_t *bytes = file_load(first, &n1), *more = file_load(second, &n2);
    bytes = realloc(bytes, n1 + n2);
    memcpy(bytes + n1, more, n2);
    file_save(both, bytes, n1 + n2);
    free(bytes);
    free(more);
}

static void keeps_variable_frame_rate(void **state)
{
    (void)state;
    static const int64_t     pts[] = {0, 40, 41, 200, 1000, 1033, 5000};
    static const char *const names[] = {"vfr.mkv", "vfr.mp4", "vfr.avi"};
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *path = scratch("%s", names[n]);
        clip_write(path, &(struct clip){.frames = SAC_COUNT(pts), .pts = pts, .time_base = 1000});
        struct reading r = read_all(path, NULL);
        assert_int_equal(r.end, SAC_EOS);
        assert_int_equal(r.frames, SAC_COUNT(pts));
        for (size_t i = 0; i < SAC_COUNT(pts); i++)
            assert_int_equal(r.pts_us[i], pts[i] * 1000);
    }
}

static void starts_at_zero_wherever_the_file_does(void **state)
{
    (void)state;
    const char *path = scratch("late.ts");
    clip_write(path, &(struct clip){.frames = 20, .start = 250});
    struct reading r = read_all(path, NULL);
    assert_even_clip(&r, 20, 25);
}

static void keeps_the_times_of_the_source(void **state)
{
    (void)state;
    static const char *const names[] = {"late.mkv", "own.ts", "late.mp4", "late.nut"};
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *path = scratch("%s", names[n]);
        clip_write(path, &(struct clip){.frames = 20, .start = 250});
        struct reading r = read_all(path, NULL);
        assert_even_clip(&r, 20, 25);
        for (int i = 0; i < 20; i++)
            assert_in_range(r.source_us[i] - (10000000 + i * 40000) + 2000, 0, 4000);
    }
    /* a clock that is set back: the times go on, the source's are as they are */
    const char *a = scratch("clock-a.ts"), *b = scratch("clock-b.ts"),
               *joined = scratch("clock.ts");
    clip_write(a, &(struct clip){.frames = 20, .start = 250});
    clip_write(b, &(struct clip){.frames = 20, .first = 20});
    join(a, b, joined);
    struct reading r = read_all(joined, NULL);
    assert_even(&r, 40, 25);
    assert_true(r.source_us[25] < r.source_us[0]);
}

/* What libavformat guesses is the rate of the grid that the times lie on. */
static void says_the_average_rate(void **state)
{
    (void)state;
    static const char *const names[] = {"rate.avi", "rate.mp4", "rate.mkv", "rate.mov"};
    int64_t                  pts[60];
    for (int i = 0; i < 60; i++)
        pts[i] = i / 2 * 5 + i % 2; /* of 25 a second, two of five */
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *path = scratch("%s", names[n]);
        clip_write(path, &(struct clip){.frames = 60, .pts = pts, .counted = true});
        struct reading r = read_all(path, NULL);
        assert_int_equal(r.frames, 60);
        if (fabs(r.info.fps - 10) > 0.4)
            fail_msg("%s: %g", names[n], r.info.fps);
        assert_float_equal((double)r.info.fps_num / r.info.fps_den, r.info.fps, 1e-6);
        if (r.info.frames) /* an estimate */
            assert_in_range(r.info.frames, 55, 65);
        for (int i = 0; i < 60; i++)
            assert_in_range(r.pts_us[i] - pts[i] * 40000 + 1000, 0, 2000);
    }
}

static void delivers_our_formats_uncopied_and_converts_others(void **state)
{
    (void)state;
    static const struct {
        const char           *codec;
        enum AVPixelFormat    av;
        enum sac_pixel_format format;
        enum sac_colour_range range;
        bool                  converted;
    } cases[] = {
        {"ffv1", AV_PIX_FMT_YUV420P, SAC_PIXEL_I420, SAC_RANGE_LIMITED, false},
        {"mjpeg", AV_PIX_FMT_YUVJ420P, SAC_PIXEL_I420, SAC_RANGE_FULL, false},
        {"ffv1", AV_PIX_FMT_YUVA420P, SAC_PIXEL_I420, SAC_RANGE_LIMITED, false},
        {"rawvideo", AV_PIX_FMT_NV12, SAC_PIXEL_NV12, SAC_RANGE_LIMITED, false},
        {"rawvideo", AV_PIX_FMT_RGB24, SAC_PIXEL_RGB24, SAC_RANGE_FULL, false},
        {"png", AV_PIX_FMT_RGBA, SAC_PIXEL_RGBA, SAC_RANGE_FULL, false},
        {"rawvideo", AV_PIX_FMT_BGR24, SAC_PIXEL_BGR24, SAC_RANGE_FULL, false},
        {"rawvideo", AV_PIX_FMT_BGRA, SAC_PIXEL_BGRA, SAC_RANGE_FULL, false},
        {"rawvideo", AV_PIX_FMT_BGR0, SAC_PIXEL_BGRA, SAC_RANGE_FULL, false},
        {"png", AV_PIX_FMT_RGB48BE, SAC_PIXEL_RGB24, SAC_RANGE_FULL, true},
        {"ffv1", AV_PIX_FMT_YUV422P, SAC_PIXEL_I420, SAC_RANGE_LIMITED, true},
        {"mjpeg", AV_PIX_FMT_YUVJ444P, SAC_PIXEL_I420, SAC_RANGE_FULL, true},
        {"ffv1", AV_PIX_FMT_YUV420P10, SAC_PIXEL_P010, SAC_RANGE_LIMITED, true},
        {"ffv1", AV_PIX_FMT_GRAY8, SAC_PIXEL_I420, SAC_RANGE_FULL, true},
    };
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        const char       *path = scratch("format%zu.nut", i);
        struct sac_ledger before, after;
        clip_write(path, &(struct clip){.frames = 5,
                                        .codec = cases[i].codec,
                                        .pixels = cases[i].av,
                                        .width = 131,
                                        .height = 67});
        sac_device_ledger(dev, &before);
        struct reading r = read_all(path, NULL);
        sac_device_ledger(dev, &after);
        assert_even_clip(&r, 5, 25);
        assert_int_equal(r.info.format, cases[i].format);
        assert_int_equal(r.info.range, cases[i].range);
        assert_int_equal(r.stats.converted, cases[i].converted ? 5 : 0);
        assert_int_equal(after.reason[SAC_COPY_FRAME_CONVERT].calls -
                             before.reason[SAC_COPY_FRAME_CONVERT].calls,
                         cases[i].converted ? 5 : 0);
    }
}

static void says_what_is_not_a_video(void **state)
{
    (void)state;
    static const char text[] = "This is not a video at all.\nIt has two lines.\n";
    const struct {
        const char *path, *words;
        size_t      size;
        sac_result  res;
    } cases[] = {
        {scratch("text.mp4"), "text.mp4: ", sizeof text - 1, SAC_ERR_FORMAT},
        {scratch("text.txt"), "text.txt: ", sizeof text - 1, SAC_ERR_FORMAT},
        {scratch("empty.mp4"), "empty.mp4: the file is empty", 0, SAC_ERR_FORMAT},
        {scratch("text.png"), "text.png: no image in it", sizeof text - 1, SAC_ERR_FORMAT},
    };
    char why[512];
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        file_save(cases[i].path, text, cases[i].size);
        struct reading r = read_all(cases[i].path, NULL);
        assert_int_equal(r.end, cases[i].res);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_non_null(strstr(why, cases[i].words));
    }
    struct reading r = read_all(scratch("missing.mp4"), NULL);
    assert_int_equal(r.end, SAC_ERR_IO);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "missing.mp4: No such file or directory"));
}

static void says_that_there_is_no_video(void **state)
{
    (void)state;
    static const uint8_t header[44] =
        "RIFF\x24\x10\0\0WAVEfmt "
        "\x10\0\0\0\1\0\1\0\x80\x3e\0\0\0\x7d\0\0\2\0\x10\0data\0\x10\0";
    uint8_t     wav[44 + 4096] = {0};
    const char *path = scratch("sound.wav");
    char        why[512];
    memcpy(wav, header, sizeof header);
    file_save(path, wav, sizeof wav);
    struct reading r = read_all(path, NULL);
    assert_int_equal(r.end, SAC_ERR_FORMAT);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "sound.wav: no video in it"));
}

/* Every frame that is left is delivered; then reading fails, since there should have been more. A
 * transport stream does not state how much, AVI and Matroska state a duration. */
static void gives_what_a_truncated_file_still_has(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double      told_below; /* share of the file up to which it shows */
    } cases[] = {{"whole.avi", 0.6}, {"whole.mp4", 0.94}, {"whole.mkv", 0.6}, {"whole.ts", 0}};
    for (size_t n = 0; n < SAC_COUNT(cases); n++) {
        const char *path = scratch("%s", cases[n].name), *cut = scratch("cut-%s", cases[n].name);
        size_t      size;
        char        why[512];
        clip_write(path, &(struct clip){.frames = 40, .gop = 1, .front_index = true});
        uint8_t *bytes = file_load(path, &size);
        for (int part = 2; part <= 20; part++) {
            file_save(cut, bytes, size * (size_t)part / 20);
            struct reading r = read_all(cut, NULL);
            sac_context_last_error(test_context(), why, sizeof why);
            if (r.frames == 0) { /* the header alone */
                assert_int_equal(r.end, SAC_ERR_FORMAT);
                assert_true(part <= 3);
                continue;
            }
            assert_in_range(r.frames, SAC_MAX(2 * part - 5, 1), 2 * part + 1);
            for (int i = 0; i + 1 < r.frames; i++)
                assert_int_equal(r.number[i], i);
            if (part == 20)
                assert_int_equal(r.end, SAC_EOS);
            else if (part < 20 * cases[n].told_below)
                assert_true(r.end == SAC_ERR_FORMAT && strstr(why, "the file is cut off"));
        }
        free(bytes);
    }
}

/* A segment of a recording keeps the recording's clock, and writers count a duration from 0 or from
 * the first picture: a whole file is not called cut off, and one that is cut off still is. */
static void a_file_that_starts_late_is_whole(void **state)
{
    (void)state;
    static const char *const names[] = {"seg.mkv", "seg.mp4", "seg.mov", "seg.avi",
                                        "seg.ts",  "seg.nut", "seg.webm"};
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *path = scratch("%s", names[n]), *cut = scratch("cut-%s", names[n]);
        const bool  webm = strstr(names[n], ".webm");
        size_t      size;
        char        why[512];
        clip_write(path, &(struct clip){.frames = 60,
                                        .gop = 1,
                                        .start = 25 * 20,
                                        .front_index = strstr(names[n], ".mp4"),
                                        .codec = webm ? "libvpx" : NULL});
        struct reading r = read_all(path, NULL);
        assert_int_equal(r.end, SAC_EOS);
        assert_int_equal(r.frames, 60);
        uint8_t *bytes = file_load(path, &size);
        file_save(cut, bytes, size / 2);
        free(bytes);
        if (strstr(".ts.nut.mov", strrchr(names[n], '.'))) /* they promise nothing, or have their
                                                              index behind */
            continue;
        r = read_all(cut, NULL);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_int_equal(r.end, SAC_ERR_FORMAT);
        assert_non_null(strstr(why, "the file is cut off"));
    }
}

static void put_32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint8_t *find_box(uint8_t *bytes, size_t size, const char *type)
{
    for (size_t i = 0; i + 4 <= size; i++)
        if (memcmp(bytes + i, type, 4) == 0)
            return bytes + i;
    fail_msg("no %s", type);
    return NULL;
}

/* As a phone trims a video: its edit list leaves the second half out, and the file still has it. */
static void a_trimmed_file_is_whole(void **state)
{
    (void)state;
    const char *path = scratch("trimmed.mp4");
    size_t      size;
    clip_write(path, &(struct clip){.frames = 60, .gop = 1});
    uint8_t *bytes = file_load(path, &size);
    uint8_t *list = find_box(bytes, size, "elst"); /* version, count, then the one edit's duration,
                                                      in ms */
    assert_int_equal(list[11], 1);
    put_32(list + 12, 1200);
    put_32(find_box(bytes, size, "mvhd") + 20, 1200);
    file_save(path, bytes, size);
    free(bytes);
    struct reading r = read_all(path, NULL);
    assert_int_equal(r.end, SAC_EOS);
    assert_in_range(r.frames, 29, 32);
}

static void survives_damaged_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"flip.avi", "flip.mp4", "flip.mkv", "flip.ts"};
    uint32_t                 seed = 1;
    uint64_t                 damage = 0;
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *path = scratch("%s", names[n]), *bad = scratch("bad-%s", names[n]);
        size_t      size;
        clip_write(path, &(struct clip){.frames = 20, .audio = 1, .audio_codec = "mp2"});
        uint8_t *bytes = file_load(path, &size);
        for (int round = 0; round < 25; round++) {
            uint8_t *copy = malloc(size);
            memcpy(copy, bytes, size);
            for (int flip = 0; flip < 1 << (round % 10); flip++) {
                seed = seed * 1664525 + 1013904223;
                copy[(seed >> 4) % size] ^= (uint8_t)(1u << (seed >> 29));
            }
            file_save(bad, copy, size);
            free(copy);
            struct reading r = read_all(bad, NULL);
            assert_true(r.end == SAC_EOS || r.end == SAC_ERR_FORMAT ||
                        r.end == SAC_ERR_UNSUPPORTED || r.end == SAC_ERR_IO);
            damage += r.stats.corrupt;
        }
        free(bytes);
    }
    assert_true(damage > 0);
}

/* Two streams of different sizes joined, as a camera gives when it is reconfigured. */
static void follows_a_change_of_size(void **state)
{
    (void)state;
    const char *a = scratch("small.mjpeg"), *b = scratch("large.mjpeg"),
               *joined = scratch("joined.mjpeg");
    struct clip clip = {
        .frames = 15, .codec = "mjpeg", .format = "mjpeg", .pixels = AV_PIX_FMT_YUVJ420P};
    clip_write(a, &clip);
    clip.width = 640;
    clip.height = 384;
    clip.first = 15;
    clip_write(b, &clip);
    join(a, b, joined);
    struct reading r = read_all(joined, NULL);
    assert_int_equal(r.end, SAC_EOS);
    assert_int_equal(r.frames, 30);
    assert_int_equal(r.stats.size_changes, 1);
    for (int i = 0; i < 30; i++)
        assert_int_equal(r.number[i], i);
}

/* A transport stream whose program changes: on one PID to another codec, size or depth, or to
 * another PID. */
static void follows_a_change_of_the_program(void **state)
{
    (void)state;
    static const struct clip after[] = {
        {.codec = "mpeg2video"},
        {.codec = "mpeg2video", .options = "mpegts_start_pid=0x200"},
        {.codec = "mpeg4", .options = "mpegts_start_pid=0x200"},
        {.codec = "mpeg4", .width = 640, .height = 384},
        {.codec = "libx264"},
        {.codec = "libx264", .pixels = AV_PIX_FMT_YUV420P10},
    };
    const char *a = scratch("program-a.ts"), *b = scratch("program-b.ts"),
               *joined = scratch("program.ts");
    for (size_t i = 0; i < 2 * SAC_COUNT(after); i++) {
        struct clip one = {.frames = 30}, other = after[i / 2];
        if (!avcodec_find_encoder_by_name(other.codec))
            continue;
        other.frames = 30;
        other.first = i % 2 ? 0 : 30;
        one.first = i % 2 ? 30 : 0;
        clip_write(a, &one);
        clip_write(b, &other);
        join(i % 2 ? b : a, i % 2 ? a : b, joined);
        struct reading r = read_all(joined, NULL);
        if (r.end != SAC_EOS || r.frames < 58)
            fail_msg("%s, %zu: %d frames", other.codec, i % 2, r.frames);
        assert_int_equal(r.info.width, i % 2 && other.width ? other.width : 320);
        for (int k = 0; k < r.frames - 1; k++)
            assert_true(r.number[k] < r.number[k + 1]);
        assert_int_equal(r.number[0], 0);
        assert_int_equal(r.number[r.frames - 1], 59);
    }
}

static void reads_folders_of_images_in_natural_order(void **state)
{
    (void)state;
    const char *folder = scratch("images");
    mkdir(folder, 0700);
    for (int i = 0; i < 12; i++) { /* img0.jpg, img1.png, ... img11.png: two codecs by turns */
        char path[300];
        snprintf(path, sizeof path, "%s/img%d.%s", folder, i, i % 2 ? "png" : "jpg");
        clip_write(path, &(struct clip){.frames = 1,
                                        .first = i,
                                        .format = "image2pipe",
                                        .codec = i % 2 ? "png" : "mjpeg",
                                        .pixels = i % 2 ? AV_PIX_FMT_RGB24 : AV_PIX_FMT_YUVJ420P});
    }
    file_save(scratch("images/notes.txt"), "x", 1);
    struct sac_source_params params = sac_source_params_default();
    params.fps = 10;
    struct reading r = read_all(folder, &params);
    assert_even_clip(&r, 12, 10);
    assert_int_equal(r.info.frames, 12);
    assert_int_equal(r.info.width, 320);
    assert_string_equal(r.info.codec, "mjpeg");

    params.fps = 25;
    r = read_all(scratch("images/img%%d.png"), &params);
    assert_int_equal(r.frames, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(r.number[i], 2 * i + 1);

    file_save(scratch("images/img4.jpg"), "broken", 6);
    r = read_all(folder, &params);
    assert_int_equal(r.end, SAC_EOS);
    assert_int_equal(r.frames, 11);
    assert_int_equal(r.stats.corrupt, 1);
    assert_int_equal(r.number[4], 5);
    assert_int_equal(r.pts_us[4], 200000); /* a lost image leaves its time free */

    r = read_all(scratch("images/none%%03d.png"), &params);
    assert_int_equal(r.end, SAC_ERR_FORMAT);
    r = read_all(scratch("images/img1.png"), &params);
    assert_int_equal(r.frames, 1);
}

/* ---- standard input, cancelling, the network ---- */

struct feeder {
    int      fd;
    uint8_t *bytes;
    size_t   size;
    bool     hold; /* leave the pipe open */
};
static void *feed(void *arg)
{
    struct feeder *f = arg;
    for (size_t at = 0; at < f->size;) {
        ssize_t n = write(f->fd, f->bytes + at, SAC_MIN(f->size - at, (size_t)10000));
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    if (!f->hold)
        close(f->fd);
    return NULL;
}

static int replace_stdin(int *pipe_write)
{
    int fds[2], saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(fds), 0);
    dup2(fds[0], STDIN_FILENO);
    close(fds[0]);
    *pipe_write = fds[1];
    return saved;
}

static void restore_stdin(int saved)
{
    dup2(saved, STDIN_FILENO);
    close(saved);
}

static void reads_standard_input(void **state)
{
    (void)state;
    const char   *path = scratch("pipe.mkv");
    struct feeder f = {0};
    pthread_t     thread;
    clip_write(path, &(struct clip){.frames = 60});
    f.bytes = file_load(path, &f.size);
    int saved = replace_stdin(&f.fd);
    pthread_create(&thread, NULL, feed, &f);
    struct reading r = read_all("-", NULL);
    pthread_join(thread, NULL);
    restore_stdin(saved);
    assert_even_clip(&r, 60, 25);
    free(f.bytes);
}

static void *cancel_soon(void *arg)
{
    usleep(150000);
    sac_source_cancel(arg);
    return NULL;
}

/* Half of a clip through a pipe that stays open: the reader waits for more until it is
 * cancelled. */
static void cancel_ends_a_waiting_read(void **state)
{
    (void)state;
    const char   *path = scratch("stall.ts");
    struct feeder f = {.hold = true};
    clip_write(path, &(struct clip){.frames = 60});
    f.bytes = file_load(path, &f.size);
    for (int prefetch = 0; prefetch <= 4; prefetch += 4) {
        struct sac_source_params params = with_prefetch(prefetch);
        sac_source              *src = NULL;
        sac_frame               *frame = NULL;
        pthread_t                thread, canceller;
        int                      saved = replace_stdin(&f.fd);
        pthread_create(&thread, NULL, feed, &f);
        /* find_stream_info reads until it is content, so the clip must be longer than that */
        sac_result res = sac_source_open(dev, "-", &params, &src);
        assert_sac_ok(res);
        pthread_create(&canceller, NULL, cancel_soon, src);
        int64_t start = sac_time_ns();
        while ((res = sac_source_read_wait(src, &frame)) == SAC_OK)
            sac_frame_unref(&frame);
        assert_int_equal(res, SAC_ERR_CANCELLED);
        assert_true(sac_time_ns() - start < INT64_C(30000000000)); /* else for ever */
        pthread_join(canceller, NULL);
        sac_source_close(&src);
        pthread_join(thread, NULL);
        close(f.fd);
        restore_stdin(saved);
    }
    free(f.bytes);
}

static void close_in_the_middle_frees_all(void **state)
{
    (void)state;
    const char *path = scratch("middle.mp4");
    clip_write(path, &(struct clip){.frames = 60, .audio = 1});
    struct sac_source_params params = sac_source_params_default();
    params.keep_packets = 1;
    for (int frames = 0; frames < 20; frames += 5) {
        sac_source *src = NULL;
        assert_sac_ok(sac_source_open(dev, path, &params, &src));
        for (int i = 0; i < frames; i++) {
            sac_frame *frame = NULL;
            assert_sac_ok(sac_source_read_wait(src, &frame));
            sac_frame_unref(&frame);
        }
        sac_source_close(&src);
        assert_null(src);
    }
}

/* A server that accepts and never says a word. */
static void network_silence_times_out(void **state)
{
    (void)state;
    int                fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          len = sizeof at;
    char               url[64], why[512];
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 1), 0);
    getsockname(fd, (struct sockaddr *)&at, &len);
    snprintf(url, sizeof url, "rtsp://127.0.0.1:%d/camera", ntohs(at.sin_port));
    struct sac_source_params params = sac_source_params_default();
    params.timeout_us = 300000;
    int64_t        start = sac_time_ns();
    struct reading r = read_all(url, &params);
    int64_t        took = sac_time_ns() - start;
    close(fd);
    assert_int_equal(r.end, SAC_ERR_IO);
    assert_true(took < INT64_C(9000000000)); /* 10 s is the default */
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "no answer for 0.3 s"));
}

/* A server on this machine that sends what it has and then closes the connection, or says nothing
 * more. */
struct server {
    int            fd;
    bool           http;
    const uint8_t *bytes;
    size_t         size, promised; /* promised: the Content-Length; 0: none */
    bool           stalls;
    atomic_bool    over;
    pthread_t      thread;
    char           url[96];
};

static void *serve(void *arg)
{
    struct server *s = arg;
    char           line[256] = "";
    int            fd = accept(s->fd, NULL, NULL);
    if (s->http) {
        while (recv(fd, line, sizeof line, 0) == sizeof line)
            ;
        int len = snprintf(line, sizeof line, "HTTP/1.1 200 OK\r\nConnection: close\r\n");
        if (s->promised)
            len += snprintf(line + len, sizeof line - (size_t)len, "Content-Length: %zu\r\n",
                            s->promised);
        len += snprintf(line + len, sizeof line - (size_t)len, "\r\n");
        send(fd, line, (size_t)len, MSG_NOSIGNAL);
    }
    for (size_t at = 0; at < s->size;) {
        ssize_t n = send(fd, s->bytes + at, s->size - at, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    while (s->stalls && !atomic_load(&s->over))
        usleep(10000);
    close(fd);
    return NULL;
}

static void start_server(struct server *s, const char *path)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          len = sizeof at;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 1), 0);
    getsockname(s->fd, (struct sockaddr *)&at, &len);
    snprintf(s->url, sizeof s->url, "%s://127.0.0.1:%d%s", s->http ? "http" : "tcp",
             ntohs(at.sin_port), s->http ? path : "");
    pthread_create(&s->thread, NULL, serve, s);
}

static struct reading read_from(struct server *s, const char *path)
{
    struct sac_source_params params = sac_source_params_default();
    params.timeout_us = 500000;
    start_server(s, path);
    struct reading r = read_all(s->url, &params);
    atomic_store(&s->over, true);
    pthread_join(s->thread, NULL);
    close(s->fd);
    return r;
}

static const struct clip streamed[] = {
    {.frames = 150, .gop = 12, .format = "mpegts"},
    {.frames = 150, .gop = 12, .format = "m4v"}, /* raw, as H.264 comes from some cameras */
    {.frames = 150, .gop = 12, .format = "mp4", .options = "movflags=frag_keyframe+empty_moov"},
    {.frames = 150, .gop = 12, .format = "matroska"},
    {.frames = 150, .gop = 12, .format = "flv", .codec = "flv"},
};

/* With most formats libavformat reports this as the end of the file. What came before is read. */
static void a_stream_that_stalls_is_a_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * SAC_COUNT(streamed); i++) {
        const char   *path = scratch("stall%zu", i / 2);
        struct server server = {.http = i % 2, .stalls = true};
        size_t        size;
        char          why[512];
        clip_write(path, &streamed[i / 2]);
        uint8_t *bytes = file_load(path, &size);
        server.bytes = bytes;
        server.size = size * 9 / 10;
        struct reading r = read_from(&server, "/clip");
        sac_context_last_error(test_context(), why, sizeof why);
        free(bytes);
        if (r.end != SAC_ERR_IO || !strstr(why, "no answer for 0.5 s") || r.frames < 120)
            fail_msg("%s over %s: %d frames, %s", streamed[i / 2].format, server.url, r.frames,
                     why);
    }
}

/* The server announced more bytes (HTTP's Content-Length). Without an announcement a closed
 * connection is the end. */
static void a_connection_that_ends_early_is_a_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * SAC_COUNT(streamed); i++) {
        const char   *path = scratch("short%zu", i / 2);
        struct server server = {.http = true};
        size_t        size;
        char          why[512];
        clip_write(path, &streamed[i / 2]);
        uint8_t *bytes = file_load(path, &size);
        server.bytes = bytes;
        server.size = size * 9 / 10;
        server.promised = i % 2 ? 0 : size;
        struct reading r = read_from(&server, "/clip");
        sac_context_last_error(test_context(), why, sizeof why);
        free(bytes);
        const bool told =
            r.end == SAC_ERR_IO && strstr(why, "the connection ended before the video");
        if (told != (server.promised > 0) || (!told && r.end != SAC_EOS) || r.frames < 120)
            fail_msg("%s, %zu promised: %d frames, %s", streamed[i / 2].format, server.promised,
                     r.frames, why);
    }
}

/* Datagrams that stop. */
struct sender {
    struct sockaddr_in to;
    const uint8_t     *bytes;
    size_t             size;
};

static void *send_datagrams(void *arg)
{
    enum { DATAGRAM = 7 * 188 };
    const struct sender *s = arg;
    int                  fd = socket(AF_INET, SOCK_DGRAM, 0), heard = 0;
    connect(fd, (const struct sockaddr *)&s->to, sizeof s->to);
    for (int i = 0; i < 6000 && heard < 3; i++) { /* refused while nobody listens */
        heard = send(fd, s->bytes, DATAGRAM, 0) == DATAGRAM ? heard + 1 : 0;
        usleep(10000);
    }
    for (size_t at = 0; at < s->size; at += DATAGRAM) {
        send(fd, s->bytes + at, SAC_MIN(s->size - at, (size_t)DATAGRAM), 0);
        usleep(500);
    }
    close(fd);
    return NULL;
}

static void datagrams_that_stop_are_a_fault(void **state)
{
    (void)state;
    const char   *path = scratch("datagrams.ts");
    struct sender sender = {
        .to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    struct sac_source_params params = sac_source_params_default();
    socklen_t                len = sizeof sender.to;
    char                     url[64], why[512];
    pthread_t                thread;
    int                      fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sender.to, sizeof sender.to), 0);
    getsockname(fd, (struct sockaddr *)&sender.to, &len);
    close(fd);
    clip_write(path, &streamed[0]);
    uint8_t *bytes = file_load(path, &sender.size);
    sender.bytes = bytes;
    snprintf(url, sizeof url, "udp://127.0.0.1:%d", ntohs(sender.to.sin_port));
    params.timeout_us = 1000000;
    pthread_create(&thread, NULL, send_datagrams, &sender);
    struct reading r = read_all(url, &params);
    pthread_join(thread, NULL);
    free(bytes);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_int_equal(r.end, SAC_ERR_IO);
    assert_non_null(strstr(why, "no answer for 1 s"));
    assert_in_range(r.frames, 100, 160); /* the first datagram may have been heard three times */
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    const char              *path = scratch("allocations.mkv");
    struct sac_source_params params = with_prefetch(0);
    sac_result               res = SAC_ERR_MEMORY;
    long                     n = 1;
    params.keep_packets = 1;
    clip_write(path, &(struct clip){
                         .frames = 3, .audio = 1, .codec = "ffv1", .pixels = AV_PIX_FMT_YUV422P});
    for (; n < 200 && res != SAC_EOS; n++) {
        sac_source *src = NULL;
        sac_frame  *frame = NULL;
        sac_alloc_fail_at(n);
        res = sac_source_open(dev, path, &params, &src);
        while (res == SAC_OK && (res = sac_source_read_wait(src, &frame)) == SAC_OK)
            sac_frame_unref(&frame);
        sac_alloc_fail_at(0);
        sac_source_close(&src);
        assert_true(res == SAC_ERR_MEMORY || res == SAC_EOS);
    }
    assert_int_equal(res, SAC_EOS);
    assert_true(n > 5);
}

static void memory_stays_flat(void **state)
{
    (void)state;
    if (TEST_SANITIZED)
        skip();
    const char *path = scratch("long.avi");
    clip_write(path, &(struct clip){.frames = 2000});
    sac_source *src = NULL;
    sac_frame  *frame = NULL;
    long        early = 0;
    int         frames = 0;
    assert_sac_ok(sac_source_open(dev, path, NULL, &src));
    while (sac_source_read_wait(src, &frame) == SAC_OK) {
        sac_frame_unref(&frame);
        if (++frames == 100)
            early = resident_kb();
    }
    assert_int_equal(frames, 2000);
    assert_in_range(resident_kb(), 0, early + early / 50 + 512);
    sac_source_close(&src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_frame_in_order),
        cmocka_unit_test(a_paced_file_comes_as_from_a_camera),
        cmocka_unit_test(keeps_variable_frame_rate),
        cmocka_unit_test(starts_at_zero_wherever_the_file_does),
        cmocka_unit_test(keeps_the_times_of_the_source),
        cmocka_unit_test(says_the_average_rate),
        cmocka_unit_test(delivers_our_formats_uncopied_and_converts_others),
        cmocka_unit_test(says_what_is_not_a_video),
        cmocka_unit_test(says_that_there_is_no_video),
        cmocka_unit_test(gives_what_a_truncated_file_still_has),
        cmocka_unit_test(a_file_that_starts_late_is_whole),
        cmocka_unit_test(a_trimmed_file_is_whole),
        cmocka_unit_test(survives_damaged_bytes),
        cmocka_unit_test(follows_a_change_of_size),
        cmocka_unit_test(follows_a_change_of_the_program),
        cmocka_unit_test(reads_folders_of_images_in_natural_order),
        cmocka_unit_test(reads_standard_input),
        cmocka_unit_test(cancel_ends_a_waiting_read),
        cmocka_unit_test(close_in_the_middle_frees_all),
        cmocka_unit_test(network_silence_times_out),
        cmocka_unit_test(a_stream_that_stalls_is_a_fault),
        cmocka_unit_test(a_connection_that_ends_early_is_a_fault),
        cmocka_unit_test(datagrams_that_stop_are_a_fault),
        cmocka_unit_test(survives_every_failed_allocation),
        cmocka_unit_test(memory_stays_flat),
    };
    return cmocka_run_group_tests_name("media/source", tests, open_device, close_device);
}
