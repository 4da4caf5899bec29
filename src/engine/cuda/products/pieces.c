/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/products.h"

enum { PIECES = 8, LARGE_BYTES = 256 << 10 };

struct pieces {
    int64_t count;
    void (*part)(void *arg, int64_t begin, int64_t end);
    void *arg;
};

static void fill_piece(void *arg, int piece, int worker)
{
    const struct pieces *p = arg;
    const int64_t        begin = p->count * piece / PIECES, end = p->count * (piece + 1) / PIECES;
    (void)worker;
    if (begin < end)
        p->part(p->arg, begin, end);
}

void fill_in_pieces(struct sac_device *dev, size_t bytes, int64_t count,
                    void (*part)(void *arg, int64_t begin, int64_t end), void *arg)
{
    struct pieces pieces = {count, part, arg};
    if (bytes > LARGE_BYTES)
        sac_device_parallel(dev, PIECES, fill_piece, &pieces);
    else
        part(arg, 0, count);
}
