/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_runtime_api.h"

#include "engine/cuda/kernels/topk.cuh"
#include "tests/parity/emulated/topk.h"

static void kernel(const struct emulated_topk *t)
{
    __shared__ ops::topk_room room;
    const auto                key = [t](int j) {
        return ops::topk_key(t->bits[j], t->width, t->infinity, t->least);
    };
    for (int line = 0; line < 2; line++) { /* the room is used again */
        ops::topk_best(key, t->n, t->k, t->width, room);
        for (int i = (int)threadIdx.x; i < t->k; i += (int)blockDim.x)
            t->out[i] = (uint32_t)~room.item[i];
    }
}

void emulated_topk(const struct emulated_topk *t)
{
    emulated::launch(1, t->threads, [t] { kernel(t); });
}
