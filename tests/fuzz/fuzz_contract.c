/* SPDX-License-Identifier: Apache-2.0 */
/* The model contract: the first line is taken as --preprocess, the whole as M.yaml. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/heads.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct sac_model_contract *c)
{
    for (int i = 0; i < 3; i++)
        if (!isfinite(c->pre.mean[i]) || !isfinite(c->pre.scale[i]) || !isfinite(c->pre.fill[i]))
            abort();
    if (c->pre.width < 0 || c->pre.width > 32768 || c->pre.height < 0 || c->pre.height > 32768)
        abort();
    for (int i = 0; i < c->class_count; i++)
        if (!c->classes[i])
            abort();
}

static void read_text(sac_context *ctx, const uint8_t *data, size_t size)
{
    struct sac_model_contract c = {.pre = sac_preprocess_default()};
    const uint8_t            *end = memchr(data, '\n', size);
    size_t                    len = end ? (size_t)(end - data) : size;
    char                     *line = sac_alloc(len + 1);
    if (!line)
        abort();
    memcpy(line, data, len);
    line[len] = '\0';
    if (sac_contract_apply_text(ctx, &c, line, SAC_FROM_USER) == SAC_OK)
        check(&c);
    sac_free(line);
    sac_model_contract_finish(&c);
}

static void read_yaml(sac_context *ctx, const uint8_t *data, size_t size)
{
    struct sac_model_contract c = {.pre = sac_preprocess_default()};
    FILE                     *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    if (!file)
        abort();
    if (sac_contract_apply_yaml(ctx, "m.yaml", file, &c) == SAC_OK)
        check(&c);
    fclose(file);
    sac_model_contract_finish(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sac_context *ctx;
    if (!size || (!ctx && sac_context_create(NULL, &ctx) != SAC_OK))
        return 0;
    read_text(ctx, data, size);
    read_yaml(ctx, data, size);
    return 0;
}
