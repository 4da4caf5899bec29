/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of segmenters share. */
#ifndef SAC_TESTS_HEADS_SEGMENTERS_H
#define SAC_TESTS_HEADS_SEGMENTERS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads/segmenter.h"
#include "tests/test.h"
#include "tests/vision/frames.h"

/* The path of one of the small networks beside the tests; valid until the next call. */
static inline const char *test_network(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s.onnx", TEST_SOURCE_DIR, name);
    return path;
}

/* As the network gives it: no smoothing, no edges, no feather. */
static inline struct sac_segmenter_params test_plain_params(void)
{
    struct sac_segmenter_params p = sac_segmenter_params_default();
    p.guide = p.hole = 0;
    p.smooth = 0;
    p.feather_low = 0;
    p.feather_high = 1;
    return p;
}

static inline sac_segmenter *test_segmenter(sac_device *dev, const char *network,
                                            const struct sac_segmenter_params *params)
{
    sac_segmenter *seg = NULL;
    assert_sac_ok(sac_segmenter_create(dev, test_network(network), params, &seg));
    return seg;
}

/* First in main: at the end clang 14's LeakSanitizer takes a block of oneDNN's waiting workers for
 * thread-local memory, now and then, and crashes on it ("DTLS 22 at 0x000400000304"). No test of
 * segmenters is about oneDNN. Where a GPU is asked for, the folder is the far device's: it
 * has no oneDNN. */
static inline void test_without_onednn(void)
{
    if (TEST_SANITIZED && !getenv("SACCADE_TEST_GPU"))
        setenv("SACCADE_PLUGIN_PATH", "/nowhere", 1);
}

/* What is said when a segmenter is made of a network. */
struct test_segmenter_case {
    const char *model, *head, *classes, *preprocess; /* NULL: what the network says */
    int         class_map;
    sac_result  code;
    const char *why; /* a part of the sentence */
};

static inline void test_segmenter_cases(const struct test_segmenter_case *cases, size_t n)
{
    sac_device *dev = test_device();
    for (size_t i = 0; i < n; i++) {
        const struct test_segmenter_case *c = &cases[i];
        struct sac_segmenter_params       p = sac_segmenter_params_default();
        sac_segmenter                    *seg = NULL;
        char                              why[1024] = "";
        p.head = c->head;
        p.classes = c->classes;
        p.preprocess = c->preprocess;
        p.class_map = c->class_map;
        const sac_result res = sac_segmenter_create(dev, test_network(c->model), &p, &seg);
        sac_context_last_error(test_context(), why, sizeof why);
        if (res != c->code || (c->why && !strstr(why, c->why)))
            fail_msg("%s, case %zu: %s, '%s'", c->model, i, sac_result_name(res), why);
        sac_segmenter_destroy(&seg);
    }
    sac_device_unref(&dev);
}

/* Networks of each kind. The last finds boxes, and whether a box is found may hang on a rounding:
 * where numbers may be off by a slack, its masks come and go, and it stays out. */
static const char *const test_kinds[] = {"maps_matte", "maps_logit", "maps_torchvision",
                                         "maps_recurrent_fixed", "instances_yolov8"};

static inline size_t test_kind_count(int slack)
{
    return SAC_COUNT(test_kinds) - (slack > 0);
}

/* Of 255: how far a matte may be off on a device, whose kernels are chosen by the size of the batch
 * and round accordingly; 0.03 is what FP16 may be off. */
static inline int test_slack(const sac_device *dev)
{
    return dev->ops->host_memory ? 0 : 3;
}

/* The same frame on another device; and on the CPU. */
static inline sac_frame *test_moved(sac_device *dev, const sac_frame *from)
{
    sac_frame *to = NULL;
    assert_sac_ok(sac_frame_create(dev, from, &to));
    assert_sac_ok(sac_frame_copy(from, to));
    return to;
}

static inline sac_frame *test_on_host(const sac_frame *from)
{
    sac_device *cpu = test_device();
    sac_frame  *to = test_moved(cpu, from);
    sac_device_unref(&cpu);
    return to;
}

static inline sac_frame *test_matte_of(sac_segmenter *seg, sac_frame *frame)
{
    sac_frame *matte = NULL;
    assert_sac_ok(sac_segmenter_run(seg, &frame, 1, &matte));
    return matte;
}

/* Of a matte in host memory. */
static inline int test_matte_pixel(const sac_frame *matte, int x, int y)
{
    return matte->plane[0][(size_t)y * matte->pitch_bytes[0] + (size_t)x];
}

#endif
