/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that move data: each is one strided copy, or one per piece. */
#include "engine/cuda/kernels/copy.h"

#include "engine/cuda/kernels/kernels.h"

/* ---- layouts ---- */

/* Outputs have the input's precision: bytes are moved. */
static void like_input(const struct sac_kernel_question *q, struct sac_kernel_offer *offer,
                       bool last)
{
    const bool half = sac_layout_is_half(offer->in_layout[0]);
    for (int i = 0; i < q->call->out_count; i++)
        offer->out_layout[i] = ops_with_half(ops_with_last(SAC_LAYOUT_PLAIN, last),
                                             half && q->call->out[i].dtype == SAC_F32);
}

static bool plain_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    like_input(q, offer, false);
    return true;
}

/* The bits must not change. */
static bool bit_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    (void)q;
    offer->in_layout[0] = offer->out_layout[0] = SAC_LAYOUT_PLAIN;
    return true;
}

static bool comes_last(const struct sac_kernel_question *q, const struct sac_kernel_offer *offer)
{
    return sac_layout_is_last(offer->in_layout[0]) && ops_can_be_last(&q->call->in[0]) &&
           ops_can_be_last(&q->call->out[0]);
}

/* The dimensions keep their meaning, so channels last stays channels last. */
static bool same_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    like_input(q, offer, comes_last(q, offer));
    offer->strided = comes_last(q, offer);
    return true;
}

/* A vector of channels per pixel takes the layout that its reader wants, for example a pooled map
 * before a Concat. */
static bool expand_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (q->call->in[0].rank == q->call->out[0].rank)
        return same_layouts(q, offer);
    return plain_layouts(q, offer);
}

static bool concat_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    const struct sac_op_call *c = q->call;
    bool                      last = false, half = false;
    for (int i = 0; i < c->in_count; i++) {
        if (c->in[i].data)
            continue;
        last |= sac_layout_is_last(offer->in_layout[i]);
        half |= sac_layout_is_half(offer->in_layout[i]);
    }
    last = last && ops_can_be_last(&c->out[0]);
    half = half && c->out[0].dtype == SAC_F32;
    offer->out_layout[0] = ops_with_half(ops_with_last(SAC_LAYOUT_PLAIN, last), half);
    for (int i = 0; i < c->in_count; i++)
        offer->in_layout[i] = offer->out_layout[0];
    offer->strided = last;
    return true;
}

/* ---- pieces ---- */

sac_result ops_copies_add(struct sac_kernel_plan *plan, struct ops_copies *copies,
                          const struct ops_shape *s, int in, int out)
{
    struct ops_copy *p = &copies->piece[copies->count++];
    unsigned         stills;
    p->in = in;
    p->out = out;
    p->bytes = p->unit_bytes = (int)sac_dtype_bytes((enum sac_dtype)ops_out_type(plan, out));
    if (!ops_view_of(s, 0, &p->view))
        return ops_view_fail(plan);
    for (int unit = 16; unit > p->bytes; unit /= 2)
        if (ops_view_units(&p->view, 2, unit / p->bytes, false, &p->units, &stills)) {
            p->unit_bytes = unit;
            break;
        }
    return SAC_OK;
}

/* One piece over dims, the output at to[] from to_start on. */
static sac_result one_piece(struct sac_kernel_plan *plan, struct ops_copies *copies, int rank,
                            const int64_t *dims, const int64_t *to, int64_t from_start,
                            const int64_t *from)
{
    struct ops_shape s;
    ops_shape_init(&s, rank, dims);
    ops_shape_add(&s, 0, to);
    ops_shape_add(&s, from_start, from);
    return ops_copies_add(plan, copies, &s, 0, 0);
}

static sac_result view_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_operand *in = &plan->call->in[0];
    int64_t                   to[SAC_RANK_MAX], from[SAC_RANK_MAX];
    ops_take_from(plan, 1);
    sac_dense_strides(in->rank, in->dims, to);
    ops_steps_in(plan, 0, from);
    return one_piece(plan, params, in->rank, in->dims, to, 0, from);
}

static sac_result transpose_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    int                       perm[SAC_RANK_MAX];
    int64_t                   own[SAC_RANK_MAX], from[SAC_RANK_MAX], to[SAC_RANK_MAX];
    SAC_TRY(sac_transpose_perm(c, perm));
    ops_steps_in(plan, 0, own);
    ops_steps_out(plan, 0, to);
    for (int d = 0; d < c->in[0].rank; d++)
        from[d] = own[perm[d]];
    return one_piece(plan, params, c->out[0].rank, c->out[0].dims, to, 0, from);
}

static sac_result concat_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    int                       axis;
    int64_t                   to[SAC_RANK_MAX], from[SAC_RANK_MAX], offset = 0;
    sac_result                res = sac_op_axis(c, 1, c->in[0].rank, &axis);
    ops_steps_out(plan, 0, to);
    for (int i = 0; i < c->in_count && res == SAC_OK; i++) {
        struct ops_shape s;
        ops_steps_in(plan, i, from);
        ops_shape_init(&s, c->in[i].rank, c->in[i].dims);
        ops_shape_add(&s, offset * to[axis], to);
        ops_shape_add(&s, 0, from);
        res = ops_copies_add(plan, params, &s, i, 0);
        offset += c->in[i].dims[axis];
    }
    return res;
}

/* The outputs' sizes give their offsets. An output that the node leaves out has no size, so then
 * the sizes must come from elsewhere. */
static bool split_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    for (int i = 0; i < q->call->out_count; i++)
        if (!q->call->out[i].present)
            return ops_refuse(offer, "output %d is left out", i);
    if (sac_split_feeds_convs(q->call))
        offer->in_layout[0] = ops_with_last(offer->in_layout[0], true);
    return same_layouts(q, offer);
}

static sac_result split_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    int                       axis;
    int64_t                   to[SAC_RANK_MAX], from[SAC_RANK_MAX], offset = 0;
    sac_result                res = sac_op_axis(c, 0, c->in[0].rank, &axis);
    ops_steps_in(plan, 0, from);
    ops_take(plan, 1);
    for (int i = 0; i < c->out_count && res == SAC_OK; i++) {
        struct ops_shape s;
        ops_steps_out(plan, i, to);
        ops_shape_init(&s, c->out[i].rank, c->out[i].dims);
        ops_shape_add(&s, 0, to);
        ops_shape_add(&s, offset * from[axis], from);
        res = ops_copies_add(plan, params, &s, 0, i);
        offset += c->out[i].dims[axis];
    }
    return res;
}

static sac_result slice_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    struct sac_slice          slice;
    int64_t                   to[SAC_RANK_MAX], from[SAC_RANK_MAX], start = 0;
    SAC_TRY(sac_slice_read(c, &slice));
    ops_steps_in(plan, 0, from);
    ops_steps_out(plan, 0, to);
    for (int d = 0; d < c->in[0].rank; d++) {
        start += slice.start[d] * from[d];
        from[d] *= slice.step[d];
    }
    ops_take_from(plan, 1);
    return one_piece(plan, params, c->out[0].rank, c->out[0].dims, to, start, from);
}

static sac_result expand_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    int64_t                   to[SAC_RANK_MAX], own[SAC_RANK_MAX], from[SAC_RANK_MAX];
    ops_steps_in(plan, 0, own);
    ops_steps_out(plan, 0, to);
    sac_expand_steps(c, own, from);
    ops_take(plan, 1);
    return one_piece(plan, params, c->out[0].rank, c->out[0].dims, to, 0, from);
}

static sac_result tile_fill(struct sac_kernel_plan *plan, void *params)
{
    int64_t to[SAC_RANK_MAX], from[SAC_RANK_MAX];
    ops_steps_in(plan, 0, from);
    ops_steps_out(plan, 0, to);
    const struct sac_tiling t = sac_tiling_of(plan->call, from, to);
    ops_take(plan, 1);
    return one_piece(plan, params, t.rank, t.dims, t.to, 0, t.from);
}

/* Over [N,C,H,b,W,b]: where depth and space have that. */
static sac_result blocks_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const bool                to_space = c->node->op->id == SAC_OP_DepthToSpace;
    const int64_t             b = sac_attr_int(c->node, "blocksize", 1);
    const int64_t            *depth = (to_space ? &c->in[0] : &c->out[0])->dims;
    const bool                before = strcmp(sac_attr_string(c->node, "mode", "DCR"), "CRD") != 0;
    const int64_t             channels = depth[1] / (b * b);
    int64_t                   in[SAC_RANK_MAX], out[SAC_RANK_MAX];
    ops_steps_in(plan, 0, in);
    ops_steps_out(plan, 0, out);
    const int64_t *deep = to_space ? in : out, *wide = to_space ? out : in;
    const int64_t  block = deep[1] * (before ? channels : 1),
                  channel = deep[1] * (before ? 1 : b * b);
    const int64_t dims[6] = {depth[0], channels, depth[2], b, depth[3], b};
    const int64_t d[6] = {deep[0], channel, deep[2], b * block, deep[3], block};
    const int64_t s[6] = {wide[0], wide[1], b * wide[2], wide[2], b * wide[3], wide[3]};
    return one_piece(plan, params, 6, dims, to_space ? s : d, 0, to_space ? d : s);
}

/* ---- Pad, CenterCropPad ---- */

/* A picture that gets more channels is for a convolution, whatever order it has now. */
static bool becomes_map(const struct sac_kernel_question *q)
{
    const struct sac_operand *x = &q->call->in[0], *y = &q->call->out[0];
    return x->rank > 2 && x->dims[1] < 8 && y->dims[1] > x->dims[1] && y->dtype == SAC_F32 &&
           ops_can_be_last(y);
}

static bool pad_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer)
{
    if (sac_op_has(q->call, 2) && q->call->node->op->id == SAC_OP_Pad)
        offer->in_layout[2] =
            ops_with_half(SAC_LAYOUT_PLAIN, sac_layout_is_half(offer->in_layout[0]) &&
                                                q->call->in[2].dtype == SAC_F32);
    same_layouts(q, offer);
    if (becomes_map(q)) {
        offer->out_layout[0] = ops_with_last(offer->out_layout[0], true);
        offer->strided = true;
    }
    return true;
}

/* Outermost in memory first. */
static void pad_order(struct ops_pad *p)
{
    for (int i = 1; i < p->rank; i++)
        for (int d = i; d > 0 && p->to[d - 1] < p->to[d]; d--) {
            int64_t *lists[] = {p->size, p->in_size, p->begin, p->to, p->from};
            for (size_t k = 0; k < SAC_COUNT(lists); k++) {
                int64_t swap = lists[k][d];
                lists[k][d] = lists[k][d - 1];
                lists[k][d - 1] = swap;
            }
        }
}

/* Units of 16 bytes where the innermost dimension is not padded. */
static void pad_widen(struct ops_pad *p)
{
    const int     inner = p->rank - 1;
    const int64_t n = 16 / p->bytes;
    if (inner < 0 || p->begin[inner] != 0 || p->size[inner] != p->in_size[inner] ||
        p->size[inner] % n || p->to[inner] != 1 || p->from[inner] != 1 || p->constant_port >= 0)
        return;
    for (int d = 0; d < inner; d++)
        if (p->to[d] % n || p->from[d] % n)
            return;
    for (int d = 0; d < inner; d++) {
        p->to[d] /= n;
        p->from[d] /= n;
    }
    p->size[inner] /= n;
    p->in_size[inner] /= n;
    p->bytes = 16;
}

/* How places are counted, and whether 16 bytes are written at once where the innermost dimension
 * is: as a picture becomes a map of eight channels. */
static void pad_count(struct ops_pad *p)
{
    const int inner = p->rank - 1, n = 16 / p->bytes;
    p->count = sac_dims_product(p->rank, p->size);
    p->narrow = p->count > 0 && p->count < INT32_MAX;
    for (int d = 0; d < p->rank && p->narrow; d++)
        p->dim[d] = ops_divisor_of(p->size[d]);
    bool fits = p->narrow && inner >= 0 && n > 1 && p->to[inner] == 1 && p->size[inner] % n == 0;
    for (int d = 0; d < inner; d++)
        fits = fits && p->to[d] % n == 0;
    if (!fits)
        return;
    p->run = n;
    p->whole = p->dim[inner];
    p->dim[inner] = ops_divisor_of(p->size[inner] / n);
}

static void pad_constant(struct sac_kernel_plan *plan, struct ops_pad *p)
{
    const struct sac_op_call *c = plan->call;
    struct sac_operand one = {.dtype = (enum sac_dtype)ops_out_type(plan, 0), .data = p->constant};
    const bool         pad = c->node->op->id == SAC_OP_Pad,
               given = pad && sac_op_has(c, 2) && sac_operand_elements(&c->in[2]) == 1;
    p->constant_port = -1;
    if (given && !c->in[2].data) {
        p->constant_port = 2;
        return;
    }
    if (given && one.dtype == c->in[2].dtype)
        memcpy(p->constant, c->in[2].data, (size_t)p->bytes);
    else
        sac_operand_set(&one, 0,
                        given ? sac_operand_get(&c->in[2], 0)
                        : pad ? sac_attr_float(c->node, "value", 0)
                              : 0);
    for (int i = p->bytes; i < 16; i++)
        ((char *)p->constant)[i] = ((char *)p->constant)[i - p->bytes];
}

static sac_result pad_fill(struct sac_kernel_plan *plan, void *params)
{
    const struct sac_op_call *c = plan->call;
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    struct ops_pad           *p = params;
    enum sac_pad_mode         mode = SAC_PAD_CONSTANT;
    struct sac_pads           pads;
    for (int d = 0; d < in->rank; d++) { /* CenterCropPad */
        const int64_t more = out->dims[d] - in->dims[d];
        pads.begin[d] = more >= 0 ? more / 2 : -(-more / 2);
    }
    if (c->node->op->id == SAC_OP_Pad) {
        SAC_TRY(sac_pad_mode(c, &mode));
        SAC_TRY(sac_pad_read(c, &pads));
    }
    p->mode = (int)mode;
    p->rank = in->rank;
    p->bytes = (int)sac_dtype_bytes((enum sac_dtype)ops_out_type(plan, 0));
    ops_steps_in(plan, 0, p->from);
    ops_steps_out(plan, 0, p->to);
    for (int d = 0; d < in->rank; d++) {
        p->size[d] = out->dims[d];
        p->in_size[d] = in->dims[d];
        p->begin[d] = pads.begin[d];
    }
    pad_constant(plan, p);
    pad_order(p);
    /* parts need not be 16-byte aligned */
    if (!plan->in_pixel[0] && !plan->out_pixel[0])
        pad_widen(p);
    pad_count(p);
    ops_take_from(plan, 1);
    return SAC_OK;
}

/* ---- rows ---- */

#define COPY(op, layouts, fill)                                            \
    const struct ops_row ops_row_##op = {layouts, fill, ops_launch_copies, \
                                         sizeof(struct ops_copies), sizeof(struct ops_copy)};
COPY(BitCast, bit_layouts, view_fill)
COPY(Flatten, plain_layouts, view_fill)
COPY(Identity, plain_layouts, view_fill)
COPY(Reshape, plain_layouts, view_fill)
COPY(Squeeze, plain_layouts, view_fill)
COPY(Unsqueeze, plain_layouts, view_fill)
COPY(Transpose, plain_layouts, transpose_fill)
COPY(Concat, concat_layouts, concat_fill)
COPY(Split, split_layouts, split_fill)
COPY(Slice, same_layouts, slice_fill)
COPY(Expand, expand_layouts, expand_fill)
COPY(Tile, same_layouts, tile_fill)
COPY(DepthToSpace, same_layouts, blocks_fill)
COPY(SpaceToDepth, same_layouts, blocks_fill)
OPS_ROW(Pad, pad_layouts, pad_fill, ops_launch_pad, ops_pad)
OPS_ROW(CenterCropPad, same_layouts, pad_fill, ops_launch_pad, ops_pad)
