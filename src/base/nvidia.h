/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries for networks: opened at run time, never linked, so that one build runs with
 * and without them.
 *
 * They are looked for in the folders of SACCADE_CUDA_LIBS (separated by ':') when that is set, then
 * on the loader's own path, then in /usr/local/cuda. A folder may be the one that has the files, a
 * CUDA toolkit's, or the one that NVIDIA's Python packages are installed in ("site-packages":
 * nvidia/cudnn/lib and others).
 */
#ifndef SAC_BASE_NVIDIA_H
#define SAC_BASE_NVIDIA_H

#include <stddef.h>

enum sac_nvidia_id {
    SAC_NVIDIA_CUDNN = 0, /* cuDNN 9: convolutions */
    SAC_NVIDIA_CUBLASLT,  /* matrix products */
    SAC_NVIDIA_NVRTC,     /* compiles what cuDNN fuses */
    SAC_NVIDIA_COUNT
};

struct sac_nvidia_library {
    void *handle;    /* NULL: missing says why */
    char  path[512]; /* the file, where the loader tells */
    int   version[3];
    int   cuda_major;   /* of CUDA that it was built for; 0: it does not say */
    char  missing[512]; /* one sentence: what was looked for, and where */
};

const char *sac_nvidia_name(enum sac_nvidia_id id); /* "cuDNN" */
/* "pip install ..." or what else brings it there. */
const char *sac_nvidia_mend(enum sac_nvidia_id id);

/* Open it; it stays open for the life of the process, and opening it again is cheap.
 * cuda_major   the newest CUDA that it may be built for (the driver's); 0: any. Older ones are
 *              taken too. */
void sac_nvidia_open(enum sac_nvidia_id id, int cuda_major, struct sac_nvidia_library *out);
/* All of them, in the order in which they open each other. A cuDNN without cuBLASLt of its own CUDA
 * counts as missing: it would end the process. */
void sac_nvidia_open_all(int cuda_major, struct sac_nvidia_library out[SAC_NVIDIA_COUNT]);

#endif
