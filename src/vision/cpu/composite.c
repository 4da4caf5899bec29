/* SPDX-License-Identifier: Apache-2.0 */
/* A frame and its matte to a picture: see composite.h.
 *
 * Two rows at a time, as chroma wants them. For each number of a plane's row there is a weight and
 * a number that it goes to, so that one loop, which compilers widen, mixes all formats and kinds.
 * The rows stay in the first-level cache. */
#include <string.h>

#include "vision/composite.h"
#include "vision/cpu/cpu.h"

enum { PAIRS_PER_PIECE = 16, MARGIN = SAC_COMPOSITE_RADIUS_MAX };

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

/* Of a colour, that for a number of a plane's row. */
static uint16_t sample_of(const struct work *w, const uint16_t sample[3], int plane, int number)
{
    if (plane == 0)
        return sample[SAC_MIN(number % w->plane[0].step, 2)];
    return sample[w->planes == 2 ? 1 + (number & 1) : plane];
}

static void put_number(const struct work *w, uint8_t *row, int number, uint16_t value)
{
    if (w->plan.words)
        ((uint16_t *)(void *)row)[number] = value;
    else
        row[number] = (uint8_t)value;
}

/* ---- weights ---- */

static const uint8_t *matte_row(const struct work *w, int y)
{
    const sac_frame *m = w->job->matte;
    return m->plane[0] + (size_t)SAC_CLAMP(y, 0, w->height - 1) * m->pitch_bytes[0];
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
        for (int x = 0; x < n; x++)
            out[x] = sac_composite_weight_tint(plan.strength, matte[x]);
        break;
    case SAC_COMPOSITE_CLASSES:
        for (int x = 0; x < n; x++)
            out[x] = w->class_weight[matte[x]];
        break;
    }
}

/* A row enters or leaves the window. */
static void count_row(const struct work *w, struct rows *r, int y, int sign)
{
    const uint8_t *restrict matte = matte_row(w, y);
    uint8_t *restrict inside = r->inside + MARGIN;
    for (int x = 0; x < w->width; x++)
        inside[x] = (uint8_t)(inside[x] + (sac_composite_inside(matte[x]) ? sign : 0));
}

static void count_window(const struct work *w, struct rows *r, int y)
{
    memset(r->inside, 0, (size_t)w->width + 2 * MARGIN);
    for (int k = -w->plan.radius; k <= w->plan.radius; k++)
        count_row(w, r, y + k, 1);
}

static void move_window(const struct work *w, struct rows *r, int to)
{
    count_row(w, r, to - 1 - w->plan.radius, -1);
    count_row(w, r, to + w->plan.radius, 1);
}

static void sum_columns(const uint8_t *restrict inside, int radius, int n, uint8_t *restrict out)
{
    memcpy(out, inside + MARGIN - radius, (size_t)n);
    for (int k = 1 - radius; k <= radius; k++)
        for (int x = 0; x < n; x++)
            out[x] = (uint8_t)(out[x] + inside[MARGIN + k + x]);
}

/* The cover of the row that the window is around; most rows of most pictures have none. */
static bool cover_row(const struct work *w, struct rows *r, uint8_t *cover)
{
    const int     radius = w->plan.radius, n = w->width;
    const uint8_t all = (uint8_t)((2 * radius + 1) * (2 * radius + 1));
    memset(r->inside + MARGIN - radius, r->inside[MARGIN], (size_t)radius);
    memset(r->inside + MARGIN + n, r->inside[MARGIN + n - 1], (size_t)radius);
    sum_columns(r->inside, radius, n, cover);
    uint8_t mixed = 0;
    for (int x = 0; x < n; x++)
        mixed |= (cover[x] != 0) & (cover[x] != all);
    if (!mixed)
        memset(cover, 0, (size_t)n);
    for (int x = 0; mixed && x < n; x++)
        cover[x] = w->outline[cover[x]];
    return mixed;
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
    const int      step = w->plane[0].step, channels = SAC_MIN(step, 3);
    for (int x = 0; x < w->width; x++)
        for (int c = 0; c < channels; c++)
            put_number(w, to, x * step + c, w->plan.sample[matte[x]][c]);
}

static void chroma_classes_to(const struct work *w, int plane, int y, uint8_t *to)
{
    const uint8_t *above = matte_row(w, y), *below = matte_row(w, y + 1);
    const bool     pairs = w->planes == 2;
    for (int i = 0; i < w->plane[plane].numbers; i++) {
        const int     x = 2 * (i / w->plane[plane].step), next = SAC_MIN(x + 1, w->width - 1);
        const uint8_t four[4] = {above[x], above[next], below[x], below[next]};
        put_number(w, to, i,
                   sac_composite_class_chroma(&w->plan, four, pairs ? 1 + (i & 1) : plane));
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

/* The frame's row, mixed, where it is to be or among the worker's rows. */
static uint8_t *mix_plane(const struct work *w, struct rows *r, int plane, int y,
                          const uint8_t *weight, const uint8_t *cover)
{
    const uint8_t *from = row_of(w->job->frame, plane, y);
    uint8_t       *row = w->same_format ? row_of(w->job->out, plane, y) : r->mixed[plane];
    if (row != from)
        memcpy(row, from, w->plane[plane].bytes);
    mix(w, r, plane, row, to_of(w, r, plane, y), weight);
    if (cover)
        mix(w, r, plane, row, w->colour[1][plane], cover);
    return row;
}

static void narrow(const struct work *w, uint8_t *row, int n)
{
    const bool full_range = w->job->frame->range == SAC_RANGE_FULL;
    for (int i = 0; i < n; i++) /* in place: a byte is never before its word */
        row[i] = sac_composite_narrow(((const uint16_t *)(const void *)row)[i], full_range);
}

/* Chroma of one or two planes to two or one. */
static void store_chroma(const struct work *w, uint8_t *const mixed[SAC_PLANES_MAX], int y)
{
    const sac_frame *out = w->job->out;
    const bool       pairs_in = w->planes == 2, pairs_out = out->format == SAC_PIXEL_NV12;
    const int        n = (w->width + 1) / 2;
    for (int c = 0; c < 2; c++) {
        const uint8_t *from = pairs_in ? mixed[1] + c : mixed[1 + c];
        uint8_t       *to = pairs_out ? row_of(out, 1, y) + c : row_of(out, 1 + c, y);
        for (int x = 0; x < n; x++)
            to[x << pairs_out] = from[x << pairs_in];
    }
}

static void write_luma(const struct work *w, struct rows *r, int y, int which)
{
    uint8_t *row =
        mix_plane(w, r, 0, y, r->weight[which], r->outlined[which] ? r->cover[which] : NULL);
    if (w->same_format)
        return;
    if (w->plan.words)
        narrow(w, row, w->width);
    memcpy(row_of(w->job->out, 0, y), row, (size_t)w->width);
}

static void write_chroma(const struct work *w, struct rows *r, int y)
{
    uint8_t *row[SAC_PLANES_MAX] = {NULL};
    uint8_t *cover = NULL;
    mean_rows(w, r->weight, r->chroma);
    if (r->outlined[0] || r->outlined[1]) {
        cover = r->chroma_cover;
        mean_rows(w, r->cover, cover);
    }
    for (int p = 1; p < w->planes; p++) {
        row[p] = mix_plane(w, r, p, y, r->chroma, cover);
        if (!w->same_format && w->plan.words)
            narrow(w, row[p], w->plane[p].numbers);
    }
    if (!w->same_format)
        store_chroma(w, row, y);
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
        move_window(w, r, y + 1);
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
    w->row_bytes = (w->row_bytes + 63) & ~(size_t)63;
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
            for (int i = 0; i < w->plane[p].numbers; i++)
                put_number(w, colours, i, sample_of(w, sample, p, i));
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
    prepare(&w, sac_buffer_data(buf));
    w.scratch = (uint8_t *)sac_buffer_data(buf) + colours;
    sac_worker_pool_run(dev->workers, (w.height + 2 * PAIRS_PER_PIECE - 1) / (2 * PAIRS_PER_PIECE),
                        run_piece, &w);
    sac_buffer_unref(&buf);
    return SAC_OK;
}
