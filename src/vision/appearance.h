/* SPDX-License-Identifier: Apache-2.0 */
/* What tracked objects look like, kept on a device: a few embeddings (views) per object, blended
 * over time and compared with those of a frame. The arithmetic is only here, for the host's
 * gallery, the CPU's entry and the CUDA kernels, which must agree to the last bit.
 *
 * An object owns a slot: a piece of device memory of sac_appearance_slot_bytes, at a multiple of
 * SAC_APPEARANCE_SLOT_ALIGN, laid out as sac_appearance_slot_of says, whose contents begin with an
 * update that calls it fresh. */
#ifndef SAC_VISION_APPEARANCE_H
#define SAC_VISION_APPEARANCE_H

#include "vision/sample.h"

struct sac_device;
struct sac_device_stream;

struct sac_appearance_shape {
    int dim, views_max;
};

/* Blend a row of length 1 into a slot. The slots of one call differ. */
struct sac_appearance_update {
    void        *slot;
    const float *row; /* [dim] */
    double now_s;     /* of the picture: views fade with seconds, not with the number of pictures */
    bool   fresh;     /* the slot holds nothing yet */
};

/* A frame's embeddings beside the objects of its stream. */
struct sac_appearance_ask {
    void *const        *slots; /* [objects], each with a view at least once the updates are done */
    const float *const *rows;  /* [candidates], [dim] each */
    int                 objects, candidates;
};

/* First all updates, then all asks. The lists are in host memory and may be freed after the
 * call. */
struct sac_appearance_job {
    struct sac_appearance_shape         shape;
    const struct sac_appearance_update *updates;
    const struct sac_appearance_ask    *asks;
    int                                 update_count, ask_count;
    /* Device memory, for each ask in turn [1 + objects, candidates]: the square of each row's
     * length (objects are paired with rows of length 1 alone), then the distances, 0..2, to each
     * object's nearest view. */
    float *out;
};

/* Numbers of one ask's part of out. */
SAC_ANYWHERE size_t sac_appearance_ask_out(const struct sac_appearance_ask *ask)
{
    return ((size_t)ask->objects + 1) * (size_t)ask->candidates;
}

/* ---- slots ---- */

enum { SAC_APPEARANCE_SLOT_ALIGN = 64 };

struct sac_appearance_slot {
    int32_t *views; /* filled */
    double  *met_s; /* [views_max] when a view was last met */
    float   *rows;  /* [views_max,dim] */
};

SAC_ANYWHERE size_t sac_appearance_met_bytes(int views_max)
{
    return ((size_t)views_max * sizeof(double) + 15) / 16 * 16;
}

SAC_ANYWHERE size_t sac_appearance_slot_bytes(struct sac_appearance_shape s)
{
    const size_t align = SAC_APPEARANCE_SLOT_ALIGN,
                 bytes = 16 + sac_appearance_met_bytes(s.views_max) +
                         (size_t)s.views_max * (size_t)s.dim * sizeof(float);
    return (bytes + align - 1) / align * align;
}

SAC_ANYWHERE struct sac_appearance_slot sac_appearance_slot_of(void *memory, int views_max)
{
    struct sac_appearance_slot slot;
    slot.views = (int32_t *)memory;
    slot.met_s = (double *)((char *)memory + 16);
    slot.rows = (float *)((char *)memory + 16 + sac_appearance_met_bytes(views_max));
    return slot;
}

/* Both in host memory. Distance, 0..2, to the nearest view, and which that is; 2 and -1: it has
 * none. */
float sac_appearance_nearest(const struct sac_appearance_slot *slot,
                             struct sac_appearance_shape shape, const float *row, int *view);
void  sac_appearance_add(struct sac_appearance_slot *slot, struct sac_appearance_shape shape,
                         const float *row, double now_s);

/* ---- arithmetic ---- */

/* A product is summed in so many lanes, numbers of one remainder in each; then what the lanes' last
 * whole round leaves over comes first, and the lanes follow in order. One sum alone would wait for
 * its own result at each step, on the CPU as on a GPU. */
enum { SAC_APPEARANCE_LANES = 8 };

/* Closer than this is the same view. */
#define SAC_APPEARANCE_SAME 0.15f
/* A view forgets with this time constant, seconds: long enough to average out single bad crops. */
#define SAC_APPEARANCE_FADE_S 3.0
/* A blend shorter than this is of opposites that cancel: the newer one counts. */
#define SAC_APPEARANCE_LENGTH_MIN 1e-6f

SAC_ANYWHERE float sac_appearance_dot(const float *a, const float *b, int n)
{
    float sum[SAC_APPEARANCE_LANES] = {0}, rest = 0;
    int   i = 0;
    for (; i + SAC_APPEARANCE_LANES <= n; i += SAC_APPEARANCE_LANES)
        for (int k = 0; k < SAC_APPEARANCE_LANES; k++)
            sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        rest += a[i] * b[i];
    for (int k = 0; k < SAC_APPEARANCE_LANES; k++)
        rest += sum[k];
    return rest;
}

SAC_ANYWHERE bool sac_appearance_is_unit(float square)
{
    return square > 0.98f && square < 1.02f;
}

/* e to the power of x, x <= 0, to about the last bit of a double: C libraries differ there. */
SAC_ANYWHERE double sac_appearance_exp(double x)
{
    if (!(x > -700.0))
        return 0;
    const double k = floor(x * 1.4426950408889634 + 0.5);
    const double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    /* The powers of r over the factorials, by Horner's rule; r is at most 0.35. */
    double sum = 1.0 / 6227020800.0;
    sum = 1.0 / 479001600.0 + r * sum;
    sum = 1.0 / 39916800.0 + r * sum;
    sum = 1.0 / 3628800.0 + r * sum;
    sum = 1.0 / 362880.0 + r * sum;
    sum = 1.0 / 40320.0 + r * sum;
    sum = 1.0 / 5040.0 + r * sum;
    sum = 1.0 / 720.0 + r * sum;
    sum = 1.0 / 120.0 + r * sum;
    sum = 1.0 / 24.0 + r * sum;
    sum = 1.0 / 6.0 + r * sum;
    sum = 0.5 + r * sum;
    sum = 1.0 + r * sum;
    sum = 1.0 + r * sum;
    const uint64_t bits = (uint64_t)((int64_t)k + 1023) << 52;
    double         power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

/* What is left of a view that was met so long ago when a new row is blended into it. */
SAC_ANYWHERE float sac_appearance_keep(double gone_s)
{
    return (float)sac_appearance_exp(-gone_s / SAC_APPEARANCE_FADE_S);
}

SAC_ANYWHERE float sac_appearance_blend(float view, float row, float keep)
{
    return keep * view + (1 - keep) * row;
}

/* Whether the row belongs into the nearest view, rather than to start one of its own. */
SAC_ANYWHERE bool sac_appearance_joins(int views, int views_max, float distance)
{
    return views > 0 && (views_max == 1 || distance < SAC_APPEARANCE_SAME);
}

/* A free view, or the one that was not met for longest. */
SAC_ANYWHERE int sac_appearance_place(const double *met_s, int views, int views_max)
{
    int oldest = 0;
    if (views < views_max)
        return views;
    for (int i = 1; i < views_max; i++)
        if (met_s[i] < met_s[oldest])
            oldest = i;
    return oldest;
}

#endif
