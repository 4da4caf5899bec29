/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes on the CUDA device equal those of the CPU to the last bit: pixels, the memory of streams,
 * summaries. Batches have frames of several streams, consecutive ones of each. */
#include <math.h>
#include <stdio.h>

#include "tests/gpu.h"
#include "tests/parity/bytes.h"
#include "tests/vision/frames.h"
#include "vision/matte.h"

enum { STREAMS_MAX = 3, LOOKS_MAX = 11, BATCHES = 2, PAINT = 77 };

/* ---- device memory ---- */

static struct sac_buffer *room(sac_device *dev, size_t size, int fill)
{
    void *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, fill, size);
    struct sac_buffer *buf = test_put(dev, bytes, size);
    free(bytes);
    return buf;
}

/* ---- scenes ---- */

/* A stream's size and way to the network's input. */
struct stream {
    enum sac_pixel_format format;
    int                   width, height;
    struct sac_rect       crop;
    struct sac_fit_map    map;
    int                   kind;   /* 0: stands still, 1: noise, 2: moves, 3: stands and moves */
    int                   dx, dy; /* pixels from frame to frame */
};

/* One frame of a batch. */
struct look {
    int                  stream;
    sac_frame           *frame; /* the CPU's, upright */
    enum sac_orientation orientation;
    int                  image;
    bool                 has_before, summary, odd; /* odd: rows of the matte are not aligned */
    unsigned             turn;
};

struct scene {
    struct sac_matte_spec  spec;
    struct sac_matte_style style;
    struct stream          stream[STREAMS_MAX];
    int                    streams, count;
    struct look            look[BATCHES][LOOKS_MAX];
    void                  *tensor[BATCHES];
    size_t                 tensor_bytes, state_bytes;
};

static int noise_at(int x, int y)
{
    uint32_t h = (uint32_t)x * 2654435761u ^ (uint32_t)y * 2246822519u;
    h ^= h >> 15;
    h *= 2654435761u;
    return (int)(h >> 24);
}

/* A picture that moves, in the plane that luma is read from. */
static void paint(sac_frame *f, const struct stream *s, int time)
{
    const int  bytes = test_rgb_bytes(f->format), step = bytes ? bytes : 1;
    const bool words = f->format == SAC_PIXEL_P010;
    test_fill(f, 0, s->kind == 1 ? 255 : 0, 128, 128);
    for (int y = 0; y < f->height && s->kind != 1; y++)
        for (int x = 0; x < f->width; x++) {
            const bool goes = s->kind == 2 || (s->kind == 3 && x > f->width / 2);
            const int  px = x + (goes ? s->dx * time : 0), py = y + (goes ? s->dy * time : 0);
            const int  v = (noise_at(px / 7, py / 5) * 3 + noise_at(px, py) +
                           test_between(0, s->kind > 0 ? 3 : 0)) /
                          4;
            uint8_t *row = f->plane[0] + (size_t)y * f->pitch_bytes[0];
            for (int c = 0; c < step; c++)
                row[words ? 2 * x + 1 : step * x + c] = (uint8_t)v;
        }
}

static float number_for(enum sac_matte_form form, int classes)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 70000.0f, -0.0f, -3.0f};
    if (test_between(0, 400) == 0)
        return odd[test_between(0, 5)];
    switch (form) {
    case SAC_MATTE_SHARE: return (float)test_between(-10, 110) / 100.0f;
    case SAC_MATTE_CLASS_SHARES: return (float)test_between(0, 300) / 100.0f / (float)classes;
    case SAC_MATTE_LABEL: return (float)test_between(-2, 300);
    default: return (float)test_between(-900, 900) / 100.0f;
    }
}

/* Finite halves in their usual range, and the odd ones. */
static uint16_t half_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 0xff;
    if (exponent == 0xff || exponent > 142)
        return (uint16_t)(sign | 0x7c00 | (bits & 0x7fffff ? 0x200 : 0));
    if (exponent < 113)
        return (uint16_t)(sign | (bits >> 16 & 0x3ff)); /* some subnormal one */
    return (uint16_t)(sign | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

static void fill_tensor(struct scene *s, void *tensor, size_t numbers)
{
    for (size_t i = 0; i < numbers; i++) {
        const float v = number_for(s->spec.form, s->spec.classes);
        const int   whole = fabsf(v) < 400 ? (int)v : 0;
        switch (s->spec.value.dtype) {
        case SAC_F16: ((uint16_t *)tensor)[i] = half_of(v); break;
        case SAC_I32: ((int32_t *)tensor)[i] = whole; break;
        case SAC_I64: ((int64_t *)tensor)[i] = whole; break;
        default: ((float *)tensor)[i] = v; break;
        }
    }
}

static void random_spec(struct scene *s)
{
    static const enum sac_dtype dtypes[] = {SAC_F32, SAC_F16, SAC_I32, SAC_I64};
    struct sac_matte_spec      *p = &s->spec;
    p->form = (enum sac_matte_form)test_between(SAC_MATTE_SHARE, SAC_MATTE_LABEL);
    const bool many = p->form == SAC_MATTE_CLASS_LOGITS || p->form == SAC_MATTE_CLASS_SHARES;
    p->width = test_between(1, test_between(0, 3) ? 40 : 90);
    p->height = test_between(1, test_between(0, 3) ? 40 : 90);
    p->input_width = p->width * test_between(1, 4) + test_between(0, 2);
    p->input_height = p->height * test_between(1, 4) + test_between(0, 2);
    p->classes = many ? test_between(0, 5) ? test_between(1, 6) : test_between(20, 256) : 1;
    if (p->classes > 6)
        p->width = p->width % 12 + 1;
    for (size_t i = 0; i < SAC_COUNT(p->wanted); i++)
        p->wanted[i] = test_random();
    const int64_t cells = (int64_t)p->width * p->height;
    const bool    woven = test_between(0, 1);
    p->value = (struct sac_detect_field){.dtype = dtypes[test_between(0, 3)],
                                         .first = test_between(0, 5),
                                         .image = cells * p->classes + test_between(0, 3),
                                         .cell = woven ? p->classes : 1,
                                         .number = woven ? 1 : cells};
}

static void random_style(struct scene *s)
{
    const float low = (float)test_between(0, 4) / 10.0f;
    s->style = (struct sac_matte_style){
        .classes = test_between(0, 3) == 0,
        .guide = test_between(0, 2) ? test_between(1, 4) : test_between(0, 1) * SAC_MATTE_GUIDE_MAX,
        .guide_noise = (float)test_between(1, 30) * 0.9f + 0.1f,
        .smooth = test_between(0, 3) ? (float)test_between(1, 95) / 100.0f : 0.0f,
        .hole = test_between(0, 1) ? test_between(0, 3) : test_between(0, SAC_MATTE_HOLE_MAX),
        .low = low,
        .high = low + (float)test_between(1, 6) / 10.0f};
}

static void random_stream(const struct scene *s, struct stream *t)
{
    static const int      sizes[][2] = {{1, 1}, {4096, 16}, {3, 500}, {1201, 2}};
    const int             any = test_between(0, 14);
    struct sac_preprocess pre = sac_preprocess_default();
    t->format = test_any_format();
    t->width = any < 4 ? sizes[any][0] : test_between(1, 260);
    t->height = any < 4 ? sizes[any][1] : test_between(1, 200);
    t->kind = test_between(0, 3);
    t->dx = test_between(-9, 9);
    t->dy = test_between(-9, 9);
    sac_frame desc = {.width = t->width, .height = t->height};
    t->crop = test_random_crop(&desc);
    pre.width = s->spec.input_width;
    pre.height = s->spec.input_height;
    pre.fit = (enum sac_fit)test_between(0, 2);
    const struct sac_rect whole = {0, 0, (float)t->width, (float)t->height};
    t->map = sac_fit_map_of(&pre, t->crop.x1 > t->crop.x0 ? &t->crop : &whole);
}

/* Frames of all streams in any order; of each stream one after another. */
static void random_looks(sac_device *cpu, struct scene *s, int images)
{
    unsigned turn[STREAMS_MAX] = {0};
    int      time[STREAMS_MAX] = {0};
    for (int b = 0; b < BATCHES; b++)
        for (int i = 0; i < s->count; i++) {
            struct look         *l = &s->look[b][i];
            const int            k = test_between(0, s->streams - 1);
            const struct stream *t = &s->stream[k];
            if (time[k] == 0)
                turn[k] = test_random() & 7;
            *l = (struct look){.stream = k,
                               .orientation = test_between(0, 1) ? test_orientation() : SAC_UPRIGHT,
                               .image = test_between(0, images - 1),
                               .has_before = time[k] > 0 && test_between(0, 9) > 0,
                               .summary = !s->style.classes && test_between(0, 1),
                               .odd = test_between(0, 2) == 0,
                               .turn = turn[k]++};
            if (l->has_before && !s->style.classes && test_between(0, 3) == 0)
                l->image = -1;
            l->frame = test_frame(cpu, t->format, t->width, t->height);
            paint(l->frame, t, time[k]++);
        }
}

static void make_scene(sac_device *cpu, struct scene *s)
{
    const int images = test_between(1, LOOKS_MAX);
    *s = (struct scene){.streams = test_between(1, STREAMS_MAX),
                        .count = test_between(1, LOOKS_MAX)};
    random_spec(s);
    random_style(s);
    s->state_bytes = sac_matte_bytes(&s->spec);
    for (int i = 0; i < s->streams; i++)
        random_stream(s, &s->stream[i]);
    random_looks(cpu, s, images);
    const size_t numbers = (size_t)(s->spec.value.first + s->spec.value.image * images);
    s->tensor_bytes = numbers * sac_dtype_bytes(s->spec.value.dtype);
    for (int b = 0; b < BATCHES; b++) {
        s->tensor[b] = malloc(s->tensor_bytes);
        assert_non_null(s->tensor[b]);
        fill_tensor(s, s->tensor[b], numbers);
    }
}

static void finish_scene(struct scene *s)
{
    for (int b = 0; b < BATCHES; b++) {
        free(s->tensor[b]);
        for (int i = 0; i < s->count; i++)
            sac_frame_unref(&s->look[b][i].frame);
    }
}

/* ---- a device's way ---- */

struct answer {
    size_t                   pitch[BATCHES][LOOKS_MAX];
    uint8_t                 *matte[BATCHES][LOOKS_MAX];
    uint8_t                 *state[STREAMS_MAX];
    struct sac_matte_summary summary[BATCHES][LOOKS_MAX];
};

/* Over memory of our own, so that rows may begin anywhere; a frame that is wrapped could not be
 * written. */
static sac_frame *out_frame(sac_device *dev, const struct look *l, struct sac_buffer *memory,
                            size_t pitch)
{
    sac_frame *out = NULL;
    sac_frame  desc = {.format = SAC_PIXEL_GRAY8,
                       .width = l->frame->width,
                       .height = l->frame->height,
                       .plane = {(uint8_t *)sac_buffer_data(memory) + (l->odd ? 3 : 0)},
                       .pitch_bytes = {pitch}};
    assert_sac_ok(sac_frame_create(dev, &desc, &out));
    out->plane[0] = desc.plane[0];
    out->pitch_bytes[0] = pitch;
    return out;
}

static size_t out_pitch(const struct look *l)
{
    const size_t width = (size_t)l->frame->width;
    return l->odd ? width + 5 : (width + 63) & ~(size_t)63;
}

static size_t out_bytes(const struct look *l)
{
    return out_pitch(l) * (size_t)l->frame->height + 8;
}

static void run_batch(sac_device *dev, const struct scene *s, int b, struct sac_buffer **state,
                      bool lies, struct answer *a)
{
    struct sac_matte_job jobs[LOOKS_MAX];
    sac_frame           *frame[LOOKS_MAX];
    struct sac_buffer   *memory[LOOKS_MAX], *tensor = test_put(dev, s->tensor[b], s->tensor_bytes),
                                          *sums = room(dev, sizeof a->summary[b], PAINT);
    const void *tensors[SAC_MATTE_TENSORS_MAX] = {sac_buffer_data(tensor)};
    for (int i = 0; i < s->count; i++) {
        const struct look   *l = &s->look[b][i];
        const struct stream *t = &s->stream[l->stream];
        frame[i] = test_lying(dev, l->frame, lies ? l->orientation : SAC_UPRIGHT);
        memory[i] = room(dev, out_bytes(l), PAINT);
        jobs[i] = (struct sac_matte_job){
            .frame = frame[i],
            .crop = t->crop,
            .image = l->image,
            .map = t->map,
            .summary = l->summary ? (struct sac_matte_summary *)sac_buffer_data(sums) + i : NULL,
            .out = out_frame(dev, l, memory[i], out_pitch(l))};
        if (!s->style.classes)
            jobs[i].state =
                (struct sac_matte_state){sac_buffer_data(state[l->stream]), l->has_before, l->turn};
    }
    assert_sac_ok(sac_matte_run_on(dev, NULL, &s->spec, &s->style, tensors, jobs, s->count));
    for (int i = 0; i < s->count; i++) {
        a->matte[b][i] = test_get(dev, memory[i], out_bytes(&s->look[b][i]));
        sac_frame_unref(&jobs[i].out);
        sac_frame_unref(&frame[i]);
        sac_buffer_unref(&memory[i]);
    }
    uint8_t *bytes = test_get(dev, sums, sizeof a->summary[b]);
    memcpy(a->summary[b], bytes, sizeof a->summary[b]);
    free(bytes);
    sac_buffer_unref(&tensor);
    sac_buffer_unref(&sums);
}

static void run_scene(sac_device *dev, const struct scene *s, bool lies, struct answer *a)
{
    struct sac_buffer *state[STREAMS_MAX] = {NULL};
    for (int i = 0; i < s->streams; i++)
        state[i] = room(dev, s->state_bytes, 0);
    for (int b = 0; b < BATCHES; b++)
        run_batch(dev, s, b, state, lies, a);
    for (int i = 0; i < s->streams; i++) {
        a->state[i] = test_get(dev, state[i], s->state_bytes);
        sac_buffer_unref(&state[i]);
    }
}

static void finish_answer(const struct scene *s, struct answer *a)
{
    for (int i = 0; i < s->streams; i++)
        free(a->state[i]);
    for (int b = 0; b < BATCHES; b++)
        for (int i = 0; i < s->count; i++)
            free(a->matte[b][i]);
}

/* ---- both ---- */

static void describe(const struct scene *s, int b, int i, char *to, size_t size)
{
    const struct look   *l = &s->look[b][i];
    const struct stream *t = &s->stream[l->stream];
    snprintf(
        to, size,
        "batch %d, frame %d of %d, stream %d: %dx%d %s turned %d, crop %g,%g..%g,%g, image %d, "
        "turn %u%s; map %dx%d, form %d, %s, %d classes; guide %d noise %g smooth %g hole %d%s",
        b, i, s->count, l->stream, t->width, t->height, sac_pixel_format_name(t->format),
        (int)l->orientation, (double)t->crop.x0, (double)t->crop.y0, (double)t->crop.x1,
        (double)t->crop.y1, l->image, l->turn, l->has_before ? " after another" : "", s->spec.width,
        s->spec.height, (int)s->spec.form, sac_dtype_name(s->spec.value.dtype), s->spec.classes,
        s->style.guide, (double)s->style.guide_noise, (double)s->style.smooth, s->style.hole,
        s->style.classes ? ", of classes" : "");
}

static void assert_equal_mattes(const struct scene *s, const struct answer *want,
                                const struct answer *got)
{
    char what[512];
    for (int b = 0; b < BATCHES; b++)
        for (int i = 0; i < s->count; i++) {
            const struct look *l = &s->look[b][i];
            describe(s, b, i, what, sizeof what);
            if (memcmp(&want->summary[b][i], &got->summary[b][i], sizeof want->summary[b][i]) != 0)
                fail_msg("another summary: %s", what);
            for (size_t k = 0; k < out_bytes(l); k++)
                if (want->matte[b][i][k] != got->matte[b][i][k])
                    fail_msg("byte %zu of rows of %zu is %d, the CPU has %d: %s", k, out_pitch(l),
                             got->matte[b][i][k], want->matte[b][i][k], what);
        }
    for (int i = 0; i < s->streams; i++)
        for (size_t k = 0; k < s->state_bytes; k++)
            if (want->state[i][k] != got->state[i][k]) {
                describe(s, 0, 0, what, sizeof what);
                fail_msg("byte %zu of the state of stream %d of %d is another: %s", k, i,
                         s->streams, what);
            }
}

static void the_gpu_makes_the_same_mattes(void **state)
{
    (void)state;
    static struct scene  s;
    static struct answer want, got;
    sac_device          *gpu = gpu_open(NULL), *cpu = test_device();
    for (int round = 0; round < gpu_rounds(300); round++) {
        make_scene(cpu, &s);
        run_scene(cpu, &s, false, &want);
        run_scene(gpu, &s, true, &got);
        assert_equal_mattes(&s, &want, &got);
        finish_answer(&s, &want);
        finish_answer(&s, &got);
        finish_scene(&s);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gpu_makes_the_same_mattes),
    };
    return cmocka_run_group_tests_name("parity/matte", tests, NULL, NULL);
}
