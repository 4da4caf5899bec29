/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to compute a convolution, saccade's own kernels and those that cuDNN's heuristics offer,
 * and how one of them is compiled. */
#include <stdio.h>

#include "engine/cuda/products/conv_kernel.h"
#include "engine/cuda/products/cudnn_store.h"
#include "engine/cuda/products/stem_spec.h"
#include "engine/cuda/products/tensor_spec.h"

enum { LIST_MAX = 32, FUSED_MAX = 6, PLAIN_MAX = 5, ENOUGH = 4 };
static const int64_t WORKSPACE_MAX = 512 << 20; /* or what a convolution reads and writes */

enum conv_form conv_form_of(const struct conv_spec *s, enum conv_way way)
{
    switch (way) {
    case CONV_DEPTHWISE:
    case CONV_DIRECT: return CONV_FORM_TAPS;
    case CONV_STEM: return CONV_FORM_STEM;
    case CONV_PATCHES: return CONV_FORM_PATCHES;
    case CONV_TILE: /* of one group by eights they are the same */
        return s->groups == 1 && s->in.c % 8 == 0 ? CONV_FORM_LAST : CONV_FORM_BUNDLES;
    default: return CONV_FORM_LAST;
    }
}

/* ---- compiling ---- */

static void say_refused(struct sac_device *dev, const struct conv_choice *choice,
                        const struct cudnn_set *set)
{
    char text[512] = "", why[512];
    conv_choice_print(choice, text, sizeof text);
    cudnn_say(set, why, sizeof why);
    sac_log(dev->ctx, SAC_LOG_DEBUG, "products: not %s: %s", text, why);
}

/* What a kept plan depends on. */
static char *store_key(const char *key, const struct conv_choice *choice)
{
    char text[512] = "";
    int  driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess ||
        !conv_choice_print(choice, text, sizeof text))
        return NULL;
    return sac_asprintf("%s, driver %d, %s: %s", sac_kernels_products.name, driver, key, text);
}

static bool read_kept(const struct cudnn_target *target, const char *key, struct conv_ready *r)
{
    char  *name = store_key(key, &r->choice);
    size_t size = 0;
    char  *text = name ? cudnn_store_load(name, &size) : NULL;
    bool   good = text && cudnn_plan_read(target, text, size, &r->plan);
    if (text && !good)
        cudnn_plan_finish(&r->plan);
    sac_free(text);
    sac_free(name);
    r->kept = good;
    return good;
}

struct conv_ready *conv_ready_reread(const struct cudnn_target *target, const struct conv_ready *r)
{
    struct conv_ready *again = sac_new(struct conv_ready);
    size_t             size = 0;
    char              *text = again ? cudnn_plan_text(&r->plan, &size) : NULL;
    const bool         good = text && cudnn_plan_read(target, text, size, &again->plan);
    sac_free(text);
    if (!good) {
        conv_ready_destroy(again);
        return NULL;
    }
    again->choice = r->choice;
    again->graph.fused = r->graph.fused;
    again->users = 1;
    return again;
}

void conv_ready_keep(struct sac_device *dev, const char *key, struct conv_ready *r)
{
    if (r->kept || !r->plan.plan)
        return;
    char  *name = store_key(key, &r->choice);
    size_t size = 0;
    char  *text = name ? cudnn_plan_text(&r->plan, &size) : NULL;
    r->kept = true; /* or cannot be kept: no second attempt */
    if (text && cudnn_store_save(name, text, size))
        sac_log(dev->ctx, SAC_LOG_DEBUG, "products: a cuDNN plan of %zu bytes is kept in the cache",
                size);
    sac_free(text);
    sac_free(name);
}

/* A plan with a kernel that was compiled for another shape. false: it is compiled for this alone.
 */
static bool share_kernel(struct sac_device *dev, const struct cudnn_target *target,
                         const struct conv_spec *spec, struct conv_ready *r)
{
    struct cudnn_graph graph;
    const bool shared = cudnn_kernels_plan(&products_gpu_of(dev)->kernels, target, spec, &r->choice,
                                           &graph, &r->plan);
    if (!shared)
        cudnn_plan_finish(&r->plan);
    cudnn_graph_finish(shared ? &r->graph : &graph);
    if (shared)
        r->graph = graph;
    return shared;
}

/* cuDNN pads channels that do not come by eights in workspace: a copy of maps that may be large. */
static bool workspace_fits(const struct conv_spec *spec, const struct conv_ready *r)
{
    return r->plan.workspace <= SAC_MAX(WORKSPACE_MAX, conv_spec_bytes(spec));
}

static bool make_cudnn(struct sac_device *dev, const struct cudnn_target *target, const char *key,
                       const struct conv_spec *spec, struct conv_ready *r)
{
    const bool fused = r->choice.way == CONV_CUDNN_FUSED;
    if (!target->handle || (fused && !cudnn_graph_can_fuse(spec)))
        return false;
    r->graph.fused = fused;
    if (read_kept(target, key, r))
        return workspace_fits(spec, r);
    if (!cudnn_graph_make(target, spec, fused, CUDNN_THIS_SHAPE, &r->graph)) {
        say_refused(dev, &r->choice, &r->graph.set);
        return false;
    }
    r->kept = !cudnn_graph_compiles(target, &r->graph, &r->choice);
    if ((r->kept || !share_kernel(dev, target, spec, r)) &&
        !cudnn_plan_make(target, &r->graph, &r->choice, NULL, &r->plan)) {
        say_refused(dev, &r->choice, &r->plan.set);
        return false;
    }
    return workspace_fits(spec, r);
}

/* ---- what runs here: on the card, and of the code in this build ---- */

static bool stem_runs(const struct products_gpu *gpu, const struct conv_spec *s, int64_t variant)
{
    return (variant != CONV_STEM_UNIT || conv_bytes_has_hopper()) &&
           stem_takes(s, variant, gpu->capability);
}

static bool tensor_runs(const struct products_gpu *gpu, const struct conv_spec *s, int64_t variant)
{
    return conv_bytes_has_hopper() && tensor_takes_half(s, variant, gpu->capability);
}

static bool patches_run(const struct products_gpu *gpu, const struct conv_spec *s, int64_t variant)
{
    return (variant < CONV_TILE_VARIANTS || conv_bytes_has_hopper()) &&
           patches_fits(s, variant, gpu->capability);
}

struct conv_ready *conv_ready_make(struct sac_device *dev, const struct cudnn_target *target,
                                   const char *key, const struct conv_spec *spec,
                                   const struct conv_choice *choice)
{
    const struct products_gpu *gpu = products_gpu_of(dev);
    struct conv_ready         *r = sac_new(struct conv_ready);
    bool                       ok = false;
    if (!r)
        return NULL;
    r->choice = *choice;
    r->users = 1;
    switch (choice->way) {
    case CONV_DEPTHWISE:
        ok = conv_is_depthwise(spec) && choice->engine < CONV_DEPTHWISE_VARIANTS &&
             choice->knob_count == 0;
        break;
    case CONV_STEM: ok = stem_runs(gpu, spec, choice->engine) && choice->knob_count == 0; break;
    case CONV_TILE: ok = conv_tile_fits(spec, choice->engine) && choice->knob_count == 0; break;
    case CONV_TENSOR: ok = tensor_runs(gpu, spec, choice->engine) && choice->knob_count == 0; break;
    case CONV_PATCHES:
        ok = patches_run(gpu, spec, choice->engine) && choice->knob_count == 0;
        break;
    case CONV_DIRECT: ok = choice->engine == 0 && choice->knob_count == 0; break;
    case CONV_CUDNN_FUSED:
    case CONV_CUDNN_PLAIN: ok = make_cudnn(dev, target, key, spec, r); break;
    default: break;
    }
    if (ok)
        return r;
    conv_ready_destroy(r);
    return NULL;
}

void conv_ready_destroy(struct conv_ready *r)
{
    if (!r)
        return;
    cudnn_plan_finish(&r->plan);
    cudnn_graph_finish(&r->graph);
    sac_free(r);
}

/* ---- what there is ---- */

static void add(struct conv_ways *l, const struct cudnn_candidate *c)
{
    for (int i = 0; i < l->count; i++)
        if (conv_choice_same(&l->items[i].choice, &c->choice))
            return;
    if (l->count == CONV_TRIED_MAX)
        return;
    l->compiled += c->runtime;
    l->items[l->count++] = *c;
}

/* What is compiled stores pixels by 16 bytes: of 85 float16 channels, as YOLOX's grids have, it did
 * not run at batch 32 and was no faster than tiles at 1 (one H100, 2026-11-28). */
static bool stores_whole(const struct conv_spec *s)
{
    return s->out.pixel * (int64_t)conv_element(s) % 16 == 0;
}

/* Tiles of 64 by 64, two for each of an H100's multiprocessors; bytes of a pixel's channels that
 * the copy engine brings at once. */
enum { TILES_FEW = 264, PIECE_BYTES = 128 };

/* How many of those that cuDNN compiles are worth their third of a second each? Beside our kernels
 * for Hopper the likeliest, where these are few, as at batch 1, or where channels do not fill a
 * piece: there it is up to a quarter faster. All others together would make YOLOX-S 1.5 % faster at
 * batch 32 and 8, for most of the kernels that a start without a plan would compile (one H200,
 * 2026-11-28). */
static int worth_compiling(const struct conv_spec *s, bool rivals)
{
    const int64_t pixels = s->n * conv_map_pixels(&s->out),
                  tiles = (pixels + 63) / 64 * ((s->out.c + 63) / 64);
    const bool few = tiles <= TILES_FEW || s->in.c * (int64_t)conv_element(s) < PIECE_BYTES;
    if (!stores_whole(s) && conv_tile_fits(s, 0))
        return 0;
    return !rivals ? 2 : few ? 1 : 0;
}

/* The first few of one kind of graph. None is compiled where precompiled kernels exist, or where
 * ours do it as well. */
static void add_from(struct conv_ways *l, const struct cudnn_target *t, const struct conv_spec *s,
                     int compiled_max, bool fused, cudnnBackendHeurMode_t mode, int max)
{
    struct cudnn_graph     g;
    struct cudnn_candidate found[LIST_MAX];
    const int              before = l->count;
    int                    n = 0, ready = 0;
    if (cudnn_graph_make(t, s, fused, CUDNN_THIS_SHAPE, &g))
        n = cudnn_graph_candidates(t, &g, s, mode, found, LIST_MAX);
    cudnn_graph_finish(&g);
    for (int i = 0; i < n; i++)
        ready += !found[i].runtime;
    for (int i = 0; i < n && l->count - before < max; i++)
        if (!found[i].runtime || (ready == 0 && l->compiled < compiled_max))
            add(l, &found[i]);
}

static bool wants_fusion(const struct conv_spec *s)
{
    return s->bias || s->act.kind != SAC_ACT_NONE || s->residual_kind != SAC_RESIDUAL_NONE ||
           s->ending;
}

static void add_tiles(struct conv_ways *l, const struct conv_spec *s)
{
    for (int v = 0; v < CONV_TILE_VARIANTS; v++) {
        const struct cudnn_candidate c = {.choice = {.way = CONV_TILE, .engine = v}};
        if (conv_tile_fits(s, v) && conv_tile_worth(s, v))
            add(l, &c);
    }
}

static bool takes_tensor(const struct products_gpu *gpu, const struct conv_spec *s, int variant)
{
    return tensor_runs(gpu, s, variant) && tensor_worth(s, variant);
}

/* Those alone whose windows stay say nothing of the tiles beside them. */
static bool takes_tensors(const struct products_gpu *gpu, const struct conv_spec *s)
{
    int v = 0;
    while (v < CONV_TENSOR_WINDOWS && !takes_tensor(gpu, s, v))
        v++;
    return v < CONV_TENSOR_WINDOWS;
}

static void add_tensors(struct conv_ways *l, const struct products_gpu *gpu,
                        const struct conv_spec *s)
{
    for (int v = 0; v < CONV_TENSOR_VARIANTS; v++) {
        const struct cudnn_candidate c = {.choice = {.way = CONV_TENSOR, .engine = v}};
        if (takes_tensor(gpu, s, v))
            add(l, &c);
    }
}

/* Of channels that cuDNN pads. Its fastest took 146 us where the unit takes 22 (ResNet-50's, batch
 * 32), 900 where it takes 137 and 28 where it takes 8 (YOLOX-S', 32 and 1; one H100, 2026-11-28).
 */
static bool has_stem_unit(const struct products_gpu *gpu, const struct conv_spec *s)
{
    return s->in.c % 8 != 0 && stem_runs(gpu, s, CONV_STEM_UNIT);
}

/* Hopper's first: the likely one. */
static void add_stems(struct conv_ways *l, const struct products_gpu *gpu,
                      const struct conv_spec *s)
{
    for (int v = CONV_STEM_VARIANTS - 1; v >= 0; v--) {
        const struct cudnn_candidate c = {.choice = {.way = CONV_STEM, .engine = v}};
        if (stem_runs(gpu, s, v))
            add(l, &c);
    }
}

/* Hopper's kernels first: where these take the rows, the others are left out. */
static void add_patches(struct conv_ways *l, const struct products_gpu *gpu,
                        const struct conv_spec *s)
{
    const int before = l->count;
    for (int i = 0; i < CONV_PATCHES_VARIANTS; i++) {
        const int                    v = (i + CONV_TILE_VARIANTS) % CONV_PATCHES_VARIANTS;
        const struct cudnn_candidate c = {.choice = {.way = CONV_PATCHES, .engine = v}};
        if (v == 0 && l->count > before)
            return;
        if (patches_run(gpu, s, v) && patches_worth(s, v))
            add(l, &c);
    }
}

static void add_depthwise(struct conv_ways *l, const struct conv_spec *s)
{
    const int likely = conv_is_depthwise(s) ? conv_depthwise_likely(s) : -1;
    for (int i = likely < 0 ? CONV_DEPTHWISE_VARIANTS : -1; i < CONV_DEPTHWISE_VARIANTS; i++) {
        const int                    v = i < 0 ? likely : i;
        const struct cudnn_candidate c = {.choice = {.way = CONV_DEPTHWISE, .engine = v}};
        if (v == likely || conv_depthwise_worth(s, v))
            add(l, &c);
    }
}

/* Samples that are parts of a larger tensor's, as the levels of a detector's grid are: cuDNN's
 * kernels took 0.15 to 2.85 ms for what ours take 0.01 to 0.09 (one H100, 2026-11-26). */
static bool writes_apart(const struct conv_spec *s)
{
    return !tensor_is_dense(&s->out, s->n);
}

/* cuDNN's. `rivals`: are there kernels of ours for Hopper? Beside these, where cuDNN fuses, or
 * would by a kernel that is not worth compiling, what it does not fuse is left out: of YOLOX-S,
 * ResNet-50 and ViT-B/16 at 1 and 32 (one H100, 2026-11-28) it was the fastest of no convolution by
 * more than 1 us, and it was most of what there was to make and to measure. */
static void add_cudnn(struct conv_ways *l, const struct cudnn_target *t, const struct conv_spec *s,
                      bool rivals)
{
    const bool fuse = wants_fusion(s) && cudnn_graph_can_fuse(s);
    const int  own = l->count, compiled = worth_compiling(s, rivals);
    if (fuse)
        add_from(l, t, s, compiled, true, CUDNN_HEUR_MODE_A, FUSED_MAX);
    const bool first_fused = l->count > own;
    if (rivals && fuse && (first_fused || compiled == 0))
        return;
    add_from(l, t, s, compiled, false, CUDNN_HEUR_MODE_A, PLAIN_MAX);
    if (fuse && !first_fused) /* compiling from this list takes up to four seconds */
        add_from(l, t, s, compiled, true, CUDNN_HEUR_MODE_FALLBACK, 1);
    if (!rivals && l->count - own < ENOUGH) /* they run anywhere, and up to a thousand times longer
                                             */
        add_from(l, t, s, compiled, false, CUDNN_HEUR_MODE_FALLBACK, 2);
}

/* A product that cuBLASLt computes in one step. */
static bool is_plain_product(const struct conv_spec *s)
{
    return s->turned && (s->act.kind == SAC_ACT_NONE || s->act.kind == SAC_ACT_RELU);
}

/* Numbers of a tile: with fewer tiles than multiprocessors some of these have nothing to do, where
 * cuBLASLt shares the turns of a tile among them. */
enum { PRODUCT_TILE = 128 * 128 };

bool conv_ways_for(const struct products_gpu *gpu, const struct conv_spec *s)
{
    return !is_plain_product(s) ||
           (takes_tensors(gpu, s) &&
            s->n * conv_map_pixels(&s->out) * s->out.c >= (int64_t)gpu->processors * PRODUCT_TILE);
}

void conv_ways_list(const struct products_gpu *gpu, const struct cudnn_target *t,
                    const struct conv_spec *s, struct conv_ways *out)
{
    const bool tensors = takes_tensors(gpu, s), apart = writes_apart(s),
               in_place = s->turned && s->residual_kind != SAC_RESIDUAL_NONE,
               asks = t->handle && !has_stem_unit(gpu, s) && !in_place;
    *out = (struct conv_ways){.count = 0};
    if (is_plain_product(s)) {
        add_tensors(out, gpu, s);
        return;
    }
    add_depthwise(out, s);
    add_stems(out, gpu, s);
    add_patches(out, gpu, s);
    if (asks && !apart)
        add_cudnn(out, t, s, tensors);
    add_tensors(out, gpu, s);
    if (tensors) /* the tiles are nowhere the fastest beside them */
        return;
    add_tiles(out, s);
    if (asks && apart)
        add_cudnn(out, t, s, false);
}
