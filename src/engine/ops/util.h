/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operators' files: the start of a row, checks, walks over broadcast operands, and
 * the four classes in which every dtype is computed. */
#ifndef SAC_ENGINE_OPS_UTIL_H
#define SAC_ENGINE_OPS_UTIL_H

#include <string.h>

#include "engine/ops/op.h"

/* const struct sac_op sac_row_Relu = {SAC_ROW(Relu, 1, 1, 1, 1), .shape = ..., .ref = ...}; */
#define SAC_ROW(op, since, in_min, in_max, out_max)                   \
    .id = SAC_OP_##op, .name = #op, .domain = "", .opset_min = since, \
    .opset_max = SAC_OPSET_NEWEST, .input_min = in_min, .input_max = in_max, .output_max = out_max

#define SAC_TOLERANCE(abs, rel) .tolerance_abs = abs, .tolerance_rel = rel

#define SAC_TRY(call)             \
    do {                          \
        sac_result try_ = (call); \
        if (try_ != SAC_OK)       \
            return try_;          \
    } while (0)

/* The model is invalid unless cond holds. */
#define SAC_CHECK(c, cond, ...)                                 \
    do {                                                        \
        if (!(cond))                                            \
            return SAC_OP_FAIL(c, SAC_ERR_FORMAT, __VA_ARGS__); \
    } while (0)

static inline const char *sac_in_dtype(const struct sac_op_call *c, int i)
{
    return sac_dtype_name(c->in[i].dtype);
}

/* ---- outputs, in shape functions ---- */

/* Sets output i. Ranks over SAC_RANK_MAX, negative dims and sizes that overflow are errors. An
 * output that the node leaves out is skipped. */
sac_result               sac_shape_out(struct sac_op_call *c, int i, enum sac_dtype dtype, int rank,
                                       const int64_t *dims);
static inline sac_result sac_shape_out_like(struct sac_op_call *c, int i, int in)
{
    return sac_shape_out(c, i, c->in[in].dtype, c->in[in].rank, c->in[in].dims);
}
/* Broadcasts two shapes by NumPy's rule; false when they do not fit. */
bool sac_broadcast_dims(int *rank, int64_t *dims, int other_rank, const int64_t *other);

/* ---- attributes that became inputs ---- */

/* From the attribute if the node has it, else from the input; count 0 when neither is there. */
sac_result sac_op_ints(const struct sac_op_call *c, const char *attr, int input, int64_t *out,
                       size_t max, size_t *count);
/* The same for axes: checked against the rank, non-negative and distinct. */
sac_result sac_op_axes(const struct sac_op_call *c, const char *attr, int input, int rank,
                       int *axes, int *count);

/* The attribute 'axis', counted from the end when negative. */
sac_result sac_op_axis(const struct sac_op_call *c, int64_t fallback, int rank, int *axis);
/* Outputs beyond the node's count are not set at all. */
static inline bool sac_op_wants(const struct sac_op_call *c, int output)
{
    return output < c->out_count && c->out[output].present;
}
static inline sac_result sac_op_no_memory(const struct sac_op_call *c)
{
    return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for working space");
}

/* ---- kinds of dtype ---- */

bool sac_dtype_is_float(enum sac_dtype t);
bool sac_dtype_is_integer(enum sac_dtype t); /* without bool */

/* Each dtype is computed in one of four C types: float (also for the half precisions), double,
 * int64_t (all other integers and bool), uint64_t. */
enum sac_class { SAC_CLASS_F32, SAC_CLASS_F64, SAC_CLASS_I64, SAC_CLASS_U64, SAC_CLASS_COUNT };
enum sac_class sac_dtype_class(enum sac_dtype t);

/* Converts n elements from `start` on, `stride` apart, to the class's type and back. Integers
 * wrap. */
void sac_load(enum sac_dtype t, const void *base, int64_t start, int64_t stride, int64_t n,
              void *out);
void sac_store(enum sac_dtype t, void *base, int64_t start, int64_t n, const void *values);

/* n elements, `stride` apart, of any dtype as doubles and back (rounded, saturated). */
void sac_read_doubles(const struct sac_operand *o, int64_t start, int64_t stride, int64_t n,
                      double *out);
void sac_write_doubles(const struct sac_operand *o, int64_t start, int64_t stride, int64_t n,
                       const double *values);

/* A floating-point operand as dense float or double: its own memory when it already has that type,
 * else a copy that sac_floats_done frees (NULL: no memory). */
const float  *sac_floats(const struct sac_operand *o);
void          sac_floats_done(const struct sac_operand *o, const float *f);
const double *sac_doubles(const struct sac_operand *o);
void          sac_doubles_done(const struct sac_operand *o, const double *d);

/* ---- walks ---- */

/* Visits an index space as runs along its innermost dimension, with the offset of each operand.
 *
 *     struct sac_walk w;
 *     sac_walk_init(&w, out->rank, out->dims);
 *     int a = sac_walk_operand(&w, &c->in[0]);
 *     for (sac_walk_start(&w); w.run; sac_walk_next(&w))
 *         kernel(x + w.at[a], w.step[a], w.run);
 */
enum { SAC_WALK_MAX = 8, SAC_WALK_DIMS = 2 * SAC_RANK_MAX + 1 };
struct sac_walk {
    int     rank, count;
    int64_t dims[SAC_WALK_DIMS];
    int64_t steps[SAC_WALK_MAX][SAC_WALK_DIMS];
    int64_t index[SAC_WALK_DIMS];
    int64_t at[SAC_WALK_MAX];   /* offset of the run's first element */
    int64_t step[SAC_WALK_MAX]; /* from one element of the run to the next */
    int64_t run;                /* elements in a run; 0: the walk is over */
};
void sac_walk_init(struct sac_walk *w, int rank, const int64_t *dims);
int  sac_walk_operand(struct sac_walk *w, const struct sac_operand *o); /* dense, broadcast */
int  sac_walk_strides(struct sac_walk *w, int64_t offset, const int64_t *strides);
void sac_walk_start(struct sac_walk *w);
void sac_walk_next(struct sac_walk *w);

/* Strides in elements of a dense shape. */
void    sac_dense_strides(int rank, const int64_t *dims, int64_t *strides);
int64_t sac_dims_product(int rank, const int64_t *dims);

/* Copy an index space of elements of `bytes` (1, 2, 4, 8) each; strides in elements, may be zero or
 * negative. */
void sac_copy_strided(void *dst, int64_t dst_offset, const int64_t *dst_strides, const void *src,
                      int64_t src_offset, const int64_t *src_strides, int rank, const int64_t *dims,
                      size_t bytes);

#endif
