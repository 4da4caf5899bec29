/* SPDX-License-Identifier: Apache-2.0 */
/* saccade inspect: what a file is. The file extension tells a model; anything else is opened as
 * video. */
#include <string.h>
#include <strings.h>

#include <saccade/models.h>

#include "inspect.h"
#include "term.h"
#include "verbs.h"

static bool ends_with(const char *path, const char *ending)
{
    size_t length = strlen(path), n = strlen(ending);
    return length >= n && strcasecmp(path + length - n, ending) == 0;
}

static int open_device(struct settings *s, sac_context *ctx, sac_device **out, struct fault *fault)
{
    sac_result res = sac_device_open(ctx, s->run.job.device, &s->run.job.device_params, out);
    return res == SAC_OK ? STATUS_OK : fault_library(fault, ctx, res);
}

/* Whether the text is the name of a model that comes with saccade, not a file. */
static bool names_model(const char *path)
{
    char found[4096];
    return sac_models_find(NULL, path, found, sizeof found) == SAC_OK && strcmp(found, path) != 0;
}

bool inspect_is_model(const char *path)
{
    return ends_with(path, ".onnx") || ends_with(path, ".plan") || names_model(path);
}

int verb_inspect(struct settings *s, struct fault *fault)
{
    const char *path = s->args.items[0];
    if (ends_with(path, ".engine") || ends_with(path, ".trt"))
        return fault_failure(fault,
                             "%s: a compiled engine works with one GPU and one version only; use "
                             "the ONNX file that it was built from",
                             path);
    sac_context *ctx = NULL;
    sac_device  *device = NULL;
    int          status = term_context(s, &ctx, fault);
    if (status == STATUS_OK)
        status = open_device(s, ctx, &device, fault);
    if (status == STATUS_OK)
        status = inspect_is_model(path) ? inspect_model(s, ctx, device, path, fault)
                                        : inspect_video(s, ctx, device, path, fault);
    sac_device_unref(&device);
    sac_context_destroy(&ctx);
    return status;
}
