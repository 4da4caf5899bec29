/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cuda/products/cudnn_kernels.h"

#include <stdio.h>
#include <string.h>

/* cuDNN's kernel cache does not look at all that a kernel depends on: 9.19 hands a leaky ReLU's of
 * slope 0.1 on to one of 0.2. So each has a cache of its own. */
struct cudnn_kernel {
    struct cudnn_kernel *next;
    char                *key;
    pthread_mutex_t      lock; /* held while a plan is made with it; guards the rest */
    struct cudnn_set     set;
    cudnn_desc           cache; /* NULL: not created yet */
};

void cudnn_kernels_init(struct cudnn_kernels *k)
{
    *k = (struct cudnn_kernels){.first = NULL};
    pthread_mutex_init(&k->lock, NULL);
}

static void kernel_destroy(struct cudnn_kernel *kernel)
{
    cudnn_set_finish(&kernel->set);
    pthread_mutex_destroy(&kernel->lock);
    sac_free(kernel->key);
    sac_free(kernel);
}

void cudnn_kernels_finish(struct cudnn_kernels *k)
{
    while (k->first) {
        struct cudnn_kernel *kernel = k->first;
        k->first = kernel->next;
        kernel_destroy(kernel);
    }
    pthread_mutex_destroy(&k->lock);
}

/* What is compiled into a kernel beside what cuDNN tells apart by itself. */
char *cudnn_kernels_key(const struct conv_spec *s, const struct conv_choice *choice)
{
    char text[512];
    if (!conv_choice_print(choice, text, sizeof text))
        return NULL;
    return sac_asprintf("%d%s%s bias %d act %d %a %a residual %d align %d,%d,%d: %s", s->precision,
                        s->transposed ? " transposed" : "", s->groups > 1 ? " groups" : "", s->bias,
                        s->act.kind, (double)s->act.alpha, (double)s->act.beta, s->residual_kind,
                        s->in.align, s->out.align, s->residual.c ? s->residual.align : 0, text);
}

/* NULL: no memory. */
static struct cudnn_kernel *find_or_add(struct cudnn_kernels *k, char *key)
{
    struct cudnn_kernel *kernel = NULL;
    pthread_mutex_lock(&k->lock);
    for (kernel = k->first; kernel; kernel = kernel->next)
        if (strcmp(kernel->key, key) == 0)
            break;
    if (!kernel && (kernel = sac_new(struct cudnn_kernel))) {
        pthread_mutex_init(&kernel->lock, NULL);
        kernel->key = key;
        kernel->next = k->first;
        k->first = kernel;
        key = NULL;
    }
    pthread_mutex_unlock(&k->lock);
    sac_free(key);
    return kernel;
}

#if CUDNN_HAS_KERNEL_CACHE
/* The kernel's lock is held. */
static bool open_cache(struct cudnn_kernel *kernel, const struct cudnn_api *api,
                       const struct cudnn_graph *graph)
{
    if (kernel->cache)
        return true;
    struct cudnn_set set = {.api = api};
    cudnn_desc cache = cudnn_make(&set, CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR, "keep kernels");
    cudnn_put_desc(&set, cache, CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH, graph->graph);
    cudnn_done(&set, cache);
    if (!cudnn_good(&set)) {
        cudnn_set_finish(&set);
        return false;
    }
    kernel->set = set;
    kernel->cache = cache;
    return true;
}

bool cudnn_kernels_plan(struct cudnn_kernels *k, const struct cudnn_target *t,
                        const struct conv_spec *s, const struct conv_choice *choice,
                        struct cudnn_graph *graph, struct cudnn_plan *plan)
{
    const bool           can = t->api->version() >= CUDNN_KERNEL_CACHE_SINCE;
    char                *key = can ? cudnn_kernels_key(s, choice) : NULL;
    struct cudnn_kernel *kernel = key ? find_or_add(k, key) : NULL;
    const bool           fused = choice->way == CONV_CUDNN_FUSED;
    *plan = (struct cudnn_plan){.set = {.api = t->api}};
    *graph = (struct cudnn_graph){.set = {.api = t->api}, .fused = fused};
    if (!kernel || !cudnn_graph_make(t, s, fused, CUDNN_ANY_SHAPE, graph))
        return false;
    pthread_mutex_lock(&kernel->lock);
    const bool made =
        open_cache(kernel, t->api, graph) && cudnn_plan_make(t, graph, choice, kernel->cache, plan);
    pthread_mutex_unlock(&kernel->lock);
    return made;
}
#else
bool cudnn_kernels_plan(struct cudnn_kernels *k, const struct cudnn_target *t,
                        const struct conv_spec *s, const struct conv_choice *choice,
                        struct cudnn_graph *graph, struct cudnn_plan *plan)
{
    (void)k, (void)s, (void)choice, (void)find_or_add;
    *plan = (struct cudnn_plan){.set = {.api = t->api}};
    *graph = (struct cudnn_graph){.set = {.api = t->api}};
    return false;
}
#endif
