/* SPDX-License-Identifier: Apache-2.0 */
/* All trackers on made-up scenes, through the public interface. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/test.h"
#include "tests/track/picture.h"
#include "track/core.h"

enum { BOXES_MAX = 6000 };

static const enum sac_tracker_kind kinds[] = {SAC_TRACKER_SORT, SAC_TRACKER_BYTETRACK,
                                              SAC_TRACKER_OCSORT, SAC_TRACKER_BOTSORT};

/* A tracker with the boxes of the frame to come. */
struct scene {
    sac_tracker          *trk;
    int64_t               pts_us;
    struct sac_detection *boxes;
    size_t                count;
    struct sac_track_view view;
};

static void open_scene(struct scene *s, const struct sac_tracker_params *p)
{
    *s = (struct scene){.boxes = calloc(BOXES_MAX, sizeof *s->boxes)};
    assert_non_null(s->boxes);
    assert_sac_ok(sac_tracker_create(test_context(), p, &s->trk));
}

static void open_kind(struct scene *s, enum sac_tracker_kind kind)
{
    struct sac_tracker_params p = sac_tracker_params_default(kind);
    open_scene(s, &p);
}

static void close_scene(struct scene *s)
{
    sac_tracker_destroy(&s->trk);
    assert_null(s->trk);
    free(s->boxes);
}

/* A person of 40 by 100 pixels with its centre at x, y. */
static void person(struct scene *s, double x, double y, double score)
{
    s->boxes[s->count++] = (struct sac_detection){(float)x - 20, (float)y - 50, (float)x + 20,
                                                  (float)y + 50, (float)score,  0};
}

static void step(struct scene *s, double dt_s)
{
    s->pts_us += llround(dt_s * 1e6);
    assert_sac_ok(sac_tracker_update(s->trk, s->boxes, s->count, NULL, NULL, s->pts_us, &s->view));
    s->count = 0;
}

/* The id of the track whose centre is within a third of a height of x, y; 0: none. */
static int64_t id_at(const struct scene *s, double x, double y)
{
    for (size_t i = 0; i < s->view.count; i++) {
        const struct sac_track *t = &s->view.tracks[i];
        if (fabs((t->x0 + t->x1) / 2 - x) < 33 && fabs((t->y0 + t->y1) / 2 - y) < 33)
            return t->id;
    }
    return 0;
}

static double uniform(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) / (double)(1 << 24);
}

/* ---- identities ---- */

/* At 25 frames a second two people walk through each other. */
static void two_who_cross_keep_their_ids(void **state)
{
    (void)state;
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene s;
        int64_t      left = 0, right = 0;
        open_kind(&s, kinds[k]);
        for (int i = 0; i <= 100; i++) {
            double x = 80.0 * i / 25;
            person(&s, 100 + x, 200, 0.9);
            person(&s, 420 - x, 215, 0.9);
            step(&s, 0.04);
            if (i == 10) {
                left = id_at(&s, 100 + x, 200);
                right = id_at(&s, 420 - x, 215);
            }
        }
        assert_true(left > 0 && right > 0 && left != right);
        assert_int_equal(id_at(&s, 420, 200), left);
        assert_int_equal(id_at(&s, 100, 215), right);
        close_scene(&s);
    }
}

/* Frames that nobody looked at: tracks go on as they moved, and nobody is lost, even where these
 * frames last for long. */
static void unseen_frames_are_predicted(void **state)
{
    (void)state;
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene s;
        int64_t      id = 0;
        open_kind(&s, kinds[k]);
        for (int i = 0; i <= 100; i++) {
            const double x = 100 + 80.0 * i / 25;
            if (i < 50 || i % 10 == 0) {
                person(&s, x, 200, 0.9);
                step(&s, 0.04);
            } else {
                s.pts_us += 40000;
                const struct sac_tracker_input unseen = {.pts_us = s.pts_us, .unseen = true};
                assert_sac_ok(sac_tracker_track(s.trk, &unseen, &s.view));
            }
            if (i == 49)
                id = id_at(&s, x, 200);
            if (i < 50)
                continue;
            assert_int_equal(s.view.count, 1);
            const struct sac_track *t = &s.view.tracks[0];
            assert_int_equal(t->id, id);
            assert_float_equal((t->x0 + t->x1) / 2, x, 5);
            assert_int_equal(t->detection, i % 10 == 0 ? 0 : -1);
            assert_int_equal(t->last_us, s.pts_us - i % 10 * 40000);
        }
        close_scene(&s);
    }
}

/* Somebody walks behind a pillar for most of a second and comes out on the other side. The rate of
 * the frames makes no difference. */
static void hidden_for_a_while_keeps_its_id(void **state)
{
    (void)state;
    static const double rates[] = {50, 25, 10, 5};
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        for (size_t r = 0; r < SAC_COUNT(rates); r++) {
            struct scene s;
            int64_t      before = 0;
            double       dt = 1 / rates[r];
            open_kind(&s, kinds[k]);
            for (int i = 0; i * dt <= 4; i++) {
                double t = i * dt, x = 100 + 60 * t;
                bool   hidden = t > 2.01 && t < 2.99 - dt;
                if (!hidden)
                    person(&s, x, 200, 0.9);
                step(&s, dt);
                assert_true(!hidden || s.view.count == 0);
                if (i == (int)(2 / dt))
                    before = id_at(&s, x, 200);
            }
            assert_true(before > 0);
            assert_int_equal(id_at(&s, 340, 200), before);
            close_scene(&s);
        }
    }
}

/* Two of three frames get lost, at random. */
static void dropped_frames_do_not_matter(void **state)
{
    (void)state;
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene s;
        uint32_t     seed = 3;
        double       dt = 0;
        open_kind(&s, kinds[k]);
        int64_t first = sac_context_next_track_id(test_context());
        for (int i = 0; i < 300; i++) {
            double t = i / 25.0;
            dt += 0.04;
            if (i > 2 && uniform(&seed) < 0.66)
                continue;
            for (int p = 0; p < 5; p++)
                person(&s, 100 + (p % 2 ? 70 : 110) * t, 100 + 60 * p, 0.9);
            step(&s, dt);
            dt = 0;
            if (i > 2)
                assert_int_equal(s.view.count, 5);
        }
        assert_int_equal(sac_context_next_track_id(test_context()), first + 6);
        close_scene(&s);
    }
}

/* For half a second the detector is hardly sure. */
static void faint_boxes_keep_a_track_in_sight(void **state)
{
    (void)state;
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene s;
        int64_t      before = 0;
        int          missed = 0;
        open_kind(&s, kinds[k]);
        for (int i = 0; i < 75; i++) {
            bool faint = i >= 25 && i < 38;
            person(&s, 100 + 3 * i, 200, faint ? 0.25 : 0.9);
            step(&s, 0.04);
            missed += i > 1 && s.view.count == 0;
            if (i == 24)
                before = id_at(&s, 172, 200);
        }
        assert_true(before > 0);
        assert_int_equal(id_at(&s, 322, 200), before);
        assert_int_equal(missed, kinds[k] == SAC_TRACKER_SORT ? 13 : 0);
        close_scene(&s);
    }
}

static void faint_boxes_alone_do_not_live_on(void **state)
{
    (void)state;
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene s;
        open_kind(&s, kinds[k]);
        for (int i = 0; i < 10 * 20; i++) {
            person(&s, 100, 200, i < 5 ? 0.8 : 0.4); /* a coat on a hook */
            step(&s, 0.1);
            if (i * 0.1 > 0.5 + 2.5)
                assert_int_equal(s.view.count, 0);
        }
        close_scene(&s);
    }
}

static void classes_do_not_mix(void **state)
{
    (void)state;
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene s;
        open_kind(&s, kinds[k]);
        int64_t ids[2] = {0};
        for (int i = 0; i < 20; i++) {
            person(&s, 100 + i, 200, 0.9);
            s.boxes[0].class_id = i < 10 ? 0 : 7;
            step(&s, 0.04);
            if (s.view.count) {
                assert_int_equal(s.view.tracks[0].class_id, i < 10 ? 0 : 7);
                ids[i >= 10] = s.view.tracks[0].id;
            }
        }
        assert_true(ids[0] && ids[1] && ids[0] != ids[1]);
        close_scene(&s);
    }
}

static void ids_differ_between_trackers(void **state)
{
    (void)state;
    struct scene s[2];
    open_kind(&s[0], SAC_TRACKER_BYTETRACK);
    open_kind(&s[1], SAC_TRACKER_SORT);
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 2; k++) {
            for (int p = 0; p < 6; p++)
                person(&s[k], 100 + 90 * p, 200, 0.9);
            step(&s[k], 0.04);
            assert_int_equal(s[k].view.count, 6);
        }
    }
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++)
            assert_int_not_equal(s[0].view.tracks[a].id, s[1].view.tracks[b].id);
    close_scene(&s[0]);
    close_scene(&s[1]);
}

/* Shown at once in the first frame, later with the second detection; a single flash never. */
static void a_track_needs_two_detections(void **state)
{
    (void)state;
    struct scene s;
    open_kind(&s, SAC_TRACKER_BOTSORT);
    person(&s, 100, 200, 0.9);
    step(&s, 0.04);
    assert_int_equal(s.view.count, 1);
    for (int i = 0; i < 10; i++) {
        person(&s, 100, 200, 0.9);
        if (i == 2)
            person(&s, 400, 200, 0.95);
        if (i >= 5)
            person(&s, 250, 200, 0.9);
        step(&s, 0.04);
        assert_int_equal(id_at(&s, 400, 200), 0);
        assert_int_equal(id_at(&s, 250, 200) > 0, i >= 6);
    }
    close_scene(&s);
}

static void describes_what_it_follows(void **state)
{
    (void)state;
    struct scene s;
    open_kind(&s, SAC_TRACKER_BYTETRACK);
    for (int i = 0; i <= 50; i++) {
        s.boxes[s.count++] =
            (struct sac_detection){0, 0, 0, 0, 0.9f, 0}; /* passed over, still counted */
        person(&s, 100 + 2 * i, 200 - i, 0.8);
        step(&s, 0.04);
    }
    assert_int_equal(s.view.count, 1);
    const struct sac_track *t = &s.view.tracks[0];
    assert_int_equal(t->detection, 1);
    assert_int_equal(t->state, SAC_TRACK_CONFIRMED);
    assert_int_equal(t->first_us, 40000);
    assert_int_equal(t->last_us, 51 * 40000);
    assert_true(fabsf(t->vx - 50) < 2 && fabsf(t->vy + 25) < 2);
    assert_true(fabsf(t->score - 0.8f) < 1e-6f);
    close_scene(&s);
}

/* ---- appearance and camera ---- */

/* Two people meet, stand as one for half a second and turn back. Motion says they passed through
 * each other; only their looks tell. */
static void appearance_tells_who_turned_back(void **state)
{
    (void)state;
    enum { DIM = 16 };
    struct sac_tracker_params p = sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    p.embedding_dim = DIM;
    struct scene s;
    open_scene(&s, &p);
    assert_true(sac_tracker_wants_embeddings(s.trk));
    float embedding[2 * DIM] = {0};
    embedding[0] = 1;
    embedding[DIM + 1] = 1;
    int64_t ids[2] = {0};
    for (int i = 0; i <= 100; i++) {
        double gap = fabs(i - 50.0) * 3;
        if (i >= 46 && i <= 54)
            continue;
        person(&s, 300 - gap, 200, 0.9);
        person(&s, 300 + gap, 200, 0.9);
        s.pts_us = i * 40000;
        assert_sac_ok(sac_tracker_update(s.trk, s.boxes, 2, embedding, NULL, s.pts_us, &s.view));
        s.count = 0;
        if (i == 30) {
            ids[0] = id_at(&s, 300 - gap, 200);
            ids[1] = id_at(&s, 300 + gap, 200);
        }
    }
    assert_true(ids[0] && ids[1]);
    assert_int_equal(id_at(&s, 150, 200), ids[0]);
    assert_int_equal(id_at(&s, 450, 200), ids[1]);
    close_scene(&s);
}

/* Rows that are not of length 1 are no appearance, whatever they hold. */
static void bad_embeddings_count_as_none(void **state)
{
    (void)state;
    enum { DIM = 4 };
    struct sac_tracker_params p = sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    p.embedding_dim = DIM;
    struct scene s;
    open_scene(&s, &p);
    const float embedding[3 * DIM] = {NAN, 0, 0, 1, 1e30f, 0, 0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 3; k++)
            person(&s, 100 + 100 * k + 2 * i, 200, 0.9);
        assert_sac_ok(sac_tracker_update(s.trk, s.boxes, 3, embedding, NULL, i * 40000, &s.view));
        s.count = 0;
        assert_int_equal(s.view.count, 3);
        for (size_t k = 0; k < 3; k++)
            assert_true(s.view.tracks[k].id == s.view.tracks[0].id + (int64_t)k);
    }
    close_scene(&s);
}

/* The camera jerks by a person's width every few frames; people stand still in the scene. */
static void a_jerking_camera_loses_nobody(void **state)
{
    (void)state;
    for (int with_frames = 0; with_frames < 2; with_frames++) {
        struct scene s;
        sac_frame    frame = picture_frame(SAC_PIXEL_NV12, 480, 320);
        int64_t      first = sac_context_next_track_id(test_context());
        uint32_t     seed = 9;
        open_kind(&s, SAC_TRACKER_BOTSORT);
        double shift = 0;
        for (int i = 0; i < 20; i++) {
            if (i % 4 == 3)
                shift += uniform(&seed) < 0.5 ? -45 : 45;
            const struct sac_similarity look = {1, 0, shift, 0};
            picture_take(&frame, &look);
            for (int k = 0; k < 3; k++)
                person(&s, 140 + 100 * k + shift, 160, 0.9);
            assert_sac_ok(sac_tracker_update(s.trk, s.boxes, s.count, NULL,
                                             with_frames ? &frame : NULL, i * 40000, &s.view));
            s.count = 0;
        }
        int64_t used = sac_context_next_track_id(test_context()) - first - 1;
        if (with_frames)
            assert_int_equal(used, 3);
        else
            assert_true(used > 3); /* else this scene proves nothing */
        close_scene(&s);
        free(frame.plane[0]);
    }
}

/* ---- bad input and limits ---- */

static void nonsense_boxes_are_passed_over(void **state)
{
    (void)state;
    static const struct sac_detection nonsense[] = {
        {NAN, 0, 10, 10, 0.9f, 0},       {0, 0, INFINITY, 10, 0.9f, 0},
        {-INFINITY, 0, 10, 10, 0.9f, 0}, {10, 10, 5, 20, 0.9f, 0},
        {10, 10, 20, 10, 0.9f, 0},       {0, 0, 10, 10, NAN, 0},
        {0, 0, 1e30f, 1e30f, 0.9f, 0},   {-3e38f, -3e38f, 3e38f, 3e38f, 0.9f, 0},
        {0, 0, 10, 10, INFINITY, 0},
    };
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene s;
        open_kind(&s, kinds[k]);
        for (int i = 0; i < 20; i++) {
            for (size_t j = 0; j < SAC_COUNT(nonsense); j++)
                s.boxes[s.count++] = nonsense[j];
            person(&s, 100 + i, 200, 7); /* over 1 is 1 */
            step(&s, 0.04);
            assert_int_equal(s.view.count, 1);
            assert_int_equal(s.view.tracks[0].detection, SAC_COUNT(nonsense));
            assert_true(s.view.tracks[0].score == 1);
        }
        close_scene(&s);
    }
}

static void refuses_time_that_steps_back(void **state)
{
    (void)state;
    struct scene s;
    open_kind(&s, SAC_TRACKER_BOTSORT);
    for (int i = 0; i < 5; i++) {
        person(&s, 100, 200, 0.9);
        step(&s, 0.04);
    }
    int64_t               id = s.view.tracks[0].id;
    struct sac_track_view untouched = {.count = 99};
    assert_sac_error(sac_tracker_update(s.trk, NULL, 0, NULL, NULL, s.pts_us - 1, &untouched),
                     SAC_ERR_ARG);
    assert_int_equal(untouched.count, 99);
    assert_sac_error(sac_tracker_update(s.trk, NULL, 2, NULL, NULL, s.pts_us, &untouched),
                     SAC_ERR_ARG);
    person(&s, 100, 200, 0.9);
    step(&s, 0); /* the same time again is no step back */
    assert_int_equal(s.view.count, 1);
    assert_int_equal(s.view.tracks[0].id, id);
    close_scene(&s);
}

static void lives_through_extreme_times(void **state)
{
    (void)state;
    static const int64_t times[] = {INT64_MIN, INT64_MIN + 1, -5,       0,
                                    40000,     INT64_MAX - 1, INT64_MAX};
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene s;
        open_kind(&s, kinds[k]);
        for (size_t i = 0; i < SAC_COUNT(times); i++) {
            person(&s, 100, 200, 0.9);
            assert_sac_ok(
                sac_tracker_update(s.trk, s.boxes, s.count, NULL, NULL, times[i], &s.view));
            s.count = 0;
            assert_true(s.view.count <= 1);
            assert_int_equal(s.trk->target_count, 1);
        }
        close_scene(&s);
    }
}

static void empty_frames_end_all_tracks_in_time(void **state)
{
    (void)state;
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene s;
        open_kind(&s, kinds[k]);
        person(&s, 100, 200, 0.9);
        step(&s, 0.04);
        for (int i = 0; i < 100; i++) {
            step(&s, 0.04);
            assert_int_equal(s.view.count, 0);
        }
        assert_int_equal(s.trk->target_count, 0);
        close_scene(&s);
    }
}

/* More boxes than tracks may be, unsorted, in random places. */
static void thousands_of_boxes_stay_within_the_limit(void **state)
{
    (void)state;
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        struct scene              s;
        uint32_t                  seed = 5;
        struct sac_tracker_params p = sac_tracker_params_default(kinds[k]);
        p.track_max = 700;
        open_scene(&s, &p);
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 5000; j++)
                person(&s, 3000 * uniform(&seed), 2000 * uniform(&seed), uniform(&seed));
            step(&s, 0.1);
            assert_true(s.trk->target_count <= 700);
            assert_true(s.view.count <= 700);
        }
        close_scene(&s);
    }
}

/* At the limit the lost one that was not seen for longest makes room; those in sight stay. */
static void the_oldest_lost_goes_first(void **state)
{
    (void)state;
    struct scene              s;
    struct sac_tracker_params p = sac_tracker_params_default(SAC_TRACKER_BYTETRACK);
    p.track_max = 3;
    open_scene(&s, &p);
    int64_t ids[3] = {0};
    for (int i = 0; i < 15; i++) {
        person(&s, 100, 200, 0.9);
        if (i < 5)
            person(&s, 300, 200, 0.9);
        if (i < 8)
            person(&s, 500, 200, 0.9);
        if (i >= 12)
            person(&s, 700, 200, 0.9);
        step(&s, 0.04);
        for (int k = 0; k < 3 && i == 4; k++)
            ids[k] = id_at(&s, 100 + 200 * k, 200);
    }
    assert_true(id_at(&s, 700, 200) > 0);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            person(&s, 100 + 200 * k, 200, 0.9);
        step(&s, 0.04);
    }
    assert_int_equal(id_at(&s, 100, 200), ids[0]);
    assert_int_equal(id_at(&s, 500, 200), ids[2]);
    assert_int_not_equal(id_at(&s, 300, 200), ids[1]);
    close_scene(&s);
}

/* A hundred thousand frames of people and clutter. After a while nothing is allocated any more. */
static void memory_stays_bounded(void **state)
{
    (void)state;
    enum { DIM = 8, FRAMES = 100000 };
    struct sac_tracker_params p = sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    p.embedding_dim = DIM;
    p.gallery_max = 4;
    struct scene s;
    uint32_t     seed = 11;
    float        embedding[20 * DIM] = {0};
    open_scene(&s, &p);
    for (int i = 0; i < 20; i++)
        embedding[i * DIM + i % DIM] = 1;
    for (int i = 0; i < FRAMES; i++) {
        size_t n = i == 500 ? 20 : (size_t)(20 * uniform(&seed));
        for (size_t j = 0; j < n; j++)
            person(&s, 600 * uniform(&seed), 400 * uniform(&seed), 0.4 + 0.6 * uniform(&seed));
        sac_alloc_fail_at(i > FRAMES / 10);
        sac_result res =
            sac_tracker_update(s.trk, s.boxes, s.count, embedding, NULL, i * 40000LL, &s.view);
        sac_alloc_fail_at(0);
        assert_sac_ok(res);
        s.count = 0;
    }
    close_scene(&s);
}

/* Each frame is first tried with a failing allocation, then as usual; a twin that never failed must
 * show the same boxes. */
static void a_failed_allocation_changes_nothing(void **state)
{
    (void)state;
    enum { DIM = 4 };
    struct sac_tracker_params p = sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    p.embedding_dim = DIM;
    struct scene s, twin;
    sac_frame    frame = picture_frame(SAC_PIXEL_GRAY8, 64, 48);
    uint32_t     seed = 2;
    int          failures = 0;
    float        embedding[200 * DIM];
    for (int i = 0; i < 200 * DIM; i++)
        embedding[i] = i % DIM == 0;
    open_scene(&s, &p);
    open_scene(&twin, &p);
    for (int i = 0; i < 60; i++) {
        size_t n = (size_t)(3 * i * uniform(&seed));
        for (size_t j = 0; j < n; j++)
            person(&s, 600 * uniform(&seed), 400 * uniform(&seed), 0.5 + 0.5 * uniform(&seed));
        for (int fail = 1; fail <= 16; fail++) {
            struct sac_track_view untouched = {.count = 77};
            sac_alloc_fail_at(fail);
            sac_result res = sac_tracker_update(s.trk, s.boxes, n, embedding, &frame,
                                                i * 40000 - (i > 0), &untouched);
            sac_alloc_fail_at(0);
            if (res == SAC_OK)
                break;
            assert_int_equal(res, SAC_ERR_MEMORY);
            assert_int_equal(untouched.count, 77);
            failures++;
        }
        assert_sac_ok(sac_tracker_update(s.trk, s.boxes, 0, NULL, &frame, i * 40000, &s.view));
        assert_sac_ok(sac_tracker_update(twin.trk, s.boxes, n, embedding, &frame,
                                         i * 40000 - (i > 0), &twin.view));
        assert_sac_ok(
            sac_tracker_update(twin.trk, s.boxes, 0, NULL, &frame, i * 40000, &twin.view));
        assert_int_equal(s.trk->target_count, twin.trk->target_count);
        for (size_t j = 0; j < s.trk->target_count; j++)
            assert_memory_equal(&s.trk->targets[j].filter, &twin.trk->targets[j].filter,
                                sizeof(struct sac_kalman));
        s.count = 0;
    }
    assert_true(failures > 20);
    close_scene(&s);
    close_scene(&twin);
    free(frame.plane[0]);
}

static void refuses_bad_params(void **state)
{
    (void)state;
    const struct sac_tracker_params good = sac_tracker_params_default(SAC_TRACKER_BOTSORT);
    struct sac_tracker_params       bad[12];
    sac_tracker                    *trk = NULL;
    for (size_t i = 0; i < SAC_COUNT(bad); i++)
        bad[i] = good;
    bad[0].kind = (enum sac_tracker_kind)99;
    bad[1].score_high = 2;
    bad[2].score_low = 0.9f;
    bad[3].score_new = NAN;
    bad[4].match_iou = -1;
    bad[5].lost_max_s = 0;
    bad[6].lost_max_s = NAN;
    bad[7].confirm_s = -1;
    bad[8].reid_distance_max = 0;
    bad[9].embedding_dim = -1;
    bad[10].gallery_max = 0;
    bad[11].track_max = 0;
    for (size_t i = 0; i < SAC_COUNT(bad); i++) {
        assert_sac_error(sac_tracker_create(test_context(), &bad[i], &trk), SAC_ERR_ARG);
        assert_null(trk);
    }
    sac_alloc_fail_at(1);
    sac_result res = sac_tracker_create(test_context(), &good, &trk);
    sac_alloc_fail_at(0);
    assert_int_equal(res, SAC_ERR_MEMORY);
    assert_sac_ok(sac_tracker_create(test_context(), NULL, &trk));
    sac_tracker_destroy(&trk);
    sac_tracker_destroy(&trk);
}

static void names_are_parsed_back(void **state)
{
    (void)state;
    enum sac_tracker_kind kind;
    for (size_t k = 0; k < SAC_COUNT(kinds); k++) {
        assert_sac_ok(sac_tracker_kind_parse(sac_tracker_kind_name(kinds[k]), &kind));
        assert_int_equal(kind, kinds[k]);
        assert_int_equal(sac_tracker_params_default(kinds[k]).kind, kinds[k]);
    }
    assert_sac_error(sac_tracker_kind_parse("deepsort", &kind), SAC_ERR_ARG);
    assert_string_equal(sac_tracker_kind_name((enum sac_tracker_kind)99), "unknown");
}

static void count_listed(void *user, const char *name, const char *what)
{
    int *n = user;
    assert_string_equal(name, sac_tracker_kind_name(kinds[*n]));
    assert_true(strlen(what) > 10);
    ++*n;
}

static void all_kinds_are_listed(void **state)
{
    (void)state;
    int n = 0;
    sac_tracker_list(count_listed, &n);
    assert_int_equal(n, SAC_COUNT(kinds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_who_cross_keep_their_ids),
        cmocka_unit_test(unseen_frames_are_predicted),
        cmocka_unit_test(hidden_for_a_while_keeps_its_id),
        cmocka_unit_test(dropped_frames_do_not_matter),
        cmocka_unit_test(faint_boxes_keep_a_track_in_sight),
        cmocka_unit_test(faint_boxes_alone_do_not_live_on),
        cmocka_unit_test(classes_do_not_mix),
        cmocka_unit_test(ids_differ_between_trackers),
        cmocka_unit_test(a_track_needs_two_detections),
        cmocka_unit_test(describes_what_it_follows),
        cmocka_unit_test(appearance_tells_who_turned_back),
        cmocka_unit_test(bad_embeddings_count_as_none),
        cmocka_unit_test(a_jerking_camera_loses_nobody),
        cmocka_unit_test(nonsense_boxes_are_passed_over),
        cmocka_unit_test(refuses_time_that_steps_back),
        cmocka_unit_test(lives_through_extreme_times),
        cmocka_unit_test(empty_frames_end_all_tracks_in_time),
        cmocka_unit_test(thousands_of_boxes_stay_within_the_limit),
        cmocka_unit_test(the_oldest_lost_goes_first),
        cmocka_unit_test(memory_stays_bounded),
        cmocka_unit_test(a_failed_allocation_changes_nothing),
        cmocka_unit_test(refuses_bad_params),
        cmocka_unit_test(names_are_parsed_back),
        cmocka_unit_test(all_kinds_are_listed),
    };
    return cmocka_run_group_tests_name("track/core", tests, NULL, NULL);
}
