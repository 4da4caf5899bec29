/* SPDX-License-Identifier: Apache-2.0 */
/* HeadMatMul: pointwise convolutions over blocks of one head's rows of A, whose weights are its B,
 * packed when a thread comes to that head. Rows are read where they lie, or turned into a block
 * where their numbers are not neighbours; the depth is cut so that block and weights stay in the L2
 * cache, and what the parts make is added up in the output, where the bias lies first. */
#include <stdio.h>

#include "engine/cpu/heads.h"
#include "engine/ops/reads.h"

enum {
    ROWS_MAX = 84,      /* of a block: whole tiles of 14, 6 and 12 rows */
    PART_MAX = 1 << 15, /* floats of a block's rows, and of its weights: quarters of an L2 cache */
    COLUMNS_NEAR = 128, /* whose weights count: a panel of them serves all rows of a block */
    PART_MIN = 64,      /* of the depth */
    FLOPS_PER_NS = 30   /* for cutting work into pieces only */
};

struct matmul_state {
    struct sac_head_matmul m;
    bool                   swapped;          /* the transposed product: A is input 1 */
    bool                   in_place, direct; /* rows are read, results written, where they lie */
    struct sac_conv        part, last;       /* of one block: parts of the depth, and the last */
    float                 *zeros;            /* the convolutions' bias */
    int64_t                rows, blocks, depth, parts, units;
    int64_t                room; /* floats of a piece */
    int                    pieces;
};

/* Memory of one piece. */
struct matmul_room {
    float *weights, *rows, *result;
};

struct matmul_job {
    const struct matmul_state *s;
    const float               *a, *b, *bias, *other;
    float                     *y, *scratch;
};

static struct sac_kernel_offer matmul_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    struct sac_head_matmul    m;
    struct sac_head_view      last;
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || sac_operand_elements(&c->out[0]) == 0 ||
        sac_head_matmul_read(c, &m) != SAC_OK || m.depth == 0)
        return sac_kernel_refuse("empty, or no AVX2");
    offer.in_layout[0] = sac_head_layout(&c->in[0], &m.a, q->in_layout[0], true);
    offer.in_layout[1] = sac_head_layout(&c->in[1], &m.b, q->in_layout[1], true);
    if (m.has_other)
        offer.in_layout[3] = sac_head_layout(&c->in[3], &m.r, q->in_layout[3], true);
    offer.out_layout[0] = SAC_LAYOUT_PLAIN;
    offer.writes_any = sac_head_view_last(&c->out[0], &m.y, &last);
    return offer;
}

static void matmul_release(void *state)
{
    struct matmul_state *s = state;
    if (s)
        sac_free(s->zeros);
    sac_free(s);
}

/* ---- what is multiplied by what ---- */

/* Of a product whose rows lie closer together in the output than its columns, the transposed one:
 * then results are stored where they lie. */
static void swap(struct matmul_state *s)
{
    struct sac_head_matmul    *m = &s->m;
    const struct sac_head_view a = m->a;
    m->a = sac_head_view_turned(&m->b);
    m->b = sac_head_view_turned(&a);
    m->y = sac_head_view_turned(&m->y);
    m->r = sac_head_view_turned(&m->r);
    m->by_row = !m->by_row;
    m->rows = m->y.dim[2];
    m->columns = m->y.dim[3];
    s->swapped = true;
}

static void read_views(struct matmul_state *s, const struct sac_kernel_plan *plan)
{
    const struct sac_op_call   *c = plan->call;
    struct sac_head_matmul     *m = &s->m;
    const struct sac_head_view *y = &m->y;
    struct sac_head_view *const of[] = {&m->a, &m->b, NULL, m->has_other ? &m->r : NULL};
    for (size_t i = 0; i < SAC_COUNT(of); i++)
        if (of[i] && sac_layout_is_last(plan->in_layout[i]))
            sac_head_view_last(&c->in[i], of[i], of[i]);
    if (sac_layout_is_last(plan->out_layout[0]))
        sac_head_view_last(&c->out[0], &m->y, &m->y);
    if (y->dim[2] > 1 && (y->dim[3] == 1 || y->step[2] < y->step[3]))
        swap(s);
    s->in_place = m->a.step[3] == 1 || m->depth == 1;
    s->direct = m->y.step[3] == 1 || m->columns == 1;
}

/* ---- blocks ---- */

static void cut(struct matmul_state *s, const struct sac_device *dev)
{
    const struct sac_head_matmul *m = &s->m;
    const int64_t                 heads = m->batch * m->heads;
    s->blocks = (m->rows + ROWS_MAX - 1) / ROWS_MAX;
    s->rows = (m->rows + s->blocks - 1) / s->blocks;
    const int64_t fit =
        SAC_MAX(PART_MAX / SAC_MAX(s->rows, SAC_MIN(m->columns, COLUMNS_NEAR)), PART_MIN);
    s->parts = (m->depth + fit - 1) / fit;
    s->depth = (m->depth + s->parts - 1) / s->parts;
    s->parts = (m->depth + s->depth - 1) / s->depth;
    s->units = heads * s->blocks;
    s->pieces =
        sac_pieces(dev, s->units, 2 * heads * m->rows * m->columns * m->depth / FLOPS_PER_NS);
}

static struct sac_conv conv_of(const struct matmul_state *s, int64_t depth)
{
    const struct sac_head_matmul *m = &s->m;
    struct sac_conv               v = sac_conv_product(s->rows, depth, m->columns, s->rows,
                                         s->direct ? m->y.step[2] : m->columns);
    v.in.pixel = s->in_place ? m->a.step[2] : depth;
    v.residual = v.out;
    return v;
}

static bool make(struct matmul_state *s, const struct sac_device *dev, const struct sac_node *n)
{
    cut(s, dev);
    s->part = conv_of(s, s->depth);
    s->last = conv_of(s, s->m.depth - (s->parts - 1) * s->depth);
    sac_conv_read_ending(&s->last, n);
    s->zeros = sac_calloc((size_t)s->part.group_bias, sizeof *s->zeros);
    s->part.bias = s->last.bias = s->zeros;
    s->room = s->part.group_weights + (s->in_place ? 0 : s->rows * s->depth) +
              (s->direct ? 0 : s->rows * s->m.columns);
    s->room = (s->room + 31) / 16 * 16; /* whole cache lines */
    return s->zeros != NULL;
}

static sac_result matmul_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct matmul_state *s = sac_new(struct matmul_state);
    bool                 made = s && sac_head_matmul_read(plan->call, &s->m) == SAC_OK;
    if (made) {
        read_views(s, plan);
        made = make(s, dev, plan->call->node);
    }
    if (!made) {
        matmul_release(s);
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    plan->scratch_bytes = (size_t)(s->pieces * s->room) * sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

/* ---- one block of a head's rows ---- */

/* Weights of a part of the depth, times the scale. */
static void pack(const struct matmul_job *j, const struct sac_conv *v, int64_t head, int64_t k,
                 float *to)
{
    const struct sac_head_matmul *m = &j->s->m;
    sac_head_pack(v,
                  j->b + sac_head_start(&m->b, head / m->heads, head % m->heads) + k * m->b.step[2],
                  m->b.step[2], m->b.step[3], to);
    for (int64_t i = 0; m->scale != 1 && i < v->group_weights; i++)
        to[i] *= m->scale;
}

static void add_bias(const struct matmul_job *j, int64_t first, int64_t rows, float *to)
{
    const struct sac_head_matmul *m = &j->s->m;
    const int64_t                 step = j->s->part.out.pixel;
    for (int64_t row = 0; row < rows; row++, to += step)
        for (int64_t i = 0; i < m->columns; i++)
            to[i] = j->bias[m->by_row ? first + row : i];
}

/* other: of the block's first row. */
static void take_other(const struct matmul_job *j, const float *other, int64_t rows, float *to)
{
    const struct sac_head_matmul *m = &j->s->m;
    const int64_t                 step = j->s->part.out.pixel, along = m->r.step[3];
    for (int64_t row = 0; row < rows; row++, to += step, other += m->r.step[2])
        if (m->r.step[3] == 1 && m->gates)
            for (int64_t i = 0; i < m->columns; i++)
                to[i] *= other[i];
        else if (m->r.step[3] == 1)
            for (int64_t i = 0; i < m->columns; i++)
                to[i] += other[i];
        else
            for (int64_t i = 0; i < m->columns; i++)
                to[i] = m->gates ? to[i] * other[i * along] : to[i] + other[i * along];
}

/* A block of a head's rows, and where its sums are made. */
struct matmul_block {
    int64_t      first, rows;
    const float *a, *other;
    float       *y, *to;
};

static struct matmul_block block_of(const struct matmul_job *j, int64_t head, int64_t block,
                                    const struct matmul_room *r)
{
    const struct matmul_state    *s = j->s;
    const struct sac_head_matmul *m = &s->m;
    const int64_t                 n = head / m->heads, h = head % m->heads, first = block * s->rows;
    struct matmul_block           b = {.first = first, .rows = SAC_MIN(s->rows, m->rows - first)};
    b.a = j->a + sac_head_start(&m->a, n, h) + first * m->a.step[2];
    b.y = j->y + sac_head_start(&m->y, n, h) + first * m->y.step[2];
    b.to = s->direct ? b.y : r->result;
    if (m->has_other)
        b.other = j->other + sac_head_start(&m->r, n, h) + first * m->r.step[2];
    return b;
}

static void multiply_part(const struct matmul_job *j, const struct matmul_block *b, int64_t part,
                          const struct matmul_room *r)
{
    const struct matmul_state    *s = j->s;
    const struct sac_head_matmul *m = &s->m;
    const float                  *a = b->a + part * s->depth * m->a.step[3];
    struct sac_conv               v = part + 1 < s->parts ? s->part : s->last;
    if (!s->in_place)
        sac_head_load(&m->a, a, b->rows, v.group_in_c, r->rows);
    v.weights = r->weights;
    v.last_w = b->rows;
    v.residual_kind = part || m->has_bias ? SAC_RESIDUAL_BEFORE : SAC_RESIDUAL_NONE;
    SAC_SIMD_PICK(sac_conv_rows)(&v, s->in_place ? a : r->rows, b->to, b->to, 0, 1);
}

static void end_block(const struct matmul_job *j, const struct matmul_block *b)
{
    const struct sac_head_matmul *m = &j->s->m;
    if (m->has_other)
        take_other(j, b->other, b->rows, b->to);
    if (!j->s->direct)
        sac_head_put(&m->y, b->to, b->rows, m->columns, b->y);
}

/* Blocks `first` to end - 1 of a head. Where they are summed up where they lie, weights are packed
 * once for all of them. packed: the head whose weights are there, of the only part. */
static void run_blocks(const struct matmul_job *j, int64_t head, int64_t first, int64_t end,
                       int64_t *packed, const struct matmul_room *r)
{
    const struct matmul_state *s = j->s;
    for (int64_t block = first; block < end && j->bias; block++) {
        const struct matmul_block b = block_of(j, head, block, r);
        add_bias(j, b.first, b.rows, b.to);
    }
    for (int64_t part = 0; part < s->parts; part++) {
        const struct sac_conv *v = part + 1 < s->parts ? &s->part : &s->last;
        if (*packed != head || s->parts > 1)
            pack(j, v, head, part * s->depth, r->weights);
        *packed = head;
        for (int64_t block = first; block < end; block++) {
            const struct matmul_block b = block_of(j, head, block, r);
            multiply_part(j, &b, part, r);
        }
    }
    for (int64_t block = first; block < end; block++) {
        const struct matmul_block b = block_of(j, head, block, r);
        end_block(j, &b);
    }
}

static void run_piece(void *arg, int piece, int worker)
{
    const struct matmul_job   *j = arg;
    const struct matmul_state *s = j->s;
    const int64_t              end = s->units * (piece + 1) / s->pieces;
    struct matmul_room         r = {.weights = j->scratch + piece * s->room};
    int64_t                    packed = -1;
    (void)worker;
    r.rows = r.weights + s->part.group_weights;
    r.result = r.rows + (s->in_place ? 0 : s->rows * s->depth);
    for (int64_t u = s->units * piece / s->pieces, abreast; u < end; u += abreast) {
        const int64_t block = u % s->blocks;
        abreast = s->direct ? SAC_MIN(s->blocks - block, end - u) : 1;
        run_blocks(j, u / s->blocks, block, block + abreast, &packed, &r);
    }
}

static sac_result matmul_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                             void *scratch, struct sac_device_stream *stream)
{
    const struct matmul_state *s = state;
    const bool                 bias = s->m.has_bias, other = s->m.has_other;
    struct matmul_job          job = {.s = s,
                                      .a = in[s->swapped],
                                      .b = in[!s->swapped],
                                      .bias = bias ? in[2] : NULL,
                                      .other = other ? in[3] : NULL,
                                      .y = out[0],
                                      .scratch = scratch};
    (void)stream;
    sac_worker_pool_run(dev->workers, s->pieces, run_piece, &job);
    return SAC_OK;
}

const struct sac_kernel sac_cpu_HeadMatMul = {SAC_OP_HeadMatMul, matmul_supports, matmul_prepare,
                                              matmul_run, matmul_release};
