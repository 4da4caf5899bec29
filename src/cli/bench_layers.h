/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a model as `saccade bench --layers` prints them: what each took, moved and
 * computed, beside what the device can do, sorted by time, and the sums of each operator.
 *
 * What bounds a layer is the largest of three times that it can't do without: a step that does
 * nothing, its bytes at the measured bandwidth, its arithmetic at the measured matrix rate. */
#ifndef SAC_CLI_BENCH_LAYERS_H
#define SAC_CLI_BENCH_LAYERS_H

#include <stdbool.h>

#include <saccade/model.h>

#include "../base/json.h"

enum bound { BOUND_LAUNCH, BOUND_MEMORY, BOUND_MATRIX, BOUND_COUNT };

struct layer {
    char  *name, *operator_name, *kernel; /* owned */
    char   output[96];                    /* "float32 [1,16,208,208]" */
    int    count;                         /* of an operator's sum: its layers */
    size_t place;                         /* in the order of a run */
    double ms, bytes, flops;
    double made;    /* bytes of what comes out of it */
    bool   dynamic; /* its shape depends on the data: nothing else is known */
};

struct layers {
    struct sac_device_rates rates;
    struct layer           *items; /* the costliest first */
    size_t                  count;
    double                  ms; /* of all */
    bool                    failed;
};

/* After profiled runs. False: no memory. */
bool layers_read(struct layers *layers, sac_model *model, const struct sac_device_rates *rates);
void layers_finish(struct layers *layers);
/* What bounds a layer, see above, and the milliseconds that it can't do without. */
enum bound  layer_bound(const struct layers *layers, const struct layer *layer, double *least_ms);
const char *layer_bound_name(enum bound bound); /* "launch", "memory", "matrix" */
void        layers_print(const struct layers *layers);
/* "layers": [...], "operators": [...] */
void layers_json(const struct layers *layers, struct sac_json *json);

#endif
