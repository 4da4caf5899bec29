/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: MatMul over broadcast batches, and Gemm. */
#include "engine/ops/batch.h"
#include "engine/ops/matmul.h"
#include "engine/ops/util.h"

/* y = A B, with A and B at these elements of their arrays; the inner loop runs along rows of B and
 * Y. */
#define PRODUCT(type, name)                                                               \
    static void product_##name(struct sac_product p, int64_t a_at, int64_t b_at, type *y) \
    {                                                                                     \
        const type *a = (const type *)p.a + a_at, *b = (const type *)p.b + b_at;          \
        for (int64_t i = 0; i < p.m; i++, y += p.n) {                                     \
            for (int64_t j = 0; j < p.n; j++)                                             \
                y[j] = 0;                                                                 \
            for (int64_t l = 0; l < p.k; l++) {                                           \
                type        v = a[i * p.a_row + l * p.a_col];                             \
                const type *row = b + l * p.b_row;                                        \
                if (p.b_col == 1)                                                         \
                    for (int64_t j = 0; j < p.n; j++)                                     \
                        y[j] += v * row[j];                                               \
                else                                                                      \
                    for (int64_t j = 0; j < p.n; j++)                                     \
                        y[j] += v * row[j * p.b_col];                                     \
            }                                                                             \
        }                                                                                 \
    }
PRODUCT(float, f32)
PRODUCT(double, f64)
PRODUCT(uint64_t, u64) /* integers wrap: signed ones have the same low bits */

static void product(enum sac_class k, const struct sac_product *p, int64_t a, int64_t b, void *y)
{
    switch (k) {
    case SAC_CLASS_F32: product_f32(*p, a, b, y); break;
    case SAC_CLASS_F64: product_f64(*p, a, b, y); break;
    default: product_u64(*p, a, b, y);
    }
}

/* Both operands as dense arrays of their class, and room for the result. */
struct arrays {
    void *a, *b, *y;
};

static void *class_array(const struct sac_operand *o, bool load)
{
    void *p = sac_alloc((size_t)sac_operand_elements(o) * sizeof(double));
    if (p && load)
        sac_load(o->dtype, o->data, 0, 1, sac_operand_elements(o), p);
    return p;
}

static sac_result arrays_init(const struct sac_op_call *c, struct arrays *v)
{
    *v = (struct arrays){class_array(&c->in[0], true), class_array(&c->in[1], true),
                         class_array(&c->out[0], false)};
    return v->a && v->b && v->y ? SAC_OK : sac_op_no_memory(c);
}

static void arrays_finish(struct arrays *v)
{
    sac_free(v->a);
    sac_free(v->b);
    sac_free(v->y);
}

/* ---- MatMul ---- */

sac_result sac_matmul_shape(struct sac_op_call *c, int ia, int ib, enum sac_dtype dtype)
{
    const struct sac_operand *a = &c->in[ia], *b = &c->in[ib];
    SAC_CHECK(c, a->rank >= 1 && b->rank >= 1, "a product with a scalar");
    int64_t k = a->dims[a->rank - 1], dims[SAC_RANK_MAX] = {0};
    int64_t other = b->dims[SAC_MAX(b->rank - 2, 0)];
    SAC_CHECK(c, k == other, "a product over %lld and %lld numbers", (long long)k,
              (long long)other);
    int rank = SAC_MAX(a->rank - 2, 0);
    memcpy(dims, a->dims, (size_t)rank * sizeof *dims);
    SAC_CHECK(c, sac_broadcast_dims(&rank, dims, SAC_MAX(b->rank - 2, 0), b->dims),
              "the batch dimensions do not broadcast");
    if (a->rank > 1)
        dims[rank++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[rank++] = b->dims[b->rank - 1];
    return sac_shape_out(c, 0, dtype, rank, dims);
}

/* The batch dimensions of an operand: all but its last two. */
static struct sac_operand batch_of(const struct sac_operand *o)
{
    struct sac_operand batch = {.rank = SAC_MAX(o->rank - 2, 0)};
    memcpy(batch.dims, o->dims, sizeof batch.dims);
    return batch;
}

void sac_matmul_run(const struct sac_operand *a, const struct sac_operand *b, enum sac_class k,
                    const void *da, const void *db, void *y)
{
    struct sac_product p = {.m = a->rank > 1 ? a->dims[a->rank - 2] : 1,
                            .n = b->rank > 1 ? b->dims[b->rank - 1] : 1,
                            .k = a->dims[a->rank - 1],
                            .a = da,
                            .b = db,
                            .a_col = 1,
                            .b_col = 1};
    p.a_row = p.k;
    p.b_row = p.n;
    struct sac_operand ba = batch_of(a), bb = batch_of(b);
    struct sac_walk    w;
    int                rank = ba.rank;
    int64_t            dims[SAC_RANK_MAX];
    memcpy(dims, ba.dims, sizeof dims);
    sac_broadcast_dims(&rank, dims, bb.rank, bb.dims);
    sac_walk_init(&w, rank, dims);
    sac_walk_operand(&w, &ba);
    sac_walk_operand(&w, &bb);
    size_t bytes = k == SAC_CLASS_F32 ? sizeof(float) : sizeof(double);
    char  *to = y;
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++, to += (size_t)(p.m * p.n) * bytes)
            product(k, &p, (w.at[0] + i * w.step[0]) * p.m * p.k,
                    (w.at[1] + i * w.step[1]) * p.k * p.n, to);
}

static sac_result matmul_shape(struct sac_op_call *c)
{
    SAC_CHECK(c, c->in[0].dtype == c->in[1].dtype && c->in[0].dtype != SAC_BOOL,
              "inputs of dtypes %s and %s", sac_in_dtype(c, 0), sac_in_dtype(c, 1));
    return sac_matmul_shape(c, 0, 1, c->in[0].dtype);
}

static sac_result matmul_ref(struct sac_op_call *c)
{
    const struct sac_operand *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    enum sac_class            k = sac_dtype_class(a->dtype);
    struct arrays             v;
    if (a->dtype == SAC_F32 || a->dtype == SAC_F64 || a->dtype == SAC_I64 || a->dtype == SAC_U64) {
        sac_matmul_run(a, b, k, a->data, b->data, y->data);
        return SAC_OK;
    }
    sac_result res = arrays_init(c, &v);
    if (res == SAC_OK) {
        sac_matmul_run(a, b, k, v.a, v.b, v.y);
        sac_store(y->dtype, y->data, 0, sac_operand_elements(y), v.y);
    }
    arrays_finish(&v);
    return res;
}

static int64_t matmul_flops(const struct sac_op_call *c)
{
    return 2 * sac_operand_elements(&c->out[0]) * c->in[0].dims[c->in[0].rank - 1];
}

static bool matmul_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    const struct sac_value *a = n->inputs[0], *b = n->inputs[1];
    int                     in_b = sac_batch_axis(w, b), rank = SAC_MAX(a->rank, b->rank);
    if (in_b < 0 && k >= 0 && k < a->rank - 1 && b->rank >= 1) { /* rows or stacks of a */
        *out = k + (rank - a->rank);
        bool stack = k < a->rank - 2;
        int  same = b->rank - (a->rank - k);
        return !stack || same < 0 || b->dims[same] == 1 ||
               sac_batch_refuse(w, "b has a batch of its own");
    }
    if (k >= 0 && in_b >= 0 && a->rank == b->rank && k == in_b && k < a->rank - 2) {
        *out = k;
        return true;
    }
    return sac_batch_refuse(w, "it multiplies along the batch");
}

const struct sac_op sac_row_MatMul = {
    SAC_ROW(MatMul, 1, 2, 2, 1), SAC_TOLERANCE(1e-4f, 1e-4f), .flags = SAC_OP_BATCH_ANYWHERE,
    .shape = matmul_shape,       .ref = matmul_ref,           .flops = matmul_flops,
    .batch = matmul_batch};

/* ---- Gemm: alpha A' B' + beta C ---- */

static struct sac_product gemm_product(const struct sac_op_call *c)
{
    const int64_t *a = c->in[0].dims, *b = c->in[1].dims;
    bool           ta = sac_attr_int(c->node, "transA", 0), tb = sac_attr_int(c->node, "transB", 0);
    return (struct sac_product){.m = a[ta ? 1 : 0],
                                .k = a[ta ? 0 : 1],
                                .n = b[tb ? 0 : 1],
                                .a_row = ta ? 1 : a[1],
                                .a_col = ta ? a[1] : 1,
                                .b_row = tb ? 1 : b[1],
                                .b_col = tb ? b[1] : 1};
}

static sac_result gemm_shape(struct sac_op_call *c)
{
    const struct sac_operand *a = &c->in[0], *b = &c->in[1];
    SAC_CHECK(c, a->rank == 2 && b->rank == 2, "matrices of %d and %d dimensions", a->rank,
              b->rank);
    SAC_CHECK(c, a->dtype == b->dtype && a->dtype != SAC_BOOL, "inputs of dtypes %s and %s",
              sac_in_dtype(c, 0), sac_in_dtype(c, 1));
    struct sac_product p = gemm_product(c);
    int64_t            inner = b->dims[sac_attr_int(c->node, "transB", 0) ? 1 : 0];
    int64_t            dims[2] = {p.m, p.n};
    SAC_CHECK(c, p.k == inner, "a product over %lld and %lld numbers", (long long)p.k,
              (long long)inner);
    if (sac_op_has(c, 2)) {
        int     rank = 2;
        int64_t sum[SAC_RANK_MAX] = {p.m, p.n};
        SAC_CHECK(c,
                  c->in[2].dtype == a->dtype && c->in[2].rank <= 2 &&
                      sac_broadcast_dims(&rank, sum, c->in[2].rank, c->in[2].dims) &&
                      sum[0] == p.m && sum[1] == p.n,
                  "the third input does not broadcast to the result");
    }
    return sac_shape_out(c, 0, a->dtype, 2, dims);
}

/* y = alpha * product + beta * addend, in place of the product. */
static void gemm_finish(struct sac_op_call *c, enum sac_class k, void *product_data)
{
    const struct sac_operand *y = &c->out[0], *add = &c->in[2];
    double alpha = sac_attr_float(c->node, "alpha", 1), beta = sac_attr_float(c->node, "beta", 1);
    bool   adds = sac_op_has(c, 2);
    struct sac_walk w;
    sac_walk_init(&w, 2, y->dims);
    sac_walk_operand(&w, y);
    if (adds)
        sac_walk_operand(&w, add);
    for (sac_walk_start(&w); w.run; sac_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            int64_t at = w.at[0] + i * w.step[0];
            double  plus = adds ? beta * sac_operand_get(add, w.at[1] + i * w.step[1]) : 0;
            double  v = k == SAC_CLASS_F32   ? ((float *)product_data)[at]
                        : k == SAC_CLASS_F64 ? ((double *)product_data)[at]
                                             : (double)((int64_t *)product_data)[at];
            sac_operand_set(y, at, alpha * v + plus);
        }
}

static sac_result gemm_ref(struct sac_op_call *c)
{
    enum sac_class     k = sac_dtype_class(c->in[0].dtype);
    struct sac_product p = gemm_product(c);
    struct arrays      v;
    sac_result         res = arrays_init(c, &v);
    if (res == SAC_OK) {
        p.a = v.a;
        p.b = v.b;
        product(k, &p, 0, 0, v.y);
        gemm_finish(c, k, v.y);
    }
    arrays_finish(&v);
    return res;
}

static int64_t gemm_flops(const struct sac_op_call *c)
{
    struct sac_product p = gemm_product(c);
    return 2 * p.m * p.n * p.k;
}

static bool gemm_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    const struct sac_value *c = n->input_count > 2 ? n->inputs[2] : NULL;
    if (k != 0 || sac_attr_int(n, "transA", 0) || sac_batch_axis(w, n->inputs[1]) >= 0)
        return sac_batch_refuse(w, "it multiplies along the batch");
    *out = 0;
    return !c || sac_batch_axis(w, c) == 0 || c->rank < 2 || c->dims[0] == 1 ||
           sac_batch_refuse(w, "its bias has another size where the batch is");
}

const struct sac_op sac_row_Gemm = {SAC_ROW(Gemm, 7, 2, 3, 1), SAC_TOLERANCE(1e-4f, 1e-4f),
                                    .shape = gemm_shape,       .ref = gemm_ref,
                                    .flops = gemm_flops,       .batch = gemm_batch};
