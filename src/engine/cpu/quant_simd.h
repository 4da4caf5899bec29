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

/* Any ending. It is no part of the tiles, whose code it would multiply; the sums pass through the
 * stack. */
SIMD_FN static void finish_any(const struct results *r, int pixels)
{
    switch (r->c->act.kind) {
    case SAC_ACT_RELU: finish_as(r, pixels, SAC_ACT_RELU); break;
    case SAC_ACT_LEAKY_RELU: finish_as(r, pixels, SAC_ACT_LEAKY_RELU); break;
    case SAC_ACT_CLIP: finish_as(r, pixels, SAC_ACT_CLIP); break;
    case SAC_ACT_SIGMOID: finish_as(r, pixels, SAC_ACT_SIGMOID); break;
    case SAC_ACT_SILU: finish_as(r, pixels, SAC_ACT_SILU); break;
    case SAC_ACT_HARD_SIGMOID: finish_as(r, pixels, SAC_ACT_HARD_SIGMOID); break;
    case SAC_ACT_HARD_SWISH: finish_as(r, pixels, SAC_ACT_HARD_SWISH); break;
    case SAC_ACT_TANH: finish_as(r, pixels, SAC_ACT_TANH); break;
    case SAC_ACT_SOFTPLUS: finish_as(r, pixels, SAC_ACT_SOFTPLUS); break;
    case SAC_ACT_GELU: finish_as(r, pixels, SAC_ACT_GELU); break;
    case SAC_ACT_GELU_TANH: finish_as(r, pixels, SAC_ACT_GELU_TANH); break;
    default: finish_as(r, pixels, SAC_ACT_NONE); break;
    }
}

#if SAC_SIMD_BITS == 512

/* Four vectors of sums to 64 bytes: of each 128 bits of the vectors four bytes, one behind the
 * other. */
SIMD_INLINE veci pack_quad(const veci *sums, const vec *scale, const vec *bias, const int block,
                           const struct sac_quant_conv *q)
{
    const int  flip = q->result == SAC_I8 ? 128 : 0; /* bytes are packed as unsigned ones */
    const veci zero = _mm512_set1_epi16((short)(q->result_zero + flip));
    const veci low = _mm512_set1_epi16((short)(q->low + flip));
    const veci high = _mm512_set1_epi16((short)(q->high + flip));
    veci       i[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) { /* too large a float would become the smallest integer */
        const vec v = v_fma(i_float(sums[k]), scale[k % block], bias[k % block]);
        i[k] = _mm512_cvtps_epi32(v_min(v_set(1e9f), v));
    }
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

SIMD_INLINE void finish_straight(const struct tile *t, const veci *acc, const int pixels,
                                 const int block)
{
    const struct sac_quant_conv q = *t->c->quant;
    const int64_t               step = t->out_step, channels = t->channels;
    uint8_t                    *out = t->out;
    vec                         scale[4], bias[4];
#pragma GCC unroll 4
    for (int j = 0; j < block; j++) {
        scale[j] = v_load(q.scale + t->lane + j * LANES);
        bias[j] = v_load(q.bias + t->lane + j * LANES);
    }
#pragma GCC unroll 6
    for (int i = 0; i < pixels; i += 4 / block) {
        veci      sums[4];
        uint8_t   bytes[64];
        const int here = pixels - i < 4 / block ? pixels - i : 4 / block;
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            sums[k] = acc[i * block + k % (here * block)];
        const veci v = order_quad(pack_quad(sums, scale, bias, block, &q), block);
        if (block == 4 && channels >= 64)
            i_store(out + i * step, v);
        else if (block == 2 && channels >= 32) {
            _mm256_storeu_si256((void *)(out + i * step), _mm512_castsi512_si256(v));
            if (here == 2)
                _mm256_storeu_si256((void *)(out + (i + 1) * step),
                                    _mm512_extracti64x4_epi64(v, 1));
        } else {
            i_store(bytes, v);
            for (int k = 0; k < here; k++)
                store_bytes(out + (i + k) * step, bytes + k * block * 16,
                            channels < block * 16 ? channels : block * 16);
        }
    }
}

#endif

SIMD_INLINE void finish(const struct tile *t, const veci *acc, const int pixels, const int block)
{
#if SAC_SIMD_BITS == 512
    if (t->c->quant->straight) {
        finish_straight(t, acc, pixels, block);
        return;
    }
#endif
    int32_t       sums[28 * LANES];
    const int64_t number = t->c->out.channel, more = t->c->residual.channel;
#pragma GCC unroll 28
    for (int i = 0; i < pixels * block; i++)
        i_store(sums + i * LANES, acc[i]);
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

static void run_block(const struct band *b, int64_t g, int64_t oc)
{
    run_taps(b, g, oc);
}

static void run_depthwise(const struct band *b, int64_t y, int64_t lines)
{
    (void)b, (void)y, (void)lines;
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
