/* SPDX-License-Identifier: Apache-2.0 */
/* Several inputs in one run, with ready-made detections: no model is needed. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include <saccade/pipeline.h>

#include "base/base.h"
#include "pipeline/pipeline.h"
#include "tests/pipeline/folder.h"

enum { FRAMES = 30, STREAMS = 5 };

static char inputs[STREAMS][384], mots[STREAMS][384], detections[384];

static int set_up(void **state)
{
    if (folder_create(state) != 0)
        return -1;
    snprintf(detections, sizeof detections, "%s", in_folder("det.txt"));
    write_detections(detections, FRAMES);
    write_images(FRAMES);
    for (int i = 0; i < STREAMS; i++) {
        char name[32];
        snprintf(inputs[i], sizeof inputs[i], "%s", in_folder("img%03d.ppm"));
        snprintf(name, sizeof name, "out%d.mot", i);
        snprintf(mots[i], sizeof mots[i], "%s", in_folder(name));
    }
    return 0;
}

static int remove_outputs(void **state)
{
    (void)state;
    for (int i = 0; i < STREAMS; i++)
        unlink(mots[i]);
    unlink(in_folder("alone.mot"));
    return 0;
}

static struct sac_pipeline_params several(struct sac_stream_params streams[STREAMS], bool video)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    for (int i = 0; i < STREAMS; i++)
        streams[i] = (struct sac_stream_params){
            .input = video ? inputs[i] : NULL, .detections = detections, .mot_out = mots[i]};
    params.job.device = "cpu";
    params.job.reid = NULL;
    params.fps = 25;
    params.streams = streams;
    params.stream_count = STREAMS;
    return params;
}

static struct sac_mot_file read_mot(const char *path)
{
    struct sac_mot_file file = {0};
    assert_sac_ok(sac_mot_read(test_context(), path, &file));
    return file;
}

static struct sac_mot_file tracks_alone(void)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    sac_pipeline              *pipe = NULL;
    params.job.device = "cpu";
    params.job.reid = NULL;
    params.input = inputs[0];
    params.detections = detections;
    params.mot_out = in_folder("alone.mot");
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_sac_ok(sac_pipeline_run(pipe));
    sac_pipeline_destroy(&pipe);
    return read_mot(in_folder("alone.mot"));
}

/* Row by row, but for the ids: those differ by the order in which streams met their objects. */
static void assert_same_tracks(const struct sac_mot_file *a, const struct sac_mot_file *b)
{
    int map[64] = {0};
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct sac_mot_row *x = &a->rows[i], *y = &b->rows[i];
        assert_int_equal(x->frame, y->frame);
        assert_true(x->x == y->x && x->y == y->y && x->w == y->w && x->h == y->h);
        int *known = &map[y->id % 64];
        assert_true(!*known || *known == x->id);
        *known = x->id;
    }
}

static void each_stream_is_as_it_is_alone(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = several(streams, true);
    struct sac_mot_file        alone = tracks_alone();
    struct sac_pipeline_stats  stats;
    sac_pipeline              *pipe = NULL;
    params.job.queue_length = 1; /* the least room: nobody may wait for ever */
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_sac_ok(sac_pipeline_run(pipe));
    sac_pipeline_get_stats(pipe, &stats);
    assert_int_equal(stats.frames, STREAMS * FRAMES);
    assert_int_equal(stats.frames_total, STREAMS * FRAMES);
    assert_int_equal(stats.tracks, STREAMS * 2);
    assert_int_equal(stats.source.frames, STREAMS * FRAMES);
    for (int i = 0; i < stats.queue_count; i++)
        assert_int_equal(stats.queue[i].passed, STREAMS * FRAMES);
    for (int i = 0; i < STREAMS; i++) {
        struct sac_stream_stats stream;
        struct sac_mot_file     file = read_mot(mots[i]);
        sac_pipeline_get_stream_stats(pipe, i, &stream);
        assert_int_equal(stream.stream_id, i);
        assert_int_equal(stream.frames, FRAMES);
        assert_int_equal(stream.tracks, 2);
        assert_int_equal(stream.status, SAC_OK);
        assert_string_equal(stream.input, inputs[i]);
        assert_same_tracks(&alone, &file);
        sac_mot_finish(&file);
    }
    sac_pipeline_destroy(&pipe);
    sac_mot_finish(&alone);
}

/* One cannot be opened, one has nowhere to write, one meets a full disk: two are left. */
static void faults_stay_with_their_stream(void **state)
{
    (void)state;
    static const sac_result  expect[STREAMS] = {SAC_OK, SAC_ERR_IO, SAC_ERR_IO, SAC_ERR_IO, SAC_OK};
    struct sac_stream_params streams[STREAMS];
    struct sac_pipeline_params params = several(streams, true);
    sac_pipeline              *pipe = NULL;
    char                       why[512];
    if (access("/dev/full", W_OK) != 0)
        skip();
    streams[1].input = "/nowhere/in.mp4";
    streams[2].mot_out = "/nowhere/out.mot";
    streams[3].mot_out = "/dev/full";
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_sac_error(sac_pipeline_run(pipe), SAC_ERR_IO);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "3 of 5 inputs failed: "));
    assert_non_null(strstr(why, "/nowhere/in.mp4"));
    for (int i = 0; i < STREAMS; i++) {
        struct sac_stream_stats stream;
        sac_pipeline_get_stream_stats(pipe, i, &stream);
        assert_int_equal(stream.status, expect[i]);
        assert_true((stream.why[0] == '\0') == (expect[i] == SAC_OK));
        if (expect[i] == SAC_OK)
            assert_int_equal(stream.frames, FRAMES);
    }
    sac_pipeline_destroy(&pipe);
    assert_int_equal(count_files(".mot"), 2);
    assert_int_equal(count_files(".part"), 0);
    for (int i = 0; i < STREAMS; i++)
        streams[i].input = "/nowhere/in.mp4";
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_IO);
    assert_null(pipe);
}

enum { LINES_MAX = 2 * STREAMS };

struct lines {
    char text[LINES_MAX][512];
    int  count;
};

/* The context calls it for one thread at a time. */
static void keep_error(void *user, enum sac_log_level level, const char *message)
{
    struct lines *lines = user;
    if (level == SAC_LOG_ERROR && lines->count < LINES_MAX)
        snprintf(lines->text[lines->count++], sizeof lines->text[0], "%s", message);
}

/* What can be opened, and shows only after a while that it is no video. */
static void *feed_late(void *path)
{
    const int fd = open(path, O_WRONLY);
    usleep(300000);
    if (fd >= 0 && write(fd, "no video\n", 9) == 9)
        close(fd);
    return NULL;
}

/* Inputs are opened side by side, and the first of these is the last to fail. */
static void faults_are_told_in_the_order_of_the_inputs(void **state)
{
    (void)state;
    struct lines               lines = {.count = 0};
    struct sac_context_params  ctx_params = sac_context_params_default();
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = several(streams, true);
    sac_context               *ctx = NULL;
    sac_pipeline              *pipe = NULL;
    pthread_t                  writer;
    char                       slow[384], missing[STREAMS][64];
    snprintf(slow, sizeof slow, "%s", in_folder("slow.ts"));
    assert_int_equal(mkfifo(slow, 0600), 0);
    streams[0].input = slow;
    for (int i = 1; i < STREAMS - 1; i++) {
        snprintf(missing[i], sizeof missing[i], "/nowhere/%d.mp4", i);
        streams[i].input = missing[i];
    }
    ctx_params.log_fn = keep_error;
    ctx_params.log_user = &lines;
    assert_sac_ok(sac_context_create(&ctx_params, &ctx));
    assert_int_equal(pthread_create(&writer, NULL, feed_late, slow), 0);
    assert_int_equal(sac_pipeline_create(ctx, &params, &pipe), SAC_OK);
    pthread_join(writer, NULL);
    sac_pipeline_destroy(&pipe);
    sac_context_destroy(&ctx);
    unlink(slow);
    assert_int_equal(lines.count, STREAMS - 1);
    for (int i = 0; i < STREAMS - 1; i++)
        assert_non_null(strstr(lines.text[i], streams[i].input));
}

struct pause {
    sac_pipeline *pipe;
    int           frames;
    atomic_int    inside;
    bool          alone; /* at any time one call */
};

static int watch(void *user, const sac_frame *frame, const struct sac_track *tracks, size_t n)
{
    struct pause *p = user;
    (void)frame;
    (void)tracks;
    (void)n;
    p->alone &= atomic_fetch_add(&p->inside, 1) == 0;
    if (++p->frames == 12)
        sac_pipeline_stop(p->pipe);
    usleep(200);
    atomic_fetch_sub(&p->inside, 1);
    return 0;
}

static void a_stop_ends_all_with_whole_outputs(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = several(streams, true);
    struct pause               p = {.alone = true};
    int                        begun = 0;
    params.job.queue_length = 1;
    params.on_frame = watch;
    params.on_frame_user = &p;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &p.pipe));
    assert_sac_error(sac_pipeline_run(p.pipe), SAC_ERR_CANCELLED);
    for (int i = 0; i < STREAMS; i++) {
        struct sac_stream_stats stream;
        sac_pipeline_get_stream_stats(p.pipe, i, &stream);
        begun += stream.frames > 0;
    }
    sac_pipeline_destroy(&p.pipe);
    assert_true(p.alone);
    assert_in_range(p.frames, 12, STREAMS * FRAMES - 1);
    assert_int_equal(count_files(".mot"), begun);
    assert_int_equal(count_files(".part"), 0);
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &p.pipe));
    sac_pipeline_stop(p.pipe); /* before the run */
    assert_sac_error(sac_pipeline_run(p.pipe), SAC_ERR_CANCELLED);
    sac_pipeline_destroy(&p.pipe);
}

static sac_pipeline *stopped_pipe;
static pthread_t     run_thread;
static atomic_bool   run_waits;

/* Holds the thread of the run until all streams have ended without it, as a busy machine may. */
static void wait_for_streams(int sig)
{
    (void)sig;
    atomic_store(&run_waits, true);
    for (int i = 0; i < STREAMS; i++)
        while (!atomic_load(&stopped_pipe->streams[i].finished))
            usleep(1000);
}

static int hold_and_stop(void *user, const sac_frame *frame, const struct sac_track *tracks,
                         size_t n)
{
    int *frames = user;
    (void)frame;
    (void)tracks;
    (void)n;
    if (++*frames != 12)
        return 0;
    pthread_kill(run_thread, SIGUSR1);
    while (!atomic_load(&run_waits))
        usleep(1000);
    sac_pipeline_stop(stopped_pipe);
    return 0;
}

static void a_stop_is_told_by_a_run_that_learns_it_late(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = several(streams, true);
    int                        frames = 0;
    run_thread = pthread_self();
    signal(SIGUSR1, wait_for_streams);
    params.job.queue_length = 1;
    params.on_frame = hold_and_stop;
    params.on_frame_user = &frames;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &stopped_pipe));
    assert_sac_error(sac_pipeline_run(stopped_pipe), SAC_ERR_CANCELLED);
    assert_in_range(frames, 12, STREAMS * FRAMES - 1);
    sac_pipeline_destroy(&stopped_pipe);
    signal(SIGUSR1, SIG_DFL);
}

static void *run_main(void *pipe)
{
    assert_sac_ok(sac_pipeline_run(pipe));
    return NULL;
}

static bool others_are_done(sac_pipeline *pipe, int frames)
{
    struct sac_stream_stats stream;
    for (int i = 1; i < STREAMS; i++) {
        sac_pipeline_get_stream_stats(pipe, i, &stream);
        if (stream.frames < frames || access(mots[i], F_OK) != 0)
            return false;
    }
    return true;
}

/* An output that stands still, as a pipe does that nobody reads, holds only its own stream up. */
static void a_stuck_sink_holds_nobody_else_up(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = several(streams, false);
    struct sac_stream_stats    stuck;
    sac_pipeline              *pipe = NULL;
    pthread_t                  thread;
    char                       fifo[384], many[384], bytes[4096];
    snprintf(fifo, sizeof fifo, "%s", in_folder("fifo"));
    snprintf(many, sizeof many, "%s", in_folder("many.txt"));
    write_detections(many, MANY);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int reader = open(fifo, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    for (int i = 0; i < STREAMS; i++)
        streams[i].detections = many;
    streams[0].mot_out = fifo;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_int_equal(pthread_create(&thread, NULL, run_main, pipe), 0);
    /* two minutes: held up, they would never be */
    for (int i = 0; i < 6000 && !others_are_done(pipe, MANY); i++)
        usleep(20000);
    assert_true(others_are_done(pipe, MANY));
    sac_pipeline_get_stream_stats(pipe, 0, &stuck);
    assert_true(stuck.frames < MANY);
    /* once it is read, it ends too */
    fcntl(reader, F_SETFL, 0);
    while (read(reader, bytes, sizeof bytes) > 0)
        ;
    pthread_join(thread, NULL);
    sac_pipeline_get_stream_stats(pipe, 0, &stuck);
    assert_int_equal(stuck.frames, MANY);
    sac_pipeline_destroy(&pipe);
    close(reader);
    unlink(fifo);
    unlink(many);
}

/* The first frame cannot be encoded; the next one is due in fifty seconds, and nobody waits for
 * it. */
static void a_fault_does_not_wait_for_the_next_frames_time(void **state)
{
    (void)state;
    struct sac_pipeline_params params = sac_pipeline_params_default();
    sac_pipeline              *pipe = NULL;
    write_text(in_folder("dot0.pgm"), "P5\n1 1\n255\nx");
    write_text(in_folder("dot1.pgm"), "P5\n1 1\n255\ny");
    params.job.device = "cpu";
    params.job.reid = NULL;
    params.input = in_folder("dot%d.pgm");
    params.detections = detections;
    params.video_out = in_folder("dot.mp4");
    params.source.fps = 0.02;
    params.realtime = 1;
    const int64_t begun = sac_time_ns();
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_sac_error(sac_pipeline_run(pipe), SAC_ERR_UNSUPPORTED);
    assert_true(sac_time_ns() - begun < 25 * INT64_C(1000000000));
    sac_pipeline_destroy(&pipe);
}

static void all_or_none_have_detections(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = several(streams, true);
    sac_pipeline              *pipe = NULL;
    streams[3].detections = NULL;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    streams[3] = (struct sac_stream_params){0};
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    assert_int_equal(count_files(".part"), 0);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = several(streams, false);
    int                        failures = 0;
    for (long n = 1; n <= 500; n++) {
        sac_pipeline *pipe = NULL;
        sac_alloc_fail_at(n);
        sac_result res = sac_pipeline_create(test_context(), &params, &pipe);
        if (res == SAC_OK)
            res = sac_pipeline_run(pipe);
        sac_pipeline_destroy(&pipe);
        sac_alloc_fail_at(0);
        assert_true(res == SAC_OK || res == SAC_ERR_MEMORY);
        assert_int_equal(count_files(".part"), 0);
        failures += res != SAC_OK;
    }
    assert_in_range(failures, 60, 499); /* at the end of the range all went well */
}

/* The program's own check is the library's: whoever embeds it gets the same. */
static void outputs_of_two_streams_are_two_files(void **state)
{
    (void)state;
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = several(streams, true);
    sac_pipeline              *pipe = NULL;
    char                       why[1024], other[512];
    snprintf(other, sizeof other, "%s/./out1.mot", folder);
    streams[3].mot_out = other;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "would both write"));
    streams[3].mot_out = mots[3];
    params.job.stats_out = other;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    params.job.stats_out = NULL;
    streams[2].jsonl_out = detections;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    streams[2].jsonl_out = NULL;
    const char *const reads[] = {mots[4]};
    params.reads = reads;
    params.read_count = 1;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    assert_sac_error(sac_pipeline_check_files(test_context(), &params), SAC_ERR_ARG);
    params.read_count = 0;
    assert_sac_ok(sac_pipeline_check_files(test_context(), &params));
    assert_null(pipe);
    assert_int_equal(count_files(".mot"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_stream_is_as_it_is_alone, remove_outputs),
        cmocka_unit_test_teardown(faults_stay_with_their_stream, remove_outputs),
        cmocka_unit_test_teardown(faults_are_told_in_the_order_of_the_inputs, remove_outputs),
        cmocka_unit_test_teardown(a_stop_ends_all_with_whole_outputs, remove_outputs),
        cmocka_unit_test_teardown(a_stop_is_told_by_a_run_that_learns_it_late, remove_outputs),
        cmocka_unit_test_teardown(a_stuck_sink_holds_nobody_else_up, remove_outputs),
        cmocka_unit_test_teardown(a_fault_does_not_wait_for_the_next_frames_time, remove_outputs),
        cmocka_unit_test_teardown(all_or_none_have_detections, remove_outputs),
        cmocka_unit_test_teardown(outputs_of_two_streams_are_two_files, remove_outputs),
        cmocka_unit_test_teardown(every_allocation_may_fail, remove_outputs),
    };
    return cmocka_run_group_tests_name("pipeline/streams", tests, set_up, folder_remove);
}
