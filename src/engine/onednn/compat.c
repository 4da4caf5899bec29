/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/onednn/compat.h"

#if DNNL_VERSION_MAJOR >= 3

memory_desc desc_create(int rank, const int64_t *dims, const int64_t *strides)
{
    dnnl_memory_desc_t d = NULL;
    dnnl_status_t      res;
    if (strides)
        res = dnnl_memory_desc_create_with_strides(&d, rank, dims, dnnl_f32, strides);
    else
        res = dnnl_memory_desc_create_with_tag(&d, rank, dims, dnnl_f32, dnnl_format_tag_any);
    return res == dnnl_success ? d : NULL;
}

void desc_destroy(memory_desc *d)
{
    if (*d)
        dnnl_memory_desc_destroy(*d);
    *d = NULL;
}

#else

memory_desc desc_create(int rank, const int64_t *dims, const int64_t *strides)
{
    memory_desc d = sac_new(dnnl_memory_desc_t);
    if (!d)
        return NULL;
    dnnl_status_t res =
        strides ? dnnl_memory_desc_init_by_strides(d, rank, dims, dnnl_f32, strides)
                : dnnl_memory_desc_init_by_tag(d, rank, dims, dnnl_f32, dnnl_format_tag_any);
    if (res != dnnl_success)
        desc_destroy(&d);
    return d;
}

void desc_destroy(memory_desc *d)
{
    sac_free(*d);
    *d = NULL;
}

#endif

/* ---- attributes ---- */

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1.0f);
#endif
}

static dnnl_status_t append_eltwise(dnnl_post_ops_t ops, const struct after *a)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(ops, a->alg, a->alpha, a->beta);
#else
    return dnnl_post_ops_append_eltwise(ops, 1.0f, a->alg, a->alpha, a->beta);
#endif
}

/* Scratch memory lies with the plan's activations, as for all kernels. */
static dnnl_status_t attr_create(const struct after *after, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t   res = dnnl_primitive_attr_create(out);
    if (res == dnnl_success)
        res = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (res == dnnl_success)
        res = dnnl_post_ops_create(&ops);
    if (res == dnnl_success && after->sum)
        res = append_sum(ops);
    if (res == dnnl_success && after->alg != dnnl_alg_kind_undef)
        res = append_eltwise(ops, after);
    if (res == dnnl_success)
        res = dnnl_primitive_attr_set_post_ops(*out, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    return res;
}

/* ---- primitives ---- */

dnnl_status_t conv_desc(dnnl_engine_t engine, bool deconv, memory_desc src, memory_desc weights,
                        memory_desc bias, memory_desc dst, const struct window *w,
                        const struct after *after, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_dims_t           dilates; /* counted from 0 here */
    for (int d = 0; d < w->rank; d++)
        dilates[d] = w->dilation[d] - 1;
    dnnl_status_t res = attr_create(after, &attr);
#if DNNL_VERSION_MAJOR >= 3
    if (res == dnnl_success)
        res = deconv ? dnnl_deconvolution_forward_primitive_desc_create(
                           out, engine, dnnl_forward_inference, dnnl_deconvolution_direct, src,
                           weights, bias, dst, w->stride, dilates, w->pad_begin, w->pad_end, attr)
                     : dnnl_convolution_forward_primitive_desc_create(
                           out, engine, dnnl_forward_inference, dnnl_convolution_direct, src,
                           weights, bias, dst, w->stride, dilates, w->pad_begin, w->pad_end, attr);
#else
    union {
        dnnl_convolution_desc_t   conv;
        dnnl_deconvolution_desc_t deconv;
    } op;
    if (res == dnnl_success)
        res = deconv ? dnnl_dilated_deconvolution_forward_desc_init(
                           &op.deconv, dnnl_forward_inference, dnnl_deconvolution_direct, src,
                           weights, bias, dst, w->stride, dilates, w->pad_begin, w->pad_end)
                     : dnnl_dilated_convolution_forward_desc_init(
                           &op.conv, dnnl_forward_inference, dnnl_convolution_direct, src, weights,
                           bias, dst, w->stride, dilates, w->pad_begin, w->pad_end);
    if (res == dnnl_success)
        res = dnnl_primitive_desc_create(out, &op, attr, engine, NULL);
#endif
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return res;
}

const char *implementation_of(const_primitive_desc pd)
{
    const char *text = NULL;
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &text) == dnnl_success && text
               ? text
               : "unknown";
}

size_t bytes_for(const_primitive_desc pd, dnnl_query_t what)
{
    return dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, what, 0));
}

size_t scratchpad_bytes(const_primitive_desc pd)
{
    return bytes_for(pd, dnnl_query_scratchpad_md);
}

dnnl_memory_t memory_for(const_primitive_desc pd, dnnl_query_t what, dnnl_engine_t engine,
                         void *handle)
{
    dnnl_memory_t m = NULL;
    if (dnnl_memory_create(&m, dnnl_primitive_desc_query_md(pd, what, 0), engine, handle) !=
        dnnl_success)
        return NULL;
    return m;
}

memory_desc weights_of(const_dnnl_primitive_t p)
{
    const_dnnl_primitive_desc_t pd = NULL;
    if (dnnl_primitive_get_primitive_desc(p, &pd) != dnnl_success)
        return NULL;
    return (memory_desc)dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
}

dnnl_status_t reorder_weights(const_primitive_desc pd, dnnl_engine_t engine, dnnl_stream_t stream,
                              memory_desc from, const void *src, void *dst)
{
    dnnl_primitive_desc_t rpd = NULL;
    dnnl_primitive_t      reorder = NULL;
    dnnl_memory_t         a = NULL, b = NULL;
    dnnl_status_t         res = dnnl_memory_create(&a, from, engine, (void *)src);
    if (res == dnnl_success)
        res = dnnl_memory_create(&b, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0),
                                 engine, dst);
    if (res == dnnl_success)
        res = dnnl_reorder_primitive_desc_create(
            &rpd, from, engine, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0), engine,
            NULL);
    if (res == dnnl_success)
        res = dnnl_primitive_create(&reorder, rpd);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, a}, {DNNL_ARG_TO, b}};
    if (res == dnnl_success)
        res = dnnl_primitive_execute(reorder, stream, 2, args);
    if (res == dnnl_success)
        res = dnnl_stream_wait(stream);
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(rpd);
    dnnl_memory_destroy(a);
    dnnl_memory_destroy(b);
    return res;
}
