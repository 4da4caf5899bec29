/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and constants: walk a graph with the shapes of its inputs known, infer everything else, and
 * compute at once what depends on constants and shapes alone. Shape arithmetic (Shape, Gather,
 * Concat, Reshape's target) disappears here; what stays are nodes whose work depends on the data.
 *
 *     struct sac_infer inf;
 *     res = sac_infer_init(&inf, dev, graph, &limits);
 *     inf.values[graph->inputs[0]->id] = (struct sac_operand){...};
 *     res = sac_infer_run(&inf);
 *     for (size_t i = 0; i < inf.work_count; i++)
 *         ... inf.work[i].node, inf.work[i].state ...
 *     sac_infer_finish(&inf);
 */
#ifndef SAC_ENGINE_INFER_H
#define SAC_ENGINE_INFER_H

#include "device/device.h"
#include "engine/op.h"

enum sac_work_state {
    SAC_WORK_STATIC,      /* shapes known: planned */
    SAC_WORK_DYNAMIC,     /* data decides its shapes, or it reads a value of such a node */
    SAC_WORK_UNSUPPORTED  /* only when tolerant */
};

struct sac_work {
    const struct sac_node *node;
    enum sac_work_state    state;
};

struct sac_infer {
    struct sac_device  *dev;
    struct sac_graph   *graph;
    uint64_t            memory_limit; /* for one value, and for all that folding makes */
    bool                tolerant;     /* go past what is not supported or wrong, for inspection */
    struct sac_operand *values;       /* by value id; not present: shape unknown; data: constant */
    struct sac_work    *work;         /* what is left to do, in order; If with a known condition is
                                         replaced by its branch */
    size_t              work_count, work_cap;
    struct sac_arena    arena;        /* folded constants and made nodes */
    uint64_t            folded_bytes, fold_limit;
    struct sac_op_call *call;         /* scratch: too large for the stack */
};

sac_result sac_infer_init(struct sac_infer *inf, struct sac_device *dev, struct sac_graph *g,
                          uint64_t memory_limit);
/* Errors   SAC_ERR_UNSUPPORTED, SAC_ERR_FORMAT, SAC_ERR_LIMIT, each naming the layer. */
sac_result sac_infer_run(struct sac_infer *inf);
void       sac_infer_finish(struct sac_infer *inf);

/* Does a row cover the node, subgraphs included? why: what is missing, as the middle of a sentence. */
bool sac_node_supported(const struct sac_node *n, char *why, size_t why_size);
/* The same as a fault: "layer 14 (Foo): opset 12 has no ..." */
sac_result sac_node_check_supported(sac_context *ctx, const struct sac_node *n);

/* Fill a call's operands for node n from values by id (graph->values[i]->id). */
void sac_call_fill(struct sac_op_call *c, sac_context *ctx, const struct sac_node *n,
                   const struct sac_operand *values);
/* After row->shape: outputs have a dtype and dims that can be, each within the limit. */
sac_result sac_call_check_outputs(const struct sac_op_call *c, uint64_t memory_limit);

/* Compute, once, the nodes of g that read constants alone, and drop them. */
sac_result sac_graph_fold(struct sac_graph *g, struct sac_device *dev, uint64_t memory_limit);

#endif
