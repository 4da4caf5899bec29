/* SPDX-License-Identifier: Apache-2.0 */
/* A video frame: pixel planes on one device with time and colour, counted by reference.
 *
 * The fields are read-only while the frame is shared. Planes: NV12 and P010 have Y and interleaved
 * UV, I420 has Y, U and V, all others have one plane: RGB24 and BGR24 of 3 bytes a pixel, RGBA and BGRA of 4.
 *
 * Pictures of another library are wrapped, not copied: any row pitch will do, so part of a larger picture is a
 * frame as well. OpenCV's cv::Mat of type CV_8UC3 is BGR24, CV_8UC4 BGRA, CV_8UC1 GRAY8:
 *     sac_frame desc = {.format = SAC_PIXEL_BGR24, .width = mat.cols, .height = mat.rows, .pts_us = time_us};
 *     desc.plane[0] = mat.data;
 *     desc.pitch_bytes[0] = mat.step;
 *     res = sac_frame_wrap(cpu, &desc, NULL, NULL, &frame);
 *
 * A camera held sideways stores its pictures lying on their side. Width and height are those of the upright
 * picture, and so are all boxes and crops. A GPU's decoder leaves the planes as they were stored: orientation
 * tells what turns them upright, and the library reads them so without a copy. Frames in host memory and
 * those of sac_frame_create are always upright.
 */
#ifndef SACCADE_FRAME_H
#define SACCADE_FRAME_H

#include <stdint.h>
#include <saccade/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sac_pixel_format {
    SAC_PIXEL_NONE = 0,
    SAC_PIXEL_NV12,  /* 8 bit 4:2:0, Y then UV interleaved */
    SAC_PIXEL_P010,  /* 10 bit in the high bits of 16, 4:2:0, Y then UV interleaved */
    SAC_PIXEL_I420,  /* 8 bit 4:2:0, Y, U, V */
    SAC_PIXEL_RGB24, /* 8 bit, R first */
    SAC_PIXEL_GRAY8, /* Y alone, full range */
    SAC_PIXEL_BGR24, /* 8 bit, B first: OpenCV's order */
    SAC_PIXEL_RGBA,  /* 8 bit, R first, then alpha, which is not looked at: copies and drawing leave it as it
                      * is, conversions write 255 */
    SAC_PIXEL_BGRA,  /* the same, B first */
    SAC_PIXEL_FORMAT_COUNT
};
SAC_API const char *sac_pixel_format_name(enum sac_pixel_format format); /* "nv12", ... */

enum sac_colour_matrix { SAC_MATRIX_BT601 = 0, SAC_MATRIX_BT709, SAC_MATRIX_BT2020 };
enum sac_colour_range { SAC_RANGE_LIMITED = 0, SAC_RANGE_FULL }; /* 16..235 or 0..255 for 8 bit */

/* What turns the stored planes upright: mirroring from left to right, then turning clockwise. Each plane is
 * turned in itself. */
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
SAC_API const char *sac_orientation_name(enum sac_orientation orientation); /* "turned by 90 degrees", ... */

enum { SAC_PLANES_MAX = 3 };

#define SAC_PTS_NONE INT64_MIN /* no time */

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
    int64_t                source_pts_us; /* what the input itself says, which may begin anywhere and step back;
                                             SAC_PTS_NONE where it says nothing; of a source's frames only */
    int64_t                number;      /* 0, 1, 2, ... in the whole input */
    int                    stream_id;
    sac_device            *device;  /* where the planes are; borrowed from the frame */
    struct sac_frame_owner *owner;  /* the library's: count and what backs the planes */
} sac_frame;

/* A frame with planes from the device's pool, not initialised, and upright. Only width, height and format of
 * desc are read for the layout; time, colour and ids are copied.
 * Errors   SAC_ERR_ARG for a size outside 1..32768 or an unknown format; SAC_ERR_MEMORY. */
SAC_API sac_result sac_frame_create(sac_device *dev, const sac_frame *desc, sac_frame **out);
/* A frame over planes that somebody else owns (a decoder, which may still read them to predict the
 * next picture), so it is never writable. The planes are desc's and complete: work of the caller's own that
 * writes them is done. release(user) is called with the last reference, once the library's work with them is.
 * On a device that works in host memory, planes that are not upright are turned into a frame of its own: a
 * frame-convert in the ledger, which strict mode refuses; they are released at once, and it is writable.
 * Errors   as above, and SAC_ERR_ARG for a missing plane, too short a pitch or an unknown orientation;
 *          nothing is released. */
SAC_API sac_result sac_frame_wrap(sac_device *dev, const sac_frame *desc,
                                  void (*release)(void *user), void *user, sac_frame **out);
SAC_API sac_frame *sac_frame_ref(sac_frame *frame);
SAC_API void       sac_frame_unref(sac_frame **frame);
/* True when the planes are the frame's own and the caller holds the only reference: it may write. */
SAC_API bool       sac_frame_is_writable(const sac_frame *frame);

/* A frame in a GPU's memory may be handed out while its planes are still being completed there, and copies,
 * conversions and drawing return before they are done; what the library does with a frame waits for that by
 * itself. Before code of the caller's own reads the planes: until they are complete. The thread sleeps. */
SAC_API sac_result sac_frame_wait(const sac_frame *frame);

/* A plane as a tensor that shares its memory: nothing is copied, and the frame lives as long as the tensor.
 * [rows, pitch]: uint8, or uint16 of P010 (10 bits in the high ones). A row of Y, GRAY8 or I420 begins with its
 * pixels (width, or half of it, rounded up), one of UV with its pairs, one of RGB24 or BGR24 with 3 numbers a
 * pixel, of RGBA or BGRA with 4; the rest of it is padding. Of a frame whose orientation is not SAC_UPRIGHT that is
 * the plane as it is stored. Read-only. What the library does with the tensor waits until the planes are complete.
 * Errors   SAC_ERR_ARG for a plane that the format does not have, or whose pitch is no whole number of elements. */
SAC_API sac_result sac_frame_plane_tensor(sac_frame *frame, int plane, sac_tensor **out);

/* The planes of src into dst, of the same format and size; dst is upright. The frames may be on different devices when
 * one of them is the CPU: then it is a frame-upload or a frame-download in the ledger of the other,
 * else a frame-convert, as turning a GPU's frame upright is; strict mode refuses each. Between the host and a
 * GPU done on return.
 * Errors   SAC_ERR_ARG when they differ, or dst is not writable; SAC_ERR_LIMIT in strict mode. */
SAC_API sac_result sac_frame_copy(const sac_frame *src, sac_frame *dst);

#ifdef __cplusplus
}
#endif
#endif
