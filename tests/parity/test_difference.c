/* SPDX-License-Identifier: Apache-2.0 */
/* How much frames differ: the CPU's sums against those of the pixels that the grid names, the CUDA
 * device's equal to the CPU's. */
#include "vision/difference.h"
#include "tests/gpu.h"
#include "tests/vision/frames.h"

enum { FRAMES = 6, JOBS = FRAMES * FRAMES, SIDE = SAC_DIFFERENCE_SIDE };

/* ---- what it should be ---- */

static int luma_of(const sac_frame *f, int x, int y)
{
    if (!test_rgb_bytes(f->format))
        return (int)test_sample(f, x, y, 0);
    return (77 * (int)test_sample(f, x, y, 0) + 150 * (int)test_sample(f, x, y, 1) +
            29 * (int)test_sample(f, x, y, 2)) >>
           8;
}

static uint32_t plain(const sac_frame *a, const sac_frame *b)
{
    uint32_t sum = 0;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            sum += (uint32_t)abs(luma_of(a, (int)((x + 0.5) * a->width / SIDE),
                                         (int)((y + 0.5) * a->height / SIDE)) -
                                 luma_of(b, (int)((x + 0.5) * b->width / SIDE),
                                         (int)((y + 0.5) * b->height / SIDE)));
    return sum;
}

/* ---- on a device ---- */

struct round {
    sac_frame *frame[FRAMES];
};

/* All with all, the first with nothing; then with the grids that were kept. */
static void run(sac_device *dev, const struct round *r, uint32_t *sums)
{
    struct sac_difference_job jobs[JOBS] = {{.frame = NULL}};
    struct sac_buffer        *out = NULL, *grids = NULL;
    assert_sac_ok(sac_buffer_create(dev, 2 * JOBS * sizeof *sums, "test", &out));
    assert_sac_ok(sac_buffer_create(dev, FRAMES * SAC_DIFFERENCE_SAMPLES, "test", &grids));
    uint8_t *grid = sac_buffer_data(grids);
    for (int i = 0; i < JOBS; i++)
        jobs[i] = (struct sac_difference_job){
            .frame = r->frame[i / FRAMES],
            .other = i ? r->frame[i % FRAMES] : NULL,
            .kept = i % FRAMES ? NULL : grid + i / FRAMES * SAC_DIFFERENCE_SAMPLES};
    assert_sac_ok(sac_difference_run_on(dev, NULL, jobs, JOBS, sac_buffer_data(out)));
    for (int i = 0; i < JOBS; i++)
        jobs[i] = (struct sac_difference_job){.frame = r->frame[i / FRAMES],
                                              .grid = grid + i % FRAMES * SAC_DIFFERENCE_SAMPLES};
    assert_sac_ok(
        sac_difference_run_on(dev, NULL, jobs, JOBS, (uint32_t *)sac_buffer_data(out) + JOBS));
    assert_sac_ok(sac_device_copy(dev, NULL, sums, sac_buffer_data(out), 2 * JOBS * sizeof *sums,
                                  SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_USER, "test"));
    sac_buffer_unref(&out);
    sac_buffer_unref(&grids);
}

/* Frames of any sizes and formats; every other one is little else than the one before. */
static void make(sac_device *cpu, struct round *r)
{
    const enum sac_pixel_format format = test_any_format();
    const int                   w = test_between(1, 300), h = test_between(1, 200);
    for (int i = 0; i < FRAMES; i++) {
        const bool other = test_between(0, 2) == 0;
        const int  low = test_between(0, 200);
        r->frame[i] =
            test_frame(cpu, other ? test_any_format() : format, other ? test_between(1, 300) : w,
                       other ? test_between(1, 200) : h);
        test_fill(r->frame[i], low, test_between(low, 255), 0, 255);
    }
}

static void release(struct round *r)
{
    for (int i = 0; i < FRAMES; i++)
        sac_frame_unref(&r->frame[i]);
}

static void sums_are_those_of_the_grid(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    for (int round = 0; round < 40; round++) {
        struct round r;
        uint32_t     sums[2 * JOBS];
        make(cpu, &r);
        run(cpu, &r, sums);
        assert_int_equal(sums[0], SAC_DIFFERENCE_MOST);
        for (int i = 1; i < JOBS; i++)
            assert_int_equal(sums[i], plain(r.frame[i / FRAMES], r.frame[i % FRAMES]));
        for (int i = 0; i < JOBS; i++)
            assert_int_equal(sums[JOBS + i], plain(r.frame[i / FRAMES], r.frame[i % FRAMES]));
        release(&r);
    }
    sac_device_unref(&cpu);
}

static void black_and_white_differ_most(void **state)
{
    (void)state;
    sac_device *cpu = test_device();
    sac_frame  *black = test_frame(cpu, SAC_PIXEL_GRAY8, 17, 9),
              *white = test_frame(cpu, SAC_PIXEL_RGB24, 640, 360);
    uint32_t sum[2];
    test_fill(black, 0, 0, 0, 0);
    test_fill(white, 255, 255, 0, 0);
    const struct sac_difference_job jobs[] = {{.frame = black, .other = white},
                                              {.frame = white, .other = white}};
    assert_sac_ok(sac_difference_run_on(cpu, NULL, jobs, 2, sum));
    assert_int_equal(sum[0], SAC_DIFFERENCE_MOST);
    assert_int_equal(sum[1], 0);
    sac_frame_unref(&black);
    sac_frame_unref(&white);
    sac_device_unref(&cpu);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    sac_device *cpu = test_device(), *second = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &second));
    sac_frame *a = test_frame(cpu, SAC_PIXEL_GRAY8, 8, 8),
              *b = test_frame(second, SAC_PIXEL_GRAY8, 8, 8);
    uint8_t                         grid[SAC_DIFFERENCE_SAMPLES] = {0};
    uint32_t                        sum = 7;
    const struct sac_difference_job none = {.frame = NULL}, far = {.frame = a, .other = b},
                                    both = {.frame = a, .other = a, .grid = grid};
    assert_sac_error(sac_difference_run_on(cpu, NULL, &none, 1, &sum), SAC_ERR_ARG);
    assert_sac_error(sac_difference_run_on(cpu, NULL, &far, 1, &sum), SAC_ERR_ARG);
    assert_sac_error(sac_difference_run_on(cpu, NULL, &both, 1, &sum), SAC_ERR_ARG);
    assert_sac_ok(sac_difference_run_on(cpu, NULL, NULL, 0, NULL));
    assert_int_equal(sum, 7);
    sac_frame_unref(&a);
    sac_frame_unref(&b);
    sac_device_unref(&second);
    sac_device_unref(&cpu);
}

static void the_gpu_gives_the_same(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL), *cpu = test_device();
    for (int round = 0; round < gpu_rounds(60); round++) {
        struct round here, there;
        uint32_t     want[2 * JOBS], got[2 * JOBS];
        make(cpu, &here);
        for (int i = 0; i < FRAMES; i++)
            there.frame[i] = test_lying(gpu, here.frame[i], test_orientation());
        run(cpu, &here, want);
        run(gpu, &there, got);
        for (int i = 0; i < 2 * JOBS; i++)
            if (want[i] != got[i])
                fail_msg("round %d, sum %d is %u, the CPU has %u", round, i, got[i], want[i]);
        release(&here);
        release(&there);
    }
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_grid),
        cmocka_unit_test(black_and_white_differ_most),
        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(the_gpu_gives_the_same),
    };
    return cmocka_run_group_tests_name("parity/difference", tests, NULL, NULL);
}
