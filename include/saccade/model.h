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
 * Models are untrusted input: a damaged or inconsistent file gives SAC_ERR_FORMAT with a sentence.
 * The file is mapped, not copied: replace it by renaming, and do not write into it while a model is
 * loaded.
 */
#ifndef SACCADE_MODEL_H
#define SACCADE_MODEL_H

#include <saccade/calibration.h>
#include <saccade/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_model sac_model;

enum { SAC_DIM_UNKNOWN = -1 };

/* The arithmetic of a network. FP16: activations and weights in float16, sums in float32. TF32:
 * float32 in memory; the matrix units round the factors to 10 bits of mantissa. INT8, FP8: of a
 * network that was quantised, as sac_model_build does it; its layers of 8 bits say so themselves,
 * and the rest is in the device's best. */
enum sac_precision {
    SAC_PRECISION_DEFAULT = 0, /* the device's best: FP16 on a GPU, FP32 on the CPU */
    SAC_PRECISION_FP32,
    SAC_PRECISION_TF32,
    SAC_PRECISION_FP16,
    SAC_PRECISION_INT8,
    SAC_PRECISION_FP8
};

SAC_API const char *sac_precision_name(enum sac_precision precision); /* "default", "fp32", "tf32",
                                                                         "fp16", "int8", "fp8" */
/* Errors   SAC_ERR_ARG for an unknown name; no sentence is kept. */
SAC_API sac_result sac_precision_parse(const char *name, enum sac_precision *out);

struct sac_model_params {
    int optimise;   /* 1: fuse, fold, choose layouts (default); 0: node by node, as written */
    int reference;  /* 1: plain C kernels only; default 0 */
    int free_batch; /* 1 (default): make a fixed batch of 1 symbolic where the results stay right */
    uint64_t memory_limit_bytes; /* models whose activations need more fail; 0: the machine's
                                    memory or the limit of its control group, at most 64 GiB */
    /* TF32 and FP16: SAC_ERR_UNSUPPORTED on the CPU. INT8 and FP8: of a network without such
     * layers, and FP8 on the CPU. A quantised one needs no precision to be asked for. */
    enum sac_precision precision;
    /* On a GPU, 1 (default): measure the variants of each kernel for every new shape, which takes
     * seconds, and keep the results in the user's cache (docs/plans.md); 0, and always on a
     * device that is deterministic: choose by heuristics. */
    int      tune;
    uint64_t reserved[8]; /* 0 */
};
SAC_API struct sac_model_params sac_model_params_default(void);

/* A graph input or output. Dims that the file leaves open are SAC_DIM_UNKNOWN, as is the first one
 * where free_batch made a batch of 1 symbolic. The rank is -1 when the file does not give it. */
struct sac_model_port {
    const char            *name;
    struct sac_tensor_desc desc;
};

/* Load a file, or a model that comes with saccade, by its name (saccade/models.h). The model holds
 * a reference to the device. Weights in other files ("external data") must lie in the model's
 * folder.
 *
 * params   NULL: the defaults.
 * out      one reference, released by sac_model_unref.
 * Threads  any; models are independent of each other.
 * Errors   SAC_ERR_IO; SAC_ERR_FORMAT for a file that is not a model or contradicts itself;
 *          SAC_ERR_UNSUPPORTED names the first layer that no operator covers; SAC_ERR_LIMIT,
 *          SAC_ERR_MEMORY. With open dims, a layer that fits no shape is only found by
 *          sac_model_run. */
SAC_API sac_result sac_model_load(sac_device *dev, const char *path,
                                  const struct sac_model_params *params, sac_model **out);
/* The same from memory, without external data; bytes must stay valid until the model is freed. name
 * is used in messages. */
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

/* 1 when inputs may be stacked along the first dimension: it is open in the file, or free_batch
 * made it symbolic and a check showed that N = 2 equals two runs of N = 1 (the first call makes
 * that check, with three runs). 0 when stacked inputs are run one by one, also when there was no
 * memory for the check. Waits for a run in progress. Any thread. */
SAC_API int sac_model_batches(sac_model *model);

/* Run, and wait for the outputs. A new shape is planned first, which is slow; the plans of the
 * latest 16 shapes are kept.
 *
 * in       one tensor per input, in order, on the model's device; borrowed for the call.
 * out      one slot per output, filled with new references that the caller owns; all NULL on
 *          failure.
 * Threads  any; runs of one model take turns.
 * Errors   SAC_ERR_ARG when a tensor is missing or does not fit its port; SAC_ERR_FORMAT when a
 *          layer does not fit these shapes or its data; SAC_ERR_UNSUPPORTED for stacked inputs
 *          whose outputs cannot be stacked; SAC_ERR_LIMIT, SAC_ERR_MEMORY. */
SAC_API sac_result sac_model_run(sac_model *model, sac_tensor *const *in, sac_tensor **out);
/* The same without the wait: on a GPU the run is queued, behind what is queued on the device and
 * what sac_tensor_written_on named, and the outputs are complete behind it: later calls see them, a
 * stream of your own after sac_tensor_ready_on, your thread after sac_device_wait. Inputs may be
 * released at once. A shape is planned, and where outputs' shapes depend on the data they are
 * waited for, as above.
 * Errors   as above; a fault of the queued work is the next wait's. */
SAC_API sac_result sac_model_queue(sac_model *model, sac_tensor *const *in, sac_tensor **out);

/* One of the file's metadata_props, or NULL. It belongs to the model. */
SAC_API const char *sac_model_metadata(const sac_model *model, const char *key);
/* The file that was loaded, or the name given to sac_model_load_memory. It belongs to the model. */
SAC_API const char *sac_model_path(const sac_model *model);
/* The path of the i-th file that the model was read from: 0 is the model itself, files with
 * external weights follow. NULL past the last one, and for a model from memory. */
SAC_API const char        *sac_model_file(const sac_model *model, int i);
SAC_API sac_device        *sac_model_device(const sac_model *model); /* borrowed from the model */
SAC_API enum sac_precision sac_model_precision(const sac_model *model); /* never
                                                                           SAC_PRECISION_DEFAULT */

/* ---- quantisation ---- */

/* How a value's range is found from what was seen of it. */
enum sac_calibration_method {
    SAC_CALIBRATION_DEFAULT = 0, /* min-max, unless it loses too much and another less than half of
                                    that */
    SAC_CALIBRATION_MIN_MAX,     /* all of it */
    SAC_CALIBRATION_PERCENTILE,  /* without one number of ten thousand at either end */
    SAC_CALIBRATION_ENTROPY /* where rounded numbers tell most of the others (Kullback-Leibler) */
};
SAC_API const char *sac_calibration_method_name(enum sac_calibration_method method);
/* Errors   SAC_ERR_ARG for an unknown name; no sentence is kept. */
SAC_API sac_result sac_calibration_method_parse(const char *name, enum sac_calibration_method *out);

/* What results are compared by, with those of float32; quality is 1 where nothing was lost. */
enum sac_quality {
    SAC_QUALITY_NUMBERS = 0, /* 1 less the error, relative to the numbers (root mean squares) */
    SAC_QUALITY_BOXES,       /* average precision at an IoU of 0.5, against float32's boxes */
    SAC_QUALITY_EMBEDDINGS,  /* mean cosine */
    SAC_QUALITY_MASKS        /* mean intersection over union */
};
SAC_API const char *sac_quality_name(enum sac_quality quality); /* "AP", "cosine", "IoU", ... */

/* What quantising a network came to. */
struct sac_quantised {
    enum sac_quality   measured;
    int                samples;                 /* that it was measured on */
    double             quality, loss, loss_max; /* loss: 1 - quality */
    int                layers, quantised; /* convolutions and products with constant weights */
    const char *const *kept; /* [kept_count] those that stayed, with the reason; for the call */
    int                kept_count;
    int64_t            file_bytes, file_bytes_before;
    int64_t            weights_bytes, weights_bytes_before; /* in memory; before: in float32 */
    double             ms, ms_before; /* a run with one input; before: in the device's best */
    double             batch_ms, batch_ms_before; /* with batch_max inputs */
    int                batch;                     /* batch_max */
    enum sac_precision precision, precision_before;
    uint64_t           reserved[4]; /* 0 */
};

/* ---- plans built in advance ---- */

/* What an input leaves open beside the batch and the size of images, such as the length of a
 * sequence: rank and shape of the descriptions count, and of the shape all but its first number,
 * which is the batch's. */
struct sac_build_shape {
    const char            *input; /* its name; NULL: the only one */
    struct sac_tensor_desc min, opt, max;
};
struct sac_build_params {
    struct sac_model_params model;
    int batch_min, batch_opt, batch_max; /* buckets: min, the powers of two between, opt and max.
                                            Default 1, 1, 1 */
    int      width, height; /* of images, where the model leaves them open; 0: as it has them */
    uint32_t seed;          /* for the random input that checks the build */
    /* The least and greatest size of a range in which width and height are the usual one; 0:
     * these. */
    int width_min, height_min, width_max, height_max;
    /* What the network will see: with FP16 it decides which steps stay in float32, instead of
     * random input, and the check is made with it. Borrowed for the call; NULL: there is none. */
    sac_calibration *calibration;
    /* With model.precision INT8 or FP8 the network is quantised: */
    double loss_max; /* what it may lose, a share up to 1; 0: 0.005 of boxes, 0.03 of masks,
                        0.01 of embeddings, 0.05 of other numbers */
    enum sac_calibration_method method;
    int layers_min; /* percent of its layers that are quantised at least, or it is refused; 0: 50 */
    /* Called when it is done, before on_bucket; NULL: nobody asks. */
    void (*on_quantised)(void *user, const struct sac_quantised *quantised);
    /* Of other inputs than images, behind the last one that is all 0; borrowed for the call. All
     * min go together, with the least size of images, and so do all opt and all max. NULL: none. */
    const struct sac_build_shape *shapes;
    uint64_t                      reserved[1]; /* 0 */
};
SAC_API struct sac_build_params sac_build_params_default(void);

/* The result for one batch size of one size of images. */
struct sac_build_bucket {
    int    batch;
    double seconds;    /* spent on planning and measuring */
    double ms;         /* one run, device time and launch, mean of 20 */
    double error;      /* largest difference from the CPU in float32, relative to the largest value
                          of the output's channel (or to 0.05) */
    double      limit; /* the largest error allowed: 0.001 in FP32, 0.03 in TF32 and FP16 */
    int         host_steps;    /* nodes that run on the host */
    int         width, height; /* of the images; 0: as the model has them */
    const char *shapes;        /* of inputs that params.shapes gives one, with this batch: "tokens
                                  [8,77]"; valid during the call; NULL: there are none */
    uint64_t reserved[3];      /* 0 */
};

/* Plan a model for a device and a range of batch sizes and sizes of inputs: choose its kernels by
 * measurement for each batch size of each of the (up to three) sizes, check the results against the
 * CPU's on random input or calibration data, and write the plans and the model to one file that
 * sac_model_load accepts. What is between the least and the greatest then runs with the kernels of
 * the nearest that was measured, and nothing is measured for it. On another GPU, driver, library or
 * version of saccade the plans in the file no longer fit: this is logged, and each shape is planned
 * when it is first run.
 *
 * path     as for sac_model_load; the weights must be in the file itself.
 * params   NULL: the defaults.
 * on_bucket  called when a batch size is done, with all batch sizes of the least size first; may be
 *          NULL.
 * With a precision of INT8 or FP8 the network is quantised first (docs/quantisation.md): the file
 * then holds the quantised network, and an `out` that ends in .onnx is that alone. The CPU does it
 * too, in INT8. Layers that lose most stay in the device's precision until loss_max is met.
 *
 * Errors   SAC_ERR_ARG (batches, sizes, shapes, a size that the model leaves open and one that it
 *          does not), SAC_ERR_UNSUPPORTED (the CPU, where planning takes
 *          no time, unless it quantises; a network without layers to quantise; weights in other
 *          files; a batch above 1 of a model with a fixed batch),
 *          SAC_ERR_FORMAT when an error is over its limit (the sentence names the step with the
 *          largest error of its own) or a loss over loss_max (the sentence names the layers that
 *          lose most), SAC_ERR_IO, and those of sac_model_load and sac_model_run. No
 *          file is written then. Of calibration data, SAC_ERR_UNSUPPORTED for a model that takes no
 *          pictures, and those of sac_source_read_wait. */
SAC_API sac_result sac_model_build(
    sac_device *dev, const char *path, const struct sac_build_params *params, const char *out,
    void (*on_bucket)(void *user, const struct sac_build_bucket *bucket), void *user);

/* What `saccade inspect` prints. */
struct sac_model_operator {
    const char *name;      /* "Conv" */
    const char *domain;    /* "" for ONNX's own */
    int         count;     /* nodes in the file */
    int         supported; /* 1: has a row that covers the opset and every use in this file */
    const char *why;       /* why it is not supported, else NULL */
    const char *kernel;    /* the implementation chosen for most of them: "onednn
                              jit:avx512_core", "plain C", "folded or fused away"; NULL: no plan
                              could be made */
    uint64_t reserved[4];  /* 0 */
};
/* A model as sac_model_inspect describes it. */
struct sac_model_info {
    const char *producer;
    int64_t     ir_version, opset;
    int64_t     parameters; /* numbers in the weights */
    int64_t     flops;      /* 2 a multiply-add, batch 1, open dims as 1; 0: unknown */
    int64_t     weights_bytes, activation_bytes;
    int         node_count;                     /* in the file */
    int         step_count;                     /* after fusion */
    const struct sac_model_operator *operators; /* [operator_count], owned by the model */
    int                              operator_count;
    /* With FP16: the steps that stay in float32, as their numbers leave the range of float16, each
     * with what was seen; of a calibrated plan they are known in every precision.
     * [wide_step_count], owned by the model. NULL: there are none. */
    const char *const *wide_steps;
    int64_t            wide_step_count;
    const char        *calibration; /* what told these steps: "64 samples of pictures/", kept in a
                                       plan; owned by the model. NULL: random input, if any */
    /* Of a network that sac_model_build quantised: what was done, and what that lost; and the
     * layers that stayed, with the reason. Owned by the model; NULL: nothing is known. */
    const char *quantised;
    const char *quantised_kept; /* a line each */
    uint64_t    reserved[3];    /* 0 */
};
/* Open a file to inspect it, even when operators are unsupported: sac_model_run then returns
 * SAC_ERR_UNSUPPORTED. Release it with sac_model_unref. Errors as of sac_model_load. */
SAC_API sac_result sac_model_open_for_inspection(sac_device *dev, const char *path,
                                                 const struct sac_model_params *params,
                                                 sac_model                    **out);
/* Describe the model and the plan that ran last; without a run, a plan with 1 for the open dims is
 * made. */
SAC_API void sac_model_inspect(sac_model *model, struct sac_model_info *out);

/* Call fn with one line per step of that plan: operator, output shape, implementation, and after
 * profiled runs the mean time. fn must not call into the model. */
SAC_API void sac_model_dump_steps(sac_model *model, void (*fn)(void *user, const char *line),
                                  void      *user);
/* Measure each step of later runs. On a GPU, events between the steps measure a plan that is
 * launched as one graph (1 to 2 microseconds a step). Otherwise the host waits after each step,
 * which adds more to short steps. */
SAC_API void sac_model_profile(sac_model *model, int on);

/* ---- what `saccade bench` prints ---- */

/* A step of a plan. Texts belong to the model and hold during the call of fn. */
struct sac_model_step {
    const char *name;          /* the node's in the file (of fused ones the first's); may be "" */
    const char *operator_name; /* "FusedConv"; "(convert)", "(copy)": between two layouts */
    const char *kernel;        /* the implementation: "onednn jit:avx512_core", "plain C" */
    struct sac_tensor_desc output;     /* the first; a rank of -1: it is known only in a run,
                                          as the data says it, and nothing is measured */
    double  ms;                        /* mean of the profiled runs; 0: there were none */
    int64_t bytes_read, bytes_written; /* operands as they are stored, weights too */
    int64_t flops; /* 2 a multiply-add of Conv, ConvTranspose, MatMul, Gemm, and of fused attention;
                      of other operators 1 an element of the output, of conversions 0 */
    uint64_t reserved[4]; /* 0 */
};
/* The steps of the plan that ran last; without a run, of one with 1 for the open dims. Those that
 * take no time (views) are left out. fn must not call into the model. */
SAC_API void sac_model_list_steps(sac_model *model,
                                  void (*fn)(void *user, const struct sac_model_step *step),
                                  void *user);

/* How long runs took. */
struct sac_model_times {
    double   median_ms, best_ms; /* a run, of up to nine rounds of runs */
    double   plan_ms;            /* the first run, which plans unless that was done before */
    int64_t  runs;               /* that were timed */
    uint64_t reserved[4];        /* 0 */
};
/* Run it again and again on the same tensors, by the clock of the device: on a GPU neither copies
 * nor the host count, unless the runs are shorter than their launch.
 *
 * in       as of sac_model_run; they must not be written to meanwhile.
 * seconds  about how long to measure, 0..86400.
 * Threads  any; other work on the device makes the times longer.
 * Errors   as of sac_model_run; SAC_ERR_ARG for other seconds, NAN among them. */
SAC_API sac_result sac_model_time(sac_model *model, sac_tensor *const *in, double seconds,
                                  struct sac_model_times *out);

/* What a device was measured to do at best. */
struct sac_device_rates {
    double   bytes_per_s; /* read and written, of a copy of 256 MiB within it, by all threads */
    double   flops_per_s; /* of a product of large matrices by the engine's own kernel */
    double   step_ms;     /* a step that does next to nothing: what a launch costs */
    uint64_t reserved[4]; /* 0 */
};
/* Measure it, in a second or two.
 *
 * precision  of the product; DEFAULT: the device's best, as of sac_model_params.
 * Errors     as of sac_model_load and sac_model_run. */
SAC_API sac_result sac_device_measure(sac_device *dev, enum sac_precision precision,
                                      struct sac_device_rates *out);

#ifdef __cplusplus
}
#endif
#endif
