/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by tiles with the GPU's threads emulated, on all of FusedAttention's parity cases: in
 * the shape that its rule takes, then in others, so that each shape meets some of the cases. A case
 * is launched at least eight times, for its layouts, of which one in EACH is emulated: that is
 * slow; what attention_few.cuh takes is emulated one time in FEW_EACH in the first round. usage:
 * test_parity_attention_emulated [ROUNDS]     of other shapes, default 1 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/parity/bodies.h"
#include "tests/parity/emulated/attention.h"
#include "tests/parity/trial.h"
#include "tests/test.h"

enum {
    EACH = 7,
    FEW_EACH = 3,
    STRIDE = 11 /* divides no count of shapes */,
    WARPS = 8,
    SHARERS = 4,
    SHAPES = OPS_ATTENTION_KINDS * SHARERS * WARPS
};
static bool others;
static int  launches, next_shape, met[OPS_ATTENTION_KINDS][SHARERS];
/* Kernels of OPS_ATTENTION_WHOLE: by keys of the turn, size, and what is added to scores. */
static const char *const adds[] = {"nothing", "a mask", "relative positions"};
static const int         turns[] = {
#define TURN(above, all) all,
    OPS_ATTENTION_ONE_TURN(TURN)
#undef TURN
#define TURN(each) each,
        OPS_ATTENTION_TURNS(TURN)
#undef TURN
};
/* Kernels of attention_few.cuh: by a head's size, keys, and a mask; and those that read no pairs.
 */
static const int few_sizes[] = {8, 16, OPS_ATTENTION_FEW_SIZE},
                 few_keys[] = {16, 32, OPS_ATTENTION_FEW_KEYS};
static int met_few[SAC_COUNT(few_sizes)][SAC_COUNT(few_keys)][2], met_ones[2];
static int met_whole[SAC_COUNT(turns)][2][SAC_COUNT(adds)];

/* Shape number i of all: a kind, warps with queries, and warps that share keys or tiles that share
 * a block. */
static bool shape_of(struct ops_fused_attention *p, int i)
{
    return ops_attention_shape_of(p, i / (SHARERS * WARPS), i % WARPS + 1, 1 << i / WARPS % SHARERS,
                                  &p->shape);
}

static int *met_of(int shape)
{
    return &met[shape / (SHARERS * WARPS)][shape / WARPS % SHARERS];
}

static int *met_whole_of(const struct ops_fused_attention *p)
{
    size_t i = 0;
    while (turns[i] != p->shape.keys)
        i++;
    return &met_whole[i][p->shape.key_size == 64][p->period ? 1 : p->rows ? 2 : 0];
}

/* The next shape that this case can have: of a kernel, or of a kind and sharers, that none had yet,
 * if there is. */
static int choose(struct ops_fused_attention *p)
{
    int first = SHAPES;
    for (int i = 0; i < SHAPES; i++)
        if (shape_of(p, i) && p->shape.tiles && !*met_whole_of(p))
            return i;
    for (int i = 0; i < SHAPES; i++) {
        const int shape = (next_shape + i * STRIDE) % SHAPES;
        if (!shape_of(p, shape))
            continue;
        if (!*met_of(shape))
            return shape;
        first = first == SHAPES ? shape : first;
    }
    return first;
}

static int *met_few_of(const struct ops_fused_attention *p)
{
    size_t size = 0, keys = 0;
    if (p->q_piece < 2 || p->k_piece < 2 || p->v_piece < 2)
        return &met_ones[p->period != 0];
    while (few_sizes[size] < p->size || few_sizes[size] < p->v_size)
        size++;
    while (few_keys[keys] < p->keys)
        keys++;
    return &met_few[size][keys][p->period != 0];
}

/* Every second time pairs are not read, where they could be. */
static int launch_few(struct ops_fused_attention *p, const struct ops_ports *ports)
{
    if (*met_few_of(p) && p->keys <= OPS_ATTENTION_FEW_ONES && launches % 2)
        p->q_piece = 1;
    ++*met_few_of(p);
    return emulated_few(p, ports);
}

static bool fits16(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

static int launch(const void *params, const struct ops_ports *ports, void *stream)
{
    struct ops_fused_attention p = *(const struct ops_fused_attention *)params;
    const bool few = p.few && !others && (launches % FEW_EACH == 0 || !*met_few_of(&p));
    if (!p.q_piece || !fits16(ports->in[0]) || !fits16(ports->in[1]) || !fits16(ports->in[2]) ||
        !fits16(ports->out[0]) || (launches++ % EACH && !few))
        return ops_launch_fused_attention(params, ports, stream);
    if (few)
        return launch_few(&p, ports);
    if (p.few && !others)
        return ops_launch_fused_attention(params, ports, stream);
    if (!others && p.hopper_shape.together && launches % 2)
        p.shape = p.hopper_shape; /* every second time */
    if (others) {
        const int shape = choose(&p);
        shape_of(&p, shape);
        ++*met_of(shape);
        next_shape = (shape + STRIDE) % SHAPES;
    }
    if (p.shape.tiles)
        ++*met_whole_of(&p);
    return emulated_attention(&p, ports);
}

static int missed(void)
{
    int count = 0;
    for (int kind = 0; kind < OPS_ATTENTION_KINDS; kind++)
        for (int i = 0; i < SHARERS; i++)
            if (!met[kind][i] && (kind == OPS_ATTENTION_TOGETHER ? 4 : 1) << i <= WARPS) {
                printf("FAIL no case met kind %d with keys or a block shared by %d\n", kind,
                       1 << i);
                count++;
            }
    for (size_t i = 0; i < SAC_COUNT(turns); i++)
        for (size_t k = 0; k < 2 * SAC_COUNT(adds); k++)
            if (!met_whole[i][k % 2][k / 2]) {
                printf("FAIL no case met turns of %d keys, size %d, %s added\n", turns[i],
                       k % 2 ? 64 : 32, adds[k / 2]);
                count++;
            }
    for (size_t i = 0; i < SAC_COUNT(few_sizes) * SAC_COUNT(few_keys) * 2; i++)
        if (!met_few[i / 2 / SAC_COUNT(few_keys)][i / 2 % SAC_COUNT(few_keys)][i % 2]) {
            printf("FAIL no case met few keys, up to %d of %d numbers, %s a mask\n",
                   few_keys[i / 2 % SAC_COUNT(few_keys)], few_sizes[i / 2 / SAC_COUNT(few_keys)],
                   i % 2 ? "with" : "without");
            count++;
        }
    return count + !met_ones[0] + !met_ones[1];
}

int main(int argc, char **argv)
{
    const int    rounds = 1 + (argc > 1 ? atoi(argv[1]) : 1);
    struct trial t = {.provider = &bodies, .only = "FusedAttention", .small = true};
    if (sac_device_open(test_context(), "cpu", NULL, &t.dev) != SAC_OK)
        return 1;
    bodies_instead = launch;
    for (int round = 0; round < rounds; round++) {
        others = round > 0;
        trial_all(&t);
    }
    sac_device_unref(&t.dev);
    return t.failed || missed() ? 1 : 0;
}
