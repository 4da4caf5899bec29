/* SPDX-License-Identifier: Apache-2.0 */
/* From a segmenting network's output to a matte: for each pixel of the frame how much of it belongs
 * to what was asked for (people), or which class it is.
 *
 *   cells     the network's map, some hundred cells wide: its numbers become shares from 0 to 1
 *             (sigmoid, softmax over the classes, or as they are)
 *   smoothing each cell looks for itself in the frame before and keeps a part of what it was there
 *   holes     gaps inside a body are closed
 *   pixels    the shares follow the frame's luma, so that edges of the matte lie on those of the
 *             picture, and are stretched between two limits (the feather)
 *
 * All devices compute by what is here, to the last bit: shares and luma are integers, sums over
 * windows too. */
#ifndef SAC_VISION_MATTE_H
#define SAC_VISION_MATTE_H

#include "vision/detect.h"
#include "vision/fit.h"

/* What the numbers of a cell are. */
enum sac_matte_form {
    SAC_MATTE_SHARE,        /* one, 0 to 1 */
    SAC_MATTE_LOGIT,        /* one, which a sigmoid makes a share */
    SAC_MATTE_CLASS_LOGITS, /* one a class, of which a softmax makes shares */
    SAC_MATTE_CLASS_SHARES, /* one a class, 0 to 1 */
    SAC_MATTE_LABEL         /* the number of its class */
};

/* One network's output. */
struct sac_matte_spec {
    enum sac_matte_form form;
    int                 width, height; /* cells; cell x, y is row y's number x. They cover the
                                          network's whole input evenly */
    int                     input_width, input_height; /* of the network */
    int                     classes;                   /* 1 for one number */
    struct sac_detect_field value; /* number k: of class k; label, share or logit: number 0 */
    uint32_t wanted[SAC_DETECT_CLASSES_MAX / 32]; /* classes whose shares are the matte; one number:
                                                     not looked at */
};

/* What is made of the cells. */
struct sac_matte_style {
    bool classes;      /* out holds the number of each pixel's likeliest class, no matte; nothing
                          below is looked at */
    int   guide;       /* cells: half the window in which the matte follows luma; 0: it does not */
    float guide_noise; /* luma, 1..255: differences below it are no edge */
    float smooth;      /* 0..0.95: the part of the former matte that stays in a cell that was found
                          again and that the network is least sure of; 0: none */
    int   hole;        /* cells: gaps up to this wide are closed; 0: none */
    float low, high;   /* shares, low < high: what is below low becomes 0, above high 1 */
};

/* The memory of one stream's mattes (each eye has its own), zeroed before the first. */
struct sac_matte_state {
    uint8_t *memory;     /* of the device, [sac_matte_bytes], from a multiple of four on */
    bool     has_before; /* the frame before was of this size, with this crop and spec */
    unsigned turn;       /* set by who runs the op: the planes change places with each frame */
};

/* What an image came to, for whoever decides about the next ones: of the network's shares, before
 * they are smoothed; of former ones, as they were moved. */
struct sac_matte_summary {
    int32_t x0, y0, x1, y1; /* cells of the grid around all whose share is a half at least, x1 and
                               y1 past the last; all 0: there is none */
    int32_t cells;          /* of the grid */
    int32_t unused;
    int64_t unsure; /* the sum over the cells of what is missing to 0 or 1, in SAC_MATTE_ONE-ths */
};

/* One image of a batch. */
struct sac_matte_job {
    const sac_frame *frame; /* what was seen */
    struct sac_rect  crop;  /* the part of it; empty: all */
    int              image; /* of the tensors; -1: the network did not see the frame, its shares
                               are those of the frame before, moved along, whatever style.smooth
                               is. That needs state.has_before, and no style.classes */
    /* Memory of the device that receives it; NULL: not asked. Not with style.classes. No pixel in
     * the crop: all 0. */
    struct sac_matte_summary *summary;
    struct sac_fit_map        map;   /* from the frame's pixels to the network's input */
    struct sac_matte_state    state; /* memory may not be NULL unless style.classes */
    sac_frame *out; /* SAC_PIXEL_GRAY8, as large as the frame, writable; only the pixels of
                       the crop are written */
};

/* The checked entry. Mattes are written on the stream; memory of the states is the caller's to keep
 * until that is done, as are the tensors.
 * Errors   SAC_ERR_UNSUPPORTED where the device makes no mattes, or of a map or numbers that it
 *          does not take; SAC_ERR_ARG; SAC_ERR_MEMORY, SAC_ERR_LIMIT. */
sac_result sac_matte_run_on(struct sac_device *dev, struct sac_device_stream *stream,
                            const struct sac_matte_spec *spec, const struct sac_matte_style *style,
                            const void *const *tensors, const struct sac_matte_job *jobs, int n);

enum {
    SAC_MATTE_BITS = 12,
    SAC_MATTE_ONE = 1 << SAC_MATTE_BITS, /* the share 1 */
    SAC_MATTE_SIZE_MAX = 4096,           /* cells of a map, each way */
    SAC_MATTE_GUIDE_MAX = 8,
    SAC_MATTE_HOLE_MAX = 8,
    SAC_MATTE_TENSORS_MAX = SAC_DETECT_TENSORS_MAX,
    SAC_MATTE_SAMPLES = 16 /* pixels of a cell that are looked at, each way: a sum is 16 bits */
};

/* ---- where cells lie ---- */

/* One direction: pixels of the frame that are written, the cells that show them (the grid), and the
 * way between. Borders that only fill the network's input are no part of the grid. */
struct sac_matte_axis {
    int    from, until;  /* pixels; none where from == until */
    int    first, cells; /* of the map: the grid; 1 at least */
    double origin, step; /* pixel p covers cells origin + p * step on, counted from the grid's first
                          */
};

/* low..high: the crop, whose pixels are those with their centre in it; size: of the frame; scale,
 * offset: of the map to the network's input. */
SAC_ANYWHERE struct sac_matte_axis sac_matte_axis_of(float low, float high, int size, float scale,
                                                     float offset, int input, int cells)
{
    struct sac_matte_axis a;
    const double          per = (double)cells / input;
    double                origin = offset * per, step = scale * per;
    const int             until = sac_axis_clamp(ceil((double)high - 0.5), size + 1);
    a.from = sac_axis_clamp(ceil((double)low - 0.5), size + 1);
    a.until = until > a.from ? until : a.from;
    a.first = sac_axis_clamp(floor(origin + a.from * step + 1e-4), cells);
    const int last = sac_axis_clamp(ceil(origin + a.until * step - 1e-4) - 1, cells);
    a.cells = last > a.first ? last - a.first + 1 : 1;
    a.origin = origin - a.first;
    a.step = step;
    return a;
}

/* The two cells of the grid that a pixel lies between. */
SAC_ANYWHERE struct sac_tap sac_matte_tap(const struct sac_matte_axis *a, int pixel)
{
    struct sac_axis_spec s;
    s.n = a->until;
    s.size = a->cells;
    s.origin = a->origin;
    s.step = a->step;
    s.area = false;
    return sac_axis_tap(&s, pixel, SAC_MATTE_ONE);
}

/* The cell of the grid that a pixel lies in. */
SAC_ANYWHERE int sac_matte_cell(const struct sac_matte_axis *a, int pixel)
{
    return sac_axis_clamp(floor(a->origin + (pixel + 0.5) * a->step), a->cells);
}

/* The pixels in a cell of the grid; of a cell finer than they are, the one that it lies in. */
struct sac_matte_span {
    int first, length;
};

SAC_ANYWHERE int sac_matte_edge(const struct sac_matte_axis *a, int cell)
{
    const double at = ceil((cell - a->origin) / a->step - 0.5);
    return at > a->from ? (at < a->until ? (int)at : a->until) : a->from;
}

/* first, end: its edges. */
SAC_ANYWHERE struct sac_matte_span sac_matte_span_between(const struct sac_matte_axis *a, int cell,
                                                          int first, int end)
{
    struct sac_matte_span s;
    s.first = first;
    s.length = end - first;
    if (s.length > 0)
        return s;
    const double at = floor((cell + 0.5 - a->origin) / a->step);
    s.first = at > a->from ? (at < a->until - 1 ? (int)at : a->until - 1) : a->from;
    s.length = 1;
    return s;
}

SAC_ANYWHERE struct sac_matte_span sac_matte_span_of(const struct sac_matte_axis *a, int cell)
{
    return sac_matte_span_between(a, cell, sac_matte_edge(a, cell), sac_matte_edge(a, cell + 1));
}

/* Of its pixels so many are looked at, evenly spread. */
SAC_ANYWHERE int sac_matte_samples(const struct sac_matte_span *s)
{
    return s->length < SAC_MATTE_SAMPLES ? s->length : SAC_MATTE_SAMPLES;
}

SAC_ANYWHERE int sac_matte_sample(const struct sac_matte_span *s, int i)
{
    return s->first +
           (s->length <= SAC_MATTE_SAMPLES ? i : (int)((int64_t)i * s->length / SAC_MATTE_SAMPLES));
}

/* The two directions of a job. */
static inline void sac_matte_axes_of(const struct sac_matte_spec *s,
                                     const struct sac_matte_job *job, struct sac_matte_axis *x,
                                     struct sac_matte_axis *y)
{
    const struct sac_preprocess_job seen = {job->frame, job->crop};
    const struct sac_rect           crop = sac_job_crop(&seen);
    *x = sac_matte_axis_of(crop.x0, crop.x1, job->frame->width, job->map.scale_x, job->map.offset_x,
                           s->input_width, s->width);
    *y = sac_matte_axis_of(crop.y0, crop.y1, job->frame->height, job->map.scale_y,
                           job->map.offset_y, s->input_height, s->height);
}

/* The pixels that cells first..end of the grid touch. */
static inline void sac_matte_reach(const struct sac_matte_axis *a, int first, int end, float *low,
                                   float *high)
{
    const double from = floor((first - a->origin) / a->step + 1e-4),
                 to = ceil((end - a->origin) / a->step - 1e-4);
    *low = (float)(from > a->from ? from : a->from);
    *high = (float)(to < a->until ? to : a->until);
}

/* What a summary of the job found, in pixels of the frame; empty: nothing. */
static inline struct sac_rect sac_matte_summary_rect(const struct sac_matte_spec    *s,
                                                     const struct sac_matte_job     *job,
                                                     const struct sac_matte_summary *summary)
{
    struct sac_rect       r = {0, 0, 0, 0};
    struct sac_matte_axis x, y;
    if (summary->x0 >= summary->x1 || summary->y0 >= summary->y1)
        return r;
    sac_matte_axes_of(s, job, &x, &y);
    sac_matte_reach(&x, summary->x0, summary->x1, &r.x0, &r.x1);
    sac_matte_reach(&y, summary->y0, summary->y1, &r.y0, &r.y1);
    return r;
}

/* ---- luma ---- */

/* Brightness of a pixel, 0..255: the one place where pixels are read. */
SAC_ANYWHERE int sac_matte_luma(const struct sac_surface *s, struct sac_reading r, int x, int y)
{
    const uint8_t *row = sac_row_of(s, r.turned, 0, x, y);
    const int      at = r.turned ? 0 : x, step = sac_rgb_step(r.format);
    if (r.format == SAC_PIXEL_P010) /* little endian: the high byte comes second */
        return row[2 * at + 1];
    if (!step)
        return row[at];
    const int first = sac_is_bgr(r.format) ? 29 : 77; /* BT.601 weights in 256ths */
    return (first * row[step * at] + 150 * row[step * at + 1] +
            (106 - first) * row[step * at + 2]) >>
           8;
}

SAC_ANYWHERE float sac_matte_inverse(int n)
{
    return 1.0f / (float)n;
}

/* The mean of a cell; inverse: 1 / the number of its pixels. */
SAC_ANYWHERE uint8_t sac_matte_mean(int32_t sum, float inverse)
{
    return (uint8_t)(int)((float)sum * inverse + 0.5f);
}

/* ---- memory ---- */

/* Around luma lies a margin of the nearest cells, so that blocks may be looked for past the
 * edges. */
enum { SAC_MATTE_MARGIN = 24 };

struct sac_matte_planes {
    int16_t *share[2];                /* [height,width] of the map, the grid in its corner */
    uint8_t *luma[2];                 /* cell 0, 0 */
    int      share_pitch, luma_pitch; /* elements */
};

/* Rows begin at multiples of four, to be read by words. */
SAC_ANYWHERE int sac_matte_luma_pitch(int width)
{
    return (width + 2 * SAC_MATTE_MARGIN + 3) & ~3;
}

SAC_ANYWHERE size_t sac_matte_luma_cells(int width, int height)
{
    return (size_t)sac_matte_luma_pitch(width) * ((size_t)height + 2 * SAC_MATTE_MARGIN);
}

/* Of one stream's state. Eights that begin in the last row are read past its end. */
SAC_ANYWHERE size_t sac_matte_bytes(const struct sac_matte_spec *s)
{
    return 2 * ((size_t)s->width * (size_t)s->height * sizeof(int16_t) +
                sac_matte_luma_cells(s->width, s->height)) +
           8;
}

SAC_ANYWHERE struct sac_matte_planes sac_matte_planes_of(const struct sac_matte_spec *s,
                                                         uint8_t                     *memory)
{
    struct sac_matte_planes p;
    const size_t            cells = (size_t)s->width * (size_t)s->height;
    p.share_pitch = s->width;
    p.luma_pitch = sac_matte_luma_pitch(s->width);
    for (int i = 0; i < 2; i++) {
        p.share[i] = (int16_t *)(void *)memory + (size_t)i * cells;
        p.luma[i] = memory + 2 * cells * sizeof(int16_t) +
                    (size_t)i * sac_matte_luma_cells(s->width, s->height) +
                    (size_t)SAC_MATTE_MARGIN * (size_t)p.luma_pitch + SAC_MATTE_MARGIN;
    }
    return p;
}

/* ---- shares ---- */

/* What is no number is no share. */
SAC_ANYWHERE int16_t sac_matte_share(float v)
{
    v = v > 0.0f ? v : 0.0f;
    v = v < 1.0f ? v : 1.0f;
    return (int16_t)(int)(v * (float)SAC_MATTE_ONE + 0.5f);
}

/* The number of a class, as a byte of a map of classes. */
SAC_ANYWHERE uint8_t sac_matte_class(float label)
{
    return sac_byte_of(label > 0.0f ? label : 0.0f);
}

SAC_ANYWHERE bool sac_matte_wanted(const struct sac_matte_spec *s, int k)
{
    return k >= 0 && k < SAC_DETECT_CLASSES_MAX && (s->wanted[k / 32] >> k % 32 & 1);
}

SAC_ANYWHERE int16_t sac_matte_share_of_label(const struct sac_matte_spec *s, float label)
{
    const bool in = label >= 0.0f && label < (float)SAC_DETECT_CLASSES_MAX;
    return in && sac_matte_wanted(s, (int)(label + 0.5f)) ? SAC_MATTE_ONE : 0;
}

/* Part of a sum of shares; all parts 0: none of it. */
SAC_ANYWHERE float sac_matte_part(float wanted, float total)
{
    return total > 0.0f ? wanted / total : 0.0f;
}

/* ---- motion ---- */

/* Blocks of 8 x 8 cells are looked for in the former luma: first within 12 cells on planes of half
 * the size, then finely about what was found. Blocks that stay where they were are not looked for.
 */
enum {
    SAC_MATTE_BLOCK = 8,
    SAC_MATTE_REACH = 6, /* cells of half size */
    SAC_MATTE_FINE = 2,
    SAC_MATTE_STILL = 2 * SAC_MATTE_BLOCK * SAC_MATTE_BLOCK, /* sum of differences: that of noise */
    SAC_MATTE_STEP_COST = 8, /* of a cell of distance: of places that look the same the nearest
                                is taken */
    SAC_MATTE_FOUND = 6 * 9, /* sum of differences over 3 x 3 cells: found again */
    SAC_MATTE_LOST = 16 * 9, /* not found */
    SAC_MATTE_MOVE_COST = 9, /* of a neighbouring block's place over staying */
    SAC_MATTE_SURE = 22      /* the network is sure within a 22nd of 0 and of 1 */
};

/* From a cell to where it was. */
struct sac_matte_move {
    int16_t x, y;
};

SAC_ANYWHERE int sac_matte_half(int cells)
{
    return (cells + 1) / 2;
}

/* A cell of a plane of half size; luma: the four from its first on. */
SAC_ANYWHERE uint8_t sac_matte_halve(const uint8_t *above, const uint8_t *below)
{
    return (uint8_t)((above[0] + above[1] + below[0] + below[1] + 2) >> 2);
}

/* The order of candidates: by cost, then by number, so that the search may run in any order. */
SAC_ANYWHERE uint32_t sac_matte_candidate(int difference, int x, int y, int number)
{
    const int far = (x < 0 ? -x : x) + (y < 0 ? -y : y);
    return (uint32_t)(difference + SAC_MATTE_STEP_COST * far) << 12 | (uint32_t)number;
}

/* What is missing to 0 or 1. */
SAC_ANYWHERE int sac_matte_unsure(int16_t share)
{
    return share < SAC_MATTE_ONE - share ? share : SAC_MATTE_ONE - share;
}

/* Inside what a summary goes around. */
SAC_ANYWHERE bool sac_matte_inside(int16_t share)
{
    return share >= SAC_MATTE_ONE / 2;
}

/* The style's smoothing, of SAC_MATTE_ONE. */
SAC_ANYWHERE int sac_matte_smoothing(const struct sac_matte_style *s)
{
    return (int)(s->smooth * (float)SAC_MATTE_ONE + 0.5f);
}

/* How much of its former share stays in a cell. residual: sum of the differences of its 3 x 3 cells
 * to where it was; smooth: of SAC_MATTE_ONE. Less where the network is sure, nothing at 0 and 1:
 * what keeps more there is steadier, and lags behind who moves. */
SAC_ANYWHERE int sac_matte_kept(int16_t share, int residual, int smooth)
{
    const int ramp = SAC_MATTE_LOST - SAC_MATTE_FOUND;
    int       unsure = SAC_MATTE_SURE * sac_matte_unsure(share), found = SAC_MATTE_LOST - residual;
    unsure = unsure < SAC_MATTE_ONE ? unsure : SAC_MATTE_ONE;
    found = found < 0 ? 0 : found > ramp ? ramp : found;
    return (smooth * unsure >> SAC_MATTE_BITS) * found / ramp;
}

/* kept: of sac_matte_kept; 0: was does not matter. */
SAC_ANYWHERE int16_t sac_matte_blend(int16_t share, int16_t was, int kept)
{
    return (int16_t)(share + (((was - share) * kept + SAC_MATTE_ONE / 2) >> SAC_MATTE_BITS));
}

SAC_ANYWHERE int16_t sac_matte_smooth(int16_t share, int16_t was, int residual, int smooth)
{
    return sac_matte_blend(share, was, sac_matte_kept(share, residual, smooth));
}

/* ---- holes ---- */

/* Cells from a cell's own on, before and after it, whose greatest share it takes; the other way
 * round for the smallest of these. */
SAC_ANYWHERE int sac_matte_hole_before(int hole)
{
    return hole / 2;
}

SAC_ANYWHERE int sac_matte_hole_after(int hole)
{
    return hole - hole / 2;
}

/* ---- edges ----
 * Source   K. He, J. Sun, X. Tang, "Guided Image Filtering", 2013; K. He, J. Sun, "Fast Guided
 *          Filter", 2015. */

/* Cells from x - radius to x + radius that lie inside a row or column of so many. */
SAC_ANYWHERE int sac_matte_window(int x, int cells, int radius)
{
    const int first = x > radius ? x - radius : 0;
    return (x + radius < cells ? x + radius : cells - 1) - first + 1;
}

/* What sac_matte_line takes for differences of luma that are no edge. */
SAC_ANYWHERE double sac_matte_variance(const struct sac_matte_style *s)
{
    return (double)s->guide_noise * (double)s->guide_noise;
}

SAC_ANYWHERE double sac_matte_noise(double variance, double n)
{
    return variance * n * n;
}

/* Sums over a window of n cells. */
struct sac_matte_sums {
    int32_t luma, share, luma2, both;
};

/* The share as a line of luma: (a * luma + b), a in 2^-8, b in 2^-4 of a share's unit. noise: of
 * sac_matte_noise. All products but it are whole numbers below 2^53. */
SAC_ANYWHERE void sac_matte_line(const struct sac_matte_sums *s, double n, double noise, int32_t *a,
                                 int32_t *b)
{
    const double cov = n * s->both - (double)s->luma * s->share;
    const double var = n * s->luma2 - (double)s->luma * s->luma;
    const double slope = floor(256.0 * cov / (var + noise) + 0.5);
    *a = (int32_t)slope;
    *b = (int32_t)floor((16.0 * s->share - slope * 0.0625 * s->luma) / n + 0.5);
}

/* What lies between the style's two limits, in units of a share, as 0 to 255; the half that rounds
 * is in it. */
struct sac_matte_stretch {
    float scale, offset;
};

SAC_ANYWHERE struct sac_matte_stretch sac_matte_stretch_of(const struct sac_matte_style *s)
{
    struct sac_matte_stretch t;
    t.scale = 255.0f / ((s->high - s->low) * (float)SAC_MATTE_ONE);
    t.offset = 0.5f - s->low * (float)SAC_MATTE_ONE * t.scale;
    return t;
}

/* The mean line of a window, stretched; inverse: 1 / n. */
SAC_ANYWHERE float sac_matte_slope(int32_t sum, float inverse, struct sac_matte_stretch t)
{
    return (float)sum * (inverse * (1.0f / 256.0f) * t.scale);
}

SAC_ANYWHERE float sac_matte_base(int32_t sum, float inverse, struct sac_matte_stretch t)
{
    return (float)sum * (inverse * (1.0f / 16.0f) * t.scale) + t.offset;
}

/* Without a guide a line is level. */
SAC_ANYWHERE float sac_matte_level(int16_t share, struct sac_matte_stretch t)
{
    return (float)share * t.scale + t.offset;
}

/* Between two numbers; part: of a tap, as a float from 0 to 1. Rounded once on every device: one
 * operation, or where a processor has none the C library's, which is slow. */
SAC_ANYWHERE float sac_matte_between(float a, float b, float part)
{
    return fmaf(b - a, part, a);
}

SAC_ANYWHERE float sac_matte_part_of(int32_t second)
{
    return (float)second * (1.0f / (float)SAC_MATTE_ONE);
}

/* A stretched line's number is rounded already: what is no number is 0. */
SAC_ANYWHERE uint8_t sac_matte_pixel(float slope, float base, int luma)
{
    float v = fmaf(slope, (float)luma, base);
    v = v > 0.0f ? v : 0.0f;
    v = v < 255.5f ? v : 255.5f;
    return (uint8_t)(int)v;
}

#endif
