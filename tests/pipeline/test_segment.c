/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that make mattes: pull and push, several streams, what is refused. person_seg is the
 * network; what it sees does not matter here. */
#include <string.h>

#include <saccade/pipeline.h>

#include "base/base.h"
#include "device/device.h"
#include "pipeline/inference.h"
#include "pipeline/pipeline.h"
#include "tests/pipeline/folder.h"
#include "tests/test.h"

#define MODEL SOURCE_ROOT "/models/person_seg.onnx"
enum { WIDTH = 96, HEIGHT = 64, FRAMES = 5 };

/* ---- push ---- */

static sac_result submit(sac_session *s, int number, int stream_id, int width)
{
    sac_frame *frame = NULL;
    sac_frame  desc = {.format = SAC_PIXEL_RGB24, .width = width, .height = HEIGHT};
    desc.number = number;
    desc.pts_us = number * 40000;
    desc.stream_id = stream_id;
    assert_sac_ok(sac_frame_create(sac_session_device(s), &desc, &frame));
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < 3 * width; x++)
            frame->plane[0][(size_t)y * frame->pitch_bytes[0] + (size_t)x] =
                (uint8_t)(x * 7 + y * 13 + 40 * stream_id);
    sac_result res = sac_session_submit(s, frame, 100 * stream_id + number);
    sac_frame_unref(&frame);
    return res;
}

static sac_frame *take(sac_session *s, int number, int stream_id, int width)
{
    struct sac_session_result r;
    assert_sac_ok(sac_session_result_wait(s, -1, &r));
    assert_sac_ok(r.status);
    assert_int_equal(r.id, 100 * stream_id + number);
    assert_int_equal(r.count, 0);
    assert_non_null(r.matte);
    assert_int_equal(r.matte->format, SAC_PIXEL_GRAY8);
    assert_true(r.matte->width == width && r.matte->height == HEIGHT);
    assert_true(r.matte->pts_us == r.pts_us && r.matte->stream_id == stream_id);
    sac_frame *matte = sac_frame_ref(r.matte);
    sac_session_result_finish(&r);
    assert_null(r.matte);
    return matte;
}

/* looks: images that the network sees of a frame at several scales; 0: it sees it as it is. */
static void check_session(const float *scales, uint64_t looks)
{
    struct sac_segment_params segment = sac_segment_params_default();
    struct sac_session_params params = sac_session_params_default();
    sac_session              *s = NULL;
    sac_frame                *first = NULL;
    char                      model[] = MODEL;
    segment.model = model;
    memcpy(segment.segmenter.scales, scales, sizeof segment.segmenter.scales);
    params.job.device = "cpu";
    params.job.segment = &segment;
    params.job.inference_batch_max = 4;
    assert_sac_ok(sac_session_create(test_context(), &params, &s));
    memset(model, 'x', sizeof model - 1); /* all was copied */
    segment = (struct sac_segment_params){.as = (enum sac_segment_as)99};
    assert_sac_ok(sac_session_start(s));
    for (int i = 0; i < FRAMES; i++) {
        const int width = i < 3 ? WIDTH : WIDTH / 2; /* a stream may change its size */
        assert_sac_ok(submit(s, i, 0, width));
        assert_sac_ok(submit(s, i, 1, WIDTH));
        for (int k = 0; k < 2; k++) {
            sac_frame *matte = take(s, i, k, k ? WIDTH : width);
            if (!first)
                first = sac_frame_ref(matte);
            sac_frame_unref(&matte);
        }
    }
    struct sac_pipeline_stats stats;
    sac_session_get_stats(s, &stats);
    assert_int_equal(stats.frames, 2 * FRAMES);
    assert_string_equal(stats.segmenter, MODEL);
    assert_string_equal(stats.tracker, "");
    assert_int_equal(stats.savings.scales, looks ? 2 * FRAMES : 0);
    assert_int_equal(stats.savings.looks, 2 * FRAMES * looks);
    sac_session_destroy(&s);
    assert_int_equal(first->width, WIDTH); /* it outlives the session */
    sac_frame_unref(&first);
}

static void a_session_gives_mattes(void **state)
{
    (void)state;
    check_session((const float[4]){0}, 0);
}

static void a_session_sees_several_scales(void **state)
{
    (void)state;
    check_session((const float[4]){0.5f, 1, 1.5f}, 6);
}

/* ---- pull ---- */

static void write_picture(int number)
{
    char name[32];
    snprintf(name, sizeof name, "%02d.pgm", number);
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fprintf(file, "P5 %d %d 255\n", WIDTH, HEIGHT);
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        fputc((i * 7 + number) & 255, file);
    fclose(file);
}

struct seen {
    int frames, stop_at;
};

static int count(void *user, const sac_frame *frame, const sac_frame *matte)
{
    struct seen *seen = user;
    assert_int_equal(frame->number, seen->frames);
    assert_true(matte->width == WIDTH && matte->height == HEIGHT);
    return ++seen->frames == seen->stop_at;
}

static struct sac_pipeline_params with(struct sac_segment_params *segment)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    params.job.device = "cpu";
    params.job.segment = segment;
    params.input = folder;
    return params;
}

static void each_frame_is_handed_out(void **state)
{
    (void)state;
    for (int i = 0; i < FRAMES; i++)
        write_picture(i);
    for (int stop_at = 0; stop_at < 3; stop_at += 2) {
        struct seen               seen = {.stop_at = stop_at};
        struct sac_segment_params segment = sac_segment_params_default();
        segment.on_matte = count;
        segment.on_matte_user = &seen;
        struct sac_pipeline_params params = with(&segment);
        sac_pipeline              *pipe = NULL;
        assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
        memset(&segment, 0xff, sizeof segment); /* it was copied */
        if (stop_at)
            assert_sac_error(sac_pipeline_run(pipe), SAC_ERR_CANCELLED);
        else
            assert_sac_ok(sac_pipeline_run(pipe));
        assert_int_equal(seen.frames, stop_at ? stop_at : FRAMES);
        sac_pipeline_destroy(&pipe);
    }
}

/* ---- modes ---- */

struct shown {
    uint64_t mattes, composites; /* sums of their bytes, weighted by place */
    int      matte_count, composite_count;
};

static uint64_t sum_of(const sac_frame *frame)
{
    uint64_t sum = 0;
    for (int y = 0; y < frame->height; y++)
        for (int x = 0; x < frame->width; x++)
            sum = sum * 31 + frame->plane[0][(size_t)y * frame->pitch_bytes[0] + (size_t)x];
    return sum;
}

static int see_matte(void *user, const sac_frame *frame, const sac_frame *matte)
{
    struct shown *shown = user;
    (void)frame;
    shown->mattes = shown->mattes * 1009 + sum_of(matte);
    shown->matte_count++;
    return 0;
}

static void see_composite(void *user, const sac_frame *frame, const sac_frame *composite)
{
    struct shown *shown = user;
    assert_int_equal(frame->number, shown->composite_count);
    assert_true(composite != frame && composite->width == WIDTH);
    assert_int_equal(composite->format, frame->format);
    shown->composites = shown->composites * 1009 + sum_of(composite);
    shown->composite_count++;
}

static struct shown run_mode(enum sac_segment_mode mode, struct sac_pipeline_stats *stats)
{
    struct shown              shown = {0};
    struct sac_segment_params segment = sac_segment_params_default();
    segment.mode = mode;
    segment.on_matte = see_matte;
    segment.on_composite = see_composite;
    segment.on_matte_user = segment.on_composite_user = &shown;
    struct sac_pipeline_params params = with(&segment);
    sac_pipeline              *pipe = NULL;
    params.job.inference_batch_max = FRAMES; /* which vr does not look at */
    params.job.timeout_ms = 10000;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_sac_ok(sac_pipeline_run(pipe));
    sac_pipeline_get_stats(pipe, stats);
    sac_pipeline_destroy(&pipe);
    return shown;
}

static void vr_has_batches_of_one_and_the_same_mattes(void **state)
{
    (void)state;
    struct sac_pipeline_stats many, one;
    for (int i = 0; i < FRAMES; i++)
        write_picture(i);
    const struct shown a = run_mode(SAC_SEGMENT_THROUGHPUT, &many),
                       b = run_mode(SAC_SEGMENT_VR, &one);
    assert_int_equal(many.batch.count, 1);
    assert_int_equal(many.batch.max, FRAMES);
    assert_int_equal(one.batch.count, FRAMES);
    assert_int_equal(one.batch.max, 1);
    assert_true(a.matte_count == FRAMES && b.matte_count == FRAMES);
    assert_true(a.composite_count == FRAMES && b.composite_count == FRAMES);
    assert_true(a.mattes == b.mattes && a.composites == b.composites);
    assert_int_equal(one.composite_latency.count, FRAMES);
    assert_int_equal(one.outputs_whole, 0);
    assert_true(one.composite_latency.p50_ms > 0);
}

/* As a GPU has it, without one. */
static int batch_limit(int streams, int batch_max, bool segments, enum sac_segment_mode mode)
{
    const struct sac_device_ops ops = {.name = "fake", .async = true, .pictures_lent = 20};
    struct sac_segment_params   segment = {.mode = mode};
    sac_device                  dev = {.ops = &ops};
    struct sac_inference        inf = {.depth = 2, .batch_max = batch_max};
    struct sac_job job = {.dev = &dev, .inference = &inf, .segment = segments ? &segment : NULL};
    struct sac_pipeline pipe = {
        .job_count = 1, .stream_count = streams, .params = sac_pipeline_params_default()};
    pipe.jobs[0] = &job;
    return sac_pipeline_batch_limit(&pipe, &job);
}

static void frames_of_one_file_fill_batches(void **state)
{
    (void)state;
    assert_int_equal(batch_limit(1, 16, true, SAC_SEGMENT_THROUGHPUT), 8);
    assert_int_equal(batch_limit(2, 16, true, SAC_SEGMENT_THROUGHPUT), 16);
    assert_int_equal(batch_limit(8, 16, true, SAC_SEGMENT_THROUGHPUT), 16);
    assert_int_equal(batch_limit(1, 1, true, SAC_SEGMENT_VR), 1);
    assert_int_equal(batch_limit(1, 32, false, SAC_SEGMENT_THROUGHPUT), 4); /* of a detector */
}

static void refuse(const struct sac_pipeline_params *params, const char *word)
{
    sac_pipeline *pipe = NULL;
    char          why[512];
    assert_int_equal(sac_pipeline_create(test_context(), params, &pipe), SAC_ERR_ARG);
    assert_null(pipe);
    sac_context_last_error(test_context(), why, sizeof why);
    if (!strstr(why, word))
        fail_msg("'%s' does not name '%s'", why, word);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    struct sac_segment_params  segment = sac_segment_params_default();
    struct sac_pipeline_params params = with(&segment);
    params.jsonl_out = "t.jsonl";
    refuse(&params, "t.jsonl");
    params = with(&segment);
    params.detections = "det.txt";
    refuse(&params, "det.txt");
    params = with(&segment);
    params.video_out = "x.mp4";
    segment.as = SAC_SEGMENT_AS_COUNT;
    refuse(&params, "segment.as");
    segment = sac_segment_params_default();
    segment.strength = 2;
    refuse(&params, "segment.strength");
    segment = sac_segment_params_default();
    segment.reserved[0] = 1;
    refuse(&params, "segment");
    segment = sac_segment_params_default();
    segment.segmenter.smooth = 1;
    refuse(&params, "smooth");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_gives_mattes),
        cmocka_unit_test(a_session_sees_several_scales),
        cmocka_unit_test_setup_teardown(each_frame_is_handed_out, folder_create, folder_remove),
        cmocka_unit_test_setup_teardown(vr_has_batches_of_one_and_the_same_mattes, folder_create,
                                        folder_remove),
        cmocka_unit_test(frames_of_one_file_fill_batches),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_refused, folder_create,
                                        folder_remove),
    };
    return cmocka_run_group_tests_name("pipeline/segment", tests, NULL, NULL);
}
