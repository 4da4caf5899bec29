/* SPDX-License-Identifier: Apache-2.0 */
/* Crops of frames straight into a tensor. */
#include <string.h>

#include "vision/cpu/cpu.h"
#include "vision/cpu/resample.h"
#include "vision/fit.h"

enum { ROWS_PER_PIECE = 32 };

/* One call: a sampler per job, and a part of the scratch per worker. */
struct work {
    const struct sac_row_ops    *ops;
    const struct sac_preprocess *pre;
    struct sac_row_store         store;
    struct sac_fit_box          *box;     /* [jobs] */
    struct sac_sampler          *sampler; /* [jobs] */
    int                          pieces_per_image;
    size_t                       image_bytes;
    char                        *dst;
    char                        *scratch; /* [workers][scratch_bytes], fill rows first */
    size_t                       scratch_bytes, fill_bytes;
};

static struct sac_row_store store_of(const struct sac_preprocess *pre)
{
    struct sac_row_store s = {pre->layout, pre->dtype, pre->width,
                              pre->height, {0, 0, 0},  {1, 1, 1}};
    if (pre->dtype != SAC_U8) {
        memcpy(s.mean, pre->mean, sizeof s.mean);
        memcpy(s.scale, pre->scale, sizeof s.scale);
    }
    return s;
}

static struct sac_sampler_spec spec_of(const struct sac_preprocess     *pre,
                                       const struct sac_preprocess_job *job,
                                       const struct sac_fit_box        *box)
{
    return (struct sac_sampler_spec){.frame = job->frame,
                                     .crop = sac_job_crop(job),
                                     .width = box->width,
                                     .height = box->height,
                                     .filter = pre->filter};
}

/* ---- rows ---- */

static void fill_row(const struct work *w, char *scratch, int x, int n, int y, char *image)
{
    float *row[3];
    for (int c = 0; c < 3; c++)
        row[c] = (float *)(void *)scratch + (size_t)c * (size_t)w->pre->width;
    if (n > 0)
        w->ops->store(&w->store, row, n, x, y, image);
}

static void image_row(const struct work *w, int job, int y, char *scratch, char *image)
{
    const struct sac_fit_box *box = &w->box[job];
    if (y < box->y || y >= box->y + box->height) {
        fill_row(w, scratch, 0, w->pre->width, y, image);
        return;
    }
    float *rgb[3];
    sac_sampler_row(&w->sampler[job], w->ops, y - box->y, scratch + w->fill_bytes, rgb);
    float *ordered[3] = {rgb[0], rgb[1], rgb[2]};
    if (w->pre->order == SAC_ORDER_BGR) {
        ordered[0] = rgb[2];
        ordered[2] = rgb[0];
    }
    w->ops->store(&w->store, ordered, box->width, box->x, y, image);
    fill_row(w, scratch, 0, box->x, y, image);
    fill_row(w, scratch, box->x + box->width, w->pre->width - box->x - box->width, y, image);
}

static void run_piece(void *arg, int piece, int worker)
{
    const struct work *w = arg;
    int                job = piece / w->pieces_per_image;
    int                y = piece % w->pieces_per_image * ROWS_PER_PIECE;
    int                end = SAC_MIN(y + ROWS_PER_PIECE, w->pre->height);
    for (; y < end; y++)
        image_row(w, job, y, w->scratch + (size_t)worker * w->scratch_bytes,
                  w->dst + (size_t)job * w->image_bytes);
}

/* ---- memory ---- */

static void init_scratch(const struct work *w, int workers)
{
    memset(w->scratch, 0, (size_t)workers * w->scratch_bytes);
    for (int i = 0; i < workers; i++) {
        float *fill = (float *)(void *)(w->scratch + (size_t)i * w->scratch_bytes);
        for (int c = 0; c < 3; c++)
            for (int x = 0; x < w->pre->width; x++)
                *fill++ = w->pre->fill[c];
    }
}

/* Boxes and samplers, then the samplers' tables, then the scratch, in one pooled buffer. */
static sac_result run_jobs(struct sac_device *dev, struct work *w,
                           const struct sac_preprocess_job *jobs, int n)
{
    int    workers = sac_worker_pool_threads(dev->workers);
    size_t tables = 0, scratch = 0, heads = (size_t)n * (sizeof *w->box + sizeof *w->sampler);
    for (int i = 0; i < n; i++) {
        struct sac_rect         crop = sac_job_crop(&jobs[i]);
        struct sac_fit_box      box = sac_fit_box_of(w->pre, &crop);
        struct sac_sampler_spec spec = spec_of(w->pre, &jobs[i], &box);
        tables += sac_sampler_bytes(&spec);
        scratch = SAC_MAX(scratch, sac_sampler_scratch_bytes(&spec));
    }
    heads = (heads + 63) & ~(size_t)63;
    w->fill_bytes = ((size_t)w->pre->width * 3 * sizeof(float) + 63) & ~(size_t)63;
    w->scratch_bytes = w->fill_bytes + scratch;

    struct sac_buffer *buf = NULL;
    sac_result res = sac_buffer_create(dev, heads + tables + (size_t)workers * w->scratch_bytes,
                                       "preprocess", &buf);
    if (res != SAC_OK)
        return res;
    char *at = sac_buffer_data(buf);
    w->sampler = (struct sac_sampler *)(void *)at;
    w->box = (struct sac_fit_box *)(void *)(w->sampler + n);
    at += heads;
    for (int i = 0; i < n; i++) {
        struct sac_rect crop = sac_job_crop(&jobs[i]);
        w->box[i] = sac_fit_box_of(w->pre, &crop);
        struct sac_sampler_spec spec = spec_of(w->pre, &jobs[i], &w->box[i]);
        sac_sampler_init(&w->sampler[i], &spec, at);
        at += sac_sampler_bytes(&spec);
    }
    w->scratch = at;
    init_scratch(w, workers);
    sac_worker_pool_run(dev->workers, n * w->pieces_per_image, run_piece, w);
    sac_buffer_unref(&buf);
    return SAC_OK;
}

sac_result sac_cpu_preprocess(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_preprocess     *pre,
                              const struct sac_preprocess_job *jobs, int n, void *dst)
{
    (void)stream; /* the CPU's runs at once */
    struct work w = {
        .ops = sac_row_ops_best(),
        .pre = pre,
        .store = store_of(pre),
        .pieces_per_image = (pre->height + ROWS_PER_PIECE - 1) / ROWS_PER_PIECE,
        .image_bytes = (size_t)pre->width * (size_t)pre->height * 3 * sac_dtype_bytes(pre->dtype),
        .dst = dst,
    };
    return n ? run_jobs(dev, &w, jobs, n) : SAC_OK;
}
