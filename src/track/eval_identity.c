/* SPDX-License-Identifier: Apache-2.0 */
/* Identity. Source: Ristani et al., "Performance Measures and a Data Set for Multi-Target,
 * Multi-Camera Tracking", ECCV Workshops 2016. */
#include "track/eval_data.h"

static const double THRESHOLD = 0.5;

/* The metric needs the matching of ids, each with at most one partner, that leaves the fewest boxes
 * wrong. Wrong boxes are all boxes minus twice those in common, so it is the matching with the most
 * in common, and its count is the same for all equally good ones.
 *
 * Few of the ids meet, so the search goes along the pairs that do: rows are ground-truth ids,
 * columns track ids, a pair costs what it has in common, less than nothing, and staying alone costs
 * nothing. Row by row, the cheapest way to a free column or to a row that stays alone instead is
 * found with prices (u, v) that leave no step behind the first one under 0, so that Dijkstra's
 * search finds it. */
struct step {
    int64_t way;
    int     col;
};

struct search {
    const struct sac_eval_data *data;
    struct sac_arena            arena;
    int64_t                    *common;                  /* [pair_count] boxes */
    size_t                     *begin;                   /* [gt_ids + 1] pairs of a row */
    int64_t                    *u, *v;                   /* [gt_ids], [track_ids] */
    int                        *col_of_row, *row_of_col; /* -1: alone */
    int64_t                    *way;     /* [track_ids] shortest so far; INT64_MAX: none */
    int                        *from;    /* [track_ids] the row that it leads from */
    int                        *reached; /* [track_ids] list of columns with a way */
    int                        *done;    /* [track_ids] list of columns that were gone on from */
    bool                       *is_done; /* [track_ids] */
    int                         reached_count, done_count;
    struct step                *heap; /* [pair_count] */
    size_t                      heap_count;
};

static void heap_push(struct search *s, struct step step)
{
    size_t at = s->heap_count++;
    for (; at > 0 && s->heap[(at - 1) / 2].way > step.way; at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = step;
}

static struct step heap_pop(struct search *s)
{
    const struct step top = s->heap[0], last = s->heap[--s->heap_count];
    size_t            at = 0;
    for (size_t child; (child = 2 * at + 1) < s->heap_count; at = child) {
        child += child + 1 < s->heap_count && s->heap[child + 1].way < s->heap[child].way;
        if (s->heap[child].way >= last.way)
            break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = last;
    return top;
}

/* The ways from a row, reached at a cost of `base`, to all that it meets. */
static void go_on_from(struct search *s, int row, int64_t base)
{
    for (size_t i = s->begin[row]; i < s->begin[row + 1]; i++) {
        const int     col = s->data->pairs[i].track;
        const int64_t way = base - s->common[i] - s->u[row] - s->v[col];
        if (s->common[i] == 0 || s->is_done[col] || way >= s->way[col])
            continue;
        if (s->way[col] == INT64_MAX)
            s->reached[s->reached_count++] = col;
        s->way[col] = way;
        s->from[col] = row;
        heap_push(s, (struct step){way, col});
    }
}

/* The end of the cheapest way: a free column, or -1 and the row that stays alone. */
static int find_end(struct search *s, int first, int *alone, int64_t *cost)
{
    int     row = first;
    int64_t base = 0;
    *cost = INT64_MAX;
    *alone = first;
    for (;;) {
        if (base - s->u[row] < *cost) {
            *cost = base - s->u[row];
            *alone = row;
        }
        go_on_from(s, row, base);
        struct step next = {INT64_MAX, -1};
        while (s->heap_count && next.col < 0) {
            next = heap_pop(s);
            if (s->is_done[next.col] || next.way > s->way[next.col]) /* a shorter way came later */
                next.col = -1;
        }
        if (next.col < 0 || next.way >= *cost)
            return -1;
        if (s->row_of_col[next.col] < 0) {
            *cost = next.way;
            return next.col;
        }
        s->is_done[next.col] = true;
        s->done[s->done_count++] = next.col;
        row = s->row_of_col[next.col];
        base = next.way;
    }
}

static void update_prices(struct search *s, int first, int64_t cost)
{
    s->u[first] += cost;
    for (int k = 0; k < s->done_count; k++) {
        const int col = s->done[k];
        s->u[s->row_of_col[col]] += cost - s->way[col];
        s->v[col] -= cost - s->way[col];
    }
}

static void add_row(struct search *s, int first)
{
    int     row;
    int64_t cost;
    int     col = find_end(s, first, &row, &cost);
    update_prices(s, first, cost);
    if (col < 0) { /* the row's column goes to the row before it on the path */
        col = s->col_of_row[row];
        s->col_of_row[row] = -1;
    }
    while (col >= 0) {
        row = s->from[col];
        const int former = s->col_of_row[row];
        s->row_of_col[col] = row;
        s->col_of_row[row] = col;
        col = row == first ? -1 : former;
    }
    for (int k = 0; k < s->reached_count; k++) {
        s->way[s->reached[k]] = INT64_MAX;
        s->is_done[s->reached[k]] = false;
    }
    s->reached_count = s->done_count = 0;
    s->heap_count = 0;
}

static void count_common(struct search *s)
{
    const struct sac_eval_data *d = s->data;
    struct sac_eval_view        f = {0};
    while (sac_eval_next(d, &f))
        for (int i = 0; i < f.now.touch_count; i++)
            s->common[f.pair_of[i]] += f.touches[i].similarity >= THRESHOLD;
    for (size_t i = 0; i < d->pair_count; i++)
        s->begin[d->pairs[i].gt + 1]++;
    for (int g = 0; g < d->gt_ids; g++)
        s->begin[g + 1] += s->begin[g];
}

static int64_t common_most(struct search *s)
{
    const struct sac_eval_data *d = s->data;
    int64_t                     sum = 0;
    for (int g = 0; g < d->gt_ids; g++)
        add_row(s, g);
    for (size_t i = 0; i < d->pair_count; i++)
        if (s->col_of_row[d->pairs[i].gt] == d->pairs[i].track)
            sum += s->common[i];
    return sum;
}

static bool allot(struct search *s)
{
    const size_t gt = (size_t)s->data->gt_ids, tracks = (size_t)s->data->track_ids,
                 pairs = s->data->pair_count;
    s->common = sac_arena_alloc(&s->arena, pairs * sizeof *s->common);
    s->begin = sac_arena_alloc(&s->arena, (gt + 1) * sizeof *s->begin);
    s->u = sac_arena_alloc(&s->arena, gt * sizeof *s->u);
    s->v = sac_arena_alloc(&s->arena, tracks * sizeof *s->v);
    s->col_of_row = sac_arena_alloc(&s->arena, gt * sizeof *s->col_of_row);
    s->row_of_col = sac_arena_alloc(&s->arena, tracks * sizeof *s->row_of_col);
    s->way = sac_arena_alloc(&s->arena, tracks * sizeof *s->way);
    s->from = sac_arena_alloc(&s->arena, tracks * sizeof *s->from);
    s->reached = sac_arena_alloc(&s->arena, tracks * sizeof *s->reached);
    s->done = sac_arena_alloc(&s->arena, tracks * sizeof *s->done);
    s->is_done = sac_arena_alloc(&s->arena, tracks * sizeof *s->is_done);
    s->heap = sac_arena_alloc(&s->arena, pairs * sizeof *s->heap);
    if (!s->common || !s->begin || !s->u || !s->v || !s->col_of_row || !s->row_of_col || !s->way ||
        !s->from || !s->reached || !s->done || !s->is_done || !s->heap)
        return false;
    for (size_t i = 0; i < gt; i++)
        s->col_of_row[i] = -1;
    for (size_t i = 0; i < tracks; i++) {
        s->row_of_col[i] = -1;
        s->way[i] = INT64_MAX;
    }
    return true;
}

sac_result sac_eval_identity_score(const struct sac_eval_data *data, struct sac_eval_result *out)
{
    struct search s = {.data = data};
    bool          ok = allot(&s);
    if (ok) {
        count_common(&s);
        out->idtp = common_most(&s);
        out->idfn = data->gt_dets - out->idtp;
        out->idfp = data->track_dets - out->idtp;
        sac_eval_identity_close(out);
    }
    sac_arena_finish(&s.arena);
    return ok ? SAC_OK : sac_eval_no_memory(data);
}

void sac_eval_identity_close(struct sac_eval_result *out)
{
    double tp = (double)out->idtp, fp = (double)out->idfp, fn = (double)out->idfn;
    out->idr = sac_eval_share(tp, tp + fn);
    out->idp = sac_eval_share(tp, tp + fp);
    out->idf1 = sac_eval_share(tp, tp + 0.5 * fp + 0.5 * fn);
}
