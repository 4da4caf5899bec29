/* SPDX-License-Identifier: Apache-2.0 */
#include "heads/heads.h"

/* The 80 detection classes of COCO (Lin et al., 2014), in the order that detectors use. */
const char *const sac_coco_names[80] = {
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat",
    "traffic light", "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog",
    "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella",
    "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard", "sports ball", "kite",
    "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket", "bottle",
    "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange",
    "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant",
    "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote", "keyboard", "cell phone",
    "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase", "scissors",
    "teddy bear", "hair drier", "toothbrush",
};

sac_result sac_contract_default_classes(sac_context *ctx, struct sac_model_contract *contract,
                                        int count)
{
    if (contract->class_count || count < 1)
        return SAC_OK;
    contract->classes = sac_calloc((size_t)count, sizeof *contract->classes);
    if (!contract->classes)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for %d class names", count);
    contract->class_count = count;
    contract->classes_from = SAC_FROM_HEAD;
    for (int i = 0; i < count; i++) {
        contract->classes[i] =
            count == 80 ? sac_strdup(sac_coco_names[i]) : sac_asprintf("class %d", i);
        if (!contract->classes[i])
            return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for %d class names", count);
    }
    return SAC_OK;
}
