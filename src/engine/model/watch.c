/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at every value of a network while it runs on the CPU, so that it works before anything is
 * planned for another device, and next to nothing is planned here: the CPU's kernels try no
 * variants. */
#include <math.h>
#include <string.h>

#include "engine/model/ranges.h"

/* ---- looking ---- */

/* Below -1e8 nobody computes: such numbers stand for minus infinity in masks, which float16 has. By
 * their bits, whose order is that of the magnitudes, in pieces that the compiler makes vectors of.
 */
void sac_range_look(struct sac_range *r, const float *numbers, int64_t count, int sample)
{
    enum { PIECE = 4096, LEAST_NORMAL = 0x38800000, MASK = 0x4cbebc20 };
    int32_t most = 0;
    for (int64_t from = 0; from < count; from += PIECE) {
        const int64_t n = SAC_MIN(count - from, (int64_t)PIECE);
        int32_t       bits[PIECE], some = 0, little = 0;
        memcpy(bits, numbers + from, (size_t)n * sizeof *bits);
        for (int64_t i = 0; i < n; i++) {
            const int32_t size = bits[i] & 0x7fffffff,
                          kept = ((bits[i] < 0) & (size > MASK)) ? 0 : size;
            most = SAC_MAX(most, kept);
            some += kept > 0;
            little += (kept > 0) & (kept < LEAST_NORMAL);
        }
        r->some += some;
        r->little += little;
    }
    float magnitude;
    memcpy(&magnitude, &most, sizeof magnitude);
    if (!isnan(r->most) && !(magnitude <= r->most)) {
        r->most = magnitude;
        r->sample = sample;
    }
}

/* A part of a wider value lies there pixel by pixel. */
static void look_at_part(struct sac_range *r, const struct sac_value_slot *s, const float *numbers,
                         int sample)
{
    int64_t pixels = 1;
    for (int d = 2; d < s->desc.rank; d++)
        pixels *= s->desc.dims[d];
    for (int64_t n = 0; n < s->desc.dims[0]; n++)
        for (int64_t p = 0; p < pixels; p++)
            sac_range_look(r, numbers + n * s->sample + p * s->pixel, s->desc.dims[1], sample);
}

static void look_at_step(void *user, struct sac_plan *plan, const struct sac_step *step)
{
    struct sac_watch *w = user;
    for (int k = step->in_count; k < step->in_count + step->out_count; k++) {
        const struct sac_value_slot *s = step->slots[k] < 0 ? NULL : &plan->slots[step->slots[k]];
        if (!s || s->value < 0 || s->desc.dtype != SAC_F32 || sac_layout_is_half(s->layout))
            continue;
        struct sac_range *r = &w->ranges[s->value];
        const float      *numbers = plan->address[step->slots[k]];
        if (s->parent >= 0 && s->pixel > 0)
            look_at_part(r, s, numbers, w->sample);
        else
            sac_range_look(r, numbers, sac_operand_elements(&s->desc), w->sample);
    }
    sac_watch_round(w, plan, step);
}

/* ---- a run ---- */

sac_result sac_watch_open(struct sac_watch *w, sac_model *m, const struct sac_operand *shapes,
                          struct sac_range *ranges)
{
    const struct sac_device_params dev_params = {.threads = m->dev->params.threads};
    const struct sac_plan_params   params = {.memory_limit = m->params.memory_limit_bytes,
                                             .precision = SAC_PRECISION_FP32,
                                             .without = SAC_WITHOUT_CONCATS | SAC_WITHOUT_IN_PLACE,
                                             .watch = look_at_step,
                                             .watcher = w};
    const int                      ports = m->graph->input_count + m->graph->output_count;
    *w = (struct sac_watch){.model = m, .ranges = ranges};
    w->tensors = sac_calloc((size_t)ports + 1, sizeof(sac_tensor *));
    sac_result res =
        w->tensors ? SAC_OK : SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory to watch its ranges");
    if (res == SAC_OK)
        res = sac_device_open(m->ctx, "cpu", &dev_params, &w->cpu);
    if (res == SAC_OK)
        res = sac_plan_create(w->cpu, m->graph, shapes, &params, &w->plan);
    if (res == SAC_OK && w->plan->activation_bytes)
        res = sac_buffer_create(w->cpu, w->plan->activation_bytes, "ranges", &w->activations);
    return res;
}

void sac_watch_close(struct sac_watch *w)
{
    sac_buffer_unref(&w->activations);
    sac_plan_destroy(&w->plan);
    sac_device_unref(&w->cpu);
    sac_free(w->room);
    sac_free(w->roundings);
    sac_free(w->tensors);
    w->room = NULL;
    w->roundings = NULL;
    w->tensors = NULL;
}

sac_result sac_watch_run(struct sac_watch *w, sac_tensor *const *in, int sample)
{
    const struct sac_graph *g = w->model->graph;
    sac_tensor            **out = w->tensors + g->input_count;
    w->sample = sample;
    memcpy(w->tensors, in, (size_t)g->input_count * sizeof(sac_tensor *));
    sac_result res = sac_plan_run(
        w->plan, NULL, w->activations ? sac_buffer_data(w->activations) : NULL, w->tensors, out);
    sac_watch_trace(w);
    for (int i = 0; i < g->output_count; i++)
        sac_tensor_unref(&out[i]);
    return res;
}
