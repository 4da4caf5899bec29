/* SPDX-License-Identifier: Apache-2.0 */
/* A segmenter from inside, a detector's twin: a batch is begun, which queues everything down to the
 * mattes, and ended, which waits for them; two can be under way. Of each stream it keeps what the
 * next frame needs, in the order in which batches are begun.
 *
 *     res = sac_segmenter_begin(seg, 0, asks, n);
 *     res = sac_segmenter_begin(seg, 1, others, m);
 *     res = sac_segmenter_end(seg, 0, mattes, NULL, NULL, &times);
 */
#ifndef SAC_HEADS_SEGMENTER_H
#define SAC_HEADS_SEGMENTER_H

#include <saccade/segment.h>

#include "heads/detector.h"
#include "vision/composite.h"
#include "vision/facets.h"
#include "vision/instances.h"
#include "vision/matte.h"
#include "vision/scales.h"

enum { SAC_SEGMENTER_SLOTS = 2 }; /* batches under way at once */
enum { SAC_SEGMENTER_EYES_MAX = 2 };
enum { SAC_SEGMENTER_LOOKS_MAX = SAC_SCALE_LOOKS_MAX }; /* images of an eye */
_Static_assert((int)SAC_SEGMENTER_LOOKS_MAX >= SAC_FACETS_MAX, "facets are looks");
enum { SAC_SEGMENTER_BOXES_MAX = 300 }; /* of an image of an instance network */

/* What is asked for a frame. */
struct sac_segmenter_ask {
    sac_frame *frame; /* borrowed until end */
    bool       keep;  /* the network does not see it: its matte is that of the frame before, moved
                         along. Where the stream has no frame before of this size and region, and
                         of recurrent networks and maps of classes, it is seen all the same */
    struct sac_rect region; /* pixels: the network sees this part of the frame, or of each of its
                               eyes, as whole pixels; the matte is 0 elsewhere. Empty, and with
                               facets: all. Where it is another than the frame before had, the
                               stream begins anew */
    /* NULL, or what frame and matte become behind the matte, without these two. */
    const struct sac_composite_job *composite;
};

/* What a frame came to, see struct sac_matte_summary. All 0 of maps of classes. */
struct sac_segmenter_summary {
    struct sac_rect found; /* pixels around all whose share is a half at least, of either eye as in
                              an ask's region; empty: none */
    float unsure;          /* the mean of what is missing to 0 or 1, 0..0.5; of the unsurer eye */
    bool  kept;            /* the network did not see it */
};

/* The instances of an eye or frame one by one, best first, boxes in its pixels. */
struct sac_segmenter_found_eye {
    struct sac_instance      *items;
    size_t                    count, capacity;
    struct sac_instances_view view;
    int                       left, top; /* where the eye lies in the frame */
    struct sac_buffer        *sums;      /* a reference: what items refer to; NULL: to nothing */
};

/* Of a frame; zeroed before the first. Used again after clear. */
struct sac_segmenter_found {
    struct sac_segmenter_found_eye eye[SAC_SEGMENTER_EYES_MAX];
};
void sac_segmenter_found_clear(struct sac_segmenter_found *found);
void sac_segmenter_found_finish(struct sac_segmenter_found *found);

/* The same of a batch, on the device. */
struct sac_segmenter_shown {
    bool                      used;  /* somebody asked */
    struct sac_buffer        *found; /* lists of boxes, those of a run from its first image on */
    struct sac_buffer        *sums;  /* [images,sums.room] */
    struct sac_mirror         host;  /* where the lists arrive */
    struct sac_instances_sums spec;
};

/* A batch under way. */
struct sac_segmenter_slot {
    struct sac_batch_slot           batch;     /* of the images that the network sees */
    int                             n, images; /* frames and their eyes */
    const struct sac_segmenter_ask *asks;      /* [n] during begin */
    int                             queued;    /* jobs so far */
    struct sac_matte_job           *jobs;      /* [images] */
    sac_frame *seen, *made; /* [images] the eyes of the frames and of their mattes, which own them
                             */
    sac_frame        **mattes;        /* [batch], references */
    sac_frame        **smaller;       /* [images] eyes that facets are taken from, likewise */
    sac_frame        **facets;        /* [images * looks], references; NULLs where there are none */
    struct sac_buffer *shares, *maps; /* of looks and of eyes, in device memory */
    bool               summarised;    /* somebody asked */
    struct sac_buffer *summaries;     /* [images] in device memory; NULL: nobody asked so far */
    struct sac_mirror  host;          /* where they arrive */
    struct sac_segmenter_shown shown; /* of an instance network */
};

/* A recurrent network's: what it gave with the latest frame, and tensors for the next one. In the
 * order of the feed's states; NULL before the first. */
struct sac_segmenter_states {
    sac_tensor *given[SAC_FEED_INPUTS_MAX], *spare[SAC_FEED_INPUTS_MAX];
};

/* What is kept of an eye. */
struct sac_segmenter_eye {
    struct sac_buffer          *memory; /* of its mattes */
    struct sac_matte_state      state;
    struct sac_segmenter_states states[SAC_SEGMENTER_LOOKS_MAX]; /* of each look */
};

/* What is kept of a stream from frame to frame. */
struct sac_segmenter_stream {
    int                      id, width, height; /* of an eye of its latest frame */
    struct sac_rect          crop;              /* that the network saw of it */
    uint64_t                 used_at;           /* of the segmenter's clock */
    struct sac_segmenter_eye eye[SAC_SEGMENTER_EYES_MAX];
};

/* Of a network whose boxes have masks (heads/instances.c). */
struct sac_segmenter_instances {
    bool                      used;
    struct sac_detect_spec    boxes;
    struct sac_instances_spec spec;
    struct sac_fit_map       *maps;  /* [run_max]: boxes stay in pixels of the network's input */
    struct sac_buffer        *found; /* as sac_detect_run packs them */
    struct sac_buffer        *map;   /* [run_max,1,height,width] */
    /* One by one (segmenter_found.c). */
    bool                      shown;
    bool                      crowded; /* it was said that there are more than have room */
    struct sac_device_stream *fetch;   /* for what is copied when a batch ends */
};

/* Of eyes that the network sees as facets (vision/facets.h). */
struct sac_segmenter_facets {
    int                 count; /* of an eye; 0: it sees them as they are */
    enum sac_projection projection;
    enum sac_facets     set;
    int                 side;   /* pixels */
    struct sac_buffer  *places; /* [count][side][side] */
    struct sac_buffer  *cells;  /* of the eyes' map; NULL before it is laid out */
};

/* Of eyes that the network sees at several scales (vision/scales.h). */
struct sac_segmenter_scales {
    int                count; /* 0: it sees them once, as they are */
    float              scale[SAC_SCALES_MAX];
    struct sac_scales *pictures; /* [batch * eyes] of the eyes that are seen, during begin */
};

struct sac_segmenter {
    sac_device               *dev;
    sac_model                *model;
    struct sac_head_view      view;
    const struct sac_head    *head;
    struct sac_model_contract contract;
    enum sac_stereo           stereo;
    int                       eyes;    /* of a frame: 1 or 2 */
    int                       looks;   /* images of an eye: its facets, its scales', or itself */
    int                       batch;   /* frames in a batch */
    int                       run_max; /* images in one run */
    int                      *wanted;  /* [wanted_count] classes that are the matte; NULL: there
                                          are none to choose */
    int                            wanted_count;
    struct sac_run_times           times; /* of the latest public run */
    struct sac_segmenter_ask      *asks;  /* [batch], likewise */
    struct sac_preprocess_job     *jobs;  /* [batch * eyes * looks] */
    struct sac_buckets             buckets;
    struct sac_segmenter_slot      slots[SAC_SEGMENTER_SLOTS];
    bool                           summarises;
    struct sac_matte_style         style;
    struct sac_matte_spec          spec;
    bool                           laid_out; /* spec is known */
    struct sac_segmenter_instances instances;
    struct sac_segmenter_facets    facets;
    struct sac_segmenter_scales    scales;
    /* Of the network's map, where the eyes' are put together from several; spec is of theirs. */
    struct sac_matte_spec net;
    /* Streams, in no order. */
    struct sac_segmenter_stream *streams;
    size_t                       stream_count, stream_capacity;
    uint64_t                     clock;                      /* counts batches */
    sac_tensor                  *first[SAC_FEED_INPUTS_MAX]; /* the states before a first frame */
};

/* segmenter.c */
/* Before a model is loaded. */
sac_result sac_segmenter_check_params(sac_context *ctx, const struct sac_segmenter_params *p);
/* Whether frames of this size have two halves; format: SAC_PIXEL_NONE where it is not known. */
sac_result sac_segmenter_check_eyes(sac_context *ctx, enum sac_stereo stereo,
                                    enum sac_pixel_format format, int width, int height);
/* Fill in what outputs of the view's shapes show, which are those of a run; false: they are not the
 * head's. */
bool sac_segmenter_read_shapes(struct sac_segmenter *seg, const struct sac_head_view *view,
                               struct sac_matte_spec *out);
/* The sentence for outputs that are not the head's. */
sac_result sac_segmenter_refuse_shapes(const struct sac_segmenter *seg,
                                       const struct sac_head_view *view);
/* Whether the numbers of the output that is read are what a matte can be made of. */
sac_result sac_segmenter_check_spec(const struct sac_segmenter  *seg,
                                    const struct sac_matte_spec *spec);

/* segmenter_classes.c */
/* Set spec.wanted and wanted. list: as in the parameters.
 * Errors   SAC_ERR_ARG, SAC_ERR_UNSUPPORTED: a class that cannot be chosen; SAC_ERR_MEMORY. */
sac_result sac_segmenter_choose_classes(struct sac_segmenter *seg, const char *list);
/* How many of its classes are the matte; the same as text, "person (1 of 21)". */
int  sac_segmenter_kept_classes(const sac_segmenter *seg);
void sac_segmenter_describe_classes(const sac_segmenter *seg, char *out, size_t size);

/* segmenter_instances.c: where instances.used */
/* Before the first run; all: boxes of all classes, else those that spec.wanted says. */
sac_result sac_segmenter_instances_open(struct sac_segmenter *seg, bool all);
/* Nothing is under way; half-built too. */
void sac_segmenter_instances_close(struct sac_segmenter *seg);
bool sac_segmenter_lay_out_instances(struct sac_segmenter *seg, const struct sac_head_view *view,
                                     struct sac_matte_spec *out);
/* Behind a run of n images, from `first` of the slot's on: the map takes the prototypes' place in
 * tensors. */
sac_result sac_segmenter_queue_instances(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                                         int first, const void **tensors, int n);
sac_result sac_segmenter_warm_up_instances(struct sac_segmenter *seg);

/* segmenter_found.c */
/* From now on end tells instances one by one. The network then sees every frame. Before the first
 * batch, of an instance network that has no looks. */
sac_result sac_segmenter_show_instances(struct sac_segmenter *seg);
/* A slot's memory, once the network's outputs are laid out, and margins for its jobs. */
sac_result sac_segmenter_reserve_shown(struct sac_segmenter *seg, struct sac_segmenter_slot *slot);
/* Nothing is under way. */
void sac_segmenter_shown_close(struct sac_segmenter_shown *shown);
/* Of a run of images from `first` on: where its lists and sums go on the device, */
void *sac_segmenter_shown_lists(const struct sac_segmenter_slot *slot, int first);
struct sac_instances_sums sac_segmenter_shown_sums(const struct sac_segmenter_slot *slot,
                                                   int                              first);
/* and behind it the copy of the lists. */
sac_result sac_segmenter_fetch_shown(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                                     int first, int n);
/* Of a batch that has arrived: found [n]. */
sac_result sac_segmenter_take_shown(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                                    struct sac_segmenter_found *found);

/* segmenter_facets.c: where facets.count is not 0 */
/* After batch_open. Errors   SAC_ERR_UNSUPPORTED where the device has none. */
sac_result sac_segmenter_facets_open(struct sac_segmenter *seg);
/* Nothing is under way; half-built too. */
void sac_segmenter_facets_close(struct sac_segmenter *seg);
/* The table for the net's maps, unless it is there: they have one size. */
sac_result sac_segmenter_lay_out_facets(struct sac_segmenter *seg);
/* From an eye's pixels to its map, which covers all of it. */
struct sac_fit_map sac_segmenter_facets_map(const struct sac_segmenter *seg, const sac_frame *eye);
/* Before the runs of a batch: the facets of the eyes that are seen, and the jobs of these. */
sac_result sac_segmenter_queue_facets(struct sac_segmenter *seg, struct sac_segmenter_slot *slot);

/* segmenter_looks.c: eyes' maps that are put together from those of several looks */
static inline bool sac_segmenter_has_looks(const struct sac_segmenter *seg)
{
    return seg->facets.count > 0 || seg->scales.count > 0;
}
/* After batch_open. Errors   SAC_ERR_UNSUPPORTED where the device cannot. */
sac_result sac_segmenter_looks_open(struct sac_segmenter *seg);
void       sac_segmenter_looks_close(struct sac_segmenter *seg);
/* spec of the network's map becomes that of an eye's. */
sac_result sac_segmenter_lay_out_looks(struct sac_segmenter *seg, struct sac_matte_spec *spec);
/* Before the runs of a batch: the jobs of the looks at the eyes that are seen. */
sac_result sac_segmenter_queue_looks(struct sac_segmenter *seg, struct sac_segmenter_slot *slot);
/* Behind a run: the maps of the eyes whose last look was in it, from the first one's on, take the
 * place of the network's in tensors. */
sac_result sac_segmenter_queue_maps(struct sac_segmenter *seg, struct sac_segmenter_slot *slot,
                                    const struct sac_batch_part *part, const void **tensors);

/* segmenter_range.c */
/* What shape and file do not tell: whether numbers are shares or logits. After batch_open.
 * Errors   SAC_ERR_UNSUPPORTED where they are neither. */
sac_result sac_segmenter_measure(struct sac_segmenter *seg);

/* segmenter_streams.c */
enum { SAC_SEGMENTER_STREAMS_MAX = 256 }; /* kept, beside those of a batch */
/* NULL: there is none. Borrowed until the next call. */
struct sac_segmenter_stream *sac_segmenter_find_stream(const struct sac_segmenter *seg, int id);
/* Whether a job's frame is of the size and crop of the stream's latest one. */
bool sac_segmenter_follows(const struct sac_segmenter_stream *s, const struct sac_matte_job *job);
/* The stream of a job's frame or eye, which begins anew where that has another size or crop; the
 * longest unused one goes where there are too many. Borrowed until the next call. */
sac_result sac_segmenter_stream(struct sac_segmenter *seg, const struct sac_matte_job *job,
                                struct sac_segmenter_stream **out);
/* Before a run of a recurrent network: the bucket's states are those of a look; and after it. */
sac_result sac_segmenter_give_states(struct sac_segmenter *seg, struct sac_segmenter_states *states,
                                     struct sac_bucket *bucket);
void       sac_segmenter_take_states(struct sac_segmenter *seg, struct sac_segmenter_states *states,
                                     struct sac_bucket *bucket);
/* The frame that follows does so without a frame before. */
void sac_segmenter_begin_anew(struct sac_segmenter *seg, struct sac_segmenter_stream *s);
/* Waits for nothing: memory goes back once the stream is done with it. */
void sac_segmenter_forget_all(struct sac_segmenter *seg);

/* segmenter_batch.c */
sac_result sac_segmenter_batch_open(struct sac_segmenter *seg);
/* Waits for what is queued; half-built too. */
void sac_segmenter_batch_close(struct sac_segmenter *seg);
/* Plan and run once all that later runs need, on a device that asks for it. */
sac_result sac_segmenter_warm_up(struct sac_segmenter *seg);
/* Let end tell what frames came to, or no more: of the batches that begin from now on. */
void sac_segmenter_summarise(struct sac_segmenter *seg, bool on);
/* 1 <= n <= seg->batch; frames of one stream stand in their order. After a fault the slot is free
 * again, and the streams are as before the batch or begin anew. */
sac_result sac_segmenter_begin(struct sac_segmenter *seg, int slot,
                               const struct sac_segmenter_ask *asks, int n);
/* Whether end would return without waiting. */
bool sac_segmenter_arrived(const struct sac_segmenter *seg, int slot);
/* mattes [n] receives references, or NULLs on failure. summaries, found: NULL or [n], written where
 * they were asked for and nothing failed. */
sac_result sac_segmenter_end(struct sac_segmenter *seg, int slot, sac_frame **mattes,
                             struct sac_segmenter_summary *summaries,
                             struct sac_segmenter_found *found, struct sac_batch_times *times);

#endif
