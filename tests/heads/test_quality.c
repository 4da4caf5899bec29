/* SPDX-License-Identifier: Apache-2.0 */
/* The intersection over union of maps is that of all samples together, a mean over the classes that
 * the first of two shows. */
#include <math.h>

#include "heads/quality.h"
#include "tests/vision/frames.h"
#include "vision/matte.h"

enum { CELLS = 8 };

/* Of one share or label a cell. */
static enum sac_matte_form form;

static bool a_row_of_cells(const struct sac_head_view *view, struct sac_matte_spec *out)
{
    (void)view;
    *out = (struct sac_matte_spec){
        .form = form, .width = CELLS, .height = 1, .classes = 1, .value = {.cell = 1, .number = 1}};
    return true;
}

static const struct sac_head row_head = {.name = "row", .matte = a_row_of_cells};

static sac_tensor *map_of(sac_device *cpu, const float *numbers)
{
    const struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 2, .shape = {1, CELLS}};
    sac_tensor                  *t = NULL;
    assert_sac_ok(sac_tensor_create(cpu, &desc, "map", &t));
    memcpy(sac_tensor_data(t), numbers, CELLS * sizeof *numbers);
    return t;
}

static void compare(struct sac_quality_judge *j, const float *want, const float *got)
{
    sac_tensor *a = map_of(j->cpu, want), *b = map_of(j->cpu, got);
    assert_sac_ok(sac_quality_compare(j, &a, &b));
    sac_tensor_unref(&a);
    sac_tensor_unref(&b);
}

static struct sac_quality_judge judge_of(sac_device *cpu)
{
    struct sac_quality_judge j = {.cpu = cpu, .head = &row_head, .width = CELLS, .height = 1};
    j.view.output_count = 1;
    return j;
}

/* A picture with one cell that is missed weighs as one cell. */
static void pictures_are_counted_together(void **state)
{
    static const float large[] = {1, 1, 1, 1, 1, 1, 1, 0}, found[] = {1, 1, 1, 1, 1, 1, 0, 1},
                       small[] = {0, 0, 0, 0.9f, 0, 0, 0, 0}, none[CELLS] = {0};
    sac_device              *cpu = test_device();
    struct sac_quality_judge j = judge_of(cpu);
    (void)state;
    form = SAC_MATTE_SHARE;
    compare(&j, large, found); /* 6 in both, 8 in either */
    compare(&j, small, none);  /* 0 and 1 */
    struct sac_verdict v = sac_quality_verdict(&j);
    assert_int_equal(v.measured, SAC_QUALITY_MASKS);
    assert_true(fabs(v.quality - 6.0 / 9) < 1e-12);
    compare(&j, large, large); /* the next ones begin anew */
    v = sac_quality_verdict(&j);
    assert_true(v.quality == 1);
    compare(&j, none, small); /* nothing to be found */
    assert_true(isnan(sac_quality_verdict(&j).quality));
    sac_quality_finish(&j);
    sac_device_unref(&cpu);
}

/* The classes of a map, that of number 0 among them. */
static void classes_have_a_mean(void **state)
{
    static const float       want[] = {0, 0, 0, 0, 2, 2, 5, 5}, got[] = {0, 0, 0, 2, 2, 2, 5, 7};
    sac_device              *cpu = test_device();
    struct sac_quality_judge j = judge_of(cpu);
    (void)state;
    form = SAC_MATTE_LABEL;
    compare(&j, want, got);
    const struct sac_verdict v = sac_quality_verdict(&j);
    assert_int_equal(v.measured, SAC_QUALITY_MASKS);
    assert_true(fabs(v.quality - (3.0 / 4 + 2.0 / 3 + 1.0 / 2) / 3) < 1e-12);
    sac_quality_finish(&j);
    sac_device_unref(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pictures_are_counted_together),
                                       cmocka_unit_test(classes_have_a_mean)};
    return cmocka_run_group_tests_name("heads/quality", tests, NULL, NULL);
}
