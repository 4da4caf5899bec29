/* SPDX-License-Identifier: Apache-2.0 */
/* Waves of trackers on a device: the CPU dressed up as one whose memory is not the host's, so that
 * all goes the way it goes on a GPU; and on a GPU, where there is one. The tracks are those of the
 * host's way. */
#include "tests/gpu.h"
#include "tests/track/shots.h"
#include "track/core.h"
#include "vision/cpu/cpu.h"

enum { STREAMS = 5, FRAMES = 40, TRACKS_MAX = 64 };

/* ---- a device ---- */

static struct sac_device_ops remote_ops;
static struct sac_vision_ops remote_vision;
static int                   trips_measured;
static int                   looks_fail_in; /* calls until one fails; 0: none does */

static sac_result appearance_or_fail(struct sac_device *dev, struct sac_device_stream *stream,
                                     const struct sac_appearance_job *job)
{
    if (looks_fail_in && --looks_fail_in == 0)
        return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "test: embeddings fail");
    return sac_vision_cpu.appearance(dev, stream, job);
}

static sac_device *open_remote(void)
{
    sac_device *dev = test_device();
    remote_ops = *dev->ops;
    remote_ops.host_memory = false;
    remote_ops.vision = &remote_vision;
    remote_vision = sac_vision_cpu;
    remote_vision.appearance = appearance_or_fail;
    dev->ops = &remote_ops;
    return dev;
}

static void close_device(sac_device **dev)
{
    struct sac_pool_stats stats;
    sac_device_pool_stats(*dev, &stats);
    assert_int_equal(stats.bytes_live, 0);
    sac_device_unref(dev);
}

/* ---- trackers ---- */

struct side {
    sac_context *ctx;
    sac_tracker *trk[STREAMS];
};

static void open_side(struct side *side, int views)
{
    struct sac_tracker_params p = sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    p.embedding_dim = DIM;
    p.gallery_max = views;
    assert_sac_ok(sac_context_create(NULL, &side->ctx));
    for (int i = 0; i < STREAMS; i++)
        assert_sac_ok(sac_tracker_create(side->ctx, &p, &side->trk[i]));
}

static void close_side(struct side *side)
{
    for (int i = 0; i < STREAMS; i++)
        sac_tracker_destroy(&side->trk[i]);
    sac_context_destroy(&side->ctx);
}

struct shown {
    struct sac_track tracks[TRACKS_MAX];
    size_t           count;
};

static void keep(struct shown *to, const struct sac_track_view *view)
{
    assert_in_range(view->count, 0, TRACKS_MAX);
    memcpy(to->tracks, view->tracks, view->count * sizeof *view->tracks);
    to->count = view->count;
}

static void assert_same(const struct shown *a, const struct shown *b, int number, int stream)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct sac_track *x = &a->tracks[i], *y = &b->tracks[i];
        if (x->id != y->id || x->x0 != y->x0 || x->y1 != y->y1 || x->vx != y->vx ||
            x->detection != y->detection)
            fail_msg("frame %d of stream %d: track %zu is %lld at %.9g,%.9g, on the host %lld at "
                     "%.9g,%.9g",
                     number, stream, i, (long long)y->id, (double)y->x0, (double)y->y1,
                     (long long)x->id, (double)x->x0, (double)x->y1);
    }
}

/* The host's way: rows in the order of the detections. */
static void on_host(struct side *side, const struct shot *shots, int number, struct shown *out)
{
    for (int s = 0; s < STREAMS; s++) {
        float                 embedding[PEOPLE][DIM] = {{0}};
        struct sac_track_view view;
        for (int i = 0; i < shots[s].count; i++)
            if (shots[s].row[i] >= 0)
                memcpy(embedding[i], shots[s].rows[shots[s].row[i]], sizeof embedding[i]);
        assert_sac_ok(sac_tracker_update(side->trk[s], shots[s].det, (size_t)shots[s].count,
                                         embedding[0], shots[s].frame, number * 40000, &view));
        keep(&out[s], &view);
    }
}

static sac_frame *there(sac_device *dev, const sac_frame *frame)
{
    sac_frame *f = frame ? test_frame(dev, frame->format, frame->width, frame->height) : NULL;
    if (f)
        assert_sac_ok(sac_frame_copy(frame, f));
    return f;
}

/* All streams' rows as one batch; returns where each stream's begin. */
static struct sac_embeddings *make_embeddings(sac_device *dev, const struct shot *shots,
                                              int32_t rows[][PEOPLE])
{
    struct sac_embeddings *f = NULL;
    float                  all[STREAMS * PEOPLE][DIM];
    int                    n = 0;
    for (int s = 0; s < STREAMS; s++) {
        for (int i = 0; i < shots[s].count; i++)
            rows[s][i] = shots[s].row[i] < 0 ? -1 : n + shots[s].row[i];
        memcpy(all[n], shots[s].rows, (size_t)shots[s].row_count * sizeof all[0]);
        n += shots[s].row_count;
    }
    assert_sac_ok(sac_embeddings_create(dev, SAC_MAX(n, 1), DIM, &f));
    assert_sac_ok(sac_device_copy(dev, NULL, sac_embeddings_data(f), all, (size_t)n * sizeof all[0],
                                  SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "test"));
    assert_sac_ok(dev->ops->event_record(f->ready, NULL));
    return f;
}

static sac_result in_a_wave(struct sac_wave *wave, sac_device *dev, struct side *side,
                            const struct shot *shots, int number, struct shown *out)
{
    int32_t                rows[STREAMS][PEOPLE];
    struct sac_embeddings *f = make_embeddings(dev, shots, rows);
    sac_frame             *frames[STREAMS];
    for (int s = 0; s < STREAMS; s++) {
        frames[s] = there(dev, shots[s].frame);
        struct sac_tracker_input in = {.det = shots[s].det,
                                       .count = (size_t)shots[s].count,
                                       .frame = frames[s],
                                       .pts_us = number * 40000};
        in.embeddings = (struct sac_embedding_rows){.dev = dev,
                                                    .base = sac_embeddings_data(f),
                                                    .count = f->count,
                                                    .dim = f->dim,
                                                    .row = rows[s],
                                                    .batch = f};
        assert_sac_ok(sac_wave_add(wave, side->trk[s], &in));
    }
    sac_result res = sac_wave_run(wave);
    assert_int_equal(sac_wave_count(wave), res == SAC_OK ? STREAMS : 0);
    for (size_t s = 0; s < sac_wave_count(wave); s++) {
        struct sac_track_view view;
        sac_wave_finish(wave, s, &view);
        keep(&out[s], &view);
    }
    if (number % 3 != 0) /* blended now or with the next frame: the same comes out */
        sac_wave_settle(wave);
    sac_wave_clear(wave);
    if (number % 6 == 1)
        sac_wave_rest(wave);
    int64_t device_ns, begun_ns = 0;
    device_ns = sac_wave_device_ns(wave, &begun_ns);
    if (device_ns > 0) { /* it is measured: on the host's clock the trip was just now */
        assert_in_range(device_ns, 1, 10000000000);
        assert_in_range(sac_time_ns() - begun_ns, 1, 10000000000);
        trips_measured++;
    }
    sac_embeddings_unref(&f); /* the trackers have a reference for what they still blend */
    for (int s = 0; s < STREAMS; s++)
        sac_frame_unref(&frames[s]);
    return res;
}

static void one_by_one(sac_device *dev, struct side *side, const struct shot *shots, int number,
                       struct shown *out)
{
    for (int s = 0; s < STREAMS; s++) {
        struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {PEOPLE, DIM}};
        sac_tensor            *embedding = NULL;
        sac_frame             *frame = there(dev, shots[s].frame);
        struct sac_track_view  view;
        assert_sac_ok(sac_tensor_create(dev, &desc, "test", &embedding));
        assert_sac_ok(sac_tensor_upload(embedding, shots[s].rows));
        assert_sac_ok(sac_tracker_update_tensor(side->trk[s], shots[s].det, (size_t)shots[s].count,
                                                embedding, shots[s].row, frame, number * 40000,
                                                &view));
        sac_tensor_unref(&embedding);
        sac_frame_unref(&frame);
        keep(&out[s], &view);
    }
}

/* The same scene in three ways. */
static void compare_ways(sac_device *dev, sac_device *cpu, int views)
{
    struct side         host, wave_side, single;
    struct sac_wave    *wave = NULL;
    static struct shot  shots[STREAMS];
    static struct shown want[STREAMS], got[STREAMS];
    size_t              tracks = 0;
    open_side(&host, views);
    open_side(&wave_side, views);
    open_side(&single, views);
    assert_sac_ok(sac_wave_create(dev, &wave));
    for (int k = 0; k < FRAMES; k++) {
        for (int s = 0; s < STREAMS; s++)
            make_shot(&shots[s], s, k, cpu);
        on_host(&host, shots, k, want);
        assert_sac_ok(in_a_wave(wave, dev, &wave_side, shots, k, got));
        for (int s = 0; s < STREAMS; s++)
            assert_same(&want[s], &got[s], k, s);
        one_by_one(dev, &single, shots, k, got);
        for (int s = 0; s < STREAMS; s++) {
            assert_same(&want[s], &got[s], k, s);
            tracks += want[s].count;
            sac_frame_unref(&shots[s].frame);
        }
    }
    assert_true(tracks > FRAMES * STREAMS * PEOPLE / 2); /* people are followed, so looks were
                                                            compared */
    sac_wave_destroy(&wave);
    close_side(&host);
    close_side(&wave_side);
    close_side(&single);
}

static void the_tracks_are_those_of_the_host(void **state)
{
    (void)state;
    sac_device *dev = open_remote(), *cpu = test_device();
    for (int views = 1; views <= 3; views++)
        compare_ways(dev, cpu, views);
    close_device(&dev);
    sac_device_unref(&cpu);
}

static void they_are_on_a_gpu(void **state)
{
    (void)state;
    sac_device           *dev = gpu_open(NULL), *cpu = test_device();
    struct sac_pool_stats first, later;
    for (int views = 1; views <= 3; views++) {
        compare_ways(dev, cpu, views);
        sac_device_pool_stats(dev, views == 1 ? &first : &later);
    }
    assert_int_equal(first.bytes_live, later.bytes_live); /* the device has some buffers of its own
                                                           */
    sac_device_unref(&dev);
    sac_device_unref(&cpu);
}

/* All that crosses is small: no row, no pixel. */
static void little_crosses(void **state)
{
    (void)state;
    sac_device         *dev = open_remote(), *cpu = test_device();
    struct side         side;
    struct sac_wave    *wave = NULL;
    static struct shot  shots[STREAMS];
    static struct shown got[STREAMS];
    struct sac_ledger   before, after;
    uint64_t            uploads = 0;
    open_side(&side, 1);
    assert_sac_ok(sac_wave_create(dev, &wave));
    sac_wave_measure(wave);
    trips_measured = 0;
    sac_device_ledger(dev, &before);
    for (int k = 0; k < FRAMES; k++) {
        for (int s = 0; s < STREAMS; s++)
            make_shot(&shots[s], s, k, cpu);
        assert_sac_ok(in_a_wave(wave, dev, &side, shots, k, got));
        for (int s = 0; s < STREAMS; s++)
            sac_frame_unref(&shots[s].frame);
        uploads++;
    }
    assert_int_equal(trips_measured, FRAMES);
    sac_device_ledger(dev, &after);
    assert_int_equal(after.reason[SAC_COPY_BOXES].calls - before.reason[SAC_COPY_BOXES].calls,
                     FRAMES);
    assert_in_range(after.reason[SAC_COPY_BOXES].bytes, 1, FRAMES * STREAMS * 1000);
    assert_int_equal(after.reason[SAC_COPY_TENSOR_USER].calls -
                         before.reason[SAC_COPY_TENSOR_USER].calls,
                     uploads);
    assert_int_equal(after.reason[SAC_COPY_FRAME_DOWNLOAD].calls, 0);
    sac_wave_destroy(&wave);
    close_side(&side);
    close_device(&dev);
    sac_device_unref(&cpu);
}

/* Crowds of many streams at once ask for more than was taken for a trip: they go in several, and
 * none takes more. */
static void a_full_wave_says_so(void **state)
{
    (void)state;
    enum { CROWD = 300, MANY = 12, TURNS = 4 };
    static struct sac_detection det[CROWD];
    static float                all[CROWD][DIM];
    sac_device                 *dev = open_remote();
    struct sac_tracker_params   p = sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    sac_tracker                *trk[MANY] = {NULL};
    struct sac_wave            *wave = NULL;
    struct sac_embeddings      *f = NULL;
    int                         full = 0, tracks = 0;
    p.embedding_dim = DIM;
    for (int i = 0; i < CROWD; i++) {
        const float x = (float)(i % 20) * 40, y = (float)(i / 20) * 90;
        det[i] = (struct sac_detection){x, y, x + 30, y + 80, 0.9f, 0};
        all[i][i % DIM] = 1;
    }
    assert_sac_ok(sac_wave_create(dev, &wave));
    assert_sac_ok(sac_wave_warm_up(wave));
    assert_sac_ok(sac_embeddings_create(dev, CROWD, DIM, &f));
    memcpy(sac_embeddings_data(f), all, sizeof all);
    assert_sac_ok(dev->ops->event_record(f->ready, NULL));
    for (int s = 0; s < MANY; s++) {
        assert_sac_ok(sac_tracker_create(test_context(), &p, &trk[s]));
        assert_sac_ok(sac_tracker_prepare(trk[s], dev, NULL));
    }
    const uint64_t before = test_requests(dev);
    for (int k = 0; k < TURNS; k++)
        for (int s = 0; s <= MANY; s++) {
            struct sac_tracker_input in = {.det = det, .count = CROWD, .pts_us = k * 40000};
            in.embeddings = (struct sac_embedding_rows){.dev = dev,
                                                        .base = sac_embeddings_data(f),
                                                        .count = f->count,
                                                        .dim = f->dim,
                                                        .batch = f};
            const bool fits = s < MANY && sac_wave_fits(wave, trk[s], &in);
            full += s < MANY && !fits;
            if (!fits) {
                assert_sac_ok(sac_wave_run(wave));
                for (size_t i = 0; i < sac_wave_count(wave); i++) {
                    struct sac_track_view view;
                    sac_wave_finish(wave, i, &view);
                    tracks += (int)view.count;
                }
                sac_wave_settle(wave);
                sac_wave_clear(wave);
            }
            if (s < MANY)
                assert_sac_ok(sac_wave_add(wave, trk[s], &in));
        }
    assert_in_range(full, TURNS - 1, TURNS * MANY / 2);
    assert_in_range(tracks, (TURNS - 1) * MANY * CROWD, TURNS * MANY * CROWD);
    assert_int_equal(test_requests(dev), before);
    sac_wave_destroy(&wave);
    for (int s = 0; s < MANY; s++)
        sac_tracker_destroy(&trk[s]);
    sac_embeddings_unref(&f);
    close_device(&dev);
}

/* A device that fails once: that frame has no tracks, and the next ones have their ids still. */
static void a_fault_costs_looks_and_nothing_more(void **state)
{
    (void)state;
    sac_device         *dev = open_remote(), *cpu = test_device();
    struct side         side;
    struct sac_wave    *wave = NULL;
    static struct shot  shots[STREAMS];
    static struct shown got[STREAMS], before[STREAMS];
    open_side(&side, 2);
    assert_sac_ok(sac_wave_create(dev, &wave));
    for (int k = 0; k <= FRAMES / 2 + 1; k++) {
        for (int s = 0; s < STREAMS; s++)
            make_shot(&shots[s], s, k, cpu);
        looks_fail_in = k == FRAMES / 2;
        sac_result res = in_a_wave(wave, dev, &side, shots, k, got);
        assert_int_equal(res, k == FRAMES / 2 ? SAC_ERR_DEVICE : SAC_OK);
        if (k == FRAMES / 2 - 1)
            memcpy(before, got, sizeof before);
        for (int s = 0; s < STREAMS; s++)
            sac_frame_unref(&shots[s].frame);
    }
    size_t known = 0, all = 0;
    for (int s = 0; s < STREAMS; s++) {
        all += got[s].count;
        for (size_t i = 0; i < got[s].count; i++)
            for (size_t j = 0; j < before[s].count; j++)
                known += got[s].tracks[i].id == before[s].tracks[j].id;
    }
    assert_true(known * 3 > all * 2);
    sac_wave_destroy(&wave);
    close_side(&side);
    close_device(&dev);
    sac_device_unref(&cpu);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    sac_device               *dev = open_remote(), *cpu = test_device();
    struct sac_tracker_params p = sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    struct sac_tensor_desc    desc = {.dtype = SAC_F32, .rank = 2, .shape = {3, DIM}}, other = desc,
                           half = desc;
    const struct sac_detection det[3] = {
        {0, 0, 30, 80, 0.9f, 0}, {90, 0, 120, 80, 0.9f, 0}, {200, 0, 240, 90, 0.9f, 0}};
    const int32_t         row[3] = {0, 3, 1};
    float                 rows[3][DIM];
    sac_tracker          *trk = NULL;
    sac_tensor           *embedding = NULL, *wide = NULL, *halves = NULL;
    struct sac_track_view view;
    p.embedding_dim = DIM;
    other.shape[1] = DIM + 1;
    half.dtype = SAC_F16;
    for (int i = 0; i < 3; i++)
        unit(rows[i], i);
    assert_sac_ok(sac_tracker_create(test_context(), &p, &trk));
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &embedding));
    assert_sac_ok(sac_tensor_create(dev, &other, "test", &wide));
    assert_sac_ok(sac_tensor_create(dev, &half, "test", &halves));
    assert_sac_ok(sac_tensor_upload(embedding, rows));
    assert_sac_error(sac_tracker_update_tensor(trk, det, 3, wide, NULL, NULL, 0, &view),
                     SAC_ERR_ARG);
    assert_sac_error(sac_tracker_update_tensor(trk, det, 3, halves, NULL, NULL, 0, &view),
                     SAC_ERR_ARG);
    assert_sac_error(sac_tracker_update_tensor(trk, det, 3, embedding, row, NULL, 0, &view),
                     SAC_ERR_ARG);
    assert_sac_ok(sac_tracker_update_tensor(trk, det, 3, embedding, NULL, NULL, 0, &view));
    assert_int_equal(view.count, 3);
    /* The looks are on the device from now on; no looks at all are no matter. */
    assert_sac_error(sac_tracker_update(trk, det, 3, rows[0], NULL, 40000, &view), SAC_ERR_ARG);
    assert_sac_ok(sac_tracker_update(trk, det, 3, NULL, NULL, 40000, &view));
    assert_int_equal(view.count, 3);
    assert_sac_ok(sac_tracker_update_tensor(trk, det, 3, embedding, NULL, NULL, 80000, &view));
    assert_int_equal(view.count, 3);
    sac_tracker_destroy(&trk);
    sac_tensor_unref(&embedding);
    sac_tensor_unref(&wide);
    sac_tensor_unref(&halves);
    close_device(&dev);
    sac_device_unref(&cpu);
}

/* Each allocation of a frame fails in turn: nothing is lost, and the next try is as if it had not
 * been. */
static void no_memory_changes_nothing(void **state)
{
    (void)state;
    sac_device         *dev = open_remote(), *cpu = test_device();
    struct side         a, b;
    struct sac_wave    *wave = NULL;
    static struct shot  shots[STREAMS];
    static struct shown want[STREAMS], got[STREAMS];
    open_side(&a, 2);
    open_side(&b, 2);
    for (int k = 0; k < 4; k++) {
        for (int s = 0; s < STREAMS; s++)
            make_shot(&shots[s], s, k, cpu);
        on_host(&a, shots, k, want);
        for (int fail = 1;; fail++) {
            struct sac_tracker_input in = {
                .det = shots[1].det, .count = (size_t)shots[1].count, .pts_us = k * 40000};
            int32_t                rows[STREAMS][PEOPLE];
            struct sac_embeddings *f = make_embeddings(dev, shots, rows);
            in.embeddings = (struct sac_embedding_rows){.dev = dev,
                                                        .base = sac_embeddings_data(f),
                                                        .count = f->count,
                                                        .dim = f->dim,
                                                        .row = rows[1],
                                                        .batch = f};
            sac_alloc_fail_at(fail);
            sac_result res = wave ? SAC_OK : sac_wave_create(dev, &wave);
            if (res == SAC_OK)
                res = sac_wave_add(wave, b.trk[1], &in);
            sac_alloc_fail_at(0);
            if (res == SAC_OK) {
                struct sac_track_view view;
                assert_sac_ok(sac_wave_run(wave));
                sac_wave_finish(wave, 0, &view);
                keep(&got[1], &view);
                sac_wave_clear(wave);
            }
            sac_embeddings_unref(&f);
            if (res == SAC_OK)
                break;
            assert_int_equal(res, SAC_ERR_MEMORY);
        }
        assert_int_equal(got[1].count, want[1].count);
        for (int s = 0; s < STREAMS; s++)
            sac_frame_unref(&shots[s].frame);
    }
    sac_wave_destroy(&wave);
    close_side(&a);
    close_side(&b);
    close_device(&dev);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tracks_are_those_of_the_host),
        cmocka_unit_test(little_crosses),
        cmocka_unit_test(a_full_wave_says_so),
        cmocka_unit_test(a_fault_costs_looks_and_nothing_more),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(no_memory_changes_nothing),
        cmocka_unit_test(they_are_on_a_gpu),
    };
    return cmocka_run_group_tests_name("track/wave", tests, NULL, NULL);
}
