/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that cuDNN took long to compile are kept in the user's cache with their kernels, so that a
 * later start reads them in milliseconds. One file per plan, named by a hash of everything it
 * depends on. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_CUDNN_STORE_H
#define SAC_ENGINE_CUDA_PRODUCTS_CUDNN_STORE_H

#include "base/base.h"

/* key: libraries, driver, GPU, convolution and choice, in one line. NULL: none is kept, or what is
 * kept is damaged or of another key; else cuDNN's text (sac_free). */
char *cudnn_store_load(const char *key, size_t *size);
/* Stores it in the cache. False: it was not stored. */
bool cudnn_store_save(const char *key, const char *text, size_t size);

#endif
