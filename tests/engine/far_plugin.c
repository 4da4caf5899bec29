/* SPDX-License-Identifier: Apache-2.0 */
/* The far device in the place of the CUDA plug-in: with its folder as SACCADE_PLUGIN_PATH whatever
 * asks for `cuda` gets it. So whole runs are tested on a device whose memory the host cannot touch,
 * and whose streams wait for each other only where they were told to. */
#include "tests/engine/far.h"
#include "vision/vision.h"

SAC_API const struct sac_device_plugin *sac_device_plugin_v1(void);
const struct sac_device_plugin         *sac_device_plugin_v1(void)
{
    static struct sac_device_ops    ops;
    static struct sac_device_plugin plugin;
    ops = *far_ops(&far_pictures);
    ops.async = true;
    ops.batch_best = 4;
    ops.warm_runs = 1;
    far_counts.goes_on = true;
    plugin = (struct sac_device_plugin)SAC_DEVICE_PLUGIN(ops, sizeof(struct sac_vision_ops));
    return &plugin;
}
