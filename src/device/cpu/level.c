/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "device/cpu/cpu.h"

static enum sac_cpu_level detect_level(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return SAC_CPU_REF;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return __builtin_cpu_supports("avx512vnni") ? SAC_CPU_AVX512_VNNI : SAC_CPU_AVX512;
    return SAC_CPU_AVX2;
#else
    return SAC_CPU_REF;
#endif
}

/* SACCADE_CPU lowers the level, so that one machine can test all paths; it never raises it. */
static enum sac_cpu_level wanted_level(void)
{
    const char *text = getenv("SACCADE_CPU");
    if (text && !strcmp(text, "ref"))
        return SAC_CPU_REF;
    if (text && !strcmp(text, "avx2"))
        return SAC_CPU_AVX2;
    if (text && !strcmp(text, "avx512"))
        return SAC_CPU_AVX512;
    return SAC_CPU_AVX512_VNNI;
}

enum sac_cpu_level sac_cpu_level(void)
{
    static atomic_int known; /* level + 1; 0: not asked yet */
    int               level = atomic_load_explicit(&known, memory_order_relaxed);
    if (level == 0) {
        level = (int)SAC_MIN(detect_level(), wanted_level()) + 1;
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    return (enum sac_cpu_level)(level - 1);
}
