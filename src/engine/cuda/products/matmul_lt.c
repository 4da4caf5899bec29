/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/matmul_lt.h"

#include <string.h>

enum { WORKSPACE_MAX = 32 << 20 };

static void note(struct matmul_lt *lt, cublasStatus_t status)
{
    if (lt->status == CUBLAS_STATUS_SUCCESS)
        lt->status = status;
}

static bool good(const struct matmul_lt *lt)
{
    return lt->status == CUBLAS_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

static cudaDataType number_type(const struct matmul_spec *s)
{
    return s->precision == SAC_PRECISION_FP16 ? CUDA_R_16F : CUDA_R_32F;
}

static cublasComputeType_t compute_type(const struct matmul_spec *s)
{
    return s->precision == SAC_PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static void set(struct matmul_lt *lt, cublasLtMatmulDescAttributes_t attribute, const void *value,
                size_t bytes)
{
    if (good(lt))
        note(lt, lt->api->desc_set(lt->op, attribute, value, bytes));
}

static cublasLtEpilogue_t epilogue_of(const struct matmul_spec *s)
{
    const bool bias = matmul_ends_with_bias(s);
    if (matmul_ends_with(s) == SAC_ACT_RELU)
        return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

static void make_operation(struct matmul_lt *lt, const struct matmul_spec *s)
{
    const cublasOperation_t  first = s->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t  second = s->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = epilogue_of(s);
    const cudaDataType       bias_type = number_type(s);
    note(lt, lt->api->desc_create(&lt->op, compute_type(s), CUDA_R_32F));
    set(lt, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    set(lt, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (matmul_ends_with_bias(s))
        set(lt, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type);
}

/* A row-major matrix of rows by columns is a column-major one of columns by rows. */
static void make_layout(struct matmul_lt *lt, const struct matmul_spec *s, int64_t rows,
                        int64_t columns, int64_t step, cublasLtMatrixLayout_t *out)
{
    const int32_t batch = (int32_t)s->batch;
    if (good(lt))
        note(lt, lt->api->layout_create(out, number_type(s), (uint64_t)columns, (uint64_t)rows,
                                        columns));
    if (good(lt))
        note(lt,
             lt->api->layout_set(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
    if (good(lt))
        note(lt, lt->api->layout_set(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                     sizeof step));
}

bool matmul_lt_make(struct products_gpu *gpu, const struct cublas_api *api,
                    const struct matmul_spec *s, struct matmul_lt *out)
{
    *out = (struct matmul_lt){.api = api, .handle = gpu->cublas};
    make_operation(out, s);
    make_layout(out, s, s->a_transposed ? s->k : s->m, s->a_transposed ? s->m : s->k, s->a_step,
                &out->a);
    make_layout(out, s, s->b_transposed ? s->n : s->k, s->b_transposed ? s->k : s->n, s->b_step,
                &out->b);
    make_layout(out, s, s->m, s->n, s->y_step, &out->y);
    return good(out);
}

void matmul_lt_finish(struct matmul_lt *lt)
{
    if (lt->op)
        lt->api->desc_destroy(lt->op);
    if (lt->a)
        lt->api->layout_destroy(lt->a);
    if (lt->b)
        lt->api->layout_destroy(lt->b);
    if (lt->y)
        lt->api->layout_destroy(lt->y);
    memset(lt, 0, sizeof *lt);
}

/* ---- variants ---- */

static void prefer(struct matmul_lt *lt, cublasLtMatmulPreference_t p,
                   cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes)
{
    if (good(lt))
        note(lt, lt->api->preference_set(p, attribute, value, bytes));
}

/* Partial sums of a product are never stored in float16. */
static void make_preference(struct matmul_lt *lt, const struct matmul_spec *s,
                            cublasLtMatmulPreference_t p)
{
    const size_t   workspace = WORKSPACE_MAX;
    const uint32_t sums =
        CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint32_t a = (uint32_t)s->b_align, b = (uint32_t)s->a_align, y = (uint32_t)s->y_align;
    const uint32_t c = s->matrix ? (uint32_t)s->c_align : y;
    prefer(lt, p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    prefer(lt, p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums, sizeof sums);
    prefer(lt, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a);
    prefer(lt, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b);
    prefer(lt, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof c);
    prefer(lt, p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &y, sizeof y);
}

int matmul_lt_candidates(struct matmul_lt *lt, const struct matmul_spec *s,
                         cublasLtMatmulHeuristicResult_t *out, int max)
{
    cublasLtMatmulPreference_t p = NULL;
    int                        found = 0, good_ones = 0;
    note(lt, lt->api->preference_create(&p));
    if (good(lt))
        make_preference(lt, s, p);
    if (good(lt))
        note(lt, lt->api->heuristic(lt->handle, lt->op, lt->b, lt->a, lt->y, lt->y, p, max, out,
                                    &found));
    if (p)
        lt->api->preference_destroy(p);
    for (int i = 0; i < found && good(lt); i++)
        if (out[i].state == CUBLAS_STATUS_SUCCESS)
            out[good_ones++] = out[i];
    return good_ones;
}

bool matmul_lt_take(struct matmul_lt *lt, const cublasLtMatmulAlgo_t *algo)
{
    cublasLtMatmulHeuristicResult_t fit;
    if (lt->api->algo_check(lt->handle, lt->op, lt->b, lt->a, lt->y, lt->y, algo, &fit) !=
            CUBLAS_STATUS_SUCCESS ||
        fit.state != CUBLAS_STATUS_SUCCESS || fit.workspaceSize > WORKSPACE_MAX)
        return false;
    lt->algo = *algo;
    lt->workspace = fit.workspaceSize;
    return true;
}

/* ---- running ---- */

cublasStatus_t matmul_lt_run(struct matmul_lt *lt, const struct matmul_spec *s,
                             const struct matmul_pointers *p, cudaStream_t stream)
{
    const int64_t  element = (int64_t)matmul_element(s);
    cublasStatus_t res = CUBLAS_STATUS_SUCCESS;
    if (matmul_ends_with_bias(s))
        res =
            lt->api->desc_set(lt->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias);
    for (int t = 0; t < s->turns && res == CUBLAS_STATUS_SUCCESS; t++) {
        const char *a = (const char *)p->a + s->a_at[t] * element,
                   *b = (const char *)p->b + s->b_at[t] * element;
        char *y = (char *)p->y + t * s->batch * s->y_step * element;
        res = lt->api->matmul(lt->handle, lt->op, &s->alpha, b, lt->b, a, lt->a, &s->beta,
                              s->matrix ? p->c : y, lt->y, y, lt->y, &lt->algo, p->workspace,
                              lt->workspace, stream);
    }
    return res;
}
