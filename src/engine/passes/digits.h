/* SPDX-License-Identifier: Apache-2.0 */
/* A value as digits over another, what the operator Rearrange computes: what Transpose, Reshape,
 * Slice, Pad and a Concat of slices do to a value changes digits, starts and periods, so a chain of
 * them, such as a roll of two axes and windows of it, is one Rearrange. rearrange.c uses it.
 *
 * Where strided.h describes a view that others read through steps, digits may go round an axis. As
 * there, a large prime stands for the one dim that may be open. */
#ifndef SAC_ENGINE_PASSES_DIGITS_H
#define SAC_ENGINE_PASSES_DIGITS_H

#include "engine/ops/reads.h"
#include "engine/passes/pass.h"

enum { SAC_DIGITS_SEEN_MAX = 64 };

struct sac_digit {
    int64_t dim, step;
    int     axis;
};
struct sac_digits {
    struct sac_value *base;
    int               axes; /* of the base, with their lengths */
    int64_t           size[SAC_RANK_MAX], period[SAC_RANK_MAX], start[SAC_RANK_MAX];
    int               into[SAC_RANK_MAX]; /* the axis that this one is the inner part of */
    int               count, rank;
    struct sac_digit  digit[SAC_REARRANGE_DIGITS + SAC_RANK_MAX];
    int first[SAC_RANK_MAX + 1]; /* dim d is made of digits first[d] to first[d + 1] */
};

/* What has been looked through: the nodes between base and value. */
struct sac_digits_seen {
    struct sac_node *node[SAC_DIGITS_SEEN_MAX];
    int              count, visits, joins;
};

/* v over the value that the longest chain of moves before it begins with. False: there is none, or
 * v is unknown, empty, or has more than one open dim. */
bool sac_digits_of(struct sac_digits *s, struct sac_value *v, struct sac_digits_seen *seen);
/* Is n a step of its own, with a copy of all its numbers? Reshapes are not. */
bool sac_is_move(const struct sac_node *n);
/* A Reshape before all moves costs nothing and is no part of the chain, but one that takes maps
 * apart which lie in channels last: there it is a step that copies them. */
bool sac_takes_map(const struct sac_node *n);
/* A Rearrange of the base; inputs without one for what is added. NULL: no memory, or more digits or
 * rings than the operator takes (*fits is then false). */
struct sac_node *sac_digits_node(struct sac_graph *g, struct sac_digits *s,
                                 const struct sac_value *v, const struct sac_node *like,
                                 bool *fits);

#endif
