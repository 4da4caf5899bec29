/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation after training: a network of float32 becomes one of 8 bits, as ONNX writes it
 * (QuantizeLinear, DequantizeLinear), if what that loses is no more than is allowed.
 *
 *   quantise_graph.c  which layers can be, which values share a scale; and the graph with some of
 *                     them quantised
 *   quantise_scale.c  what was seen of these values, and the scale that follows
 *   quantise.c        the whole: samples, losses, which layers stay in float32
 *
 * A layer is a convolution or a product with constant weights. Weights are int8 (or float8) with a
 * scale for each output channel. Values have one scale, found by looking at them: uint8 with a zero
 * point on the CPU, whose instructions multiply uint8 by int8; int8 around 0 on a GPU. */
#ifndef SAC_ENGINE_MODEL_QUANTISE_H
#define SAC_ENGINE_MODEL_QUANTISE_H

#include "engine/model/calibration.h"
#include "engine/onnx/write.h"

/* ---- quantise_graph.c ---- */

struct sac_quant_layer {
    const struct sac_node *node;
    int                    axis; /* of the weights: the output's channels */
    int                    of;   /* the value that shares its scale with what the layer reads */
};

/* Of a graph as its file has it: no pass has rewritten it. */
struct sac_quant_map {
    struct sac_graph       *graph;
    struct sac_quant_layer *layers;
    int                     count;
    /* By value id: the value that stands for all that share its scale, as what lies between only
     * moves numbers; and whether it is where they come from. */
    int  *shared;
    bool *source;
};
/* What a device makes of it. */
struct sac_quant_rules {
    bool float8;   /* a maximum is not taken of its bytes */
    int  multiple; /* layers of one group whose inputs are so many channels; 1: any layers */
};
/* Errors   SAC_ERR_MEMORY; sac_quant_map_finish accepts what failed. */
sac_result sac_quant_map_init(struct sac_quant_map *map, struct sac_graph *graph,
                              const struct sac_quant_rules *rules);
void       sac_quant_map_finish(struct sac_quant_map *map);

struct sac_quant_scale {
    float scale;
    int   zero;
};
/* Rewrites the map's graph, once; the map is of no use then.
 * use      [count] which layers are quantised.
 * dtype    of the values: SAC_U8, SAC_I8, SAC_F8.
 * scales   by the value that stands for the others.
 * Errors   SAC_ERR_MEMORY. */
sac_result sac_quant_apply(struct sac_quant_map *map, const bool *use, enum sac_dtype dtype,
                           const struct sac_quant_scale *scales);

/* ---- quantise_scale.c ---- */

struct sac_observed; /* of one value: range, then how often what was seen */

struct sac_observer {
    const struct sac_quant_map *map;
    struct sac_observed        *seen; /* by value id */
    bool                        counts;
    sac_device                 *cpu;
    struct sac_plan            *plan;
    struct sac_buffer          *activations;
    sac_tensor                **out;
    sac_model                  *model;
};
/* Looks at a model, loaded as its file has it, with inputs of these shapes. */
sac_result sac_observer_open(struct sac_observer *o, sac_model *model,
                             const struct sac_quant_map *map, const struct sac_operand *shapes);
void       sac_observer_close(struct sac_observer *o);
/* First all samples for their range; then, after sac_observer_count, again. */
sac_result sac_observer_run(struct sac_observer *o, sac_tensor *const *in);
sac_result sac_observer_count(struct sac_observer *o);
/* scales [id_count]. */
void sac_observer_scales(const struct sac_observer *o, enum sac_calibration_method method,
                         enum sac_dtype dtype, struct sac_quant_scale *scales);

/* ---- quantise.c ---- */

struct sac_quantise_job {
    sac_context                   *ctx;
    sac_device                    *dev, *cpu;
    sac_model                     *reference; /* on the CPU, in float32 */
    const char                    *path;
    const struct sac_build_params *params;
    struct sac_model_params        base; /* of the quantised model: a precision for the rest */
    const struct sac_tensor_desc  *desc; /* [inputs] of a batch of 1 */
    void (*fill)(const struct sac_tensor_desc *desc, void *host, uint32_t seed);
};
/* What became of it; owned by the caller, who finishes it. */
struct sac_quantised_model {
    uint8_t             *bytes;
    size_t               size;
    struct sac_quantised report;
    char               **kept; /* [report.kept_count] */
};
/* Errors   SAC_ERR_UNSUPPORTED: nothing to quantise, or quantised already; SAC_ERR_FORMAT: it loses
 *          too much, the sentence names the layers that lose most; SAC_ERR_MEMORY, and those of
 *          runs and of calibration data. */
sac_result sac_model_quantise(const struct sac_quantise_job *job, struct sac_quantised_model *out);
void       sac_quantised_model_finish(struct sac_quantised_model *made);

#endif
