/* SPDX-License-Identifier: Apache-2.0 */
/* The scores of mattes in memory; those of files are held against NumPy in test_masks.py. */
#include <math.h>
#include <string.h>

#include "device/device.h"
#include "mask/mask.h"
#include "tests/test.h"

static uint8_t gt_pixels[6 * 10], mask_pixels[6 * 8];

/* Two frames of 8 x 6, the first with padding: the left half of one, three quarters of the other.
 */
static void make(sac_frame *gt, sac_frame *mask)
{
    *gt = (sac_frame){.format = SAC_PIXEL_GRAY8, .width = 8, .height = 6};
    *mask = *gt;
    gt->plane[0] = gt_pixels;
    gt->pitch_bytes[0] = 10;
    mask->plane[0] = mask_pixels;
    mask->pitch_bytes[0] = 8;
    memset(gt_pixels, 77, sizeof gt_pixels);
    for (int y = 0; y < 6; y++)
        for (int x = 0; x < 8; x++) {
            gt_pixels[10 * y + x] = x < 4 ? 255 : 0;
            mask_pixels[8 * y + x] = x < 6 ? 255 : 0;
        }
}

static void scores_a_matte(void **state)
{
    (void)state;
    sac_frame              gt, mask;
    struct sac_mask_scores scores;
    make(&gt, &mask);
    assert_sac_ok(sac_mask_score(test_context(), &gt, &mask, NULL, &scores));
    assert_int_equal(scores.pictures, 1);
    assert_true(fabs(scores.iou - 4. / 6) < 1e-12 && scores.iou_mean == scores.iou);
    assert_true(scores.boundary_f == 0); /* two pixels apart, one is allowed */
    assert_true(fabs(scores.sad - 12) < 1e-12 && fabs(scores.mse - 0.25) < 1e-12);
    assert_true(scores.gradient > 0 && isnan(scores.flicker));
    struct sac_mask_eval_params params = sac_mask_eval_params_default();
    params.tolerance = 0.2; /* of 10 pixels */
    assert_sac_ok(sac_mask_score(test_context(), &gt, &mask, &params, &scores));
    assert_true(scores.boundary_f == 1);
}

static void leaves_out_what_is_not_to_be_scored(void **state)
{
    (void)state;
    sac_frame                   gt, mask;
    struct sac_mask_scores      scores;
    struct sac_mask_eval_params params = sac_mask_eval_params_default();
    make(&gt, &mask);
    for (int y = 0; y < 6; y++) {
        memset(gt_pixels + 10 * y, 3, 4);
        memset(gt_pixels + 10 * y + 4, 255, 2);
    }
    params.gt_values = SAC_MASK_VALUES_OBJECTS;
    assert_sac_ok(sac_mask_score(test_context(), &gt, &mask, &params, &scores));
    assert_true(scores.iou == 1 && scores.sad == 0 && scores.mse == 0 && scores.boundary_f == 1);
}

static void refuses_frames_that_do_not_fit(void **state)
{
    (void)state;
    sac_frame                   gt, mask;
    struct sac_mask_scores      scores = {.pictures = 7};
    struct sac_mask_eval_params params = sac_mask_eval_params_default();
    make(&gt, &mask);
    mask.width = 7;
    assert_sac_error(sac_mask_score(test_context(), &gt, &mask, NULL, &scores), SAC_ERR_ARG);
    make(&gt, &mask);
    mask.format = SAC_PIXEL_RGB24;
    assert_sac_error(sac_mask_score(test_context(), &gt, &mask, NULL, &scores), SAC_ERR_ARG);
    assert_sac_error(sac_mask_score(test_context(), NULL, &mask, NULL, &scores), SAC_ERR_ARG);
    const struct sac_device_ops apart = {.name = "apart"}; /* its memory is none of the host's */
    struct sac_device           dev = {.ops = &apart};
    make(&gt, &mask);
    gt.device = &dev;
    assert_sac_error(sac_mask_score(test_context(), &gt, &mask, NULL, &scores), SAC_ERR_ARG);
    make(&gt, &mask);
    params.gt_values = SAC_MASK_VALUES_CLASSES;
    assert_sac_error(sac_mask_score(test_context(), &gt, &mask, &params, &scores), SAC_ERR_ARG);
    params = sac_mask_eval_params_default();
    params.reserved[0] = 1;
    assert_sac_error(sac_mask_score(test_context(), &gt, &mask, &params, &scores), SAC_ERR_ARG);
    const double tolerances[] = {-0.1, 1.5, 1e12, NAN};
    params = sac_mask_eval_params_default();
    for (size_t i = 0; i < SAC_COUNT(tolerances); i++) {
        params.tolerance = tolerances[i];
        assert_sac_error(sac_mask_score(test_context(), &gt, &mask, &params, &scores), SAC_ERR_ARG);
    }
    params = sac_mask_eval_params_default();
    params.mask_values = (enum sac_mask_values)9;
    assert_sac_error(sac_mask_score(test_context(), &gt, &mask, &params, &scores), SAC_ERR_ARG);
    assert_int_equal(scores.pictures, 7);
    sac_mask_report *report = NULL;
    assert_sac_error(sac_mask_evaluate(test_context(), NULL, "x", NULL, &report), SAC_ERR_ARG);
    assert_null(report);
}

static void combines_sums_as_sums_and_means_as_means(void **state)
{
    (void)state;
    struct sac_mask_scores parts[3], all;
    for (int i = 0; i < 3; i++)
        sac_mask_scores_clear(&parts[i], "part");
    parts[0].pictures = 1;
    parts[1].pictures = 3; /* the third has none, and no numbers */
    parts[0].iou_mean = 0.2;
    parts[1].iou_mean = 0.6;
    parts[0].inside_both = 10;
    parts[0].inside_either = 100;
    parts[1].inside_both = parts[1].inside_either = 20;
    parts[2].flicker_changed = 3;
    parts[2].flicker_area = 12;
    sac_mask_combine(parts, 3, &all);
    assert_string_equal(all.name, "combined");
    assert_int_equal(all.pictures, 4);
    assert_true(fabs(all.iou_mean - 0.5) < 1e-12 && all.iou == 0.25 && all.flicker == 0.25);
    assert_true(isnan(all.sad));
    sac_mask_combine(parts, 0, &all);
    assert_true(all.pictures == 0 && isnan(all.iou) && isnan(all.iou_mean));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_a_matte),
        cmocka_unit_test(leaves_out_what_is_not_to_be_scored),
        cmocka_unit_test(refuses_frames_that_do_not_fit),
        cmocka_unit_test(combines_sums_as_sums_and_means_as_means),
    };
    return cmocka_run_group_tests_name("mask/scores", tests, NULL, NULL);
}
