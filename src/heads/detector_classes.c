/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a detector's classes are kept. */
#include <string.h>

#include "heads/detector.h"

static sac_result want(void *user, int class_id)
{
    struct sac_detector *det = user;
    for (size_t i = 0; i < det->wanted_count; i++)
        if (det->wanted[i] == class_id)
            return SAC_OK;
    if (!sac_grow((void **)&det->wanted, &det->wanted_capacity, det->wanted_count + 1,
                  sizeof *det->wanted))
        return SAC_FAIL(det->dev->ctx, SAC_ERR_MEMORY, "no memory for the classes");
    det->wanted[det->wanted_count++] = class_id;
    return SAC_OK;
}

sac_result sac_detector_choose_classes(struct sac_detector *det, const char *list)
{
    if (list && !strcmp(list, "auto"))
        list = sac_contract_find_class(&det->contract, "person") >= 0 ? "person" : NULL;
    else if (list && !strcmp(list, "all"))
        list = NULL;
    return list ? sac_contract_choose_classes(det->dev->ctx, sac_model_path(det->model),
                                              &det->contract, list, det, want)
                : SAC_OK;
}

/* ---- questions ---- */

const char *sac_detector_class_name(const sac_detector *det, int class_id)
{
    if (!det)
        return "unknown";
    bool known = class_id >= 0 && class_id < det->contract.class_count;
    return known ? det->contract.classes[class_id] : "unknown";
}

int sac_detector_kept_classes(const sac_detector *det)
{
    if (!det)
        return 0;
    return det->wanted ? (int)det->wanted_count : det->contract.class_count;
}

int sac_detector_keeps_only(const sac_detector *det, const char *name)
{
    if (!det || !name)
        return 0;
    if (sac_detector_kept_classes(det) != 1)
        return 0;
    return strcmp(sac_detector_class_name(det, det->wanted ? det->wanted[0] : 0), name) == 0;
}

void sac_detector_describe_classes(const sac_detector *det, char *out, size_t size)
{
    if (!det || !out)
        return;
    sac_contract_describe_classes(&det->contract, det->wanted, sac_detector_kept_classes(det),
                                  det->contract.class_count, out, size);
}
