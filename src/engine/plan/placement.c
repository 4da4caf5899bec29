/* SPDX-License-Identifier: Apache-2.0 */
/* Concat by placement: in channels last, the inputs of a Concat along the channels (or along the
 * outermost spatial axis) can be written directly to their part of its output, when the kernels
 * that write and read them support strides. Views in between stay views. Likewise, the outputs of a
 * Split along the channels, and what a Slice leaves of them, are read directly from its input: by a
 * Concat too, which copies all of them at once, where each would be a step that copies itself. */
#include "engine/ops/reads.h"
#include "engine/plan/build.h"
#include "engine/plan/plan.h"

/* The step that writes a slot, or NULL: a graph input or a constant. */
static struct sac_step *maker_of(const struct sac_plan *plan, int slot)
{
    for (size_t i = 0; i < plan->step_count; i++)
        for (int k = 0; k < plan->steps[i].out_count; k++)
            if (plan->steps[i].slots[plan->steps[i].in_count + k] == slot)
                return &plan->steps[i];
    return NULL;
}

static bool reads_once(const struct sac_step *step, int slot)
{
    int count = 0;
    for (int k = 0; k < step->in_count; k++)
        count += step->slots[k] == slot;
    return count == 1;
}

/* Do all readers other than `but`, which the caller handles, take parts? */
static bool readers_take_parts(const struct sac_plan *plan, int slot, const struct sac_step *but)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct sac_step *step = &plan->steps[i];
        bool                   reads = false;
        for (int k = 0; k < step->in_count; k++)
            reads |= step->slots[k] == slot;
        if (reads && step != but && !(step->kind == SAC_STEP_KERNEL && step->strided))
            return false;
    }
    return true;
}

/* The tail's reference kernels take only dense operands. */
static bool tail_reads(const struct sac_plan *plan, int value)
{
    for (size_t i = 0; i < plan->tail_count; i++)
        for (int k = 0; k < plan->tail[i]->input_count; k++)
            if (plan->tail[i]->inputs[k] && plan->tail[i]->inputs[k]->id == value)
                return true;
    return false;
}

static bool can_be_part(const struct sac_plan *plan, int slot, enum sac_layout whole,
                        const struct sac_step *reader)
{
    const struct sac_value_slot *s = &plan->slots[slot];
    const struct sac_step       *maker = maker_of(plan, slot);
    if (s->layout != whole || s->storage >= 0 || s->parent >= 0 || s->port >= 0 || s->value < 0 ||
        !maker || !reads_once(reader, slot) || !readers_take_parts(plan, slot, reader) ||
        tail_reads(plan, s->value))
        return false;
    if (maker->kind == SAC_STEP_VIEW)
        return maker->in_count == 1 && can_be_part(plan, maker->slots[0], whole, maker);
    return maker->kind == SAC_STEP_KERNEL && maker->strided;
}

static void make_part(struct sac_plan *plan, int slot, int parent, int64_t offset, int64_t pixel,
                      int64_t sample)
{
    struct sac_value_slot *s = &plan->slots[slot];
    struct sac_step       *maker = maker_of(plan, slot);
    s->parent = parent;
    s->part_offset = offset;
    s->pixel = pixel;
    s->sample = sample;
    if (maker->kind == SAC_STEP_VIEW)
        make_part(plan, maker->slots[0], parent, offset, pixel, sample);
    else
        maker->in_place = -1;
}

static int64_t pixels_of(const struct sac_operand *o, int from)
{
    int64_t count = 1;
    for (int d = from; d < o->rank; d++)
        count *= o->dims[d];
    return count;
}

static bool can_be_read_in_place(const struct sac_plan *plan, int slot, enum sac_layout whole)
{
    const struct sac_value_slot *s = &plan->slots[slot];
    return s->layout == whole && s->storage < 0 && s->parent < 0 && s->port < 0 &&
           readers_take_parts(plan, slot, NULL) && !tail_reads(plan, s->value);
}

/* A Split along the channels, or a Slice of nothing else, which then begins at channel *first. */
static bool parts_channels(struct sac_plan *plan, const struct sac_step *step, int64_t *first)
{
    const enum sac_op_id id = step->node->op->id;
    struct sac_slice     slice;
    *first = 0;
    if (id != SAC_OP_Split && id != SAC_OP_Slice)
        return false;
    const struct sac_operand *in = &plan->slots[step->slots[0]].desc;
    if (id == SAC_OP_Split) {
        const int64_t axis = sac_attr_int(step->node, "axis", 0);
        return axis == 1 || axis == 1 - in->rank;
    }
    sac_step_fill_call(plan, step);
    if (sac_slice_read(plan->call, &slice) != SAC_OK)
        return false;
    for (int d = 0; d < in->rank; d++)
        if (slice.step[d] != 1 || (d != 1 && slice.dims[d] != in->dims[d]))
            return false;
    *first = slice.start[1];
    return in->rank >= 3;
}

/* Are all outputs of a Split along the channels, or of a Slice, read from its input? The first of
 * them begins at channel *first. */
static bool is_read_in_place(struct sac_plan *plan, const struct sac_step *step, int64_t *first)
{
    if (step->kind != SAC_STEP_KERNEL || !step->strided || !parts_channels(plan, step, first))
        return false;
    const enum sac_layout whole = plan->slots[step->slots[0]].layout;
    if (!sac_layout_is_last(whole))
        return false;
    for (int k = 0; k < step->out_count; k++)
        if (step->slots[step->in_count + k] < 0 ||
            !can_be_read_in_place(plan, step->slots[step->in_count + k], whole))
            return false;
    return true;
}

/* A Concat whose inputs all became parts has nothing left to do. */
static void place_inputs(struct sac_plan *plan, struct sac_step *step, int axis)
{
    const int                    out = step->slots[step->in_count];
    const struct sac_value_slot *whole = &plan->slots[out];
    const struct sac_operand     desc = whole->desc;
    const enum sac_layout        layout = whole->layout;
    const int64_t                pixel = whole->pixel ? whole->pixel : desc.dims[1];
    const int64_t sample = whole->sample ? whole->sample : desc.dims[1] * pixels_of(&desc, 2);
    int64_t       offset = 0, first;
    bool          all = sac_layout_is_last(layout);
    for (int k = 0; k < step->in_count && sac_layout_is_last(layout); k++) {
        const int                 slot = step->slots[k];
        const struct sac_operand *part = &plan->slots[slot].desc;
        const struct sac_step    *maker = maker_of(plan, slot);
        const bool                read = maker && is_read_in_place(plan, maker, &first);
        const bool                fits = !read && can_be_part(plan, slot, layout, step);
        const int64_t             length = part->dims[axis];
        if (fits)
            make_part(plan, slot, out, offset, pixel, sample);
        all &= fits;
        offset += axis == 1 ? length : length * pixels_of(&desc, 3) * pixel;
    }
    if (all)
        step->kind = SAC_STEP_VIEW;
}

/* A step whose outputs are read in place, the first from channel `offset` on, has nothing to do. */
static void place_outputs(struct sac_plan *plan, struct sac_step *step, int64_t offset)
{
    const int                    in = step->slots[0];
    const struct sac_value_slot *whole = &plan->slots[in];
    const int64_t                channels = whole->desc.dims[1];
    const int64_t                pixel = whole->pixel ? whole->pixel : channels;
    const int64_t sample = whole->sample ? whole->sample : channels * pixels_of(&whole->desc, 2);
    for (int k = 0; k < step->out_count; k++) {
        struct sac_value_slot *part = &plan->slots[step->slots[step->in_count + k]];
        part->parent = in;
        part->part_offset = offset;
        part->pixel = pixel;
        part->sample = sample;
        offset += part->desc.dims[1];
    }
    step->kind = SAC_STEP_VIEW;
}

void sac_plan_place_concats(struct sac_plan *plan)
{
    int64_t first;
    /* backwards, so that parents are placed first */
    for (size_t i = plan->step_count; i-- > 0;) {
        struct sac_step *step = &plan->steps[i];
        if (step->kind != SAC_STEP_KERNEL || !step->strided || step->node->op->id != SAC_OP_Concat)
            continue;
        const int rank = plan->slots[step->slots[step->in_count]].desc.rank;
        int       axis = (int)sac_attr_int(step->node, "axis", 1);
        axis += axis < 0 ? rank : 0;
        if (axis == 1 || axis == 2)
            place_inputs(plan, step, axis);
    }
    for (size_t i = 0; i < plan->step_count; i++) /* forwards, for the same reason */
        if (is_read_in_place(plan, &plan->steps[i], &first))
            place_outputs(plan, &plan->steps[i], first);
}
