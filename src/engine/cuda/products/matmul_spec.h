/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product for cuBLASLt, Y = act(alpha A B + beta C + bias) over a batch, with a pass of
 * our own behind it for what cuBLASLt does not do; and the text of the chosen variant. Host code
 * without CUDA, so that it can be tested without a GPU. */
#ifndef SAC_ENGINE_CUDA_PRODUCTS_MATMUL_SPEC_H
#define SAC_ENGINE_CUDA_PRODUCTS_MATMUL_SPEC_H

#include "engine/kernel/kernel.h"
#include "engine/ops/fused.h"

enum { MATMUL_TURNS_MAX = 64 };

struct matmul_spec {
    enum sac_precision precision;
    int64_t            m, n, k;
    bool               a_transposed, b_transposed; /* in memory: [k,m], [n,k] */
    int64_t            batch;                      /* products in one call */
    int64_t            a_step, b_step, y_step;     /* elements from one to the next; 0: the same */
    float              alpha, beta;                /* beta: of a whole matrix C */
    bool               bias;                       /* one number for each column */
    float              bias_scale;
    bool               matrix; /* C is [m,n] */
    int                c_port; /* the input that C is */
    /* Of a FusedMatMul: the activation; its residual is C, or is added by the pass. */
    bool                  fused;
    struct sac_activation act;
    bool                  residual_in_pass;
    bool                  ending; /* something is done to each column behind it */
    /* cuBLASLt has no kernel with this epilogue: bias and activation are the pass's too. */
    bool bare;
    int  a_align, b_align, c_align, y_align; /* bytes */
    /* Batches that do not broadcast evenly: several calls, each with its own offsets. */
    int     turns;
    int64_t a_at[MATMUL_TURNS_MAX], b_at[MATMUL_TURNS_MAX];
};

/* false: why says what is not covered. */
bool matmul_spec_read(const struct sac_kernel_plan *plan, struct matmul_spec *out, char *why,
                      size_t why_size);
/* Equal for products that cost the same. 0: it does not fit. */
size_t matmul_spec_text(const struct matmul_spec *s, char *out, size_t size);
size_t matmul_element(const struct matmul_spec *s);

/* What cuBLASLt's epilogue does. */
bool matmul_ends_with_bias(const struct matmul_spec *s);
/* SAC_ACT_NONE or SAC_ACT_RELU */
enum sac_activation_kind matmul_ends_with(const struct matmul_spec *s);
/* Does our pass follow? It does the rest. */
bool matmul_needs_pass(const struct matmul_spec *s);

/* The bytes of a variant as text with a checksum: contents of a damaged file must never reach the
 * library. */
enum { MATMUL_CHOICE_BYTES = 64 };
void matmul_choice_print(const unsigned char bytes[MATMUL_CHOICE_BYTES], char *out, size_t size);
bool matmul_choice_parse(const char *text, unsigned char bytes[MATMUL_CHOICE_BYTES]);

#endif
