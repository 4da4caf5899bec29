/* SPDX-License-Identifier: Apache-2.0 */
/* Frames per second of a source, with and without its prefetch thread, compared with a bare loop
 * over libavformat and libavcodec, alternating in one run.
 *
 *     bench_decode CLIP [ROUNDS] [THREADS]
 *     bench_decode --device cuda --streams 32 CLIP      see decode_streams.c
 *
 * Threads are the decoder's. CPU time is printed too: a prefetch thread must not cost any. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <saccade/source.h>

#include "base/base.h"
#include "decode_streams.h"

enum { ROUNDS_DEFAULT = 9, ROUNDS_MAX = 101 };

static double seconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
    fprintf(stderr, "bench_decode: %s\n", what);
    exit(1);
}

/* ---- the two ways ---- */

static long read_bare(const char *path, int threads)
{
    AVFormatContext *fmt = NULL;
    AVPacket        *packet = av_packet_alloc();
    AVFrame         *picture = av_frame_alloc();
    const AVCodec   *codec = NULL;
    long             frames = 0;
    if (avformat_open_input(&fmt, path, NULL, NULL) < 0 || avformat_find_stream_info(fmt, NULL) < 0)
        die("libavformat can't open it");
    int             index = av_find_best_stream(fmt, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    AVCodecContext *avc = index < 0 ? NULL : avcodec_alloc_context3(codec);
    if (!avc || avcodec_parameters_to_context(avc, fmt->streams[index]->codecpar) < 0)
        die("no video in it");
    avc->thread_count = threads;
    if (avcodec_open2(avc, codec, NULL) < 0)
        die("libavcodec can't open the decoder");
    for (bool more = true; more;) {
        more = av_read_frame(fmt, packet) >= 0;
        if (more && packet->stream_index == index)
            avcodec_send_packet(avc, packet);
        else if (!more)
            avcodec_send_packet(avc, NULL);
        av_packet_unref(packet);
        while (avcodec_receive_frame(avc, picture) >= 0)
            frames++;
    }
    avcodec_free_context(&avc);
    avformat_close_input(&fmt);
    av_packet_free(&packet);
    av_frame_free(&picture);
    return frames;
}

static long read_source(sac_device *dev, const char *path, int threads, int prefetch)
{
    struct sac_source_params params = sac_source_params_default();
    sac_source              *src = NULL;
    sac_frame               *frame = NULL;
    long                     frames = 0;
    params.decode_threads = threads;
    params.prefetch = prefetch;
    if (sac_source_open(dev, path, &params, &src) != SAC_OK) {
        char why[512];
        sac_context_last_error(sac_device_context(dev), why, sizeof why);
        die(why);
    }
    while (sac_source_read_wait(src, &frame) == SAC_OK) {
        frames++;
        sac_frame_unref(&frame);
    }
    sac_source_close(&src);
    return frames;
}

/* ---- measuring ---- */

enum way { BARE, SOURCE, SOURCE_PREFETCH, WAYS };
static const char *const way_names[WAYS] = {"bare libavcodec", "source", "source, prefetch 4"};

struct sample {
    double rate[ROUNDS_MAX], cpu[ROUNDS_MAX]; /* frames/s; ms of CPU a frame */
};

static void measure(sac_device *dev, const char *path, int threads, enum way way, int round,
                    struct sample *out)
{
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    long   frames = way == BARE ? read_bare(path, threads)
                                : read_source(dev, path, threads, way == SOURCE ? 0 : 4);
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    out->rate[round] = (double)frames / wall;
    out->cpu[round] = 1000 * cpu / (double)SAC_MAX(frames, 1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

static void print_head(sac_device *dev, const char *path, int rounds, int threads)
{
    struct sac_source_info info;
    sac_source            *src = NULL;
    char                   date[32];
    time_t                 now = time(NULL);
    if (sac_source_open(dev, path, NULL, &src) != SAC_OK)
        die("can't open the clip");
    sac_source_describe(src, &info);
    sac_source_close(&src);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    printf("%s: %s %dx%d, decoder threads %d, %d rounds by turns, medians\n", path, info.codec,
           info.width, info.height, threads, rounds);
    printf("%s, libavcodec %d.%d.%d, %s\n", sac_device_description(dev), LIBAVCODEC_VERSION_MAJOR,
           LIBAVCODEC_VERSION_MINOR, LIBAVCODEC_VERSION_MICRO, date);
}

/* Ratios are computed per round, since other load on the machine varies. */
static void print_rates(struct sample *samples, int rounds)
{
    double ratio[WAYS][ROUNDS_MAX];
    for (int way = 0; way < WAYS; way++)
        for (int round = 0; round < rounds; round++)
            ratio[way][round] = samples[way].rate[round] / samples[BARE].rate[round];
    for (int way = 0; way < WAYS; way++)
        printf("%-20s %8.1f frames/s  %6.3f ms CPU a frame  %.3f of bare\n", way_names[way],
               median(samples[way].rate, rounds), median(samples[way].cpu, rounds),
               median(ratio[way], rounds));
}

int main(int argc, char **argv)
{
    static struct sample samples[WAYS];
    sac_context         *ctx = NULL;
    sac_device          *dev = NULL;
    if (argc > 1 && argv[1][0] == '-')
        return bench_streams(argc - 1, argv + 1);
    if (argc < 2)
        die("usage: bench_decode CLIP [ROUNDS] [THREADS]");
    int rounds = argc > 2 ? SAC_CLAMP(atoi(argv[2]), 1, ROUNDS_MAX) : ROUNDS_DEFAULT;
    int threads = argc > 3 ? SAC_MAX(atoi(argv[3]), 1) : 1;
    av_log_set_level(AV_LOG_QUIET);
    if (sac_context_create(NULL, &ctx) != SAC_OK ||
        sac_device_open(ctx, "cpu", NULL, &dev) != SAC_OK)
        die("no device");
    print_head(dev, argv[1], rounds, threads);
    for (int round = 0; round < rounds; round++)
        for (int way = 0; way < WAYS; way++)
            measure(dev, argv[1], threads, (enum way)way, round, &samples[way]);
    print_rates(samples, rounds);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return 0;
}
