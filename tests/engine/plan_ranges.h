/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of ranges share, on the far device and on a GPU: a folder with the network of
 * open_size.h, a context that keeps what it says, the CPU, and a run of any size. */
#ifndef SAC_TESTS_ENGINE_PLAN_RANGES_H
#define SAC_TESTS_ENGINE_PLAN_RANGES_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/model/difference.h"
#include "engine/model/model.h"
#include "tests/engine/open_size.h"
#include "tests/engine/said.h"

static sac_device *cpu;
static char        folder[64], model_path[128], out[128];

static inline bool ranges_begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/saccade-ranges-XXXXXX");
    if (!mkdtemp(folder))
        return false;
    snprintf(model_path, sizeof model_path, "%s/net.onnx", folder);
    snprintf(out, sizeof out, "%s/net.plan", folder);
    open_size_write(model_path);
    setenv("SACCADE_CACHE", "", 1); /* what is kept is in the .plan alone */
    return said_open() && sac_device_open(ctx, "cpu", NULL, &cpu) == SAC_OK;
}

/* dev: the other device. */
static inline void ranges_end(sac_device **dev)
{
    sac_device_unref(dev);
    sac_device_unref(&cpu);
    sac_context_destroy(&ctx);
    unlink(model_path);
    unlink(out);
    rmdir(folder);
}

static inline sac_tensor *answer_of(sac_device *dev, sac_model *m, int64_t batch, int64_t width,
                                    int64_t height)
{
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 4, .shape = {batch, 3, height, width}};
    const int64_t          count = sac_tensor_desc_elements(&desc);
    float                 *numbers = malloc((size_t)count * sizeof *numbers);
    sac_tensor            *x = NULL, *y = NULL;
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)(i * 7919 % 1009) / 1009;
    ok(sac_tensor_create(dev, &desc, "test", &x));
    ok(sac_tensor_upload(x, numbers));
    free(numbers);
    ok(sac_model_run(m, &x, &y));
    sac_tensor_unref(&x);
    return y;
}

#endif
