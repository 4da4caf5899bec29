/* SPDX-License-Identifier: Apache-2.0 */
/* Looks of tracked objects and the camera's motion: the CPU's entries against the host's own
 * gallery and estimate, the CUDA device's equal to the CPU's to the last bit. */
#include <sys/mman.h>

#include "tests/gpu.h"
#include "tests/parity/bytes.h"
#include "tests/track/picture.h"
#include "tests/vision/frames.h"
#include "track/cmc.h"
#include "track/gallery.h"
#include "vision/camera.h"
#include "vision/appearance.h"
#include "vision/vision.h"

/* ---- looks ---- */

enum {
    STREAMS = 3,
    OBJECTS = 12,
    ITEMS = 9,
    DIM_MAX = 520,
    OUT_MAX = STREAMS * (OBJECTS + 1) * ITEMS
};

/* Rows of each stream's frame, and what is done with them; the same on every device. */
struct frame {
    float  rows[STREAMS][ITEMS][DIM_MAX];
    int    items[STREAMS], objects[STREAMS];
    int    takes[STREAMS][OBJECTS]; /* an item, or -1 */
    bool   fresh[STREAMS][OBJECTS];
    double now_s[STREAMS];
};
static struct frame frames[6];

static void unit_row(float *row, int dim, int like)
{
    double square = 0;
    for (int i = 0; i < dim; i++) {
        row[i] = (float)((like * 31 + i * 7) % 13 - 6) + (float)test_between(-1000, 1000) / 250;
        square += (double)row[i] * row[i];
    }
    for (int i = 0; i < dim; i++)
        row[i] /= (float)sqrt(square);
}

/* A few looks that come again, so that some are blended and others start a view of their own. */
static void make_frame(struct frame *f, int dim, bool first, double now_s)
{
    for (int s = 0; s < STREAMS; s++) {
        f->now_s[s] = now_s + s / 2 * 0.1; /* some are of one time */
        f->items[s] = test_between(0, ITEMS);
        f->objects[s] = f->items[s] ? test_between(0, OBJECTS) : 0;
        if (first) /* everybody has a view from now on */
            f->items[s] = ITEMS, f->objects[s] = OBJECTS;
        for (int j = 0; j < f->items[s]; j++)
            unit_row(f->rows[s][j], dim, j % 3);
        for (int i = 0; i < f->objects[s]; i++) {
            f->takes[s][i] = first ? i % ITEMS : test_between(-1, f->items[s] - 1);
            f->fresh[s][i] = first || test_between(0, 5) == 0;
        }
    }
}

/* All frames' distances, one after another. away: where the first stream's rows are, [ITEMS,dim],
 * rather than beside those of the others; or NULL. */
static size_t run_appearance(sac_device *dev, struct sac_appearance_shape shape, int count,
                             float *away, float *out)
{
    const size_t slot_bytes = sac_appearance_slot_bytes(shape),
                 row_bytes = (size_t)shape.dim * sizeof(float);
    struct sac_buffer *slots = test_room(dev, STREAMS * OBJECTS * slot_bytes);
    struct sac_buffer *rows = test_room(dev, STREAMS * ITEMS * row_bytes),
                      *far = test_room(dev, OUT_MAX * sizeof(float));
    size_t                       at = 0;
    struct sac_appearance_update updates[STREAMS * OBJECTS];
    struct sac_appearance_ask    asks[STREAMS];
    void                        *slot_of[STREAMS * OBJECTS];
    const float                 *row_of[STREAMS * ITEMS];
    float                       *host = calloc(STREAMS * ITEMS, row_bytes);
    for (int i = 0; i < STREAMS * OBJECTS; i++)
        slot_of[i] = (char *)sac_buffer_data(slots) + (size_t)i * slot_bytes;
    for (int i = 0; i < STREAMS * ITEMS; i++)
        row_of[i] = (away && i < ITEMS ? away : (const float *)sac_buffer_data(rows)) +
                    (size_t)i * (size_t)shape.dim;
    for (int k = 0; k < count; k++) {
        const struct frame       *f = &frames[k];
        struct sac_appearance_job job = {
            .shape = shape, .updates = updates, .asks = asks, .out = sac_buffer_data(far)};
        size_t n = 0;
        for (int s = 0; s < STREAMS; s++) {
            for (int j = 0; j < f->items[s]; j++)
                memcpy(host + (size_t)(s * ITEMS + j) * (size_t)shape.dim, f->rows[s][j],
                       row_bytes);
            for (int i = 0; i < f->objects[s]; i++)
                if (f->takes[s][i] >= 0)
                    updates[job.update_count++] = (struct sac_appearance_update){
                        slot_of[s * OBJECTS + i], row_of[s * ITEMS + f->takes[s][i]], f->now_s[s],
                        f->fresh[s][i]};
            asks[job.ask_count++] = (struct sac_appearance_ask){
                &slot_of[s * OBJECTS], &row_of[s * ITEMS], f->objects[s], f->items[s]};
            n += sac_appearance_ask_out(&asks[s]);
        }
        test_write(dev, rows, host, STREAMS * ITEMS * row_bytes);
        if (away)
            memcpy(away, host, ITEMS * row_bytes);
        if (k % 2) { /* as a wave that settles */
            struct sac_appearance_job first = job;
            first.ask_count = job.update_count = 0;
            assert_sac_ok(dev->ops->vision->appearance(dev, NULL, &first));
        }
        assert_sac_ok(dev->ops->vision->appearance(dev, NULL, &job));
        if (n)
            test_read(dev, out + at, far, n * sizeof *out);
        at += n;
    }
    free(host);
    sac_buffer_unref(&slots);
    sac_buffer_unref(&rows);
    sac_buffer_unref(&far);
    return at;
}

static int make_frames(int dim)
{
    const int count = test_between(2, (int)SAC_COUNT(frames));
    for (int k = 0; k < count; k++)
        make_frame(&frames[k], dim, k == 0, k * 0.7);
    return count;
}

/* The entry does what the gallery in host memory does. */
static void appearance_is_that_of_the_gallery(void **state)
{
    (void)state;
    sac_device  *cpu = test_device();
    static float got[SAC_COUNT(frames) * OUT_MAX];
    for (int round = 0; round < 30; round++) {
        const struct sac_appearance_shape shape = {test_between(1, 70), test_between(1, 3)};
        const int                         count = make_frames(shape.dim);
        struct sac_gallery                g;
        int                               slot[STREAMS][OBJECTS];
        size_t                            at = 0;
        run_appearance(cpu, shape, count, NULL, got);
        sac_gallery_init(&g, shape.dim, shape.views_max);
        assert_true(sac_gallery_reserve(&g, STREAMS * OBJECTS + 1));
        for (int k = 0; k < count; k++) {
            const struct frame *f = &frames[k];
            for (int s = 0; s < STREAMS; s++)
                for (int i = 0; i < f->objects[s]; i++) {
                    if (f->takes[s][i] < 0)
                        continue;
                    if (f->fresh[s][i]) {
                        if (k > 0)
                            sac_gallery_give_back(&g, slot[s][i]);
                        slot[s][i] = sac_gallery_take(&g);
                    }
                    sac_gallery_add(&g, slot[s][i], f->rows[s][f->takes[s][i]], f->now_s[s]);
                }
            for (int s = 0; s < STREAMS; s++) {
                for (int j = 0; j < f->items[s]; j++)
                    assert_true(sac_appearance_is_unit(got[at++]));
                for (int i = 0; i < f->objects[s]; i++)
                    for (int j = 0; j < f->items[s]; j++)
                        assert_true(got[at++] ==
                                    sac_gallery_distance(&g, slot[s][i], f->rows[s][j]));
            }
        }
        sac_gallery_finish(&g);
    }
    sac_device_unref(&cpu);
}

static void the_gpu_compares_the_same(void **state)
{
    (void)state;
    sac_device  *gpu = gpu_open(NULL), *cpu = test_device();
    static float want[SAC_COUNT(frames) * OUT_MAX], got[SAC_COUNT(frames) * OUT_MAX];
    for (int round = 0; round < gpu_rounds(60); round++) {
        const struct sac_appearance_shape shape = {
            round % 3 ? test_between(1, DIM_MAX) : 8 * test_between(1, 64), test_between(1, 4)};
        const int    count = make_frames(shape.dim);
        const size_t n = run_appearance(cpu, shape, count, NULL, want);
        assert_int_equal(run_appearance(gpu, shape, count, NULL, got), n);
        for (size_t i = 0; i < n; i++)
            if (memcmp(&want[i], &got[i], sizeof *want) != 0)
                fail_msg("dim %d, %d views: number %zu of %zu is %.9g, the CPU has %.9g", shape.dim,
                         shape.views_max, i, n, (double)got[i], (double)want[i]);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

#ifdef SAC_EMULATED_GPU
/* Rows on both sides of more address space than 32 bits count: only emulated, as a GPU's memory
 * lies where it likes. */
static void rows_may_be_far_apart(void **state)
{
    (void)state;
    static float                      want[SAC_COUNT(frames) * OUT_MAX], got[SAC_COUNT(want)];
    const size_t                      space = (size_t)36 << 30, piece = sizeof frames[0].rows[0];
    const struct sac_appearance_shape shape = {70, 3};
    sac_device                       *gpu = gpu_open(NULL), *cpu = test_device();
    const int                         map = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *memory = mmap(NULL, space, PROT_READ | PROT_WRITE, map, -1, 0);
    if (memory == MAP_FAILED)
        skip();
    for (int round = 0; round < 4; round++) {
        const int    count = make_frames(shape.dim);
        const size_t n = run_appearance(cpu, shape, count, NULL, want);
        char        *away = memory + (round % 2 ? space - piece : 0);
        assert_int_equal(run_appearance(gpu, shape, count, (float *)(void *)away, got), n);
        assert_memory_equal(want, got, n * sizeof *want);
    }
    munmap(memory, space);
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}
#endif

/* ---- the camera ---- */

enum { CAMERAS = 5, LOOKS = 4, MOVING = 40 };

/* A scene as several frames show it, on the host. */
struct clip {
    sac_frame            *frame[LOOKS];
    struct sac_camera_box moving[MOVING];
    int                   moving_count;
};

static uint16_t luma_at(const sac_frame *f, int x, int y)
{
    const uint8_t *row = f->plane[0] + (size_t)y * f->pitch_bytes[0];
    const int      rgb = test_rgb_bytes(f->format);
    return row[f->format == SAC_PIXEL_P010 ? 2 * x + 1 : rgb ? rgb * x : x];
}

static void make_clip(sac_device *cpu, struct clip *c, int width, int height,
                      enum sac_pixel_format format)
{
    const int kind = test_between(0, 5); /* 0: flat, 1: noise, else a scene that moves */
    struct sac_similarity move = {.a = 1};
    for (int k = 0; k < LOOKS; k++) {
        c->frame[k] = test_frame(cpu, format, width, height);
        test_fill(c->frame[k], kind ? 0 : 90, kind ? 255 : 90, 128, 128);
        if (kind > 1)
            picture_take(c->frame[k], &move);
        move =
            (struct sac_similarity){1 + test_between(-20, 20) * 1e-3, test_between(-20, 20) * 1e-3,
                                    test_between(-200, 200) * 0.1, test_between(-200, 200) * 0.1};
    }
    /* A few large ones, or many small ones, whose edges some corners stand at; beyond the picture
     * too. */
    const bool many = test_between(0, 1);
    c->moving_count = many ? test_between(MOVING / 2, MOVING) : test_between(0, 3);
    for (int i = 0; i < c->moving_count; i++) {
        const float x = (float)test_between(-width / 9, width),
                    y = (float)test_between(-height / 9, height);
        const struct sac_rect rect = {x, y,
                                      x + (float)test_between(0, width / (many ? 8 : 2)) + 0.5f,
                                      y + (float)height / (many ? 12 : 3)};
        c->moving[i] = sac_camera_box_of(&rect, sac_camera_shrink(width));
    }
}

/* Moves of all clips, frame by frame, as batches on the device; lie: some of its frames are not
 * upright. */
static void run_cameras(sac_device *dev, struct clip *clips, int n, bool lie,
                        struct sac_camera_move moves[][CAMERAS])
{
    struct sac_buffer *out = test_room(dev, CAMERAS * sizeof(struct sac_camera_move)),
                      *memory[CAMERAS];
    size_t bytes[CAMERAS];
    for (int i = 0; i < n; i++) {
        sac_camera_pyramid_of(clips[i].frame[0]->width, clips[i].frame[0]->height, NULL, &bytes[i]);
        memory[i] = test_room(dev, 2 * bytes[i]);
    }
    for (int k = 0; k < LOOKS; k++) {
        struct sac_camera_job jobs[CAMERAS];
        sac_frame            *there[CAMERAS];
        for (int i = 0; i < n; i++) {
            const sac_frame *f = clips[i].frame[k];
            uint8_t         *pixels = sac_buffer_data(memory[i]);
            there[i] = test_lying(dev, f, lie ? test_orientation() : SAC_UPRIGHT);
            jobs[i] = (struct sac_camera_job){
                .frame = there[i],
                .shrink = sac_camera_shrink(f->width),
                .now = sac_camera_pyramid_of(f->width, f->height, pixels + k % 2 * bytes[i],
                                             &bytes[i]),
                .before = sac_camera_pyramid_of(f->width, f->height,
                                                pixels + (k + 1) % 2 * bytes[i], &bytes[i]),
                .has_before = k > 0,
                .moving = clips[i].moving,
                .moving_count = clips[i].moving_count};
        }
        assert_sac_ok(dev->ops->vision->camera(dev, NULL, jobs, n, sac_buffer_data(out)));
        test_read(dev, moves[k], out, (size_t)n * sizeof **moves);
        for (int i = 0; i < n; i++)
            sac_frame_unref(&there[i]);
    }
    for (int i = 0; i < n; i++)
        sac_buffer_unref(&memory[i]);
    sac_buffer_unref(&out);
}

static void finish_clips(struct clip *clips, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < LOOKS; k++)
            sac_frame_unref(&clips[i].frame[k]);
}

enum { SIZES = 13, ROUNDS = 30 };

/* Sizes where something ends: a level, a cell, a tile, the boxes of a small picture; a frame larger
 * than 16 rows a pixel. */
static void choose_size(int round, int *width, int *height)
{
    static const int sizes[SIZES][2] = {
        {16, 16},    {17, 33},    {35, 16},   {322, 241},   {480, 270}, {640, 480}, {97, 1300},
        {1919, 541}, {1280, 720}, {5440, 96}, {1080, 1920}, {100, 900}, {60, 560}};
    if (round < SIZES) {
        *width = sizes[round][0];
        *height = sizes[round][1];
    } else {
        *width = test_between(16, 700);
        *height = test_between(16, 600);
    }
}

static void the_gpu_sees_the_same_motion(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    int         found = 0;
    for (int round = 0; round < gpu_rounds(ROUNDS); round++) {
        struct clip            clips[CAMERAS];
        struct sac_camera_move want[LOOKS][CAMERAS], got[LOOKS][CAMERAS];
        const int              n = round < SIZES ? 1 : test_between(2, CAMERAS);
        for (int i = 0; i < n; i++) {
            int width, height;
            choose_size(round, &width, &height);
            make_clip(cpu, &clips[i], width, height, test_any_format());
        }
        run_cameras(cpu, clips, n, false, want);
        run_cameras(gpu, clips, n, test_between(0, 2) > 0, got);
        for (int k = 0; k < LOOKS; k++)
            for (int i = 0; i < n; i++) {
                const struct sac_camera_move *a = &want[k][i], *b = &got[k][i];
                const sac_frame              *f = clips[i].frame[k];
                found += a->agreed > 0;
                if (memcmp(a, b, sizeof *a) != 0)
                    fail_msg("%dx%d %s, frame %d: %.17g %.17g %.17g %.17g, %d of %d; the CPU has "
                             "%.17g %.17g %.17g %.17g, %d of %d",
                             f->width, f->height, sac_pixel_format_name(f->format), k, b->a, b->b,
                             b->tx, b->ty, b->agreed, b->matches, a->a, a->b, a->tx, a->ty,
                             a->agreed, a->matches);
            }
        finish_clips(clips, n);
    }
    /* Most of the scenes do move; the first are tiny. */
    assert_true(found > 20 || gpu_rounds(ROUNDS) < ROUNDS);
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

/* The CPU's entry takes batches, and its pictures are means of the frame's pixels. */
static void the_cpu_shrinks_and_batches(void **state)
{
    (void)state;
    sac_device            *cpu = test_device();
    struct clip            clips[2];
    struct sac_camera_move both[LOOKS][CAMERAS], one[LOOKS][CAMERAS];
    make_clip(cpu, &clips[0], 1300, 700, SAC_PIXEL_NV12);
    make_clip(cpu, &clips[1], 330, 240, SAC_PIXEL_P010);
    run_cameras(cpu, clips, 2, false, both);
    run_cameras(cpu, clips + 1, 1, false, one);
    for (int k = 0; k < LOOKS; k++)
        assert_memory_equal(&both[k][1], &one[k][0], sizeof one[k][0]);
    size_t                 bytes;
    const sac_frame       *f = clips[0].frame[0];
    static uint8_t         memory[2][200000];
    struct sac_camera_job  job = {.frame = f, .shrink = sac_camera_shrink(1300)};
    struct sac_camera_move move;
    job.now = sac_camera_pyramid_of(1300, 700, memory[0], &bytes);
    assert_in_range(bytes, 1, sizeof memory[0]);
    sac_camera_on_host(&job, &move);
    const struct sac_camera_plane *level = &job.now.level[0];
    assert_int_equal(level->width, 325);
    for (int y = 0; y < level->height; y++)
        for (int x = 0; x < level->width; x++) {
            unsigned sum = 0;
            for (int i = 0; i < 16; i++)
                sum += luma_at(f, 4 * x + i % 4, 4 * y + i / 4);
            assert_int_equal(level->pixels[y * level->width + x], sum / 16);
        }
    finish_clips(clips, 2);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appearance_is_that_of_the_gallery),
        cmocka_unit_test(the_cpu_shrinks_and_batches),
        cmocka_unit_test(the_gpu_compares_the_same),
#ifdef SAC_EMULATED_GPU
        cmocka_unit_test(rows_may_be_far_apart),
#endif
        cmocka_unit_test(the_gpu_sees_the_same_motion),
    };
    return cmocka_run_group_tests_name("parity/track", tests, NULL, NULL);
}
