/* SPDX-License-Identifier: Apache-2.0 */
/* A value as a strided view of another: what Transpose, Reshape, Split, Slice, Gather of one index
 * and their like do to a value is a change of offset, dims and steps, so an operator that reads
 * through steps needs none of them; what Expand shows again lies at a step of 0. attention.c uses
 * it.
 *
 * A dim that a Reshape has made of several need not lie at one step: tokens of a batch and heads,
 * which an exporter counts together for a product, come apart again behind it. It is kept as parts.
 *
 * One dim of the base may be open. In the view's numbers a large prime stands for it, so that they
 * can be multiplied, divided and compared like any others; sac_strided_entry takes them apart. */
#ifndef SAC_ENGINE_PASSES_STRIDED_H
#define SAC_ENGINE_PASSES_STRIDED_H

#include "engine/ops/reads.h"
#include "engine/passes/pass.h"

enum { SAC_STRIDED_PARTS = 2 * SAC_RANK_MAX };

struct sac_strided_part {
    int64_t dim, step;
};
struct sac_strided {
    struct sac_value       *base;
    int                     rank, open; /* open: the base's open axis, -1: none */
    int64_t                 offset;
    struct sac_strided_part part[SAC_STRIDED_PARTS];
    int     first[SAC_RANK_MAX + 1]; /* dim d is made of parts first[d] to first[d + 1] */
    double  scale;                   /* the value is this times what the view sees */
    int64_t dim[SAC_RANK_MAX], step[SAC_RANK_MAX]; /* by sac_strided_settle */
};

/* v itself. False: more than one of its dims is open, or it is unknown or too large. */
bool sac_strided_dense(struct sac_strided *s, struct sac_value *v);
/* The same numbers in these dims; false when no parts describe them. */
bool    sac_strided_reshape(struct sac_strided *s, int rank, const int64_t *dims);
int64_t sac_strided_dim(const struct sac_strided *s, int d);
/* How many numbers of dim d lie at one step where not all of them do; else 1. */
int64_t sac_strided_inner(const struct sac_strided *s, int d);
/* Fills dim and step; false where the parts of a dim do not lie as one. */
bool sac_strided_settle(struct sac_strided *s);
/* A broadcast to these dims, SAC_DIM_OPEN for one that stays as it is; false: they do not fit, or
 * what is not known would be shown again. */
bool sac_strided_expand(struct sac_strided *s, int rank, const int64_t *dims);
/* Neighbours along dim d that show the same numbers become one; returns how many they were. */
int64_t sac_strided_join_copies(struct sac_strided *s, int d);
/* Two dims change places; the last two. */
void sac_strided_swap(struct sac_strided *s, int a, int b);
void sac_strided_turn(struct sac_strided *s);
/* A node that sac_strided_from can look through, seen from its output v: the input that it moves;
 * NULL: it is none. */
struct sac_value *sac_strided_before(const struct sac_value *v);

/* What v sees of the float32 value that lies `depth` nodes before it; false: it is no strided
 * view. */
bool sac_strided_from(struct sac_strided *s, struct sac_value *v, int depth);
/* The same, and what the node `same` (NULL: none) makes of its first input counts as that input: an
 * operator of one number, or one along lines, that the caller does to the view's numbers. */
bool              sac_strided_through(struct sac_strided *s, struct sac_value *v, int depth,
                                      const struct sac_node *same);
struct sac_value *sac_strided_before_or(const struct sac_value *v, const struct sac_node *same);
/* How the numbers of v lie in `after`, which Transposes, Reshapes and what keeps the shape make
 * of it, `depth` of them: the view's base is `after`. */
bool sac_strided_into(struct sac_strided *s, struct sac_value *v, struct sac_value *after,
                      int depth);
/* Takes a number of the view apart: `*each` for every entry of the open axis, or in all. */
bool sac_strided_entry(int64_t number, int64_t *each, bool *open);
/* A dim of the view as a value has it: open where it counts for each entry of the open axis. */
int64_t sac_strided_value_dim(int64_t number);
/* y has the SAC_VIEW_RANK dims of the view. */
void sac_strided_set_dims(const struct sac_strided *s, struct sac_value *y);
/* The numbers of a settled view of SAC_VIEW_RANK dims as fused nodes have them, and which of them
 * count for each entry of the open axis. False: there are no such numbers. */
bool sac_strided_entries(const struct sac_strided *s, int64_t *entry, int64_t *bits);
/* Sets such a view, which has them, as the attribute `name`, and open_name where it is open. */
sac_result sac_strided_set_view(struct sac_graph *g, struct sac_node *n, const char *name,
                                const char *open_name, const struct sac_strided *s);

/* The numbers that are set, and which of them count for each entry of the open axis. */
bool    sac_view_attr(const struct sac_node *n, const char *name, int64_t *view);
int64_t sac_view_open(const struct sac_node *n, const char *open_name);
/* Of rows of n numbers, which become columns from `column` on of rows of `wide`: steps along rows
 * become longer, the others stay within their part of a row. False: the view goes from one row to
 * the next in another way. */
bool sac_view_widen(int64_t *view, int64_t bits, int64_t n, int64_t column, int64_t wide);

/* v is a value times a constant scalar, or divided by one: that value, and the factor. NULL: it is
 * not. */
struct sac_value *sac_scaled(const struct sac_value *v, double *factor);

#endif
