/* SPDX-License-Identifier: Apache-2.0 */
/* From a rectangle of a frame to rows of R, G, B: what preprocess and convert share. */
#ifndef SAC_VISION_CPU_RESAMPLE_H
#define SAC_VISION_CPU_RESAMPLE_H

#include "vision/cpu/rows.h"

enum { SAC_SAMPLER_PLANES = 3 };

/* A crop of a frame seen as width x height pixels. The weight tables are in the caller's memory, of
 * sac_sampler_bytes; the frame is borrowed. Read-only after creation: any number of threads may
 * compute rows with it, each with its own scratch. */
struct sac_sampler {
    int                   width, height;
    int                   plane_count;
    struct sac_plane      plane[SAC_SAMPLER_PLANES];
    struct sac_axis       x[2], y[2]; /* [0] luma, RGB, grey; [1] chroma */
    bool                  yuv;        /* colour applies */
    bool                  grey;       /* one channel stands for three */
    bool                  bgr;        /* B comes first in memory */
    struct sac_colour_map colour;
};

struct sac_sampler_spec {
    const sac_frame *frame;
    struct sac_rect  crop;
    int              width, height;
    enum sac_filter  filter;
};
size_t sac_sampler_bytes(const struct sac_sampler_spec *spec);
void   sac_sampler_init(struct sac_sampler *s, const struct sac_sampler_spec *spec, void *memory);

/* Scratch of one thread for the rows of such a sampler; zero it once before use. */
size_t sac_sampler_scratch_bytes(const struct sac_sampler_spec *spec);
/* Output row y as three rows of s->width floats in 0..255, left in rgb[0..2], which point into
 * scratch (all to the same row when the frame is grey). */
void sac_sampler_row(const struct sac_sampler *s, const struct sac_row_ops *ops, int y,
                     void *scratch, float *rgb[3]);
/* The same before colour: the frame's own channels, R, G, B in this order. */
void sac_sampler_channels(const struct sac_sampler *s, const struct sac_row_ops *ops, int y,
                          void *scratch, float *channel[3]);

/* Planes of a frame as the row kernels see them; returns how many. */
int sac_sampler_planes(const sac_frame *frame, struct sac_plane out[SAC_SAMPLER_PLANES]);

#endif
