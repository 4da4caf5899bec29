/* SPDX-License-Identifier: Apache-2.0 */
/* saccade's own fast CPU kernels: AVX2 and AVX-512, channels last, without any library. Their
 * provider is sac_kernels_cpu; on other CPUs those that compute refuse, and the reference rows
 * run.
 *
 * kernel_<name>.c holds an operator's supports, prepare and run, whose work is cut into pieces for
 * the worker pool (struct sac_units). The inner loops stand in conv_simd.h and map_simd.h over the
 * vectors of simd.h, compiled once for each CPU level (conv_avx2.c, conv_avx512.c, ...);
 * SAC_SIMD_PICK chooses at run time. Read first: kernel_concat.c, then kernel_conv.c with conv.h.
 */
#ifndef SAC_ENGINE_CPU_CPU_H
#define SAC_ENGINE_CPU_CPU_H

#include "device/cpu/cpu.h"
#include "engine/kernel/kernel.h"

extern const struct sac_kernel_provider sac_kernels_cpu;

/* SAC_CPU_KERNEL(op) for every operator with a kernel, for both the declarations and the table. */
#define SAC_CPU_KERNELS(KERNEL)   \
    KERNEL(Abs)                   \
    KERNEL(Activation)            \
    KERNEL(Add)                   \
    KERNEL(And)                   \
    KERNEL(ArgMax)                \
    KERNEL(ArgMin)                \
    KERNEL(AveragePool)           \
    KERNEL(BatchNormalization)    \
    KERNEL(Cast)                  \
    KERNEL(Ceil)                  \
    KERNEL(Celu)                  \
    KERNEL(Chain)                 \
    KERNEL(Clip)                  \
    KERNEL(Concat)                \
    KERNEL(Conv)                  \
    KERNEL(ConvTranspose)         \
    KERNEL(CumSum)                \
    KERNEL(DeformAttention)       \
    KERNEL(DeformConv)            \
    KERNEL(DepthToSpace)          \
    KERNEL(DequantizeLinear)      \
    KERNEL(Div)                   \
    KERNEL(Elu)                   \
    KERNEL(Equal)                 \
    KERNEL(Erf)                   \
    KERNEL(Excitation)            \
    KERNEL(Exp)                   \
    KERNEL(Expand)                \
    KERNEL(Expectation)           \
    KERNEL(Floor)                 \
    KERNEL(FusedAttention)        \
    KERNEL(FusedBatchNorm)        \
    KERNEL(FusedGroupNorm)        \
    KERNEL(FusedConv)             \
    KERNEL(FusedMatMul)           \
    KERNEL(FusedNorm)             \
    KERNEL(FusedRotary)           \
    KERNEL(GatedSum)              \
    KERNEL(Gather)                \
    KERNEL(Gelu)                  \
    KERNEL(Gemm)                  \
    KERNEL(GlobalAveragePool)     \
    KERNEL(GlobalMaxPool)         \
    KERNEL(Greater)               \
    KERNEL(GreaterOrEqual)        \
    KERNEL(GridSample)            \
    KERNEL(GroupNormalization)    \
    KERNEL(GRU)                   \
    KERNEL(HardSigmoid)           \
    KERNEL(HardSwish)             \
    KERNEL(HeadMatMul)            \
    KERNEL(LinearAttention)       \
    KERNEL(InstanceNormalization) \
    KERNEL(IsNaN)                 \
    KERNEL(LayerNormalization)    \
    KERNEL(LeakyRelu)             \
    KERNEL(Less)                  \
    KERNEL(LessOrEqual)           \
    KERNEL(Log)                   \
    KERNEL(LpNormalization)       \
    KERNEL(LSTM)                  \
    KERNEL(MatMul)                \
    KERNEL(Max)                   \
    KERNEL(MaxPool)               \
    KERNEL(Min)                   \
    KERNEL(Mish)                  \
    KERNEL(Mul)                   \
    KERNEL(Neg)                   \
    KERNEL(Not)                   \
    KERNEL(Or)                    \
    KERNEL(Pad)                   \
    KERNEL(Pow)                   \
    KERNEL(PRelu)                 \
    KERNEL(QuantConv)             \
    KERNEL(QuantizeLinear)        \
    KERNEL(QuantMatMul)           \
    KERNEL(Rearrange)             \
    KERNEL(Reciprocal)            \
    KERNEL(ReduceL1)              \
    KERNEL(ReduceL2)              \
    KERNEL(ReduceMax)             \
    KERNEL(ReduceMean)            \
    KERNEL(ReduceMin)             \
    KERNEL(ReduceSum)             \
    KERNEL(ReduceSumSquare)       \
    KERNEL(Relu)                  \
    KERNEL(Resize)                \
    KERNEL(RMSNormalization)      \
    KERNEL(RNN)                   \
    KERNEL(Round)                 \
    KERNEL(SampleNorm)            \
    KERNEL(Selu)                  \
    KERNEL(Sigmoid)               \
    KERNEL(Slice)                 \
    KERNEL(Softmax)               \
    KERNEL(Softplus)              \
    KERNEL(Softsign)              \
    KERNEL(SpaceToDepth)          \
    KERNEL(Split)                 \
    KERNEL(Sqrt)                  \
    KERNEL(Sub)                   \
    KERNEL(Swish)                 \
    KERNEL(Tanh)                  \
    KERNEL(ThresholdedRelu)       \
    KERNEL(Tile)                  \
    KERNEL(Transpose)             \
    KERNEL(Upsample)              \
    KERNEL(Where)                 \
    KERNEL(Xor)
#define KERNEL(op) extern const struct sac_kernel sac_cpu_##op;
SAC_CPU_KERNELS(KERNEL)
#undef KERNEL

/* ---- shared by the kernels ---- */

/* The variant of fn for this CPU, which has at least AVX2. */
#if defined(__x86_64__)
#define SAC_SIMD_PICK(fn) (sac_cpu_level() >= SAC_CPU_AVX512 ? fn##_avx512 : fn##_avx2)
#else
#define SAC_SIMD_PICK(fn) ((__typeof__(&fn##_avx2))NULL)
#endif
/* "avx512", "avx2" */
const char       *sac_simd_name(void);
static inline int sac_simd_lanes(void)
{
    return sac_cpu_level() >= SAC_CPU_AVX512 ? 16 : 8;
}

/* All present inputs and outputs are float32. */
bool sac_call_is_float(const struct sac_op_call *c);
/* Means over each channel's map (kernel_pool.c): GlobalAveragePool, and ReduceMean where it is
 * that. */
bool                    sac_map_means_fit(const struct sac_op_call *c);
struct sac_kernel_offer sac_map_means_supports(struct sac_device                *dev,
                                               const struct sac_kernel_question *q);
sac_result              sac_map_means_prepare(struct sac_device *dev, struct sac_kernel_plan *plan);

/* Numbers whose maps lie channels last here: float32 and those of quantised networks. */
bool sac_dtype_is_mapped(enum sac_dtype t);

/* An operand in channels last: [n, pixels of width x height (x depth), c], with its strides. Ranks
 * 3 to 5; where there is no height or depth, it is one. */
struct sac_map {
    int64_t n, c, h, w;
    int64_t sample, pixel; /* elements from one to the next */
    int64_t d;
};
/* Ranks 3 and 4, which may be parts of wider values; to 5. */
bool           sac_map_fits(const struct sac_operand *o);
bool           sac_volume_fits(const struct sac_operand *o);
struct sac_map sac_map_in(const struct sac_kernel_plan *plan, int input);
struct sac_map sac_map_out(const struct sac_kernel_plan *plan, int output);

/* The number of pieces for work of `units` equal units that take about `ns` in total: enough to
 * keep all threads busy, but no piece so small that starting it costs more. */
int sac_pieces(const struct sac_device *dev, int64_t units, int64_t ns);

/* What the state of a kernel begins with whose run is `count` units of work that do not depend on
 * each other; work does those from first to end - 1. sac_units_run is its run: it cuts them into
 * pieces for the worker pool. */
typedef void sac_units_work(const void *state, void *const *in, void *const *out, int64_t first,
                            int64_t end);
struct sac_units {
    int64_t         count;
    int             pieces;
    sac_units_work *work;
};
/* Units that take about `ns` in total. */
void sac_units_init(struct sac_units *u, const struct sac_device *dev, int64_t count, int64_t ns,
                    sac_units_work *work);
sac_result sac_units_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                         void *scratch, struct sac_device_stream *stream);

#endif
