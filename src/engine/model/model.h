/* SPDX-License-Identifier: Apache-2.0 */
/* A model as the engine's own files see it; the public face is <saccade/model.h>.
 *
 * Opening one (model.c) reads the file, folds constants, frees the batch and runs the passes. A run
 * (run.c) checks the tensors, finds or makes the plan of their shapes (plans.c, with the choices of
 * the book, book.c; in FP16 ranges.c says which steps that is too narrow for, by what watch.c sees)
 * and runs it; where the batch is fixed, a stack runs one by one (batch.c). native.c is for callers
 * that take tensors in the kernels' layout. endings.c tells what the numbers of an output are,
 * inspect.c what a model holds, cost.c what its steps move and compute, time.c how long its runs
 * take, rates.c what the device can do; twin.c makes more instances of a model; build.c writes a
 * .plan, calibrate.c shows it real data, shipped.c finds the models that come with saccade,
 * without.c leaves optimisations out.
 */
#ifndef SAC_ENGINE_MODEL_MODEL_H
#define SAC_ENGINE_MODEL_MODEL_H

#include <saccade/model.h>
#include <saccade/models.h>

#include "engine/model/finite.h"
#include "engine/onnx/file.h"
#include "engine/onnx/onnx.h"
#include "engine/plan/plan.h"
#include "engine/plan/planbook.h"

enum { SAC_PLANS_MAX = 16 }; /* input shapes kept planned */

enum sac_batching {
    SAC_BATCH_FIXED = 0, /* the file fixes it: a stack of inputs runs one by one */
    SAC_BATCH_FREE,      /* open in the file, or opened by saccade and checked */
    SAC_BATCH_UNCHECKED, /* opened by saccade; checked when first needed */
    SAC_BATCH_WRONG      /* opened by saccade, but the check failed: treated as fixed */
};

/* What computes an output, behind all that only moves or enlarges its numbers. */
enum sac_ending_kind {
    SAC_ENDS_OTHERWISE = 0,
    SAC_ENDS_LINEAR,  /* a convolution, a sum: any number */
    SAC_ENDS_SHARE,   /* a sigmoid, or cut at 0 and 1 */
    SAC_ENDS_SOFTMAX, /* shares of classes */
    SAC_ENDS_CHOICE,  /* the number of the likeliest class */
    SAC_ENDS_POSITIVE /* a distance, a size: 0 and up */
};
struct sac_ending {
    enum sac_ending_kind kind;
    int64_t              classes;  /* of CHOICE: among how many; 0: not known */
    bool                 enlarged; /* behind that, its map was resized */
};

/* without.c: the optimisations that are left out, to find the one that makes a result wrong and to
 * measure what each is worth. SACCADE_WITHOUT has their names, separated by commas, and is read
 * when a model is loaded. Plans that differ in their steps are kept apart (book.c). */
struct sac_without {
    uint64_t passes; /* as of sac_passes_run */
    uint32_t plan;   /* of enum sac_plan_without */
};
/* The i-th name, and what it stands for: nothing where it is a device's. NULL: there are no more.
 */
const char *sac_without_name(int i, struct sac_without *out);
/* source: of the text, for the sentence. SAC_ERR_ARG: a name that does not exist. */
sac_result sac_without_parse(sac_context *ctx, const char *source, const char *text,
                             struct sac_without *out);
/* The names, "" when nothing is left out. */
void sac_without_text(const struct sac_without *without, char *out, size_t size);

/* shipped.c: the folders that are searched for the models that come with saccade, "A, B, C". */
void sac_models_places(char *out, size_t size);

struct sac_model {
    sac_refcount            refs;
    sac_model              *of; /* twin.c: whose instance it is; NULL: a model by itself */
    sac_device             *dev;
    sac_context            *ctx;
    struct sac_model_params params;
    struct sac_without      without;
    char                   *path; /* or the name given for one in memory */
    struct sac_mapped_file  file;
    /* where the ONNX bytes begin; 0 unless a .plan */
    size_t                 file_offset;
    struct sac_arena       memory; /* graph, constants, ports, names */
    struct sac_onnx        onnx;
    struct sac_graph      *graph;
    struct sac_model_port *inputs, *outputs;
    struct sac_ending     *endings;    /* of the outputs, in the file */
    const char            *fixed_name; /* an input that was made a constant; NULL: none */
    double                 fixed_value;
    enum sac_batching      batching;
    bool                   for_inspection;
    bool                   partial; /* opened for inspection and some node is not covered */
    bool                   profile;
    bool                   said_one_by_one;
    char                   why_fixed[256]; /* the batch, as a sentence */
    struct sac_plan       *plans[SAC_PLANS_MAX];
    uint64_t               clock;       /* of the plan cache */
    struct sac_buffer     *activations; /* as large as the largest plan needs; plans take turns */
    struct sac_model_info  info; /* of the file: counted before any pass rewrites the graph */
    struct sac_model_operator *operators;  /* info.operators, to be completed */
    int                       *op_of_node; /* by place in the file: index in operators */
    pthread_mutex_t            lock;       /* held during a run */
    /* On a device whose memory is not the host's: */
    struct sac_weight_store   weights; /* for all plans */
    struct sac_device        *host;    /* a CPU device, once some plan runs a node there */
    struct sac_device_stream *stream;  /* its own */
    /* for capturing only, so that graphs hold no other work */
    struct sac_device_stream *capture;
    struct sac_device_stream *on; /* that of the run under way */
    /* that of the last run; only compared, it may be gone */
    struct sac_device_stream *last;
    struct sac_event         *done; /* recorded after the last run */
    /* done was recorded and not waited for since */
    bool                 queued;
    bool                 said_host_work;
    struct sac_finite    finite;      /* of runs on its own stream */
    struct sac_plan_book book;        /* what kernels chose for each shape */
    char                *book_path;   /* its file in the cache; NULL: none */
    bool                 native;      /* sac_model_take_native was called: */
    enum sac_layout      first_input; /* how tensors of input 0 lie then */
    /* ranges.c: */
    bool         watched;    /* wide is known */
    char        *wide;       /* as of sac_plan_params; NULL: all steps are in the precision */
    float        low, high;  /* of input 0, where the caller knows it; else both 0 */
    const char **wide_steps; /* [wide_count], for people */
    int          wide_count;
    const char  *calibration; /* what told them, for people; NULL: noise */
    bool         asked;       /* the caller named a precision */
    /* Of its 8-bit layers; SAC_PRECISION_DEFAULT: it has none. params.precision is that of the
     * rest. */
    enum sac_precision quantised;
    enum sac_precision wanted;   /* INT8 and FP8, where the caller asked for that */
    bool               checking; /* temporary plans: nothing is measured or kept */
};

/* book.c. First its name, the hash of the model's bytes, which needs no device; then what is kept
 * under it. plan: of a .plan, what stands before the model, or NULL. */
sac_result sac_model_name_book(sac_model *model, const void *onnx, size_t size);
sac_result sac_model_open_book(sac_model *model, const void *plan, size_t plan_size);
/* Once calibration data said which steps stay in float32: kernels chosen for others are dropped,
 * and the cache has another file for these. */
void sac_model_calibrate_book(sac_model *model);
/* Adds the choices of a new plan's kernels to the book and saves it. */
void sac_model_note_plan(sac_model *model, const char *shapes, const struct sac_plan *plan);
/* Writes it to the cache, where it has a file there. */
void sac_model_save_book(sac_model *model);
/* Opens a .plan as a model: *offset is where the ONNX model begins. */
sac_result sac_model_look_into_plan(sac_model *model, const void *bytes, size_t size,
                                    size_t *offset);

/* run.c: what runs need. The second function accepts a partial result of the first. */
sac_result sac_model_begin_runs(sac_model *model);
void       sac_model_finish_runs(sac_model *model);
/* waits for queued work */
void sac_model_settle(sac_model *model);
void sac_model_drop_plans(sac_model *model); /* call sac_model_settle first */
/* The plan that ran last; NULL: none did. The caller holds the model's lock or is its only user. */
struct sac_plan *sac_model_latest_plan(const sac_model *model);

/* Metadata of a network that was quantised here, for people: what was done, and the layers that
 * stayed, a line each. */
#define SAC_QUANTISED_KEY      "saccade_quantised"
#define SAC_QUANTISED_KEPT_KEY "saccade_quantised_kept"

/* inspect.c: that one or, when none ran, one for the default shapes. NULL when it cannot be
 * created.
 */
struct sac_plan *sac_model_plan_to_show(sac_model *model);
/* cost.c: "Conv", "(convert)"; the step's first output, NULL: none. */
const char                  *sac_step_operator(const struct sac_step *step);
const struct sac_value_slot *sac_step_output(const struct sac_plan *plan,
                                             const struct sac_step *step);

/* Fills info from the file (operators, parameters), and with the cost of one run. */
sac_result sac_model_list_operators(sac_model *model);
sac_result sac_model_measure(sac_model *model);

/* sac_model_load where input `name`, of one number, is a constant instead: shapes that depend on it
 * are known before a run. It is no input of the model any more.
 * Errors   those of sac_model_load; SAC_ERR_ARG where there is no such input. */
sac_result sac_model_load_fixed(sac_device *dev, const char *path,
                                const struct sac_model_params *params, const char *name,
                                double value, sac_model **out);

/* endings.c: before any pass rewrites the graph; then what it noted. */
sac_result        sac_model_note_endings(sac_model *model);
struct sac_ending sac_model_ending(const sac_model *model, int output);

/* The logical shape and dtype of input i's tensor: when the kernels' layout is used, the first
 * input is [N,H,W,C] or float16 where the port says [N,C,H,W] of float32. */
struct sac_tensor_desc sac_model_logical_desc(const sac_model *model, int i,
                                              const struct sac_tensor_desc *d);
/* Creates a plan with what is known for these shapes; with measure, kernels of which nothing is
 * known are measured. known: NULL: only the plan's layouts are wanted. */
struct sac_known_choices; /* plans.c */
sac_result sac_model_create_plan(sac_model *m, const struct sac_operand *shapes,
                                 const struct sac_known_choices *known, bool measure,
                                 struct sac_plan **out);
/* In FP16, once: which steps must stay in float32, because their numbers leave the range of
 * float16. The network is run on the CPU for that, on plausible noise of these shapes and with a
 * batch of 1; the book keeps the answer. On a fault there are none, and a log line says so. */
void sac_model_find_ranges(sac_model *model, const struct sac_operand *shapes);
/* What the numbers of input 0 are between; before the first run. */
void sac_model_expect(sac_model *model, float low, float high);
/* twin.c: an instance of a model, whose runs can be under way beside the model's. It shares what
 * was read and the weights on the device, and refers to the model; a model with the kernels' layout
 * (sac_model_take_native) before the first, or never. */
sac_result sac_model_twin(sac_model *of, sac_model **out);
/* The plan for these input shapes, created when there is none. Borrowed until the next call. */
sac_result sac_model_plan(sac_model *model, const struct sac_operand *shapes,
                          struct sac_plan **out);
/* sac_model_run, queued: on a device whose memory is not the host's it returns at once, and tensors
 * in and out must live until the stream is done with them (sac_tensor_used tells their pool; on the
 * device's own stream no call is needed). Runs of one model are ordered, whatever their streams.
 *
 * stream   NULL: the device's own.
 * out      entries that are not NULL are tensors to write to, of the output's dtype and shape: with
 *          the same ones in every run (and the same inputs) a plan runs as one launch. They stay
 *          the caller's.
 * Errors   as of sac_model_run; SAC_ERR_MEMORY also when the device's budget has no room for this
 *          batch. */
sac_result sac_model_run_on(sac_model *model, struct sac_device_stream *stream,
                            sac_tensor *const *in, sac_tensor **out);
/* Warns, once, if runs that are done met numbers that are not finite where outputs of integers
 * don't show them. Outputs of floats are the caller's to check (finite.h). */
void sac_model_say_not_finite(sac_model *model);
/* After runs with made-up input, which are done: what they met is no fault. */
void sac_model_forget_not_finite(sac_model *model);
/* From now on the only input and the outputs have the layout that the kernels use: float16 where
 * the port says float32, and the input [N,H,W,C] where it says [N,C,H,W]. That saves a pass over
 * them.
 * first    an input as the port has it.
 * layout   the layout of the input; PLAIN: as the port says (always on the host and with several
 *          inputs). */
sac_result sac_model_take_native(sac_model *model, const struct sac_tensor_desc *first,
                                 enum sac_layout *layout);
/* Does the shape of an output depend on the data? For the plan that ran last. */
bool sac_model_shapes_vary(sac_model *model);
/* Runs one plan without checking the ports or the batch. */
sac_result sac_model_run_plain(sac_model *model, sac_tensor *const *in, sac_tensor **out);

/* What the outputs would be with such inputs, in [inputs], out [outputs]: as far as shapes tell,
 * else as the ports say. Nothing runs and nothing is planned. */
sac_result sac_model_probe(sac_model *model, const struct sac_tensor_desc *in,
                           struct sac_tensor_desc *out);

/* Does a stack of two inputs give the same results as each input by itself? Sets
 * model->batching. */
sac_result sac_model_check_batch(sac_model *model);
/* A stack of n inputs, one after the other. */
sac_result sac_model_run_one_by_one(sac_model *model, int64_t n, sac_tensor *const *in,
                                    sac_tensor **out);

#endif
