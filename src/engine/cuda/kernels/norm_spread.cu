/* SPDX-License-Identifier: Apache-2.0 */
/* Norms of lines that blocks hold between them; without a GPU there are no such blocks. */
#include "engine/cuda/kernels/lines.h"

#ifdef __CUDACC__
#include "engine/cuda/kernels/norm_spread.cuh"

extern "C" bool ops_norm_spreads(const struct ops_norm *p, const struct ops_ports *ports)
{
    return ops::norm_spreads(*p, ports);
}

extern "C" int ops_launch_norm_spread(const void *params, const struct ops_ports *ports,
                                      void *stream)
{
    return ops::norm_spread(*(const struct ops_norm *)params, ports, (cudaStream_t)stream);
}
#else
extern "C" bool ops_norm_spreads(const struct ops_norm *, const struct ops_ports *)
{
    return false;
}

extern "C" int ops_launch_norm_spread(const void *, const struct ops_ports *, void *)
{
    return 1;
}
#endif
