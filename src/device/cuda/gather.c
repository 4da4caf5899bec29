/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, graphs and timed events of a stream launched as one: a CUDA graph of them in a row. It
 * is not captured but put together from what launchers queue (CUDA_LAUNCH): so between begin and
 * end memory may be taken and streams may wait for each other, and the next time only the
 * parameters that are new are set, which costs less than the launches. All else that is queued
 * comes by cuda_stream_of, which queues what was gathered before it. */
#include <string.h>

#include "device/cuda/common.h"
#include "device/cuda/launch.h"

enum { PARAMS_MAX = 8, PARAM_ALIGN = 16 };
/* Graphs of one list; and how many a stream makes until it is believed that each of its batches is
 * another one. */
enum { GRAPHS_MAX = 8, MADE_MAX = 64 };

enum piece_kind { PIECE_KERNEL, PIECE_GRAPH, PIECE_EVENT };
struct piece {
    enum piece_kind          kind;
    cudaGraphNode_t          node; /* in the graph that was made of it */
    const void              *kernel;
    dim3                     grid, block;
    size_t                   first, count; /* its parameters */
    struct sac_device_graph *graph;
    uint64_t                 graph_id;
    cudaEvent_t              event;
};
struct param {
    size_t at, bytes;
};
struct cuda_pieces {
    struct piece *piece;
    size_t        count, cap;
    struct param *params;
    size_t        param_count, param_cap;
    char         *bytes; /* of the parameters */
    size_t        byte_count, byte_cap;
};

struct cuda_gather {
    struct sac_device_stream *stream;
    struct cuda_pieces       *pieces;
    struct sac_event        **behind; /* to be recorded behind all, or timed, among the pieces */
    size_t                    behind_count, behind_cap;
    bool                      apart;   /* what comes now is queued at once */
    bool                      refused; /* for good */
    int                       made;
    cudaError_t               fault; /* the first one of what was queued apart */
};

/* What this thread gathers; NULL: nothing. */
static _Thread_local struct cuda_gather *gathering;
/* For threads that wait for an event which another one has gathered. */
static pthread_mutex_t recorded_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  recorded = PTHREAD_COND_INITIALIZER;

static struct cuda_gather *gather_of(const struct sac_device_stream *stream)
{
    return gathering && gathering->stream == stream && !gathering->apart ? gathering : NULL;
}

/* ---- pieces ---- */

void cuda_pieces_free(struct cuda_pieces **pieces_at)
{
    struct cuda_pieces *p = *pieces_at;
    *pieces_at = NULL;
    if (!p)
        return;
    sac_free(p->piece);
    sac_free(p->params);
    sac_free(p->bytes);
    sac_free(p);
}

static struct piece *add_piece(struct cuda_pieces *p, enum piece_kind kind)
{
    if (!sac_grow((void **)&p->piece, &p->cap, p->count + 1, sizeof *p->piece))
        return NULL;
    struct piece *piece = &p->piece[p->count++];
    memset(piece, 0, sizeof *piece);
    piece->kind = kind;
    return piece;
}

static bool add_param(struct cuda_pieces *p, const void *param, size_t bytes)
{
    const size_t at = (p->byte_count + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
    if (!sac_grow((void **)&p->params, &p->param_cap, p->param_count + 1, sizeof *p->params) ||
        !sac_grow((void **)&p->bytes, &p->byte_cap, at + bytes, 1))
        return false;
    memcpy(p->bytes + at, param, bytes);
    p->params[p->param_count++] = (struct param){at, bytes};
    p->byte_count = at + bytes;
    return true;
}

/* Where they are until more are added: places [PARAMS_MAX]. */
static void **params_of(const struct cuda_pieces *p, const struct piece *piece, void **places)
{
    for (size_t i = 0; i < piece->count; i++)
        places[i] = p->bytes + p->params[piece->first + i].at;
    return places;
}

static bool has_same_params(const struct cuda_pieces *a, const struct piece *of_a,
                            const struct cuda_pieces *b, const struct piece *of_b)
{
    bool same = memcmp(&of_a->grid, &of_b->grid, sizeof of_a->grid) == 0 &&
                memcmp(&of_a->block, &of_b->block, sizeof of_a->block) == 0;
    for (size_t i = 0; same && i < of_a->count; i++) {
        const struct param *x = &a->params[of_a->first + i], *y = &b->params[of_b->first + i];
        same = memcmp(a->bytes + x->at, b->bytes + y->at, x->bytes) == 0;
    }
    return same;
}

/* The same but for parameters: a kernel's number and sizes of them are its own. */
static bool is_like(const struct cuda_pieces *a, const struct cuda_pieces *b)
{
    bool like = a->count == b->count;
    for (size_t i = 0; like && i < a->count; i++) {
        const struct piece *x = &a->piece[i], *y = &b->piece[i];
        like = x->kind == y->kind && x->kernel == y->kernel && x->graph_id == y->graph_id;
    }
    return like;
}

/* ---- one by one ---- */

static cudaError_t queue_piece(const struct cuda_pieces *p, const struct piece *piece,
                               cudaStream_t stream)
{
    void *places[PARAMS_MAX];
    switch (piece->kind) {
    case PIECE_KERNEL:
        return cuda_launch_kernel(piece->kernel, piece->grid, piece->block, 0, 1,
                                  (const void *const *)params_of(p, piece, places), stream);
    case PIECE_GRAPH: return cudaGraphLaunch(piece->graph->exec, stream);
    case PIECE_EVENT: break;
    }
    return cudaEventRecord(piece->event, stream);
}

static void keep_fault(struct cuda_gather *g, cudaError_t res)
{
    if (g->fault == cudaSuccess)
        g->fault = res;
}

/* Threads may wait for them. */
static void record_behind(struct cuda_gather *g)
{
    for (size_t i = 0; i < g->behind_count; i++) {
        struct sac_event *event = g->behind[i];
        if (!event->timed)
            keep_fault(g, cudaEventRecord(event->handle, g->stream->handle));
        atomic_store(&event->gathered, NULL);
    }
    g->behind_count = 0;
    pthread_mutex_lock(&recorded_lock);
    pthread_cond_broadcast(&recorded);
    pthread_mutex_unlock(&recorded_lock);
}

static void queue_apart(struct cuda_gather *g)
{
    const struct cuda_pieces *p = g->pieces;
    g->apart = true;
    for (size_t i = 0; i < p->count; i++)
        keep_fault(g, queue_piece(p, &p->piece[i], g->stream->handle));
    record_behind(g);
}

void cuda_gather_part(struct sac_device_stream *stream)
{
    struct cuda_gather *g = gather_of(stream);
    if (g && cuda_enter(stream->dev) == SAC_OK) {
        queue_apart(g);
        cuda_leave();
    }
}

void cuda_gather_part_all(void)
{
    if (gathering)
        cuda_gather_part(gathering->stream);
}

/* ---- what is queued ---- */

static bool gather_kernel(struct cuda_gather *g, const void *kernel, dim3 grid, dim3 block,
                          const void *const *params, const size_t *bytes, int count)
{
    struct cuda_pieces *p = g->pieces;
    struct piece       *piece = count <= PARAMS_MAX ? add_piece(p, PIECE_KERNEL) : NULL;
    if (!piece)
        return false;
    piece->kernel = kernel;
    piece->grid = grid;
    piece->block = block;
    piece->first = p->param_count;
    piece->count = (size_t)count;
    for (int i = 0; i < count; i++)
        if (!add_param(p, params[i], bytes[i])) {
            p->count--;
            return false;
        }
    return true;
}

void cuda_queue_kernel(const void *kernel, dim3 grid, dim3 block, const void *const *params,
                       const size_t *bytes, int count, cudaStream_t stream)
{
    struct cuda_gather *g =
        gathering && !gathering->apart && gathering->stream->handle == stream ? gathering : NULL;
    if (g && gather_kernel(g, kernel, grid, block, params, bytes, count))
        return;
    if (g)
        queue_apart(g);
    cuda_launch_kernel(kernel, grid, block, 0, 1, params, stream);
}

bool cuda_gather_graph(const struct sac_device_stream *stream, struct sac_device_graph *graph)
{
    struct cuda_gather *g = gather_of(stream);
    struct piece       *piece = g ? add_piece(g->pieces, PIECE_GRAPH) : NULL;
    if (!piece) {
        if (g)
            queue_apart(g);
        return false;
    }
    piece->graph = graph;
    piece->graph_id = graph->id;
    return true;
}

static bool add_behind(struct cuda_gather *g, struct sac_event *event)
{
    if (atomic_load(&event->gathered) && !event->timed)
        return true; /* it is behind all */
    if (!sac_grow((void **)&g->behind, &g->behind_cap, g->behind_count + 1, sizeof(*g->behind)))
        return false;
    struct piece *piece = event->timed ? add_piece(g->pieces, PIECE_EVENT) : NULL;
    if (event->timed && !piece)
        return false;
    if (piece)
        piece->event = event->handle;
    g->behind[g->behind_count++] = event;
    atomic_store(&event->gathered, g->stream);
    return true;
}

bool cuda_gather_event(const struct sac_device_stream *stream, struct sac_event *event)
{
    struct cuda_gather *g = gather_of(stream);
    if (atomic_load(&event->gathered) != stream)
        cuda_gather_settle(event); /* the other record comes before this one */
    if (g && !add_behind(g, event))
        queue_apart(g);
    return g && !g->apart;
}

bool cuda_gather_has(const struct sac_device_stream *stream, const struct sac_event *event)
{
    return gather_of(stream) && atomic_load(&event->gathered) == stream;
}

void cuda_gather_release(struct sac_event *event)
{
    if (gathering && atomic_load(&event->gathered) == gathering->stream)
        cuda_gather_part(gathering->stream);
}

/* Another thread launches within microseconds what it gathers. */
void cuda_gather_settle(struct sac_event *event)
{
    cuda_gather_release(event);
    if (!atomic_load(&event->gathered))
        return;
    pthread_mutex_lock(&recorded_lock);
    while (atomic_load(&event->gathered))
        pthread_cond_wait(&recorded, &recorded_lock);
    pthread_mutex_unlock(&recorded_lock);
}

/* ---- as one ---- */

static void fill_node(const struct cuda_pieces *p, const struct piece *piece, void **places,
                      struct cudaKernelNodeParams *out)
{
    *out = (struct cudaKernelNodeParams){
        .func = (void *)(uintptr_t)piece->kernel,
        .gridDim = piece->grid,
        .blockDim = piece->block,
        .kernelParams = params_of(p, piece, places),
    };
}

static cudaError_t add_node(const struct cuda_pieces *p, struct piece *piece, cudaGraph_t graph,
                            const cudaGraphNode_t *after)
{
    const size_t                count = after ? 1 : 0;
    struct cudaKernelNodeParams params;
    void                       *places[PARAMS_MAX];
    switch (piece->kind) {
    case PIECE_KERNEL:
        fill_node(p, piece, places, &params);
        return cudaGraphAddKernelNode(&piece->node, graph, after, count, &params);
    case PIECE_GRAPH:
        return cudaGraphAddChildGraphNode(&piece->node, graph, after, count, piece->graph->graph);
    case PIECE_EVENT: break;
    }
    return cudaGraphAddEventRecordNode(&piece->node, graph, after, count, piece->event);
}

static cudaError_t make_graph(struct cuda_gather *g, struct sac_device_graph *out)
{
    struct cuda_pieces    *p = g->pieces;
    const cudaGraphNode_t *after = NULL;
    cudaError_t            res = cudaGraphCreate(&out->graph, 0);
    for (size_t i = 0; i < p->count && res == cudaSuccess; i++) {
        res = add_node(p, &p->piece[i], out->graph, after);
        after = &p->piece[i].node;
    }
    return res == cudaSuccess ? cudaGraphInstantiate(&out->exec, out->graph, 0) : res;
}

static cudaError_t renew_node(struct cuda_pieces *had, const struct piece *old,
                              struct cuda_pieces *p, struct piece *piece, cudaGraphExec_t exec)
{
    struct cudaKernelNodeParams params;
    void                       *places[PARAMS_MAX];
    piece->node = old->node;
    if (piece->kind == PIECE_KERNEL && !has_same_params(had, old, p, piece)) {
        fill_node(p, piece, places, &params);
        return cudaGraphExecKernelNodeSetParams(exec, piece->node, &params);
    }
    if (piece->kind == PIECE_EVENT && piece->event != old->event)
        return cudaGraphExecEventRecordNodeSetEvent(exec, piece->node, piece->event);
    return cudaSuccess;
}

static cudaError_t renew_graph(struct cuda_gather *g, struct sac_device_graph *graph)
{
    struct cuda_pieces *p = g->pieces, *had = graph->pieces;
    cudaError_t         res = cudaSuccess;
    for (size_t i = 0; i < p->count && res == cudaSuccess; i++)
        res = renew_node(had, &had->piece[i], p, &p->piece[i], graph->exec);
    return res;
}

/* The one that the pieces fit becomes the list's first; false: there is none. */
static bool find_graph(const struct cuda_gather *g, struct sac_device_graph **list)
{
    for (struct sac_device_graph **at = list; *at; at = &(*at)->next)
        if (is_like((*at)->pieces, g->pieces)) {
            struct sac_device_graph *found = *at;
            *at = found->next;
            found->next = *list;
            *list = found;
            return true;
        }
    return false;
}

static void drop_last(struct sac_device *dev, struct sac_device_graph **list)
{
    struct sac_device_graph **at = list;
    int                       count = 0;
    for (; *at && ++count < GRAPHS_MAX; at = &(*at)->next) {
    }
    cuda_graph_destroy(dev, at);
}

static cudaError_t add_graph(struct cuda_gather *g, struct sac_device_graph **list)
{
    struct sac_device_graph *made = g->made < MADE_MAX ? cuda_graph_new() : NULL;
    if (made)
        made->pieces = sac_new(struct cuda_pieces); /* those of the gathering take its place */
    cudaError_t res = made && made->pieces ? make_graph(g, made) : cudaErrorNotSupported;
    if (res != cudaSuccess) {
        cuda_graph_destroy(g->stream->dev, &made);
        return res;
    }
    g->made++;
    drop_last(g->stream->dev, list);
    made->next = *list;
    *list = made;
    return cudaSuccess;
}

static cudaError_t launch_as_one(struct cuda_gather *g, struct sac_device_graph **list)
{
    cudaError_t res = find_graph(g, list) ? renew_graph(g, *list) : add_graph(g, list);
    if (res == cudaSuccess)
        res = cudaGraphLaunch((*list)->exec, g->stream->handle);
    if (res != cudaSuccess)
        return res;
    struct cuda_pieces *old = (*list)->pieces;
    (*list)->pieces = g->pieces;
    g->pieces = old;
    record_behind(g);
    return cudaSuccess;
}

/* With the same results, but more slowly. */
static void refuse(struct cuda_gather *g, struct sac_device_graph **list, cudaError_t why)
{
    struct sac_device *dev = g->stream->dev;
    cudaGetLastError();
    g->refused = true;
    cuda_graph_destroy(dev, list);
    sac_log(dev->ctx, SAC_LOG_DEBUG, "%s: batches are not one launch: %s", dev->name,
            g->made < MADE_MAX ? cudaGetErrorString(why) : "each is another one");
    queue_apart(g);
}

/* ---- the device's entries ---- */

static bool open_gather(struct sac_device_stream *stream)
{
    struct cuda_gather *g = stream->gather ? stream->gather : sac_new(struct cuda_gather);
    stream->gather = g;
    if (g && !g->pieces)
        g->pieces = sac_new(struct cuda_pieces);
    if (g)
        g->stream = stream;
    return g && g->pieces;
}

void cuda_gather_finish(struct sac_device_stream *stream)
{
    struct cuda_gather *g = stream->gather;
    if (!g)
        return;
    cuda_pieces_free(&g->pieces);
    sac_free(g->behind);
    sac_free(g);
    stream->gather = NULL;
}

/* Without memory for it nothing is gathered. */
void cuda_gather_begin(struct sac_device *dev, struct sac_device_stream *stream)
{
    (void)dev;
    if (!open_gather(stream))
        return;
    struct cuda_gather *g = stream->gather;
    g->pieces->count = g->pieces->param_count = g->pieces->byte_count = 0;
    g->apart = g->refused;
    g->fault = cudaSuccess;
    gathering = g;
}

sac_result cuda_gather_end(struct sac_device *dev, struct sac_device_stream *stream,
                           struct sac_device_graph **graph, bool *one)
{
    struct cuda_gather *g = gathering;
    *one = false;
    gathering = NULL;
    if (!g || g->stream != stream)
        return SAC_OK;
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    if (!g->apart && (!graph || g->pieces->count == 0)) {
        queue_apart(g);
    } else if (!g->apart) {
        const cudaError_t done = launch_as_one(g, graph);
        *one = done == cudaSuccess;
        if (!*one)
            refuse(g, graph, done);
    }
    cuda_leave();
    return cuda_check(dev, g->fault, "what was gathered");
}
