/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/engine/far.h"
#include "tests/test.h"
#include "vision/composite.h"
#include "vision/difference.h"
#include "vision/facets.h"
#include "vision/instances.h"
#include "vision/matte.h"
#include "vision/picture.h"
#include "vision/scales.h"
#include "vision/vision.h"

/* The frame where the host finds its planes; upright, as a copy if it is not. */
static sac_frame *near_frame(sac_device *cpu, const sac_frame *f)
{
    sac_frame  near = *f;
    sac_frame *out = NULL;
    for (int i = 0; i < SAC_PLANES_MAX; i++)
        near.plane[i] = far_near(f->plane[i]);
    assert_sac_ok(sac_frame_wrap(cpu, &near, NULL, NULL, &out));
    return out;
}

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = sac_alloc(bytes ? bytes : 1);
    assert_non_null(copy);
    return memcpy(copy, from, bytes);
}

/* ---- a network's input ---- */

struct preprocess {
    struct sac_preprocess      pre;
    struct sac_preprocess_job *jobs;
    sac_frame                 *frames; /* [n], copies: the caller's may be gone */
    int                        n;
    void                      *dst;
};

static void do_preprocess(sac_device *cpu, void *arg)
{
    struct preprocess *p = arg;
    for (int i = 0; i < p->n; i++)
        p->jobs[i].frame = near_frame(cpu, &p->frames[i]);
    assert_sac_ok(
        cpu->ops->vision->preprocess(cpu, NULL, &p->pre, p->jobs, p->n, far_near(p->dst)));
    for (int i = 0; i < p->n; i++) {
        sac_frame *f = (sac_frame *)p->jobs[i].frame;
        sac_frame_unref(&f);
    }
    sac_free(p->jobs);
    sac_free(p->frames);
}

static sac_result far_preprocess(struct sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_preprocess     *pre,
                                 const struct sac_preprocess_job *jobs, int n, void *dst)
{
    struct preprocess *p = sac_new(struct preprocess);
    *p = (struct preprocess){
        .pre = *pre, .jobs = copy_of(jobs, (size_t)n * sizeof *jobs), .n = n, .dst = dst};
    p->frames = sac_calloc((size_t)n, sizeof *p->frames);
    for (int i = 0; i < n; i++)
        p->frames[i] = *jobs[i].frame;
    far_queue_picture(dev, stream, do_preprocess, p);
    return SAC_OK;
}

static void do_picture(sac_device *cpu, void *arg)
{
    struct sac_picture_job *job = arg;
    job->numbers = far_near(job->numbers);
    job->rows = far_near(job->rows);
    assert_sac_ok(cpu->ops->vision->picture(cpu, NULL, job));
}

static sac_result far_picture(struct sac_device *dev, struct sac_device_stream *stream,
                              const struct sac_picture_job *job)
{
    far_queue_picture(dev, stream, do_picture, copy_of(job, sizeof *job));
    return SAC_OK;
}

/* ---- frames ---- */

struct convert {
    sac_frame       src, dst;
    enum sac_filter filter;
};

static void do_convert(sac_device *cpu, void *arg)
{
    struct convert *c = arg;
    sac_frame      *src = near_frame(cpu, &c->src), *dst = near_frame(cpu, &c->dst);
    assert_sac_ok(cpu->ops->vision->convert(cpu, NULL, src, c->filter, dst));
    sac_frame_unref(&src);
    sac_frame_unref(&dst);
}

static sac_result far_convert(struct sac_device *dev, struct sac_device_stream *stream,
                              const sac_frame *src, enum sac_filter filter, sac_frame *dst)
{
    const struct convert c = {*src, *dst, filter};
    far_queue_picture(dev, stream, do_convert, copy_of(&c, sizeof c));
    return SAC_OK;
}

enum { SHAPES_MAX = 8 };
struct draw {
    sac_frame        frame;
    struct sac_shape shapes[SHAPES_MAX];
    int              n;
};

static void do_draw(sac_device *cpu, void *arg)
{
    struct draw *d = arg;
    sac_frame   *frame = near_frame(cpu, &d->frame);
    assert_sac_ok(cpu->ops->vision->draw(cpu, NULL, frame, d->shapes, d->n));
    sac_frame_unref(&frame);
}

static sac_result far_draw(struct sac_device *dev, struct sac_device_stream *stream,
                           sac_frame *frame, const struct sac_shape *shapes, int n)
{
    struct draw d = {.frame = *frame, .n = n};
    assert_true(n <= SHAPES_MAX);
    for (int i = 0; i < n; i++) {
        assert_null(shapes[i].text); /* the caller's would have to be copied */
        d.shapes[i] = shapes[i];
    }
    far_queue_picture(dev, stream, do_draw, copy_of(&d, sizeof d));
    return SAC_OK;
}

/* ---- boxes and their masks ---- */

struct detect {
    struct sac_detect_spec spec;
    const void            *tensors[SAC_DETECT_TENSORS_MAX];
    struct sac_fit_map    *maps;
    int                    n;
    void                  *out;
};

static void do_detect(sac_device *cpu, void *arg)
{
    struct detect *d = arg;
    assert_sac_ok(
        cpu->ops->vision->detect(cpu, NULL, &d->spec, d->tensors, d->maps, d->n, far_near(d->out)));
    sac_free(d->maps);
}

static sac_result far_detect(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_detect_spec *spec, const void *const *tensors,
                             const struct sac_fit_map *maps, int n, void *out)
{
    struct detect d = {
        .spec = *spec, .maps = copy_of(maps, (size_t)n * sizeof *maps), .n = n, .out = out};
    for (int i = 0; i < spec->tensor_count; i++)
        d.tensors[i] = far_near(tensors[i]);
    far_queue_picture(dev, stream, do_detect, copy_of(&d, sizeof d));
    return SAC_OK;
}

struct instances {
    struct sac_instances_spec spec;
    const void               *coefficients, *prototypes, *found;
    int                       n;
    float                    *out;
    struct sac_instances_sums sums;
};

static void do_instances(sac_device *cpu, void *arg)
{
    struct instances *in = arg;
    const void       *tensors[2] = {in->coefficients, in->prototypes};
    in->spec.coefficient.tensor = 0;
    in->spec.prototype.tensor = 1;
    assert_sac_ok(cpu->ops->vision->instances(cpu, NULL, &in->spec, tensors, in->found, in->n,
                                              in->out, in->sums.out ? &in->sums : NULL));
}

static sac_result far_instances(struct sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_instances_spec *spec, const void *const *tensors,
                                const void *found, int n, float *out,
                                const struct sac_instances_sums *sums)
{
    struct instances in = {.spec = *spec,
                           .coefficients = far_near(tensors[spec->coefficient.tensor]),
                           .prototypes = far_near(tensors[spec->prototype.tensor]),
                           .found = far_near(found),
                           .n = n,
                           .out = far_near(out)};
    if (sums) {
        in.sums = *sums;
        in.sums.out = far_near(sums->out);
    }
    far_queue_picture(dev, stream, do_instances, copy_of(&in, sizeof in));
    return SAC_OK;
}

/* ---- mattes ---- */

struct matte {
    struct sac_matte_spec  spec;
    struct sac_matte_style style;
    const void            *tensors[SAC_MATTE_TENSORS_MAX];
    struct sac_matte_job   job;
    sac_frame              frame, out;
};

static void do_matte(sac_device *cpu, void *arg)
{
    struct matte *m = arg;
    sac_frame    *frame = near_frame(cpu, &m->frame), *out = near_frame(cpu, &m->out);
    m->job.frame = frame;
    m->job.out = out;
    m->job.summary = far_near(m->job.summary);
    m->job.state.memory = far_near(m->job.state.memory);
    for (int i = 0; i < SAC_MATTE_TENSORS_MAX; i++)
        m->tensors[i] = far_near(m->tensors[i]);
    assert_sac_ok(cpu->ops->vision->matte(cpu, NULL, &m->spec, &m->style, m->tensors, &m->job, 1));
    sac_frame_unref(&frame);
    sac_frame_unref(&out);
}

static sac_result far_matte(struct sac_device *dev, struct sac_device_stream *stream,
                            const struct sac_matte_spec *spec, const struct sac_matte_style *style,
                            const void *const *tensors, const struct sac_matte_job *jobs, int n)
{
    for (int i = 0; i < n; i++) {
        struct matte m = {.spec = *spec,
                          .style = *style,
                          .job = jobs[i],
                          .frame = *jobs[i].frame,
                          .out = *jobs[i].out};
        m.tensors[spec->value.tensor] = jobs[i].image < 0 ? NULL : tensors[spec->value.tensor];
        far_queue_picture(dev, stream, do_matte, copy_of(&m, sizeof m));
    }
    return SAC_OK;
}

struct composite {
    struct sac_composite_job job;
    sac_frame                frame, matte, background, out;
};

static void do_composite(sac_device *cpu, void *arg)
{
    struct composite *c = arg;
    sac_frame        *frame = near_frame(cpu, &c->frame), *matte = near_frame(cpu, &c->matte),
              *background = c->job.background ? near_frame(cpu, &c->background) : NULL,
              *out = near_frame(cpu, &c->out);
    c->job.frame = frame;
    c->job.matte = matte;
    c->job.background = background;
    c->job.out = out;
    assert_sac_ok(cpu->ops->vision->composite(cpu, NULL, &c->job));
    sac_frame_unref(&frame);
    sac_frame_unref(&matte);
    sac_frame_unref(&background);
    sac_frame_unref(&out);
}

static sac_result far_composite(struct sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_composite_job *job)
{
    struct composite c = {
        .job = *job, .frame = *job->frame, .matte = *job->matte, .out = *job->out};
    if (job->background)
        c.background = *job->background;
    far_queue_picture(dev, stream, do_composite, copy_of(&c, sizeof c));
    return SAC_OK;
}

/* ---- facets ---- */

struct facet {
    struct sac_facet_job job;
    sac_frame            eye, out;
};

static void do_facet(sac_device *cpu, void *arg)
{
    struct facet        *f = arg;
    sac_frame           *eye = near_frame(cpu, &f->eye), *out = near_frame(cpu, &f->out);
    struct sac_facet_job job = {eye, far_near(f->job.places), out};
    assert_sac_ok(cpu->ops->vision->facets(cpu, NULL, &job, 1));
    sac_frame_unref(&eye);
    sac_frame_unref(&out);
}

static sac_result far_facets(struct sac_device *dev, struct sac_device_stream *stream,
                             const struct sac_facet_job *jobs, int n)
{
    for (int i = 0; i < n; i++) {
        const struct facet f = {jobs[i], *jobs[i].eye, *jobs[i].out};
        far_queue_picture(dev, stream, do_facet, copy_of(&f, sizeof f));
    }
    return SAC_OK;
}

struct facet_shares {
    struct sac_matte_spec net;
    const void           *numbers;
    int                   n;
    int16_t              *out;
};

static void do_facet_shares(sac_device *cpu, void *arg)
{
    struct facet_shares *s = arg;
    const void          *tensors[1] = {far_near(s->numbers)};
    s->net.value.tensor = 0;
    assert_sac_ok(
        cpu->ops->vision->facet_shares(cpu, NULL, &s->net, tensors, s->n, far_near(s->out)));
}

static sac_result far_facet_shares(struct sac_device *dev, struct sac_device_stream *stream,
                                   const struct sac_matte_spec *net, const void *const *tensors,
                                   int n, int16_t *out)
{
    const struct facet_shares s = {*net, tensors[net->value.tensor], n, out};
    far_queue_picture(dev, stream, do_facet_shares, copy_of(&s, sizeof s));
    return SAC_OK;
}

struct facet_maps {
    struct sac_facet_maps maps;
    const int16_t        *shares;
    int                   n;
    float                *out;
};

static void do_facet_maps(sac_device *cpu, void *arg)
{
    struct facet_maps *m = arg;
    m->maps.cells = far_near(m->maps.cells);
    assert_sac_ok(cpu->ops->vision->facet_maps(cpu, NULL, &m->maps, far_near(m->shares), m->n,
                                               far_near(m->out)));
}

static sac_result far_facet_maps(struct sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_facet_maps *maps, const int16_t *shares, int n,
                                 float *out)
{
    const struct facet_maps m = {*maps, shares, n, out};
    far_queue_picture(dev, stream, do_facet_maps, copy_of(&m, sizeof m));
    return SAC_OK;
}

/* ---- scales ---- */

struct scale_maps {
    struct sac_scale_maps maps;
    struct sac_scales     picture;
    const int16_t        *shares;
    float                *out;
};

static void do_scale_maps(sac_device *cpu, void *arg)
{
    struct scale_maps *m = arg;
    m->maps.pictures = &m->picture;
    assert_sac_ok(cpu->ops->vision->scale_maps(cpu, NULL, &m->maps, far_near(m->shares), 1,
                                               far_near(m->out)));
}

static sac_result far_scale_maps(struct sac_device *dev, struct sac_device_stream *stream,
                                 const struct sac_scale_maps *maps, const int16_t *shares, int n,
                                 float *out)
{
    for (int i = 0; i < n; i++) {
        const struct scale_maps m = {
            *maps, maps->pictures[i],
            shares + (size_t)i * (size_t)(maps->looks * maps->net_width * maps->net_height),
            out + (size_t)i * (size_t)(maps->width * maps->height)};
        far_queue_picture(dev, stream, do_scale_maps, copy_of(&m, sizeof m));
    }
    return SAC_OK;
}

const struct sac_vision_ops far_pictures = {
    .preprocess = far_preprocess,
    .convert = far_convert,
    .draw = far_draw,
    .detect = far_detect,
    .picture = far_picture,
    .instances = far_instances,
    .matte = far_matte,
    .composite = far_composite,
    .facets = far_facets,
    .facet_shares = far_facet_shares,
    .facet_maps = far_facet_maps,
    .scale_maps = far_scale_maps,
};
