/* SPDX-License-Identifier: Apache-2.0 */
/* A run of which somebody keeps what it makes, in earnest: memory grows, and the run's own monitor
 * tells it within ten seconds, with what holds it. The argument says what is kept: "mattes" are the
 * pool's, whose watcher tells it too, "frames" of a CPU are the decoder's own, outside of it; of
 * "nothing" nothing is told. */
#include <saccade/pipeline.h>

#include "base/base.h"
#include "tests/pipeline/folder.h"
#include "tests/test.h"

enum {
    WIDTH = 1280,
    HEIGHT = 720,
    FPS = 25,
    ORDINARY_S = 19, /* the monitor judges nothing before it has warmed up and knows what is usual
                      */
    TOLD_S = 10,
    FRAMES = (ORDINARY_S + TOLD_S) * FPS
};

struct run {
    sac_pipeline *pipe;
    bool          mattes; /* they are kept; else the frames are */
    const char   *figure; /* of which it is told; NULL: nothing is kept */
    int           seen, kept_count;
    sac_frame    *kept[FRAMES];
    char          text[320]; /* what was told of it */
    uint64_t      leaks;
};

static uint64_t leaks_of(sac_pipeline *pipe)
{
    struct sac_pipeline_stats stats;
    sac_pipeline_get_stats(pipe, &stats);
    return stats.pool.leaks;
}

static bool keep(struct run *r, const sac_frame *picture)
{
    struct sac_monitor_event event;
    sac_monitor             *m = sac_pipeline_monitor(r->pipe);
    r->kept[r->kept_count++] = sac_frame_ref((sac_frame *)picture);
    for (int i = 0; i < sac_monitor_event_count(m); i++)
        if (sac_monitor_get_event(m, i, &event) == SAC_OK && strcmp(event.figure, r->figure) == 0) {
            snprintf(r->text, sizeof r->text, "%s", event.text);
            return !r->mattes || leaks_of(r->pipe) > 0;
        }
    return false;
}

static int on_matte(void *user, const sac_frame *frame, const sac_frame *matte)
{
    struct run *r = user;
    r->seen++;
    return r->figure && r->seen > ORDINARY_S * FPS && keep(r, r->mattes ? matte : frame);
}

/* The same picture again and again. */
static void make_clip(void)
{
    char  first[384], name[32];
    FILE *picture = fopen(strcpy(first, in_folder("0001.ppm")), "wb");
    assert_non_null(picture);
    fprintf(picture, "P6 %d %d 255\n", WIDTH, HEIGHT);
    for (int i = 0; i < WIDTH * HEIGHT * 3; i++)
        fputc(60, picture);
    assert_int_equal(fclose(picture), 0);
    for (int i = 2; i <= FRAMES; i++) {
        snprintf(name, sizeof name, "%04d.ppm", i);
        assert_int_equal(symlink(first, in_folder(name)), 0);
    }
}

static struct sac_monitor_params watched_often(void)
{
    struct sac_monitor_params params = sac_monitor_params_default();
    params.interval_ms = 250;
    params.hold_s = 2;
    params.utilisation_max = params.memory_max = 0; /* of the machine, which others use too */
    return params;
}

static void run(struct run *r)
{
    struct sac_monitor_params  watch = watched_often();
    struct sac_segment_params  segment = sac_segment_params_default();
    struct sac_pipeline_params params = sac_pipeline_params_default();
    make_clip();
    params.input = folder;
    segment.model = TEST_HEADS "/maps_matte.onnx";
    segment.on_matte = on_matte;
    segment.on_matte_user = r;
    params.source.fps = FPS;
    params.realtime = 1;
    params.job.device = "cpu";
    params.job.monitor = &watch;
    params.job.device_params.leak_age_s = 1;
    params.job.segment = &segment;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &r->pipe));
    const sac_result res = sac_pipeline_run(r->pipe);
    if (res != SAC_ERR_CANCELLED) /* it ends once it was told */
        assert_int_equal(res, SAC_OK);
}

static void fail_with_events(sac_monitor *m, const char *what)
{
    struct sac_monitor_event event;
    for (int i = 0; i < sac_monitor_event_count(m); i++)
        if (sac_monitor_get_event(m, i, &event) == SAC_OK)
            print_error("%.1f s: %s\n", event.begun_s, event.text);
    fail_msg("%s", what);
}

static void check(struct run *r, const char *words)
{
    run(r);
    if (!r->text[0])
        fail_with_events(sac_pipeline_monitor(r->pipe), "it was not told within ten seconds");
    print_message("%d pictures kept: %s\n", r->kept_count, r->text);
    if (!strstr(r->text, words))
        fail_msg("'%s' does not say '%s'", r->text, words);
    r->leaks = leaks_of(r->pipe);
    for (int i = 0; i < r->kept_count; i++)
        sac_frame_unref(&r->kept[i]);
    sac_pipeline_destroy(&r->pipe);
}

static void a_pool_that_grows_is_told_in_time(void **state)
{
    (void)state;
    static struct run r = {.mattes = true, .figure = "pool"};
    check(&r, "of it more are held by matte");
    assert_true(r.leaks > 0);
}

static void memory_outside_the_pool_is_told_in_time(void **state)
{
    (void)state;
    static struct run r = {.figure = "rss"};
    check(&r, "it is held outside of the pool");
}

static void nothing_is_told_of_an_ordinary_run(void **state)
{
    (void)state;
    static struct run r;
    run(&r);
    assert_int_equal(r.seen, FRAMES);
    if (sac_monitor_event_count(sac_pipeline_monitor(r.pipe)))
        fail_with_events(sac_pipeline_monitor(r.pipe), "an ordinary run was reported");
    assert_int_equal(leaks_of(r.pipe), 0);
    assert_true(sac_monitor_figure_count(sac_pipeline_monitor(r.pipe)) > 10);
    sac_pipeline_destroy(&r.pipe);
}

int main(int argc, char **argv)
{
    static const struct {
        const char       *name, *group;
        struct CMUnitTest test;
    } runs[] = {
        {"mattes", "pipeline/growing_mattes", cmocka_unit_test(a_pool_that_grows_is_told_in_time)},
        {"frames", "pipeline/growing_frames",
         cmocka_unit_test(memory_outside_the_pool_is_told_in_time)},
        {"nothing", "pipeline/growing_nothing",
         cmocka_unit_test(nothing_is_told_of_an_ordinary_run)},
    };
    for (size_t i = 0; i < SAC_COUNT(runs); i++)
        if (argc == 2 && strcmp(argv[1], runs[i].name) == 0)
            return _cmocka_run_group_tests(runs[i].group, &runs[i].test, 1, folder_create,
                                           folder_remove);
    fprintf(stderr, "usage: test_pipeline_growing mattes|frames|nothing\n");
    return 2;
}
