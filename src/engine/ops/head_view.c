/* SPDX-License-Identifier: Apache-2.0 */
/* Views of heads, which engine/ops/fused.h defines: nothing about their numbers is trusted. */
#include <stdio.h>
#include <string.h>

#include "engine/ops/fused.h"
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

enum { VIEW_OFFSET, VIEW_DIMS, VIEW_STEPS = VIEW_DIMS + SAC_VIEW_RANK };

/* Entries that `open` marks count for each entry of one axis of the operand, whose size is known
 * only now. */
static sac_result open_view(const struct sac_op_call *c, const char *name,
                            const struct sac_operand *o, int64_t *entry)
{
    char           attr[16];
    const int64_t *open;
    snprintf(attr, sizeof attr, "%s_open", name);
    const size_t count = sac_attr_ints(c->node, attr, &open);
    if (count == 0)
        return SAC_OK;
    SAC_CHECK(c, count == 2 && open[0] >= 0 && open[0] < o->rank,
              "%s: not an axis of its operand and the entries that it multiplies", attr);
    const int64_t times = o->dims[open[0]];
    for (int i = 0; i < SAC_VIEW_ENTRIES; i++) {
        if (!(open[1] >> i & 1))
            continue;
        SAC_CHECK(c, times == 0 || entry[i] <= INT64_MAX / times, "%s: too large", attr);
        entry[i] *= times;
    }
    return SAC_OK;
}

/* A view shows no number twice, so its dims are no more than what is there; and where it shows
 * none, the others still count turns of a loop. */
static sac_result check_dims(const struct sac_op_call *c, const char *name,
                             const struct sac_operand *o, const struct sac_head_view *v)
{
    bool empty = false;
    for (int d = 0; d < SAC_VIEW_RANK; d++)
        empty |= v->dim[d] == 0;
    int64_t room = empty ? INT32_MAX : sac_operand_elements(o);
    for (int d = 0; d < SAC_VIEW_RANK; d++) {
        SAC_CHECK(c, v->dim[d] <= room, "view %s is larger than its operand", name);
        room /= SAC_MAX(v->dim[d], 1);
    }
    return SAC_OK;
}

/* All of the view lies within its operand. */
static sac_result check_range(const struct sac_op_call *c, const char *name,
                              const struct sac_operand *o, const struct sac_head_view *v)
{
    const int64_t elements = sac_operand_elements(o);
    int64_t       last = v->offset;
    for (int d = 0; d < SAC_VIEW_RANK; d++)
        if (v->dim[d] == 0)
            return SAC_OK;
    SAC_CHECK(c, last < elements, "view %s begins outside of its operand", name);
    for (int d = 0; d < SAC_VIEW_RANK; d++) {
        if (v->dim[d] == 1)
            continue;
        SAC_CHECK(c, v->step[d] <= (elements - 1 - last) / (v->dim[d] - 1),
                  "view %s ends outside of its operand of %lld numbers", name, (long long)elements);
        last += v->step[d] * (v->dim[d] - 1);
    }
    return SAC_OK;
}

sac_result sac_head_view_read(const struct sac_op_call *c, const char *name,
                              const struct sac_operand *o, struct sac_head_view *v)
{
    const int64_t *from;
    int64_t        entry[SAC_VIEW_ENTRIES];
    SAC_CHECK(c, sac_attr_ints(c->node, name, &from) == SAC_VIEW_ENTRIES,
              "view %s has not %d numbers", name, SAC_VIEW_ENTRIES);
    for (int i = 0; i < SAC_VIEW_ENTRIES; i++) {
        SAC_CHECK(c, from[i] >= 0, "view %s has the negative number %lld", name,
                  (long long)from[i]);
        entry[i] = from[i];
    }
    SAC_TRY(open_view(c, name, o, entry));
    v->offset = entry[VIEW_OFFSET];
    memcpy(v->dim, entry + VIEW_DIMS, sizeof v->dim);
    memcpy(v->step, entry + VIEW_STEPS, sizeof v->step);
    SAC_TRY(check_dims(c, name, o, v));
    return check_range(c, name, o, v);
}

/* The output's view visits each of its elements once: from the largest step on, each is what the
 * smaller ones span. */
static bool covers(const struct sac_head_view *y, const struct sac_operand *o)
{
    bool used[SAC_VIEW_RANK] = {false};
    for (int64_t span = sac_operand_elements(o); span > 1;) {
        int found = -1;
        for (int d = 0; d < SAC_VIEW_RANK; d++)
            if (!used[d] && y->dim[d] > 1 && span % y->dim[d] == 0 &&
                y->step[d] == span / y->dim[d])
                found = d;
        if (found < 0)
            return false;
        used[found] = true;
        span = y->step[found];
    }
    return y->offset == 0;
}

sac_result sac_head_view_output(const struct sac_op_call *c, const int64_t dims[SAC_VIEW_RANK],
                                struct sac_head_view *y)
{
    SAC_TRY(sac_head_view_read(c, "y", &c->out[0], y));
    SAC_CHECK(c, memcmp(dims, y->dim, sizeof y->dim) == 0 && covers(y, &c->out[0]),
              "view y does not write each number of the output once");
    return SAC_OK;
}

sac_result sac_head_shape_out(struct sac_op_call *c, enum sac_dtype dtype,
                              const int64_t dims[SAC_VIEW_RANK])
{
    const int64_t most = (int64_t)1 << 40;
    int64_t       shape[SAC_RANK_MAX], count = 1;
    int           rank;
    for (int d = 0; d < SAC_VIEW_RANK; d++) {
        SAC_CHECK(c, dims[d] == 0 || count <= most / dims[d], "the output is too large");
        count *= dims[d];
    }
    SAC_TRY(sac_fused_dims(c, count, shape, &rank));
    return sac_shape_out(c, 0, dtype, rank, shape);
}

struct sac_head_view sac_head_view_turned(const struct sac_head_view *v)
{
    return (struct sac_head_view){v->offset,
                                  {v->dim[0], v->dim[1], v->dim[3], v->dim[2]},
                                  {v->step[0], v->step[1], v->step[3], v->step[2]}};
}

bool sac_head_view_last(const struct sac_operand *o, const struct sac_head_view *v,
                        struct sac_head_view *out)
{
    int64_t pixels = 1, pixel, channel;
    if (o->rank < 3 || o->rank > 5 || sac_operand_elements(o) == 0)
        return false;
    for (int d = 2; d < o->rank; d++)
        pixels *= o->dims[d];
    const int64_t channels = o->dims[1], sample = channels * pixels;
    pixel = v->offset % pixels;
    channel = v->offset % sample / pixels;
    *out = *v;
    out->offset = v->offset / sample * sample + pixel * channels + channel;
    for (int d = 0; d < SAC_VIEW_RANK; d++) {
        const int64_t step = v->step[d], turns = v->dim[d] - 1;
        if (turns <= 0 || step % sample == 0)
            continue;
        const bool    along = step % pixels == 0;
        const int64_t one = along ? step / pixels : step, of = along ? channels : pixels;
        int64_t      *at = along ? &channel : &pixel;
        if (one > (of - 1 - *at) / turns)
            return false;
        *at += turns * one;
        out->step[d] = along ? one : one * channels;
    }
    return true;
}
