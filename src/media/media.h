/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/media: how the work is cut.
 *
 *   input     gives packets: a container (container.c; program.c) or a list of images (images.c); inputs.c
 *   decoder   packets to frames: one row per decoder; decoders.c, dec_avcodec.c, dec_nvdec.c, surfaces.c
 *   source    drives both (feed.c), mends the timestamps (timeline.c), leaves out what is not wanted
 *             (part.c), reads ahead on a thread
 *   upload, download   pictures on their way to a GPU and back
 *   encoder, muxer, sink   the way back; gaps.c: steps of time that a container can't hold
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

/* Between begin and end, what FFmpeg logs on this thread goes to the context's log at debug, and its
 * last complaint is kept for the sentence. Outside, and on FFmpeg's own threads, its log is dropped:
 * a library does not print. The callback that does this is FFmpeg's one per process. */
void sac_ffmpeg_log_begin(sac_context *ctx);
void sac_ffmpeg_log_end(void);

sac_result sac_ffmpeg_result(int averror);
/* What libavcodec answers when packets go in and pictures come out: SAC_AGAIN, SAC_EOS, SAC_ERR_FORMAT for damage;
 * SAC_ERR_MEMORY with its sentence, also for a GPU's (by its complaint, so between log_begin and log_end). */
struct sac_decoder;
sac_result sac_ffmpeg_verdict(const struct sac_decoder *dec, int averror);
/* Its last complaint between log_begin and log_end, or an empty string. */
const char *sac_ffmpeg_complaint(void);
/* "what: FFmpeg's words (its last complaint)". Between log_begin and log_end it is this call's. */
sac_result sac_ffmpeg_fail(sac_context *ctx, int averror, const char *what);

/* ---- formats.c: FFmpeg's colour in our words, and back ---- */

/* The format that pictures of this kind are delivered in; *direct: without touching a pixel. */
enum sac_pixel_format  sac_format_of_av(enum AVPixelFormat format, bool *direct);
enum AVPixelFormat     sac_format_to_av(enum sac_pixel_format format);
enum sac_colour_matrix sac_matrix_of_av(enum AVColorSpace space, int height);
enum AVColorSpace      sac_matrix_to_av(enum sac_colour_matrix matrix);
enum sac_colour_range  sac_range_of_av(enum AVColorRange range, enum AVPixelFormat format);

/* ---- timeline.c: timestamps that start at 0 and grow ---- */

#define SAC_TIME_NONE SAC_PTS_NONE /* AV_NOPTS_VALUE */

struct sac_timeline {
    int64_t  origin_us; /* what the stream calls our 0 */
    bool     anchored;  /* origin_us is known */
    bool     started;
    int64_t  last_us, step_us; /* step: what a frame without a duration takes */
    uint64_t repaired;
};
/* The presentation time of the next frame. ts_us may be SAC_TIME_NONE, duration_us 0. */
int64_t sac_timeline_next(struct sac_timeline *line, int64_t ts_us, int64_t duration_us);
/* ts in units of time_base as microseconds; SAC_TIME_NONE where there is none or it can't be one. */
int64_t sac_time_us(int64_t ts, AVRational time_base);

/* ---- gaps.c: containers limit the time from one frame to the next; longer steps are shortened ---- */

/* Zero-initialise and set max_us. */
struct sac_gaps {
    int64_t max_us; /* 0: no limit */
    bool    started;
    int64_t last_us;
    int64_t left_us;        /* left out so far */
    int64_t from_us, to_us; /* the latest that was left out */
};
/* The next frame's time, before it is applied. true: the step to it is shortened. */
bool    sac_gaps_note(struct sac_gaps *gaps, int64_t us);
/* A frame's time, or a sound's beside it, as the file has it. SAC_TIME_NONE: it lies in what is left out. */
int64_t sac_gaps_apply(const struct sac_gaps *gaps, int64_t us);

/* ---- display.c: how pictures are to be shown ---- */

struct sac_display {
    double               degrees; /* clockwise, 0 up to 360 */
    bool                 mirrored; /* before that, from left to right */
    bool                 can_turn; /* it is one of the orientations */
    enum sac_orientation orientation; /* that one, else SAC_UPRIGHT */
};
struct sac_display sac_display_of(const int32_t matrix[9]);
/* What is to be done to pictures that are to be shown so. */
enum sac_orientation sac_display_turn(enum sac_rotate rotate, const struct sac_display *display);
/* The same for a picture, whose own word goes before the container's; noted in dec->shown. */
struct sac_decoder;
enum sac_orientation sac_picture_orientation(struct sac_decoder *dec, const AVFrame *picture);

/* ---- program.c: changes of codec in a transport stream's file ---- */

struct sac_program {
    FILE   *file; /* NULL: it is not looked at */
    int64_t at; /* the next packet; -1: where the next call's place is */
    int     pid, map_pid, type; /* the stream's; of the packets of its program map; its type there; -1: unknown */
};
sac_result sac_program_open(sac_context *ctx, const char *path, int pid, struct sac_program *program);
void       sac_program_close(struct sac_program *program); /* zeroed too */
/* The next place before `until`, bytes, from which on the stream is of another type; 0: none. */
int64_t    sac_program_change(struct sac_program *program, int64_t until);

/* ---- inputs: packets ---- */

struct sac_input {
    const struct sac_input_ops     *ops;
    sac_context                    *ctx;
    const char                     *url;       /* borrowed from the source */
    const char                     *name;      /* the url without its secrets, for sentences */
    const struct sac_source_params *params;    /* borrowed from the source */
    atomic_int                     *cancelled; /* the source's; an input that waits looks at it */
    void                           *state;     /* the input's own */

    /* Filled by open, constant afterwards. */
    AVRational time_base;
    AVRational fps, average; /* of the grid that the times lie on; over time, where frames are left out; 0/1: unknown */
    int64_t    duration_us, frames;
    char       container[32];
    bool       live;
    bool       seekable;       /* ops->seek may be asked */
    bool       provisional;    /* video's size and format may be those of a later picture, not of the first */
    bool       numbered;       /* a timestamp is the frame's number, and 0 is the beginning */
    bool       has_display_matrix;
    int32_t    display_matrix[9];
    AVStream **kept;           /* [kept_count] other streams whose packets are wanted */
    int        kept_count;
    int        audio_streams;

    /* The video's parameters: read may change them, and then counts up generation. */
    AVCodecParameters *video;
    int                generation;

    const AVFormatContext *fmt; /* NULL: a list of images */
    int                    video_index; /* in fmt */

    uint64_t corrupt; /* packets that were refused or flagged so far */
    bool     cut_off; /* at the end: there is less than the header promised */
};

struct sac_input_ops {
    const char *name;
    bool (*claims)(const char *url);
    sac_result (*open)(struct sac_input *in);
    /* The next packet, of the video (*kept = -1) or of kept[*kept]. SAC_EOS at the end; damaged
     * bytes are skipped and counted. */
    sac_result (*read)(struct sac_input *in, AVPacket *packet, int *kept);
    /* Read on from the last key frame not after ts, in the time base, or about there. false: it can't. */
    bool (*seek)(struct sac_input *in, int64_t ts);
    void (*close)(struct sac_input *in); /* half-built too */
    /* The path of the file number i that it reads; NULL: there are no more. */
    const char *(*file)(const struct sac_input *in, size_t i);
};
extern const struct sac_input_ops sac_input_container, sac_input_images;

sac_result sac_input_open(struct sac_input *in); /* ctx to cancelled are set */
void       sac_input_close(struct sac_input *in);

/* ---- decoders: frames ---- */

/* What a decoder says about a frame beside the frame. */
struct sac_picture_note {
    int64_t ts, duration; /* time base of the input; ts SAC_TIME_NONE, duration 0: unknown */
    bool    damaged;      /* parts are made up */
    bool    converted;
};
struct sac_picture_note sac_picture_note_of(const AVFrame *picture); /* ffmpeg.c; not converted */

enum { SAC_REPLAY_MAX = 8 };

struct sac_decoder {
    const struct sac_decoder_ops   *ops;
    sac_device                     *dev;
    const char                     *source_name; /* for sentences */
    const struct sac_source_params *params;      /* borrowed from the source */
    atomic_int                     *cancelled;   /* the source's; a decoder that waits looks at it */
    bool                            images;      /* a list of them: each is a stream of its own */
    int                             threads;
    AVRational                      time_base;
    struct sac_display              display; /* what the container says */
    struct sac_display              shown;   /* how the latest picture is to be shown */
    char                            name[32];  /* libavcodec's; "nvdec h264" of a GPU's */
    char                            note[256]; /* why it is not the GPU's; empty: it is, or there is none */
    uint64_t                        surface_bytes; /* of the GPU's memory, for decoded pictures */
    int                             surfaces;
    void                           *state;

    /* The latest packets from a key frame on, while the GPU's decoder may still refuse them. */
    bool               may_refuse;
    bool               has_begun; /* it gave a frame */
    AVCodecParameters *video;
    AVPacket          *replay[SAC_REPLAY_MAX]; /* [replay_count]; NULL: no packet follows */
    int                replay_count, replay_next;
    bool               drains, replays; /* the GPU's gives what it has; the CPU's gets the packets again */
};

struct sac_decoder_ops {
    const char *name;
    bool (*supports)(const sac_device *dev, const AVCodecParameters *video);
    sac_result (*open)(struct sac_decoder *dec, const AVCodecParameters *video);
    /* NULL: no more packets. SAC_AGAIN: take frames out first; SAC_ERR_FORMAT: the packet is damaged
     * and gone (no sentence: damage is counted, not told). SAC_ERR_UNSUPPORTED, here and from receive:
     * it does not decode such a stream, and the sentence says why. */
    sac_result (*send)(struct sac_decoder *dec, const AVPacket *packet);
    /* SAC_AGAIN: it wants a packet; SAC_EOS: all are out; SAC_ERR_FORMAT: one was lost. The frame has
     * no number and no time yet. */
    sac_result (*receive)(struct sac_decoder *dec, sac_frame **out, struct sac_picture_note *note);
    void (*close)(struct sac_decoder *dec); /* half-built too */
};
extern const struct sac_decoder_ops sac_decoder_avcodec, sac_decoder_nvdec;

/* The one that params.decode asks for; with SAC_DECODE_AUTO the CPU's takes over, from the last key
 * frame on, where the GPU's refuses. send and receive are as above. */
sac_result sac_decoder_open(struct sac_decoder *dec, const AVCodecParameters *video);
sac_result sac_decoder_send(struct sac_decoder *dec, const AVPacket *packet);
sac_result sac_decoder_receive(struct sac_decoder *dec, sac_frame **out, struct sac_picture_note *note);
void       sac_decoder_close(struct sac_decoder *dec);

/* dec_nvdec.c: libavcodec's decoder of a codec that can use the GPU's, or NULL. The default one of a codec
 * may not be it (libdav1d). */
const AVCodec *sac_nvdec_codec(enum AVCodecID id);

/* ---- surfaces.c: pictures in a decoder's own memory on a GPU, lent out as frames ---- */

struct sac_surfaces;
sac_result sac_surfaces_create(sac_device *dev, const char *source_name, struct sac_surfaces **out);
/* Frames that are lent out live on. */
void       sac_surfaces_close(struct sac_surfaces **surfaces);
/* As many as may be lent out at once. */
void       sac_surfaces_limit(struct sac_surfaces *surfaces, int max);
/* What they take of the GPU's memory, on its books. Errors: SAC_ERR_LIMIT, with the sentence. */
sac_result sac_surfaces_reserve(struct sac_surfaces *surfaces, uint64_t bytes);
/* Wait until one more may be lent out. SAC_ERR_CANCELLED. */
sac_result sac_surfaces_wait(struct sac_surfaces *surfaces, atomic_int *cancelled);
/* Takes the picture's reference. What completes it is queued on the stream; the planes are desc's. */
sac_result sac_surfaces_lend(struct sac_surfaces *surfaces, AVFrame *picture, const sac_frame *desc,
                             struct sac_stream *stream, sac_frame **out);

/* ---- upload.c: pictures of the host's as frames of a GPU ---- */

struct sac_uploader;
enum { SAC_LENT_DEFAULT = 8 }; /* frames that the caller may hold, and those read ahead, where nobody says */
/* what: for strict mode's sentence; frames: how many may be out at once, which are taken with the first ones. */
sac_result sac_uploader_create(sac_device *dev, const char *what, int frames, struct sac_uploader **out);
/* The same for a source's decoder. */
sac_result sac_source_uploader_create(sac_device *dev, const char *source_name,
                                      const struct sac_source_params *params, struct sac_uploader **out);
void       sac_uploader_destroy(struct sac_uploader **up); /* waits for what is under way; NULL too */
/* Gives staging, of which format and size are set, planes to write to; then the frame of what was written,
 * counted as frame-upload. */
sac_result sac_upload_begin(struct sac_uploader *up, sac_frame *staging);
sac_result sac_upload_end(struct sac_uploader *up, const sac_frame *staging, sac_frame **out);
/* The way down and up again, for comparison: desc's planes are the surface's, complete after what is queued
 * on the stream. Takes the surface's reference. */
sac_result sac_upload_round_trip(struct sac_uploader *up, AVFrame *surface, const sac_frame *desc,
                                 struct sac_stream *after, sac_frame **out);

/* ---- adopt.c: FFmpeg's pictures as our frames ---- */

struct SwsContext;
struct sac_adopter {
    struct SwsContext   *scaler; /* for formats that no stage takes; made when one comes */
    struct sac_uploader *up;     /* NULL: the device works in host memory */
};
void sac_adopter_finish(struct sac_adopter *adopter);
/* Takes the picture's reference: the frame's planes are the picture's where format, orientation and device
 * allow, and a copy, counted as frame-convert or frame-upload, where not. */
sac_result sac_adopt_picture(struct sac_adopter *adopter, sac_device *dev, AVFrame *picture,
                             enum sac_orientation orientation, sac_frame **out, bool *converted);

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
bool sac_kept_push(struct sac_kept *kept, AVPacket *packet, int stream); /* takes what it refers to */
const struct sac_kept_packet *sac_kept_first(const struct sac_kept *kept); /* NULL: none */
void sac_kept_take(struct sac_kept *kept, AVPacket *packet);               /* the first; there is one */
void sac_kept_finish(struct sac_kept *kept);

/* ---- source.c, for sinks ---- */

const struct sac_input *sac_source_input(const sac_source *src);
/* The path of the file number i that it reads, of a folder each picture; NULL: there are no more. */
const char *sac_source_file(const sac_source *src, size_t i);
/* The path of an address that names a file: without "file:". */
const char *sac_input_path(const char *url);
/* The next kept packet and its stream, when it starts before until_us on the source's timeline, whose 0
 * is at origin_us of the packet's time. SAC_AGAIN: none now. */
sac_result sac_source_take_kept(sac_source *src, int64_t until_us, AVPacket *packet, int *stream,
                                int64_t *origin_us);
/* The reader has seen the last frame. */
bool sac_source_at_end(const sac_source *src);
/* Where on the source's timeline its part begins: 0 of what is made of it. */
int64_t sac_source_start_us(const sac_source *src);

/* ---- jpeg.c ---- */

/* A picture in host memory, its rows without gaps, as a JPEG file. bytes: [size], released by sac_free.
 * Errors   SAC_ERR_UNSUPPORTED (FFmpeg has no encoder, or refuses the size), SAC_ERR_MEMORY. */
sac_result sac_jpeg_encode(sac_context *ctx, const uint8_t *rgb, int width, int height, uint8_t **bytes,
                           size_t *size);

/* ---- encoder.c ---- */

struct sac_encoder_setup {
    const char *const *names; /* NULL-terminated, best first */
    bool               named; /* by the user: no other will do */
    const char        *preset;
    int                crf, threads;
    int                beside; /* other encoders at work in this process */
    int                width, height;
    AVRational         time_base, fps; /* fps 0/1: unknown */
    AVRational         sample_aspect;
    enum sac_colour_matrix matrix;
    enum sac_colour_range  range;
    const AVCodecParameters *like; /* primaries and transfer; or NULL */
    bool                     global_header, reordering;
};
/* download.c: zero-initialise. */
struct sac_download {
    sac_device        *dev; /* NULL: not open */
    struct sac_stream *stream;
    struct sac_event  *done;
    sac_frame         *fitted; /* what an encoder takes, of a frame that is not */
    sac_frame          host;   /* what is under way when there is memory for it */
    struct sac_buffer *memory;
    sac_frame         *reading; /* from which it comes; or NULL */
    struct sac_spares  pictures; /* on the host */
};
sac_result sac_download_open(struct sac_download *down, sac_device *dev, int width, int height);
void       sac_download_close(struct sac_download *down); /* half-built too */
/* Queues a GPU's frame on its way to the host, as the layout has it, when none is under way. Counted as
 * overlay-download. fits: it has that layout. */
sac_result sac_download_begin(struct sac_download *down, sac_frame *frame, bool fits, const sac_frame *layout);
/* Waits for the one that is under way: a frame in host memory that belongs to *memory, which stays as it is when
 * there was none. */
sac_result sac_download_end_wait(struct sac_download *down, sac_frame *host, struct sac_buffer **memory);

struct sac_encoder {
    sac_device     *dev;
    struct sac_download down; /* of a GPU's frames */
    bool            on_gpu; /* it takes them where they are */
    AVCodecContext *avc;
    AVFrame        *picture;
    sac_frame       layout; /* what a frame must be: format, size, matrix, range */
    int64_t         origin_us; /* a frame's time that is 0 in the file */
    int64_t         last_pts;
    int64_t         step;   /* a frame's time where it is unknown, in time_base */
    struct sac_gaps gaps;   /* the sink's: applied to the frames' times */
    struct {
        int64_t pts, duration;
    } recent[128]; /* durations of the frames inside the encoder, by pts */
    unsigned recent_next;
};
bool       sac_encoder_exists(const char *name);
/* libx264 would print its refusal itself. */
sac_result sac_encoder_check_preset(sac_context *ctx, const char *preset);
/* What it needs of a device for frames of this size; opening does the same. */
sac_result sac_encoder_prepare(struct sac_encoder *enc, sac_device *dev, int width, int height);
sac_result sac_encoder_open(struct sac_encoder *enc, sac_device *dev, const char *path,
                            const struct sac_encoder_setup *setup);
/* NULL: no more. A GPU's frame is encoded by the next call, while that one's comes to the host. */
sac_result sac_encoder_send(struct sac_encoder *enc, sac_frame *frame);
sac_result sac_encoder_receive(struct sac_encoder *enc, AVPacket *packet); /* SAC_AGAIN, SAC_EOS */
/* The longest time from one frame to the next that it takes; 0: any. */
int64_t    sac_encoder_step_max_us(const struct sac_encoder *enc);
void       sac_encoder_close(struct sac_encoder *enc);

/* ---- nvenc.c: of an encoder that is being opened on a GPU ---- */

bool       sac_nvenc_is(const char *encoder);
int        sac_nvenc_prepare(struct sac_encoder *enc); /* before avcodec_open2; an error number of FFmpeg's */
/* One reference to a frame of the GPU's that is as the encoder wants it, and complete. */
sac_result sac_nvenc_fit(struct sac_encoder *enc, sac_frame *frame, bool fits, sac_frame **out);

/* ---- muxer.c ---- */

struct sac_container {
    const char *ending, *format;
    const char *options;     /* of the muxer, "key=value:..." or NULL */
    bool        reordering;  /* can hold frames in another order than they are shown */
    bool        tick_is_frame; /* fills every tick without a frame with an empty one */
    int64_t     step_max;    /* ticks from one packet to the next at most; 0: any number */
    const enum AVCodecID *audio; /* what it holds, AV_CODEC_ID_NONE last; NULL: what its muxer takes */
    const char *encoders[5]; /* best first */
};
const struct sac_container *sac_container_of_path(const char *path); /* NULL: none */
void sac_container_endings(char *buf, size_t size);                  /* ".mp4, .mkv, ..." */

/* One of the source's other streams. */
struct sac_muxed {
    int     stream; /* -1: it is left out */
    int64_t last;   /* dts, must grow */
    int64_t given;  /* packets */
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
    int64_t                     step_max_us;     /* between frames, of all streams' limits; 0: none */
    bool                        header;
};
sac_result sac_muxer_open(struct sac_muxer *mux, const char *file);
/* turned: frames came as `like` says that they are to be shown, so players need not do it. */
sac_result sac_muxer_start(struct sac_muxer *mux, const AVCodecContext *video,
                           const struct sac_input *like, bool turned);
sac_result sac_muxer_write_video(struct sac_muxer *mux, AVPacket *packet);
sac_result sac_muxer_write_kept(struct sac_muxer *mux, AVPacket *packet, int kept,
                                AVRational time_base, int64_t origin_us, const struct sac_gaps *gaps);
sac_result sac_muxer_finish(struct sac_muxer *mux); /* trailer and close, errors told */
void       sac_muxer_close(struct sac_muxer *mux);  /* half-built too; errors are lost */

#endif
