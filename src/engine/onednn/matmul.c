/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and Gemm by oneDNN, plain layout. */
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/onednn/onednn.h"

enum { RANK_MAX = 6 }; /* of oneDNN's matrix product in all versions */

/* Below this, saccade's own kernel handles a constant second matrix. From this size on, a computed
 * one is worth the round trip to the worker thread. */
static const double WORTH_CONSTANT_FLOPS = 200e6, WORTH_FLOPS = 1e6;

struct product {
    struct primitive p;
    int              threads;
};

struct request {
    struct making m;
    int           rank;
    int64_t       dims[3][RANK_MAX], strides[3][RANK_MAX]; /* of a, b, out */
    int64_t       bias[RANK_MAX], bias_strides[RANK_MAX];
};

static void dense(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= dims[d];
    }
}

static void swap_last_two(int rank, int64_t *values)
{
    const int64_t t = values[rank - 1];
    values[rank - 1] = values[rank - 2];
    values[rank - 2] = t;
}

/* Batch dims of both, filled up with ones; a vector operand is left to the reference. */
static bool read_matmul(struct request *r, const struct sac_op_call *c)
{
    const struct sac_operand *const o[3] = {&c->in[0], &c->in[1], &c->out[0]};
    r->rank = SAC_MAX(o[0]->rank, o[1]->rank);
    if (o[0]->rank < 2 || o[1]->rank < 2 || r->rank > RANK_MAX || o[2]->rank != r->rank)
        return false;
    for (int k = 0; k < 3; k++) {
        for (int d = 0; d < r->rank; d++) {
            const int own = d - (r->rank - o[k]->rank);
            r->dims[k][d] = own >= 0 ? o[k]->dims[own] : 1;
        }
        dense(r->rank, r->dims[k], r->strides[k]);
    }
    return true;
}

static bool read_gemm(struct request *r, const struct sac_op_call *c)
{
    const struct sac_node *n = c->node;
    r->rank = 2;
    if (sac_attr_float(n, "alpha", 1) != 1 || sac_attr_float(n, "beta", 1) != 1)
        return false;
    const struct sac_operand *const o[3] = {&c->in[0], &c->in[1], &c->out[0]};
    for (int k = 0; k < 3; k++) {
        memcpy(r->dims[k], o[k]->dims, 2 * sizeof(int64_t));
        dense(2, r->dims[k], r->strides[k]);
        if (k < 2 && sac_attr_int(n, k ? "transB" : "transA", 0)) {
            swap_last_two(2, r->dims[k]);
            swap_last_two(2, r->strides[k]);
        }
    }
    r->m.has_bias = c->in_count > 2 && c->in[2].present;
    if (!r->m.has_bias)
        return true;
    const struct sac_operand *b = &c->in[2];
    if (b->rank > 2)
        return false;
    for (int d = 0; d < 2; d++) {
        const int own = d - (2 - b->rank);
        r->bias[d] = own >= 0 ? b->dims[own] : 1;
    }
    dense(2, r->bias, r->bias_strides);
    return true;
}

static memory_desc given_weights(const void *request)
{
    const struct request *r = request;
    return desc_create(r->rank, r->dims[1], r->strides[1]);
}

static void make_desc(void *arg)
{
    struct request    *r = arg;
    const struct after none = {.alg = dnnl_alg_kind_undef};
    const bool         constant = r->m.plan->call->in[1].data != NULL;
    memory_desc        a = desc_create(r->rank, r->dims[0], r->strides[0]);
    memory_desc        b = desc_create(r->rank, r->dims[1], constant ? NULL : r->strides[1]);
    memory_desc        out = desc_create(r->rank, r->dims[2], r->strides[2]);
    memory_desc        bias = r->m.has_bias ? desc_create(r->rank, r->bias, r->bias_strides) : NULL;
    r->m.status = a && b && out && (bias || !r->m.has_bias)
                      ? matmul_desc(onednn_engine, a, b, bias, out, &none, &r->m.pd)
                      : dnnl_out_of_memory;
    desc_destroy(&a);
    desc_destroy(&b);
    desc_destroy(&out);
    desc_destroy(&bias);
}

static bool read_request(struct request *r, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    *r = (struct request){.m = {plan, false, make_desc, given_weights}};
    return c->node->op->id == SAC_OP_Gemm ? read_gemm(r, c) : read_matmul(r, c);
}

static struct sac_kernel_offer product_supports(struct sac_device                *dev,
                                                const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    struct sac_kernel_plan    plan = sac_kernel_unplaced(q);
    struct request            r;
    for (int i = 0; i < c->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    if (!sac_call_is_float(q->call) || sac_operand_elements(&c->in[0]) == 0 ||
        sac_operand_elements(&c->in[1]) == 0 || !read_request(&r, &plan))
        return sac_kernel_refuse("not float32, a vector, or scaled");
    const double flops =
        2.0 * (double)sac_operand_elements(&c->out[0]) * (double)r.dims[0][r.rank - 1];
    if (flops < (c->in[1].data ? WORTH_CONSTANT_FLOPS : WORTH_FLOPS))
        return sac_kernel_refuse("too small to hand over");
    return making_offer(&r.m, dev->params.threads, offer);
}

static void product_release(void *state)
{
    struct product *s = state;
    if (s)
        primitive_release(&s->p, s->threads);
    sac_free(s);
}

static sac_result product_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct request  r;
    struct product *s = sac_new(struct product);
    if (!s || !read_request(&r, plan)) {
        sac_free(s);
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    s->threads = dev->params.threads;
    const dnnl_status_t status = making_primitive(&r.m, s->threads, &s->p);
    if (status == dnnl_success) {
        plan->state = s;
        return SAC_OK;
    }
    product_release(s);
    return onednn_fail(plan->call, status, "a matrix product");
}

struct run {
    struct product *s;
    void *const *in, *const *out;
    void         *scratch;
    dnnl_status_t status;
};

static void run_on_worker(void *arg)
{
    struct run *r = arg;
    r->status = primitive_run(&r->s->p, r->in[0], r->in[1], r->s->p.bias ? r->in[2] : NULL,
                              r->out[0], r->scratch);
}

static sac_result product_run(struct sac_device *dev, void *state, void *const *in,
                              void *const *out, void *scratch, struct sac_device_stream *stream)
{
    struct run r = {state, in, out, scratch, dnnl_success};
    (void)stream;
    worker_call(dev->params.threads, run_on_worker, &r);
    if (r.status != dnnl_success)
        return SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "oneDNN fails at a matrix product (status %d)",
                        r.status);
    return SAC_OK;
}

const struct sac_kernel onednn_MatMul = {SAC_OP_MatMul, product_supports, product_prepare,
                                         product_run, product_release};
const struct sac_kernel onednn_Gemm = {SAC_OP_Gemm, product_supports, product_prepare, product_run,
                                       product_release};
