/* SPDX-License-Identifier: Apache-2.0 */
/* saccade segment on a GPU: what it writes is what the CPU writes, byte for byte, and nothing
 * crosses but what was asked for. The network tells bright from dark, class numbers without a
 * rounding, so both see the same; the clips are made here, H.264, which all decoders decode alike.
 *
 * As pipeline/segment_far it runs without a GPU, on the device of tests/engine/far.h, which decodes
 * nothing by itself: then frames are uploaded. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <saccade/image.h>
#include <saccade/pipeline.h>
#include <saccade/sink.h>

#include "tests/clips.h"
#include "tests/display.h"
#include "tests/gpu.h"
#include "tests/pipeline/folder.h"

enum { WIDTH = 384, HEIGHT = 192, FRAMES = 12 };
static const uint64_t PIXELS = WIDTH * HEIGHT;

static sac_device *cpu;
static bool        decodes; /* the device has a decoder */

static int set_up(void **state)
{
    return folder_create(state) == 0 && sac_device_open(test_context(), "cpu", NULL, &cpu) == SAC_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    sac_device_unref(&cpu);
    folder_remove(state);
    return 0;
}

/* Skips where there is none; no device stays open. */
static void need_gpu(void)
{
    sac_device *gpu = gpu_open(NULL);
    decodes = gpu->ops->video_context != NULL;
    sac_device_unref(&gpu);
}

/* in_folder's paths stay valid for a while only. */
static const char *keep(char kept[384], const char *path)
{
    snprintf(kept, 384, "%s", path);
    return kept;
}

/* ---- clips ---- */

/* Bright discs that move over a dark ground, one for each half. */
static void paint(sac_frame *f, int number)
{
    for (int y = 0; y < f->height; y++)
        for (int x = 0; x < f->width; x++) {
            uint8_t  *at = f->plane[0] + (size_t)y * f->pitch_bytes[0] + 3 * x;
            const int half = f->width / 2, dx = x % half - 40 - 6 * number,
                      dy = y - f->height / 2 - (x < half ? number : -2 * number);
            const bool inside = dx * dx + dy * dy < 40 * 40;
            at[0] = (uint8_t)(inside ? 235 : 20 + x / 12);
            at[1] = (uint8_t)(inside ? 220 - y / 8 : 40);
            at[2] = (uint8_t)(inside ? 225 : 30 + y / 8);
        }
}

static sac_frame *picture(int number, int width, int height)
{
    sac_frame *f = NULL;
    sac_frame  desc = {.format = SAC_PIXEL_RGB24, .width = width, .height = height};
    desc.number = number;
    desc.pts_us = number * 40000;
    desc.duration_us = 40000;
    assert_sac_ok(sac_frame_create(cpu, &desc, &f));
    paint(f, number);
    return f;
}

static const char *write_clip(const char *name)
{
    static char            kept[384];
    struct sac_sink_params params = sac_sink_params_default();
    sac_sink              *sink = NULL;
    const char            *path = keep(kept, in_folder(name));
    params.crf = 12;
    assert_sac_ok(sac_sink_create(cpu, path, NULL, &params, &sink));
    for (int i = 0; i < FRAMES; i++) {
        sac_frame *f = picture(i, WIDTH, HEIGHT);
        assert_sac_ok(sac_sink_write_wait(sink, f));
        sac_frame_unref(&f);
    }
    assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    return path;
}

static const char *write_background(void)
{
    static char kept[384];
    const char *path = keep(kept, in_folder("ground.ppm"));
    FILE       *file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "P6 200 150 255\n");
    for (int i = 0; i < 200 * 150; i++) {
        fputc(i % 200, file);
        fputc(i / 200, file);
        fputc(90, file);
    }
    fclose(file);
    return path;
}

/* ---- runs ---- */

static struct sac_segment_params bright(enum sac_segment_as as)
{
    struct sac_segment_params segment = sac_segment_params_default();
    segment.model = TEST_HEADS "/maps_label.onnx";
    segment.segmenter.preprocess = "rgb,stretch,mean=0,scale=1/255";
    segment.segmenter.precision = SAC_PRECISION_FP32;
    segment.as = as;
    return segment;
}

static struct sac_pipeline_params params_of(const char *device, const char *clip,
                                            const struct sac_segment_params *segment)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    params.job.device = device;
    params.job.segment = segment;
    params.input = clip;
    params.source.decode = SAC_DECODE_AUTO;
    params.source.decode_threads = params.sink.threads = 1;
    return params;
}

static struct sac_pipeline_stats run(const struct sac_pipeline_params *params)
{
    struct sac_pipeline_stats stats = {0};
    sac_pipeline             *pipe = NULL;
    assert_sac_ok(sac_pipeline_create(test_context(), params, &pipe));
    assert_sac_ok(sac_pipeline_run(pipe));
    sac_pipeline_get_stats(pipe, &stats);
    sac_pipeline_destroy(&pipe);
    return stats;
}

static char *load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* Byte for byte; Matroska's header has random numbers. */
static void expect_same(const char *a, const char *b)
{
    enum { HEADER = 1024, NUMBERS = 64 };
    const bool random = strstr(a, ".mkv") || strstr(a, ".webm");
    size_t     na, nb;
    char      *x = load(a, &na), *y = load(b, &nb);
    int        others = 0;
    size_t     at = 0;
    for (; at < na && at < nb; at++)
        if (x[at] != y[at] && (!random || at >= HEADER || ++others > NUMBERS))
            break;
    free(x);
    free(y);
    if (na == 0 || at != na || at != nb)
        fail_msg("%s (%zu bytes) and %s (%zu) differ from byte %zu on", a, na, b, nb, at);
}

/* ---- the ledger ---- */

/* What crosses in any run, and what this one asks for. */
struct asked {
    uint64_t downloaded; /* bytes: frames for encoders on the host */
    int      converted;  /* frames, on the device; -1: none or all */
    int      uploaded;   /* pictures beside the video */
};

static void check_ledger(const struct sac_pipeline_stats *stats, struct asked asked, int frames,
                         const char *what)
{
    for (int r = 0; r < SAC_COPY_REASON_COUNT; r++) {
        const struct sac_ledger_entry *e = &stats->ledger.reason[r];
        const char                    *name = sac_copy_reason_name((enum sac_copy_reason)r);
        switch (r) {
        case SAC_COPY_WEIGHTS:
        case SAC_COPY_BOXES:
        case SAC_COPY_COMMANDS: break;
        case SAC_COPY_OVERLAY:
            if (e->bytes != asked.downloaded)
                fail_msg("%s: %s: %llu bytes, %llu asked for", what, name,
                         (unsigned long long)e->bytes, (unsigned long long)asked.downloaded);
            break;
        case SAC_COPY_FRAME_CONVERT:
            if (asked.converted < 0 ? e->calls != 0 && e->calls != (uint64_t)frames
                                    : e->calls != (uint64_t)asked.converted)
                fail_msg("%s: %s: %llu", what, name, (unsigned long long)e->calls);
            break;
        case SAC_COPY_FRAME_UPLOAD: /* a plane each */
            if (decodes ? (e->calls > 0) != (asked.uploaded > 0)
                        : e->calls < (uint64_t)(frames + asked.uploaded))
                fail_msg("%s: %s: %llu", what, name, (unsigned long long)e->calls);
            break;
        default:
            if (e->calls)
                fail_msg("%s: %s: %llu", what, name, (unsigned long long)e->calls);
        }
    }
}

/* ---- each kind ---- */

static bool can_write(const char *path, const char *encoder, bool alpha)
{
    struct sac_sink_params params = sac_sink_params_default();
    params.encoder = encoder;
    params.alpha = alpha;
    return sac_sink_check(test_context(), path, &params) == SAC_OK;
}

struct kind {
    const char         *name, *ending, *encoder;
    enum sac_segment_as as;
    float               blur;
    bool                picture, sbs, scales;
    enum sac_projection projection;
    enum sac_facets     facets;
    double              downloaded; /* bytes a pixel */
    int                 converted;  /* 1: each frame; -1: each of a decoder on the GPU */
};

static void make(const struct kind *k, const char *device, const char *clip, const char *ground,
                 const char *path)
{
    struct sac_segment_params segment = bright(k->as);
    segment.blur = k->blur;
    segment.background = k->picture ? ground : NULL;
    segment.colour = (struct sac_colour){30, 200, 90};
    segment.stereo = k->sbs ? SAC_STEREO_SBS : SAC_STEREO_MONO;
    segment.projection = k->projection;
    segment.segmenter.facets = k->facets;
    for (int i = 0; k->scales && i < 3; i++)
        segment.segmenter.scales[i] = (const float[]){0.5f, 1, 2}[i];
    struct sac_pipeline_params params = params_of(device, clip, &segment);
    params.video_out = path;
    params.sink.encoder = k->encoder;
    const struct sac_pipeline_stats stats = run(&params);
    assert_int_equal(stats.frames, FRAMES);
    const struct asked asked = {
        .downloaded = (uint64_t)(k->downloaded * (double)PIXELS * FRAMES),
        .converted = k->converted > 0 ? FRAMES : k->converted,
        .uploaded = k->picture,
    };
    if (strcmp(device, "cpu") != 0)
        check_ledger(&stats, asked, FRAMES, k->name);
}

static void each_kind_is_the_cpus(void **state)
{
    (void)state;
    need_gpu();
    static const struct kind kinds[] = {
        {"overlay", "mp4", NULL, SAC_SEGMENT_OVERLAY, .downloaded = 1.5},
        {"cutout", "mp4", NULL, SAC_SEGMENT_CUTOUT, .downloaded = 1.5},
        {"cutout, blurred", "mp4", NULL, SAC_SEGMENT_CUTOUT, .blur = 9, .downloaded = 1.5},
        {"cutout, picture", "mp4", NULL, SAC_SEGMENT_CUTOUT, .picture = true, .downloaded = 1.5},
        {"classes", "mp4", NULL, SAC_SEGMENT_CLASSES, .downloaded = 1.5},
        {"mask", "mp4", NULL, SAC_SEGMENT_MASK, .downloaded = 1},
        {"mask, MPEG-4", "mp4", "mpeg4", SAC_SEGMENT_MASK, .downloaded = 1, .converted = 1},
        {"mask, FFV1", "mkv", "ffv1", SAC_SEGMENT_MASK, .downloaded = 1},
        {"alpha, VP9", "webm", NULL, SAC_SEGMENT_ALPHA, .downloaded = 2.5, .converted = -1},
        {"alpha, ProRes", "mov", NULL, SAC_SEGMENT_ALPHA, .downloaded = 2.5, .converted = -1},
        {"alpha, FFV1", "mkv", NULL, SAC_SEGMENT_ALPHA, .downloaded = 2.5, .converted = -1},
        {"packed, flat", "mp4", NULL, SAC_SEGMENT_ALPHA_PACKED, .downloaded = 3},
        {"packed, fisheye", "mp4", NULL, SAC_SEGMENT_ALPHA_PACKED, .sbs = true,
         .projection = SAC_PROJECTION_FISHEYE, .downloaded = 1.5},
        {"packed, facets", "mp4", NULL, SAC_SEGMENT_ALPHA_PACKED, .sbs = true,
         .projection = SAC_PROJECTION_FISHEYE, .facets = SAC_FACETS_FRONT, .downloaded = 1.5},
        {"facets", "mkv", "ffv1", SAC_SEGMENT_MASK, .sbs = true,
         .projection = SAC_PROJECTION_EQUIRECT180, .facets = SAC_FACETS_ALL, .downloaded = 1},
        {"scales", "mkv", "ffv1", SAC_SEGMENT_MASK, .sbs = true, .scales = true, .downloaded = 1},
        {"coco", "json", NULL, SAC_SEGMENT_COCO, .downloaded = 1},
    };
    const char *clip = write_clip("clip.mp4"), *ground = write_background();
    for (size_t i = 0; i < SAC_COUNT(kinds); i++) {
        const struct kind *k = &kinds[i];
        char               name[32], near[384], far[384];
        snprintf(name, sizeof name, "cpu.%s", k->ending);
        snprintf(near, sizeof near, "%s", in_folder(name));
        snprintf(name, sizeof name, "gpu.%s", k->ending);
        snprintf(far, sizeof far, "%s", in_folder(name));
        if (k->as != SAC_SEGMENT_COCO && !can_write(far, k->encoder, k->as == SAC_SEGMENT_ALPHA)) {
            print_message("%s: left out, this FFmpeg cannot write it\n", k->name);
            continue;
        }
        make(k, "cpu", clip, ground, near);
        make(k, "cuda", clip, ground, far);
        print_message("%s\n", k->name);
        expect_same(near, far);
    }
}

/* With the network's inputs on its own stream, and on one of their own, which is the default. */
static void streams_of_inputs_change_nothing(void **state)
{
    (void)state;
    need_gpu();
    static const struct {
        const char *device;
        int         asked, used;
    } rows[] = {{"cpu", 2, 1}, {"cuda", 0, 2}, {"cuda", 1, 1}, {"cuda", 2, 2}};
    const char *clip = write_clip("clip.mp4");
    char        first[384];
    for (size_t i = 0; i < SAC_COUNT(rows); i++) {
        struct sac_segment_params  segment = bright(SAC_SEGMENT_MASK);
        struct sac_pipeline_params params = params_of(rows[i].device, clip, &segment);
        params.sink.encoder = "ffv1";
        params.job.preprocess_streams = rows[i].asked;
        params.video_out = i ? in_folder("more.mkv") : keep(first, in_folder("first.mkv"));
        const struct sac_pipeline_stats stats = run(&params);
        assert_int_equal(stats.frames, FRAMES);
        assert_int_equal(stats.preprocess_streams, rows[i].used);
        assert_int_equal(stats.postprocess_threads, 0);
        if (i)
            expect_same(first, params.video_out);
    }
}

/* Of instances boxes and masks cross, in cells of the network's map, and no matte. */
static void records_of_instances_are_the_cpus(void **state)
{
    (void)state;
    need_gpu();
    const char *clip = write_clip("clip.mp4");
    char        path[2][384];
    size_t      size;
    for (int k = 0; k < 2; k++) {
        struct sac_segment_params segment = bright(SAC_SEGMENT_COCO);
        segment.model = TEST_HEADS "/instances_end2end.onnx";
        segment.segmenter.classes = "all";
        segment.segmenter.preprocess = "rgb,stretch,mean=0,scale=1/8"; /* all scores are 1 */
        segment.stereo = SAC_STEREO_SBS;
        struct sac_pipeline_params params = params_of(k ? "cuda" : "cpu", clip, &segment);
        params.video_out = keep(path[k], in_folder(k ? "gpu.json" : "cpu.json"));
        const struct sac_pipeline_stats stats = run(&params);
        const struct sac_ledger_entry  *mask = &stats.ledger.reason[SAC_COPY_MASK];
        assert_int_equal(stats.frames, FRAMES);
        assert_int_equal(stats.ledger.reason[SAC_COPY_OVERLAY].calls, 0);
        /* an eye's: of three boxes, windows of 11x15, 13x16 and 5x6 cells at most */
        if (k && (mask->calls != 2 * FRAMES || mask->bytes > mask->calls * 4 * 512))
            fail_msg("%llu masks of %llu bytes", (unsigned long long)mask->calls,
                     (unsigned long long)mask->bytes);
    }
    expect_same(path[0], path[1]);
    char *text = load(path[0], &size);
    int   records = 0;
    text[size] = '\0';
    for (const char *at = text; (at = strstr(at, "\"bbox\":[")); at++)
        records++;
    assert_int_equal(records, 3 * 2 * FRAMES);
    free(text);
}

static void pictures_are_the_cpus(void **state)
{
    (void)state;
    need_gpu();
    const char *clip = write_clip("clip.mp4");
    char        path[2][384];
    for (int k = 0; k < 2; k++) {
        const char               *device = k ? "cuda" : "cpu";
        struct sac_segment_params segment = bright(SAC_SEGMENT_PNG);
        snprintf(path[k], sizeof path[k], "%s", in_folder(device));
        struct sac_pipeline_params params = params_of(device, clip, &segment);
        params.video_out = path[k];
        const struct sac_pipeline_stats stats = run(&params);
        if (k)
            check_ledger(&stats, (struct asked){.downloaded = PIXELS * FRAMES}, FRAMES, "png");
    }
    for (int i = 0; i < FRAMES; i++) {
        char one[2][400];
        for (int k = 0; k < 2; k++)
            snprintf(one[k], sizeof one[k], "%.380s/%06d.png", path[k], i);
        expect_same(one[0], one[1]);
        unlink(one[0]);
        unlink(one[1]);
    }
    rmdir(path[0]);
    rmdir(path[1]);
}

/* A phone's clips, lying in the file in all ways. Written without loss: for frames of 192 columns
 * libx264 looks at memory that it never wrote, and its bytes depend on what was there (ffmpeg's do,
 * too, with another MALLOC_PERTURB_). */
static void turned_frames_come_out_upright(void **state)
{
    (void)state;
    need_gpu();
    const char *stored = write_clip("stored.mp4");
    for (int o = 1; o < SAC_ORIENTATION_COUNT; o++)
        for (int mask = 0; mask < 2; mask++) {
            struct sac_segment_params segment =
                bright(mask ? SAC_SEGMENT_MASK : SAC_SEGMENT_OVERLAY);
            const char *clip = in_folder("phone.mp4"), *near = in_folder("cpu.mkv"),
                       *far = in_folder("gpu.mkv");
            display_copy(stored, clip, (enum sac_orientation)o);
            struct sac_pipeline_params params = params_of("cpu", clip, &segment);
            params.sink.encoder = "ffv1";
            params.video_out = near;
            assert_int_equal(run(&params).frames, FRAMES);
            params.job.device = "cuda";
            params.video_out = far;
            const struct sac_pipeline_stats stats = run(&params);
            print_message("%s, %s\n", sac_orientation_name((enum sac_orientation)o),
                          mask ? "mask" : "overlay");
            expect_same(near, far);
            check_ledger(&stats, (struct asked){.downloaded = PIXELS * FRAMES * (mask ? 2 : 3) / 2},
                         FRAMES, sac_orientation_name((enum sac_orientation)o));
        }
}

/* ---- without an output ---- */

struct seen {
    int      frames;
    uint64_t sum;
};

static uint64_t sum_of(const sac_frame *far)
{
    uint64_t   sum = 0;
    sac_frame  desc = *far;
    sac_frame *copy = NULL;
    desc.orientation = SAC_UPRIGHT;
    assert_sac_ok(sac_frame_create(cpu, &desc, &copy));
    assert_sac_ok(sac_frame_copy(far, copy));
    for (int y = 0; y < copy->height; y++)
        for (int x = 0; x < copy->width; x++)
            sum = sum * 31 + copy->plane[0][(size_t)y * copy->pitch_bytes[0] + (size_t)x];
    sac_frame_unref(&copy);
    return sum;
}

static int look(void *user, const sac_frame *frame, const sac_frame *matte)
{
    struct seen *seen = user;
    assert_int_equal(frame->number, seen->frames++);
    assert_true(matte->width == frame->width && matte->height == frame->height);
    return 0;
}

static int look_at_all(void *user, const sac_frame *frame, const sac_frame *matte)
{
    struct seen *seen = user;
    look(user, frame, matte);
    seen->sum = seen->sum * 31 + sum_of(matte);
    return 0;
}

/* Strict mode, where the device decodes; its ledger is empty anyway. */
static void nothing_crosses_without_an_output(void **state)
{
    (void)state;
    need_gpu();
    struct seen               seen = {0};
    struct sac_segment_params segment = bright(SAC_SEGMENT_OVERLAY);
    segment.on_matte = look;
    segment.on_matte_user = &seen;
    struct sac_pipeline_params params = params_of("cuda", write_clip("clip.mp4"), &segment);
    params.job.device_params.zero_copy_strict = decodes;
    const struct sac_pipeline_stats stats = run(&params);
    assert_int_equal(seen.frames, FRAMES);
    check_ledger(&stats, (struct asked){0}, FRAMES, "none");
}

/* The network's first run of each of two batches under way may come before it is a graph. */
static void expect_whole(const struct sac_pipeline_stats *stats)
{
    assert_in_range(stats->batch.whole, FRAMES - 2, FRAMES);
}

static void count_composite(void *user, const sac_frame *frame, const sac_frame *composite)
{
    assert_true(composite->width == frame->width && composite->height == frame->height);
    ++*(int *)user;
}

/* What a headset shows stays on the GPU. */
static void composites_stay_on_the_gpu(void **state)
{
    (void)state;
    need_gpu();
    int                       count = 0;
    struct sac_segment_params segment = bright(SAC_SEGMENT_CUTOUT);
    segment.on_composite = count_composite;
    segment.on_composite_user = &count;
    segment.mode = SAC_SEGMENT_VR;
    struct sac_pipeline_params params = params_of("cuda", write_clip("clip.mp4"), &segment);
    params.job.device_params.zero_copy_strict = decodes;
    const struct sac_pipeline_stats stats = run(&params);
    assert_int_equal(count, FRAMES);
    expect_whole(&stats);
    check_ledger(&stats, (struct asked){0}, FRAMES, "composites");
}

static void add_composite(void *user, const sac_frame *frame, const sac_frame *composite)
{
    uint64_t  *sum = user;
    sac_frame *near = NULL;
    assert_true(composite->number == frame->number && composite->pts_us == frame->pts_us);
    assert_sac_ok(sac_frame_create(cpu, composite, &near));
    assert_sac_ok(sac_frame_copy(composite, near));
    struct sac_plane_layout planes[SAC_PLANES_MAX];
    const int               n = sac_frame_planes(near->format, near->width, near->height, planes);
    for (int p = 0; p < n; p++)
        for (int y = 0; y < planes[p].rows; y++)
            for (size_t x = 0; x < planes[p].row_bytes; x++)
                *sum = *sum * 31 + near->plane[p][(size_t)y * near->pitch_bytes[p] + x];
    sac_frame_unref(&near);
}

/* They are made with their mattes there, but over a background. */
static void a_headsets_composites_are_the_others(void **state)
{
    (void)state;
    need_gpu();
    static const struct {
        enum sac_segment_as as;
        float               blur;
    } kinds[] = {{SAC_SEGMENT_OVERLAY, 0},
                 {SAC_SEGMENT_CUTOUT, 0},
                 {SAC_SEGMENT_CUTOUT, 3},
                 {SAC_SEGMENT_CLASSES, 0},
                 {SAC_SEGMENT_ALPHA_PACKED, 0}};
    const char *clip = write_clip("clip.mp4");
    for (size_t i = 0; i < SAC_COUNT(kinds); i++) {
        uint64_t sum[2] = {0};
        for (int vr = 0; vr < 2; vr++) {
            struct sac_segment_params segment = bright(kinds[i].as);
            segment.blur = kinds[i].blur;
            segment.on_composite = add_composite;
            segment.on_composite_user = &sum[vr];
            segment.mode = vr ? SAC_SEGMENT_VR : SAC_SEGMENT_THROUGHPUT;
            struct sac_pipeline_params      params = params_of("cuda", clip, &segment);
            const struct sac_pipeline_stats stats = run(&params);
            assert_int_equal(stats.frames, FRAMES);
            if (vr)
                expect_whole(&stats);
            else
                assert_int_equal(stats.batch.whole, 0);
        }
        if (sum[0] != sum[1] || sum[0] == 0)
            fail_msg("%s differs", sac_segment_as_name(kinds[i].as));
    }
}

static void the_mattes_are_the_cpus(void **state)
{
    (void)state;
    need_gpu();
    const char *clip = write_clip("clip.mp4");
    struct seen seen[2] = {{0}};
    for (int k = 0; k < 2; k++) {
        struct sac_segment_params segment = bright(SAC_SEGMENT_OVERLAY);
        segment.on_matte = look_at_all;
        segment.on_matte_user = &seen[k];
        struct sac_pipeline_params params = params_of(k ? "cuda" : "cpu", clip, &segment);
        run(&params);
        assert_int_equal(seen[k].frames, FRAMES);
    }
    assert_true(seen[0].sum == seen[1].sum && seen[0].sum != 0);
}

/* Strict mode says before the first frame what cannot be. */
static void strict_mode_refuses_outputs(void **state)
{
    (void)state;
    need_gpu();
    static const struct {
        enum sac_segment_as as;
        const char         *name;
    } kinds[] = {{SAC_SEGMENT_OVERLAY, "a.mp4"},
                 {SAC_SEGMENT_MASK, "a.mp4"},
                 {SAC_SEGMENT_PNG, "a"},
                 {SAC_SEGMENT_COCO, "a.json"}};
    const char *clip = write_clip("clip.mp4");
    for (size_t i = 0; i < SAC_COUNT(kinds); i++) {
        struct sac_segment_params  segment = bright(kinds[i].as);
        struct sac_pipeline_params params = params_of("cuda", clip, &segment);
        sac_pipeline              *pipe = NULL;
        char                       why[512];
        params.job.device_params.zero_copy_strict = 1;
        params.video_out = in_folder(kinds[i].name);
        sac_result res = sac_pipeline_create(test_context(), &params, &pipe);
        if (res == SAC_OK)
            res = sac_pipeline_run(pipe);
        sac_context_last_error(test_context(), why, sizeof why);
        sac_pipeline_destroy(&pipe);
        assert_int_equal(res, SAC_ERR_COPY);
        if (decodes && !strstr(why, "overlay-download"))
            fail_msg("%s", why);
        assert_int_equal(access(params.video_out, F_OK), -1);
    }
}

/* ---- sessions ---- */

/* Frames in host memory, whose size changes twice; what the mattes hold. */
static uint64_t push(const char *device, int frames, uint64_t live[2])
{
    struct sac_segment_params segment = bright(SAC_SEGMENT_OVERLAY);
    struct sac_session_params params = sac_session_params_default();
    sac_session              *s = NULL;
    uint64_t                  sum = 0;
    params.job.device = device;
    params.job.segment = &segment;
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    assert_sac_ok(sac_session_start(s));
    for (int i = 0; i < frames; i++) {
        const bool                small = i % 12 / 4 == 1;
        sac_frame                *f = picture(i % 12, small ? 131 : 200, small ? 77 : 120);
        struct sac_session_result r;
        f->pts_us = i * 40000;
        assert_sac_ok(sac_session_submit(s, f, i));
        sac_frame_unref(&f);
        assert_sac_ok(sac_session_result_wait(s, -1, &r));
        assert_sac_ok(r.status);
        assert_non_null(r.matte);
        assert_true(r.matte->width == (small ? 131 : 200));
        sum = sum * 31 + sum_of(r.matte);
        sac_session_result_finish(&r);
        struct sac_pool_stats pool;
        sac_device_pool_stats(sac_session_device(s), &pool);
        if (live && (i == frames / 4 || i == frames - 1))
            live[i == frames - 1] = pool.bytes_live + pool.bytes_idle;
    }
    sac_session_destroy(&s);
    return sum;
}

static void a_stream_changes_its_size(void **state)
{
    (void)state;
    need_gpu();
    assert_true(push("cpu", 12, NULL) == push("cuda", 12, NULL));
}

static void memory_does_not_grow(void **state)
{
    (void)state;
    need_gpu();
    uint64_t live[2];
    push("cuda", 240, live);
    if (live[1] > live[0])
        fail_msg("%llu bytes after a quarter, %llu at the end", (unsigned long long)live[0],
                 (unsigned long long)live[1]);
}

/* A video whose size changes is written in the first one's. */
static void a_video_changes_its_size(void **state)
{
    (void)state;
    need_gpu();
    if (access("clips/sizes.h264", R_OK) != 0 &&
        access("../share/saccade/clips/sizes.h264", R_OK)) {
        print_message("skipped: packaging/clips makes the clip\n");
        skip();
    }
    const char               *clip = clip_path("sizes.h264");
    struct sac_segment_params segment = bright(SAC_SEGMENT_CUTOUT);
    segment.blur = 5;
    struct sac_pipeline_params params = params_of("cpu", clip, &segment);
    params.video_out = in_folder("cpu.mp4");
    run(&params);
    params.job.device = "cuda";
    params.video_out = in_folder("gpu.mp4");
    run(&params);
    expect_same(in_folder("cpu.mp4"), in_folder("gpu.mp4"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_of_instances_are_the_cpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams_of_inputs_change_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_kind_is_the_cpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pictures_are_the_cpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turned_frames_come_out_upright, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_crosses_without_an_output, set_up, tear_down),
        cmocka_unit_test_setup_teardown(composites_stay_on_the_gpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_headsets_composites_are_the_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_mattes_are_the_cpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strict_mode_refuses_outputs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stream_changes_its_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_does_not_grow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_video_changes_its_size, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("pipeline/segment_gpu", tests, NULL, NULL);
}
