/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for cuDNN, cuBLASLt and NVRTC at once: they tell their versions. STANDIN_CUDART: CUDA
 * that cuDNN is for. */
#include <stddef.h>
#include <stdlib.h>

size_t cudnnGetVersion(void);
size_t cudnnGetCudartVersion(void);
size_t cublasLtGetVersion(void);
int    nvrtcVersion(int *major, int *minor);

size_t cudnnGetVersion(void)
{
    return 91203;
}

size_t cudnnGetCudartVersion(void)
{
    const char *text = getenv("STANDIN_CUDART");
    return text ? (size_t)atoi(text) : 13000;
}

size_t cublasLtGetVersion(void)
{
    return 130204;
}

int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 2;
    return 0;
}
