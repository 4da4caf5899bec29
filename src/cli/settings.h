/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that the command line and the YAML file can set, in one plain struct. Each field has
 * one row in the table of options.c, which knows how to read, print and describe it. */
#ifndef SAC_CLI_SETTINGS_H
#define SAC_CLI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <saccade/track.h>

struct text_list {
    const char **items; /* owned; the texts are borrowed */
    size_t       count;
};

struct settings {
    /* any verb */
    bool        help, version, json, quiet, verbose;
    const char *config;
    const char *log_level;
    const char *device, *gpus, *zero_copy, *precision;
    int         threads; /* 0: half of the machine's */
    uint64_t    memory_limit, vram_limit, host_limit;
    int         trim_frames;

    /* track: what comes in */
    const char *detections;
    double      fps; /* 0: from the input */
    double      input_timeout_s;
    double      start_s, duration_s; /* 0: from the beginning; to the end */
    int         every;
    bool        realtime;
    const char *rotate;
    const char *decode;
    int         decode_threads, decode_prefetch;

    /* track: what goes out */
    const char *video_out, *jsonl_out, *mot_out, *csv_out, *kitti_out, *coco_out, *crops_out;
    const char *trace_out, *stats_out;
    bool        audio, clip_boxes, trails, progress, timers;
    const char *labels;
    double      trail_s;
    const char *encoder, *encode_preset;
    int         encode_threads, encode_crf;

    /* track: models */
    const char *detector, *head, *preprocess, *classes;
    double      score_min, nms_iou;
    int         detection_max;
    const char *reid, *reid_preprocess;
    int         reid_batch_max;
    bool        reid_every;
    int         inference_batch_max, inference_timeout_ms, queue_length;

    /* track: the tracker; NAN: the default of that kind */
    const char *tracker;
    double      score_high, score_low, score_new, match_iou, lost_max_s, confirm_s, reid_distance;
    int         gallery_max, track_max;
    bool        camera_motion;

    /* infer */
    struct text_list infer_inputs;
    const char      *infer_output;
    int              infer_repeat;
    const char      *build_output, *build_batch, *build_size;
    bool             infer_optimise, infer_reference, infer_layers;

    /* eval */
    struct text_list eval_gt, eval_tracks;
    bool             eval_preprocess;

    const char      *command; /* the whole command line, for records */
    struct text_list args;    /* the command line's arguments without an option */
    struct text_list held;    /* texts that this struct owns: values from a file */
};

/* The library's own defaults. */
void settings_init(struct settings *s);
/* Replace NAN by the defaults of this kind of tracker. */
void settings_fill_tracker(struct settings *s, enum sac_tracker_kind kind);
void settings_finish(struct settings *s);
/* Append a borrowed text. false: no memory. */
bool text_list_add(struct text_list *list, const char *text);
/* A copy that lives as long as the settings, or NULL. */
const char *settings_hold(struct settings *s, const char *text);

#endif
