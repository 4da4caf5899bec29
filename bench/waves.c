/* SPDX-License-Identifier: Apache-2.0 */
/* Tracking with embeddings and 1080p frames on a device: time of a wave, for waves of one frame
 * each of 1, 8 and 32 streams, and the bytes copied to the host and back. On the CPU there are no
 * waves: frames are processed one by one. usage: bench_waves [DEVICE] [WAVES] default: cuda 300 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/must.h"
#include "track/core.h"

enum { STREAMS = 32, PEOPLE = 10, DIM = 256, WARM = 30, SHOTS = 4, WIDTH = 1920, HEIGHT = 1080 };

static uint32_t seed = 1;

static double uniform(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) / (double)(1 << 24);
}

/* ---- what the streams show ---- */

struct scene {
    sac_device *dev;
    sac_frame  *shot[SHOTS];     /* a picture that slides to and fro; all streams have the same */
    struct sac_embeddings *rows; /* on a device; else: */
    float                 *embedding; /* [STREAMS * PEOPLE, DIM] */
    int32_t                row[STREAMS][PEOPLE];
    struct sac_detection   det[STREAMS][PEOPLE];
};

static sac_frame *make_shot(sac_device *dev, sac_device *cpu, int number)
{
    sac_frame  desc = {.format = SAC_PIXEL_NV12, .width = WIDTH, .height = HEIGHT};
    sac_frame *host = NULL, *out = NULL;
    double     slide = number % 2 * 6.0 + number / 2 * 2.0;
    must(sac_frame_create(cpu, &desc, &host));
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            double u = x + slide;
            host->plane[0][(size_t)y * host->pitch_bytes[0] + (size_t)x] =
                (uint8_t)(128 + 60 * sin(u / 23 + sin(y / 31.0) * 3) + 50 * sin(y / 17.0 + u / 71));
        }
    memset(host->plane[1], 128, host->pitch_bytes[1] * HEIGHT / 2);
    must(sac_frame_create(dev, &desc, &out));
    must(sac_frame_copy(host, out));
    sac_frame_unref(&host);
    return out;
}

static void make_rows(struct scene *s)
{
    const size_t bytes = (size_t)STREAMS * PEOPLE * DIM * sizeof(float);
    s->embedding = sac_alloc(bytes);
    for (int i = 0; i < STREAMS * PEOPLE; i++) {
        double square = 0;
        float *row = s->embedding + (size_t)i * DIM;
        for (int k = 0; k < DIM; k++) {
            row[k] = (float)(uniform() - 0.5);
            square += (double)row[k] * row[k];
        }
        for (int k = 0; k < DIM; k++)
            row[k] /= (float)sqrt(square);
        s->row[i / PEOPLE][i % PEOPLE] = i;
    }
    if (s->dev->ops->host_memory)
        return;
    must(sac_embeddings_create(s->dev, STREAMS * PEOPLE, DIM, &s->rows));
    must(sac_device_copy(s->dev, NULL, sac_buffer_data(s->rows->rows), s->embedding, bytes,
                         SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "rows"));
    must(s->dev->ops->event_record(s->rows->ready, NULL));
}

static void look(struct scene *s, int wave)
{
    for (int k = 0; k < STREAMS; k++)
        for (int i = 0; i < PEOPLE; i++) {
            float x = (float)(100 + 170 * i + 60 * sin(wave * 0.04 + i + k) + uniform());
            float y = (float)(200 + 40 * (i % 5));
            s->det[k][i] = (struct sac_detection){x, y, x + 70, y + 200, 0.9f, 0};
        }
}

/* ---- a run ---- */

struct times {
    double wall_us, cpu_us, device_us, bytes; /* of one frame */
};

static double thread_cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static uint64_t crossed(const sac_device *dev)
{
    struct sac_ledger l;
    sac_device_ledger(dev, &l);
    return l.reason[SAC_COPY_BOXES].bytes + l.reason[SAC_COPY_COMMANDS].bytes;
}

static void one_wave(struct sac_wave *wave, sac_tracker **trk, struct scene *s, int streams,
                     int number, bool embeddings, bool camera)
{
    for (int k = 0; k < streams; k++) {
        struct sac_tracker_input in = {.det = s->det[k],
                                       .count = PEOPLE,
                                       .pts_us = number * 40000LL,
                                       .frame = camera ? s->shot[number % SHOTS] : NULL};
        if (embeddings)
            in.embeddings = (struct sac_embedding_rows){
                .dev = s->rows ? s->dev : NULL,
                .base = s->rows ? sac_embeddings_data(s->rows) : s->embedding,
                .count = STREAMS * PEOPLE,
                .dim = DIM,
                .row = s->row[k],
                .batch = s->rows};
        must(sac_wave_add(wave, trk[k], &in));
    }
    must(sac_wave_run(wave));
    for (int k = 0; k < streams; k++) {
        struct sac_track_view view;
        sac_wave_finish(wave, (size_t)k, &view);
        if (number > 2 && view.count != PEOPLE)
            fprintf(stderr, "%zu of %d people are tracked\n", view.count, (int)PEOPLE);
    }
    sac_wave_clear(wave);
}

static struct times time_waves(struct scene *s, int streams, int waves, bool embeddings,
                               bool camera)
{
    struct sac_tracker_params p = sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    sac_tracker              *trk[STREAMS] = {NULL};
    struct sac_wave          *wave = NULL;
    struct times              t = {0};
    p.embedding_dim = embeddings ? DIM : 0;
    for (int k = 0; k < streams; k++)
        must(sac_tracker_create(ctx, &p, &trk[k]));
    must(sac_wave_create(s->dev, &wave));
    sac_wave_measure(wave);
    for (int i = 0; i < WARM + waves; i++) {
        look(s, i);
        uint64_t bytes = crossed(s->dev);
        double   cpu = thread_cpu_us();
        int64_t  begun = sac_time_ns();
        one_wave(wave, trk, s, streams, i, embeddings, camera);
        if (i < WARM)
            continue;
        t.wall_us += (double)(sac_time_ns() - begun) * 1e-3 / waves / streams;
        t.cpu_us += (thread_cpu_us() - cpu) / waves / streams;
        int64_t begun_ns;
        t.device_us += (double)sac_wave_device_ns(wave, &begun_ns) * 1e-3 / waves / streams;
        t.bytes += (double)(crossed(s->dev) - bytes) / waves / streams;
    }
    sac_wave_destroy(&wave);
    for (int k = 0; k < streams; k++)
        sac_tracker_destroy(&trk[k]);
    return t;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool        embeddings, camera;
    } kinds[] = {{"neither", false, false},
                 {"embeddings", true, false},
                 {"camera", false, true},
                 {"both", true, true}};
    static const int    sizes[] = {1, 8, 32};
    static struct scene s;
    sac_device         *cpu = NULL;
    const char         *device = argc > 1 ? argv[1] : "cuda";
    int                 waves = argc > 2 ? SAC_MAX(atoi(argv[2]), 1) : 300;
    if (sac_context_create(NULL, &ctx) != SAC_OK)
        return 1;
    must(sac_device_open(ctx, device, NULL, &s.dev));
    must(sac_device_open(ctx, "cpu", NULL, &cpu));
    for (int i = 0; i < SHOTS; i++)
        s.shot[i] = make_shot(s.dev, cpu, i);
    make_rows(&s);
    printf("%s: botsort, %d people, rows of %d, %dx%d; a frame's microseconds (the thread's, the "
           "device's), bytes that cross\n",
           sac_device_description(s.dev), (int)PEOPLE, (int)DIM, (int)WIDTH, (int)HEIGHT);
    printf("%-12s", "wave of");
    for (size_t c = 0; c < SAC_COUNT(sizes); c++)
        printf("%35d", sizes[c]);
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        printf("\n%-12s", kinds[k].name);
        for (size_t c = 0; c < SAC_COUNT(sizes); c++) {
            struct times t = time_waves(&s, sizes[c], waves, kinds[k].embeddings, kinds[k].camera);
            printf("%9.1f (%6.1f, %6.1f) %6.0f B", t.wall_us, t.cpu_us, t.device_us, t.bytes);
        }
    }
    printf("\n");
    for (int i = 0; i < SHOTS; i++)
        sac_frame_unref(&s.shot[i]);
    sac_embeddings_unref(&s.rows);
    sac_free(s.embedding);
    sac_device_unref(&cpu);
    sac_device_unref(&s.dev);
    sac_context_destroy(&ctx);
    return 0;
}
