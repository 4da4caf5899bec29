/* SPDX-License-Identifier: Apache-2.0 */
/* saccade track: the options that it alone has. */
#include <string.h>

#include <saccade/pipeline.h>

#include "run.h"
#include "verbs.h"

/* ---- options that exclude each other ---- */

/* Whether a model is named: neither "auto" nor "none". */
static bool is_given(const char *model)
{
    return model && strcmp(model, "auto") != 0 && strcmp(model, "none") != 0;
}

static int check_usage(const struct settings *s, const char *input, struct fault *fault)
{
    unsigned labels;
    if (!input && !s->run.detections)
        return fault_usage(fault, "track needs an INPUT: a video, a folder of images, a URL or -");
    if ((!s->run.job.detector || strcmp(s->run.job.detector, "none") == 0) && !s->run.detections)
        return fault_usage(fault, "no detector: give --detector MODEL.onnx, or --detections FILE "
                                  "with ready-made boxes");
    if (is_given(s->run.job.detector) && s->run.detections)
        return fault_usage(fault, "--detector and --detections exclude each other");
    if (s->labels && sac_labels_parse(s->labels, &labels) != SAC_OK)
        return fault_usage(fault,
                           "--labels '%s': it takes auto, none, or a list of id, class and score",
                           s->labels);
    if (!input && s->run.video_out && strcmp(s->run.video_out, "none") != 0)
        return fault_usage(fault, "--output needs the INPUT video to draw on");
    if (!input && s->run.crops_out)
        return fault_usage(fault, "--save-crops needs the INPUT video to cut from");
    if (!input && is_given(s->run.job.reid))
        return fault_usage(fault, "--reid needs the INPUT video to look at");
    return STATUS_OK;
}

/* ---- the verb ---- */

static void fill_job(struct settings *s, const char *input)
{
    struct sac_track_job_params *job = &s->run.job;
    settings_fill_tracker(s, job->tracker.kind);
    if (job->inference_batch_max > 0)
        job->detector_params.batch_max = job->inference_batch_max;
    job->reid_params.precision = job->detector_params.precision;
    job->tracker.camera_motion &= input != NULL;
    if (s->labels)
        sac_labels_parse(s->labels, &s->run.labels); /* valid: check_usage parsed it too */
}

int verb_track(struct settings *s, struct fault *fault)
{
    const char *input = s->args.count ? s->args.items[0] : NULL;
    const int   status = check_usage(s, input, fault);
    if (status != STATUS_OK)
        return status;
    fill_job(s, input);
    return run_videos(s, fault);
}
