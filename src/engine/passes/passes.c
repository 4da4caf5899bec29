/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/ops/infer.h"
#include "engine/passes/pass.h"

/* Files of 16 bits become ones of float32 before all else. The next stand before constants are
 * folded: what is repeated for each sample is none, and of quantised weights these would make
 * float32. What is broadcast is read as it is by all patterns. An Einsum is a product before
 * products are looked at, and so is what the input adds to a recurrent layer's gates; ONNX's
 * Attention is the products that exporters without it write. Norms are found before anything moves
 * the Reshapes that they are spelled with, and what is behind them joins them. Convolutions of
 * heads are of whole maps before norms look for their lines. Attention is found in the Transposes
 * and Reshapes of its exporter, once rows turn beside it and convolutions have taken what else is
 * made of queries; rotary embeddings before the norms and the attention around them, which see
 * through them. Then the Transposes go first, as the patterns after them match only channels
 * first; but GELU before them, since they would move into its spelling, and products from the
 * left, which are spelled by them; and again after norms, which may stand between two. Transposed
 * convolutions become plain ones before these are looked at. Constants beside gates go into them
 * before these are taken. Of two convolutions that have become one, another sum may be taken,
 * which may be one more of their kind, and an activation behind a shortcut; which maps can be
 * filled up shows when gates are taken. Views around a normalisation that went into a product are
 * one once it has gone, or none, and what is behind them is the product's too, and so is what is
 * behind the halves of one. When products and convolutions have taken their sums and activations,
 * what follows in 8 bits is theirs too, and that of norms and attention; what still only moves
 * numbers becomes one step, and so do elementwise steps, which are last, once lines over their
 * sums have taken theirs. */
static const struct sac_pass *const passes[] = {
    &sac_pass_halves,         &sac_pass_known_dims,
    &sac_pass_repeated,       &sac_pass_quantised,
    &sac_pass_identity,       &sac_pass_adaptive,
    &sac_pass_scatter,        &sac_pass_expand,
    &sac_pass_einsum,         &sac_pass_recurrent,
    &sac_pass_attention_node, &sac_pass_scores,
    &sac_pass_layer_norm,     &sac_pass_group_norm,
    &sac_pass_l2_norm,        &sac_pass_norm_gain,
    &sac_pass_linear,         &sac_pass_head_conv,
    &sac_pass_rotary,         &sac_pass_norm_heads,
    &sac_pass_rotary_heads,   &sac_pass_head_product,
    &sac_pass_rows,           &sac_pass_attention,
    &sac_pass_head_matmul,    &sac_pass_expectation,
    &sac_pass_deform,         &sac_pass_gelu,
    &sac_pass_left,           &sac_pass_transpose,
    &sac_pass_sums,           &sac_pass_activation,
    &sac_pass_focus,          &sac_pass_norm,
    &sac_pass_transpose,      &sac_pass_norm,
    &sac_pass_channels,       &sac_pass_gains,
    &sac_pass_stack,          &sac_pass_gate,
    &sac_pass_pool,           &sac_pass_conv_transpose,
    &sac_pass_conv,           &sac_pass_spread,
    &sac_pass_twin,           &sac_pass_shortcut,
    &sac_pass_conv,           &sac_pass_twin,
    &sac_pass_excitation,     &sac_pass_eights,
    &sac_pass_aligned,        &sac_pass_even,
    &sac_pass_parts,          &sac_pass_identity,
    &sac_pass_product,        &sac_pass_glu,
    &sac_pass_identity,       &sac_pass_product,
    &sac_pass_quantised,      &sac_pass_norm_sum,
    &sac_pass_rounded,        &sac_pass_wide,
    &sac_pass_norm_pair,      &sac_pass_rearrange,
    &sac_pass_identity,       &sac_pass_conv_ending,
    &sac_pass_batch_norm,     &sac_pass_norm_ending,
    &sac_pass_line_sum,       &sac_pass_chain,
};
enum { BEFORE_FOLDING = 4 };

/* Did the shape functions of a node, and so of all before it, succeed? */
static bool is_sound(const struct sac_node *n)
{
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i] && n->outputs[i]->rank < 0)
            return false;
    return true;
}

/* With open dims a node that does not fit is not an error yet (probe.c). The type that the file
 * declares for its output must not make it look valid: only inferred shapes count as known. */
static void forget_declared(struct sac_graph *g)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (g->values[i]->producer) {
            g->values[i]->dtype = SAC_DTYPE_NONE;
            g->values[i]->rank = -1;
        }
}

/* Visits each node once; those that the pass makes meanwhile come in the next round. */
static sac_result run_round(struct sac_graph *g, const struct sac_pass *pass, bool *any)
{
    const size_t count = g->node_count;
    sac_result   res = SAC_OK;
    *any = false;
    for (size_t i = 0; i < count && res == SAC_OK; i++) {
        struct sac_node *n = g->nodes[i];
        bool             changed = false;
        if (!n->gone && is_sound(n))
            res = pass->visit(g, n, &changed);
        if (res == SAC_OK && changed)
            res = sac_graph_update(g, n);
        *any |= changed;
    }
#ifdef SAC_DEBUG_ABORT
    if (res == SAC_OK && !sac_graph_is_linked(g)) {
        fprintf(stderr, "pass '%s' changed a node and did not say so\n", pass->name);
        abort();
    }
#endif
    const bool stale = *any || g->linked_count < g->node_count; /* nodes that it did not use */
    return res == SAC_OK && stale ? sac_graph_refresh(g) : res;
}

/* Until nothing changes. The bound only guards against a pass that undoes its own work. */
static sac_result run_pass(struct sac_graph *g, uint64_t memory_limit, const struct sac_pass *pass)
{
    enum { ROUNDS_MAX = 64 };
    sac_result res = SAC_OK;
    bool       any = true;
    for (int round = 0; round < ROUNDS_MAX && res == SAC_OK && any; round++) {
        res = run_round(g, pass, &any);
        if (res == SAC_OK && any)
            res = sac_graph_probe(g, memory_limit, true);
    }
    return res;
}

/* A pass has one number in all its rows: how many others come first. Looked up once: models are
 * planned many times. */
static struct {
    pthread_once_t once;
    int            of_row[SAC_COUNT(passes)], count;
    const char    *names[SAC_COUNT(passes)];
} numbers = {.once = PTHREAD_ONCE_INIT};

static void find_numbers(void)
{
    for (size_t row = 0; row < SAC_COUNT(passes); row++) {
        size_t first = 0;
        while (passes[first] != passes[row])
            first++;
        if (first == row)
            numbers.names[numbers.count++] = passes[row]->name;
        numbers.of_row[row] = first == row ? numbers.count - 1 : numbers.of_row[first];
    }
#ifdef SAC_DEBUG_ABORT
    if (numbers.count > SAC_PASSES_MAX)
        abort(); /* bits of `without` */
#endif
}

static int number_of(size_t row)
{
    pthread_once(&numbers.once, find_numbers);
    return numbers.of_row[row];
}

static bool is_left_out(uint64_t without, size_t row)
{
    return without >> number_of(row) & 1;
}

uint64_t sac_passes_unsuited(bool host, bool float16)
{
    uint64_t which = 0;
    for (size_t i = 0; i < SAC_COUNT(passes); i++)
        if (host ? passes[i]->gpu_only : passes[i]->float16_only && !float16)
            which |= UINT64_C(1) << number_of(i);
    return which;
}

const char *sac_pass_name(int i)
{
    pthread_once(&numbers.once, find_numbers);
    return i < numbers.count ? numbers.names[i] : NULL;
}

static sac_result run_row(struct sac_graph *g, uint64_t memory_limit, uint64_t without, size_t row)
{
    if (is_left_out(without, row) || !passes[row]->visit)
        return SAC_OK;
    return run_pass(g, memory_limit, passes[row]);
}

sac_result sac_passes_run(struct sac_graph *g, uint64_t memory_limit, uint64_t without)
{
    sac_result res = sac_graph_refresh(g);
    for (size_t i = 0; res == SAC_OK && i < SAC_COUNT(passes); i++)
        if (passes[i]->whole && !is_left_out(without, i))
            res = passes[i]->whole(g);
    if (res == SAC_OK) {
        forget_declared(g);
        res = sac_graph_probe(g, memory_limit, true);
    }
    for (size_t i = 0; res == SAC_OK && i < BEFORE_FOLDING; i++)
        res = run_row(g, memory_limit, without, i);
    if (res == SAC_OK)
        res = sac_graph_fold(g, memory_limit, true);
    if (res == SAC_OK)
        res = sac_graph_probe(g, memory_limit, true);
    for (size_t i = BEFORE_FOLDING; res == SAC_OK && i < SAC_COUNT(passes); i++)
        res = run_row(g, memory_limit, without, i);
    return res;
}
