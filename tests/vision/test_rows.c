/* SPDX-License-Identifier: Apache-2.0 */
/* Every fast row kernel against the plain one, bit by bit. */
#include "device/cpu/cpu.h"
#include "tests/vision/frames.h"
#include "vision/cpu/resample.h"

struct level {
    const char               *name;
    const struct sac_row_ops *ops;
};

/* Those that this machine can run; the plain one is not among them. */
static int fast_levels(struct level out[2])
{
    int n = 0;
#if defined(__x86_64__)
    if (sac_cpu_level() >= SAC_CPU_AVX2)
        out[n++] = (struct level){"avx2", &sac_row_ops_avx2};
    if (sac_cpu_level() >= SAC_CPU_AVX512)
        out[n++] = (struct level){"avx512", &sac_row_ops_avx512};
#endif
    return n;
}

static void compare_rows(const struct sac_sampler *s, const struct level *level, char *scratch,
                         size_t bytes)
{
    for (int y = 0; y < s->height; y++) {
        float *want[3], *got[3];
        sac_sampler_row(s, &sac_row_ops_ref, y, scratch, want);
        sac_sampler_row(s, level->ops, y, scratch + bytes, got);
        for (int c = 0; c < 3; c++)
            for (int x = 0; x < s->width; x++)
                if (memcmp(&want[c][x], &got[c][x], sizeof(float)))
                    fail_msg("%s: plane kind %d, taps %d, %d columns: row %d, column %d, channel "
                             "%d: %.9g, "
                             "plain %.9g",
                             level->name, s->plane[0].kind, s->x[0].taps, s->width, y, x, c,
                             (double)got[c][x], (double)want[c][x]);
    }
}

static void check_sampler(const sac_frame *frame, const struct level *levels, int n)
{
    struct sac_sampler_spec spec = {
        .frame = frame,
        .crop = {-3.3f, -1.7f, (float)frame->width + 2.1f, (float)frame->height + 0.4f},
        .width = test_between(1, 90),
        .height = test_between(1, 20),
        .filter = (enum sac_filter)test_between(0, 1)};
    struct sac_sampler sampler;
    size_t             bytes = (sac_sampler_scratch_bytes(&spec) + 63) & ~(size_t)63;
    void              *tables = sac_alloc_aligned(64, sac_sampler_bytes(&spec));
    char              *scratch = sac_alloc_aligned(64, 2 * bytes);
    assert_non_null(tables);
    assert_non_null(scratch);
    memset(scratch, 0, 2 * bytes);
    sac_sampler_init(&sampler, &spec, tables);
    for (int i = 0; i < n; i++)
        compare_rows(&sampler, &levels[i], scratch, bytes);
    sac_free(tables);
    sac_free(scratch);
}

static void sampling_is_the_same(void **state)
{
    (void)state;
    struct level levels[2];
    int          n = fast_levels(levels);
    if (!n) {
        print_message("this machine has no AVX2\n");
        skip();
    }
    sac_device *dev = test_device();
    for (int round = 0; round < 400; round++) {
        sac_frame *f =
            test_frame(dev, test_any_format(), test_between(1, 200), test_between(1, 30));
        f->matrix = (enum sac_colour_matrix)test_between(0, 2);
        f->range = (enum sac_colour_range)test_between(0, 1);
        if (round % 3)
            test_fill(f, 0, 255, 0, 255);
        else
            test_fill(f, 255, 255, round % 2 ? 0 : 255, round % 2 ? 0 : 255);
        check_sampler(f, levels, n);
        sac_frame_unref(&f);
    }
    sac_device_unref(&dev);
}

/* Values around every border: half's overflow, subnormals, ties; bytes' clamp. */
static void fill_values(float *row, int n, float scale)
{
    static const float special[] = {0,     255,  254.5f,  0.5f,    65503,   65519.996f,
                                    65520, 1e6f, 6.1e-5f, 6.0e-8f, 2.9e-8f, 1e-7f};
    for (int i = 0; i < n; i++)
        row[i] = i < (int)SAC_COUNT(special) ? special[i] : (float)test_between(-300, 600) * scale;
}

static void storing_is_the_same(void **state)
{
    (void)state;
    enum { W = 150, H = 2 };
    static const enum sac_dtype dtypes[] = {SAC_F32, SAC_F16, SAC_U8};
    static float                rows[3][W], plain[3 * W * H], fast[3 * W * H];
    struct level                levels[2];
    int                         n = fast_levels(levels);
    if (!n)
        skip();
    for (int round = 0; round < 300; round++) {
        struct sac_row_store s = {(enum sac_tensor_layout)test_between(0, 1),
                                  dtypes[round % 3],
                                  W,
                                  H,
                                  {0, 0, 0},
                                  {1, 1, 1}};
        float               *row[3] = {rows[0], rows[1], rows[2]};
        int                  x = test_between(0, W - 1), count = test_between(0, W - x);
        for (int c = 0; c < 3; c++) {
            fill_values(rows[c], W, round % 5 ? 0.37f : 1e-6f);
            if (s.dtype != SAC_U8 && round % 2) {
                s.mean[c] = (float)test_between(0, 200);
                s.scale[c] = 0.017f;
            }
        }
        for (int i = 0; i < n; i++) {
            memset(plain, 0x5a, sizeof plain);
            memset(fast, 0x5a, sizeof fast);
            sac_row_ops_ref.store(&s, row, count, x, 1, plain);
            levels[i].ops->store(&s, row, count, x, 1, fast);
            if (memcmp(plain, fast, sizeof plain))
                fail_msg("%s: %s, layout %d, %d pixels from %d differ", levels[i].name,
                         sac_dtype_name(s.dtype), s.layout, count, x);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampling_is_the_same),
        cmocka_unit_test(storing_is_the_same),
    };
    return cmocka_run_group_tests_name("vision/rows", tests, NULL, NULL);
}
