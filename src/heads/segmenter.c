/* SPDX-License-Identifier: Apache-2.0 */
/* A segmenter: preprocess, network, head, and mattes in the pixels of the source. */
#include <string.h>

#include "device/format.h"
#include "heads/segmenter.h"

struct sac_segmenter_params sac_segmenter_params_default(void)
{
    return (struct sac_segmenter_params){.batch_max = 8,
                                         .guide = 2,
                                         .guide_noise = 8,
                                         .smooth = 0.95f,
                                         .hole = 1,
                                         .feather_low = 0.2f,
                                         .feather_high = 0.8f};
}

static int count_scales(const struct sac_segmenter_params *p)
{
    int n = 0;
    while (n < (int)SAC_COUNT(p->scales) && p->scales[n] != 0)
        n++;
    return n;
}

static sac_result check_scales(sac_context *ctx, const struct sac_segmenter_params *p)
{
    const int  n = count_scales(p);
    sac_result res = SAC_OK;
    for (int i = 0; i < n && res == SAC_OK; i++) {
        const struct sac_number number = {"scales", (double)p->scales[i], 0.25, 2};
        res = sac_numbers_check(ctx, "segmenter", &number, 1);
    }
    if (res == SAC_OK && n && p->class_map)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "segmenter: a map of classes is not averaged over scales; mattes are, or "
                        "leave scales out");
    if (res == SAC_OK && n && sac_facets_count(p->projection, p->facets))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "segmenter: facets are seen once, at their own scale; leave scales out, or "
                        "let the network see the eye as it is (facets none)");
    return res;
}

sac_result sac_segmenter_check_params(sac_context *ctx, const struct sac_segmenter_params *p)
{
    SAC_NEEDS_NO_LATER_FIELD(ctx, p, "segmenter parameters");
    const struct sac_number numbers[] = {
        {"class_map", p->class_map, 0, 1},
        {"batch_max", p->batch_max, 1, 1024},
        {"stereo", (int)p->stereo, 0, SAC_STEREO_TB},
        {"guide", p->guide, 0, 8},
        {"guide_noise", (double)p->guide_noise, 1, 255},
        {"smooth", (double)p->smooth, 0, (double)0.95f},
        {"hole", p->hole, 0, 8},
        {"feather_low", (double)p->feather_low, 0, 1},
        {"feather_high", (double)p->feather_high, 0, 1},
        {"projection", (int)p->projection, 0, SAC_PROJECTION_EQUIRECT180},
        {"facets", (int)p->facets, 0, SAC_FACETS_FRONT},
    };
    sac_result res = sac_numbers_check(ctx, "segmenter", numbers, SAC_COUNT(numbers));
    if (res == SAC_OK && p->class_map && sac_facets_count(p->projection, p->facets))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "segmenter: a map of classes is not put together from facets; mattes are, "
                        "or let the network see the eye as it is (facets none)");
    if (res == SAC_OK)
        res = check_scales(ctx, p);
    if (res == SAC_OK && p->feather_low >= p->feather_high)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "segmenter: feather_low is %g and feather_high %g; the first is the lower",
                        (double)p->feather_low, (double)p->feather_high);
    return res;
}

sac_result sac_segmenter_check_eyes(sac_context *ctx, enum sac_stereo stereo,
                                    enum sac_pixel_format format, int width, int height)
{
    const struct sac_format_info *info = sac_format_info_of(format);
    const bool across = stereo == SAC_STEREO_SBS, halved = info && info->planes > 1;
    const int  unit = halved ? 4 : 2; /* so is chroma of an eye */
    if (stereo == SAC_STEREO_MONO || (across ? width : height) % unit == 0)
        return SAC_OK;
    return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                    "segmenter: no two eyes %s in a frame of %dx%d%s%s: its %s must be a multiple "
                    "of %d",
                    across ? "side by side" : "above each other", width, height, info ? ", " : "",
                    info ? sac_pixel_format_name(format) : "", across ? "width" : "height", unit);
}

/* ---- the head ---- */

/* What it is instead of a segmenting network. */
static sac_result refuse_head(struct sac_segmenter *seg)
{
    sac_context           *ctx = seg->dev->ctx;
    const char            *path = sac_model_path(seg->model);
    const struct sac_head *head = seg->head;
    const char            *beside = head && head->unread ? head->unread(&seg->view) : NULL;
    char                   why[1024];
    if (beside && seg->view.facts.task == SAC_TASK_SEGMENT)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: it is a detector (head '%s') with %s, but no output has the "
                        "prototypes that they weigh, [coefficients,h,w]: export it with both; "
                        "saccade track uses its boxes",
                        path, head->name, beside);
    if (beside)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: it is a detector (head '%s') with %s, which a segmenter does not "
                        "read: saccade track uses its boxes; a segmenter needs a network that "
                        "gives a map of the picture",
                        path, head->name, beside);
    if (head && head->layout)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: it is a detector (head '%s') and gives boxes: saccade track runs it; "
                        "a segmenter needs a network that gives a map of the picture",
                        path, head->name);
    if (head)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                        "%s: it gives one row of numbers for a picture, as embeddings and "
                        "classifiers do; a segmenter needs a network that gives a map of the "
                        "picture",
                        path);
    sac_head_why_not(&seg->view, true, why, sizeof why);
    return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "%s: %s", path, why);
}

static sac_result choose_head(struct sac_segmenter *seg, const char *wanted)
{
    seg->head = wanted ? sac_head_find(wanted) : sac_head_of(&seg->view);
    seg->instances.used = sac_head_has_instances(seg->head, &seg->view);
    if (wanted && (!seg->head || (!seg->head->matte && !seg->head->coefficients))) {
        char names[256];
        sac_head_names(true, names, sizeof names);
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_ARG, "no head '%s' that gives mattes; have %s",
                        wanted, names);
    }
    if (seg->head && (seg->head->matte || seg->instances.used))
        return SAC_OK;
    return wanted ? sac_segmenter_refuse_shapes(seg, &seg->view) : refuse_head(seg);
}

static sac_result read_contract(struct sac_segmenter *seg, const char *user)
{
    sac_context *ctx = seg->dev->ctx;
    sac_result   res = sac_head_preprocess(ctx, seg->head, &seg->view, &seg->contract.pre);
    if (res == SAC_OK)
        res = sac_model_contract_read(seg->model, user, &seg->contract);
    if (res == SAC_OK)
        sac_contract_expect(seg->model, &seg->contract);
    if (res == SAC_OK)
        res = sac_head_check_size(ctx, &seg->view, &seg->contract);
    const int classes = seg->head->class_count ? seg->head->class_count(&seg->view) : 0;
    if (res == SAC_OK && classes && seg->contract.class_count &&
        classes != seg->contract.class_count)
        sac_log(ctx, SAC_LOG_WARN, "%s: %d class names for %d classes", sac_model_path(seg->model),
                seg->contract.class_count, classes);
    if (res == SAC_OK)
        res = sac_contract_default_classes(ctx, &seg->contract, classes, !seg->instances.used);
    return res == SAC_OK && seg->instances.used ? sac_contract_add_background(ctx, &seg->contract)
                                                : res;
}

/* As an input the ratio would leave all shapes open until a run, and with them the fast kernels:
 * now that the size is known, it becomes a constant. */
static sac_result fix_ratio(struct sac_segmenter *seg, const struct sac_segmenter_params *p)
{
    const struct sac_preprocess *pre = &seg->contract.pre;
    const int                    input = sac_feed_find(&seg->view.feed, SAC_FEED_RATIO);
    struct sac_model_params      params = sac_model_params_default();
    sac_model                   *fixed = NULL;
    if (input < 0)
        return SAC_OK;
    params.precision = p->precision;
    sac_result res = sac_model_load_fixed(seg->dev, sac_model_path(seg->model), &params,
                                          sac_model_input(seg->model, input)->name,
                                          sac_feed_ratio(pre->width, pre->height), &fixed);
    if (res != SAC_OK)
        return res;
    sac_model_unref(&seg->model);
    seg->model = fixed;
    return sac_head_view_init(seg->dev->ctx, seg->model, p->preprocess, &seg->view);
}

/* ---- the outputs ---- */

bool sac_segmenter_read_shapes(struct sac_segmenter *seg, const struct sac_head_view *view,
                               struct sac_matte_spec *out)
{
    return seg->instances.used ? sac_segmenter_lay_out_instances(seg, view, out)
                               : seg->head->matte(view, out);
}

sac_result sac_segmenter_refuse_shapes(const struct sac_segmenter *seg,
                                       const struct sac_head_view *view)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    char                   shapes[512];
    sac_head_shapes_text(t, sac_head_view_tensors(view, t), shapes, sizeof shapes);
    return SAC_FAIL(seg->dev->ctx, SAC_ERR_FORMAT,
                    "%s: head '%s' wants %s%s; the outputs of one picture of %dx%d are %s",
                    sac_model_path(seg->model), seg->head->name, seg->head->wants,
                    seg->head->coefficients
                        ? ", and prototypes [coefficients,h,w] in the picture's proportions"
                        : "",
                    view->width, view->height, shapes);
}

sac_result sac_segmenter_check_spec(const struct sac_segmenter  *seg,
                                    const struct sac_matte_spec *spec)
{
    enum { CLASS_NUMBERS = 256 }; /* that a byte holds */
    const enum sac_dtype dtype = spec->value.dtype;
    const char          *path = sac_model_path(seg->model),
               *name = sac_model_output(seg->model, spec->value.tensor)->name;
    if (dtype != SAC_F32 && dtype != SAC_F16 && dtype != SAC_I32 && dtype != SAC_I64)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: output '%s' is %s; have float32, float16, int32, int64", path, name,
                        sac_dtype_name(dtype));
    if (seg->style.classes && (spec->form == SAC_MATTE_SHARE || spec->form == SAC_MATTE_LOGIT))
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_ARG,
                        "%s gives one number a pixel: there are no classes to map", path);
    if (seg->style.classes && spec->classes > CLASS_NUMBERS)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: a map of %d classes; one holds %d at most", path, spec->classes,
                        CLASS_NUMBERS);
    return SAC_OK;
}

/* Fail before any work when the head cannot read the outputs; when their shapes depend on the data,
 * the first frame fails. */
static sac_result check_outputs(struct sac_segmenter *seg)
{
    const struct sac_preprocess *pre = &seg->contract.pre;
    struct sac_head_view         view = seg->view;
    struct sac_matte_spec        spec = seg->spec;
    bool                         known = true;
    sac_result                   res = sac_head_probe(seg->model, pre, &view);
    if (res != SAC_OK)
        return res;
    view.width = pre->width;
    view.height = pre->height;
    for (int i = 0; i < view.output_count; i++)
        for (int k = 0; k < view.output[i].desc.rank; k++)
            known =
                known && (view.output[i].desc.shape[k] >= 0 || sac_feed_gives_state(&view.feed, i));
    if (!known)
        return SAC_OK;
    if (!sac_segmenter_read_shapes(seg, &view, &spec))
        return sac_segmenter_refuse_shapes(seg, &view);
    seg->spec = spec; /* for inspect; a run shows it again */
    return sac_segmenter_check_spec(seg, &spec);
}

/* ---- creation ---- */

static sac_result set_up(struct sac_segmenter *seg, const struct sac_segmenter_params *p)
{
    seg->style = (struct sac_matte_style){.classes = p->class_map,
                                          .guide = p->guide,
                                          .guide_noise = p->guide_noise,
                                          .smooth = p->smooth,
                                          .hole = p->hole,
                                          .low = p->feather_low,
                                          .high = p->feather_high};
    sac_result res = sac_head_view_init(seg->dev->ctx, seg->model, p->preprocess, &seg->view);
    if (res == SAC_OK)
        res = choose_head(seg, p->head);
    if (res == SAC_OK)
        res = read_contract(seg, p->preprocess);
    if (res == SAC_OK)
        res = fix_ratio(seg, p);
    seg->spec.input_width = seg->contract.pre.width;
    seg->spec.input_height = seg->contract.pre.height;
    if (res == SAC_OK)
        res = check_outputs(seg);
    if (res == SAC_OK)
        res = sac_segmenter_choose_classes(seg, p->classes);
    if (res != SAC_OK)
        return res;
    const bool alone = seg->view.facts.single || sac_feed_has(&seg->view.feed, SAC_FEED_STATE);
    const int  images = p->batch_max * seg->eyes * seg->looks;
    const bool one = alone || images < 2 || !sac_model_batches(seg->model);
    seg->batch = one ? 1 : SAC_MAX(p->batch_max / (seg->eyes * seg->looks), 1);
    seg->run_max = one ? 1 : seg->batch * seg->eyes * seg->looks;
    seg->asks = sac_calloc((size_t)seg->batch, sizeof *seg->asks);
    seg->jobs = sac_calloc((size_t)(seg->batch * seg->eyes * seg->looks), sizeof *seg->jobs);
    if (!seg->asks || !seg->jobs)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_MEMORY, "no memory for a segmenter");
    const bool all = seg->style.classes && (!p->classes || !strcmp(p->classes, "auto"));
    res = sac_segmenter_batch_open(seg);
    if (res == SAC_OK && seg->instances.used)
        res = sac_segmenter_instances_open(seg, all);
    if (res == SAC_OK)
        res = sac_segmenter_looks_open(seg);
    return res == SAC_OK ? sac_segmenter_measure(seg) : res;
}

sac_result sac_segmenter_create(sac_device *dev, const char *model_path,
                                const struct sac_segmenter_params *params, sac_segmenter **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), model_path);
    SAC_NEEDS(sac_device_context(dev), out);
    struct sac_segmenter_params p = params ? *params : sac_segmenter_params_default();
    sac_result                  res = sac_segmenter_check_params(dev->ctx, &p);
    if (res != SAC_OK)
        return res;
    if (!dev->ops->vision->matte)
        return SAC_FAIL(dev->ctx, SAC_ERR_UNSUPPORTED, "%s cannot make mattes; use --device cpu",
                        dev->ops->name);
    struct sac_segmenter *seg = sac_new(struct sac_segmenter);
    if (!seg)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "no memory for a segmenter");
    struct sac_model_params model = sac_model_params_default();
    model.precision = p.precision;
    seg->dev = sac_device_ref(dev);
    seg->stereo = p.stereo;
    seg->eyes = p.stereo == SAC_STEREO_MONO ? 1 : 2;
    seg->facets.projection = p.projection;
    seg->facets.set = p.facets;
    seg->facets.count = sac_facets_count(p.projection, p.facets);
    seg->scales.count = count_scales(&p);
    for (int i = 0; i < seg->scales.count; i++)
        seg->scales.scale[i] = p.scales[i];
    seg->looks = seg->scales.count ? sac_scales_looks(seg->scales.scale, seg->scales.count)
                                   : SAC_MAX(seg->facets.count, 1);
    res = sac_model_load(dev, model_path, &model, &seg->model);
    if (res == SAC_OK)
        res = set_up(seg, &p);
    if (res == SAC_OK)
        *out = seg;
    else
        sac_segmenter_destroy(&seg);
    return res;
}

void sac_segmenter_destroy(sac_segmenter **seg_at)
{
    struct sac_segmenter *seg = seg_at ? *seg_at : NULL;
    if (!seg)
        return;
    sac_segmenter_batch_close(seg);
    sac_model_contract_finish(&seg->contract);
    sac_model_unref(&seg->model);
    sac_free(seg->wanted);
    sac_free(seg->asks);
    sac_free(seg->jobs);
    sac_free(seg->streams);
    sac_device_unref(&seg->dev);
    sac_free(seg);
    *seg_at = NULL;
}

/* ---- a run ---- */

static sac_result run_batch(struct sac_segmenter *seg, sac_frame *const *frames, int n,
                            sac_frame **mattes)
{
    struct sac_batch_times t;
    for (int i = 0; i < n; i++)
        seg->asks[i] = (struct sac_segmenter_ask){.frame = frames[i]};
    sac_result res = sac_segmenter_begin(seg, 0, seg->asks, n);
    if (res == SAC_OK)
        res = sac_segmenter_end(seg, 0, mattes, NULL, NULL, &t);
    if (res != SAC_OK)
        return res;
    const struct sac_run_times times = sac_batch_run_times(&t);
    seg->times.preprocess_ns += times.preprocess_ns;
    seg->times.inference_ns += times.inference_ns;
    seg->times.head_ns += times.head_ns;
    return SAC_OK;
}

sac_result sac_segmenter_run(sac_segmenter *seg, sac_frame *const *frames, int n,
                             sac_frame **mattes)
{
    SAC_NEEDS(seg ? seg->dev->ctx : NULL, seg);
    SAC_NEEDS_ARRAY(seg ? seg->dev->ctx : NULL, frames, n);
    SAC_NEEDS_ARRAY(seg ? seg->dev->ctx : NULL, mattes, n);
    sac_result res = SAC_OK;
    seg->times = (struct sac_run_times){.begun_ns = sac_time_ns()};
    for (int i = 0; i < n; i++)
        mattes[i] = NULL;
    for (int i = 0, batch; i < n && res == SAC_OK; i += batch) {
        batch = SAC_MIN(n - i, seg->batch);
        res = run_batch(seg, frames + i, batch, mattes + i);
    }
    for (int i = 0; i < n && res != SAC_OK; i++)
        sac_frame_unref(&mattes[i]);
    return res;
}

/* ---- questions ---- */

void sac_segmenter_get_times(const sac_segmenter *seg, struct sac_run_times *out)
{
    if (!seg || !out)
        return;
    *out = seg->times;
}

const char *sac_segmenter_head_name(const sac_segmenter *seg)
{
    if (!seg)
        return NULL;
    return seg->head->name;
}

const struct sac_model_contract *sac_segmenter_contract(const sac_segmenter *seg)
{
    if (!seg)
        return NULL;
    return &seg->contract;
}

sac_model *sac_segmenter_model(const sac_segmenter *seg)
{
    if (!seg)
        return NULL;
    return seg->model;
}

static const char *form_name(enum sac_matte_form form)
{
    switch (form) {
    case SAC_MATTE_SHARE: return "share";
    case SAC_MATTE_LOGIT: return "logit";
    case SAC_MATTE_CLASS_LOGITS: return "class logits";
    case SAC_MATTE_CLASS_SHARES: return "class shares";
    case SAC_MATTE_LABEL: return "class number";
    }
    return "unknown";
}

void sac_segmenter_inspect(const sac_segmenter *seg, struct sac_segmenter_info *out)
{
    if (!seg || !out)
        return;
    const bool known = seg->spec.width > 0;
    *out = (struct sac_segmenter_info){
        .output = known ? sac_model_output(seg->model, seg->spec.value.tensor)->name : NULL,
        .form = !known                ? NULL
                : seg->instances.used ? "boxes' coefficients"
                                      : form_name(seg->spec.form),
        .width = seg->spec.width,
        .height = seg->spec.height};
    while (sac_feed_state(&seg->view.feed, out->states) >= 0)
        out->states++;
}

const char *sac_segmenter_state_input(const sac_segmenter *seg, int i)
{
    const int input = seg && i >= 0 ? sac_feed_state(&seg->view.feed, i) : -1;
    return input < 0 ? NULL : sac_model_input(seg->model, input)->name;
}

const char *sac_segmenter_state_output(const sac_segmenter *seg, int i)
{
    const int input = seg && i >= 0 ? sac_feed_state(&seg->view.feed, i) : -1;
    return input < 0 ? NULL : sac_model_output(seg->model, seg->view.feed.pair[input])->name;
}
