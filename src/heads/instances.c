/* SPDX-License-Identifier: Apache-2.0 */
/* Detectors whose boxes bring coefficients for the prototypes of another output: YOLOv8-seg,
 * YOLO11-seg, YOLO26-seg, YOLOv5-seg, YOLOv7-seg, with or without NMS inside. Boxes are read as of
 * their siblings that only detect; each head says where the coefficients stand. */
#include "heads/heads.h"
#include "vision/instances.h"
#include "vision/matte.h"

bool sac_head_has_instances(const struct sac_head *head, const struct sac_head_view *view)
{
    struct sac_head_tensor t[SAC_HEAD_OUTPUTS_MAX];
    const int              count = sac_head_view_tensors(view, t);
    return head && head->coefficients && head->unread(view) &&
           sac_head_find_prototypes(t, count) >= 0;
}

bool sac_head_instances(const struct sac_head *head, const struct sac_head_view *view,
                        struct sac_detect_spec *boxes, struct sac_instances_spec *out)
{
    struct sac_head_tensor      t[SAC_HEAD_OUTPUTS_MAX];
    struct sac_matte_spec       map;
    struct sac_detect_field     coefficient;
    const struct sac_head_input in = {t, sac_head_view_tensors(view, t), view->width, view->height,
                                      boxes->score_min};
    const int                   output = sac_head_find_prototypes(t, in.count);
    const int                   numbers = head->coefficients(&in, &view->facts, &coefficient);
    if (output < 0 || numbers < 1 || !head->layout(&in, &view->facts, boxes) ||
        !sac_head_map_spec(view, output, &map) || map.classes != numbers)
        return false;
    coefficient.dtype = view->output[coefficient.tensor].desc.dtype;
    out->width = map.width;
    out->height = map.height;
    out->numbers = numbers;
    out->coefficient = coefficient;
    out->prototype = map.value;
    return true;
}
