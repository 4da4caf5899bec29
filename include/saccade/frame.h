/* SPDX-License-Identifier: Apache-2.0 */
/* A video frame: pixel planes on one device with time and colour, counted by reference.
 *
 * The fields are read-only while the frame is shared. Planes: NV12 and P010 have Y and interleaved
 * UV, I420 has Y, U and V, all others have one plane: RGB24 and BGR24 of 3 bytes a pixel, RGBA and
 * BGRA of 4.
 *
 * Pictures of another library are wrapped, not copied. Any row pitch is allowed, so a part of a
 * larger picture can be a frame as well. OpenCV's cv::Mat of type CV_8UC3 is BGR24, CV_8UC4 BGRA,
 * CV_8UC1 GRAY8:
 *     sac_frame desc = {.format = SAC_PIXEL_BGR24, .width = mat.cols, .height = mat.rows};
 *     desc.pts_us = time_us;
 *     desc.plane[0] = mat.data;
 *     desc.pitch_bytes[0] = mat.step;
 *     res = sac_frame_wrap(cpu, &desc, NULL, NULL, &frame);
 *
 * A camera held sideways stores its pictures lying on their side. Width, height, boxes and crops
 * always refer to the upright picture. A GPU's decoder leaves the planes as they were stored:
 * `orientation` tells how to turn them upright, and the library reads them that way without a copy.
 * Frames in host memory and frames from sac_frame_create are always upright.
 */
#ifndef SACCADE_FRAME_H
#define SACCADE_FRAME_H

#include <stdint.h>
#include <saccade/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How pixels are stored. */
enum sac_pixel_format {
    SAC_PIXEL_NONE = 0,
    SAC_PIXEL_NV12,  /* 8 bit 4:2:0, Y then UV interleaved */
    SAC_PIXEL_P010,  /* 10 bit in the high bits of 16, 4:2:0, Y then UV interleaved */
    SAC_PIXEL_I420,  /* 8 bit 4:2:0, Y, U, V */
    SAC_PIXEL_RGB24, /* 8 bit, R first */
    SAC_PIXEL_GRAY8, /* Y alone, full range */
    SAC_PIXEL_BGR24, /* 8 bit, B first: OpenCV's order */
    SAC_PIXEL_RGBA,  /* 8 bit, R first, then alpha, which is ignored: copies and drawing keep it,
                      * conversions write 255 */
    SAC_PIXEL_BGRA,  /* the same, B first */
    SAC_PIXEL_FORMAT_COUNT
};
SAC_API const char *sac_pixel_format_name(enum sac_pixel_format format); /* "nv12", ... */

/* How Y, U and V become R, G and B. */
enum sac_colour_matrix { SAC_MATRIX_BT601 = 0, SAC_MATRIX_BT709, SAC_MATRIX_BT2020 };
/* The values of black and white. */
enum sac_colour_range { SAC_RANGE_LIMITED = 0, SAC_RANGE_FULL }; /* 16..235 or 0..255 for 8 bit */

/* What turns the stored planes upright: first mirroring from left to right, then turning clockwise.
 * Each plane is turned by itself. */
enum sac_orientation {
    SAC_UPRIGHT = 0,
    SAC_TURN_90, /* the upright picture is as wide as the stored one is high */
    SAC_TURN_180,
    SAC_TURN_270,
    SAC_MIRROR,
    SAC_MIRROR_TURN_90,
    SAC_MIRROR_TURN_180,
    SAC_MIRROR_TURN_270,
    SAC_ORIENTATION_COUNT
};
SAC_API const char *sac_orientation_name(enum sac_orientation orientation); /* "turned by 90
                                                                               degrees", ... */

enum { SAC_PLANES_MAX = 3 };

#define SAC_PTS_NONE INT64_MIN /* no time */

/* A frame. To create one, fill in what the function reads, and 0 elsewhere. */
typedef struct sac_frame {
    enum sac_pixel_format  format;
    int                    width, height; /* pixels, luma, of the upright picture */
    uint8_t               *plane[SAC_PLANES_MAX];
    size_t                 pitch_bytes[SAC_PLANES_MAX];
    enum sac_colour_matrix matrix;
    enum sac_colour_range  range;
    enum sac_orientation   orientation; /* of the planes */
    int64_t                pts_us;      /* presentation time, grows from frame to frame */
    int64_t                duration_us; /* 0: unknown */
    int64_t source_pts_us; /* the input's own timestamp, which may begin anywhere and step back;
                              SAC_PTS_NONE: it has none. Only for a source's frames */
    int64_t                 number; /* 0, 1, 2, ... in the whole input */
    int                     stream_id;
    sac_device             *device; /* where the planes are; borrowed from the frame */
    struct sac_frame_owner *owner;  /* internal: reference count and the planes' memory */
    /* When its last packet reached the decoder, or was due there (sac_source_params.paced), on the
     * monotonic clock; 0: unknown. Only for a source's frames. */
    int64_t  arrived_ns;
    uint64_t reserved[3]; /* 0 */
} sac_frame;

/* Create an upright frame with planes from the device's pool; the pixels are not initialised.
 * Width, height and format of desc determine the layout; time, colour and ids are copied.
 *
 * out      one reference, released by sac_frame_unref.
 * Threads  any.
 * Errors   SAC_ERR_ARG for a size outside 1..32768 or an unknown format; SAC_ERR_MEMORY. */
SAC_API sac_result sac_frame_create(sac_device *dev, const sac_frame *desc, sac_frame **out);
/* Create a frame over planes that the caller owns. The frame is never writable, since the owner may
 * still read the planes (a decoder does, to predict the next picture). The planes of desc must be
 * complete: the caller's own work that writes them must be done. release(user) is called when the
 * last reference is gone and the library's work with the planes is done.
 *
 * On a device that works in host memory, planes that are not upright are turned into a new,
 * writable frame, and the caller's planes are released before the call returns. The ledger counts
 * this as frame-convert; it fails in strict mode.
 * Threads  any; release may be called from any thread.
 * Errors   as above, and SAC_ERR_ARG for a missing plane, too short a pitch or an unknown
 * orientation; release is not called then. */
SAC_API sac_result sac_frame_wrap(sac_device *dev, const sac_frame  *desc,
                                  void (*release)(void *user), void *user, sac_frame **out);
SAC_API sac_frame *sac_frame_ref(sac_frame *frame);
SAC_API void       sac_frame_unref(sac_frame **frame);
/* True when the planes are the frame's own and the caller holds the only reference: it may
 * write. */
SAC_API bool sac_frame_is_writable(const sac_frame *frame);

/* Wait until the planes are complete; the thread sleeps. Call it before your own code reads the
 * planes: a frame in a GPU's memory may be delivered before its planes are complete, and copies,
 * conversions and drawing return before they are done. The library's own functions wait by
 * themselves. Any thread.
 * Errors   SAC_ERR_DEVICE, SAC_ERR_MEMORY. */
SAC_API sac_result sac_frame_wait(const sac_frame *frame);

/* A plane as a read-only tensor that shares its memory: nothing is copied, and the tensor keeps the
 * frame alive. The shape is [rows, pitch]; the type is uint8, or uint16 for P010 (10 bits in the
 * high ones). A row begins with its pixels: width numbers, or half of that, rounded up, for U or V
 * of I420; pairs for UV; 3 numbers a pixel for RGB24 and BGR24; 4 for RGBA and BGRA. The rest of
 * the row is padding. When the orientation is not SAC_UPRIGHT, the tensor is the plane as it is
 * stored. The library's own functions wait until the planes are complete before they use the
 * tensor.
 * Errors   SAC_ERR_ARG for a plane that the format does not have, or whose pitch is not a whole
 *          number of elements; SAC_ERR_MEMORY. */
SAC_API sac_result sac_frame_plane_tensor(sac_frame *frame, int plane, sac_tensor **out);

/* Copy the planes of src into dst, which has the same format and size and is upright afterwards.
 * The frames may be on different devices when one of them is the CPU: the other device's ledger
 * counts a frame-upload or a frame-download, and the copy is done on return. On one device the copy
 * counts as frame-convert. All of these fail in strict mode.
 * Errors   SAC_ERR_ARG when format or size differ, or dst is not writable; SAC_ERR_COPY in strict
 *          mode; SAC_ERR_DEVICE. */
SAC_API sac_result sac_frame_copy(const sac_frame *src, sac_frame *dst);

#ifdef __cplusplus
}
#endif
#endif
