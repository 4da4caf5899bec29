/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <saccade/saccade.h>

#include "settings.h"

/* Those of the tracker that "auto" leaves to its kind; NAN is auto. */
static const size_t tracker_autos[] = {
#define AT(field) offsetof(struct sac_tracker_params, field)
    AT(score_high), AT(score_low), AT(score_new),         AT(match_iou),
    AT(lost_max_s), AT(confirm_s), AT(reid_distance_max),
#undef AT
};
enum { TRACKER_AUTO_COUNT = sizeof tracker_autos / sizeof tracker_autos[0] };

static float *tracker_auto(struct sac_tracker_params *tracker, int i)
{
    return (float *)((char *)tracker + tracker_autos[i]);
}

void settings_fill_tracker(struct settings *s, enum sac_tracker_kind kind)
{
    struct sac_tracker_params given = s->run.job.tracker, *tracker = &s->run.job.tracker;
    *tracker = sac_tracker_params_default(kind);
    for (int i = 0; i < TRACKER_AUTO_COUNT; i++)
        if (!isnan(*tracker_auto(&given, i)))
            *tracker_auto(tracker, i) = *tracker_auto(&given, i);
    tracker->gallery_max = given.gallery_max;
    tracker->track_max = given.track_max;
    tracker->camera_motion = tracker->camera_motion && given.camera_motion;
}

void settings_init(struct settings *s)
{
    *s = (struct settings){.run = sac_pipeline_params_default()};
    s->run.job.detector_params.classes = "auto";
    for (int i = 0; i < TRACKER_AUTO_COUNT; i++)
        *tracker_auto(&s->run.job.tracker, i) = NAN;
    s->segment = sac_segment_params_default();
    s->segment.segmenter.facets = SAC_FACETS_FRONT;
    s->feather = s->segment.segmenter.feather_high - s->segment.segmenter.feather_low;
    s->log_level = "info";
    s->zero_copy = "on";
    s->labels = "auto";
    s->run.disk_cache = "off";
    s->disk_cache_gb = 10;
    s->audio = s->progress = true;
    s->processes = 1;
    s->infer_repeat = 1;
    s->profile_rows = 10;
    s->infer_optimize = true;
    s->bench_seconds = 1;
    s->serve = sac_server_params_default();
    s->serve.batch_max = 32;
    s->serve.goal = SAC_GOAL_THROUGHPUT;
    s->serve.goal_ms = 10;
    s->serve_clients = 8;
    s->serve_priorities = 3;
    s->serve_load = 0.9;
    s->serve_seconds = 5;
    s->serve_deadline_ms = 50;
    s->build_batch = "1";
    s->build_loss_max = NAN;
    s->monitor = sac_monitor_params_default();
    s->monitor.published = 1;
    s->watched = true;
    s->eval_preprocess = true;
    s->tune_trials = 300;
    s->seed = 1;
    s->budget_s = 120;
    s->optimize.interval_max = 1;
    s->optimize.budget_s = 300;
    s->optimize.trial_s = 3;
    s->optimize.keep_fps = 0.95;
    s->optimize.memory_max = 0.9;
    s->optimize.loss_max = 0.02;
    s->eval_mask = sac_mask_eval_params_default();
}

void settings_finish(struct settings *s)
{
    for (size_t i = 0; i < s->held.count; i++)
        free((char *)s->held.items[i]);
    free(s->held.items);
    free(s->args.items);
    free(s->infer_inputs.items);
    free(s->bench_shapes.items);
    free(s->build_shapes.items);
    free(s->eval_gt.items);
    free(s->eval_tracks.items);
    free(s->tune_detections.items);
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
