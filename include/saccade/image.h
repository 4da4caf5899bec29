/* SPDX-License-Identifier: Apache-2.0 */
/* Image operations: frames into tensors, frames into frames, drawing. Each runs on the device that
 * holds the frame. */
#ifndef SACCADE_IMAGE_H
#define SACCADE_IMAGE_H

#include <saccade/frame.h>
#include <saccade/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A rectangle. */
struct sac_rect {
    float x0, y0, x1, y1; /* pixels of the frame; right and bottom edge open */
};

/* How a frame is fitted into a tensor of other proportions. */
enum sac_fit {
    SAC_FIT_STRETCH = 0,
    SAC_FIT_LETTERBOX_TOPLEFT, /* keep the aspect, fill right or below (YOLOX) */
    SAC_FIT_LETTERBOX_CENTRE   /* keep the aspect, fill both sides (YOLOv5 and later) */
};
/* How pixels between pixels are computed. */
enum sac_filter {
    SAC_FILTER_BILINEAR = 0, /* half-pixel centres, as OpenCV's INTER_LINEAR */
    SAC_FILTER_AREA          /* box average when shrinking, bilinear when growing */
};
/* The order of the colours. */
enum sac_channel_order { SAC_ORDER_RGB = 0, SAC_ORDER_BGR };
/* The order of the dimensions. */
enum sac_tensor_layout { SAC_TENSOR_LAYOUT_NCHW = 0, SAC_TENSOR_LAYOUT_NHWC };

/* How pixels become numbers: y = (x - mean) * scale per channel, x in 0..255, channels in the
 * tensor's order. */
struct sac_preprocess {
    int                    width, height; /* of the tensor */
    enum sac_fit           fit;
    enum sac_filter        filter;
    enum sac_channel_order order;
    enum sac_tensor_layout layout;
    enum sac_dtype         dtype; /* SAC_F32, SAC_F16 or SAC_U8 (mean and scale then ignored) */
    float                  mean[3], scale[3];
    float                  fill[3];     /* letterbox colour in 0..255, tensor's channel order */
    uint64_t               reserved[4]; /* 0 */
};
SAC_API struct sac_preprocess sac_preprocess_default(void); /* RGB, NCHW, F32, 0..1, fill 114 */

/* Where the frame's pixels went: x_tensor = x_frame * scale_x + offset_x, and back. */
struct sac_fit_map {
    float scale_x, scale_y, offset_x, offset_y;
};
/* Of a crop, when it is fitted into the tensor of pre. */
SAC_API struct sac_fit_map sac_fit_map_of(const struct sac_preprocess *pre,
                                          const struct sac_rect       *crop);

/* One crop of a frame. */
struct sac_preprocess_job {
    const sac_frame *frame;
    /* Pixels and parts of them, within 2^20 of 0; may reach past the frame: its edge is repeated.
     * Empty (x1 <= x0 or y1 <= y0): the whole frame. */
    struct sac_rect crop;
};
/* Fill dst [n,C,H,W] or [n,H,W,C] (at least n along the first dimension) from n crops of frames
 * that may differ in size and format. One launch on a GPU. The result is that of converting to RGB
 * (each 4:2:0 chroma sample stands for its 2 x 2 pixels) and resizing, without rounding in between:
 * within 0.04 of 255 for colours inside the RGB cube. On a GPU the work is only queued:
 * sac_model_run waits for it by itself, your own code with sac_device_wait.
 * Errors   SAC_ERR_ARG when dst does not fit pre, or a job has no frame of dev or a bad crop. */
SAC_API sac_result sac_preprocess_run(sac_device *dev, const struct sac_preprocess *pre,
                                      const struct sac_preprocess_job *jobs, int n,
                                      sac_tensor *dst);

/* Convert and resize src to the format, size, matrix and range of dst. When only the order of
 * planes changes, the samples stay the same. Counted as SAC_COPY_FRAME_CONVERT.
 * Errors   SAC_ERR_ARG when dst is shared or on another device; SAC_ERR_COPY in strict mode;
 *          SAC_ERR_MEMORY. */
SAC_API sac_result sac_frame_convert(const sac_frame *src, enum sac_filter filter, sac_frame *dst);

/* ---- tensors as frames ---- */

/* Where a picture's channels are among the dimensions of a tensor. */
enum sac_channel_place {
    SAC_CHANNELS_AUTO = 0, /* last where the last dimension is 1, 3 or 4, else first */
    SAC_CHANNELS_LAST,     /* [H,W,C] */
    SAC_CHANNELS_FIRST     /* [C,H,W] */
};
/* How a tensor's numbers are a picture, and what the frame is told. */
struct sac_picture_params {
    enum sac_channel_place channels;
    enum sac_channel_order order; /* of three and of four channels */
    float white;  /* the number of full brightness, 0 being black; 0 (default): 255 for uint8, 1
                     for floats */
    int prepared; /* 1: the numbers are a network's input, as its contract says. Only for
                     sac_detector_run_tensor (saccade/head.h) */
    int64_t  pts_us, number; /* the frame's, as stream_id */
    int      stream_id;
    uint64_t reserved[8]; /* 0 */
};
SAC_API struct sac_picture_params sac_picture_params_default(void);
/* How many pictures a tensor has: N of a shape of four dimensions, else 1; 0: it is none. NULL: the
 * defaults. Any thread. */
SAC_API int64_t sac_picture_count(const sac_tensor *t, const struct sac_picture_params *params);
/* A tensor as a frame of its device, which keeps the tensor alive: what takes frames takes tensors
 * of any program (saccade/dlpack.h).
 *
 * t        [H,W], [H,W,C], [C,H,W], or [N,...] of these, C 1 (grey), 3 or 4 (alpha is ignored) of
 *          uint8, float32, float16 or bfloat16. uint8 with the channels last, and grey, is the
 *          frame as it lies (SAC_PIXEL_RGB24, BGR24, RGBA, BGRA, GRAY8): nothing is copied, and
 *          such a frame is not writable. All else is converted to RGB24 in one pass on the device,
 *          rounded to 8 bits; the ledger counts it as frame-convert, and it fails in strict mode.
 * image    which of the N.
 * params   NULL: the defaults.
 * out      one reference, released by sac_frame_unref. What is queued on the device begins after
 *          what sac_tensor_written_on or sac_tensor_written_at named; nothing waits here.
 * Threads  any.
 * Errors   SAC_ERR_ARG for a tensor that is no picture, or has none of that number; SAC_ERR_COPY in
 *          strict mode; SAC_ERR_LIMIT, SAC_ERR_MEMORY. */
SAC_API sac_result sac_frame_from_tensor(sac_tensor *t, int64_t image,
                                         const struct sac_picture_params *params, sac_frame **out);

/* A colour to draw with. */
struct sac_colour {
    uint8_t r, g, b;
};
/* What a shape is. */
enum sac_shape_kind { SAC_SHAPE_BOX = 0, SAC_SHAPE_LINE, SAC_SHAPE_TEXT, SAC_SHAPE_FILL };
/* Something to draw. */
struct sac_shape {
    enum sac_shape_kind kind;
    struct sac_rect rect; /* box and fill: the area. Line: from x0,y0 to x1,y1. Text: top left at
                             x0,y0 */
    struct sac_colour colour;
    float             alpha;     /* 0..1 */
    int               thickness; /* pixels: box and line; text: height of a glyph in pixels */
    const char       *text;      /* SAC_SHAPE_TEXT: printable ASCII, borrowed */
};
/* Draw onto a writable frame, in order; shapes are clipped to it.
 * Errors   SAC_ERR_ARG when the frame is shared, or a coordinate is not a number. */
SAC_API sac_result sac_frame_draw(sac_frame *frame, const struct sac_shape *shapes, int n);
/* Width in pixels of a text at a glyph height. */
SAC_API int sac_text_width(const char *text, int height);
/* One of 24 colours, always the same for an id and unlike those of the neighbouring ids. Any
 * thread. */
SAC_API struct sac_colour sac_colour_of_id(int64_t id);

#ifdef __cplusplus
}
#endif
#endif
