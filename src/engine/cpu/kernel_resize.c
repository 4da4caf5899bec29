/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample, nearest and linear, channels last: a picture that lies plain is converted,
 * which costs far less than the reference row.
 *
 * ONNX has seven ways to map coordinates and four ways to round. The reference row implements them
 * all, so it is used to resize a ramp of row (or column) numbers: the result gives, for each output
 * row, the input row to read, and its fraction the weight of the next row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"

struct source {
    int64_t at, next; /* input rows (columns) */
    float   weight;   /* of next */
};

struct resize_state {
    struct sac_units lines; /* of all samples */
    struct sac_map   in, out;
    struct source   *rows, *columns;
    bool             linear, same_columns;
};

static struct sac_kernel_offer resize_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    const char               *mode = sac_attr_string(c->node, "mode", "nearest");
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || in->dtype != SAC_F32 || in->rank != 4 ||
        in->dims[0] != out->dims[0] || in->dims[1] != out->dims[1] ||
        sac_operand_elements(out) == 0)
        return sac_kernel_refuse("not a float32 picture, or no AVX2");
    const bool linear = strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0;
    if ((!linear && strcmp(mode, "nearest") != 0) || sac_attr_int(c->node, "antialias", 0) ||
        strcmp(sac_attr_string(c->node, "coordinate_transformation_mode", ""),
               "tf_crop_and_resize") == 0)
        return sac_kernel_refuse("cubic, antialias or cropping");
    for (int i = 1; i < c->in_count; i++)
        if (c->in[i].present && !c->in[i].data && sac_operand_elements(&c->in[i]) > 0)
            return sac_kernel_refuse("its size is not constant");
    offer.in_layout[0] = offer.out_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.strided = true;
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
                        struct source *to)
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

static void resize_row(const struct resize_state *s, const float *x, float *y,
                       const struct source *row)
{
    const int64_t line = s->in.w * s->in.pixel;
    const float  *upper = x + row->at * line, *lower = x + row->next * line;
    if (s->same_columns) {
        memcpy(y, upper, (size_t)line * sizeof *y);
        return;
    }
    for (int64_t i = 0; i < s->out.w; i++) {
        const struct source *c = &s->columns[i];
        const int64_t        a = c->at * s->in.pixel, b = c->next * s->in.pixel;
        if (s->linear)
            SAC_SIMD_PICK(sac_map_lerp)
        (upper + a, upper + b, lower + a, lower + b, c->weight, row->weight, y + i * s->out.pixel,
         s->in.c);
        else memcpy(y + i * s->out.pixel, upper + a, (size_t)s->in.c * sizeof *y);
    }
}

static void resize_lines(const void *state, void *const *in, void *const *out, int64_t first,
                         int64_t end)
{
    const struct resize_state *s = state;
    for (int64_t r = first; r < end; r++) {
        const int64_t n = r / s->out.h, row = r % s->out.h;
        resize_row(s, (const float *)in[0] + n * s->in.sample,
                   (float *)out[0] + n * s->out.sample + row * s->out.w * s->out.pixel,
                   &s->rows[row]);
    }
}

static sac_result resize_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct resize_state      *s = sac_new(struct resize_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->in = sac_map_in(plan, 0);
    s->out = sac_map_out(plan, 0);
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
    snprintf(plan->implementation, sizeof plan->implementation, "%s %s",
             s->linear ? sac_simd_name() : "copy", s->linear ? "linear" : "nearest");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Resize = {SAC_OP_Resize, resize_supports, resize_prepare,
                                          sac_units_run, resize_release};
const struct sac_kernel sac_cpu_Upsample = {SAC_OP_Upsample, resize_supports, resize_prepare,
                                            sac_units_run, resize_release};
