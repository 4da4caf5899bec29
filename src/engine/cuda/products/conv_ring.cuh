// SPDX-License-Identifier: Apache-2.0
// What conv_tensor.cuh, conv_window.cuh and conv_stem_unit.cu have in common: rings of stages in
// shared memory, and the numbers behind a tile's sums.
#pragma once

#include "engine/cuda/products/conv_copies.cuh"
#include "engine/cuda/products/conv_pieces.cuh"

namespace conv
{

enum { RING_MAX = 8 /* stages */ };
enum { MULTIPROCESSOR_BYTES = 233472, BLOCK_BYTES = 1024 /* that each block has besides */ };

// Groups of four warps multiply 64 pixels each, and BLOCKS blocks have a multiprocessor. Behind the
// groups are the warps that ask; where a block is alone they are a group that gives registers away.
template <int GROUPS_, int BLOCKS, int ASKERS> struct ring_shape {
    static constexpr int  GROUPS = GROUPS_, MS = GROUPS * 64, RESIDENT = BLOCKS;
    static constexpr bool GIVES = BLOCKS == 1;
    static constexpr int  THREADS = GROUPS * 128 + (GIVES ? 128 : ASKERS * 32);
    enum { AT_FIRST = 65536 / THREADS / 8 * 8, ASKING = 40 };
    enum { MULTIPLYING = (AT_FIRST + (AT_FIRST - ASKING) / GROUPS) / 8 * 8 };
};

// A place in a ring, and the parity of its phase.
struct ring_place {
    int at = 0, parity = 0;

    __device__ __forceinline__ void next(int count)
    {
        if (++at == count) {
            at = 0;
            parity ^= 1;
        }
    }
};

#ifdef BYTES_HOPPER
// All of its group's warps have read it.
__device__ __forceinline__ void ring_release(uint64_t *empty)
{
    __syncwarp();
    if ((threadIdx.x & 31) == 0)
        barrier_arrive(empty);
}

// Scales and biases of a tile's channels, for the group's threads behind the sums: asked for
// before it is multiplied, as they come from far, and computed with and put where all can read them
// only after that.
template <class S> struct ring_factors {
    static constexpr int EACH = (S::NS + 127) / 128; // of a thread
    float                scale[EACH], bias[EACH];
    __half               half_bias[EACH];

    __device__ __forceinline__ ring_factors(const conv_tensor_params &p, int channel)
    {
        const void *const from = p.s.b.at.finish.bias;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int  k = channel + (threadIdx.x & 127) + i * 128;
            const bool inside = k < p.s.b.at.out_c;
            if (S::HALF)
                half_bias[i] = from && inside ? __ldg((const __half *)from + k) : __half(0.0f);
            else
                bias[i] = from && inside ? __ldg((const float *)from + k) : 0;
            scale[i] = !S::HALF && inside ? __ldg(p.s.b.scale + k) : 0;
        }
    }
    __device__ __forceinline__ void put(const conv_tensor_params &p, float *factors) const
    {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int at = (threadIdx.x & 127) + i * 128;
            if (at >= S::NS)
                continue;
            if (!S::HALF)
                factors[at] = scale[i] * p.s.b.fold;
            factors[S::NS + at] = S::HALF ? __half2float(half_bias[i]) : bias[i] * p.s.b.fold;
        }
    }
};
#endif

} // namespace conv
