/* SPDX-License-Identifier: Apache-2.0 */
/* Where picks between two tensors, Clip bounds one. */
#include <math.h>

#include "engine/ops/util.h"

/* ---- Where ---- */

static sac_result where_shape(struct sac_op_call *c)
{
    SAC_CHECK(c, c->in[0].dtype == SAC_BOOL, "a condition of dtype %s", sac_in_dtype(c, 0));
    SAC_CHECK(c, c->in[1].dtype == c->in[2].dtype, "inputs of dtypes %s and %s", sac_in_dtype(c, 1),
              sac_in_dtype(c, 2));
    SAC_TRY(sac_shape_broadcast(c));
    c->out[0].dtype = c->in[1].dtype;
    return SAC_OK;
}

#define PICK(type)                                                                            \
    for (int64_t i = 0; i < w.run; i++)                                                       \
    ((type *)out->data)[w.at[3] + i] = condition[w.at[0] + i * w.step[0]]                     \
                                           ? ((const type *)a->data)[w.at[1] + i * w.step[1]] \
                                           : ((const type *)b->data)[w.at[2] + i * w.step[2]]

static sac_result where_ref(struct sac_op_call *c)
{
    const struct sac_operand *a = &c->in[1], *b = &c->in[2], *out = &c->out[0];
    const uint8_t            *condition = c->in[0].data;
    struct sac_walk           w;
    sac_walk_init(&w, out->rank, out->dims);
    for (int i = 0; i < 3; i++)
        sac_walk_operand(&w, &c->in[i]);
    sac_walk_operand(&w, out);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        switch (sac_dtype_bytes(out->dtype)) {
        case 1: PICK(uint8_t); break;
        case 2: PICK(uint16_t); break;
        case 4: PICK(uint32_t); break;
        default: PICK(uint64_t); break;
        }
    return SAC_OK;
}

const struct sac_op sac_row_Where = {SAC_ROW(Where, 9, 3, 3, 1), .flags = SAC_OP_ELEMENTWISE,
                                     .shape = where_shape, .ref = where_ref};

/* ---- Clip: bounds are attributes up to opset 10, inputs after ---- */

static sac_result clip_shape(struct sac_op_call *c)
{
    SAC_CHECK(c, c->in[0].dtype != SAC_BOOL, "input of dtype bool");
    for (int i = 1; i < 3; i++)
        if (sac_op_has(c, i))
            SAC_CHECK(c, c->in[i].dtype == c->in[0].dtype && sac_operand_elements(&c->in[i]) == 1,
                      "bound %d is not one number of dtype %s", i, sac_in_dtype(c, 0));
    return sac_shape_same(c);
}

#define CLIP(type)                                                                    \
    {                                                                                 \
        const type *x = c->in[0].data, *lo = has_lo ? c->in[1].data : NULL;           \
        const type *hi = has_hi ? c->in[2].data : NULL;                               \
        type       *y = c->out[0].data;                                               \
        for (int64_t i = 0; i < n; i++) {                                             \
            type v = x[i];                                                            \
            v = lo && v < *lo ? *lo : v;                                              \
            y[i] = hi && v > *hi ? *hi : v; /* the upper bound wins over the lower */ \
        }                                                                             \
        return SAC_OK;                                                                \
    }

/* Through double: exact for the half precisions, and what the attributes give. */
static sac_result clip_doubles(struct sac_op_call *c, double lo, double hi, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double v = sac_operand_get(&c->in[0], i);
        v = v < lo ? lo : v;
        sac_operand_set(&c->out[0], i, v > hi ? hi : v);
    }
    return SAC_OK;
}

static sac_result clip_ref(struct sac_op_call *c)
{
    int64_t n = sac_operand_elements(&c->in[0]);
    bool    has_lo = sac_op_has(c, 1), has_hi = sac_op_has(c, 2);
    if (c->node->opset < 11)
        return clip_doubles(c, sac_attr_float(c->node, "min", -INFINITY),
                            sac_attr_float(c->node, "max", INFINITY), n);
    switch (c->in[0].dtype) {
    case SAC_F32: CLIP(float)
    case SAC_F64: CLIP(double)
    case SAC_I8: CLIP(int8_t)
    case SAC_U8: CLIP(uint8_t)
    case SAC_I16: CLIP(int16_t)
    case SAC_U16: CLIP(uint16_t)
    case SAC_I32: CLIP(int32_t)
    case SAC_U32: CLIP(uint32_t)
    case SAC_I64: CLIP(int64_t)
    case SAC_U64: CLIP(uint64_t)
    default:
        return clip_doubles(c, has_lo ? sac_operand_get(&c->in[1], 0) : -INFINITY,
                            has_hi ? sac_operand_get(&c->in[2], 0) : INFINITY, n);
    }
}

const struct sac_op sac_row_Clip = {SAC_ROW(Clip, 6, 1, 3, 1), .flags = SAC_OP_ELEMENTWISE,
                                    .shape = clip_shape, .ref = clip_ref};
