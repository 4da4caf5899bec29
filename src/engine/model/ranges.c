/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps FP16 is too narrow for. float16 ends at 65504 and is coarse below 6.1e-5, and a sum
 * over thousands of tokens, or a variance, leaves that range in a network whose outputs are small.
 * So the graph runs on the CPU in float32 (watch.c), on noise or on calibration data (calibrate.c),
 * and every value whose numbers come near the upper end stays in float32, or near the lower one
 * where something is divided by them, or of whose rounding a step makes much (rounding.c): the
 * steps that make it and those that read it.
 *
 * Of constants the weights of products are looked at (weight_range.c): kernels read the others in
 * float32. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/start.h"
#include "engine/model/ranges.h"
#include "engine/ops/chain.h"
#include "engine/ops/util.h"

/* What was seen, noise or some pictures, is not all that a network will see: eight times less than
 * float16's largest. */
static const float LARGEST = 65504.0f / 8;
/* A value that is small throughout: more than half of its numbers are below float16's least normal
 * one, and none is more than sixteen times that. */
static const float SMALL = 16 * 6.103515625e-5f;

/* ---- noise ---- */

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

static sac_result make_input(const sac_model *m, sac_device *cpu, int i,
                             const struct sac_operand *shape, sac_tensor **out)
{
    struct sac_tensor_desc desc = {.dtype = shape->dtype, .rank = shape->rank};
    struct sac_operand     o = *shape;
    memcpy(desc.shape, shape->dims, sizeof desc.shape);
    const sac_result res = sac_tensor_create(cpu, &desc, "ranges", out);
    if (res != SAC_OK)
        return res;
    o.data = sac_tensor_data(*out);
    fill(m, i, &o);
    return SAC_OK;
}

static sac_result watch_noise(sac_model *m, const struct sac_operand *shapes,
                              struct sac_range *ranges)
{
    const int        inputs = m->graph->input_count;
    sac_tensor     **in = sac_calloc((size_t)inputs + 1, sizeof(sac_tensor *));
    struct sac_watch w = {.model = NULL};
    sac_result       res =
        in ? SAC_OK : SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory to watch its ranges");
    if (res == SAC_OK)
        res = sac_watch_open(&w, m, shapes, ranges);
    for (int i = 0; i < inputs && res == SAC_OK; i++)
        res = make_input(m, w.cpu, i, &shapes[i], &in[i]);
    if (res == SAC_OK)
        res = sac_watch_run(&w, in, -1);
    for (int i = 0; in && i < inputs; i++)
        sac_tensor_unref(&in[i]);
    sac_free(in);
    sac_watch_close(&w);
    return res;
}
/* ---- what it means ---- */

static bool is_large(const struct sac_range *r)
{
    return !(r->most <= LARGEST);
}

bool sac_range_is_small(const struct sac_range *r)
{
    return r->some && r->little * 2 > r->some && r->most < SMALL;
}

/* Does the node make small differences of this input large? */
static bool magnifies(const struct sac_node *n, int input)
{
    switch (n->op->id) {
    case SAC_OP_Chain: return sac_chain_divides(n, input);
    case SAC_OP_Div: return input == 1;
    case SAC_OP_Reciprocal:
    case SAC_OP_Log:
    case SAC_OP_Sqrt:
    case SAC_OP_Pow:
    case SAC_OP_LpNormalization:
    case SAC_OP_InstanceNormalization:
    case SAC_OP_LayerNormalization:
    case SAC_OP_GroupNormalization:
    case SAC_OP_FusedGroupNorm:
    case SAC_OP_SampleNorm:
    case SAC_OP_RMSNormalization:
    case SAC_OP_FusedNorm:
    case SAC_OP_MeanVarianceNormalization: return input == 0;
    default: return false;
    }
}

/* Finds the values that must be kept in float32. */
static void judge(const struct sac_graph *g, struct sac_range *ranges)
{
    for (int i = 0; i < g->id_count; i++)
        ranges[i].leaves = is_large(&ranges[i]) || ranges[i].lost > SAC_LOST;
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i]->input_count; k++) {
            const struct sac_value *v = g->nodes[i]->inputs[k];
            if (v && magnifies(g->nodes[i], k) && sac_range_is_small(&ranges[v->id]))
                ranges[v->id].leaves = true;
        }
    for (size_t i = 0; i < g->node_count; i++) {
        const struct sac_value *v = sac_node_result(g->nodes[i]);
        if (v && sac_weights_leave(g->nodes[i], v, ranges))
            ranges[v->id].leaves = ranges[v->id].weights = true;
    }
}

/* The sample's name, as a plan keeps it; NULL: it was noise. */
static const char *sample_name(const sac_model *m, int sample)
{
    const struct sac_book_page *page = sac_book_find(&m->book, SAC_BOOK_CALIBRATION);
    const bool                  known = page && sample >= 0 && (size_t)sample + 1 < page->count;
    return known ? page->choices[sample + 1] : NULL;
}

/* Says of a step what its numbers are, and keeps the sentence. */
static void name_step(sac_model *m, const struct sac_node *n, const struct sac_range *r)
{
    char        label[256], text[1024], lost[64] = "";
    const char *sample = sample_name(m, r->sample);
    if (r->lost > SAC_LOST)
        snprintf(lost, sizeof lost, ", rounding it changes a step by %.0f %%",
                 SAC_MIN(100.0 * (double)r->lost, 1e6));
    snprintf(text, sizeof text, "%s: up to %.3g%s%s, %.0f %% of it below float16's least%s%s",
             sac_node_label(n, label, sizeof label), (double)r->most, sample ? " in " : "",
             sample ? sample : "", r->some ? 100.0 * (double)r->little / (double)r->some : 0.0,
             lost, r->weights ? ", by weights that float16 does not hold" : "");
    char *kept = sac_arena_strndup(&m->memory, text, strlen(text));
    if (kept)
        m->wide_steps[m->wide_count++] = kept;
    sac_log(m->ctx, SAC_LOG_DEBUG, "%s: in float32: %s", m->path, text);
}

/* Marks the steps that make or read a value that must be kept in float32. False: no memory. */
static bool mark(sac_model *m, struct sac_range *ranges)
{
    const struct sac_graph *g = m->graph;
    char                   *wide = sac_arena_alloc(&m->memory, (size_t)g->id_count);
    m->wide_count = 0;
    m->wide_steps = sac_arena_alloc(&m->memory, (g->node_count + 1) * sizeof *m->wide_steps);
    if (!wide || !m->wide_steps)
        return false;
    memset(wide, 0, (size_t)g->id_count);
    for (size_t i = 0; i < g->node_count; i++) {
        const struct sac_node  *n = g->nodes[i];
        const struct sac_value *result = sac_node_result(n);
        const struct sac_range *worst = NULL;
        for (int k = 0; k < n->output_count + n->input_count; k++) {
            const struct sac_value *v =
                k < n->output_count ? n->outputs[k] : n->inputs[k - n->output_count];
            if (v && !v->data && !worst && ranges[v->id].leaves)
                worst = &ranges[v->id];
        }
        if (!worst || !result)
            continue;
        wide[result->id] = 1;
        name_step(m, n, worst);
    }
    if (m->wide_count && m->params.precision == SAC_PRECISION_FP16)
        m->wide = wide;
    return true;
}

/* ---- the book ---- */

/* A page of its own: by value id the range of what leaves float16's, and the value's name, by which
 * a page of another version of the graph is known. */
static void noise_page(const sac_model *m, char *out, size_t size)
{
    const int at = snprintf(out, size, "ranges %.9g %.9g", (double)m->low, (double)m->high);
    if (m->fixed_name)
        snprintf(out + at, size - (size_t)at, " %.17g", m->fixed_value);
}

/* It must not break its line. */
static void tame(char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            *text = '?';
}

static void write_range(const struct sac_value *v, const struct sac_range *r, char *out,
                        size_t size)
{
    char lost[32] = "";
    if (r->lost > SAC_LOST)
        snprintf(lost, sizeof lost, "~%.9g ", (double)r->lost);
    snprintf(out, size, "%.9g %lld %lld %d %s%.300s", (double)r->most, (long long)r->some,
             (long long)r->little, r->sample, lost, v->name ? v->name : "");
    tame(out);
}

static bool read_range(const struct sac_value *v, const char *text, struct sac_range *r)
{
    char      again[SAC_KERNEL_CHOICE_MAX];
    long long some = 0, little = 0;
    r->lost = 0;
    if (sscanf(text, "%f %lld %lld %d ~%f", &r->most, &some, &little, &r->sample, &r->lost) < 4)
        return false;
    r->some = some;
    r->little = little;
    write_range(v, r, again, sizeof again);
    return strcmp(again, text) == 0;
}

/* It has what was found to leave, and nothing of all other values. */
static bool read_page(const sac_model *m, const char *name, struct sac_range *ranges)
{
    const struct sac_book_page *page = sac_book_find(&m->book, name);
    size_t                      found = 0, wanted = 0;
    memset(ranges, 0, (size_t)m->graph->id_count * sizeof *ranges);
    if (!page)
        return false;
    for (size_t i = 0; i < page->count; i++)
        wanted += page->choices[i] != NULL;
    for (size_t i = 0; i < m->graph->node_count; i++)
        for (int k = 0; k < m->graph->nodes[i]->output_count; k++) {
            const struct sac_value *v = m->graph->nodes[i]->outputs[k];
            if (!v || (size_t)v->id >= page->count || !page->choices[v->id])
                continue;
            struct sac_range *r = &ranges[v->id];
            found += read_range(v, page->choices[v->id], r);
            r->leaves = true;
            r->weights = sac_weights_leave(m->graph->nodes[i], v, ranges);
        }
    return found == wanted;
}

static bool write_page(sac_model *m, const char *name, const struct sac_range *ranges)
{
    const struct sac_graph *g = m->graph;
    const size_t            ids = (size_t)g->id_count;
    char                  **choices = sac_calloc(ids, sizeof *choices);
    bool                    good = choices != NULL;
    for (size_t i = 0; i < g->node_count && good; i++)
        for (int k = 0; k < g->nodes[i]->output_count && good; k++) {
            const struct sac_value *v = g->nodes[i]->outputs[k];
            char                    text[SAC_KERNEL_CHOICE_MAX];
            if (!v || !ranges[v->id].leaves)
                continue;
            write_range(v, &ranges[v->id], text, sizeof text);
            good = (choices[v->id] = sac_strdup(text)) != NULL;
        }
    good = good && sac_book_write(&m->book, name, (const char *const *)choices, ids);
    for (size_t i = 0; choices && i < ids; i++)
        sac_free(choices[i]);
    sac_free(choices);
    return good;
}

/* ---- calibration ---- */

/* A plan has two pages of it: what the data was, followed by the samples' names, and the ranges. */
static bool write_calibration(sac_model *m, const struct sac_calibrated *seen)
{
    const size_t count = (size_t)seen->count + 1;
    char       **lines = sac_calloc(count, sizeof *lines);
    bool         good = lines != NULL;
    for (size_t i = 0; i < count && good; i++) {
        lines[i] = i == 0 ? sac_asprintf("%.9g %.9g %d %.300s", (double)seen->low,
                                         (double)seen->high, seen->count, seen->name)
                          : sac_asprintf("%.300s", seen->samples[i - 1]);
        good = lines[i] != NULL;
        if (good)
            tame(lines[i]);
    }
    good =
        good && sac_book_write(&m->book, SAC_BOOK_CALIBRATION, (const char *const *)lines, count);
    for (size_t i = 0; lines && i < count; i++)
        sac_free(lines[i]);
    sac_free(lines);
    return good;
}

/* Of the data; false: the model is not of a calibrated plan. name points into the page. */
static bool read_calibration(const sac_model *m, struct sac_calibrated *out)
{
    const struct sac_book_page *page = sac_book_find(&m->book, SAC_BOOK_CALIBRATION);
    int                         at = 0;
    *out = (struct sac_calibrated){.count = 0};
    if (!page || !page->count || !page->choices[0] ||
        sscanf(page->choices[0], "%f %f %d %n", &out->low, &out->high, &out->count, &at) != 3 ||
        !at)
        return false;
    out->name = page->choices[0] + at;
    return true;
}

/* For people: "64 samples of night/". */
static void note_calibration(sac_model *m, const struct sac_calibrated *seen)
{
    char text[400];
    snprintf(text, sizeof text, "%d sample%s of %s", seen->count, seen->count == 1 ? "" : "s",
             seen->name);
    m->calibration = sac_arena_strndup(&m->memory, text, strlen(text));
}

/* The ranges of a calibrated plan, where they are for this model, fed so. */
static bool read_calibrated(sac_model *m, struct sac_range *ranges)
{
    struct sac_calibrated seen;
    if (m->fixed_name || !read_calibration(m, &seen) || !read_page(m, SAC_BOOK_CALIBRATED, ranges))
        return false;
    const bool known = m->high > m->low && seen.high > seen.low;
    if (known && (m->low != seen.low || m->high != seen.high)) {
        sac_log(m->ctx, SAC_LOG_WARN,
                "%s: it was calibrated with pictures as numbers from %g to %g, and they are from "
                "%g to %g now: noise is used instead",
                m->path, (double)seen.low, (double)seen.high, (double)m->low, (double)m->high);
        return false;
    }
    note_calibration(m, &seen);
    return true;
}

bool sac_model_take_ranges(sac_model *m, struct sac_range *ranges,
                           const struct sac_calibrated *seen)
{
    judge(m->graph, ranges);
    if (!write_calibration(m, seen) || !mark(m, ranges))
        return false;
    note_calibration(m, seen);
    m->watched = true;
    if (!write_page(m, SAC_BOOK_CALIBRATED, ranges))
        return false;
    sac_model_calibrate_book(m);
    return true;
}

void sac_model_list_ranges(sac_model *m)
{
    struct sac_range *ranges = sac_calloc((size_t)m->graph->id_count + 1, sizeof *ranges);
    if (ranges && !m->watched && !m->calibration && read_calibrated(m, ranges))
        mark(m, ranges);
    sac_free(ranges);
}

/* ---- the whole ---- */

/* With a batch of 1 where it is open, unless the network does not take that. */
static sac_result watch_small(sac_model *m, const struct sac_operand *shapes,
                              struct sac_range *ranges)
{
    const int           inputs = m->graph->input_count;
    struct sac_operand *small = sac_calloc((size_t)inputs + 1, sizeof *small);
    bool                smaller = false;
    for (int i = 0; i < inputs && small; i++) {
        small[i] = shapes[i];
        if (small[i].rank > 0 && small[i].dims[0] > 1 &&
            m->inputs[i].desc.shape[0] == SAC_DIM_OPEN) {
            small[i].dims[0] = 1;
            smaller = true;
        }
    }
    sac_result res = small && smaller ? watch_noise(m, small, ranges) : SAC_ERR_FORMAT;
    if (res != SAC_OK)
        res = watch_noise(m, shapes, ranges);
    sac_free(small);
    return res;
}

static void find(sac_model *m, const struct sac_operand *shapes, struct sac_range *ranges)
{
    const bool    keeps = m->book.key[SAC_BOOK_MODEL] != NULL;
    const int64_t begun = sac_time_ns();
    char          page[96];
    noise_page(m, page, sizeof page);
    if (read_calibrated(m, ranges) || (keeps && read_page(m, page, ranges))) {
        mark(m, ranges);
        return;
    }
    memset(ranges, 0, (size_t)m->graph->id_count * sizeof *ranges);
    const sac_result res = watch_small(m, shapes, ranges);
    sac_error_clear(m->ctx);
    if (res == SAC_OK)
        judge(m->graph, ranges);
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
    if (keeps && write_page(m, page, ranges))
        sac_model_save_book(m);
}

void sac_model_find_ranges(sac_model *m, const struct sac_operand *shapes)
{
    if (m->watched || m->params.precision != SAC_PRECISION_FP16 || m->params.reference ||
        m->partial)
        return;
    m->watched = true;
    struct sac_range     *ranges = sac_calloc((size_t)m->graph->id_count + 1, sizeof *ranges);
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
