/* SPDX-License-Identifier: Apache-2.0 */
/* Throughput of saccade's sources: N sources of one clip at once, frames dropped as they arrive,
 * each restarted at its end until the time is up. bench_nvdec is the upper bound: only libavformat
 * and libavcodec. */
#include "decode_streams.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libavcodec/avcodec.h>

#include <saccade/source.h>

#include "base/base.h"

enum { STREAMS_MAX = 256 };

struct run {
    const char            *device, *clip;
    int                    streams, threads, round_trip;
    enum sac_decode        decode;
    double                 seconds;
    sac_context           *ctx;
    sac_device            *dev;
    pthread_barrier_t      ready;
    atomic_int             stop;
    atomic_long            frames, failed;
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
    params.prefetch = 0; /* the thread itself reads ahead */
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

/* ---- the whole ---- */

static void *stream_main(void *arg)
{
    struct run *r = arg;
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
        if (!strcmp(argv[i], "--round-trip"))
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
    nanosleep(&(struct timespec){(time_t)r->seconds,
                                 (long)((r->seconds - (double)(time_t)r->seconds) * 1e9)},
              NULL);
    long frames = atomic_load(&r->frames) - before;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    atomic_store(&r->stop, 1);
    for (int i = 0; i < r->streams; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&r->ready);
    printf("%s: %s%s%s, %d streams: %.1f frames/s, host %.1f %% of a core (%.0f us a frame)",
           r->clip, r->info.decoder, r->info.decoder_note[0] ? " and upload" : "",
           r->round_trip ? " and a round trip" : "", r->streams, (double)frames / wall,
           100 * cpu / wall, 1e6 * cpu / (double)SAC_MAX(frames, 1));
    if (r->info.surfaces)
        printf(", %dx%d, %d surfaces of %.0f MB a stream", r->info.width, r->info.height,
               r->info.surfaces, (double)r->info.surface_bytes * 1e-6);
    printf("\n");
}

int bench_streams(int argc, char **argv)
{
    struct run r;
    if (parse(&r, argc, argv) != 0) {
        fprintf(stderr,
                "usage: bench_decode --device NAME [--streams N] [--seconds S] [--threads N] "
                "[--decode gpu|auto|cpu] [--round-trip] CLIP\n");
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
    sac_device_unref(&r.dev);
    sac_context_destroy(&r.ctx);
    return r.failed != 0;
}
