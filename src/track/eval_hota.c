/* SPDX-License-Identifier: Apache-2.0 */
/* HOTA. Source: Luiten et al., "HOTA: A Higher Order Metric for Evaluating Multi-Object Tracking",
 * IJCV 129, 2021. */
#include <math.h>
#include <string.h>

#include "track/eval_data.h"

static double alpha_of(int a)
{
    return 0.05 + a * 0.05;
}

/* A matched pair of boxes that is good enough for the first `good` alphas. */
struct match {
    int32_t pair;
    int     good;
};

struct work {
    const struct sac_eval_data *data;
    struct sac_arena            arena;
    double                     *alignment;            /* [pair_count] */
    int                        *matched;              /* [pair_count] at one alpha */
    int                        *gt_dets, *track_dets; /* [gt_ids], [track_ids] */
    double                     *gt_sum, *track_sum;   /* [gt_max], [track_max] of similarity */
    double                     *line;  /* [gt_max or track_max] of similarities, for a sum */
    double                     *score; /* of a frame's touches */
    int                        *touch_of_row;
    struct sac_eval_matcher     matcher;
    struct match               *matches; /* of all frames */
    size_t                      match_count;
};

/* numpy adds contiguous numbers in eight lanes, in blocks of 128: the last digit, and with it a tie
 * between two matchings, depends on that. */
static double sum_contiguous(const double *x, int n)
{
    if (n < 8) {
        double sum = n ? x[0] : 0;
        for (int i = 1; i < n; i++)
            sum += x[i];
        return sum;
    }
    if (n > 128) {
        int half = n / 2 - n / 2 % 8;
        return sum_contiguous(x, half) + sum_contiguous(x + half, n - half);
    }
    double lane[8];
    int    i = 8;
    memcpy(lane, x, sizeof lane);
    for (; i < n - n % 8; i += 8)
        for (int k = 0; k < 8; k++)
            lane[k] += x[i + k];
    double sum =
        ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

/* The sum of a row whose n touches lie at these columns. Two numbers and zeros have the same sum in
 * any order. */
static double sum_row(struct work *w, const struct sac_eval_touch *touches, int n, int cols)
{
    if (n <= 2)
        return (n > 0 ? touches[0].similarity : 0) + (n > 1 ? touches[1].similarity : 0);
    memset(w->line, 0, (size_t)cols * sizeof *w->line);
    for (int i = 0; i < n; i++)
        w->line[touches[i].track] = touches[i].similarity;
    return sum_contiguous(w->line, cols);
}

static void sum_sides(struct work *w, const struct sac_eval_view *f)
{
    const struct sac_eval_touch *t = f->touches, *end = t + f->now.touch_count;
    for (int g = 0; g < f->now.gt_count; g++) {
        const struct sac_eval_touch *row = t;
        while (t < end && t->gt == g)
            t++;
        w->gt_sum[g] = sum_row(w, row, (int)(t - row), f->now.track_count);
    }
    memset(w->track_sum, 0, (size_t)f->now.track_count * sizeof *w->track_sum);
    if (f->now.track_count == 1) { /* then the column is contiguous too */
        memset(w->line, 0, (size_t)f->now.gt_count * sizeof *w->line);
        for (t = f->touches; t < end; t++)
            w->line[t->gt] = t->similarity;
        w->track_sum[0] = sum_contiguous(w->line, f->now.gt_count);
        return;
    }
    for (t = f->touches; t < end; t++)
        w->track_sum[t->track] += t->similarity;
}

/* The alignment of each pair of ids over the whole sequence. */
static void align(struct work *w)
{
    const struct sac_eval_data *d = w->data;
    struct sac_eval_view        f = {0};
    while (sac_eval_next(d, &f)) {
        sum_sides(w, &f);
        for (int i = 0; i < f.now.touch_count; i++) {
            const struct sac_eval_touch *t = &f.touches[i];
            double whole = w->track_sum[t->track] + w->gt_sum[t->gt] - t->similarity;
            if (whole > SAC_EVAL_EPS)
                w->alignment[f.pair_of[i]] += t->similarity / whole;
        }
    }
    for (int64_t i = 0; i < d->gt_dets; i++)
        w->gt_dets[d->gt[i]]++;
    for (int64_t i = 0; i < d->track_dets; i++)
        w->track_dets[d->track[i]]++;
    for (size_t i = 0; i < d->pair_count; i++) {
        double common = w->alignment[i];
        w->alignment[i] = common / ((double)w->gt_dets[d->pairs[i].gt] +
                                    w->track_dets[d->pairs[i].track] - common);
    }
}

/* For how many alphas, from the first on, a similarity is good enough. */
static int good_alphas(double similarity)
{
    int a = 0;
    while (a < SAC_HOTA_ALPHAS && similarity >= alpha_of(a) - SAC_EVAL_EPS)
        a++;
    return a;
}

/* Detections of a frame at all alphas; the sums of similarity run frame by frame. */
static void count_detections(struct work *w, const struct sac_eval_view *f,
                             struct sac_eval_result *out)
{
    double similarity[SAC_HOTA_ALPHAS] = {0};
    int    good[SAC_HOTA_ALPHAS] = {0};
    for (int g = 0; g < f->now.gt_count; g++) {
        const int i = w->touch_of_row[g];
        const int alphas = i < 0 ? 0 : good_alphas(f->touches[i].similarity);
        if (alphas == 0)
            continue;
        w->matches[w->match_count++] = (struct match){f->pair_of[i], alphas};
        for (int a = 0; a < alphas; a++) {
            similarity[a] += f->touches[i].similarity;
            good[a]++;
        }
    }
    for (int a = 0; a < SAC_HOTA_ALPHAS; a++) {
        out->hota_tp[a] += good[a];
        out->hota_fn[a] += f->now.gt_count - good[a];
        out->hota_fp[a] += f->now.track_count - good[a];
        out->hota_loc[a] += similarity[a];
    }
}

/* One matching serves all alphas: they only differ in which of its pairs are good enough. */
static void match_frames(struct work *w, struct sac_eval_result *out)
{
    struct sac_eval_view f = {0};
    while (sac_eval_next(w->data, &f)) {
        for (int i = 0; i < f.now.touch_count; i++)
            w->score[i] = w->alignment[f.pair_of[i]] * f.touches[i].similarity;
        sac_eval_match(&w->matcher, f.touches, w->score, f.now.touch_count, f.now.gt_count,
                       f.now.track_count, w->touch_of_row);
        count_detections(w, &f, out);
    }
    for (int a = 0; a < SAC_HOTA_ALPHAS; a++)
        out->hota_loc[a] = SAC_MAX(1e-10, out->hota_loc[a]) / SAC_MAX(1e-10, out->hota_tp[a]);
}

/* Association at one alpha: how often each pair of ids was matched, weighted by itself. */
static void count_associations(struct work *w, int a, struct sac_eval_result *out)
{
    const struct sac_eval_data *d = w->data;
    double                      ass_a = 0, ass_re = 0, ass_pr = 0;
    memset(w->matched, 0, d->pair_count * sizeof *w->matched);
    for (size_t i = 0; i < w->match_count; i++)
        w->matched[w->matches[i].pair] += a < w->matches[i].good;
    for (size_t i = 0; i < d->pair_count; i++) {
        if (w->matched[i] == 0)
            continue;
        double n = w->matched[i], of_gt = w->gt_dets[d->pairs[i].gt],
               of_track = w->track_dets[d->pairs[i].track];
        ass_a += n * sac_eval_share(n, of_gt + of_track - n);
        ass_re += n * sac_eval_share(n, of_gt);
        ass_pr += n * sac_eval_share(n, of_track);
    }
    out->hota_ass_a[a] = sac_eval_share(ass_a, out->hota_tp[a]);
    out->hota_ass_re[a] = sac_eval_share(ass_re, out->hota_tp[a]);
    out->hota_ass_pr[a] = sac_eval_share(ass_pr, out->hota_tp[a]);
}

static bool allot(struct work *w)
{
    const struct sac_eval_data *d = w->data;
    const size_t                n = (size_t)d->gt_max, m = (size_t)d->track_max;
    size_t                      matches = 0, touches = 0;
    for (size_t i = 0; i < d->frames_kept; i++) {
        matches += (size_t)SAC_MIN(d->frames[i].gt_count, d->frames[i].track_count);
        touches = SAC_MAX(touches, (size_t)d->frames[i].touch_count);
    }
    w->alignment = sac_arena_alloc(&w->arena, d->pair_count * sizeof *w->alignment);
    w->matched = sac_arena_alloc(&w->arena, d->pair_count * sizeof *w->matched);
    w->gt_dets = sac_arena_alloc(&w->arena, (size_t)d->gt_ids * sizeof *w->gt_dets);
    w->track_dets = sac_arena_alloc(&w->arena, (size_t)d->track_ids * sizeof *w->track_dets);
    w->gt_sum = sac_arena_alloc(&w->arena, n * sizeof(double));
    w->track_sum = sac_arena_alloc(&w->arena, m * sizeof(double));
    w->line = sac_arena_alloc(&w->arena, SAC_MAX(n, m) * sizeof(double));
    w->score = sac_arena_alloc(&w->arena, touches * sizeof(double));
    w->touch_of_row = sac_arena_alloc(&w->arena, n * sizeof(int));
    w->matches = sac_arena_alloc(&w->arena, matches * sizeof *w->matches);
    return w->alignment && w->matched && w->gt_dets && w->track_dets && w->gt_sum && w->track_sum &&
           w->line && w->score && w->touch_of_row && w->matches &&
           sac_eval_matcher_init(&w->matcher, (int)n, (int)m);
}

sac_result sac_eval_hota_score(const struct sac_eval_data *data, struct sac_eval_result *out)
{
    struct work w = {.data = data};
    bool        ok = allot(&w);
    if (ok) {
        align(&w);
        match_frames(&w, out);
        for (int a = 0; a < SAC_HOTA_ALPHAS; a++)
            count_associations(&w, a, out);
        sac_eval_hota_close(out);
    }
    sac_eval_matcher_finish(&w.matcher);
    sac_arena_finish(&w.arena);
    return ok ? SAC_OK : sac_eval_no_memory(data);
}

void sac_eval_hota_empty(const struct sac_eval_data *data, struct sac_eval_result *out)
{
    for (int a = 0; a < SAC_HOTA_ALPHAS; a++) {
        out->hota_fn[a] = (double)data->gt_dets;
        out->hota_fp[a] = (double)data->track_dets;
        out->hota_loc[a] = 1;
    }
    out->loc_a = 1;
}

void sac_eval_hota_combine(const struct sac_eval_result *parts, size_t n,
                           struct sac_eval_result *out)
{
    for (int a = 0; a < SAC_HOTA_ALPHAS; a++) {
        double ass_a = 0, ass_re = 0, ass_pr = 0, loc = 0;
        for (size_t i = 0; i < n; i++) {
            double tp = parts[i].hota_tp[a];
            out->hota_tp[a] += tp;
            out->hota_fp[a] += parts[i].hota_fp[a];
            out->hota_fn[a] += parts[i].hota_fn[a];
            ass_a += tp * parts[i].hota_ass_a[a];
            ass_re += tp * parts[i].hota_ass_re[a];
            ass_pr += tp * parts[i].hota_ass_pr[a];
            loc += tp * parts[i].hota_loc[a];
        }
        out->hota_ass_a[a] = sac_eval_share(ass_a, out->hota_tp[a]);
        out->hota_ass_re[a] = sac_eval_share(ass_re, out->hota_tp[a]);
        out->hota_ass_pr[a] = sac_eval_share(ass_pr, out->hota_tp[a]);
        out->hota_loc[a] = SAC_MAX(1e-10, loc) / SAC_MAX(1e-10, out->hota_tp[a]);
    }
    sac_eval_hota_close(out);
}

void sac_eval_hota_close(struct sac_eval_result *out)
{
    double hota = 0, det_a = 0, ass_a = 0, det_re = 0, det_pr = 0, ass_re = 0, ass_pr = 0, loc = 0;
    for (int a = 0; a < SAC_HOTA_ALPHAS; a++) {
        double tp = out->hota_tp[a], fp = out->hota_fp[a], fn = out->hota_fn[a];
        double det = sac_eval_share(tp, tp + fn + fp);
        hota += sqrt(det * out->hota_ass_a[a]);
        det_a += det;
        det_re += sac_eval_share(tp, tp + fn);
        det_pr += sac_eval_share(tp, tp + fp);
        ass_a += out->hota_ass_a[a];
        ass_re += out->hota_ass_re[a];
        ass_pr += out->hota_ass_pr[a];
        loc += out->hota_loc[a];
    }
    out->hota = hota / SAC_HOTA_ALPHAS;
    out->det_a = det_a / SAC_HOTA_ALPHAS;
    out->det_re = det_re / SAC_HOTA_ALPHAS;
    out->det_pr = det_pr / SAC_HOTA_ALPHAS;
    out->ass_a = ass_a / SAC_HOTA_ALPHAS;
    out->ass_re = ass_re / SAC_HOTA_ALPHAS;
    out->ass_pr = ass_pr / SAC_HOTA_ALPHAS;
    out->loc_a = loc / SAC_HOTA_ALPHAS;
}
