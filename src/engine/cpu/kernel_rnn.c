/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM: what the input adds to the gates is one matrix product for many steps; what
 * was before adds a product of each step, whose weights are packed once and stay in the caches of
 * the threads: each has the gates of its own hidden numbers. Both directions go side by side. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/conv.h"
#include "engine/cpu/rnn.h"
#include "engine/ops/reads.h"

enum { X, W, R, B, LENGTHS, H0, C0, P };
enum { Y, Y_H, Y_C, OUTPUTS };

/* The products of a step: of its input; of what was before; of what a GRU's reset gate left of
 * that, where the product follows the gate. */
enum { INPUT, AGAIN, RENEWED, PRODUCTS };

enum {
    FLOPS_PER_NS = 50, /* these three for cutting work into pieces only */
    WEIGHTS_PER_NS = 8,
    GATE_NUMBERS_PER_NS = 1,
    LINE = 84, /* rows of the input's product: whole tiles of 14, 6 and 12 */
    /* Of the sums that the input's product makes before steps read them: a core's cache holds what
     * it wrote, and a long sequence takes no more memory than a short one. */
    SUMS_BYTES = 1 << 20
};

struct rnn_state {
    struct sac_rnn      r;
    struct sac_rnn_cell cell[SAC_RNN_DIRECTIONS];
    /* Of all hidden numbers; weights, bias and block are those of the product. Computed weights are
     * packed in each run, to scratch. */
    struct sac_conv product[SAC_RNN_DIRECTIONS][PRODUCTS];
    int             gates[PRODUCTS]; /* 0: there is no such product */
    bool            computed;
    sac_rnn_fn     *step, *renew;
    int64_t         vectors, pitch; /* of hidden numbers; how many those are with padding */
    int64_t         chunk;          /* steps that one product of the input is for */
    int             pieces;         /* of a step */
    bool            has[SAC_RNN_INPUTS], wants[OUTPUTS];
};

/* What a direction works on, in floats of scratch. */
enum {
    ROOM_INPUT,   /* [chunk * batch][pitch * gates]: sums */
    ROOM_AGAIN,   /* [batch][pitch * gates]: sums */
    ROOM_RENEWED, /* [batch][pitch]: sums */
    ROOM_RESET,   /* [batch][pitch]: what the reset gate left of h */
    ROOM_H,       /* [batch][pitch]; another one that a step writes; LSTM's cells */
    ROOM_NEXT,
    ROOM_CELL,
    ROOMS
};

struct rnn_job {
    const struct rnn_state *s;
    void *const *in, *const *out;
    float          *room[SAC_RNN_DIRECTIONS][ROOMS];
    struct sac_conv packed[SAC_RNN_DIRECTIONS][PRODUCTS]; /* the state's, with their weights */
    /* The chunk, counted in the order of a direction's steps, and the step. */
    int64_t first, count, step;
    /* Products of the input: directions times lines times chunks of blocks of columns. */
    struct sac_conv input[SAC_RNN_DIRECTIONS];
    int64_t         lines, blocks, chunks;
    bool            by_channels;
    int             pieces;
    int             product; /* of the step's half */
};

/* ---- what is supported ---- */

/* Its activation, which has to be one of those that vectors know. */
static bool activation_of(const struct sac_rnn_activation *a, struct sac_activation *out)
{
    static const enum sac_activation_kind kinds[] = {
        [1] = SAC_ACT_RELU,       [2] = SAC_ACT_TANH,         [3] = SAC_ACT_SIGMOID,
        [4] = SAC_ACT_LEAKY_RELU, [7] = SAC_ACT_HARD_SIGMOID, [10] = SAC_ACT_SOFTPLUS};
    out->kind = (size_t)a->kind < SAC_COUNT(kinds) ? kinds[a->kind] : SAC_ACT_NONE;
    out->alpha = (float)a->alpha;
    out->beta = (float)a->beta;
    return out->kind != SAC_ACT_NONE;
}

static bool read_cells(const struct sac_rnn *r, struct sac_rnn_cell *cell)
{
    bool known = true;
    for (int d = 0; d < r->directions; d++) {
        cell[d].clip = r->clip > 0 ? (float)r->clip : INFINITY;
        cell[d].coupled = r->coupled;
        for (int i = 0; i < sac_rnn_activations(r->kind); i++)
            known &= activation_of(&r->act[d][i], &cell[d].act[i]);
    }
    return known;
}

static struct sac_kernel_offer rnn_supports(struct sac_device                *dev,
                                            const struct sac_kernel_question *q)
{
    struct sac_kernel_offer   offer = sac_kernel_take(q);
    const struct sac_op_call *c = q->call;
    struct sac_rnn            r;
    struct sac_rnn_cell       cell[SAC_RNN_DIRECTIONS];
    (void)dev;
    for (int i = 0; i < c->in_count; i++) {
        offer.in_layout[i] = SAC_LAYOUT_PLAIN;
        if (i != LENGTHS && sac_op_has(c, i) && c->in[i].dtype != SAC_F32)
            return sac_kernel_refuse("not float32");
    }
    offer.in_place = -1;
    if (sac_cpu_level() < SAC_CPU_AVX2 || sac_operand_elements(&c->in[X]) == 0)
        return sac_kernel_refuse("empty, or no AVX2");
    if (sac_rnn_read(c, &r) != SAC_OK || !read_cells(&r, cell))
        return sac_kernel_refuse("an activation without vectors");
    return offer;
}

/* ---- preparing ---- */

/* Vectors of columns in a tile. They divide a hidden vector's gates, so that a thread's part is
 * whole blocks. */
static int block_of(int gates)
{
    const int most = sac_simd_lanes() == 8 ? 2 : 4;
    return gates <= most ? gates : gates % 2 ? 1 : most;
}

/* The gates first..first+gates-1 of one direction: columns [vectors][gates][lanes], packed to
 * [blocks][depth][lanes of the block]; those of hidden numbers that do not exist are zero. from:
 * [all gates][hidden][depth]. */
static void pack(const struct sac_conv *v, const struct sac_rnn *r, const float *from,
                 const float *bias, int first, int gates)
{
    const int64_t lanes = sac_simd_lanes(), width = v->block * lanes;
    for (int64_t column = 0; column < v->group_out_c; column++) {
        const int64_t vector = column / lanes, hidden = vector / gates * lanes + column % lanes;
        const int64_t row = (first + vector % gates) * r->hidden + hidden;
        float        *to = v->weights + column / width * width * v->depth + column % width;
        const bool    exists = hidden < r->hidden;
        for (int64_t k = 0; k < v->depth; k++)
            to[k * width] = exists ? from[row * v->depth + k] : 0;
        v->bias[column] = exists && bias ? bias[row] : 0;
    }
}

/* w, r, b: the operands of all directions; b NULL: none. */
static void pack_product(const struct rnn_state *s, const struct sac_conv *v, int d, int which,
                         const float *w, const float *r, const float *b)
{
    const int64_t all = s->r.gates * s->r.hidden;
    const int     first = which == RENEWED ? 2 : 0; /* a GRU's third gate */
    pack(v, &s->r, (which == INPUT ? w : r) + d * all * v->depth,
         b ? b + (2 * d + (which != INPUT)) * all : NULL, first, s->gates[which]);
}

static void add_product(struct rnn_state *s, int which, int gates)
{
    const int64_t depth = which == INPUT ? s->r.inputs : s->r.hidden, columns = s->pitch * gates;
    s->gates[which] = gates;
    for (int d = 0; d < s->r.directions; d++) {
        struct sac_conv *v = &s->product[d][which];
        *v = sac_conv_product(s->r.batch, depth, columns, LINE, columns);
        v->block = block_of(gates);
        if (which != INPUT) {
            v->in.pixel = s->pitch;
            v->in.row = v->in_w * s->pitch;
        }
    }
}

static void add_products(struct rnn_state *s)
{
    const int gates = (int)s->r.gates;
    add_product(s, INPUT, gates);
    if (s->r.kind != SAC_GRU || s->r.linear_before_reset) {
        s->step = s->r.kind == SAC_RNN   ? SAC_SIMD_PICK(sac_rnn_plain)
                  : s->r.kind == SAC_GRU ? SAC_SIMD_PICK(sac_rnn_gru)
                                         : SAC_SIMD_PICK(sac_rnn_lstm);
        add_product(s, AGAIN, gates);
        return;
    }
    s->step = SAC_SIMD_PICK(sac_rnn_gru_reset);
    s->renew = SAC_SIMD_PICK(sac_rnn_gru_renew);
    add_product(s, AGAIN, 2);
    add_product(s, RENEWED, 1);
}

static bool pack_constants(struct rnn_state *s, const struct sac_op_call *c)
{
    for (int d = 0; d < s->r.directions; d++)
        for (int i = 0; i < PRODUCTS; i++) {
            struct sac_conv *v = &s->product[d][i];
            if (s->gates[i] == 0)
                continue;
            v->weights = sac_alloc_aligned(64, (size_t)v->group_weights * sizeof(float));
            v->bias = sac_alloc_aligned(64, (size_t)v->group_bias * sizeof(float));
            if (!v->weights || !v->bias)
                return false;
            pack_product(s, v, d, i, c->in[W].data, c->in[R].data,
                         sac_op_has(c, B) ? c->in[B].data : NULL);
        }
    return true;
}

/* In whole cache lines. */
static int64_t room_of_weights(const struct sac_conv *v)
{
    return (v->group_weights + v->group_bias + 15) / 16 * 16;
}

static void rnn_release(void *state)
{
    struct rnn_state *s = state;
    for (int d = 0; s && d < SAC_RNN_DIRECTIONS; d++)
        for (int i = 0; i < PRODUCTS; i++) {
            sac_free(s->product[d][i].weights);
            sac_free(s->product[d][i].bias);
        }
    sac_free(s);
}

static int64_t floats_of(const struct rnn_state *s, int room)
{
    const int64_t batch = s->r.batch * s->pitch;
    switch (room) {
    case ROOM_INPUT: return s->chunk * batch * s->gates[INPUT];
    case ROOM_AGAIN: return batch * s->gates[AGAIN];
    case ROOM_RENEWED:
    case ROOM_RESET: return s->renew ? batch : 0;
    default: return batch;
    }
}

static void cut_steps(struct rnn_state *s, const struct sac_device *dev)
{
    const struct sac_rnn *r = &s->r;
    int64_t               weights = 0;
    for (int i = AGAIN; i < PRODUCTS; i++)
        weights += r->directions * r->hidden * s->pitch * s->gates[i];
    const int64_t ns = 2 * r->batch * weights / FLOPS_PER_NS + weights / WEIGHTS_PER_NS +
                       r->directions * r->batch * s->pitch / GATE_NUMBERS_PER_NS;
    s->pieces = SAC_MIN(sac_pieces(dev, r->directions * s->vectors, ns),
                        sac_worker_pool_threads(dev->workers)); /* so each keeps its weights */
}

static bool make(struct rnn_state *s, const struct sac_device *dev, const struct sac_op_call *c)
{
    const int64_t lanes = sac_simd_lanes();
    s->vectors = (s->r.hidden + lanes - 1) / lanes;
    s->pitch = s->vectors * lanes;
    s->chunk = SAC_CLAMP(SUMS_BYTES / (int64_t)sizeof(float) / (s->r.batch * s->pitch * s->r.gates),
                         1, s->r.steps);
    for (int i = 0; i < SAC_RNN_INPUTS; i++)
        s->has[i] = sac_op_has(c, i);
    for (int i = 0; i < OUTPUTS; i++)
        s->wants[i] = sac_op_wants(c, i);
    s->computed = !c->in[W].data || !c->in[R].data || (s->has[B] && !c->in[B].data);
    if (!read_cells(&s->r, s->cell))
        return false;
    add_products(s);
    cut_steps(s, dev);
    return s->computed || pack_constants(s, c);
}

static sac_result rnn_prepare(struct sac_device *dev, struct sac_kernel_plan *plan)
{
    const struct sac_op_call *c = plan->call;
    struct rnn_state         *s = sac_new(struct rnn_state);
    if (!s || sac_rnn_read(c, &s->r) != SAC_OK || !make(s, dev, c)) {
        rnn_release(s);
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "no memory for its kernel");
    }
    for (int i = 0; i < ROOMS; i++)
        plan->scratch_bytes += (size_t)(s->r.directions * floats_of(s, i)) * sizeof(float);
    for (int i = 0; i < PRODUCTS && s->computed; i++)
        plan->scratch_bytes +=
            (size_t)(s->r.directions * room_of_weights(&s->product[0][i])) * sizeof(float);
    snprintf(plan->implementation, sizeof plan->implementation, "%s", sac_simd_name());
    plan->state = s;
    return SAC_OK;
}

/* ---- what the input adds ---- */

static bool backwards(const struct sac_rnn *r, int d)
{
    return r->reverse_only || d == 1;
}

/* The first moment of the chunk, whichever way its steps go. */
static int64_t chunk_begin(const struct rnn_job *j, int d)
{
    return backwards(&j->s->r, d) ? j->s->r.steps - j->first - j->count : j->first;
}

static void input_piece(void *arg, int piece, int worker)
{
    const struct rnn_job *j = arg;
    const struct sac_rnn *r = &j->s->r;
    const int64_t         units = r->directions * j->lines * j->chunks;
    (void)worker;
    for (int64_t u = units * piece / j->pieces; u < units * (piece + 1) / j->pieces; u++) {
        const int64_t         d = u / j->lines / j->chunks;
        const int64_t         chunk = j->by_channels ? u / j->lines % j->chunks : u % j->chunks;
        const int64_t         line = j->by_channels ? u % j->lines : u / j->chunks % j->lines;
        const int64_t         begin = chunk_begin(j, (int)d) * (r->batch_first ? 1 : r->batch);
        const struct sac_conv part = sac_conv_part(&j->input[d], j->blocks * chunk / j->chunks,
                                                   j->blocks * (chunk + 1) / j->chunks);
        SAC_SIMD_PICK(sac_conv_rows)
        (&part, (const float *)j->in[X] + begin * r->inputs, NULL, j->room[d][ROOM_INPUT], line,
         line + 1);
    }
}

/* A chunk's rows of X follow each other; where the batch comes first, those of one sample. */
static void multiply_input(struct rnn_job *j, struct sac_device *dev)
{
    const struct rnn_state     *s = j->s;
    const struct sac_rnn       *r = &s->r;
    const int64_t               columns = s->pitch * s->gates[INPUT], all = j->count * r->batch;
    const int64_t               rows = r->batch_first ? j->count : all;
    const int64_t               weights = columns * r->inputs;
    const int64_t               ns = 2 * all * weights * r->directions / FLOPS_PER_NS;
    const struct sac_conv_split split =
        sac_conv_split(dev, all / rows, rows, r->inputs, weights, ns);
    for (int d = 0; d < r->directions; d++) {
        const struct sac_conv *packed = &j->packed[d][INPUT];
        struct sac_conv       *v = &j->input[d];
        *v = sac_conv_product(rows, r->inputs, columns, split.line, columns);
        v->block = packed->block;
        v->weights = packed->weights;
        v->bias = packed->bias;
        v->n = all / rows;
        v->in.sample = r->steps * r->inputs;
    }
    j->lines = j->input[0].n * j->input[0].out_h;
    j->blocks = columns / (j->input[0].block * sac_simd_lanes());
    j->by_channels = split.by_channels;
    j->chunks =
        sac_conv_chunks(dev, r->directions * (split.by_channels ? 1 : j->lines), j->blocks, ns);
    j->pieces = sac_pieces(dev, r->directions * j->lines * j->chunks, ns);
    sac_worker_pool_run(dev->workers, j->pieces, input_piece, j);
}

/* ---- steps ---- */

static int64_t length_of(const struct rnn_job *j, int64_t sample)
{
    return j->s->has[LENGTHS] ? ((const int32_t *)j->in[LENGTHS])[sample] : j->s->r.steps;
}

/* A sample that has not begun, or is over, keeps what it has; its output is 0. */
static void skip(const struct rnn_state *s, const struct sac_rnn_step *step, int64_t first,
                 int64_t end)
{
    const int64_t from = first * sac_simd_lanes(), to = end * sac_simd_lanes();
    memcpy(step->next + from, step->h + from, (size_t)(to - from) * sizeof(float));
    if (step->y)
        memset(step->y + from, 0, (size_t)(SAC_MIN(to, s->r.hidden) - from) * sizeof(float));
}

/* Sample b at moment t. */
static struct sac_rnn_step step_of(const struct rnn_job *j, int d, int64_t t, int64_t b)
{
    const struct rnn_state *s = j->s;
    const struct sac_rnn   *r = &s->r;
    float *const           *room = j->room[d];
    const int64_t           at = t - chunk_begin(j, d), begin = b * s->pitch;
    const int64_t           row = r->batch_first ? b * j->count + at : at * r->batch + b;
    const int64_t           y = r->batch_first ? (b * r->steps + t) * r->directions + d
                                               : (t * r->directions + d) * r->batch + b;
    struct sac_rnn_step     step = {.input = room[ROOM_INPUT] + row * s->pitch * s->gates[INPUT],
                                    .again = room[ROOM_AGAIN] + begin * s->gates[AGAIN],
                                    .h = room[ROOM_H] + begin,
                                    .next = room[ROOM_NEXT] + begin,
                                    .cell = room[ROOM_CELL] + begin,
                                    .hidden = r->hidden};
    if (s->wants[Y])
        step.y = (float *)j->out[Y] + y * r->hidden;
    if (s->has[P])
        step.peephole = (const float *)j->in[P] + 3 * d * r->hidden;
    return step;
}

/* Vectors first..end-1 of one direction. */
static void run_part(const struct rnn_job *j, int d, int64_t first, int64_t end)
{
    const struct rnn_state *s = j->s;
    const struct sac_rnn   *r = &s->r;
    const bool              resets = s->renew && j->product == AGAIN;
    const struct sac_conv  *v = &j->packed[d][j->product];
    const int64_t           blocks = s->gates[j->product] / v->block; /* of a vector */
    const struct sac_conv   part = sac_conv_part(v, first * blocks, end * blocks);
    float *const           *room = j->room[d];
    const int64_t           t = backwards(r, d) ? r->steps - 1 - j->step : j->step;
    SAC_SIMD_PICK(sac_conv_rows)
    (&part, room[j->product == AGAIN ? ROOM_H : ROOM_RESET], NULL,
     room[j->product == AGAIN ? ROOM_AGAIN : ROOM_RENEWED], 0, v->out_h);
    for (int64_t b = 0; b < r->batch; b++) {
        struct sac_rnn_step step = step_of(j, d, t, b);
        if (resets)
            step.next = room[ROOM_RESET] + b * s->pitch;
        if (j->product == RENEWED) {
            step.update = step.again;
            step.again = room[ROOM_RENEWED] + b * s->pitch;
        }
        if (t < length_of(j, b))
            (j->product == AGAIN ? s->step : s->renew)(&s->cell[d], &step, first, end);
        else if (!resets)
            skip(s, &step, first, end);
    }
}

static void step_piece(void *arg, int piece, int worker)
{
    const struct rnn_job *j = arg;
    const int64_t         vectors = j->s->vectors, all = j->s->r.directions * vectors;
    const int64_t begin = all * piece / j->s->pieces, end = all * (piece + 1) / j->s->pieces;
    (void)worker;
    for (int64_t u = begin, next; u < end; u = next) {
        const int64_t d = u / vectors;
        next = SAC_MIN(end, (d + 1) * vectors);
        run_part(j, (int)d, u - d * vectors, next - d * vectors);
    }
}

static void run_step(struct rnn_job *j, struct sac_device *dev)
{
    for (j->product = AGAIN; j->product < PRODUCTS; j->product++)
        if (j->s->gates[j->product])
            sac_worker_pool_run(dev->workers, j->s->pieces, step_piece, j);
    for (int d = 0; d < j->s->r.directions; d++) {
        float *h = j->room[d][ROOM_H];
        j->room[d][ROOM_H] = j->room[d][ROOM_NEXT];
        j->room[d][ROOM_NEXT] = h;
    }
}

/* ---- before the first and after the last ---- */

/* Between an operand [directions,batch,hidden], or with the batch first, and rows with padding. */
static float *state_row(const struct rnn_state *s, float *operand, int d, int64_t b)
{
    const struct sac_rnn *r = &s->r;
    return operand + (r->batch_first ? b * r->directions + d : d * r->batch + b) * r->hidden;
}

static void begin(const struct rnn_job *j, int d, int input, float *to)
{
    const struct rnn_state *s = j->s;
    const size_t            bytes = (size_t)s->r.hidden * sizeof(float);
    memset(to, 0, (size_t)(s->r.batch * s->pitch) * sizeof(float));
    for (int64_t b = 0; b < s->r.batch && s->has[input]; b++)
        memcpy(to + b * s->pitch, state_row(s, j->in[input], d, b), bytes);
}

static void finish(const struct rnn_job *j, int d, int output, const float *from)
{
    const struct rnn_state *s = j->s;
    const size_t            bytes = (size_t)s->r.hidden * sizeof(float);
    for (int64_t b = 0; b < s->r.batch && s->wants[output]; b++)
        memcpy(state_row(s, j->out[output], d, b), from + b * s->pitch, bytes);
}

/* Returns the end of the scratch that it uses. */
static float *pack_computed(struct rnn_job *j, float *at)
{
    const struct rnn_state *s = j->s;
    for (int d = 0; d < s->r.directions && s->computed; d++)
        for (int i = 0; i < PRODUCTS; i++) {
            struct sac_conv *v = &j->packed[d][i];
            if (s->gates[i] == 0)
                continue;
            v->weights = at;
            v->bias = at + v->group_weights;
            at += room_of_weights(v);
            pack_product(s, v, d, i, j->in[W], j->in[R], s->has[B] ? j->in[B] : NULL);
        }
    return at;
}

static sac_result rnn_run(struct sac_device *dev, void *state, void *const *in, void *const *out,
                          void *scratch, struct sac_device_stream *stream)
{
    const struct rnn_state *s = state;
    struct rnn_job          j = {.s = s, .in = in, .out = out};
    (void)stream;
    memcpy(j.packed, s->product, sizeof j.packed);
    float *at = pack_computed(&j, scratch);
    for (int d = 0; d < s->r.directions; d++) {
        for (int i = 0; i < ROOMS; i++) {
            j.room[d][i] = at;
            at += floats_of(s, i);
        }
        begin(&j, d, H0, j.room[d][ROOM_H]);
        begin(&j, d, C0, j.room[d][ROOM_CELL]);
    }
    sac_worker_pool_hold(dev->workers);
    for (j.first = 0; j.first < s->r.steps; j.first += j.count) {
        j.count = SAC_MIN(s->chunk, s->r.steps - j.first);
        multiply_input(&j, dev);
        for (j.step = j.first; j.step < j.first + j.count; j.step++)
            run_step(&j, dev);
    }
    sac_worker_pool_release(dev->workers);
    for (int d = 0; d < s->r.directions; d++) {
        finish(&j, d, Y_H, j.room[d][ROOM_H]);
        finish(&j, d, Y_C, j.room[d][ROOM_CELL]);
    }
    return SAC_OK;
}

const struct sac_kernel sac_cpu_RNN = {SAC_OP_RNN, rnn_supports, rnn_prepare, rnn_run, rnn_release};
const struct sac_kernel sac_cpu_GRU = {SAC_OP_GRU, rnn_supports, rnn_prepare, rnn_run, rnn_release};
const struct sac_kernel sac_cpu_LSTM = {SAC_OP_LSTM, rnn_supports, rnn_prepare, rnn_run,
                                        rnn_release};
