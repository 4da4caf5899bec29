/* SPDX-License-Identifier: Apache-2.0 */
/* CLEAR MOT. Source: Bernardin and Stiefelhagen, "Evaluating Multiple Object Tracking Performance:
 * The CLEAR MOT Metrics", EURASIP Journal on Image and Video Processing, 2008. */
#include "track/eval_data.h"

static const double THRESHOLD = 0.5;

/* Keeping a pair of the previous frame has priority: no sum of similarities outweighs it below
 * 1,000 objects in a frame. */
static const double KEEP_BONUS = 1000;

enum { NOBODY = -1 };

struct work {
    const struct sac_eval_data *data;
    struct sac_arena            arena;
    struct sac_eval_matcher     matcher;
    double                     *score;        /* of a frame's touches */
    int                        *touch_of_row; /* [gt_max] */
    int                         both;         /* frames with both sides so far, this one included */
    /* [gt_ids] */
    int *seen, *matched; /* frames */
    int *times_found;    /* beginnings of matched stretches */
    int *last_track;     /* whenever it was */
    int *last_both;      /* and in which of the frames with both sides */
};

/* In the latest frame with both sides before this one. */
static int track_before(const struct work *w, int gt)
{
    return w->last_both[gt] == w->both - 1 ? w->last_track[gt] : NOBODY;
}

static void fill_score(struct work *w, const struct sac_eval_view *f)
{
    for (int i = 0; i < f->now.touch_count; i++) {
        const struct sac_eval_touch *t = &f->touches[i];
        double bonus = track_before(w, f->gt[t->gt]) == f->track[t->track] ? KEEP_BONUS : 0;
        w->score[i] = t->similarity < THRESHOLD - SAC_EVAL_EPS ? 0 : bonus + t->similarity;
    }
}

static void count_pair(struct work *w, int gt, int track, struct sac_eval_result *out)
{
    out->idsw += w->last_track[gt] != NOBODY && w->last_track[gt] != track;
    w->times_found[gt] += track_before(w, gt) == NOBODY;
    w->last_track[gt] = track;
    w->last_both[gt] = w->both;
    w->matched[gt]++;
}

static void score_frame(struct work *w, const struct sac_eval_view *f, struct sac_eval_result *out)
{
    int    good = 0;
    double similarity = 0;
    for (int g = 0; g < f->now.gt_count; g++)
        w->seen[f->gt[g]]++;
    if (f->now.gt_count > 0 && f->now.track_count > 0) {
        w->both++;
        fill_score(w, f);
        sac_eval_match(&w->matcher, f->touches, w->score, f->now.touch_count, f->now.gt_count,
                       f->now.track_count, w->touch_of_row);
        for (int g = 0; g < f->now.gt_count; g++) {
            const int i = w->touch_of_row[g];
            if (i < 0)
                continue;
            count_pair(w, f->gt[g], f->track[f->touches[i].track], out);
            similarity += f->touches[i].similarity;
            good++;
        }
    }
    out->tp += good;
    out->fn += f->now.gt_count - good;
    out->fp += f->now.track_count - good;
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
    size_t                      n = (size_t)d->gt_max, ids = (size_t)d->gt_ids, touches = 0;
    for (size_t i = 0; i < d->frames_kept; i++)
        touches = SAC_MAX(touches, (size_t)d->frames[i].touch_count);
    int *numbers = sac_arena_alloc(&w->arena, 5 * ids * sizeof(int));
    w->score = sac_arena_alloc(&w->arena, touches * sizeof(double));
    w->touch_of_row = sac_arena_alloc(&w->arena, n * sizeof(int));
    if (!numbers || !w->score || !w->touch_of_row ||
        !sac_eval_matcher_init(&w->matcher, d->gt_max, d->track_max))
        return false;
    int **const parts[] = {&w->seen, &w->matched, &w->times_found, &w->last_track, &w->last_both};
    for (size_t i = 0; i < SAC_COUNT(parts); i++)
        *parts[i] = numbers + i * ids;
    for (size_t i = 0; i < ids; i++)
        w->last_track[i] = w->last_both[i] = NOBODY;
    return true;
}

sac_result sac_eval_clear_score(const struct sac_eval_data *data, struct sac_eval_result *out)
{
    struct work          w = {.data = data};
    struct sac_eval_view f = {0};
    bool                 ok = allot(&w);
    if (ok) {
        while (sac_eval_next(data, &f))
            score_frame(&w, &f, out);
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
