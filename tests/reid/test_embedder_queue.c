/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings that stay on a device, of many frames at once, against those of the public run on the
 * CPU. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reid/embedder.h"
#include "tests/gpu.h"
#include "tests/vision/frames.h"

enum { FRAMES = 3, BOXES = 45 };

static sac_embedder *open_embedder(sac_device *dev, int batch_max)
{
    struct sac_embedder_params params = {.batch_max = batch_max};
    sac_embedder              *emb = NULL;
    assert_sac_ok(sac_embedder_create(dev, "person_reid", &params, &emb));
    return emb;
}

static void make_frames(sac_device *dev, sac_device *cpu, sac_frame *frames[FRAMES],
                        sac_frame *mine[FRAMES])
{
    for (int i = 0; i < FRAMES; i++) {
        frames[i] = test_frame(cpu, SAC_PIXEL_NV12, 320 + 64 * i, 240);
        test_fill(frames[i], 16 + 60 * i, 120 + 60 * i, 60, 200);
        if (dev == cpu) {
            mine[i] = sac_frame_ref(frames[i]);
            continue;
        }
        mine[i] = test_frame(dev, SAC_PIXEL_NV12, frames[i]->width, frames[i]->height);
        assert_sac_ok(sac_frame_copy(frames[i], mine[i]));
    }
}

static struct sac_detection some_box(void)
{
    float x = (float)test_between(-20, 300), y = (float)test_between(-20, 220);
    return (struct sac_detection){
        x, y, x + (float)test_between(0, 90), y + (float)test_between(0, 150), 1, 0};
}

static float cosine(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return (float)sum;
}

/* Batches of 16 at most, so that 45 boxes of three frames take several runs. */
static void check(sac_device *dev, sac_device *cpu, float cosine_min)
{
    sac_frame             *frames[FRAMES], *mine[FRAMES], *of[BOXES];
    struct sac_detection   boxes[BOXES];
    sac_embedder          *plain = open_embedder(cpu, 16), *emb = open_embedder(dev, 16);
    const int              dim = sac_embedder_dim(plain);
    const size_t           bytes = (size_t)BOXES * (size_t)dim * sizeof(float);
    float                 *want = sac_alloc(bytes), *got = sac_alloc(bytes);
    struct sac_embeddings *f = NULL;
    int64_t                gpu_ns = 0;
    make_frames(dev, cpu, frames, mine);
    assert_sac_ok(sac_embedder_warm_up(emb));
    sac_embedder_time(emb, true);
    for (int i = 0; i < BOXES; i++) {
        of[i] = mine[i * FRAMES / BOXES];
        boxes[i] = some_box();
    }
    for (int i = 0; i < FRAMES; i++)
        assert_sac_ok(sac_embedder_run(plain, frames[i], boxes + i * BOXES / FRAMES, BOXES / FRAMES,
                                       want + i * BOXES / FRAMES * dim));
    for (int round = 0; round < 6; round++) {
        assert_sac_ok(sac_embedder_queue(emb, of, boxes, BOXES, round % 2, &f));
        assert_int_equal(f->count, BOXES);
        assert_int_equal(f->dim, dim);
        assert_sac_ok(dev->ops->stream_wait_event(dev, NULL, f->ready));
        assert_sac_ok(sac_device_copy(dev, NULL, got, sac_embeddings_data(f), bytes,
                                      SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_DOWNLOAD, "test"));
        for (int i = 0; i < BOXES; i++)
            if (cosine(want + i * dim, got + i * dim, dim) < cosine_min)
                fail_msg("box %d: cosine %g", i,
                         (double)cosine(want + i * dim, got + i * dim, dim));
        if (cosine_min == 1)
            assert_memory_equal(want, got, bytes);
        sac_embeddings_unref(&f);
        assert_true(sac_embedder_take_gpu_ns(emb, &gpu_ns));
        assert_true(gpu_ns > 0);
        assert_false(sac_embedder_take_gpu_ns(emb, &gpu_ns));
    }
    memset(got, 0, bytes);
    assert_sac_ok(sac_embedder_run(emb, mine[0], boxes, BOXES / FRAMES, got));
    assert_true(cosine(want, got, dim) > 0.999f);
    sac_free(want);
    sac_free(got);
    sac_embedder_destroy(&plain);
    sac_embedder_destroy(&emb);
    for (int i = 0; i < FRAMES; i++) {
        sac_frame_unref(&frames[i]);
        sac_frame_unref(&mine[i]);
    }
}

static void rows_stay_where_they_are_made(void **state)
{
    (void)state;
    if (TEST_SANITIZED) {
        print_message("left out: half a minute under the sanitizer, whose search for leaks then "
                      "fails by itself\n");
        skip();
    }
    sac_device *cpu = test_device();
    check(cpu, cpu, 0.9999f);
    sac_device_unref(&cpu);
}

static void also_on_the_gpu(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    check(gpu, cpu, 0.999f);
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stay_where_they_are_made),
        cmocka_unit_test(also_on_the_gpu),
    };
    return cmocka_run_group_tests_name("reid/embedder_queue", tests, NULL, NULL);
}
