/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a device. For the CPU: the oneDNN plug-in, opened at run time, then saccade's own,
 * shared by all CPU devices of the process. Other devices list their own
 * (sac_device_ops.providers), which are opened once per open device. */
#include <stdio.h>
#include <string.h>

#include "base/plugin.h"
#include "base/start.h"
#include "engine/cpu/cpu.h"
#include "engine/kernel/kernel.h"

enum { PROVIDERS_MAX = 4 };

struct sac_kernels {
    bool                              opened;
    const struct sac_kernel_provider *list[PROVIDERS_MAX];
    int                               count;
    char                              missing[400]; /* missing providers, and why; empty: none */
};

static const char      plugin_name[] = "libsaccade-onednn.so";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all kernels, of the CPU and
                                                            others */
static struct sac_kernels cpu;

/* Whether the CPU's kernels serve it: it lists none, and has its numbers where they compute. */
static bool is_cpu(const struct sac_device *dev)
{
    return !dev->ops->providers && dev->ops->host_memory;
}

static bool is_ours(const struct sac_kernel_provider *p)
{
    return p && p->abi == SAC_KERNEL_ABI && p->struct_size == sizeof *p &&
           p->op_count == SAC_OP_COUNT;
}

/* A plug-in of another build would misread our structs, so it is rejected with an error. */
static const struct sac_kernel_provider *open_plugin(void)
{
    const struct sac_kernel_provider *(*get)(void) = NULL;
    *(void **)&get = sac_plugin_open(plugin_name, "src/engine/onednn/", "sac_kernel_provider_v1",
                                     cpu.missing, sizeof cpu.missing);
    const struct sac_kernel_provider *p = get ? get() : NULL;
    if (!get || is_ours(p))
        return p;
    snprintf(cpu.missing, sizeof cpu.missing,
             "%s is of another build of saccade (ABI %u, %u operators; wanted %d, %d)", plugin_name,
             p ? (unsigned)p->abi : 0, p ? (unsigned)p->op_count : 0, SAC_KERNEL_ABI, SAC_OP_COUNT);
    return NULL;
}

static void open_cpu(struct sac_device *dev)
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

/* ---- devices with providers of their own ---- */

static void close_kernels(struct sac_device *dev)
{
    struct sac_kernels *k = dev->kernels;
    while (k && k->count > 0) {
        const struct sac_kernel_provider *p = k->list[--k->count];
        if (p->close)
            p->close(dev);
    }
    sac_free(k);
    dev->kernels = NULL;
}

static void note_missing(struct sac_device *dev, struct sac_kernels *k, const char *name)
{
    char why[300] = "";
    sac_error_take(dev->ctx, why, sizeof why);
    size_t at = strlen(k->missing);
    snprintf(k->missing + at, sizeof k->missing - at, "%s%s: %s", at ? "; " : "", name, why);
}

static void open_own(struct sac_device *dev, struct sac_kernels *k)
{
    for (int i = 0; i < dev->ops->provider_count && k->count < PROVIDERS_MAX; i++) {
        const struct sac_kernel_provider *p = dev->ops->providers[i];
        if (!is_ours(p))
            continue; /* compiled with the device, so the table has the right version */
        if (!p->open || p->open(dev) == SAC_OK)
            k->list[k->count++] = p;
        else
            note_missing(dev, k, p->name);
    }
    k->opened = true;
}

/* The lock is held; NULL: no memory. */
static struct sac_kernels *kernels_of(struct sac_device *dev)
{
    if (is_cpu(dev))
        return &cpu;
    if (!dev->kernels) {
        dev->kernels = sac_new(struct sac_kernels);
        dev->kernels_close = close_kernels;
    }
    return dev->kernels;
}

/* ---- words ---- */

/* The lock is held. */
static void describe_cpu(char *out, size_t size)
{
    const char *own = sac_cpu_level() >= SAC_CPU_AVX2 ? sac_simd_name() : "plain C";
    if (cpu.count > 1)
        snprintf(out, size, "%s kernels and %s", own, cpu.list[0]->name);
    else
        snprintf(out, size, "%s kernels, without oneDNN: %s", own, cpu.missing);
}

static void describe(const struct sac_kernels *k, char *out, size_t size)
{
    size_t at = 0;
    if (k == &cpu) {
        describe_cpu(out, size);
        return;
    }
    snprintf(out, size, "no kernels");
    for (int i = 0; i < k->count && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s",
                               i == 0             ? ""
                               : i + 1 < k->count ? ", "
                                                  : " and ",
                               k->list[i]->name);
    at = strlen(out);
    if (k->missing[0])
        snprintf(out + at, size - at, ", without %s", k->missing);
}

/* Debian's oneDNN runs on OpenMP, whose workers spin between frames: 118 % CPU with the default;
 * with 'passive' small networks take 2.5 times as long (measured). The environment is read once,
 * when libgomp is loaded, which is at the program's start where FFmpeg's libraries depend on it;
 * and a library must not change the program's environment. So the program has to set it, as ours
 * does (cli/main.c). */
static bool workers_spin(const struct sac_device *dev)
{
    return sac_device_threads(dev) > 1 && !getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY");
}

static void say(struct sac_device *dev, const struct sac_kernels *k)
{
    char text[640];
    describe(k, text, sizeof text);
    sac_log(dev->ctx, k->missing[0] ? SAC_LOG_INFO : SAC_LOG_DEBUG, "engine on %s: %s",
            dev->description, text);
    if (k == &cpu && cpu.count > 1 && workers_spin(dev))
        sac_log(dev->ctx, SAC_LOG_INFO,
                "oneDNN's threads spin between frames, which slows down other work; a program "
                "started with GOMP_SPINCOUNT=1000 in its environment avoids that");
}

void sac_engine_describe(struct sac_device *dev, char *out, size_t size)
{
    int count;
    snprintf(out, size, "%s", dev->ops->name);
    if (!sac_kernel_providers(dev, &count))
        return;
    pthread_mutex_lock(&lock);
    describe(kernels_of(dev), out, size);
    pthread_mutex_unlock(&lock);
}

const struct sac_kernel_provider *const *sac_kernel_providers(struct sac_device *dev, int *count)
{
    *count = 0;
    if (!is_cpu(dev) && !dev->ops->providers)
        return NULL;
    pthread_mutex_lock(&lock);
    struct sac_kernels *k = kernels_of(dev);
    if (k && !k->opened) {
        struct sac_start_span span;
        sac_start_begin(&span, SAC_START_LIBRARIES);
        if (k == &cpu)
            open_cpu(dev);
        else
            open_own(dev, k);
        sac_start_end(&span);
        say(dev, k);
    }
    *count = k ? k->count : 0;
    pthread_mutex_unlock(&lock);
    return k ? k->list : NULL;
}

void sac_kernel_load(const struct sac_device *dev)
{
    struct sac_start_span span;
    sac_start_begin(&span, SAC_START_LIBRARIES);
    for (int i = 0; i < dev->ops->provider_count; i++)
        if (is_ours(dev->ops->providers[i]) && dev->ops->providers[i]->load)
            dev->ops->providers[i]->load();
    sac_start_end(&span);
}

const char *sac_kernel_plugin_missing(struct sac_device *dev)
{
    pthread_mutex_lock(&lock);
    const struct sac_kernels *k = is_cpu(dev) ? &cpu : dev->kernels;
    const char               *missing = k && k->opened && k->missing[0] ? k->missing : NULL;
    pthread_mutex_unlock(&lock);
    return missing;
}

/* ---- precision ---- */

enum sac_precision sac_engine_precision(const struct sac_device *dev, enum sac_precision asked)
{
    const bool rest = asked == SAC_PRECISION_INT8 || asked == SAC_PRECISION_FP8;
    return asked == SAC_PRECISION_DEFAULT || rest ? dev->ops->precision : asked;
}

static const char *const precision_names[] = {"default", "fp32", "tf32", "fp16", "int8", "fp8"};

sac_result sac_precision_parse(const char *name, enum sac_precision *out)
{
    SAC_NEEDS(NULL, name);
    SAC_NEEDS(NULL, out);
    for (size_t i = 0; i < SAC_COUNT(precision_names); i++)
        if (strcmp(name, precision_names[i]) == 0) {
            *out = (enum sac_precision)i;
            return SAC_OK;
        }
    return SAC_ERR_ARG;
}

const char *sac_precision_name(enum sac_precision precision)
{
    return (unsigned)precision < SAC_COUNT(precision_names) ? precision_names[precision]
                                                            : "unknown";
}
