/* SPDX-License-Identifier: Apache-2.0 */
/* Networks for video that keep a state from frame to frame, RobustVideoMatting first (Lin et al.,
 * 2021): beside the picture they take what they gave with the frame before (r1i and r1o, ...), one
 * stream and one picture at a time. What is left of their outputs is read as of the other heads. */
#include <string.h>

#include "heads/heads.h"
#include "vision/matte.h"

/* RobustVideoMatting's exporter leaves the channels of its outputs open: they end in a Clip of a
 * slice. Their names are its published interface. */
static void close_channels(struct sac_model_port *output)
{
    static const struct {
        const char *name;
        int         channels;
    } known[] = {{"fgr", 3}, {"pha", 1}};
    for (size_t i = 0; i < SAC_COUNT(known); i++)
        if (output->name && !strcmp(output->name, known[i].name) && output->desc.rank == 4 &&
            output->desc.shape[1] == SAC_DIM_UNKNOWN)
            output->desc.shape[1] = known[i].channels;
}

/* The view without the outputs that are states; at [i] is which of the outputs its output i is. */
static struct sac_head_view without_states(const struct sac_head_view *v, int *at)
{
    struct sac_head_view other = *v;
    other.output_count = 0;
    other.facts.whole = other.facts.shares = 0;
    for (int i = 0; i < other.feed.count; i++)
        if (other.feed.kind[i] == SAC_FEED_STATE && i != other.feed.image)
            other.feed.kind[i] = SAC_FEED_ONES;
    for (int i = 0; i < v->output_count; i++) {
        if (sac_feed_gives_state(&v->feed, i))
            continue;
        const int n = other.output_count++;
        other.output[n] = v->output[i];
        close_channels(&other.output[n]);
        other.facts.ending[n] = v->facts.ending[i];
        other.facts.whole |= (v->facts.whole >> i & 1) << n;
        other.facts.shares |= (v->facts.shares >> i & 1) << n;
        at[n] = i;
    }
    return other;
}

static const struct sac_head *reader(const struct sac_head_view *rest)
{
    return sac_head_matte.recognise(rest)      ? &sac_head_matte
           : sac_head_semantic.recognise(rest) ? &sac_head_semantic
                                               : NULL;
}

static bool recognise(const struct sac_head_view *v)
{
    int at[SAC_HEAD_OUTPUTS_MAX];
    if (!sac_feed_has(&v->feed, SAC_FEED_STATE))
        return false;
    const struct sac_head_view rest = without_states(v, at);
    return rest.output_count > 0 && reader(&rest);
}

static int class_count(const struct sac_head_view *v)
{
    int                        at[SAC_HEAD_OUTPUTS_MAX];
    const struct sac_head_view rest = without_states(v, at);
    return reader(&rest) == &sac_head_semantic ? sac_head_semantic.class_count(&rest) : 0;
}

/* Trained on video in its own proportions and on pixels from 0 to 1. Where the file leaves the size
 * open, one that its authors name for the part that looks at all of the picture. */
static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    pre->fit = SAC_FIT_LETTERBOX_CENTRE;
    pre->width = v->width ? v->width : 512;
    pre->height = v->height ? v->height : 288;
    for (int c = 0; c < 3; c++)
        pre->fill[c] = 0;
}

static bool matte(const struct sac_head_view *v, struct sac_matte_spec *out)
{
    int                        at[SAC_HEAD_OUTPUTS_MAX];
    const struct sac_head_view rest = without_states(v, at);
    const struct sac_head     *head = reader(&rest);
    if (!head || !head->matte(&rest, out))
        return false;
    out->value.tensor = at[out->value.tensor];
    return true;
}

const struct sac_head sac_head_recurrent = {
    .name = "recurrent",
    .what = "a map beside states that go from frame to frame: video matting",
    .wants = "one number or one a class for every pixel, and states that inputs take",
    .recognise = recognise,
    .class_count = class_count,
    .defaults = defaults,
    .matte = matte,
};
