/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that the command line and the YAML file can set, in one plain struct that holds the
 * library's own parameters. A row in the table of options.c knows how to read, print and describe
 * each. */
#ifndef SAC_CLI_SETTINGS_H
#define SAC_CLI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <saccade/eval.h>
#include <saccade/pipeline.h>
#include <saccade/server.h>

struct text_list {
    const char **items; /* owned; the texts are borrowed */
    size_t       count;
};

/* What a measured run does. */
enum task { TASK_TRACK, TASK_SEGMENT, TASK_MODEL };

struct profile;
struct settings {
    /* What goes to the library as it is: most options point in here. Of the tracker NAN means the
     * default of its kind. Other verbs use the device's and the detector's parameters. */
    struct sac_pipeline_params run;

    /* any verb */
    bool        help, version, json, quiet, verbose;
    const char *config;
    const char *log_level;

    /* track: what becomes parameters only with the others */
    const char *gpus, *zero_copy, *labels;
    bool        audio, progress;
    int         processes;                  /* 1: this one has all inputs */
    double      disk_cache_gb, cache_older; /* cache_older: days; cache's */

    /* segment */
    struct sac_segment_params segment;
    const char               *background, *scales;
    float                     feather;

    /* monitor, and the runs that are watched */
    struct sac_monitor_params monitor;
    bool                      watched, once;

    /* profile */
    const char     *against;
    enum task       task; /* optimize has it too, and no TASK_MODEL */
    int             profile_rows, profile_sort;
    bool            profile_shapes, profile_stacks;
    struct profile *profile; /* of a run that is profiled; NULL: it is not */

    /* infer */
    struct text_list infer_inputs;
    const char      *infer_output;
    int              infer_repeat;
    const char      *build_output, *build_batch, *build_size, *build_calibrate, *build_method;
    double           build_loss_max;
    bool             infer_optimize, infer_reference;

    /* bench */
    struct text_list bench_shapes, build_shapes;
    const char      *bench_batch;
    double           bench_seconds;
    bool             bench_layers;

    /* serve-bench */
    struct sac_server_params serve;
    const char              *serve_size;
    int                      serve_clients, serve_priorities;
    double                   serve_load, serve_seconds, serve_deadline_ms;

    /* eval */
    struct text_list            eval_gt, eval_tracks;
    bool                        eval_preprocess;
    const char                 *eval_masks;
    struct sac_mask_eval_params eval_mask;

    /* tune: its ground truth is eval's */
    struct text_list tune_detections;
    const char      *tune_output, *tune_reid;
    int              tune_trials, seed;
    double           budget_s;

    /* optimize: its output is run.video_out, what it runs task */
    struct {
        int         goal; /* enum optimize_goal */
        bool        follows, bottlenecks, dry_run, resume, encodes;
        int         streams_max, interval_max;
        const char *precisions;
        double      budget_s, trial_s, keep_fps, memory_max, loss_max;
    } optimize;

    struct text_list args; /* the command line's arguments without an option */
    struct text_list held; /* texts that this struct owns: values from a file */
};

/* The library's own defaults. */
void settings_init(struct settings *s);
/* Make the tracker one of this kind, with its defaults in place of NAN. */
void settings_fill_tracker(struct settings *s, enum sac_tracker_kind kind);
void settings_finish(struct settings *s);
/* Append a borrowed text. false: no memory. */
bool text_list_add(struct text_list *list, const char *text);
/* A copy that lives as long as the settings, or NULL. */
const char *settings_hold(struct settings *s, const char *text);

#endif
