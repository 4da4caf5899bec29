/* SPDX-License-Identifier: Apache-2.0 */
/* Queues a ready convolution on a stream. */
#include "engine/cuda/products/conv_copies.h"
#include "engine/cuda/products/conv_kernel.h"
#include "engine/cuda/products/stem_spec.h"
#include "engine/cuda/products/tensor_spec.h"

enum { WORKSPACE_ALIGN = 256 };

size_t conv_scratch_bytes(const struct conv_state *s)
{
    const int64_t bytes = conv_workspace_bytes(&s->spec, s->ready);
    return bytes > 0 ? (size_t)bytes + WORKSPACE_ALIGN : 0;
}

static void *workspace_of(const struct conv_state *s, const struct conv_pointers *p)
{
    const uintptr_t scratch =
        ((uintptr_t)p->scratch + WORKSPACE_ALIGN - 1) & ~(uintptr_t)(WORKSPACE_ALIGN - 1);
    return conv_workspace_bytes(&s->spec, s->ready) > 0 ? (void *)scratch : NULL;
}

static struct conv_finish finish_of(const struct conv_state *s, const struct conv_pointers *p)
{
    const struct conv_spec *v = &s->spec;
    return (struct conv_finish){.act = (int)v->act.kind,
                                .alpha = v->act.alpha,
                                .beta = v->act.beta,
                                .residual_kind = (int)v->residual_kind,
                                .bias = s->bias,
                                .ending = s->ending,
                                .ending_c = v->out.c,
                                .residual =
                                    v->residual_kind == SAC_RESIDUAL_NONE ? NULL : p->residual,
                                .residual_c = v->residual.c,
                                .residual_pixel = v->residual.pixel,
                                .residual_sample = v->residual.sample};
}

static bool has_pass(const struct conv_spec *v)
{
    return v->bias || v->act.kind != SAC_ACT_NONE || v->residual_kind != SAC_RESIDUAL_NONE ||
           v->ending;
}

static cudaError_t run_pass(const struct conv_state *s, const struct conv_pointers *p,
                            cudaStream_t stream)
{
    const struct conv_map        *m = &s->spec.out;
    const struct conv_pass_params params = {.finish = finish_of(s, p),
                                            .half = s->spec.precision == SAC_PRECISION_FP16,
                                            .y = p->y,
                                            .n = s->spec.n,
                                            .pixels = conv_map_pixels(m),
                                            .c = m->c,
                                            .y_pixel = m->pixel,
                                            .y_sample = m->sample};
    return conv_launch_pass(&params, stream);
}

/* The stream is set on the shared handle, so the lock is held until the work is queued. */
static cudaError_t run_cudnn(const struct conv_state *s, const struct conv_pointers *p,
                             cudaStream_t stream)
{
    const struct cudnn_target *t = &s->gpu->cudnn;
    const struct cudnn_tensors tensors = {.x = p->x,
                                          .w = s->weights,
                                          .bias = s->bias,
                                          .residual = p->residual,
                                          .y = p->y,
                                          .workspace = workspace_of(s, p)};
    pthread_mutex_lock(&s->gpu->lock);
    cudnnStatus_t res = t->api->set_stream(t->handle, stream);
    if (res == CUDNN_STATUS_SUCCESS)
        res = cudnn_plan_run(t, &s->ready->plan, &s->spec, s->ready->graph.fused, &tensors);
    pthread_mutex_unlock(&s->gpu->lock);
    return res == CUDNN_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

static cudaError_t run_depthwise(const struct conv_state *s, const struct conv_pointers *p,
                                 cudaStream_t stream)
{
    const struct conv_spec            *v = &s->spec;
    const int64_t                      engine = s->ready->choice.engine;
    const struct conv_depthwise_params params = {.finish = finish_of(s, p),
                                                 .half = v->precision == SAC_PRECISION_FP16,
                                                 .x = p->x,
                                                 .w = s->weights,
                                                 .y = p->y,
                                                 .n = (int)v->n,
                                                 .c = (int)v->out.c,
                                                 .in_h = (int)v->in.size[1],
                                                 .in_w = (int)v->in.size[2],
                                                 .out_h = (int)v->out.size[1],
                                                 .out_w = (int)v->out.size[2],
                                                 .kernel_h = (int)v->kernel[1],
                                                 .kernel_w = (int)v->kernel[2],
                                                 .stride_h = (int)v->stride[1],
                                                 .stride_w = (int)v->stride[2],
                                                 .dilation_h = (int)v->dilation[1],
                                                 .dilation_w = (int)v->dilation[2],
                                                 .pad_top = (int)v->pad_begin[1],
                                                 .pad_left = (int)v->pad_begin[2],
                                                 .rows = conv_depthwise_rows[engine],
                                                 .x_pixel = v->in.pixel,
                                                 .x_sample = v->in.sample,
                                                 .y_pixel = v->out.pixel,
                                                 .y_sample = v->out.sample};
    return conv_launch_depthwise(&params, stream);
}

static void copy_sizes(int to[CONV_DIMS], const int64_t from[CONV_DIMS])
{
    for (int d = 0; d < CONV_DIMS; d++)
        to[d] = (int)from[d];
}

static cudaError_t run_direct(const struct conv_state *s, const struct conv_pointers *p,
                              cudaStream_t stream)
{
    const struct conv_spec   *v = &s->spec;
    struct conv_direct_params params = {.finish = finish_of(s, p),
                                        .half = v->precision == SAC_PRECISION_FP16,
                                        .transposed = v->transposed,
                                        .x = p->x,
                                        .w = s->weights,
                                        .y = p->y,
                                        .n = v->n,
                                        .groups = (int)v->groups,
                                        .in_c = (int)v->in.c,
                                        .out_c = (int)v->out.c,
                                        .x_pixel = v->in.pixel,
                                        .x_sample = v->in.sample,
                                        .y_pixel = v->out.pixel,
                                        .y_sample = v->out.sample};
    copy_sizes(params.in, v->in.size);
    copy_sizes(params.out, v->out.size);
    copy_sizes(params.kernel, v->kernel);
    copy_sizes(params.stride, v->stride);
    copy_sizes(params.dilation, v->dilation);
    copy_sizes(params.pad, v->pad_begin);
    return conv_launch_direct(&params, stream);
}

static cudaError_t run_stem(const struct conv_state *s, const struct conv_pointers *p, int variant,
                            cudaStream_t stream)
{
    const struct conv_spec *v = &s->spec;
    struct conv_stem_params params;
    if (!stem_params_of(v, &params))
        return cudaErrorNotSupported;
    params.finish = finish_of(s, p);
    params.x = p->x;
    params.w = s->weights;
    params.y = p->y;
    return variant == CONV_STEM_UNIT ? conv_copies_run_stem(v, &params, s->gpu->processors, stream)
                                     : conv_launch_stem(&params, stream);
}

/* v: the convolution, or that of its patches. */
static struct conv_tile_params tile_params(const struct conv_state *s, const struct conv_spec *v,
                                           const struct conv_pointers *p)
{
    const int64_t            pixels = v->out.size[1] * v->out.size[2];
    const struct conv_bundle b = conv_bundle_of(v);
    return (struct conv_tile_params){.finish = finish_of(s, p),
                                     .x = p->x,
                                     .w = s->weights,
                                     .y = p->y,
                                     .wide = b.out % 8 == 0 && v->out.pixel % 8 == 0 &&
                                             v->out.sample % 8 == 0 && v->out.align >= 16,
                                     .m = v->n * pixels,
                                     .pixels = (int)pixels,
                                     .in_c = (int)b.in,
                                     .in_h = (int)v->in.size[1],
                                     .in_w = (int)v->in.size[2],
                                     .out_c = (int)b.out,
                                     .out_w = (int)v->out.size[2],
                                     .kernel_h = (int)v->kernel[1],
                                     .kernel_w = (int)v->kernel[2],
                                     .taps = (int)(v->kernel[1] * v->kernel[2] * b.depth),
                                     .depth = (int)b.depth,
                                     .unit = b.unit,
                                     .bundles = (int)b.count,
                                     .stride_h = (int)v->stride[1],
                                     .stride_w = (int)v->stride[2],
                                     .dilation_h = (int)v->dilation[1],
                                     .dilation_w = (int)v->dilation[2],
                                     .pad_top = (int)v->pad_begin[1],
                                     .pad_left = (int)v->pad_begin[2],
                                     .x_pixel = v->in.pixel,
                                     .x_sample = v->in.sample,
                                     .y_pixel = v->out.pixel,
                                     .y_sample = v->out.sample};
}

static cudaError_t run_tile(const struct conv_state *s, const struct conv_spec *v,
                            const struct conv_pointers *p, int variant, cudaStream_t stream)
{
    const struct conv_tile_params params = tile_params(s, v, p);
    return conv_launch_tile(&params, variant, stream);
}

static cudaError_t run_tensor(const struct conv_state *s, const struct conv_spec *v,
                              const struct conv_pointers *p, int variant, cudaStream_t stream)
{
    const struct conv_tile_params at = tile_params(s, v, p);
    struct conv_copy_shape        shapes[TENSOR_MAPS];
    struct conv_tensor_params     params = tensor_half_params(v, &at, variant, shapes);
    return conv_copies_run(&params, shapes, CONV_BYTES_F16, variant, s->gpu->processors, stream);
}

static cudaError_t run_patches(const struct conv_state *s, const struct conv_pointers *p,
                               int variant, cudaStream_t stream)
{
    const struct conv_spec     rows = conv_patches_product(&s->spec);
    struct conv_pointers       of_rows = *p;
    struct conv_patches_params patches = patches_params_of(&s->spec);
    of_rows.x = patches.rows = workspace_of(s, p);
    patches.x = p->x;
    const cudaError_t res = conv_launch_patches(&patches, stream);
    if (res != cudaSuccess)
        return res;
    return variant < CONV_TILE_VARIANTS
               ? run_tile(s, &rows, &of_rows, variant, stream)
               : run_tensor(s, &rows, &of_rows, variant - CONV_TILE_VARIANTS, stream);
}

cudaError_t conv_execute(const struct conv_state *s, const struct conv_pointers *p,
                         cudaStream_t stream)
{
    const int   variant = (int)s->ready->choice.engine;
    cudaError_t res;
    switch (s->ready->choice.way) {
    case CONV_DEPTHWISE: return run_depthwise(s, p, stream);
    case CONV_DIRECT: return run_direct(s, p, stream);
    case CONV_STEM: return run_stem(s, p, variant, stream);
    case CONV_TILE: return run_tile(s, &s->spec, p, variant, stream);
    case CONV_TENSOR: return run_tensor(s, &s->spec, p, variant, stream);
    case CONV_PATCHES: return run_patches(s, p, variant, stream);
    case CONV_CUDNN_FUSED: return run_cudnn(s, p, stream);
    case CONV_CUDNN_PLAIN:
        res = run_cudnn(s, p, stream);
        return res == cudaSuccess && has_pass(&s->spec) ? run_pass(s, p, stream) : res;
    default: return cudaErrorNotSupported;
    }
}
