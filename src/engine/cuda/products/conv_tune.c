/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the fastest way to compute a convolution: its ways are made (conv_ahead.c), then measured
 * on maps of the real size. The result serves all convolutions with the same text. A way whose
 * results differ from saccade's plain kernel is left out: libraries have bugs too. */
#include <string.h>

#include "engine/cuda/products/conv_trial.h"
#include "engine/cuda/products/tensor_spec.h"

/* ---- measuring ---- */

struct turn {
    const struct conv_state *state;
    struct conv_pointers     pointers;
};

static cudaError_t queue_turn(void *arg, cudaStream_t stream)
{
    const struct turn *turn = arg;
    return conv_execute(turn->state, &turn->pointers, stream);
}

/* Negative: it does not run, or its results are wrong. */
static double measure_one(struct conv_trial *t, int i, double best_us)
{
    struct turn          turn = {.state = t->state, .pointers = conv_trial_pointers(t)};
    const struct measure m = {queue_turn, &turn, t->state->gpu->stream,
                              best_us > 0 ? 2 * best_us + 50 : 0};
    t->state->ready = t->ready[i];
    if (!conv_trial_right(t, "at first"))
        return -1;
    const double us = measure_us(&m);
    /* Checks again after repeated launches of a graph. */
    const bool better = us >= 0 && (best_us <= 0 || us < best_us);
    return better && (!conv_trial_same(t, "in a graph") || !conv_trial_captures(t)) ? -1 : us;
}

/* The index of the fastest, or -1. */
static int measure_all(struct conv_trial *t, const struct conv_weights_source *weights,
                       double *best_us)
{
    double took[CONV_TRIED_MAX];
    int    best = -1;
    for (int i = 0; i < t->list.count; i++) {
        took[i] = -1;
        const enum conv_form form = conv_form_of(&t->state->spec, t->list.items[i].choice.way);
        if (!t->ready[i] || weights->get(weights->arg, form, &t->state->weights) != SAC_OK)
            continue;
        const double us = took[i] = measure_one(t, i, *best_us);
        char         text[512] = "";
        conv_choice_print(&t->list.items[i].choice, text, sizeof text);
        sac_log(t->dev->ctx, SAC_LOG_TRACE, "products: %s: %.1f us", text, us);
        if (us >= 0 && (best < 0 || us < *best_us)) {
            best = i;
            *best_us = us;
        }
    }
    conv_near_note(t->dev, &t->state->spec, &t->list, took);
    return best;
}

static int first_made(const struct conv_trial *t)
{
    int i = 0;
    while (i < t->list.count && !t->ready[i])
        i++;
    return i < t->list.count ? i : -1;
}

/* What was compiled is kept as text, and then run as cuDNN reads it, so that is tried too. */
static void try_kept(struct conv_trial *t, struct conv_ready **at)
{
    struct conv_ready *made = *at;
    if (made->kept || !made->plan.plan)
        return;
    const struct products_loan loan = products_borrow(t->state->gpu, 0);
    struct conv_ready         *again = conv_ready_reread(&loan.cudnn, made);
    products_give_back(t->state->gpu, &loan);
    t->state->ready = again;
    const bool right = again && conv_trial_right(t, "as it is kept") && conv_trial_captures(t);
    cudaStreamSynchronize(t->state->gpu->stream);
    made->kept = !right;
    *at = t->state->ready = right ? again : made;
    conv_ready_destroy(right ? made : again);
}

/* tried: there was memory for it. */
static void settle(struct conv_trial *t, const struct conv_weights_source *weights, int best,
                   bool tried)
{
    const enum conv_form form = conv_form_of(&t->state->spec, t->list.items[best].choice.way);
    if (tried && weights->get(weights->arg, form, &t->state->weights) == SAC_OK)
        try_kept(t, &t->ready[best]);
    else
        t->ready[best]->kept = true;
}

static void finish_trial(struct conv_trial *t, int keep)
{
    for (int i = 0; i < t->list.count; i++)
        if (i != keep)
            conv_ready_destroy(t->ready[i]);
    t->state->ready = keep >= 0 ? t->ready[keep] : NULL;
    conv_trial_finish(t);
}

static void say_best(const struct conv_trial *t, double best_us, int64_t began_ns)
{
    char text[512] = "";
    conv_choice_print(&t->state->ready->choice, text, sizeof text);
    sac_log(t->dev->ctx, SAC_LOG_DEBUG, "products: %s: %s, %.1f us; %d ways, measured in %.0f ms",
            t->state->label, text, best_us, t->list.count,
            (double)(sac_time_ns() - began_ns) * 1e-6);
}

static void remember(const char *key, const struct conv_choice *choice)
{
    char text[SAC_KERNEL_CHOICE_MAX];
    if (conv_choice_print(choice, text, sizeof text))
        tuned_remember(key, text);
}

/* false: nothing runs, or starved: it is not known what does. */
static bool try_all(struct sac_device *dev, struct conv_state *state,
                    const struct conv_weights_source *weights, const char *key,
                    const float *numbers, bool *starved)
{
    struct conv_trial *t = sac_new(struct conv_trial);
    double             best_us = 0;
    if (t)
        *t = (struct conv_trial){.dev = dev, .state = state, .key = key};
    *starved = !t || !conv_ahead_ways(dev, key, &state->spec, true, &t->list, t->ready);
    if (*starved) {
        sac_free(t);
        return false;
    }
    /* one at a time, so that measurements do not disturb each other */
    pthread_mutex_lock(&state->gpu->tuning);
    const int64_t began_ns = sac_time_ns();
    const int     best =
        conv_trial_begin(t, numbers) == SAC_OK ? measure_all(t, weights, &best_us) : first_made(t);
    cudaStreamSynchronize(state->gpu->stream); /* a way that was abandoned may still be running */
    if (best >= 0)
        settle(t, weights, best, best_us > 0);
    finish_trial(t, best);
    if (best >= 0)
        say_best(t, best_us, began_ns);
    if (best >= 0 && best_us > 0)
        remember(key, &state->ready->choice);
    pthread_mutex_unlock(&state->gpu->tuning);
    sac_free(t);
    return best >= 0;
}

/* ---- choosing ---- */

/* One that was not foreseen. */
static struct conv_ready *make_alone(struct sac_device *dev, struct conv_state *s, const char *key,
                                     const struct conv_choice *choice)
{
    if (choice->way > CONV_CUDNN_PLAIN) /* ours */
        return conv_ready_make(dev, &s->gpu->cudnn, key, &s->spec, choice);
    pthread_mutex_lock(&s->gpu->tuning);
    const struct products_loan loan = products_borrow(s->gpu, 0);
    struct conv_ready *const   made = conv_ready_make(dev, &loan.cudnn, key, &s->spec, choice);
    products_give_back(s->gpu, &loan);
    pthread_mutex_unlock(&s->gpu->tuning);
    return made;
}

static bool take(struct sac_device *dev, struct conv_state *s, const char *key,
                 const struct conv_choice *choice)
{
    s->ready = conv_share(key, choice);
    if (!s->ready)
        s->ready = conv_ahead_take(dev, key, choice);
    if (!s->ready)
        s->ready = make_alone(dev, s, key, choice);
    return s->ready != NULL;
}

/* Does the only ready way compute the right result? */
static bool is_right(struct sac_device *dev, struct conv_state *s,
                     const struct conv_weights_source *weights, const char *key,
                     const float *numbers)
{
    struct conv_trial *t = sac_new(struct conv_trial);
    if (!t)
        return false;
    *t = (struct conv_trial){
        .dev = dev, .state = s, .key = key, .list.count = 1, .ready = {s->ready}};
    pthread_mutex_lock(&s->gpu->tuning);
    bool right = weights->get(weights->arg, conv_form_of(&s->spec, s->ready->choice.way),
                              &s->weights) == SAC_OK;
    /* without memory for a trial it is trusted, but not kept */
    if (right && conv_trial_begin(t, numbers) == SAC_OK)
        right = conv_trial_right(t, "at first") && conv_trial_captures(t);
    else
        s->ready->kept = true;
    if (right)
        try_kept(t, &s->ready);
    cudaStreamSynchronize(s->gpu->stream);
    conv_trial_finish(t);
    pthread_mutex_unlock(&s->gpu->tuning);
    sac_free(t);
    return right;
}

/* One whose kernel had to be compiled is looked at before it is kept. */
static bool take_known(struct sac_device *dev, struct conv_state *s,
                       const struct conv_weights_source *weights, const char *key,
                       const float *numbers, const struct conv_choice *choice)
{
    if (!take(dev, s, key, choice))
        return false;
    if (s->ready->kept || !s->ready->plan.plan || is_right(dev, s, weights, key, numbers))
        return true;
    conv_ready_unref(&s->ready);
    return false;
}

/* What was chosen for another size: its numbers were compared there, not here. */
static bool take_lent(struct sac_device *dev, struct conv_state *s,
                      const struct conv_weights_source *weights, const char *key,
                      const float *numbers, const struct conv_choice *choice)
{
    s->ready = conv_share(key, choice);
    if (s->ready)
        return true;
    if (take(dev, s, key, choice) && is_right(dev, s, weights, key, numbers))
        return true;
    conv_ready_unref(&s->ready);
    return false;
}

static bool take_likely(struct sac_device *dev, struct conv_state *s,
                        const struct conv_weights_source *weights, const char *key,
                        const float *numbers, bool *starved)
{
    struct conv_ways   l;
    struct conv_ready *ready[CONV_TRIED_MAX] = {NULL};
    s->ready = conv_share(key, NULL);
    if (s->ready)
        return true;
    *starved = !conv_ahead_ways(dev, key, &s->spec, false, &l, ready);
    for (int i = 0; i < l.count; i++) {
        s->ready = ready[i];
        if (!s->ready && !take(dev, s, key, &l.items[i].choice))
            continue;
        if (is_right(dev, s, weights, key, numbers))
            return true;
        conv_ready_unref(&s->ready);
    }
    return false;
}

/* Blocks of our own kernels are for maps of about a size, and the plain kernel is for when there is
 * no other. */
static bool is_worth(const struct conv_spec *s, const struct conv_choice *c)
{
    switch (c->way) {
    case CONV_TILE: return conv_tile_fits(s, c->engine) && conv_tile_worth(s, (int)c->engine);
    case CONV_TENSOR:
        return c->engine >= 0 && c->engine < CONV_TENSOR_VARIANTS &&
               tensor_worth(s, (int)c->engine);
    case CONV_PATCHES:
        return conv_is_patches(s) && c->engine >= 0 && c->engine < CONV_PATCHES_VARIANTS &&
               patches_worth(s, (int)c->engine);
    case CONV_DEPTHWISE:
        return c->engine >= 0 && c->engine < CONV_DEPTHWISE_VARIANTS &&
               conv_depthwise_worth(s, (int)c->engine);
    case CONV_DIRECT: return false;
    default: return true;
    }
}

/* What a plan file names, where it can be taken here. */
static bool read_choice(const struct sac_kernel_plan *plan, const struct conv_spec *spec,
                        struct conv_choice *out)
{
    return plan->choice && conv_choice_parse(plan->choice, out) &&
           (!plan->lent || is_worth(spec, out));
}

static bool recall(const char *key, struct conv_choice *out)
{
    char text[SAC_KERNEL_CHOICE_MAX];
    return tuned_recall(key, text) && conv_choice_parse(text, out);
}

bool conv_known_choice(const struct sac_kernel_plan *plan, const struct conv_spec *spec,
                       const char *key, struct conv_choice *out)
{
    return read_choice(plan, spec, out) || recall(key, out);
}

static bool choose(struct sac_device *dev, struct conv_state *state,
                   const struct sac_kernel_plan *plan, const struct conv_weights_source *weights,
                   const char *key, bool *starved)
{
    const float       *numbers = plan->call->in[1].data;
    struct conv_choice choice;
    if (read_choice(plan, &state->spec, &choice)) {
        if (plan->lent ? take_lent(dev, state, weights, key, numbers, &choice)
                       : take_known(dev, state, weights, key, numbers, &choice))
            return true;
        sac_log(dev->ctx, SAC_LOG_DEBUG, "%s: '%.200s' of the plan file does not run here",
                state->label, plan->choice);
    }
    if (recall(key, &choice) && take_known(dev, state, weights, key, numbers, &choice))
        return true;
    return plan->measure ? try_all(dev, state, weights, key, numbers, starved)
                         : take_likely(dev, state, weights, key, numbers, starved);
}

/* For convolutions that cuDNN does not support, or without cuDNN. It is slow, so it is logged. */
static bool take_direct(struct sac_device *dev, struct conv_state *state, const char *key)
{
    const struct conv_choice direct = {.way = CONV_DIRECT};
    if (state->gpu->cudnn.handle)
        sac_log(dev->ctx, SAC_LOG_INFO,
                "%s: no way that is fast runs here; a slow kernel of saccade's computes it",
                state->label);
    return take(dev, state, key, &direct);
}

sac_result conv_choose(struct sac_device *dev, struct conv_state *state,
                       const struct sac_kernel_plan     *plan,
                       const struct conv_weights_source *weights)
{
    char key[CONV_KEY_MAX];
    bool starved = false;
    if (!conv_key(dev, &state->spec, key))
        return SAC_OP_FAIL(plan->call, SAC_ERR_LIMIT, "its numbers are too long");
    const bool chosen = choose(dev, state, plan, weights, key, &starved);
    if (!chosen && starved && dev->given_up())
        return SAC_OP_FAIL(plan->call, SAC_ERR_CANCELLED, "the start was given up");
    if (!chosen && (starved || !take_direct(dev, state, key)))
        return SAC_OP_FAIL(plan->call, SAC_ERR_MEMORY, "no memory for its kernel");
    conv_ready_keep(dev, key, state->ready);
    conv_offer(key, state->ready);
    return weights->get(weights->arg, conv_form_of(&state->spec, state->ready->choice.way),
                        &state->weights);
}
