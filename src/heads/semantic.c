/* SPDX-License-Identifier: Apache-2.0 */
/* A class for each pixel: a number for each class of a cell, [C,h,w] or [h,w,C] at any stride
 * (DeepLabV3+, SegFormer, LR-ASPP, BiSeNet), or the number of its class alone, where the file ends
 * in an ArgMax.
 *
 * A feature map, a picture, heatmaps of joints look like it. The shape rules out what it can, the
 * names of outputs some more; a network that is left is taken for one of classes. */
#include "heads/heads.h"
#include "vision/matte.h"

/* Beside other maps of as many classes, which only training uses, or of other things. */
static const char *const        first_names[] = {"logits", "out", "seg", NULL},
                         *const training_names[] = {"aux", NULL},
                         *const other_names[] = {"heat", "keypoint", "joint",   "embed",
                                                 "feat", "hidden",   "depth",   "disp",
                                                 "flow", "normal",   "queries", NULL};

static bool is_label(const struct sac_head_view *v, int output)
{
    return (v->facts.whole >> output & 1) || v->facts.ending[output].kind == SAC_ENDS_CHOICE;
}

/* Three numbers for each pixel may be a picture, unless a coarse map was enlarged to them; features
 * come in steps of 32; anchors of COCO's detectors have 85 numbers. */
static bool may_be_classes(const struct sac_head_view *v, int output,
                           const struct sac_head_map *map)
{
    const enum sac_ending_kind ending = v->facts.ending[output].kind;
    const bool full = map->width == SAC_DIM_UNKNOWN || !v->width || map->width == v->width;
    if (v->facts.names)
        return map->numbers == v->facts.names;
    if (ending == SAC_ENDS_SOFTMAX)
        return true;
    return ending != SAC_ENDS_POSITIVE &&
           !(map->numbers == 3 && full && !v->facts.ending[output].enlarged) &&
           !(map->numbers >= 64 && map->numbers % 32 == 0) && map->numbers % 85 != 0;
}

static bool is_classes(const struct sac_head_view *v, int output)
{
    struct sac_head_map map;
    if (!sac_head_map_of(v, output, &map) || sac_head_is_called(v, output, other_names))
        return false;
    return is_label(v, output) ? map.numbers == 1
                               : map.numbers >= 2 && may_be_classes(v, output, &map);
}

/* Which output is read; -1: none. */
static int choose(const struct sac_head_view *v)
{
    int found = -1;
    for (int i = 0; i < v->output_count; i++) {
        if (!is_classes(v, i))
            continue;
        const bool better = found < 0 || (sac_head_is_called(v, found, training_names) &&
                                          !sac_head_is_called(v, i, training_names));
        const bool named = found >= 0 && sac_head_is_called(v, i, first_names) &&
                           !sac_head_is_called(v, found, first_names);
        if (better || named)
            found = i;
    }
    return found;
}

/* Beside classes that are not called so stand maps of the same shape, known or open; boxes and
 * queries belong to other networks. */
static bool fits_beside(const struct sac_head_view *v, int chosen, int other)
{
    struct sac_head_map a, b;
    const bool          maps = sac_head_map_of(v, chosen, &a) && sac_head_map_of(v, other, &b);
    if (sac_head_is_called(v, chosen, first_names))
        return maps || v->output[other].desc.rank == 4;
    return maps && a.width == b.width && a.height == b.height && a.numbers == b.numbers;
}

static bool recognise(const struct sac_head_view *v)
{
    const bool fits = !v->feed.single && v->facts.task == SAC_TASK_UNKNOWN &&
                      !sac_feed_has(&v->feed, SAC_FEED_STATE);
    const int chosen = fits ? choose(v) : -1;
    for (int i = 0; i < v->output_count && chosen >= 0; i++)
        if (i != chosen && !fits_beside(v, chosen, i))
            return false;
    return chosen >= 0;
}

static int class_count(const struct sac_head_view *v)
{
    struct sac_head_map map;
    const int           chosen = choose(v);
    if (chosen < 0 || !sac_head_map_of(v, chosen, &map))
        return 0;
    if (!is_label(v, chosen))
        return (int)map.numbers;
    const int64_t classes = v->facts.ending[chosen].classes;
    return classes >= 2 && classes <= SAC_DETECT_CLASSES_MAX ? (int)classes : v->facts.names;
}

/* Channels last: TensorFlow's DeepLab. The others are trained in PyTorch. */
static void defaults(const struct sac_head_view *v, struct sac_preprocess *pre)
{
    pre->fit = SAC_FIT_STRETCH;
    pre->width = v->width ? v->width : 512;
    pre->height = v->height ? v->height : 512;
    if (!v->channels_last) {
        sac_head_normalise(pre, SAC_ORDER_RGB);
        return;
    }
    for (int c = 0; c < 3; c++) {
        pre->mean[c] = 127.5f;
        pre->scale[c] = 1 / 127.5f;
    }
}

/* One that --head names is read wherever the shape allows it. */
static int choose_any(const struct sac_head_view *v)
{
    struct sac_head_map map;
    const int           chosen = choose(v);
    for (int i = 0; i < v->output_count && chosen < 0; i++)
        if (sac_head_map_of(v, i, &map) && (is_label(v, i) ? map.numbers == 1 : map.numbers >= 2))
            return i;
    return chosen;
}

static bool matte(const struct sac_head_view *v, struct sac_matte_spec *out)
{
    const int output = choose_any(v);
    if (output < 0 || !sac_head_map_spec(v, output, out))
        return false;
    const enum sac_ending_kind ending = v->facts.ending[output].kind;
    if (is_label(v, output)) {
        out->form = SAC_MATTE_LABEL;
        out->classes = class_count(v);
        return true;
    }
    const bool shares =
        ending == SAC_ENDS_SOFTMAX || ending == SAC_ENDS_SHARE || (v->facts.shares >> output & 1);
    out->form = shares ? SAC_MATTE_CLASS_SHARES : SAC_MATTE_CLASS_LOGITS;
    return true;
}

const struct sac_head sac_head_semantic = {
    .name = "semantic",
    .what = "numbers of each class for every pixel, or the number of its class: segmentation",
    .wants = "[classes,h,w], [h,w,classes] or [h,w] of class numbers, in the picture's proportions",
    .recognise = recognise,
    .class_count = class_count,
    .defaults = defaults,
    .matte = matte,
};
