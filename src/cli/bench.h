/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring of saccade bench, for other verbs. */
#ifndef SAC_CLI_BENCH_H
#define SAC_CLI_BENCH_H

#include "bench_layers.h"
#include "fault.h"
#include "settings.h"

/* Profile a model's layers on the device of the settings, as bench --layers does. layers is zeroed,
 * and the caller's to finish. */
int bench_model_layers(const struct settings *s, const char *model, int batch,
                       struct layers *layers, struct fault *fault);

#endif
