/* SPDX-License-Identifier: Apache-2.0 */
/* Heads: what a network's output tensors mean. A detector is a model with its contract (how pixels
 * become its input) and its head; frames go in, boxes come out.
 *
 *     sac_detector *det = NULL;
 *     sac_result    res = sac_detector_create(dev, "yolox_nano_416.onnx", NULL, &det);
 *     struct sac_detections found = {0};
 *     res = sac_detector_run(det, &frame, 1, &found);    // found.items[0..found.count)
 *     sac_detections_finish(&found);
 *     sac_detector_destroy(&det);
 *
 * Another head can come from a shared object: see struct sac_head_plugin.
 */
#ifndef SACCADE_HEAD_H
#define SACCADE_HEAD_H

#include <saccade/image.h>
#include <saccade/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One box of a frame. */
struct sac_detection {
    float x0, y0, x1, y1; /* pixels of the source frame; right and bottom edge open */
    float score;          /* 0..1 */
    int   class_id;
};

/* A growing list: zero-initialise it, reuse it from call to call, finish it at the end. */
struct sac_detections {
    struct sac_detection *items;
    size_t                count, capacity;
};
/* Frees the items and empties the list. */
SAC_API void sac_detections_finish(struct sac_detections *list);

/* Where a value of the contract came from, for inspect. */
enum sac_contract_source {
    SAC_FROM_HEAD = 0, /* the head's default */
    SAC_FROM_METADATA, /* the file's metadata_props */
    SAC_FROM_YAML,     /* M.yaml beside M.onnx */
    SAC_FROM_USER      /* `--preprocess` */
};
/* How pixels become the input of a model, and where each value came from. */
struct sac_model_contract {
    struct sac_preprocess    pre;
    enum sac_contract_source size_from, fit_from, order_from, mean_from, scale_from, fill_from,
        classes_from;
    int      class_count;
    char   **classes;     /* [class_count], owned by the contract */
    uint64_t reserved[8]; /* 0 */
};
/* Fill the contract of a model: metadata, then M.yaml, then the defaults already in *io (from the
 * head); user is a text as for `--preprocess`, or NULL:
 * "bgr,mean=0,scale=1,letterbox=topleft,fill=114,size=416x416". The keys are in docs/models.md.
 * Errors   SAC_ERR_ARG (user), SAC_ERR_FORMAT (metadata, M.yaml), SAC_ERR_MEMORY; finish *io all
 *          the same. */
SAC_API sac_result sac_model_contract_read(const sac_model *model, const char *user,
                                           struct sac_model_contract *io);
SAC_API void       sac_model_contract_finish(struct sac_model_contract *contract);

/* What is done with a batch that is not full: the network has kernels planned for a few sizes of
 * batch only. */
enum sac_batch_padding {
    SAC_BATCH_PADDING_AUTO = 0, /* several runs of the sizes that a device has, the cheapest way */
    SAC_BATCH_PADDING_NONE,  /* one run of its own size: there are plans for all of them, of up to
                                64 frames, which take their time when the network is opened */
    SAC_BATCH_PADDING_POWER, /* one run of the next power of two */
    SAC_BATCH_PADDING_FULL   /* one run of a full batch: there is one plan */
};

struct sac_detector_params {
    const char *head;       /* NULL: recognised from the graph; else a head's name or "lib.so" */
    const char *preprocess; /* NULL, or overrides of the contract */
    const char *classes;    /* comma-separated names or numbers to keep; NULL or "all": all;
                               "auto": persons where the model knows them, else all */
    float              score_min; /* default 0.1: trackers use low scores too */
    float              nms_iou;   /* class-wise NMS; default 0.65; heads that need none ignore it */
    int                detection_max; /* per frame, best first; default 300 */
    int                batch_max;     /* frames in one run of the network; default 8 */
    enum sac_precision precision;     /* of the network */
    uint64_t           reserved[8];   /* 0 */
};
SAC_API struct sac_detector_params sac_detector_params_default(void);

typedef struct sac_detector sac_detector;
/* Load the model and find its head.
 *
 * params   NULL: the defaults.
 * out      owned by the caller, destroyed with sac_detector_destroy.
 * Errors   SAC_ERR_ARG (an unknown head or class, a bad parameter), SAC_ERR_UNSUPPORTED (no head
 *          knows the outputs, an operator is missing), those of sac_model_load; SAC_ERR_MEMORY. */
SAC_API sac_result sac_detector_create(sac_device *dev, const char *model_path,
                                       const struct sac_detector_params *params,
                                       sac_detector                    **out);
SAC_API void       sac_detector_destroy(sac_detector **det);
/* Detect objects in frames [n]; found [n] receives the boxes, best score first, and replaces
 * previous contents. Each box has one class, the likeliest of those kept. Boxes may reach past the
 * frame.
 * Threads  one call at a time.
 * Errors   SAC_ERR_ARG for a frame of another device or a format that no model takes;
 *          SAC_ERR_FORMAT where the outputs are not the head's; SAC_ERR_LIMIT past the memory
 *          limit; SAC_ERR_MEMORY. */
SAC_API sac_result sac_detector_run(sac_detector *det, sac_frame *const *frames, int n,
                                    struct sac_detections *found);
/* Detect objects in pictures that are tensors on the detector's device, such as another program's
 * (saccade/dlpack.h): as sac_frame_from_tensor makes frames of them, without a copy where they lie
 * as one. For segmenters and embedders, call that.
 *
 * With params.prepared the numbers are the network's input already, [N,3,H,W] or as its contract
 * says (sac_detector_contract): nothing is preprocessed, and boxes are in pixels of that input.
 * A network that reads its input as it is gets the tensor itself; else it is brought into the
 * network's layout on the device, which the ledger counts as tensor-layout.
 *
 * found    [N] as sac_picture_count has it; with `prepared` the first dimension.
 * Threads  one call at a time.
 * Errors   those of sac_detector_run and sac_frame_from_tensor; SAC_ERR_ARG for a prepared tensor
 *          of another shape or type than the network's input. */
SAC_API sac_result sac_detector_run_tensor(sac_detector *det, sac_tensor *t,
                                           const struct sac_picture_params *params,
                                           struct sac_detections           *found);
/* How long the parts of the latest run took, wall clock, for all its frames together. Call it from
 * the thread that called run. */
struct sac_run_times {
    int64_t  begun_ns; /* monotonic clock; the parts follow each other from here */
    int64_t  preprocess_ns, inference_ns, head_ns;
    uint64_t reserved[4]; /* 0 */
};
SAC_API void sac_detector_get_times(const sac_detector *det, struct sac_run_times *out);
/* These functions may be called from any thread; what they return is borrowed from the detector.
 * class_name returns "unknown" where there is no such class. */
SAC_API const char *sac_detector_class_name(const sac_detector *det, int class_id);
/* How many classes params.classes keeps. */
SAC_API int sac_detector_kept_classes(const sac_detector *det);
/* These classes as text: "person (1 of 80)", "all 80", "all" where the model names none. */
SAC_API void sac_detector_describe_classes(const sac_detector *det, char *out, size_t size);
/* 1 when all its boxes are of the class of that name. */
SAC_API int sac_detector_keeps_only(const sac_detector *det, const char *name);
/* The head that reads its outputs: "yolox". */
SAC_API const char *sac_detector_head_name(const sac_detector *det);
/* How frames become its model's input, and its class names. */
SAC_API const struct sac_model_contract *sac_detector_contract(const sac_detector *det);
/* Borrowed, to inspect; only the detector may run it. */
SAC_API sac_model *sac_detector_model(const sac_detector *det);

/* Recognise a model's head: its name (may be "embedding"), or NULL. Any thread. */
SAC_API const char *sac_head_recognise(const sac_model *model);
/* The output with the prototypes of which a sac_segmenter makes masks of a network's boxes
 * (saccade/segment.h); a sac_detector reads the boxes alone. NULL: there is none. Borrowed from the
 * model. Any thread. */
SAC_API const char *sac_head_prototypes(const sac_model *model);
/* What heads give, and what runs their networks. */
enum sac_head_kind {
    SAC_HEAD_UNKNOWN = 0, /* no such head, or one from a shared object */
    SAC_HEAD_BOXES,       /* a sac_detector */
    SAC_HEAD_EMBEDDINGS,  /* a sac_embedder */
    SAC_HEAD_MATTES       /* a sac_segmenter (saccade/segment.h) */
};
/* Of the head of that name; NULL: unknown. Any thread. */
SAC_API enum sac_head_kind sac_head_kind_of(const char *name);
/* Call fn with the name and description of each head. Any thread. */
SAC_API void sac_head_list(void (*fn)(void *user, const char *name, const char *what), void *user);

/* ---- appearance embeddings (ReID) ---- */

typedef struct sac_embedder sac_embedder;
struct sac_embedder_params {
    const char        *preprocess;  /* as above */
    int                batch_max;   /* crops in one run; default 16 */
    enum sac_precision precision;   /* of the network */
    uint64_t           reserved[8]; /* 0 */
};
SAC_API struct sac_embedder_params sac_embedder_params_default(void);
/* params   NULL: the defaults.
 * out      owned by the caller, destroyed with sac_embedder_destroy.
 * Errors   SAC_ERR_ARG (a bad parameter), SAC_ERR_UNSUPPORTED for a model that does not give one
 *          row of numbers per image, those of sac_model_load; SAC_ERR_MEMORY. */
SAC_API sac_result sac_embedder_create(sac_device *dev, const char *model_path,
                                       const struct sac_embedder_params *params,
                                       sac_embedder                    **out);
SAC_API void       sac_embedder_destroy(sac_embedder **emb);
SAC_API int        sac_embedder_dim(const sac_embedder *emb); /* numbers in a row */
/* boxes [n] of one frame -> out [n,dim] float32 rows of length 1, host memory. Boxes are cut to the
 * frame.
 * Threads  one call at a time.
 * Errors   SAC_ERR_ARG for a frame of another device; SAC_ERR_MEMORY. */
SAC_API sac_result sac_embedder_run(sac_embedder *emb, const sac_frame *frame,
                                    const struct sac_detection *boxes, size_t n, float *out);
/* The same, and the rows stay on the embedder's device: *out is a new tensor, [n,dim] float32, for
 * sac_tracker_update_tensor or another program (saccade/dlpack.h). Nothing is copied to the host
 * and no thread waits: the rows are complete behind what is queued on the device by then. The frame
 * may be released at once. Errors   as above; SAC_ERR_LIMIT past the memory limit. *out is then
 * untouched. */
SAC_API sac_result sac_embedder_run_tensor(sac_embedder *emb, const sac_frame *frame,
                                           const struct sac_detection *boxes, size_t n,
                                           sac_tensor **out);
/* As sac_detector_get_times. */
SAC_API void sac_embedder_get_times(const sac_embedder *emb, struct sac_run_times *out);
/* How crops become its model's input; borrowed. */
SAC_API const struct sac_model_contract *sac_embedder_contract(const sac_embedder *emb);
/* Borrowed, to inspect; only the embedder may run it. */
SAC_API sac_model *sac_embedder_model(const sac_embedder *emb);

/* ---- head plug-ins ---- */

enum { SAC_HEAD_PLUGIN_ABI = 1 };

/* What a head sees of one output tensor: host memory, float32, one image of the batch. */
struct sac_head_tensor {
    const char  *name;
    int          rank; /* without the batch */
    int64_t      shape[SAC_RANK_MAX];
    const float *data;
};
/* One image: all output tensors of the network. */
struct sac_head_input {
    const struct sac_head_tensor *tensors;
    int                           count;
    int                           input_width, input_height; /* of the network */
    float                         score_min;
};
/* A shared object exports `const struct sac_head_plugin sac_head_plugin`. */
struct sac_head_plugin {
    uint32_t    abi;         /* SAC_HEAD_PLUGIN_ABI */
    uint32_t    struct_size; /* sizeof (struct sac_head_plugin) */
    const char *name;
    int         needs_nms;                        /* 1: class-wise NMS follows */
    void (*defaults)(struct sac_preprocess *pre); /* change the contract's defaults, or NULL */
    /* Boxes in the network's input pixels; call emit for each. Returns 0, or a negative
     * sac_result. */
    int (*decode)(const struct sac_head_input *in,
                  void (*emit)(void *sink, const struct sac_detection *det), void *sink);
};

#ifdef __cplusplus
}
#endif
#endif
