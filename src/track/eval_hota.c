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

/* A matched pair, whatever its similarity. */
struct match {
    int    gt, track;
    double similarity;
};

struct work {
    const struct sac_eval_data *data;
    struct sac_arena            arena;
    double                     *pairs;     /* [gt_ids,track_ids]: alignment, later counts */
    double                     *gt_dets;   /* [gt_ids] */
    double                     *track_dets; /* [track_ids] */
    double                     *gt_sum, *track_sum; /* [gt_max], [track_max] of similarity */
    double                     *score;     /* [gt_max,track_max] */
    int                        *col_of_row;
    struct sac_eval_matcher     matcher;
    struct match               *matches; /* of all frames */
    size_t                      match_count;
    int                        *frame_matches; /* [frame_count] */
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
    double sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
                 ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

static void sum_sides(struct work *w, const struct sac_eval_frame *f)
{
    for (int g = 0; g < f->gt_count; g++)
        w->gt_sum[g] = sum_contiguous(f->similarity + (size_t)g * (size_t)f->track_count,
                                      f->track_count);
    if (f->track_count == 1) { /* then the column is contiguous too */
        w->track_sum[0] = sum_contiguous(f->similarity, f->gt_count);
        return;
    }
    for (int t = 0; t < f->track_count; t++)
        w->track_sum[t] = 0;
    const double *s = f->similarity;
    for (int g = 0; g < f->gt_count; g++)
        for (int t = 0; t < f->track_count; t++)
            w->track_sum[t] += *s++;
}

static double *pair(const struct work *w, int gt, int track)
{
    return &w->pairs[(size_t)gt * (size_t)w->data->track_ids + (size_t)track];
}

/* How well each pair of ids goes together over the whole sequence. */
static void align(struct work *w)
{
    for (int n = 0; n < w->data->frame_count; n++) {
        const struct sac_eval_frame *f = &w->data->frames[n];
        const double                *s = f->similarity;
        sum_sides(w, f);
        for (int g = 0; g < f->gt_count; g++)
            for (int t = 0; t < f->track_count; t++, s++) {
                double whole = w->track_sum[t] + w->gt_sum[g] - *s;
                if (whole > SAC_EVAL_EPS)
                    *pair(w, f->gt[g], f->track[t]) += *s / whole;
            }
        for (int g = 0; g < f->gt_count; g++)
            w->gt_dets[f->gt[g]]++;
        for (int t = 0; t < f->track_count; t++)
            w->track_dets[f->track[t]]++;
    }
    for (int g = 0; g < w->data->gt_ids; g++)
        for (int t = 0; t < w->data->track_ids; t++) {
            double common = *pair(w, g, t);
            *pair(w, g, t) = common / (w->gt_dets[g] + w->track_dets[t] - common);
        }
}

/* One matching serves all alphas: they only differ in which of its pairs are good enough. */
static void match_frames(struct work *w)
{
    for (int n = 0; n < w->data->frame_count; n++) {
        const struct sac_eval_frame *f = &w->data->frames[n];
        if (f->gt_count == 0 || f->track_count == 0)
            continue;
        const double *s = f->similarity;
        double       *score = w->score;
        for (int g = 0; g < f->gt_count; g++)
            for (int t = 0; t < f->track_count; t++)
                *score++ = *pair(w, f->gt[g], f->track[t]) * *s++;
        sac_eval_match(&w->matcher, w->score, f->gt_count, f->track_count, w->col_of_row);
        for (int g = 0; g < f->gt_count; g++) {
            int t = w->col_of_row[g];
            if (t < 0)
                continue;
            size_t at = (size_t)g * (size_t)f->track_count + (size_t)t;
            w->matches[w->match_count++] =
                (struct match){f->gt[g], f->track[t], f->similarity[at]};
            w->frame_matches[n]++;
        }
    }
}

/* Detections at one alpha; the sums run frame by frame. */
static void count_detections(const struct work *w, int a, struct sac_eval_result *out)
{
    const struct match *m = w->matches;
    for (int n = 0; n < w->data->frame_count; n++) {
        const struct sac_eval_frame *f = &w->data->frames[n];
        double                       similarity = 0;
        int                          good = 0;
        for (int i = 0; i < w->frame_matches[n]; i++, m++)
            if (m->similarity >= alpha_of(a) - SAC_EVAL_EPS) {
                similarity += m->similarity;
                good++;
            }
        out->hota_tp[a] += good;
        out->hota_fn[a] += f->gt_count - good;
        out->hota_fp[a] += f->track_count - good;
        out->hota_loc[a] += similarity;
    }
    out->hota_loc[a] = SAC_MAX(1e-10, out->hota_loc[a]) / SAC_MAX(1e-10, out->hota_tp[a]);
}

/* Association at one alpha: how often each pair of ids was matched, weighted by itself. */
static void count_associations(struct work *w, int a, struct sac_eval_result *out)
{
    size_t pairs = (size_t)w->data->gt_ids * (size_t)w->data->track_ids;
    double ass_a = 0, ass_re = 0, ass_pr = 0;
    memset(w->pairs, 0, pairs * sizeof *w->pairs);
    for (size_t i = 0; i < w->match_count; i++)
        if (w->matches[i].similarity >= alpha_of(a) - SAC_EVAL_EPS)
            ++*pair(w, w->matches[i].gt, w->matches[i].track);
    for (int g = 0; g < w->data->gt_ids; g++)
        for (int t = 0; t < w->data->track_ids; t++) {
            double n = *pair(w, g, t), of_gt = w->gt_dets[g], of_track = w->track_dets[t];
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
    size_t n = (size_t)d->gt_max, m = (size_t)d->track_max, matches = 0;
    for (int i = 0; i < d->frame_count; i++)
        matches += (size_t)SAC_MIN(d->frames[i].gt_count, d->frames[i].track_count);
    w->pairs =
        sac_arena_alloc(&w->arena, (size_t)d->gt_ids * (size_t)d->track_ids * sizeof(double));
    w->gt_dets = sac_arena_alloc(&w->arena, (size_t)d->gt_ids * sizeof(double));
    w->track_dets = sac_arena_alloc(&w->arena, (size_t)d->track_ids * sizeof(double));
    w->gt_sum = sac_arena_alloc(&w->arena, n * sizeof(double));
    w->track_sum = sac_arena_alloc(&w->arena, m * sizeof(double));
    w->score = sac_arena_alloc(&w->arena, n * m * sizeof(double));
    w->col_of_row = sac_arena_alloc(&w->arena, n * sizeof(int));
    w->matches = sac_arena_alloc(&w->arena, matches * sizeof *w->matches);
    w->frame_matches = sac_arena_alloc(&w->arena, (size_t)d->frame_count * sizeof(int));
    return w->pairs && w->gt_dets && w->track_dets && w->gt_sum && w->track_sum && w->score &&
           w->col_of_row && w->matches && w->frame_matches &&
           sac_eval_matcher_init(&w->matcher, (int)n, (int)m);
}

sac_result sac_eval_hota_score(const struct sac_eval_data *data, struct sac_eval_result *out)
{
    struct work w = {.data = data};
    bool        ok = allot(&w);
    if (ok) {
        align(&w);
        match_frames(&w);
        for (int a = 0; a < SAC_HOTA_ALPHAS; a++) {
            count_detections(&w, a, out);
            count_associations(&w, a, out);
        }
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
