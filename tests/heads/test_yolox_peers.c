/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way of a detector on a real clip: the boxes must be those that ONNX Runtime behind
 * OpenCV's decoding and letterbox gave (det_yolox_nano.txt). Every 8th frame of vtest.avi. */
#include <stdio.h>
#include <string.h>

#include <saccade/source.h>

#include "vision/detect.h"
#include "heads/heads.h"
#include "tests/test.h"

enum { STEP = 8, FRAMES_MAX = 800 };

static const char *place(const char *variable, const char *fallback)
{
    const char *value = getenv(variable);
    return value ? value : fallback;
}

static bool exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file)
        fclose(file);
    return file != NULL;
}

static void read_peers(const char *path, struct sac_detections frames[FRAMES_MAX])
{
    FILE                *file = fopen(path, "r");
    float                w, h;
    int                  frame;
    struct sac_detection d = {0};
    assert_non_null(file);
    while (fscanf(file, "%d,-1,%f,%f,%f,%f,%f,-1,-1,-1 ", &frame, &d.x0, &d.y0, &w, &h, &d.score) ==
           6) {
        d.x1 = d.x0 + w;
        d.y1 = d.y0 + h;
        assert_true(frame >= 1 && frame <= FRAMES_MAX);
        assert_true(sac_detections_push(&frames[frame - 1], &d));
    }
    fclose(file);
}

static bool has_match(const struct sac_detections *list, const struct sac_detection *want)
{
    for (size_t i = 0; i < list->count; i++)
        if (sac_detect_iou(&list->items[i], want) >= 0.9f)
            return true;
    return false;
}

static void finds_what_the_peers_found(void **state)
{
    (void)state;
    static struct sac_detections peers[FRAMES_MAX];
    struct sac_detections        found = {0};
    const char                  *shared = place("SACCADE_SHARED", TEST_SHARED),
               *clip = place("SACCADE_VTEST", TEST_CLIP);
    char model[512], list[512];
    snprintf(model, sizeof model, "%s/data/models/yolox_nano_416.onnx", shared);
    snprintf(list, sizeof list, "%s/data/mot/PETS09-S2L1/det_yolox_nano.txt", shared);
    if (!exists(model) || !exists(list) || !exists(clip)) {
        print_message("needs %s, %s and %s\n", model, list, clip);
        skip();
    }
    read_peers(list, peers);
    sac_device                *dev = NULL;
    sac_source                *src = NULL;
    sac_detector              *det = NULL;
    sac_frame                 *frame = NULL;
    struct sac_detector_params params = sac_detector_params_default();
    int                        number = 0, wanted = 0, matched = 0, extra = 0;
    params.classes = "person";
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    assert_sac_ok(sac_source_open(dev, clip, NULL, &src));
    assert_sac_ok(sac_detector_create(dev, model, &params, &det));
    for (; number < FRAMES_MAX && sac_source_read_wait(src, &frame) == SAC_OK; number++) {
        if (number % STEP == 0) {
            assert_sac_ok(sac_detector_run(det, &frame, 1, &found));
            for (size_t i = 0; i < peers[number].count; i++)
                if (peers[number].items[i].score >= 0.3f) {
                    wanted++;
                    matched += has_match(&found, &peers[number].items[i]);
                }
            for (size_t i = 0; i < found.count; i++)
                extra +=
                    found.items[i].score >= 0.35f && !has_match(&peers[number], &found.items[i]);
        }
        sac_frame_unref(&frame);
    }
    print_message("%d frames: %d of the peers' %d boxes, %d of ours are not theirs\n", number,
                  matched, wanted, extra);
    assert_int_equal(number, 795);
    assert_true(wanted > 500);
    assert_true(matched > 0.97 * wanted);
    assert_true(extra < 0.03 * wanted);
    for (int i = 0; i < FRAMES_MAX; i++)
        sac_detections_finish(&peers[i]);
    sac_detections_finish(&found);
    sac_detector_destroy(&det);
    sac_source_close(&src);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_the_peers_found),
    };
    return cmocka_run_group_tests_name("heads/yolox_peers", tests, NULL, NULL);
}
