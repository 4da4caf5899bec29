/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libavformat/avformat.h>
#include <saccade/sink.h>

#include "tests/media/clip.h"
#include "tests/media/reading.h"
#include "tests/test.h"

enum { FRAMES = 120, FPS = 25 };
static const int64_t step_us = 1000000 / FPS;

static struct sac_source_params part_of(int64_t start_us, int64_t duration_us, int every)
{
    struct sac_source_params params = sac_source_params_default();
    params.start_us = start_us;
    params.duration_us = duration_us;
    params.every = every;
    return params;
}

static const struct {
    int64_t start_us, duration_us;
    int     every, first, frames; /* in a clip of FRAMES */
} parts[] = {
    {0, 0, 3, 0, 40},
    {0, 1000000, 1, 0, 25},
    {0, 1000000, 7, 0, 4},
    {2000000, 0, 1, 50, 70},
    {2000000, 1000000, 1, 50, 25},
    {1990000, 1000000, 1, 50, 25},
    {10000, 90000, 1, 1, 2},
    {2010000, 0, 10, 51, 7},
    {4760000, 0, 1, 119, 1},
    {4760000, 9000000, 5, 119, 1},
    {2000000, 40000, 1, 50, 1},
    {40000, 1, 2, 1, 1},
};

static bool is_said(const char *words)
{
    char why[512];
    sac_context_last_error(test_context(), why, sizeof why);
    return strstr(why, words) != NULL;
}

static void assert_part(const char *path, const struct reading *r, size_t i, bool exact_total)
{
    const int every = parts[i].every;
    if (r->end != SAC_EOS || r->frames != parts[i].frames)
        fail_msg("%s, part %zu: %d frames of %d, end %d", path, i, r->frames, parts[i].frames,
                 r->end);
    for (int k = 0; k < r->frames; k++) {
        assert_int_equal(r->number[k], parts[i].first + k * every);
        assert_in_range(r->pts_us[k] - r->number[k] * step_us + 1000, 0, 2000);
    }
    assert_int_equal(r->stats.frames, parts[i].frames);
    assert_int_equal(r->stats.corrupt, 0);
    assert_int_equal(r->stats.pts_repaired, 0);
    assert_float_equal(r->info.fps, (double)FPS / every, 1e-3);
    if (exact_total)
        assert_int_equal(r->info.frames, parts[i].frames);
}

/* A frame has the number that its picture shows: frames are counted from the file's first. */
static void assert_numbers(const char *path, const struct sac_source_params *params, size_t i)
{
    sac_source *src = NULL;
    assert_int_equal(sac_source_open(dev, path, params, &src), SAC_OK);
    for (int k = 0; k < parts[i].frames; k++) {
        sac_frame *frame = NULL;
        assert_int_equal(sac_source_read_wait(src, &frame), SAC_OK);
        assert_int_equal(frame->number, clip_number(frame));
        assert_in_range(frame->duration_us - step_us * parts[i].every + 10000, 0, 20000);
        sac_frame_unref(&frame);
    }
    sac_source_close(&src);
}

static void gives_the_part_that_is_wanted(void **state)
{
    (void)state;
    static const char *const names[] = {"p.mp4", "p.mov", "p.mkv", "p.avi", "p.ts"};
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *path = scratch("%s", names[n]);
        const bool  ts = strstr(names[n], ".ts");
        clip_write(path,
                   &(struct clip){
                       .frames = FRAMES, .audio = 1, .audio_codec = "mp2", .start = ts ? 250 : 0});
        for (size_t i = 0; i < SAC_COUNT(parts); i++)
            for (int prefetch = 0; prefetch <= 4; prefetch += 4) {
                struct sac_source_params params =
                    part_of(parts[i].start_us, parts[i].duration_us, parts[i].every);
                params.prefetch = prefetch;
                struct reading r = read_all(path, &params);
                assert_part(path, &r, i, n < 2); /* those count their frames */
                assert_numbers(path, &params, i);
            }
    }
}

/* With B-frames the first picture is shown later than its packet's time, and that time is what a
 * stream without an index is searched by. */
static void begins_with_the_first_pictures(void **state)
{
    (void)state;
    static const char *const names[] = {"b.ts", "b.mpg", "b.mkv", "b.mp4"};
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *path = scratch("%s", names[n]);
        clip_write(path, &(struct clip){
                             .frames = FRAMES, .codec = "mpeg2video", .b_frames = 2, .gop = 60});
        for (int first = 1; first < 70; first += 17) {
            struct sac_source_params params = part_of(first * step_us, 0, 1);
            struct reading           r = read_all(path, &params);
            if (r.frames != FRAMES - first || r.number[0] != first)
                fail_msg("%s from frame %d: %d frames from %d on", path, first, r.frames,
                         (int)r.number[0]);
        }
    }
}

static void gives_a_part_of_pictures(void **state)
{
    (void)state;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", scratch("pictures"));
    assert_int_equal(mkdir(folder, 0777), 0);
    for (int i = 0; i < FRAMES; i++)
        clip_write(scratch("pictures/%05d.png", i), &(struct clip){.format = "image2",
                                                                   .codec = "png",
                                                                   .pixels = AV_PIX_FMT_RGB24,
                                                                   .frames = 1,
                                                                   .width = 128,
                                                                   .height = 64,
                                                                   .first = i});
    for (size_t i = 0; i < SAC_COUNT(parts); i++) {
        struct sac_source_params params =
            part_of(parts[i].start_us, parts[i].duration_us, parts[i].every);
        struct reading r = read_all(folder, &params);
        assert_part(folder, &r, i, true);
        if (parts[i].duration_us == 0)
            assert_in_range(r.stats.packets, parts[i].frames, parts[i].frames + 1); /* others are
                                                                                       not loaded */
    }
}

static void *copy_to_fifo(void *arg)
{
    size_t   size;
    uint8_t *bytes = file_load(scratch("pipe.ts"), &size);
    int      fd = open(arg, O_WRONLY);
    for (size_t at = 0; fd >= 0 && at < size;) {
        ssize_t put = write(fd, bytes + at, size - at);
        if (put <= 0)
            break;
        at += (size_t)put;
    }
    close(fd);
    free(bytes);
    return NULL;
}

static void reads_a_pipe_up_to_the_part(void **state)
{
    (void)state;
    char fifo[4096];
    signal(SIGPIPE, SIG_IGN); /* who has its part leaves */
    snprintf(fifo, sizeof fifo, "%s", scratch("fifo.ts"));
    clip_write(scratch("pipe.ts"), &(struct clip){.frames = FRAMES});
    assert_int_equal(mkfifo(fifo, 0666), 0);
    for (size_t i = 0; i < SAC_COUNT(parts); i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, copy_to_fifo, fifo), 0);
        struct sac_source_params params =
            part_of(parts[i].start_us, parts[i].duration_us, parts[i].every);
        struct reading r = read_all(fifo, &params);
        pthread_join(thread, NULL);
        assert_part("a pipe", &r, i, false);
    }
}

static void a_part_past_the_end_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"e.mp4", "e.mkv", "e.ts", "e.avi"};
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *path = scratch("%s", names[n]);
        clip_write(path, &(struct clip){.frames = 50});
        struct sac_source_params params = part_of(60000000, 0, 1);
        struct reading           r = read_all(path, &params);
        assert_int_equal(r.end, SAC_ERR_ARG);
        assert_true(is_said("no frame at 60.000 s or later; it lasts 2.0"));
        params = part_of(10000, 20000, 1); /* between two frames */
        r = read_all(path, &params);
        assert_int_equal(r.end, SAC_ERR_ARG);
        assert_true(is_said("no frame in the 0.020 s from 0.010 s on"));
        params = part_of(-1, 0, 1);
        assert_int_equal(read_all(path, &params).end, SAC_ERR_ARG);
    }
}

static void a_part_of_a_file_is_not_cut_off(void **state)
{
    (void)state;
    size_t      size;
    const char *path = scratch("whole.mp4"), *cut = scratch("cut.mp4");
    clip_write(path, &(struct clip){.frames = FRAMES, .front_index = true});
    uint8_t *bytes = file_load(path, &size);
    file_save(cut, bytes, size * 2 / 3);
    free(bytes);
    struct sac_source_params params = part_of(0, 1000000, 1);
    assert_int_equal(read_all(cut, &params).end, SAC_EOS); /* what is missing was not asked for */
    params = part_of(1000000, 0, 1);
    struct reading r = read_all(path, &params);
    assert_int_equal(r.end, SAC_EOS);
    r = read_all(cut, &params);
    assert_int_equal(r.end, SAC_ERR_FORMAT);
    assert_true(r.frames > 0 && r.frames < FRAMES - 25);
}

static void a_sink_begins_with_the_part(void **state)
{
    (void)state;
    const char *path = scratch("in.mkv"), *out = scratch("out.mkv");
    clip_write(path, &(struct clip){.frames = FRAMES, .audio = 1, .audio_codec = "mp2"});
    struct sac_source_params params = part_of(2000000, 1000000, 5);
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    params.keep_packets = 1;
    assert_int_equal(sac_source_open(dev, path, &params, &src), SAC_OK);
    assert_int_equal(sac_sink_create(dev, out, src, NULL, &sink), SAC_OK);
    sac_frame *frame = NULL;
    while (sac_source_read_wait(src, &frame) == SAC_OK) {
        assert_int_equal(sac_sink_write_wait(sink, frame), SAC_OK);
        sac_frame_unref(&frame);
    }
    assert_int_equal(sac_sink_finish(sink), SAC_OK);
    sac_sink_destroy(&sink);
    sac_source_close(&src);

    AVFormatContext *fmt = NULL;
    AVPacket        *packet = av_packet_alloc();
    int64_t          first[2] = {INT64_MAX, INT64_MAX}, end[2] = {0, 0};
    assert_int_equal(avformat_open_input(&fmt, out, NULL, NULL), 0);
    assert_int_equal(fmt->nb_streams, 2);
    while (av_read_frame(fmt, packet) >= 0) {
        const int     i = packet->stream_index;
        const int64_t ms =
            av_rescale_q(packet->pts, fmt->streams[i]->time_base, (AVRational){1, 1000});
        first[i] = SAC_MIN(first[i], ms);
        end[i] = SAC_MAX(end[i], ms + av_rescale_q(packet->duration, fmt->streams[i]->time_base,
                                                   (AVRational){1, 1000}));
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    avformat_close_input(&fmt);
    for (int i = 0; i < 2; i++) { /* picture and sound, from 0 to a second; a packet of sound has 72
                                     ms */
        assert_in_range(first[i], 0, 72);
        assert_in_range(end[i], 928, 1072);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_part_that_is_wanted),
        cmocka_unit_test(begins_with_the_first_pictures),
        cmocka_unit_test(gives_a_part_of_pictures),
        cmocka_unit_test(reads_a_pipe_up_to_the_part),
        cmocka_unit_test(a_part_past_the_end_is_refused),
        cmocka_unit_test(a_part_of_a_file_is_not_cut_off),
        cmocka_unit_test(a_sink_begins_with_the_part),
    };
    return cmocka_run_group_tests_name("media/part", tests, open_device, close_device);
}
