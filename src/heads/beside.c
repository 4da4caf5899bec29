/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that give more than boxes write it behind the classes of each prediction: the
 * coefficients of its mask, with the prototypes that they weigh in a second output, or the points
 * of a pose. A detector uses boxes and classes, the rest must only not be taken for classes; a
 * segmenter makes masks of the coefficients (instances.c). */
#include "heads/heads.h"
#include "vision/instances.h"

enum { COCO_POSE = 17 * 3 };

int sac_head_find_prototypes(const struct sac_head_tensor *t, int count)
{
    for (int i = 1; i < count; i++)
        if (t[i].rank == 3 && t[i].shape[0] > 1 && t[i].shape[0] <= SAC_INSTANCES_NUMBERS_MAX)
            return i;
    return -1;
}

/* How many they are; 0: none. */
static int prototypes(const struct sac_head_tensor *t, int count)
{
    const int output = sac_head_find_prototypes(t, count);
    return output < 0 ? 0 : (int)t[output].shape[0];
}

int sac_head_beside(const struct sac_head_tensor *t, int count, const struct sac_head_facts *facts,
                    int64_t numbers)
{
    int  beside = prototypes(t, count);
    bool pose = !beside && (facts->task == SAC_TASK_POSE || facts->task == SAC_TASK_UNKNOWN);
    if (!beside)
        beside = facts->keypoints;
    if (!beside && pose && !facts->names && numbers == 1 + COCO_POSE)
        beside = COCO_POSE;
    /* Masks without their prototypes, a pose of unknown points: the names count the classes. */
    if (!beside && facts->names &&
        (facts->task == SAC_TASK_POSE || facts->task == SAC_TASK_SEGMENT))
        beside = (int)SAC_MAX(numbers - facts->names, 0);
    if (!beside && !facts->names &&
        (facts->task == SAC_TASK_POSE || facts->task == SAC_TASK_SEGMENT))
        return -1;
    const int64_t classes = numbers - beside;
    return classes < 1 || (facts->names && classes != facts->names) ? -1 : beside;
}

int sac_head_beside_row(const struct sac_head_tensor *t, int count,
                        const struct sac_head_facts *facts, int64_t numbers)
{
    const int masks = prototypes(t, count);
    if (numbers == 0)
        return 0;
    if (numbers == masks || numbers == facts->keypoints)
        return (int)numbers;
    if (facts->task == SAC_TASK_POSE || facts->task == SAC_TASK_SEGMENT)
        return numbers > 0 ? (int)numbers : -1;
    return facts->task == SAC_TASK_UNKNOWN && numbers == COCO_POSE ? COCO_POSE : -1;
}

const char *sac_head_beside_name(const struct sac_head_view *view)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(view, t);
    return prototypes(t, count) || view->facts.task == SAC_TASK_SEGMENT ? "mask coefficients"
                                                                        : "keypoints";
}
