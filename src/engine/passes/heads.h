/* SPDX-License-Identifier: Apache-2.0 */
/* Where the heads of a product's operands and of its result lie: views (engine/ops/fused.h) of what
 * stands before and behind the Transposes, Splits and their like around it. attention.c and
 * head_matmul.c use it. */
#ifndef SAC_ENGINE_PASSES_HEADS_H
#define SAC_ENGINE_PASSES_HEADS_H

#include "engine/passes/strided.h"

enum { SAC_HEADS_DEPTH = 24 }; /* nodes that are looked through, at most */
enum { SAC_BATCH, SAC_HEAD, SAC_TOKEN, SAC_NUMBER };

/* Another name for the same numbers? */
bool sac_same_dtype(const struct sac_node *n);
/* b has the batches and heads of a, or is broadcast over them: two open dims count as one. */
bool sac_heads_leading(const struct sac_value *a, const struct sac_value *b);

/* Makes [batch,head,token,number] of what `out` sees; `like` (NULL: none) has the batches and heads
 * wanted, of which *group (NULL: one) are the same. */
bool sac_heads_shape(struct sac_strided *out, bool turn, const struct sac_strided *like,
                     int64_t *group);
/* The view of v, an operand of a product beside the other, from as far before it as possible where
 * the numbers of a head are neighbours, or if it may be `either` its tokens; else from as far as
 * possible. turn: the last two dims change places. */
bool sac_heads_operand(struct sac_strided *out, struct sac_value *v, const struct sac_value *beside,
                       bool turn, bool either, const struct sac_strided *like, int64_t *group);
/* The same from before the node `same`, which stands before v with what moves numbers between them,
 * as sac_strided_through has it; nothing before it is scaled. NULL: there is none. */
bool sac_heads_operand_through(struct sac_strided *out, struct sac_value *v,
                               const struct sac_value *beside, bool turn, bool either,
                               const struct sac_strided *like, int64_t *group,
                               const struct sac_node *same);
/* Do the numbers of each head lie side by side, or as channels of a map that devices have channels
 * last? */
bool sac_heads_are_neighbours(const struct sac_strided *s);
/* The view of the result v, which may be put together behind the product: *after is what is
 * written. rounds (NULL: none may stand there): a QuantizeLinear of all by one scale between v and
 * *after, or NULL; *after is then of 8 bits. */
bool sac_heads_result(struct sac_strided *out, struct sac_value *v, bool turned, bool either,
                      const struct sac_strided *like, struct sac_value **after,
                      struct sac_node **rounds);

/* Makes [batch,head,token,number] of [heads...,tokens,number], whose tokens lie in runs of `inner`:
 * each run is one of a batch. */
bool sac_heads_apart(struct sac_strided *out, int64_t inner);
/* The view of the result v that is apart like this, as sac_heads_result. */
bool sac_heads_result_apart(struct sac_strided *out, struct sac_value *v, int64_t inner,
                            struct sac_value **after);
#endif
