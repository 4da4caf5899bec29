/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im: columns of blocks [N,C*taps,L] laid over each other into an image, overlaps added. */
#include "engine/ops/reads.h"
#include "engine/ops/util.h"

sac_result sac_col2im_read(const struct sac_op_call *c, struct sac_col2im *p)
{
    const struct sac_operand *in = &c->in[0];
    int64_t                   pads[2 * SAC_COL2IM_DIMS_MAX], taps = 1, places = 1;
    size_t                    n, blocks;
    SAC_TRY(sac_operand_ints(c, 1, p->image, SAC_COL2IM_DIMS_MAX, &n));
    SAC_TRY(sac_operand_ints(c, 2, p->block, SAC_COL2IM_DIMS_MAX, &blocks));
    SAC_CHECK(c, in->rank == 3 && sac_dtype_is_float(in->dtype) && n >= 1 && blocks == n,
              "input of %d dimensions, an image of %zu and blocks of %zu", in->rank, n, blocks);
    SAC_TRY(sac_extents_read(c, "strides", 1, n, 1, p->stride));
    SAC_TRY(sac_extents_read(c, "dilations", 1, n, 1, p->dilation));
    SAC_TRY(sac_extents_read(c, "pads", 0, 2 * n, 0, pads));
    p->rank = (int)n;
    for (size_t d = 0; d < n; d++) {
        SAC_CHECK(c,
                  p->image[d] > 0 && p->image[d] <= SAC_EXTENT_MAX && p->block[d] > 0 &&
                      p->block[d] <= SAC_EXTENT_MAX,
                  "an image of %lld, a block of %lld", (long long)p->image[d],
                  (long long)p->block[d]);
        p->pad[d] = pads[d];
        int64_t room = p->image[d] + pads[d] + pads[n + d] - (p->block[d] - 1) * p->dilation[d] - 1;
        SAC_CHECK(c, room >= 0, "a block larger than the image");
        p->places[d] = room / p->stride[d] + 1;
        SAC_CHECK(c,
                  !__builtin_mul_overflow(taps, p->block[d], &taps) &&
                      !__builtin_mul_overflow(places, p->places[d], &places),
                  "too many blocks");
    }
    SAC_CHECK(c, in->dims[1] % taps == 0 && in->dims[2] == places,
              "[%lld,%lld] is not a multiple of %lld numbers at %lld places",
              (long long)in->dims[1], (long long)in->dims[2], (long long)taps, (long long)places);
    return SAC_OK;
}

static sac_result col2im_shape(struct sac_op_call *c)
{
    struct sac_col2im p;
    SAC_TRY(sac_col2im_read(c, &p));
    int64_t dims[SAC_RANK_MAX] = {c->in[0].dims[0],
                                  c->in[0].dims[1] / sac_dims_product(p.rank, p.block)};
    memcpy(dims + 2, p.image, (size_t)p.rank * sizeof *dims);
    return sac_shape_out(c, 0, c->in[0].dtype, p.rank + 2, dims);
}

/* The place in the image of tap t of the block at place l; -1: in the padding. */
static int64_t image_index(const struct sac_col2im *p, int64_t t, int64_t l)
{
    int64_t index = 0, step = 1;
    for (int d = p->rank - 1; d >= 0; d--) {
        int64_t x = l % p->places[d] * p->stride[d] - p->pad[d] + t % p->block[d] * p->dilation[d];
        if (x < 0 || x >= p->image[d])
            return -1;
        index += x * step;
        step *= p->image[d];
        l /= p->places[d];
        t /= p->block[d];
    }
    return index;
}

static sac_result col2im_ref(struct sac_op_call *c)
{
    const struct sac_operand *in = &c->in[0], *out = &c->out[0];
    struct sac_col2im         p;
    SAC_TRY(sac_col2im_read(c, &p));
    int64_t taps = sac_dims_product(p.rank, p.block), pixels = sac_dims_product(p.rank, p.image);
    double *plane = sac_alloc((size_t)pixels * sizeof *plane);
    if (!plane)
        return sac_op_no_memory(c);
    for (int64_t i = 0; i < out->dims[0] * out->dims[1]; i++) {
        for (int64_t k = 0; k < pixels; k++)
            plane[k] = 0;
        for (int64_t t = 0; t < taps; t++)
            for (int64_t l = 0; l < in->dims[2]; l++) {
                int64_t at = image_index(&p, t, l);
                if (at >= 0)
                    plane[at] += sac_operand_get(in, (i * taps + t) * in->dims[2] + l);
            }
        sac_write_doubles(out, i * pixels, 1, pixels, plane);
    }
    sac_free(plane);
    return SAC_OK;
}

const struct sac_op sac_row_Col2Im = {SAC_ROW(Col2Im, 18, 3, 3, 1), SAC_TOLERANCE(1e-5f, 1e-5f),
                                      .shape = col2im_shape, .ref = col2im_ref};
