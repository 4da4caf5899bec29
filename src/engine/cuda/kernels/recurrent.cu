/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM: one block per sample and direction runs its steps, each thread computing some
 * hidden units. */
#include "engine/cuda/kernels/sequence.h"
#include "engine/cuda/kernels/team.cuh"

using namespace ops;

namespace
{

enum { X, W, R, B, LENGTHS, H0, C0, P };

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
    OPS_BODY float bias(int d, int64_t row) const
    {
        return p.type[B] ? get_float(in[B], p.type[B], d * 2 * p.gates * p.hidden + row) : 0;
    }
    OPS_BODY float input_part(int d, int64_t row, int64_t x) const
    {
        const int64_t from = (d * p.gates * p.hidden + row) * p.inputs;
        float         sum = bias(d, row);
        for (int64_t i = 0; i < p.inputs; i++)
            sum += get_float(in[W], p.type[W], from + i) * get_float(in[X], p.type[X], x + i);
        return sum;
    }
    OPS_BODY float recurrent_part(int d, int64_t row, const float *h) const
    {
        const int64_t from = (d * p.gates * p.hidden + row) * p.hidden;
        float         sum = bias(d, p.gates * p.hidden + row);
        for (int64_t i = 0; i < p.hidden; i++)
            sum += get_float(in[R], p.type[R], from + i) * h[i];
        return sum;
    }
    OPS_BODY float gate(int d, int64_t row, int64_t x, const float *h) const
    {
        return input_part(d, row, x) + recurrent_part(d, row, h);
    }

    /* Gates in the order update, reset, new. */
    template <class TEAM>
    OPS_BODY void step_gru(int d, int64_t x, const float *h, float *next, float *spare,
                           const TEAM &team) const
    {
        const int64_t n = p.hidden;
        for (int64_t i = team.lane(); i < n; i += team.lanes()) {
            next[i] = act(d, 0, gate(d, n + i, x, h)); /* reset */
            spare[i] = next[i] * h[i];
        }
        team.sync();
        for (int64_t i = team.lane(); i < n; i += team.lanes()) {
            const float update = act(d, 0, gate(d, i, x, h));
            const float again = p.linear_before_reset ? next[i] * recurrent_part(d, 2 * n + i, h)
                                                      : recurrent_part(d, 2 * n + i, spare);
            const float fresh = act(d, 1, input_part(d, 2 * n + i, x) + again);
            next[i] = (1 - update) * fresh + update * h[i];
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
        for (int64_t i = team.lane(); i < n; i += team.lanes()) {
            const float enter = act(d, 0, gate(d, i, x, h) + peep(d, i, cell[i]));
            const float forget = act(d, 0, gate(d, 2 * n + i, x, h) + peep(d, 2 * n + i, cell[i]));
            const float fresh = act(d, 1, gate(d, 3 * n + i, x, h));
            cell[i] = (p.coupled ? 1 - enter : forget) * cell[i] + enter * fresh;
            const float leave = act(d, 0, gate(d, n + i, x, h) + peep(d, n + i, cell[i]));
            next[i] = leave * raw(d, 2, cell[i]);
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
            if (p.kind == OPS_RNN) {
                for (int64_t i = team.lane(); i < n; i += team.lanes())
                    next[i] = act(d, 0, gate(d, i, x, h));
            } else if (p.kind == OPS_GRU)
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
    return res ? res : lines<BLOCKS>(body, OPS_TEAM_BLOCK, p->directions * p->batch, 1, stream);
}
