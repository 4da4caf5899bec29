/* SPDX-License-Identifier: Apache-2.0 */
/* From two files to the frames that are scored. MOTChallenge's ground truth also marks objects that
 * a tracker may mistake for a pedestrian: a track box on one of them is neither right nor wrong. */
#include <limits.h>
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

/* x and y sides, and a box without area touches nothing; in the order of the reference's
 * arithmetic. */
static double iou(const struct sac_mot_row *a, const struct sac_mot_row *b)
{
    double ax1 = a->x + a->w, ay1 = a->y + a->h, bx1 = b->x + b->w, by1 = b->y + b->h;
    double width = SAC_MIN(ax1, bx1) - SAC_MAX(a->x, b->x);
    if (!(width > 0)) /* most pairs of a frame */
        return 0;
    double height = SAC_MIN(ay1, by1) - SAC_MAX(a->y, b->y);
    if (!(height > 0))
        return 0;
    double area_a = (ax1 - a->x) * (ay1 - a->y), area_b = (bx1 - b->x) * (by1 - b->y);
    double both = width * height;
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
    int                    *sorted; /* [largest frame] scratch */
    /* Of one frame, before anything is left out. */
    struct sac_eval_touch *touches; /* [touch_count] */
    double                *score;   /* [touch_count] */
    size_t                 touch_count, touch_capacity, score_capacity;
    int                   *touch_of_row; /* [gt_max] */
    int                   *place;        /* [track_max] among those that are kept; -1: it is not */
};

static sac_result check_unique(struct preparation *p, struct span s, const char *what)
{
    bool grows = true;
    for (int i = 0; i < s.count; i++) {
        p->sorted[i] = s.rows[i].id;
        grows = grows && (i == 0 || p->sorted[i] > p->sorted[i - 1]);
    }
    if (grows)
        return SAC_OK;
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
            return SAC_FAIL(
                p->data->ctx, SAC_ERR_FORMAT,
                "%s: tracks have class %d in frame %d; pedestrians (1, or -1) alone can be scored",
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

static bool find_touches(struct preparation *p, struct span gt, struct span tracks)
{
    p->touch_count = 0;
    for (int g = 0; g < gt.count; g++) {
        if (!sac_grow((void **)&p->touches, &p->touch_capacity,
                      p->touch_count + (size_t)tracks.count, sizeof *p->touches))
            return false;
        for (int t = 0; t < tracks.count; t++) {
            double similarity = iou(&gt.rows[g], &tracks.rows[t]);
            if (similarity > 0)
                p->touches[p->touch_count++] = (struct sac_eval_touch){similarity, g, t};
        }
    }
    return true;
}

static bool has_distractor(const struct preparation *p, struct span gt)
{
    for (int g = 0; p->preprocess && g < gt.count; g++)
        if (is_distractor(gt.rows[g].class_id))
            return true;
    return false;
}

/* The track boxes that lie on a distractor are left out. All ground truth takes part in the
 * matching, so a box that fits a pedestrian better stays. */
static bool keep_undistracted(struct preparation *p, struct span gt, struct span tracks)
{
    memset(p->place, 0, (size_t)tracks.count * sizeof *p->place);
    if (!has_distractor(p, gt) || p->touch_count == 0)
        return true;
    if (!sac_grow((void **)&p->score, &p->score_capacity, p->touch_count, sizeof *p->score))
        return false;
    for (size_t i = 0; i < p->touch_count; i++)
        p->score[i] = p->touches[i].similarity < 0.5 - SAC_EVAL_EPS ? 0 : p->touches[i].similarity;
    sac_eval_match(&p->matcher, p->touches, p->score, (int)p->touch_count, gt.count, tracks.count,
                   p->touch_of_row);
    for (int g = 0; g < gt.count; g++)
        if (p->touch_of_row[g] >= 0 && is_distractor(gt.rows[g].class_id))
            p->place[p->touches[p->touch_of_row[g]].track] = -1;
    return true;
}

/* The confidence of ground truth is a flag: 0 means not scored. */
static bool is_scored(const struct preparation *p, const struct sac_mot_row *gt)
{
    return (int)gt->conf != 0 && (!p->preprocess || gt->class_id == MOT_PEDESTRIAN);
}

static bool allot(struct sac_eval_data *data, size_t gt, size_t tracks, size_t touches)
{
    return sac_grow((void **)&data->frames, &data->frames_capacity, data->frames_kept + 1,
                    sizeof *data->frames) &&
           sac_grow((void **)&data->gt, &data->gt_capacity, (size_t)data->gt_dets + gt,
                    sizeof *data->gt) &&
           sac_grow((void **)&data->track, &data->track_capacity, (size_t)data->track_dets + tracks,
                    sizeof *data->track) &&
           sac_grow((void **)&data->touches, &data->touch_capacity, data->touch_count + touches,
                    sizeof *data->touches);
}

/* The rest of a frame, with ids as in the files. */
static void keep_rest(struct preparation *p, struct span gt, struct span tracks)
{
    struct sac_eval_data *data = p->data;
    struct sac_eval_frame frame = {0};
    size_t                next = 0;
    for (int t = 0; t < tracks.count; t++)
        if (p->place[t] >= 0) {
            p->place[t] = frame.track_count++;
            data->track[data->track_dets++] = tracks.rows[t].id;
        }
    for (int g = 0; g < gt.count; g++) {
        const bool scored = is_scored(p, &gt.rows[g]);
        for (; next < p->touch_count && p->touches[next].gt == g; next++)
            if (scored && p->place[p->touches[next].track] >= 0) {
                data->touches[data->touch_count++] = (struct sac_eval_touch){
                    p->touches[next].similarity, frame.gt_count, p->place[p->touches[next].track]};
                frame.touch_count++;
            }
        if (scored) {
            frame.gt_count++;
            data->gt[data->gt_dets++] = gt.rows[g].id;
        }
    }
    if (frame.gt_count || frame.track_count)
        data->frames[data->frames_kept++] = frame;
}

static sac_result prepare_frame(struct preparation *p, struct span gt, struct span tracks)
{
    sac_result res = check_gt(p, gt);
    if (res == SAC_OK)
        res = check_tracks(p, tracks);
    if (res != SAC_OK)
        return res;
    if (!find_touches(p, gt, tracks) || !keep_undistracted(p, gt, tracks) ||
        !allot(p->data, (size_t)gt.count, (size_t)tracks.count, p->touch_count))
        return sac_eval_no_memory(p->data);
    keep_rest(p, gt, tracks);
    return SAC_OK;
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
    while (res == SAC_OK && (at_gt < gt->count || at_track < tracks->count)) {
        int frame = at_gt < gt->count ? gt->rows[at_gt].frame : INT_MAX;
        if (at_track < tracks->count)
            frame = SAC_MIN(frame, tracks->rows[at_track].frame);
        struct span in_gt = take_frame(gt, &at_gt, frame);
        struct span in_tracks = take_frame(tracks, &at_track, frame);
        res = prepare_frame(p, in_gt, in_tracks);
    }
    return res;
}

static bool preparation_init(struct preparation *p)
{
    struct sac_eval_data *data = p->data;
    const size_t          n = (size_t)data->gt_max, m = (size_t)data->track_max;
    p->sorted = sac_realloc_array(NULL, SAC_MAX(n, m), sizeof *p->sorted);
    p->touch_of_row = sac_realloc_array(NULL, n, sizeof *p->touch_of_row);
    p->place = sac_realloc_array(NULL, m, sizeof *p->place);
    return p->sorted && p->touch_of_row && p->place && allot(data, 1, 1, 1) &&
           sac_eval_matcher_init(&p->matcher, p->preprocess ? (int)n : 0,
                                 p->preprocess ? (int)m : 0);
}

static void preparation_finish(struct preparation *p)
{
    sac_eval_matcher_finish(&p->matcher);
    sac_free(p->sorted);
    sac_free(p->touch_of_row);
    sac_free(p->place);
    sac_free(p->touches);
    sac_free(p->score);
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
    res = preparation_init(&p) ? prepare_frames(&p, gt, tracks) : sac_eval_no_memory(data);
    preparation_finish(&p);
    return res == SAC_OK ? sac_eval_number(data, name) : res;
}

void sac_eval_data_finish(struct sac_eval_data *data)
{
    sac_free(data->frames);
    sac_free(data->gt);
    sac_free(data->track);
    sac_free(data->touches);
    sac_free(data->pair_of);
    sac_free(data->pairs);
}
