/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration data of pictures: a source read again and again, each frame prepared as the model's
 * contract says. */
#include <string.h>

#include <saccade/source.h>
#include "engine/model/calibration.h"
#include "heads/heads.h"
#include "heads/quality.h"
#include "media/media.h"
#include "vision/fit.h"

struct pictures {
    sac_calibration               base;
    sac_context                  *ctx;
    sac_device                   *cpu;
    char                         *url;
    char                         *head, *preprocess; /* NULL: the model's own */
    struct sac_calibration_params params;
    sac_source                   *src;
    int                           every; /* frames from one that is read to the next */
    int64_t                       total; /* that are read, more than are wanted; 0: not known */
    int                           read, given; /* since rewound */
    bool                          told;        /* what could not be read */
    const sac_model              *model;       /* that it is prepared for; with its contract: */
    struct sac_head_view          view;
    struct sac_model_contract     contract;
    struct sac_quality_judge      judge;
};

struct sac_calibration_params sac_calibration_params_default(void)
{
    return (struct sac_calibration_params){.sample_max = 64};
}

/* ---- the source ---- */

static sac_result open_source(struct pictures *p)
{
    struct sac_source_params params = sac_source_params_default();
    params.every = p->every;
    sac_source_close(&p->src);
    p->read = p->given = 0;
    return sac_source_open(p->cpu, p->url, &params, &p->src);
}

/* As many frames as are wanted, from all of the input. */
static sac_result open_first(struct pictures *p)
{
    struct sac_source_info info;
    if (strcmp(p->url, "-") == 0)
        return SAC_FAIL(p->ctx, SAC_ERR_ARG,
                        "calibration: standard input can be read once only; give a file");
    p->every = 1;
    sac_result res = open_source(p);
    if (res != SAC_OK)
        return res;
    sac_source_describe(p->src, &info);
    if (info.live)
        return SAC_FAIL(p->ctx, SAC_ERR_ARG,
                        "calibration: %s is live and cannot be read again; give a file",
                        p->base.name);
    p->every = (int)SAC_CLAMP(info.frames / p->params.sample_max, 1, INT32_MAX);
    p->total = (SAC_MAX(info.frames, 0) + p->every - 1) / p->every;
    return SAC_OK;
}

static sac_result rewind_pictures(sac_calibration *cal)
{
    return open_source((struct pictures *)cal);
}

static const char *file_of(const sac_calibration *cal, size_t i)
{
    const struct pictures *p = (const struct pictures *)cal;
    return p->src ? sac_source_file(p->src, i) : NULL;
}

/* Pictures of a folder have names, frames of a video numbers. */
static void name_sample(struct pictures *p, const sac_frame *frame)
{
    const bool  folder = !sac_source_input(p->src)->fmt;
    const char *file = folder ? sac_source_file(p->src, (size_t)frame->number) : NULL;
    if (file)
        snprintf(p->base.sample, sizeof p->base.sample, "%s", file);
    else
        snprintf(p->base.sample, sizeof p->base.sample, "frame %lld", (long long)frame->number);
}

/* Data that is damaged is left out, but whoever gave it should know. */
static void tell_damage(struct pictures *p)
{
    struct sac_source_stats stats;
    sac_source_get_stats(p->src, &stats);
    if (stats.corrupt && !p->told)
        sac_log(p->ctx, SAC_LOG_WARN,
                "calibration: %llu picture%s of %s cannot be read, and %s left out",
                (unsigned long long)stats.corrupt, stats.corrupt == 1 ? "" : "s", p->base.name,
                stats.corrupt == 1 ? "is" : "are");
    p->told = true;
}

/* Of those that are read up to one in two is too many: which these are is spread too. */
static sac_result read_wanted(struct pictures *p, sac_frame **out)
{
    sac_result res = p->given < p->params.sample_max ? sac_source_read_wait(p->src, out) : SAC_EOS;
    for (; res == SAC_OK && p->read++ < p->given * p->total / p->params.sample_max;
         res = sac_source_read_wait(p->src, out))
        sac_frame_unref(out);
    return res;
}

static sac_result read_frame(struct pictures *p, sac_frame **out)
{
    sac_result res = read_wanted(p, out);
    if (res == SAC_EOS && p->given == 0)
        return SAC_FAIL(p->ctx, SAC_ERR_FORMAT, "calibration: %s has no picture", p->base.name);
    if (res == SAC_EOS)
        tell_damage(p);
    p->given += res == SAC_OK;
    return res;
}

/* ---- inputs ---- */

static sac_result choose_head(struct pictures *p, struct sac_head_library *library,
                              const struct sac_head **out)
{
    static const struct sac_head none = {.name = "none"};
    const char                  *path = sac_model_path(p->model);
    char                         names[256];
    if (p->head && sac_head_is_library(p->head)) {
        *out = &library->head;
        return sac_head_library_open(p->ctx, p->head, library);
    }
    *out = p->head ? sac_head_find(p->head) : sac_head_of(&p->view);
    if (p->head && !*out) {
        sac_head_names(false, names, sizeof names);
        return SAC_FAIL(p->ctx, SAC_ERR_ARG, "no head '%s'; have %s, or a shared object", p->head,
                        names);
    }
    if (!*out)
        sac_log(p->ctx, SAC_LOG_INFO,
                "%s: no head knows it; where its file does not say it, pictures are prepared as "
                "RGB in 0..1, with a letterbox (--preprocess changes that)",
                path);
    if (!*out)
        *out = &none;
    return SAC_OK;
}

static sac_result read_contract(struct pictures *p)
{
    struct sac_head_library library = {.handle = NULL};
    const struct sac_head  *head = NULL;
    sac_model_contract_finish(&p->contract);
    p->contract = (struct sac_model_contract){.class_count = 0};
    sac_result res = choose_head(p, &library, &head);
    if (res == SAC_OK)
        res = sac_head_preprocess(p->ctx, head, &p->view, &p->contract.pre);
    if (res == SAC_OK)
        res = sac_model_contract_read(p->model, p->preprocess, &p->contract);
    if (res == SAC_OK)
        res = sac_head_check_size(p->ctx, &p->view, &p->contract);
    if (res == SAC_OK)
        sac_contract_range(&p->contract, &p->base.low, &p->base.high);
    p->judge.head = sac_head_find(head && !head->plugin ? head->name : ""); /* of those that stay */
    sac_head_library_close(&library);
    return res;
}

static sac_result prepare(sac_calibration *cal, const sac_model *model)
{
    struct pictures *p = (struct pictures *)cal;
    p->model = model;
    sac_result res = sac_head_view_init(p->ctx, model, p->preprocess, &p->view);
    if (res == SAC_OK)
        res = read_contract(p);
    return res == SAC_OK ? res
                         : sac_fail_prefix(p->ctx, res, "calibration%s: ",
                                           res == SAC_ERR_UNSUPPORTED ? " needs pictures" : "");
}

/* The size is the plan's; one that the user asks for must be that. */
static sac_result size_as(struct pictures *p, const struct sac_tensor_desc *image)
{
    struct sac_preprocess *pre = &p->contract.pre;
    const int64_t *dims = image->shape + (p->view.feed.single ? 0 : 1) + !p->view.channels_last;
    if (p->contract.size_from == SAC_FROM_USER && (pre->height != dims[0] || pre->width != dims[1]))
        return SAC_FAIL(p->ctx, SAC_ERR_ARG,
                        "preprocess: size=%dx%d, and the plan is made for %lldx%lld", pre->width,
                        pre->height, (long long)dims[1], (long long)dims[0]);
    pre->height = (int)dims[0];
    pre->width = (int)dims[1];
    return SAC_OK;
}

static sac_result make_inputs(struct pictures *p, const sac_frame *frame, sac_tensor **in)
{
    const struct sac_preprocess_job job = {.frame = frame};
    const struct sac_tensor_desc    desc = sac_preprocess_desc(&p->contract.pre, 1);
    sac_tensor                     *pixels = NULL, *made[SAC_FEED_INPUTS_MAX];
    sac_result                      res = sac_tensor_create(p->cpu, &desc, "calibration", &pixels);
    if (res == SAC_OK)
        res = sac_preprocess_run(p->cpu, &p->contract.pre, &job, 1, pixels);
    if (res == SAC_OK)
        res = sac_feed_make(&p->view.feed, p->cpu, p->model, pixels, made);
    if (res == SAC_OK)
        memcpy(in, made, (size_t)p->view.feed.count * sizeof(sac_tensor *));
    sac_tensor_unref(&pixels);
    return res;
}

static sac_result next(sac_calibration *cal, const struct sac_tensor_desc *desc, sac_tensor **in)
{
    struct pictures *p = (struct pictures *)cal;
    sac_frame       *frame = NULL;
    sac_result       res = size_as(p, &desc[p->view.feed.image]);
    if (res == SAC_OK)
        res = read_frame(p, &frame);
    if (res != SAC_OK)
        return res;
    name_sample(p, frame);
    res = make_inputs(p, frame, in);
    sac_frame_unref(&frame);
    return res;
}

/* ---- the whole ---- */

static sac_result compare(sac_calibration *cal, int outputs, sac_tensor *const *want,
                          sac_tensor *const *got)
{
    struct pictures *p = (struct pictures *)cal;
    p->judge.cpu = p->cpu;
    p->judge.view = p->view;
    p->judge.width = p->contract.pre.width;
    p->judge.height = p->contract.pre.height;
    return outputs == p->view.output_count ? sac_quality_compare(&p->judge, want, got) : SAC_OK;
}

static struct sac_verdict verdict(sac_calibration *cal)
{
    return sac_quality_verdict(&((struct pictures *)cal)->judge);
}

static void close_pictures(sac_calibration *cal)
{
    struct pictures *p = (struct pictures *)cal;
    sac_source_close(&p->src);
    sac_model_contract_finish(&p->contract);
    sac_device_unref(&p->cpu);
    sac_quality_finish(&p->judge);
    sac_free(p->base.name);
    sac_free(p->url);
    sac_free(p->head);
    sac_free(p->preprocess);
    sac_free(p);
}

static const struct sac_calibration_ops ops = {.prepare = prepare,
                                               .rewind = rewind_pictures,
                                               .next = next,
                                               .file = file_of,
                                               .close = close_pictures,
                                               .compare = compare,
                                               .verdict = verdict};

static bool copy_texts(struct pictures *p, const char *url)
{
    p->url = sac_strdup(url);
    p->base.name = sac_strdup_hidden(url);
    p->head = p->params.head ? sac_strdup(p->params.head) : NULL;
    p->preprocess = p->params.preprocess ? sac_strdup(p->params.preprocess) : NULL;
    return p->url && p->base.name && !p->head == !p->params.head &&
           !p->preprocess == !p->params.preprocess;
}

sac_result sac_calibration_open(sac_context *ctx, const char *url,
                                const struct sac_calibration_params *params, sac_calibration **out)
{
    SAC_NEEDS(ctx, ctx);
    SAC_NEEDS(ctx, url);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "calibration parameters");
    const struct sac_calibration_params given = params ? *params : sac_calibration_params_default();
    if (given.sample_max < 1 || given.sample_max > 10000)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "calibration: sample_max is %d; have 1 to 10000",
                        given.sample_max);
    struct pictures *p = sac_new(struct pictures);
    if (!p)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "calibration: no memory");
    p->base.ops = &ops;
    p->ctx = ctx;
    p->params = given;
    sac_result res =
        copy_texts(p, url) ? SAC_OK : SAC_FAIL(ctx, SAC_ERR_MEMORY, "calibration: no memory");
    if (res == SAC_OK)
        res = sac_device_open(ctx, "cpu", NULL, &p->cpu);
    if (res == SAC_OK)
        res = open_first(p);
    if (res == SAC_OK)
        *out = &p->base;
    else
        close_pictures(&p->base);
    return res;
}

void sac_calibration_close(sac_calibration **cal)
{
    sac_calibration *c = cal ? *cal : NULL;
    if (!c)
        return;
    *cal = NULL;
    c->ops->close(c);
}
