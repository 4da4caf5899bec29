/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that took cuDNN long to make, kept in the user's cache with the kernels that it compiled for them: a
 * later start reads them in milliseconds. One file for each, named by a hash of all that it depends on. */
#ifndef SAC_ENGINE_CUDA_CUDNN_STORE_H
#define SAC_ENGINE_CUDA_CUDNN_STORE_H

#include "base/base.h"

/* key: libraries, driver, GPU, convolution and choice, in one line. NULL: none is kept, or what is kept is
 * damaged or of another key; else cuDNN's text (sac_free). */
char *cudnn_store_load(const char *key, size_t *size);
/* Keep it, if there is a place for it. False: it is not kept. */
bool  cudnn_store_save(const char *key, const char *text, size_t size);

#endif
