/* SPDX-License-Identifier: Apache-2.0 */
/* One node of cases.c made real: its operands in plain layout, filled with numbers. */
#ifndef SAC_TESTS_PARITY_SUBJECT_H
#define SAC_TESTS_PARITY_SUBJECT_H

#include "tests/parity/cases.h"

#include "engine/ops/util.h"

enum { SUBJECT_ATTRS_MAX = 16, SUBJECT_FENCE = 64 };
enum fill { FILL_RANDOM, FILL_EXTREME, FILL_COUNT };

struct subject {
    struct sac_arena    arena;
    struct sac_node     node;
    struct sac_attr     attrs[SUBJECT_ATTRS_MAX];
    struct sac_op_call *call;
    bool                constant[SAC_OP_INPUTS_MAX];
    void               *want[SAC_OP_OUTPUTS_MAX]; /* the outputs' memory, with room for a fence */
};

/* Random bits from a fixed seed. */
void     subject_seed(uint64_t seed);
uint64_t subject_random(void);
/* A seed that a case keeps, whatever stands before it in the list. */
void subject_seed_of(const struct parity_case *pc);

/* Memory that lives as long as the subject, SUBJECT_FENCE bytes longer than asked for. */
void *subject_keep(struct subject *s, size_t bytes);

/* Inputs and attributes as the case has them; outputs are present, their shapes not known yet. */
void subject_init(struct subject *s, const struct parity_case *pc, enum fill fill);
/* Run the shape function and give the outputs memory. Faults are the caller's to judge. */
sac_result subject_shape(struct subject *s);
/* Inputs become numbers that float16 has, so that only what a kernel rounds is different. */
void subject_round(const struct subject *s);
void subject_finish(struct subject *s);

/* Any number of an operand. Millions are float32, for which a call each takes longer than all the
 * rest. */
static inline double subject_number(const struct sac_operand *o, int64_t i)
{
    return o->dtype == SAC_F32 ? (double)((const float *)o->data)[i] : sac_operand_get(o, i);
}
/* The largest finite magnitude. */
double subject_largest(const struct sac_operand *o);
/* What the row's tolerances are of, beside each number itself: for what adds up the largest one. */
double subject_most(const struct sac_op *op, const struct sac_operand *out);
/* How far the number `want` of an output of dtype t may be off. */
double subject_bound(const struct sac_op *op, enum sac_dtype t, double most, double want);

#endif
