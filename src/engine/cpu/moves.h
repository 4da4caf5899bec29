/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a kernel that only moves data: a list of moves from inputs to outputs. A kernel adds
 * its moves, by the strides that its operands have in their layouts. */
#ifndef SAC_ENGINE_CPU_MOVES_H
#define SAC_ENGINE_CPU_MOVES_H

#include "engine/cpu/cpu.h"
#include "engine/kernel/move.h"

struct sac_moves_part {
    struct sac_move move;
    int             in, out;  /* in -1: the state's constant */
    size_t          from, to; /* bytes from the operand's address */
};
struct sac_moves {
    uint64_t              constant; /* an element, of the operand's bytes */
    int                   count, room;
    struct sac_moves_part parts[];
};

struct sac_moves *sac_moves_create(int room);
/* Does nothing when there is nothing to move. from and to: the first elements. */
void sac_moves_add(struct sac_moves *s, int in, int64_t from, const int64_t *from_strides, int out,
                   int64_t to, const int64_t *to_strides, size_t bytes, int rank,
                   const int64_t *dims);
/* Input and output have all their bytes in the same places: nothing to do when they are in one
 * memory. */
bool sac_moves_whole(const struct sac_moves *s);
/* Skips an output that already is its input. */
sac_result sac_moves_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                         void *scratch, struct sac_device_stream *stream);

/* Distances between the elements of an operand; pixel and sample of a part, 0: dense. */
void sac_strides_in(const struct sac_operand *o, enum sac_layout layout, int64_t pixel,
                    int64_t sample, int64_t *strides);
void sac_input_strides(const struct sac_kernel_plan *plan, int input, int64_t *strides);
void sac_output_strides(const struct sac_kernel_plan *plan, int output, int64_t *strides);

/* Takes the node with input 0 as it lies, unless that is in half precision, and writes the same
 * layout: for operators that keep the meaning of the dimensions. */
struct sac_kernel_offer sac_moves_keep_layout(const struct sac_kernel_question *q);

#endif
