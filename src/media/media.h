/* SPDX-License-Identifier: Apache-2.0 */
/* Internal header of src/media. Who does what:
 *
 *   input     gives packets: a container (container.c; program.c), a list of images (images.c),
 *             an array of frames (array.c); inputs.c
 *   decoder   turns packets into frames (codec.c): one row per decoder; decoders.c,
 *             dec_avcodec.c, dec_nvdec.c, surfaces.c
 *   source    drives both (feed.c), repairs timestamps (timeline.c), skips frames outside the
 *             wanted part (part.c, seek.c), reads ahead on a thread
 *   upload, download   copy pictures to a GPU and back
 *   encoder, muxer, sink   write a video; gaps.c shortens steps in time that a container can't hold
 */
#ifndef SAC_MEDIA_MEDIA_H
#define SAC_MEDIA_MEDIA_H

#include <stdio.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <saccade/sink.h>
#include <saccade/source.h>

#include "base/base.h"
#include "device/spares.h"

/* ---- ffmpeg.c: FFmpeg's log and error numbers ---- */

/* Between begin and end, what FFmpeg logs on this thread goes to the context's log at debug level,
 * and its last error message is kept for error sentences. Otherwise, and on FFmpeg's own threads,
 * its log is dropped: a library does not print. FFmpeg has only one log callback per process; this
 * uses it. */
void sac_ffmpeg_log_begin(sac_context *ctx);
void sac_ffmpeg_log_end(void);

sac_result sac_ffmpeg_result(int averror);
/* The result of libavcodec's send and receive calls: SAC_AGAIN, SAC_EOS, SAC_ERR_FORMAT for damage;
 * SAC_ERR_MEMORY, with a sentence, for host or GPU memory. GPU memory is recognised by FFmpeg's
 * message, so call it between log_begin and log_end. */
struct sac_decoder;
sac_result sac_ffmpeg_verdict(const struct sac_decoder *dec, int averror);
/* FFmpeg's last error message since log_begin, or an empty string. */
const char *sac_ffmpeg_complaint(void);
/* That message says that a GPU's memory is full. Its decoder returns only a general error, so the
 * text is all there is. */
bool sac_ffmpeg_gpu_is_full(void);
/* Fails with "what: text of averror (FFmpeg's last error message)"; call it before log_end. */
sac_result sac_ffmpeg_fail(sac_context *ctx, int averror, const char *what);

/* ---- formats.c: FFmpeg's pixel formats and colour tags as ours, and back ---- */

/* The format that such pictures are delivered in; *direct: no pixel needs converting. */
enum sac_pixel_format  sac_format_of_av(enum AVPixelFormat format, bool *direct);
bool                   sac_format_has_alpha(enum AVPixelFormat format);
enum AVPixelFormat     sac_format_to_av(enum sac_pixel_format format);
enum sac_colour_matrix sac_matrix_of_av(enum AVColorSpace space, int height);
enum AVColorSpace      sac_matrix_to_av(enum sac_colour_matrix matrix);
enum sac_colour_range  sac_range_of_av(enum AVColorRange range, enum AVPixelFormat format);

/* ---- timeline.c: timestamps that start at 0 and grow ---- */

#define SAC_TIME_NONE SAC_PTS_NONE /* AV_NOPTS_VALUE */

struct sac_timeline {
    int64_t  origin_us; /* the stream's time that becomes 0 */
    bool     anchored;  /* origin_us is known */
    bool     started;
    int64_t  last_us, step_us; /* step: the duration of a frame that states none */
    uint64_t repaired;
};
/* The presentation time of the next frame. ts_us may be SAC_TIME_NONE, duration_us 0. */
int64_t sac_timeline_next(struct sac_timeline *line, int64_t ts_us, int64_t duration_us);
/* ts, in units of time_base, as microseconds; SAC_TIME_NONE when it is missing or out of range. */
int64_t sac_time_us(int64_t ts, AVRational time_base);

/* ---- gaps.c: containers limit the time between two frames; longer steps are shortened ---- */

/* Zero-initialise and set max_us. */
struct sac_gaps {
    int64_t max_us; /* 0: no limit */
    bool    started;
    int64_t last_us;
    int64_t left_us;        /* time left out so far */
    int64_t from_us, to_us; /* the latest span that was left out */
};
/* Call with each frame's time before applying it. true: the step to this frame is shortened. */
bool sac_gaps_note(struct sac_gaps *gaps, int64_t us);
/* The time in the file of a frame or an audio packet. SAC_TIME_NONE: it lies in a span that is left
 * out. */
int64_t sac_gaps_apply(const struct sac_gaps *gaps, int64_t us);

/* ---- display.c: the orientation in which pictures are shown ---- */

struct sac_display {
    double               degrees;     /* clockwise, 0 up to 360 */
    bool                 mirrored;    /* mirrored left to right before it is turned */
    bool                 can_turn;    /* it is one of enum sac_orientation */
    enum sac_orientation orientation; /* SAC_UPRIGHT unless can_turn */
};
struct sac_display sac_display_of(const int32_t matrix[9]);
/* The turn that frames get, given the user's choice and the display. */
enum sac_orientation sac_display_turn(enum sac_rotate rotate, const struct sac_display *display);
/* The same for a picture, whose own orientation overrides the container's. Also sets dec->shown. */
struct sac_decoder;
enum sac_orientation sac_picture_orientation(struct sac_decoder *dec, const AVFrame *picture);

/* ---- program.c: codec changes in a transport stream file ---- */

struct sac_program {
    FILE   *file; /* NULL: the program map is not read */
    int64_t at;   /* offset of the next packet; -1: find it from the next call's `until` */
    int     pid, map_pid, type; /* the stream's PID, its program map's PID, its type; -1: unknown */
};
sac_result sac_program_open(sac_context *ctx, const char *path, int pid,
                            struct sac_program *program);
void       sac_program_close(struct sac_program *program); /* zeroed too */
/* The next byte offset before `until` at which the stream's type changes; 0: none. */
int64_t sac_program_change(struct sac_program *program, int64_t until);

/* ---- inputs: packets ---- */

struct sac_input {
    const struct sac_input_ops     *ops;
    sac_context                    *ctx;
    const char                     *url;       /* borrowed from the source */
    const char                     *name;      /* the url without its secrets, for sentences */
    const struct sac_source_params *params;    /* borrowed from the source */
    atomic_int                     *cancelled; /* the source's; checked by inputs that wait */
    bool                            unmapped;  /* read into memory what would be mapped */
    void                           *state;     /* the input's own */

    /* Filled by open, constant afterwards. */
    AVRational time_base;
    AVRational fps, average; /* nominal; mean, lower where frames are missing; 0/1: unknown */
    int64_t    duration_us, frames;
    char       container[32];
    bool       live;
    bool       seekable;    /* ops->seek may be called */
    bool       provisional; /* size and format may be a later picture's, not the first's */
    bool       numbered;    /* a timestamp is the frame's number, from 0 */
    bool       has_display_matrix;
    int32_t    display_matrix[9];
    AVStream **kept; /* [kept_count] other streams whose packets a sink may copy */
    int        kept_count;
    int        audio_streams;

    /* The video's parameters. When read changes them it increments generation. */
    AVCodecParameters *video;
    int                generation;

    const AVFormatContext *fmt;         /* NULL: images or an array */
    int                    video_index; /* in fmt */

    uint64_t corrupt; /* packets so far that were rejected or marked corrupt */
    bool     cut_off; /* set at the end: the file holds less than its header states */
};

struct sac_input_ops {
    const char *name;
    bool (*claims)(const char *url);
    sac_result (*open)(struct sac_input *in);
    /* The next packet of the video (*kept = -1) or of kept[*kept]. SAC_EOS at the end; damaged
     * bytes are skipped and counted. */
    sac_result (*read)(struct sac_input *in, AVPacket *packet, int *kept);
    /* Continue from about the last key frame at or before ts (in time_base). false: it can't
     * seek. */
    bool (*seek)(struct sac_input *in, int64_t ts);
    void (*close)(struct sac_input *in); /* half-built too */
    /* The path of file i of those it reads; NULL: there are no more. */
    const char *(*file)(const struct sac_input *in, size_t i);
};
extern const struct sac_input_ops sac_input_array, sac_input_container, sac_input_images;

sac_result sac_input_open(struct sac_input *in); /* set the fields ctx to unmapped first */
void       sac_input_close(struct sac_input *in);

/* ---- decoders: frames ---- */

/* What a decoder states about a frame. */
struct sac_picture_note {
    int64_t ts, duration; /* time base of the input; ts SAC_TIME_NONE, duration 0: unknown */
    bool    damaged;      /* parts were concealed by the decoder */
    bool    converted;
    bool    alpha; /* the frame is the picture's alpha */
};
struct sac_picture_note sac_picture_note_of(const AVFrame *picture); /* ffmpeg.c; not converted */

enum { SAC_REPLAY_MAX = 8 };

struct sac_decoder {
    const struct sac_decoder_ops   *ops;
    sac_device                     *dev;
    const char                     *source_name; /* for sentences */
    const struct sac_source_params *params;      /* borrowed from the source */
    atomic_int                     *cancelled;   /* the source's; checked by decoders that wait */
    bool                            images;      /* or an array: each is a stream of its own */
    bool               alpha_beside;             /* wanted alpha that comes in packets' side data */
    int                threads;
    AVRational         time_base;
    struct sac_display display;       /* stated by the container */
    struct sac_display shown;         /* how the latest picture is to be shown */
    char               name[32];      /* libavcodec's name, or "nvdec h264" on a GPU */
    char               note[256];     /* why the GPU does not decode; else empty */
    uint64_t           surface_bytes; /* GPU memory for decoded pictures */
    int                surfaces;
    AVCodecContext    *avc;
    AVFrame           *picture; /* the latest, until it is a frame */
    void              *state;   /* of ops */

    /* The packets since a key frame, kept while the GPU's decoder may still refuse them. */
    bool               may_refuse;
    bool               has_begun; /* it gave a frame */
    AVCodecParameters *video;
    AVPacket          *replay[SAC_REPLAY_MAX]; /* [replay_count]; NULL: end of the packets */
    int                replay_count, replay_next;
    bool               drains, replays; /* the GPU's is emptied; the CPU's gets the packets again */
};

struct sac_decoder_ops {
    const char *name;
    size_t      state_bytes; /* of dec->state, which is zeroed */
    /* libavcodec's decoder; NULL: it can't decode this on the device. */
    const AVCodec *(*codec)(const sac_device *dev, enum AVCodecID id);
    /* Set dec->name, and dec->avc as far as it is the decoder's own, before it is opened. */
    sac_result (*prepare)(struct sac_decoder *dec);
    /* A reason why it can't decode the stream that libavcodec's results do not show, once:
     * SAC_ERR_UNSUPPORTED or SAC_ERR_MEMORY, with the sentence. NULL: never. */
    sac_result (*refusal)(struct sac_decoder *dec);
    sac_result (*wait)(struct sac_decoder *dec); /* until a frame may be given; NULL: always */
    /* dec->picture as a frame, without number and time. SAC_ERR_FORMAT: it is lost. */
    sac_result (*give)(struct sac_decoder *dec, sac_frame **out, struct sac_picture_note *note);
    void (*closing)(struct sac_decoder *dec); /* before libavcodec's context is; NULL: nothing */
    void (*release)(struct sac_decoder *dec); /* the state, half-built too */
};
extern const struct sac_decoder_ops sac_decoder_avcodec, sac_decoder_nvdec;

/* codec.c: what all decoders have in common */
sac_result sac_codec_open(struct sac_decoder *dec, const struct sac_decoder_ops *ops,
                          const AVCodecParameters *video);
/* packet NULL: no more packets. SAC_AGAIN: receive frames first. SAC_ERR_FORMAT: the packet is
 * damaged and was dropped (no sentence: damage is counted, not logged). SAC_ERR_UNSUPPORTED, here
 * and from receive: it can't decode this stream; the sentence says why. */
sac_result sac_codec_send(struct sac_decoder *dec, const AVPacket *packet);
/* SAC_AGAIN: send a packet first; SAC_EOS: no more frames; SAC_ERR_FORMAT: a frame was lost. The
 * frame has no number and no time yet. */
sac_result sac_codec_receive(struct sac_decoder *dec, sac_frame **out,
                             struct sac_picture_note *note);
void       sac_codec_close(struct sac_decoder *dec); /* half-built or closed too */

/* Open the decoder that params.decode selects. With SAC_DECODE_AUTO, when the GPU's decoder refuses
 * the stream, the CPU's takes over from the last key frame. send and receive are as above. */
sac_result sac_decoder_open(struct sac_decoder *dec, const AVCodecParameters *video);
sac_result sac_decoder_send(struct sac_decoder *dec, const AVPacket *packet);
sac_result sac_decoder_receive(struct sac_decoder *dec, sac_frame **out,
                               struct sac_picture_note *note);
void       sac_decoder_close(struct sac_decoder *dec);

/* dec_nvdec.c: libavcodec's decoder for this codec that can use NVDEC, or NULL. It need not be the
 * codec's default decoder (AV1: libdav1d can't use it). */
const AVCodec *sac_nvdec_codec(enum AVCodecID id);
/* Held by who makes or frees a decoder of the GPU, or a picture that may be the last to hold one.
 */
void sac_nvdec_lock(void);
void sac_nvdec_unlock(void);

/* ---- surfaces.c: pictures in a GPU decoder's own memory, lent out as frames ---- */

struct sac_surfaces;
sac_result sac_surfaces_create(sac_device *dev, const char *source_name, struct sac_surfaces **out);
/* From here on whoever gives a frame back may free the decoder, and does it under its lock. Waits
 * for those that began before. */
void sac_surfaces_closing(struct sac_surfaces *surfaces);
/* Frames that are lent out stay valid. */
void sac_surfaces_close(struct sac_surfaces **surfaces);
/* At most this many may be lent out at once. */
void sac_surfaces_limit(struct sac_surfaces *surfaces, int max);
/* Count the decoder's surfaces, which the driver allocates, as GPU memory in use. Errors:
 * SAC_ERR_LIMIT, with the sentence. */
sac_result sac_surfaces_reserve(struct sac_surfaces *surfaces, uint64_t bytes);
/* Wait until one more may be lent out. SAC_ERR_CANCELLED. */
sac_result sac_surfaces_wait(struct sac_surfaces *surfaces, atomic_int *cancelled);
/* Takes the picture's reference. The picture is complete after the work queued on the stream so
 * far; the frame's planes are desc's. */
sac_result sac_surfaces_lend(struct sac_surfaces *surfaces, AVFrame *picture, const sac_frame *desc,
                             struct sac_device_stream *stream, sac_frame **out);

/* ---- upload.c: host pictures copied to frames on a GPU ---- */

struct sac_uploader;
enum { SAC_LENT_DEFAULT = 8 }; /* default of frames that are read ahead or held by the caller */
/* what: names the upload in strict mode's sentence. frames: how many may be in use at once; they
 * are allocated as the first frames are uploaded. */
sac_result sac_uploader_create(sac_device *dev, const char *what, int frames,
                               struct sac_uploader **out);
/* The same for a source's decoder; the sentence says why the GPU does not decode. */
sac_result sac_source_uploader_create(const struct sac_decoder *dec, struct sac_uploader **out);
void       sac_uploader_destroy(struct sac_uploader **up); /* waits for copies; NULL too */
/* begin: set staging's format and size; it gets planes to write to. end: the frame on the GPU with
 * what was written, counted as frame-upload. */
sac_result sac_upload_begin(struct sac_uploader *up, sac_frame *staging);
sac_result sac_upload_end(struct sac_uploader *up, const sac_frame *staging, sac_frame **out);
/* Copy a surface to the host and back, for comparison. desc's planes are the surface's, complete
 * after the work queued on the stream `after`. Takes the surface's reference. */
sac_result sac_upload_round_trip(struct sac_uploader *up, AVFrame *surface, const sac_frame *desc,
                                 struct sac_device_stream *after, sac_frame **out);

/* ---- adopt.c: FFmpeg's pictures as our frames ---- */

struct SwsContext;
struct sac_adopter {
    struct SwsContext   *scaler; /* for formats that no stage takes; created on first use */
    struct sac_uploader *up;     /* NULL: the device works in host memory */
};
void sac_adopter_finish(struct sac_adopter *adopter);
/* Takes the picture's reference. The frame uses the picture's planes where format, orientation and
 * device allow; otherwise it is a copy, counted as frame-convert or frame-upload. */
sac_result sac_adopt_picture(struct sac_adopter *adopter, sac_device *dev, AVFrame *picture,
                             enum sac_orientation orientation, sac_frame **out, bool *converted);
/* The same, of the picture's alpha: SAC_PIXEL_GRAY8. */
sac_result sac_adopt_alpha(struct sac_adopter *adopter, sac_device *dev, AVFrame *picture,
                           enum sac_orientation orientation, sac_frame **out);

/* ---- kept.c: packets of other streams, waiting for a sink ---- */

struct sac_kept_packet {
    AVPacket *packet;
    int       stream; /* index into the input's kept */
};
/* Zero-initialise. Bounded: the oldest are dropped and counted. */
struct sac_kept {
    struct sac_kept_packet *ring; /* [capacity] */
    size_t                  first, count, capacity;
    int64_t                 bytes;
    uint64_t                dropped;
};
bool sac_kept_push(struct sac_kept *kept, AVPacket *packet, int stream);   /* takes its data */
const struct sac_kept_packet *sac_kept_first(const struct sac_kept *kept); /* NULL: none */
void sac_kept_take(struct sac_kept *kept, AVPacket *packet);               /* the first */
void sac_kept_finish(struct sac_kept *kept);

/* ---- source.c, for sinks ---- */

const struct sac_input *sac_source_input(const sac_source *src);
/* The path of file i of those it reads (each picture of a folder); NULL: there are no more. */
const char *sac_source_file(const sac_source *src, size_t i);
/* The path of an address that names a file: without "file:". */
const char *sac_input_path(const char *url);
/* The next kept packet and its stream, if it starts before until_us on the source's timeline; 0
 * there is origin_us in the packet's time. SAC_AGAIN: none now. */
sac_result sac_source_take_kept(sac_source *src, int64_t until_us, AVPacket *packet, int *stream,
                                int64_t *origin_us);
/* The reader has seen the last frame. */
bool sac_source_at_end(const sac_source *src);
/* The reading thread will read no more: frees the decoder and its pictures, which a stream that has
 * ended early need not hold until the run's end. A source that prefetches keeps them. */
void sac_source_rest(sac_source *src);
/* Where the wanted part begins on the source's timeline; a file made from it starts there at 0. */
int64_t sac_source_start_us(const sac_source *src);

/* ---- jpeg.c ---- */

/* A picture in host memory, its rows without gaps, as a JPEG file. bytes: [size], released by
 * sac_free.
 * Errors   SAC_ERR_UNSUPPORTED (FFmpeg has no encoder, or it rejects the size), SAC_ERR_MEMORY. */
sac_result sac_jpeg_encode(sac_context *ctx, const uint8_t *rgb, int width, int height,
                           uint8_t **bytes, size_t *size);

/* ---- png.c: frames as PNG files ---- */

/* Keeps the encoder, and what it needs on a device, for a sequence of frames of one size. */
struct sac_png;
/* Errors   SAC_ERR_UNSUPPORTED (FFmpeg has no encoder), SAC_ERR_COPY (a GPU in strict mode),
 *          SAC_ERR_MEMORY. */
sac_result sac_png_create(sac_device *dev, struct sac_png **out);
void       sac_png_destroy(struct sac_png **png); /* half-built and NULL too */
/* Write a frame of the device as a file, whole or not at all: grey of GRAY8, else RGB, with alpha
 * RGBA (straight). The same pixels give the same bytes. A GPU's frame is downloaded, counted as
 * overlay-download.
 * alpha    SAC_PIXEL_GRAY8 of the frame's size, or NULL.
 * Errors   SAC_ERR_IO, SAC_ERR_ARG (another alpha), SAC_ERR_MEMORY. */
sac_result sac_png_write_wait(struct sac_png *png, const char *path, sac_frame *frame,
                              sac_frame *alpha);

/* ---- encoder.c ---- */

struct sac_encoder_setup {
    const char *const       *names; /* NULL-terminated, best first */
    bool                     named; /* by the user: no other is tried */
    const char              *preset;
    int                      crf, threads;
    int                      beside; /* number of other encoders running in this process */
    enum sac_pixel_format    format; /* of the frames, as far as known; 0: as any with colours */
    bool                     alpha;  /* each frame comes with its alpha */
    int                      width, height;  /* of the frames */
    AVRational               time_base, fps; /* fps 0/1: unknown */
    AVRational               sample_aspect;
    enum sac_colour_matrix   matrix;
    enum sac_colour_range    range;
    const AVCodecParameters *like; /* primaries and transfer; or NULL */
    bool                     global_header, reordering;
    bool                     prompt; /* each frame is encoded when it comes */
    int                      turns;  /* encoders that take turns; 0: as fits the encoder */
};
/* download.c: zero-initialise. */
struct sac_download {
    sac_device               *dev; /* NULL: not open */
    struct sac_device_stream *stream;
    struct sac_event         *done;
    sac_frame                *fitted; /* a frame converted to the encoder's layout */
    sac_frame                 host;   /* the frame being copied, if memory is set */
    struct sac_buffer        *memory;
    sac_frame                *reading;  /* the frame that it is copied from; or NULL */
    struct sac_spares         pictures; /* on the host */
};
/* layout: the format and size expected; other frames cost memory anew. */
sac_result sac_download_open(struct sac_download *down, sac_device *dev, const sac_frame *layout);
/* Have a frame on the device for what is converted to this layout, unless there is one. */
sac_result sac_download_reserve(struct sac_download *down, const sac_frame *layout);
void       sac_download_close(struct sac_download *down); /* half-built too */
/* Queue the copy of a GPU's frame to the host, converted to the layout unless it fits; grey fits
 * I420 of full range. No other copy may be pending. Counted as overlay-download. */
sac_result sac_download_begin(struct sac_download *down, sac_frame *frame, bool fits,
                              const sac_frame *layout);
/* Wait for the pending copy: a frame in host memory, held by *memory. Without one *memory is
 * unchanged. */
sac_result sac_download_end_wait(struct sac_download *down, sac_frame *host,
                                 struct sac_buffer **memory);

/* pack.c: a frame and its alpha as one of FFmpeg's pictures. Zero-initialise. */
struct sac_pack {
    AVBufferPool *pool;
};
/* False: the planes of the frame and the alpha are such a picture's. */
bool sac_pack_is_needed(const sac_frame *layout, enum AVPixelFormat to);
/* frame: I420, P010, RGB24 or BGRA in host memory, alpha: as large; out: format and size are set,
 * these of the first call's. FFmpeg's error. */
int  sac_pack_picture(struct sac_pack *pack, const sac_frame *frame, const sac_frame *alpha,
                      AVFrame *out);
void sac_pack_finish(struct sac_pack *pack);
/* The alpha is one of that frame. SAC_ERR_ARG. */
sac_result sac_alpha_check(sac_context *ctx, const sac_frame *frame, const sac_frame *alpha);

struct sac_encoder {
    sac_device         *dev;
    struct sac_download down, down_alpha; /* for a GPU's frames */
    bool                on_gpu;           /* the encoder takes frames in GPU memory */
    AVCodecContext     *avc;
    struct sac_turns   *turns; /* avc is the first of `encoders` that take turns; NULL: alone */
    int                 encoders;
    AVFrame            *picture;
    AVFrame            *copy;    /* empty but for the moment when the picture is copied */
    AVBufferPool       *waiting; /* memory of downloaded pictures that wait for their encoder */
    sac_frame           layout;  /* what a frame must be: format, size, matrix, range */
    sac_frame           alpha_layout;
    bool                alpha;     /* each frame comes with its alpha */
    int                 size_mask; /* of a frame's width and height: ~1 drops the last odd one */
    struct sac_pack     pack;
    int64_t             origin_us; /* the frame time that is 0 in the file */
    int64_t             last_pts;
    int64_t             step; /* a frame's duration where it is unknown, in time_base */
    struct sac_gaps     gaps; /* the sink's: applied to the frames' times */
    struct {
        int64_t pts, duration;
    } recent[256]; /* durations of the frames inside the encoder, by pts */
    unsigned recent_next;
};
bool sac_encoder_exists(const char *name);
bool sac_encoder_has_alpha(const char *name); /* takes frames with alpha */
/* Checked by us, since libx264 prints its own error to standard error. */
sac_result sac_encoder_check_preset(sac_context *ctx, const char *preset);
/* Allocate what it needs on a device for frames of this size and format; open does so too. */
sac_result sac_encoder_prepare(struct sac_encoder *enc, sac_device *dev, int width, int height,
                               enum sac_pixel_format format, bool alpha);
sac_result sac_encoder_open(struct sac_encoder *enc, sac_device *dev, const char *path,
                            const struct sac_encoder_setup *setup);
/* frame NULL: no more. alpha: SAC_PIXEL_GRAY8, with setup.alpha; else NULL. A GPU's frame is
 * encoded by the next call, while the next frame is copied. */
sac_result sac_encoder_send(struct sac_encoder *enc, sac_frame *frame, sac_frame *alpha);
sac_result sac_encoder_receive(struct sac_encoder *enc, AVPacket *packet); /* SAC_AGAIN, SAC_EOS */
/* How it is run, for the log: "4 threads". */
void sac_encoder_describe(const struct sac_encoder *enc, char *buf, size_t size);
/* The longest time between two frames that it accepts; 0: any. */
int64_t sac_encoder_step_max_us(const struct sac_encoder *enc);
void    sac_encoder_close(struct sac_encoder *enc);

/* ---- nvenc.c: an encoder on a GPU ---- */

bool sac_nvenc_is(const char *encoder);
int  sac_nvenc_prepare(struct sac_encoder *enc); /* before avcodec_open2; FFmpeg's error */
/* A new reference to a complete GPU frame in the encoder's layout. */
sac_result sac_nvenc_fit(struct sac_encoder *enc, sac_frame *frame, bool fits, sac_frame **out);

/* ---- sink.c ---- */

/* As sac_sink_create. prompt: each frame is encoded when it comes; else some may wait, so that more
 * are encoded at a time. */
sac_result sac_sink_open(sac_device *dev, const char *path, sac_source *like,
                         const struct sac_sink_params *params, bool prompt, sac_sink **out);

/* The format that saves its encoder a conversion of frames in I420: NV12 of one on a GPU. Known
 * from the first frame on. */
enum sac_pixel_format sac_sink_wants(const sac_sink *sink, enum sac_pixel_format format);

/* ---- muxer.c ---- */

struct sac_container {
    const char *ending, *format;
    const char *options;         /* of the muxer, "key=value:..." or NULL */
    bool        reordering;      /* can hold frames out of display order (B-frames) */
    bool        tick_is_frame;   /* the muxer writes an empty frame for each tick without one */
    int64_t     step_max;        /* most ticks between two packets; 0: any number */
    const enum AVCodecID *audio; /* audio codecs, AV_CODEC_ID_NONE last; NULL: ask the muxer */
    const char           *encoders[5]; /* best first */
    const char           *alpha;       /* the encoder of frames with alpha; NULL: it holds none */
};
const struct sac_container *sac_container_of_path(const char *path);       /* NULL: none */
void                        sac_container_endings(char *buf, size_t size); /* ".mp4, .mkv, ..." */
/* Those that hold alpha, with their encoders: ".mov (prores_ks), ...". there: only those whose
 * encoder FFmpeg has; it may be empty then. */
void sac_container_alphas(bool there, char *buf, size_t size);

/* One of the source's kept streams in the output. */
struct sac_muxed {
    int     stream; /* -1: it is left out */
    int64_t last;   /* dts, must grow */
    int64_t given;  /* packets handed to libavformat */
};

struct sac_muxer {
    sac_context                *ctx;
    const struct sac_container *container;
    const char                 *path; /* the final one, for sentences; borrowed */
    AVFormatContext            *fmt;
    AVStream                   *video;
    AVRational                  video_time_base; /* of the packets handed in */
    struct sac_muxed           *kept;            /* [kept_count] */
    int                         kept_count;
    int64_t                     step_max_us; /* the least of all streams; 0: none */
    bool                        header;
};
sac_result sac_muxer_open(struct sac_muxer *mux, const char *file);
/* turned: the frames already have the orientation that `like` states, so none is written. */
sac_result sac_muxer_start(struct sac_muxer *mux, const AVCodecContext *video,
                           const struct sac_input *like, bool turned);
sac_result sac_muxer_write_video(struct sac_muxer *mux, AVPacket *packet);
sac_result sac_muxer_write_kept(struct sac_muxer *mux, AVPacket *packet, int kept,
                                AVRational time_base, int64_t origin_us,
                                const struct sac_gaps *gaps);
sac_result sac_muxer_finish(struct sac_muxer *mux); /* writes the trailer, closes, reports errors */
void       sac_muxer_close(struct sac_muxer *mux);  /* half-built too; ignores errors */

#endif
