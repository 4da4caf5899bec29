/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's part of the doctor: driver against build, decoders, NVIDIA's libraries. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "media/media.h"
#include "observe/doctor.h"

/* ---- facts ---- */

/* NVIDIA's PCI devices of class 03 (display). */
static int count_cards(void)
{
    DIR           *dir = opendir("/sys/bus/pci/devices");
    struct dirent *entry;
    int            count = 0;
    while (dir && (entry = readdir(dir))) {
        char path[512], vendor[16], class[16];
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%.200s/vendor", entry->d_name);
        if (!sac_first_line(path, "0x10de", vendor, sizeof vendor))
            continue;
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%.200s/class", entry->d_name);
        count += sac_first_line(path, "0x03", class, sizeof class);
    }
    if (dir)
        closedir(dir);
    return count;
}

static bool can_open(const char *library)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

static void find_codecs(struct sac_gpu_codec out[SAC_GPU_CODECS])
{
    static const struct {
        const char    *name;
        enum AVCodecID id;
    } codecs[SAC_GPU_CODECS] = {{"h264", AV_CODEC_ID_H264},
                                {"hevc", AV_CODEC_ID_HEVC},
                                {"vp9", AV_CODEC_ID_VP9},
                                {"av1", AV_CODEC_ID_AV1}};
    for (int i = 0; i < SAC_GPU_CODECS; i++)
        out[i] = (struct sac_gpu_codec){codecs[i].name, sac_nvdec_codec(codecs[i].id) != NULL};
}

/* The CUDA major version that the driver supports; 0: unknown. */
static int driver_cuda(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    int (*get)(int *) = NULL;
    int version = 0;
    if (handle)
        *(void **)&get = dlsym(handle, "cuDriverGetVersion");
    if (get && get(&version) != 0)
        version = 0;
    if (handle)
        dlclose(handle);
    return version / 1000;
}

static void look_at_device(struct sac_gpu_facts *out, sac_device *dev)
{
    out->opened = true;
    snprintf(out->device, sizeof out->device, "%s: %s", sac_device_name(dev),
             sac_device_description(dev));
    if (dev->ops->memory_info)
        dev->ops->memory_info(dev, &out->free_bytes, &out->total_bytes);
    sac_nvidia_open_all(driver_cuda(), out->nvidia);
}

/* Facts from the device itself, opened in a context that does not log. */
static void find_device(struct sac_gpu_facts *out)
{
    sac_context *quiet = NULL;
    sac_device  *dev = NULL;
    if (sac_context_create(NULL, &quiet) != SAC_OK)
        return;
    if (sac_device_open(quiet, "cuda", NULL, &dev) == SAC_OK)
        look_at_device(out, dev);
    else
        sac_context_last_error(quiet, out->device, sizeof out->device);
    sac_device_unref(&dev);
    sac_context_destroy(&quiet);
}

void sac_gpu_facts_find(struct sac_gpu_facts *out)
{
    *out = (struct sac_gpu_facts){.cards = count_cards()};
    if (!sac_first_line("/proc/driver/nvidia/version", NULL, out->module, sizeof out->module))
        out->module[0] = '\0';
    out->libcuda = can_open("libcuda.so.1");
    out->nvml = can_open("libnvidia-ml.so.1");
    out->nvenc = can_open("libnvidia-encode.so.1");
    out->nvcuvid = can_open("libnvcuvid.so.1");
    for (size_t i = 0; i < sac_device_row_count; i++) {
        char                         missing[320];
        const struct sac_device_ops *ops = !strcmp(sac_device_rows[i].name, "cuda")
                                               ? sac_device_rows[i].ops(missing, sizeof missing)
                                               : NULL;
        if (!ops)
            continue;
        out->plugin = true;
        snprintf(out->build, sizeof out->build, "%s", ops->build ? ops->build : "");
    }
    find_codecs(out->codec);
    find_device(out);
}

/* ---- sentences ---- */

static void say_device(const struct sac_doctor *doc, const struct sac_gpu_facts *f)
{
    if (f->opened)
        sac_doctor_find(doc, "gpu", SAC_FINDING_OK, NULL,
                        "%s; %.1f of %.1f GiB free; this build: %s", f->device,
                        (double)f->free_bytes / (1 << 30), (double)f->total_bytes / (1 << 30),
                        f->build);
    else
        sac_doctor_find(
            doc, "gpu", f->cards ? SAC_FINDING_MISSING : SAC_FINDING_NOTE,
            !f->cards    ? NULL
            : !f->plugin ? "build where nvcc is, or take a bundle that has libsaccade-cuda.so"
            : !f->libcuda
                ? "install NVIDIA's driver: 525 or later for CUDA 12, 580 or later for CUDA 13"
                : NULL,
            "%s", f->device);
}

static void say_codecs(const struct sac_doctor *doc, const struct sac_gpu_facts *f)
{
    char have[64] = "", lack[64] = "";
    for (int i = 0; i < SAC_GPU_CODECS; i++) {
        char  *list = f->codec[i].hwaccel ? have : lack;
        size_t used = strlen(list);
        snprintf(list + used, 64 - used, "%s%s", used ? ", " : "", f->codec[i].name);
    }
    if (!f->nvcuvid)
        sac_doctor_find(
            doc, "gpu", SAC_FINDING_MISSING,
            "start the container with NVIDIA_DRIVER_CAPABILITIES=all; without one, reinstall "
            "NVIDIA's driver",
            "no libnvcuvid.so.1: NVDEC is not available; --decode auto lets the CPU decode");
    else if (have[0])
        sac_doctor_find(
            doc, "gpu", SAC_FINDING_OK, NULL,
            "NVDEC through this libavcodec: %s; what of it the card can is found with each video",
            have);
    if (lack[0])
        sac_doctor_find(doc, "gpu", SAC_FINDING_MISSING, NULL,
                        "this libavcodec was built without NVDEC for %s: of such video --decode "
                        "auto lets the CPU decode it",
                        lack);
}

static const char *loss_without(enum sac_nvidia_id id)
{
    return id == SAC_NVIDIA_CUDNN ? "convolutions run on saccade's own kernels, which are slower"
           : id == SAC_NVIDIA_CUBLASLT
               ? "matrix products run on saccade's own kernels, which are slower"
               : "cuDNN fuses less";
}

static void say_libraries(const struct sac_doctor *doc, const struct sac_gpu_facts *f)
{
    for (int i = 0; i < SAC_NVIDIA_COUNT; i++) {
        const struct sac_nvidia_library *lib = &f->nvidia[i];
        const enum sac_nvidia_id         id = (enum sac_nvidia_id)i;
        if (lib->handle)
            sac_doctor_find(doc, "gpu", SAC_FINDING_OK, NULL, "%s %d.%d.%d for CUDA %d (%s)",
                            sac_nvidia_name(id), lib->version[0], lib->version[1], lib->version[2],
                            lib->cuda_major, lib->path);
        else
            sac_doctor_find(doc, "gpu", SAC_FINDING_MISSING, sac_nvidia_mend(id), "%s: %s",
                            lib->missing, loss_without(id));
    }
}

void sac_doctor_say_gpu(const struct sac_doctor *doc, const struct sac_gpu_facts *f)
{
    if (f->cards || f->module[0])
        sac_doctor_find(doc, "gpu", f->module[0] ? SAC_FINDING_OK : SAC_FINDING_MISSING, NULL,
                        "%d NVIDIA GPU%s; kernel driver: %s; libcuda.so.1: %s", f->cards,
                        f->cards == 1 ? "" : "s", f->module[0] ? f->module : "not loaded",
                        f->libcuda ? "found" : "not found");
    else
        sac_doctor_find(doc, "gpu", SAC_FINDING_NOTE, NULL, "no NVIDIA GPU");
    say_device(doc, f);
    if (!f->opened)
        return;
    say_codecs(doc, f);
    say_libraries(doc, f);
    if (!f->nvenc)
        sac_doctor_find(doc, "gpu", SAC_FINDING_NOTE, NULL,
                        "no libnvidia-encode.so.1: annotated video comes to the host and is "
                        "encoded on the CPU");
    if (!f->nvml)
        sac_doctor_find(
            doc, "gpu", SAC_FINDING_NOTE, NULL,
            "no libnvidia-ml.so.1: the statistics do not tell how busy GPU and decoder were");
}
