/* SPDX-License-Identifier: Apache-2.0 */
/* A neural network: an ONNX file, made ready to run on a device.
 *
 *     sac_model *model = NULL;
 *     sac_result res = sac_model_load(dev, "net.onnx", NULL, &model);
 *     sac_tensor *in[1] = {x}, *out[1] = {NULL};
 *     res = sac_model_run(model, in, out);
 *     ...
 *     sac_tensor_unref(&out[0]);
 *     sac_model_unref(&model);
 *
 * Models are untrusted input: a damaged or lying file gives SAC_ERR_FORMAT with a sentence. The
 * file is mapped, not copied: replace it by renaming, and do not write into it while a model is
 * loaded.
 */
#ifndef SACCADE_MODEL_H
#define SACCADE_MODEL_H

#include <saccade/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_model sac_model;

enum { SAC_DIM_UNKNOWN = -1 };

/* What a network is computed in. FP16: numbers and weights in float16, sums in float32. TF32: float32 in
 * memory, the matrix units round what they multiply to 10 bits of mantissa. */
enum sac_precision {
    SAC_PRECISION_DEFAULT = 0, /* the device's best: FP16 on a GPU, FP32 on the CPU */
    SAC_PRECISION_FP32,
    SAC_PRECISION_TF32,
    SAC_PRECISION_FP16
};

SAC_API const char *sac_precision_name(enum sac_precision precision); /* "default", "fp32", "tf32", "fp16" */
/* Errors   SAC_ERR_ARG for another name; nothing is said. */
SAC_API sac_result  sac_precision_parse(const char *name, enum sac_precision *out);

struct sac_model_params {
    int optimise;      /* 1: fuse, fold, choose layouts (default); 0: node by node, as written */
    int reference;     /* 1: plain C kernels only; default 0 */
    int free_batch;    /* 1: make a baked-in batch of 1 symbolic where that is right (default) */
    uint64_t memory_limit_bytes; /* refuse models whose activations need more; 0: what the machine
                                    has, or its control group leaves to
                                    the process, at most 64 GiB */
    enum sac_precision precision; /* TF32 and FP16: SAC_ERR_UNSUPPORTED on the CPU */
    /* On a GPU, 1 (default): try the variants of kernels on it for each shape that is new, which takes
     * seconds, and keep what was best in the user's cache (docs/plans.md); 0: take the likely best ones. */
    int tune;
};
SAC_API struct sac_model_params sac_model_params_default(void);

/* A graph input or output. Dims that the file leaves open are SAC_DIM_UNKNOWN, and so is the first
 * one where a batch of 1 was freed; the rank is -1 when the file does not tell even that. */
struct sac_model_port {
    const char            *name;
    struct sac_tensor_desc desc;
};

/* Load a file, or a model that comes with saccade, by its name (saccade/models.h). The model holds
 * a reference to the device. Weights in other files ("external data") must lie in the model's folder.
 *
 * params   NULL: the defaults.
 * out      a reference of the caller's, let go with sac_model_unref.
 * Threads  any; models are independent of each other.
 * Errors   SAC_ERR_IO; SAC_ERR_FORMAT for what is no model or contradicts itself;
 *          SAC_ERR_UNSUPPORTED names the first layer that no operator covers; SAC_ERR_LIMIT,
 *          SAC_ERR_MEMORY. With an open dim a layer that fits no shape is found by
 *          sac_model_run. */
SAC_API sac_result sac_model_load(sac_device *dev, const char *path,
                                  const struct sac_model_params *params, sac_model **out);
/* The same from memory, without external data; bytes are borrowed until the model is gone. name is
 * for messages. */
SAC_API sac_result sac_model_load_memory(sac_device *dev, const void *bytes, size_t size,
                                         const char *name, const struct sac_model_params *params,
                                         sac_model **out);
SAC_API sac_model *sac_model_ref(sac_model *model);
SAC_API void       sac_model_unref(sac_model **model);

/* Ports in the file's order; NULL for an i out of range. They belong to the model. */
SAC_API int                          sac_model_input_count(const sac_model *model);
SAC_API int                          sac_model_output_count(const sac_model *model);
SAC_API const struct sac_model_port *sac_model_input(const sac_model *model, int i);
SAC_API const struct sac_model_port *sac_model_output(const sac_model *model, int i);

/* 1 when inputs may be stacked along the first dimension (free in the file, or freed and checked:
 * N = 2 equals twice N = 1; that check runs the model thrice, on the first call); 0 when a stacked
 * input is run one by one, also when memory for the check ran out. Waits for a run under way. */
SAC_API int sac_model_batches(sac_model *model);

/* Run, and wait for the outputs. A shape seen for the first time is planned then (slow), and kept (the latest
 * 16).
 *
 * in       one tensor per input, in order, on the model's device; borrowed for the call.
 * out      one slot per output, filled with new references that the caller owns; all NULL on
 *          failure.
 * Threads  any; runs of one model take turns.
 * Errors   SAC_ERR_ARG when a tensor is missing or does not fit its port; SAC_ERR_FORMAT when a
 *          layer does not fit these shapes or its data; SAC_ERR_UNSUPPORTED for stacked inputs
 *          whose outputs cannot be stacked; SAC_ERR_LIMIT, SAC_ERR_MEMORY. */
SAC_API sac_result sac_model_run(sac_model *model, sac_tensor *const *in, sac_tensor **out);

/* One of the file's metadata_props, or NULL; it and the path belong to the model. */
SAC_API const char *sac_model_metadata(const sac_model *model, const char *key);
SAC_API const char *sac_model_path(const sac_model *model);
/* The path of the file number i that it was read from: 0 is the model's own, weights in other files follow.
 * NULL: there are no more, and none of a model from memory. */
SAC_API const char *sac_model_file(const sac_model *model, int i);
SAC_API sac_device *sac_model_device(const sac_model *model); /* borrowed from the model */
SAC_API enum sac_precision sac_model_precision(const sac_model *model); /* never SAC_PRECISION_DEFAULT */

/* ---- plans made ahead ---- */

struct sac_build_params {
    struct sac_model_params model;
    int      batch_min, batch_opt, batch_max; /* buckets: min, the powers of two between, opt and max. Default 1,
                                                 1, 1 */
    int      width, height; /* of images, where the model leaves them open; 0: it does not */
    uint32_t seed;          /* of the random input that the build is checked with */
};
SAC_API struct sac_build_params sac_build_params_default(void);

/* What a bucket came to. */
struct sac_build_bucket {
    int    batch;
    double seconds;  /* planning and measuring */
    double ms;       /* a run, device time and launch, mean of 20 */
    double error;    /* the largest difference from the CPU in float32, over the largest number of the output's
                        channel (or 0.05) */
    double limit;    /* what it may be: 0.001 in FP32, 0.03 in TF32 and FP16 */
    int    host_steps; /* nodes that run on the host */
};

/* Plan a model for a device and a range of batches, let its kernels be chosen by measurement, check the
 * results against the CPU's on random input, and write all, with the model inside, to one file that
 * sac_model_load takes. Where it does not fit any more (another GPU, driver, library, version of saccade)
 * it is made anew as the shapes come, and that is said.
 *
 * path     as of sac_model_load; its weights must lie in the file itself.
 * on_bucket called for each that is done; NULL: not.
 * Errors   SAC_ERR_ARG (batches, an open size), SAC_ERR_UNSUPPORTED (the CPU, where plans take no time; weights
 *          in other files; several samples of a model that has a fixed batch), SAC_ERR_FORMAT when an error is
 *          over its limit (the sentence names the step that is farthest off by itself), SAC_ERR_IO, and those of
 *          sac_model_load and sac_model_run. Nothing is written then. */
SAC_API sac_result sac_model_build(sac_device *dev, const char *path, const struct sac_build_params *params,
                                   const char *out,
                                   void (*on_bucket)(void *user, const struct sac_build_bucket *bucket),
                                   void *user);

/* What inspect prints. */
struct sac_model_operator {
    const char *name;       /* "Conv" */
    const char *domain;     /* "" for ONNX's own */
    int         count;      /* nodes in the file */
    int         supported;  /* 1: has a row that covers the opset and every use in this file */
    const char *why;        /* when not: the reason, else NULL */
    const char *kernel;     /* the implementation chosen for most of them: "onednn
                               jit:avx512_core", "plain C", "folded or fused away"; NULL: no plan
                               could be made */
};
struct sac_model_info {
    const char *producer;
    int64_t     ir_version, opset;
    int64_t     parameters; /* numbers in the weights */
    int64_t     flops;      /* 2 a multiply-add, batch 1, open dims as 1; 0: unknown */
    int64_t     weights_bytes, arena_bytes;
    int         node_count;    /* in the file */
    int         step_count;    /* after fusion */
    const struct sac_model_operator *operators; /* [operator_count], owned by the model */
    int                              operator_count;
};
/* Look at a file without being able to run it: works with unsupported operators. Let go with
 * sac_model_unref; sac_model_run on it is SAC_ERR_UNSUPPORTED when an operator is missing. */
SAC_API sac_result sac_model_open_for_inspection(sac_device *dev, const char *path,
                                                 const struct sac_model_params *params, sac_model **out);
/* Of the plan that ran last; when none did, one is made with 1 for the open dims. */
SAC_API void       sac_model_inspect(sac_model *model, struct sac_model_info *out);

/* One line per step of that plan to fn: operator, output shape, implementation, and after profiled
 * runs its mean time. fn must not call into the model. */
SAC_API void sac_model_dump_steps(sac_model *model, void (*fn)(void *user, const char *line),
                                  void *user);
/* Time each step of later runs. On a GPU by events between the steps of one launch (a microsecond or two a step),
 * where the plan can be launched as one; else each step is waited for, which costs short ones more. */
SAC_API void sac_model_profile(sac_model *model, int on);

#ifdef __cplusplus
}
#endif
#endif
