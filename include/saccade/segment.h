/* SPDX-License-Identifier: Apache-2.0 */
/* A segmenter: frames in, mattes out.
 *
 *     sac_segmenter *seg = NULL;
 *     sac_result     res = sac_segmenter_create(dev, "person_seg", NULL, &seg);
 *     if (res == SAC_OK)
 *         res = sac_segmenter_run(seg, &frame, 1, &matte);
 *     ... matte is a frame of the same size, SAC_PIXEL_GRAY8: 255 where a person is ...
 *     sac_frame_unref(&matte);
 *     sac_segmenter_destroy(&seg);
 */
#ifndef SACCADE_SEGMENT_H
#define SACCADE_SEGMENT_H

#include <saccade/head.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the eyes of a video lie in its frames: one, side by side, one above the other. */
enum sac_stereo { SAC_STEREO_MONO = 0, SAC_STEREO_SBS, SAC_STEREO_TB };

/* How each eye sees the world: as a plain camera; in a circle of 190 degrees whose angles grow
 * evenly from its middle; in half of an equirectangular picture, 180 degrees each way. */
enum sac_projection { SAC_PROJECTION_FLAT = 0, SAC_PROJECTION_FISHEYE, SAC_PROJECTION_EQUIRECT180 };

/* The flat pictures that the network sees of an eye whose projection is not flat: none (the eye's
 * picture as it is), five that together show a half sphere, or the one ahead, of 110 degrees. */
enum sac_facets { SAC_FACETS_NONE = 0, SAC_FACETS_ALL, SAC_FACETS_FRONT };

struct sac_segmenter_params {
    const char *head;       /* NULL: recognised from the graph; else a head's name */
    const char *preprocess; /* NULL, or overrides of the contract */
    const char *classes;    /* comma-separated names or numbers whose pixels are the matte; "auto",
                               the default: persons where the model knows them, else "all", which
                               leaves out only the first class, the background. A network that gives
                               one number per pixel has no classes; those of an instance network
                               count from 1, before them is the background */
    int class_map; /* 1: mattes hold the number of each pixel's likeliest class instead; of instance
                      networks: of the classes asked for, with "auto" all of them; default 0 */
    int                batch_max; /* images in one run of the network; default 8 */
    enum sac_precision precision; /* of the network */
    enum sac_stereo    stereo;    /* of all frames: each eye is an image of the batch, at least both
                                     of one frame, with a state of its own, and its half of the
                                     frame's matte is what it would be alone. Default
                                     SAC_STEREO_MONO */
    /* How mattes are made of the network's coarser map; the defaults are the command line's. */
    int guide;         /* half the window, in cells of the map, in which edges follow the frame's
                          luma; 0: they do not. 0..8, default 2 */
    float guide_noise; /* differences of luma (0..255) below it are no edge; 1..255, default 8 */
    float smooth;      /* 0..0.95: how much of the former frame's matte stays where the network is
                          unsure and the picture is the same, followed along its motion; default
                          0.95 */
    int   hole;        /* gaps inside a body up to so many cells are closed; 0..8, default 1 */
    float feather_low, feather_high; /* shares that become 0 and 1; default 0.2, 0.8 */
    /* Of every eye. With facets, each is an image of the batch, with a state of its own, and the
     * matte is put together from theirs; it is 0 where none looks. Mattes only, no class_map.
     * Defaults SAC_PROJECTION_FLAT, SAC_FACETS_NONE */
    enum sac_projection projection;
    enum sac_facets     facets;
    /* The network sees the picture (of an eye, of a region) at each of these scales, and the matte
     * is made of the mean: 1 is the picture as it is; at 2 it is seen in parts, twice as large in
     * the network's input; at 0.5 half as large, its edges repeated about it. Each part is an image
     * of the batch, with a state of its own. 0.25..2 each, the first 0 ends them; {1} is the same
     * as none. Without facets; mattes only, no class_map. Default none */
    float    scales[4];
    uint64_t reserved[9]; /* 0 */
};
SAC_API struct sac_segmenter_params sac_segmenter_params_default(void);

typedef struct sac_segmenter sac_segmenter;
/* Load the model and find its head.
 *
 * params   NULL: the defaults.
 * out      owned by the caller, destroyed with sac_segmenter_destroy.
 * Errors   SAC_ERR_ARG (an unknown head or class, a bad parameter), SAC_ERR_UNSUPPORTED (the
 *          outputs are no mattes, an operator is missing, the device cannot make mattes), those of
 *          sac_model_load; SAC_ERR_MEMORY. */
SAC_API sac_result sac_segmenter_create(sac_device *dev, const char *model_path,
                                        const struct sac_segmenter_params *params,
                                        sac_segmenter                    **out);
SAC_API void       sac_segmenter_destroy(sac_segmenter **seg);
/* A matte for each of frames [n]. Frames of one stream_id follow each other: their mattes are
 * smoothed along time, and a recurrent network keeps its state for them. A frame of another size
 * begins anew. One that stereo cannot halve (into whole samples of chroma, too) is refused.
 *
 * mattes   [n] receives new references to frames SAC_PIXEL_GRAY8 of the frames' sizes, on the same
 *          device, with their times; owned by the caller. All NULL on failure.
 *          sac_frame_plane_tensor gives one as a tensor without a copy.
 * Threads  one call at a time.
 * Errors   SAC_ERR_ARG for a frame of another device; SAC_ERR_FORMAT where the outputs are not the
 *          head's; SAC_ERR_UNSUPPORTED for a frame that has no two halves; SAC_ERR_LIMIT past
 *          the memory limit; SAC_ERR_MEMORY. */
SAC_API sac_result sac_segmenter_run(sac_segmenter *seg, sac_frame *const *frames, int n,
                                     sac_frame **mattes);
/* The stream has ended, or begins anew: what is remembered of it is freed. */
SAC_API void sac_segmenter_forget(sac_segmenter *seg, int stream_id);
/* As of a detector. */
SAC_API void sac_segmenter_get_times(const sac_segmenter *seg, struct sac_run_times *out);
/* These functions may be called from any thread; what they return is borrowed from the segmenter.
 * class_name returns "unknown" where there is no such class. */
SAC_API int         sac_segmenter_class_count(const sac_segmenter *seg); /* 0: one number a pixel */
SAC_API const char *sac_segmenter_class_name(const sac_segmenter *seg, int class_id);
SAC_API const char *sac_segmenter_head_name(const sac_segmenter *seg);
SAC_API const struct sac_model_contract *sac_segmenter_contract(const sac_segmenter *seg);
/* Borrowed, to inspect; only the segmenter may run it. */
SAC_API sac_model *sac_segmenter_model(const sac_segmenter *seg);
/* The map that it reads, for people. */
struct sac_segmenter_info {
    const char *output; /* its name; NULL: only the first frame tells, also the form */
    const char *form;   /* "share", "logit", "class logits", "class shares", "class number"; of an
                           instance network's prototypes "boxes' coefficients" */
    int      width, height; /* cells; 0 likewise */
    int      states;        /* of a recurrent network */
    uint64_t reserved[8];   /* 0 */
};
SAC_API void sac_segmenter_inspect(const sac_segmenter *seg, struct sac_segmenter_info *out);
/* The network's input that takes state i, and its output that it comes from; NULL: there are
 * fewer. */
SAC_API const char *sac_segmenter_state_input(const sac_segmenter *seg, int i);
SAC_API const char *sac_segmenter_state_output(const sac_segmenter *seg, int i);

#ifdef __cplusplus
}
#endif
#endif
