/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/head_matmul.h"
#include "engine/cuda/kernels/head_matmul_few.cuh"
#ifdef __CUDACC__
#include "engine/cuda/kernels/head_matmul_plain.cuh"
#include "engine/cuda/kernels/head_matmul_tiles.cuh"
#include "engine/cuda/kernels/hopper.cuh"
#endif

using namespace ops;

#ifndef __CUDACC__
namespace
{

/* One number of the result after the other. */
struct product_body {
    struct ops_head_matmul p;
    const void            *a, *b;
    void                  *y;
    product_behind         behind;

    static int64_t start_of(const ops_head_view &v, int64_t batch, int64_t head)
    {
        return v.offset + batch * v.step[0] + head * v.step[1];
    }

    void operator()(int64_t n) const
    {
        const int64_t column = n % p.columns, row = n / p.columns % p.rows,
                      product = n / p.columns / p.rows, head = product % p.heads,
                      batch = product / p.heads;
        const int64_t a_at = start_of(p.a, batch, head) + row * p.a.step[2],
                      b_at = start_of(p.b, batch, head) + column * p.b.step[2];
        float sum = 0;
        for (int64_t k = 0; k < p.depth; k++)
            sum += get_float(a, p.a_type, a_at + k * p.a.step[3]) *
                   get_float(b, p.b_type, b_at + k * p.b.step[3]);
        put_float(y, p.y_type,
                  start_of(p.y, batch, head) + row * p.y.step[2] + column * p.y.step[3],
                  product_ended(p, behind, start_of(p.r, batch, head), row, column, sum));
    }
};

} // namespace
#endif

extern "C" int ops_launch_head_matmul(const void *params, const struct ops_ports *ports,
                                      void *stream)
{
    const struct ops_head_matmul &p = *(const struct ops_head_matmul *)params;
    if (p.few)
        return product_few(p, ports, stream);
#ifdef __CUDACC__
    return p.tile_rows ? product_by_tiles(p, ports, has_unit(), stream)
                       : product_plain(p, ports, stream);
#else
    const product_body body = {p, ports->in[p.a_port], ports->in[p.b_port], ports->out[0],
                               product_behind(ports)};
    return each(body, p.batch * p.heads * p.rows * p.columns, stream);
#endif
}
