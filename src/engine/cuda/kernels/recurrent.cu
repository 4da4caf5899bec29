/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU, LSTM and FusedRecurrent: a warp or a block runs the steps of a sample in one direction,
 * each thread computing some hidden units; or the tensor cores do (recurrent_tiles.cuh). */
#include "engine/cuda/kernels/sequence.h"
#include "engine/cuda/kernels/team.cuh"
#ifdef __CUDACC__
#include "engine/cuda/kernels/recurrent_tiles.cuh"
#endif

using namespace ops;

namespace
{

enum {
    X = OPS_RECURRENT_X,
    W = OPS_RECURRENT_W,
    R = OPS_RECURRENT_R,
    B = OPS_RECURRENT_B,
    LENGTHS = OPS_RECURRENT_LENGTHS,
    H0 = OPS_RECURRENT_H,
    C0 = OPS_RECURRENT_C,
    P = OPS_RECURRENT_P
};

OPS_BODY float activate(int kind, float x, float a, float b)
{
    switch (kind) { /* in the order of engine/ops/rnn.c's names */
    case 0: return a * x + b;
    case 1: return fmaxf(x, 0);
    case 2: return tanhf(x);
    case 3: return 1 / (1 + expf(-x));
    case 4: return x < 0 ? a * x : x;
    case 5: return x > a ? x : 0;
    case 6: return a * tanhf(b * x);
    case 7: return fminf(fmaxf(a * x + b, 0), 1);
    case 8: return x > 0 ? x : a * expm1f(x);
    case 9: return x / (1 + fabsf(x));
    default: return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
    }
}

struct recurrent_body {
    struct ops_recurrent p;
    const void          *in[8];
    void                *out[3];
    float               *room; /* [directions * batch][4 * hidden] */

    OPS_BODY float act(int d, int which, float x) const
    {
        if (p.clip > 0)
            x = fminf(fmaxf(x, (float)-p.clip), (float)p.clip);
        return raw(d, which, x);
    }
    OPS_BODY float raw(int d, int which, float x) const
    {
        return activate(p.act[d][which].kind, x, p.act[d][which].alpha, p.act[d][which].beta);
    }
    /* Of the input's part (0), which sums have in them, or of the recurrent part (1). */
    OPS_BODY float bias(int d, int part, int64_t row) const
    {
        const int64_t rows = p.gates * p.hidden;
        if (!p.type[B])
            return 0;
        return get_float(in[B], p.type[B], (p.summed ? d : 2 * d + part) * rows + row);
    }
    OPS_BODY float input_part(int d, int gate, int64_t unit, int64_t x) const
    {
        const int64_t row = gate * p.hidden + unit;
        if (p.summed)
            return get_float(in[X], p.type[X], x + d * p.gates * p.hidden + row);
        const int64_t from = (d * p.gates * p.hidden + row) * p.inputs;
        float         sum = bias(d, 0, row);
        for (int64_t i = 0; i < p.inputs; i++)
            sum += get_float(in[W], p.type[W], from + i) * get_float(in[X], p.type[X], x + i);
        return sum;
    }
    /* What h adds to gates FIRST..FIRST + COUNT - 1. Those of a unit lie side by side where sums
     * were made, and so do units for each number of h. */
    template <int FIRST, int COUNT, class WEIGHT>
    OPS_BODY void add_parts(const WEIGHT &weight, int d, int64_t unit, const float *h,
                            float (&sum)[COUNT]) const
    {
        const int64_t rows = p.gates * p.hidden;
        const int64_t first = p.summed ? d * rows * p.hidden + unit * p.gates + FIRST
                                       : (d * rows + FIRST * p.hidden + unit) * p.hidden;
        const int64_t step = p.summed ? rows : 1, gate = p.summed ? 1 : p.hidden * p.hidden;
        OPS_UNROLL_SOME
        for (int64_t i = 0; i < p.hidden; i++)
            for (int g = 0; g < COUNT; g++)
                sum[g] += weight(first + i * step + g * gate) * h[i];
    }
    template <int FIRST, int COUNT>
    OPS_BODY void recurrent_parts(int d, int64_t unit, const float *h, float (&sum)[COUNT]) const
    {
        for (int g = 0; g < COUNT; g++)
            sum[g] = bias(d, 1, (FIRST + g) * p.hidden + unit);
        if (p.type[R] == SAC_F32)
            add_parts<FIRST>([&](int64_t at) { return ((const float *)in[R])[at]; }, d, unit, h,
                             sum);
        else
            add_parts<FIRST>([&](int64_t at) { return get_float(in[R], p.type[R], at); }, d, unit,
                             h, sum);
    }

    /* Gates in the order update, reset, new. */
    template <class TEAM>
    OPS_BODY void step_gru(int d, int64_t x, const float *h, float *next, float *spare,
                           const TEAM &team) const
    {
        const int64_t n = p.hidden;
        float         sum[2], fresh[1];
        for (int64_t i = team.lane(); i < n; i += team.lanes()) {
            recurrent_parts<0>(d, i, h, sum);
            next[i] = act(d, 0, input_part(d, 0, i, x) + sum[0]); /* update */
            const float reset = act(d, 0, input_part(d, 1, i, x) + sum[1]);
            if (p.linear_before_reset) {
                recurrent_parts<2>(d, i, h, fresh);
                spare[i] = reset * fresh[0];
            } else
                spare[i] = reset * h[i];
        }
        team.sync();
        for (int64_t i = team.lane(); i < n; i += team.lanes()) {
            if (p.linear_before_reset)
                fresh[0] = spare[i];
            else
                recurrent_parts<2>(d, i, spare, fresh);
            const float now = act(d, 1, input_part(d, 2, i, x) + fresh[0]);
            next[i] = (1 - next[i]) * now + next[i] * h[i];
        }
    }

    OPS_BODY float peep(int d, int64_t at, float cell) const
    {
        return p.type[P] ? get_float(in[P], p.type[P], d * 3 * p.hidden + at) * cell : 0;
    }

    /* Gates in the order input, output, forget, cell; peepholes input, output, forget. */
    template <class TEAM>
    OPS_BODY void step_lstm(int d, int64_t x, const float *h, float *cell, float *next,
                            const TEAM &team) const
    {
        const int64_t n = p.hidden;
        float         sum[4];
        for (int64_t i = team.lane(); i < n; i += team.lanes()) {
            recurrent_parts<0>(d, i, h, sum);
            for (int g = 0; g < 4; g++)
                sum[g] += input_part(d, g, i, x);
            const float enter = act(d, 0, sum[0] + peep(d, i, cell[i]));
            const float forget = act(d, 0, sum[2] + peep(d, 2 * n + i, cell[i]));
            const float fresh = act(d, 1, sum[3]);
            cell[i] = (p.coupled ? 1 - enter : forget) * cell[i] + enter * fresh;
            const float leave = act(d, 0, sum[1] + peep(d, n + i, cell[i]));
            next[i] = leave * raw(d, 2, cell[i]);
        }
    }

    template <class TEAM>
    OPS_BODY void step_rnn(int d, int64_t x, const float *h, float *next, const TEAM &team) const
    {
        float sum[1];
        for (int64_t i = team.lane(); i < p.hidden; i += team.lanes()) {
            recurrent_parts<0>(d, i, h, sum);
            next[i] = act(d, 0, input_part(d, 0, i, x) + sum[0]);
        }
    }

    template <class TEAM>
    OPS_BODY void keep(int output, int64_t at, const float *from, const TEAM &team) const
    {
        for (int64_t i = team.lane(); i < p.hidden && p.out_type[output]; i += team.lanes())
            put_float(out[output], p.out_type[output], at * p.hidden + i, from[i]);
    }

    template <class TEAM> OPS_BODY void operator()(int64_t row, int, const TEAM &team) const
    {
        const int     d = (int)(row / p.batch);
        const int64_t sample = row % p.batch, n = p.hidden;
        const int64_t state = p.batch_first ? sample * p.directions + d : d * p.batch + sample;
        const bool    backwards = p.reverse_only || d == 1;
        float        *h = room + row * 4 * n, *cell = h + n, *next = cell + n, *spare = next + n;
        int64_t       length = p.steps;
        if (p.type[LENGTHS]) {
            length = ((const int32_t *)in[LENGTHS])[sample];
            length = length < 0 ? 0 : length < p.steps ? length : p.steps;
        }
        for (int64_t i = team.lane(); i < n; i += team.lanes()) {
            h[i] = p.type[H0] ? get_float(in[H0], p.type[H0], state * n + i) : 0;
            cell[i] = p.type[C0] ? get_float(in[C0], p.type[C0], state * n + i) : 0;
        }
        team.sync();
        for (int64_t k = 0; k < length; k++) {
            const int64_t t = backwards ? length - 1 - k : k;
            const int64_t x =
                (p.batch_first ? sample * p.steps + t : t * p.batch + sample) * p.inputs;
            if (p.kind == OPS_RNN)
                step_rnn(d, x, h, next, team);
            else if (p.kind == OPS_GRU)
                step_gru(d, x, h, next, spare, team);
            else
                step_lstm(d, x, h, cell, next, team);
            team.sync();
            float *swap = h;
            h = next;
            next = swap;
            keep(0,
                 p.batch_first ? (sample * p.steps + t) * p.directions + d
                               : (t * p.directions + d) * p.batch + sample,
                 h, team);
        }
        keep(1, state, h, team);
        keep(2, state, cell, team);
    }
};

struct zero_body {
    void         *out;
    int32_t       type;
    OPS_BODY void operator()(int64_t i) const
    {
        put_float(out, type, i, 0.0f);
    }
};

} // namespace

extern "C" int ops_launch_recurrent(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_recurrent *p = (const struct ops_recurrent *)params;
    recurrent_body              body;
    int                         res = 0;
#ifdef __CUDACC__
    if (p->tiles && p->batch && fits16(ports->in[X]) && fits16(ports->out[0]))
        return recurrent_by_tiles(*p, ports, stream);
#endif
    body.p = *p;
    body.room = (float *)ports->scratch;
    for (int i = 0; i < 8; i++)
        body.in[i] = ports->in[i];
    for (int i = 0; i < 3; i++)
        body.out[i] = ports->out[i];
    if (p->out_type[0] && p->type[LENGTHS]) { /* steps past a sample's length stay zero */
        zero_body zero = {ports->out[0], p->out_type[0]};
        res = each(zero, p->out_count, stream);
    }
    return res ? res : lines<WARPS | BLOCKS>(body, p->team, p->directions * p->batch, 1, stream);
}
