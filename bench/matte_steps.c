/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes on the CPU: the whole, and each of its steps, in milliseconds a frame. The picture moves
 * by two pixels a frame under noise, so that every block is looked for.
 *
 *     build/bench/bench_matte_steps [rounds [threads]] */
#include <math.h>
#include <string.h>
#include <time.h>

#include "bench/must.h"
#include "vision/cpu/matte.h"

struct scene {
    const char           *name;
    enum sac_pixel_format format;
    int                   width, height;
};
static const struct scene scenes[] = {
    {"768x576 i420", SAC_PIXEL_I420, 768, 576},
    {"1920x1080 nv12", SAC_PIXEL_NV12, 1920, 1080},
    {"3840x2160 nv12", SAC_PIXEL_NV12, 3840, 2160},
    {"3840x2160 p010", SAC_PIXEL_P010, 3840, 2160},
};
enum { SIDE = 320, FRAMES = 2, ROUNDS_MAX = 1000, COLUMNS = SAC_CPU_MATTE_STEPS + 1 };

/* On one thread its processor time: other programs on the machine do not count. */
static clockid_t clock_used = CLOCK_MONOTONIC;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static sac_frame *frame_of(sac_device *dev, const struct scene *s, int shift)
{
    const sac_frame desc = {.format = s->format, .width = s->width, .height = s->height};
    sac_frame      *f = NULL;
    must(sac_frame_create(dev, &desc, &f));
    for (int y = 0; y < s->height; y++)
        for (int x = 0; x < s->width; x++) {
            const int at = x + shift;
            const int v =
                128 + (int)(60 * sin(at * 0.05) * cos(y * 0.043)) + ((at / 9) & 15) + rand() % 8;
            uint8_t *row = f->plane[0] + (size_t)y * f->pitch_bytes[0];
            if (s->format == SAC_PIXEL_P010)
                row[2 * x + 1] = (uint8_t)v;
            else
                row[x] = (uint8_t)v;
        }
    return f;
}

/* One frame; the milliseconds of each step, then of all. */
static void run(sac_device *dev, const struct sac_matte_spec *spec,
                const struct sac_matte_style *style, const void *const *tensors,
                const struct sac_matte_job *job, double ms[COLUMNS])
{
    struct sac_cpu_matte_work m;
    const double              begin = now_ms();
    must(sac_cpu_matte_begin(dev, spec, style, tensors, job, &m));
    for (int k = 0; k < SAC_CPU_MATTE_STEPS; k++) {
        const double at = now_ms();
        sac_device_parallel(dev, sac_cpu_matte_steps[k].pieces(&m), sac_cpu_matte_steps[k].run, &m);
        ms[k] = now_ms() - at;
    }
    sac_cpu_matte_end(&m);
    ms[SAC_CPU_MATTE_STEPS] = now_ms() - begin;
}

static void measure(sac_device *dev, const struct scene *s, int rounds)
{
    static double                ms[COLUMNS][ROUNDS_MAX];
    static float                 cells[SIDE * SIDE];
    const struct sac_matte_spec  spec = {.form = SAC_MATTE_SHARE,
                                         .width = SIDE,
                                         .height = SIDE,
                                         .input_width = SIDE,
                                         .input_height = SIDE,
                                         .classes = 1,
                                         .value = {.dtype = SAC_F32, .cell = 1}};
    const struct sac_matte_style style = {
        .guide = 2, .guide_noise = 8, .smooth = 0.8f, .hole = 1, .low = 0.2f, .high = 0.8f};
    const void *const     tensors[] = {cells};
    struct sac_preprocess pre = sac_preprocess_default();
    struct sac_matte_job  job = {.crop = {0, 0, (float)s->width, (float)s->height}};
    sac_frame            *frame[FRAMES];
    pre.width = pre.height = SIDE;
    pre.fit = SAC_FIT_LETTERBOX_TOPLEFT;
    job.map = sac_fit_map_of(&pre, &job.crop);
    job.state.memory = calloc(1, sac_matte_bytes(&spec));
    for (int i = 0; i < FRAMES; i++)
        frame[i] = frame_of(dev, s, 2 * i);
    must(sac_frame_create(
        dev, &(sac_frame){.format = SAC_PIXEL_GRAY8, .width = s->width, .height = s->height},
        &job.out));
    for (int i = 0; i < SIDE * SIDE; i++)
        cells[i] = 0.5f + 0.5f * sinf((float)(i % SIDE) * 0.07f) * cosf((float)(i / SIDE) * 0.05f);
    for (int i = 0; i <= rounds; i++) { /* the first makes the frame before */
        double one[COLUMNS];
        job.frame = frame[i % FRAMES];
        run(dev, &spec, &style, tensors, &job, one);
        job.state.has_before = true;
        job.state.turn++;
        for (int k = 0; i && k < COLUMNS; k++)
            ms[k][i - 1] = one[k];
    }
    printf("%-16s", s->name);
    for (int k = 0; k < COLUMNS; k++) {
        qsort(ms[k], (size_t)rounds, sizeof ms[k][0], by_value);
        printf(" %8.2f", ms[k][rounds / 2]);
    }
    printf("\n");
    for (int i = 0; i < FRAMES; i++)
        sac_frame_unref(&frame[i]);
    sac_frame_unref(&job.out);
    free(job.state.memory);
}

int main(int argc, char **argv)
{
    const int                rounds = argc > 1 ? SAC_CLAMP(atoi(argv[1]), 1, ROUNDS_MAX) : 50;
    struct sac_device_params params = sac_device_params_default();
    sac_device              *dev = NULL;
    params.threads = argc > 2 ? atoi(argv[2]) : 1;
    if (params.threads == 1)
        clock_used = CLOCK_THREAD_CPUTIME_ID;
    must(sac_context_create(NULL, &ctx));
    must(sac_device_open(ctx, "cpu", &params, &dev));
    printf("%s, %d thread(s), a map of %dx%d, median of %d frames, ms\n%-16s",
           sac_device_description(dev), params.threads, SIDE, SIDE, rounds, "");
    for (int k = 0; k < SAC_CPU_MATTE_STEPS; k++)
        printf(" %8s", sac_cpu_matte_steps[k].name);
    printf(" %8s\n", "all");
    for (size_t i = 0; i < SAC_COUNT(scenes); i++)
        measure(dev, &scenes[i], rounds);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return 0;
}
