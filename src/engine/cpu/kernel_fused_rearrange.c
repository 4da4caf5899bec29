/* SPDX-License-Identifier: Apache-2.0 */
/* Rearrange: the output is cut into boxes in which no coordinate passes the end of its axis or of
 * an inner part, each of which is one move, or zeros. A roll of two axes makes at most nine. */
#include <stdio.h>

#include "engine/cpu/moves.h"
#include "engine/ops/reads.h"

enum { BOXES_MAX = 1024 };

struct rearrange_state {
    struct sac_moves *moves;
    int64_t           count; /* of what is added, 0: nothing */
    int               pieces;
};

/* Boxes under way: the entries of each digit from `first` on, `count` of them. */
struct boxes {
    struct sac_rearrange r;
    int64_t              from[SAC_REARRANGE_DIGITS], to[SAC_REARRANGE_DIGITS];
    int64_t              stride[SAC_RANK_MAX]; /* of X's axes */
    int64_t              first[SAC_REARRANGE_DIGITS], count[SAC_REARRANGE_DIGITS];
    size_t               bytes;
    struct sac_moves    *moves; /* NULL: boxes are only counted */
    int                  boxes;
};

/* The first coordinate after x that lies in another piece. */
static int64_t end_of_piece(const struct boxes *b, int a, int64_t x)
{
    const int64_t period = b->r.period[a], size = b->r.size[a], inner = b->r.inner[a];
    const int64_t at = x % period;
    const int64_t end = at >= size ? period : b->r.part[a] < 0 ? size : (at / inner + 1) * inner;
    return x - at + end;
}

static void coordinates(const struct boxes *b, int a, int64_t *low, int64_t *high)
{
    *low = b->r.start[a];
    *high = 0;
    for (int i = 0; i < b->r.digits; i++)
        if (b->r.axis[i] == a) {
            *low += b->first[i] * b->r.step[i];
            *high += (b->count[i] - 1) * b->r.step[i];
        }
    *high += *low;
}

static void add_box(struct boxes *b)
{
    const int64_t zero[SAC_REARRANGE_DIGITS] = {0};
    int64_t       from = 0, to = 0;
    bool          inside = true;
    b->boxes++;
    if (!b->moves)
        return;
    for (int i = 0; i < b->r.digits; i++)
        to += b->first[i] * b->to[i];
    for (int a = 0; a < b->r.axes; a++) {
        int64_t low, high;
        coordinates(b, a, &low, &high);
        low %= b->r.period[a];
        inside &= low < b->r.size[a];
        from += low / b->r.inner[a] * b->stride[a];
        from += b->r.part[a] < 0 ? 0 : low % b->r.inner[a] * b->stride[b->r.part[a]];
    }
    sac_moves_add(b->moves, inside ? 0 : -1, inside ? from : 0, inside ? b->from : zero, 0, to,
                  b->to, b->bytes, b->r.digits, b->count);
}

/* The digit of axis a with the largest step that has more than one entry left. */
static int widest(const struct boxes *b, int a)
{
    int found = -1;
    for (int i = 0; i < b->r.digits; i++)
        if (b->r.axis[i] == a && b->count[i] > 1 && (found < 0 || b->r.step[i] > b->r.step[found]))
            found = i;
    return found;
}

/* Cuts along axis a and those after it. */
static void cut(struct boxes *b, int a)
{
    int64_t low = 0, high = 0;
    while (a < b->r.axes) {
        coordinates(b, a, &low, &high);
        if (high >= end_of_piece(b, a, low))
            break;
        a++;
    }
    if (a == b->r.axes) {
        add_box(b);
        return;
    }
    const int     i = widest(b, a);
    const int64_t first = b->first[i], count = b->count[i], step = b->r.step[i];
    const int64_t rest = high - low - (count - 1) * step; /* of the other digits */
    for (int64_t done = 0, n; done < count && b->boxes <= BOXES_MAX; done += n) {
        const int64_t at = low + done * step, room = end_of_piece(b, a, at) - 1 - at - rest;
        n = SAC_MIN(room < 0 ? 1 : room / step + 1, count - done);
        b->first[i] = first + done;
        b->count[i] = n;
        cut(b, a);
    }
    b->first[i] = first;
    b->count[i] = count;
}

static bool read_boxes(const struct sac_kernel_plan *plan, struct boxes *b)
{
    const struct sac_op_call *c = plan->call;
    int64_t                   out[SAC_RANK_MAX];
    *b = (struct boxes){.bytes = sac_dtype_bytes(c->in[0].dtype)};
    sac_output_strides(plan, 0, out);
    if (sac_rearrange_read(c, &b->r) != SAC_OK)
        return false;
    if (!sac_layout_is_last(plan->out_layout[0]))
        sac_dense_strides(b->r.digits, b->r.dim, b->to);
    else if (!sac_rearrange_steps(&b->r, c->out[0].rank, c->out[0].dims, out, b->to))
        return false;
    sac_input_strides(plan, 0, b->stride);
    for (int i = 0; i < b->r.digits; i++) {
        const int part = b->r.part[b->r.axis[i]];
        b->from[i] = b->r.step[i] * b->stride[part < 0 ? b->r.axis[i] : part];
        b->count[i] = b->r.dim[i];
    }
    return true;
}

static int count_boxes(struct boxes *b)
{
    if (sac_dims_product(b->r.digits, b->r.dim) > 0)
        cut(b, 0);
    const int count = b->boxes;
    b->boxes = 0;
    return count;
}

static struct sac_kernel_offer rearrange_supports(struct sac_device                *dev,
                                                  const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_moves_keep_layout(q);
    struct boxes            b;
    (void)dev;
    struct sac_kernel_plan plan = sac_kernel_unplaced(q);
    memcpy(plan.in_layout, offer.in_layout, sizeof plan.in_layout);
    if (!read_boxes(&plan, &b) || count_boxes(&b) > BOXES_MAX)
        return sac_kernel_refuse("more than %d boxes", BOXES_MAX);
    const bool map = sac_rearrange_is_map(q->call, &b.r);
    if (!map)
        offer.out_layout[0] = SAC_LAYOUT_PLAIN;
    offer.writes_any = q->call->in[0].dtype == SAC_F32 && !sac_op_has(q->call, 1) &&
                       sac_rearrange_fits_dims(q->call, &b.r);
    offer.in_layout[1] = offer.out_layout[0];
    offer.in_place = -1;
    return offer;
}

static void rearrange_release(void *state)
{
    struct rearrange_state *s = state;
    if (s)
        sac_free(s->moves);
    sac_free(s);
}

static sac_result rearrange_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct rearrange_state   *s = sac_new(struct rearrange_state);
    struct boxes              b;
    if (s && read_boxes(plan, &b))
        s->moves = b.moves = sac_moves_create(SAC_MAX(count_boxes(&b), 1));
    if (!s || !s->moves) {
        rearrange_release(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    count_boxes(&b);
    s->count = sac_op_has(c, 1) ? sac_operand_elements(&c->out[0]) : 0;
    s->pieces = sac_pieces(dev, s->count, s->count);
    snprintf(plan->implementation, sizeof plan->implementation, "copy");
    plan->state = s;
    return SAC_OK;
}

struct addition {
    const struct rearrange_state *s;
    const float                  *r;
    float                        *y;
};

static void add_piece(void *arg, int piece, int worker)
{
    const struct addition *a = arg;
    const int64_t          count = a->s->count, end = count * (piece + 1) / a->s->pieces;
    (void)worker;
    for (int64_t i = count * piece / a->s->pieces; i < end; i++)
        a->y[i] += a->r[i];
}

static sac_result rearrange_run(struct sac_device *dev, void *state, void *const *in,
                                void *const *out, void *scratch, struct sac_device_stream *stream)
{
    const struct rearrange_state *s = state;
    sac_result                    res = sac_moves_run(dev, s->moves, in, out, scratch, stream);
    if (s->count > 0) {
        struct addition a = {s, in[1], out[0]};
        sac_worker_pool_run(dev->workers, s->pieces, add_piece, &a);
    }
    return res;
}

const struct sac_kernel sac_cpu_Rearrange = {SAC_OP_Rearrange, rearrange_supports,
                                             rearrange_prepare, rearrange_run, rearrange_release};
