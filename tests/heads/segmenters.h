/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of segmenters share. */
#ifndef SAC_TESTS_HEADS_SEGMENTERS_H
#define SAC_TESTS_HEADS_SEGMENTERS_H

#include <stdio.h>

#include "heads/segmenter.h"
#include "tests/test.h"

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
