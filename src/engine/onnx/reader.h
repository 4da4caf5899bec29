/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the ONNX reader. */
#ifndef SAC_ENGINE_ONNX_READER_H
#define SAC_ENGINE_ONNX_READER_H

#include "engine/onnx/onnx.h"
#include "engine/onnx/wire.h"

enum {
    SAC_ONNX_NAME_MAX = 4096,     /* bytes */
    SAC_ONNX_DEPTH_MAX = 16,      /* subgraphs in subgraphs, functions in functions */
    SAC_ONNX_NODES_MAX = 1 << 16, /* after expanding functions, which may multiply them */
    SAC_ONNX_DOMAINS_MAX = 32
};

struct sac_onnx_function {
    struct sac_wire body, domain, name, overload;
};

struct sac_onnx_opset {
    struct sac_wire domain;
    int64_t         version;
};
struct sac_onnx_opsets {
    struct sac_onnx_opset items[SAC_ONNX_DOMAINS_MAX];
    int                   count;
};

struct sac_onnx_reader {
    sac_context                  *ctx;
    const struct sac_onnx_source *source;
    struct sac_arena             *arena;
    struct sac_onnx              *out;
    struct sac_onnx_function     *functions; /* [function_count] */
    int                           function_count;
    int                           node_total; /* created so far, in all graphs */
};

/* Names of one graph, or of one call of a function; outer scopes are searched too. */
struct sac_onnx_scope {
    const struct sac_onnx_scope *outer;
    struct sac_onnx_name        *slots; /* open addressing, NULL name: free */
    size_t                       cap, count;
};
struct sac_onnx_name {
    struct sac_wire   name;
    struct sac_value *value; /* NULL: bound to nothing (an optional input left out) */
};
bool sac_onnx_scope_bind(struct sac_onnx_scope *s, struct sac_wire name, struct sac_value *v);
const struct sac_onnx_name *sac_onnx_scope_own(const struct sac_onnx_scope *s,
                                               struct sac_wire              name);
const struct sac_onnx_name *sac_onnx_scope_find(const struct sac_onnx_scope *s,
                                                struct sac_wire              name);
void                        sac_onnx_scope_finish(struct sac_onnx_scope *s);

bool sac_wire_equals(struct sac_wire a, struct sac_wire b);
bool sac_wire_is(struct sac_wire a, const char *s);
/* For messages: truncated to size, control characters as '?'. Returns buf. */
const char *sac_onnx_printable(struct sac_wire s, char *buf, size_t size);
/* Copied into the arena, checked against SAC_ONNX_NAME_MAX, control characters as '?'. */
sac_result sac_onnx_name_copy(struct sac_onnx_reader *r, struct sac_wire s, const char **out);

/* Where nodes are being read: a graph, or the body of a function that is expanded into one. */
struct sac_onnx_place {
    struct sac_onnx_reader       *r;
    struct sac_graph             *g;
    struct sac_onnx_scope        *names;
    const struct sac_onnx_opsets *opsets;
    const struct sac_node        *caller; /* the function's call: its attributes; NULL outside */
    const struct sac_wire *function;      /* its FunctionProto: default attributes; NULL outside */
    int                    depth;
};
/* A GraphProto into g, whose names are looked up in outer's scope too. */
sac_result sac_onnx_read_graph(const struct sac_onnx_place *outer, struct sac_wire w,
                               struct sac_graph *g);
/* The attributes of a NodeProto. */
sac_result sac_onnx_read_attrs(const struct sac_onnx_place *p, struct sac_wire node,
                               struct sac_node *n);

/* OperatorSetIdProto: number is the list's field in the message. */
sac_result sac_onnx_read_opsets(struct sac_onnx_reader *r, struct sac_wire message, uint32_t number,
                                struct sac_onnx_opsets *out);
int        sac_onnx_opset_of(const struct sac_onnx_opsets *opsets, struct sac_wire domain);
struct sac_wire sac_onnx_plain_domain(struct sac_wire domain);

/* Set the error; return SAC_ERR_FORMAT and SAC_ERR_MEMORY. */
sac_result sac_onnx_damaged(struct sac_onnx_reader *r, const char *what, const struct sac_wire *w);
sac_result sac_onnx_no_memory(struct sac_onnx_reader *r);

enum sac_dtype sac_onnx_dtype(uint64_t data_type); /* SAC_DTYPE_NONE: none of ours */
const char    *sac_onnx_dtype_name(uint64_t data_type);

/* A TensorProto. Fills dtype, rank, dims and data of v; *name is the tensor's own. */
sac_result sac_onnx_tensor(struct sac_onnx_reader *r, struct sac_wire w, struct sac_value *v,
                           struct sac_wire *name);

/* The bytes [offset, offset+length) of a file in the model's folder, mapped until sac_onnx_finish.
 * length UINT64_MAX: to its end. */
sac_result sac_onnx_external(struct sac_onnx_reader *r, struct sac_wire location, uint64_t offset,
                             uint64_t length, const uint8_t **out, size_t *size);

#endif
