/* SPDX-License-Identifier: Apache-2.0 */
/* One number for each pixel, how much of it belongs to a person or to what stands in front: MODNet,
 * U2-Net, person_seg, and networks with one class. A depth map looks the same; networks of depth
 * end at 0 (Relu), or their outputs are called so. */
#include "heads/heads.h"
#include "vision/matte.h"

static const char *const        matte_names[] = {"pha", "alpha", "matte", "mask", "seg", NULL},
                         *const other_names[] = {"depth", "disp", "heat",  "edge",
                                                 "error", "flow", "embed", NULL};

static bool is_matte(const struct sac_head_view *v, int output)
{
    struct sac_head_map        map;
    const enum sac_ending_kind ending = v->facts.ending[output].kind;
    const bool                 named = sac_head_is_called(v, output, matte_names);
    if (!sac_head_map_of(v, output, &map) || map.numbers != 1 || (v->facts.whole >> output & 1) ||
        ending == SAC_ENDS_CHOICE || sac_head_is_called(v, output, other_names))
        return false;
    const bool shares = ending == SAC_ENDS_SHARE || ending == SAC_ENDS_SOFTMAX;
    const bool open = map.width == SAC_DIM_UNKNOWN && v->output[output].desc.rank < 4; /* tokens? */
    return named || shares || (ending == SAC_ENDS_LINEAR && !open);
}

/* The one that is called a matte, else the first: U2-Net's others are coarser. -1: none. */
static int choose(const struct sac_head_view *v)
{
    int found = -1;
    for (int i = 0; i < v->output_count; i++)
        if (is_matte(v, i) && (found < 0 || (sac_head_is_called(v, i, matte_names) &&
                                             !sac_head_is_called(v, found, matte_names))))
            found = i;
    return found;
}

/* Beside it only other maps of one number, or the foreground's colours where it is called a
 * matte. */
static bool recognise(const struct sac_head_view *v)
{
    struct sac_head_map map;
    const int           chosen = choose(v);
    bool fits = chosen >= 0 && !v->feed.single && v->facts.task == SAC_TASK_UNKNOWN &&
                !sac_feed_has(&v->feed, SAC_FEED_STATE);
    for (int i = 0; i < v->output_count && fits; i++)
        fits =
            sac_head_map_of(v, i, &map) &&
            (map.numbers == 1 || (map.numbers == 3 && sac_head_is_called(v, chosen, matte_names)));
    return fits;
}

/* MODNet's. */
static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    pre->fit = SAC_FIT_STRETCH;
    pre->width = v->width ? v->width : 512;
    pre->height = v->height ? v->height : 512;
    for (int c = 0; c < 3; c++) {
        pre->mean[c] = 127.5f;
        pre->scale[c] = 1 / 127.5f;
    }
}

static bool matte(const struct sac_head_view *v, struct sac_matte_spec *out)
{
    struct sac_head_map map;
    int                 output = choose(v);
    for (int i = 0; i < v->output_count && output < 0; i++) /* --head names it */
        output = sac_head_map_of(v, i, &map) && map.numbers == 1 ? i : -1;
    if (output < 0 || !sac_head_map_spec(v, output, out))
        return false;
    const enum sac_ending_kind ending = v->facts.ending[output].kind;
    const bool                 shares =
        ending == SAC_ENDS_SHARE || ending == SAC_ENDS_SOFTMAX || (v->facts.shares >> output & 1);
    out->form = shares ? SAC_MATTE_SHARE : SAC_MATTE_LOGIT;
    return true;
}

const struct sac_head sac_head_matte = {
    .name = "matte",
    .what = "one number for every pixel, how much of it is foreground: matting",
    .wants = "[1,h,w] or [h,w], in the picture's proportions",
    .recognise = recognise,
    .defaults = defaults,
    .matte = matte,
};
