/* SPDX-License-Identifier: Apache-2.0 */
/* A detector: preprocess, network, head, and the way back to the pixels of the source. */
#include <string.h>

#include "device/device.h"
#include "vision/fit.h"
#include "engine/engine.h"
#include "heads/detector.h"

struct sac_detector_params sac_detector_params_default(void)
{
    return (struct sac_detector_params){
        .score_min = 0.1f, .nms_iou = 0.65f, .detection_max = 300, .batch_max = 8};
}

/* ---- creation ---- */

/* Models that no head reads, although the shapes of some look right, and those without boxes.
 */
static sac_result check_head(struct sac_detector *det)
{
    sac_context *ctx = det->dev->ctx;
    const char  *path = sac_model_path(det->model);
    char         why[1024];
    bool         no_boxes =
        det->view.facts.task == SAC_TASK_ORIENTED || det->view.facts.task == SAC_TASK_OTHER;
    if (!det->head || no_boxes) {
        sac_head_why_not(&det->view, false, why, sizeof why);
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s: %s", path, why);
    }
    if (det->head->matte)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: it is a segmenting network (head '%s') and gives mattes, no boxes: "
                        "saccade segment runs it; a detector is needed",
                        path, det->head->name);
    if (sac_feed_has(&det->view.feed, SAC_FEED_STATE))
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: input '%s' is a state that it gave with the frame before, and a "
                        "detector here keeps none",
                        path,
                        sac_model_input(det->model, sac_feed_state(&det->view.feed, 0))->name);
    if (!det->head->layout && !det->head->plugin)
        return SAC_FAIL(
            ctx, SAC_ERR_UNSUPPORTED,
            "%s: it gives one row of numbers for a picture, as embeddings and classifiers "
            "do, and no boxes; a detector is needed",
            path);
    return SAC_OK;
}

static sac_result choose_head(struct sac_detector *det, const char *wanted)
{
    sac_context *ctx = det->dev->ctx;
    const char  *path = sac_model_path(det->model);
    if (wanted && sac_head_is_library(wanted)) {
        sac_result res = sac_head_library_open(ctx, wanted, &det->library);
        det->head = res == SAC_OK ? &det->library.head : NULL;
        return res;
    }
    det->head = wanted ? sac_head_find(wanted) : sac_head_of(&det->view);
    if (!wanted && det->head && det->view.named && strcmp(det->head->name, det->view.named) != 0)
        sac_log(ctx, SAC_LOG_WARN,
                "%s: its metadata names a head '%s' that this saccade lacks; by its outputs it is "
                "'%s'",
                path, det->view.named, det->head->name);
    if (!det->head && wanted) {
        char names[256];
        sac_head_names(false, names, sizeof names);
        return SAC_FAIL(ctx, SAC_ERR_ARG, "no head '%s'; have %s, or a shared object", wanted,
                        names);
    }
    return check_head(det);
}

static sac_result read_contract(struct sac_detector *det, const char *user)
{
    sac_context *ctx = det->dev->ctx;
    sac_result   res = sac_head_preprocess(ctx, det->head, &det->view, &det->contract.pre);
    if (res == SAC_OK)
        res = sac_model_contract_read(det->model, user, &det->contract);
    if (res == SAC_OK)
        sac_contract_expect(det->model, &det->contract);
    if (res == SAC_OK)
        res = sac_head_check_size(ctx, &det->view, &det->contract);
    int classes = det->head->class_count ? det->head->class_count(&det->view) : 0;
    if (res == SAC_OK && classes && det->contract.class_count &&
        classes != det->contract.class_count)
        sac_log(ctx, SAC_LOG_WARN, "%s: %d class names for %d classes", sac_model_path(det->model),
                det->contract.class_count, classes);
    return res == SAC_OK ? sac_contract_default_classes(ctx, &det->contract, classes, false) : res;
}

static sac_result check_params(sac_context *ctx, const struct sac_detector_params *p)
{
    if (!(p->score_min >= 0 && p->score_min <= 1))
        return SAC_FAIL(ctx, SAC_ERR_ARG, "score_min is %g; have 0 to 1", (double)p->score_min);
    if (!(p->nms_iou >= 0 && p->nms_iou <= 1))
        return SAC_FAIL(ctx, SAC_ERR_ARG, "nms_iou is %g; have 0 to 1", (double)p->nms_iou);
    if (p->detection_max < 1 || p->batch_max < 1 || p->batch_max > 1024)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "detection_max is %d and batch_max %d; have 1 and up, 1 to 1024",
                        p->detection_max, p->batch_max);
    return SAC_OK;
}

/* Fail before any work when the head cannot read the outputs; when their shapes depend on the data,
 * the first frame fails. */
static sac_result check_outputs(struct sac_detector *det)
{
    struct sac_head_tensor       t[SAC_HEAD_OUTPUTS_MAX];
    const struct sac_preprocess *pre = &det->contract.pre;
    struct sac_head_view         view = det->view;
    struct sac_detect_spec       spec = {0};
    bool                         known = det->head->layout != NULL;
    sac_result                   res = known ? sac_head_probe(det->model, pre, &view) : SAC_OK;
    if (res != SAC_OK)
        return res;
    const struct sac_head_input in = {t, sac_head_view_tensors(&view, t), pre->width, pre->height,
                                      det->score_min};
    for (int i = 0; i < in.count; i++)
        for (int k = 0; k < t[i].rank; k++)
            known = known && t[i].shape[k] >= 0;
    if (!known || det->head->layout(&in, &det->view.facts, &spec))
        return SAC_OK;
    return sac_detector_refuse_shapes(det, t, in.count);
}

static void log_unread(const struct sac_detector *det)
{
    const char *unread = det->head->unread ? det->head->unread(&det->view) : NULL;
    if (unread)
        sac_log(det->dev->ctx, SAC_LOG_INFO, "%s: boxes and classes are used; its %s are not",
                sac_model_path(det->model), unread);
}

static sac_result set_up(struct sac_detector *det, const struct sac_detector_params *p)
{
    det->score_min = p->score_min;
    det->nms_iou = p->nms_iou;
    det->detection_max = (size_t)p->detection_max;
    sac_result res = sac_head_view_init(det->dev->ctx, det->model, p->preprocess, &det->view);
    if (res == SAC_OK)
        res = choose_head(det, p->head);
    if (res == SAC_OK)
        res = read_contract(det, p->preprocess);
    if (res == SAC_OK)
        res = check_outputs(det);
    if (res == SAC_OK)
        res = sac_detector_choose_classes(det, p->classes);
    if (res != SAC_OK)
        return res;
    log_unread(det);
    bool alone = det->view.facts.single || det->view.facts.flat; /* rows do not tell their picture
                                                                  */
    det->batch = !alone && p->batch_max > 1 && sac_model_batches(det->model) ? p->batch_max : 1;
    det->jobs = sac_calloc((size_t)det->batch, sizeof *det->jobs);
    if (!det->jobs)
        return SAC_FAIL(det->dev->ctx, SAC_ERR_MEMORY, "no memory for a detector");
    return sac_detector_batch_open(det);
}

sac_result sac_detector_create(sac_device *dev, const char *model_path,
                               const struct sac_detector_params *params, sac_detector **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), model_path);
    SAC_NEEDS(sac_device_context(dev), out);
    SAC_NEEDS_NO_LATER_FIELD(dev->ctx, params, "detector parameters");
    struct sac_detector_params p = params ? *params : sac_detector_params_default();
    sac_result                 res = check_params(dev->ctx, &p);
    if (res != SAC_OK)
        return res;
    struct sac_detector *det = sac_new(struct sac_detector);
    if (!det)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for a detector");
    struct sac_model_params model = sac_model_params_default();
    model.precision = p.precision;
    det->dev = sac_device_ref(dev);
    res = sac_model_load(dev, model_path, &model, &det->model);
    if (res == SAC_OK)
        res = set_up(det, &p);
    if (res == SAC_OK)
        *out = det;
    else
        sac_detector_destroy(&det);
    return res;
}

void sac_detector_destroy(sac_detector **det_at)
{
    struct sac_detector *det = det_at ? *det_at : NULL;
    if (!det)
        return;
    sac_detector_batch_close(det);
    sac_model_contract_finish(&det->contract);
    sac_head_library_close(&det->library);
    sac_model_unref(&det->model);
    sac_free(det->wanted);
    sac_free(det->jobs);
    sac_device_unref(&det->dev);
    sac_free(det);
    *det_at = NULL;
}

/* ---- a run ---- */

sac_result sac_detector_finish_run(struct sac_detector *det, sac_result begun,
                                   struct sac_detections *found)
{
    struct sac_batch_times t;
    sac_result             res = begun == SAC_OK ? sac_detector_end(det, 0, found, &t) : begun;
    if (res != SAC_OK)
        return res;
    const struct sac_run_times times = sac_batch_run_times(&t);
    det->times.preprocess_ns += times.preprocess_ns;
    det->times.inference_ns += times.inference_ns;
    det->times.head_ns += times.head_ns;
    return SAC_OK;
}

sac_result sac_detector_run(sac_detector *det, sac_frame *const *frames, int n,
                            struct sac_detections *found)
{
    SAC_NEEDS(det ? det->dev->ctx : NULL, det);
    SAC_NEEDS_ARRAY(det ? det->dev->ctx : NULL, frames, n);
    SAC_NEEDS_ARRAY(det ? det->dev->ctx : NULL, found, n);
    sac_result res = SAC_OK;
    det->times = (struct sac_run_times){.begun_ns = sac_time_ns()};
    for (int i = 0, batch; i < n && res == SAC_OK; i += batch) {
        batch = SAC_MIN(n - i, det->batch);
        res = sac_detector_finish_run(det, sac_detector_begin(det, 0, frames + i, NULL, batch),
                                      found + i);
    }
    return res;
}

/* ---- questions ---- */

void sac_detector_get_times(const sac_detector *det, struct sac_run_times *out)
{
    if (!det || !out)
        return;
    *out = det->times;
}

const char *sac_detector_head_name(const sac_detector *det)
{
    if (!det)
        return NULL;
    return det->head->name;
}

const struct sac_model_contract *sac_detector_contract(const sac_detector *det)
{
    if (!det)
        return NULL;
    return &det->contract;
}

sac_model *sac_detector_model(const sac_detector *det)
{
    if (!det)
        return NULL;
    return det->model;
}
