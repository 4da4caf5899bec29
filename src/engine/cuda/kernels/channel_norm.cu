/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization, with an activation behind it or without, and LRN: each number by itself, with
 * the factors of its channel or the channels beside it. */
#include "engine/cuda/kernels/functions.cuh"
#include "engine/cuda/kernels/lines.h"

using namespace ops;

namespace
{

constexpr int ANY_FN = -1;

/* All functions, for each number of each turn, would be most of a plug-in's code. */
OPS_APART float activated(int fn, float x, float a, float b)
{
    return real_function(fn, x, 0.0f, 0.0f, a, b);
}

/* A thread stays with its channel, or with its eight of CHANNELS, goes through their places `slots`
 * at a time, and computes their factors once: for every number, they took more time than memory
 * does. UNIT: of how many numbers a place is. FN: the activation, or ANY_FN, which is that of p. */
template <int FN, int UNIT, int CHANNELS, class T> struct batch_body {
    static constexpr int TURNS = UNIT == 1 || sizeof(T) == 2 ? 4 : 2; /* loads that are under way */
    struct ops_channel_norm p;
    const void             *in, *vector[4]; /* scale, bias, mean, variance */
    void                   *out;

    struct factors {
        float          scale[CHANNELS], shift[CHANNELS], mean[CHANNELS];
        OPS_BODY float of(int k, float x) const
        {
            k = CHANNELS == 1 ? 0 : k;
            return (x - mean[k]) * scale[k] + shift[k];
        }
    };
    OPS_BODY void take(int64_t channel, factors &f) const
    {
        if constexpr (CHANNELS == 1) {
            const double variance = get_double(vector[3], p.vector_type[3], channel);
            const double scale = get_double(vector[0], p.vector_type[0], channel);
            f.shift[0] = get_float(vector[1], p.vector_type[1], channel);
            f.mean[0] = get_float(vector[2], p.vector_type[2], channel);
            f.scale[0] = (float)(scale / sqrt(variance + p.epsilon));
        } else { /* float32 is enough for it */
            float variance[LANES];
            get8(vector[0], p.vector_type[0], channel * LANES, f.scale);
            get8(vector[1], p.vector_type[1], channel * LANES, f.shift);
            get8(vector[2], p.vector_type[2], channel * LANES, f.mean);
            get8(vector[3], p.vector_type[3], channel * LANES, variance);
            OPS_UNROLL
            for (int k = 0; k < LANES; k++)
                f.scale[k] /= sqrtf(variance[k] + (float)p.epsilon);
        }
    }

    OPS_BODY float finished(float x) const
    {
        return FN == ANY_FN ? activated(p.activation, x, (float)p.a, (float)p.b)
                            : real_function(FN, x, 0.0f, 0.0f, 0.0f, 0.0f);
    }

    OPS_BODY void whole(const factors &f, const int64_t *from, const int64_t *to, int have) const
    {
        raw8 raw[TURNS];
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++)
            raw[t] = load8(in, type_as((const T *)in), from[t] * LANES);
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++) {
            float x[LANES];
            floats_of(raw[t], type_as((const T *)in), x);
            OPS_UNROLL
            for (int k = 0; k < LANES; k++)
                x[k] = finished(f.of(k, x[k]));
            if (t < have)
                put8(out, p.out_type, to[t] * LANES, x);
        }
    }
    OPS_BODY void single(const factors &f, const int64_t *from, const int64_t *to, int have) const
    {
        float x[TURNS];
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++)
            x[t] = get_float(in, p.in_type, from[t]);
        OPS_UNROLL
        for (int t = 0; t < TURNS; t++)
            if (t < have)
                put_float(out, p.out_type, to[t], finished(f.of(0, x[t])));
    }

    OPS_BODY void operator()(int64_t i) const
    {
        const struct ops_channel_walk &w = UNIT == 1 ? p.singles : p.eights;
        const int64_t                  n = w.rest.count, side = w.inside ? w.channels : w.slots;
        const int64_t                  above = i / side, below = i - above * side;
        const int64_t                  channel = w.inside ? below : above;
        factors                        f;
        take(channel, f);
        for (int64_t j = w.inside ? above : below; j < n; j += TURNS * w.slots) {
            int64_t from[TURNS], to[TURNS];
            int     have = 0;
            OPS_UNROLL
            for (int t = 0; t < TURNS; t++) { /* the first again instead of a condition */
                const int64_t turn = j + t * w.slots;
                int64_t       at[2];
                place(w.rest, turn < n ? turn : j, at);
                have += turn < n;
                to[t] = at[0] + channel * w.step[0];
                from[t] = at[1] + channel * w.step[1];
            }
            if constexpr (UNIT == LANES)
                whole(f, from, to, have);
            else
                single(f, from, to, have);
        }
    }
};

template <int FN, int UNIT, int CHANNELS, class T>
int batch_norm(const struct ops_channel_norm &p, const struct ops_ports *ports, void *stream)
{
    batch_body<FN, UNIT, CHANNELS, T> body = {p, ports->in[0], {}, ports->out[0]};
    for (int i = 0; i < 4; i++)
        body.vector[i] = ports->in[1 + i];
    const struct ops_channel_walk &w = UNIT == 1 ? p.singles : p.eights;
    return each(body, w.channels * w.slots, stream);
}

template <int FN>
int batch_norm_with(const struct ops_channel_norm &p, const struct ops_ports *ports, void *stream)
{
    const bool half = p.in_type == SAC_F16;
    bool       fits = fits16(ports->in[0]) && fits16(ports->out[0]);
    for (int i = 0; p.eights.inside && i < 4; i++)
        fits &= fits16(ports->in[1 + i]);
    if (!p.eights.slots || !fits)
        return batch_norm<FN, 1, 1, float>(p, ports, stream);
    if (p.eights.inside)
        return half ? batch_norm<FN, LANES, LANES, uint16_t>(p, ports, stream)
                    : batch_norm<FN, LANES, LANES, float>(p, ports, stream);
    return half ? batch_norm<FN, LANES, 1, uint16_t>(p, ports, stream)
                : batch_norm<FN, LANES, 1, float>(p, ports, stream);
}

struct lrn_body {
    struct ops_channel_norm p;
    const void             *in;
    void                   *out;
    OPS_BODY void           operator()(int64_t i) const
    {
        int64_t at[3];
        place(p.view, i, at);
        const int64_t k = at[2], below = k - (p.size - 1) / 2, above = k + p.size / 2;
        const int64_t first = below < 0 ? 0 : below,
                      last = above < p.channels ? above : p.channels - 1;
        float squares = 0;
        for (int64_t c = first; c <= last; c++) {
            const float x = get_float(in, p.in_type, at[1] + (c - k) * p.channel_step);
            squares += x * x;
        }
        const float x = get_float(in, p.in_type, at[1]);
        put_float(out, p.out_type, at[0],
                  x / powf((float)p.bias + (float)p.alpha * squares, (float)p.beta));
    }
};

} // namespace

extern "C" int ops_launch_batch_norm(const void *params, const struct ops_ports *ports,
                                     void *stream)
{
    const struct ops_channel_norm *p = (const struct ops_channel_norm *)params;
    switch (p->activation) {
    case OPS_FN_IDENTITY: return batch_norm_with<OPS_FN_IDENTITY>(*p, ports, stream);
    case OPS_FN_RELU: return batch_norm_with<OPS_FN_RELU>(*p, ports, stream);
    default: return batch_norm_with<ANY_FN>(*p, ports, stream);
    }
}

extern "C" int ops_launch_lrn(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_channel_norm *p = (const struct ops_channel_norm *)params;
    lrn_body                       body = {*p, ports->in[0], ports->out[0]};
    return each(body, p->view.count, stream);
}
