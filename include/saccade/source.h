/* SPDX-License-Identifier: Apache-2.0 */
/* A source: anything that gives video frames in order.
 *
 *     sac_source *src = NULL;
 *     sac_result  res = sac_source_open(dev, "in.mp4", NULL, &src);
 *     while (res == SAC_OK) {
 *         sac_frame *frame = NULL;
 *         res = sac_source_read_wait(src, &frame);
 *         if (res == SAC_OK)
 *             sac_frame_unref(&frame);
 *     }
 *     sac_source_close(&src);          // res is SAC_EOS here, or a fault
 */
#ifndef SACCADE_SOURCE_H
#define SACCADE_SOURCE_H

#include <saccade/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_source sac_source;

/* Where video is decoded when the frames go to a GPU. Images and motion JPEG are decoded on the
 * CPU; with SAC_DECODE_GPU they are refused. For a pipeline on the device "auto" the default means
 * SAC_DECODE_AUTO. */
enum sac_decode {
    SAC_DECODE_DEFAULT = 0, /* on the GPU; a stream that its decoder does not support is an error */
    SAC_DECODE_GPU,         /* the same, of all; an error on a device that is not a GPU */
    SAC_DECODE_AUTO, /* on the GPU; on the CPU, with a log line, where that is not possible */
    SAC_DECODE_CPU   /* on the CPU; the frames are uploaded */
};

/* Whether frames are turned. A container or a picture can say how it is to be shown: a phone held
 * upright stores pictures that lie on their side, and its front camera may mirror them. There are
 * eight orientations, see saccade/frame.h. Any other angle is logged, and the frames are delivered
 * as stored. */
enum sac_rotate {
    SAC_ROTATE_AUTO = 0, /* as the file says */
    SAC_ROTATE_NONE,     /* as they are stored */
    SAC_ROTATE_90,       /* clockwise, whatever the file says */
    SAC_ROTATE_180,
    SAC_ROTATE_270
};

struct sac_source_params {
    double fps; /* image folders, patterns and arrays: frames per second; default 25 */
    /* The part of the input to read. Time 0 is the input's first frame. Frames keep the pts and the
     * number that they have in the whole input. Reading a file begins at the key frame before
     * start_us; its frames are then numbered by pts and average rate, which is exact where the rate
     * is constant. An input without seeking (a pipe, a camera) is read from its beginning. */
    int64_t start_us;    /* skip the frames before this time; default 0. When no frame is left:
                            SAC_ERR_ARG, from open for a file, else from read */
    int64_t duration_us; /* skip frames at start_us + duration_us or later; 0 (default): none */
    int     every; /* N: deliver the first frame of the part and then every Nth; default 1, all */
    /* Pictures, in this order, as one input whose name is the url; NULL (default): open the url.
     * Borrowed for the call of sac_source_open. */
    const char *const *pictures; /* [picture_count] paths */
    int                picture_count;
    enum sac_decode    decode;
    enum sac_rotate    rotate;         /* default SAC_ROTATE_AUTO */
    int                decode_threads; /* on the CPU; 0: half of the machine's; with a GPU, all */
    /* How many frames of a GPU's decoder may be in use at once, prefetched ones included: each
     * holds a picture in the decoder's memory. When all are in use, reading waits until one is
     * released. 0 (default): 8 plus the prefetched ones. The pictures that decoding itself needs
     * are added; a decoder has 32 at most. */
    int surfaces;
    int round_trip; /* 1: copy frames decoded on a GPU to the host and back, to measure the cost */
    int prefetch;   /* decoded frames kept ready by the source's own thread; default 4; 0: no thread
                     */
    int     stream_id;    /* copied into every frame */
    int64_t timeout_us;   /* network: SAC_ERR_IO after this time without data; default 10 s */
    int     keep_packets; /* 1: keep the packets of the other streams (audio) for a sink */
    /* Called regularly while a source is opened, on the thread that opens it: non-zero ends the
     * call with SAC_ERR_CANCELLED. May be NULL. A pipeline opens several inputs at once, so it is
     * then called by several threads; and on its caller's thread while that waits for networks. For
     * an opened source there is sac_source_cancel. */
    int (*give_up)(void *user);
    void *give_up_user;
    /* Called with every frame by the thread that decoded it: reading and decoding took from
     * begun_ns to ended_ns (monotonic clock). May be NULL. The frame is borrowed for the call. */
    void (*on_decoded)(void *user, const sac_frame *frame, int64_t begun_ns, int64_t ended_ns);
    void *on_decoded_user;
    int   low_delay; /* 1: the decoder gives a picture as soon as it has its packets, where the
                        stream's order allows that: no threads that work on several pictures */
    int paced;       /* 1: a packet is read by the decoder when it is due, counted by the packets'
                        own times from the first read on; for a file instead of a camera */
    int alpha; /* 1: of a picture with alpha the frame is that alpha, SAC_PIXEL_GRAY8 of full range;
                  it is decoded on the CPU. VP8 and VP9, whose alpha lies beside the picture, need
                  an FFmpeg with libvpx: else SAC_ERR_UNSUPPORTED, from open */
    uint64_t reserved[6]; /* 0 */
};
SAC_API struct sac_source_params sac_source_params_default(void);

/* fps, duration and frames are those of the part to read. */
struct sac_source_info {
    char     container[32], codec[32]; /* "mov,mp4,...", "images" or "npy"; "h264" */
    char     decoder[32];              /* "h264"; "nvdec h264" on a GPU */
    char     decoder_note[256]; /* why the frames of a GPU are decoded on the CPU; else empty */
    int      surfaces;          /* pictures that a GPU's decoder has memory for */
    uint64_t surface_bytes;     /* size of that memory, computed from the pictures' size */
    int      width, height;     /* of the first frame, display size */
    double   fps;               /* average; 0: unknown */
    int      fps_num, fps_den;
    int64_t  duration_us;          /* 0: unknown (pipes, cameras) */
    int64_t  frames;               /* estimate; 0: unknown */
    enum sac_pixel_format  format; /* of the frames delivered */
    enum sac_colour_matrix matrix;
    enum sac_colour_range  range;
    double               rotation; /* the file's own: degrees clockwise for display, 0 up to 360 */
    int                  mirrored; /* the file's own; 1: mirror from left to right before turning */
    enum sac_orientation orientation; /* how the frames are turned, see params.rotate */
    int                  audio_streams;
    int                  live;         /* 1: a camera or network stream */
    int                  alpha;        /* 1: with params.alpha, a frame so far was an alpha */
    uint64_t             reserved[15]; /* 0 */
};

/* One stream of the container, as `saccade inspect` prints it. Unknown fields are 0 or empty. */
struct sac_stream_info {
    char     kind[16]; /* "video", "audio", "subtitle", "data", "attachment" */
    char     codec[32], profile[32];
    char     format[32]; /* FFmpeg's name of the pixel or sample format: "yuv420p", "fltp" */
    char     language[16];
    int      width, height; /* video: pixels as stored */
    double   fps;           /* video: average */
    char     colour[64];    /* video: FFmpeg's words for matrix, primaries, transfer, range */
    int      sample_rate, channels; /* audio */
    int64_t  bit_rate;              /* bits per second */
    int      chosen;                /* 1: the stream whose frames the source gives */
    uint64_t reserved[8];           /* 0 */
};

/* Faults of the input that did not end the run. */
struct sac_source_stats {
    uint64_t frames, packets, bytes;
    uint64_t corrupt;      /* packets or frames that the decoder rejected or flagged */
    uint64_t pts_repaired; /* frames without a timestamp, or one that stepped back */
    uint64_t size_changes;
    uint64_t converted;   /* frames in a pixel format that needed a conversion */
    uint64_t reserved[8]; /* 0 */
};

/* url      a file (a video, or frames in a .npy file: uint8, [frames,height,width,3] in R, G, B or
 *          [frames,height,width]; it is mapped and must not be shortened meanwhile), a folder of
 *          images, a printf pattern (img%05d.jpg), rtsp://..., a webcam
 *          (/dev/video0), another device of FFmpeg's (v4l2:/dev/video0, x11grab::0.0), or "-"
 *          (standard input).
 * params   NULL: the defaults.
 * out      owned by the caller, closed with sac_source_close.
 * Errors   SAC_ERR_IO (missing, not readable, no connection), SAC_ERR_FORMAT (no video in it),
 *          SAC_ERR_UNSUPPORTED (codec), SAC_ERR_ARG, SAC_ERR_CANCELLED, SAC_ERR_MEMORY. */
SAC_API sac_result sac_source_open(sac_device *dev, const char *url,
                                   const struct sac_source_params *params, sac_source **out);
/* 1 when the file's extension is that of a picture, or of a video, that a source reads. The file
 * itself is not opened. Any thread. */
SAC_API int sac_name_is_picture(const char *path);
SAC_API int sac_name_is_video(const char *path);
/* Stops decoding and frees the source. */
SAC_API void sac_source_close(sac_source **src);
/* What is known of the input so far, and how it is decoded. */
SAC_API void sac_source_describe(const sac_source *src, struct sac_source_info *out);
/* Fill up to max infos, in the container's order; returns how many streams there are. */
SAC_API int sac_source_streams(const sac_source *src, struct sac_stream_info *out, int max);
/* The counts so far. */
SAC_API void sac_source_get_stats(sac_source *src, struct sac_source_stats *out);

/* Wait for the next frame; the caller owns the reference. Damaged data is skipped and counted, and
 * is not an error.
 * Errors   SAC_EOS at the end, or SAC_ERR_FORMAT there when the file is shorter than its header
 *          says or no frame could be decoded; SAC_ERR_CANCELLED after sac_source_cancel; SAC_ERR_IO
 *          when the file cannot be read or the connection is lost, after the frames received before
 *          that.
 * Threads  one reader. */
SAC_API sac_result sac_source_read_wait(sac_source *src, sac_frame **out);
/* Make a waiting read return. Any thread. */
SAC_API void sac_source_cancel(sac_source *src);

#ifdef __cplusplus
}
#endif
#endif
