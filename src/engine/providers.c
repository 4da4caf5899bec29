/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels a device has: the oneDNN plug-in, opened at run time, then the CPU's own. */
#include <stdio.h>
#include <string.h>

#include "base/plugin.h"
#include "engine/cpu/cpu.h"
#include "engine/kernel.h"

static const char plugin_name[] = "libsaccade-onednn.so";

static struct {
    pthread_mutex_t                   lock; /* guards the rest */
    bool                              opened;
    const struct sac_kernel_provider *list[2];
    int                               count;
    char                              missing[256]; /* why there is no plug-in */
} cpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A plug-in of another build would misread our structs: it is refused with a sentence. */
static const struct sac_kernel_provider *open_plugin(void)
{
    const struct sac_kernel_provider *(*get)(void) = NULL;
    *(void **)&get = sac_plugin_open(plugin_name, "src/engine/onednn/", "sac_kernel_provider_v1",
                                     cpu.missing, sizeof cpu.missing);
    const struct sac_kernel_provider *p = get ? get() : NULL;
    if (!get)
        return NULL;
    if (p && p->abi == SAC_KERNEL_ABI && p->struct_size == sizeof *p && p->op_count == SAC_OP_COUNT)
        return p;
    snprintf(cpu.missing, sizeof cpu.missing,
             "%s is of another build of saccade (ABI %u, %u operators; wanted %d, %d)", plugin_name,
             p ? (unsigned)p->abi : 0, p ? (unsigned)p->op_count : 0, SAC_KERNEL_ABI, SAC_OP_COUNT);
    return NULL;
}

static void open_all(struct sac_device *dev)
{
    const struct sac_kernel_provider *plugin = open_plugin();
    if (plugin && plugin->open && plugin->open(dev) != SAC_OK) {
        sac_context_last_error(dev->ctx, cpu.missing, sizeof cpu.missing);
        plugin = NULL;
    }
    if (plugin)
        cpu.list[cpu.count++] = plugin;
    cpu.list[cpu.count++] = &sac_kernels_cpu;
    cpu.opened = true;
}

/* Under the lock. */
static void describe(char *out, size_t size)
{
    const char *own = sac_cpu_level() >= SAC_CPU_AVX2 ? sac_simd_name() : "plain C";
    if (cpu.count > 1)
        snprintf(out, size, "%s kernels and %s", own, cpu.list[0]->name);
    else
        snprintf(out, size, "%s kernels, without oneDNN: %s", own, cpu.missing);
}

/* Debian's oneDNN runs on OpenMP, whose workers spin between frames: 118 % CPU with the default; with
 * 'passive' small networks take 2.5 times as long (measured). The environment is read once, when
 * libgomp is loaded, which is at the program's start where FFmpeg's libraries bring it along; and it
 * is the program's, not this library's to change. So the program has to see to it; ours does
 * (cli/main.c). */
static bool workers_spin(const struct sac_device *dev)
{
    return sac_device_threads(dev) > 1 && !getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY");
}

static void say(struct sac_device *dev)
{
    char text[320];
    describe(text, sizeof text);
    sac_log(dev->ctx, cpu.count > 1 ? SAC_LOG_DEBUG : SAC_LOG_INFO, "engine on %s: %s",
            dev->description, text);
    if (cpu.count > 1 && workers_spin(dev))
        sac_log(dev->ctx, SAC_LOG_INFO,
                "oneDNN's threads spin between frames, which costs most beside other work; a program "
                "that is started with GOMP_SPINCOUNT=1000 in its environment has calm ones");
}

void sac_engine_describe(struct sac_device *dev, char *out, size_t size)
{
    int count;
    snprintf(out, size, "%s", dev->ops->name);
    if (!sac_kernel_providers(dev, &count))
        return;
    pthread_mutex_lock(&cpu.lock);
    describe(out, size);
    pthread_mutex_unlock(&cpu.lock);
}

const struct sac_kernel_provider *const *sac_kernel_providers(struct sac_device *dev, int *count)
{
    *count = 0;
    if (strcmp(dev->ops->name, "cpu") != 0)
        return NULL;
    pthread_mutex_lock(&cpu.lock);
    if (!cpu.opened) {
        open_all(dev);
        say(dev);
    }
    *count = cpu.count;
    pthread_mutex_unlock(&cpu.lock);
    return cpu.list;
}

const char *sac_kernel_plugin_missing(void)
{
    pthread_mutex_lock(&cpu.lock);
    const char *missing = cpu.opened && cpu.count == 1 ? cpu.missing : NULL;
    pthread_mutex_unlock(&cpu.lock);
    return missing;
}
