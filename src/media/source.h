/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of a source share: source.c opens, reads ahead and closes; feed.c makes frames of
 * packets. */
#ifndef SAC_MEDIA_SOURCE_H
#define SAC_MEDIA_SOURCE_H

#include "base/thread.h"
#include "media/media.h"

struct sac_source {
    sac_context             *ctx;
    sac_device              *dev;
    char                    *url;
    char                    *name; /* for sentences: the url without its secrets, or "standard input" */
    struct sac_source_params params;
    atomic_int               cancelled;

    /* The reading side: the prefetch thread, or the reader where there is none. */
    struct sac_input    input;
    struct sac_decoder  decoder;
    int                 generation; /* of the parameters that the decoder was opened with */
    struct sac_timeline timeline;
    AVPacket           *packet;
    bool                packet_waits; /* read, but the decoder has not taken it */
    bool                draining;     /* the decoder was told that no packet follows */
    bool                input_ended;
    sac_result          fault;        /* what ended the input; SAC_OK: its own end */
    char                fault_sentence[512];
    bool                opening;
    int64_t             number;
    int                 width, height; /* of the last frame */
    sac_frame          *first;         /* decoded while opening, to learn the size */
    int64_t             decoded;       /* frames, those that are not wanted too */
    int64_t             part_first;    /* number of the first wanted frame; -1: it has not come */
    sac_frame          *pending;       /* the first frame after a seek */
    bool                wants_key;     /* packets are left out up to a key frame's */
    bool                seeks;         /* an end may mean: too far */
    struct sac_source_info info;

    struct sac_queue *ready; /* NULL: no prefetch */
    pthread_t         thread;
    bool              thread_runs;
    sac_result        end; /* how the thread ended; set before ready is closed */
    char              end_sentence[512];
    atomic_int        at_end;

    pthread_mutex_t         lock; /* guards all below */
    struct sac_source_stats stats; /* corrupt without those that the input counts */
    uint64_t                corrupt_packets;
    struct sac_kept         kept;
    int64_t                 origin_us; /* the timeline's, for sinks */
};

/* ---- feed.c ---- */

/* The decoder of the input's present parameters; the one before goes. */
sac_result sac_feed_open_decoder(struct sac_source *src);
/* The next frame, from the input through the decoder. */
sac_result sac_feed_next_frame(struct sac_source *src, sac_frame **out);
/* The next frame, wanted or not. */
sac_result sac_feed_any_frame(struct sac_source *src, sac_frame **out);
/* src->packet, of the input's kept[stream]. */
sac_result sac_feed_keep_packet(struct sac_source *src, int stream);
/* What the decoder is, and what it holds of a GPU: a change of the stream may change them. Under the lock. */
void       sac_feed_describe_decoder(struct sac_source *src);

/* ---- source.c ---- */

sac_result sac_source_open_input(struct sac_source *src);

/* ---- part.c ---- */

/* Go to the beginning of the wanted part; src->first may be a frame that was decoded before. */
sac_result sac_part_begin(struct sac_source *src);
/* A frame of this time, and all that follow, are past the end of the part. */
bool       sac_part_is_over(const struct sac_source *src, int64_t pts_us);
/* Whether it is wanted; frames come in order, and the first that is decides which follow. */
bool       sac_part_takes(struct sac_source *src, const sac_frame *frame);
/* Of src->packet, of kept[stream]. */
bool       sac_part_keeps(const struct sac_source *src, const AVPacket *packet, int stream);
/* At the end of the part: the audio that lies behind it in the file. SAC_EOS. */
sac_result sac_part_read_rest(struct sac_source *src);
/* Not one frame was in the part. */
sac_result sac_part_fail_empty(struct sac_source *src);
/* From what the whole input has to what the part has. */
void       sac_part_describe(const struct sac_source *src, struct sac_source_info *info);

#endif
