/* SPDX-License-Identifier: Apache-2.0 */
/* saccade eval --masks: scores of masks as a table or as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <saccade/eval.h>

#include "term.h"
#include "verbs.h"
#include "wrap.h"

/* How the table prints a number: a share as per cent, sums in thousands and the mean square in
 * thousandths, as papers have them. JSON has the plain number. */
static const struct column {
    const char *title, *name;
    size_t      offset;
    double      scale;
    int         decimals;
} columns[] = {
#define COLUMN(title, field, scale, decimals)                                   \
    {                                                                           \
        title, #field, offsetof(struct sac_mask_scores, field), scale, decimals \
    }
    COLUMN("IoU", iou, 100, 2),
    COLUMN("mean IoU", iou_mean, 100, 2),
    COLUMN("F", boundary_f, 100, 2),
    COLUMN("F prec.", boundary_precision, 100, 2),
    COLUMN("F recall", boundary_recall, 100, 2),
    COLUMN("SAD/1000", sad, 1e-3, 4),
    COLUMN("MSE*1000", mse, 1e3, 3),
    COLUMN("grad/1000", gradient, 1e-3, 4),
    COLUMN("flicker", flicker, 100, 2),
#undef COLUMN
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

static double value_of(const struct sac_mask_scores *scores, size_t column)
{
    return *(const double *)((const char *)scores + columns[column].offset);
}

/* ---- the table ---- */

static void print_row(const struct sac_mask_scores *scores, const struct sac_mask_scores *combined,
                      int width)
{
    printf("%-*s %8lld", width, scores->name, (long long)scores->pictures);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        int    column_width = (int)strlen(columns[i].title);
        double value = value_of(scores, i) * columns[i].scale;
        if (isnan(value_of(combined, i)))
            continue;
        column_width = column_width < 7 ? 7 : column_width;
        if (isnan(value))
            printf(" %*s", column_width, "-");
        else
            printf(" %*.*f", column_width, columns[i].decimals, value);
    }
    putchar('\n');
}

static int widest(const struct sac_mask_scores *rows, size_t count, int width)
{
    for (size_t i = 0; i < count; i++)
        if ((int)strlen(rows[i].name) > width)
            width = (int)strlen(rows[i].name);
    return width;
}

static void print_note(int64_t count, const char *one, const char *many)
{
    if (count > 0)
        printf("%lld %s\n", (long long)count, count == 1 ? one : many);
}

static void print_missing(const struct sac_mask_missing *missing)
{
    print_note(missing->masks, "picture of the ground truth has no mask and is not scored",
               "pictures of the ground truth have no mask and are not scored");
    print_note(missing->gt, "mask has no ground truth and is not scored",
               "masks have no ground truth and are not scored");
    print_note(missing->empty, "picture has no result and was scored as empty",
               "pictures have no result and were scored as empty");
    print_note(missing->frames, "mask has no frame in the video",
               "masks have no frame in the video");
}

static int print_table(const sac_mask_report *report)
{
    static const enum sac_mask_group groups[] = {SAC_MASK_SEQUENCES, SAC_MASK_CLASSES};
    const struct sac_mask_scores    *combined = sac_mask_report_combined(report);
    const struct sac_mask_missing    missing = sac_mask_report_missing(report);
    int                              width = (int)strlen(combined->name);
    size_t                           count;
    for (int g = 0; g < 2; g++) {
        const struct sac_mask_scores *rows = sac_mask_report_list(report, groups[g], &count);
        width = widest(rows, count, width);
    }
    printf("%-*s %8s", width, "", "pictures");
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (!isnan(value_of(combined, i)))
            printf(" %7s", columns[i].title);
    putchar('\n');
    for (int g = 0; g < 2; g++) {
        const struct sac_mask_scores *rows = sac_mask_report_list(report, groups[g], &count);
        for (size_t i = 0; i < count; i++)
            print_row(&rows[i], combined, width);
    }
    print_row(combined, combined, width);
    print_missing(&missing);
    return STATUS_OK;
}

/* ---- JSON ---- */

static void json_scores(struct sac_json *json, const char *key,
                        const struct sac_mask_scores *scores)
{
    sac_json_open(json, key, '{');
    sac_json_string(json, "name", scores->name);
    sac_json_int(json, "pictures", scores->pictures);
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        sac_json_real(json, columns[i].name, value_of(scores, i));
    sac_json_int(json, "inside_both", scores->inside_both);
    sac_json_int(json, "inside_either", scores->inside_either);
    sac_json_close(json, '}');
}

static int json_document(const sac_mask_report *report, struct fault *fault)
{
    static const struct {
        const char         *key;
        enum sac_mask_group group;
    } groups[] = {
        {"pictures", SAC_MASK_PICTURES},
        {"sequences", SAC_MASK_SEQUENCES},
        {"classes", SAC_MASK_CLASSES},
    };
    const struct sac_mask_missing missing = sac_mask_report_missing(report);
    struct sac_text               text = {0};
    struct sac_json               json = {.text = &text, .spaced = true};
    sac_json_open(&json, NULL, '{');
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        size_t                        count;
        const struct sac_mask_scores *rows = sac_mask_report_list(report, groups[g].group, &count);
        sac_json_open(&json, groups[g].key, '[');
        for (size_t i = 0; i < count; i++)
            json_scores(&json, NULL, &rows[i]);
        sac_json_close(&json, ']');
    }
    json_scores(&json, "combined", sac_mask_report_combined(report));
    sac_json_open(&json, "missing", '{');
    sac_json_int(&json, "masks", missing.masks);
    sac_json_int(&json, "gt", missing.gt);
    sac_json_int(&json, "empty", missing.empty);
    sac_json_int(&json, "frames", missing.frames);
    sac_json_close(&json, '}');
    sac_json_close(&json, '}');
    return print_json(&json, fault);
}

int eval_masks(struct settings *s, struct fault *fault)
{
    sac_context     *ctx = NULL;
    sac_mask_report *report = NULL;
    if (s->eval_tracks.count)
        return fault_usage(fault, "eval scores --tracks or --masks, one at a time");
    if (s->eval_gt.count > 1 || (s->eval_gt.count == 0 && !s->eval_mask.video))
        return fault_usage(fault,
                           "--masks needs one ground truth, --gt GT, or --video VIDEO, which "
                           "gives their flicker alone");
    int status = term_context(s, &ctx, fault);
    if (status != STATUS_OK)
        return status;
    sac_result res = sac_mask_evaluate(ctx, s->eval_gt.count ? s->eval_gt.items[0] : NULL,
                                       s->eval_masks, &s->eval_mask, &report);
    if (res != SAC_OK)
        status = fault_library(fault, ctx, res);
    else
        status = s->json ? json_document(report, fault) : print_table(report);
    sac_mask_report_destroy(&report);
    sac_context_destroy(&ctx);
    return status;
}
