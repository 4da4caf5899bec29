/* SPDX-License-Identifier: Apache-2.0 */
/* The graph, the engine's ground floor: values and the nodes that compute them, as read from the
 * file and then rewritten by passes. It knows nothing of operators but their names: a node's row is
 * a pointer that ops/ fills in.
 *
 * The whole graph is in one arena and is freed at once. Constant data points into the mapped model
 * file or into the arena. Nodes are in topological order. Read here: this header; who makes and who
 * reads a value is in links.c, the rest in graph.c.
 */
#ifndef SAC_ENGINE_GRAPH_GRAPH_H
#define SAC_ENGINE_GRAPH_GRAPH_H

#include <saccade/tensor.h>
#include "base/base.h"

enum { SAC_DIM_OPEN = -1 };

/* How a value lies in memory. Graph passes and kernels agree on it; PLAIN is the ONNX order. */
enum sac_layout {
    SAC_LAYOUT_PLAIN = 0,
    SAC_LAYOUT_CHANNELS_LAST, /* [N,spatial...,C] for a logical [N,C,spatial...] */
    /* The same two layouts with a float32 value stored as float16: half precision is treated as a
     * layout, so the planner inserts a conversion where two kernels disagree on it. */
    SAC_LAYOUT_PLAIN_HALF,
    SAC_LAYOUT_CHANNELS_LAST_HALF,
    SAC_LAYOUT_COUNT
};
static inline bool sac_layout_is_last(enum sac_layout l)
{
    return l == SAC_LAYOUT_CHANNELS_LAST || l == SAC_LAYOUT_CHANNELS_LAST_HALF;
}
static inline bool sac_layout_is_half(enum sac_layout l)
{
    return l == SAC_LAYOUT_PLAIN_HALF || l == SAC_LAYOUT_CHANNELS_LAST_HALF;
}
static inline enum sac_layout sac_layout_of(bool last, bool half)
{
    return (enum sac_layout)((last ? SAC_LAYOUT_CHANNELS_LAST : SAC_LAYOUT_PLAIN) +
                             (half ? SAC_LAYOUT_PLAIN_HALF - SAC_LAYOUT_PLAIN : 0));
}

struct sac_node;

struct sac_value {
    int            id; /* unique in the model: below graph->id_count of the outermost graph */
    const char    *name;
    enum sac_dtype dtype;              /* SAC_DTYPE_NONE until inferred */
    int            rank;               /* -1 until inferred */
    int64_t        dims[SAC_RANK_MAX]; /* SAC_DIM_OPEN where open */
    int64_t        batches; /* its first dim is open and so many times the batch; else 0 */
    bool           counts;  /* integers that shapes tell: 0, 1, 2, ... in ONNX's order */
    bool           shared;  /* a constant whose data another may have, too */
    const void    *data;    /* constant: dense, aligned to its dtype; NULL otherwise */
    /* Set by sac_graph_refresh and sac_graph_update: */
    struct sac_node  *producer; /* NULL: graph input or constant */
    int               uses;     /* by nodes (also of subgraphs) and graph outputs */
    struct sac_node **readers;  /* the nodes among them, once for each use; those of a subgraph as
                                   the node of the outermost graph that has it */
    size_t reader_count, reader_cap;
};

enum sac_attr_kind {
    SAC_ATTR_FLOAT = 1,
    SAC_ATTR_INT = 2,
    SAC_ATTR_STRING = 3,
    SAC_ATTR_TENSOR = 4,
    SAC_ATTR_GRAPH = 5,
    SAC_ATTR_FLOATS = 6,
    SAC_ATTR_INTS = 7,
    SAC_ATTR_STRINGS = 8
};
struct sac_attr {
    const char        *name;
    enum sac_attr_kind kind;
    size_t             count;  /* of floats, ints, strings; bytes of a STRING */
    bool               shared; /* another attribute has the same tensor */
    union {
        float              f;
        int64_t            i;
        const char        *s; /* STRING: terminated copy */
        const float       *floats;
        const int64_t     *ints;
        const char *const *strings;
        struct sac_value  *tensor; /* constant, not in graph->values */
        struct sac_graph  *graph;
    };
};

struct sac_node {
    const struct sac_op *op;   /* NULL: no row has its name */
    const char          *name; /* may be empty */
    const char          *op_type, *domain;
    int                  opset; /* of its domain, as the file says */
    int                  input_count, output_count;
    struct sac_value   **inputs;  /* NULL entry: optional, left out */
    struct sac_value   **outputs; /* NULL entry: optional, left out */
    struct sac_attr     *attrs;
    int                  attr_count;
    int                  index; /* position in the file, for messages */
    bool                 piece; /* of a node of the file that was divided, beside that node */
    bool                 gone;  /* nobody uses it: sac_graph_refresh removes it */
    /* Of links.c: the values among whose readers it is; does it wait for an update, and before
     * whom? */
    struct sac_value **read;
    size_t             read_count, read_cap, old_count;
    bool               waits;
    struct sac_node   *next_waiting;
};

struct sac_graph {
    sac_context       *ctx;
    struct sac_arena  *arena;
    const char        *name;
    struct sac_value **values;
    size_t             value_count, value_cap;
    struct sac_node  **nodes;
    size_t             node_count, node_cap;
    struct sac_value **inputs, **outputs; /* inputs without those that have a constant default */
    int                input_count, output_count;
    struct sac_graph  *outer;    /* of a subgraph: its values may be used by name */
    int                id_count; /* outermost graph only: values of it and all its subgraphs */
    /* of links.c: how many nodes it has seen, and those of them that wait for an update */
    size_t           linked_count;
    struct sac_node *first_waiting, *last_waiting;
};

/* ---- building and rewriting; NULL or SAC_ERR_MEMORY, with the sentence set, when memory runs out
 * ---- */

struct sac_graph *sac_graph_create(sac_context *ctx, struct sac_arena *arena,
                                   struct sac_graph *outer);
/* A new value. name is copied; it is for messages and need not be unique. */
struct sac_value *sac_graph_value(struct sac_graph *g, const char *name);
/* A new constant; data is copied into the arena (NULL: zeroed, to be filled through the result). */
struct sac_value *sac_graph_constant(struct sac_graph *g, const char *name,
                                     const struct sac_tensor_desc *desc, const void *data);
/* Nobody will read the constant v: its data is given back, if it is large and the arena's. */
void sac_value_forget(struct sac_graph *g, struct sac_value *v);
/* A new node at the end (sac_graph_refresh moves it to its place) with its row, inputs and outputs
 * NULL: sac_op_node looks the row up. opset and index are those of `like`, the node that it
 * replaces or joins. */
struct sac_node *sac_graph_node(struct sac_graph *g, const char *domain, const char *op_type,
                                int inputs, int outputs, const struct sac_node *like);
sac_result sac_node_set_int(struct sac_graph *g, struct sac_node *n, const char *name, int64_t v);
sac_result sac_node_set_float(struct sac_graph *g, struct sac_node *n, const char *name, float v);
sac_result sac_node_set_string(struct sac_graph *g, struct sac_node *n, const char *name,
                               const char *v);
sac_result sac_node_set_ints(struct sac_graph *g, struct sac_node *n, const char *name,
                             const int64_t *v, size_t count);
sac_result sac_node_set_floats(struct sac_graph *g, struct sac_node *n, const char *name,
                               const float *v, size_t count);
/* Share an attribute of another node (nothing when it has none of that name). */
sac_result sac_node_copy_attr(struct sac_graph *g, struct sac_node *n, const char *name,
                              const struct sac_node *from);
/* Let every reader of `from` (nodes, subgraphs, graph outputs) read `to`. Who is a reader, and the
 * uses by nodes, stay what they were until the next update. */
void sac_graph_replace(struct sac_graph *g, struct sac_value *from, struct sac_value *to);
/* After rewriting: removes nodes whose results are unused, sorts the rest, updates producers, uses
 * and readers, and forgets constants that nobody reads.
 * Errors   SAC_ERR_FORMAT for a cycle. */
sac_result sac_graph_refresh(struct sac_graph *g);
/* n has other inputs or outputs: the next update looks at it. */
void sac_graph_changed(struct sac_graph *g, struct sac_node *n);
/* After rewriting around n, in time that depends on what changed and not on the graph: producers,
 * uses and readers of what is read and made by n, by nodes made since, by readers of values that
 * were replaced and by nodes said to have changed. Nodes whose results are unused are marked as
 * gone; they stay in their places, and new nodes at the end, until sac_graph_refresh. */
sac_result sac_graph_update(struct sac_graph *g, struct sac_node *n);
/* Are uses and producers what a refresh would find? For tests, and builds that stop at faults. */
bool sac_graph_is_linked(struct sac_graph *g);
/* The only node that reads v. NULL when there is none or more than one, when a subgraph reads v, or
 * when v is a graph output. */
struct sac_node *sac_value_only_reader(const struct sac_value *v);
/* Calls fn for each value that the node reads, including those that its subgraphs read: values from
 * outside and values inside them, which the callee can tell apart by the id. */
void sac_node_each_read(const struct sac_node *n, void (*fn)(void *user, struct sac_value *v),
                        void                  *user);
bool sac_node_has_subgraph(const struct sac_node *n);
struct sac_graph *sac_graph_root(struct sac_graph *g);

/* "layer 14 (Conv 'backbone/conv1')", for messages; returns buf. */
const char *sac_node_label(const struct sac_node *n, char *buf, size_t size);
/* The first output that somebody asked for; NULL: none. */
struct sac_value *sac_node_result(const struct sac_node *n);

const struct sac_attr *sac_node_attr(const struct sac_node *n, const char *name);
int64_t                sac_attr_int(const struct sac_node *n, const char *name, int64_t fallback);
float                  sac_attr_float(const struct sac_node *n, const char *name, float fallback);
const char *sac_attr_string(const struct sac_node *n, const char *name, const char *fallback);
/* Returns the count (0 when absent) and the array. */
size_t sac_attr_ints(const struct sac_node *n, const char *name, const int64_t **out);
size_t sac_attr_floats(const struct sac_node *n, const char *name, const float **out);

#endif
