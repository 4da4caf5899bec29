/* SPDX-License-Identifier: Apache-2.0 */
/* A frame and its matte to a picture: see composite.h.
 *
 * Two rows at a time, as chroma wants them. For each number of a plane's row there is a weight and
 * a number that it goes to, so that one loop, which compilers widen, mixes all formats and kinds.
 * The rows stay in the first-level cache. */
#include <string.h>

#include "vision/composite.h"
#include "vision/cpu/cpu.h"

enum { PAIRS_PER_PIECE = 16, MARGIN = SAC_COMPOSITE_RADIUS_MAX, BLOCK = 64 };

/* What a plane's row holds. */
struct plane {
    int    step; /* numbers a pixel or a chroma sample */
    int    numbers;
    size_t bytes;
};

/* A worker's rows, each of work.row_bytes. */
struct rows {
    uint8_t *inside;               /* [MARGIN + width + MARGIN] counted down each column */
    uint8_t *weight[2], *cover[2]; /* of two rows: to the other colour, to the outline's */
    bool     outlined[2];
    uint8_t *chroma, *chroma_cover; /* the means of both rows */
    uint8_t *spread;                /* weights, one for each number */
    uint8_t *to;                    /* classes' colours */
    uint8_t *mixed[SAC_PLANES_MAX]; /* what is written in another format afterwards */
};
enum { ROWS = 12 };

struct work {
    const struct sac_composite_job *job;
    struct sac_composite_plan       plan;
    int                             width, height, planes;
    struct plane                    plane[SAC_PLANES_MAX];
    bool                            same_format;
    uint8_t                         outline[256];      /* the weight for a count inside */
    uint8_t                         class_weight[256]; /* for a class */
    uint8_t *colour[2][SAC_PLANES_MAX];                /* a row of colour[0], of the outline's */
    uint8_t *scratch;                                  /* [workers][ROWS][row_bytes] */
    size_t   row_bytes;
};

/* ---- numbers ---- */

static void mix_bytes(uint8_t *restrict row, const uint8_t *restrict to,
                      const uint8_t *restrict weight, int n)
{
    for (int i = 0; i < n; i++)
        row[i] = sac_composite_mix_byte(row[i], to[i], weight[i]);
}

static void mix_words(uint16_t *restrict row, const uint16_t *restrict to,
                      const uint8_t *restrict weight, int n)
{
    for (int i = 0; i < n; i++)
        row[i] = sac_composite_mix_word(row[i], to[i], weight[i]);
}

/* Weights of pixels become those of their numbers; the fourth number of a pixel stays. */
static const uint8_t *spread(const uint8_t *restrict weight, int step, int n, uint8_t *restrict out)
{
    if (step == 1)
        return weight;
    for (int i = 0; step == 2 && i < n; i++)
        out[2 * i] = out[2 * i + 1] = weight[i];
    for (int i = 0; step == 3 && i < n; i++)
        out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = weight[i];
    for (int i = 0; step == 4 && i < n; i++) {
        out[4 * i] = out[4 * i + 1] = out[4 * i + 2] = weight[i];
        out[4 * i + 3] = 0;
    }
    return out;
}

static void mix(const struct work *w, struct rows *r, int plane, uint8_t *row, const uint8_t *to,
                const uint8_t *weight)
{
    const struct plane *p = &w->plane[plane];
    const uint8_t      *each = spread(weight, p->step, p->numbers / p->step, r->spread);
    if (w->plan.words)
        mix_words((uint16_t *)(void *)row, (const uint16_t *)(const void *)to, each, p->numbers);
    else
        mix_bytes(row, to, each, p->numbers);
}

static void fill_bytes(uint8_t *restrict row, int n, int step, const uint16_t value[4])
{
    const uint8_t a = (uint8_t)value[0], b = (uint8_t)value[1], c = (uint8_t)value[2];
    if (step == 1)
        memset(row, a, (size_t)n);
    else if (step == 2)
        for (int i = 0; i < n; i++) {
            row[2 * i] = a;
            row[2 * i + 1] = b;
        }
    else /* the fourth number keeps its place and is never mixed */
        for (int i = 0; i < n; i++) {
            row[step * i] = a;
            row[step * i + 1] = b;
            row[step * i + 2] = c;
        }
}

static void fill_words(uint16_t *restrict row, int n, int step, const uint16_t value[4])
{
    const uint16_t a = value[0], b = step == 2 ? value[1] : a;
    for (int i = 0; i + 1 < step * n; i += 2) {
        row[i] = a;
        row[i + 1] = b;
    }
    if (step * n & 1)
        row[step * n - 1] = a;
}

/* n pixels or chroma samples of a plane's row, from x on, become a colour. */
static void fill_numbers(const struct work *w, int plane, uint8_t *row, int x, int n,
                         const uint16_t sample[3])
{
    const int step = w->plane[plane].step;
    uint16_t  value[4];
    for (int c = 0; c < 4; c++)
        value[c] = sample[SAC_MIN(plane + c, 2)];
    if (w->plan.words)
        fill_words((uint16_t *)(void *)row + x * step, n, step, value);
    else
        fill_bytes(row + x * step, n, step, value);
}

/* ---- weights ---- */

static const uint8_t *matte_row(const struct work *w, int y)
{
    const sac_frame *m = w->job->matte;
    return m->plane[0] + (size_t)SAC_CLAMP(y, 0, w->height - 1) * m->pitch_bytes[0];
}

/* How many of n pixels in a row are of one class: maps have few borders. */
static int run_of(const uint8_t *matte, int n)
{
    const uint64_t eight = matte[0] * UINT64_C(0x0101010101010101);
    int            i = 1;
    for (uint64_t next; i + 8 <= n; i += 8) {
        memcpy(&next, matte + i, sizeof next);
        if (next != eight)
            break;
    }
    while (i < n && matte[i] == matte[0])
        i++;
    return i;
}

static void weigh(const struct work *w, int y, uint8_t *restrict out)
{
    const struct sac_composite_plan plan = w->plan;
    const uint8_t *restrict matte = matte_row(w, y);
    const int n = w->width;
    switch (plan.kind) { /* three loops without a condition */
    case SAC_COMPOSITE_BACKGROUND:
        for (int x = 0; x < n; x++)
            out[x] = sac_composite_weight_background(matte[x]);
        break;
    case SAC_COMPOSITE_TINT:
    case SAC_COMPOSITE_PAINT:
        for (int x = 0; x < n; x++)
            out[x] = sac_composite_weight_tint(plan.strength, matte[x]);
        break;
    case SAC_COMPOSITE_CLASSES:
        for (int x = 0, end; x < n; x = end) {
            end = x + run_of(matte + x, n - x);
            memset(out + x, w->class_weight[matte[x]], (size_t)(end - x));
        }
        break;
    }
}

static void count_window(const struct work *w, struct rows *r, int y)
{
    const int n = w->width;
    memset(r->inside, 0, w->row_bytes);
    for (int k = -w->plan.radius; k <= w->plan.radius; k++) {
        const uint8_t *restrict matte = matte_row(w, y + k);
        uint8_t *restrict inside = r->inside + MARGIN;
        for (int x = 0; x < n; x++)
            inside[x] = (uint8_t)(inside[x] + sac_composite_inside(matte[x]));
    }
}

/* To the row below. */
static void move_window(const struct work *w, struct rows *r, int y)
{
    const uint8_t *restrict leaves = matte_row(w, y - w->plan.radius);
    const uint8_t *restrict enters = matte_row(w, y + 1 + w->plan.radius);
    uint8_t *restrict inside = r->inside + MARGIN;
    const int n = w->width;
    for (int x = 0; x < n; x++)
        inside[x] = (uint8_t)(inside[x] + sac_composite_inside(enters[x]) -
                              sac_composite_inside(leaves[x]));
}

static void sum_columns(const uint8_t *restrict inside, int radius, int n, uint8_t *restrict out)
{
    memcpy(out, inside + MARGIN - radius, (size_t)n);
    for (int k = 1 - radius; k <= radius; k++)
        for (int x = 0; x < n; x++)
            out[x] = (uint8_t)(out[x] + inside[MARGIN + k + x]);
}

/* Counts of a block become weights: there are some, or none. */
static bool outline_block(const struct work *w, uint8_t *restrict cover, uint8_t all)
{
    uint8_t some = 0;
    for (int x = 0; x < BLOCK; x++)
        some |= (cover[x] != 0) & (cover[x] != all);
    if (some)
        for (int x = 0; x < BLOCK; x++)
            cover[x] = w->outline[cover[x]];
    else
        memset(cover, 0, BLOCK);
    return some;
}

/* The cover of the row that the window is around; most rows of most pictures have none. */
static bool cover_row(const struct work *w, struct rows *r, uint8_t *cover)
{
    const int radius = w->plan.radius, n = w->width;
    bool      some = false;
    memset(r->inside + MARGIN - radius, r->inside[MARGIN], (size_t)radius);
    memset(r->inside + MARGIN + n, r->inside[MARGIN + n - 1], (size_t)radius);
    sum_columns(r->inside, radius, n, cover);
    for (int x = 0; x < n; x += BLOCK) /* past the end are zeros, and room */
        some |= outline_block(w, cover + x, (uint8_t)((2 * radius + 1) * (2 * radius + 1)));
    return some;
}

static void mean_rows(const struct work *w, uint8_t *const row[2], uint8_t *restrict out)
{
    const uint8_t *restrict above = row[0], *restrict below = row[1];
    const int half = w->width / 2, last = w->width - 1;
    for (int x = 0; x < half; x++)
        out[x] = sac_composite_mean(above[2 * x], above[2 * x + 1], below[2 * x], below[2 * x + 1]);
    if (w->width & 1)
        out[half] = sac_composite_mean(above[last], above[last], below[last], below[last]);
}

/* ---- what numbers go to ---- */

static void classes_to(const struct work *w, int y, uint8_t *to)
{
    const uint8_t *matte = matte_row(w, y);
    for (int x = 0, end; x < w->width; x = end) {
        end = x + run_of(matte + x, w->width - x);
        fill_numbers(w, 0, to, x, end - x, w->plan.sample[matte[x]]);
    }
}

/* Chroma samples from x on whose pixels are all of one class. */
static int chroma_run_of(const struct work *w, const uint8_t *above, const uint8_t *below, int x)
{
    const int left = w->width - 2 * x;
    if (above[2 * x] != below[2 * x])
        return 0;
    const int run = SAC_MIN(run_of(above + 2 * x, left), run_of(below + 2 * x, left));
    return run == left ? (run + 1) / 2 : run / 2;
}

static void chroma_classes_to(const struct work *w, int plane, int y, uint8_t *to)
{
    const uint8_t *above = matte_row(w, y), *below = matte_row(w, y + 1);
    const int      n = (w->width + 1) / 2;
    for (int x = 0, run; x < n; x += SAC_MAX(run, 1)) {
        const int     right = SAC_MIN(2 * x + 1, w->width - 1);
        const uint8_t four[4] = {above[2 * x], above[right], below[2 * x], below[right]};
        uint16_t      sample[3];
        for (int c = 1; c < 3; c++)
            sample[c] = sac_composite_class_chroma(&w->plan, four, c);
        run = chroma_run_of(w, above, below, x);
        fill_numbers(w, plane, to, x, SAC_MAX(run, 1), sample);
    }
}

/* y: of the plane. */
static const uint8_t *to_of(const struct work *w, struct rows *r, int plane, int y)
{
    const sac_frame *background = w->job->background;
    if (w->plan.kind == SAC_COMPOSITE_CLASSES) {
        if (plane)
            chroma_classes_to(w, plane, 2 * y, r->to);
        else
            classes_to(w, y, r->to);
        return r->to;
    }
    if (w->plan.kind == SAC_COMPOSITE_BACKGROUND && background)
        return background->plane[plane] + (size_t)y * background->pitch_bytes[plane];
    return w->colour[0][plane];
}

/* ---- output ---- */

static uint8_t *row_of(const sac_frame *f, int plane, int y)
{
    return f->plane[plane] + (size_t)y * f->pitch_bytes[plane];
}

/* The frame's row, mixed, to where it is to be, or among the worker's rows. */
static void mix_plane(const struct work *w, struct rows *r, int plane, int y, const uint8_t *weight,
                      const uint8_t *cover)
{
    const uint8_t *from = row_of(w->job->frame, plane, y);
    uint8_t       *row = w->same_format ? row_of(w->job->out, plane, y) : r->mixed[plane];
    if (row != from)
        memcpy(row, from, w->plane[plane].bytes);
    mix(w, r, plane, row, to_of(w, r, plane, y), weight);
    if (cover)
        mix(w, r, plane, row, w->colour[1][plane], cover);
}

static void narrow(const uint16_t *restrict from, bool full_range, int n, uint8_t *restrict to)
{
    if (full_range)
        for (int i = 0; i < n; i++)
            to[i] = sac_composite_narrow(from[i], true);
    else
        for (int i = 0; i < n; i++)
            to[i] = sac_composite_narrow(from[i], false);
}

static void part_pairs(const uint8_t *restrict from, int n, uint8_t *restrict u,
                       uint8_t *restrict v)
{
    for (int i = 0; i < n; i++) {
        u[i] = from[2 * i];
        v[i] = from[2 * i + 1];
    }
}

static void join_pairs(const uint8_t *restrict u, const uint8_t *restrict v, int n,
                       uint8_t *restrict to)
{
    for (int i = 0; i < n; i++) {
        to[2 * i] = u[i];
        to[2 * i + 1] = v[i];
    }
}

/* To a row of 8 bits of the output's, where the frame has other planes. */
static void store_chroma(const struct work *w, struct rows *r, int y)
{
    const sac_frame *out = w->job->out;
    const int        n = (w->width + 1) / 2;
    const uint8_t   *pairs = r->mixed[1];
    if (w->plan.words) {
        uint8_t *to = out->format == SAC_PIXEL_NV12 ? row_of(out, 1, y) : r->to;
        narrow((const uint16_t *)(const void *)r->mixed[1], w->job->frame->range == SAC_RANGE_FULL,
               2 * n, to);
        pairs = to;
    }
    if (out->format == SAC_PIXEL_I420)
        part_pairs(pairs, n, row_of(out, 1, y), row_of(out, 2, y));
    else if (!w->plan.words)
        join_pairs(r->mixed[1], r->mixed[2], n, row_of(out, 1, y));
}

static void store_luma(const struct work *w, struct rows *r, int y)
{
    uint8_t *to = row_of(w->job->out, 0, y);
    if (w->plan.words)
        narrow((const uint16_t *)(const void *)r->mixed[0], w->job->frame->range == SAC_RANGE_FULL,
               w->width, to);
    else
        memcpy(to, r->mixed[0], (size_t)w->width);
}

static void write_luma(const struct work *w, struct rows *r, int y, int which)
{
    mix_plane(w, r, 0, y, r->weight[which], r->outlined[which] ? r->cover[which] : NULL);
    if (!w->same_format)
        store_luma(w, r, y);
}

static void write_chroma(const struct work *w, struct rows *r, int y)
{
    const bool outlined = r->outlined[0] || r->outlined[1];
    mean_rows(w, r->weight, r->chroma);
    if (outlined)
        mean_rows(w, r->cover, r->chroma_cover);
    for (int p = 1; p < w->planes; p++)
        mix_plane(w, r, p, y, r->chroma, outlined ? r->chroma_cover : NULL);
    if (!w->same_format)
        store_chroma(w, r, y);
}

/* ---- rows ---- */

/* Rows past the last one are that again. The window follows them. */
static void weigh_row(const struct work *w, struct rows *r, int y, int which)
{
    weigh(w, y, r->weight[which]);
    if (w->plan.kind != SAC_COMPOSITE_TINT)
        return;
    r->outlined[which] = cover_row(w, r, r->cover[which]);
    if (y + 1 < w->height)
        move_window(w, r, y);
}

static void composite_pair(const struct work *w, struct rows *r, int y)
{
    for (int k = 0; k < 2; k++)
        weigh_row(w, r, SAC_MIN(y + k, w->height - 1), k);
    for (int k = 0; k < 2 && y + k < w->height; k++)
        write_luma(w, r, y + k, k);
    if (w->planes > 1)
        write_chroma(w, r, y / 2);
}

static struct rows rows_of(const struct work *w, int worker)
{
    uint8_t *const at = w->scratch + (size_t)worker * ROWS * w->row_bytes;
    uint8_t       *row[ROWS];
    for (int i = 0; i < ROWS; i++)
        row[i] = at + (size_t)i * w->row_bytes;
    return (struct rows){
        .inside = row[0],
        .weight = {row[1], row[2]},
        .cover = {row[3], row[4]},
        .chroma = row[5],
        .chroma_cover = row[6],
        .spread = row[7],
        .to = row[8],
        .mixed = {row[9], row[10], row[11]},
    };
}

static void run_piece(void *arg, int piece, int worker)
{
    const struct work *w = arg;
    struct rows        r = rows_of(w, worker);
    int                y = piece * PAIRS_PER_PIECE * 2;
    const int          end = SAC_MIN(y + PAIRS_PER_PIECE * 2, w->height);
    if (w->plan.kind == SAC_COMPOSITE_TINT)
        count_window(w, &r, y);
    for (; y < end; y += 2)
        composite_pair(w, &r, y);
}

/* ---- the whole ---- */

static void measure(struct work *w)
{
    const sac_frame              *f = w->job->frame;
    const struct sac_format_info *info = sac_format_info_of(f->format);
    struct sac_plane_layout       planes[SAC_PLANES_MAX];
    w->planes = sac_frame_planes(f->format, f->width, f->height, planes);
    w->row_bytes = (size_t)f->width + 2 * MARGIN;
    for (int i = 0; i < w->planes; i++) {
        w->plane[i] = (struct plane){info->step[i], (int)planes[i].row_bytes / info->number_bytes,
                                     planes[i].row_bytes};
        w->row_bytes = SAC_MAX(w->row_bytes, planes[i].row_bytes);
    }
    w->row_bytes = (w->row_bytes + BLOCK - 1) & ~(size_t)(BLOCK - 1);
}

/* Rows of one colour, and what is looked up. */
static void prepare(struct work *w, uint8_t *colours)
{
    const int all = (2 * w->plan.radius + 1) * (2 * w->plan.radius + 1);
    for (int i = 0; i <= all; i++)
        w->outline[i] = sac_composite_outline(w->plan.radius, (uint32_t)i);
    for (int i = 0; i < 256; i++)
        w->class_weight[i] =
            sac_composite_weight_class(w->plan.strength, w->plan.colours, (uint8_t)i);
    for (int k = 0; k < 2; k++)
        for (int p = 0; p < w->planes; p++, colours += w->row_bytes) {
            const uint16_t *sample = w->plan.sample[k ? w->plan.outline : 0];
            w->colour[k][p] = colours;
            fill_numbers(w, p, colours, 0, w->plane[p].numbers / w->plane[p].step, sample);
        }
}

sac_result sac_cpu_composite(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_composite_job *job)
{
    (void)stream; /* the CPU's runs at once */
    struct work w = {
        .job = job,
        .plan = sac_composite_plan_of(job),
        .width = job->frame->width,
        .height = job->frame->height,
        .same_format = job->out->format == job->frame->format,
    };
    measure(&w);
    const size_t colours = 2 * (size_t)w.planes * w.row_bytes,
                 scratch = (size_t)sac_worker_pool_threads(dev->workers) * ROWS * w.row_bytes;
    struct sac_buffer *buf = NULL;
    sac_result         res = sac_buffer_create(dev, colours + scratch, "composite", &buf);
    if (res != SAC_OK)
        return res;
    /* What lies past rows' ends and beside R, G and B is looked at, in whole blocks. */
    uint8_t *memory = memset(sac_buffer_data(buf), 0, colours + scratch);
    prepare(&w, memory);
    w.scratch = memory + colours;
    sac_worker_pool_run(dev->workers, (w.height + 2 * PAIRS_PER_PIECE - 1) / (2 * PAIRS_PER_PIECE),
                        run_piece, &w);
    sac_buffer_unref(&buf);
    return SAC_OK;
}
