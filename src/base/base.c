/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>

#include "base/base.h"

const char *sac_version(void)
{
    return SAC_VERSION;
}

const char *sac_result_name(sac_result res)
{
    switch (res) {
    case SAC_OK: return "ok";
    case SAC_AGAIN: return "again";
    case SAC_EOS: return "end of stream";
    case SAC_ERR_ARG: return "bad argument";
    case SAC_ERR_MEMORY: return "out of memory";
    case SAC_ERR_IO: return "input/output error";
    case SAC_ERR_FORMAT: return "bad format";
    case SAC_ERR_UNSUPPORTED: return "not supported";
    case SAC_ERR_DEVICE: return "device error";
    case SAC_ERR_LIMIT: return "over a limit";
    case SAC_ERR_CANCELLED: return "cancelled";
    case SAC_ERR_INTERNAL: return "internal error";
    case SAC_ERR_COPY: return "copy in strict mode";
    }
    return "unknown result";
}

bool sac_is_out_of_memory(sac_result res)
{
    return res == SAC_ERR_MEMORY || res == SAC_ERR_LIMIT;
}

int64_t sac_time_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
