/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, RotaryEmbedding and the recurrent layers. */
#ifndef SAC_ENGINE_CUDA_KERNELS_SEQUENCE_H
#define SAC_ENGINE_CUDA_KERNELS_SEQUENCE_H

#include "engine/cuda/kernels/types.h"

/* struct sac_heads of engine/ops/reads.h. */
struct ops_heads {
    int64_t batch, count, length, size, step[3];
};

/* Scores of a row of queries are in scratch, [rows][total] float. Ports as in the node. */
struct ops_attention {
    struct ops_heads q, k, v;
    int64_t          past, total, group, left, right;
    double           scale, softcap;
    int32_t          causal, mode, flat;                                     /* flat: [B,S,H*D] */
    int32_t          q_type, k_type, v_type, past_key_type, past_value_type; /* 0: there is none */
    int32_t          mask_type, mask_rank, has_valid, team;
    int64_t          mask_dim[4];
    int32_t          out_type[4]; /* 0: not wanted */
};
OPS_LAUNCHER(ops_launch_attention);

struct ops_rotary {
    struct ops_heads x;
    int64_t          turned, positions; /* rows of the angles */
    int32_t          interleaved, has_position, type, cos_type, sin_type, out_type;
};
OPS_LAUNCHER(ops_launch_rotary);

/* In the order of enum sac_rnn_kind; inputs in that of LSTM's. */
enum ops_recurrent_kind { OPS_RNN, OPS_GRU, OPS_LSTM };
enum ops_recurrent_input {
    OPS_RECURRENT_X,
    OPS_RECURRENT_W,
    OPS_RECURRENT_R,
    OPS_RECURRENT_B,
    OPS_RECURRENT_LENGTHS,
    OPS_RECURRENT_H,
    OPS_RECURRENT_C,
    OPS_RECURRENT_P
};
/* Of struct sac_rnn_activation's kinds. */
enum { OPS_RECURRENT_TANH = 2, OPS_RECURRENT_SIGMOID = 3 };
enum { OPS_RECURRENT_TILES_MAX = 8 };
struct ops_recurrent {
    int32_t kind, directions, reverse_only, batch_first, linear_before_reset, coupled;
    int32_t summed; /* as struct sac_rnn */
    int32_t tiles;  /* of 16 hidden numbers: 1, 2, 3, 4, 6 or 8; 0: no tensor cores */
    int32_t team;
    int64_t steps, batch, inputs, hidden, gates;
    double  clip;
    struct {
        int32_t kind; /* struct sac_rnn_activation's */
        float   alpha, beta;
    } act[2][3];
    int32_t type[8];     /* of the inputs, 0: there is none */
    int32_t out_type[3]; /* 0: not wanted */
    int64_t out_count;   /* of output 0 */
};
OPS_LAUNCHER(ops_launch_recurrent);

#endif
