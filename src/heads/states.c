/* SPDX-License-Identifier: Apache-2.0 */
/* Which output of a recurrent network each of its states is fed with: as the user or the file's
 * metadata (saccade.preprocess) says, else by name (r1i and r1o, h_in and h_out), else by shape. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "heads/feed.h"

/* What stands before and behind the name that both have. */
static const struct form {
    const char *in_before, *in_behind, *out_before, *out_behind;
} forms[] = {
    {"", "i", "", "o"},
    {"", "_in", "", "_out"},
    {"", "in", "", "out"},
    {"", "_input", "", "_output"},
    {"in_", "", "out_", ""},
    {"input_", "", "output_", ""},
    {"i", "", "o", ""},
    {"prev_", "", "next_", ""},
    {"prev_", "", "new_", ""},
    {"prev_", "", "", ""},
    {"past_", "", "present_", ""},
    {"", "_prev", "", "_next"},
    {"", "_prev", "", ""},
    {"", "_in", "", ""},
    {"", "", "", "_out"},
    {"", "", "", "_next"},
    {"", "", "", "_new"},
    {"", "", "new_", ""},
    {"", "", "next_", ""},
    {"", "", "out_", ""},
    {"", "", "", "o"},
};

/* The part of a name between two others; NULL: it does not stand between them. */
static const char *between(const char *name, const char *before, const char *behind, size_t *length)
{
    const size_t all = strlen(name), first = strlen(before), last = strlen(behind);
    if (all <= first + last || strncasecmp(name, before, first) != 0 ||
        strcasecmp(name + all - last, behind) != 0)
        return NULL;
    *length = all - first - last;
    return name + first;
}

static bool names_pair(const struct form *f, const char *in, const char *out)
{
    size_t      in_length = 0, out_length = 0;
    const char *a = between(in, f->in_before, f->in_behind, &in_length);
    const char *b = between(out, f->out_before, f->out_behind, &out_length);
    return a && b && in_length == out_length && strncasecmp(a, b, in_length) == 0;
}

static bool shapes_pair(const struct sac_tensor_desc *in, const struct sac_tensor_desc *out,
                        bool exactly)
{
    bool fits = in->dtype == out->dtype && in->rank == out->rank && in->rank >= 2;
    for (int i = 0; fits && i < in->rank; i++) {
        const bool open = in->shape[i] == SAC_DIM_UNKNOWN || out->shape[i] == SAC_DIM_UNKNOWN;
        fits = in->shape[i] == out->shape[i] || (open && (!exactly || i == 0));
    }
    return fits;
}

static bool is_taken(const int *pair, int inputs, int output)
{
    for (int i = 0; i < inputs; i++)
        if (pair[i] == output)
            return true;
    return false;
}

/* A picture has three channels. */
static bool may_be_state(const struct sac_model_port *in)
{
    const struct sac_tensor_desc *d = &in->desc;
    return !(d->rank == 4 && (d->shape[1] == 3 || d->shape[3] == 3));
}

static void pair_by_name(const sac_model *model, int inputs, int *pair)
{
    for (int i = 0; i < inputs; i++)
        for (size_t f = 0;
             f < SAC_COUNT(forms) && pair[i] < 0 && may_be_state(sac_model_input(model, i)); f++)
            for (int o = 0; o < sac_model_output_count(model) && pair[i] < 0; o++) {
                const struct sac_model_port *in = sac_model_input(model, i),
                                            *out = sac_model_output(model, o);
                if (names_pair(&forms[f], in->name, out->name) &&
                    shapes_pair(&in->desc, &out->desc, false) && !is_taken(pair, inputs, o))
                    pair[i] = o;
            }
}

/* What is left: inputs in their order, each with the first output that has its shape. */
static void pair_by_shape(const sac_model *model, int inputs, int *pair)
{
    for (int i = 0; i < inputs; i++) {
        const struct sac_model_port *in = sac_model_input(model, i);
        for (int o = 0; o < sac_model_output_count(model) && pair[i] < 0 && may_be_state(in); o++)
            if (in->desc.rank >= 3 && !is_taken(pair, inputs, o) &&
                shapes_pair(&in->desc, &sac_model_output(model, o)->desc, true))
                pair[i] = o;
    }
}

static int find_port(const sac_model *model, bool output, const char *name)
{
    const int count = output ? sac_model_output_count(model) : sac_model_input_count(model);
    for (int i = 0; i < count; i++)
        if (!strcmp((output ? sac_model_output(model, i) : sac_model_input(model, i))->name, name))
            return i;
    return -1;
}

/* "state=r1i:r1o" */
static sac_result apply_item(sac_context *ctx, const sac_model *model, char *item, sac_result bad,
                             int *pair)
{
    char *colon = strrchr(item, ':');
    if (!colon)
        return SAC_FAIL(ctx, bad, "preprocess: state=%s; it takes INPUT:OUTPUT", item);
    *colon = '\0';
    const int in = find_port(model, false, item), out = find_port(model, true, colon + 1);
    if (in < 0 || out < 0)
        return SAC_FAIL(ctx, bad, "preprocess: state=%s:%s; %s has no %s '%s'", item, colon + 1,
                        sac_model_path(model), in < 0 ? "input" : "output",
                        in < 0 ? item : colon + 1);
    if (!shapes_pair(&sac_model_input(model, in)->desc, &sac_model_output(model, out)->desc, false))
        return SAC_FAIL(ctx, bad, "preprocess: state=%s:%s; they have other shapes or types", item,
                        colon + 1);
    pair[in] = out;
    return SAC_OK;
}

static sac_result apply_text(sac_context *ctx, const sac_model *model, const char *text,
                             sac_result bad, int *pair)
{
    char      *copy = sac_strdup(text), *save = NULL;
    sac_result res = copy ? SAC_OK : SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for a model's text");
    for (char *item = copy ? strtok_r(copy, ", \t", &save) : NULL; item && res == SAC_OK;
         item = strtok_r(NULL, ", \t", &save))
        if (!strncmp(item, "state=", 6))
            res = apply_item(ctx, model, item + 6, bad, pair);
    sac_free(copy);
    return res;
}

sac_result sac_states_pair(sac_context *ctx, const sac_model *model, const char *user, int *pair)
{
    const int   inputs = sac_model_input_count(model);
    const char *text = sac_model_metadata(model, "saccade.preprocess");
    sac_result  res = SAC_OK;
    for (int i = 0; i < inputs; i++)
        pair[i] = -1;
    if (text)
        res = apply_text(ctx, model, text, SAC_ERR_FORMAT, pair);
    if (res == SAC_OK && user)
        res = apply_text(ctx, model, user, SAC_ERR_ARG, pair);
    if (res != SAC_OK || inputs < 2)
        return res;
    pair_by_name(model, inputs, pair);
    pair_by_shape(model, inputs, pair);
    return SAC_OK;
}
