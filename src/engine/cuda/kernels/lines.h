/* SPDX-License-Identifier: Apache-2.0 */
/* Operators over whole lines of numbers: reductions, softmax, norms. The inner view walks a line;
 * the outer view gives the start of each. A team of threads works on a line, or on a part of it
 * when there are only a few long lines; the parts' results are then combined in scratch. */
#ifndef SAC_ENGINE_CUDA_KERNELS_LINES_H
#define SAC_ENGINE_CUDA_KERNELS_LINES_H

#include "engine/cuda/kernels/types.h"

enum ops_team { OPS_TEAM_SOLO, OPS_TEAM_WARP, OPS_TEAM_BLOCK, OPS_TEAM_COLUMN };

/* A line of float16 or float32 that lies densely in the operands, short enough for the registers of
 * `lanes` threads: 4 to 32 of a warp, or a block's 256. 0: it is not, and a team works on it.
 */
enum { OPS_HELD_MAX = 8192 };
struct ops_held {
    int32_t lanes;
    int32_t eights; /* of numbers that a thread holds */
    int32_t pack;   /* all lines begin and end at a multiple of so many numbers: 8, 4, 1 */
};

struct ops_lines {
    struct ops_view outer, inner;
    int32_t         team, parts;
    int32_t         width; /* of a column: the lines side by side in a block */
    struct ops_held held;
};

enum ops_reduce_kind {
    OPS_REDUCE_SUM,
    OPS_REDUCE_ABS,
    OPS_REDUCE_SQUARE,
    OPS_REDUCE_PROD,
    OPS_REDUCE_MAX,
    OPS_REDUCE_MIN,
    OPS_REDUCE_LOG_SUM_EXP
};
enum ops_reduce_finish { OPS_FINISH_NONE, OPS_FINISH_MEAN, OPS_FINISH_SQRT, OPS_FINISH_LOG };
struct ops_reduce { /* operand 0: in, 1: out */
    struct ops_lines lines;
    struct ops_view  units; /* with `vector`: of the input, eight neighbouring lines at once; with
                               `across`: so many of both */
    int32_t vector;
    int32_t across; /* neighbouring lines, or one, are a thread's alone */
    int32_t along;  /* numbers of a line that lie together; the team is a block, or `width`
                       threads of a warp */
    int32_t        kind, finish, in_type, out_type;
    enum ops_class type;
    double         nothing; /* of an empty line */
};
OPS_LAUNCHER(ops_launch_reduce);
OPS_LAUNCHER(ops_launch_reduce_across); /* of `across` */
OPS_LAUNCHER(ops_launch_reduce_along);  /* of `along`, all lines or the parts of them */

struct ops_arg { /* operand 0: in, 1: out */
    struct ops_lines lines;
    int32_t          least, last, in_type;
    enum ops_class   type;
};
OPS_LAUNCHER(ops_launch_arg);

enum ops_softmax_kind { OPS_SOFTMAX, OPS_LOG_SOFTMAX, OPS_HARDMAX };
struct ops_softmax { /* operand 0: in, 1: out */
    struct ops_lines lines;
    struct ops_view  units; /* with `across`: eight neighbouring lines at once, by a thread */
    int32_t          across;
    int32_t          kind, in_type, out_type;
};
OPS_LAUNCHER(ops_launch_softmax);

enum ops_norm_kind {
    OPS_NORM_CENTRED,
    OPS_NORM_ROOT,
    OPS_NORM_MEAN_VARIANCE,
    OPS_NORM_L1,
    OPS_NORM_L2,
    OPS_NORM_SUM,
    OPS_NORM_SHARES
};
/* Eight numbers at once of lines that are not held: of one line each, or of eight lines that lie
 * side by side, of which `units` is the outer view then. */
enum ops_eights { OPS_EIGHTS_NONE, OPS_EIGHTS_ALONG, OPS_EIGHTS_ACROSS };
/* A line's units of so many neighbouring numbers, in two dimensions at most: offsets of in, out,
 * scale, bias and residual from their place in the line. stills: bit k for one number a unit. */
struct ops_walk {
    int64_t            count;
    struct ops_divisor inner;
    int32_t            step[5][2];
    uint32_t           stills;
};
/* A line that is spread over the registers of blocks of so many threads: a cluster, from two blocks
 * on. Scale and bias are float32. threads 0: it is not. */
enum { OPS_SPREAD_SHIFT_MAX = 3, OPS_SPREAD_THREADS_MAX = 1024 };
struct ops_spread {
    struct ops_walk walk;
    int32_t         shift; /* of the number of blocks, a power of two */
    int32_t         threads;
    int32_t         vector; /* numbers of a unit */
};
/* Units that a thread holds: of 16 bytes, or of fewer. */
#define OPS_SPREAD_TURNS(bytes) ((bytes) == 16 ? 8 : 16)
struct ops_norm { /* operand 0: in, 1: out, 2: scale, 3: bias, 4: residual, 5: statistics */
    struct ops_lines  lines;
    struct ops_spread spread; /* where it can be, before all others */
    struct ops_walk   walk;   /* of eights along a line */
    struct ops_view   units;
    int32_t           eights;
    uint32_t          stills; /* of units across lines */
    int32_t           kind, in_type, out_type;
    int32_t           scale_port, scale_type, bias_port, bias_type; /* port -1: none */
    int32_t           residual_port, residual_type;                 /* type 0: none */
    int32_t           residual_after;          /* it is added behind the activation */
    int32_t           mean_type, inverse_type; /* of outputs 1 and 2; 0: not wanted */
    int32_t           activation;              /* enum ops_fn */
    int32_t           whole;                   /* what results is over its sum */
    double            epsilon;                 /* of L1 and L2: the least norm */
    double            a, b;
    struct ops_bytes  bytes; /* of a FusedNorm: out_type is that of the numbers before */
};
OPS_LAUNCHER(ops_launch_norm);
/* Do the card and the addresses allow that a line is spread? Then the second one does it. */
#ifdef __cplusplus
extern "C"
#endif
    bool
    ops_norm_spreads(const struct ops_norm *p, const struct ops_ports *ports);
OPS_LAUNCHER(ops_launch_norm_spread);

/* BatchNormalization goes through the places of each channel, or of eight side by side; `step` is
 * from one of them to the next. `slots` threads share them, 0 where it is not possible. Operand 0
 * is out, 1 in. */
struct ops_channel_walk {
    struct ops_view rest; /* without the channels' dimension */
    int64_t         channels, step[2], slots;
    int32_t         inside; /* channels are innermost: of threads side by side, each has its own */
};
/* BatchNormalization and LRN. */
struct ops_channel_norm {
    struct ops_view         view; /* operand 0: out, 1: in, 2: the channel */
    struct ops_channel_walk singles, eights;
    int32_t                 in_type, out_type, vector_type[4];
    int64_t                 channels, channel_step, size;
    double                  epsilon, alpha, beta, bias;
    int32_t                 activation; /* enum ops_fn, of a FusedBatchNorm */
    double                  a, b;
};
OPS_LAUNCHER(ops_launch_batch_norm);
OPS_LAUNCHER(ops_launch_lrn);

/* CumSum and CumProd: a thread per line. */
struct ops_cumulate { /* operand 0: in, 1: out */
    struct ops_lines lines;
    int32_t          product, exclusive, reverse, type_in, type_out;
    int32_t          floats;
};
OPS_LAUNCHER(ops_launch_cumulate);

#endif
