/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of a plan wait for which: a step that reads what another writes, and one that
 * overwrites what another reads or writes. Steps of which neither waits for the other may run at
 * the same time, such as the branches of a network: on a GPU small ones fill it together. Storages
 * are as memory.c assigned them; parts of one storage that share no element do not wait for each
 * other. */
#ifndef SAC_ENGINE_PLAN_ORDER_H
#define SAC_ENGINE_PLAN_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sac_plan;

struct sac_order {
    size_t    count, words;
    uint64_t *before; /* row i, a bit for each step: it is done when step i begins */
    uint64_t *waits;  /* the same without those that another one of the row waits for */
};

/* Of all steps of the plan. false: there is no memory for it. */
bool sac_order_make(const struct sac_plan *plan, struct sac_order *out);
void sac_order_free(struct sac_order *o);

/* Is step a done when step b begins? */
bool sac_order_before(const struct sac_order *o, size_t a, size_t b);
/* The steps that step i waits for, to out[count]; returns how many. */
int sac_order_waits(const struct sac_order *o, size_t i, int *out);
/* Does each step wait for the one before? Then nothing can run at the same time. */
bool sac_order_is_chain(const struct sac_order *o);

#endif
