/* SPDX-License-Identifier: Apache-2.0 */
/* Operators: one row each, with its name, the opsets it covers, how it infers shapes, how exact it
 * must be, what it does to a batch, and its reference kernel in plain C. A device adds fast kernels
 * in a table of its own (engine/kernel/kernel.h), indexed by the same id, so support and dispatch
 * cannot disagree.
 *
 * A node's way: its row is looked up by name (rows.c); `shape` sets its outputs' dtypes and dims,
 * given those of its inputs (infer.c walks a whole graph so, and computes at once what depends only
 * on constants; probe.c does it twice to find open dims); `ref` computes it.
 *
 * Read first: trilu.c, a whole operator on a page; then util.h, what operators share, and reads.h,
 * what they share with the devices' kernels. Each other file is an operator or a family of them.
 *
 * To add one: src/engine/ops/<name>.c, a line in list.h, cases in tests/parity/cases.c.
 */
#ifndef SAC_ENGINE_OPS_OP_H
#define SAC_ENGINE_OPS_OP_H

#include "base/thread.h"
#include "engine/graph/graph.h"

enum sac_op_id {
#define SAC_OP(name, row) SAC_OP_##name,
#include "engine/ops/list.h"
#undef SAC_OP
    SAC_OP_COUNT
};

/* of ONNX 1.23; rows up to this one take newer files too */
enum { SAC_OPSET_NEWEST = 28 };
enum { SAC_OP_INPUTS_MAX = 64, SAC_OP_OUTPUTS_MAX = 64 };

/* One input or output as a shape function or kernel sees it. */
struct sac_operand {
    enum sac_dtype dtype;
    int            rank;
    int64_t        dims[SAC_RANK_MAX];
    void          *data;    /* NULL in a shape function when the value is not known yet */
    bool           present; /* false: optional, left out */
};

struct sac_op_call {
    sac_context           *ctx;
    const struct sac_node *node;
    struct sac_operand     in[SAC_OP_INPUTS_MAX];
    struct sac_operand     out[SAC_OP_OUTPUTS_MAX];
    /* of the node; the rest are not present */
    int                     in_count, out_count;
    struct sac_worker_pool *workers; /* may be NULL */
};

enum sac_op_flags {
    /* out[0] element i depends on element i of the inputs alone (after broadcasting); may run in
     * place on an input of out[0]'s size and dtype */
    SAC_OP_ELEMENTWISE = 1 << 0,
    SAC_OP_VIEW = 1 << 1, /* out[0] holds in[0]'s bytes in the same order: Reshape, Squeeze, ... */
    SAC_OP_RANDOM = 1 << 2, /* never folded */
    /* reads only the inputs' shapes; their data may be NULL: Shape, Size */
    SAC_OP_OF_SHAPE = 1 << 3,
    SAC_OP_CONTROL = 1 << 4, /* If, Loop, Scan: the executor runs its subgraphs, ref is NULL */
    SAC_OP_BATCH_ANYWHERE = 1 << 5, /* the batch may enter through any input */
    SAC_OP_QUANTISES = 1 << 6       /* a number of 8 bits may be rounded the other way: a step */
};

/* Follows the batch axis through a node (ops/batch.h): sets *out to the batch axis of its outputs.
 * k: the batch axis of input 0. False: the batch cannot be opened; the reason is set. */
struct sac_batch_walk;
typedef bool sac_batch_rule(struct sac_batch_walk *w, struct sac_node *n, int k, int *out);

struct sac_op {
    enum sac_op_id id;
    const char    *name;      /* "Conv" */
    const char    *domain;    /* "" for ONNX's own, "saccade" for fused groups */
    int opset_min, opset_max; /* versions of the domain that this row implements; a file's
                                 opset over opset_max is accepted when ONNX did not change
                                 the operator since (opset_max is the newest known) */
    int      input_min, input_max, output_max;
    unsigned flags;
    float    tolerance_abs, tolerance_rel; /* of another kernel against this reference */

    /* NULL: all nodes are supported. Otherwise why[] gets what is not supported about this node. */
    bool (*supports)(const struct sac_node *node, char *why, size_t why_size);
    /* Sets dtype, rank and dims of every present output from the inputs' (and from the data of
     * those that are constant or already computed). SAC_AGAIN: the shape depends on values that are
     * not known yet (data NULL). Errors name the node through SAC_OP_FAIL. Inputs come from files:
     * ranks, dims, divisions by zero and overflow are checked here, so that ref and the devices'
     * kernels can trust them. */
    sac_result (*shape)(struct sac_op_call *c);
    /* Compute. Inputs and outputs are dense and plain; all data pointers are set (0-sized ones
     * too). */
    sac_result (*ref)(struct sac_op_call *c);
    /* Multiply-adds times two, after shape; NULL: too few to count (about one per output
     * element). */
    int64_t (*flops)(const struct sac_op_call *c);
    /* What it does to a batch. NULL: elementwise rows follow NumPy's broadcasting, for others a
     * fixed batch stays fixed. */
    sac_batch_rule *batch;
    /* What the functions of its file know of this operator among those that they serve. */
    const void *own;
};

/* The row for a name, or NULL. One row covers a range of opsets; the caller checks the node's. */
const struct sac_op *sac_op_find(const char *domain, const char *name);
const struct sac_op *sac_op_row(enum sac_op_id id);
/* sac_graph_node, with the node's row looked up (NULL: there is none). */
struct sac_node *sac_op_node(struct sac_graph *g, const char *domain, const char *op_type,
                             int inputs, int outputs, const struct sac_node *like);

/* "layer 14 (Resize): mode 'cubic'; have nearest, linear" */
/* Evaluates to the code itself, so that the compiler knows that it is not SAC_OK. */
#define SAC_OP_FAIL(c, res, ...) (sac_op_fail(c, res, __VA_ARGS__), (res))
sac_result sac_op_fail(const struct sac_op_call *c, sac_result res, const char *fmt, ...)
    SAC_PRINTF(3, 4);

/* ---- for shape functions and kernels ---- */

/* Does the node have this input? */
static inline bool sac_op_has(const struct sac_op_call *c, int input)
{
    return input < c->in_count && c->in[input].present;
}
bool sac_operand_same_dims(const struct sac_operand *a, const struct sac_operand *b);

int64_t    sac_operand_elements(const struct sac_operand *o);
size_t     sac_operand_bytes(const struct sac_operand *o);
sac_result sac_shape_same(struct sac_op_call *c);      /* out[0] like in[0] */
sac_result sac_shape_broadcast(struct sac_op_call *c); /* out[0] over all inputs, dtype of in[0] */
/* Negative axes counted from the end; false when out of range. */
bool sac_axis_normalise(int64_t axis, int rank, int *out);
/* Values of an int32/int64 input; SAC_AGAIN when they are not known. out has room for max. */
sac_result sac_operand_ints(const struct sac_op_call *c, int input, int64_t *out, size_t max,
                            size_t *count);
/* Any number as double, and back with the dtype's rounding and saturation. */
double sac_operand_get(const struct sac_operand *o, int64_t i);
void   sac_operand_set(const struct sac_operand *o, int64_t i, double v);
/* TensorProto.DataType of the specification; SAC_DTYPE_NONE when we have none like it. */
enum sac_dtype sac_dtype_from_onnx(int64_t type);
float          sac_half_to_float(uint16_t h);
uint16_t       sac_float_to_half(float f);
float          sac_bf16_to_float(uint16_t h);
uint16_t       sac_float_to_bf16(float f);
float          sac_f8_to_float(uint8_t v);
uint8_t        sac_float_to_f8(float f); /* rounded to even; NaN stays, the rest saturates */

#endif
