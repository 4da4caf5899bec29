/* SPDX-License-Identifier: Apache-2.0 */
/* A head: one row that knows a family of networks by the shape of its outputs, says how pixels
 * become their input, and turns the numbers of one image into boxes.
 *
 * The table is in heads.c. A new family is one file and one row there. */
#ifndef SAC_HEADS_HEADS_H
#define SAC_HEADS_HEADS_H

#include <stdio.h>

#include <saccade/head.h>
#include "device/device.h"
#include "engine/engine.h"
#include "heads/feed.h"

enum { SAC_HEAD_OUTPUTS_MAX = 16 };

struct sac_detect_field;
struct sac_detect_spec;
struct sac_instances_spec;
struct sac_matte_spec;

/* What a network was trained for, as its metadata says it (Ultralytics' entry "task"). */
enum sac_head_task {
    SAC_TASK_UNKNOWN = 0,
    SAC_TASK_DETECT,
    SAC_TASK_SEGMENT,
    SAC_TASK_POSE,
    SAC_TASK_ORIENTED, /* boxes with an angle */
    SAC_TASK_OTHER     /* without boxes: a classifier */
};

/* What the shapes of one image's outputs do not show, and reading them needs. */
struct sac_head_facts {
    int                names; /* class names that the file or its YAML brings; 0: none */
    enum sac_head_task task;
    int      keypoints; /* numbers of a prediction's pose, by the metadata; 0: it does not say */
    bool     angles;    /* it computes sines and cosines, as for boxes with an angle */
    bool     queries;   /* its metadata calls it an RT-DETR */
    bool     ranked;    /* it chooses the best scores twice: of the queries, and of their classes */
    bool     flat;      /* the first output's rows have no batch dimension before them */
    bool     single;    /* nor has the picture */
    bool     sized;     /* told the network's size, it gives boxes in pixels of it */
    bool     paddle;    /* PaddleDetection's inputs */
    bool     masked;    /* it takes a mask of pixels */
    unsigned whole;     /* bit i: output i holds whole numbers */
    struct sac_ending ending[SAC_HEAD_OUTPUTS_MAX]; /* what the last operators tell of an output */
    unsigned shares; /* bit i: all numbers of output i lay from 0 to 1 in a run; only where ending
                        does not tell */
};

/* What a model looks like from outside, with the facts that recognition needs. */
struct sac_head_view {
    const sac_model      *model;
    struct sac_feed       feed;
    int                   width, height; /* of the picture; 0 where the file leaves it open */
    bool                  channels_last;
    bool                  batch_open; /* the picture's first dimension */
    struct sac_head_facts facts;
    const char           *named; /* the head that the file's metadata names, or NULL */
    int                   output_count;
    /* Dims with the batch, SAC_DIM_UNKNOWN where open. */
    struct sac_model_port output[SAC_HEAD_OUTPUTS_MAX];
};

typedef void (*sac_head_emit)(void *sink, const struct sac_detection *det);

struct sac_head {
    const char *name;
    const char *what;  /* for people: help, inspect */
    const char *wants; /* output shapes, for the sentence that refuses others */
    bool        needs_nms;
    /* Heads are asked in the order of the table; the first that returns true is used. */
    bool (*recognise)(const struct sac_head_view *view);
    /* Classes by the shape of the outputs; 0: it doesn't show. NULL: the head has none. */
    int (*class_count)(const struct sac_head_view *view);
    /* Set what the family's training used; size, layout and dtype are the input's own. NULL: what
     * sac_preprocess_default gives, RGB in 0..1, letterbox in the centre, fill 114. */
    void (*defaults)(const struct sac_head_view *view, struct sac_preprocess *pre);
    /* What a prediction has beside its box and classes, which is not read: "mask coefficients";
     * NULL: nothing. NULL: the head's predictions never do. */
    const char *(*unread)(const struct sac_head_view *view);
    /* What the numbers of one image's outputs mean (vision/detect.h): fill form, cells, classes and
     * where the numbers are; in has no data. false: the shapes are not the head's. NULL: a plug-in,
     * which decodes by itself, or a head without boxes (embeddings). */
    bool (*layout)(const struct sac_head_input *in, const struct sac_head_facts *facts,
                   struct sac_detect_spec *out);
    /* Where the coefficients of a box's mask are, in layout's cells; returns how many, 0: there are
     * none. NULL: the head's predictions never have any. */
    int (*coefficients)(const struct sac_head_input *in, const struct sac_head_facts *facts,
                        struct sac_detect_field *out);
    /* What the numbers of a map mean (vision/matte.h): fill form, cells, classes, where the numbers
     * are and which output has them; the view's sizes and shapes are those of a run. false: the
     * shapes are not the head's. NULL: it gives no mattes. */
    bool (*matte)(const struct sac_head_view *view, struct sac_matte_spec *out);
    const struct sac_head_plugin *plugin; /* of a head from a shared object */
};

extern const struct sac_head sac_head_yolox, sac_head_yolov5, sac_head_yolov8, sac_head_end2end,
    sac_head_detr, sac_head_nanodet, sac_head_ssd, sac_head_boxes, sac_head_embedding,
    sac_head_semantic, sac_head_matte, sac_head_recurrent;

/* heads.c */
const struct sac_head *sac_head_find(const char *name);               /* NULL: no such row */
const struct sac_head *sac_head_of(const struct sac_head_view *view); /* NULL: not recognised */
/* "yolox, yolov5, ...": those that give boxes, or those of which mattes are made. */
void sac_head_names(bool mattes, char *out, size_t size);
/* Why no head knows the outputs, for people: what they are, and what would do. */
void sac_head_why_not(const struct sac_head_view *view, bool mattes, char *out, size_t size);
/* Size (640 where the file leaves it open), layout and dtype of the input, then the head's
 * defaults. */
sac_result sac_head_preprocess(sac_context *ctx, const struct sac_head *head,
                               const struct sac_head_view *view, struct sac_preprocess *pre);
/* A size that the file fixes cannot be changed: the user's is refused, another is corrected. */
sac_result sac_head_check_size(sac_context *ctx, const struct sac_head_view *view,
                               struct sac_model_contract *io);

/* view.c */
/* user     as of sac_feed_init.
 * Errors   SAC_ERR_UNSUPPORTED for a model without a picture among its inputs, with inputs that
 *          cannot be filled, or with too many outputs; those of sac_feed_init. */
sac_result sac_head_view_init(sac_context *ctx, const sac_model *model, const char *user,
                              struct sac_head_view *view);
/* The outputs' shapes as they will be: sizes that the file leaves open are those of pre. */
sac_result sac_head_probe(sac_model *model, const struct sac_preprocess *pre,
                          struct sac_head_view *view);
/* The outputs as a head sees them, one image's, without numbers: open dims are SAC_DIM_UNKNOWN.
 * Returns how many; out has room for SAC_HEAD_OUTPUTS_MAX. */
int sac_head_view_tensors(const struct sac_head_view *view, struct sac_head_tensor *out);

/* plugin.c: a head from a shared object, with its handle. */
struct sac_head_library {
    void           *handle;
    struct sac_head head;
};
bool       sac_head_is_library(const char *head); /* a file, not a name of the table */
sac_result sac_head_library_open(sac_context *ctx, const char *path, struct sac_head_library *out);
void       sac_head_library_close(struct sac_head_library *lib);
/* Emit the boxes of one image, in pixels of the network's input, of at least in->score_min.
 * SAC_ERR_FORMAT: the shapes are not the plug-in's. */
sac_result sac_head_plugin_decode(const struct sac_head *head, const struct sac_head_input *in,
                                  sac_head_emit emit, void *sink);

/* grid.c: the cells of feature maps, finest stride first, each row by row. */
enum { SAC_GRID_LEVELS_MAX = 4 };
struct sac_grid {
    int     levels;
    int     stride[SAC_GRID_LEVELS_MAX];
    int     columns[SAC_GRID_LEVELS_MAX], rows[SAC_GRID_LEVELS_MAX];
    int64_t cells;
};
/* Strides 8, 16, 32 (levels = 3) or 8 to 64 (4); partial cells count. */
struct sac_grid sac_grid_of(int width, int height, int levels);

/* layout.c */
/* ImageNet's mean and deviation, of channels in that order. */
void sac_head_normalise(struct sac_preprocess *pre, enum sac_channel_order order);
/* The numbers of cells in tensor number `index` of a head's input. */
struct sac_detect_field sac_head_field(const struct sac_head_input *in, int index, int64_t first,
                                       int64_t cell, int64_t number);
/* How many rows of `columns` numbers the tensor has, however many dimensions stand before them: a
 * single row may have lost its own. -1: it has other rows; SAC_DIM_UNKNOWN is -1 too, so a view
 * asks sac_head_has_columns. */
int64_t sac_head_rows(const struct sac_head_tensor *t, int64_t columns);
bool    sac_head_has_columns(const struct sac_head_tensor *t, int64_t columns);
/* maps.c: outputs with numbers for each cell of a map that covers the picture. */
struct sac_head_map {
    int64_t width, height, numbers; /* cells, numbers of each; SAC_DIM_UNKNOWN where open */
    bool    last;                   /* the numbers of a cell lie together, [N,h,w,C] */
};
/* false: the output is none, as its shape tells; numbers are always known. */
bool sac_head_map_of(const struct sac_head_view *view, int output, struct sac_head_map *out);
/* Its name contains one of the words, up to NULL. */
bool sac_head_is_called(const struct sac_head_view *view, int output, const char *const *words);
/* The spec's cells and fields of a map whose shape is known. */
bool sac_head_map_spec(const struct sac_head_view *view, int output, struct sac_matte_spec *out);

/* "none" where out is empty. */
void sac_head_shapes_text(const struct sac_head_tensor *t, int count, char *out, size_t size);

/* beside.c: what stands in a prediction behind its classes. */
/* How many of its `numbers` are no class scores: mask coefficients (as many as the prototypes of a
 * second output have channels) and a pose's points. -1: classes and these can't be told apart. */
int sac_head_beside(const struct sac_head_tensor *t, int count, const struct sac_head_facts *facts,
                    int64_t numbers);
/* The same of a finished row, whose one class is a number; -1 where columns beyond `least` are not
 * explained. */
int         sac_head_beside_row(const struct sac_head_tensor *t, int count,
                                const struct sac_head_facts *facts, int64_t numbers);
const char *sac_head_beside_name(const struct sac_head_view *view);
/* The output [K,h,w] with the prototypes that coefficients weigh; -1: there is none. */
int sac_head_find_prototypes(const struct sac_head_tensor *t, int count);

/* instances.c: detectors whose boxes have masks. */
/* Whether the head reads boxes with coefficients, and an output has prototypes for them. */
bool sac_head_has_instances(const struct sac_head *head, const struct sac_head_view *view);
/* How the outputs become boxes, and boxes a map (vision/instances.h): fields, cells, classes and
 * sizes; the view's sizes and shapes are those of a run. false: they do not fit together. */
bool sac_head_instances(const struct sac_head *head, const struct sac_head_view *view,
                        struct sac_detect_spec *boxes, struct sac_instances_spec *out);

/* nms.c */
/* Greedy, class by class: best first, drop what overlaps a better box of its class by more than
 * iou_max. Sorts by falling score and shortens the list; keeps `keep` at most. */
void sac_nms(struct sac_detections *list, float iou_max, size_t keep);
/* Sort and shorten; of equal boxes only the best stays. */
void sac_detections_distinct(struct sac_detections *list, size_t keep);
/* Only sort and shorten. */
void sac_detections_best(struct sac_detections *list, size_t keep);
bool sac_detections_push(struct sac_detections *list, const struct sac_detection *det);

/* gather.c: where a head's boxes go: filtered, one per prediction, moved to the pixels of the
 * source. */
struct sac_gather {
    const int             *wanted; /* classes; NULL: all */
    size_t                 wanted_count;
    float                  score_min;
    struct sac_fit_map     map;
    struct sac_detections *list;
    bool                   out_of_memory;
};
void sac_gather_box(void *gather, const struct sac_detection *box); /* a sac_head_emit */

/* classes.c */
/* COCO's own number of its class of that name, 1 to 90; 0: it has none. */
int sac_coco_number(const char *name);
/* Give the contract names for `count` classes when it has none: those of COCO where there are
 * 80, or 91, its own numbers with their gaps; else "class 7". Of the classes of mattes those of
 * Pascal VOC (21), Cityscapes (19) or ADE20K (150). */
sac_result sac_contract_default_classes(sac_context *ctx, struct sac_model_contract *contract,
                                        int count, bool mattes);

/* Background before the classes, where they have names. */
sac_result sac_contract_add_background(sac_context *ctx, struct sac_model_contract *contract);

/* class_names.c: classes by the names that people give. */
/* By name, or by number where there is such a class; without any names every number may be one.
 * -1: there is none. */
int sac_contract_find_class(const struct sac_model_contract *contract, const char *name);
/* want: called with the class of each name in a list such as "person, car". path: of the model.
 * Errors   want's; a name that is none, with those that it may mean. */
sac_result sac_contract_choose_classes(sac_context *ctx, const char *path,
                                       const struct sac_model_contract *contract, const char *list,
                                       void *user, sac_result (*want)(void *user, int class_id));
/* "person (1 of 80)", "all 80"; classes [count], NULL: all. of: how many the file has. */
void sac_contract_describe_classes(const struct sac_model_contract *contract, const int *classes,
                                   int count, int of, char *out, size_t size);

/* contract.c */
/* What a picture's numbers are between. */
void sac_contract_range(const struct sac_model_contract *contract, float *low, float *high);
/* Tells the model what its pixels will be, once the contract is read. */
void sac_contract_expect(sac_model *model, const struct sac_model_contract *contract);
/* M.yaml of M.onnx, there or not, released by sac_free. NULL: a model of another name, or no
 * memory. */
char *sac_contract_yaml_path(const char *model);
int   sac_contract_count_names(const sac_model *model); /* that the file or its YAML brings */
/* The text form, from the user (a mistake is SAC_ERR_ARG) or from a file (SAC_ERR_FORMAT). */
sac_result sac_contract_apply_text(sac_context *ctx, struct sac_model_contract *io,
                                   const char *text, enum sac_contract_source from);
/* M.yaml; where is its name for messages. */
sac_result sac_contract_apply_yaml(sac_context *ctx, const char *where, FILE *file,
                                   struct sac_model_contract *io);

/* outputs.c: the outputs of one run for who decodes on the host: float32, per image. */
struct sac_head_outputs {
    sac_device            *dev;
    int                    images, count;
    struct sac_head_tensor tensor[SAC_HEAD_OUTPUTS_MAX]; /* of image 0 */
    size_t                 image_elements[SAC_HEAD_OUTPUTS_MAX];
    struct {
        struct sac_mirror mirror; /* of the latest run's */
        float            *data;   /* other numbers than float32, widened; kept from run to run */
        size_t            capacity;
    } host[SAC_HEAD_OUTPUTS_MAX];
    bool copied; /* the mirrors are not the outputs themselves */
};
sac_result sac_head_outputs_load(struct sac_head_outputs *o, sac_device *dev,
                                 const sac_model *model, sac_tensor *const *out, int images);
/* Only what they look like: the tensors have no data. */
sac_result sac_head_outputs_shape(struct sac_head_outputs *o, sac_device *dev,
                                  const sac_model *model, sac_tensor *const *out, int images);
/* The tensors of one image; out has room for o->count. */
void sac_head_outputs_image(const struct sac_head_outputs *o, int image,
                            struct sac_head_tensor *out);
void sac_head_outputs_finish(struct sac_head_outputs *o);

#endif
