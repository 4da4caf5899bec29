/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/model/build_shapes.h"

#include <stdio.h>
#include <string.h>

enum { BATCH_MOST = 1024, SIDE_MOST = 32768 };

/* ---- choosing ---- */

static void add_batch(struct sac_build_shapes *s, int batch)
{
    int at = s->batch_count;
    for (int i = 0; i < s->batch_count; i++)
        if (s->batches[i] == batch)
            return;
    for (; at > 0 && s->batches[at - 1] > batch; at--)
        s->batches[at] = s->batches[at - 1];
    s->batches[at] = batch;
    s->batch_count++;
}

static const struct sac_tensor_desc *at_point(const struct sac_build_shape *given,
                                              enum sac_build_point          point)
{
    switch (point) {
    case SAC_BUILD_LEAST: return &given->min;
    case SAC_BUILD_GREATEST: return &given->max;
    default: return &given->opt;
    }
}

static bool same_shapes(const struct sac_build_shapes *s, enum sac_build_point a,
                        enum sac_build_point b)
{
    for (int64_t i = 0; i < s->given_count; i++) {
        const struct sac_tensor_desc *x = at_point(&s->given[i], a), *y = at_point(&s->given[i], b);
        for (int d = 1; d < x->rank; d++)
            if (x->rank != y->rank || x->shape[d] != y->shape[d])
                return false;
    }
    return true;
}

static void add_size(struct sac_build_shapes *s, struct sac_build_size size)
{
    const struct sac_build_size *last = s->size_count ? &s->sizes[s->size_count - 1] : NULL;
    if (!last || last->width != size.width || last->height != size.height ||
        !same_shapes(s, last->point, size.point))
        s->sizes[s->size_count++] = size;
}

static sac_result choose_sizes(sac_context *ctx, const struct sac_build_params *p,
                               struct sac_build_shapes *out)
{
    const struct sac_build_size usual = {p->width, p->height, SAC_BUILD_USUAL},
                                least = {p->width_min ? p->width_min : usual.width,
                                         p->height_min ? p->height_min : usual.height,
                                         SAC_BUILD_LEAST},
                                greatest = {p->width_max ? p->width_max : usual.width,
                                            p->height_max ? p->height_max : usual.height,
                                            SAC_BUILD_GREATEST};
    if (least.width < 0 || least.height < 0 || least.width > usual.width ||
        least.height > usual.height || usual.width > greatest.width ||
        usual.height > greatest.height || greatest.width > SIDE_MOST || greatest.height > SIDE_MOST)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "size %dx%d:%dx%d:%dx%d: want least <= usual <= greatest, in width and in "
                        "height, and no side above %d",
                        least.width, least.height, usual.width, usual.height, greatest.width,
                        greatest.height, (int)SIDE_MOST);
    add_size(out, least);
    add_size(out, usual);
    add_size(out, greatest);
    return SAC_OK;
}

sac_result sac_build_shapes_choose(sac_context *ctx, const struct sac_build_params *p,
                                   struct sac_build_shapes *out)
{
    *out = (struct sac_build_shapes){.given = p->shapes};
    while (p->shapes && p->shapes[out->given_count].min.rank > 0)
        out->given_count++;
    if (p->batch_min < 1 || p->batch_opt < p->batch_min || p->batch_max < p->batch_opt ||
        p->batch_max > BATCH_MOST)
        return SAC_FAIL(ctx, SAC_ERR_ARG, "batch %d:%d:%d: want 1 <= min <= opt <= max <= %d",
                        p->batch_min, p->batch_opt, p->batch_max, (int)BATCH_MOST);
    add_batch(out, p->batch_min);
    add_batch(out, p->batch_opt);
    add_batch(out, p->batch_max);
    for (int n = 1; n < p->batch_max; n *= 2)
        if (n > p->batch_min)
            add_batch(out, n);
    return choose_sizes(ctx, p, out);
}

/* ---- the inputs ---- */

/* NULL: input i is given none. */
static const struct sac_build_shape *given_of(const sac_model *m, const struct sac_build_shapes *s,
                                              int i)
{
    for (int64_t k = 0; k < s->given_count; k++)
        if (s->given[k].input ? strcmp(s->given[k].input, sac_model_input(m, i)->name) == 0
                              : m->graph->input_count == 1)
            return &s->given[k];
    return NULL;
}

static int most_of(const struct sac_build_shapes *s)
{
    return s->batches[s->batch_count - 1];
}

sac_result sac_build_input(const sac_model *m, const struct sac_build_shapes *s, int i, int batch,
                           struct sac_build_size size, struct sac_tensor_desc *out)
{
    const struct sac_model_port  *port = sac_model_input(m, i);
    const struct sac_build_shape *given = given_of(m, s, i);
    const int64_t                 sizes[4] = {batch, 0, size.height, size.width};
    *out = port->desc;
    for (int d = 0; d < out->rank; d++) {
        if (d == 0 && (out->shape[0] == SAC_DIM_UNKNOWN || most_of(s) > 1))
            out->shape[0] = batch;
        else if (out->shape[d] == SAC_DIM_UNKNOWN && given)
            out->shape[d] = at_point(given, size.point)->shape[d];
        else if (out->shape[d] == SAC_DIM_UNKNOWN && out->rank == 4)
            out->shape[d] = sizes[d];
    }
    if (out->rank > 0 && sac_tensor_desc_elements(out) > 0)
        return SAC_OK;
    return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: input '%s' leaves a size open; %s", m->path,
                    port->name,
                    out->rank == 4 ? "--size WIDTHxHEIGHT gives it" : "--shape gives it");
}

static bool is_open(const struct sac_tensor_desc *d)
{
    return d->rank == 4 && (d->shape[2] == SAC_DIM_UNKNOWN || d->shape[3] == SAC_DIM_UNKNOWN);
}

/* The input that the sizes are for: the first that leaves one open, else the first of rank 4. NULL:
 * there is none. */
static const struct sac_model_port *image_of(const sac_model *m)
{
    const struct sac_model_port *image = NULL;
    for (int i = 0; i < m->graph->input_count; i++) {
        const struct sac_model_port *port = sac_model_input(m, i);
        if (port->desc.rank == 4 && (!image || (is_open(&port->desc) && !is_open(&image->desc))))
            image = port;
    }
    return image;
}

/* A side that is not given is the file's, where that has one. false: the file has another. */
static bool settle_side(int *side, int64_t fixed)
{
    if (*side == 0 && fixed > 0 && fixed <= SIDE_MOST)
        *side = (int)fixed;
    return *side == 0 || fixed == SAC_DIM_UNKNOWN || fixed == *side;
}

/* Of a size of which one side is given at least. */
static sac_result settle_size(const sac_model *m, struct sac_build_size *size)
{
    const struct sac_model_port *image = image_of(m);
    char                         shape[128] = "";
    if (!image)
        return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: no input is images: it has no size to choose",
                        m->path);
    const bool height = settle_side(&size->height, image->desc.shape[2]),
               width = settle_side(&size->width, image->desc.shape[3]);
    if (height && width)
        return SAC_OK;
    sac_tensor_desc_print(&image->desc, shape, sizeof shape);
    return SAC_FAIL(m->ctx, SAC_ERR_ARG,
                    "%s: the file fixes the size of input '%s', %s: it cannot be %dx%d", m->path,
                    image->name, shape, size->width, size->height);
}

/* Of the shapes that are given to one input: do they fit it, and is no number of one above the
 * next's? */
static bool fits(const struct sac_tensor_desc *port, const struct sac_build_shape *given)
{
    const struct sac_tensor_desc *least = &given->min, *usual = &given->opt,
                                 *greatest = &given->max;
    bool good =
        least->rank == port->rank && usual->rank == port->rank && greatest->rank == port->rank;
    for (int d = 1; d < port->rank && good; d++) {
        good = least->shape[d] >= 1 && least->shape[d] <= usual->shape[d] &&
               usual->shape[d] <= greatest->shape[d];
        if (port->shape[d] != SAC_DIM_UNKNOWN)
            good =
                good && least->shape[d] == port->shape[d] && greatest->shape[d] == port->shape[d];
    }
    return good;
}

static sac_result check_given(const sac_model *m, const struct sac_build_shape *given)
{
    char shape[128] = "";
    for (int i = 0; i < m->graph->input_count; i++) {
        const struct sac_build_shapes alone = {.given = given, .given_count = 1};
        const struct sac_model_port  *port = sac_model_input(m, i);
        if (!given_of(m, &alone, i))
            continue;
        if (fits(&port->desc, given))
            return SAC_OK;
        sac_tensor_desc_print(&port->desc, shape, sizeof shape);
        return SAC_FAIL(
            m->ctx, SAC_ERR_ARG,
            "%s: the shapes for input '%s' do not fit it, %s, or are not the least, the "
            "usual and the greatest in this order",
            m->path, port->name, shape);
    }
    return SAC_FAIL(m->ctx, SAC_ERR_ARG, "%s: it has no input '%s' to give a shape", m->path,
                    given->input ? given->input : "(the only one)");
}

void sac_build_shapes_print(const sac_model *m, const struct sac_build_shapes *s, int batch,
                            struct sac_build_size size, char *out, size_t bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < m->graph->input_count && at < bytes; i++) {
        struct sac_tensor_desc desc;
        if (!given_of(m, s, i) || sac_build_input(m, s, i, batch, size, &desc) != SAC_OK)
            continue;
        at += (size_t)snprintf(out + at, bytes - at, "%s%s", at ? ", " : "",
                               sac_model_input(m, i)->name);
        for (int d = 0; d < desc.rank && at < bytes; d++)
            at += (size_t)snprintf(out + at, bytes - at, "%s%lld%s", d ? "," : " [",
                                   (long long)desc.shape[d], d + 1 < desc.rank ? "" : "]");
    }
}

/* *out: [inputs], to be freed. */
static sac_result make_shapes(const sac_model *m, const struct sac_build_shapes *s, int batch,
                              struct sac_build_size size, struct sac_operand **out)
{
    const int           count = m->graph->input_count;
    struct sac_operand *shapes = sac_calloc((size_t)count, sizeof *shapes);
    sac_result res = shapes ? SAC_OK : SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "build: no memory");
    for (int i = 0; i < count && res == SAC_OK; i++) {
        struct sac_tensor_desc desc;
        res = sac_build_input(m, s, i, batch, size, &desc);
        if (res != SAC_OK)
            break;
        shapes[i] = (struct sac_operand){.dtype = desc.dtype, .rank = desc.rank, .present = true};
        memcpy(shapes[i].dims, desc.shape, sizeof shapes[i].dims);
    }
    if (res == SAC_OK)
        *out = shapes;
    else
        sac_free(shapes);
    return res;
}

/* Before minutes are spent on the other sizes. */
static sac_result check_layers(sac_model *m, const struct sac_build_shapes *s,
                               struct sac_build_size size)
{
    struct sac_operand *shapes = NULL;
    struct sac_plan    *plan = NULL;
    sac_result          res = make_shapes(m, s, s->batches[0], size, &shapes);
    if (res != SAC_OK)
        return res;
    res = sac_model_create_plan(m, shapes, NULL, false, &plan);
    sac_plan_destroy(&plan);
    sac_free(shapes);
    if (res == SAC_OK)
        return res;
    char given[SAC_BUILD_SHAPES_TEXT];
    sac_build_shapes_print(m, s, s->batches[0], size, given, sizeof given);
    if (given[0])
        res = sac_fail_prefix(m->ctx, res == SAC_ERR_FORMAT ? SAC_ERR_ARG : res,
                              "%s does not fit: ", given);
    else
        res = sac_fail_prefix(m->ctx, res == SAC_ERR_FORMAT ? SAC_ERR_ARG : res,
                              "images of %dx%d do not fit: ", size.width, size.height);
    return res;
}

sac_result sac_build_shapes_check(sac_model *m, struct sac_build_shapes *s)
{
    sac_result res = SAC_OK;
    for (int64_t i = 0; i < s->given_count && res == SAC_OK; i++)
        res = check_given(m, &s->given[i]);
    for (int i = 0; i < s->size_count && res == SAC_OK; i++) {
        struct sac_build_size *size = &s->sizes[i];
        const bool             sized = size->width != 0 || size->height != 0;
        if (sized)
            res = settle_size(m, size);
        if (res == SAC_OK && (sized || s->given_count))
            res = check_layers(m, s, *size);
    }
    return res;
}

/* ---- the range ---- */

static sac_result print_shapes(const sac_model *m, const struct sac_build_shapes *s, int batch,
                               struct sac_build_size size, char out[SAC_BUILD_SHAPES_TEXT])
{
    struct sac_operand *shapes = NULL;
    sac_result          res = make_shapes(m, s, batch, size, &shapes);
    if (res == SAC_OK)
        sac_book_shapes(shapes, m->graph->input_count, out, SAC_BUILD_SHAPES_TEXT);
    sac_free(shapes);
    return res;
}

sac_result sac_build_note_range(sac_model *m, const struct sac_build_shapes *s)
{
    char       least[SAC_BUILD_SHAPES_TEXT], greatest[SAC_BUILD_SHAPES_TEXT];
    sac_result res = print_shapes(m, s, s->batches[0], s->sizes[0], least);
    if (res == SAC_OK)
        res = print_shapes(m, s, most_of(s), s->sizes[s->size_count - 1], greatest);
    if (res != SAC_OK || strcmp(least, greatest) == 0)
        return res;
    if (!sac_book_set_range(&m->book, least, greatest)) /* what was measured is worth keeping */
        sac_log(m->ctx, SAC_LOG_WARN,
                "%s: its inputs are too many for a range: what lies between is measured when it "
                "runs",
                m->path);
    return SAC_OK;
}
