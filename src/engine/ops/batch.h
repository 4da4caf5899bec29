/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator does to the batch, as a field of its row. A pass (passes/free_batch.c) follows
 * the batch axis from the inputs through every node to the outputs, and asks each node's rule: on
 * which axis do your outputs carry the batch, and what in you fixes it at 1? */
#ifndef SAC_ENGINE_OPS_BATCH_H
#define SAC_ENGINE_OPS_BATCH_H

#include "engine/ops/op.h"

enum sac_batch_edit_kind {
    SAC_BATCH_SHAPE,     /* input 1, the target of a Reshape */
    SAC_BATCH_AXES_ATTR, /* the attribute 'axes' */
    SAC_BATCH_AXES_INPUT /* input 1, axes */
};
/* A change that is applied once the whole graph is known to allow it. */
struct sac_batch_edit {
    struct sac_node         *node;
    enum sac_batch_edit_kind kind;
    int64_t                  ints[SAC_RANK_MAX];
    size_t                   count;
};

struct sac_batch_walk {
    struct sac_graph      *g;
    int                   *axis; /* by value id: the batch axis, -1: none */
    struct sac_batch_edit *edits;
    size_t                 edit_count, edit_cap;
    char                   why[128];
};

/* ---- rules that several operators share ---- */

/* By NumPy's broadcasting. The rule of elementwise rows that name none. */
bool sac_batch_elementwise(struct sac_batch_walk *w, struct sac_node *n, int k, int *out);
/* Convolution, pooling, normalisation: [N,C,...] to [N,...]. */
bool sac_batch_first(struct sac_batch_walk *w, struct sac_node *n, int k, int *out);
/* Operators that work along one axis, which must not be the batch: `axis`, where a node names none
 * the first, or the last. */
bool sac_batch_one_axis(struct sac_batch_walk *w, struct sac_node *n, int k, int *out);
bool sac_batch_last_axis(struct sac_batch_walk *w, struct sac_node *n, int k, int *out);

/* ---- for rules ---- */

/* Sets why; returns false. */
bool sac_batch_refuse(struct sac_batch_walk *w, const char *why);
/* The batch axis of a value (NULL: of one left out), -1: none. */
int  sac_batch_axis(const struct sac_batch_walk *w, const struct sac_value *v);
bool sac_batch_edit(struct sac_batch_walk *w, struct sac_batch_edit e);
/* Numbers of an int64 constant input, up to SAC_RANK_MAX; false when it is not one. */
bool sac_batch_ints(const struct sac_node *n, int input, int64_t *out, size_t *count);
/* Axes from an attribute or, in later opsets, an input. false: given, but not constant. */
bool sac_batch_axes(const struct sac_node *n, int input, int rank, int64_t *axes, size_t *count);
bool sac_batch_contains(const int64_t *list, size_t count, int64_t v);

#endif
