/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign: a box of the image, sampled into a small grid. */
#include <math.h>

#include "engine/ops/reads.h"
#include "engine/ops/util.h"

sac_result sac_roi_read(const struct sac_op_call *c, struct sac_roi_align *r)
{
    const struct sac_node *n = c->node;
    const char            *mode = sac_attr_string(n, "mode", "avg");
    const char            *where = sac_attr_string(n, "coordinate_transformation_mode",
                                        n->opset < 16 ? "output_half_pixel" : "half_pixel");
    r->height = sac_attr_int(n, "output_height", 1);
    r->width = sac_attr_int(n, "output_width", 1);
    r->sampling = sac_attr_int(n, "sampling_ratio", 0);
    r->scale = sac_attr_float(n, "spatial_scale", 1);
    r->max = strcmp(mode, "max") == 0;
    r->old = strcmp(where, "output_half_pixel") == 0;
    r->offset = r->old ? 0 : 0.5;
    SAC_CHECK(c, r->height > 0 && r->width > 0 && r->sampling >= 0 && r->sampling <= 1024,
              "output %lldx%lld with %lld samples", (long long)r->width, (long long)r->height,
              (long long)r->sampling);
    SAC_CHECK(c, r->max || strcmp(mode, "avg") == 0, "mode '%s'; have avg, max", mode);
    return SAC_OK;
}

static sac_result roi_shape(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[0], *rois = &c->in[1], *batch = &c->in[2];
    struct sac_roi_align      r;
    SAC_TRY(sac_roi_read(c, &r));
    SAC_CHECK(c, x->rank == 4 && sac_dtype_is_float(x->dtype) && x->dims[2] > 0 && x->dims[3] > 0,
              "input of %d dimensions and dtype %s", x->rank, sac_in_dtype(c, 0));
    SAC_CHECK(c,
              rois->rank == 2 && rois->dims[1] == 4 && batch->rank == 1 &&
                  batch->dims[0] == rois->dims[0] && batch->dtype == SAC_I64,
              "the boxes are not [n,4], or their images not n numbers");
    int64_t dims[4] = {rois->dims[0], x->dims[1], r.height, r.width};
    return sac_shape_out(c, 0, x->dtype, 4, dims);
}

/* The four neighbours of a place and their weights; all 0 when it is outside the image. */
static void neighbours(const struct sac_operand *x, double py, double px, int64_t *at,
                       double *weight)
{
    int64_t h = x->dims[2], w = x->dims[3];
    bool    off = py < -1 || py > (double)h || px < -1 || px > (double)w;
    py = SAC_CLAMP(py, 0, (double)(h - 1));
    px = SAC_CLAMP(px, 0, (double)(w - 1));
    int64_t y0 = off ? 0 : (int64_t)py, x0 = off ? 0 : (int64_t)px;
    int64_t y1 = SAC_MIN(y0 + 1, h - 1), x1 = SAC_MIN(x0 + 1, w - 1);
    double  fy = py - (double)y0, fx = px - (double)x0;
    at[0] = y0 * w + x0;
    at[1] = y0 * w + x1;
    at[2] = y1 * w + x0;
    at[3] = y1 * w + x1;
    weight[0] = off ? 0 : (1 - fy) * (1 - fx);
    weight[1] = off ? 0 : (1 - fy) * fx;
    weight[2] = off ? 0 : fy * (1 - fx);
    weight[3] = off ? 0 : fy * fx;
}

/* One cell that begins at (y, x) and is bin_h by bin_w: the mean of its samples or, as in the
 * specification's reference implementation, the largest weighted neighbour of any sample. */
static double cell(const struct sac_operand *x, int64_t plane, const struct sac_roi_align *r,
                   double top, double left, double bin_h, double bin_w)
{
    int64_t rows = r->sampling ? r->sampling : (int64_t)SAC_CLAMP(ceil(bin_h), 0, 4096);
    int64_t columns = r->sampling ? r->sampling : (int64_t)SAC_CLAMP(ceil(bin_w), 0, 4096);
    double  sum = 0, best = -INFINITY;
    int64_t base = plane * x->dims[2] * x->dims[3];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            int64_t at[4];
            double  weight[4];
            neighbours(x, top + ((double)i + 0.5) * bin_h / (double)rows,
                       left + ((double)j + 0.5) * bin_w / (double)columns, at, weight);
            for (int k = 0; k < 4; k++) {
                double v = weight[k] * sac_operand_get(x, base + at[k]);
                sum += v;
                best = fmax(best, v);
            }
        }
    if (rows == 0 || columns == 0)
        return 0;
    return r->max ? best : sum / (double)(rows * columns);
}

static sac_result roi_ref(struct sac_op_call *c)
{
    const struct sac_operand *x = &c->in[0], *rois = &c->in[1];
    struct sac_roi_align      r;
    SAC_TRY(sac_roi_read(c, &r));
    for (int64_t i = 0, to = 0; i < rois->dims[0]; i++) {
        int64_t image = ((const int64_t *)c->in[2].data)[i];
        SAC_CHECK(c, image >= 0 && image < x->dims[0], "box %lld of image %lld", (long long)i,
                  (long long)image);
        double box[4];
        for (int k = 0; k < 4; k++)
            box[k] = sac_operand_get(rois, i * 4 + k) * r.scale - r.offset;
        double h = box[3] - box[1], w = box[2] - box[0];
        h = (r.old ? fmax(h, 1) : h) / (double)r.height;
        w = (r.old ? fmax(w, 1) : w) / (double)r.width;
        for (int64_t k = 0; k < x->dims[1]; k++)
            for (int64_t p = 0; p < r.height * r.width; p++)
                sac_operand_set(&c->out[0], to++,
                                cell(x, image * x->dims[1] + k, &r,
                                     box[1] + (double)(p / r.width) * h,
                                     box[0] + (double)(p % r.width) * w, h, w));
    }
    return SAC_OK;
}

const struct sac_op sac_row_RoiAlign = {SAC_ROW(RoiAlign, 10, 3, 3, 1), SAC_TOLERANCE(1e-5f, 1e-5f),
                                        .shape = roi_shape, .ref = roi_ref};
