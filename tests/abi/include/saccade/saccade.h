/* SPDX-License-Identifier: Apache-2.0 */
/* Written by tests/abi/record. */
#ifndef SACCADE_SACCADE_H
#define SACCADE_SACCADE_H
#ifndef SACCADE_CONTEXT_H
#define SACCADE_CONTEXT_H
#include <stddef.h>
#include <stdint.h>
#ifndef SACCADE_RESULT_H
#define SACCADE_RESULT_H
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define SAC_API __attribute__((visibility("default")))
#else
#define SAC_API
#endif
typedef enum sac_result {
    SAC_OK = 0,
    SAC_AGAIN = -1,
    SAC_EOS = -2,
    SAC_ERR_ARG = -3,
    SAC_ERR_MEMORY = -4,
    SAC_ERR_IO = -5,
    SAC_ERR_FORMAT = -6,
    SAC_ERR_UNSUPPORTED = -7,
    SAC_ERR_DEVICE = -8,
    SAC_ERR_LIMIT = -9,
    SAC_ERR_CANCELLED = -10,
    SAC_ERR_INTERNAL = -11,
    SAC_ERR_COPY = -12
} sac_result;
SAC_API const char *sac_result_name(sac_result res);
#ifdef __cplusplus
}
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif
typedef struct sac_context sac_context;
enum sac_log_level {
    SAC_LOG_SILENT = 0,
    SAC_LOG_ERROR = 1,
    SAC_LOG_WARN = 2,
    SAC_LOG_INFO = 3,
    SAC_LOG_DEBUG = 4,
    SAC_LOG_TRACE = 5
};
typedef void (*sac_log_fn)(void *user, enum sac_log_level level, const char *message);
struct sac_context_params {
    sac_log_fn         log_fn;
    void              *log_user;
    enum sac_log_level log_level;
    uint64_t           reserved[4];
};
SAC_API struct sac_context_params sac_context_params_default(void);
SAC_API sac_result sac_context_create(const struct sac_context_params *params, sac_context **out);
SAC_API void       sac_context_destroy(sac_context **ctx);
SAC_API size_t sac_context_last_error(const sac_context *ctx, char *buf, size_t size);
SAC_API size_t sac_hide_secrets(const char *text, char *buf, size_t size);
SAC_API void sac_context_set_log_level(sac_context *ctx, enum sac_log_level level);
SAC_API int sac_unfinished_outputs_remove(void (*on_left)(const char *file));
SAC_API const char *sac_version(void);
#ifdef __cplusplus
}
#endif
#endif
#ifndef SACCADE_DEVICE_H
#define SACCADE_DEVICE_H
#include <stdbool.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct sac_device sac_device;
struct sac_device_params {
    int      threads;
    uint64_t memory_limit_bytes;
    uint64_t vram_limit_bytes;
    uint64_t host_limit_bytes;
    int leak_age_s;
    int zero_copy_strict;
    int      trim_frames;
    uint64_t reserved[8];
};
SAC_API struct sac_device_params sac_device_params_default(void);
SAC_API sac_result sac_device_open(sac_context *ctx, const char *name,
                                   const struct sac_device_params *params, sac_device **out);
SAC_API sac_device *sac_device_ref(sac_device *dev);
SAC_API void        sac_device_unref(sac_device **dev);
SAC_API const char *sac_device_name(const sac_device *dev);
SAC_API const char *sac_device_description(const sac_device *dev);
SAC_API int          sac_device_threads(const sac_device *dev);
SAC_API sac_context *sac_device_context(const sac_device *dev);
SAC_API sac_result sac_device_wait(sac_device *dev);
struct sac_pool_stats {
    uint64_t allocations;
    uint64_t reuses;
    uint64_t returns;
    uint64_t leaks;
    uint64_t fragmentation;
    uint64_t bytes_live;
    uint64_t bytes_idle;
    uint64_t bytes_peak;
    uint64_t requests_warm;
    uint64_t allocations_warm;
    uint64_t reserved[8];
};
enum { SAC_POOL_WARM_FRAMES = 300 };
SAC_API void sac_device_pool_stats(const sac_device *dev, struct sac_pool_stats *out);
SAC_API void sac_device_host_pool_stats(const sac_device *dev, struct sac_pool_stats *out);
enum sac_copy_reason {
    SAC_COPY_WEIGHTS,
    SAC_COPY_BOXES,
    SAC_COPY_COMMANDS,
    SAC_COPY_FRAME_UPLOAD,
    SAC_COPY_FRAME_DOWNLOAD,
    SAC_COPY_FRAME_CONVERT,
    SAC_COPY_OVERLAY,
    SAC_COPY_DRAW,
    SAC_COPY_CROP,
    SAC_COPY_TENSOR_USER,
    SAC_COPY_TENSOR_LAYOUT,
    SAC_COPY_TENSOR_DOWNLOAD,
    SAC_COPY_REASON_COUNT
};
SAC_API const char *sac_copy_reason_name(enum sac_copy_reason reason);
struct sac_ledger_entry {
    uint64_t calls, bytes;
};
enum { SAC_COPY_REASON_MAX = 32 };
struct sac_ledger {
    struct sac_ledger_entry reason[SAC_COPY_REASON_MAX];
    uint64_t crossed_bytes;
    uint64_t reserved[4];
};
SAC_API void sac_device_ledger(const sac_device *dev, struct sac_ledger *out);
SAC_API void sac_device_dump_live(const sac_device *dev, void (*fn)(void *user, const char *line),
                                  void             *user);
#ifdef __cplusplus
}
#endif
#endif
#ifndef SACCADE_DOCTOR_H
#define SACCADE_DOCTOR_H
#ifdef __cplusplus
extern "C" {
#endif
enum sac_finding_level {
    SAC_FINDING_OK = 0,
    SAC_FINDING_NOTE,
    SAC_FINDING_MISSING,
    SAC_FINDING_FAULT
};
struct sac_finding {
    const char            *area;
    enum sac_finding_level level;
    const char            *text;
    const char            *mend;
};
SAC_API void sac_doctor_run(sac_context *ctx,
                            void (*fn)(void *user, const struct sac_finding *finding), void *user);
#ifdef __cplusplus
}
#endif
#endif
#ifndef SACCADE_EVAL_H
#define SACCADE_EVAL_H
#ifndef SACCADE_TRACK_H
#define SACCADE_TRACK_H
#ifndef SACCADE_FRAME_H
#define SACCADE_FRAME_H
#include <stdint.h>
#ifndef SACCADE_TENSOR_H
#define SACCADE_TENSOR_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
enum { SAC_RANK_MAX = 8 };
enum sac_dtype {
    SAC_DTYPE_NONE = 0,
    SAC_F32,
    SAC_F16,
    SAC_F64,
    SAC_BF16,
    SAC_I8,
    SAC_U8,
    SAC_I16,
    SAC_U16,
    SAC_I32,
    SAC_U32,
    SAC_I64,
    SAC_U64,
    SAC_BOOL,
    SAC_DTYPE_COUNT
};
SAC_API size_t      sac_dtype_bytes(enum sac_dtype dtype);
SAC_API const char *sac_dtype_name(enum sac_dtype dtype);
struct sac_tensor_desc {
    enum sac_dtype dtype;
    int            rank;
    int64_t        shape[SAC_RANK_MAX];
};
SAC_API int64_t sac_tensor_desc_elements(const struct sac_tensor_desc *desc);
SAC_API int64_t sac_tensor_desc_bytes(const struct sac_tensor_desc *desc);
typedef struct sac_tensor sac_tensor;
SAC_API sac_result sac_tensor_create(sac_device *dev, const struct sac_tensor_desc *desc,
                                     const char *owner, sac_tensor **out);
SAC_API sac_result sac_tensor_wrap(sac_device *dev, const struct sac_tensor_desc *desc, void *data,
                                   void (*release)(void *user), void *user, sac_tensor **out);
SAC_API sac_result  sac_tensor_view(sac_tensor *base, size_t offset_bytes,
                                    const struct sac_tensor_desc *desc, sac_tensor **out);
SAC_API sac_tensor *sac_tensor_ref(sac_tensor *t);
SAC_API void        sac_tensor_unref(sac_tensor **t);
SAC_API const struct sac_tensor_desc *sac_tensor_describe(const sac_tensor *t);
SAC_API void       *sac_tensor_data(const sac_tensor *t);
SAC_API sac_device *sac_tensor_device(const sac_tensor *t);
SAC_API sac_result sac_tensor_upload(sac_tensor *t, const void *src);
SAC_API sac_result sac_tensor_download(const sac_tensor *t, void *dst);
struct sac_tensor_spec {
    sac_device    *device;
    enum sac_dtype dtype;
    int            rank;
    int64_t        shape[SAC_RANK_MAX];
    size_t         align_bytes;
};
SAC_API sac_result sac_tensor_check(sac_context *ctx, const char *what, const sac_tensor *t,
                                    const struct sac_tensor_spec *spec);
SAC_API sac_result sac_tensor_load_npy(sac_device *dev, const char *path, sac_tensor **out);
SAC_API sac_result sac_tensor_save_npy(const sac_tensor *t, const char *path);
#ifdef __cplusplus
}
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif
enum sac_pixel_format {
    SAC_PIXEL_NONE = 0,
    SAC_PIXEL_NV12,
    SAC_PIXEL_P010,
    SAC_PIXEL_I420,
    SAC_PIXEL_RGB24,
    SAC_PIXEL_GRAY8,
    SAC_PIXEL_BGR24,
    SAC_PIXEL_RGBA,
    SAC_PIXEL_BGRA,
    SAC_PIXEL_FORMAT_COUNT
};
SAC_API const char *sac_pixel_format_name(enum sac_pixel_format format);
enum sac_colour_matrix { SAC_MATRIX_BT601 = 0, SAC_MATRIX_BT709, SAC_MATRIX_BT2020 };
enum sac_colour_range { SAC_RANGE_LIMITED = 0, SAC_RANGE_FULL };
enum sac_orientation {
    SAC_UPRIGHT = 0,
    SAC_TURN_90,
    SAC_TURN_180,
    SAC_TURN_270,
    SAC_MIRROR,
    SAC_MIRROR_TURN_90,
    SAC_MIRROR_TURN_180,
    SAC_MIRROR_TURN_270,
    SAC_ORIENTATION_COUNT
};
SAC_API const char *sac_orientation_name(enum sac_orientation orientation);
enum { SAC_PLANES_MAX = 3 };
#define SAC_PTS_NONE INT64_MIN
typedef struct sac_frame {
    enum sac_pixel_format  format;
    int                    width, height;
    uint8_t               *plane[SAC_PLANES_MAX];
    size_t                 pitch_bytes[SAC_PLANES_MAX];
    enum sac_colour_matrix matrix;
    enum sac_colour_range  range;
    enum sac_orientation   orientation;
    int64_t                pts_us;
    int64_t                duration_us;
    int64_t source_pts_us;
    int64_t                 number;
    int                     stream_id;
    sac_device             *device;
    struct sac_frame_owner *owner;
    uint64_t                reserved[4];
} sac_frame;
SAC_API sac_result sac_frame_create(sac_device *dev, const sac_frame *desc, sac_frame **out);
SAC_API sac_result sac_frame_wrap(sac_device *dev, const sac_frame  *desc,
                                  void (*release)(void *user), void *user, sac_frame **out);
SAC_API sac_frame *sac_frame_ref(sac_frame *frame);
SAC_API void       sac_frame_unref(sac_frame **frame);
SAC_API bool sac_frame_is_writable(const sac_frame *frame);
SAC_API sac_result sac_frame_wait(const sac_frame *frame);
SAC_API sac_result sac_frame_plane_tensor(sac_frame *frame, int plane, sac_tensor **out);
SAC_API sac_result sac_frame_copy(const sac_frame *src, sac_frame *dst);
#ifdef __cplusplus
}
#endif
#endif
#ifndef SACCADE_HEAD_H
#define SACCADE_HEAD_H
#ifndef SACCADE_IMAGE_H
#define SACCADE_IMAGE_H
#ifdef __cplusplus
extern "C" {
#endif
struct sac_rect {
    float x0, y0, x1, y1;
};
enum sac_fit {
    SAC_FIT_STRETCH = 0,
    SAC_FIT_LETTERBOX_TOPLEFT,
    SAC_FIT_LETTERBOX_CENTRE
};
enum sac_filter {
    SAC_FILTER_BILINEAR = 0,
    SAC_FILTER_AREA
};
enum sac_channel_order { SAC_ORDER_RGB = 0, SAC_ORDER_BGR };
enum sac_tensor_layout { SAC_TENSOR_LAYOUT_NCHW = 0, SAC_TENSOR_LAYOUT_NHWC };
struct sac_preprocess {
    int                    width, height;
    enum sac_fit           fit;
    enum sac_filter        filter;
    enum sac_channel_order order;
    enum sac_tensor_layout layout;
    enum sac_dtype         dtype;
    float                  mean[3], scale[3];
    float                  fill[3];
    uint64_t               reserved[4];
};
SAC_API struct sac_preprocess sac_preprocess_default(void);
struct sac_fit_map {
    float scale_x, scale_y, offset_x, offset_y;
};
SAC_API struct sac_fit_map sac_fit_map_of(const struct sac_preprocess *pre,
                                          const struct sac_rect       *crop);
struct sac_preprocess_job {
    const sac_frame *frame;
    struct sac_rect crop;
};
SAC_API sac_result sac_preprocess_run(sac_device *dev, const struct sac_preprocess *pre,
                                      const struct sac_preprocess_job *jobs, int n,
                                      sac_tensor *dst);
SAC_API sac_result sac_frame_convert(const sac_frame *src, enum sac_filter filter, sac_frame *dst);
struct sac_colour {
    uint8_t r, g, b;
};
enum sac_shape_kind { SAC_SHAPE_BOX = 0, SAC_SHAPE_LINE, SAC_SHAPE_TEXT, SAC_SHAPE_FILL };
struct sac_shape {
    enum sac_shape_kind kind;
    struct sac_rect rect;
    struct sac_colour colour;
    float             alpha;
    int               thickness;
    const char       *text;
};
SAC_API sac_result sac_frame_draw(sac_frame *frame, const struct sac_shape *shapes, int n);
SAC_API int sac_text_width(const char *text, int height);
SAC_API struct sac_colour sac_colour_of_id(int64_t id);
#ifdef __cplusplus
}
#endif
#endif
#ifndef SACCADE_MODEL_H
#define SACCADE_MODEL_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct sac_model sac_model;
enum { SAC_DIM_UNKNOWN = -1 };
enum sac_precision {
    SAC_PRECISION_DEFAULT = 0,
    SAC_PRECISION_FP32,
    SAC_PRECISION_TF32,
    SAC_PRECISION_FP16
};
SAC_API const char *sac_precision_name(enum sac_precision precision);
SAC_API sac_result sac_precision_parse(const char *name, enum sac_precision *out);
struct sac_model_params {
    int optimise;
    int reference;
    int free_batch;
    uint64_t memory_limit_bytes;
    enum sac_precision precision;
    int      tune;
    uint64_t reserved[8];
};
SAC_API struct sac_model_params sac_model_params_default(void);
struct sac_model_port {
    const char            *name;
    struct sac_tensor_desc desc;
};
SAC_API sac_result sac_model_load(sac_device *dev, const char *path,
                                  const struct sac_model_params *params, sac_model **out);
SAC_API sac_result sac_model_load_memory(sac_device *dev, const void *bytes, size_t size,
                                         const char *name, const struct sac_model_params *params,
                                         sac_model **out);
SAC_API sac_model *sac_model_ref(sac_model *model);
SAC_API void       sac_model_unref(sac_model **model);
SAC_API int                          sac_model_input_count(const sac_model *model);
SAC_API int                          sac_model_output_count(const sac_model *model);
SAC_API const struct sac_model_port *sac_model_input(const sac_model *model, int i);
SAC_API const struct sac_model_port *sac_model_output(const sac_model *model, int i);
SAC_API int sac_model_batches(sac_model *model);
SAC_API sac_result sac_model_run(sac_model *model, sac_tensor *const *in, sac_tensor **out);
SAC_API const char *sac_model_metadata(const sac_model *model, const char *key);
SAC_API const char *sac_model_path(const sac_model *model);
SAC_API const char        *sac_model_file(const sac_model *model, int i);
SAC_API sac_device        *sac_model_device(const sac_model *model);
SAC_API enum sac_precision sac_model_precision(const sac_model *model);
struct sac_build_params {
    struct sac_model_params model;
    int batch_min, batch_opt, batch_max;
    int      width, height;
    uint32_t seed;
    uint64_t reserved[8];
};
SAC_API struct sac_build_params sac_build_params_default(void);
struct sac_build_bucket {
    int    batch;
    double seconds;
    double ms;
    double error;
    double limit;
    int    host_steps;
    int    width, height;
    uint64_t reserved[4];
};
SAC_API sac_result sac_model_build(
    sac_device *dev, const char *path, const struct sac_build_params *params, const char *out,
    void (*on_bucket)(void *user, const struct sac_build_bucket *bucket), void *user);
struct sac_model_operator {
    const char *name;
    const char *domain;
    int         count;
    int         supported;
    const char *why;
    const char *kernel;
    uint64_t reserved[4];
};
struct sac_model_info {
    const char *producer;
    int64_t     ir_version, opset;
    int64_t     parameters;
    int64_t     flops;
    int64_t     weights_bytes, activation_bytes;
    int         node_count;
    int         step_count;
    const struct sac_model_operator *operators;
    int                              operator_count;
    uint64_t                         reserved[8];
};
SAC_API sac_result sac_model_open_for_inspection(sac_device *dev, const char *path,
                                                 const struct sac_model_params *params,
                                                 sac_model                    **out);
SAC_API void sac_model_inspect(sac_model *model, struct sac_model_info *out);
SAC_API void sac_model_dump_steps(sac_model *model, void (*fn)(void *user, const char *line),
                                  void      *user);
SAC_API void sac_model_profile(sac_model *model, int on);
#ifdef __cplusplus
}
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif
struct sac_detection {
    float x0, y0, x1, y1;
    float score;
    int   class_id;
};
struct sac_detections {
    struct sac_detection *items;
    size_t                count, capacity;
};
SAC_API void sac_detections_finish(struct sac_detections *list);
enum sac_contract_source {
    SAC_FROM_HEAD = 0,
    SAC_FROM_METADATA,
    SAC_FROM_YAML,
    SAC_FROM_USER
};
struct sac_model_contract {
    struct sac_preprocess    pre;
    enum sac_contract_source size_from, fit_from, order_from, mean_from, scale_from, fill_from,
        classes_from;
    int      class_count;
    char   **classes;
    uint64_t reserved[8];
};
SAC_API sac_result sac_model_contract_read(const sac_model *model, const char *user,
                                           struct sac_model_contract *io);
SAC_API void       sac_model_contract_finish(struct sac_model_contract *contract);
struct sac_detector_params {
    const char *head;
    const char *preprocess;
    const char *classes;
    float              score_min;
    float              nms_iou;
    int                detection_max;
    int                batch_max;
    enum sac_precision precision;
    uint64_t           reserved[8];
};
SAC_API struct sac_detector_params sac_detector_params_default(void);
typedef struct sac_detector sac_detector;
SAC_API sac_result sac_detector_create(sac_device *dev, const char *model_path,
                                       const struct sac_detector_params *params,
                                       sac_detector                    **out);
SAC_API void       sac_detector_destroy(sac_detector **det);
SAC_API sac_result sac_detector_run(sac_detector *det, sac_frame *const *frames, int n,
                                    struct sac_detections *found);
struct sac_run_times {
    int64_t  begun_ns;
    int64_t  preprocess_ns, inference_ns, head_ns;
    uint64_t reserved[4];
};
SAC_API void sac_detector_get_times(const sac_detector *det, struct sac_run_times *out);
SAC_API const char *sac_detector_class_name(const sac_detector *det, int class_id);
SAC_API int sac_detector_kept_classes(const sac_detector *det);
SAC_API void sac_detector_describe_classes(const sac_detector *det, char *out, size_t size);
SAC_API int         sac_detector_keeps_only(const sac_detector *det, const char *name);
SAC_API const char *sac_detector_head_name(const sac_detector *det);
SAC_API const struct sac_model_contract *sac_detector_contract(const sac_detector *det);
SAC_API sac_model *sac_detector_model(const sac_detector *det);
SAC_API const char *sac_head_recognise(const sac_model *model);
SAC_API void sac_head_list(void (*fn)(void *user, const char *name, const char *what), void *user);
typedef struct sac_embedder sac_embedder;
struct sac_embedder_params {
    const char        *preprocess;
    int                batch_max;
    enum sac_precision precision;
    uint64_t           reserved[8];
};
SAC_API struct sac_embedder_params sac_embedder_params_default(void);
SAC_API sac_result sac_embedder_create(sac_device *dev, const char *model_path,
                                       const struct sac_embedder_params *params,
                                       sac_embedder                    **out);
SAC_API void       sac_embedder_destroy(sac_embedder **emb);
SAC_API int        sac_embedder_dim(const sac_embedder *emb);
SAC_API sac_result sac_embedder_run(sac_embedder *emb, const sac_frame *frame,
                                    const struct sac_detection *boxes, size_t n, float *out);
SAC_API void       sac_embedder_get_times(const sac_embedder *emb, struct sac_run_times *out);
SAC_API const struct sac_model_contract *sac_embedder_contract(const sac_embedder *emb);
SAC_API sac_model                       *sac_embedder_model(const sac_embedder *emb);
enum { SAC_HEAD_PLUGIN_ABI = 1 };
struct sac_head_tensor {
    const char  *name;
    int          rank;
    int64_t      shape[SAC_RANK_MAX];
    const float *data;
};
struct sac_head_input {
    const struct sac_head_tensor *tensors;
    int                           count;
    int                           input_width, input_height;
    float                         score_min;
};
struct sac_head_plugin {
    uint32_t    abi;
    uint32_t    struct_size;
    const char *name;
    int         needs_nms;
    void (*defaults)(struct sac_preprocess *pre);
    int (*decode)(const struct sac_head_input *in,
                  void (*emit)(void *sink, const struct sac_detection *det), void *sink);
};
#ifdef __cplusplus
}
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif
enum sac_tracker_kind {
    SAC_TRACKER_SORT = 0,
    SAC_TRACKER_BYTETRACK,
    SAC_TRACKER_OCSORT,
    SAC_TRACKER_BOTSORT
};
SAC_API const char *sac_tracker_kind_name(enum sac_tracker_kind kind);
SAC_API sac_result sac_tracker_kind_parse(const char *name, enum sac_tracker_kind *out);
SAC_API int sac_tracker_kind_uses_appearance(enum sac_tracker_kind kind);
SAC_API void sac_tracker_list(void (*fn)(void *user, const char *name, const char *what),
                              void *user);
struct sac_tracker_params {
    enum sac_tracker_kind kind;
    float                 score_high;
    float score_low;
    float score_new;
    float match_iou;
    float lost_max_s;
    float confirm_s;
    float reid_distance_max;
    int embedding_dim;
    int gallery_max;
    int camera_motion;
    int track_max;
    int      stream_id;
    uint64_t reserved[8];
};
SAC_API struct sac_tracker_params sac_tracker_params_default(enum sac_tracker_kind kind);
enum sac_track_state { SAC_TRACK_TENTATIVE = 0, SAC_TRACK_CONFIRMED, SAC_TRACK_LOST };
struct sac_track {
    int64_t              id;
    float                x0, y0, x1, y1;
    float                score;
    int                  class_id;
    enum sac_track_state state;
    float                vx, vy;
    int64_t              first_us, last_us;
    int                  detection;
};
struct sac_track_view {
    const struct sac_track *tracks;
    size_t                  count;
};
typedef struct sac_tracker sac_tracker;
SAC_API sac_result sac_tracker_create(sac_context *ctx, const struct sac_tracker_params *params,
                                      sac_tracker **out);
SAC_API void       sac_tracker_destroy(sac_tracker **trk);
SAC_API sac_result sac_tracker_update(sac_tracker *trk, const struct sac_detection *det, size_t n,
                                      const float *embeddings, const sac_frame *frame,
                                      int64_t pts_us, struct sac_track_view *out);
SAC_API sac_result sac_tracker_update_tensor(sac_tracker *trk, const struct sac_detection *det,
                                             size_t n, sac_tensor *embeddings, const int32_t *row,
                                             const sac_frame *frame, int64_t pts_us,
                                             struct sac_track_view *out);
SAC_API int sac_tracker_wants_embeddings(const sac_tracker *trk);
struct sac_mot_row {
    int    frame;
    int    id;
    double x, y, w, h;
    float  conf;
    int    class_id;
    float visibility;
};
struct sac_mot_file {
    struct sac_mot_row *rows;
    size_t              count;
    int                 frame_max;
};
SAC_API sac_result sac_mot_read(sac_context *ctx, const char *path, struct sac_mot_file *out);
SAC_API void       sac_mot_finish(struct sac_mot_file *file);
struct sac_mot_seqinfo {
    char     name[128];
    double   fps;
    int      length, width, height;
    uint64_t reserved[4];
};
SAC_API sac_result sac_mot_read_seqinfo(sac_context *ctx, const char *path,
                                        struct sac_mot_seqinfo *out);
#ifdef __cplusplus
}
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif
enum { SAC_HOTA_ALPHAS = 19 };
struct sac_eval_result {
    char name[128];
    double  hota, det_a, ass_a, det_re, det_pr, ass_re, ass_pr, loc_a;
    double  mota, motp, moda, recall, precision;
    int64_t tp, fp, fn, idsw, frag, mt, pt, ml;
    double  idf1, idp, idr;
    int64_t idtp, idfp, idfn;
    int64_t dets, gt_dets, ids, gt_ids, frames;
    double hota_tp[SAC_HOTA_ALPHAS], hota_fp[SAC_HOTA_ALPHAS], hota_fn[SAC_HOTA_ALPHAS];
    double hota_loc[SAC_HOTA_ALPHAS], hota_ass_a[SAC_HOTA_ALPHAS], hota_ass_re[SAC_HOTA_ALPHAS],
        hota_ass_pr[SAC_HOTA_ALPHAS];
    double   motp_sum;
    uint64_t reserved[16];
};
struct sac_eval_params {
    int preprocess;
    int      frames;
    uint64_t reserved[4];
};
SAC_API struct sac_eval_params sac_eval_params_default(void);
SAC_API sac_result sac_eval_sequence(sac_context *ctx, const char *name,
                                     const struct sac_mot_file    *gt,
                                     const struct sac_mot_file    *tracks,
                                     const struct sac_eval_params *params,
                                     struct sac_eval_result       *out);
SAC_API void sac_eval_combine(const struct sac_eval_result *parts, size_t n,
                              struct sac_eval_result *out);
#ifdef __cplusplus
}
#endif
#endif
#ifndef SACCADE_FILES_H
#define SACCADE_FILES_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
SAC_API sac_result sac_files_check(sac_context *ctx, const char *const *outputs,
                                   size_t output_count, const char *const *inputs,
                                   size_t input_count);
#ifdef __cplusplus
}
#endif
#endif
#ifndef SACCADE_MODELS_H
#define SACCADE_MODELS_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
SAC_API sac_result sac_models_find(sac_context *ctx, const char *model, char *path, size_t size);
struct sac_shipped_model {
    const char *name;
    const char *what;
    const char *path;
};
SAC_API void sac_models_list(void (*fn)(void *user, const struct sac_shipped_model *model),
                             void *user);
#ifdef __cplusplus
}
#endif
#endif
#ifndef SACCADE_PIPELINE_H
#define SACCADE_PIPELINE_H
#ifndef SACCADE_SINK_H
#define SACCADE_SINK_H
#ifndef SACCADE_SOURCE_H
#define SACCADE_SOURCE_H
#ifdef __cplusplus
extern "C" {
#endif
typedef struct sac_source sac_source;
enum sac_decode {
    SAC_DECODE_DEFAULT = 0,
    SAC_DECODE_GPU,
    SAC_DECODE_AUTO,
    SAC_DECODE_CPU
};
enum sac_rotate {
    SAC_ROTATE_AUTO = 0,
    SAC_ROTATE_NONE,
    SAC_ROTATE_90,
    SAC_ROTATE_180,
    SAC_ROTATE_270
};
struct sac_source_params {
    double fps;
    int64_t start_us;
    int64_t duration_us;
    int     every;
    const char *const *pictures;
    int                picture_count;
    enum sac_decode    decode;
    enum sac_rotate    rotate;
    int                decode_threads;
    int surfaces;
    int round_trip;
    int prefetch;
    int     stream_id;
    int64_t timeout_us;
    int     keep_packets;
    int (*give_up)(void *user);
    void *give_up_user;
    void (*on_decoded)(void *user, const sac_frame *frame, int64_t begun_ns, int64_t ended_ns);
    void    *on_decoded_user;
    uint64_t reserved[8];
};
SAC_API struct sac_source_params sac_source_params_default(void);
struct sac_source_info {
    char     container[32], codec[32];
    char     decoder[32];
    char     decoder_note[256];
    int      surfaces;
    uint64_t surface_bytes;
    int      width, height;
    double   fps;
    int      fps_num, fps_den;
    int64_t  duration_us;
    int64_t  frames;
    enum sac_pixel_format  format;
    enum sac_colour_matrix matrix;
    enum sac_colour_range  range;
    double               rotation;
    int                  mirrored;
    enum sac_orientation orientation;
    int                  audio_streams;
    int                  live;
    uint64_t             reserved[16];
};
struct sac_stream_info {
    char     kind[16];
    char     codec[32], profile[32];
    char     format[32];
    char     language[16];
    int      width, height;
    double   fps;
    char     colour[64];
    int      sample_rate, channels;
    int64_t  bit_rate;
    int      chosen;
    uint64_t reserved[8];
};
struct sac_source_stats {
    uint64_t frames, packets, bytes;
    uint64_t corrupt;
    uint64_t pts_repaired;
    uint64_t size_changes;
    uint64_t converted;
    uint64_t reserved[8];
};
SAC_API sac_result sac_source_open(sac_device *dev, const char *url,
                                   const struct sac_source_params *params, sac_source **out);
SAC_API int  sac_name_is_picture(const char *path);
SAC_API int  sac_name_is_video(const char *path);
SAC_API void sac_source_close(sac_source **src);
SAC_API void sac_source_describe(const sac_source *src, struct sac_source_info *out);
SAC_API int  sac_source_streams(const sac_source *src, struct sac_stream_info *out, int max);
SAC_API void sac_source_get_stats(sac_source *src, struct sac_source_stats *out);
SAC_API sac_result sac_source_read_wait(sac_source *src, sac_frame **out);
SAC_API void sac_source_cancel(sac_source *src);
#ifdef __cplusplus
}
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif
typedef struct sac_sink sac_sink;
struct sac_sink_params {
    const char *encoder;
    int threads;
    int beside;
    int crf;
    const char *preset;
    uint64_t    reserved[8];
};
SAC_API struct sac_sink_params sac_sink_params_default(void);
SAC_API sac_result sac_sink_check_path(sac_context *ctx, const char *path);
SAC_API sac_result sac_sink_create(sac_device *dev, const char *path, sac_source *like,
                                   const struct sac_sink_params *params, sac_sink **out);
SAC_API sac_result sac_sink_write_wait(sac_sink *sink, sac_frame *frame);
SAC_API sac_result sac_sink_finish(sac_sink *sink);
SAC_API void sac_sink_destroy(sac_sink **sink);
SAC_API const char *sac_sink_encoder(const sac_sink *sink);
#ifdef __cplusplus
}
#endif
#endif
#ifndef SACCADE_STATS_H
#define SACCADE_STATS_H
#ifndef SACCADE_TIMER_H
#define SACCADE_TIMER_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct sac_timers sac_timers;
struct sac_timer_summary {
    char     name[32];
    int64_t  count;
    double   total_ms, mean_ms, p50_ms, p95_ms, p99_ms, max_ms;
    uint64_t reserved[4];
};
SAC_API sac_result sac_timers_create(sac_context *ctx, sac_timers **out);
SAC_API void       sac_timers_destroy(sac_timers **timers);
SAC_API void       sac_timers_enable(sac_timers *timers, int on);
SAC_API int sac_timers_id(sac_timers *timers, const char *name);
SAC_API int64_t sac_timer_begin(sac_timers *timers);
SAC_API void    sac_timer_end(sac_timers *timers, int id, int64_t begun);
SAC_API void sac_timer_add(sac_timers *timers, int id, int64_t duration_ns);
SAC_API int sac_timers_summary(sac_timers *timers, struct sac_timer_summary *out, int max);
#ifdef __cplusplus
}
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif
struct sac_queue_info {
    char     name[32];
    uint64_t length, capacity, length_max;
    uint64_t passed;
    uint64_t full, empty;
    double   push_wait_ms, pop_wait_ms;
    uint64_t reserved[4];
};
struct sac_batch_stats {
    uint64_t count, frames, full;
    int      max;
    double   mean;
    uint64_t reserved[4];
};
struct sac_gpu_stats {
    int    known;
    char   name[96];
    int    samples;
    double utilisation;
    double decoder_load;
    double encoder_load;
    double   utilisation_1m, utilisation_5m, decoder_load_1m, decoder_load_5m;
    uint64_t memory_bytes, memory_peak_bytes, memory_total_bytes;
    uint64_t reserved[8];
};
enum {
    SAC_OUTPUT_VIDEO = 1,
    SAC_OUTPUT_JSONL = 2,
    SAC_OUTPUT_MOT = 4,
    SAC_OUTPUT_TRACE = 8,
    SAC_OUTPUT_STATS = 16,
    SAC_OUTPUT_CSV = 32,
    SAC_OUTPUT_KITTI = 64,
    SAC_OUTPUT_COCO = 128,
    SAC_OUTPUT_CROPS = 256
};
enum { SAC_SHARDS_MAX = 16 };
struct sac_shard_stats {
    char                   device[16];
    int                    streams;
    int64_t                frames;
    double                 fps;
    struct sac_batch_stats batch;
    uint64_t               memory_bytes_peak;
    struct sac_gpu_stats   gpu;
    uint64_t               reserved[8];
};
enum { SAC_STAGE_MAX = 16, SAC_ADVICE_MAX = 2 };
struct sac_pipeline_stats {
    int64_t frames, frames_total;
    int64_t detections, tracks;
    int     objects;
    double  elapsed_s, fps;
    double  cpu_s;
    struct sac_timer_summary stage[SAC_STAGE_MAX], stage_gpu[SAC_STAGE_MAX];
    uint64_t stage_bytes[SAC_STAGE_MAX], stage_bytes_peak[SAC_STAGE_MAX];
    uint64_t other_bytes, other_bytes_peak;
    int      stage_count;
    struct sac_timer_summary latency;
    struct sac_queue_info    queue[SAC_STAGE_MAX];
    int                      queue_count;
    struct sac_batch_stats   batch;
    char bottleneck[32];
    char bottleneck_why[256];
    char                  advice[SAC_ADVICE_MAX][256];
    int                   advice_count;
    struct sac_pool_stats pool;
    double                pool_reuse;
    struct sac_pool_stats host_pool;
    struct sac_ledger     ledger;
    double crossed_per_s;
    struct sac_gpu_stats   gpu;
    struct sac_shard_stats shard[SAC_SHARDS_MAX];
    int                     shard_count;
    struct sac_source_stats source;
    unsigned outputs_whole;
    uint64_t rss_bytes, rss_peak_bytes;
    char     device[160];
    char     engine[128];
    char     precision[16];
    char     detector[128], head[32], tracker[32], reid[128], encoder[64];
    char     classes[256];
    int      class_count, class_kept;
    uint64_t reserved[64];
};
struct sac_stream_stats {
    char input[256];
    int  stream_id;
    int64_t    frames, frames_total, detections, tracks;
    double     elapsed_s, fps;
    char       decoder[32];
    char       decoder_note[256];
    uint64_t   surface_bytes;
    char       encoder[64];
    sac_result status;
    char       why[512];
    unsigned   outputs_whole;
    struct sac_source_stats source;
    uint64_t                reserved[16];
};
SAC_API void sac_stats_lines(const struct sac_pipeline_stats *stats, int     details,
                             void (*fn)(void *user, const char *line), void *user);
#ifdef __cplusplus
}
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif
struct sac_track_job_params {
    const char              *device;
    struct sac_device_params device_params;
    const char                *detector;
    struct sac_detector_params detector_params;
    const char                *reid;
    struct sac_embedder_params reid_params;
    struct sac_tracker_params  tracker;
    int                        timeout_ms;
    int                        inference_batch_max;
    int batches_ahead;
    int reid_every;
    int         queue_length;
    int         timers;
    const char *trace_out;
    const char *stats_out;
    uint64_t reserved[16];
};
enum { SAC_LABEL_ID = 1, SAC_LABEL_CLASS = 2, SAC_LABEL_SCORE = 4, SAC_LABEL_AUTO = 8 };
SAC_API sac_result sac_labels_parse(const char *text, unsigned *out);
struct sac_stream_params {
    const char *input, *detections;
    const char *video_out, *jsonl_out, *mot_out, *csv_out, *kitti_out, *coco_out, *crops_out;
    uint64_t    reserved[8];
};
struct sac_pipeline_params {
    struct sac_track_job_params job;
    const struct sac_stream_params *streams;
    int                             stream_count;
    const char *const       *devices;
    int                      device_count;
    const char              *input;
    struct sac_source_params source;
    const char *detections;
    double fps;
    int    realtime;
    const char *video_out;
    const char *jsonl_out;
    const char *mot_out;
    const char *csv_out;
    const char *kitti_out;
    const char *coco_out;
    const char *crops_out;
    int clip_boxes;
    struct sac_sink_params sink;
    unsigned               labels;
    int                draw_trails;
    float              trail_s;
    const char        *command;
    const char *const *reads;
    int read_count;
    int (*on_frame)(void *user, const sac_frame *frame, const struct sac_track *tracks, size_t n);
    void    *on_frame_user;
    uint64_t reserved[16];
};
SAC_API struct sac_pipeline_params sac_pipeline_params_default(void);
SAC_API sac_result sac_pipeline_check_files(sac_context                      *ctx,
                                            const struct sac_pipeline_params *params);
typedef struct sac_pipeline sac_pipeline;
SAC_API sac_result sac_pipeline_create(sac_context *ctx, const struct sac_pipeline_params *params,
                                       sac_pipeline **out);
SAC_API sac_result sac_pipeline_run(sac_pipeline *pipe);
SAC_API void sac_pipeline_stop(sac_pipeline *pipe);
SAC_API void sac_pipeline_get_stats(sac_pipeline *pipe, struct sac_pipeline_stats *out);
SAC_API void sac_pipeline_get_stream_stats(sac_pipeline *pipe, int stream,
                                           struct sac_stream_stats *out);
SAC_API const char *sac_pipeline_class_name(const sac_pipeline *pipe, int class_id);
SAC_API void sac_pipeline_dump_live(const sac_pipeline *pipe,
                                    void (*fn)(void *user, const char *line), void *user);
SAC_API void sac_pipeline_destroy(sac_pipeline **pipe);
struct sac_session_params {
    struct sac_track_job_params job;
    int                         submit_max;
    uint64_t                    reserved[8];
};
SAC_API struct sac_session_params sac_session_params_default(void);
struct sac_session_result {
    int64_t    id;
    int64_t    pts_us;
    int        stream_id;
    sac_frame *frame;
    struct sac_track *tracks;
    size_t            count;
    double     queue_ms, preprocess_ms, inference_ms, head_ms, reid_ms, tracking_ms, total_ms;
    sac_result status;
    uint64_t   reserved[8];
};
SAC_API void sac_session_result_finish(struct sac_session_result *result);
typedef struct sac_session sac_session;
SAC_API sac_result sac_session_create(sac_context *ctx, const struct sac_session_params *params,
                                      sac_session **out);
SAC_API sac_device *sac_session_device(const sac_session *s);
SAC_API sac_result sac_session_start(sac_session *s);
SAC_API const char *sac_session_class_name(const sac_session *s, int class_id);
SAC_API sac_result sac_session_submit(sac_session *s, sac_frame *frame, int64_t id);
SAC_API sac_result sac_session_result_wait(sac_session *s, int64_t timeout_ns,
                                           struct sac_session_result *out);
SAC_API void sac_session_end(sac_session *s);
SAC_API void sac_session_get_stats(sac_session *s, struct sac_pipeline_stats *out);
SAC_API void sac_session_destroy(sac_session **s);
#ifdef __cplusplus
}
#endif
#endif
#endif
