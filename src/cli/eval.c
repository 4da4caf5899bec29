/* SPDX-License-Identifier: Apache-2.0 */
/* saccade eval: pairs ground truth with tracks, scores each pair, prints a table. */
#include <stdlib.h>
#include <string.h>

#include <saccade/eval.h>

#include "term.h"
#include "truth.h"
#include "verbs.h"
#include "wrap.h"

enum { PATH_SIZE = 2 * TRUTH_PATH_SIZE };

struct evaluation {
    struct settings *settings;
    sac_context     *ctx;
    struct truths    truths;
    char (*tracks)[PATH_SIZE];       /* [truths.count] the file of each */
    struct sac_eval_result *results; /* [truths.count + 1]: the last is the combined one */
    struct fault           *fault;
};

/* ---- which file belongs to which ---- */

static int find_tracks(struct evaluation *eval)
{
    const struct text_list *tracks = &eval->settings->eval_tracks;
    const size_t            count = eval->truths.count;
    bool                    folder = tracks->count == 1 && is_existing_folder(tracks->items[0]);
    size_t                 *file_of = NULL;
    int                     status =
        folder ? STATUS_OK : truths_pair(&eval->truths, tracks, "tracks", &file_of, eval->fault);
    eval->tracks = calloc(count + 1, sizeof *eval->tracks);
    if (status == STATUS_OK && !eval->tracks)
        status = fault_failure(eval->fault, "out of memory");
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (folder)
            snprintf(eval->tracks[i], PATH_SIZE, "%s/%s.txt", tracks->items[0],
                     eval->truths.items[i].name);
        else
            snprintf(eval->tracks[i], PATH_SIZE, "%s", tracks->items[file_of[i]]);
    free(file_of);
    return status;
}

/* ---- scores ---- */

static int score(struct evaluation *eval, size_t number, struct sac_eval_result *out)
{
    const struct truth    *truth = &eval->truths.items[number];
    struct sac_eval_params params = sac_eval_params_default();
    struct sac_mot_file    gt = {0}, tracks = {0};
    struct sac_mot_seqinfo info = {0};
    sac_result             res = SAC_OK;
    params.preprocess = eval->settings->eval_preprocess;
    if (truth->seqinfo[0])
        res = sac_mot_read_seqinfo(eval->ctx, truth->seqinfo, &info);
    params.frames = info.length;
    if (res == SAC_OK)
        res = sac_mot_read(eval->ctx, truth->gt, &gt);
    if (res == SAC_OK)
        res = sac_mot_read(eval->ctx, eval->tracks[number], &tracks);
    if (res == SAC_OK)
        res = sac_eval_sequence(eval->ctx, truth->name, &gt, &tracks, &params, out);
    sac_mot_finish(&gt);
    sac_mot_finish(&tracks);
    return res == SAC_OK ? STATUS_OK : fault_library(eval->fault, eval->ctx, res);
}

static int score_all(struct evaluation *eval)
{
    int status = STATUS_OK;
    eval->results = calloc(eval->truths.count + 1, sizeof *eval->results);
    if (!eval->results)
        return fault_failure(eval->fault, "out of memory");
    for (size_t i = 0; i < eval->truths.count && status == STATUS_OK; i++)
        status = score(eval, i, &eval->results[i]);
    if (status != STATUS_OK)
        return status;
    sac_eval_combine(eval->results, eval->truths.count, &eval->results[eval->truths.count]);
    snprintf(eval->results[eval->truths.count].name, sizeof eval->results->name, "combined");
    return STATUS_OK;
}

/* ---- the table ---- */

enum cell { CELL_SHARE, CELL_COUNT };

/* Shares are printed in per cent, as the benchmark does; JSON has them as 0..1. */
static const struct column {
    const char *title, *name;
    enum cell   cell;
    size_t      offset;
    bool        table; /* else JSON alone */
} columns[] = {
#define SHARE(title, field, table)                                                \
    {                                                                             \
        title, #field, CELL_SHARE, offsetof(struct sac_eval_result, field), table \
    }
#define COUNT(title, field, table)                                                \
    {                                                                             \
        title, #field, CELL_COUNT, offsetof(struct sac_eval_result, field), table \
    }
    SHARE("HOTA", hota, true),
    SHARE("DetA", det_a, true),
    SHARE("AssA", ass_a, true),
    SHARE("LocA", loc_a, true),
    SHARE("DetRe", det_re, false),
    SHARE("DetPr", det_pr, false),
    SHARE("AssRe", ass_re, false),
    SHARE("AssPr", ass_pr, false),
    SHARE("MOTA", mota, true),
    SHARE("MOTP", motp, true),
    SHARE("MODA", moda, false),
    COUNT("IDSW", idsw, true),
    COUNT("FP", fp, true),
    COUNT("FN", fn, true),
    COUNT("TP", tp, false),
    COUNT("Frag", frag, false),
    COUNT("MT", mt, false),
    COUNT("PT", pt, false),
    COUNT("ML", ml, false),
    SHARE("Rcll", recall, false),
    SHARE("Prcn", precision, false),
    SHARE("IDF1", idf1, true),
    SHARE("IDP", idp, true),
    SHARE("IDR", idr, true),
    COUNT("IDTP", idtp, false),
    COUNT("IDFP", idfp, false),
    COUNT("IDFN", idfn, false),
    COUNT("Dets", dets, false),
    COUNT("GT_Dets", gt_dets, false),
    COUNT("IDs", ids, false),
    COUNT("GT_IDs", gt_ids, false),
    COUNT("Frames", frames, false),
#undef SHARE
#undef COUNT
};
enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

static void print_row(const struct sac_eval_result *result, int width)
{
    printf("%-*s", width, result->name);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const void *at = (const char *)result + columns[i].offset;
        if (columns[i].table && columns[i].cell == CELL_SHARE)
            printf(" %6.2f", 100 * *(const double *)at);
        else if (columns[i].table)
            printf(" %6lld", (long long)*(const int64_t *)at);
    }
    putchar('\n');
}

static int print_table(const struct evaluation *eval)
{
    int width = (int)strlen("combined");
    for (size_t i = 0; i < eval->truths.count; i++)
        if ((int)strlen(eval->results[i].name) > width)
            width = (int)strlen(eval->results[i].name);
    printf("%-*s", width, "sequence");
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (columns[i].table)
            printf(" %6s", columns[i].title);
    putchar('\n');
    for (size_t i = 0; i < eval->truths.count; i++)
        print_row(&eval->results[i], width);
    print_row(&eval->results[eval->truths.count], width);
    return STATUS_OK;
}

static void json_result(struct sac_json *json, const char *name,
                        const struct sac_eval_result *result)
{
    sac_json_open(json, name, '{');
    sac_json_string(json, "name", result->name);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const void *at = (const char *)result + columns[i].offset;
        if (columns[i].cell == CELL_SHARE)
            sac_json_real(json, columns[i].name, *(const double *)at);
        else
            sac_json_int(json, columns[i].name, *(const int64_t *)at);
    }
    sac_json_close(json, '}');
}

static int json_document(const struct evaluation *eval)
{
    struct sac_text text = {0};
    struct sac_json json = {.text = &text, .spaced = true};
    sac_json_open(&json, NULL, '{');
    sac_json_bool(&json, "preprocess", eval->settings->eval_preprocess);
    sac_json_open(&json, "sequences", '[');
    for (size_t i = 0; i < eval->truths.count; i++)
        json_result(&json, NULL, &eval->results[i]);
    sac_json_close(&json, ']');
    json_result(&json, "combined", &eval->results[eval->truths.count]);
    sac_json_close(&json, '}');
    return print_json(&json, eval->fault);
}

int verb_eval(struct settings *s, struct fault *fault)
{
    struct evaluation eval = {.settings = s, .fault = fault};
    if (s->eval_masks)
        return eval_masks(s, fault);
    if (!s->eval_gt.count || !s->eval_tracks.count)
        return fault_usage(fault,
                           "eval needs ground truth and what to score: --gt GT --tracks T, or "
                           "--gt GT --masks MASKS");
    int status = term_context(s, &eval.ctx, fault);
    if (status == STATUS_OK)
        status = truths_find(&eval.truths, &s->eval_gt, fault);
    if (status == STATUS_OK)
        status = find_tracks(&eval);
    if (status == STATUS_OK)
        status = score_all(&eval);
    if (status == STATUS_OK)
        status = s->json ? json_document(&eval) : print_table(&eval);
    free(eval.results);
    free(eval.tracks);
    truths_finish(&eval.truths);
    sac_context_destroy(&eval.ctx);
    return status;
}
