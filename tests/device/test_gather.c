/* SPDX-License-Identifier: Apache-2.0 */
/* What a CUDA stream gathers (device/cuda/gather.c), with a CUDA that only writes down what it is
 * told to run. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/common.h"
#include "device/cuda/launch.h"
#include "tests/test.h"

/* ---- CUDA ---- */

enum { NODES_MAX = 16 };
struct CUgraphNode_st {
    char name; /* of a kernel, in upper case a graph, '*' an event */
    int  param;
    int *event;
};
struct CUgraph_st {
    struct CUgraphNode_st node[NODES_MAX];
    int                   count;
};

static struct {
    char ran[512]; /* names with parameters, "a1 b2 G *"; between launches of graphs bars */
    int  made, renewed, destroyed;
    bool no_graphs;
} cuda;

static void write_node(char name, int param)
{
    const size_t at = strlen(cuda.ran);
    snprintf(cuda.ran + at, sizeof cuda.ran - at, name == '*' ? " *" : " %c%d", name, param);
}

static void run_graph(const struct CUgraph_st *g)
{
    strcat(cuda.ran, " (");
    for (int i = 0; i < g->count; i++) {
        if (g->node[i].event)
            ++*g->node[i].event;
        write_node(g->node[i].name, g->node[i].param);
    }
    strcat(cuda.ran, " )");
}

cudaError_t cuda_launch_kernel(const void *kernel, dim3 grid, dim3 block, size_t shared,
                               unsigned cluster, const void *const *params, cudaStream_t stream)
{
    (void)grid, (void)block, (void)shared, (void)cluster, (void)stream;
    write_node(*(const char *)kernel, *(const int *)params[0]);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    (void)stream;
    run_graph((struct CUgraph_st *)exec);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)stream;
    ++*(int *)event;
    write_node('*', 0);
    return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof **out);
    return cudaSuccess;
}

static cudaGraphNode_t add_node(cudaGraph_t g, const cudaGraphNode_t *after, size_t count)
{
    assert_int_equal(count, g->count > 0);
    assert_true(!count || *after == &g->node[g->count - 1]);
    assert_true(g->count < NODES_MAX);
    return &g->node[g->count++];
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t g,
                                   const cudaGraphNode_t *after, size_t count,
                                   const struct cudaKernelNodeParams *p)
{
    *out = add_node(g, after, count);
    **out = (struct CUgraphNode_st){.name = *(char *)p->func, .param = *(int *)p->kernelParams[0]};
    return cudaSuccess;
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *out, cudaGraph_t g,
                                       const cudaGraphNode_t *after, size_t count,
                                       cudaGraph_t child)
{
    *out = add_node(g, after, count);
    **out = child->node[0];
    return cudaSuccess;
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *out, cudaGraph_t g,
                                        const cudaGraphNode_t *after, size_t count,
                                        cudaEvent_t event)
{
    *out = add_node(g, after, count);
    **out = (struct CUgraphNode_st){.name = '*', .event = (int *)event};
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags)
{
    (void)flags;
    *out = (cudaGraphExec_t)g;
    cuda.made++;
    return cuda.no_graphs ? cudaErrorNotSupported : cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *p)
{
    const struct CUgraph_st *g = (struct CUgraph_st *)exec;
    assert_true(node >= g->node && node < g->node + g->count);
    node->param = *(int *)p->kernelParams[0];
    cuda.renewed++;
    return cudaSuccess;
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event)
{
    (void)exec;
    node->event = (int *)event;
    cuda.renewed++;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t res)
{
    (void)res;
    return "as the test asks";
}

/* ---- the rest of the device ---- */

sac_result cuda_enter(struct sac_device *dev)
{
    (void)dev;
    return SAC_OK;
}

void cuda_leave(void)
{
}

sac_result cuda_check(struct sac_device *dev, cudaError_t res, const char *doing)
{
    (void)dev, (void)doing;
    return res == cudaSuccess ? SAC_OK : SAC_ERR_DEVICE;
}

struct sac_device_graph *cuda_graph_new(void)
{
    static uint64_t          last;
    struct sac_device_graph *g = sac_new(struct sac_device_graph);
    g->id = ++last;
    return g;
}

void cuda_graph_destroy(struct sac_device *dev, struct sac_device_graph **list)
{
    (void)dev;
    while (*list) {
        struct sac_device_graph *g = *list;
        *list = g->next;
        free(g->graph);
        cuda_pieces_free(&g->pieces);
        sac_free(g);
        cuda.destroyed++;
    }
}

/* ---- tests ---- */

static struct sac_device        dev;
static struct sac_device_stream stream, other;
static struct sac_device_graph *graphs;
static int                      records[4];
static struct sac_event         event[4];

static int set_up(void **state)
{
    (void)state;
    memset(&cuda, 0, sizeof cuda);
    memset(&stream, 0, sizeof stream);
    dev.ctx = test_context();
    stream.dev = other.dev = &dev;
    stream.handle = (cudaStream_t)&stream;
    for (int i = 0; i < 4; i++) {
        records[i] = 0;
        event[i].dev = &dev;
        event[i].handle = (cudaEvent_t)&records[i];
        event[i].timed = i >= 2;
        atomic_store(&event[i].gathered, NULL);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cuda_graph_destroy(&dev, &graphs);
    cuda_gather_finish(&stream);
    return 0;
}

/* Kernels of one parameter; a name of two letters: with one more, of another size. */
static void launch(const char *name, int param)
{
    const double more = param;
    const void  *params[] = {&param, &more};
    const size_t bytes[] = {sizeof param, sizeof more};
    const dim3   one = {1, 1, 1};
    cuda_queue_kernel(name, one, one, params, bytes, (int)strlen(name), stream.handle);
}

static bool end(void)
{
    bool one;
    assert_int_equal(cuda_gather_end(&dev, &stream, &graphs, &one), SAC_OK);
    return one;
}

static void expect_ran(const char *what)
{
    assert_string_equal(cuda.ran, what);
    cuda.ran[0] = '\0';
}

static const char *const A = "a", *const B = "b ", *const C = "c";

static void what_comes_again_is_renewed(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        char want[64];
        cuda_gather_begin(&dev, &stream);
        launch(A, i);
        launch(B, 7);
        expect_ran("");
        assert_true(end());
        snprintf(want, sizeof want, " ( a%d b7 )", i);
        expect_ran(want);
    }
    assert_int_equal(cuda.made, 1);
    assert_int_equal(cuda.renewed, 4); /* b's are the same */
    launch(C, 1);
    expect_ran(" c1");
}

/* Other kernels are another graph, and the older ones are kept, up to a number. */
static void graphs_take_turns(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++) {
        cuda_gather_begin(&dev, &stream);
        launch(i % 3 == 0 ? A : i % 3 == 1 ? B : C, i);
        assert_true(end());
    }
    assert_int_equal(cuda.made, 3);
    assert_int_equal(cuda.renewed, 6);
    for (int i = 0; i < 80; i++) { /* more kinds than are kept: it gives up */
        cuda_gather_begin(&dev, &stream);
        for (int k = 0; k < i % 15 + 2; k++)
            launch(A, k);
        cuda.ran[0] = '\0';
        const bool one = end();
        assert_true(i < 64 || !one);
    }
    assert_true(cuda.made < 70);
    assert_null(graphs);
    cuda.ran[0] = '\0';
    cuda_gather_begin(&dev, &stream);
    launch(A, 1);
    expect_ran(" a1");
    assert_false(end());
}

static void a_graph_is_a_part(void **state)
{
    (void)state;
    struct sac_device_graph net = {.id = 1000, .graph = calloc(1, sizeof(struct CUgraph_st))};
    net.graph->count = 1;
    net.graph->node[0] = (struct CUgraphNode_st){.name = 'N'};
    net.exec = (cudaGraphExec_t)net.graph;
    for (int i = 0; i < 3; i++) {
        net.id += i == 2; /* captured anew */
        cuda_gather_begin(&dev, &stream);
        launch(A, i);
        assert_true(cuda_gather_graph(&stream, &net));
        launch(C, i);
        assert_true(end());
    }
    expect_ran(" ( a0 N0 c0 ) ( a1 N0 c1 ) ( a2 N0 c2 )");
    assert_int_equal(cuda.made, 2);
    assert_false(cuda_gather_graph(&stream, &net));
    free(net.graph);
}

/* Events come behind all; timed ones stand where they were recorded. */
static void events_wait_for_the_launch(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        cuda_gather_begin(&dev, &stream);
        assert_true(cuda_gather_event(&stream, &event[2 + i]));
        launch(A, i);
        assert_true(cuda_gather_event(&stream, &event[0]));
        assert_true(cuda_gather_event(&stream, &event[0]));
        assert_true(cuda_gather_has(&stream, &event[0]));
        assert_false(cuda_gather_has(&other, &event[0]));
        launch(C, i);
        assert_int_equal(records[0], i);
        assert_true(end());
        assert_false(cuda_gather_has(&stream, &event[0]));
        assert_null(atomic_load(&event[2 + i].gathered));
        assert_int_equal(records[0], i + 1);
    }
    expect_ran(" ( * a0 c0 ) * ( * a1 c1 ) *");
    assert_int_equal(records[2], 1);
    assert_int_equal(records[3], 1);
    assert_int_equal(cuda.made, 1);
    assert_false(cuda_gather_event(&stream, &event[0]));
}

/* What cannot be gathered, and who waits for what is, queues it; in order, once. */
static void other_work_queues_what_is_gathered(void **state)
{
    (void)state;
    for (int how = 0; how < 5; how++) {
        cuda_gather_begin(&dev, &stream);
        launch(A, 1);
        assert_true(cuda_gather_event(&stream, &event[0]));
        switch (how) {
        case 0: assert_ptr_equal(cuda_stream_of(&dev, &stream), stream.handle); break;
        case 1: cuda_gather_settle(&event[0]); break;
        case 2: cuda_gather_part_all(); break;
        case 3: cuda_gather_release(&event[0]); break;
        default: {
            const struct sac_device_stream *none = &other;
            cuda_gather_part(&other); /* another one's */
            assert_false(cuda_gather_has(none, &event[0]));
            expect_ran("");
            bool one;
            assert_int_equal(cuda_gather_end(&dev, &stream, NULL, &one), SAC_OK);
            assert_false(one);
        }
        }
        expect_ran(" a1 *");
        launch(C, 2);
        assert_false(end());
        expect_ran(" c2");
    }
    assert_int_equal(cuda.made, 0);
}

static void without_graphs_all_is_queued_one_by_one(void **state)
{
    (void)state;
    cuda.no_graphs = true;
    for (int i = 0; i < 3; i++) {
        cuda_gather_begin(&dev, &stream);
        launch(A, i);
        launch(B, i);
        assert_false(end());
    }
    expect_ran(" a0 b0 a1 b1 a2 b2");
    assert_int_equal(cuda.made, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_comes_again_is_renewed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(graphs_take_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_graph_is_a_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(events_wait_for_the_launch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_work_queues_what_is_gathered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_graphs_all_is_queued_one_by_one, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("device/gather", tests, NULL, NULL);
}
