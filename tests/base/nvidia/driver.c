/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NVIDIA's driver: of the version that STANDIN_DRIVER says (12020: for CUDA 12.2),
 * without a GPU. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NO_DEVICE = 100 };

int cuDriverGetVersion(int *version);
int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *found);

int cuDriverGetVersion(int *version)
{
    const char *text = getenv("STANDIN_DRIVER");
    *version = text ? atoi(text) : 0;
    return 0;
}

/* cuInit and all others */
static int refuse(void)
{
    return NO_DEVICE;
}

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags)
{
    (void)flags;
    if (!strcmp(name, "cuDriverGetVersion"))
        *(int (**)(int *))fn = cuDriverGetVersion;
    else if (!strcmp(name, "cuGetProcAddress") && version >= 12000)
        *(int (**)(const char *, void **, int, uint64_t, int *))fn = cuGetProcAddress_v2;
    else if (!strcmp(name, "cuGetProcAddress"))
        *(int (**)(const char *, void **, int, uint64_t))fn = cuGetProcAddress;
    else
        *(int (**)(void))fn = refuse;
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *found)
{
    if (found)
        *found = 0;
    return cuGetProcAddress(name, fn, version, flags);
}
