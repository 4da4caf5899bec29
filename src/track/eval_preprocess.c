/* SPDX-License-Identifier: Apache-2.0 */
/* From two files to the frames that count. MOTChallenge's ground truth also marks things that a
 * tracker may take for a pedestrian: a track box on one of them is neither right nor wrong. */
#include <string.h>

#include "track/eval_data.h"

/* MOT16 and later. */
enum mot_class {
    MOT_PEDESTRIAN = 1,
    MOT_PERSON_ON_VEHICLE = 2,
    MOT_STATIC_PERSON = 7,
    MOT_DISTRACTOR = 8,
    MOT_REFLECTION = 12,
    MOT_CLASS_LAST = 13
};

static bool is_distractor(int class_id)
{
    return class_id == MOT_PERSON_ON_VEHICLE || class_id == MOT_STATIC_PERSON ||
           class_id == MOT_DISTRACTOR || class_id == MOT_REFLECTION;
}

/* Rows of one frame. */
struct span {
    const struct sac_mot_row *rows;
    int                       count;
};

static struct span take_frame(const struct sac_mot_file *file, size_t *at, int frame)
{
    struct span s = {.rows = file->count ? file->rows + *at : NULL};
    while (*at < file->count && file->rows[*at].frame == frame) {
        s.count++;
        ++*at;
    }
    return s;
}

/* ---- similarity ---- */

/* x and y sides, and a box without area touches nothing; in the order of the reference's arithmetic. */
static double iou(const struct sac_mot_row *a, const struct sac_mot_row *b)
{
    double ax1 = a->x + a->w, ay1 = a->y + a->h, bx1 = b->x + b->w, by1 = b->y + b->h;
    double width = SAC_MIN(ax1, bx1) - SAC_MAX(a->x, b->x);
    double height = SAC_MIN(ay1, by1) - SAC_MAX(a->y, b->y);
    double area_a = (ax1 - a->x) * (ay1 - a->y), area_b = (bx1 - b->x) * (by1 - b->y);
    double both = SAC_MAX(width, 0.0) * SAC_MAX(height, 0.0);
    double either = area_a + area_b - both;
    if (area_a <= SAC_EVAL_EPS || area_b <= SAC_EVAL_EPS || either <= SAC_EVAL_EPS)
        return 0;
    return both / either;
}

/* ---- checks ---- */

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

struct preparation {
    struct sac_eval_data   *data;
    const char             *name;
    bool                    preprocess;
    struct sac_eval_matcher matcher;
    int                    *sorted;     /* [largest frame] scratch */
    double                 *similarity; /* [gt_max,track_max] scratch */
    double                 *score;      /* [gt_max,track_max] scratch */
    int                    *matched;    /* [gt_max] column of each row */
    bool                   *removed;    /* [track_max] */
};

static sac_result check_unique(struct preparation *p, struct span s, const char *what)
{
    for (int i = 0; i < s.count; i++)
        p->sorted[i] = s.rows[i].id;
    qsort(p->sorted, (size_t)s.count, sizeof *p->sorted, compare_ints);
    for (int i = 1; i < s.count; i++)
        if (p->sorted[i] == p->sorted[i - 1])
            return SAC_FAIL(p->data->ctx, SAC_ERR_FORMAT,
                            "%s: %s has id %d more than once in frame %d", p->name, what,
                            p->sorted[i], s.rows[0].frame);
    return SAC_OK;
}

static sac_result check_tracks(struct preparation *p, struct span s)
{
    for (int i = 0; i < s.count; i++)
        if (s.rows[i].class_id > MOT_PEDESTRIAN)
            return SAC_FAIL(p->data->ctx, SAC_ERR_FORMAT,
                            "%s: tracks have class %d in frame %d; pedestrians (1, or -1) alone can "
                            "be scored",
                            p->name, s.rows[i].class_id, s.rows[0].frame);
    return check_unique(p, s, "tracks");
}

static sac_result check_gt(struct preparation *p, struct span s)
{
    for (int i = 0; p->preprocess && i < s.count; i++)
        if (s.rows[i].class_id < MOT_PEDESTRIAN || s.rows[i].class_id > MOT_CLASS_LAST)
            return SAC_FAIL(p->data->ctx, SAC_ERR_FORMAT,
                            "%s: ground truth has class %d in frame %d; the benchmark's "
                            "preprocessing knows 1 to %d",
                            p->name, s.rows[i].class_id, s.rows[0].frame, MOT_CLASS_LAST);
    return check_unique(p, s, "ground truth");
}

/* ---- one frame ---- */

/* Mark the track boxes that lie on a distractor. All ground truth takes part in the matching, so a
 * box that fits a pedestrian better stays. */
static void remove_distracted(struct preparation *p, struct span gt, struct span tracks)
{
    size_t cols = (size_t)tracks.count, pairs = (size_t)gt.count * cols;
    memset(p->removed, 0, cols);
    if (!p->preprocess || pairs == 0)
        return;
    for (size_t i = 0; i < pairs; i++)
        p->score[i] = p->similarity[i] < 0.5 - SAC_EVAL_EPS ? 0 : p->similarity[i];
    sac_eval_match(&p->matcher, p->score, gt.count, tracks.count, p->matched);
    for (int g = 0; g < gt.count; g++) {
        int t = p->matched[g];
        if (t >= 0 && p->score[(size_t)g * cols + (size_t)t] > SAC_EVAL_EPS &&
            is_distractor(gt.rows[g].class_id))
            p->removed[t] = true;
    }
}

/* The confidence of ground truth is a mark: 0 means not to be scored. */
static bool is_scored(const struct preparation *p, const struct sac_mot_row *gt)
{
    return (int)gt->conf != 0 && (!p->preprocess || gt->class_id == MOT_PEDESTRIAN);
}

static bool allot(struct sac_eval_data *data, struct sac_eval_frame *frame, struct span gt,
                  struct span tracks)
{
    size_t n = (size_t)gt.count, m = (size_t)tracks.count;
    frame->gt = sac_arena_alloc(&data->arena, n * sizeof *frame->gt);
    frame->track = sac_arena_alloc(&data->arena, m * sizeof *frame->track);
    frame->similarity = sac_arena_alloc(&data->arena, n * m * sizeof *frame->similarity);
    return frame->gt && frame->track && frame->similarity;
}

/* What is left of a frame, ids still as in the files. */
static void keep_rest(struct preparation *p, struct sac_eval_frame *frame, struct span gt,
                      struct span tracks)
{
    size_t  cols = (size_t)tracks.count;
    double *to = frame->similarity;
    for (int t = 0; t < tracks.count; t++)
        if (!p->removed[t])
            frame->track[frame->track_count++] = tracks.rows[t].id;
    for (int g = 0; g < gt.count; g++) {
        if (!is_scored(p, &gt.rows[g]))
            continue;
        frame->gt[frame->gt_count++] = gt.rows[g].id;
        for (int t = 0; t < tracks.count; t++)
            if (!p->removed[t])
                *to++ = p->similarity[(size_t)g * cols + (size_t)t];
    }
    p->data->gt_dets += frame->gt_count;
    p->data->track_dets += frame->track_count;
}

static sac_result prepare_frame(struct preparation *p, struct sac_eval_frame *frame,
                                struct span gt, struct span tracks)
{
    sac_result res = check_gt(p, gt);
    if (res == SAC_OK)
        res = check_tracks(p, tracks);
    if (res != SAC_OK)
        return res;
    if (!allot(p->data, frame, gt, tracks))
        return sac_eval_no_memory(p->data);
    for (int g = 0; g < gt.count; g++)
        for (int t = 0; t < tracks.count; t++)
            p->similarity[(size_t)g * (size_t)tracks.count + (size_t)t] =
                iou(&gt.rows[g], &tracks.rows[t]);
    remove_distracted(p, gt, tracks);
    keep_rest(p, frame, gt, tracks);
    return SAC_OK;
}

/* ---- ids without gaps ---- */

static int *ids_of(struct sac_eval_frame *frame, bool tracks, int *count)
{
    *count = tracks ? frame->track_count : frame->gt_count;
    return tracks ? frame->track : frame->gt;
}

static bool renumber(struct sac_eval_data *data, bool tracks, int64_t dets, int *unique_out)
{
    int   *all = sac_realloc_array(NULL, (size_t)dets, sizeof *all);
    size_t n = 0, unique = 0;
    int    count;
    if (!all)
        return false;
    for (int f = 0; f < data->frame_count; f++) {
        int *ids = ids_of(&data->frames[f], tracks, &count);
        for (int i = 0; i < count; i++)
            all[n++] = ids[i];
    }
    qsort(all, n, sizeof *all, compare_ints);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || all[i] != all[i - 1])
            all[unique++] = all[i];
    for (int f = 0; f < data->frame_count; f++) {
        int *ids = ids_of(&data->frames[f], tracks, &count);
        for (int i = 0; i < count; i++)
            ids[i] = (int)((int *)bsearch(&ids[i], all, unique, sizeof *all, compare_ints) - all);
    }
    sac_free(all);
    *unique_out = (int)unique;
    return true;
}

/* ---- the whole ---- */

static int largest_frame(const struct sac_mot_file *file)
{
    int largest = 0, count = 0;
    for (size_t i = 0; i < file->count; i++) {
        count = i > 0 && file->rows[i].frame == file->rows[i - 1].frame ? count + 1 : 1;
        largest = SAC_MAX(largest, count);
    }
    return largest;
}

static sac_result prepare_frames(struct preparation *p, const struct sac_mot_file *gt,
                                 const struct sac_mot_file *tracks)
{
    sac_result res = SAC_OK;
    size_t     at_gt = 0, at_track = 0;
    for (int f = 0; f < p->data->frame_count && res == SAC_OK; f++) {
        struct span in_gt = take_frame(gt, &at_gt, f + 1);
        struct span in_tracks = take_frame(tracks, &at_track, f + 1);
        res = prepare_frame(p, &p->data->frames[f], in_gt, in_tracks);
    }
    return res;
}

static bool allot_scratch(struct preparation *p)
{
    struct sac_eval_data *data = p->data;
    size_t n = (size_t)data->gt_max, m = (size_t)data->track_max;
    data->frames =
        sac_arena_alloc(&data->arena, (size_t)data->frame_count * sizeof *data->frames);
    p->sorted = sac_arena_alloc(&data->arena, SAC_MAX(n, m) * sizeof *p->sorted);
    p->similarity = sac_arena_alloc(&data->arena, n * m * sizeof *p->similarity);
    p->score = sac_arena_alloc(&data->arena, n * m * sizeof *p->score);
    p->matched = sac_arena_alloc(&data->arena, n * sizeof *p->matched);
    p->removed = sac_arena_alloc(&data->arena, m * sizeof *p->removed);
    return data->frames && p->sorted && p->similarity && p->score && p->matched && p->removed &&
           sac_eval_matcher_init(&p->matcher, (int)n, (int)m);
}

/* MOT15's ground truth has no classes, and its benchmark no preprocessing. */
static bool has_classes(const struct sac_mot_file *gt)
{
    for (size_t i = 0; i < gt->count; i++)
        if (gt->rows[i].class_id != -1)
            return true;
    return gt->count == 0;
}

static sac_result check_length(struct sac_eval_data *data, const char *name,
                               const struct sac_mot_file *gt, const struct sac_mot_file *tracks,
                               int frames)
{
    int last = SAC_MAX(gt->frame_max, tracks->frame_max);
    data->frame_count = frames > 0 ? frames : last;
    if (last > data->frame_count)
        return SAC_FAIL(data->ctx, SAC_ERR_FORMAT, "%s: %s has frame %d, but the sequence has %d",
                        name, gt->frame_max == last ? "ground truth" : "tracks", last,
                        data->frame_count);
    return SAC_OK;
}

sac_result sac_eval_prepare(struct sac_eval_data *data, const char *name,
                            const struct sac_mot_file *gt, const struct sac_mot_file *tracks,
                            const struct sac_eval_params *params)
{
    struct preparation p = {.data = data, .name = name, .preprocess = params->preprocess != 0};
    sac_result         res = check_length(data, name, gt, tracks, params->frames);
    if (res != SAC_OK)
        return res;
    if (p.preprocess && !has_classes(gt)) {
        sac_log(data->ctx, SAC_LOG_INFO,
                "%s: the ground truth has no classes, so nothing is left out of it", name);
        p.preprocess = false;
    }
    data->gt_max = largest_frame(gt);
    data->track_max = largest_frame(tracks);
    if ((int64_t)data->gt_max * data->track_max > SAC_EVAL_PAIRS_MAX)
        return SAC_FAIL(data->ctx, SAC_ERR_LIMIT,
                        "%s: %d and %d boxes in one frame; at most %d pairs can be scored", name,
                        data->gt_max, data->track_max, SAC_EVAL_PAIRS_MAX);
    res = allot_scratch(&p) ? prepare_frames(&p, gt, tracks) : sac_eval_no_memory(data);
    sac_eval_matcher_finish(&p.matcher);
    if (res == SAC_OK && (!renumber(data, false, data->gt_dets, &data->gt_ids) ||
                          !renumber(data, true, data->track_dets, &data->track_ids)))
        res = sac_eval_no_memory(data);
    return res;
}

void sac_eval_data_finish(struct sac_eval_data *data)
{
    sac_arena_finish(&data->arena);
}
