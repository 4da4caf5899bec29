/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax and Hardmax. */
#include <math.h>

#include "engine/ops/batch.h"
#include "engine/ops/util.h"

/* Up to opset 12 the line runs over `axis` and everything after it. */
struct lines {
    int64_t outer, length, inner;
};

static sac_result read_lines(struct sac_op_call *c, struct lines *l)
{
    const struct sac_operand *in = &c->in[0];
    bool                      old = c->node->opset < 13;
    int                       axis;
    SAC_TRY(sac_op_axis(c, old ? 1 : -1, in->rank, &axis));
    int after = old ? in->rank : axis + 1;
    l->outer = sac_dims_product(axis, in->dims);
    l->length = sac_dims_product(after - axis, in->dims + axis);
    l->inner = sac_dims_product(in->rank - after, in->dims + after);
    return SAC_OK;
}

static sac_result softmax_shape(struct sac_op_call *c)
{
    struct lines l;
    SAC_CHECK(c, sac_dtype_is_float(c->in[0].dtype), "input of dtype %s; have the float types",
              sac_in_dtype(c, 0));
    SAC_TRY(read_lines(c, &l));
    return sac_shape_same(c);
}

static void softmax(double *x, int64_t n, double max)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

static void log_softmax(double *x, int64_t n, double max)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        x[i] -= max + log(sum);
}

/* 1 at the first maximum. */
static void hardmax(double *x, int64_t n, double max)
{
    bool found = false;
    for (int64_t i = 0; i < n; i++) {
        bool here = !found && x[i] == max;
        x[i] = here;
        found |= here;
    }
}

static sac_result run_lines(struct sac_op_call *c, void (*fn)(double *x, int64_t n, double max))
{
    struct lines l;
    SAC_TRY(read_lines(c, &l));
    double *line = sac_alloc((size_t)l.length * sizeof *line);
    if (!line)
        return sac_op_no_memory(c);
    for (int64_t i = 0; l.length && i < l.outer * l.inner; i++) {
        int64_t start = i / l.inner * l.length * l.inner + i % l.inner;
        sac_read_doubles(&c->in[0], start, l.inner, l.length, line);
        double max = line[0];
        for (int64_t k = 1; k < l.length; k++)
            max = fmax(max, line[k]);
        fn(line, l.length, max);
        sac_write_doubles(&c->out[0], start, l.inner, l.length, line);
    }
    sac_free(line);
    return SAC_OK;
}

static sac_result softmax_ref(struct sac_op_call *c)
{
    return run_lines(c, softmax);
}

static sac_result log_softmax_ref(struct sac_op_call *c)
{
    return run_lines(c, log_softmax);
}

static sac_result hardmax_ref(struct sac_op_call *c)
{
    return run_lines(c, hardmax);
}

/* Before opset 13 all axes from `axis` on were flattened into one; since then only `axis`
 * counts. */
static bool lines_batch(struct sac_batch_walk *w, struct sac_node *n, int k, int *out)
{
    int64_t axis = sac_attr_int(n, "axis", n->opset >= 13 ? -1 : 1);
    axis += axis < 0 ? n->inputs[0]->rank : 0;
    *out = k;
    return (n->opset >= 13 ? axis != k : axis > k) ||
           sac_batch_refuse(w, "it works along the batch");
}

#define LINES_ROW(op, ref_fn)                                                                 \
    const struct sac_op sac_row_##op = {SAC_ROW(op, 1, 1, 1, 1), SAC_TOLERANCE(1e-6f, 1e-5f), \
                                        .shape = softmax_shape, .ref = ref_fn,                \
                                        .batch = lines_batch}
LINES_ROW(Softmax, softmax_ref);
LINES_ROW(LogSoftmax, log_softmax_ref);
LINES_ROW(Hardmax, hardmax_ref);
