/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cpu/cpu.h"

#include "engine/cpu/map.h"
#include "engine/ops/quant.h"

const char *sac_simd_name(void)
{
    return sac_cpu_level() >= SAC_CPU_AVX512 ? "avx512" : "avx2";
}

bool sac_call_is_float(const struct sac_op_call *c)
{
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].present && c->in[i].dtype != SAC_F32)
            return false;
    for (int i = 0; i < c->out_count; i++)
        if (c->out[i].present && c->out[i].dtype != SAC_F32)
            return false;
    return true;
}

bool sac_dtype_is_mapped(enum sac_dtype t)
{
    return t == SAC_F32 || t == SAC_I8 || t == SAC_U8;
}

void sac_make_bytes(const struct sac_quant *q, const float *x, uint8_t *y, int64_t count)
{
    const struct sac_byte_scale by = {.scale = q->y_scale,
                                      .inverse = q->y_inverse,
                                      .zero = q->y_zero,
                                      .is_signed = q->y_dtype == SAC_I8};
    if (q->y_dtype != SAC_F8)
        SAC_SIMD_PICK(sac_map_quantise)(&by, x, y, count);
    for (int64_t i = 0; q->y_dtype == SAC_F8 && i < count; i++)
        y[i] = sac_float_to_f8(x[i] * q->y_inverse);
}

bool sac_map_fits(const struct sac_operand *o)
{
    return o->rank == 3 || o->rank == 4;
}

bool sac_volume_fits(const struct sac_operand *o)
{
    return sac_map_fits(o) || o->rank == 5;
}

static struct sac_map map_of(const struct sac_operand *o, int64_t pixel, int64_t sample)
{
    struct sac_map m = {
        .n = o->dims[0], .c = o->dims[1], .d = 1, .h = 1, .w = o->dims[o->rank - 1]};
    if (o->rank >= 4)
        m.h = o->dims[o->rank - 2];
    if (o->rank == 5)
        m.d = o->dims[2];
    m.pixel = pixel ? pixel : m.c;
    m.sample = sample ? sample : m.d * m.h * m.w * m.c;
    return m;
}

struct sac_map sac_map_in(const struct sac_kernel_plan *plan, int input)
{
    return map_of(&plan->call->in[input], plan->in_pixel[input], plan->in_sample[input]);
}

struct sac_map sac_map_out(const struct sac_kernel_plan *plan, int output)
{
    return map_of(&plan->call->out[output], plan->out_pixel[output], plan->out_sample[output]);
}

int sac_pieces(const struct sac_device *dev, int64_t units, int64_t ns)
{
    enum { PIECE_NS = 2500, PIECES_A_THREAD = 4 }; /* starting a piece costs about 300 ns */
    const int threads = sac_worker_pool_threads(dev->workers);
    int64_t   pieces = SAC_MIN(ns / PIECE_NS, (int64_t)threads * PIECES_A_THREAD);
    return threads == 1 ? 1 : (int)SAC_CLAMP(pieces, 1, units);
}

struct units_job {
    const struct sac_units *units;
    void *const *in, *const *out;
};

static void units_piece(void *arg, int piece, int worker)
{
    const struct units_job *j = arg;
    const struct sac_units *u = j->units;
    (void)worker;
    u->work(u, j->in, j->out, u->count * piece / u->pieces, u->count * (piece + 1) / u->pieces);
}

void sac_units_init(struct sac_units *u, const struct sac_device *dev, int64_t count, int64_t ns,
                    sac_units_work *work)
{
    *u = (struct sac_units){count, sac_pieces(dev, SAC_MAX(count, 1), ns), work};
}

sac_result sac_units_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                         void *scratch, struct sac_device_stream *stream)
{
    struct units_job job = {state, in, out};
    (void)scratch, (void)stream;
    sac_worker_pool_run(dev->workers, job.units->pieces, units_piece, &job);
    return SAC_OK;
}
