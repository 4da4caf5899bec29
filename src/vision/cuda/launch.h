/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as the host code sees them: a launcher queues work on a stream and decides nothing. Its
 * parameters go to the GPU with the launch, so nothing is uploaded and the caller may forget
 * them. */
#ifndef SAC_VISION_CUDA_LAUNCH_H
#define SAC_VISION_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>

#include "device/cuda/launch.h"
#include "vision/camera.h"
#include "vision/composite.h"
#include "vision/detect.h"
#include "vision/difference.h"
#include "vision/facets.h"
#include "vision/matte.h"
#include "vision/appearance.h"
#include "vision/instances.h"
#include "vision/paint.h"
#include "vision/picture.h"
#include "vision/sample.h"
#include "vision/scales.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One crop: what it shows and where in the tensor. */
struct cuda_crop {
    struct sac_surface   src;
    struct sac_axis_spec x, y; /* x.n by y.n pixels of the tensor from left, top on; the rest is
                                  fill */
    int left, top;
};

/* A launch may have 32,764 bytes of parameters. */
enum { CUDA_CROPS_FEW = 24, CUDA_CROPS_MAX = 176 };

struct cuda_preprocess_params {
    int                    width, height; /* of the tensor */
    enum sac_tensor_layout layout;
    enum sac_dtype         dtype;
    bool                   bgr;
    bool                   area;   /* one crop at least needs an area filter */
    bool                   turned; /* one frame at least is not upright */
    bool                   paired; /* two pixels of a row can be stored at once */
    float                  mean[3], scale[3], fill[3]; /* in the tensor's channel order */
};
/* crops [n], n <= CUDA_CROPS_MAX, to dst [n,C,H,W] or [n,H,W,C]. */
cudaError_t cuda_launch_preprocess(const struct cuda_preprocess_params *params,
                                   const struct cuda_crop *crops, int n, void *dst,
                                   cudaStream_t stream);

struct cuda_convert_params {
    struct sac_surface   src;
    struct sac_axis_spec x, y;
    struct sac_recode    recode;
    uint8_t *plane[SAC_PLANES_MAX]; /* of the destination, x.n by y.n of format recode.to */
    uint32_t pitch[SAC_PLANES_MAX];
    bool     keeps_alpha; /* the frame is only turned: same format and size */
};
cudaError_t cuda_launch_convert(const struct cuda_convert_params *params, cudaStream_t stream);

struct cuda_draw_params {
    uint8_t                  *plane[SAC_PLANES_MAX];
    uint32_t                  pitch[SAC_PLANES_MAX];
    int                       width, height;
    enum sac_pixel_format     format;
    struct sac_bounds         bounds; /* of all coats */
    const struct sac_coat    *coats;  /* [count], device memory */
    const struct sac_segment *segments;
    int                       count;
};
cudaError_t cuda_launch_draw(const struct cuda_draw_params *params, cudaStream_t stream);

/* One image's part of the scratch: see cuda_detect_bytes. */
struct cuda_detect_state {
    int32_t found; /* candidates */
    int32_t kept;
    int32_t mode; /* what its values told: sac_detect_mode */
    int32_t unused;
};
enum { CUDA_DETECT_IMAGES = 256 };
struct cuda_detect_params {
    struct sac_detect_spec    spec;
    const void               *tensors[SAC_DETECT_TENSORS_MAX];
    int                       first;      /* image of the tensors that comes first here */
    struct cuda_detect_state *state;      /* [n] */
    struct sac_detection     *candidates; /* [n][cells] */
    struct sac_detection     *sorted;     /* [n][cells] */
    int32_t                  *cell;       /* [n][cells], of the candidates */
    uint64_t                 *keys;       /* [n][keys_room] */
    size_t                    keys_room;  /* a power of two, cells at least */
    struct sac_detection     *kept;       /* [n][keep] */
    int32_t                  *origins;    /* [n][keep], of those kept; NULL: not asked for */
};
/* maps [n], n <= CUDA_DETECT_IMAGES. */
cudaError_t cuda_launch_detect(const struct cuda_detect_params *params,
                               const struct sac_fit_map *maps, int n, cudaStream_t stream);
/* The lists of all images, packed. */
struct cuda_detect_out {
    int32_t  *count;     /* [n] */
    uint32_t *boxes;     /* of each so many */
    int       box_words; /* of struct sac_detection's, the first ones */
    int32_t  *origins;   /* NULL with the parameters' */
};
cudaError_t cuda_launch_detect_pack(const struct cuda_detect_state *state,
                                    const struct sac_detection *kept, const int32_t *origins,
                                    int keep, int n, const struct cuda_detect_out *out,
                                    cudaStream_t stream);

struct cuda_instances_params {
    struct sac_instances_spec spec; /* its fields are of tensor 0: each has an address of its own */
    const void               *coefficients, *prototypes;
    const int32_t            *count, *origins; /* as detect packs them */
    const struct sac_detection *boxes;
    float                      *out; /* [n,height,width] */
    struct sac_instances_sums   sums;
};
cudaError_t cuda_launch_instances(const struct cuda_instances_params *params, int n,
                                  cudaStream_t stream);
cudaError_t cuda_launch_instance_sums(const struct cuda_instances_params *params, int n,
                                      cudaStream_t stream);

cudaError_t cuda_launch_picture(const struct sac_picture_job *job, cudaStream_t stream);
cudaError_t cuda_launch_normalise(const void *in, enum sac_dtype dtype, int rows, int dim,
                                  float *out, cudaStream_t stream);

/* What goes to the GPU of struct sac_appearance_job is kept short, as it goes with every frame.
 *
 * Addresses: each so many units behind the lowest, in 32 bits; or in 64 bits, where one list of the
 * job has some that are too far apart. */
struct cuda_addresses {
    char       *lowest;
    const void *units; /* uint32_t, or uint64_t */
    uint32_t    unit_bytes;
};
/* The updates' slots and rows are the first ones of their lists. */
struct cuda_appearance_update {
    uint32_t time : 31, fresh : 1;
};
/* Where an ask's slots, rows and numbers begin; they end where those of the next one begin. */
struct cuda_appearance_ask {
    uint32_t slots, rows, out;
};
/* All lists in device memory. */
struct cuda_appearance_params {
    struct sac_appearance_shape          shape;
    bool                                 wide; /* addresses are in 64 bits */
    struct cuda_addresses                slots, rows;
    const double                        *times; /* those of a stream's updates are one */
    const struct cuda_appearance_update *updates;
    const struct cuda_appearance_ask    *asks; /* [ask_count + 1] */
    int                                  update_count, ask_count;
    int                                  pairs_max; /* most numbers of one ask */
    float                               *out;
};
cudaError_t cuda_launch_appearance(const struct cuda_appearance_params *params,
                                   cudaStream_t                         stream);

/* A struct sac_camera_box in two pixels of level 0, as corners stand at every second one. Pictures
 * that are too large for that have boxes as they are. */
struct cuda_camera_box {
    uint8_t x0, y0, x1, y1;
};
enum { CUDA_CAMERA_SMALL_MAX = 2 * UINT8_MAX };
SAC_ANYWHERE bool cuda_camera_is_small(const struct sac_camera_plane *level)
{
    return level->width <= CUDA_CAMERA_SMALL_MAX && level->height <= CUDA_CAMERA_SMALL_MAX;
}
/* No larger than it must be: one goes to the GPU with every frame. */
struct cuda_camera_job {
    const uint8_t *luma;          /* the upright picture's first sample */
    uint8_t       *now, *before;  /* before NULL: there is no former frame */
    int32_t        across, down;  /* bytes to the next sample and to the one below */
    uint16_t       width, height; /* SAC_CAMERA_SIZE_MAX at most */
    int32_t        format;
    uint32_t       moving, moving_count; /* where the boxes begin, in those of a small picture */
};
struct cuda_camera_corner {
    struct sac_camera_match match;
    int32_t                 found, followed;
};
struct cuda_camera_params {
    const struct cuda_camera_job *jobs; /* [n], device memory */
    const struct cuda_camera_box *moving;
    struct cuda_camera_corner    *corners;                 /* [n,cells_max], scratch */
    struct sac_camera_move       *out;                     /* [n] */
    int                           n, tiles_max, cells_max; /* of one job */
    bool                          turned;                  /* one frame at least is not upright */
};
/* Squares of level 0 that one block fills. */
enum { CUDA_CAMERA_TILE = 16 };
cudaError_t cuda_launch_camera(const struct cuda_camera_params *params, cudaStream_t stream);

struct cuda_difference_job {
    struct sac_surface frame, other;
    uint8_t           *kept;  /* NULL: the samples are not kept */
    bool               alone; /* there is no other */
};
/* jobs [n], device memory. */
cudaError_t cuda_launch_difference(const struct cuda_difference_job *jobs, int n, uint32_t *sums,
                                   cudaStream_t stream);

struct cuda_facet {
    const uint8_t                *eye; /* R, G, B */
    size_t                        eye_pitch;
    int32_t                       eye_width, eye_height;
    const struct sac_facet_place *places;
    uint8_t                      *out;
    size_t                        out_pitch;
    int32_t                       width, height;
};
enum { CUDA_FACETS_MAX = 40 }; /* of a launch */
struct cuda_facets_params {
    struct cuda_facet facet[CUDA_FACETS_MAX];
    int               width_max, height_max;
};
/* The first n. */
cudaError_t cuda_launch_facets(const struct cuda_facets_params *params, int n, cudaStream_t stream);

struct cuda_facet_shares_params {
    struct sac_matte_spec spec; /* its field is of tensor 0 */
    const void           *numbers;
    int16_t              *out; /* [n,height,width] */
};
cudaError_t cuda_launch_facet_shares(const struct cuda_facet_shares_params *params, int n,
                                     cudaStream_t stream);

struct cuda_facet_maps_params {
    int                          facets, net_width, net_height, width, height;
    const struct sac_facet_cell *cells;
    const int16_t               *shares; /* [n,facets,net_height,net_width] */
    float                       *out;    /* [n,height,width] */
};
cudaError_t cuda_launch_facet_maps(const struct cuda_facet_maps_params *params, int n,
                                   cudaStream_t stream);

enum { CUDA_SCALES_MAX = 4 }; /* pictures of a launch: its parameters are 4 KB at most */
struct cuda_scale_maps_params {
    struct sac_scales picture[CUDA_SCALES_MAX];
    int               looks, net_width, net_height, width, height;
    const int16_t    *shares; /* [n,looks,net_height,net_width] */
    float            *out;    /* [n,height,width] */
};
/* The first n. */
cudaError_t cuda_launch_scale_maps(const struct cuda_scale_maps_params *params, int n,
                                   cudaStream_t stream);

/* Planes of an upright frame; a background may be missing. */
struct cuda_planes {
    uint8_t *plane[SAC_PLANES_MAX];
    uint32_t pitch[SAC_PLANES_MAX];
};
struct cuda_composite_params {
    struct sac_composite_plan plan;
    struct sac_surface        frame;
    struct cuda_planes        matte, background, out; /* of the frame's size */
    enum sac_pixel_format     to;                     /* of out */
    bool                      full_range;
    bool wide; /* all planes and their rows begin at multiples of CUDA_COMPOSITE_UNIT */
};
enum { CUDA_COMPOSITE_UNIT = 16 };
cudaError_t cuda_launch_composite(const struct cuda_composite_params *params, cudaStream_t stream);

/* Numbers of a cell, read together. */
struct cuda_matte_line {
    int32_t slope, base; /* of its window */
};
struct cuda_matte_mean {
    float slope, base; /* of the windows about it */
};
/* What becomes a summary: 0 before the first cell, and only ever greater. */
struct cuda_matte_sum {
    unsigned long long unsure;
    int32_t            right, bottom; /* past the last cell inside */
    int32_t            left, top;     /* of the first one, counted from the grid's far edges */
};

/* One image of a batch of mattes. Planes of cells have rows as long as the map's. */
struct cuda_matte_job {
    struct sac_surface    frame;
    struct sac_matte_axis x, y; /* no cells: there is no pixel */
    uint8_t              *out;  /* the frame's pixel 0, 0 */
    size_t                out_pitch;
    int32_t               image;
    int32_t               before;  /* which job was the frame before; -1: one of an earlier batch */
    int32_t               after;   /* whose shares are made with this one's; -1: none */
    int32_t               depth;   /* jobs before it that take over shares, one behind the other */
    bool                  follows; /* its shares are made with those of one of these */
    bool                  moves;   /* shares are taken over from the frame before */
    bool                  few;     /* four pixels side by side lie between three cells */
    bool                  words;   /* rows of the frame are read four pixels at a time */
    bool                  wide_out;    /* those of the matte are written so */
    int16_t              *raw, *share; /* shares before and after smoothing; may be one plane */
    const int16_t        *share_before;
    uint8_t              *luma; /* cell 0, 0 */
    const uint8_t        *luma_before;
    uint8_t              *half; /* luma of half size; NULL: nobody asks for it */
    uint8_t              *half_before;
    bool     halves_before; /* which is made here: the frame before is of an earlier batch */
    int16_t *share_kept;    /* where they are copied in the end; NULL: nowhere */
    uint8_t *luma_kept;
    struct sac_matte_summary *summary; /* NULL: not asked */
    /* Scratch. */
    struct cuda_matte_sum  *sum;
    struct sac_matte_move  *move;   /* blocks */
    uint32_t               *former; /* cells: where they were, and how well they were found */
    int16_t                *closed;
    struct cuda_matte_line *line;
    struct cuda_matte_mean *mean;
};
enum {
    CUDA_MATTE_JOBS_MAX = 8, /* as many as fit into the 4 KB of parameters that any launch may have;
                                with more the thread that launches stood still until the GPU had
                                done what was queued before */
    CUDA_MATTE_TILE_X = 32,  /* cells of a block */
    CUDA_MATTE_TILE_Y = 8,
    CUDA_MATTE_QUADS = 16,   /* the same where a thread has four side by side, and rows */
    CUDA_MATTE_AREA_X = 128, /* pixels of a block */
    CUDA_MATTE_AREA_Y = 64,
    CUDA_MATTE_CLASS_Y = 32
};
struct cuda_matte_params {
    struct sac_matte_spec    spec;
    const void              *numbers; /* of the network */
    int                      n;
    int                      luma_pitch, half_pitch;
    bool                     classes;
    bool                     turned, upright; /* some frame is; one that is not read by words */
    int                      guide, hole, smooth;
    double                   variance;
    struct sac_matte_stretch stretch;
    int                      cells_x_max, cells_y_max;   /* of a job */
    int                      pixels_x_max, pixels_y_max; /* across from a multiple of four on */
    int  chain_max; /* the most jobs that take over shares one behind the other; 0: none does */
    bool kept;      /* something is copied in the end */
    bool summaries; /* some are asked for */
    struct cuda_matte_job jobs[CUDA_MATTE_JOBS_MAX]; /* [n] */
};
cudaError_t cuda_launch_matte(const struct cuda_matte_params *params, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
