/* SPDX-License-Identifier: Apache-2.0 */
/* If, Loop, Scan: these rows check what is supported. The executor runs the subgraphs (control.c),
 * so there is no kernel, and the outputs' shapes are known only then. */
#include <stdio.h>

#include "engine/ops/util.h"

static sac_result known_when_run(struct sac_op_call *c)
{
    (void)c;
    return SAC_AGAIN;
}

static const struct sac_graph *subgraph(const struct sac_node *n, const char *name)
{
    const struct sac_attr *a = sac_node_attr(n, name);
    return a && a->kind == SAC_ATTR_GRAPH ? a->graph : NULL;
}

static bool if_supports(const struct sac_node *n, char *why, size_t why_size)
{
    const struct sac_graph *yes = subgraph(n, "then_branch"), *no = subgraph(n, "else_branch");
    bool fits = n->inputs[0] && yes && no && yes->output_count == n->output_count &&
                no->output_count == n->output_count && !yes->input_count && !no->input_count;
    if (!fits)
        snprintf(why, why_size, "its branches do not fit its outputs");
    return fits;
}

/* Body: iteration, condition, carried values -> condition, carried values, what is stacked. */
static bool loop_supports(const struct sac_node *n, char *why, size_t why_size)
{
    const struct sac_graph *body = subgraph(n, "body");
    /* Trip count and condition are optional. */
    int  carried = SAC_MAX(n->input_count - 2, 0);
    bool fits = body && body->input_count == carried + 2 && n->output_count >= carried &&
                body->output_count == n->output_count + 1;
    for (int i = 2; fits && i < n->input_count; i++)
        fits = n->inputs[i] != NULL;
    if (!fits)
        snprintf(why, why_size, "its body does not fit its inputs and outputs");
    return fits;
}

static bool all_zero(const struct sac_node *n, const char *name)
{
    const int64_t *list;
    size_t         count = sac_attr_ints(n, name, &list);
    for (size_t i = 0; i < count; i++)
        if (list[i] != 0)
            return false;
    return true;
}

static bool scan_supports(const struct sac_node *n, char *why, size_t why_size)
{
    const struct sac_graph *body = subgraph(n, "body");
    int64_t                 scanned = sac_attr_int(n, "num_scan_inputs", 0);
    bool                    fits = body && scanned >= 1 && scanned <= n->input_count &&
                body->input_count == n->input_count && body->output_count == n->output_count &&
                n->output_count >= n->input_count - scanned;
    for (int i = 0; fits && i < n->input_count; i++)
        fits = n->inputs[i] != NULL;
    bool plain = all_zero(n, "scan_input_axes") && all_zero(n, "scan_output_axes") &&
                 all_zero(n, "scan_input_directions") && all_zero(n, "scan_output_directions");
    if (!fits)
        snprintf(why, why_size, "its body does not fit its inputs and outputs");
    else if (!plain)
        snprintf(why, why_size, "it scans along other axes or backwards; have axis 0, forwards");
    return fits && plain;
}

#define CONTROL_ROW(op, since, inputs)                                                          \
    SAC_ROW(op, since, inputs, SAC_OP_INPUTS_MAX, SAC_OP_OUTPUTS_MAX), .flags = SAC_OP_CONTROL, \
                                                                       .shape = known_when_run

const struct sac_op sac_row_If = {CONTROL_ROW(If, 1, 1), .supports = if_supports};
const struct sac_op sac_row_Loop = {CONTROL_ROW(Loop, 1, 0), .supports = loop_supports};
const struct sac_op sac_row_Scan = {CONTROL_ROW(Scan, 9, 1), .supports = scan_supports};
