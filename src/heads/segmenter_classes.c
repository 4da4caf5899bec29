/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a network's classes are the matte. */
#include <string.h>
#include <strings.h>

#include "heads/segmenter.h"

static sac_result want(void *user, int class_id)
{
    struct sac_segmenter *seg = user;
    if (class_id >= SAC_DETECT_CLASSES_MAX)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: class %d cannot be chosen, only those below %d",
                        sac_model_path(seg->model), class_id, (int)SAC_DETECT_CLASSES_MAX);
    uint32_t      *word = &seg->spec.wanted[class_id / 32];
    const uint32_t bit = 1u << (class_id % 32);
    if (!(*word & bit))
        seg->wanted[seg->wanted_count++] = class_id;
    *word |= bit;
    return SAC_OK;
}

/* But the background, which is the first; labels that nobody counts may be any. */
static sac_result want_all(struct sac_segmenter *seg)
{
    const int  count = seg->contract.class_count;
    sac_result res = SAC_OK;
    for (int c = 1; c < (count ? count : SAC_DETECT_CLASSES_MAX) && res == SAC_OK; c++)
        res = want(seg, c);
    return res;
}

/* Persons, by what data sets call them; where there are none, all but the first class. */
static sac_result want_auto(struct sac_segmenter *seg)
{
    static const char *const persons[] = {"person", "people", "human", "pedestrian", "rider"};
    const int                count = seg->contract.class_count;
    sac_result               res = SAC_OK;
    for (size_t i = 0; i < SAC_COUNT(persons) && res == SAC_OK; i++)
        for (int c = 0; c < count && res == SAC_OK; c++)
            if (!strcasecmp(seg->contract.classes[c], persons[i]))
                res = want(seg, c);
    return res == SAC_OK && seg->wanted_count == 0 ? want_all(seg) : res;
}

static sac_result want_list(struct sac_segmenter *seg, const char *list)
{
    sac_context     *ctx = seg->dev->ctx;
    const sac_result res = sac_contract_choose_classes(ctx, sac_model_path(seg->model),
                                                       &seg->contract, list, seg, want);
    if (res == SAC_OK && seg->instances.used && (seg->spec.wanted[0] & 1))
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "%s: class 0 is the background, of which it gives no mask; classes count "
                        "from 1",
                        sac_model_path(seg->model));
    return res;
}

/* Of a network with one number a pixel there is nothing to choose; its name may be said. */
static sac_result check_one(struct sac_segmenter *seg, const char *list)
{
    const struct sac_model_contract *c = &seg->contract;
    if (!list || !strcmp(list, "auto") || (c->class_count == 1 && !strcmp(list, c->classes[0])))
        return SAC_OK;
    return SAC_FAIL(seg->dev->ctx, SAC_ERR_ARG,
                    "%s gives one number a pixel: there are no classes to choose, only 'auto'",
                    sac_model_path(seg->model));
}

sac_result sac_segmenter_choose_classes(struct sac_segmenter *seg, const char *list)
{
    const bool one =
        !seg->instances.used && (!seg->head->class_count || !seg->head->class_count(&seg->view));
    const int room = SAC_MAX(seg->contract.class_count, SAC_DETECT_CLASSES_MAX);
    if (one && seg->spec.form != SAC_MATTE_LABEL)
        return check_one(seg, list);
    seg->wanted = sac_calloc((size_t)room, sizeof *seg->wanted);
    if (!seg->wanted)
        return SAC_FAIL(seg->dev->ctx, SAC_ERR_MEMORY, "no memory for the classes");
    if (list && !strcmp(list, "all"))
        return want_all(seg);
    return list && strcmp(list, "auto") != 0 ? want_list(seg, list) : want_auto(seg);
}

/* ---- questions ---- */

int sac_segmenter_class_count(const sac_segmenter *seg)
{
    if (!seg)
        return 0;
    return seg->wanted ? seg->contract.class_count : 0;
}

const char *sac_segmenter_class_name(const sac_segmenter *seg, int class_id)
{
    if (!seg)
        return "unknown";
    const bool known = class_id >= 0 && class_id < seg->contract.class_count;
    return known ? seg->contract.classes[class_id] : "unknown";
}

int sac_segmenter_kept_classes(const sac_segmenter *seg)
{
    return seg->wanted ? seg->wanted_count : seg->contract.class_count;
}

void sac_segmenter_describe_classes(const sac_segmenter *seg, char *out, size_t size)
{
    const int added = seg->instances.used; /* the background, which such a file does not have */
    sac_contract_describe_classes(&seg->contract, seg->wanted, sac_segmenter_kept_classes(seg),
                                  seg->contract.class_count - added, out, size);
}
