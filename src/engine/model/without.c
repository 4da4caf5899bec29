/* SPDX-License-Identifier: Apache-2.0 */
/* The names of what can be left out: each pass, all of them, what a plan does, and what a device
 * has, which looks for its names itself (device/without.c). */
#include <stdio.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/passes/pass.h"

static const struct {
    const char        *name;
    struct sac_without what;
} rows[] = {
    {"fusion", {.passes = UINT64_MAX}},
    {"concat-placement", {.plan = SAC_WITHOUT_CONCATS}},
    {"in-place", {.plan = SAC_WITHOUT_IN_PLACE}},
    {"memory-reuse", {.plan = SAC_WITHOUT_REUSE}},
    {"channels-last", {.plan = SAC_WITHOUT_CHANNELS_LAST}},
    {"cuda-graph", {.plan = SAC_WITHOUT_CAPTURE}},
    {"kernel-trials", {.plan = SAC_WITHOUT_TRIALS}},
    {"branches", {.plan = SAC_WITHOUT_BRANCHES}},
};

const char *sac_without_name(int i, struct sac_without *out)
{
    if (i < (int)SAC_COUNT(rows)) {
        *out = rows[i].what;
        return rows[i].name;
    }
    i -= (int)SAC_COUNT(rows);
    int passes = 0;
    while (sac_pass_name(passes))
        passes++;
    *out = (struct sac_without){.passes = i < passes ? (uint64_t)1 << i : 0};
    return i < passes ? sac_pass_name(i) : sac_device_without_name(i - passes);
}

static void add_name(char *out, size_t size, const char *name)
{
    const size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", used ? ", " : "", name);
}

void sac_without_text(const struct sac_without *without, char *out, size_t size)
{
    struct sac_without left = *without, row;
    const char        *name;
    out[0] = '\0';
    for (int i = 0; (left.passes || left.plan) && (name = sac_without_name(i, &row)); i++)
        if ((left.passes & row.passes) == row.passes && (left.plan & row.plan) == row.plan &&
            (left.passes & row.passes || left.plan & row.plan)) {
            add_name(out, size, name);
            left.passes &= ~row.passes; /* "fusion" stands for all passes */
        }
}

static sac_result add(sac_context *ctx, const char *source, const char *text, size_t length,
                      struct sac_without *out)
{
    struct sac_without row;
    const char        *name;
    char               names[1024] = "";
    for (int i = 0; (name = sac_without_name(i, &row)); i++) {
        if (strlen(name) == length && strncmp(name, text, length) == 0) {
            out->passes |= row.passes;
            out->plan |= row.plan;
            return SAC_OK;
        }
        add_name(names, sizeof names, name);
    }
    return SAC_FAIL(ctx, SAC_ERR_ARG, "%s: '%.*s' cannot be left out; these can: %s", source,
                    (int)SAC_MIN(length, 100), text, names);
}

sac_result sac_without_parse(sac_context *ctx, const char *source, const char *text,
                             struct sac_without *out)
{
    sac_result res = SAC_OK;
    while (res == SAC_OK && *(text += strspn(text, ", "))) {
        const size_t length = strcspn(text, ", ");
        res = add(ctx, source, text, length, out);
        text += length;
    }
    return res;
}
