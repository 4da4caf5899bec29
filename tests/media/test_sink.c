/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <saccade/image.h>
#include <saccade/sink.h>

#include "media/media.h"
#include "tests/media/reading.h"
#include "tests/temporary.h"

static struct sac_source_params keeping_audio(void)
{
    struct sac_source_params params = sac_source_params_default();
    params.keep_packets = 1;
    return params;
}

/* Copy at most frames_max frames from one file to another; what sac_sink_finish gave. */
static sac_result transcode(const char *from, const char *to, int frames_max,
                            const struct sac_sink_params *sink_params)
{
    struct sac_source_params params = keeping_audio();
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    sac_frame               *frame = NULL;
    assert_sac_ok(sac_source_open(dev, from, &params, &src));
    sac_result res = sac_sink_create(dev, to, src, sink_params, &sink);
    for (int i = 0; res == SAC_OK && i < frames_max; i++) {
        sac_result read = sac_source_read_wait(src, &frame);
        if (read == SAC_EOS)
            break;
        assert_sac_ok(read);
        res = sac_sink_write_wait(sink, frame);
        sac_frame_unref(&frame);
    }
    if (res == SAC_OK)
        res = sac_sink_finish(sink);
    sac_sink_destroy(&sink);
    sac_source_close(&src);
    return res;
}

static bool exists(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

static bool part_exists(const char *path)
{
    return temporaries_of(path, NULL, 0) > 0;
}

static void assert_even(const struct reading *r, int frames)
{
    if (r->end != SAC_EOS) {
        char why[512];
        sac_context_last_error(test_context(), why, sizeof why);
        fail_msg("%s", why);
    }
    assert_int_equal(r->frames, frames);
    for (int i = 0; i < frames; i++) {
        assert_int_equal(r->number[i], i);
        assert_in_range(r->pts_us[i] - (int64_t)i * 40000 + 1000, 0, 2000);
    }
    assert_int_equal(r->stats.corrupt, 0);
}

static void writes_each_container(void **state)
{
    (void)state;
    static const char *const names[] = {"o.mp4", "o.mov", "o.mkv", "o.avi",
                                        "o.ts",  "o.m4v", "o.webm"};
    const char              *from = scratch("in.mkv");
    clip_write(from, &(struct clip){.frames = 40});
    for (size_t i = 0; i < SAC_COUNT(names); i++) {
        const char *to = scratch("%s", names[i]);
        assert_sac_ok(transcode(from, to, 1000, NULL));
        assert_false(part_exists(to));
        struct reading r = read_all(to, NULL);
        assert_even(&r, 40);
        assert_int_equal(r.info.width, 320);
        assert_float_equal(r.info.fps, 25, 0.01);
    }
}

static void keeps_variable_frame_rate(void **state)
{
    (void)state;
    static const int64_t     pts[] = {0, 40, 41, 200, 1000, 1033, 5000};
    static const char *const names[] = {"vfr.mp4", "vfr-out.mkv", "vfr.ts"};
    const char              *from = scratch("vfr.mkv");
    clip_write(from, &(struct clip){.frames = SAC_COUNT(pts), .pts = pts, .time_base = 1000});
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *to = scratch("%s", names[n]);
        assert_sac_ok(transcode(from, to, 1000, NULL));
        struct reading r = read_all(to, NULL);
        assert_int_equal(r.frames, SAC_COUNT(pts));
        for (size_t i = 0; i < SAC_COUNT(pts); i++)
            assert_in_range(r.pts_us[i] - pts[i] * 1000 + 20, 0, 40); /* ticks of 1/90000 s */
    }
}

/* Every container has a limit of its own to the time between two frames, and none may cost the
 * video. */
static void a_gap_never_loses_the_video(void **state)
{
    (void)state;
    static const char *const names[] = {"gap.avi", "gap.mp4", "gap.mov",
                                        "gap.mkv", "gap.ts",  "gap.webm"};
    static const int64_t     gaps_s[] = {3000, 30000, 200000, 2000000};
    struct sac_sink_params   mpeg4 = sac_sink_params_default();
    mpeg4.encoder = "mpeg4"; /* has a limit of its own */
    for (size_t g = 0; g < SAC_COUNT(gaps_s); g++) {
        const int64_t gap = gaps_s[g] * 1000, pts[] = {0, 40, 80, gap, gap + 40, gap + 80};
        const char   *from = scratch("gap%zu.mkv", g);
        clip_write(from, &(struct clip){.frames = SAC_COUNT(pts),
                                        .pts = pts,
                                        .time_base = 1000,
                                        .audio = 1,
                                        .audio_ms = 240,
                                        .audio_codec = "mp2",
                                        .codec = "mjpeg",
                                        .pixels = AV_PIX_FMT_YUVJ420P});
        const char *by_mpeg4 = scratch("gap-mpeg4.mkv");
        assert_sac_ok(transcode(from, by_mpeg4, 1000, &mpeg4));
        assert_int_equal(read_all(by_mpeg4, NULL).frames, SAC_COUNT(pts));
        for (size_t n = 0; n < SAC_COUNT(names); n++) {
            const char *to = scratch("%s", names[n]);
            assert_sac_ok(transcode(from, to, 1000, NULL));
            struct reading r = read_all(to, NULL);
            if (r.end != SAC_EOS || r.frames != (int)SAC_COUNT(pts))
                fail_msg("%s, %lld s: %d frames", to, (long long)gaps_s[g], r.frames);
            const int64_t left_out = gap * 1000 - r.pts_us[3];
            assert_true(left_out > -2000);
            if (gaps_s[g] == 3000 && !strstr(to, ".avi"))
                assert_in_range(left_out + 2000, 0, 4000);
            if (strstr(to, ".mkv") || strstr(to, ".webm"))
                assert_in_range(left_out + 2000, 0, 4000);
            assert_true(r.pts_us[3] > 1000 * INT64_C(1000000)); /* as long as it can be */
            for (int i = 4; i < 6; i++)
                assert_in_range(r.pts_us[i] - r.pts_us[3] - (i - 3) * 40000 + 2000, 0, 4000);
        }
    }
}

/* Packets, bytes and span of the n-th audio stream. */
struct sound {
    int     streams, packets;
    int64_t bytes;
    double  first_s, last_s;
};
static struct sound listen_to(const char *path, int stream)
{
    struct sound     s = {0};
    AVFormatContext *fmt = NULL;
    AVPacket        *packet = av_packet_alloc();
    int              index = -1;
    assert_int_equal(avformat_open_input(&fmt, path, NULL, NULL), 0);
    assert_true(avformat_find_stream_info(fmt, NULL) >= 0);
    for (int i = 0; i < (int)fmt->nb_streams; i++)
        if (fmt->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO && s.streams++ == stream)
            index = i;
    while (av_read_frame(fmt, packet) >= 0) {
        if (packet->stream_index == index) {
            double at = (double)packet->pts * av_q2d(fmt->streams[index]->time_base);
            s.first_s = s.packets++ ? s.first_s : at;
            s.last_s = at;
            s.bytes += packet->size;
        }
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    avformat_close_input(&fmt);
    return s;
}

static void copies_audio(void **state)
{
    (void)state;
    static const char *const names[] = {"sound.mp4", "sound.mkv", "sound.avi", "sound.ts",
                                        "sound.mov"};
    const char              *from = scratch("sound-in.mp4");
    clip_write(from, &(struct clip){.frames = 50, .audio = 2, .audio_ms = 2400});
    struct sound in = listen_to(from, 1);
    assert_int_equal(in.streams, 2);
    for (size_t n = 0; n < SAC_COUNT(names); n++) {
        const char *to = scratch("%s", names[n]);
        assert_sac_ok(transcode(from, to, 1000, NULL));
        for (int stream = 0; stream < 2; stream++) {
            struct sound out = listen_to(to, stream);
            assert_int_equal(out.streams, 2);
            if (!strstr(names[n], ".ts")) { /* there each packet gets a header of its own */
                assert_int_equal(out.packets, in.packets);
                assert_int_equal(out.bytes, in.bytes);
            }
            assert_float_equal(out.last_s - out.first_s, in.last_s - in.first_s, 0.002);
        }
    }
}

static int warnings;

static void count_warnings(void *user, enum sac_log_level level, const char *message)
{
    (void)user;
    warnings += level == SAC_LOG_WARN &&
                (strstr(message, "can't hold ") || strstr(message, "left out from here on"));
}

/* Some refuse it by their list, some with the header, some with the first packet. */
static void leaves_out_audio_that_does_not_fit(void **state)
{
    (void)state;
    static const char *const  codecs[] = {"pcm_s16le", "flac", "libopus", "truehd"};
    static const char *const  names[] = {"a.webm", "a.avi", "a.mov", "a.mp4", "a.ts", "a.mkv"};
    struct sac_context_params params = sac_context_params_default();
    sac_context              *ctx = NULL;
    sac_device               *shared = dev;
    int                       left_out = 0;
    params.log_fn = count_warnings;
    assert_sac_ok(sac_context_create(&params, &ctx));
    assert_sac_ok(sac_device_open(ctx, "cpu", NULL, &dev));
    for (size_t c = 0; c < SAC_COUNT(codecs); c++) {
        const char *from = scratch("%s.mkv", codecs[c]);
        if (!avcodec_find_encoder_by_name(codecs[c]))
            continue; /* a lean FFmpeg */
        clip_write(from, &(struct clip){.frames = 20, .audio = 1, .audio_codec = codecs[c]});
        const int packets = listen_to(from, 0).packets;
        for (size_t n = 0; n < SAC_COUNT(names); n++) {
            const char *to = scratch("%s", names[n]);
            warnings = 0;
            assert_sac_ok(transcode(from, to, 1000, NULL));
            const struct sound sound = listen_to(to, 0);
            if ((warnings > 0) != (sound.packets == 0) ||
                (!warnings && sound.packets < packets / 2))
                fail_msg("%s in %s: %d of %d packets, %d warnings", codecs[c], to, sound.packets,
                         packets, warnings);
            left_out += warnings > 0;
            struct reading r = read_all(to, NULL);
            assert_even(&r, 20);
        }
    }
    assert_true(left_out >= 1);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    dev = shared;
}

static void an_interrupted_file_is_whole(void **state)
{
    (void)state;
    const char *from = scratch("long-in.mp4"), *to = scratch("interrupted.mp4");
    clip_write(from, &(struct clip){.frames = 100, .audio = 1});
    assert_sac_ok(transcode(from, to, 25, NULL));
    struct reading r = read_all(to, NULL);
    assert_even(&r, 25);
    assert_in_range((int)(listen_to(to, 0).last_s * 1000), 850, 1001); /* the sound ends there too
                                                                        */
}

/* One that looks ahead has written nothing of the first frames: then there is no sound either. */
static void audio_waits_for_the_encoder(void **state)
{
    (void)state;
    if (!avcodec_find_encoder_by_name("libx264"))
        skip();
    const char              *from = scratch("long-in.mp4"), *to = scratch("delayed.mp4");
    struct sac_source_params params = keeping_audio();
    struct sac_sink_params   slow = sac_sink_params_default();
    AVPacket                *packet = av_packet_alloc();
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    int                      stream;
    int64_t                  origin_us;
    slow.encoder = "libx264";
    slow.preset = "medium"; /* looks 40 frames ahead */
    clip_write(from, &(struct clip){.frames = 100, .audio = 1});
    assert_sac_ok(sac_source_open(dev, from, &params, &src));
    assert_sac_ok(sac_sink_create(dev, to, src, &slow, &sink));
    for (int i = 0; i < 20; i++) {
        sac_frame *frame = NULL;
        assert_sac_ok(sac_source_read_wait(src, &frame));
        assert_sac_ok(sac_sink_write_wait(sink, frame));
        sac_frame_unref(&frame);
    }
    assert_sac_ok(sac_source_take_kept(src, INT64_MAX, packet, &stream, &origin_us));
    const AVRational base = sac_source_input(src)->kept[stream]->time_base;
    assert_true(av_rescale_q(packet->pts, base, AV_TIME_BASE_Q) - origin_us < 100000);
    av_packet_free(&packet);
    sac_sink_destroy(&sink);
    sac_source_close(&src);
}

static void nothing_is_left_without_finish(void **state)
{
    (void)state;
    const char *from = scratch("short.mkv"), *to = scratch("unfinished.mp4");
    sac_source *src = NULL;
    sac_sink   *sink = NULL;
    sac_frame  *frame = NULL;
    clip_write(from, &(struct clip){.frames = 5});
    file_save(to, "former", 6);
    assert_sac_ok(sac_source_open(dev, from, NULL, &src));
    assert_sac_ok(sac_sink_create(dev, to, src, NULL, &sink));
    assert_true(part_exists(to));
    assert_sac_ok(sac_source_read_wait(src, &frame));
    assert_sac_ok(sac_sink_write_wait(sink, frame));
    sac_frame_unref(&frame);
    sac_sink_destroy(&sink);
    assert_false(part_exists(to));
    size_t   size;
    uint8_t *bytes = file_load(to, &size);
    assert_int_equal(size, 6); /* the former file is as it was */
    assert_memory_equal(bytes, "former", 6);
    free(bytes);

    to = scratch("nothing.mp4");
    assert_sac_ok(sac_sink_create(dev, to, src, NULL, &sink));
    assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    assert_false(exists(to));
    assert_false(part_exists(to));
    sac_source_close(&src);
}

static void says_why_it_cannot_write(void **state)
{
    (void)state;
    const char            *from = scratch("tiny.mkv"), *folder = scratch("folder.mp4");
    struct sac_sink_params params = sac_sink_params_default();
    clip_write(from, &(struct clip){.frames = 3});
    mkdir(folder, 0700);
    assert_why(transcode(from, scratch("missing/o.mp4"), 3, NULL), SAC_ERR_IO,
               "o.mp4': No such file or directory");
    assert_why(transcode(from, folder, 3, NULL), SAC_ERR_IO, "folder.mp4': it is a folder");
    assert_why(transcode(from, from, 3, NULL), SAC_ERR_ARG, "tiny.mkv' would overwrite an input");
    assert_why(transcode(from, scratch("o.xyz"), 3, NULL), SAC_ERR_ARG, "have .mp4, ");
    assert_why(transcode(from, scratch("mp4"), 3, NULL), SAC_ERR_ARG, "have .mp4, ");
    params.encoder = "nonsense";
    assert_why(transcode(from, scratch("o.mp4"), 3, &params), SAC_ERR_UNSUPPORTED, "'nonsense'");
    params = sac_sink_params_default();
    params.preset = "nonsense";
    assert_why(transcode(from, scratch("p.mp4"), 3, &params), SAC_ERR_UNSUPPORTED,
               "preset 'nonsense': libx264 has ultrafast, ");
    assert_false(part_exists(scratch("p.mp4")));
}

/* A device that is always full, behind a name that says the container. */
static void says_that_the_disk_is_full(void **state)
{
    (void)state;
    static const char *const names[] = {"full.mp4", "full.mkv", "full.avi", "full.ts"};
    const char              *from = scratch("for-full.mkv");
    clip_write(from, &(struct clip){.frames = 100});
    for (size_t i = 0; i < SAC_COUNT(names); i++) {
        const char *to = scratch("%s", names[i]);
        assert_int_equal(symlink("/dev/full", to), 0);
        assert_why(transcode(from, to, 1000, NULL), SAC_ERR_IO, "No space left on device");
        assert_false(part_exists(to));
        assert_true(exists("/dev/full"));
    }
}

/* A limit on the size of files fails a write in the middle, as a disk that fills up does. */
static void a_write_that_fails_leaves_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"limited.mp4", "limited.mkv", "limited.avi", "limited.ts"};
    const char              *from = scratch("for-limit.mkv");
    struct rlimit            before, small;
    struct sac_sink_params   params = sac_sink_params_default();
    params.crf = 1; /* large files */
    clip_write(from, &(struct clip){.frames = 100});
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    for (rlim_t limit = 20000; limit <= 100000; limit += 40000)
        for (size_t i = 0; i < SAC_COUNT(names); i++) {
            const char *to = scratch("%s", names[i]);
            small = (struct rlimit){limit, before.rlim_max};
            setrlimit(RLIMIT_FSIZE, &small);
            sac_result res = transcode(from, to, 1000, &params);
            setrlimit(RLIMIT_FSIZE, &before);
            assert_why(res, SAC_ERR_IO, "File too large");
            assert_false(exists(to));
            assert_false(part_exists(to));
        }
}

static void takes_any_format_and_size(void **state)
{
    (void)state;
    static const struct {
        const char        *codec;
        enum AVPixelFormat pixels;
        int                width, height;
    } cases[] = {
        {"rawvideo", AV_PIX_FMT_RGB24, 321, 193}, {"ffv1", AV_PIX_FMT_YUV420P10, 320, 192},
        {"rawvideo", AV_PIX_FMT_NV12, 320, 192},  {"ffv1", AV_PIX_FMT_GRAY8, 320, 192},
        {"mjpeg", AV_PIX_FMT_YUVJ420P, 333, 199},
    };
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        const char *from = scratch("any%zu.nut", i), *to = scratch("any%zu.mp4", i);
        clip_write(from, &(struct clip){.frames = 10,
                                        .codec = cases[i].codec,
                                        .pixels = cases[i].pixels,
                                        .width = cases[i].width,
                                        .height = cases[i].height});
        assert_sac_ok(transcode(from, to, 1000, NULL));
        struct reading in = read_all(from, NULL), out = read_all(to, NULL);
        assert_even(&out, 10);
        assert_int_equal(out.info.width, cases[i].width & ~1);
        assert_int_equal(out.info.height, cases[i].height & ~1);
        assert_int_equal(out.info.matrix, in.info.matrix);
        if (in.info.format == SAC_PIXEL_I420)
            assert_int_equal(out.info.range, in.info.range);
    }
}

/* Frames of another size are scaled to the first one's; without a source the times are the
 * frames'. */
static void scales_to_the_first_frame(void **state)
{
    (void)state;
    static const int64_t pts[] = {0, 33333, 66667, 500000};
    const char          *to = scratch("sizes.mp4");
    sac_sink            *sink = NULL;
    assert_sac_ok(sac_sink_create(dev, to, NULL, NULL, &sink));
    for (int i = 0; i < 4; i++) {
        sac_frame *frame = NULL;
        sac_frame  desc = {.format = SAC_PIXEL_I420,
                           .width = 320 << (i % 2),
                           .height = 192 << (i % 2),
                           .pts_us = pts[i]};
        assert_sac_ok(sac_frame_create(dev, &desc, &frame));
        memset(frame->plane[0], 128, frame->pitch_bytes[0] * (size_t)frame->height);
        for (int p = 1; p < 3; p++)
            memset(frame->plane[p], 128, frame->pitch_bytes[p] * (size_t)frame->height / 2);
        assert_sac_ok(sac_sink_write_wait(sink, frame));
        sac_frame_unref(&frame);
    }
    assert_sac_ok(sac_sink_finish(sink));
    assert_string_not_equal(sac_sink_encoder(sink), "");
    sac_sink_destroy(&sink);
    struct reading r = read_all(to, NULL);
    assert_int_equal(r.frames, 4);
    assert_int_equal(r.stats.size_changes, 0);
    assert_int_equal(r.info.width, 320);
    for (int i = 0; i < 4; i++)
        assert_in_range(r.pts_us[i] - pts[i] + 20, 0, 40);
}

static void uses_the_encoder_asked_for(void **state)
{
    (void)state;
    const char            *from = scratch("for-mpeg4.mkv"), *to = scratch("mpeg4.mp4");
    struct sac_sink_params params = sac_sink_params_default();
    params.encoder = "mpeg4";
    clip_write(from, &(struct clip){.frames = 20});
    assert_sac_ok(transcode(from, to, 1000, &params));
    struct reading r = read_all(to, NULL);
    assert_even(&r, 20);
    assert_string_equal(r.info.codec, "mpeg4");
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    const char              *from = scratch("allocations.mkv"), *to = scratch("allocations.mp4");
    struct sac_source_params params = keeping_audio();
    sac_result               res = SAC_ERR_MEMORY;
    long                     n = 1;
    params.prefetch = 0;
    clip_write(from, &(struct clip){.frames = 3, .audio = 1});
    for (; n < 200 && res != SAC_OK; n++) {
        sac_source *src = NULL;
        sac_sink   *sink = NULL;
        sac_frame  *frame = NULL;
        assert_sac_ok(sac_source_open(dev, from, &params, &src));
        assert_sac_ok(sac_source_read_wait(src, &frame));
        sac_alloc_fail_at(n);
        res = sac_sink_create(dev, to, src, NULL, &sink);
        if (res == SAC_OK)
            res = sac_sink_write_wait(sink, frame);
        if (res == SAC_OK)
            res = sac_sink_finish(sink);
        sac_alloc_fail_at(0);
        assert_true(res == SAC_OK || res == SAC_ERR_MEMORY);
        assert_true(exists(to) == (res == SAC_OK));
        sac_sink_destroy(&sink);
        sac_frame_unref(&frame);
        sac_source_close(&src);
        assert_false(part_exists(to));
    }
    assert_int_equal(res, SAC_OK);
    assert_true(n > 3);
}

static void memory_stays_flat(void **state)
{
    (void)state;
    if (TEST_SANITIZED)
        skip();
    struct sac_source_params params = keeping_audio();
    const char              *from = scratch("flat.mkv"), *to = scratch("flat.mp4");
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    sac_frame               *frame = NULL;
    long                     early = 0;
    int                      frames = 0;
    clip_write(from, &(struct clip){.frames = 2000, .audio = 1});
    assert_sac_ok(sac_source_open(dev, from, &params, &src));
    assert_sac_ok(sac_sink_create(dev, to, src, NULL, &sink));
    while (sac_source_read_wait(src, &frame) == SAC_OK) {
        assert_sac_ok(sac_sink_write_wait(sink, frame));
        sac_frame_unref(&frame);
        if (++frames == 100)
            early = resident_kb();
    }
    long late = resident_kb();
    assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    sac_source_close(&src);
    assert_int_equal(frames, 2000);
    assert_in_range(late, 0, early + early / 50 + 512);
}

/* Before a file is opened. */
static void an_encoder_must_suit_its_container(void **state)
{
    (void)state;
    static const struct {
        const char *encoder, *path;
        bool        suits;
    } cases[] = {{"libx264", "a.webm", false}, {"libx264", "a.mp4", true}, {"ffv1", "a.mp4", false},
                 {"ffv1", "a.mkv", true},      {"mpeg4", "a.webm", false}, {"mpeg4", "a.avi", true},
                 {"mpeg4", "a.ts", true},      {"mpeg4", "a.mov", true}};
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_sink_params params = sac_sink_params_default();
        char                   why[256];
        params.encoder = cases[i].encoder;
        if (!avcodec_find_encoder_by_name(cases[i].encoder))
            continue;
        if (cases[i].suits) {
            assert_sac_ok(sac_sink_check(test_context(), cases[i].path, &params));
            continue;
        }
        assert_sac_error(sac_sink_check(test_context(), cases[i].path, &params),
                         SAC_ERR_UNSUPPORTED);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_non_null(strstr(why, "files hold no video of encoder"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_each_container),
        cmocka_unit_test(an_encoder_must_suit_its_container),
        cmocka_unit_test(keeps_variable_frame_rate),
        cmocka_unit_test(a_gap_never_loses_the_video),
        cmocka_unit_test(copies_audio),
        cmocka_unit_test(leaves_out_audio_that_does_not_fit),
        cmocka_unit_test(an_interrupted_file_is_whole),
        cmocka_unit_test(audio_waits_for_the_encoder),
        cmocka_unit_test(nothing_is_left_without_finish),
        cmocka_unit_test(says_why_it_cannot_write),
        cmocka_unit_test(says_that_the_disk_is_full),
        cmocka_unit_test(a_write_that_fails_leaves_nothing),
        cmocka_unit_test(takes_any_format_and_size),
        cmocka_unit_test(scales_to_the_first_frame),
        cmocka_unit_test(uses_the_encoder_asked_for),
        cmocka_unit_test(survives_every_failed_allocation),
        cmocka_unit_test(memory_stays_flat),
    };
    return cmocka_run_group_tests_name("media/sink", tests, open_device, close_device);
}
