/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that make mattes: pull and push, several streams, what is refused. person_seg is the
 * network; what it sees does not matter here. */
#include <string.h>

#include <saccade/pipeline.h>

#include "base/base.h"
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

static void a_session_gives_mattes(void **state)
{
    (void)state;
    struct sac_segment_params segment = sac_segment_params_default();
    struct sac_session_params params = sac_session_params_default();
    sac_session              *s = NULL;
    sac_frame                *first = NULL;
    char                      model[] = MODEL;
    segment.model = model;
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
    sac_session_destroy(&s);
    assert_int_equal(first->width, WIDTH); /* it outlives the session */
    sac_frame_unref(&first);
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
        cmocka_unit_test_setup_teardown(each_frame_is_handed_out, folder_create, folder_remove),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_refused, folder_create,
                                        folder_remove),
    };
    return cmocka_run_group_tests_name("pipeline/segment", tests, NULL, NULL);
}
