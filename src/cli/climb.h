/* SPDX-License-Identifier: Apache-2.0 */
/* A search for the best setting of a few knobs, apart from what a setting is worth: it asks for
 * points and is told their values. Whoever measures may do so in any way, stop at any time, and
 * tell again what an earlier search was told: the same answers lead to the same questions.
 *
 *     struct climb climb;
 *     climb_init(&climb, knobs, 3, &(struct climb_params){.margin = 0.01});
 *     int point[CLIMB_KNOBS_MAX];
 *     while (climb_ask(&climb, point))
 *         if (!climb_tell(&climb, measure(point)))
 *             ...                                   // no memory
 *     ...                                           // climb.best, climb.best_value
 *     climb_finish(&climb);
 *
 * A knob has values in an order that means something (1, 2, 4, ...), and a point is the place of
 * each knob's value. One knob after the other moves uphill with steps that double while they help
 * and are halved when they do not, until a round over all knobs changes nothing. Then the search
 * is complete, or begins again from the best point with some knobs elsewhere. */
#ifndef SAC_CLI_CLIMB_H
#define SAC_CLI_CLIMB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLIMB_KNOBS_MAX = 24 };

struct climb_knob {
    const char *name;
    int         count; /* of values, 1 or more */
    int         start; /* place of the value to begin with */
};

struct climb_params {
    double   margin;   /* a point is better when it is so by this share: what is noise is no step */
    int      restarts; /* new beginnings after the first */
    uint64_t seed;     /* of where those are */
};

struct climb_point {
    int    at[CLIMB_KNOBS_MAX];
    double value;
};

struct climb {
    const struct climb_knob *knobs; /* borrowed */
    int                      count;
    struct climb_params      params;

    struct climb_point *told; /* [told_count] in their order; owned */
    size_t              told_count, told_capacity;
    int                 best[CLIMB_KNOBS_MAX];
    double              best_value;

    /* the present climb */
    uint64_t           random;
    struct climb_point here, next; /* next: the point that was asked for */
    int                knob, step, way, restart;
    bool               begun, moved, asked;
};

/* knobs    [count], at most CLIMB_KNOBS_MAX; must outlive the search. */
void climb_init(struct climb *climb, const struct climb_knob *knobs, int count,
                const struct climb_params *params);
void climb_finish(struct climb *climb);
/* The next point to measure, one that was not told yet; the first is the start.
 * false: the search is complete. */
bool climb_ask(struct climb *climb, int *point);
/* What the point that was asked for is worth: more is better, -INFINITY where it can't be.
 * false: no memory. */
bool climb_tell(struct climb *climb, double value);

#endif
