/* SPDX-License-Identifier: Apache-2.0 */
/* Rearrange, which engine/ops/fused.h defines: a chain of rolls, windows, slices, joins and pads as
 * one walk over digits. */
#include "engine/ops/fused.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { X, R };
#define PERIOD_MAX ((int64_t)1 << 40)

/* Which axes of X are one. */
static sac_result read_parts(const struct sac_op_call *c, struct sac_rearrange *r)
{
    const int64_t *into;
    const size_t   listed = sac_attr_ints(c->node, "into", &into);
    SAC_CHECK(c, listed == 0 || listed == (size_t)r->axes, "'into' holds %zu axes for %d", listed,
              r->axes);
    for (int a = 0; a < r->axes; a++) {
        r->size[a] = c->in[X].dims[a];
        r->part[a] = -1;
        r->inner[a] = 1;
    }
    for (int a = 0; a < (int)listed; a++) {
        if (into[a] == a)
            continue;
        SAC_CHECK(c,
                  into[a] >= 0 && into[a] < a && into[into[a]] == into[a] && r->part[into[a]] == -1,
                  "into[%d] is %lld", a, (long long)into[a]);
        r->part[into[a]] = a;
        r->inner[into[a]] = SAC_MAX(r->size[a], 1);
        SAC_CHECK(c, !__builtin_mul_overflow(r->size[into[a]], r->size[a], &r->size[into[a]]),
                  "axis %lld is too long", (long long)into[a]);
        r->size[a] = 1;
    }
    return SAC_OK;
}

static sac_result read_axes(const struct sac_op_call *c, struct sac_rearrange *r)
{
    const int64_t *start, *period;
    const size_t   starts = sac_attr_ints(c->node, "start", &start),
                 periods = sac_attr_ints(c->node, "period", &period);
    r->axes = c->in[X].rank;
    SAC_CHECK(c, starts == (size_t)r->axes && periods == (size_t)r->axes,
              "%zu starts and %zu periods for %d axes", starts, periods, r->axes);
    SAC_TRY(read_parts(c, r));
    for (int a = 0; a < r->axes; a++) {
        SAC_CHECK(c, period[a] == 0 || (period[a] >= r->size[a] && period[a] <= PERIOD_MAX),
                  "period[%d] is %lld for %lld numbers", a, (long long)period[a],
                  (long long)r->size[a]);
        r->period[a] = SAC_MAX(period[a] ? period[a] : r->size[a], 1);
        r->start[a] = start[a];
        SAC_CHECK(c, start[a] >= 0 && start[a] < r->period[a], "start[%d] is %lld", a,
                  (long long)start[a]);
    }
    return SAC_OK;
}

static sac_result read_digits(const struct sac_op_call *c, struct sac_rearrange *r)
{
    const int64_t *dim, *axis, *step;
    const size_t   count = sac_attr_ints(c->node, "dims", &dim);
    SAC_CHECK(c, count <= SAC_REARRANGE_DIGITS, "%zu digits; have up to %d", count,
              SAC_REARRANGE_DIGITS);
    SAC_CHECK(c,
              sac_attr_ints(c->node, "axis", &axis) == count &&
                  sac_attr_ints(c->node, "step", &step) == count,
              "not an axis and a step for each of %zu digits", count);
    r->digits = (int)count;
    for (int i = 0; i < r->digits; i++) {
        SAC_CHECK(c, axis[i] >= 0 && axis[i] < r->axes, "axis[%d] is %lld", i, (long long)axis[i]);
        r->axis[i] = (int)axis[i];
        r->dim[i] = dim[i] == -1 ? r->size[axis[i]] : dim[i];
        r->step[i] = step[i];
        SAC_CHECK(c, r->dim[i] >= 0 && (r->dim[i] <= 1 || step[i] > 0), "digit %d: %lld by %lld", i,
                  (long long)dim[i], (long long)step[i]);
    }
    return SAC_OK;
}

/* The digits of an axis reach less than one period, so that a coordinate passes its end once. */
static sac_result check_reach(const struct sac_op_call *c, struct sac_rearrange *r)
{
    int64_t reach[SAC_RANK_MAX] = {0};
    bool    empty = false; /* an output without numbers turns nowhere */
    for (int i = 0; i < r->digits; i++) {
        const int     a = r->axis[i];
        const int64_t room = r->period[a] - 1 - reach[a];
        empty |= r->dim[i] == 0;
        if (r->dim[i] <= 1)
            continue;
        SAC_CHECK(c, r->step[i] <= room / (r->dim[i] - 1), "digit %d leaves the period of axis %d",
                  i, a);
        reach[a] += r->step[i] * (r->dim[i] - 1);
    }
    int rings = 0;
    for (int a = 0; a < r->axes; a++)
        rings += r->ring[a] = r->start[a] > r->size[a] - 1 - reach[a] || r->part[a] >= 0;
    SAC_CHECK(c, empty || rings <= SAC_REARRANGE_RINGS,
              "%d axes on which coordinates turn or are in two parts", rings);
    return SAC_OK;
}

sac_result sac_rearrange_read(const struct sac_op_call *c, struct sac_rearrange *r)
{
    SAC_TRY(read_axes(c, r));
    SAC_TRY(read_digits(c, r));
    return check_reach(c, r);
}

/* The dim of the output that each digit is part of; false: it is part of several. */
static bool digit_dims(const struct sac_rearrange *r, int rank, const int64_t *dims, int *of)
{
    int64_t room = 1;
    int     d = rank;
    for (int i = r->digits - 1; i >= 0; i--) {
        while (r->dim[i] != 1 && room == 1 && d > 0)
            room = dims[--d];
        of[i] = SAC_MIN(d, rank - 1);
        if (r->dim[i] == 0 || room % r->dim[i] != 0)
            return false;
        room /= r->dim[i];
    }
    return true;
}

bool sac_rearrange_steps(const struct sac_rearrange *r, int rank, const int64_t *dims,
                         const int64_t *steps, int64_t *to)
{
    int     of[SAC_REARRANGE_DIGITS], last = -1;
    int64_t inner = 1;
    if (!digit_dims(r, rank, dims, of))
        return false;
    for (int i = r->digits - 1; i >= 0; i--) {
        inner = of[i] == last ? inner : steps[of[i]];
        to[i] = inner;
        inner *= r->dim[i];
        last = of[i];
    }
    return true;
}

bool sac_rearrange_fits_dims(const struct sac_op_call *c, const struct sac_rearrange *r)
{
    int of[SAC_REARRANGE_DIGITS];
    return c->out[0].rank >= 3 && digit_dims(r, c->out[0].rank, c->out[0].dims, of);
}

bool sac_rearrange_is_map(const struct sac_op_call *c, const struct sac_rearrange *r)
{
    const struct sac_operand *y = &c->out[0];
    int                       of[SAC_REARRANGE_DIGITS];
    bool                      any = false;
    if (y->rank < 3 || c->in[X].rank != y->rank || !digit_dims(r, y->rank, y->dims, of))
        return false;
    for (int i = 0; i < r->digits; i++) {
        if (r->dim[i] > 1 && r->axis[i] == 1 && of[i] != 1)
            return false;
        any |= r->dim[i] > 1 && r->axis[i] == 1;
    }
    return any;
}

static sac_result rearrange_shape(struct sac_op_call *c)
{
    struct sac_rearrange r;
    int64_t              dims[SAC_RANK_MAX], count = 1;
    int                  rank;
    SAC_TRY(sac_rearrange_read(c, &r));
    for (int i = 0; i < r.digits; i++)
        SAC_CHECK(c, !__builtin_mul_overflow(count, r.dim[i], &count),
                  "the result is larger than memory can be");
    SAC_TRY(sac_fused_dims(c, count, dims, &rank));
    SAC_TRY(sac_shape_out(c, 0, c->in[X].dtype, rank, dims));
    SAC_CHECK(c,
              !sac_op_has(c, R) || (c->in[X].dtype == SAC_F32 && c->in[R].dtype == SAC_F32 &&
                                    sac_operand_same_dims(&c->in[R], &c->out[0])),
              "what is added is not float32 of the output's shape");
    return SAC_OK;
}

/* The element of X that output element i takes, -1: none. */
static int64_t source_of(const struct sac_rearrange *r, const int64_t *stride, int64_t i)
{
    int64_t at[SAC_RANK_MAX], source = 0;
    memcpy(at, r->start, sizeof at);
    for (int k = r->digits - 1; k >= 0; k--) {
        at[r->axis[k]] += i % r->dim[k] * r->step[k];
        i /= r->dim[k];
    }
    for (int a = 0; a < r->axes; a++) {
        const int64_t x = at[a] % r->period[a];
        if (x >= r->size[a])
            return -1;
        source += x / r->inner[a] * stride[a];
        source += r->part[a] < 0 ? 0 : x % r->inner[a] * stride[r->part[a]];
    }
    return source;
}

static sac_result rearrange_ref(struct sac_op_call *c)
{
    struct sac_rearrange r;
    int64_t              stride[SAC_RANK_MAX];
    const size_t         bytes = sac_dtype_bytes(c->in[X].dtype);
    const int64_t        count = sac_operand_elements(&c->out[0]);
    SAC_TRY(sac_rearrange_read(c, &r));
    sac_dense_strides(r.axes, c->in[X].dims, stride);
    for (int64_t i = 0; i < count; i++) {
        char         *to = (char *)c->out[0].data + (size_t)i * bytes;
        const int64_t from = source_of(&r, stride, i);
        if (from < 0)
            memset(to, 0, bytes);
        else
            memcpy(to, (const char *)c->in[X].data + (size_t)from * bytes, bytes);
    }
    for (int64_t i = 0; sac_op_has(c, R) && i < count; i++)
        ((float *)c->out[0].data)[i] += ((const float *)c->in[R].data)[i];
    return SAC_OK;
}

const struct sac_op sac_row_Rearrange = {SAC_FUSED_ROW(Rearrange, 1, 2),
                                         SAC_TOLERANCE(1e-6f, 1e-6f), .shape = rearrange_shape,
                                         .ref = rearrange_ref};
