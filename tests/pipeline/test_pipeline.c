/* SPDX-License-Identifier: Apache-2.0 */
/* The pull form with ready-made detections: no model is needed. */
#include <saccade/pipeline.h>

#include <cjson/cJSON.h>

#include "base/base.h"
#include "tests/pipeline/folder.h"

enum { FRAMES = 30 };

static int set_up(void **state)
{
    if (folder_create(state) != 0)
        return -1;
    write_detections(in_folder("det.txt"), FRAMES);
    write_images(FRAMES);
    return 0;
}

static int remove_outputs(void **state)
{
    (void)state;
    static const char *const names[] = {"out.jsonl", "out.mot", "out.mp4"};
    for (size_t i = 0; i < SAC_COUNT(names); i++)
        unlink(in_folder(names[i]));
    return 0;
}

static struct sac_pipeline_params from_detections(void)
{
    static char                detections[384];
    struct sac_pipeline_params params = sac_pipeline_params_default();
    snprintf(detections, sizeof detections, "%s", in_folder("det.txt"));
    params.detections = detections;
    params.job.device = "cpu";
    params.fps = 25;
    return params;
}

static struct sac_pipeline_params from_images(void)
{
    static char                input[384];
    struct sac_pipeline_params params = from_detections();
    snprintf(input, sizeof input, "%s", in_folder("img%03d.ppm"));
    params.input = input;
    return params;
}

static sac_result run(const struct sac_pipeline_params *params, struct sac_pipeline_stats *stats)
{
    sac_pipeline *pipe = NULL;
    assert_sac_ok(sac_pipeline_create(test_context(), params, &pipe));
    sac_result res = sac_pipeline_run(pipe);
    if (stats)
        sac_pipeline_get_stats(pipe, stats);
    sac_pipeline_destroy(&pipe);
    assert_null(pipe);
    return res;
}

/* ---- reading outputs back ---- */

/* Every line must be JSON; returns the number of frames, which count up from 0. */
static int check_jsonl(const char *path, int *track_rows)
{
    static char line[65536];
    int         frames = -1; /* the header is not one */
    FILE       *file = fopen(path, "r");
    assert_non_null(file);
    *track_rows = 0;
    for (; fgets(line, sizeof line, file); frames++) {
        assert_int_equal(line[strlen(line) - 1], '\n');
        cJSON *json = cJSON_Parse(line);
        if (!json)
            fail_msg("not JSON: %s", line);
        if (frames < 0) {
            assert_string_equal(cJSON_GetObjectItem(json, "format")->valuestring, "saccade-tracks");
            assert_int_equal(cJSON_GetObjectItem(json, "version")->valueint, 1);
        } else {
            assert_int_equal(cJSON_GetObjectItem(json, "frame")->valueint, frames);
            double pts = cJSON_GetObjectItem(json, "pts")->valuedouble;
            assert_true(pts > frames / 25.0 - 1e-5 && pts < frames / 25.0 + 1e-5);
            *track_rows += cJSON_GetArraySize(cJSON_GetObjectItem(json, "tracks"));
        }
        cJSON_Delete(json);
    }
    fclose(file);
    return frames;
}

static int check_mot(const char *path)
{
    struct sac_mot_file file = {0};
    assert_sac_ok(sac_mot_read(test_context(), path, &file));
    int rows = (int)file.count;
    for (size_t i = 0; i < file.count; i++) {
        assert_in_range(file.rows[i].frame, 1, FRAMES);
        assert_true(file.rows[i].id >= 1);
    }
    sac_mot_finish(&file);
    return rows;
}

/* ---- cases ---- */

static void tracks_without_a_video(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_detections();
    struct sac_pipeline_stats  stats;
    int                        rows;
    params.jsonl_out = in_folder("out.jsonl");
    params.mot_out = in_folder("out.mot");
    params.command = "track \"quoted\" \xff";
    assert_sac_ok(run(&params, &stats));
    assert_int_equal(stats.frames, FRAMES);
    assert_int_equal(stats.frames_total, FRAMES);
    assert_int_equal(stats.detections, 2 * FRAMES);
    assert_int_equal(stats.tracks, 2);
    assert_int_equal(stats.objects, 2);
    assert_string_equal(stats.engine, "");
    assert_int_equal(check_jsonl(in_folder("out.jsonl"), &rows), FRAMES);
    assert_in_range(rows, 2 * FRAMES - 10, 2 * FRAMES);
    assert_int_equal(check_mot(in_folder("out.mot")), rows);
    assert_int_equal(count_files(".part"), 0);
}

static void needs_a_frame_rate_without_a_video(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_detections();
    sac_pipeline              *pipe = NULL;
    params.fps = 0;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    write_text(in_folder("seqinfo.ini"), "[Sequence]\nframeRate=25\nseqLength=40\n");
    struct sac_pipeline_stats stats;
    assert_sac_ok(run(&params, &stats));
    assert_int_equal(stats.frames, 40); /* the last ten are empty */
    unlink(in_folder("seqinfo.ini"));
}

static void writes_the_annotated_video(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_images();
    struct sac_pipeline_stats  stats;
    int                        rows;
    params.video_out = in_folder("out.mp4");
    params.jsonl_out = in_folder("out.jsonl");
    assert_sac_ok(run(&params, &stats));
    assert_int_equal(stats.frames, FRAMES);
    assert_true(stats.encoder[0] != '\0');
    assert_int_equal(check_jsonl(in_folder("out.jsonl"), &rows), FRAMES);
    assert_int_equal(count_files(".part"), 0);
    bool drew = false, encoded = false;
    for (int i = 0; i < stats.stage_count; i++) {
        drew |= !strcmp(stats.stage[i].name, "draw") && stats.stage[i].count == FRAMES;
        encoded |= !strcmp(stats.stage[i].name, "encode") && stats.stage[i].count == FRAMES;
    }
    assert_true(drew && encoded);
    assert_string_not_equal(stats.bottleneck, "");
    /* The video can be read back, frame by frame. */
    sac_device *dev = NULL;
    sac_source *src = NULL;
    sac_frame  *frame = NULL;
    int         frames = 0;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    assert_sac_ok(sac_source_open(dev, in_folder("out.mp4"), NULL, &src));
    for (; sac_source_read_wait(src, &frame) == SAC_OK; frames++)
        sac_frame_unref(&frame);
    assert_int_equal(frames, FRAMES);
    sac_source_close(&src);
    sac_device_unref(&dev);
}

struct watch {
    sac_pipeline *pipe;
    int           frames, stop_at;
    bool          by_return, with_video, ordered;
};

static int watch_frame(void *user, const sac_frame *frame, const struct sac_track *tracks, size_t n)
{
    struct watch *w = user;
    (void)tracks;
    (void)n;
    w->ordered &= w->with_video ? frame && frame->number == w->frames : !frame;
    w->frames++;
    if (w->frames == w->stop_at && !w->by_return)
        sac_pipeline_stop(w->pipe);
    return w->frames == w->stop_at && w->by_return;
}

static sac_result run_watched(struct sac_pipeline_params *params, struct watch *w)
{
    w->ordered = true;
    w->with_video = params->input != NULL;
    params->on_frame = watch_frame;
    params->on_frame_user = w;
    assert_sac_ok(sac_pipeline_create(test_context(), params, &w->pipe));
    sac_result res = sac_pipeline_run(w->pipe);
    sac_pipeline_destroy(&w->pipe);
    assert_true(w->ordered);
    return res;
}

static void calls_back_in_order(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_detections();
    struct watch               w = {0};
    assert_sac_ok(run_watched(&params, &w));
    assert_int_equal(w.frames, FRAMES);
    params = from_images();
    w = (struct watch){0};
    assert_sac_ok(run_watched(&params, &w));
    assert_int_equal(w.frames, FRAMES);
}

static void realtime_holds_frames_back(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_images();
    struct sac_pipeline_stats  free_run, paced;
    assert_sac_ok(run(&params, &free_run));
    params.realtime = 1;
    assert_sac_ok(run(&params, &paced));
    assert_int_equal(free_run.latency.count, FRAMES);
    assert_int_equal(paced.latency.count, FRAMES);
    /* 30 frames at 25 frames/s: the last is due after 1.16 s */
    assert_true(paced.elapsed_s > 1.1 && paced.elapsed_s > free_run.elapsed_s);
    assert_true(paced.latency.p50_ms < 1000);
}

static void a_stop_leaves_whole_outputs(void **state)
{
    (void)state;
    for (int by_return = 0; by_return <= 1; by_return++) {
        struct sac_pipeline_params params = from_images();
        struct watch               w = {.stop_at = 6, .by_return = by_return};
        int                        rows;
        params.jsonl_out = in_folder("out.jsonl");
        params.mot_out = in_folder("out.mot");
        params.job.queue_length = 1;
        assert_sac_error(run_watched(&params, &w), SAC_ERR_CANCELLED);
        int frames = check_jsonl(in_folder("out.jsonl"), &rows);
        assert_int_equal(frames, w.frames);
        assert_in_range(frames, 6, by_return ? 6 : FRAMES - 1);
        assert_int_equal(check_mot(in_folder("out.mot")), rows);
        assert_int_equal(count_files(".part"), 0);
    }
}

static void a_stop_before_the_run_ends_it_at_once(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_images();
    struct sac_pipeline_stats  stats;
    sac_pipeline              *pipe = NULL;
    params.jsonl_out = in_folder("out.jsonl");
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    sac_pipeline_stop(pipe);
    assert_sac_error(sac_pipeline_run(pipe), SAC_ERR_CANCELLED);
    sac_pipeline_get_stats(pipe, &stats);
    assert_int_equal(stats.frames, 0);
    assert_sac_error(sac_pipeline_run(pipe), SAC_ERR_ARG);
    sac_pipeline_destroy(&pipe);
    assert_int_equal(count_files(".jsonl") + count_files(".part"), 0);
}

static void no_frame_replaces_no_results(void **state)
{
    (void)state;
    static const char *const   names[] = {"out.jsonl", "out.mot", "out.mp4"};
    struct sac_pipeline_params params = from_images();
    sac_pipeline              *pipe = NULL;
    char                       good[SAC_COUNT(names)][384], stats[384];
    for (size_t i = 0; i < SAC_COUNT(names); i++) {
        snprintf(good[i], sizeof good[i], "%s", in_folder(names[i]));
        write_text(good[i], "good");
    }
    snprintf(stats, sizeof stats, "%s", in_folder("stats"));
    params.jsonl_out = good[0];
    params.mot_out = good[1];
    params.video_out = good[2];
    params.job.stats_out = stats;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    sac_pipeline_stop(pipe);
    assert_sac_error(sac_pipeline_run(pipe), SAC_ERR_CANCELLED);
    sac_pipeline_destroy(&pipe);
    for (size_t i = 0; i < SAC_COUNT(names); i++)
        expect_text(good[i], "good");
    assert_int_equal(access(stats, F_OK), 0); /* of the run itself */
    assert_int_equal(count_files(".part"), 0);
    unlink(stats);
}

static void a_full_disk_spares_the_other_outputs(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_detections();
    char                       why[512];
    int                        rows;
    if (access("/dev/full", W_OK) != 0)
        skip();
    params.mot_out = "/dev/full";
    params.jsonl_out = in_folder("out.jsonl");
    assert_sac_error(run(&params, NULL), SAC_ERR_IO);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "cannot write '/dev/full': No space left on device");
    assert_true(check_jsonl(in_folder("out.jsonl"), &rows) >= 0);
    params.mot_out = in_folder("out.mot");
    params.jsonl_out = "/dev/full"; /* not even the header: known before the run */
    sac_pipeline *pipe = NULL;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_IO);
    assert_int_equal(count_files(".mot") + count_files(".part"), 0);
}

static void leaves_nothing_when_it_cannot_start(void **state)
{
    (void)state;
    sac_pipeline *pipe = NULL;
    for (int i = 0; i < 7; i++) {
        struct sac_pipeline_params params = from_images();
        sac_result                 expect = SAC_ERR_IO;
        params.jsonl_out = in_folder("out.jsonl");
        if (i == 0)
            params.input = "/nowhere/in.mp4";
        else if (i == 1)
            params.mot_out = "/nowhere/out.mot";
        else if (i == 2)
            params.detections = "/nowhere/det.txt";
        else if (i == 3)
            params.job.reid = "/nowhere/reid.onnx";
        else if (i == 4)
            params.job.device = "abacus", expect = SAC_ERR_ARG;
        else if (i == 5)
            params.detections = NULL, params.job.detector = "none", expect = SAC_ERR_ARG;
        else
            params.detections = params.input = NULL, expect = SAC_ERR_ARG;
        assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), expect);
        assert_null(pipe);
        assert_int_equal(count_files(".jsonl") + count_files(".part"), 0);
    }
}

static void refuses_what_needs_a_video_without_one(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_detections();
    sac_pipeline              *pipe = NULL;
    params.video_out = in_folder("out.mp4");
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    params = from_detections();
    params.job.reid = "reid.onnx";
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
}

/* Which pictures are read is known once they are open. */
static void refuses_what_the_program_would_overwrite(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_images();
    sac_pipeline              *pipe = NULL;
    char                       why[1024];
    const char *const          writes[] = {NULL, in_folder("img002.ppm")};
    params.writes = writes;
    params.write_count = 2;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "img002.ppm' would overwrite an input"));
    assert_null(pipe);
}

static void a_pipeline_that_never_ran_leaves_nothing(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_images();
    sac_pipeline              *pipe = NULL;
    params.jsonl_out = in_folder("out.jsonl");
    params.mot_out = in_folder("out.mot");
    params.video_out = in_folder("out.mp4");
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_true(count_files(".part") >= 2);
    sac_pipeline_destroy(&pipe);
    assert_int_equal(count_files(".part") + count_files(".jsonl") + count_files(".mot"), 0);
}

static void strict_zero_copy_names_the_copy(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_images();
    char                       why[512];
    params.job.device_params.zero_copy_strict = 1;
    params.jsonl_out = in_folder("out.jsonl");
    assert_sac_ok(run(&params, NULL)); /* nothing is drawn, nothing copied */
    params.video_out = in_folder("out.mp4");
    assert_sac_error(run(&params, NULL), SAC_ERR_COPY);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "draw: copy of frame 0 of stream 0"));
    assert_non_null(strstr(why, "zero-copy is strict"));
    assert_int_equal(count_files(".part"), 0);
}

/* A long run must not take more memory than a short one: buffers come back, tracks are
 * forgotten. */
static void memory_stays_flat(void **state)
{
    (void)state;
    struct sac_pipeline_stats  few, many;
    struct sac_pipeline_params params = from_images();
    struct watch               w = {.stop_at = 10, .by_return = true};
    params.on_frame = watch_frame;
    params.on_frame_user = &w;
    params.video_out = in_folder("out.mp4");
    assert_sac_error(run(&params, &few), SAC_ERR_CANCELLED);
    params.on_frame = NULL;
    assert_sac_ok(run(&params, &many));
    assert_int_equal(many.pool.bytes_live, 0);
    assert_int_equal(many.pool.leaks, 0);
    assert_in_range(many.pool.allocations, 1, few.pool.allocations + 4);
    assert_in_range(many.pool.allocations, 1, 20); /* 30 frames, read and drawn */
}

/* Whichever allocation fails, the run ends with a sentence and leaves no half-written file. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct sac_pipeline_params params = from_detections();
    int                        failures = 0;
    params.jsonl_out = in_folder("out.jsonl");
    params.mot_out = in_folder("out.mot");
    for (long n = 1; n <= 250; n++) {
        sac_pipeline *pipe = NULL;
        char          why[256];
        sac_alloc_fail_at(n);
        sac_result res = sac_pipeline_create(test_context(), &params, &pipe);
        if (res == SAC_OK)
            res = sac_pipeline_run(pipe);
        sac_pipeline_destroy(&pipe);
        sac_alloc_fail_at(0);
        assert_true(res == SAC_OK || res == SAC_ERR_MEMORY);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_true(res == SAC_OK || why[0] != '\0');
        assert_int_equal(count_files(".part"), 0);
        failures += res != SAC_OK;
    }
    assert_in_range(failures, 30, 249); /* at the end of the range all went well */
}

static void count_before_networks(void *user, enum sac_log_level level, const char *line)
{
    (void)level;
    *(int *)user += strstr(line, "it is opened before them") != NULL;
}

/* An input that finds no memory beside the networks is opened again, without them. */
static void an_input_has_a_second_chance(void **state)
{
    (void)state;
    int                        chances = 0, good = 0;
    struct sac_context_params  quiet = sac_context_params_default();
    struct sac_pipeline_params params = from_images();
    sac_context               *ctx = NULL;
    quiet.log_fn = count_before_networks;
    quiet.log_user = &chances;
    assert_sac_ok(sac_context_create(&quiet, &ctx));
    for (long n = 1; n <= 150; n++) {
        sac_pipeline *pipe = NULL;
        const int     before = chances;
        sac_alloc_fail_at(n);
        sac_result res = sac_pipeline_create(ctx, &params, &pipe);
        sac_alloc_fail_at(0);
        good += chances > before && res == SAC_OK && sac_pipeline_run(pipe) == SAC_OK;
        sac_pipeline_destroy(&pipe);
    }
    assert_in_range(good, 3, chances);
    sac_context_destroy(&ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_input_has_a_second_chance, remove_outputs),
        cmocka_unit_test_teardown(tracks_without_a_video, remove_outputs),
        cmocka_unit_test_teardown(needs_a_frame_rate_without_a_video, remove_outputs),
        cmocka_unit_test_teardown(writes_the_annotated_video, remove_outputs),
        cmocka_unit_test_teardown(calls_back_in_order, remove_outputs),
        cmocka_unit_test_teardown(realtime_holds_frames_back, remove_outputs),
        cmocka_unit_test_teardown(a_stop_leaves_whole_outputs, remove_outputs),
        cmocka_unit_test_teardown(a_stop_before_the_run_ends_it_at_once, remove_outputs),
        cmocka_unit_test_teardown(no_frame_replaces_no_results, remove_outputs),
        cmocka_unit_test_teardown(a_full_disk_spares_the_other_outputs, remove_outputs),
        cmocka_unit_test_teardown(leaves_nothing_when_it_cannot_start, remove_outputs),
        cmocka_unit_test_teardown(refuses_what_needs_a_video_without_one, remove_outputs),
        cmocka_unit_test_teardown(refuses_what_the_program_would_overwrite, remove_outputs),
        cmocka_unit_test_teardown(a_pipeline_that_never_ran_leaves_nothing, remove_outputs),
        cmocka_unit_test_teardown(strict_zero_copy_names_the_copy, remove_outputs),
        cmocka_unit_test_teardown(memory_stays_flat, remove_outputs),
        cmocka_unit_test_teardown(every_allocation_may_fail, remove_outputs),
    };
    return cmocka_run_group_tests_name("pipeline/pipeline", tests, set_up, folder_remove);
}
