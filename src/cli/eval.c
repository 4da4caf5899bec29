/* SPDX-License-Identifier: Apache-2.0 */
/* saccade eval: pairs ground truth with tracks, scores each pair, prints a table. */
#include <dirent.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <saccade/eval.h>

#include "term.h"
#include "verbs.h"
#include "wrap.h"

enum { PATH_SIZE = 4096, NAME_SIZE = 128 };

struct pair {
    char name[NAME_SIZE];
    char gt[PATH_SIZE], tracks[PATH_SIZE];
    char seqinfo[PATH_SIZE]; /* empty: none */
};

struct evaluation {
    struct settings        *settings;
    sac_context            *ctx;
    struct pair            *pairs;
    size_t                  count;
    struct sac_eval_result *results; /* [count + 1]: the last is the combined one */
    struct fault           *fault;
};

/* ---- which file belongs to which ---- */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* folder/name+ending into buf; false when it does not fit. */
static bool join(char *buf, size_t size, const char *folder, const char *name, const char *ending)
{
    int length = snprintf(buf, size, "%s/%s%s", folder, name, ending);
    return length > 0 && (size_t)length < size;
}

/* folder/name into buf when there is such a file, else nothing. */
static bool file_in(const char *folder, const char *name, char *buf, size_t size)
{
    struct stat st;
    if (join(buf, size, folder, name, "") && stat(buf, &st) == 0 && S_ISREG(st.st_mode))
        return true;
    *buf = '\0';
    return false;
}

static void base_name(const char *path, char *buf, size_t size)
{
    char copy[PATH_SIZE];
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(buf, size, "%.*s", (int)size - 1, basename(copy));
}

static struct pair *add_pair(struct evaluation *eval)
{
    struct pair *pairs = realloc(eval->pairs, (eval->count + 1) * sizeof *pairs);
    if (!pairs) {
        fault_failure(eval->fault, "out of memory");
        return NULL;
    }
    eval->pairs = pairs;
    pairs[eval->count] = (struct pair){.name = ""};
    return &pairs[eval->count++];
}

/* A file's sequence is named after it, a gt.txt after its folder: SEQ/gt.txt, SEQ/gt/gt.txt. */
static int add_file(struct evaluation *eval, const char *path)
{
    char         folder[PATH_SIZE];
    struct pair *pair = add_pair(eval);
    if (!pair)
        return STATUS_FAILURE;
    snprintf(pair->gt, sizeof pair->gt, "%s", path);
    snprintf(folder, sizeof folder, "%s", path);
    for (int up = 0; up < 2; up++) {
        base_name(folder, pair->name, sizeof pair->name);
        if (strcmp(pair->name, up == 0 ? "gt.txt" : "gt") == 0)
            dirname(folder);
    }
    base_name(folder, pair->name, sizeof pair->name);
    char *dot = strrchr(pair->name, '.');
    if (is_folder(folder))
        file_in(folder, "seqinfo.ini", pair->seqinfo, sizeof pair->seqinfo);
    else if (dot && dot != pair->name)
        *dot = '\0';
    return STATUS_OK;
}

/* false: the folder holds no sequence. */
static bool add_sequence(struct evaluation *eval, const char *folder, int *status)
{
    char gt[PATH_SIZE];
    if (!file_in(folder, "gt.txt", gt, sizeof gt) && !file_in(folder, "gt/gt.txt", gt, sizeof gt))
        return false;
    struct pair *pair = add_pair(eval);
    *status = pair ? STATUS_OK : STATUS_FAILURE;
    if (!pair)
        return true;
    memcpy(pair->gt, gt, sizeof gt);
    file_in(folder, "seqinfo.ini", pair->seqinfo, sizeof pair->seqinfo);
    base_name(folder, pair->name, sizeof pair->name);
    return true;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int add_folder(struct evaluation *eval, const char *folder)
{
    struct dirent **entries = NULL;
    size_t          before = eval->count;
    int             status = STATUS_OK;
    if (add_sequence(eval, folder, &status))
        return status;
    int n = scandir(folder, &entries, not_hidden, alphasort);
    for (int i = 0; i < n; i++) {
        char path[PATH_SIZE];
        if (status == STATUS_OK && join(path, sizeof path, folder, entries[i]->d_name, "") &&
            is_folder(path))
            add_sequence(eval, path, &status);
        free(entries[i]);
    }
    free(entries);
    if (status == STATUS_OK && eval->count == before)
        return fault_failure(eval->fault, "%s: no gt.txt in it, nor in its folders", folder);
    return status;
}

static int find_ground_truth(struct evaluation *eval)
{
    const struct text_list *gt = &eval->settings->eval_gt;
    int                     status = STATUS_OK;
    for (size_t i = 0; i < gt->count && status == STATUS_OK; i++)
        status =
            is_folder(gt->items[i]) ? add_folder(eval, gt->items[i]) : add_file(eval, gt->items[i]);
    return status;
}

static int find_tracks(struct evaluation *eval)
{
    const struct text_list *tracks = &eval->settings->eval_tracks;
    bool                    folder = tracks->count == 1 && is_folder(tracks->items[0]);
    if (!folder && tracks->count != eval->count)
        return fault_usage(eval->fault,
                           "%zu ground truths but %zu files of tracks; give one for each, or a "
                           "folder with SEQUENCE.txt in it",
                           eval->count, tracks->count);
    for (size_t i = 0; i < eval->count; i++) {
        struct pair *pair = &eval->pairs[i];
        if (folder &&
            !join(pair->tracks, sizeof pair->tracks, tracks->items[0], pair->name, ".txt"))
            return fault_failure(eval->fault, "%s: the path is too long", tracks->items[0]);
        if (!folder)
            snprintf(pair->tracks, sizeof pair->tracks, "%s", tracks->items[i]);
    }
    return STATUS_OK;
}

/* ---- scores ---- */

static int score(struct evaluation *eval, const struct pair *pair, struct sac_eval_result *out)
{
    struct sac_eval_params params = sac_eval_params_default();
    struct sac_mot_file    gt = {0}, tracks = {0};
    struct sac_mot_seqinfo info = {0};
    sac_result             res = SAC_OK;
    params.preprocess = eval->settings->eval_preprocess;
    if (pair->seqinfo[0])
        res = sac_mot_read_seqinfo(eval->ctx, pair->seqinfo, &info);
    params.frames = info.length;
    if (res == SAC_OK)
        res = sac_mot_read(eval->ctx, pair->gt, &gt);
    if (res == SAC_OK)
        res = sac_mot_read(eval->ctx, pair->tracks, &tracks);
    if (res == SAC_OK)
        res = sac_eval_sequence(eval->ctx, pair->name, &gt, &tracks, &params, out);
    sac_mot_finish(&gt);
    sac_mot_finish(&tracks);
    return res == SAC_OK ? STATUS_OK : fault_library(eval->fault, eval->ctx, res);
}

static int score_all(struct evaluation *eval)
{
    int status = STATUS_OK;
    eval->results = calloc(eval->count + 1, sizeof *eval->results);
    if (!eval->results)
        return fault_failure(eval->fault, "out of memory");
    for (size_t i = 0; i < eval->count && status == STATUS_OK; i++)
        status = score(eval, &eval->pairs[i], &eval->results[i]);
    if (status != STATUS_OK)
        return status;
    sac_eval_combine(eval->results, eval->count, &eval->results[eval->count]);
    snprintf(eval->results[eval->count].name, sizeof eval->results->name, "combined");
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
    for (size_t i = 0; i < eval->count; i++)
        if ((int)strlen(eval->results[i].name) > width)
            width = (int)strlen(eval->results[i].name);
    printf("%-*s", width, "sequence");
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (columns[i].table)
            printf(" %6s", columns[i].title);
    putchar('\n');
    for (size_t i = 0; i < eval->count; i++)
        print_row(&eval->results[i], width);
    print_row(&eval->results[eval->count], width);
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
    for (size_t i = 0; i < eval->count; i++)
        json_result(&json, NULL, &eval->results[i]);
    sac_json_close(&json, ']');
    json_result(&json, "combined", &eval->results[eval->count]);
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
        status = find_ground_truth(&eval);
    if (status == STATUS_OK)
        status = find_tracks(&eval);
    if (status == STATUS_OK)
        status = score_all(&eval);
    if (status == STATUS_OK)
        status = s->json ? json_document(&eval) : print_table(&eval);
    free(eval.results);
    free(eval.pairs);
    sac_context_destroy(&eval.ctx);
    return status;
}
