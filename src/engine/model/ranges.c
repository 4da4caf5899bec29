/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps FP16 is too narrow for. float16 ends at 65504 and is coarse below 6.1e-5, and a sum
 * over thousands of tokens, or a variance, leaves that range in a network whose outputs are small.
 * So the graph runs once on the CPU in float32, and every value whose numbers come near the upper
 * end stays in float32, or near the lower one where something is divided by them: the steps that
 * make it and those that read it.
 *
 * Constants are not looked at: kernels read the small ones in float32, and weights are small. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/start.h"
#include "engine/model/model.h"

/* Noise is not all that a network will see: eight times less than float16's largest. */
static const float LARGEST = 65504.0f / 8;
/* A value that is small throughout: more than half of its numbers are below float16's least normal
 * one, and none is more than sixteen times that. */
static const float SMALL = 16 * 6.103515625e-5f;

struct range {
    float   most;         /* the largest magnitude */
    int64_t some, little; /* numbers that are not 0; of them those below the least normal one */
    bool    leaves;       /* it must be kept in float32 */
};

struct watch {
    sac_model    *model;
    struct range *ranges; /* [id_count], by value id */
};

/* ---- looking ---- */

/* Below -1e8 nobody computes: such numbers stand for minus infinity in masks, which float16 has. By
 * their bits, whose order is that of the magnitudes, in pieces that the compiler makes vectors of.
 */
static void look_at(struct range *r, const float *numbers, int64_t count)
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
    if (!isnan(r->most) && !(magnitude <= r->most))
        r->most = magnitude;
}

/* A part of a wider value lies there pixel by pixel. */
static void look_at_part(struct range *r, const struct sac_value_slot *s, const float *numbers)
{
    int64_t pixels = 1;
    for (int d = 2; d < s->desc.rank; d++)
        pixels *= s->desc.dims[d];
    for (int64_t n = 0; n < s->desc.dims[0]; n++)
        for (int64_t p = 0; p < pixels; p++)
            look_at(r, numbers + n * s->sample + p * s->pixel, s->desc.dims[1]);
}

static void look_at_step(void *user, const struct sac_plan *plan, const struct sac_step *step)
{
    struct watch *w = user;
    for (int k = step->in_count; k < step->in_count + step->out_count; k++) {
        const struct sac_value_slot *s = step->slots[k] < 0 ? NULL : &plan->slots[step->slots[k]];
        if (!s || s->value < 0 || s->desc.dtype != SAC_F32 || sac_layout_is_half(s->layout))
            continue;
        struct range *r = &w->ranges[s->value];
        const float  *numbers = plan->address[step->slots[k]];
        if (s->parent >= 0 && s->pixel > 0)
            look_at_part(r, s, numbers);
        else
            look_at(r, numbers, sac_operand_elements(&s->desc));
    }
}

/* ---- a run ---- */

/* About normal; pictures are smooth between, as a network's first layers answer to areas. */
static float noise(uint32_t *seed)
{
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        sum += (float)(*seed >> 8) / 16777216.0f - 0.5f;
    }
    return sum * 1.7320508f; /* four uniform numbers have a variance of a third */
}

static void fill_picture(const struct sac_model *m, const struct sac_operand *o, float *numbers)
{
    enum { CELL = 16 };
    const bool    known = m->high > m->low;
    const int64_t h = o->dims[2], w = o->dims[3], columns = w / CELL + 1;
    float        *cells = sac_realloc_array(NULL, (size_t)columns, sizeof *cells);
    uint32_t      seed = 1;
    for (int64_t row = 0; row < o->dims[0] * o->dims[1] * h; row++)
        for (int64_t x = 0; x < w; x++) {
            if (cells && row % h % CELL == 0 && x % CELL == 0)
                cells[x / CELL] = noise(&seed);
            float v = 0.3f * noise(&seed) + (cells ? cells[x / CELL] : noise(&seed));
            if (known) /* two deviations reach the ends */
                v = SAC_CLAMP((m->high + m->low) / 2 + v * (m->high - m->low) / 4, m->low, m->high);
            numbers[row * w + x] = v;
        }
    sac_free(cells);
}

/* Whole numbers are 0 or 1, which are valid indices of any table; a few numbers by themselves are
 * shares and scales. */
static void fill(const struct sac_model *m, int input, struct sac_operand *o)
{
    const int64_t n = sac_operand_elements(o);
    uint32_t      seed = 1 + (uint32_t)input;
    if (o->dtype == SAC_F32 && o->rank == 4) {
        fill_picture(m, o, o->data);
        return;
    }
    const bool real =
        o->dtype == SAC_F32 || o->dtype == SAC_F16 || o->dtype == SAC_F64 || o->dtype == SAC_BF16;
    for (int64_t i = 0; i < n; i++) {
        const float v = noise(&seed);
        sac_operand_set(o, i, !real ? (seed >> 20) & 1 : n <= 4 ? 0.5 : (double)v);
    }
}

static struct sac_tensor_desc desc_of(const struct sac_operand *o)
{
    struct sac_tensor_desc desc = {.dtype = o->dtype, .rank = o->rank};
    memcpy(desc.shape, o->dims, sizeof desc.shape);
    return desc;
}

static sac_result make_input(const struct watch *w, sac_device *cpu, int i,
                             const struct sac_operand *shape, sac_tensor **out)
{
    const struct sac_tensor_desc desc = desc_of(shape);
    struct sac_operand           o = *shape;
    const sac_result             res = sac_tensor_create(cpu, &desc, "ranges", out);
    if (res != SAC_OK)
        return res;
    o.data = sac_tensor_data(*out);
    fill(w->model, i, &o);
    return SAC_OK;
}

static sac_result run_plan(struct watch *w, sac_device *cpu, struct sac_plan *plan,
                           const struct sac_operand *shapes)
{
    const struct sac_graph *g = w->model->graph;
    struct sac_buffer      *activations = NULL;
    sac_tensor            **tensors =
        sac_calloc((size_t)(g->input_count + g->output_count) + 1, sizeof(sac_tensor *));
    sac_result res =
        tensors ? SAC_OK : SAC_FAIL(w->model->ctx, SAC_ERR_MEMORY, "no memory to watch its ranges");
    for (int i = 0; i < g->input_count && res == SAC_OK; i++)
        res = make_input(w, cpu, i, &shapes[i], &tensors[i]);
    if (res == SAC_OK && plan->activation_bytes)
        res = sac_buffer_create(cpu, plan->activation_bytes, "ranges", &activations);
    if (res == SAC_OK)
        res = sac_plan_run(plan, NULL, activations ? sac_buffer_data(activations) : NULL, tensors,
                           tensors + g->input_count);
    for (int i = 0; tensors && i < g->input_count + g->output_count; i++)
        sac_tensor_unref(&tensors[i]);
    sac_free(tensors);
    sac_buffer_unref(&activations);
    return res;
}

/* On the CPU, so that it works before anything is planned, and next to nothing is: its kernels try
 * no variants. */
static sac_result run(struct watch *w, const struct sac_operand *shapes)
{
    const struct sac_model        *m = w->model;
    const struct sac_device_params dev_params = {.threads = m->dev->params.threads};
    const struct sac_plan_params   params = {.memory_limit = m->params.memory_limit_bytes,
                                             .precision = SAC_PRECISION_FP32,
                                             .watch = look_at_step,
                                             .watcher = w};
    struct sac_plan               *plan = NULL;
    sac_device                    *cpu = NULL;
    sac_result                     res = sac_device_open(m->ctx, "cpu", &dev_params, &cpu);
    if (res == SAC_OK)
        res = sac_plan_create(cpu, m->graph, shapes, &params, &plan);
    if (res == SAC_OK)
        res = run_plan(w, cpu, plan, shapes);
    sac_plan_destroy(&plan);
    sac_device_unref(&cpu);
    return res;
}

/* ---- what it means ---- */

static bool is_large(const struct range *r)
{
    return !(r->most <= LARGEST);
}

/* Small throughout. Where such numbers are only added or multiplied, they lose no more than what is
 * beside them. */
static bool is_small(const struct range *r)
{
    return r->some && r->little * 2 > r->some && r->most < SMALL;
}

/* Does the node make small differences of this input large? */
static bool magnifies(const struct sac_node *n, int input)
{
    switch (n->op->id) {
    case SAC_OP_Div: return input == 1;
    case SAC_OP_Reciprocal:
    case SAC_OP_Log:
    case SAC_OP_Sqrt:
    case SAC_OP_Pow:
    case SAC_OP_LpNormalization:
    case SAC_OP_InstanceNormalization:
    case SAC_OP_LayerNormalization:
    case SAC_OP_GroupNormalization:
    case SAC_OP_RMSNormalization:
    case SAC_OP_MeanVarianceNormalization: return input == 0;
    default: return false;
    }
}

/* Finds the values that must be kept in float32. */
static void judge(const struct sac_graph *g, struct range *ranges)
{
    for (int i = 0; i < g->id_count; i++)
        ranges[i].leaves = is_large(&ranges[i]);
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i]->input_count; k++) {
            const struct sac_value *v = g->nodes[i]->inputs[k];
            if (v && magnifies(g->nodes[i], k) && is_small(&ranges[v->id]))
                ranges[v->id].leaves = true;
        }
}

/* Says of a step what its numbers are, and keeps the sentence; *count of them so far. */
static void name_step(sac_model *m, const struct sac_node *n, const struct range *r)
{
    char label[256], text[400];
    snprintf(text, sizeof text, "%s: up to %.3g, %.0f %% of it below float16's least",
             sac_node_label(n, label, sizeof label), (double)r->most,
             r->some ? 100.0 * (double)r->little / (double)r->some : 0.0);
    char *kept = sac_arena_strndup(&m->memory, text, strlen(text));
    if (kept)
        m->wide_steps[m->wide_count++] = kept;
    sac_log(m->ctx, SAC_LOG_DEBUG, "%s: in float32: %s", m->path, text);
}

/* Marks the steps that make or read a value that leaves the range. False: no memory. */
static bool mark(sac_model *m, struct range *ranges)
{
    const struct sac_graph *g = m->graph;
    char                   *wide = sac_arena_alloc(&m->memory, (size_t)g->id_count);
    m->wide_steps = sac_arena_alloc(&m->memory, (g->node_count + 1) * sizeof *m->wide_steps);
    if (!wide || !m->wide_steps)
        return false;
    judge(g, ranges);
    memset(wide, 0, (size_t)g->id_count);
    for (size_t i = 0; i < g->node_count; i++) {
        const struct sac_node *n = g->nodes[i];
        const struct range    *worst = NULL;
        for (int k = 0; k < n->output_count + n->input_count; k++) {
            const struct sac_value *v =
                k < n->output_count ? n->outputs[k] : n->inputs[k - n->output_count];
            if (v && !v->data && !worst && ranges[v->id].leaves)
                worst = &ranges[v->id];
        }
        if (!worst || !n->outputs[0])
            continue;
        wide[n->outputs[0]->id] = 1;
        name_step(m, n, worst);
    }
    if (m->wide_count)
        m->wide = wide;
    return true;
}

/* ---- the book ---- */

/* A page of its own: by value id the range of what leaves float16's, and the value's name, by which
 * a page of another version of the graph is known. */
static void page_name(const sac_model *m, char *out, size_t size)
{
    const int at = snprintf(out, size, "ranges %g %g", (double)m->low, (double)m->high);
    if (m->fixed_name)
        snprintf(out + at, size - (size_t)at, " %g", m->fixed_value);
}

static void write_range(const struct sac_value *v, const struct range *r, char *out, size_t size)
{
    snprintf(out, size, "%.9g %lld %lld %.300s", (double)r->most, (long long)r->some,
             (long long)r->little, v->name ? v->name : "");
    for (char *c = out; *c; c++)
        if (iscntrl((unsigned char)*c)) /* it must not break its line */
            *c = '?';
}

static bool read_range(const struct sac_value *v, const char *text, struct range *r)
{
    char      again[SAC_KERNEL_CHOICE_MAX];
    long long some = 0, little = 0;
    if (sscanf(text, "%f %lld %lld ", &r->most, &some, &little) != 3)
        return false;
    r->some = some;
    r->little = little;
    write_range(v, r, again, sizeof again);
    return strcmp(again, text) == 0;
}

static bool read_page(const sac_model *m, struct range *ranges)
{
    char text[96];
    page_name(m, text, sizeof text);
    const struct sac_book_page *page = sac_book_find(&m->book, text);
    size_t                      found = 0, wanted = 0;
    if (!page)
        return false;
    for (size_t i = 0; i < page->count; i++)
        wanted += page->choices[i] != NULL;
    for (size_t i = 0; i < m->graph->node_count; i++)
        for (int k = 0; k < m->graph->nodes[i]->output_count; k++) {
            const struct sac_value *v = m->graph->nodes[i]->outputs[k];
            if (v && (size_t)v->id < page->count && page->choices[v->id])
                found += read_range(v, page->choices[v->id], &ranges[v->id]);
        }
    return found == wanted;
}

static void write_page(sac_model *m, const struct range *ranges)
{
    const struct sac_graph *g = m->graph;
    const size_t            ids = (size_t)g->id_count;
    char                    name[96];
    char                  **choices = sac_calloc(ids, sizeof *choices);
    bool                    good = choices != NULL;
    page_name(m, name, sizeof name);
    for (size_t i = 0; i < g->node_count && good; i++)
        for (int k = 0; k < g->nodes[i]->output_count && good; k++) {
            const struct sac_value *v = g->nodes[i]->outputs[k];
            char                    text[SAC_KERNEL_CHOICE_MAX];
            if (!v || !ranges[v->id].leaves)
                continue;
            write_range(v, &ranges[v->id], text, sizeof text);
            good = (choices[v->id] = sac_strdup(text)) != NULL;
        }
    if (good && sac_book_write(&m->book, name, (const char *const *)choices, ids))
        sac_model_save_book(m);
    for (size_t i = 0; choices && i < ids; i++)
        sac_free(choices[i]);
    sac_free(choices);
}

/* ---- the whole ---- */

/* With a batch of 1 where it is open, unless the network does not take that. */
static sac_result run_small(struct watch *w, const struct sac_operand *shapes)
{
    const struct sac_model *m = w->model;
    const int               inputs = m->graph->input_count;
    struct sac_operand     *small = sac_calloc((size_t)inputs + 1, sizeof *small);
    bool                    smaller = false;
    for (int i = 0; i < inputs && small; i++) {
        small[i] = shapes[i];
        if (small[i].rank > 0 && small[i].dims[0] > 1 &&
            m->inputs[i].desc.shape[0] == SAC_DIM_OPEN) {
            small[i].dims[0] = 1;
            smaller = true;
        }
    }
    sac_result res = small && smaller ? run(w, small) : SAC_ERR_FORMAT;
    if (res != SAC_OK)
        res = run(w, shapes);
    sac_free(small);
    return res;
}

static void find(sac_model *m, const struct sac_operand *shapes, struct range *ranges)
{
    struct watch  w = {.model = m, .ranges = ranges};
    const bool    keeps = m->book.key[SAC_BOOK_MODEL] != NULL;
    const int64_t begun = sac_time_ns();
    if (keeps && read_page(m, ranges)) {
        mark(m, ranges);
        return;
    }
    memset(ranges, 0, (size_t)m->graph->id_count * sizeof *ranges);
    const sac_result res = run_small(&w, shapes);
    sac_error_clear(m->ctx);
    if (res != SAC_OK || !mark(m, ranges)) {
        sac_log(m->ctx, SAC_LOG_DEBUG, "%s: the ranges of its numbers could not be watched",
                m->path);
        return;
    }
    const double seconds = (double)(sac_time_ns() - begun) / 1e9;
    if (m->wide_count)
        sac_log(m->ctx, SAC_LOG_INFO,
                "%s: %d of %zu steps stay in float32 in FP16, as their numbers leave its range; "
                "watched on the CPU in %.2f s",
                m->path, m->wide_count, m->graph->node_count, seconds);
    else
        sac_log(m->ctx, SAC_LOG_DEBUG,
                "%s: its numbers are in FP16's range; watched on the CPU in %.2f s", m->path,
                seconds);
    if (keeps)
        write_page(m, ranges);
}

void sac_model_find_ranges(sac_model *m, const struct sac_operand *shapes)
{
    if (m->watched || m->params.precision != SAC_PRECISION_FP16 || m->params.reference ||
        m->partial)
        return;
    m->watched = true;
    struct range         *ranges = sac_calloc((size_t)m->graph->id_count + 1, sizeof *ranges);
    struct sac_start_span span;
    sac_start_begin(&span, SAC_START_RANGES);
    if (ranges)
        find(m, shapes, ranges);
    sac_start_end(&span);
    sac_free(ranges);
}

void sac_model_expect(sac_model *m, float low, float high)
{
    m->low = low;
    m->high = high;
}
