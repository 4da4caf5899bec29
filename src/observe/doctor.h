/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the doctor: how a finding is reported, and the GPU's part. Its sentences
 * depend only on a struct of facts, so they can be tested without a GPU. */
#ifndef SAC_OBSERVE_DOCTOR_H
#define SAC_OBSERVE_DOCTOR_H

#include <saccade/doctor.h>

#include "base/base.h"
#include "base/nvidia.h"

struct sac_doctor {
    sac_context *ctx;
    void (*fn)(void *user, const struct sac_finding *finding);
    void *user;
    bool  has_apt; /* the mending commands are apt-get's */
};
void sac_doctor_find(const struct sac_doctor *doc, const char *area, enum sac_finding_level level,
                     const char *mend, const char *fmt, ...) SAC_PRINTF(5, 6);
/* First line of a file that begins with key (NULL: any), without newline. */
bool sac_first_line(const char *path, const char *key, char *buf, size_t size);

/* A codec that a GPU may decode. */
struct sac_gpu_codec {
    const char *name;
    bool        hwaccel; /* this libavcodec can drive NVDEC for it */
};
enum { SAC_GPU_CODECS = 4 };

struct sac_gpu_facts {
    int                       cards;       /* NVIDIA cards on the PCI bus */
    char                      module[256]; /* the kernel driver's line; empty: not loaded */
    bool                      libcuda, nvml, nvenc, nvcuvid; /* the driver's libraries are there */
    bool                      plugin;                        /* this build has its CUDA part */
    bool                      opened;                        /* the first GPU is a device of ours */
    char                      device[200]; /* its description; else why it did not open */
    char                      build[80];   /* what the CUDA part was built for */
    uint64_t                  free_bytes, total_bytes;
    struct sac_gpu_codec      codec[SAC_GPU_CODECS];
    struct sac_nvidia_library nvidia[SAC_NVIDIA_COUNT]; /* searched for if opened */
};
void sac_gpu_facts_find(struct sac_gpu_facts *out);
void sac_doctor_say_gpu(const struct sac_doctor *doc, const struct sac_gpu_facts *facts);

#endif
