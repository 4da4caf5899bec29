/* SPDX-License-Identifier: Apache-2.0 */
/* Time of a tracker's update, without a video: moving objects, all detected, some faint. Camera
 * motion and the matching of embeddings are timed separately.
 *
 *     bench_track [updates]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "track/core.h"

enum { OBJECTS_MAX = 200, DIM = 256, WARM = 100, CAMERA_WIDTH = 1920, CAMERA_HEIGHT = 1080 };

struct walker {
    double x, y, vx, vy, height;
    float  embedding[DIM];
};

struct scene {
    struct walker        walkers[OBJECTS_MAX];
    struct sac_detection boxes[OBJECTS_MAX];
    float                embedding[OBJECTS_MAX * DIM];
    int                  count;
    uint32_t             seed;
};

static double uniform(struct scene *s)
{
    s->seed = s->seed * 1664525u + 1013904223u;
    return (s->seed >> 8) / (double)(1 << 24);
}

static void unit_row(struct scene *s, float *row)
{
    double square = 0;
    for (int i = 0; i < DIM; i++) {
        row[i] = (float)(uniform(s) - 0.5);
        square += row[i] * row[i];
    }
    for (int i = 0; i < DIM; i++)
        row[i] /= (float)sqrt(square);
}

/* About as dense as a busy square: 50 people on 1280 x 720. */
static void populate(struct scene *s, int count)
{
    double side = sqrt(count / 50.0);
    s->seed = 1;
    s->count = count;
    for (int i = 0; i < count; i++) {
        struct walker *w = &s->walkers[i];
        *w = (struct walker){.x = 1280 * side * uniform(s),
                             .y = 720 * side * uniform(s),
                             .vx = 80 * (uniform(s) - 0.5),
                             .vy = 30 * (uniform(s) - 0.5),
                             .height = 60 + 80 * uniform(s)};
        unit_row(s, w->embedding);
    }
}

/* The walkers 40 ms later, as a detector sees them: jitter, now and then a low score. They turn
 * back after 10 s, so that the square stays as full as it was. */
static void observe(struct scene *s, int frame)
{
    double way = fabs(frame * 0.04 - 20 * floor(frame * 0.04 / 20) - 10);
    for (int i = 0; i < s->count; i++) {
        struct walker *w = &s->walkers[i];
        double x = w->x + w->vx * way + 2 * uniform(s), y = w->y + w->vy * way + 2 * uniform(s);
        double half = w->height * 0.2;
        s->boxes[i] = (struct sac_detection){(float)(x - half),
                                             (float)y,
                                             (float)(x + half),
                                             (float)(y + w->height),
                                             uniform(s) < 0.1 ? 0.3f : 0.9f,
                                             0};
        memcpy(s->embedding + i * DIM, w->embedding, sizeof w->embedding);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct times {
    double median_us, p99_us;
};

static struct times summarise(double *us, int n)
{
    qsort(us, (size_t)n, sizeof *us, by_value);
    return (struct times){us[n / 2], us[(int)(n * 0.99)]};
}

static struct times time_updates(sac_context *ctx, struct scene *s, enum sac_tracker_kind kind,
                                 bool embeddings, int updates, double *us)
{
    struct sac_tracker_params p = sac_tracker_params_default(kind);
    sac_tracker              *trk = NULL;
    p.embedding_dim = embeddings ? DIM : 0;
    if (sac_tracker_create(ctx, &p, &trk) != SAC_OK)
        abort();
    for (int i = 0; i < WARM + updates; i++) {
        struct sac_track_view view;
        observe(s, i);
        int64_t    begun = sac_time_ns();
        sac_result res =
            sac_tracker_update(trk, s->boxes, (size_t)s->count, embeddings ? s->embedding : NULL,
                               NULL, i * 40000LL, &view);
        int64_t ended = sac_time_ns();
        if (res != SAC_OK)
            abort();
        if (i >= WARM)
            us[i - WARM] = (double)(ended - begun) / 1e3;
    }
    sac_tracker_destroy(&trk);
    return summarise(us, updates);
}

/* A noisy image that moves by two pixels per frame. */
static struct times time_camera(int width, int height, int frames, double *us)
{
    struct sac_cmc cmc = {0};
    sac_frame      f = {.format = SAC_PIXEL_NV12, .width = width, .height = height};
    size_t         pitch = (size_t)width + 2 * (size_t)(frames + WARM);
    uint8_t       *scene = sac_calloc(pitch, (size_t)height);
    if (!scene || !sac_cmc_reserve(&cmc, &f))
        abort();
    for (int y = 0; y < height; y++)
        for (size_t x = 0; x < pitch; x++)
            scene[(size_t)y * pitch + x] =
                (uint8_t)(128 + 60 * sin((double)x / 23 + sin(y / 31.0) * 3) +
                          50 * sin(y / 17.0 + (double)x / 71));
    f.pitch_bytes[0] = pitch;
    for (int i = 0; i < WARM + frames; i++) {
        f.plane[0] = scene + 2 * i;
        int64_t                begun = sac_time_ns();
        struct sac_camera_job  job;
        struct sac_camera_move move;
        sac_cmc_next(&cmc, &f, NULL, 0, &job);
        sac_camera_on_host(&job, &move);
        if (i >= WARM)
            us[i - WARM] = (double)(sac_time_ns() - begun) / 1e3;
    }
    sac_cmc_finish(&cmc);
    sac_free(scene);
    return summarise(us, frames);
}

int main(int argc, char **argv)
{
    static const enum sac_tracker_kind kinds[] = {SAC_TRACKER_SORT, SAC_TRACKER_BYTETRACK,
                                                  SAC_TRACKER_OCSORT, SAC_TRACKER_BOTSORT};
    static const int                   counts[] = {10, 50, 200};
    static struct scene                scene;
    int                                updates = argc > 1 ? SAC_MAX(atoi(argv[1]), 10) : 2000;
    double                            *us = sac_calloc((size_t)updates, sizeof *us);
    sac_context                       *ctx = NULL;
    if (!us || sac_context_create(NULL, &ctx) != SAC_OK)
        return 1;
    printf("one update, microseconds: median / 99th percentile of %d\n", updates);
    printf("%-24s", "objects");
    for (size_t c = 0; c < SAC_COUNT(counts); c++)
        printf("%18d", counts[c]);
    for (size_t k = 0; k <= SAC_COUNT(kinds); k++) {
        bool                  embeddings = k == SAC_COUNT(kinds);
        enum sac_tracker_kind kind = embeddings ? SAC_TRACKER_BOTSORT : kinds[k];
        printf("\n%-24s", embeddings ? "botsort, embeddings" : sac_tracker_kind_name(kind));
        for (size_t c = 0; c < SAC_COUNT(counts); c++) {
            populate(&scene, counts[c]);
            struct times t = time_updates(ctx, &scene, kind, embeddings, updates, us);
            printf("%9.1f /%7.1f", t.median_us, t.p99_us);
        }
    }
    struct times small = time_camera(768, 576, SAC_MIN(updates, 300), us);
    struct times large = time_camera(CAMERA_WIDTH, CAMERA_HEIGHT, SAC_MIN(updates, 300), us);
    printf("\ncamera motion: 768x576 %.0f / %.0f, %dx%d %.0f / %.0f\n", small.median_us,
           small.p99_us, CAMERA_WIDTH, CAMERA_HEIGHT, large.median_us, large.p99_us);
    sac_context_destroy(&ctx);
    sac_free(us);
    return 0;
}
