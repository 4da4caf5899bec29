/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring of saccade bench, for other verbs: a model by itself, on random numbers.
 *
 *     struct bench b;
 *     int          status = bench_init(&b, settings, "net.onnx", fault);
 *     for (int i = 0; i < b.batch_count && status == STATUS_OK; i++)
 *         status = bench_time_runs(&b, b.batches[i], &runs[i]);
 *     bench_finish(&b); */
#ifndef SAC_CLI_BENCH_H
#define SAC_CLI_BENCH_H

#include "bench_layers.h"
#include "fault.h"
#include "settings.h"

enum { BENCH_BATCHES_MAX = 64 };

struct bench {
    const struct settings  *settings;
    const char             *path;
    sac_context            *ctx;
    sac_device             *device;
    sac_model              *model;
    int                     input_count, output_count;
    struct sac_tensor_desc *shapes;  /* of the inputs; the batch's dimension stays open */
    sac_tensor            **inputs;  /* [input_count] */
    sac_tensor            **outputs; /* [output_count] */
    int                     batches[BENCH_BATCHES_MAX], batch_count;
    struct sac_device_rates rates; /* 0 until they are measured */
    double                  opened_us;
    struct fault           *fault;
};

/* Runs at one batch size, each timed by the host's clock with the wait for its outputs. */
struct bench_runs {
    int     batch, count;
    double  first_ms; /* of the run that plans, which is not counted */
    double *ms;       /* [count] */
    double *begun_us; /* [count]; since the bench was opened */
    double  ended_us;
};

/* Open it on the device of the settings, with the sizes of --batch and --shape. To be finished
 * whatever the status. */
int  bench_init(struct bench *b, const struct settings *s, const char *model, struct fault *fault);
void bench_finish(struct bench *b);
/* What the device can do, into rates. It takes 512 MiB meanwhile. */
int bench_measure_device(struct bench *b);
/* Run for --seconds, but no more than 20,000 times, and where layers is not NULL a few times more
 * with each layer measured. Both outputs are zeroed, and the caller's to finish. */
int  bench_time_runs(struct bench *b, int batch, struct bench_runs *runs, struct layers *layers);
void bench_runs_finish(struct bench_runs *runs);

/* Whether a dimension is left to --batch. */
bool bench_takes_batch(const struct bench *b);
/* The layers alone, with the sizes that the model has. */
int bench_model_layers(const struct settings *s, const char *model, int batch,
                       struct layers *layers, struct fault *fault);

#endif
