/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers of an output are, as far as the file's last operators tell. Passes fuse those
 * into others, so it is read before them. */
#include <string.h>

#include "engine/model/model.h"

/* They move, pick or enlarge numbers; what those mean stays. */
static const char *const movers[] = {
    "Identity", "Cast",  "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose",    "Resize",
    "Upsample", "Slice", "Gather",  "Split",     "Concat",  "Dropout", "DepthToSpace",
};

static const struct {
    const char          *op_type;
    enum sac_ending_kind kind;
} last[] = {
    {"Conv", SAC_ENDS_LINEAR},
    {"ConvTranspose", SAC_ENDS_LINEAR},
    {"MatMul", SAC_ENDS_LINEAR},
    {"Gemm", SAC_ENDS_LINEAR},
    {"Einsum", SAC_ENDS_LINEAR},
    {"Add", SAC_ENDS_LINEAR},
    {"BatchNormalization", SAC_ENDS_LINEAR},
    {"LogSoftmax", SAC_ENDS_LINEAR},
    {"Sigmoid", SAC_ENDS_SHARE},
    {"HardSigmoid", SAC_ENDS_SHARE},
    {"Softmax", SAC_ENDS_SOFTMAX},
    {"ArgMax", SAC_ENDS_CHOICE},
    {"Relu", SAC_ENDS_POSITIVE},
    {"Softplus", SAC_ENDS_POSITIVE},
    {"Exp", SAC_ENDS_POSITIVE},
};

static bool moves(const struct sac_node *n)
{
    for (size_t i = 0; i < SAC_COUNT(movers); i++)
        if (!strcmp(movers[i], n->op_type))
            return true;
    return false;
}

/* One end of a Clip: an attribute, from opset 11 on an input. */
static double clip_end(const struct sac_node *n, int input, const char *attr)
{
    const struct sac_value *v = n->input_count > input ? n->inputs[input] : NULL;
    if (n->input_count <= 1)
        return (double)sac_attr_float(n, attr, -1);
    if (!v || !v->data || v->dtype != SAC_F32)
        return -1;
    return (double)*(const float *)v->data;
}

static struct sac_ending ending_of(const struct sac_node *n)
{
    struct sac_ending e = {.kind = SAC_ENDS_OTHERWISE};
    for (size_t i = 0; i < SAC_COUNT(last); i++)
        if (!strcmp(last[i].op_type, n->op_type))
            e.kind = last[i].kind;
    if (!strcmp(n->op_type, "Clip"))
        e.kind = clip_end(n, 1, "min") == 0 && clip_end(n, 2, "max") == 1 ? SAC_ENDS_SHARE
                                                                          : SAC_ENDS_OTHERWISE;
    if (e.kind == SAC_ENDS_CHOICE && n->input_count > 0 && n->inputs[0]) {
        const struct sac_value *v = n->inputs[0];
        int64_t                 axis = sac_attr_int(n, "axis", 0);
        axis += axis < 0 ? v->rank : 0;
        if (v->rank > 0 && axis >= 0 && axis < v->rank)
            e.classes = SAC_MAX(v->dims[axis], 0);
    }
    return e;
}

sac_result sac_model_note_endings(sac_model *m)
{
    const struct sac_graph *g = m->graph;
    m->endings = sac_arena_alloc(&m->memory, (size_t)(g->output_count + 1) * sizeof *m->endings);
    if (!m->endings)
        return SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory for the model's ports");
    for (int i = 0; i < g->output_count; i++) {
        const struct sac_node *n = g->outputs[i]->producer;
        bool                   enlarged = false;
        for (size_t step = 0;
             n && n->input_count > 0 && n->inputs[0] && moves(n) && step < g->node_count; step++) {
            enlarged |= !strcmp(n->op_type, "Resize") || !strcmp(n->op_type, "Upsample");
            n = n->inputs[0]->producer;
        }
        m->endings[i] = n ? ending_of(n) : (struct sac_ending){.kind = SAC_ENDS_OTHERWISE};
        m->endings[i].enlarged = enlarged;
    }
    return SAC_OK;
}

struct sac_ending sac_model_ending(const sac_model *m, int output)
{
    return m->endings[output];
}
