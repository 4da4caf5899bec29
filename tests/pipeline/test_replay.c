/* SPDX-License-Identifier: Apache-2.0 */
/* What the keys of the disk cache depend on: each option that changes boxes or embeddings, the
 * contents of clip and models, and nothing of trackers. tests/cli/test_cache.py has whole runs. */
#include "pipeline/replay.h"
#include "tests/pipeline/folder.h"

static struct sac_job           job;
static struct sac_source_params source;
static struct sac_preprocess    pre;

static void reset(void)
{
    const struct sac_pipeline_params p = sac_pipeline_params_default();
    job.ctx = test_context();
    job.params = p.job;
    job.params.detector = in_folder("net.onnx");
    source = p.source;
    pre = sac_preprocess_default();
    pre.width = pre.height = 416;
}

/* Released by the caller with free. */
static char *base(void)
{
    char *text = NULL;
    assert_sac_ok(sac_replay_base(&job, &source, in_folder("clip.mp4"), &text));
    return text;
}

static char *key(void)
{
    char *all = base(), *text = NULL;
    assert_sac_ok(sac_replay_key(&job, all, &text));
    free(all);
    return text;
}

static char *frames_key(void)
{
    char *all = base(), *text = NULL;
    assert_sac_ok(sac_replay_frames_key(&job, all, &pre, &text));
    free(all);
    return text;
}

static char *looks_key(void)
{
    char *text = NULL;
    assert_sac_ok(sac_replay_looks_key(&job, "boxes", in_folder("reid.onnx"), &text));
    return text;
}

static char *motion_key(void)
{
    char *boxes = key(), *text = NULL;
    assert_sac_ok(sac_replay_motion_key(&job, boxes, &text));
    free(boxes);
    return text;
}

static void expect(char *(*make)(void), const char *first, bool same, const char *what)
{
    char *now = make();
    if ((strcmp(first, now) == 0) != same)
        fail_msg("%s: the key is %s", what, same ? "another" : "the same");
    free(now);
    reset();
}

#define CHANGES(change) (change, expect(key, first, false, #change))
#define STAYS(change)   (change, expect(key, first, true, #change))

static void boxes_depend_on_each_option_that_changes_them(void **state)
{
    (void)state;
    reset();
    char *first = key();
    CHANGES(source.start_us = 1);
    CHANGES(source.duration_us = 1);
    CHANGES(source.every = 2);
    CHANGES(source.fps = 12.5);
    CHANGES(source.rotate = SAC_ROTATE_90);
    CHANGES(source.decode = SAC_DECODE_CPU);
    CHANGES(job.params.detector_params.head = "yolox");
    CHANGES(job.params.detector_params.preprocess = "size=320x320");
    CHANGES(job.params.detector_params.classes = "person");
    CHANGES(job.params.detector_params.score_min += 1e-6f);
    CHANGES(job.params.detector_params.nms_iou += 1e-6f);
    CHANGES(setenv("SACCADE_WITHOUT", "attention", 1));
    unsetenv("SACCADE_WITHOUT");
    CHANGES(job.params.detector_params.detection_max++);
    CHANGES(job.params.detector_params.precision = SAC_PRECISION_FP16);
    CHANGES(job.params.skip_still = 0.01f);
    CHANGES((job.params.detector_params.head = "ab", job.params.detector_params.preprocess = ""));
    free(first);
    job.params.skip_still = 0.01f;
    first = key();
    job.params.skip_still = 0.01f;
    job.params.skip_max++;
    expect(key, first, false, "skip_max with skip_still");
    free(first);
}

static void boxes_depend_on_nothing_of_trackers(void **state)
{
    (void)state;
    reset();
    char *first = key();
    STAYS(job.params.tracker = sac_tracker_params_default(SAC_TRACKER_SORT));
    STAYS(job.params.tracker.score_high = 0.3f);
    STAYS(job.params.tracker.camera_motion = 0);
    STAYS(job.params.tracker.gallery_max = 9);
    STAYS(job.params.reid = "none");
    STAYS(job.params.reid_params.preprocess = "mean=0");
    STAYS(job.params.queue_length = 9);
    STAYS(job.params.inference_batch_max = 3);
    STAYS(source.decode_threads = 3);
    STAYS(job.params.skip_max = 3); /* nothing is skipped */
    free(first);
}

/* Which frames are still decides which frames the motion is between; the boxes alone change it. */
static void motion_depends_on_what_boxes_depend_on(void **state)
{
    (void)state;
    reset();
    char *first = motion_key(), *boxes = key();
    assert_string_not_equal(first, boxes);
    source.every = 2;
    expect(motion_key, first, false, "every second frame");
    job.params.skip_still = 0.01f;
    expect(motion_key, first, false, "still frames");
    job.params.tracker.score_high = 0.3f;
    expect(motion_key, first, true, "a tracker's parameter");
    job.params.reid = "none";
    expect(motion_key, first, true, "no embeddings");
    free(first);
    free(boxes);
}

#define FRAMES_CHANGE(change) (change, expect(frames_key, first, false, #change))
#define FRAMES_STAY(change)   (change, expect(frames_key, first, true, #change))

/* Each number that the network's input is made with, and which frames it is made of. */
static void frames_depend_on_what_the_network_takes(void **state)
{
    (void)state;
    reset();
    char *first = frames_key();
    FRAMES_CHANGE(pre.width++);
    FRAMES_CHANGE(pre.height++);
    FRAMES_CHANGE(pre.fit = SAC_FIT_STRETCH);
    FRAMES_CHANGE(pre.filter = SAC_FILTER_AREA);
    FRAMES_CHANGE(pre.order = SAC_ORDER_BGR);
    FRAMES_CHANGE(pre.layout = SAC_TENSOR_LAYOUT_NHWC);
    FRAMES_CHANGE(pre.dtype = SAC_F16);
    for (int i = 0; i < 3; i++) {
        FRAMES_CHANGE(pre.mean[i] += 1e-6f);
        FRAMES_CHANGE(pre.scale[i] *= 1.001f);
        FRAMES_CHANGE(pre.fill[i]++);
    }
    FRAMES_CHANGE(source.start_us = 1);
    FRAMES_CHANGE(source.duration_us = 1);
    FRAMES_CHANGE(source.every = 2);
    FRAMES_CHANGE(source.rotate = SAC_ROTATE_90);
    FRAMES_CHANGE(source.decode = SAC_DECODE_CPU);
    FRAMES_CHANGE(job.params.skip_still = 0.01f);
    FRAMES_CHANGE(setenv("SACCADE_WITHOUT", "attention", 1));
    unsetenv("SACCADE_WITHOUT");
    write_text(in_folder("clip.mp4"), "clip, cut");
    expect(frames_key, first, false, "another clip");
    write_text(in_folder("clip.mp4"), "clip");
    expect(frames_key, first, true, "the clip again");
    free(first);
}

static void frames_depend_on_no_model(void **state)
{
    (void)state;
    reset();
    char *first = frames_key(), *times = NULL;
    assert_sac_ok(sac_replay_times_key(&job, first, &times));
    assert_string_not_equal(first, times);
    free(times);
    FRAMES_STAY(job.params.detector = "other.onnx");
    FRAMES_STAY(job.params.detector_params.head = "yolox");
    FRAMES_STAY(job.params.detector_params.classes = "person");
    FRAMES_STAY(job.params.detector_params.score_min = 0.5f);
    FRAMES_STAY(job.params.detector_params.nms_iou = 0.5f);
    FRAMES_STAY(job.params.detector_params.detection_max = 7);
    FRAMES_STAY(job.params.detector_params.precision = SAC_PRECISION_INT8);
    FRAMES_STAY(job.params.tracker = sac_tracker_params_default(SAC_TRACKER_SORT));
    FRAMES_STAY(job.params.inference_batch_max = 3);
    FRAMES_STAY(job.params.skip_max = 3); /* nothing is skipped */
    free(first);
}

/* A plug-in's name without a slash is a file of the working folder. */
static void keys_depend_on_a_plug_in(void **state)
{
    (void)state;
    char before[4096];
    reset();
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(in_folder("")), 0);
    write_text("head.so", "first");
    job.params.detector_params.head = "head.so";
    char *first = key();
    job.params.detector_params.head = "head.so";
    expect(key, first, true, "the same plug-in");
    write_text("head.so", "other");
    job.params.detector_params.head = "head.so";
    expect(key, first, false, "another plug-in of that name");
    assert_int_equal(chdir(before), 0);
    free(first);
}

static void keys_depend_on_contents(void **state)
{
    (void)state;
    reset();
    char *first = key(), *looks = looks_key();
    write_text(in_folder("clip.mp4"), "clip, cut");
    expect(key, first, false, "another clip");
    write_text(in_folder("clip.mp4"), "clip");
    expect(key, first, true, "the clip again");
    write_text(in_folder("net.onnx"), "new");
    expect(key, first, false, "another detector");
    write_text(in_folder("net.onnx"), "net");
    write_text(in_folder("net.yaml"), "size: 320x320\n");
    expect(key, first, false, "a contract");
    unlink(in_folder("net.yaml"));
    expect(key, first, true, "all again");
    write_text(in_folder("reid.onnx"), "new");
    expect(looks_key, looks, false, "another embedder");
    write_text(in_folder("reid.onnx"), "reid");
    job.params.reid_params.preprocess = "mean=0";
    expect(looks_key, looks, false, "its preprocessing");
    job.params.reid_params.precision = SAC_PRECISION_FP16;
    expect(looks_key, looks, false, "its precision");
    expect(looks_key, looks, true, "all again");
    free(first);
    free(looks);
}

static void keys_need_their_files(void **state)
{
    (void)state;
    char *text = NULL;
    reset();
    assert_int_equal(sac_replay_base(&job, &source, in_folder("none.mp4"), &text), SAC_ERR_IO);
    job.params.detector = in_folder("none.onnx");
    assert_int_equal(sac_replay_key(&job, "base", &text), SAC_ERR_IO);
    assert_null(text);
}

static int set_up(void **state)
{
    if (folder_create(state) != 0 ||
        sac_device_open(test_context(), "cpu", NULL, &job.dev) != SAC_OK)
        return -1;
    write_text(in_folder("clip.mp4"), "clip");
    write_text(in_folder("net.onnx"), "net");
    write_text(in_folder("reid.onnx"), "reid");
    return 0;
}

static int tear_down(void **state)
{
    sac_device_unref(&job.dev);
    return folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_depend_on_each_option_that_changes_them),
        cmocka_unit_test(boxes_depend_on_nothing_of_trackers),
        cmocka_unit_test(motion_depends_on_what_boxes_depend_on),
        cmocka_unit_test(frames_depend_on_what_the_network_takes),
        cmocka_unit_test(frames_depend_on_no_model),
        cmocka_unit_test(keys_depend_on_contents),
        cmocka_unit_test(keys_depend_on_a_plug_in),
        cmocka_unit_test(keys_need_their_files),
    };
    return cmocka_run_group_tests_name("pipeline/replay", tests, set_up, tear_down);
}
