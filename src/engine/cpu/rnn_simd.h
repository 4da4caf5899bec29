/* SPDX-License-Identifier: Apache-2.0 */
/* The gates of RNN, GRU and LSTM for one vector width; see simd.h for how this file is compiled. */
#include "engine/cpu/rnn.h"
#include "engine/cpu/simd.h"

/* Not inlined: a cell has up to five, each with the code of all activations. */
SIMD_FN static __attribute__((noinline)) vec activated(vec x, const struct sac_activation *act)
{
    return v_activate(x, act);
}

SIMD_INLINE vec gate(const struct sac_rnn_cell *c, int which, vec x)
{
    return activated(v_clamp(x, -c->clip, c->clip), &c->act[which]);
}

/* Both parts of gate `g` of `gates`. */
SIMD_INLINE vec sum_of(const struct sac_rnn_step *s, int64_t vector, int gates, int g)
{
    const int64_t at = (vector * gates + g) * LANES;
    return v_add(v_load(s->input + at), v_load(s->again + at));
}

SIMD_INLINE void keep(const struct sac_rnn_step *s, int64_t vector, vec h)
{
    const int64_t at = vector * LANES, left = s->hidden - at;
    v_store(s->next + at, h);
    if (s->y && left >= LANES)
        v_store(s->y + at, h);
    else if (s->y)
        v_store_count(s->y + at, h, left);
}

SIMD_FN void SIMD_NAME(sac_rnn_plain)(const struct sac_rnn_cell *c, const struct sac_rnn_step *s,
                                      int64_t first, int64_t end)
{
    for (int64_t v = first; v < end; v++)
        keep(s, v, gate(c, 0, sum_of(s, v, 1, 0)));
}

SIMD_INLINE vec peep(const struct sac_rnn_step *s, int64_t vector, int which, vec cell, vec sum)
{
    const int64_t at = vector * LANES;
    if (!s->peephole)
        return sum;
    return v_fma(v_load_first(s->peephole + which * s->hidden + at, v_first(s->hidden - at)), cell,
                 sum);
}

/* Gates in the order input, output, forget, cell. */
SIMD_FN void SIMD_NAME(sac_rnn_lstm)(const struct sac_rnn_cell *c, const struct sac_rnn_step *s,
                                     int64_t first, int64_t end)
{
    for (int64_t v = first; v < end; v++) {
        const vec cell = v_load(s->cell + v * LANES);
        const vec in = gate(c, 0, peep(s, v, 0, cell, sum_of(s, v, 4, 0)));
        const vec forget = c->coupled ? v_sub(v_set(1.0f), in)
                                      : gate(c, 0, peep(s, v, 2, cell, sum_of(s, v, 4, 2)));
        const vec fresh = gate(c, 1, sum_of(s, v, 4, 3));
        const vec now = v_fma(forget, cell, v_mul(in, fresh));
        const vec out = gate(c, 0, peep(s, v, 1, now, sum_of(s, v, 4, 1)));
        v_store(s->cell + v * LANES, now);
        keep(s, v, v_mul(out, activated(now, &c->act[2])));
    }
}

/* (1 - update) * fresh + update * before */
SIMD_INLINE void renew(const struct sac_rnn_step *s, int64_t vector, vec update, vec fresh)
{
    const vec before = v_load(s->h + vector * LANES), share = v_sub(v_set(1.0f), update);
    keep(s, vector, v_fma(share, fresh, v_mul(update, before)));
}

/* Gates in the order update, reset, new. */
SIMD_FN void SIMD_NAME(sac_rnn_gru)(const struct sac_rnn_cell *c, const struct sac_rnn_step *s,
                                    int64_t first, int64_t end)
{
    for (int64_t v = first; v < end; v++) {
        const int64_t at = (v * 3 + 2) * LANES;
        const vec update = gate(c, 0, sum_of(s, v, 3, 0)), reset = gate(c, 0, sum_of(s, v, 3, 1));
        const vec sum = v_fma(reset, v_load(s->again + at), v_load(s->input + at));
        renew(s, v, update, gate(c, 1, sum));
    }
}

/* `again` has update and reset. */
SIMD_FN void SIMD_NAME(sac_rnn_gru_reset)(const struct sac_rnn_cell *c,
                                          const struct sac_rnn_step *s, int64_t first, int64_t end)
{
    for (int64_t v = first; v < end; v++) {
        const float *in = s->input + v * 3 * LANES;
        float       *again = s->again + v * 2 * LANES;
        const vec    reset = gate(c, 0, v_add(v_load(in + LANES), v_load(again + LANES)));
        v_store(again, gate(c, 0, v_add(v_load(in), v_load(again))));
        v_store(s->next + v * LANES, v_mul(reset, v_load(s->h + v * LANES)));
    }
}

/* `again` has what was reset. */
SIMD_FN void SIMD_NAME(sac_rnn_gru_renew)(const struct sac_rnn_cell *c,
                                          const struct sac_rnn_step *s, int64_t first, int64_t end)
{
    for (int64_t v = first; v < end; v++) {
        const vec sum = v_add(v_load(s->input + (v * 3 + 2) * LANES), v_load(s->again + v * LANES));
        renew(s, v, v_load(s->update + v * 2 * LANES), gate(c, 1, sum));
    }
}
