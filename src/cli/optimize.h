/* SPDX-License-Identifier: Apache-2.0 */
/* What saccade optimize knows: the knobs, what a run of the program showed, and which settings are
 * tried. Who searches does not measure: optimize_search.c is told figures, of runs or made up. */
#ifndef SAC_CLI_OPTIMIZE_H
#define SAC_CLI_OPTIMIZE_H

#include <stdio.h>

#include "climb.h"
#include "gain.h"
#include "settings.h"
#include "fault.h"

enum optimize_goal { OPTIMIZE_FPS, OPTIMIZE_LATENCY, OPTIMIZE_VRAM, OPTIMIZE_WATTS };

enum {
    OPTIMIZE_VALUES_MAX = 16,
    OPTIMIZE_KNOBS = 13,
    OPTIMIZE_TURNS = 5,      /* comparisons of default and tuned at the end, */
    OPTIMIZE_TURNS_MAX = 15, /* and while noise hides whether there is a gain */
    OPTIMIZE_PATH_SIZE = 4096
};

/* ---- what a run showed ---- */

/* Shares are 0..1; NAN: not known, as of a machine without a GPU. */
struct optimize_figures {
    bool   ok;
    double fps, latency_ms; /* the latter at the 95th percentile */
    double memory_bytes;    /* of the GPU's pool and decoders; without a GPU the process's own */
    double memory_share;    /* of the whole GPU's, or of the machine's */
    double watts, cpu, others, gpu, decoder, encoder; /* others: of the CPUs, by other programs */
    bool   reid;                                      /* an appearance network ran */
    bool   on_gpu;                                    /* the run's device is one */
    double batch;                                     /* most frames in one, as the run chose */
    double wall_s;                                    /* of the whole run, its start included */
    char   why[256]; /* the sentence of a run that failed; else why bottleneck is one */
    char   bottleneck[32];
    char   advice[256]; /* the most useful, or empty */
};

/* ---- optimize_knobs.c: what may be turned ---- */

/* A setting and the values that it may have. Where it stays at its start nothing is set. */
struct optimize_knob {
    const char *key;     /* in YAML */
    const char *with[2]; /* a key that goes with it, and its value; NULL: none */
    unsigned    stages;  /* bits: which of optimize_stages it serves */
    bool        fills;   /* more of it needs more memory */
    bool        changes; /* may change results: taken only where they agree */
    const char *about;   /* what it is, as part of a sentence */
    char        values[OPTIMIZE_VALUES_MAX][12]; /* as YAML has them */
    int         count, start;
};

/* What the knobs depend on. */
struct optimize_facts {
    const struct settings *settings;
    int                    cpus, inputs;
    bool                   reid, encodes, on_gpu;
    double                 batch; /* what the default chose for itself */
};
/* knobs [OPTIMIZE_KNOBS]; returns how many, below 0 with a fault. */
int optimize_knobs(const struct optimize_facts *facts, struct optimize_knob *knobs,
                   struct fault *fault);
/* The bit of the stage that a run names as its bottleneck; 0: none of the knobs serves it. */
unsigned optimize_stage_bit(const char *bottleneck);

/* ---- optimize_search.c: which settings are tried ---- */

/* How much better a run is than another one, as a factor; below 1: worse. 0: it failed, or what the
 * goal asks to be kept is not. */
double optimize_ratio(enum optimize_goal goal, double keep_fps, double memory_max,
                      const struct optimize_figures *run, const struct optimize_figures *beside);

struct optimize_step {
    int    knob, from, to;
    double ratio; /* to the settings before it */
};
struct optimize_search {
    const struct optimize_knob *knobs;
    int                         knob_count;
    enum optimize_goal          goal;
    double                      keep_fps, memory_max; /* shares */
    bool                        follows; /* only knobs of the bottleneck, until it has none */
    uint64_t                    seed;

    int                     best[CLIMB_KNOBS_MAX];
    double                  best_ratio, best_fps_ratio; /* to the start */
    struct optimize_figures first, best_figures;
    int                     runs, failed, refused;
    int                  cliff[CLIMB_KNOBS_MAX]; /* least place of a knob without memory; 0: none */
    struct optimize_step steps[64];
    int                  step_count;
    bool                 complete;

    /* Run the program at a point. A status other than 0 ends the search; a run that failed is
     * figures that are not ok. */
    int (*run)(void *user, const int *point, struct optimize_figures *out);
    /* Whether results agree with those of the start, of a point that may change them. */
    int (*agrees)(void *user, const int *point, bool *out);
    bool (*ended)(void *user);
    void *user;

    /* the anchor: the best point, and its latest run */
    double                  noise; /* of the logarithm of a ratio of two runs */
    int                     anchors;
    struct optimize_figures anchor;
    int                     anchor_age;
};
/* A status below 0: no memory. The start must run. */
int optimize_search_run(struct optimize_search *search);

/* Start and best in turns. real: the best is better, beyond noise. */
struct optimize_comparison {
    struct gain             gain; /* of the logarithms of the ratios */
    bool                    real;
    int                     count;
    double                  ratios[OPTIMIZE_TURNS_MAX];
    struct optimize_figures start, tuned; /* medians of the turns */
};
int optimize_compare(struct optimize_search *search, struct optimize_comparison *out);

/* The most streams, up to `most`, of which each gets its own rate: n streams together reach n *
 * nominal frames/s. run: of n streams. out [most + 1] frames/s, NAN: not measured. */
int optimize_streams(int (*run)(void *user, int streams, struct optimize_figures *out), void *user,
                     int most, double nominal_fps, double *out, int *best);

/* ---- optimize_run.c: a run of the program ---- */

struct optimize_runner {
    struct settings *settings;
    sac_context     *ctx;
    struct text_list inputs;
    bool             pictures; /* the inputs are one sequence */
    bool             segments;
    bool             realtime;    /* runs read files at their own rate */
    double           duration_s;  /* of the input that a run reads; 0: all */
    double           limit_s;     /* a run that takes longer has failed */
    char             folder[256]; /* for the runs' files; removed at the end */
};
int  optimize_runner_init(struct optimize_runner *runner, struct fault *fault);
void optimize_runner_finish(struct optimize_runner *runner);
/* knobs    NULL: the defaults. streams 0: the inputs as they are, else so many, in turn.
 * kept     a file's name in the folder that gets the results; NULL: none.
 * A status other than 0: it was interrupted, or nothing can be run. */
int optimize_run(struct optimize_runner *runner, const struct optimize_knob *knobs, int count,
                 const int *point, int streams, const char *kept, struct optimize_figures *out,
                 struct fault *fault);
/* How well the results in two such files agree: 0..1. */
int optimize_agreement(struct optimize_runner *runner, const char *reference, const char *kept,
                       double *out, struct fault *fault);
/* The settings that differ from the defaults, as YAML. for_runs: those of measured runs, else those
 * to hand out. */
void optimize_put_settings(const struct settings *s, bool segments, bool for_runs, FILE *out);
/* Set the knobs that are not at their start. */
int optimize_apply(struct settings *s, const struct optimize_knob *knobs, int count,
                   const int *point, struct fault *fault);

/* ---- optimize_log.c: what was measured, so that a search can go on ---- */

struct optimize_entry {
    int                     at[CLIMB_KNOBS_MAX];
    struct optimize_figures figures;
    bool                    used;
};
struct optimize_log {
    char                   path[OPTIMIZE_PATH_SIZE]; /* empty: none is kept */
    uint64_t               key;                      /* of what is searched */
    double                 duration_s;               /* of the input, of each run */
    struct optimize_entry *entries;                  /* owned */
    size_t                 count, capacity, read;
    int                    knob_count;
};
/* The file beside the output, OUTPUT.runs; none without an output. A file that is there and not a
 * log of ours is a fault. resume: take what is in it. key, duration_s and knob_count are filled. */
int  optimize_log_open(struct optimize_log *log, const char *output, bool resume,
                       struct fault *fault);
void optimize_log_finish(struct optimize_log *log);
/* The next measurement of the point that was read and not taken yet. */
bool optimize_log_take(struct optimize_log *log, const int *point, struct optimize_figures *out);
int  optimize_log_add(struct optimize_log *log, const int *point,
                      const struct optimize_figures *figures, struct fault *fault);
/* The search is complete. */
void optimize_log_remove(const struct optimize_log *log);

/* ---- optimize_report.c ---- */

struct optimize_result {
    const struct settings            *settings;
    const struct optimize_search     *search;
    const struct optimize_comparison *comparison;
    const struct settings            *tuned; /* with the best point's values */
    const struct text_list           *inputs;
    bool                              segments, realtime;
    bool                              taken;    /* the tuned settings are handed out */
    bool                              logged;   /* --resume can go on */
    const char                       *ended_by; /* "Ctrl-C", "The budget"; NULL: complete */
    double                            seconds, duration_s;
    double                            agreement; /* of the tuned results; NAN: they are the same */
    int                               streams_best, streams_most; /* most 0: not asked */
    const double                     *streams_fps;
    double                            nominal_fps; /* of one stream */
};
void optimize_print(const struct optimize_result *result, FILE *out);
void optimize_write_yaml(const struct optimize_result *result, FILE *out);
void optimize_print_plan(const struct settings *s, const struct optimize_knob *knobs, int count,
                         FILE *out);
/* The first words of what optimize_write_yaml writes. */
extern const char optimize_yaml_head[];

#endif
