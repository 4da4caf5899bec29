/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample, nearest and linear, channels last: a picture that lies plain is converted,
 * which costs far less than the reference row. A result may also be written plain, as the last map
 * of a segmentation is: rows of the input are widened to rows of planes, and the rows of the output
 * that lie between two of these are mixed of them.
 *
 * ONNX has seven ways to map coordinates and four ways to round. The reference row implements them
 * all, so it is used to resize a ramp of row (or column) numbers: the result gives, for each output
 * row, the input row to read, and its fraction the weight of the next row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"

struct resize_state {
    struct sac_units    lines; /* of all samples */
    struct sac_map      in, out;
    struct sac_map_tap *rows, *columns;
    bool                linear, same_columns;
    int64_t             bytes; /* of a number */
    /* A plain output: */
    bool    plain;
    int     pieces;
    int64_t room; /* floats of a widened row, [channel][column] */
};

static struct sac_kernel_offer resize_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    const char               *mode = sac_attr_string(c->node, "mode", "nearest");
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_dtype_is_mapped(in->dtype) || in->rank != 4 ||
        in->dims[0] != out->dims[0] || in->dims[1] != out->dims[1] ||
        sac_operand_elements(out) == 0)
        return sac_kernel_refuse("not a picture of float32 or bytes, or no AVX2");
    const bool linear = strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0;
    if (linear && in->dtype != SAC_F32)
        return sac_kernel_refuse("between bytes");
    if ((!linear && strcmp(mode, "nearest") != 0) || sac_attr_int(c->node, "antialias", 0) ||
        strcmp(sac_attr_string(c->node, "coordinate_transformation_mode", ""),
               "tf_crop_and_resize") == 0)
        return sac_kernel_refuse("cubic, antialias or cropping");
    for (int i = 1; i < c->in_count; i++)
        if (c->in[i].present && !c->in[i].data && sac_operand_elements(&c->in[i]) > 0)
            return sac_kernel_refuse("its size is not constant");
    offer.in_layout[0] = offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.strided = true;
    /* plain where it is an output of the network, which is no slice */
    offer.writes_any = in->dtype == SAC_F32;
    return offer;
}

static void resize_release(void *state)
{
    struct resize_state *s = state;
    if (s) {
        sac_free(s->rows);
        sac_free(s->columns);
    }
    sac_free(s);
}

/* Fills the input with each pixel's row (or column) number, resizes it, and reads one column (row)
 * of the result. */
static sac_result trace(struct sac_op_call *c, bool rows, double *in, double *out,
                        struct sac_map_tap *to)
{
    const int64_t *from = c->in[0].dims, *size = c->out[0].dims;
    for (int64_t i = 0; i < sac_operand_elements(&c->in[0]); i++)
        in[i] = (double)(rows ? i / from[3] % from[2] : i % from[3]);
    sac_result    res = c->node->op->ref(c);
    const int64_t limit = rows ? from[2] : from[3];
    for (int64_t i = 0; res == SAC_OK && i < (rows ? size[2] : size[3]); i++) {
        const double at = SAC_CLAMP(out[rows ? i * size[3] : i], 0, (double)(limit - 1));
        to[i].at = (int64_t)floor(at + 1e-9);
        to[i].next = SAC_MIN(to[i].at + 1, limit - 1);
        to[i].weight = (float)SAC_MAX(at - (double)to[i].at, 0);
    }
    return res;
}

static sac_result trace_both(struct resize_state *s, const struct sac_op_call *c)
{
    struct sac_op_call *in_f64 = sac_new(struct sac_op_call); /* too large for the stack */
    double             *from = sac_alloc((size_t)sac_operand_elements(&c->in[0]) * sizeof *from);
    double             *to = sac_alloc((size_t)sac_operand_elements(&c->out[0]) * sizeof *to);
    s->rows = sac_calloc((size_t)s->out.h, sizeof *s->rows);
    s->columns = sac_calloc((size_t)s->out.w, sizeof *s->columns);
    sac_result res = in_f64 && from && to && s->rows && s->columns
                         ? SAC_OK
                         : SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    if (res == SAC_OK) {
        *in_f64 = *c;
        in_f64->in[0].dtype = in_f64->out[0].dtype = SAC_F64;
        in_f64->in[0].data = from;
        in_f64->out[0].data = to;
        res = trace(in_f64, true, from, to, s->rows);
    }
    if (res == SAC_OK)
        res = trace(in_f64, false, from, to, s->columns);
    sac_free(in_f64);
    sac_free(from);
    sac_free(to);
    return res;
}

/* Bytes go where floats would: their maps are only copied. */
static void copy_row(const struct resize_state *s, const char *x, char *y,
                     const struct sac_map_tap *row)
{
    const int64_t line = s->in.w * s->in.pixel * s->bytes;
    const char   *from = x + row->at * line;
    if (s->same_columns)
        memcpy(y, from, (size_t)line);
    for (int64_t i = 0; !s->same_columns && i < s->out.w; i++)
        memcpy(y + i * s->out.pixel * s->bytes, from + s->columns[i].at * s->in.pixel * s->bytes,
               (size_t)(s->in.c * s->bytes));
}

static void mix_row(const struct resize_state *s, const float *x, float *y,
                    const struct sac_map_tap *row)
{
    const int64_t line = s->in.w * s->in.pixel;
    const float  *upper = x + row->at * line, *lower = x + row->next * line;
    for (int64_t i = 0; i < s->out.w; i++) {
        const struct sac_map_tap *c = &s->columns[i];
        const int64_t             a = c->at * s->in.pixel, b = c->next * s->in.pixel;
        SAC_SIMD_PICK(sac_map_lerp)
        (upper + a, upper + b, lower + a, lower + b, c->weight, row->weight, y + i * s->out.pixel,
         s->in.c);
    }
}

static void resize_lines(const void *state, void *const *in, void *const *out, int64_t first,
                         int64_t end)
{
    const struct resize_state *s = state;
    for (int64_t r = first; r < end; r++) {
        const int64_t n = r / s->out.h, row = r % s->out.h;
        const int64_t from = n * s->in.sample,
                      to = n * s->out.sample + row * s->out.w * s->out.pixel;
        if (s->linear)
            mix_row(s, (const float *)in[0] + from, (float *)out[0] + to, &s->rows[row]);
        else
            copy_row(s, (const char *)in[0] + from * s->bytes, (char *)out[0] + to * s->bytes,
                     &s->rows[row]);
    }
}

/* ---- a plain output ---- */

struct plain_job {
    const struct resize_state *s;
    const float               *x;
    float                     *y, *scratch;
};

/* Two rows of the input as wide as the output. */
struct widened {
    float  *row[2];
    int64_t is[2]; /* which rows of all samples they are; -1: none */
};

static void widen(const struct resize_state *s, const float *x, float *to)
{
    for (int64_t k = 0; k < s->in.c; k++, x++, to += s->out.w) {
        if (s->linear)
            SAC_SIMD_PICK(sac_map_widen)(x, s->in.pixel, s->columns, to, s->out.w);
        for (int64_t i = 0; !s->linear && i < s->out.w; i++)
            to[i] = x[s->columns[i].at * s->in.pixel];
    }
}

/* The place of a row among the two, where it is put unless it is there; `other` stays. */
static int widened_at(const struct plain_job *j, struct widened *w, int64_t n, int64_t row,
                      int64_t other)
{
    const struct resize_state *s = j->s;
    const int64_t              wanted = n * s->in.h + row;
    for (int i = 0; i < 2; i++)
        if (w->is[i] == wanted)
            return i;
    const int i = w->is[0] == other ? 1 : 0;
    widen(s, j->x + n * s->in.sample + row * s->in.w * s->in.pixel, w->row[i]);
    w->is[i] = wanted;
    return i;
}

static void plain_piece(void *arg, int piece, int worker)
{
    const struct plain_job    *j = arg;
    const struct resize_state *s = j->s;
    const int64_t              rows = s->out.n * s->out.h, plane = s->out.h * s->out.w;
    float                     *room = j->scratch + 2 * piece * s->room;
    struct widened             w = {{room, room + s->room}, {-1, -1}};
    (void)worker;
    for (int64_t r = rows * piece / s->pieces; r < rows * (piece + 1) / s->pieces; r++) {
        const int64_t             n = r / s->out.h, row = r % s->out.h;
        const struct sac_map_tap *from = &s->rows[row];
        const int                 a = widened_at(j, &w, n, from->at, n * s->in.h + from->next),
                  b = s->linear ? widened_at(j, &w, n, from->next, w.is[a]) : a;
        float *y = j->y + n * s->out.c * plane + row * s->out.w;
        for (int64_t k = 0; k < s->out.c; k++, y += plane) {
            const float *upper = w.row[a] + k * s->out.w, *lower = w.row[b] + k * s->out.w;
            if (s->linear)
                SAC_SIMD_PICK(sac_map_between)(upper, lower, from->weight, y, s->out.w);
            else
                memcpy(y, upper, (size_t)s->out.w * sizeof *y);
        }
    }
}

static sac_result resize_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                             void *scratch, struct sac_device_stream *stream)
{
    const struct resize_state *s = state;
    struct plain_job           job = {s, in[0], out[0], scratch};
    if (!s->plain)
        return sac_units_run(dev, state, in, out, scratch, stream);
    sac_worker_pool_run(dev->workers, s->pieces, plain_piece, &job);
    return SAC_OK;
}

static void prepare_plain(struct resize_state *s, const struct sac_device *dev,
                          struct sac_kernel_plan *plan)
{
    s->plain = true;
    s->pieces = sac_pieces(dev, s->out.n * s->out.h, sac_operand_elements(&plan->call->out[0]) / 4);
    s->room = (s->out.c * s->out.w + 15) / 16 * 16; /* whole cache lines */
    plan->scratch_bytes = (size_t)(2 * s->pieces * s->room) * sizeof(float);
}

static sac_result resize_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct resize_state      *s = sac_new(struct resize_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->in = sac_map_in(plan, 0);
    s->out = sac_map_out(plan, 0);
    s->bytes = (int64_t)sac_dtype_bytes(c->in[0].dtype);
    sac_result res = trace_both(s, c);
    if (res != SAC_OK) {
        resize_release(s);
        return res;
    }
    for (int64_t i = 0; i < s->out.h; i++)
        s->linear |= s->rows[i].weight != 0;
    s->same_columns = s->in.w == s->out.w && s->in.pixel == s->in.c && s->out.pixel == s->out.c;
    for (int64_t i = 0; i < s->out.w; i++) {
        s->linear |= s->columns[i].weight != 0;
        s->same_columns &= s->columns[i].at == i;
    }
    s->same_columns &= !s->linear;
    sac_units_init(&s->lines, dev, s->out.n * s->out.h, sac_operand_elements(&c->out[0]) / 8,
                   resize_lines);
    if (!sac_layout_is_last(plan->out_layout[0]))
        prepare_plain(s, dev, plan);
    snprintf(plan->implementation, sizeof plan->implementation, "%s %s",
             s->linear ? sac_simd_name() : "copy", s->linear ? "linear" : "nearest");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Resize = {SAC_OP_Resize, resize_supports, resize_prepare,
                                          resize_run, resize_release};
const struct sac_kernel sac_cpu_Upsample = {SAC_OP_Upsample, resize_supports, resize_prepare,
                                            resize_run, resize_release};
