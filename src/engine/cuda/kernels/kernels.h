/* SPDX-License-Identifier: Apache-2.0 */
/* The provider "cuda": a kernel for every operator but those that run on the host anyway.
 *
 * An operator is a row (struct ops_row, row.h), listed in rows.h. Its C file (map.c, lines.c,
 * copy.c, ...: a family of operators each) decides layouts and fills a struct of parameters when a
 * plan is created; its launcher in the .cu file of the same name queues the kernels with them and
 * decides nothing. The C files name nothing of CUDA, and the bodies compile as plain C++ too, so
 * tests without a GPU run both (tests/parity/bodies.h).
 *
 * The words:
 * - view: an index space over several operands with their strides, simplified: no dimension of
 *   one, neighbours merged where all operands lie side by side (view.c, struct ops_view)
 * - place: where an index points: its offset in each operand of a view, or its coordinates
 *   [n,c,z,y,x] in a picture (place, place5)
 * - rest: the dimensions of a view that a kernel leaves to its outer loop, because it works on the
 *   others itself (copy.cu)
 * - unit: what is read and written at once: the largest piece, 1 to 16 bytes, that all rows of a
 *   copy are made of; or eight neighbouring channels
 * - line: numbers that belong together, which are reduced, normalised or summed up; the inner view
 *   walks one, the outer view says where each begins (lines.h)
 * - team: the threads that work on one line: one, a warp, a block, or a column of a block's
 *   threads over neighbouring lines (team.cuh)
 * - held: a line whose numbers a team has in its registers, each read once (held.cuh)
 * - body: the work at one index or on one line, a struct with its parameters and a call operator;
 *   each() makes a kernel of it, or a loop on the host (each.cuh)
 * - port: an input or output of the node, by its number: an index into a launch's addresses
 *   (struct ops_ports)
 *
 * Read first: row.h and types.h, then softmax.cu with lines.c, then each.cuh and team.cuh. */
#ifndef SAC_ENGINE_CUDA_KERNELS_KERNELS_H
#define SAC_ENGINE_CUDA_KERNELS_KERNELS_H

#include <string.h>

#include "engine/cuda/kernels/lines.h"
#include "engine/cuda/kernels/row.h"
#include "engine/cuda/kernels/window.h"
#include "engine/kernel/layout.h"
#include "engine/ops/reads.h"

/* ---- layouts ---- */

/* Sets why; returns false. */
bool ops_refuse(struct sac_kernel_offer *offer, const char *fmt, ...) SAC_PRINTF(2, 3);
/* Fewer than 2^31 numbers in output 0, or a refusal. */
bool ops_small_enough(const struct sac_kernel_question *q, struct sac_kernel_offer *offer);
/* All inputs and outputs in ONNX order, inputs in their current precision, outputs in the plan's:
 * the layouts of a row that names none. */
void ops_want_plain(const struct sac_kernel_question *q, struct sac_kernel_offer *offer);
/* Layouts of rows. Exact: the same, but float32 results. Map: of elementwise operators, as the
 * inputs lie that are as large as the output. Moved: bytes are moved, so output 0 has the precision
 * of input 0. */
bool ops_exact_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer);
bool ops_map_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer);
bool ops_moved_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer);
/* Channels last, where possible, for output 0 and the inputs of its rank, in their current
 * precision. */
bool            ops_can_be_last(const struct sac_operand *o);
enum sac_layout ops_with_half(enum sac_layout layout, bool half);
enum sac_layout ops_with_last(enum sac_layout layout, bool last);
/* Float16 for float32 output i when the plan's precision is FP16. */
void ops_halve_output(const struct sac_kernel_question *q, struct sac_kernel_offer *offer, int i,
                      bool half);
/* The dtype of an operand in memory; SAC_DTYPE_NONE, which is 0, where the node leaves it out. */
int            ops_in_type(const struct sac_kernel_plan *plan, int i);
int            ops_out_type(const struct sac_kernel_plan *plan, int i);
enum ops_class ops_class_of(enum sac_dtype t);
/* What a node with the attributes y_type, y_scale and y_zero makes of its numbers. */
struct ops_bytes ops_bytes_of(const struct sac_kernel_plan *plan);

/* ---- index spaces ---- */

/* An index space under construction: dims outermost first, each operand's start and strides in
 * elements. */
enum { OPS_SHAPE_DIMS = 2 * SAC_RANK_MAX + 1 };
struct ops_shape {
    int     rank, operands;
    int64_t dims[OPS_SHAPE_DIMS];
    int64_t start[OPS_OPERANDS];
    int64_t step[OPS_OPERANDS][OPS_SHAPE_DIMS];
};
void ops_shape_init(struct ops_shape *s, int rank, const int64_t *dims);
int  ops_shape_add(struct ops_shape *s, int64_t start, const int64_t *steps);
/* Adds an operand of the plan in its layout, broadcast over the space. */
int ops_shape_in(struct ops_shape *s, const struct sac_kernel_plan *plan, int i);
int ops_shape_out(struct ops_shape *s, const struct sac_kernel_plan *plan, int i);
/* Over the dimensions of input 0, with input 0 and output 0 as the first operands; over those of
 * output 0, which is the first. */
void ops_shape_over_in(struct ops_shape *s, const struct sac_kernel_plan *plan);
void ops_shape_over_out(struct ops_shape *s, const struct sac_kernel_plan *plan);
/* Steps of an operand's own dims. */
void ops_steps_in(const struct sac_kernel_plan *plan, int i, int64_t *steps);
void ops_steps_out(const struct sac_kernel_plan *plan, int i, int64_t *steps);
/* Simplified, in the order in which operand `order` lies. False: too many dimensions. */
bool ops_view_of(const struct ops_shape *s, int order, struct ops_view *out);
/* Does operand k lie as a dense output of this view does? Is it one element? Do 31 bits count its
 * elements? */
bool ops_view_is_dense(const struct ops_view *v, int k);
bool ops_view_stands_still(const struct ops_view *v, int k);
bool ops_view_is_narrow(const struct ops_view *v, int k);
/* Does operand k move by vectors of n neighbouring elements? */
bool ops_view_is_vectors(const struct ops_view *v, int k, int n);
/* The same in units of n neighbouring elements, of which every operand takes all or, with `still`,
 * one; false when they don't fall so. Offsets of operands that move are in units then; of those
 * that stand still, in elements. stills: bit k for an operand that stands still. */
bool ops_view_units(const struct ops_view *v, int operands, int n, bool still, struct ops_view *out,
                    unsigned *stills);
/* The view of groups of n neighbours of the innermost dimension, wherever they lie: its offsets are
 * those of the first. false: they do not come in such groups. */
bool ops_view_groups(const struct ops_view *v, int operands, int n, struct ops_view *out);
/* Without a dimension: the index in it is 0. */
void               ops_view_leave_out(struct ops_view *v, int dim);
struct ops_divisor ops_divisor_of(int64_t d); /* d from 1 to 2^31 - 1 */
sac_result         ops_view_fail(struct sac_kernel_plan *plan);
/* One more piece: output `out` and input `in` are operands 0 and 1. */
struct ops_copies;
sac_result ops_copies_add(struct sac_kernel_plan *plan, struct ops_copies *copies,
                          const struct ops_shape *s, int in, int out);

/* Lines: the dimensions in `along` make up one, the others count them; and who works on them,
 * parts_allowed when parts of a line can be joined. */
sac_result ops_split_lines(struct sac_kernel_plan *plan, const struct ops_shape *s,
                           const bool *along, struct ops_lines *out);
void       ops_choose_team(struct ops_lines *l, bool parts_allowed);
/* Or whether the line is held in registers, once the team is chosen. Types of the operands, 0 where
 * one is left out; `one` has the bits of those that may have one number for a whole line. */
void ops_choose_held(struct ops_lines *l, int operands, unsigned one, const int *types);
/* Outputs have the layout of input 0 where they have its dimensions. Always true. */
bool ops_line_layouts(const struct sac_kernel_question *q, struct sac_kernel_offer *offer);

/* What kernels over [N,C,spatial...] need: steps and sizes of input x and output 0; the whole
 * window (false: more than 31 bits count); the output's elements in memory's order. */
struct sac_window;
struct ops_window;
void ops_window_steps(const struct sac_kernel_plan *plan, int x, struct ops_window *w);
bool ops_window_of(const struct sac_kernel_plan *plan, int x, const struct sac_window *from,
                   struct ops_window *w);
/* Can eight of so many channels be read and written at once? */
bool ops_window_by_eights(const struct ops_window *w, int in_type, int out_type, int64_t channels);
static inline bool ops_is_f16_or_f32(int type)
{
    return type == SAC_F16 || type == SAC_F32;
}
struct ops_places ops_places_of(const struct ops_window *w, const struct sac_operand *out,
                                bool last);

/* Views of heads (heads.c). Does one lie dense along dim d, and do all its runs begin at a multiple
 * of n numbers? */
bool ops_head_fits(const struct sac_head_view *v, int d, int n);
/* The layout of float16 that an operand is wanted in: channels last where piece_of finds larger
 * pieces there, as of heads that are channels of a map. Where it finds the same, the operand stays
 * as it is `now`. */
enum sac_layout ops_head_layout(const struct sac_operand *o, const struct sac_head_view *v,
                                enum sac_layout now,
                                int (*piece_of)(const struct sac_head_view *v));
/* The view in an operand that lies so: channels last only where ops_head_layout chose that. */
void ops_head_lying(const struct sac_operand *o, enum sac_layout layout, struct sac_head_view *v);
struct ops_head_view ops_head_view_of(const struct sac_head_view *v);

struct sac_activation;
/* The function, of enum ops_fn, and its constants. */
int ops_activation_fn(const struct sac_activation *act, double *a, double *b);

/* Elements of an output, and the like. */
static inline int64_t ops_count_in(const struct sac_kernel_plan *plan, int i)
{
    return sac_operand_elements(&plan->call->in[i]);
}
static inline int64_t ops_count_out(const struct sac_kernel_plan *plan, int i)
{
    return sac_operand_elements(&plan->call->out[i]);
}
/* A constant input that only the parameters need; all of them, from an input on. */
static inline void ops_take(struct sac_kernel_plan *plan, int i)
{
    if (sac_op_has(plan->call, i) && plan->call->in[i].data)
        plan->in_taken[i] = true;
}
static inline void ops_take_from(struct sac_kernel_plan *plan, int first)
{
    for (int i = first; i < plan->call->in_count; i++)
        ops_take(plan, i);
}

#endif
