/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NVIDIA's driver that has all that cuDNN looks for before it compiles, and loads
 * whatever was compiled. Nothing can run on it. */
#include <stdlib.h>

enum { NOT_FOUND = 500 };
static int loaded; /* what handles point to */

/* ---- what is only looked for ---- */

int nothing(void);
int nothing(void)
{
    return 0;
}

#define NOTHING(name) int name(void) __attribute__((alias("nothing")))
NOTHING(cuCtxGetCurrent);
NOTHING(cuCtxGetDevice);
NOTHING(cuCtxGetLimit);
NOTHING(cuCtxPopCurrent);
NOTHING(cuCtxPushCurrent);
NOTHING(cuDeviceGet);
NOTHING(cuDeviceGetAttribute);
NOTHING(cuDevicePrimaryCtxRelease);
NOTHING(cuDevicePrimaryCtxReset);
NOTHING(cuDevicePrimaryCtxRetain);
NOTHING(cuFuncGetAttribute);
NOTHING(cuFuncSetAttribute);
NOTHING(cuInit);
NOTHING(cuKernelGetAttribute);
NOTHING(cuKernelSetAttribute);
NOTHING(cuLaunchCooperativeKernel);
NOTHING(cuLaunchKernel);
NOTHING(cuLaunchKernelEx);
NOTHING(cuLibraryLoadFromFile);
NOTHING(cuLibraryUnload);
NOTHING(cuLinkAddData);
NOTHING(cuLinkAddData_v2);
NOTHING(cuLinkAddFile_v2);
NOTHING(cuLinkComplete);
NOTHING(cuLinkCreate);
NOTHING(cuLinkCreate_v2);
NOTHING(cuLinkDestroy);
NOTHING(cuMemcpyDtoH_v2);
NOTHING(cuModuleGetGlobal_v2);
NOTHING(cuModuleLoadFatBinary);
NOTHING(cuModuleUnload);
NOTHING(cuOccupancyMaxActiveBlocksPerMultiprocessor);
NOTHING(cuOccupancyMaxPotentialClusterSize);
NOTHING(cuStreamGetCtx);
NOTHING(cuStreamSynchronize);
NOTHING(cuTensorMapEncodeTiled);

/* ---- what is called ---- */

int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuGetExportTable(const void **table, const void *id);
int cuLibraryLoadData(void **library, const void *code);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuModuleLoadData(void **module, const void *code);
int cuModuleLoadDataEx(void **module, const void *code);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuGetErrorName(int error, const char **text);
int cuGetErrorString(int error, const char **text);

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}

/* The runtime's private tables: without them it does not start. */
int cuGetExportTable(const void **table, const void *id)
{
    (void)id;
    *table = NULL;
    return NOT_FOUND;
}

static int give(void **out)
{
    *out = &loaded;
    return 0;
}

int cuLibraryLoadData(void **library, const void *code)
{
    (void)code;
    return give(library);
}

int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    (void)library, (void)name;
    return give(kernel);
}

int cuModuleLoadData(void **module, const void *code)
{
    (void)code;
    return give(module);
}

int cuModuleLoadDataEx(void **module, const void *code)
{
    (void)code;
    return give(module);
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    (void)module, (void)name;
    return give(function);
}

int cuGetErrorName(int error, const char **text)
{
    (void)error;
    *text = "an error";
    return 0;
}

int cuGetErrorString(int error, const char **text)
{
    return cuGetErrorName(error, text);
}
