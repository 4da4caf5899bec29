/* SPDX-License-Identifier: Apache-2.0 */
#include "vision/cpu/cpu.h"
#include "vision/appearance.h"

float sac_appearance_nearest(const struct sac_appearance_slot *slot,
                             struct sac_appearance_shape shape, const float *row, int *view)
{
    float best = 2;
    *view = -1;
    for (int i = 0; i < *slot->views; i++) {
        float d =
            1 - sac_appearance_dot(slot->rows + (size_t)i * (size_t)shape.dim, row, shape.dim);
        if (*view >= 0 && d >= best)
            continue;
        best = d;
        *view = i;
    }
    return best;
}

static void blend(float *view, const float *row, int dim, float keep)
{
    for (int i = 0; i < dim; i++)
        view[i] = sac_appearance_blend(view[i], row[i], keep);
    float length = sqrtf(sac_appearance_dot(view, view, dim));
    if (length < SAC_APPEARANCE_LENGTH_MIN)
        memcpy(view, row, (size_t)dim * sizeof *view);
    else
        for (int i = 0; i < dim; i++)
            view[i] /= length;
}

void sac_appearance_add(struct sac_appearance_slot *slot, struct sac_appearance_shape shape,
                        const float *row, double now_s)
{
    int   view;
    float distance = sac_appearance_nearest(slot, shape, row, &view);
    if (sac_appearance_joins(*slot->views, shape.views_max, distance)) {
        blend(slot->rows + (size_t)view * (size_t)shape.dim, row, shape.dim,
              sac_appearance_keep(now_s - slot->met_s[view]));
    } else {
        view = sac_appearance_place(slot->met_s, *slot->views, shape.views_max);
        *slot->views = SAC_MAX(*slot->views, view + 1);
        memcpy(slot->rows + (size_t)view * (size_t)shape.dim, row, (size_t)shape.dim * sizeof *row);
    }
    slot->met_s[view] = now_s;
}

/* Returns where the next ask's numbers go. */
static float *compare(struct sac_appearance_shape shape, const struct sac_appearance_ask *ask,
                      float *out)
{
    for (int j = 0; j < ask->candidates; j++)
        *out++ = sac_appearance_dot(ask->rows[j], ask->rows[j], shape.dim);
    for (int i = 0; i < ask->objects; i++) {
        struct sac_appearance_slot slot = sac_appearance_slot_of(ask->slots[i], shape.views_max);
        int                        view;
        for (int j = 0; j < ask->candidates; j++)
            *out++ = sac_appearance_nearest(&slot, shape, ask->rows[j], &view);
    }
    return out;
}

sac_result sac_cpu_appearance(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_appearance_job *job)
{
    float *out = job->out;
    (void)dev, (void)stream; /* the CPU's runs at once */
    for (int i = 0; i < job->update_count; i++) {
        const struct sac_appearance_update *u = &job->updates[i];
        struct sac_appearance_slot slot = sac_appearance_slot_of(u->slot, job->shape.views_max);
        if (u->fresh)
            *slot.views = 0;
        sac_appearance_add(&slot, job->shape, u->row, u->now_s);
    }
    for (int i = 0; i < job->ask_count; i++)
        out = compare(job->shape, &job->asks[i], out);
    return SAC_OK;
}
