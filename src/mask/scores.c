/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "mask/mask.h"

struct sac_mask_eval_params sac_mask_eval_params_default(void)
{
    return (struct sac_mask_eval_params){.tolerance = 0.008, .score_min = 0.5};
}

sac_result sac_mask_params_check(sac_context *ctx, const struct sac_mask_eval_params *p)
{
    const struct sac_number numbers[] = {
        {"gt_values", p->gt_values, 0, SAC_MASK_VALUES_CLASSES},
        {"mask_values", p->mask_values, 0, SAC_MASK_VALUES_CLASSES},
        {"tolerance", p->tolerance, 0, 1},
        {"area_min", p->area_min, 0, 1},
        {"score_min", p->score_min, 0, 1},
    };
    return sac_numbers_check(ctx, "mask evaluation", numbers, SAC_COUNT(numbers));
}

/* Means over pictures. */
static const size_t means[] = {
#define AT(field) offsetof(struct sac_mask_scores, field)
    AT(iou_mean), AT(boundary_f), AT(boundary_precision), AT(boundary_recall),
    AT(sad),      AT(mse),        AT(gradient),
#undef AT
};

static double *mean_of(const struct sac_mask_scores *scores, size_t i)
{
    return (double *)((char *)scores + means[i]);
}

void sac_mask_scores_clear(struct sac_mask_scores *scores, const char *name)
{
    *scores = (struct sac_mask_scores){.iou = NAN, .flicker = NAN};
    snprintf(scores->name, sizeof scores->name, "%s", name);
    for (size_t i = 0; i < SAC_COUNT(means); i++)
        *mean_of(scores, i) = NAN;
}

void sac_mask_combine(const struct sac_mask_scores *parts, size_t n, struct sac_mask_scores *out)
{
    double sums[SAC_COUNT(means)] = {0};
    if (!out)
        return;
    n = parts ? n : 0;
    sac_mask_scores_clear(out, "combined");
    for (size_t p = 0; p < n; p++) {
        out->pictures += parts[p].pictures;
        out->inside_both += parts[p].inside_both;
        out->inside_either += parts[p].inside_either;
        out->flicker_changed += parts[p].flicker_changed;
        out->flicker_area += parts[p].flicker_area;
        for (size_t i = 0; i < SAC_COUNT(means); i++)
            if (parts[p].pictures > 0)
                sums[i] += (double)parts[p].pictures * *mean_of(&parts[p], i);
    }
    for (size_t i = 0; i < SAC_COUNT(means) && out->pictures > 0; i++)
        *mean_of(out, i) = sums[i] / (double)out->pictures;
    if (out->inside_either > 0)
        out->iou = (double)out->inside_both / (double)out->inside_either;
    else if (out->pictures > 0)
        out->iou = 1;
    if (out->flicker_area > 0)
        out->flicker = out->flicker_changed / out->flicker_area;
}

void sac_mask_scores_add(struct sac_mask_scores *sum, const struct sac_mask_scores *part)
{
    const struct sac_mask_scores parts[2] = {*sum, *part};
    sac_mask_combine(parts, 2, sum);
    memcpy(sum->name, parts[0].name, sizeof sum->name);
}

static void overlap(const struct sac_mask_two *two, struct sac_mask_scores *out)
{
    size_t count = (size_t)two->width * (size_t)two->height;
    for (size_t i = 0; i < count; i++) {
        bool gt = two->gt[i] >= 128, mask = two->mask[i] >= 128;
        out->inside_both += gt && mask;
        out->inside_either += gt || mask;
    }
    out->iou = out->inside_either > 0 ? (double)out->inside_both / (double)out->inside_either : 1;
    out->iou_mean = out->iou;
}

sac_result sac_mask_score_two(sac_context *ctx, const struct sac_mask_two *two, bool alpha,
                              double tolerance, struct sac_mask_scores *out)
{
    sac_mask_scores_clear(out, "");
    out->pictures = 1;
    overlap(two, out);
    sac_result res = sac_mask_contours(ctx, two, tolerance, out);
    if (res == SAC_OK && alpha)
        res = sac_mask_alpha_errors(ctx, two, out);
    return res;
}

/* ---- one matte of the caller's ---- */

static void take(const sac_frame *frame, enum sac_mask_values values, uint8_t *out, bool *ignored)
{
    for (int y = 0; y < frame->height; y++) {
        const uint8_t *row = frame->plane[0] + (size_t)y * frame->pitch_bytes[0];
        for (int x = 0; x < frame->width; x++, out++, ignored++) {
            bool numbers = values == SAC_MASK_VALUES_OBJECTS;
            *ignored |= numbers && row[x] == SAC_MASK_IGNORED;
            *out = !numbers ? row[x] : row[x] > 0 ? 255 : 0;
        }
    }
}

static sac_result check_frames(sac_context *ctx, const sac_frame *gt, const sac_frame *mask,
                               const struct sac_mask_eval_params *p)
{
    if (gt->format != SAC_PIXEL_GRAY8 || mask->format != SAC_PIXEL_GRAY8 || !gt->plane[0] ||
        !mask->plane[0] || sac_device_apart(gt->device) || sac_device_apart(mask->device))
        return SAC_FAIL(ctx, SAC_ERR_ARG, "a mask to score is a frame of format %s in host memory",
                        sac_pixel_format_name(SAC_PIXEL_GRAY8));
    if (gt->width != mask->width || gt->height != mask->height || gt->width < 1 || gt->height < 1)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "%d x %d pixels in the ground truth, %d x %d in the mask: masks are "
                        "compared pixel by pixel",
                        gt->width, gt->height, mask->width, mask->height);
    if (p->gt_values == SAC_MASK_VALUES_CLASSES || p->mask_values == SAC_MASK_VALUES_CLASSES)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "a map of classes is no matte: of files its classes can be scored");
    return SAC_OK;
}

sac_result sac_mask_score(sac_context *ctx, const sac_frame *gt, const sac_frame *mask,
                          const struct sac_mask_eval_params *params, struct sac_mask_scores *out)
{
    SAC_NEEDS(ctx, gt);
    SAC_NEEDS(ctx, mask);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "mask evaluation parameters");
    const struct sac_mask_eval_params p = params ? *params : sac_mask_eval_params_default();
    sac_result                        res = sac_mask_params_check(ctx, &p);
    if (res == SAC_OK)
        res = check_frames(ctx, gt, mask, &p);
    if (res != SAC_OK)
        return res;
    size_t   count = (size_t)gt->width * (size_t)gt->height;
    uint8_t *planes = sac_alloc(2 * count);
    bool    *ignored = sac_calloc(count, sizeof *ignored);
    if (planes && ignored) {
        struct sac_mask_scores scores;
        struct sac_mask_two    two = {planes, planes + count, gt->width, gt->height, 0};
        take(gt, p.gt_values, planes, ignored);
        take(mask, p.mask_values, planes + count, ignored);
        for (size_t i = 0; i < count; i++)
            if (ignored[i]) {
                planes[i] = planes[count + i] = 0;
                two.ignored++;
            }
        res = sac_mask_score_two(ctx, &two, true, p.tolerance, &scores);
        if (res == SAC_OK)
            *out = scores;
    } else {
        res = SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory to score masks");
    }
    sac_free(planes);
    sac_free(ignored);
    return res;
}
