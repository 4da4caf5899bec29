/* SPDX-License-Identifier: Apache-2.0 */
/* Test clips, written with only FFmpeg's libraries: an oracle that shares no code with our sink.
 * Every picture carries its number in its top left corner. */
#ifndef SAC_TESTS_MEDIA_CLIP_H
#define SAC_TESTS_MEDIA_CLIP_H

#include <stdbool.h>
#include <stdint.h>
#include <libavutil/pixfmt.h>
#include <saccade/frame.h>

struct clip {
    const char        *format;        /* NULL: by the path's ending */
    const char        *codec;         /* NULL: "mpeg4" */
    enum AVPixelFormat pixels;        /* AV_PIX_FMT_NONE or 0: yuv420p */
    int                width, height; /* 0: 320x192 */
    int                frames;
    int                fps;         /* 0: 25 */
    int                time_base;   /* ticks a second; 0: fps */
    int                gop;         /* 0: 12 */
    int                b_frames;    /* in a row; they come in another order than they are shown */
    const int64_t     *pts;         /* [frames] ticks; NULL: evenly from start */
    int64_t            start;       /* ticks */
    int                audio;       /* streams of it */
    const char        *audio_codec; /* NULL: "aac" */
    int                audio_ms;    /* 0: as long as the pictures */
    int                rotation;    /* degrees clockwise to show it by */
    bool               mirrored;    /* mirrored left to right before that */
    int                aspect;      /* a pixel's width for a height of 1; 0: not stated */
    int                first;       /* number in the first picture */
    bool               front_index; /* MP4: the index before the pictures */
    const char        *options;     /* of the muxer, "key=value:..." */
    bool               counted;     /* Matroska: a tag with the number of frames */
    bool               tagged;      /* its colours are stated: BT.2020's, PQ */
};

/* Fails the test on any error. */
void clip_write(const char *path, const struct clip *clip);
/* The number in a picture's corner. */
int clip_number(const sac_frame *frame);

/* A file under a scratch folder of this test program; the string lives until the next 16 calls. */
const char *scratch(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void        scratch_remove(void);

uint8_t *file_load(const char *path, size_t *size); /* freed by free */
void     file_save(const char *path, const void *bytes, size_t size);

#endif
