/* SPDX-License-Identifier: Apache-2.0 */
/* What a network's results are worth beside those of float32, in the terms of its task: boxes by
 * average precision, where float32's boxes are the truth; embeddings by their cosine; maps by the
 * intersection over union of what they show, of all samples together, as that of a picture with a
 * few cells of a class says little (mean over classes). One sample after the other, in host memory.
 */
#ifndef SAC_HEADS_QUALITY_H
#define SAC_HEADS_QUALITY_H

#include "engine/model/calibration.h"
#include "heads/heads.h"

struct sac_judged_box;   /* one that was found: its class and score, and whether float32 found it */
struct sac_judged_class; /* cells of a class: float32's, the other's, and those of both */

struct sac_quality_judge {
    sac_device            *cpu;
    const struct sac_head *head; /* NULL: nobody knows what the outputs mean */
    struct sac_head_view   view;
    int                    width, height; /* of the network's input */
    double                 sum;           /* of cosines */
    int                    count;         /* of them */
    struct sac_judged_box *boxes;
    size_t                 box_count, box_cap;
    int                   *wanted; /* by class: how many boxes float32 found */
    size_t                 class_cap;
    /* [SAC_DETECT_CLASSES_MAX] of the maps; NULL: none was compared. first_class: of a map of one
     * class 1, as what is not that is none. */
    struct sac_judged_class *cells;
    int                      first_class;
};

/* Results of one sample, [outputs] in the model's order.
 * Errors   SAC_ERR_FORMAT when they are not the head's, SAC_ERR_MEMORY. */
sac_result sac_quality_compare(struct sac_quality_judge *j, sac_tensor *const *want,
                               sac_tensor *const *got);
/* Of all since the last one. Where there was nothing to compare (no box), quality is NaN. */
struct sac_verdict sac_quality_verdict(struct sac_quality_judge *j);
void               sac_quality_finish(struct sac_quality_judge *j);

#endif
