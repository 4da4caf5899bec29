/* SPDX-License-Identifier: Apache-2.0 */
/* What the heads share when they say where a device finds their numbers. */
#include "device/detect.h"
#include "heads/heads.h"

struct sac_detect_field sac_head_field(const struct sac_head_input *in, int index, int64_t first, int64_t cell,
                                       int64_t number)
{
    const struct sac_head_tensor *t = &in->tensors[index];
    struct sac_detect_field       f = {.tensor = index, .first = first, .image = 1, .cell = cell, .number = number};
    for (int i = 0; i < t->rank; i++)
        f.image *= t->shape[i];
    return f;
}

bool sac_head_has_room(int64_t cells, int64_t classes)
{
    return cells <= SAC_DETECT_CELLS_MAX && classes <= SAC_DETECT_CLASSES_MAX;
}
