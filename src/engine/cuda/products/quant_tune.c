/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the fastest variant for a convolution of 8-bit numbers: each is run on maps of the real
 * size, compared with the plain kernel, then timed. The result serves all with the same text. */
#include <math.h>
#include <stdio.h>

#include "engine/cuda/products/quant_kernel.h"

enum { QUANT_KEY_MAX = CONV_KEY_MAX + 64, SAMPLES_MAX = 2, LONG_ROWS = 512, SCRATCH_SPARE = 256 };

struct quant_trial {
    struct sac_device  *dev;
    struct quant_state *state;
    struct sac_buffer  *x, *y, *want, *residual, *scratch, *found;
    int64_t             rows; /* of a product, compared: so many first and last ones */
};

/* ---- memory ---- */

static size_t number_bytes(enum conv_number n)
{
    return n == CONV_F32 ? 4 : n == CONV_F16 ? 2 : 1;
}

static sac_result take_map(struct quant_trial *t, const struct conv_map *m, enum conv_number n,
                           struct sac_buffer **out)
{
    const size_t bytes = (size_t)conv_map_span(m, t->state->spec.conv.n) * number_bytes(n);
    return sac_buffer_create(t->dev, bytes, "measuring convolutions", out);
}

static sac_result take_memory(struct quant_trial *t)
{
    const struct quant_spec *s = &t->state->spec;
    sac_result               res = take_map(t, &s->conv.in, CONV_S8, &t->x);
    if (res == SAC_OK)
        res = take_map(t, &s->conv.out, s->y, &t->y);
    if (res == SAC_OK)
        res = take_map(t, &s->conv.out, s->y, &t->want);
    if (res == SAC_OK && s->conv.residual_kind != SAC_RESIDUAL_NONE)
        res = take_map(t, &s->conv.residual, s->residual, &t->residual);
    const struct quant_state tile = {.spec = *s, .choice = {.way = CONV_BYTES}};
    const size_t             scratch =
        SAC_MAX(quant_scratch(&tile), quant_lt_workspace_max(&t->state->lt) + SCRATCH_SPARE);
    if (res == SAC_OK)
        res = sac_buffer_create(t->dev, scratch, "measuring convolutions", &t->scratch);
    if (res == SAC_OK)
        res = sac_buffer_create(t->dev, 2 * sizeof(float), "measuring convolutions", &t->found);
    return res;
}

static void fill_memory(const struct quant_trial *t)
{
    const struct quant_spec *s = &t->state->spec;
    cudaStream_t             stream = t->state->gpu->stream;
    conv_launch_bytes_fill(sac_buffer_data(t->x), s->kind, (int64_t)sac_buffer_bytes(t->x), stream);
    if (!t->residual)
        return;
    void         *at = sac_buffer_data(t->residual);
    const int64_t bytes = (int64_t)sac_buffer_bytes(t->residual);
    if (s->residual == CONV_F32 || s->residual == CONV_F16)
        conv_launch_fill(at, s->residual == CONV_F16, bytes / (int64_t)number_bytes(s->residual),
                         stream);
    else
        conv_launch_bytes_fill(at, s->residual == CONV_F8 ? CONV_BYTES_F8 : CONV_BYTES_S8, bytes,
                               stream);
}

static void finish(struct quant_trial *t)
{
    struct sac_buffer **const buffers[] = {&t->x,        &t->y,       &t->want,
                                           &t->residual, &t->scratch, &t->found};
    cudaStreamSynchronize(t->state->gpu->stream);
    for (size_t i = 0; i < SAC_COUNT(buffers); i++)
        sac_buffer_unref(buffers[i]);
}

static struct conv_pointers pointers_of(const struct quant_trial *t)
{
    return (struct conv_pointers){.x = sac_buffer_data(t->x),
                                  .y = sac_buffer_data(t->y),
                                  .residual = t->residual ? sac_buffer_data(t->residual) : NULL,
                                  .scratch = t->scratch ? sac_buffer_data(t->scratch) : NULL};
}

/* ---- judging ---- */

/* Part i of what is compared, as a convolution of its own: a sample, or of a product some rows. */
static struct quant_state part_of(const struct quant_trial *t, int i, struct conv_pointers *p)
{
    struct quant_state s = *t->state;
    struct conv_spec  *c = &s.spec.conv;
    int64_t            at[3]; /* elements of x, y and the residual */
    if (c->turned) {
        const int64_t row = i == 0 ? 0 : c->in.size[2] - t->rows;
        at[0] = row * c->in.pixel;
        at[1] = at[2] = row * c->out.pixel;
        c->in.size[2] = c->out.size[2] = t->rows;
    } else {
        const int64_t n = i == 0 ? 0 : c->n - 1;
        at[0] = n * c->in.sample;
        at[1] = n * c->out.sample;
        at[2] = n * c->residual.sample;
        c->n = 1;
    }
    p->x = (const char *)p->x + at[0];
    p->y = (char *)p->y + at[1] * (int64_t)number_bytes(s.spec.y);
    if (p->residual)
        p->residual = (const char *)p->residual + at[2] * (int64_t)number_bytes(s.spec.residual);
    return s;
}

static int parts_of(const struct quant_trial *t)
{
    const struct conv_spec *c = &t->state->spec.conv;
    return (c->turned ? c->in.size[2] > t->rows : c->n > 1) ? SAMPLES_MAX : 1;
}

static sac_result compute_want(struct quant_trial *t)
{
    cudaError_t res = cudaSuccess;
    for (int i = 0; i < parts_of(t) && res == cudaSuccess; i++) {
        struct conv_pointers p = pointers_of(t);
        p.y = sac_buffer_data(t->want);
        struct quant_state part = part_of(t, i, &p);
        part.choice = (struct conv_choice){.way = CONV_BYTES_PLAIN};
        res = quant_execute(&part, &p, t->state->gpu->stream);
    }
    return cuda_check(t->dev, res, "a convolution of 8-bit numbers");
}

/* One step of a whole number; of E4M3 one at the largest number. */
static double allowed(const struct quant_trial *t, double most)
{
    switch (t->state->spec.y) {
    case CONV_S8:
    case CONV_U8: return 1;
    case CONV_F8: return most / 8 + 1e-6;
    default: return 1e-2 * most + 1e-6;
    }
}

static cudaError_t compare(struct quant_trial *t, float found[2])
{
    const struct quant_spec *s = &t->state->spec;
    cudaStream_t             stream = t->state->gpu->stream;
    float                   *device = sac_buffer_data(t->found);
    cudaError_t              res = cudaMemsetAsync(device, 0, 2 * sizeof *found, stream);
    for (int i = 0; i < parts_of(t) && res == cudaSuccess; i++) {
        struct conv_pointers got = pointers_of(t), want = got;
        want.y = sac_buffer_data(t->want);
        part_of(t, i, &want);
        const struct quant_state         part = part_of(t, i, &got);
        const struct conv_map           *m = &part.spec.conv.out;
        const struct conv_compare_params p = {.half = s->y == CONV_F16,
                                              .bytes = s->y >= CONV_S8,
                                              .kind = (int)s->y,
                                              .got = got.y,
                                              .want = want.y,
                                              .pixels = m->size[1] * m->size[2],
                                              .c = m->c,
                                              .pixel = m->pixel,
                                              .out = device};
        res = conv_launch_compare(&p, stream);
    }
    if (res == cudaSuccess)
        res = cudaMemcpyAsync(found, device, 2 * sizeof *found, cudaMemcpyDeviceToHost, stream);
    return res == cudaSuccess ? cudaStreamSynchronize(stream) : res;
}

/* "stream 3" */
static const char *name_of(const struct quant_trial *t, char text[SAC_KERNEL_CHOICE_MAX])
{
    return conv_choice_print(&t->state->choice, text, SAC_KERNEL_CHOICE_MAX) ? text : "";
}

static bool is_right(struct quant_trial *t)
{
    const struct conv_pointers p = pointers_of(t);
    cudaStream_t               stream = t->state->gpu->stream;
    float                      found[2] = {INFINITY, 0};
    cudaError_t                res = cudaMemsetAsync(p.y, 0xff, sac_buffer_bytes(t->y), stream);
    if (res == cudaSuccess)
        res = quant_execute(t->state, &p, stream);
    if (res == cudaSuccess)
        res = compare(t, found);
    if (res == cudaSuccess &&
        (!isfinite(found[1]) || (double)found[0] <= allowed(t, (double)found[1])))
        return true;
    cudaGetLastError();
    char text[SAC_KERNEL_CHOICE_MAX];
    sac_log(t->dev->ctx, SAC_LOG_DEBUG,
            "products: %s: '%s' computes wrong numbers (off by %g of %g): left out",
            t->state->label, name_of(t, text), (double)found[0], (double)found[1]);
    return false;
}

/* ---- choosing ---- */

struct turn {
    const struct quant_state *state;
    struct conv_pointers      pointers;
};

static cudaError_t queue_turn(void *arg, cudaStream_t stream)
{
    const struct turn *turn = arg;
    return quant_execute(turn->state, &turn->pointers, stream);
}

static bool runs(const struct quant_state *s, const struct conv_choice *c)
{
    if (c->way == CONV_LT)
        return c->engine >= 0 && c->engine < s->lt.count;
    if (c->way == CONV_STREAM)
        return conv_bytes_has_hopper() && quant_streams(&s->spec, c->engine, s->gpu->capability);
    if (c->way == CONV_TENSOR)
        return conv_bytes_has_hopper() && quant_tensors(&s->spec, c->engine, s->gpu->capability);
    return c->way == CONV_BYTES && quant_fits(&s->spec, c->engine, s->gpu->capability) &&
           (c->engine < CONV_BYTES_HOPPER || conv_bytes_has_hopper());
}

static bool worth(const struct quant_spec *s, const struct conv_choice *c)
{
    if (c->way == CONV_LT)
        return true;
    if (c->way == CONV_TENSOR)
        return tensor_worth(&s->conv, (int)c->engine);
    return c->way == CONV_STREAM ? quant_stream_worth(s, (int)c->engine)
                                 : quant_worth(s, (int)c->engine);
}

/* Those of the copy engine first, as they are mostly the fastest, then Hopper's own, larger tiles
 * before smaller ones; blocks that stay behind them, and the library's last. */
enum { OWN = CONV_BYTES_VARIANTS + CONV_STREAM_VARIANTS, OTHERS = OWN + QUANT_LT_MAX };
enum { TRIED = CONV_TENSOR_VARIANTS + OTHERS };
static struct conv_choice choice_at(int i)
{
    if (i < CONV_TENSOR_VARIANTS)
        return (struct conv_choice){.way = CONV_TENSOR, .engine = i};
    i -= CONV_TENSOR_VARIANTS;
    const int hopper = CONV_BYTES_VARIANTS - CONV_BYTES_HOPPER;
    if (i >= OWN)
        return (struct conv_choice){.way = CONV_LT, .engine = i - OWN};
    if (i >= CONV_BYTES_VARIANTS)
        return (struct conv_choice){.way = CONV_STREAM, .engine = i - CONV_BYTES_VARIANTS};
    return (struct conv_choice){.way = CONV_BYTES,
                                .engine = i < hopper ? CONV_BYTES_HOPPER + i : i - hopper};
}

/* Sets the fastest of those that are right, or the first; false: there is none. */
static bool try_all(struct quant_trial *t, bool all, double *best_us)
{
    struct quant_state *s = t->state;
    struct conv_choice  best = {.way = CONV_BYTES_PLAIN};
    bool                found = false;
    for (int i = 0; i < TRIED && (all || !found); i++) {
        s->choice = choice_at(i);
        if (!runs(s, &s->choice) || !worth(&s->spec, &s->choice) || !is_right(t))
            continue;
        struct turn          turn = {.state = s, .pointers = pointers_of(t)};
        const struct measure m = {queue_turn, &turn, s->gpu->stream,
                                  *best_us > 0 ? 2 * *best_us + 50 : 0};
        const double         us = all ? measure_us(&m) : 0;
        char                 text[SAC_KERNEL_CHOICE_MAX];
        sac_log(t->dev->ctx, SAC_LOG_TRACE, "products: %s: %.1f us", name_of(t, text), us);
        if (us >= 0 && (!found || us < *best_us)) {
            best = s->choice;
            *best_us = us;
            found = true;
        }
    }
    s->choice = best;
    return found;
}

/* Sets the choice. */
static void try_on(struct sac_device *dev, struct quant_state *s, bool all)
{
    struct quant_trial t = {.dev = dev, .state = s};
    double             best_us = 0;
    char               text[SAC_KERNEL_CHOICE_MAX] = "";
    t.rows = SAC_MIN(s->spec.conv.in.size[2], (int64_t)LONG_ROWS);
    pthread_mutex_lock(&s->gpu->tuning);
    const int64_t began_ns = sac_time_ns();
    sac_result    res = take_memory(&t);
    if (res == SAC_OK) /* work queued on the device's own stream may still use this memory */
        res = cuda_check(dev, cudaStreamSynchronize(cuda_stream_of(dev, NULL)), "queued work");
    if (res == SAC_OK) {
        fill_memory(&t);
        res = compute_want(&t);
    }
    if (res != SAC_OK || !try_all(&t, all, &best_us))
        s->choice = (struct conv_choice){.way = CONV_BYTES_PLAIN};
    if (res != SAC_OK)
        sac_error_clear(dev->ctx);
    finish(&t);
    pthread_mutex_unlock(&s->gpu->tuning);
    conv_choice_print(&s->choice, text, sizeof text);
    sac_log(dev->ctx, SAC_LOG_DEBUG, "products: %s: %s, %.1f us; measured in %.0f ms", s->label,
            text, best_us, (double)(sac_time_ns() - began_ns) * 1e-6);
}

static bool key_of(const struct sac_device *dev, const struct quant_spec *s,
                   char key[QUANT_KEY_MAX])
{
    const int at = products_key_begin(dev, key, QUANT_KEY_MAX);
    return quant_spec_text(s, key + at, (size_t)(QUANT_KEY_MAX - at)) > 0;
}

/* That of the plan's file, or of an earlier measurement. */
static bool known_choice(const struct quant_state *s, const struct sac_kernel_plan *plan,
                         const char *key, struct conv_choice *out)
{
    char text[SAC_KERNEL_CHOICE_MAX];
    if ((!plan->choice || plan->lent || !conv_choice_parse(plan->choice, out)) &&
        (!tuned_recall(key, text) || !conv_choice_parse(text, out)))
        return false;
    return out->knob_count == 0 &&
           (runs(s, out) || (out->way == CONV_BYTES_PLAIN && out->engine == 0));
}

void quant_choose(struct sac_device *dev, struct quant_state *s, const struct sac_kernel_plan *plan)
{
    char               key[QUANT_KEY_MAX], text[SAC_KERNEL_CHOICE_MAX];
    struct conv_choice known;
    const bool         named = key_of(dev, &s->spec, key);
    if (named && known_choice(s, plan, key, &known)) {
        s->choice = known;
        return;
    }
    try_on(dev, s, plan->measure);
    if (named && plan->measure && conv_choice_print(&s->choice, text, sizeof text))
        tuned_remember(key, text);
}
