/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels before and after a detector, compared with the time that their bytes need:
 * preprocessing, boxes and NMS. bench/peers/time_kernels.py measures the same in PyTorch. usage:
 * bench_kernels [DEVICE] [--json] default: cuda; --json: a line of JSON each */
#include <stdio.h>
#include <string.h>

#include "bench/must.h"
#include "vision/detect.h"
#include "vision/fit.h"
#include "vision/vision.h"

enum { FRAMES = 32, SETS = 3, REPEATS = 15, PER_REPEAT = 20 };

static bool json;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median, over repeats, of the seconds of one call when many are queued. */
static double time_of(sac_device *dev, struct sac_device_stream *stream,
                      void (*fn)(void *arg, int turn), void     *arg)
{
    double seconds[REPEATS];
    for (int i = -2; i < REPEATS; i++) {
        int64_t begin = sac_time_ns();
        for (int k = 0; k < PER_REPEAT; k++)
            fn(arg, k);
        must(dev->ops->stream_wait(stream));
        if (i >= 0)
            seconds[i] = (double)(sac_time_ns() - begin) * 1e-9 / PER_REPEAT;
    }
    qsort(seconds, REPEATS, sizeof *seconds, by_value);
    return seconds[REPEATS / 2];
}

/* ---- a plain copy: the ceiling ---- */

struct copy {
    sac_device               *dev;
    struct sac_device_stream *stream;
    char                     *from, *to;
    size_t                    bytes;
};

static void run_copy(void *arg, int turn)
{
    struct copy *c = arg;
    (void)turn;
    must(c->dev->ops->copy(c->dev, c->stream, c->to, c->from, c->bytes, SAC_COPY_ON_DEVICE));
}

static double bandwidth(sac_device *dev, struct sac_device_stream *stream)
{
    struct sac_buffer *a = NULL, *b = NULL;
    struct copy        c = {dev, stream, NULL, NULL, (size_t)1 << 30};
    must(sac_buffer_create(dev, c.bytes, "from", &a));
    must(sac_buffer_create(dev, c.bytes, "to", &b));
    c.from = sac_buffer_data(a);
    c.to = sac_buffer_data(b);
    double seconds = time_of(dev, stream, run_copy, &c);
    sac_buffer_unref(&a);
    sac_buffer_unref(&b);
    return 2.0 * (double)c.bytes / seconds;
}

/* ---- preprocess ---- */

struct work {
    sac_device               *dev;
    struct sac_device_stream *stream;
    struct sac_preprocess     pre;
    struct sac_preprocess_job jobs[SETS][FRAMES]; /* more than the cache holds */
    sac_tensor               *out[SETS];
};

static void run_preprocess(void *arg, int turn)
{
    struct work *w = arg;
    must(w->dev->ops->vision->preprocess(w->dev, w->stream, &w->pre, w->jobs[turn % SETS], FRAMES,
                                         sac_tensor_data(w->out[turn % SETS])));
}

static sac_frame *noise(sac_device *dev, enum sac_pixel_format format, int width, int height,
                        uint32_t seed)
{
    sac_device *cpu = NULL;
    sac_frame  *here = NULL, *there = NULL,
              desc = {.format = format, .width = width, .height = height};
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    must(sac_device_open(ctx, "cpu", NULL, &cpu));
    must(sac_frame_create(cpu, &desc, &here));
    must(sac_frame_create(dev, &desc, &there));
    int n = sac_frame_planes(format, width, height, planes);
    for (int p = 0; p < n; p++)
        for (size_t i = 0; i < here->pitch_bytes[p] * (size_t)planes[p].rows; i++)
            here->plane[p][i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
    must(sac_frame_copy(here, there));
    sac_frame_unref(&here);
    sac_device_unref(&cpu);
    return there;
}

/* Bytes that must move at least: each cache sector of 32 bytes that holds a needed sample, once,
 * and the output. Of a bilinear shrinking that is the two rows per output row, whole. */
static double bytes_of(const struct work *w, int width, int height, size_t sample)
{
    struct sac_rect    whole = {0, 0, (float)width, (float)height};
    struct sac_fit_box box = sac_fit_box_of(&w->pre, &whole);
    double             luma = SAC_MIN(2.0 * box.height, height),
           chroma = SAC_MIN(2.0 * box.height, height / 2.0);
    if (w->pre.filter == SAC_FILTER_AREA) {
        luma = height;
        chroma = height / 2.0;
    }
    double in = (luma + chroma) * width * (double)sample;
    double out = 3.0 * w->pre.width * w->pre.height * (double)sac_dtype_bytes(w->pre.dtype);
    return FRAMES * (in + out);
}

static void bench_preprocess(sac_device *dev, struct sac_device_stream *stream, double ceiling,
                             enum sac_pixel_format format, int width, int height, int side,
                             enum sac_filter filter, enum sac_tensor_layout layout)
{
    static struct work w;
    w = (struct work){.dev = dev, .stream = stream, .pre = sac_preprocess_default()};
    w.pre.width = w.pre.height = side;
    w.pre.dtype = SAC_F16;
    w.pre.filter = filter;
    w.pre.layout = layout;
    struct sac_tensor_desc desc = sac_preprocess_desc(&w.pre, FRAMES);
    for (int s = 0; s < SETS; s++) {
        must(sac_tensor_create(dev, &desc, "out", &w.out[s]));
        for (int i = 0; i < FRAMES; i++)
            w.jobs[s][i].frame = noise(dev, format, width, height, (uint32_t)(s * FRAMES + i));
    }
    double seconds = time_of(dev, stream, run_preprocess, &w);
    double bytes = bytes_of(&w, width, height, format == SAC_PIXEL_P010 ? 2 : 1);
    if (json)
        printf(
            "{\"kernel\":\"preprocess\",\"frames\":%d,\"format\":\"%s\",\"width\":%d,\"height\":%d,"
            "\"side\":%d,\"layout\":\"%s\",\"filter\":\"%s\",\"ms\":%.4f,\"bound_ms\":%.4f}\n",
            FRAMES, sac_pixel_format_name(format), width, height, side,
            layout == SAC_TENSOR_LAYOUT_NCHW ? "NCHW" : "NHWC",
            filter == SAC_FILTER_AREA ? "area" : "bilinear", seconds * 1e3, bytes / ceiling * 1e3);
    else
        printf("preprocess %d %s %dx%d -> [%d,3,%d,%d] float16 %s %s: %.4f ms, %.0f GB/s of %.0f, "
               "%.2f x the bound\n",
               FRAMES, sac_pixel_format_name(format), width, height, FRAMES, side, side,
               layout == SAC_TENSOR_LAYOUT_NCHW ? "NCHW" : "NHWC",
               filter == SAC_FILTER_AREA ? "area" : "bilinear", seconds * 1e3,
               bytes / seconds * 1e-9, ceiling * 1e-9, seconds / (bytes / ceiling));
    for (int s = 0; s < SETS; s++) {
        sac_tensor_unref(&w.out[s]);
        for (int i = 0; i < FRAMES; i++)
            sac_frame_unref((sac_frame **)&w.jobs[s][i].frame);
    }
}

/* ---- boxes and NMS ---- */

enum { SIDE = 640, CELLS = 8400, CLASSES = 80, COLUMNS = 5 + CLASSES, PEOPLE = 10, SEEN_BY = 8 };

struct boxes {
    sac_device               *dev;
    struct sac_device_stream *stream;
    struct sac_detect_spec    spec;
    struct sac_fit_map        maps[FRAMES];
    struct sac_buffer        *in[SETS], *out;
};

static void run_detect(void *arg, int turn)
{
    struct boxes *b = arg;
    const void   *tensors[] = {sac_buffer_data(b->in[turn % SETS])};
    must(sac_detect_run(b->dev, b->stream, &b->spec, tensors, b->maps, FRAMES,
                        sac_buffer_data(b->out)));
}

static uint16_t half_of(float v) /* of 0 and of what lies between 2^-14 and 65504; the rest is cut
                                    off */
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    uint32_t magnitude = bits & 0x7fffffff;
    return magnitude < 0x38800000
               ? 0
               : (uint16_t)((bits >> 16 & 0x8000) | ((magnitude - 0x38000000) >> 13));
}

/* What a YOLOX gives: noise, and ten persons a frame, each seen by eight cells. Decoded boxes. */
static void fill_output(uint16_t *row, uint32_t seed)
{
    for (int cell = 0; cell < CELLS; cell++, row += COLUMNS) {
        int person = cell % (CELLS / PEOPLE) < SEEN_BY ? cell / (CELLS / PEOPLE) : -1;
        for (int k = 0; k < COLUMNS; k++)
            row[k] = half_of((float)((seed = seed * 1664525 + 1013904223) >> 8) / (float)(1 << 24) *
                             0.02f);
        row[0] = half_of(person < 0 ? (float)(cell % SIDE)
                                    : 40 + 60 * (float)person + (float)(cell % 3));
        row[1] = half_of(person < 0 ? (float)(cell % 360) : 180);
        row[2] = half_of(46);
        row[3] = half_of(128);
        row[4] = half_of(person < 0 ? 0.01f : 0.9f);
        row[5] = half_of(person < 0 ? 0.01f : 0.9f);
    }
}

static void bench_detect(sac_device *dev, struct sac_device_stream *stream, double ceiling)
{
    static struct boxes b;
    const size_t        bytes = (size_t)FRAMES * CELLS * COLUMNS * sizeof(uint16_t);
    enum sac_dtype      dtype = SAC_F16;
    uint16_t           *numbers = sac_alloc(bytes);
    if (!numbers)
        exit(1);
    b = (struct boxes){.dev = dev, .stream = stream};
    b.spec = (struct sac_detect_spec){.form = SAC_DETECT_YOLOX,
                                      .tensor_count = 1,
                                      .input_width = SIDE,
                                      .input_height = SIDE,
                                      .cells = CELLS,
                                      .classes = CLASSES,
                                      .objectness = true,
                                      .score_min = 0.1f,
                                      .nms_iou = 0.65f,
                                      .nms = true,
                                      .keep = 300,
                                      .all_classes = true};
    b.spec.box[0] = (struct sac_detect_field){0, SAC_F16, 0, (int64_t)CELLS * COLUMNS, COLUMNS, 1};
    b.spec.score[0] =
        (struct sac_detect_field){0, SAC_F16, 5, (int64_t)CELLS * COLUMNS, COLUMNS, 1};
    sac_detect_set_dtypes(&b.spec, &dtype);
    struct sac_preprocess pre = sac_preprocess_default();
    pre.width = pre.height = SIDE;
    for (int i = 0; i < FRAMES; i++)
        b.maps[i] = sac_fit_map_of(&pre, &(struct sac_rect){0, 0, 1920, 1080});
    for (int s = 0; s < SETS; s++) {
        for (int i = 0; i < FRAMES; i++)
            fill_output(numbers + (size_t)i * CELLS * COLUMNS, (uint32_t)(s * FRAMES + i));
        must(sac_buffer_create(dev, bytes, "scores", &b.in[s]));
        must(sac_device_copy(dev, stream, sac_buffer_data(b.in[s]), numbers, bytes,
                             SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "bench"));
        must(dev->ops->stream_wait(stream));
    }
    must(sac_buffer_create(dev, sac_detect_out_bytes(&b.spec, FRAMES), "boxes", &b.out));
    double                seconds = time_of(dev, stream, run_detect, &b);
    struct sac_detections found[FRAMES] = {{0}};
    must(sac_detect_fetch(dev, stream, &b.spec, sac_buffer_data(b.out), FRAMES, found));
    if (json)
        printf("{\"kernel\":\"boxes and "
               "NMS\",\"frames\":%d,\"cells\":%d,\"classes\":%d,\"boxes\":%zu,\"ms\":%.4f,\"bound_"
               "ms\":%.4f}\n",
               FRAMES, CELLS, CLASSES, found[0].count, seconds * 1e3,
               (double)bytes / ceiling * 1e3);
    else
        printf("boxes and NMS %d x [%d,%d] float16, %zu boxes in the first: %.4f ms, %.2f x the "
               "bound\n",
               FRAMES, CELLS, COLUMNS, found[0].count, seconds * 1e3,
               seconds / ((double)bytes / ceiling));
    for (int i = 0; i < FRAMES; i++)
        sac_detections_finish(&found[i]);
    for (int s = 0; s < SETS; s++)
        sac_buffer_unref(&b.in[s]);
    sac_buffer_unref(&b.out);
    sac_free(numbers);
}

int main(int argc, char **argv)
{
    sac_device               *dev = NULL;
    struct sac_device_stream *stream = NULL;
    const char               *name = "cuda";
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else
            name = argv[i];
    must(sac_context_create(NULL, &ctx));
    must(sac_device_open(ctx, name, NULL, &dev));
    must(dev->ops->stream_create(dev, &stream));
    double ceiling = bandwidth(dev, stream);
    if (!json)
        printf("%s: copies on the device at %.0f GB/s, read and written\n",
               sac_device_description(dev), ceiling * 1e-9);
    bench_preprocess(dev, stream, ceiling, SAC_PIXEL_NV12, 1920, 1080, 640, SAC_FILTER_BILINEAR,
                     SAC_TENSOR_LAYOUT_NCHW);
    bench_preprocess(dev, stream, ceiling, SAC_PIXEL_NV12, 1920, 1080, 640, SAC_FILTER_BILINEAR,
                     SAC_TENSOR_LAYOUT_NHWC);
    bench_preprocess(dev, stream, ceiling, SAC_PIXEL_NV12, 1920, 1080, 640, SAC_FILTER_AREA,
                     SAC_TENSOR_LAYOUT_NCHW);
    bench_preprocess(dev, stream, ceiling, SAC_PIXEL_P010, 1920, 1080, 640, SAC_FILTER_BILINEAR,
                     SAC_TENSOR_LAYOUT_NCHW);
    bench_detect(dev, stream, ceiling);
    dev->ops->stream_destroy(&stream);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return 0;
}
