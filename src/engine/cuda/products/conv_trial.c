/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/conv_trial.h"

#include <math.h>

struct conv_pointers conv_trial_pointers(const struct conv_trial *t)
{
    return (struct conv_pointers){.x = sac_buffer_data(t->x),
                                  .y = sac_buffer_data(t->y),
                                  .residual = t->residual ? sac_buffer_data(t->residual) : NULL,
                                  .scratch = t->workspace ? sac_buffer_data(t->workspace) : NULL};
}

/* ---- the expected result ---- */

/* In the plain kernel's form, only during the trial. */
static sac_result upload_weights(struct conv_trial *t, const float *from)
{
    const size_t bytes = conv_weights_bytes(&t->state->spec, CONV_FORM_TAPS);
    void        *host = sac_alloc(bytes);
    sac_result res = host ? sac_buffer_create(t->dev, bytes, "measuring convolutions", &t->weights)
                          : SAC_ERR_MEMORY;
    if (res == SAC_OK) {
        conv_weights_pack(&t->state->spec, CONV_FORM_TAPS, from, host);
        res = sac_device_copy(t->dev, NULL, sac_buffer_data(t->weights), host, bytes,
                              SAC_COPY_HOST_TO_DEVICE, SAC_COPY_WEIGHTS, "a convolution's weights");
    }
    sac_free(host);
    return res;
}

/* The plain kernel is slow, so only some samples of a large batch are computed: the first, the
 * last, two in between. */
enum { SAMPLES_MAX = 4 };

static int64_t sample_of(const struct conv_spec *s, int i)
{
    const int64_t picked[SAMPLES_MAX] = {0, s->n - 1, s->n / 2, 1};
    return s->n <= SAMPLES_MAX ? i : picked[i];
}

static int samples_of(const struct conv_spec *s)
{
    return (int)SAC_MIN(s->n, (int64_t)SAMPLES_MAX);
}

static char *map_at(const struct conv_trial *t, struct sac_buffer *buf, const struct conv_map *m,
                    int64_t sample)
{
    return buf ? (char *)sac_buffer_data(buf) +
                     (size_t)(sample * m->sample) * conv_element(&t->state->spec)
               : NULL;
}

static sac_result compute_want(struct conv_trial *t, const float *weights)
{
    struct conv_ready direct = {.choice.way = CONV_DIRECT};
    struct conv_state state = *t->state;
    sac_result        res = upload_weights(t, weights);
    state.ready = &direct;
    state.spec.n = 1;
    state.weights = t->weights ? sac_buffer_data(t->weights) : NULL;
    for (int i = 0; i < samples_of(&t->state->spec) && res == SAC_OK; i++) {
        const int64_t              n = sample_of(&t->state->spec, i);
        const struct conv_pointers p = {.x = map_at(t, t->x, &state.spec.in, n),
                                        .residual = map_at(t, t->residual, &state.spec.residual, n),
                                        .y = map_at(t, t->want, &state.spec.out, n)};
        res = cuda_check(t->dev, conv_execute(&state, &p, t->state->gpu->stream), "a convolution");
    }
    return res;
}

/* ---- memory ---- */

static sac_result take_map(struct conv_trial *t, const struct conv_map *m, struct sac_buffer **out)
{
    const size_t bytes = (size_t)conv_map_span(m, t->state->spec.n) * conv_element(&t->state->spec);
    return sac_buffer_create(t->dev, bytes, "measuring convolutions", out);
}

static sac_result take_memory(struct conv_trial *t)
{
    const struct conv_spec *s = &t->state->spec;
    int64_t                 most = 0;
    for (int i = 0; i < t->list.count; i++)
        if (t->ready[i])
            most = SAC_MAX(most, conv_workspace_bytes(s, t->ready[i]));
    sac_result res = take_map(t, &s->in, &t->x);
    if (res == SAC_OK)
        res = take_map(t, &s->out, &t->y);
    if (res == SAC_OK)
        res = take_map(t, &s->out, &t->want);
    if (res == SAC_OK)
        res = take_map(t, &s->in, &t->other_x);
    if (res == SAC_OK)
        res = take_map(t, &s->out, &t->other_y);
    if (res == SAC_OK && s->residual.c)
        res = take_map(t, &s->residual, &t->residual);
    if (res == SAC_OK)
        res = sac_buffer_create(t->dev, 2 * sizeof(float), "measuring convolutions", &t->found);
    t->workspace_bytes = most ? (size_t)most + 512 : 0;
    if (res == SAC_OK && most)
        res =
            sac_buffer_create(t->dev, t->workspace_bytes, "measuring convolutions", &t->workspace);
    return res;
}

/* Kernels run faster on zeros than on real data. */
static void fill_memory(const struct conv_trial *t)
{
    const struct conv_spec *s = &t->state->spec;
    const bool              half = s->precision == SAC_PRECISION_FP16;
    conv_launch_fill(sac_buffer_data(t->x), half, conv_map_span(&s->in, s->n),
                     t->state->gpu->stream);
    if (t->residual)
        conv_launch_fill(sac_buffer_data(t->residual), half, conv_map_span(&s->residual, s->n),
                         t->state->gpu->stream);
}

sac_result conv_trial_begin(struct conv_trial *t, const float *weights)
{
    sac_result res = take_memory(t);
    if (res == SAC_OK) /* work queued on the device's own stream may still use this memory */
        res =
            cuda_check(t->dev, cudaStreamSynchronize(cuda_stream_of(t->dev, NULL)), "queued work");
    if (res != SAC_OK)
        return res;
    fill_memory(t);
    return compute_want(t, weights);
}

void conv_trial_finish(struct conv_trial *t)
{
    struct sac_buffer **const buffers[] = {&t->x,        &t->y,         &t->want,
                                           &t->residual, &t->workspace, &t->weights,
                                           &t->found,    &t->other_x,   &t->other_y};
    for (size_t i = 0; i < SAC_COUNT(buffers); i++)
        sac_buffer_unref(buffers[i]);
}

/* ---- judging ---- */

/* Errors are far larger than rounding: whole tiles or samples are wrong. */
static double allowed(const struct conv_trial *t, double most)
{
    return (t->state->spec.precision == SAC_PRECISION_FP32 ? 1e-3 : 2e-2) * most + 1e-6;
}

/* found: the largest difference, and the largest number. */
static cudaError_t compare(struct conv_trial *t, struct sac_buffer *y, float found[2])
{
    const struct conv_spec *s = &t->state->spec;
    cudaStream_t            stream = t->state->gpu->stream;
    float                  *device = sac_buffer_data(t->found);
    cudaError_t             res = cudaMemsetAsync(device, 0, 2 * sizeof *found, stream);
    for (int i = 0; i < samples_of(s) && res == cudaSuccess; i++) {
        const int64_t                    n = sample_of(s, i);
        const struct conv_compare_params p = {.half = s->precision == SAC_PRECISION_FP16,
                                              .got = map_at(t, y, &s->out, n),
                                              .want = map_at(t, t->want, &s->out, n),
                                              .pixels = conv_map_pixels(&s->out),
                                              .c = s->out.c,
                                              .pixel = s->out.pixel,
                                              .out = device};
        res = conv_launch_compare(&p, stream);
    }
    if (res == cudaSuccess)
        res = cudaMemcpyAsync(found, device, 2 * sizeof *found, cudaMemcpyDeviceToHost, stream);
    return res == cudaSuccess ? cudaStreamSynchronize(stream) : res;
}

static bool same(struct conv_trial *t, struct sac_buffer *y, const char *when)
{
    float             found[2] = {INFINITY, 0};
    char              text[512] = "";
    const cudaError_t res = compare(t, y, found);
    if (res != cudaSuccess)
        cudaGetLastError();
    /* sums beyond float16's range prove nothing */
    else if (!isfinite(found[1]) || (double)found[0] <= allowed(t, found[1]))
        return true;
    conv_choice_print(&t->state->ready->choice, text, sizeof text);
    sac_log(t->dev->ctx, SAC_LOG_DEBUG,
            "products: %s: '%s' computes wrong numbers %s (off by %g of %g): left out",
            t->state->label, text, when, (double)found[0], (double)found[1]);
    return false;
}

bool conv_trial_same(struct conv_trial *t, const char *when)
{
    return same(t, t->y, when);
}

static cudaGraphExec_t capture(const struct conv_trial *t, const struct conv_pointers *p)
{
    cudaStream_t    stream = t->state->gpu->stream;
    cudaGraph_t     graph = NULL;
    cudaGraphExec_t exec = NULL;
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return NULL;
    const cudaError_t run = conv_execute(t->state, p, stream),
                      end = cudaStreamEndCapture(stream, &graph);
    if (run == cudaSuccess && end == cudaSuccess &&
        cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess)
        exec = NULL;
    if (graph)
        cudaGraphDestroy(graph);
    return exec;
}

/* The graph computes from other_x to other_y; in between the plan computes from x to y, and x is
 * overwritten. */
static cudaError_t run_elsewhere(const struct conv_trial *t, cudaGraphExec_t exec)
{
    const struct conv_pointers here = conv_trial_pointers(t);
    cudaStream_t               stream = t->state->gpu->stream;
    const size_t               bytes = sac_buffer_bytes(t->x);
    cudaError_t                res = conv_execute(t->state, &here, stream);
    if (res == cudaSuccess)
        res = cudaMemsetAsync(sac_buffer_data(t->x), 0xff, bytes, stream);
    if (res == cudaSuccess)
        res = cudaMemsetAsync(sac_buffer_data(t->other_y), 0xff, sac_buffer_bytes(t->other_y),
                              stream);
    if (res == cudaSuccess)
        res = cudaGraphLaunch(exec, stream);
    if (res == cudaSuccess)
        res = cudaMemcpyAsync(sac_buffer_data(t->x), sac_buffer_data(t->other_x), bytes,
                              cudaMemcpyDeviceToDevice, stream);
    return res == cudaSuccess ? cudaStreamSynchronize(stream) : res;
}

bool conv_trial_captures(struct conv_trial *t)
{
    struct conv_pointers there = conv_trial_pointers(t);
    cudaStream_t         stream = t->state->gpu->stream;
    there.x = sac_buffer_data(t->other_x);
    there.y = sac_buffer_data(t->other_y);
    cudaError_t     res = cudaMemcpyAsync(sac_buffer_data(t->other_x), sac_buffer_data(t->x),
                                          sac_buffer_bytes(t->x), cudaMemcpyDeviceToDevice, stream);
    cudaGraphExec_t exec = res == cudaSuccess ? capture(t, &there) : NULL;
    res = exec ? run_elsewhere(t, exec) : cudaErrorUnknown;
    if (exec)
        cudaGraphExecDestroy(exec);
    if (res != cudaSuccess)
        cudaGetLastError();
    return res == cudaSuccess && same(t, t->other_y, "in a graph, after others used its plan");
}

bool conv_trial_right(struct conv_trial *t, const char *when)
{
    const struct conv_pointers p = conv_trial_pointers(t);
    cudaStream_t               stream = t->state->gpu->stream;
    cudaError_t res = cudaMemsetAsync(p.y, 0xff, sac_buffer_bytes(t->y), stream); /* NaNs */
    if (res == cudaSuccess && t->workspace)
        res = cudaMemsetAsync(p.scratch, 0xa5, t->workspace_bytes, stream);
    if (res == cudaSuccess)
        res = conv_execute(t->state, &p, stream);
    if (res == cudaSuccess)
        return conv_trial_same(t, when);
    cudaGetLastError();
    return false;
}
