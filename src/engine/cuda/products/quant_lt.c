/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/quant_lt.h"

#include <string.h>

enum { WORKSPACE_MAX = 32 << 20 };

/* ---- descriptors ---- */

struct making {
    struct quant_lt *lt;
    bool             good;
};

static void note(struct making *m, cublasStatus_t status)
{
    m->good &= status == CUBLAS_STATUS_SUCCESS;
}

static void set(struct making *m, cublasLtMatmulDescAttributes_t attribute, const void *value,
                size_t bytes)
{
    if (m->good)
        note(m, m->lt->api->desc_set(m->lt->op, attribute, value, bytes));
}

static void layout(struct making *m, cudaDataType type, int64_t rows, int64_t columns,
                   cublasLtMatrixLayout_t *out)
{
    if (m->good)
        note(m, m->lt->api->layout_create(out, type, (uint64_t)columns, (uint64_t)rows, columns));
}

static void make_operation(struct making *m, const struct quant_spec *s, const void *bias)
{
    const cublasOperation_t turned = CUBLAS_OP_T, as_it_is = CUBLAS_OP_N;
    const cudaDataType      bias_type = CUDA_R_16F;
    const int8_t            fast = 1; /* sums in the matrix unit, as our own kernels have them */
    const bool              relu = s->conv.act.kind == SAC_ACT_RELU;
    cublasLtEpilogue_t      epilogue = relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
    if (bias)
        epilogue = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    note(m, m->lt->api->desc_create(&m->lt->op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    set(m, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned);
    set(m, CUBLASLT_MATMUL_DESC_TRANSB, &as_it_is, sizeof as_it_is);
    set(m, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    set(m, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (bias) {
        set(m, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type);
        set(m, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    }
}

/* ---- variants ---- */

static void prefer(struct making *m, cublasLtMatmulPreference_t p,
                   cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes)
{
    if (m->good)
        note(m, m->lt->api->preference_set(p, attribute, value, bytes));
}

static void make_preference(struct making *m, cublasLtMatmulPreference_t p)
{
    const size_t   workspace = WORKSPACE_MAX;
    const uint32_t align = 16; /* all that quant_lt_fits asks for */
    prefer(m, p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    prefer(m, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align, sizeof align);
    prefer(m, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align, sizeof align);
    prefer(m, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align, sizeof align);
    prefer(m, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align, sizeof align);
}

static void ask(struct making *m)
{
    struct quant_lt                *lt = m->lt;
    cublasLtMatmulHeuristicResult_t found[QUANT_LT_MAX];
    cublasLtMatmulPreference_t      p = NULL;
    int                             count = 0;
    if (m->good)
        note(m, lt->api->preference_create(&p));
    make_preference(m, p);
    if (m->good)
        note(m, lt->api->heuristic(lt->handle, lt->op, lt->w, lt->x, lt->c, lt->y, p, QUANT_LT_MAX,
                                   found, &count));
    if (p)
        lt->api->preference_destroy(p);
    for (int i = 0; i < count && m->good; i++) {
        if (found[i].state != CUBLAS_STATUS_SUCCESS || found[i].workspaceSize > WORKSPACE_MAX)
            continue;
        lt->variants[lt->count].algo = found[i].algo;
        lt->variants[lt->count++].workspace = found[i].workspaceSize;
    }
}

void quant_lt_make(const struct products_gpu *gpu, const struct quant_spec *s, float scale,
                   const void *bias, struct quant_lt *out)
{
    const struct cuda_libraries *libs = cuda_libraries();
    struct making                m = {out, true};
    const int64_t rows = s->conv.in.size[2], k = s->conv.in.c, columns = s->conv.out.c;
    *out = (struct quant_lt){.count = 0};
    if (!libs->has_cublas || !gpu->cublas)
        return;
    out->api = &libs->cublas;
    out->handle = gpu->cublas;
    out->scale = scale;
    out->added = s->conv.residual_kind != SAC_RESIDUAL_NONE;
    make_operation(&m, s, bias);
    layout(&m, CUDA_R_8F_E4M3, columns, k, &out->w);
    layout(&m, CUDA_R_8F_E4M3, rows, k, &out->x);
    layout(&m, CUDA_R_16F, rows, columns, &out->c);
    layout(&m, CUDA_R_16F, rows, columns, &out->y);
    ask(&m);
}

void quant_lt_finish(struct quant_lt *lt)
{
    if (lt->op)
        lt->api->desc_destroy(lt->op);
    cublasLtMatrixLayout_t const layouts[] = {lt->w, lt->x, lt->c, lt->y};
    for (size_t i = 0; i < SAC_COUNT(layouts); i++)
        if (layouts[i])
            lt->api->layout_destroy(layouts[i]);
    memset(lt, 0, sizeof *lt);
}

size_t quant_lt_workspace(const struct quant_lt *lt, int variant)
{
    return lt->variants[variant].workspace;
}

size_t quant_lt_workspace_max(const struct quant_lt *lt)
{
    size_t most = 0;
    for (int i = 0; i < lt->count; i++)
        most = SAC_MAX(most, lt->variants[i].workspace);
    return most;
}

/* ---- running ---- */

cudaError_t quant_lt_run(const struct quant_lt *lt, int variant, const struct quant_operands *o,
                         void *workspace, cudaStream_t stream)
{
    const float          beta = lt->added ? 1 : 0;
    const void          *c = lt->added ? o->residual : o->y;
    const cublasStatus_t res = lt->api->matmul(
        lt->handle, lt->op, &lt->scale, o->weights, lt->w, o->x, lt->x, &beta, c, lt->c, o->y,
        lt->y, &lt->variants[variant].algo, workspace, lt->variants[variant].workspace, stream);
    return res == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorNotSupported;
}
