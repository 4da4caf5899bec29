/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/plugin.h"
#include "device/cpu/cpu.h"

static const struct sac_device_ops *cpu_ops(char *missing, size_t size)
{
    (void)missing, (void)size;
    return &sac_device_cpu;
}

/* vision/vision.h; here it is a number only */
extern const uint32_t sac_vision_ops_size;

bool sac_device_plugin_is_ours(const struct sac_device_plugin *p)
{
    const struct sac_device_plugin want = SAC_DEVICE_PLUGIN(sac_device_cpu, sac_vision_ops_size);
    return p && p->abi == want.abi && p->struct_size == want.struct_size &&
           p->device_size == want.device_size && p->ops_size == want.ops_size &&
           p->vision_size == want.vision_size && p->frame_size == want.frame_size;
}

/* Looked for once; the result holds for the life of the process. */
static const struct sac_device_ops *cuda_ops(char *missing, size_t size)
{
    static pthread_mutex_t              lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
    static bool                         looked;
    static const struct sac_device_ops *ops;
    static char                         why[256];
    pthread_mutex_lock(&lock);
    if (!looked) {
        const struct sac_device_plugin *(*get)(void) = NULL;
        *(void **)&get = sac_plugin_open("libsaccade-cuda.so", "src/plugin/",
                                         "sac_device_plugin_v1", why, sizeof why);
        if (get && sac_device_plugin_is_ours(get()))
            ops = get()->ops;
        else if (get)
            snprintf(why, sizeof why, "libsaccade-cuda.so is of another build of saccade");
        looked = true;
    }
    if (!ops)
        snprintf(missing, size, "the CUDA plug-in cannot be had: %s", why);
    pthread_mutex_unlock(&lock);
    return ops;
}

const struct sac_device_row sac_device_rows[] = {
    {.name = "cpu", .ops = cpu_ops},
    {.name = "cuda", .ops = cuda_ops},
};
const size_t sac_device_row_count = SAC_COUNT(sac_device_rows);
