/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <saccade/saccade.h>

#include "settings.h"

static void init_media(struct settings *s)
{
    struct sac_source_params   source = sac_source_params_default();
    struct sac_sink_params     sink = sac_sink_params_default();
    struct sac_pipeline_params pipe = sac_pipeline_params_default();
    s->input_timeout_s = (double)source.timeout_us / 1e6;
    s->every = source.every;
    s->rotate = "auto";
    s->decode = "device";
    s->decode_threads = source.decode_threads;
    s->decode_prefetch = source.prefetch;
    s->audio = true;
    s->labels = "auto";
    s->clip_boxes = pipe.clip_boxes;
    s->trails = pipe.draw_trails;
    s->trail_s = pipe.trail_s;
    s->progress = true;
    s->timers = pipe.job.timers;
    s->encoder = sink.encoder;
    s->encode_preset = sink.preset;
    s->encode_threads = sink.threads;
    s->encode_crf = sink.crf;
    s->inference_batch_max = pipe.job.inference_batch_max;
    s->inference_timeout_ms = pipe.job.timeout_ms;
    s->queue_length = pipe.job.queue_length;
}

static void init_models(struct settings *s)
{
    struct sac_detector_params  detector = sac_detector_params_default();
    struct sac_track_job_params job = sac_pipeline_params_default().job;
    s->classes = "auto";
    s->score_min = (double)detector.score_min;
    s->nms_iou = (double)detector.nms_iou;
    s->detection_max = detector.detection_max;
    s->detector = job.detector;
    s->reid = job.reid;
    s->reid_batch_max = sac_pipeline_params_default().job.reid_params.batch_max;
}

static void init_tracker(struct settings *s)
{
    enum sac_tracker_kind     kind = sac_pipeline_params_default().job.tracker.kind;
    struct sac_tracker_params tracker = sac_tracker_params_default(kind);
    s->tracker = sac_tracker_kind_name(kind);
    s->score_high = s->score_low = s->score_new = s->match_iou = (double)NAN;
    s->lost_max_s = s->confirm_s = s->reid_distance = (double)NAN;
    s->gallery_max = tracker.gallery_max;
    s->track_max = tracker.track_max;
    s->camera_motion = true;
}

static void fill(double *value, float by_default)
{
    if (isnan(*value))
        *value = (double)by_default;
}

void settings_fill_tracker(struct settings *s, enum sac_tracker_kind kind)
{
    struct sac_tracker_params tracker = sac_tracker_params_default(kind);
    fill(&s->score_high, tracker.score_high);
    fill(&s->score_low, tracker.score_low);
    fill(&s->score_new, tracker.score_new);
    fill(&s->match_iou, tracker.match_iou);
    fill(&s->lost_max_s, tracker.lost_max_s);
    fill(&s->confirm_s, tracker.confirm_s);
    fill(&s->reid_distance, tracker.reid_distance_max);
}

void settings_init(struct settings *s)
{
    *s = (struct settings){0};
    s->log_level = "info";
    s->device = "auto";
    s->zero_copy = "on";
    s->trim_frames = sac_device_params_default().trim_frames;
    s->precision = "default";
    init_media(s);
    init_models(s);
    init_tracker(s);
    s->infer_repeat = 1;
    s->infer_optimise = true;
    s->build_batch = "1";
    s->eval_preprocess = true;
}

void settings_finish(struct settings *s)
{
    for (size_t i = 0; i < s->held.count; i++)
        free((char *)s->held.items[i]);
    free(s->held.items);
    free(s->args.items);
    free(s->infer_inputs.items);
    free(s->eval_gt.items);
    free(s->eval_tracks.items);
    *s = (struct settings){0};
}

bool text_list_add(struct text_list *list, const char *text)
{
    const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items)
        return false;
    items[list->count++] = text;
    list->items = items;
    return true;
}

const char *settings_hold(struct settings *s, const char *text)
{
    char *copy = strdup(text);
    if (copy && text_list_add(&s->held, copy))
        return copy;
    free(copy);
    return NULL;
}
