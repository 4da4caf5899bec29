/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks as exporters spell them, of which the passes make one step, with the numbers of
 * the steps it replaces. */
#ifndef SAC_TESTS_ENGINE_SPELLING_H
#define SAC_TESTS_ENGINE_SPELLING_H

#include "tests/engine/proto.h"

enum { NODES_MAX = 40, SHAPES_MAX = 40 };

struct node {
    const char *op, *inputs, *outputs, *attr, *numbers; /* an attribute of ints, or of one */
};
struct spelling {
    const char *name, *x, *y; /* dims of the input and the output, ? the batch */
    struct {
        const char *name, *numbers;
    } shape[SHAPES_MAX];
    struct node node[NODES_MAX];
    int         found, steps;     /* of the operator; and in all, 0: any number */
    const char *also, *also_dims; /* another output */
};

/* Some number for each i. */
float spelling_number(int i);

/* Loads each spelling with its passes and without, for batches of none to three; op is an operator,
 * or one with the padding, dtype and '[' that follow in a step's line. With any batch, the
 * former has `found` nodes of that operator in `steps` steps, and both give the same numbers, as
 * they do with each optimisation left out. constants adds what all of them read besides their
 * shapes; may be NULL. */
void spelling_check(const struct spelling *s, const char *op,
                    void (*constants)(struct proto *graph));
/* Loads it with its passes and runs it: one of the two must fail with SAC_ERR_FORMAT or
 * SAC_ERR_ARG. */
void spelling_refused(const struct spelling *s, void (*constants)(struct proto *graph));

#endif
