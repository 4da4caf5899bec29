/* SPDX-License-Identifier: Apache-2.0 */
/* The upper bound: frames per second of the GPU's decoder through plain libavcodec, with every
 * frame dropped as soon as it arrives. Uses no part of saccade.
 *
 *     bench_nvdec CLIP [DECODERS] [SECONDS] [GPUS]
 *
 * GPUS: numbers of those that share the decoders, as 0,1 (default 0). Prints one line of JSON. The
 * clip is restarted at its end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>

enum {
    DECODERS_MAX = 256,
    GPUS_MAX = 16,
    PRIMARY_CONTEXT = 1 /* AV_CUDA_USE_PRIMARY_CONTEXT, whose header wants CUDA's */
};

static AVBufferRef      *gpus[GPUS_MAX];
static pthread_barrier_t all_decode;
static atomic_bool       over;

struct decoder {
    const char      *path;
    AVBufferRef     *gpu;
    AVFormatContext *fmt;
    AVCodecContext  *avc;
    AVPacket        *packet;
    AVFrame         *picture;
    int              index;
    long             frames;
    pthread_t        thread;
};

static double seconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_nvdec: %s\n", what);
    exit(1);
}

static enum AVPixelFormat choose_cuda(AVCodecContext *avc, const enum AVPixelFormat *offered)
{
    (void)avc;
    for (; *offered != AV_PIX_FMT_NONE; offered++)
        if (*offered == AV_PIX_FMT_CUDA)
            return *offered;
    return AV_PIX_FMT_NONE;
}

/* The default decoder of a codec may lack GPU support (libdav1d does). */
static const AVCodec *find_codec(enum AVCodecID id)
{
    const AVCodec *codec;
    void          *at = NULL;
    while ((codec = av_codec_iterate(&at)))
        if (codec->id == id && av_codec_is_decoder(codec))
            for (int i = 0;; i++) {
                const AVCodecHWConfig *config = avcodec_get_hw_config(codec, i);
                if (!config)
                    break;
                if (config->device_type == AV_HWDEVICE_TYPE_CUDA &&
                    (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX))
                    return codec;
            }
    return NULL;
}

static void open_decoder(struct decoder *d)
{
    if (avformat_open_input(&d->fmt, d->path, NULL, NULL) < 0 ||
        avformat_find_stream_info(d->fmt, NULL) < 0)
        die("libavformat can't open the clip");
    d->index = av_find_best_stream(d->fmt, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    const AVCodecParameters *par = d->index < 0 ? NULL : d->fmt->streams[d->index]->codecpar;
    const AVCodec           *codec = par ? find_codec(par->codec_id) : NULL;
    d->avc = codec ? avcodec_alloc_context3(codec) : NULL;
    d->packet = av_packet_alloc();
    d->picture = av_frame_alloc();
    if (!d->avc || !d->packet || !d->picture || avcodec_parameters_to_context(d->avc, par) < 0)
        die("no video in the clip that the GPU decodes");
    d->avc->hw_device_ctx = av_buffer_ref(d->gpu);
    d->avc->get_format = choose_cuda;
    d->avc->thread_count = 1; /* hardware decodes by itself */
#ifdef AV_HWACCEL_FLAG_UNSAFE_OUTPUT
    d->avc->hwaccel_flags |= AV_HWACCEL_FLAG_UNSAFE_OUTPUT; /* no copy of each frame */
#endif
    if (avcodec_open2(d->avc, codec, NULL) < 0)
        die("libavcodec can't open the decoder");
}

static void feed(struct decoder *d)
{
    int res = av_read_frame(d->fmt, d->packet);
    if (res == AVERROR_EOF) {
        if (av_seek_frame(d->fmt, d->index, 0, AVSEEK_FLAG_BACKWARD) < 0)
            die("the clip can't be restarted");
        avcodec_flush_buffers(d->avc);
        return;
    }
    if (res < 0)
        die("libavformat can't read the clip");
    if (d->packet->stream_index == d->index && avcodec_send_packet(d->avc, d->packet) < 0)
        die("the GPU's decoder takes no packet");
    av_packet_unref(d->packet);
}

/* One more frame, dropped. */
static void decode_one(struct decoder *d)
{
    for (int res; (res = avcodec_receive_frame(d->avc, d->picture)) != 0;) {
        if (res != AVERROR(EAGAIN))
            die("the GPU's decoder failed");
        feed(d);
    }
    if (d->picture->format != AV_PIX_FMT_CUDA)
        die("the frames are not on the GPU");
    av_frame_unref(d->picture);
}

static void *decode_main(void *arg)
{
    struct decoder *d = arg;
    open_decoder(d);
    decode_one(d);
    pthread_barrier_wait(&all_decode);
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        decode_one(d);
        d->frames++;
    }
    return NULL;
}

/* How many there are now. */
static int open_gpus(const char *list)
{
    int n = 0;
    for (const char *at = list; *at; at += *at == ',') {
        char name[8], *end;
        long index = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || index < 0 || index >= 100 || n == GPUS_MAX)
            die("GPUS are numbers, as 0,1");
        at = end;
        snprintf(name, sizeof name, "%ld", index);
        if (av_hwdevice_ctx_create(&gpus[n++], AV_HWDEVICE_TYPE_CUDA, name, NULL, PRIMARY_CONTEXT) <
            0)
            die("libavutil finds no such GPU");
    }
    if (n == 0)
        die("GPUS are numbers, as 0,1");
    return n;
}

static void print_line(const struct decoder *d, int n, int gpu_count, double wall, double cpu)
{
    const AVCodecContext *avc = d[0].avc;
    long                  frames = 0;
    for (int i = 0; i < n; i++)
        frames += d[i].frames;
    printf("{\"clip\":\"%s\",\"codec\":\"%s\",\"pixels\":\"%s\",\"width\":%d,\"height\":%d,"
           "\"decoders\":%d,\"gpus\":%d,\"frames\":%ld,\"seconds\":%.3f,\"fps\":%.1f,\"cpu_cores\":"
           "%.3f,\"libavcodec\":\"%d.%d.%d\"}\n",
           d[0].path, avcodec_get_name(avc->codec_id), av_get_pix_fmt_name(avc->sw_pix_fmt),
           avc->width, avc->height, n, gpu_count, frames, wall, (double)frames / wall, cpu / wall,
           LIBAVCODEC_VERSION_MAJOR, LIBAVCODEC_VERSION_MINOR, LIBAVCODEC_VERSION_MICRO);
}

int main(int argc, char **argv)
{
    static struct decoder decoders[DECODERS_MAX];
    int                   n = argc > 2 ? atoi(argv[2]) : 1;
    double                length = argc > 3 ? atof(argv[3]) : 3;
    if (argc < 2 || n < 1 || n > DECODERS_MAX || !(length > 0))
        die("usage: bench_nvdec CLIP [DECODERS] [SECONDS] [GPUS]");
    av_log_set_level(AV_LOG_ERROR);
    int gpu_count = open_gpus(argc > 4 ? argv[4] : "0");
    pthread_barrier_init(&all_decode, NULL, (unsigned)n + 1);
    for (int i = 0; i < n; i++) {
        decoders[i].path = argv[1];
        decoders[i].gpu = gpus[i % gpu_count];
        if (pthread_create(&decoders[i].thread, NULL, decode_main, &decoders[i]) != 0)
            die("no thread");
    }
    pthread_barrier_wait(&all_decode);
    double          wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    struct timespec ts = {.tv_sec = (time_t)length,
                          .tv_nsec = (long)((length - (double)(time_t)length) * 1e9)};
    nanosleep(&ts, NULL);
    atomic_store(&over, true);
    for (int i = 0; i < n; i++)
        pthread_join(decoders[i].thread, NULL);
    print_line(decoders, n, gpu_count, seconds(CLOCK_MONOTONIC) - wall,
               seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    for (int i = 0; i < n; i++) {
        avcodec_free_context(&decoders[i].avc);
        avformat_close_input(&decoders[i].fmt);
        av_packet_free(&decoders[i].packet);
        av_frame_free(&decoders[i].picture);
    }
    for (int i = 0; i < gpu_count; i++)
        av_buffer_unref(&gpus[i]);
    pthread_barrier_destroy(&all_decode);
    return 0;
}
