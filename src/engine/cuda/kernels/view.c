/* SPDX-License-Identifier: Apache-2.0 */
/* Index spaces of operands in any layout, simplified before a kernel walks them. */
#include "engine/cuda/kernels/kernels.h"

/* ---- strides of an operand ---- */

static void steps_of(const struct sac_operand *o, enum sac_layout layout, int64_t pixel,
                     int64_t sample, int64_t *steps)
{
    if (!sac_layout_is_last(layout) || o->rank < 3) {
        sac_dense_strides(o->rank, o->dims, steps);
        return;
    }
    int64_t step = pixel ? pixel : o->dims[1];
    for (int d = o->rank - 1; d >= 2; d--) {
        steps[d] = step;
        step *= o->dims[d];
    }
    steps[1] = 1;
    steps[0] = sample ? sample : step;
}

void ops_steps_in(const struct sac_kernel_plan *plan, int i, int64_t *steps)
{
    steps_of(&plan->call->in[i], plan->in_layout[i], plan->in_pixel[i], plan->in_sample[i], steps);
}

void ops_steps_out(const struct sac_kernel_plan *plan, int i, int64_t *steps)
{
    steps_of(&plan->call->out[i], plan->out_layout[i], plan->out_pixel[i], plan->out_sample[i],
             steps);
}

/* ---- describing a space ---- */

void ops_shape_init(struct ops_shape *s, int rank, const int64_t *dims)
{
    memset(s, 0, sizeof *s);
    s->rank = rank;
    for (int d = 0; d < rank; d++)
        s->dims[d] = dims[d];
}

int ops_shape_add(struct ops_shape *s, int64_t start, const int64_t *steps)
{
    const int k = s->operands++;
    s->start[k] = start;
    for (int d = 0; d < s->rank; d++)
        s->step[k][d] = steps[d];
    return k;
}

static int add_broadcast(struct ops_shape *s, const struct sac_operand *o, const int64_t *own)
{
    int64_t   steps[OPS_SHAPE_DIMS] = {0};
    const int missing = s->rank - o->rank;
    for (int d = 0; d < o->rank; d++)
        if (o->dims[d] != 1)
            steps[missing + d] = own[d];
    return ops_shape_add(s, 0, steps);
}

int ops_shape_in(struct ops_shape *s, const struct sac_kernel_plan *plan, int i)
{
    int64_t own[SAC_RANK_MAX];
    ops_steps_in(plan, i, own);
    return add_broadcast(s, &plan->call->in[i], own);
}

int ops_shape_out(struct ops_shape *s, const struct sac_kernel_plan *plan, int i)
{
    int64_t own[SAC_RANK_MAX];
    ops_steps_out(plan, i, own);
    return add_broadcast(s, &plan->call->out[i], own);
}

void ops_shape_over_in(struct ops_shape *s, const struct sac_kernel_plan *plan)
{
    ops_shape_init(s, plan->call->in[0].rank, plan->call->in[0].dims);
    ops_shape_in(s, plan, 0);
    ops_shape_out(s, plan, 0);
}

void ops_shape_over_out(struct ops_shape *s, const struct sac_kernel_plan *plan)
{
    ops_shape_init(s, plan->call->out[0].rank, plan->call->out[0].dims);
    ops_shape_out(s, plan, 0);
}

/* ---- simplifying ---- */

static void drop_ones(struct ops_shape *s)
{
    int rank = 0;
    for (int d = 0; d < s->rank; d++) {
        if (s->dims[d] == 1)
            continue;
        s->dims[rank] = s->dims[d];
        for (int k = 0; k < s->operands; k++)
            s->step[k][rank] = s->step[k][d];
        rank++;
    }
    s->rank = rank;
}

static int64_t reach(int64_t step)
{
    return step < 0 ? -step : step;
}

static void swap_dims(struct ops_shape *s, int a, int b)
{
    int64_t dim = s->dims[a];
    s->dims[a] = s->dims[b];
    s->dims[b] = dim;
    for (int k = 0; k < s->operands; k++) {
        int64_t step = s->step[k][a];
        s->step[k][a] = s->step[k][b];
        s->step[k][b] = step;
    }
}

/* Sorts dims by the leading operand's stride, largest outermost; dims with a stride of 0 keep their
 * place. */
static void sort(struct ops_shape *s, int order)
{
    for (int i = 1; i < s->rank; i++)
        for (int d = i; d > 0 && reach(s->step[order][d - 1]) < reach(s->step[order][d]) &&
                        s->step[order][d - 1] != 0;
             d--)
            swap_dims(s, d - 1, d);
}

static bool joins(const struct ops_shape *s, int d)
{
    for (int k = 0; k < s->operands; k++)
        if (s->step[k][d] != s->step[k][d + 1] * s->dims[d + 1])
            return false;
    return true;
}

static void join(struct ops_shape *s)
{
    int rank = 0;
    for (int d = 0; d < s->rank; d++) {
        s->dims[rank] = s->dims[d];
        for (int k = 0; k < s->operands; k++)
            s->step[k][rank] = s->step[k][d];
        if (rank && joins(s, rank - 1)) {
            s->dims[rank - 1] *= s->dims[rank];
            for (int k = 0; k < s->operands; k++)
                s->step[k][rank - 1] = s->step[k][rank];
        } else
            rank++;
    }
    s->rank = rank;
}

/* Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994: with the
 * factor one bit short, which the sum in divide() gives back; right for numbers below 2^31. */
struct ops_divisor ops_divisor_of(int64_t d)
{
    d = SAC_MAX(d, 1); /* an empty dimension: no division takes place */
    struct ops_divisor v = {.d = (uint32_t)d};
    while (v.shift < 32 && (1ull << v.shift) < (uint64_t)d)
        v.shift++;
    v.factor = (uint32_t)(((1ull << 32) * ((1ull << v.shift) - (uint64_t)d)) / (uint64_t)d + 1);
    return v;
}

static void set_dims(struct ops_view *v)
{
    v->count = 1;
    for (int d = 0; d < v->rank; d++)
        v->count *= v->size[d];
    v->wide = v->count >= INT32_MAX;
    for (int d = 0; d < v->rank; d++)
        v->dim[d] =
            v->wide || v->size[d] == 0 ? (struct ops_divisor){0} : ops_divisor_of(v->size[d]);
}

bool ops_view_of(const struct ops_shape *shape, int order, struct ops_view *out)
{
    struct ops_shape s = *shape;
    memset(out, 0, sizeof *out);
    drop_ones(&s);
    sort(&s, order);
    join(&s);
    if (s.rank > OPS_DIMS)
        return false;
    out->rank = SAC_MAX(s.rank, 1);
    out->size[0] = 1; /* a scalar is a space too */
    for (int k = 0; k < s.operands; k++)
        out->start[k] = s.start[k];
    for (int d = 0; d < s.rank; d++) {
        out->size[d] = s.dims[d];
        for (int k = 0; k < s.operands; k++)
            out->step[k][d] = s.step[k][d];
    }
    set_dims(out);
    return true;
}

bool ops_view_is_dense(const struct ops_view *v, int k)
{
    int64_t step = 1;
    for (int d = v->rank - 1; d >= 0; d--) {
        if (v->step[k][d] != step && v->size[d] != 1)
            return false;
        step *= v->size[d];
    }
    return v->start[k] == 0;
}

bool ops_view_stands_still(const struct ops_view *v, int k)
{
    for (int d = 0; d < v->rank; d++)
        if (v->step[k][d] != 0)
            return false;
    return true;
}

bool ops_view_is_narrow(const struct ops_view *v, int k)
{
    int64_t low = v->start[k], high = v->start[k];
    for (int d = 0; d < v->rank; d++) {
        const int64_t far = (v->size[d] - 1) * v->step[k][d];
        low += SAC_MIN(far, 0);
        high += SAC_MAX(far, 0);
    }
    return low >= INT32_MIN && high <= INT32_MAX;
}

bool ops_view_is_vectors(const struct ops_view *v, int k, int n)
{
    const int inner = v->rank - 1;
    bool      fits = v->step[k][inner] == 1 && v->start[k] % n == 0;
    for (int d = 0; d < inner; d++)
        fits &= v->step[k][d] % n == 0;
    return fits;
}

bool ops_view_units(const struct ops_view *v, int operands, int n, bool still, struct ops_view *out,
                    unsigned *stills)
{
    const int inner = v->rank - 1;
    *stills = 0;
    if (v->size[inner] % n)
        return false;
    *out = *v;
    out->size[inner] /= n;
    for (int k = 0; k < operands; k++) {
        if (still && v->step[k][inner] == 0) {
            *stills |= 1u << k;
            continue;
        }
        if (!ops_view_is_vectors(v, k, n))
            return false;
        out->start[k] /= n;
        for (int d = 0; d < inner; d++)
            out->step[k][d] /= n;
    }
    set_dims(out);
    return true;
}

bool ops_view_groups(const struct ops_view *v, int operands, int n, struct ops_view *out)
{
    const int inner = v->rank - 1;
    if (v->size[inner] % n)
        return false;
    *out = *v;
    out->size[inner] /= n;
    for (int k = 0; k < operands; k++)
        out->step[k][inner] *= n;
    set_dims(out);
    return true;
}

void ops_view_leave_out(struct ops_view *v, int dim)
{
    for (int d = dim; d + 1 < v->rank; d++) {
        v->size[d] = v->size[d + 1];
        for (int k = 0; k < OPS_OPERANDS; k++)
            v->step[k][d] = v->step[k][d + 1];
    }
    v->rank--;
    if (v->rank == 0) { /* a scalar is a space too */
        v->rank = v->size[0] = 1;
        for (int k = 0; k < OPS_OPERANDS; k++)
            v->step[k][0] = 0;
    }
    set_dims(v);
}

sac_result ops_view_fail(struct sac_kernel_plan *plan)
{
    return SAC_OP_FAIL(plan->call, SAC_ERR_UNSUPPORTED,
                       "its shape has too many dimensions for a CUDA kernel");
}
