/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm, MatMul and FusedMatMul for the planner, by cuBLASLt, with our pass behind it where the node
 * ends in what cuBLASLt does not do, or by a convolution's way where that is faster. */
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_launch.h"
#include "engine/cuda/products/products.h"
#include "engine/cuda/products/matmul_conv.h"
#include "engine/cuda/products/matmul_lt.h"
#include "engine/cuda/products/matmul_pass.h"

enum { WORKSPACE_ALIGN = 256, CANDIDATES_MAX = 8, KEY_MAX = 400 };

struct matmul_state {
    struct products_gpu *gpu;
    struct matmul_spec   spec;
    struct matmul_lt     lt;
    struct conv_state    conv;     /* ready: its way computes the product */
    const void          *taken[4]; /* constants on the device, for cuBLASLt */
    char                 label[96];
};

/* Descriptors for which cuBLASLt has a kernel; false: it has none. A fused product may leave its
 * whole ending to the pass; its residual stays C, which every kernel takes. */
static bool settle(struct products_gpu *gpu, struct matmul_spec *s, struct matmul_lt *lt)
{
    cublasLtMatmulHeuristicResult_t first;
    for (;; s->bare = true) {
        if (matmul_lt_make(gpu, &cuda_libraries()->cublas, s, lt) &&
            matmul_lt_candidates(lt, s, &first, 1) > 0)
            return true;
        if (!s->fused || s->bare)
            return false;
        matmul_lt_finish(lt);
    }
}

static struct sac_kernel_offer matmul_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q)
{
    struct sac_kernel_offer      offer = sac_kernel_take(q);
    const struct sac_kernel_plan plan = sac_kernel_unplaced(q);
    char                         why[160];
    struct matmul_spec           spec;
    struct matmul_lt             lt;
    struct products_gpu         *gpu = products_gpu_of(dev);
    const enum sac_layout        layout =
        q->precision == SAC_PRECISION_FP16 ? SAC_LAYOUT_PLAIN_HALF : SAC_LAYOUT_PLAIN;
    if (!gpu->cublas)
        return sac_kernel_refuse("there is no cuBLASLt");
    if (!matmul_spec_read(&plan, &spec, why, sizeof why))
        return sac_kernel_refuse("%s", why);
    const bool scaled = spec.bias && spec.bias_scale != 1;
    bool       ok = (!scaled || q->weights) && cuda_enter(dev) == SAC_OK;
    if (ok) {
        ok = settle(gpu, &spec, &lt);
        matmul_lt_finish(&lt);
        cuda_leave();
    }
    for (int i = 0; i < 4; i++)
        offer.in_layout[i] = layout;
    offer.in_layout[SAC_ENDING] = SAC_LAYOUT_PLAIN;
    offer.out_layout[0] = layout;
    offer.in_place = spec.fused && spec.matrix && !q->call->in[SAC_RESIDUAL_INPUT].data
                         ? SAC_RESIDUAL_INPUT
                         : -1;
    return ok ? offer : sac_kernel_refuse("cuBLASLt has no kernel for it");
}

/* ---- constants ---- */

struct source {
    struct sac_device        *dev;
    const struct sac_operand *o;
    float                     scale;
    bool                      half;
    void                     *host;
};

static void fill_part(void *arg, int64_t begin, int64_t end)
{
    const struct source *s = arg;
    const float         *from = s->o->data;
    for (int64_t i = begin; i < end; i++)
        if (s->half)
            ((uint16_t *)s->host)[i] = sac_float_to_half(from[i] * s->scale);
        else
            ((float *)s->host)[i] = from[i] * s->scale;
}

static void fill_constant(void *arg, void *host)
{
    struct source *s = arg;
    const int64_t  count = sac_operand_elements(s->o);
    s->host = host;
    fill_in_pieces(s->dev, (size_t)count * (s->half ? sizeof(uint16_t) : sizeof(float)), count,
                   fill_part, s);
}

static sac_result take_constants(struct sac_device *dev, struct matmul_state *s,
                                 struct sac_kernel_plan *plan)
{
    struct sac_weights *w = plan->weights;
    sac_result          res = SAC_OK;
    for (int i = 0; i < 4 && res == SAC_OK && w; i++) {
        const struct sac_operand *o = &plan->call->in[i];
        const bool                is_bias = i == 2 && s->spec.bias;
        struct source             source = {.dev = dev,
                                            .o = o,
                                            .scale = is_bias ? s->spec.bias_scale : 1,
                                            .half = s->spec.precision == SAC_PRECISION_FP16};
        char                      form[64];
        void                     *device = NULL;
        if (!sac_op_has(plan->call, i) || !o->data)
            continue;
        snprintf(form, sizeof form, "numbers %s times %.9g", source.half ? "f16" : "f32",
                 (double)source.scale);
        res = w->ops->get(w, o->data, form,
                          (size_t)sac_operand_elements(o) * matmul_element(&s->spec), fill_constant,
                          &source, &device);
        s->taken[i] = device;
        plan->in_taken[i] = true;
    }
    return res;
}

static void fill_ending(void *arg, void *host)
{
    const struct sac_operand *o = arg;
    memcpy(host, o->data, (size_t)sac_operand_elements(o) * sizeof(float));
}

/* For both ways, and before they are measured. */
static sac_result take_ending(struct matmul_state *s, struct sac_kernel_plan *plan)
{
    struct sac_operand ending = plan->call->in[SAC_ENDING];
    void              *device = NULL;
    if (!s->spec.ending)
        return SAC_OK;
    sac_result res = plan->weights->ops->get(plan->weights, ending.data, "ending f32",
                                             (size_t)sac_operand_elements(&ending) * sizeof(float),
                                             fill_ending, &ending, &device);
    s->conv.ending = device;
    plan->in_taken[SAC_ENDING] = true;
    return res;
}

/* ---- running ---- */

static cudaError_t execute(struct matmul_state *s, const struct matmul_pointers *p,
                           cudaStream_t stream)
{
    pthread_mutex_lock(&s->gpu->lock); /* guards the descriptor, which holds the bias */
    const cublasStatus_t res = matmul_lt_run(&s->lt, &s->spec, p, stream);
    pthread_mutex_unlock(&s->gpu->lock);
    return res == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

static void *aligned(void *scratch)
{
    return (void *)(((uintptr_t)scratch + WORKSPACE_ALIGN - 1) & ~(uintptr_t)(WORKSPACE_ALIGN - 1));
}

static const void *operand(const struct matmul_state *s, void *const *in, int i)
{
    return s->taken[i] ? s->taken[i] : in[i];
}

static cudaError_t queue_pass(const struct matmul_state *s, const struct matmul_pointers *p,
                              void *const *in, cudaStream_t stream)
{
    const struct matmul_spec       *v = &s->spec;
    const bool                      rest = matmul_ends_with(v) != v->act.kind;
    const struct matmul_pass_params pass = {
        .half = v->precision == SAC_PRECISION_FP16,
        .act = rest ? (int)v->act.kind : SAC_ACT_NONE,
        .alpha = v->act.alpha,
        .beta = v->act.beta,
        .bias = v->bias && !matmul_ends_with_bias(v) ? p->bias : NULL,
        .residual = v->residual_in_pass ? operand(s, in, SAC_RESIDUAL_INPUT) : NULL,
        .ending = s->conv.ending,
        .y = p->y,
        .count = v->m * v->n,
        .columns = v->n,
    };
    return matmul_launch_pass(&pass, stream);
}

static cudaError_t run_conv(const struct matmul_state *s, void *const *in, void *const *out,
                            void *scratch, cudaStream_t stream)
{
    const struct conv_pointers p = {
        .x = in[0],
        .residual = s->spec.matrix || s->spec.residual_in_pass ? in[s->spec.c_port] : NULL,
        .y = out[0],
        .scratch = scratch};
    return conv_execute(&s->conv, &p, stream);
}

static sac_result matmul_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                             void *scratch, struct sac_device_stream *stream)
{
    struct matmul_state         *s = state;
    const struct matmul_spec    *v = &s->spec;
    const struct matmul_pointers p = {.a = operand(s, in, 0),
                                      .b = operand(s, in, 1),
                                      .c = v->matrix ? operand(s, in, v->c_port) : NULL,
                                      .bias = v->bias ? operand(s, in, 2) : NULL,
                                      .y = out[0],
                                      .workspace = s->lt.workspace ? aligned(scratch) : NULL};
    sac_result                   res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    if (s->conv.ready) {
        res = cuda_check(dev, run_conv(s, in, out, scratch, cuda_stream_of(dev, stream)), s->label);
    } else if (execute(s, &p, cuda_stream_of(dev, stream)) != cudaSuccess) {
        cudaGetLastError();
        res = SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "%s: cuBLASLt refuses to run", s->label);
    } else if (matmul_needs_pass(v)) {
        res = cuda_check(dev, queue_pass(s, &p, in, cuda_stream_of(dev, stream)), s->label);
    }
    cuda_leave();
    return res;
}

/* ---- choosing ---- */

_Static_assert(sizeof(cublasLtMatmulAlgo_t) == MATMUL_CHOICE_BYTES, "a variant is 64 bytes");

struct trial {
    struct matmul_state   *state;
    struct matmul_pointers pointers;
    struct sac_buffer     *memory[5]; /* a, b, y, c or bias, workspace */
};

static cudaError_t queue_turn(void *arg, cudaStream_t stream)
{
    const struct trial        *t = arg;
    const struct matmul_state *s = t->state;
    void *const                in[4] = {NULL, NULL, NULL, sac_buffer_data(t->memory[3])};
    const cudaError_t          res = execute(t->state, &t->pointers, stream);
    return res == cudaSuccess && matmul_needs_pass(&s->spec)
               ? queue_pass(s, &t->pointers, in, stream)
               : res;
}

static cudaError_t queue_conv(void *arg, cudaStream_t stream)
{
    const struct trial *t = arg;
    void *const in[4] = {[0] = sac_buffer_data(t->memory[0]), [3] = sac_buffer_data(t->memory[3])},
                *const out[] = {t->pointers.y};
    return run_conv(t->state, in, out, sac_buffer_data(t->memory[4]), stream);
}

static int64_t span(const struct matmul_spec *s, int64_t matrix, int64_t step, const int64_t *at)
{
    int64_t last = 0;
    for (int i = 0; i < s->turns; i++)
        last = SAC_MAX(last, at ? at[i] : i * s->batch * step);
    return last + (s->batch - 1) * step + matrix;
}

static sac_result take_memory(struct sac_device *dev, struct trial *t)
{
    const struct matmul_spec *s = &t->state->spec;
    const int64_t             counts[4] = {
                    span(s, s->m * s->k, s->a_step, s->a_at),
                    span(s, s->k * s->n, s->b_step, s->b_at),
                    span(s, s->m * s->n, s->y_step, NULL),
        s->matrix || s->residual_in_pass ? s->m * s->n : s->n,
    };
    const size_t room = t->state->conv.ready ? conv_scratch_bytes(&t->state->conv) : 0;
    sac_result   res = SAC_OK;
    for (int i = 0; i < 4 && res == SAC_OK; i++)
        res = sac_buffer_create(dev, (size_t)counts[i] * matmul_element(s), "measuring products",
                                &t->memory[i]);
    if (res == SAC_OK)
        res = sac_buffer_create(dev, SAC_MAX((size_t)33 << 20, room), "measuring products",
                                &t->memory[4]);
    if (res == SAC_OK) /* work queued on the device's own stream may still use this memory */
        res = cuda_check(dev, cudaStreamSynchronize(cuda_stream_of(dev, NULL)), "queued work");
    if (res != SAC_OK)
        return res;
    for (int i = 0; i < 4; i++)
        conv_launch_fill(sac_buffer_data(t->memory[i]), s->precision == SAC_PRECISION_FP16,
                         counts[i], t->state->gpu->stream);
    t->pointers = (struct matmul_pointers){.a = sac_buffer_data(t->memory[0]),
                                           .b = sac_buffer_data(t->memory[1]),
                                           .c = sac_buffer_data(t->memory[3]),
                                           .bias = sac_buffer_data(t->memory[3]),
                                           .y = sac_buffer_data(t->memory[2]),
                                           .workspace = aligned(sac_buffer_data(t->memory[4]))};
    return SAC_OK;
}

static int fastest(struct trial *t, const cublasLtMatmulHeuristicResult_t *found, int count,
                   double *best_us)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        const struct measure m = {queue_turn, t, t->state->gpu->stream,
                                  *best_us > 0 ? 4 * *best_us + 50 : 0};
        t->state->lt.algo = found[i].algo;
        t->state->lt.workspace = found[i].workspaceSize;
        const double us = measure_us(&m);
        if (us >= 0 && (best < 0 || us < *best_us)) {
            best = i;
            *best_us = us;
        }
    }
    return best;
}

/* The convolution stays where it takes less than the best of cuBLASLt's, best_us. */
static void weigh_conv(struct sac_device *dev, struct trial *t, double best_us)
{
    const struct measure m = {queue_conv, t, t->state->gpu->stream, 4 * best_us + 50};
    const double         us = measure_us(&m);
    sac_log(dev->ctx, SAC_LOG_DEBUG, "products: %s: as a convolution %.1f us, by cublaslt %.1f us",
            t->state->label, us, best_us);
    if (us < 0 || (best_us > 0 && us >= best_us))
        conv_ready_unref(&t->state->conv.ready);
}

/* -1: cuBLASLt has none that runs. */
static int measure_best(struct sac_device *dev, struct matmul_state *s,
                        const cublasLtMatmulHeuristicResult_t *found, int count)
{
    struct trial  t = {.state = s};
    double        best_us = 0;
    int           best = 0;
    const int64_t began = sac_time_ns();
    pthread_mutex_lock(&s->gpu->tuning);
    if (take_memory(dev, &t) == SAC_OK) {
        best = fastest(&t, found, count, &best_us);
        if (s->conv.ready)
            weigh_conv(dev, &t, best_us);
    } else {
        conv_ready_unref(&s->conv.ready);
    }
    cudaStreamSynchronize(s->gpu->stream);
    for (size_t i = 0; i < SAC_COUNT(t.memory); i++)
        sac_buffer_unref(&t.memory[i]);
    pthread_mutex_unlock(&s->gpu->tuning);
    sac_log(dev->ctx, SAC_LOG_DEBUG, "cublaslt: %s: variant %d of %d, %.1f us; measured in %.0f ms",
            s->label, best, count, best_us, (double)(sac_time_ns() - began) * 1e-6);
    return best;
}

static void write_choice(const struct matmul_state *s, struct sac_kernel_plan *plan)
{
    unsigned char bytes[MATMUL_CHOICE_BYTES];
    if (s->conv.ready) {
        conv_describe(&s->conv, plan);
        return;
    }
    snprintf(plan->implementation, sizeof plan->implementation, "cublaslt%s",
             matmul_needs_pass(&s->spec) ? ", pass" : "");
    memcpy(bytes, &s->lt.algo, sizeof bytes);
    matmul_choice_print(bytes, plan->chosen, sizeof plan->chosen);
}

static bool take_text(struct matmul_state *s, const char *text)
{
    cublasLtMatmulAlgo_t algo;
    unsigned char        bytes[MATMUL_CHOICE_BYTES];
    if (!matmul_choice_parse(text, bytes))
        return false;
    memcpy(&algo, bytes, sizeof algo);
    return matmul_lt_take(&s->lt, &algo);
}

/* cuBLASLt checks a variant for these sizes, but not for these addresses; no variant wants more
 * than 16 bytes. */
static bool takes_lent(const struct matmul_spec *s)
{
    enum { ALIGN = 16 };
    return s->a_align >= ALIGN && s->b_align >= ALIGN && s->y_align >= ALIGN &&
           (!s->matrix || s->c_align >= ALIGN);
}

/* The GPU's context must be current. */
static bool choose(struct sac_device *dev, struct matmul_state *s, struct sac_kernel_plan *plan)
{
    cublasLtMatmulHeuristicResult_t found[CANDIDATES_MAX];
    char                            key[KEY_MAX], text[SAC_KERNEL_CHOICE_MAX];
    const int                       at = products_key_begin(dev, key, sizeof key);
    const bool has_key = matmul_spec_text(&s->spec, key + at, sizeof key - (size_t)at) > 0;
    if (plan->choice && (!plan->lent || takes_lent(&s->spec)) && take_text(s, plan->choice))
        return true;
    const bool            as_conv = matmul_conv_spec(s->gpu, &s->spec, plan, &s->conv.spec);
    const enum matmul_way known = as_conv ? matmul_way_known(dev, plan, &s->conv.spec) : MATMUL_LT;
    if (known == MATMUL_CONV && matmul_conv_take(dev, &s->conv, plan))
        return true;
    const bool weigh = known == MATMUL_UNKNOWN && plan->measure;
    int        count = 1, best = 0;
    if (has_key && tuned_recall(key, text) && take_text(s, text))
        found[0] =
            (cublasLtMatmulHeuristicResult_t){.algo = s->lt.algo, .workspaceSize = s->lt.workspace};
    else
        count = matmul_lt_candidates(&s->lt, &s->spec, found, plan->measure ? CANDIDATES_MAX : 1);
    if (count <= 0)
        return false;
    if (weigh)
        matmul_conv_take(dev, &s->conv, plan);
    if (s->conv.ready || (plan->measure && count > 1))
        best = measure_best(dev, s, found, count);
    if (weigh)
        matmul_way_remember(dev, &s->conv.spec, s->conv.ready ? MATMUL_CONV : MATMUL_LT);
    if (s->conv.ready || best < 0)
        return s->conv.ready != NULL;
    s->lt.algo = found[best].algo;
    s->lt.workspace = found[best].workspaceSize;
    write_choice(s, plan);
    if (plan->measure && has_key)
        tuned_remember(key, plan->chosen);
    return true;
}

/* ---- the state ---- */

static void matmul_release(void *state)
{
    struct matmul_state *s = state;
    if (s && s->lt.api)
        matmul_lt_finish(&s->lt);
    if (s)
        conv_ready_unref(&s->conv.ready);
    sac_free(s);
}

static sac_result make(struct sac_device *dev, struct matmul_state *s, struct sac_kernel_plan *plan)
{
    sac_result res = take_ending(s, plan);
    if (res == SAC_OK)
        res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    const bool made = s->spec.fused
                          ? settle(s->gpu, &s->spec, &s->lt)
                          : matmul_lt_make(s->gpu, &cuda_libraries()->cublas, &s->spec, &s->lt);
    if (!made || !choose(dev, s, plan))
        res = SAC_OP_FAIL(plan->call, SAC_ERR_UNSUPPORTED, "cuBLASLt has no kernel for it: %s",
                          s->lt.api->status_string(s->lt.status));
    else if (!s->conv.ready)
        res = take_constants(dev, s, plan);
    if (s->conv.ready) {
        plan->in_taken[1] = true;
        plan->in_taken[2] = s->conv.spec.bias;
    }
    cuda_leave();
    return res;
}

static sac_result matmul_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    char                 why[128] = "", label[256];
    struct matmul_state *s = sac_new(struct matmul_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    s->gpu = products_gpu_of(dev);
    snprintf(s->label, sizeof s->label, "%.90s",
             sac_node_label(plan->call->node, label, sizeof label));
    s->conv.gpu = s->gpu;
    snprintf(s->conv.label, sizeof s->conv.label, "%s", s->label);
    sac_result res = matmul_spec_read(plan, &s->spec, why, sizeof why)
                         ? make(dev, s, plan)
                         : SAC_OP_FAIL(plan->call, SAC_ERR_UNSUPPORTED, "%s", why);
    if (res != SAC_OK) {
        matmul_release(s);
        return res;
    }
    write_choice(s, plan);
    plan->scratch_bytes = s->conv.ready     ? conv_scratch_bytes(&s->conv)
                          : s->lt.workspace ? s->lt.workspace + WORKSPACE_ALIGN
                                            : 0;
    plan->state = s;
    return SAC_OK;
}

#define MATMUL_KERNEL(op)                                                        \
    {                                                                            \
        SAC_OP_##op, matmul_supports, matmul_prepare, matmul_run, matmul_release \
    }
const struct sac_kernel products_Gemm = MATMUL_KERNEL(Gemm);
const struct sac_kernel products_MatMul = MATMUL_KERNEL(MatMul);
const struct sac_kernel products_FusedMatMul = MATMUL_KERNEL(FusedMatMul);
