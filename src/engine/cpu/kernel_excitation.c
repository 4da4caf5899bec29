/* SPDX-License-Identifier: Apache-2.0 */
/* Excitation: the vectors of channels whose means are taken, and the rows of each layer, are cut
 * into pieces; each begins when the one before is done. */
#include <stdio.h>

#include "engine/cpu/cpu.h"
#include "engine/cpu/map.h"
#include "engine/ops/excitation.h"

struct excitation_state {
    struct sac_excitation e;
    struct sac_map        in;
    int                   pieces[2], means_pieces; /* 0: the maps are one pixel */
};

struct means_job {
    const struct excitation_state *s;
    const float                   *x; /* of a sample */
    float                         *mean;
};

struct excitation_job {
    const float                 *x, *w, *bias;
    float                       *y;
    int64_t                      length, rows;
    int                          pieces;
    const struct sac_activation *act;
};

static struct sac_kernel_offer excitation_supports(struct sac_device                *dev,
                                                   const struct sac_kernel_question *q)
{
    (void)dev;
    if (sac_cpu_level() < SAC_CPU_AVX2)
        return sac_kernel_refuse("needs AVX2");
    struct sac_kernel_offer offer = sac_kernel_take(q);
    for (int i = 0; i < q->call->in_count; i++)
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
    if (sac_excitation_read(q->call).pixels == 1)
        return offer;
    if (!sac_volume_fits(&q->call->in[0]))
        return sac_kernel_refuse("no maps of at most three dimensions");
    offer.in_layout[0] = SAC_LAYOUT_CHANNELS_LAST;
    offer.strided = true; /* the result is dense: its maps have one pixel */
    return offer;
}

static int64_t vectors_of(const struct sac_excitation *e)
{
    return (e->channels + sac_simd_lanes() - 1) / sac_simd_lanes();
}

static sac_result excitation_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    struct excitation_state *s = sac_new(struct excitation_state);
    if (!s)
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    const struct sac_excitation e = s->e = sac_excitation_read(plan->call);
    s->pieces[0] = sac_pieces(dev, e.hidden, e.hidden * e.channels / 8);
    s->pieces[1] = sac_pieces(dev, e.gates, e.hidden * e.gates / 8);
    plan->scratch_bytes = (size_t)e.hidden * sizeof(float);
    if (e.pixels > 1) {
        s->in = sac_map_in(plan, 0);
        s->means_pieces = sac_pieces(dev, vectors_of(&e), e.channels * e.pixels / 16);
        plan->scratch_bytes += (size_t)e.channels * sizeof(float);
    }
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

static void means_piece(void *arg, int piece, int worker)
{
    const struct means_job        *j = arg;
    const struct excitation_state *s = j->s;
    const int64_t                  vectors = vectors_of(&s->e), lanes = sac_simd_lanes();
    const int64_t                  first = vectors * piece / s->means_pieces * lanes;
    const int64_t end = SAC_MIN(vectors * (piece + 1) / s->means_pieces * lanes, s->e.channels);
    (void)worker;
    SAC_SIMD_PICK(sac_map_means)
    (j->x + first, s->e.pixels, s->in.pixel, end - first, j->mean + first);
}

static void layer_piece(void *arg, int piece, int worker)
{
    const struct excitation_job *j = arg;
    const int64_t first = j->rows * piece / j->pieces, end = j->rows * (piece + 1) / j->pieces;
    (void)worker;
    SAC_SIMD_PICK(sac_map_layer)
    (j->x, j->length, j->w + first * j->length, j->bias + first, end - first, j->y + first);
    SAC_SIMD_PICK(sac_map_activate)(j->act, j->y + first, j->y + first, end - first);
}

static sac_result excitation_run(struct sac_device *dev, void *state, void *const *in,
                                 void *const *out, void *scratch, struct sac_device_stream *stream)
{
    const struct excitation_state *s = state;
    const struct sac_excitation   *e = &s->e;
    (void)stream;
    float *mean = (float *)scratch + e->hidden;
    for (int64_t i = 0; i < e->n; i++) {
        struct means_job means = {s, (const float *)in[0] + i * s->in.sample, mean};
        if (s->means_pieces)
            sac_worker_pool_run(dev->workers, s->means_pieces, means_piece, &means);
        struct excitation_job first = {s->means_pieces ? mean
                                                       : (const float *)in[0] + i * e->channels,
                                       in[1],
                                       in[2],
                                       scratch,
                                       e->channels,
                                       e->hidden,
                                       s->pieces[0],
                                       &e->inner};
        struct excitation_job second = {
            scratch,   in[3],    in[4],        (float *)out[0] + i * e->gates,
            e->hidden, e->gates, s->pieces[1], &e->act};
        sac_worker_pool_run(dev->workers, s->pieces[0], layer_piece, &first);
        sac_worker_pool_run(dev->workers, s->pieces[1], layer_piece, &second);
    }
    return SAC_OK;
}

const struct sac_kernel sac_cpu_Excitation = {SAC_OP_Excitation, excitation_supports,
                                              excitation_prepare, excitation_run, sac_free};
