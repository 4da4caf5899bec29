/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and constants: given the shapes of a graph's inputs, infers all others and computes at
 * once everything that depends only on constants and shapes. Shape arithmetic (Shape, Gather,
 * Concat, Reshape's target) disappears here; the nodes that stay depend on the data.
 *
 *     struct sac_infer inf;
 *     res = sac_infer_init(&inf, graph, memory_limit);
 *     inf.values[graph->inputs[0]->id] = (struct sac_operand){...};
 *     res = sac_infer_run(&inf);
 *     for (size_t i = 0; i < inf.work_count; i++)
 *         ... inf.work[i].node, inf.work[i].state ...
 *     sac_infer_finish(&inf);
 */
#ifndef SAC_ENGINE_OPS_INFER_H
#define SAC_ENGINE_OPS_INFER_H

#include "engine/ops/op.h"

enum sac_work_state {
    SAC_WORK_STATIC,     /* shapes known: planned */
    SAC_WORK_DYNAMIC,    /* its shapes depend on the data, or it reads a value of such a node */
    SAC_WORK_UNSUPPORTED /* only when tolerant */
};

struct sac_work {
    const struct sac_node *node;
    enum sac_work_state    state;
};

struct sac_infer {
    struct sac_graph *graph;
    uint64_t          memory_limit; /* for one value, and for all folded constants together */
    bool              tolerant;     /* skip unsupported and invalid nodes, for inspection */
    bool              shapes_only;  /* float32 of 8-bit weights is not made: no shape needs it */
    /* by value id; not present: unknown; with data: constant */
    struct sac_operand *values;
    struct sac_work    *work; /* what is left to do, in order; If with a known condition is
                                 replaced by its branch */
    size_t              work_count, work_cap;
    struct sac_arena    arena;        /* folded constants and created nodes */
    int                *folded_reads; /* by value id: of its uses, how many nodes were folded */
    uint64_t            folded_bytes, fold_limit;
    struct sac_op_call *call; /* scratch: too large for the stack */
};

sac_result sac_infer_init(struct sac_infer *inf, struct sac_graph *g, uint64_t memory_limit);
/* Errors   SAC_ERR_UNSUPPORTED, SAC_ERR_FORMAT, SAC_ERR_LIMIT, each naming the layer. */
sac_result sac_infer_run(struct sac_infer *inf);
void       sac_infer_finish(struct sac_infer *inf);

/* Does a row cover the node, subgraphs included? why: what is missing, as part of a sentence. */
bool sac_node_supported(const struct sac_node *n, char *why, size_t why_size);
/* The same, setting the error: "layer 14 (Foo): opset 12 has no ..." */
sac_result sac_node_check_supported(sac_context *ctx, const struct sac_node *n);

/* Fill a call's operands for node n from values by id (graph->values[i]->id). */
void sac_call_fill(struct sac_op_call *c, sac_context *ctx, const struct sac_node *n,
                   const struct sac_operand *values);
/* After row->shape: checks that the outputs have a dtype and possible dims, each within the
 * limit. */
sac_result sac_call_check_outputs(const struct sac_op_call *c, uint64_t memory_limit);

/* Infers the shapes that do not depend on open dims, for ports and passes. A layer whose shapes do
 * not fit is an error when no dim is open, unless tolerant. */
sac_result sac_graph_probe(struct sac_graph *g, uint64_t memory_limit, bool tolerant);

/* Computes the nodes of g that read only constants, once, and removes them. Without weights, what
 * makes float32 of 8-bit constants stays, for passes/quantised.c. */
sac_result sac_graph_fold(struct sac_graph *g, uint64_t memory_limit, bool weights);

#endif
