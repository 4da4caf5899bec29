/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocess on one thread: our plain C, AVX2 and AVX-512 row kernels beside libswscale,
 * interleaved.
 *
 * swscale has less to do: bytes R, G, B at the target size, without letterbox, normalisation and
 * planes of floats.
 *
 *     build/bench/bench_image [rounds] */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <libswscale/swscale.h>

#include "device/cpu/cpu.h"
#include "vision/cpu/resample.h"

struct scene {
    const char           *name;
    enum sac_pixel_format format;
    int                   width, height, out_width, out_height;
    enum sac_filter       filter;
};
static const struct scene scenes[] = {
    {"768x576 i420 -> 416x312", SAC_PIXEL_I420, 768, 576, 416, 312, SAC_FILTER_BILINEAR},
    {"1920x1080 nv12 -> 640x360", SAC_PIXEL_NV12, 1920, 1080, 640, 360, SAC_FILTER_BILINEAR},
    {"1920x1080 nv12 -> 640x360 area", SAC_PIXEL_NV12, 1920, 1080, 640, 360, SAC_FILTER_AREA},
    {"1920x1080 p010 -> 640x360", SAC_PIXEL_P010, 1920, 1080, 640, 360, SAC_FILTER_BILINEAR},
    {"1920x1080 rgb24 -> 640x360", SAC_PIXEL_RGB24, 1920, 1080, 640, 360, SAC_FILTER_BILINEAR},
    {"90x220 nv12 -> 128x256 (a crop)", SAC_PIXEL_NV12, 90, 220, 128, 256, SAC_FILTER_BILINEAR},
};

enum { WAYS = 4, ROUNDS_MAX = 1000 };
static const char *const way_names[WAYS] = {"plain C", "avx2", "avx512", "swscale"};

struct bench {
    const struct scene *scene;
    sac_frame          *frame;
    struct sac_sampler  sampler;
    void               *tables, *scratch;
    float              *tensor;
    uint8_t            *bytes;
    struct SwsContext  *sws;
};

static const struct sac_row_ops *ops_of(int way)
{
#if defined(__x86_64__)
    if (way == 1)
        return sac_cpu_level() >= SAC_CPU_AVX2 ? &sac_row_ops_avx2 : NULL;
    if (way == 2)
        return sac_cpu_level() >= SAC_CPU_AVX512 ? &sac_row_ops_avx512 : NULL;
#endif
    return way == 0 ? &sac_row_ops_ref : NULL;
}

static void run_ours(struct bench *b, const struct sac_row_ops *ops)
{
    struct sac_row_store store = {SAC_TENSOR_LAYOUT_NCHW, SAC_F32,   b->scene->out_width,
                                  b->scene->out_height,   {0, 0, 0}, {1, 1, 1}};
    for (int y = 0; y < b->scene->out_height; y++) {
        float *rgb[3];
        sac_sampler_row(&b->sampler, ops, y, b->scratch, rgb);
        ops->store(&store, rgb, b->scene->out_width, 0, y, b->tensor);
    }
}

static void run_swscale(struct bench *b)
{
    const sac_frame *f = b->frame;
    const uint8_t   *in[4] = {f->plane[0], f->plane[1], f->plane[2]};
    int      in_pitch[4] = {(int)f->pitch_bytes[0], (int)f->pitch_bytes[1], (int)f->pitch_bytes[2]};
    uint8_t *out[4] = {b->bytes};
    int      out_pitch[4] = {b->scene->out_width * 3};
    sws_scale(b->sws, in, in_pitch, 0, f->height, out, out_pitch);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool set_up(struct bench *b, sac_device *dev)
{
    static const enum AVPixelFormat av[SAC_PIXEL_FORMAT_COUNT] = {
        AV_PIX_FMT_NONE,    AV_PIX_FMT_NV12,  AV_PIX_FMT_P010LE,
        AV_PIX_FMT_YUV420P, AV_PIX_FMT_RGB24, AV_PIX_FMT_GRAY8};
    const struct scene *s = b->scene;
    sac_frame           desc = {.format = s->format, .width = s->width, .height = s->height};
    if (sac_frame_create(dev, &desc, &b->frame) != SAC_OK)
        return false;
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    int                     n = sac_frame_planes(s->format, s->width, s->height, planes);
    for (int p = 0; p < n; p++)
        for (size_t i = 0; i < b->frame->pitch_bytes[p] * (size_t)planes[p].rows; i++)
            b->frame->plane[p][i] = (uint8_t)rand();
    struct sac_sampler_spec spec = {b->frame,
                                    {0, 0, (float)s->width, (float)s->height},
                                    s->out_width,
                                    s->out_height,
                                    s->filter};
    size_t                  pixels = (size_t)s->out_width * (size_t)s->out_height * 3;
    b->tables = sac_alloc_aligned(64, sac_sampler_bytes(&spec));
    b->scratch = sac_alloc_aligned(64, sac_sampler_scratch_bytes(&spec));
    b->tensor = sac_alloc_aligned(64, pixels * sizeof(float));
    b->bytes = sac_alloc_aligned(64, pixels + 64);
    b->sws = sws_getContext(
        s->width, s->height, av[s->format], s->out_width, s->out_height, AV_PIX_FMT_RGB24,
        s->filter == SAC_FILTER_AREA ? SWS_AREA : SWS_BILINEAR, NULL, NULL, NULL);
    if (!b->tables || !b->scratch || !b->tensor || !b->bytes || !b->sws)
        return false;
    memset(b->scratch, 0, sac_sampler_scratch_bytes(&spec));
    sac_sampler_init(&b->sampler, &spec, b->tables);
    return true;
}

static void finish(struct bench *b)
{
    sws_freeContext(b->sws);
    sac_free(b->tables);
    sac_free(b->scratch);
    sac_free(b->tensor);
    sac_free(b->bytes);
    sac_frame_unref(&b->frame);
}

/* Processor time: other programs on the machine do not count. */
static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void measure(struct bench *b, int rounds)
{
    static double us[WAYS][ROUNDS_MAX];
    for (int round = 0; round < rounds; round++)
        for (int way = 0; way < WAYS; way++) {
            double begin = now_us();
            if (way == WAYS - 1)
                run_swscale(b);
            else if (ops_of(way))
                run_ours(b, ops_of(way));
            us[way][round] = now_us() - begin;
        }
    printf("%-34s", b->scene->name);
    for (int way = 0; way < WAYS; way++) {
        qsort(us[way], (size_t)rounds, sizeof us[way][0], by_value);
        if (way == WAYS - 1 || ops_of(way))
            printf(" %8.0f", us[way][rounds / 2]);
        else
            printf(" %8s", "-");
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    int          rounds = argc > 1 ? SAC_CLAMP(atoi(argv[1]), 1, ROUNDS_MAX) : 50;
    sac_context *ctx = NULL;
    sac_device  *dev = NULL;
    if (sac_context_create(NULL, &ctx) != SAC_OK ||
        sac_device_open(ctx, "cpu", NULL, &dev) != SAC_OK)
        return 1;
    printf("%s, one thread, median of %d rounds, microseconds of processor time\n%-34s",
           sac_device_description(dev), rounds, "");
    for (int way = 0; way < WAYS; way++)
        printf(" %8s", way_names[way]);
    printf("\n");
    for (size_t i = 0; i < SAC_COUNT(scenes); i++) {
        struct bench b = {.scene = &scenes[i]};
        if (set_up(&b, dev))
            measure(&b, rounds);
        finish(&b);
    }
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return 0;
}
