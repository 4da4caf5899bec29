/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/kernels/signal.h"
#include "engine/cuda/kernels/team.cuh"
#include "engine/ops/determinant.h"

using namespace ops;

namespace
{

/* ---- DFT and STFT: a team sums one frequency ---- */

struct dft_body {
    struct ops_dft p;
    const void    *in, *window;
    void          *out;

    OPS_BODY void read(int64_t line, int64_t t, double *v) const
    {
        const bool mirrored = p.mirrors && t > p.length / 2;
        double     weight = 1;
        int64_t    at;
        t = mirrored ? p.length - t : t;
        if (p.stft) {
            at = line / p.frames * p.size + line % p.frames * p.hop + t;
            weight = p.window_type ? get_double(window, p.window_type, t) : 1;
        } else {
            v[0] = v[1] = 0;
            if (t >= p.size)
                return;
            at = line / p.inner * p.size * p.inner + line % p.inner + t * p.inner;
        }
        v[0] = weight * get_double(in, p.in_type, at * p.given);
        v[1] = p.given == 2 ? weight * get_double(in, p.in_type, at * 2 + 1) : 0;
        v[1] = mirrored ? -v[1] : v[1];
    }

    template <class TEAM> OPS_BODY void operator()(int64_t i, int, const TEAM &team) const
    {
        const int64_t k = i % p.out, line = i / p.out;
        double        re = 0, im = 0;
        for (int64_t t = team.lane(); t < p.length; t += team.lanes()) {
            double       x[2];
            const double angle = (p.inverse ? 2 : -2) * 3.14159265358979323846 *
                                 (double)(k * t % p.length) / (double)p.length;
            read(line, t, x);
            re += x[0] * cos(angle) - x[1] * sin(angle);
            im += x[0] * sin(angle) + x[1] * cos(angle);
        }
        re = team.all(re, add<double>());
        im = team.all(im, add<double>());
        if (team.lane() != 0)
            return;
        const double  by = p.inverse ? 1.0 / (double)p.length : 1;
        const int64_t to =
            (p.stft ? i : (line / p.inner * p.out + k) * p.inner + line % p.inner) * p.parts;
        put_float(out, p.out_type, to, re * by);
        if (p.parts == 2)
            put_float(out, p.out_type, to + 1, im * by);
    }
};

/* ---- determinants: a thread per matrix ---- */

struct det_body {
    struct ops_det p;
    const void    *in;
    double        *room;
    void          *out;
    OPS_BODY void  operator()(int64_t i) const
    {
        const int64_t size = p.n * p.n;
        for (int64_t k = 0; k < size; k++)
            room[i * size + k] = get_double(in, p.in_type, i * size + k);
        put_float(out, p.out_type, i, sac_determinant(room + i * size, p.n));
    }
};

/* ---- losses ---- */

struct loss_body {
    struct ops_loss p;
    const void     *in, *target, *weights;
    void           *out, *logs;
    double         *room; /* [count][loss, weight], with reduction */
    OPS_BODY double norm_of(int64_t start) const
    {
        double max = -INFINITY, sum = 0;
        for (int64_t k = 0; k < p.classes; k++)
            max = fmax(max, get_double(in, p.in_type, start + k * p.plane));
        for (int64_t k = 0; k < p.classes; k++)
            sum += exp(get_double(in, p.in_type, start + k * p.plane) - max);
        return max + log(sum);
    }
    OPS_BODY void operator()(int64_t i) const
    {
        const int64_t start = i / p.plane * p.classes * p.plane + i % p.plane;
        const double  norm = p.cross_entropy ? norm_of(start) : 0;
        int64_t       target_class =
            p.target_type == SAC_I32 ? ((const int32_t *)target)[i] : ((const int64_t *)target)[i];
        for (int64_t k = 0; k < p.classes && p.log_type; k++)
            put_float(logs, p.log_type, start + k * p.plane,
                      get_double(in, p.in_type, start + k * p.plane) - norm);
        const bool skip = (p.ignores && target_class == p.ignored) || target_class < 0 ||
                          target_class >= p.classes;
        target_class = skip ? 0 : target_class;
        const double weight = skip            ? 0
                              : p.weight_type ? get_double(weights, p.weight_type, target_class)
                                              : 1;
        const double loss =
            skip ? 0 : weight * (norm - get_double(in, p.in_type, start + target_class * p.plane));
        if (!p.reduces && p.out_type)
            put_float(out, p.out_type, i, loss);
        if (p.reduces) {
            room[2 * i] = loss;
            room[2 * i + 1] = weight;
        }
    }
};

struct loss_sum_body {
    struct ops_loss                     p;
    const double                       *room;
    void                               *out;
    template <class TEAM> OPS_BODY void operator()(int64_t, int, const TEAM &team) const
    {
        double loss = 0, weight = 0;
        for (int64_t i = team.lane(); i < p.count; i += team.lanes()) {
            loss += room[2 * i];
            weight += room[2 * i + 1];
        }
        loss = team.all(loss, add<double>());
        weight = team.all(weight, add<double>());
        if (team.lane() == 0)
            put_float(out, p.out_type, 0, p.mean ? loss / weight : loss);
    }
};

} // namespace

extern "C" int ops_launch_dft(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_dft *p = (const struct ops_dft *)params;
    dft_body              body = {*p, ports->in[0], ports->in[2], ports->out[0]};
    const int64_t         count = (p->stft ? p->outer * p->frames : p->outer * p->inner) * p->out;
    return lines<WARPS>(body, OPS_TEAM_WARP, count, 1, stream);
}

extern "C" int ops_launch_det(const void *params, const struct ops_ports *ports, void *stream)
{
    det_body body = {*(const struct ops_det *)params, ports->in[0], (double *)ports->scratch,
                     ports->out[0]};
    return each(body, body.p.count, stream);
}

extern "C" int ops_launch_loss(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_loss *p = (const struct ops_loss *)params;
    loss_body              body = {*p,
                                   ports->in[0],
                                   ports->in[1],
                                   ports->in[2],
                                   ports->out[0],
                                   ports->out[1],
                                   (double *)ports->scratch};
    const int              res = each(body, p->count, stream);
    if (res || !p->reduces || !p->out_type)
        return res;
    loss_sum_body sum = {*p, (const double *)ports->scratch, ports->out[0]};
    return lines<BLOCKS>(sum, OPS_TEAM_BLOCK, 1, 1, stream);
}
