/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of a source: source.c opens, reads ahead and closes; seek.c goes to the
 * wanted part's beginning; feed.c turns packets into frames; part.c says which of them are wanted.
 */
#ifndef SAC_MEDIA_SOURCE_H
#define SAC_MEDIA_SOURCE_H

#include "base/thread.h"
#include "media/media.h"

/* When packets came, by the timestamp that their pictures will have. A decoder holds fewer. */
enum { SAC_ARRIVALS_MAX = 64 };
struct sac_arrivals {
    int64_t  ts[SAC_ARRIVALS_MAX], ns[SAC_ARRIVALS_MAX];
    unsigned next;
};

struct sac_source {
    sac_context *ctx;
    sac_device  *dev;
    char        *url;
    char        *name; /* for sentences: the url without its secrets, or "standard input" */
    struct sac_source_params params;
    atomic_int               cancelled;

    /* Used by the prefetch thread or, without one, by the caller's. */
    struct sac_input       input;
    struct sac_decoder     decoder;
    int                    generation; /* input.generation when the decoder was opened */
    struct sac_timeline    timeline;
    AVPacket              *packet;
    bool                   packet_waits; /* packet is read but not yet sent to the decoder */
    bool                   draining;     /* the decoder was told that no packet follows */
    bool                   input_ended;
    sac_result             fault; /* the error that ended the input; SAC_OK: none */
    char                   fault_sentence[512];
    int64_t                waited_ns; /* of the frame that is decoded: for its packets to come */
    bool                   opening;
    int64_t                number;
    int                    width, height; /* of the last frame */
    sac_frame             *first;         /* decoded while opening, to learn the size */
    int64_t                pace_start_ns, pace_first_us; /* with params.paced; 0: not begun */
    struct sac_arrivals    arrivals;
    int64_t                decoded;    /* frames decoded, including unwanted ones */
    int64_t                part_first; /* number of the first wanted frame; -1: not seen yet */
    sac_frame             *pending;    /* decoded already; the next one that the feed gives */
    bool                   wants_key;  /* packets before the next key frame are skipped */
    bool                   seeks;      /* during a seek: an end may mean that it went too far */
    struct sac_source_info info;

    struct sac_queue *ready; /* NULL: no prefetch */
    pthread_t         thread;
    bool              thread_runs;
    sac_result        end; /* how the thread ended; set before ready is closed */
    char              end_sentence[512];
    atomic_int        at_end;

    pthread_mutex_t         lock;  /* guards all below */
    struct sac_source_stats stats; /* stats.corrupt: without those that the input counts */
    uint64_t                corrupt_packets;
    struct sac_kept         kept;
    int64_t                 origin_us; /* the timeline's, for sinks */
};

/* ---- feed.c ---- */

/* Open the input, and set what the decoder and the timeline take from it. */
sac_result sac_feed_open_input(struct sac_source *src);
/* Open the decoder for the input's present parameters; the former one is closed. */
sac_result sac_feed_open_decoder(struct sac_source *src);
/* The next frame, from the input through the decoder. */
sac_result sac_feed_next_frame(struct sac_source *src, sac_frame **out);
/* The next frame, wanted or not. */
sac_result sac_feed_any_frame(struct sac_source *src, sac_frame **out);
/* Update the decoder's name and GPU memory in info; a change of the stream may change them. Under
 * the lock. */
void sac_feed_describe_decoder(struct sac_source *src);

/* ---- arrival.c ---- */

/* Before src->packet goes to the decoder: with params.paced, wait until it is due, or for
 * sac_source_cancel; note when it came. */
void sac_arrival_note(struct sac_source *src);
/* When the packets of the picture with this timestamp came; 0: unknown, as of a picture decoded
 * while the source was opened. */
int64_t sac_arrival_of(const struct sac_source *src, int64_t ts);

/* ---- part.c ---- */

/* Whether a frame at this time, and so all later ones, lie past the end of the part. */
bool sac_part_is_over(const struct sac_source *src, int64_t pts_us);
/* Whether the frame is wanted. Call it in order: the first wanted frame decides which others
 * are. */
bool sac_part_takes(struct sac_source *src, const sac_frame *frame);
/* Whether src->packet, of kept[stream], lies in the part. */
bool sac_part_keeps(const struct sac_source *src, const AVPacket *packet, int stream);
/* The time of src->packet, of kept[stream] or of the video (-1), on the timeline; false: unknown.
 */
bool sac_part_time_of(const struct sac_source *src, const AVPacket *packet, int stream,
                      int64_t *out);
/* The number of frames before a time, at a constant rate. */
int64_t sac_part_frames_before(const struct sac_source *src, int64_t us);
/* Fails with the reason why the part has no frame. */
sac_result sac_part_fail_empty(struct sac_source *src);
/* Change duration and frame count from the whole input's to the part's. */
void sac_part_describe(const struct sac_source *src, struct sac_source_info *info);

/* ---- seek.c ---- */

/* Go to the start of the wanted part. src->first may hold a frame that was decoded before. */
sac_result sac_seek_part(struct sac_source *src);

#endif
