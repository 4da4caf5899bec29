/* SPDX-License-Identifier: Apache-2.0 */
/* The ceiling of everything that reads video: N decoders of one clip at once, frames dropped as they come,
 * each clip begun anew at its end until the time is up. With --bare without our source: libavformat and
 * libavcodec alone, with its CUDA hwaccel on a GPU. */
#include "decode_streams.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <saccade/source.h>

#include "base/base.h"
#include "media/media.h"

enum { STREAMS_MAX = 256 };

struct run {
    const char       *device, *clip;
    int               streams, threads, round_trip;
    enum sac_decode   decode;
    double            seconds;
    bool              bare;
    sac_context      *ctx;
    sac_device       *dev;
    AVBufferRef      *gpu; /* bare: one context for all */
    pthread_barrier_t ready;
    atomic_int        stop;
    atomic_long       frames, failed;
    struct sac_source_info info; /* of the first stream */
};

static double seconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- through a source ---- */

static sac_source *open_source(struct run *r)
{
    struct sac_source_params params = sac_source_params_default();
    sac_source              *src = NULL;
    params.prefetch = 0; /* the thread reads ahead itself */
    params.surfaces = 4;
    params.decode = r->decode;
    params.decode_threads = r->threads;
    params.round_trip = r->round_trip;
    if (sac_source_open(r->dev, r->clip, &params, &src) != SAC_OK) {
        char why[512];
        sac_context_last_error(r->ctx, why, sizeof why);
        if (atomic_fetch_add(&r->failed, 1) == 0)
            fprintf(stderr, "bench_decode: %s\n", why);
    }
    return src;
}

static void read_sources(struct run *r)
{
    sac_source *src = open_source(r);
    if (src)
        sac_source_describe(src, &r->info);
    pthread_barrier_wait(&r->ready);
    while (src && !atomic_load(&r->stop)) {
        sac_frame *frame = NULL;
        if (sac_source_read_wait(src, &frame) == SAC_OK) {
            atomic_fetch_add(&r->frames, 1);
            sac_frame_unref(&frame);
            continue;
        }
        sac_source_close(&src);
        src = open_source(r);
    }
    sac_source_close(&src);
}

/* ---- bare ---- */

static enum AVPixelFormat take_cuda(AVCodecContext *avc, const enum AVPixelFormat *offered)
{
    (void)avc;
    while (*offered != AV_PIX_FMT_NONE && *offered != AV_PIX_FMT_CUDA)
        offered++;
    return *offered;
}

static AVCodecContext *open_codec(struct run *r, AVFormatContext *fmt, int index)
{
    const AVCodecParameters *video = fmt->streams[index]->codecpar;
    const AVCodec *codec = r->gpu ? sac_nvdec_codec(video->codec_id) : avcodec_find_decoder(video->codec_id);
    AVCodecContext *avc = codec ? avcodec_alloc_context3(codec) : NULL;
    if (!avc || avcodec_parameters_to_context(avc, video) < 0)
        return NULL;
    avc->thread_count = r->gpu ? 1 : r->threads;
    if (r->gpu) {
        avc->hw_device_ctx = av_buffer_ref(r->gpu);
        avc->get_format = take_cuda;
#ifdef AV_HWACCEL_FLAG_UNSAFE_OUTPUT
        avc->hwaccel_flags |= AV_HWACCEL_FLAG_UNSAFE_OUTPUT;
#endif
    }
    if (avcodec_open2(avc, codec, NULL) < 0)
        avcodec_free_context(&avc);
    return avc;
}

static long receive_all(struct run *r, AVCodecContext *avc, AVFrame *picture)
{
    long frames = 0;
    while (avcodec_receive_frame(avc, picture) >= 0)
        frames++;
    atomic_fetch_add(&r->frames, frames);
    return frames;
}

/* Once through the clip. */
static bool read_bare_once(struct run *r, AVFormatContext *fmt, AVPacket *packet, AVFrame *picture)
{
    int             index = av_find_best_stream(fmt, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    AVCodecContext *avc = index < 0 ? NULL : open_codec(r, fmt, index);
    long            frames = 0;
    while (avc && !atomic_load(&r->stop) && av_read_frame(fmt, packet) >= 0) {
        if (packet->stream_index == index)
            avcodec_send_packet(avc, packet);
        av_packet_unref(packet);
        frames += receive_all(r, avc, picture);
    }
    if (avc && avcodec_send_packet(avc, NULL) >= 0)
        frames += receive_all(r, avc, picture);
    avcodec_free_context(&avc);
    return frames > 0;
}

static void read_bare(struct run *r)
{
    AVPacket *packet = av_packet_alloc();
    AVFrame  *picture = av_frame_alloc();
    bool      good = packet && picture;
    pthread_barrier_wait(&r->ready);
    while (good && !atomic_load(&r->stop)) {
        AVFormatContext *fmt = NULL;
        good = avformat_open_input(&fmt, r->clip, NULL, NULL) >= 0 &&
               avformat_find_stream_info(fmt, NULL) >= 0 && read_bare_once(r, fmt, packet, picture);
        avformat_close_input(&fmt);
    }
    if (!good)
        atomic_fetch_add(&r->failed, 1);
    av_packet_free(&packet);
    av_frame_free(&picture);
}

/* ---- the whole ---- */

static void *stream_main(void *arg)
{
    struct run *r = arg;
    if (r->bare)
        read_bare(r);
    else
        read_sources(r);
    return NULL;
}

static enum sac_decode decode_of(const char *name)
{
    static const char *const names[] = {"device", "gpu", "auto", "cpu"};
    for (size_t i = 0; name && i < SAC_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return (enum sac_decode)i;
    return SAC_DECODE_DEFAULT;
}

static int parse(struct run *r, int argc, char **argv)
{
    *r = (struct run){.device = "cuda", .streams = 1, .threads = 1, .seconds = 5};
    for (int i = 0; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--bare"))
            r->bare = true;
        else if (!strcmp(argv[i], "--round-trip"))
            r->round_trip = 1;
        else if (argv[i][0] != '-')
            r->clip = argv[i];
        else if (!strcmp(argv[i], "--device"))
            r->device = argv[++i];
        else if (!strcmp(argv[i], "--streams"))
            r->streams = SAC_CLAMP(atoi(value), 1, STREAMS_MAX), i++;
        else if (!strcmp(argv[i], "--threads"))
            r->threads = SAC_MAX(atoi(value), 1), i++;
        else if (!strcmp(argv[i], "--seconds"))
            r->seconds = atof(value), i++;
        else if (!strcmp(argv[i], "--decode"))
            r->decode = decode_of(argv[++i]);
        else
            return -1;
    }
    return r->clip && r->device && r->seconds > 0 ? 0 : -1;
}

static sac_result open_run(struct run *r)
{
    sac_result res = sac_context_create(NULL, &r->ctx);
    if (res == SAC_OK)
        res = sac_device_open(r->ctx, r->device, NULL, &r->dev);
    if (res == SAC_OK && r->bare && strncmp(r->device, "cuda", 4) == 0 &&
        av_hwdevice_ctx_create(&r->gpu, AV_HWDEVICE_TYPE_CUDA, NULL, NULL, 0) < 0)
        res = SAC_FAIL(r->ctx, SAC_ERR_DEVICE, "libavutil opens no CUDA device");
    return res;
}

static void measure(struct run *r)
{
    pthread_t thread[STREAMS_MAX];
    pthread_barrier_init(&r->ready, NULL, (unsigned)r->streams + 1);
    for (int i = 0; i < r->streams; i++)
        pthread_create(&thread[i], NULL, stream_main, r);
    pthread_barrier_wait(&r->ready);
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    long   before = atomic_load(&r->frames);
    nanosleep(&(struct timespec){(time_t)r->seconds, (long)((r->seconds - (double)(time_t)r->seconds) * 1e9)}, NULL);
    long frames = atomic_load(&r->frames) - before;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    atomic_store(&r->stop, 1);
    for (int i = 0; i < r->streams; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&r->ready);
    printf("%s: %s%s%s, %d streams: %.1f frames/s, host %.1f %% of a core (%.0f us a frame)", r->clip,
           r->bare ? "bare libavcodec" : r->info.decoder, r->info.decoder_note[0] ? " and upload" : "",
           r->round_trip ? " and a round trip" : "", r->streams, (double)frames / wall, 100 * cpu / wall,
           1e6 * cpu / (double)SAC_MAX(frames, 1));
    if (!r->bare && r->info.surfaces)
        printf(", %dx%d, %d surfaces of %.0f MB a stream", r->info.width, r->info.height, r->info.surfaces,
               (double)r->info.surface_bytes * 1e-6);
    printf("\n");
}

int bench_streams(int argc, char **argv)
{
    struct run r;
    if (parse(&r, argc, argv) != 0) {
        fprintf(stderr, "usage: bench_decode --device NAME [--streams N] [--seconds S] [--threads N] "
                        "[--decode gpu|auto|cpu] [--round-trip | --bare] CLIP\n");
        return 2;
    }
    av_log_set_level(AV_LOG_QUIET);
    if (open_run(&r) != SAC_OK) {
        char why[512];
        sac_context_last_error(r.ctx, why, sizeof why);
        fprintf(stderr, "bench_decode: %s\n", why);
        return 1;
    }
    measure(&r);
    if (r.failed)
        fprintf(stderr, "bench_decode: %ld streams failed\n", atomic_load(&r.failed));
    av_buffer_unref(&r.gpu);
    sac_device_unref(&r.dev);
    sac_context_destroy(&r.ctx);
    return r.failed != 0;
}
