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

/* Where video is decoded when the frames go to a GPU. Lists of images are decoded on the CPU, but for
 * SAC_DECODE_GPU. A pipeline that chooses its device by itself ("auto") takes the default as SAC_DECODE_AUTO. */
enum sac_decode {
    SAC_DECODE_DEFAULT = 0, /* on the GPU; a stream that its decoder refuses is an error */
    SAC_DECODE_GPU,         /* the same, also images; an error on a device that is no GPU */
    SAC_DECODE_AUTO,        /* on the GPU; what its decoder refuses on the CPU, and that is logged */
    SAC_DECODE_CPU          /* on the CPU; the frames are uploaded */
};

/* Whether frames are turned. What a container, or a picture itself, says of how it is to be shown (a phone held
 * upright stores pictures that lie on their side; its front camera may mirror them) is one of eight orientations:
 * see saccade/frame.h. Another angle is logged, and the frames come as they are stored. */
enum sac_rotate {
    SAC_ROTATE_AUTO = 0, /* as the file says */
    SAC_ROTATE_NONE,     /* as they are stored */
    SAC_ROTATE_90,       /* clockwise, whatever the file says */
    SAC_ROTATE_180,
    SAC_ROTATE_270
};

struct sac_source_params {
    double      fps;            /* image folders and patterns: frames per second; default 25 */
    /* The part that is wanted, in the input's own time, whose 0 is its first frame. Frames keep the pts and the
     * number that they have in the whole input. A file is entered at the key frame before start_us; its frames
     * are then numbered by pts and average rate, which is exact where the rate is constant. What can't be
     * entered so (a pipe, a camera) is read from its beginning. */
    int64_t     start_us;       /* the first frame at this time or later begins; default 0. Where there is none:
                                   SAC_ERR_ARG, from open for a file, else from read */
    int64_t     duration_us;    /* frames at start_us + duration_us or later are left out; 0 (default): none */
    int         every;          /* of N frames one: the first that is wanted, then each Nth; default 1, all */
    /* Pictures in this order as one input, of which the url is then only the name; NULL (default): the url is
     * opened. Read during the call that opens it. */
    const char *const *pictures; /* [picture_count] paths */
    int         picture_count;
    enum sac_decode decode;
    enum sac_rotate rotate;     /* default SAC_ROTATE_AUTO */
    int         decode_threads; /* on the CPU; 0: half of the machine's, beside a GPU all */
    /* Frames that a GPU's decoder lends out at once, those kept ready included: each is a picture of its
     * memory. With all of them lent out, reading waits until one is given back. 0 (default): 8 and those
     * kept ready. What a stream needs for itself comes on top; the decoder has 32 altogether. */
    int         surfaces;
    int         round_trip;     /* 1: what a GPU decoded goes to the host and back, to measure what that costs */
    int         prefetch;       /* decoded frames kept ready by the source's own thread; default 4; 0: no thread */
    int         stream_id;      /* copied into every frame */
    int64_t     timeout_us;     /* network: silence for so long ends it with SAC_ERR_IO; default 10 s */
    int         keep_packets;   /* 1: keep the packets of the other streams (audio) for a sink */
    /* Asked now and then while a source is opened: non-zero gives up with SAC_ERR_CANCELLED. NULL: never.
     * (An opened one has sac_source_cancel.) Called on the opening thread; user is handed through. */
    int       (*give_up)(void *user);
    void       *give_up_user;
    /* Called with every frame by the thread that decoded it: reading and decoding took from begun_ns to
     * ended_ns (monotonic clock). NULL: nobody wants to know. The frame is borrowed for the call. */
    void      (*on_decoded)(void *user, const sac_frame *frame, int64_t begun_ns, int64_t ended_ns);
    void       *on_decoded_user;
};
SAC_API struct sac_source_params sac_source_params_default(void);

/* fps, duration and frames are those of the part that is wanted. */
struct sac_source_info {
    char                   container[32], codec[32]; /* "mov,mp4,..." or "images", "h264" */
    char                   decoder[32]; /* "h264"; "nvdec h264" on a GPU */
    char                   decoder_note[256]; /* why the frames of a GPU are decoded on the CPU; else empty */
    int                    surfaces;          /* pictures that a GPU's decoder has memory for */
    uint64_t               surface_bytes;     /* and how much of it, as computed from their size */
    int                    width, height;                         /* of the first frame, display size */
    double                 fps;         /* average; 0: unknown */
    int                    fps_num, fps_den;
    int64_t                duration_us; /* 0: unknown (pipes, cameras) */
    int64_t                frames;      /* estimate; 0: unknown */
    enum sac_pixel_format  format;      /* of the frames delivered */
    enum sac_colour_matrix matrix;
    enum sac_colour_range  range;
    double                 rotation;    /* degrees clockwise that a player turns it by, 0 up to 360 */
    int                    mirrored;    /* 1: and before that it mirrors it from left to right */
    enum sac_orientation   orientation; /* what is done to the frames, see params.rotate */
    int                    audio_streams;
    int                    live;        /* 1: a camera or network stream */
};

/* One stream of the container, as `saccade inspect` prints it. What is not known is 0 or empty. */
struct sac_stream_info {
    char    kind[16];              /* "video", "audio", "subtitle", "data", "attachment" */
    char    codec[32], profile[32];
    char    format[32];            /* FFmpeg's name of the pixel or sample format: "yuv420p", "fltp" */
    char    language[16];
    int     width, height;         /* video: pixels as stored */
    double  fps;                   /* video: average */
    char    colour[64];            /* video: FFmpeg's words for matrix, primaries, transfer, range */
    int     sample_rate, channels; /* audio */
    int64_t bit_rate;              /* bits per second */
    int     chosen;                /* 1: the stream whose frames the source gives */
};

/* What went wrong on the way, survived and counted. */
struct sac_source_stats {
    uint64_t frames, packets, bytes;
    uint64_t corrupt;      /* packets or frames the decoder refused or flagged */
    uint64_t pts_repaired; /* frames without a timestamp, or one that stepped back */
    uint64_t size_changes;
    uint64_t converted;    /* frames in a pixel format that needed a conversion */
};

/* url      a file, a folder of images, a printf pattern (img%05d.jpg), rtsp://..., a webcam (/dev/video0), another
 *          device of FFmpeg's (v4l2:/dev/video0, x11grab::0.0), or "-" (standard input).
 * Errors   SAC_ERR_IO (missing, refused), SAC_ERR_FORMAT (no video in it), SAC_ERR_UNSUPPORTED (codec). */
SAC_API sac_result sac_source_open(sac_device *dev, const char *url,
                                   const struct sac_source_params *params, sac_source **out);
/* What a file is by its name's ending, which need not be true: 1 for one that a source reads as a picture, or as
 * a video. */
SAC_API int        sac_name_is_picture(const char *path);
SAC_API int        sac_name_is_video(const char *path);
SAC_API void       sac_source_close(sac_source **src);
SAC_API void       sac_source_describe(const sac_source *src, struct sac_source_info *out);
/* Fill up to max infos, in the container's order; returns how many streams there are. */
SAC_API int        sac_source_streams(const sac_source *src, struct sac_stream_info *out, int max);
SAC_API void       sac_source_get_stats(sac_source *src, struct sac_source_stats *out);

/* The next frame; the caller owns the reference. Waits for it. A damaged stretch is skipped and
 * counted, not an error.
 * Errors   SAC_EOS at the end, and SAC_ERR_FORMAT instead where the file was cut off (its header promised
 *          more) or not one frame could be decoded; SAC_ERR_CANCELLED after sac_source_cancel;
 *          SAC_ERR_IO where the file can't be read or the connection breaks off, after the frames that came.
 * Threads  one reader. */
SAC_API sac_result sac_source_read_wait(sac_source *src, sac_frame **out);
/* Make a waiting read return. Any thread. */
SAC_API void       sac_source_cancel(sac_source *src);

#ifdef __cplusplus
}
#endif
#endif
