/* SPDX-License-Identifier: Apache-2.0 */
/* What saccade profile knows of a run, and the page that it makes of it. */
#ifndef SAC_CLI_PROFILE_H
#define SAC_CLI_PROFILE_H

#include <stdio.h>

#include <saccade/pipeline.h>

#include "bench.h"
#include "fault.h"

enum {
    PROFILE_BATCH_MAX = 128,
    PROFILE_SPANS_MAX = 1500,
    PROFILE_TRACKS_MAX = 40,
    PROFILE_OLD_MAX = 64
};

enum profile_sort { PROFILE_BY_TIME, PROFILE_BY_BYTES, PROFILE_BY_FLOPS, PROFILE_BY_MEMORY };

/* A stage's work on a batch or a frame, from the trace. */
struct profile_span {
    int    track;
    double begun_us, took_us;
    char   stage[24];
};

struct profile_trace {
    char                track[PROFILE_TRACKS_MAX][32];
    int                 track_count;
    struct profile_span span[PROFILE_SPANS_MAX]; /* of a while in the middle of the run */
    int                 span_count;
    double              batches[PROFILE_BATCH_MAX + 1]; /* runs with so many frames */
    double              begun_us, end_us;
};

/* Figures of an earlier profile. */
struct profile_old {
    char   name[64]; /* "fps", "decode p50" */
    double value;
};

/* A model that was profiled by itself: no pipeline, and its stages are its batch sizes. */
struct profile_model {
    const char       *path; /* NULL: the run was of inputs */
    struct bench_runs runs[SAC_STAGE_MAX];
    int               count;
    int               threads; /* 0: a GPU's */
    int64_t           parameters, weights_bytes, activation_bytes;
    bool              quantised, takes_batch;
};
#define PROFILE_MODEL_FORMAT "saccade-model-profile"

struct profile {
    const char *page, *stats_path, *trace_path, *against;
    const char *reads[2], *writes[2]; /* beside the run's own files; NULL: none */

    struct profile_model       model;
    struct sac_pipeline_stats  stats; /* of the run, when it has ended */
    struct sac_monitor_figure *figures;
    int                        figure_count;
    struct sac_monitor_event  *events;
    int                        event_count;
    double                     monitor_cost;
    struct sac_allocation      allocation[SAC_ALLOCATIONS_MAX];
    int                        allocation_count;

    struct profile_trace trace;
    struct layers        layers;
    int                  layers_batch, rows; /* rows: shown of them, and of the allocations */
    bool                 shapes;             /* of their outputs */
    bool                 by_memory;          /* the allocations come before the stages */
    char                 layers_why[300];    /* why there are none; empty: there are */
    sac_stacks          *stacks;             /* NULL: none are sampled */
    sac_context         *stacks_ctx;
    const char          *folded; /* their file */
    struct profile_old   old[PROFILE_OLD_MAX];
    int                  old_count;        /* 0: nothing to compare with */
    bool                 old_model;        /* of a model by itself */
    char                 old_network[256]; /* of a run over inputs; empty: it had none */
};

/* run.c calls it at the run's end. */
void profile_take(struct profile *profile, sac_pipeline *pipe,
                  const struct sac_pipeline_stats *stats);
/* profile_model.c: the model that is to be profiled by itself, or NULL; and do so. */
int    profile_choose_model(const struct settings *s, const char **out, struct fault *fault);
int    profile_run_model(struct settings *s, struct profile *profile, struct fault *fault);
double profile_items_per_s(const struct profile *profile, int i); /* of the i-th batch size */
/* profile_model_files.c: the JSON and the trace. */
int profile_write_model(const struct profile *profile, struct fault *fault);
/* profile_trace.c: what the run's trace holds; an unreadable one leaves it empty. */
void profile_read_trace(const char *path, struct profile_trace *out);
/* The network of a run over inputs; "": none. */
const char *profile_network(const struct profile *profile);
/* profile_old.c */
int profile_read_old(struct profile *profile, struct fault *fault);
/* The same figure of this run; NAN: it has none. */
double profile_figure(const struct profile *profile, const char *name);
/* profile_flame.c: a drawing of the stacks, and tables of functions. */
void profile_put_stacks(FILE *out, const sac_stacks *stacks, int rows);
/* Text in HTML. */
void profile_put_text(FILE *out, const char *text);
/* A line for each stack and its samples, as other programs read them. */
int profile_write_folded(const struct profile *profile, struct fault *fault);
/* profile_page.c */
int profile_write_page(const struct profile *profile, struct fault *fault);

#endif
