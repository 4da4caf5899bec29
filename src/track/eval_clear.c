/* SPDX-License-Identifier: Apache-2.0 */
/* CLEAR MOT. Source: Bernardin and Stiefelhagen, "Evaluating Multiple Object Tracking Performance:
 * The CLEAR MOT Metrics", EURASIP Journal on Image and Video Processing, 2008. */
#include "track/eval_data.h"

static const double THRESHOLD = 0.5;

/* A pair of the frame before stays together before anything else: no sum of similarities reaches it
 * below 1,000 objects in a frame. */
static const double KEEP_BONUS = 1000;

enum { NOBODY = -1 };

struct work {
    const struct sac_eval_data *data;
    struct sac_arena            arena;
    struct sac_eval_matcher     matcher;
    double                     *score;      /* [gt_max,track_max] */
    int                        *col_of_row; /* [gt_max] */
    /* [gt_ids] */
    int     *seen, *matched;      /* frames */
    int     *times_found;         /* beginnings of matched stretches */
    int     *last_track;          /* whenever it was */
    int     *track_before, *track_now; /* in the latest frame with both sides */
};

static void fill_score(struct work *w, const struct sac_eval_frame *f)
{
    const double *s = f->similarity;
    double       *score = w->score;
    for (int g = 0; g < f->gt_count; g++)
        for (int t = 0; t < f->track_count; t++, s++) {
            double bonus = w->track_before[f->gt[g]] == f->track[t] ? KEEP_BONUS : 0;
            *score++ = *s < THRESHOLD - SAC_EVAL_EPS ? 0 : bonus + *s;
        }
}

static void count_pair(struct work *w, int gt, int track, struct sac_eval_result *out)
{
    out->idsw += w->last_track[gt] != NOBODY && w->last_track[gt] != track;
    w->times_found[gt] += w->track_before[gt] == NOBODY;
    w->last_track[gt] = track;
    w->track_now[gt] = track;
    w->matched[gt]++;
}

static void score_frame(struct work *w, const struct sac_eval_frame *f,
                        struct sac_eval_result *out)
{
    int    good = 0;
    double similarity = 0;
    for (int g = 0; g < f->gt_count; g++)
        w->seen[f->gt[g]]++;
    if (f->gt_count > 0 && f->track_count > 0) {
        fill_score(w, f);
        sac_eval_match(&w->matcher, w->score, f->gt_count, f->track_count, w->col_of_row);
        for (int i = 0; i < w->data->gt_ids; i++)
            w->track_now[i] = NOBODY;
        for (int g = 0; g < f->gt_count; g++) {
            size_t at = (size_t)g * (size_t)f->track_count + (size_t)SAC_MAX(w->col_of_row[g], 0);
            if (w->col_of_row[g] < 0 || w->score[at] <= SAC_EVAL_EPS)
                continue;
            count_pair(w, f->gt[g], f->track[w->col_of_row[g]], out);
            similarity += f->similarity[at];
            good++;
        }
        int *former = w->track_before;
        w->track_before = w->track_now;
        w->track_now = former;
    }
    out->tp += good;
    out->fn += f->gt_count - good;
    out->fp += f->track_count - good;
    out->motp_sum += similarity;
}

static void close_tracks(const struct work *w, struct sac_eval_result *out)
{
    for (int g = 0; g < w->data->gt_ids; g++) {
        double share = (double)w->matched[g] / w->seen[g];
        out->mt += share > 0.8;
        out->pt += share >= 0.2 && !(share > 0.8);
        out->frag += SAC_MAX(w->times_found[g] - 1, 0);
    }
    out->ml = w->data->gt_ids - out->mt - out->pt;
}

static bool allot(struct work *w)
{
    const struct sac_eval_data *d = w->data;
    size_t n = (size_t)d->gt_max, m = (size_t)d->track_max, ids = (size_t)d->gt_ids;
    int   *numbers = sac_arena_alloc(&w->arena, 6 * ids * sizeof(int));
    w->score = sac_arena_alloc(&w->arena, n * m * sizeof(double));
    w->col_of_row = sac_arena_alloc(&w->arena, n * sizeof(int));
    if (!numbers || !w->score || !w->col_of_row ||
        !sac_eval_matcher_init(&w->matcher, (int)n, (int)m))
        return false;
    int **const parts[] = {&w->seen,       &w->matched,      &w->times_found,
                           &w->last_track, &w->track_before, &w->track_now};
    for (size_t i = 0; i < SAC_COUNT(parts); i++)
        *parts[i] = numbers + i * ids;
    for (size_t i = 0; i < ids; i++)
        w->last_track[i] = w->track_before[i] = NOBODY;
    return true;
}

sac_result sac_eval_clear_score(const struct sac_eval_data *data, struct sac_eval_result *out)
{
    struct work w = {.data = data};
    bool        ok = allot(&w);
    if (ok) {
        for (int n = 0; n < data->frame_count; n++)
            score_frame(&w, &data->frames[n], out);
        close_tracks(&w, out);
        sac_eval_clear_close(out);
    }
    sac_eval_matcher_finish(&w.matcher);
    sac_arena_finish(&w.arena);
    return ok ? SAC_OK : sac_eval_no_memory(data);
}

void sac_eval_clear_close(struct sac_eval_result *out)
{
    double tp = (double)out->tp, fp = (double)out->fp, fn = (double)out->fn;
    out->recall = sac_eval_share(tp, tp + fn);
    out->precision = sac_eval_share(tp, tp + fp);
    out->moda = sac_eval_share(tp - fp, tp + fn);
    out->mota = sac_eval_share(tp - fp - (double)out->idsw, tp + fn);
    out->motp = sac_eval_share(out->motp_sum, tp);
}
