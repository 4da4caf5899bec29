/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul, Gemm and FusedMatMul: pointwise convolutions over the rows of the first matrix, whose
 * weights are the second one. A constant one is packed once; a computed one, as in attention, in
 * each run. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/conv.h"
#include "engine/ops/util.h"

enum {
    FLOPS_PER_NS = 50, /* for cutting work into pieces only */
    BYTES_PER_NS = 4
};

/* How the second matrix lies, and what is added. */
struct product {
    int64_t                   rows, depth, columns; /* of one product */
    int64_t                   count, second;        /* products; different second matrices */
    int64_t                   b_row, b_column; /* elements from one row and column to the next */
    const struct sac_operand *bias;            /* constant, one number a column; NULL: none */
};

struct product_state {
    struct sac_conv conv; /* of one product, all columns; bias is freed with the state */
    struct product  p;
    int64_t         lines, chunks; /* units of one product: lines of rows, times chunks of panels */
    bool            by_channels;   /* units of one chunk follow each other, not those of a line */
    int64_t         panels, panel; /* of a packed matrix; floats of one */
    int64_t        *at;            /* [count][2]: which first and which second matrix */
    float          *constant;      /* the second matrices, packed; NULL: they are computed */
    int             pack_pieces, run_pieces;
};

struct product_job {
    const struct product_state *s;
    const float                *a, *b, *residual; /* the last: as y lies, or NULL */
    float                      *y, *packed;
};

static bool is_fused(const struct sac_node *n)
{
    return n->op->id == SAC_OP_FusedMatMul;
}

static bool read_gemm(const struct sac_op_call *c, struct product *p)
{
    const struct sac_node    *n = c->node;
    const struct sac_operand *bias = &c->in[2];
    const bool                turned = sac_attr_int(n, "transB", 0) != 0;
    if (sac_attr_int(n, "transA", 0) || sac_attr_float(n, "alpha", 1) != 1 ||
        sac_attr_float(n, "beta", 1) != 1)
        return false;
    *p = (struct product){.rows = c->in[0].dims[0],
                          .depth = c->in[0].dims[1],
                          .columns = c->out[0].dims[1],
                          .count = 1,
                          .second = 1};
    p->b_row = turned ? 1 : p->columns;
    p->b_column = turned ? p->depth : 1;
    if (c->in_count < 3 || !bias->present)
        return true;
    p->bias = bias;
    return bias->data && bias->rank > 0 && sac_operand_elements(bias) == p->columns &&
           bias->dims[bias->rank - 1] == p->columns;
}

static bool read_matmul(const struct sac_op_call *c, struct product *p)
{
    const struct sac_operand *a = &c->in[0], *b = &c->in[1];
    if (a->rank < 2 || b->rank < 2)
        return false;
    *p = (struct product){.rows = a->dims[a->rank - 2],
                          .depth = a->dims[a->rank - 1],
                          .columns = b->dims[b->rank - 1],
                          .b_row = b->dims[b->rank - 1],
                          .b_column = 1};
    p->second = sac_operand_elements(b) / (p->depth * p->columns);
    p->count = sac_operand_elements(&c->out[0]) / (p->rows * p->columns);
    if (p->second == 1 && sac_operand_elements(a) == p->count * p->rows * p->depth) {
        p->rows *= p->count; /* one matrix for all rows */
        p->count = 1;
    }
    return true;
}

static bool read_fused(const struct sac_op_call *c, struct product *p)
{
    const bool has_bias = sac_op_has(c, 2);
    if (!read_matmul(c, p))
        return false;
    p->bias = has_bias ? &c->in[2] : NULL;
    return (!has_bias || c->in[2].data) && (!sac_op_has(c, SAC_ENDING) || c->in[SAC_ENDING].data);
}

static bool read_product(const struct sac_op_call *c, struct product *p)
{
    switch (c->node->op->id) {
    case SAC_OP_Gemm: return read_gemm(c, p);
    case SAC_OP_FusedMatMul: return read_fused(c, p);
    default: return read_matmul(c, p);
    }
}

static struct sac_kernel_offer product_supports(struct sac_device                *dev,
                                                const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    struct product            p;
    (void)dev;
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !sac_call_is_float(c) ||
        sac_operand_elements(&c->out[0]) == 0 || sac_operand_elements(&c->in[0]) == 0)
        return sac_kernel_refuse("not float32, empty, or no AVX2");
    if (is_fused(c->node) &&
        sac_attr_int(c->node, "residual", SAC_RESIDUAL_NONE) == SAC_RESIDUAL_BEFORE)
        offer.in_place = SAC_RESIDUAL_INPUT; /* each number is read just before its place is written
                                              */
    return read_product(c, &p)
               ? offer
               : sac_kernel_refuse("a vector, scaled, its first matrix turned, or a "
                                   "sum that is not a constant row");
}

static void product_release(void *state)
{
    struct product_state *s = state;
    if (s) {
        sac_free(s->conv.bias);
        sac_free(s->conv.ending);
        sac_free(s->constant);
        sac_free(s->at);
    }
    sac_free(s);
}

static int64_t estimate_ns(const struct product *p)
{
    return 2 * p->count * p->rows * p->depth * p->columns / FLOPS_PER_NS;
}

static void set_conv(struct product_state *s, const struct sac_device *dev,
                     const struct sac_node *n)
{
    const struct product       *p = &s->p;
    const struct sac_conv_split split =
        sac_conv_split(dev, 1, p->rows, p->depth, p->depth * p->columns, estimate_ns(p));
    s->conv = sac_conv_product(p->rows, p->depth, p->columns, split.line, p->columns);
    s->conv.residual = s->conv.out;
    s->by_channels = split.by_channels;
    if (is_fused(n))
        sac_conv_read_ending(&s->conv, n);
}

/* Panels of one packed matrix, [panels][depth][width]; missing columns are zero. */
static void pack_panel(const struct product_state *s, const float *b, int64_t panel, float *to)
{
    const struct product *p = &s->p;
    const int64_t         full = (int64_t)s->conv.block * sac_simd_lanes(), first = panel * full;
    const int64_t         width = SAC_MIN(full, s->conv.group_bias - first);
    const int64_t         here = SAC_MIN(width, p->columns - first);
    b += first * p->b_column;
    for (int64_t k = 0; k < p->depth; k++, to += width, b += p->b_row) {
        if (p->b_column == 1)
            memcpy(to, b, (size_t)here * sizeof *to);
        else
            for (int64_t i = 0; i < here; i++)
                to[i] = b[i * p->b_column];
        for (int64_t i = here; i < width; i++)
            to[i] = 0;
    }
}

static void pack_piece(void *arg, int piece, int worker)
{
    const struct product_job   *j = arg;
    const struct product_state *s = j->s;
    const int64_t               units = s->p.second * s->panels;
    const int64_t               first = units * piece / s->pack_pieces,
                  end = units * (piece + 1) / s->pack_pieces;
    (void)worker;
    for (int64_t u = first; u < end; u++) {
        const int64_t matrix = u / s->panels, panel = u % s->panels;
        pack_panel(s, j->b + matrix * s->p.depth * s->p.columns, panel,
                   j->packed + matrix * s->conv.group_weights + panel * s->panel);
    }
}

/* Which matrices each product multiplies. */
static bool pair_up(struct product_state *s, const struct sac_op_call *c)
{
    struct sac_operand stacks[3] = {c->in[0], c->in[1], c->out[0]};
    struct sac_walk    w;
    int64_t           *at = s->at = sac_calloc((size_t)s->p.count * 2, sizeof *at);
    if (!at || s->p.count == 1)
        return at != NULL;
    for (int k = 0; k < 3; k++)
        stacks[k].rank -= 2;
    sac_walk_init(&w, stacks[2].rank, stacks[2].dims);
    sac_walk_operand(&w, &stacks[0]);
    sac_walk_operand(&w, &stacks[1]);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++)
            for (int k = 0; k < 2; k++)
                *at++ = w.at[k] + i * w.step[k];
    return true;
}

/* Few lines are cut along the columns too, so that no thread waits. */
static void cut(struct product_state *s, const struct sac_device *dev)
{
    const int64_t ns = estimate_ns(&s->p), units = s->p.count * s->lines;
    s->chunks = sac_conv_chunks(dev, s->by_channels ? s->p.count : units, s->panels, ns);
    s->run_pieces = sac_pieces(dev, units * s->chunks, ns);
    s->pack_pieces =
        sac_pieces(dev, s->p.second * s->panels,
                   s->p.second * s->conv.group_weights * (int64_t)sizeof(float) / BYTES_PER_NS);
}

static bool make(struct product_state *s, struct sac_device *dev, const struct sac_op_call *c)
{
    const size_t packed = (size_t)(s->p.second * s->conv.group_weights) * sizeof(float);
    s->lines = s->conv.out_h;
    s->panel = (int64_t)s->conv.block * sac_simd_lanes() * s->p.depth;
    s->panels = (s->conv.group_weights + s->panel - 1) / s->panel;
    s->conv.bias = sac_calloc((size_t)s->conv.group_bias, sizeof *s->conv.bias);
    const float *ending =
        is_fused(c->node) && sac_op_has(c, SAC_ENDING) ? c->in[SAC_ENDING].data : NULL;
    if (!s->conv.bias || !pair_up(s, c) || !sac_conv_pack_ending(&s->conv, ending, s->p.columns))
        return false;
    if (s->p.bias)
        memcpy(s->conv.bias, s->p.bias->data, (size_t)s->p.columns * sizeof *s->conv.bias);
    cut(s, dev);
    if (!c->in[1].data)
        return true;
    s->constant = sac_alloc_aligned(64, packed);
    struct product_job job = {s, NULL, c->in[1].data, NULL, NULL, s->constant};
    for (int k = 0; s->constant && k < s->pack_pieces; k++)
        pack_piece(&job, k, 0);
    return s->constant != NULL;
}

static sac_result product_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct product_state *s = sac_new(struct product_state);
    if (s && read_product(plan->call, &s->p))
        set_conv(s, dev, plan->call->node);
    if (!s || !make(s, dev, plan->call)) {
        product_release(s);
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    if (!s->constant)
        plan->scratch_bytes = (size_t)(s->p.second * s->conv.group_weights) * sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s%s", sac_simd_name(),
             s->constant ? "" : " packed");
    plan->state = s;
    return SAC_OK;
}

/* Rows of one line, columns of one chunk of panels. */
static void run_unit(const struct product_job *j, int64_t unit)
{
    const struct product_state *s = j->s;
    const int64_t               one = unit / s->chunks / s->lines;
    const int64_t   chunk = s->by_channels ? unit / s->lines % s->chunks : unit % s->chunks;
    const int64_t   line = s->by_channels ? unit % s->lines : unit / s->chunks % s->lines;
    struct sac_conv whole = s->conv;
    whole.weights = j->packed + s->at[2 * one + 1] * whole.group_weights;
    const struct sac_conv part =
        sac_conv_part(&whole, s->panels * chunk / s->chunks, s->panels * (chunk + 1) / s->chunks);
    const int64_t at = one * part.out.sample;
    SAC_SIMD_PICK(sac_conv_rows)
    (&part, j->a + s->at[2 * one] * part.in.sample, j->residual ? j->residual + at : NULL,
     j->y + at, line, line + 1);
}

static void run_piece(void *arg, int piece, int worker)
{
    const struct product_job   *j = arg;
    const struct product_state *s = j->s;
    const int64_t               units = s->p.count * s->lines * s->chunks;
    (void)worker;
    for (int64_t u = units * piece / s->run_pieces; u < units * (piece + 1) / s->run_pieces; u++)
        run_unit(j, u);
}

static sac_result product_run(struct sac_device *dev, void *state, void *const *in,
                              void *const *out, void *scratch, struct sac_device_stream *stream)
{
    const struct product_state *s = state;
    const void                 *residual = s->conv.residual_kind ? in[SAC_RESIDUAL_INPUT] : NULL;
    struct product_job          job = {.s = s,
                                       .a = in[0],
                                       .b = in[1],
                                       .residual = residual,
                                       .y = out[0],
                                       .packed = s->constant ? s->constant : scratch};
    (void)stream;
    if (!s->constant)
        sac_worker_pool_run(dev->workers, s->pack_pieces, pack_piece, &job);
    sac_worker_pool_run(dev->workers, s->run_pieces, run_piece, &job);
    return SAC_OK;
}

const struct sac_kernel sac_cpu_MatMul = {SAC_OP_MatMul, product_supports, product_prepare,
                                          product_run, product_release};
const struct sac_kernel sac_cpu_Gemm = {SAC_OP_Gemm, product_supports, product_prepare, product_run,
                                        product_release};
const struct sac_kernel sac_cpu_FusedMatMul = {SAC_OP_FusedMatMul, product_supports,
                                               product_prepare, product_run, product_release};
