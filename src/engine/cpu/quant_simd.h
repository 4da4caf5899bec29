/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of quantised convolutions for one kind of CPU; see simd.h for how this file is
 * compiled, quant.h for what is packed how. */
#include <string.h>

#include "engine/cpu/quant.h"

typedef uint8_t conv_in;
typedef int8_t  conv_weight;
typedef uint8_t conv_out; /* bytes, of float32 too */
#include "engine/cpu/conv_lines.h"

static const conv_weight *conv_weights(const struct sac_conv *c)
{
    return c->quant->weights;
}

/* ---- whole numbers ---- */

#if SAC_SIMD_BITS == 512
typedef __m512i veci;
#define MMI(name) _mm512_##name##_si512
#else
typedef __m256i veci;
#define MMI(name) _mm256_##name##_si256
#endif

SIMD_INLINE veci i_load(const void *p)
{
    return MMI(loadu)(p);
}
SIMD_INLINE void i_store(void *p, veci v)
{
    MMI(storeu)(p, v);
}
SIMD_INLINE vec i_float(veci v)
{
    return MM(cvtepi32_ps)(v);
}

/* Four bytes of each lane, unsigned, as the dot product takes them; and four signed ones. */
#ifdef SAC_SIMD_VNNI
typedef veci quad_x, quad_w;

SIMD_INLINE quad_x quad_pixels(veci x)
{
    return x;
}
SIMD_INLINE quad_w quad_weights(veci w)
{
    return w;
}
SIMD_INLINE veci quad_dot(veci sum, quad_x x, quad_w w)
{
    return _mm512_dpbusd_epi32(sum, x, w);
}
#else
typedef struct {
    veci even, odd; /* bytes as 16 bits */
} quad_x, quad_w;

SIMD_INLINE quad_x quad_pixels(veci x)
{
#if SAC_SIMD_BITS == 512
    return (quad_x){_mm512_and_si512(x, _mm512_set1_epi16(0xff)), _mm512_srli_epi16(x, 8)};
#else
    return (quad_x){_mm256_and_si256(x, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(x, 8)};
#endif
}
SIMD_INLINE quad_w quad_weights(veci w)
{
    return (quad_w){MM(srai_epi16)(MM(slli_epi16)(w, 8), 8), MM(srai_epi16)(w, 8)};
}
SIMD_INLINE veci quad_dot(veci sum, quad_x x, quad_w w)
{
    return MM(add_epi32)(
        sum, MM(add_epi32)(MM(madd_epi16)(x.even, w.even), MM(madd_epi16)(x.odd, w.odd)));
}
#endif

/* The pixel's next four channels in all lanes. */
SIMD_INLINE veci quad_broadcast(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return MM(set1_epi32)(four);
}

/* ---- endings ---- */

/* n < 64 bytes, in halves as v_store_count. */
SIMD_INLINE void store_bytes(uint8_t *p, const uint8_t *from, int64_t n)
{
    for (; n >= 16; n -= 16, p += 16, from += 16)
        memcpy(p, from, 16);
    if (n & 8) {
        memcpy(p, from, 8);
        p += 8, from += 8;
    }
    if (n & 4) {
        memcpy(p, from, 4);
        p += 4, from += 4;
    }
    if (n & 2) {
        memcpy(p, from, 2);
        p += 2, from += 2;
    }
    if (n & 1)
        *p = *from;
}

/* 8-bit numbers of the residual in real units. */
SIMD_INLINE vec residual_bytes(const struct sac_quant_conv *q, const uint8_t *p, int64_t n)
{
    uint8_t some[LANES] = {0};
    if (n < LANES) {
        store_bytes(some, p, n);
        p = some;
    }
#if SAC_SIMD_BITS == 512
    const __m128i b = _mm_loadu_si128((const void *)p);
    const veci    wide = q->residual == SAC_I8 ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b);
#else
    const __m128i b = _mm_loadl_epi64((const void *)p);
    const veci    wide = q->residual == SAC_I8 ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b);
#endif
    const veci zero = MM(set1_epi32)(q->residual_zero);
    return v_mul(i_float(MM(sub_epi32)(wide, zero)), v_set(q->residual_scale));
}

/* n numbers of the residual, or a whole vector. */
SIMD_INLINE vec residual_at(const struct sac_quant_conv *q, const uint8_t *p, int64_t n)
{
    if (q->residual != SAC_F32)
        return residual_bytes(q, p, n);
    const float *f = (const float *)(const void *)p;
    return n >= LANES ? v_load(f) : v_load_first(f, v_first(n));
}

SIMD_INLINE void store_rounded(const struct sac_quant_conv *q, uint8_t *p, vec v, int64_t n)
{
    /* far enough beyond the bounds, and rounded without overflow */
    const vec  steps = v_clamp(v_mul(v, v_set(q->result_inverse)), -1e9f, 1e9f);
    veci       i = MM(add_epi32)(MM(cvtps_epi32)(steps), MM(set1_epi32)(q->result_zero));
    uint8_t    bytes[16];
    const veci low = MM(set1_epi32)(q->low), high = MM(set1_epi32)(q->high);
    i = MM(min_epi32)(high, MM(max_epi32)(low, i));
#if SAC_SIMD_BITS == 512
    const __m128i b = _mm512_cvtepi32_epi8(i);
#else
    const __m256i low_bytes = _mm256_and_si256(i, _mm256_set1_epi32(0xff));
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(low_bytes), _mm256_extracti128_si256(low_bytes, 1));
    const __m128i b = _mm_packus_epi16(words, words);
#endif
    if (n < LANES) {
        _mm_storeu_si128((void *)bytes, b);
        store_bytes(p, bytes, n);
    } else if (LANES == 16)
        _mm_storeu_si128((void *)p, b);
    else
        _mm_storel_epi64((void *)p, b);
}

SIMD_INLINE void store_result(const struct sac_quant_conv *q, uint8_t *p, vec v, int64_t n)
{
    float *f = (float *)(void *)p;
    if (q->result != SAC_F32)
        store_rounded(q, p, v, n);
    else if (n >= LANES)
        v_store(f, v);
    else
        v_store_count(f, v, n);
}

/* Sums of pixels that are one vector of channels, `step` sums apart. */
struct results {
    const struct sac_conv *c;
    const int32_t         *sums;
    int64_t                step, lane, channels; /* of the first pixel; at most LANES */
    const uint8_t         *residual;
    uint8_t               *out;
    int64_t                residual_step, out_step;
};

SIMD_INLINE void finish_as(const struct results *r, int pixels, enum sac_activation_kind kind)
{
    const struct sac_conv      *c = r->c;
    const struct sac_quant_conv q = *c->quant; /* stores of bytes could change any other memory */
    const struct sac_activation act = {kind, c->act.alpha, c->act.beta};
    const enum sac_residual     add = c->residual_kind;
    const vec                   scale = v_load(q.scale + r->lane), bias = v_load(q.bias + r->lane);
    const struct results        at = *r;
    for (int i = 0; i < pixels; i++) {
        const vec more =
            add ? residual_at(&q, at.residual + i * at.residual_step, at.channels) : v_set(0.0f);
        vec v = v_fma(i_float(i_load(at.sums + i * at.step)), scale, bias);
        v = v_activate(add == SAC_RESIDUAL_BEFORE ? v_add(v, more) : v, &act);
        store_result(&q, at.out + i * at.out_step, add == SAC_RESIDUAL_AFTER ? v_add(v, more) : v,
                     at.channels);
    }
}

/* Any ending. */
SIMD_FN static void finish_any(const struct results *r, int pixels)
{
    switch (r->c->act.kind) {
#define ARM(kind) \
    case kind: finish_as(r, pixels, kind); break;
        ARM(SAC_ACT_RELU)
        ARM(SAC_ACT_LEAKY_RELU)
        ARM(SAC_ACT_CLIP)
        ARM(SAC_ACT_SIGMOID)
        ARM(SAC_ACT_SILU)
        ARM(SAC_ACT_HARD_SIGMOID)
        ARM(SAC_ACT_HARD_SWISH)
        ARM(SAC_ACT_TANH)
        ARM(SAC_ACT_SOFTPLUS)
        ARM(SAC_ACT_GELU)
        ARM(SAC_ACT_GELU_TANH)
        ARM(SAC_ACT_SQUARED_RELU)
#undef ARM
    default: finish_as(r, pixels, SAC_ACT_NONE); break;
    }
}

#if SAC_SIMD_BITS == 512

/* Four vectors in steps to 64 bytes: of each 128 bits of the vectors four bytes, one behind the
 * other. */
SIMD_INLINE veci pack_quad(const vec *steps, const struct sac_quant_conv *q)
{
    const int  flip = q->result == SAC_I8 ? 128 : 0; /* bytes are packed as unsigned ones */
    const veci zero = _mm512_set1_epi16((short)(q->result_zero + flip));
    const veci low = _mm512_set1_epi16((short)(q->low + flip));
    const veci high = _mm512_set1_epi16((short)(q->high + flip));
    veci       i[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) /* too large a float would become the smallest integer */
        i[k] = _mm512_cvtps_epi32(v_min(v_set(1e9f), steps[k]));
    veci a = _mm512_packs_epi32(i[0], i[1]), b = _mm512_packs_epi32(i[2], i[3]);
    a = _mm512_min_epi16(high, _mm512_max_epi16(low, _mm512_adds_epi16(a, zero)));
    b = _mm512_min_epi16(high, _mm512_max_epi16(low, _mm512_adds_epi16(b, zero)));
    return _mm512_xor_si512(_mm512_packus_epi16(a, b), _mm512_set1_epi8((char)flip));
}

/* The bytes of a pixel together. */
SIMD_INLINE veci order_quad(veci bytes, const int block)
{
    if (block == 1)
        return _mm512_permutexvar_epi32(
            _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
    if (block == 2)
        return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), bytes);
    return bytes;
}

/* The bytes of `here` pixels of `block` vectors, of which there are up to 64. */
SIMD_INLINE void store_quad(uint8_t *out, int64_t step, veci v, const int here, const int block,
                            int64_t channels)
{
    uint8_t bytes[64];
    if (block == 4 && channels >= 64) {
        i_store(out, v);
        return;
    }
    if (block == 2 && channels >= 32) {
        _mm256_storeu_si256((void *)out, _mm512_castsi512_si256(v));
        if (here == 2)
            _mm256_storeu_si256((void *)(out + step), _mm512_extracti64x4_epi64(v, 1));
        return;
    }
    i_store(bytes, v);
    for (int k = 0; k < here; k++)
        store_bytes(out + k * step, bytes + k * block * 16,
                    channels < block * 16 ? channels : block * 16);
}

/* Where only bounds follow the scales (struct sac_quant_conv). per > 1: the four vectors are a
 * block of so many pixels, of which there are `pixels`. */
SIMD_INLINE void finish_straight(const struct tile *t, const veci *acc, const int pixels,
                                 const int block, const int per)
{
    const struct sac_quant_conv q = *t->c->quant; /* stores of bytes could change it */
    const int64_t               step = t->out_step, channels = t->channels;
    uint8_t                    *out = t->out;
    vec                         scale[4], bias[4];
#pragma GCC unroll 4
    for (int j = 0; j < block; j++) {
        scale[j] = v_load(q.scale + t->lane + j * LANES);
        bias[j] = v_load(q.bias + t->lane + j * LANES);
    }
    if (per > 1) {
        vec v[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            v[k] = v_fma(i_float(acc[k]), scale[k % block], bias[k % block]);
        store_quad(out, step, pack_quad(v, &q), pixels, 4 / per, channels);
        return;
    }
#pragma GCC unroll 6
    for (int i = 0; i < pixels; i += 4 / block) {
        vec       v[4];
        const int here = pixels - i < 4 / block ? pixels - i : 4 / block;
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            v[k] = v_fma(i_float(acc[i * block + k % (here * block)]), scale[k % block],
                         bias[k % block]);
        store_quad(out + i * step, step, order_quad(pack_quad(v, &q), block), here, block,
                   channels);
    }
}

/* 1 / (1 + e^-x) to 2e-4: 8 bits do not tell it from the right one. 2^t is a cubic of what t is
 * over the next lower whole number, times 2 to that. */
SIMD_INLINE vec coarse_sigmoid(vec x)
{
    const vec t = v_mul(v_clamp(x, -87.0f, 87.0f), v_set(-1.44269504f));
    const vec r = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    vec       p = v_fma(r, v_set(7.802451e-2f), v_set(2.2606718e-1f));
    p = v_fma(p, r, v_set(6.9583353e-1f));
    p = v_fma(p, r, v_set(9.9992522e-1f));
    return _mm512_rcp14_ps(v_add(_mm512_scalef_ps(p, t), v_set(1.0f)));
}

SIMD_INLINE vec coarse_activate(vec v, const struct sac_activation *act)
{
    if (act->kind == SAC_ACT_SIGMOID)
        return coarse_sigmoid(v);
    if (act->kind == SAC_ACT_SILU) /* below -87 the sigmoid stops shrinking, so v must too */
        return v_mul(v_max(v_set(-87.0f), v), coarse_sigmoid(v));
    return v_activate(v, act);
}

SIMD_INLINE void finish_packed_as(const struct tile *t, const int32_t *sums, int pixels, int block,
                                  int per, enum sac_activation_kind kind)
{
    const struct sac_quant_conv q = *t->c->quant;
    const struct sac_activation act = {kind, t->c->act.alpha, t->c->act.beta};
    const vec                   inverse = v_set(q.result_inverse);
    const int64_t               step = t->out_step, channels = t->channels;
    const int                   last = per > 1 ? 3 : pixels * block - 1;
    uint8_t                    *out = t->out;
    vec                         scale[4], bias[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        scale[k] = v_load(q.scale + t->lane + k % block * LANES);
        bias[k] = v_load(q.bias + t->lane + k % block * LANES);
    }
    for (int i = 0; i <= last; i += 4, out += 4 / block * step) {
        vec v[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const int at = i + k < last ? i + k : last;
            v[k] = v_fma(i_float(i_load(sums + at * LANES)), scale[k], bias[k]);
            v[k] = v_mul(coarse_activate(v[k], &act), inverse);
        }
        const int left = (last + 1 - i) / block, here = left < 4 / block ? left : 4 / block;
        if (per > 1)
            store_quad(out, step, pack_quad(v, &q), pixels, 4 / per, channels);
        else
            store_quad(out, step, order_quad(pack_quad(v, &q), block), here, block, channels);
    }
}

SIMD_FN static void finish_packed(const struct tile *t, const int32_t *sums, int pixels, int block,
                                  int per)
{
    switch (t->c->act.kind) {
#define ARM(kind) \
    case kind: finish_packed_as(t, sums, pixels, block, per, kind); break;
        ARM(SAC_ACT_LEAKY_RELU)
        ARM(SAC_ACT_SIGMOID)
        ARM(SAC_ACT_SILU)
        ARM(SAC_ACT_HARD_SIGMOID)
        ARM(SAC_ACT_HARD_SWISH)
        ARM(SAC_ACT_TANH)
        ARM(SAC_ACT_SOFTPLUS)
        ARM(SAC_ACT_GELU)
        ARM(SAC_ACT_GELU_TANH)
        ARM(SAC_ACT_SQUARED_RELU)
#undef ARM
    default: break; /* the others are straight */
    }
}

#endif

/* Through the stack: the code of the other endings would be multiplied by that of the tiles. */
SIMD_INLINE void finish_sums(const struct tile *t, const veci *acc, const int pixels,
                             const int block)
{
    int32_t       sums[28 * LANES];
    const int64_t number = t->c->out.channel, more = t->c->residual.channel;
#pragma GCC unroll 28
    for (int i = 0; i < pixels * block; i++)
        i_store(sums + i * LANES, acc[i]);
#if SAC_SIMD_BITS == 512
    if (t->c->quant->packed) {
        finish_packed(t, sums, pixels, block, 1);
        return;
    }
#endif
    for (int j = 0; j < block && j * LANES < t->channels; j++) {
        const int64_t        left = t->channels - j * LANES;
        const struct results r = {.c = t->c,
                                  .sums = sums + j * LANES,
                                  .step = block * LANES,
                                  .lane = t->lane + j * LANES,
                                  .channels = left < LANES ? left : LANES,
                                  .residual = t->residual + j * LANES * more,
                                  .out = t->out + j * LANES * number,
                                  .residual_step = t->residual_step,
                                  .out_step = t->out_step};
        finish_any(&r, pixels);
    }
}

SIMD_INLINE void finish(const struct tile *t, const veci *acc, const int pixels, const int block)
{
#if SAC_SIMD_BITS == 512
    if (t->c->quant->straight) {
        finish_straight(t, acc, pixels, block, 1);
        return;
    }
#endif
    finish_sums(t, acc, pixels, block);
}

/* ---- tiles, as those of conv_simd.h ---- */

/* start: what the sums begin with, `block` vectors. */
SIMD_INLINE void tile_run(const struct tile *t, const int32_t *start, const int pixels,
                          const int block)
{
    const struct sac_conv *c = t->c;
    veci                   acc[28];
#pragma GCC unroll 28
    for (int i = 0; i < pixels; i++)
#pragma GCC unroll 4
        for (int j = 0; j < block; j++)
            acc[i * block + j] = i_load(start + j * LANES);

    const int64_t step = t->in_step, step3 = 3 * step;
    const int64_t column = c->quant->quads * 4 * block * LANES; /* weights of one tap */
    for (int ky = t->ky0; ky < t->ky1; ky++)
        for (int kx = t->kx0; kx < t->kx1; kx = c->merged ? t->kx1 : kx + 1) {
            const int8_t  *w = t->weights + ((int64_t)ky * c->kernel_w + kx) * column;
            const int64_t  taps = c->merged ? t->kx1 - kx : 1;
            const int64_t  last = taps * c->group_in_c - 4; /* where the last quad begins */
            const uint8_t *p[7];
            p[0] = t->in + ky * c->dilation_h * c->in.row + kx * c->dilation_w * c->in.pixel;
#pragma GCC unroll 7
            for (int i = 1; i < (pixels + 3) / 4; i++)
                p[i] = p[i - 1] + 4 * step;
            for (int64_t k = 0, at = 0; k < taps * c->quant->quads; k++) {
                quad_w wv[4];
#pragma GCC unroll 4
                for (int j = 0; j < block; j++)
                    wv[j] = quad_weights(i_load(w + j * 4 * LANES));
#pragma GCC unroll 28
                for (int i = 0; i < pixels; i++) {
                    const int64_t off = i % 4 == 0   ? 0
                                        : i % 4 == 1 ? step
                                        : i % 4 == 2 ? 2 * step
                                                     : step3;
                    const quad_x  x = quad_pixels(quad_broadcast(p[i / 4] + off));
#pragma GCC unroll 4
                    for (int j = 0; j < block; j++)
                        acc[i * block + j] = quad_dot(acc[i * block + j], x, wv[j]);
                }
                w += block * 4 * LANES;
                const int64_t next = at + 4 < last ? at + 4 : last;
#pragma GCC unroll 7
                for (int i = 0; i < (pixels + 3) / 4; i++)
                    p[i] += next - at;
                at = next;
            }
        }
    finish(t, acc, pixels, block);
}

typedef void tile_fn(const struct tile *t, const int32_t *start);
#define TILE(pixels, block)                                                                 \
    SIMD_FN static void tile_##pixels##x##block(const struct tile *t, const int32_t *start) \
    {                                                                                       \
        tile_run(t, start, pixels, block);                                                  \
    }

struct tile_size {
    int      pixels;
    tile_fn *run;
};

/* Blocks of three are not: the instructions that pack take four vectors, or two of two pixels, or
 * one of four. */
#if SAC_SIMD_BITS == 512
enum { BLOCK_MAX = 4 };
/* clang-format off */
TILE(24, 1) TILE(12, 1) TILE(8, 1) TILE(4, 1) TILE(2, 1) TILE(1, 1)
TILE(14, 2) TILE(8, 2) TILE(4, 2) TILE(2, 2) TILE(1, 2) TILE(6, 4) TILE(4, 4) TILE(2, 4) TILE(1, 4)
    /* clang-format on */
    static const struct tile_size tile_sizes[BLOCK_MAX][6] = {
        {{24, tile_24x1},
         {12, tile_12x1},
         {8, tile_8x1},
         {4, tile_4x1},
         {2, tile_2x1},
         {1, tile_1x1}},
        {{14, tile_14x2}, {8, tile_8x2}, {4, tile_4x2}, {2, tile_2x2}, {1, tile_1x2}},
        {{0}},
        {{6, tile_6x4}, {4, tile_4x4}, {2, tile_2x4}, {1, tile_1x4}},
};
#else
enum { BLOCK_MAX = 2 };
/* clang-format off */
TILE(8, 1) TILE(4, 1) TILE(2, 1) TILE(1, 1) TILE(4, 2) TILE(2, 2) TILE(1, 2)
    /* clang-format on */
    static const struct tile_size tile_sizes[BLOCK_MAX][4] = {
        {{8, tile_8x1}, {4, tile_4x1}, {2, tile_2x1}, {1, tile_1x1}},
        {{4, tile_4x2}, {2, tile_2x2}, {1, tile_1x2}},
};
#endif

/* What sums begin with where not all taps are inside. */
static void start_clipped(const struct tile *t, int32_t *start)
{
    const struct sac_conv       *c = t->c;
    const struct sac_quant_conv *q = c->quant;
    memset(start, 0, (size_t)t->block * LANES * sizeof *start);
    for (int ky = t->ky0; ky < t->ky1; ky++)
        for (int kx = t->kx0; kx < t->kx1; kx++) {
            const int32_t *tap = q->start + ((int64_t)ky * c->kernel_w + kx) * q->lanes + t->lane;
            for (int i = 0; i < t->block * LANES; i++) /* it wraps, as the sums do */
                start[i] = (int32_t)((uint32_t)start[i] + (uint32_t)tap[i]);
        }
}

SIMD_FN static void run_span(const struct tile *line, int64_t x0, int64_t x1)
{
    const struct sac_conv  *c = line->c;
    const struct tile_size *size = tile_sizes[line->block - 1];
    const int64_t           taps = (int64_t)c->kernel_h * c->kernel_w;
    int32_t                 clipped[BLOCK_MAX * LANES];
    const int32_t          *start = c->quant->start + taps * c->quant->lanes + line->lane;
    if ((int64_t)(line->ky1 - line->ky0) * (line->kx1 - line->kx0) < taps) {
        start_clipped(line, clipped);
        start = clipped;
    }
    while (x0 < x1) {
        while (size->pixels > x1 - x0)
            size++;
        struct tile t = *line;
        t.in += x0 * t.in_step;
        t.out += x0 * t.out_step;
        t.residual += x0 * t.residual_step;
        size->run(&t, start);
        x0 += size->pixels;
    }
}

static int run_blocks(const struct band *b, int64_t g, int64_t oc)
{
    run_taps(b, g, oc);
    return 1;
}

/* ---- depthwise: each channel is a convolution of its own ----
 *
 * Bytes of four neighbouring columns are interleaved, so that a channel's four become a quad, and a
 * quad serves each output column whose taps are among the four: the weights are packed for each
 * place where they may begin. Beyond a border lies the zero point, as a byte. */

enum { STRIP = 4 * LANES }; /* bytes of a vector: channels at once */

struct strip {
    const struct sac_conv *c;
    const uint8_t         *in; /* the sample's first pixel, and the strip's first channel of it */
    const uint8_t         *residual;
    uint8_t               *out;            /* of line 0 */
    const int8_t          *weights;        /* [kernel_h][kernel_w + 3][STRIP][4] */
    int64_t                lane, channels; /* of the first; from here to the last */
};

SIMD_INLINE veci load_strip(const uint8_t *p, int64_t channels)
{
    if (channels >= STRIP)
        return i_load(p);
#if SAC_SIMD_BITS == 512
    return _mm512_maskz_loadu_epi8(((__mmask64)1 << channels) - 1, p);
#else
    uint8_t some[STRIP] = {0};
    store_bytes(some, p, channels);
    return i_load(some);
#endif
}

/* Of channels in each 128 bits: 0..3 in the first vector, 4..7 in the second, ... */
SIMD_INLINE void interleave(const veci *columns, veci *quads)
{
    const veci a = MM(unpacklo_epi8)(columns[0], columns[1]);
    const veci b = MM(unpackhi_epi8)(columns[0], columns[1]);
    const veci c = MM(unpacklo_epi8)(columns[2], columns[3]);
    const veci d = MM(unpackhi_epi8)(columns[2], columns[3]);
    quads[0] = MM(unpacklo_epi16)(a, c);
    quads[1] = MM(unpackhi_epi16)(a, c);
    quads[2] = MM(unpacklo_epi16)(b, d);
    quads[3] = MM(unpackhi_epi16)(b, d);
}

/* Four vectors as interleave leaves them, in the order of the channels. */
SIMD_INLINE void in_order(const veci *v, veci *to)
{
#if SAC_SIMD_BITS == 512
    const veci a = _mm512_shuffle_i32x4(v[0], v[1], 0x88),
               b = _mm512_shuffle_i32x4(v[2], v[3], 0x88);
    const veci c = _mm512_shuffle_i32x4(v[0], v[1], 0xdd),
               d = _mm512_shuffle_i32x4(v[2], v[3], 0xdd);
    to[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    to[1] = _mm512_shuffle_i32x4(c, d, 0x88);
    to[2] = _mm512_shuffle_i32x4(a, b, 0xdd);
    to[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
#else
    to[0] = _mm256_permute2x128_si256(v[0], v[1], 0x20);
    to[1] = _mm256_permute2x128_si256(v[2], v[3], 0x20);
    to[2] = _mm256_permute2x128_si256(v[0], v[1], 0x31);
    to[3] = _mm256_permute2x128_si256(v[2], v[3], 0x31);
#endif
}

SIMD_INLINE void finish_strip(const struct strip *d, const veci *acc, int64_t y, int64_t x,
                              const int pixels)
{
    const struct sac_conv *c = d->c;
    struct tile            t = {.c = c,
                                .lane = d->lane,
                                .channels = d->channels,
                                .out = d->out + y * c->out.row + x * c->out.pixel,
                                .residual = d->residual + y * c->residual.row,
                                .out_step = c->out.pixel,
                                .residual_step = c->residual.pixel};
    veci                   ordered[16];
    t.residual += x * c->residual.pixel;
    if (c->quant->packed) {
        finish(&t, acc, pixels, 4);
        return;
    }
#pragma GCC unroll 4
    for (int i = 0; i < pixels; i++)
        in_order(acc + 4 * i, ordered + 4 * i);
    finish_sums(&t, ordered, pixels, 4);
}

/* Output columns x.. of line y. kernel and stride are constants for the usual sizes; kernel 0: any,
 * and one column. plain: all columns that are read exist, and all channels. */
SIMD_INLINE void strip_pixels(const struct strip *d, int64_t y, int64_t x, const int pixels,
                              const bool plain, const int sized, const int stride)
{
    const struct sac_conv       *c = d->c;
    const struct sac_quant_conv *q = c->quant;
    const int                    kernel = sized ? sized : c->kernel_w;
    const int64_t                left = x * c->stride_w - c->pad_left;
    const int64_t                apart = sized ? 1 : c->dilation_w; /* columns that are read */
    veci                         acc[16];
#pragma GCC unroll 16
    for (int i = 0; i < 4 * pixels; i++)
        acc[i] = i_load(q->start + d->lane + i % 4 * LANES);
    for (int ky = 0; ky < c->kernel_h; ky++) {
        const int64_t  row = y * c->stride_h - c->pad_top + ky * c->dilation_h;
        const bool     inside = row >= 0 && row < c->in_h;
        const uint8_t *line = inside ? d->in + row * c->in.row : q->zeros;
        const int64_t  step = inside ? c->in.pixel : 0;
        const int8_t  *w = d->weights + (int64_t)ky * (kernel + 3) * 4 * STRIP;
#pragma GCC unroll 2
        for (int first = 0; first < (pixels - 1) * stride + kernel; first += 4) {
            veci columns[4], quads[4];
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                const int64_t column = left + (first + k) * apart;
                const bool    exists = plain || (inside && column >= 0 && column < c->in_w);
                columns[k] = plain    ? i_load(line + column * step)
                             : exists ? load_strip(line + column * step, d->channels)
                                      : i_load(q->zeros);
            }
            interleave(columns, quads);
#pragma GCC unroll 4
            for (int i = 0; i < pixels; i++) {
                const int begin = first - i * stride; /* the tap of the quad's first column */
                if (begin <= -4 || begin >= kernel)
                    continue;
                const int8_t *weights = w + (begin + 3) * 4 * STRIP;
#pragma GCC unroll 4
                for (int j = 0; j < 4; j++)
                    acc[4 * i + j] = quad_dot(acc[4 * i + j], quad_pixels(quads[j]),
                                              quad_weights(i_load(weights + j * STRIP)));
            }
        }
    }
    finish_strip(d, acc, y, x, pixels);
}

#if SAC_SIMD_BITS == 512

/* Few channels: a vector is of `per` neighbouring output columns, each with all channels. */
SIMD_INLINE veci load_pixels(const uint8_t *const *p, const int per)
{
    if (per == 2)
        return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)p[0])),
                                  _mm256_loadu_si256((const void *)p[1]), 1);
    veci v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p[0]));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)p[1]), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)p[2]), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const void *)p[3]), 3);
}

/* `count` columns from x on. plain: there are `per`, and all columns that are read exist; dense:
 * the `per` that are one vector are neighbours in memory too. */
SIMD_INLINE void few_pixels(const struct strip *d, int64_t y, int64_t x, const int count,
                            const bool plain, const bool dense, const int per)
{
    const struct sac_conv       *c = d->c;
    const struct sac_quant_conv *q = c->quant;
    const int64_t                left = x * c->stride_w - c->pad_left;
    veci                         acc[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
        acc[j] = i_load(q->start + d->lane + j * LANES);
    for (int ky = 0; ky < c->kernel_h; ky++) {
        const int64_t  row = y * c->stride_h - c->pad_top + ky * c->dilation_h;
        const bool     inside = row >= 0 && row < c->in_h;
        const uint8_t *line = inside ? d->in + row * c->in.row : q->zeros;
        const int64_t  step = inside ? c->in.pixel : 0;
        const int8_t  *w = d->weights + (int64_t)ky * (c->kernel_w + 3) * 4 * STRIP;
        for (int first = 0; first < c->kernel_w; first += 4) {
            veci columns[4], quads[4];
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                const int64_t  column = left + (int64_t)(first + k) * c->dilation_w;
                const uint8_t *p[4];
                if (dense) {
                    columns[k] = i_load(line + column * step);
                    continue;
                }
#pragma GCC unroll 4
                for (int i = 0; i < per; i++) {
                    const int64_t at = column + i * c->stride_w;
                    p[i] = plain || (i < count && at >= 0 && at < c->in_w) ? line + at * step
                                                                           : q->zeros;
                }
                columns[k] = load_pixels(p, per);
            }
            interleave(columns, quads);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++)
                acc[j] = quad_dot(acc[j], quad_pixels(quads[j]),
                                  quad_weights(i_load(w + ((first + 3) * 4 + j) * STRIP)));
        }
    }
    const struct tile t = {.c = c,
                           .lane = d->lane,
                           .channels = d->channels,
                           .out = d->out + y * c->out.row + x * c->out.pixel,
                           .out_step = c->out.pixel};
    if (q->straight) {
        finish_straight(&t, acc, count, 4, per);
        return;
    }
    int32_t sums[STRIP];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
        i_store(sums + j * LANES, acc[j]);
    finish_packed(&t, sums, count, 4, per);
}

/* A line of output. */
#define FEW(per)                                                                     \
    SIMD_FN static void few_##per(const struct strip *d, int64_t y, int64_t width)   \
    {                                                                                \
        const struct sac_conv *c = d->c;                                             \
        const bool             dense = c->stride_w == 1 && c->in.pixel == c->groups; \
        const int64_t          reach = (int64_t)(per - 1) * c->stride_w +            \
                              ((c->kernel_w + 3) / 4 * 4 - 1) * c->dilation_w + 1;   \
        for (int64_t x = 0; x < width; x += per) {                                   \
            const int64_t left = x * c->stride_w - c->pad_left;                      \
            const int     count = width - x < per ? (int)(width - x) : per;          \
            if (count < per || left < 0 || left + reach > c->in_w)                   \
                few_pixels(d, y, x, count, false, false, per);                       \
            else if (dense)                                                          \
                few_pixels(d, y, x, per, true, true, per);                           \
            else                                                                     \
                few_pixels(d, y, x, per, true, false, per);                          \
        }                                                                            \
    }
FEW(2)
FEW(4)

static void run_few(const struct strip *d, int64_t y, int64_t lines, int64_t width)
{
    for (int64_t line = y; line < y + lines; line++)
        if (d->c->quant->per == 4)
            few_4(d, line, width);
        else
            few_2(d, line, width);
}

#else

/* Never: quant.c sets `per` with AVX-512 only. */
static void run_few(const struct strip *d, int64_t y, int64_t lines, int64_t width)
{
    (void)d, (void)y, (void)lines, (void)width;
}

#endif

typedef void strip_fn(const struct strip *d, int64_t y, int64_t x, bool plain);
#define STRIP_PIXELS(pixels, kernel, stride)                                                   \
    SIMD_FN static void strip_##kernel##_##stride(const struct strip *d, int64_t y, int64_t x, \
                                                  bool plain)                                  \
    {                                                                                          \
        if (plain)                                                                             \
            strip_pixels(d, y, x, pixels, true, kernel, stride);                               \
        else                                                                                   \
            strip_pixels(d, y, x, pixels, false, kernel, stride);                              \
    }
STRIP_PIXELS(1, 0, 1)
STRIP_PIXELS(2, 3, 1)
STRIP_PIXELS(1, 3, 2)
STRIP_PIXELS(4, 5, 1)
STRIP_PIXELS(2, 5, 2)
STRIP_PIXELS(2, 7, 1)

/* How many columns at once, which read how many. */
struct strip_size {
    int       pixels, columns;
    strip_fn *run;
};

static struct strip_size strip_size_of(const struct sac_conv *c)
{
    const int any = (c->kernel_w + 3) / 4 * 4;
    switch (c->dilation_w == 1 ? c->kernel_w * 10 + c->stride_w : 0) {
    case 31: return (struct strip_size){2, 4, strip_3_1};
    case 32: return (struct strip_size){1, 4, strip_3_2};
    case 51: return (struct strip_size){4, 8, strip_5_1};
    case 52: return (struct strip_size){2, 8, strip_5_2};
    case 71: return (struct strip_size){2, 8, strip_7_1};
    default: return (struct strip_size){1, (any - 1) * c->dilation_w + 1, strip_0_1};
    }
}

/* Columns from x on, line by line: the lines of a few columns stay in the L1 cache. */
static int64_t run_strip(const struct strip *d, struct strip_size size, int64_t x, int64_t y,
                         int64_t lines, int64_t width)
{
    const struct sac_conv *c = d->c;
    const int64_t          left = x * c->stride_w - c->pad_left;
    if (size.pixels > width - x)
        size =
            (struct strip_size){1, ((c->kernel_w + 3) / 4 * 4 - 1) * c->dilation_w + 1, strip_0_1};
    const bool plain = left >= 0 && left + size.columns <= c->in_w && d->channels >= STRIP;
    for (int64_t line = y; line < y + lines; line++)
        size.run(d, line, x, plain);
    return x + size.pixels;
}

static void run_depthwise(const struct band *b, int64_t y, int64_t lines)
{
    const struct sac_conv  *c = b->c;
    const struct strip_size size = strip_size_of(c);
    const int64_t           width = width_of(c, y);
    const int64_t           strip_weights = (int64_t)c->kernel_h * (c->kernel_w + 3) * 4 * STRIP;
    for (int64_t channel = 0; channel < c->groups; channel += STRIP) {
        const struct strip d = {
            .c = c,
            .in = b->in + channel,
            .residual = (b->residual ? b->residual : b->out) + channel * c->residual.channel,
            .out = b->out + channel * c->out.channel,
            .weights = c->quant->weights + (c->first + channel) / STRIP * strip_weights,
            .lane = c->first + channel,
            .channels = c->groups - channel};
        if (c->quant->per > 1) {
            run_few(&d, y, lines, width);
            continue;
        }
        for (int64_t x = 0; x < width;)
            x = run_strip(&d, size, x, y, lines, width);
    }
}

void SIMD_NAME(sac_quant_rows)(const struct sac_conv *c, const void *in, const void *residual,
                               void *out, int64_t row0, int64_t row1)
{
    run_rows(c, in, residual, out, row0, row1);
}

/* ---- input on its way (struct sac_quant_stage) ---- */

SIMD_INLINE void flip_bytes(const uint8_t *from, uint8_t *to, int64_t count, uint8_t flip)
{
    for (int64_t i = 0; i < count; i++) /* the compiler makes whole vectors of it */
        to[i] = from[i] ^ flip;
}

/* Pixels of three bytes become pixels of four: a picture. Four at a time are read as 16 bytes,
 * which the last ones do not have. */
SIMD_INLINE int64_t widen_three(const uint8_t *from, uint8_t *to, int64_t count, uint8_t flip)
{
    const __m128i order = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    const __m128i bits = _mm_set1_epi8((char)flip);
    int64_t       i = 0;
    for (; i + 6 <= count; i += 4) {
        const __m128i b = _mm_xor_si128(bits, _mm_loadu_si128((const void *)(from + 3 * i)));
        _mm_storeu_si128((void *)(to + 4 * i), _mm_shuffle_epi8(b, order));
    }
    return i;
}

SIMD_INLINE void widen_groups(const struct sac_quant_stage *g, const uint8_t *from, uint8_t *to)
{
    for (int64_t k = 0; k < g->groups; k++, from += g->from_c, to += SAC_QUAD)
        for (int64_t i = 0; i < SAC_QUAD; i++)
            to[i] = (uint8_t)(i < g->from_c ? from[i] ^ g->flip : 0);
}

SIMD_FN void SIMD_NAME(sac_quant_stage)(const struct sac_quant_stage *stage, const uint8_t *from,
                                        uint8_t *to, int64_t count)
{
    const struct sac_quant_stage g = *stage; /* stores of bytes could change any other memory */
    const int64_t                channels = g.groups * g.from_c;
    const bool                   dense = g.from.pixel == channels;
    int64_t                      done = 0;
    if (g.from_c == g.to_c) {
        const int64_t step = dense ? count : 1; /* pixels at once */
        for (int64_t p = 0; p < count; p += step)
            flip_bytes(from + p * g.from.pixel, to + p * channels, step * channels, g.flip);
        return;
    }
    if (dense && channels == 3 && g.groups == 1)
        done = widen_three(from, to, count, g.flip);
    for (int64_t p = done; p < count; p++)
        widen_groups(&g, from + p * g.from.pixel, to + p * g.groups * g.to_c);
}
