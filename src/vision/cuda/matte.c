/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes of a batch: which job is the frame before which, where each one's planes lie, and the
 * scratch between the kernels. */
#include "vision/cuda/cuda.h"

/* A round's scratch stays in the GPU's second level cache. */
enum { SCRATCH_BYTES = 64 << 20, JOBS_MAX = CUDA_MATTE_JOBS_MAX };

/* Jobs of one round, and where their states are. */
struct matte_round {
    struct sac_device            *dev;
    const struct sac_matte_spec  *spec;
    const struct sac_matte_style *style;
    const struct sac_matte_job   *jobs;
    int                           n;
    struct cuda_matte_params      params;
};

/* ---- one job ---- */

static bool reads_words(const struct sac_surface *s)
{
    const uintptr_t at = (uintptr_t)s->plane[0] | s->pitch[0];
    if (s->turned || sac_rgb_step(s->format))
        return false;
    return at % (s->format == SAC_PIXEL_P010 ? 8 : 4) == 0;
}

/* No cell has more pixels, one way, than are looked at. */
static bool samples_all(const struct sac_matte_axis *a)
{
    return a->step * SAC_MATTE_SAMPLES > 1 + 1e-3;
}

static bool has_pixels(const struct cuda_matte_job *m)
{
    return m->x.cells > 0;
}

static sac_result job_init(struct matte_round *r, int i)
{
    const struct sac_matte_job *job = &r->jobs[i];
    struct cuda_matte_job      *m = &r->params.jobs[i];
    if (job->frame->pitch_bytes[0] > INT32_MAX)
        return SAC_FAIL(r->dev->ctx, SAC_ERR_UNSUPPORTED, "%s: a frame with a pitch of %zu bytes",
                        r->dev->name, job->frame->pitch_bytes[0]);
    *m = (struct cuda_matte_job){
        .frame = sac_surface_of(job->frame),
        .out = job->out->plane[0],
        .out_pitch = job->out->pitch_bytes[0],
        .image = job->image,
        .before = -1,
        .after = -1,
        .moves =
            !r->style->classes && job->state.has_before && (r->style->smooth > 0 || job->image < 0),
        .wide_out = ((uintptr_t)job->out->plane[0] | job->out->pitch_bytes[0]) % 4 == 0,
        .summary = job->summary,
    };
    sac_matte_axes_of(r->spec, job, &m->x, &m->y);
    m->few = 3 * m->x.step < 1;
    m->words = reads_words(&m->frame) && samples_all(&m->x) && samples_all(&m->y);
    if (m->x.from == m->x.until || m->y.from == m->y.until) {
        m->x.cells = m->y.cells = 0;
        m->moves = false;
    }
    return SAC_OK;
}

/* ---- planes ---- */

/* Which plane of a stream's memory a job writes; it reads the other one. */
static int plane_of(const struct matte_round *r, int i)
{
    return (int)(r->jobs[i].state.turn & 1);
}

static bool share_memory(const struct matte_round *r, int a, int b)
{
    return r->jobs[a].state.memory == r->jobs[b].state.memory;
}

/* The job that writes what this one reads, the last one before it; -1: it is in the memory. */
static int job_before(const struct matte_round *r, int i)
{
    for (int k = i - 1; k >= 0; k--)
        if (has_pixels(&r->params.jobs[k]) && share_memory(r, k, i) &&
            plane_of(r, k) != plane_of(r, i))
            return k;
    return -1;
}

static bool is_last_of_plane(const struct matte_round *r, int i)
{
    for (int k = i + 1; k < r->n; k++)
        if (has_pixels(&r->params.jobs[k]) && share_memory(r, k, i) &&
            plane_of(r, k) == plane_of(r, i))
            return false;
    return true;
}

/* Some job reads the plane as it was before the round. */
static bool is_read(const struct matte_round *r, int i)
{
    for (int k = 0; k < r->n; k++)
        if (r->params.jobs[k].moves && r->params.jobs[k].before < 0 && share_memory(r, k, i) &&
            plane_of(r, k) != plane_of(r, i))
            return true;
    return false;
}

/* Whether its luma of half size is asked for: by its own search, or the next one's. */
static bool is_halved(const struct matte_round *r, int i)
{
    bool asked = r->params.jobs[i].moves;
    for (int k = i + 1; k < r->n && !asked; k++)
        asked = r->params.jobs[k].moves && r->params.jobs[k].before == i;
    return asked;
}

static void find_chain(struct matte_round *r, int i)
{
    struct cuda_matte_job *m = &r->params.jobs[i];
    m->before = job_before(r, i);
    struct cuda_matte_job *b = m->before < 0 ? NULL : &r->params.jobs[m->before];
    m->depth = b && b->moves ? b->depth + 1 : 0;
    m->follows = m->moves && m->depth > 0 && b->after < 0;
    if (m->follows)
        b->after = i;
    if (m->moves)
        r->params.chain_max = SAC_MAX(r->params.chain_max, m->depth + 1);
}

/* ---- scratch ---- */

static void *part(uintptr_t *at, size_t count, size_t size)
{
    const uintptr_t p = *at;
    *at += (count * size + 255) & ~(size_t)255;
    return (void *)p;
}

static void lay_out_halves(struct matte_round *r, int i, uintptr_t *at)
{
    struct cuda_matte_job *m = &r->params.jobs[i];
    const size_t           rows = ((size_t)r->spec->height + 2 * SAC_MATTE_MARGIN + 1) / 2;
    const size_t           bytes = (size_t)r->params.half_pitch * rows;
    m->half = is_halved(r, i) ? part(at, bytes, 1) : NULL;
    m->halves_before = m->moves && m->before < 0;
    if (m->halves_before)
        m->half_before = part(at, bytes, 1);
    else if (m->moves)
        m->half_before = r->params.jobs[m->before].half;
}

/* Planes of shares and luma: in the stream's memory, or here where others read that or come
 * later. */
static void lay_out_planes(struct matte_round *r, int i, uintptr_t *at)
{
    struct cuda_matte_job        *m = &r->params.jobs[i];
    const struct sac_matte_spec  *spec = r->spec;
    const struct sac_matte_planes memory = sac_matte_planes_of(spec, r->jobs[i].state.memory);
    const size_t                  cells = (size_t)spec->width * (size_t)spec->height;
    const int                     plane = plane_of(r, i);
    const bool                    last = is_last_of_plane(r, i), read = is_read(r, i);
    m->share = memory.share[plane];
    m->luma = memory.luma[plane];
    if (!last || read) {
        m->share_kept = last ? m->share : NULL;
        m->luma_kept = last ? m->luma : NULL;
        m->share = part(at, cells, sizeof *m->share);
        m->luma = part(at, sac_matte_luma_cells(spec->width, spec->height), 1);
        m->luma += (size_t)SAC_MATTE_MARGIN * (size_t)memory.luma_pitch + SAC_MATTE_MARGIN;
    }
    m->raw = m->moves ? part(at, cells, sizeof *m->raw) : m->share;
    m->share_before = m->before < 0 ? memory.share[plane ^ 1] : r->params.jobs[m->before].share;
    m->luma_before = m->before < 0 ? memory.luma[plane ^ 1] : r->params.jobs[m->before].luma;
    lay_out_halves(r, i, at);
    r->params.kept |= m->share_kept != NULL;
}

/* What is dead before the next begins lies in one place: where cells were, and their lines. */
static void lay_out_cells(const struct matte_round *r, struct cuda_matte_job *m, uintptr_t *at)
{
    const size_t cells = (size_t)r->spec->width * (size_t)r->spec->height;
    const size_t blocks = (size_t)((m->x.cells + SAC_MATTE_BLOCK - 1) / SAC_MATTE_BLOCK) *
                          (size_t)((m->y.cells + SAC_MATTE_BLOCK - 1) / SAC_MATTE_BLOCK);
    if (m->moves)
        m->move = part(at, blocks, sizeof *m->move);
    if (r->style->guide > 0)
        m->line = part(at, cells, sizeof *m->line);
    if (r->style->guide > 0)
        m->mean = part(at, cells, sizeof *m->mean);
    m->former = (uint32_t *)m->line;
    if (m->moves && !m->line)
        m->former = part(at, cells, sizeof *m->former);
    m->closed = r->style->hole > 0 ? part(at, cells, sizeof *m->closed) : m->share;
}

/* Lay all out from `at` on; returns the end. */
static uintptr_t lay_out(struct matte_round *r, uintptr_t at)
{
    for (int i = 0; i < r->n; i++) {
        struct cuda_matte_job *m = &r->params.jobs[i];
        m->sum = m->summary ? part(&at, 1, sizeof *m->sum) : NULL;
        if (!has_pixels(m) || r->style->classes)
            continue;
        lay_out_planes(r, i, &at);
        lay_out_cells(r, m, &at);
    }
    return at;
}

/* ---- a round ---- */

static void measure(struct matte_round *r)
{
    struct cuda_matte_params *p = &r->params;
    for (int i = 0; i < r->n; i++) {
        const struct cuda_matte_job *m = &r->params.jobs[i];
        p->summaries |= m->summary != NULL;
        if (!has_pixels(m))
            continue;
        find_chain(r, i);
        p->turned |= m->frame.turned;
        p->upright |= !m->words;
        p->cells_x_max = SAC_MAX(p->cells_x_max, m->x.cells);
        p->cells_y_max = SAC_MAX(p->cells_y_max, m->y.cells);
        p->pixels_x_max = SAC_MAX(p->pixels_x_max, m->x.until - (m->x.from & -4));
        p->pixels_y_max = SAC_MAX(p->pixels_y_max, m->y.until - m->y.from);
    }
}

static struct cuda_matte_params params_of(const struct sac_matte_spec  *spec,
                                          const struct sac_matte_style *style,
                                          const void *const *tensors, int n)
{
    struct cuda_matte_params p = {.spec = *spec,
                                  .numbers = tensors[spec->value.tensor],
                                  .n = n,
                                  .luma_pitch = sac_matte_luma_pitch(spec->width),
                                  .half_pitch = (spec->width / 2 + SAC_MATTE_MARGIN + 4) & -4,
                                  .classes = style->classes};
    if (style->classes)
        return p;
    p.guide = style->guide;
    p.hole = style->hole;
    p.smooth = sac_matte_smoothing(style);
    p.variance = sac_matte_variance(style);
    p.stretch = sac_matte_stretch_of(style);
    return p;
}

static sac_result run_round(struct matte_round *r, struct sac_device_stream *stream)
{
    void      *scratch = NULL;
    sac_result res = SAC_OK;
    for (int i = 0; i < r->n && res == SAC_OK; i++)
        res = job_init(r, i);
    if (res != SAC_OK)
        return res;
    measure(r);
    res = cuda_scratch_take(r->dev, stream, lay_out(r, 0), &scratch);
    if (res != SAC_OK)
        return res;
    lay_out(r, (uintptr_t)scratch);
    res = cuda_check(r->dev, cuda_launch_matte(&r->params, cuda_gathering_of(r->dev, stream)),
                     "mattes");
    cuda_scratch_return(r->dev, stream);
    return res;
}

/* Jobs whose planes of cells have room together. */
static int jobs_of_round(const struct sac_matte_spec *spec, bool classes)
{
    const struct cuda_matte_job *m = NULL;
    const size_t                 cells = (size_t)spec->width * (size_t)spec->height;
    const size_t each = cells * (sizeof *m->line + sizeof *m->mean + 3 * sizeof *m->share + 1);
    return classes ? JOBS_MAX : (int)SAC_CLAMP(SCRATCH_BYTES / each, (size_t)1, (size_t)JOBS_MAX);
}

sac_result cuda_matte(struct sac_device *dev, struct sac_device_stream *stream,
                      const struct sac_matte_spec *spec, const struct sac_matte_style *style,
                      const void *const *tensors, const struct sac_matte_job *jobs, int n)
{
    const int  most = jobs_of_round(spec, style->classes);
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    for (int at = 0, count; at < n && res == SAC_OK; at += count) {
        struct matte_round r = {.dev = dev, .spec = spec, .style = style, .jobs = jobs + at};
        count = SAC_MIN(n - at, most);
        r.n = count;
        r.params = params_of(spec, style, tensors, count);
        res = run_round(&r, stream);
    }
    cuda_leave();
    return res;
}
