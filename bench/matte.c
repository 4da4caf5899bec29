/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes from a network's output, on any device: milliseconds a frame when many batches are queued.
 * Frames are more than a GPU's caches hold. In the middle the picture moves from frame to frame, by
 * default over a quarter of its width, as where people move before a camera that stands.
 *
 *     bench_matte [--device cuda] [--frame 1920x1080] [--format nv12|p010|i420|rgb24]
 *                 [--map 512x512] [--classes 2] [--dtype f16|f32] [--batch 8] [--streams 1]
 *                 [--guide N] [--smooth F] [--hole N] [--as-classes] [--move PIXELS]
 *                 [--moving PERCENT] [--seconds 1]
 *
 * The frames of a batch are consecutive ones of its streams. One line of JSON. */
#include <string.h>

#include "bench/must.h"
#include "device/device.h"
#include "vision/matte.h"

enum {
    BATCH_MAX = 64,
    POOL_MIN = 8,
    POOL_MAX = 1024,
    TENSORS = 4, /* whose numbers come by turns */
    REPEATS_MAX = 10000
};
static const size_t POOL_BYTES = (size_t)256 << 20;

struct settings {
    const char           *device;
    enum sac_pixel_format format;
    int                   width, height, map_width, map_height;
    int                   classes, batch, streams, guide, hole, move, moving;
    float                 smooth;
    bool                  half, as_classes;
    double                seconds;
};

struct work {
    struct settings        set;
    sac_device            *dev, *cpu;
    struct sac_matte_spec  spec;
    struct sac_matte_style style;
    struct sac_fit_map     map;
    struct sac_buffer     *tensor[TENSORS], *state[BATCH_MAX];
    sac_frame             *frame[POOL_MAX], *out[POOL_MAX];
    int                    pool;
    unsigned               turn[BATCH_MAX];
    uint64_t               frames; /* until now */
};

/* ---- what is asked for ---- */

static void stop(const char *what, const char *value)
{
    fprintf(stderr, "bench_matte: %s %s\n", what, value ? value : "");
    exit(2);
}

static void size_of(const char *text, int *width, int *height)
{
    if (sscanf(text, "%dx%d", width, height) != 2)
        stop("no size:", text);
}

static enum sac_pixel_format format_of(const char *name)
{
    for (int f = SAC_PIXEL_NONE + 1; f < SAC_PIXEL_FORMAT_COUNT; f++)
        if (strcmp(name, sac_pixel_format_name((enum sac_pixel_format)f)) == 0)
            return (enum sac_pixel_format)f;
    stop("no format:", name);
    return SAC_PIXEL_NONE;
}

/* Options of a number. */
static bool take_number(struct settings *s, const char *name, const char *value)
{
    const struct {
        const char *name;
        int        *to;
    } numbers[] = {{"--classes", &s->classes}, {"--batch", &s->batch}, {"--streams", &s->streams},
                   {"--guide", &s->guide},     {"--hole", &s->hole},   {"--move", &s->move},
                   {"--moving", &s->moving}};
    for (size_t i = 0; i < SAC_COUNT(numbers); i++)
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].to = atoi(value);
            return true;
        }
    return false;
}

static void take_option(struct settings *s, const char *name, const char *value)
{
    if (take_number(s, name, value))
        return;
    if (strcmp(name, "--device") == 0)
        s->device = value;
    else if (strcmp(name, "--frame") == 0)
        size_of(value, &s->width, &s->height);
    else if (strcmp(name, "--map") == 0)
        size_of(value, &s->map_width, &s->map_height);
    else if (strcmp(name, "--format") == 0)
        s->format = format_of(value);
    else if (strcmp(name, "--dtype") == 0)
        s->half = strcmp(value, "f16") == 0;
    else if (strcmp(name, "--smooth") == 0)
        s->smooth = (float)atof(value);
    else if (strcmp(name, "--seconds") == 0)
        s->seconds = atof(value);
    else
        stop("no option:", name);
}

static struct settings settings_of(int argc, char **argv)
{
    struct settings s = {.device = "cuda",
                         .format = SAC_PIXEL_NV12,
                         .width = 1920,
                         .height = 1080,
                         .map_width = 512,
                         .map_height = 512,
                         .classes = 2,
                         .batch = 8,
                         .streams = 1,
                         .move = 2,
                         .moving = 25,
                         .half = true,
                         .seconds = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--as-classes") == 0) {
            s.as_classes = true;
            continue;
        }
        if (i + 1 == argc)
            stop("without a value:", argv[i]);
        take_option(&s, argv[i], argv[i + 1]);
        i++;
    }
    if (s.moving < 0 || s.moving > 100)
        stop("--moving has 0 to 100 percent", NULL);
    if (s.batch < 1 || s.batch > BATCH_MAX || s.streams < 1 || s.streams > s.batch || s.move < 0)
        stop("a batch has 1 to 64 frames, of at most as many streams", NULL);
    return s;
}

/* ---- frames ---- */

/* A picture as wide as all frames of the pool need. */
static uint8_t *canvas_of(int width, int height)
{
    uint8_t *canvas = malloc((size_t)width * (size_t)height);
    uint32_t seed = 1;
    if (!canvas)
        stop("no memory for the picture", NULL);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            seed = seed * 1664525u + 1013904223u;
            const int wave = (x / 3 ^ y / 5) & 63, bars = (x / 97 + y / 71) % 3 * 50;
            canvas[(size_t)y * (size_t)width + (size_t)x] =
                (uint8_t)(40 + wave + bars + (int)(seed >> 29));
        }
    return canvas;
}

static void show(sac_frame *f, const uint8_t *canvas, int canvas_width, int shift, int moving)
{
    const int                     first = f->width * (100 - moving) / 200, end = f->width - first;
    const struct sac_format_info *info = sac_format_info_of(f->format);
    const int                     step = info->step[0] * info->number_bytes;
    for (int y = 0; y < f->height; y++) {
        const uint8_t *from = canvas + (size_t)y * (size_t)canvas_width;
        uint8_t       *row = f->plane[0] + (size_t)y * f->pitch_bytes[0];
        for (int x = 0; x < f->width; x++)
            for (int c = 0; c < step; c++)
                row[x * step + c] = from[x >= first && x < end ? x + shift : x];
    }
}

static void make_frames(struct work *w)
{
    const struct settings *s = &w->set;
    const sac_frame        desc = {.format = s->format, .width = s->width, .height = s->height};
    const sac_frame grey = {.format = SAC_PIXEL_GRAY8, .width = s->width, .height = s->height};
    const bool      host = s->device[0] == 'c' && s->device[1] == 'p';
    const size_t    pixels = (size_t)s->width * (size_t)s->height;
    const int       pool = host ? 0 : (int)SAC_MIN(POOL_BYTES / pixels, (size_t)POOL_MAX);
    sac_frame      *here = NULL;
    w->pool = SAC_MAX(pool, SAC_MAX(s->batch, POOL_MIN));
    const int      across = s->width + s->move * w->pool;
    uint8_t *const canvas = canvas_of(across, s->height);
    must(sac_frame_create(w->cpu, &desc, &here));
    for (int i = 0; i < w->pool; i++) {
        show(here, canvas, across, s->move * i, s->moving);
        must(sac_frame_create(w->dev, &desc, &w->frame[i]));
        must(sac_frame_copy(here, w->frame[i]));
        must(sac_frame_create(w->dev, &grey, &w->out[i]));
    }
    sac_frame_unref(&here);
    free(canvas);
}

/* ---- the network's numbers ---- */

/* A half of a number from -8 to 8, cut off. */
static uint16_t half_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    const uint32_t exponent = bits >> 23 & 0xff;
    if (exponent < 113)
        return 0;
    return (uint16_t)((bits >> 16 & 0x8000) | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

/* Blobs with soft edges, and noise. */
static float number_at(int k, int x, int y, int turn)
{
    const float blob = sinf((float)(x + turn) * 0.05f + (float)k) * cosf((float)y * 0.04f);
    return 6 * blob + (float)(rand() % 100) / 100.0f;
}

static void make_tensors(struct work *w)
{
    const struct settings *s = &w->set;
    const size_t           cells = (size_t)s->map_width * (size_t)s->map_height;
    const size_t           numbers = cells * (size_t)s->classes;
    const size_t           size = s->half ? 2 : 4;
    char                  *host = malloc(numbers * size);
    if (!host)
        stop("no memory for the network's numbers", NULL);
    for (int t = 0; t < TENSORS; t++) {
        for (size_t i = 0; i < numbers; i++) {
            const int   cell = (int)(i % cells);
            const float v =
                number_at((int)(i / cells), cell % s->map_width, cell / s->map_width, t);
            if (s->half)
                ((uint16_t *)(void *)host)[i] = half_of(v);
            else
                ((float *)(void *)host)[i] = v;
        }
        must(sac_buffer_create(w->dev, numbers * size * (size_t)s->batch, "tensor", &w->tensor[t]));
        for (int i = 0; i < s->batch; i++)
            must(sac_device_copy(
                w->dev, NULL, (char *)sac_buffer_data(w->tensor[t]) + (size_t)i * numbers * size,
                host, numbers * size, SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "numbers"));
    }
    free(host);
}

/* ---- the entry ---- */

static void set_up(struct work *w)
{
    const struct settings *s = &w->set;
    const int64_t          cells = (int64_t)s->map_width * s->map_height;
    struct sac_preprocess  pre = sac_preprocess_default();
    const struct sac_rect  whole = {0, 0, (float)s->width, (float)s->height};
    w->spec =
        (struct sac_matte_spec){.form = s->classes > 1 ? SAC_MATTE_CLASS_LOGITS : SAC_MATTE_LOGIT,
                                .width = s->map_width,
                                .height = s->map_height,
                                .input_width = s->map_width,
                                .input_height = s->map_height,
                                .classes = s->classes,
                                .value = {.dtype = s->half ? SAC_F16 : SAC_F32,
                                          .image = cells * s->classes,
                                          .cell = 1,
                                          .number = cells}};
    w->spec.wanted[0] = s->classes > 1 ? 2 : 1;
    w->style = (struct sac_matte_style){.classes = s->as_classes,
                                        .guide = s->guide,
                                        .guide_noise = 8,
                                        .smooth = s->smooth,
                                        .hole = s->hole,
                                        .high = 1};
    pre.width = s->map_width;
    pre.height = s->map_height;
    pre.fit = SAC_FIT_STRETCH;
    w->map = sac_fit_map_of(&pre, &whole);
    for (int i = 0; i < s->streams; i++)
        must(sac_buffer_create(w->dev, sac_matte_bytes(&w->spec), "state", &w->state[i]));
    make_frames(w);
    make_tensors(w);
}

static void run_batch(struct work *w, uint64_t number)
{
    const void *tensors[SAC_MATTE_TENSORS_MAX] = {sac_buffer_data(w->tensor[number % TENSORS])};
    struct sac_matte_job jobs[BATCH_MAX];
    for (int i = 0; i < w->set.batch; i++) {
        const int at = (int)(w->frames++ % (uint64_t)w->pool), k = i % w->set.streams;
        jobs[i] = (struct sac_matte_job){.frame = w->frame[at],
                                         .image = i,
                                         .map = w->map,
                                         .out = w->out[at],
                                         .state = {.memory = sac_buffer_data(w->state[k]),
                                                   .has_before = w->turn[k] > 0,
                                                   .turn = w->turn[k]}};
        w->turn[k]++;
    }
    must(sac_matte_run_on(w->dev, NULL, &w->spec, &w->style, tensors, jobs, w->set.batch));
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median, over repeats of some batches, of a batch's seconds; *queueing: of the host's part. */
static double measure(struct work *w, double *queueing, int *repeats)
{
    static double seconds[REPEATS_MAX];
    uint64_t      number = 0;
    double        queued = 0;
    int           n = -2, batches = 1; /* the first ones warm up */
    const int64_t from = sac_time_ns();
    while (n < 3 || (n < REPEATS_MAX && (double)(sac_time_ns() - from) * 1e-9 < w->set.seconds)) {
        const int64_t begin = sac_time_ns();
        for (int i = 0; i < batches; i++)
            run_batch(w, number++);
        const int64_t middle = sac_time_ns();
        must(sac_device_wait(w->dev));
        const double took = (double)(sac_time_ns() - begin) * 1e-9;
        if (n >= 0) {
            seconds[n] = took / batches;
            queued += (double)(middle - begin) * 1e-9 / batches;
        }
        if (++n == 0 && took < 0.02) /* so many that waiting for the device does not count */
            batches = (int)(0.02 * batches / took) + 1;
    }
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    *queueing = queued / n;
    *repeats = n;
    return seconds[n / 2];
}

static void finish(struct work *w)
{
    for (int i = 0; i < w->pool; i++) {
        sac_frame_unref(&w->frame[i]);
        sac_frame_unref(&w->out[i]);
    }
    for (int i = 0; i < TENSORS; i++)
        sac_buffer_unref(&w->tensor[i]);
    for (int i = 0; i < BATCH_MAX; i++)
        sac_buffer_unref(&w->state[i]);
    sac_device_unref(&w->dev);
    sac_device_unref(&w->cpu);
}

int main(int argc, char **argv)
{
    static struct work w;
    double             queueing;
    int                repeats;
    w.set = settings_of(argc, argv);
    const struct settings *s = &w.set;
    must(sac_context_create(NULL, &ctx));
    must(sac_device_open(ctx, "cpu", NULL, &w.cpu));
    must(sac_device_open(ctx, s->device, NULL, &w.dev));
    set_up(&w);
    const double seconds = measure(&w, &queueing, &repeats);
    printf("{\"bench\":\"matte\",\"device\":\"%s\",\"frame\":\"%dx%d\",\"format\":\"%s\","
           "\"map\":\"%dx%d\",\"classes\":%d,\"dtype\":\"%s\",\"batch\":%d,\"streams\":%d,"
           "\"guide\":%d,\"smooth\":%g,\"hole\":%d,\"as_classes\":%s,\"move\":%d,\"moving\":%d,"
           "\"pool\":%d,"
           "\"repeats\":%d,\"ms_per_frame\":%.6f,\"queueing_ms_per_frame\":%.6f,"
           "\"frames_per_second\":%.1f}\n",
           sac_device_description(w.dev), s->width, s->height, sac_pixel_format_name(s->format),
           s->map_width, s->map_height, s->classes, s->half ? "f16" : "f32", s->batch, s->streams,
           s->guide, (double)s->smooth, s->hole, s->as_classes ? "true" : "false", s->move,
           s->moving, w.pool, repeats, seconds * 1e3 / s->batch, queueing * 1e3 / s->batch,
           s->batch / seconds);
    finish(&w);
    sac_context_destroy(&ctx);
    return 0;
}
