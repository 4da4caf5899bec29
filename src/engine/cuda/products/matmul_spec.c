/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/matmul_spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

size_t matmul_element(const struct matmul_spec *s)
{
    return s->precision == SAC_PRECISION_FP16 ? 2 : 4;
}

static bool refuse(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return false;
}

/* ---- batches ---- */

/* The batch dimensions of an operand, lined up with the result's: how many numbers one index is, 0:
 * broadcast. */
static void batch_steps(const struct sac_operand *o, const struct sac_operand *y, int64_t matrix,
                        int64_t *steps)
{
    const int rank = y->rank - 2, own = SAC_MAX(o->rank - 2, 0);
    int64_t   step = matrix;
    for (int d = rank - 1; d >= 0; d--) {
        const int     at = d - (rank - own);
        const int64_t size = at >= 0 ? o->dims[at] : 1;
        steps[d] = size > 1 ? step : 0;
        step *= size;
    }
}

/* Batches that share their second matrix, as heads of queries share keys, and whose first ones
 * follow each other, are rows of one product: cuBLASLt's one stride a matrix would not describe
 * them together with those around them. y has ones for them then. */
static void join_rows(struct matmul_spec *s, struct sac_operand *y, const int64_t *a,
                      const int64_t *b)
{
    for (int d = y->rank - 3; d >= 0; d--) {
        if (y->dims[d] == 1)
            continue;
        if (b[d] != 0 || a[d] != s->m * s->k)
            return;
        s->m *= y->dims[d];
        y->dims[d] = 1;
    }
}

/* From the innermost dimension on, as many as one stride per operand describes; the rest are
 * separate calls. */
static bool split_batch(struct matmul_spec *s, const struct sac_operand *y, const int64_t *a,
                        const int64_t *b)
{
    int d = y->rank - 3;
    s->batch = 1;
    s->turns = 1;
    for (; d >= 0; d--) {
        if (y->dims[d] == 1)
            continue;
        if (s->batch > 1 && (a[d] != s->a_step * s->batch || b[d] != s->b_step * s->batch))
            break;
        if (s->batch == 1) {
            s->a_step = a[d];
            s->b_step = b[d];
        }
        s->batch *= y->dims[d];
    }
    for (; d >= 0; d--) {
        const int before = s->turns;
        if (y->dims[d] > MATMUL_TURNS_MAX / before)
            return false;
        s->turns = before * (int)y->dims[d];
        for (int t = s->turns - 1; t >= 0; t--) {
            s->a_at[t] = s->a_at[t % before] + t / before * a[d];
            s->b_at[t] = s->b_at[t % before] + t / before * b[d];
        }
    }
    return true;
}

/* ---- reading a node ---- */

/* [k] is a row on the left of a matrix and a column on the right; the result's memory is the same
 * without those ones. */
static struct sac_operand as_matrix(const struct sac_operand *o, bool left)
{
    struct sac_operand m = *o;
    if (o->rank == 1) {
        m.rank = 2;
        m.dims[0] = left ? 1 : o->dims[0];
        m.dims[1] = left ? o->dims[0] : 1;
    }
    return m;
}

static struct sac_operand as_result(const struct sac_op_call *c)
{
    struct sac_operand y = c->out[0];
    if (c->in[0].rank == 1) { /* a one before the last, or last when there is none behind it */
        const int at = c->in[1].rank == 1 ? y.rank : y.rank - 1;
        memmove(y.dims + at + 1, y.dims + at, (size_t)(y.rank - at) * sizeof *y.dims);
        y.dims[at] = 1;
        y.rank++;
    }
    if (c->in[1].rank == 1)
        y.dims[y.rank++] = 1;
    return y;
}

static bool read_matmul(const struct sac_op_call *c, struct matmul_spec *s)
{
    const struct sac_operand a = as_matrix(&c->in[0], true), b = as_matrix(&c->in[1], false);
    struct sac_operand       y = as_result(c);
    int64_t                  steps[2][SAC_RANK_MAX] = {{0}};
    if (y.rank > SAC_RANK_MAX)
        return false;
    s->m = a.dims[a.rank - 2];
    s->k = a.dims[a.rank - 1];
    s->n = b.dims[b.rank - 1];
    s->alpha = 1;
    if (b.rank == 2) { /* all rows of all batches are rows of one product */
        s->m = sac_operand_elements(&a) / s->k;
        s->batch = s->turns = 1;
        return true;
    }
    batch_steps(&a, &y, s->m * s->k, steps[0]);
    batch_steps(&b, &y, s->k * s->n, steps[1]);
    join_rows(s, &y, steps[0], steps[1]);
    return split_batch(s, &y, steps[0], steps[1]);
}

/* A third input of one number a column, or a whole matrix. */
static bool read_addend(const struct sac_op_call *c, struct matmul_spec *s, float beta)
{
    const struct sac_operand *o = &c->in[2];
    const int64_t             last = o->rank > 0 ? o->dims[o->rank - 1] : 1;
    const int64_t             count = sac_operand_elements(o);
    if (beta == 0)
        return true;
    if (o->rank == 2 && o->dims[0] == s->m && last == s->n && s->m > 1) {
        s->matrix = true;
        s->beta = beta;
        return true;
    }
    s->bias = true;
    s->bias_scale = beta;
    return last == s->n && count == s->n && (o->data || beta == 1);
}

static bool read_gemm(const struct sac_op_call *c, struct matmul_spec *s)
{
    const int64_t *a = c->in[0].dims, *b = c->in[1].dims;
    s->a_transposed = sac_attr_int(c->node, "transA", 0) != 0;
    s->b_transposed = sac_attr_int(c->node, "transB", 0) != 0;
    s->m = a[s->a_transposed ? 1 : 0];
    s->k = a[s->a_transposed ? 0 : 1];
    s->n = b[s->b_transposed ? 0 : 1];
    s->alpha = sac_attr_float(c->node, "alpha", 1);
    s->batch = s->turns = 1;
    return !sac_op_has(c, 2) || read_addend(c, s, sac_attr_float(c->node, "beta", 1));
}

/* A residual without an activation before it is C, wherever the node adds it. */
static bool read_fused(const struct sac_op_call *c, struct matmul_spec *s)
{
    const int64_t residual = sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE);
    if (!read_matmul(c, s))
        return false;
    s->fused = true;
    s->act = sac_activation_read(c->node);
    s->bias = sac_op_has(c, 2);
    s->bias_scale = 1;
    s->ending = sac_op_has(c, SAC_ENDING);
    s->residual_in_pass =
        residual == SAC_RESIDUAL_AFTER && (s->act.kind != SAC_ACT_NONE || s->ending);
    s->matrix = residual != SAC_RESIDUAL_NONE && !s->residual_in_pass;
    s->beta = s->matrix ? 1 : 0;
    s->c_port = 3;
    return true;
}

bool matmul_ends_with_bias(const struct matmul_spec *s)
{
    return s->bias && !s->bare;
}

/* It has a GELU too, the one by tanh, which makes NaN of numbers far below 0. */
enum sac_activation_kind matmul_ends_with(const struct matmul_spec *s)
{
    return s->act.kind == SAC_ACT_RELU && !s->bare ? SAC_ACT_RELU : SAC_ACT_NONE;
}

bool matmul_needs_pass(const struct matmul_spec *s)
{
    return s->act.kind != matmul_ends_with(s) || s->bias != matmul_ends_with_bias(s) ||
           s->residual_in_pass || s->ending;
}

static bool read_node(const struct sac_op_call *c, struct matmul_spec *s)
{
    switch (c->node->op->id) {
    case SAC_OP_Gemm: return read_gemm(c, s);
    case SAC_OP_FusedMatMul: return read_fused(c, s);
    default: return read_matmul(c, s);
    }
}

static int align_of(int align)
{
    return align > 0 ? SAC_MIN(align, 256) : 16;
}

bool matmul_spec_read(const struct sac_kernel_plan *plan, struct matmul_spec *out, char *why,
                      size_t why_size)
{
    const struct sac_op_call *c = plan->call;
    struct matmul_spec        s = {.precision = plan->precision, .c_port = 2};
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].present && c->in[i].dtype != SAC_F32)
            return refuse(why, why_size, "not float32");
    if (sac_operand_elements(&c->in[0]) == 0 || sac_operand_elements(&c->in[1]) == 0)
        return refuse(why, why_size, "empty");
    if (!read_node(c, &s))
        return refuse(why, why_size, "it broadcasts in a way that cuBLASLt does not");
    if (s.ending && (!c->in[SAC_ENDING].data || !plan->weights))
        return refuse(why, why_size, "its ending is not constant");
    if (s.m > INT32_MAX || s.n > INT32_MAX || s.k > INT32_MAX || s.batch > INT32_MAX)
        return refuse(why, why_size, "a matrix of more than 2^31 rows or columns");
    s.y_step = s.m * s.n;
    s.a_align = align_of(plan->in_align[0]);
    s.b_align = align_of(plan->in_align[1]);
    s.c_align = align_of(plan->in_align[s.c_port]);
    s.y_align = align_of(plan->out_align[0]);
    *out = s;
    return true;
}

size_t matmul_spec_text(const struct matmul_spec *s, char *out, size_t size)
{
    const int at =
        snprintf(out, size,
                 "matmul p%d %" PRId64 "x%" PRId64 "x%" PRId64 " t%d%d batch %" PRId64 "/%" PRId64
                 "/%" PRId64 " bias %d act %d matrix %d align %d,%d,%d,%d",
                 (int)s->precision, s->m, s->n, s->k, s->a_transposed, s->b_transposed, s->batch,
                 s->a_step, s->b_step, matmul_ends_with_bias(s), (int)matmul_ends_with(s),
                 s->matrix, s->a_align, s->b_align, s->c_align, s->y_align);
    return at > 0 && (size_t)at < size ? (size_t)at : 0;
}

/* ---- choices ---- */

static uint32_t check_sum(const unsigned char *bytes)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (int i = 0; i < MATMUL_CHOICE_BYTES; i++)
        h = (h ^ bytes[i]) * 16777619u;
    return h;
}

void matmul_choice_print(const unsigned char bytes[MATMUL_CHOICE_BYTES], char *out, size_t size)
{
    int at = snprintf(out, size, "lt %08" PRIx32 " ", check_sum(bytes));
    for (int i = 0; i < MATMUL_CHOICE_BYTES && (size_t)at + 2 < size; i++)
        at += snprintf(out + at, size - (size_t)at, "%02x", bytes[i]);
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *text, int bytes, unsigned char *out)
{
    for (int i = 0; i < bytes; i++) {
        const int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);
        if (low < 0)
            return false;
        out[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

bool matmul_choice_parse(const char *text, unsigned char bytes[MATMUL_CHOICE_BYTES])
{
    unsigned char sum[4], found[MATMUL_CHOICE_BYTES];
    if (!text || strncmp(text, "lt ", 3) != 0 || !read_hex(text + 3, 4, sum) || text[11] != ' ' ||
        !read_hex(text + 12, MATMUL_CHOICE_BYTES, found) || text[12 + 2 * MATMUL_CHOICE_BYTES])
        return false;
    const uint32_t said =
        (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 | sum[3];
    if (said != check_sum(found))
        return false;
    memcpy(bytes, found, MATMUL_CHOICE_BYTES);
    return true;
}
