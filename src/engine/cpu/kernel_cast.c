/* SPDX-License-Identifier: Apache-2.0 */
/* Cast between the types that networks have at their ends and around what stays in float32: float16
 * by the processor's own conversion, the others by loops that the compiler turns into vectors. All
 * others stay with the reference row. */
#include <stdio.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/cpu/cpu.h"
#include "engine/ops/util.h"

enum { CUT = 8192 }; /* elements of a unit */

typedef void cast_loop(const void *in, void *out, int64_t from, int64_t end);

struct cast_state {
    struct sac_units cuts;
    int64_t          count;
    cast_loop       *loop;
};

/* ---- float16 ---- */

#if defined(__x86_64__)
enum { HALVES = 8 }; /* of a vector; processors with AVX2 have the conversion too */

__attribute__((target("avx2,f16c"))) static void half_to_float(const void *in, void *out,
                                                               int64_t from, int64_t end)
{
    const uint16_t *x = in;
    float          *y = out;
    int64_t         i = from;
    for (; i + HALVES <= end; i += HALVES)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    for (; i < end; i++)
        y[i] = sac_half_to_float(x[i]);
}

__attribute__((target("avx2,f16c"))) static void float_to_half(const void *in, void *out,
                                                               int64_t from, int64_t end)
{
    const float *x = in;
    uint16_t    *y = out;
    int64_t      i = from;
    for (; i + HALVES <= end; i += HALVES)
        _mm_storeu_si128((__m128i *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < end; i++)
        y[i] = sac_float_to_half(x[i]);
}
#else
#define half_to_float NULL
#define float_to_half NULL
#endif

/* ---- others ---- */

#define LOOP(name, from_type, to_type, convert)                            \
    static void name(const void *in, void *out, int64_t from, int64_t end) \
    {                                                                      \
        const from_type *x = (const from_type *)in;                        \
        to_type         *y = (to_type *)out;                               \
        for (int64_t i = from; i < end; i++)                               \
            y[i] = convert(x[i]);                                          \
    }
#define IS_TRUE(v) (uint8_t)((v) != 0)
LOOP(byte_to_float, uint8_t, float, (float))
LOOP(int_to_float, int32_t, float, (float))
LOOP(long_to_float, int64_t, float, (float))
LOOP(float_to_bool, float, uint8_t, IS_TRUE)
LOOP(int_to_bool, int32_t, uint8_t, IS_TRUE)
LOOP(long_to_bool, int64_t, uint8_t, IS_TRUE)
LOOP(byte_to_int, uint8_t, int32_t, (int32_t))
LOOP(byte_to_long, uint8_t, int64_t, (int64_t))
LOOP(int_to_long, int32_t, int64_t, (int64_t))
LOOP(long_to_int, int64_t, int32_t, (int32_t))

static const struct {
    enum sac_dtype from, to;
    cast_loop     *loop;
} loops[] = {
    {SAC_F16, SAC_F32, half_to_float},  {SAC_F32, SAC_F16, float_to_half},
    {SAC_U8, SAC_F32, byte_to_float},   {SAC_BOOL, SAC_F32, byte_to_float},
    {SAC_I32, SAC_F32, int_to_float},   {SAC_I64, SAC_F32, long_to_float},
    {SAC_F32, SAC_BOOL, float_to_bool}, {SAC_I32, SAC_BOOL, int_to_bool},
    {SAC_I64, SAC_BOOL, long_to_bool},  {SAC_BOOL, SAC_I32, byte_to_int},
    {SAC_U8, SAC_I32, byte_to_int},     {SAC_BOOL, SAC_I64, byte_to_long},
    {SAC_U8, SAC_I64, byte_to_long},    {SAC_I32, SAC_I64, int_to_long},
    {SAC_I64, SAC_I32, long_to_int},
};

static cast_loop *loop_of(enum sac_dtype from, enum sac_dtype to)
{
    for (size_t i = 0; i < SAC_COUNT(loops); i++)
        if (loops[i].from == from && loops[i].to == to)
            return loops[i].loop;
    return NULL;
}

/* ---- the kernel ---- */

static struct sac_kernel_offer cast_supports(struct sac_device                *dev,
                                             const struct sac_kernel_question *q)
{
    struct sac_kernel_offer offer = sac_kernel_take(q);
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2 || !loop_of(q->call->in[0].dtype, q->call->out[0].dtype))
        return sac_kernel_refuse("other types, or no AVX2");
    offer.in_layout[0] = offer.out_layout[0] = SAC_LAYOUT_PLAIN;
    return offer;
}

static void cast_work(const void *state, void *const *in, void *const *out, int64_t first,
                      int64_t end)
{
    const struct cast_state *s = state;
    s->loop(in[0], out[0], first * CUT, SAC_MIN(end * CUT, s->count));
}

static sac_result cast_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct cast_state        *s = sac_new(struct cast_state);
    if (!s)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    s->count = sac_operand_elements(&c->in[0]);
    s->loop = loop_of(c->in[0].dtype, c->out[0].dtype);
    sac_units_init(&s->cuts, dev, (s->count + CUT - 1) / CUT, s->count / 8, cast_work);
    snprintf(plan->implementation, sizeof plan->implementation, "loop");
    plan->state = s;
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Cast = {SAC_OP_Cast, cast_supports, cast_prepare, sac_units_run,
                                        sac_free};
