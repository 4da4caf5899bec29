/* SPDX-License-Identifier: Apache-2.0 */
/* What RNN, GRU and LSTM do with the sums of their gates, in two vector widths. */
#ifndef SAC_ENGINE_CPU_RNN_H
#define SAC_ENGINE_CPU_RNN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ops/fused.h"

/* Of one direction. */
struct sac_rnn_cell {
    struct sac_activation act[3]; /* in ONNX's order */
    float                 clip;   /* of what goes into the gates; infinite: none */
    bool                  coupled;
};

/* One step of one sample. Numbers are those of hidden 0 on, in whole vectors, but for y and
 * peepholes. Sums lie [vectors][gates][lanes], so that a vector's gates are neighbours. */
struct sac_rnn_step {
    const float *input;    /* sums of the input, and its bias */
    float       *again;    /* sums of what was before, and its bias */
    const float *h;        /* before this step */
    float       *next;     /* after it */
    float       *cell;     /* LSTM: replaced */
    float       *y;        /* next once more; NULL: not wanted */
    const float *peephole; /* LSTM: [input, output, forget][hidden]; NULL: none */
    const float *update;   /* GRU in two halves: what the first one left in `again` */
    int64_t      hidden;
};

/* Vectors first..end-1. */
typedef void sac_rnn_fn(const struct sac_rnn_cell *c, const struct sac_rnn_step *s, int64_t first,
                        int64_t end);
#define SAC_RNN_FUNCTIONS(suffix)                                                              \
    sac_rnn_fn sac_rnn_plain_##suffix, sac_rnn_lstm_##suffix;                                  \
    /* a GRU whose reset gate is applied after the product (linear_before_reset) */            \
    sac_rnn_fn sac_rnn_gru_##suffix;                                                           \
    /* One where it is applied before. The first half leaves the update gate in `again`, in */ \
    /* `next` what the second half's product is of. */                                         \
    sac_rnn_fn sac_rnn_gru_reset_##suffix, sac_rnn_gru_renew_##suffix;
SAC_RNN_FUNCTIONS(avx2)
SAC_RNN_FUNCTIONS(avx512)

#endif
