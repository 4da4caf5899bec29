/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/util.h"
#include "engine/ops/window.h"

sac_result sac_extents_read(const struct sac_op_call *c, const char *name, int64_t lo, size_t count,
                            int64_t fallback, int64_t *out)
{
    const int64_t *values;
    size_t         n = sac_attr_ints(c->node, name, &values);
    SAC_CHECK(c, n == 0 || n == count, "'%s' holds %zu numbers; %zu expected", name, n, count);
    for (size_t i = 0; i < count; i++) {
        out[i] = n ? values[i] : fallback;
        SAC_CHECK(c, out[i] >= lo && out[i] <= SAC_EXTENT_MAX, "'%s' holds %lld", name,
                  (long long)out[i]);
    }
    return SAC_OK;
}

static sac_result read_common(const struct sac_op_call *c, int input, const int64_t *kernel,
                              struct sac_window *w, int64_t *pads)
{
    const struct sac_operand *in = &c->in[input];
    int64_t shape[SAC_WINDOW_DIMS], stride[SAC_WINDOW_DIMS], dilation[SAC_WINDOW_DIMS];
    int     rank = in->rank - 2;
    SAC_CHECK(c, rank >= 1 && rank <= SAC_WINDOW_DIMS, "input of %d dimensions; have 3 to 5",
              in->rank);
    SAC_TRY(sac_extents_read(c, "kernel_shape", 1, (size_t)rank, 1, shape));
    SAC_TRY(sac_extents_read(c, "strides", 1, (size_t)rank, 1, stride));
    SAC_TRY(sac_extents_read(c, "dilations", 1, (size_t)rank, 1, dilation));
    SAC_TRY(sac_extents_read(c, "pads", 0, 2 * (size_t)rank, 0, pads));
    SAC_CHECK(c, kernel || sac_node_attr(c->node, "kernel_shape"), "no 'kernel_shape'");
    w->rank = rank;
    for (int d = 0; d < SAC_WINDOW_DIMS; d++) {
        int from = d - (SAC_WINDOW_DIMS - rank);
        w->in[d] = from < 0 ? 1 : in->dims[2 + from];
        w->kernel[d] = from < 0 ? 1 : kernel ? kernel[from] : shape[from];
        w->stride[d] = from < 0 ? 1 : stride[from];
        w->dilation[d] = from < 0 ? 1 : dilation[from];
        w->pad_begin[d] = from < 0 ? 0 : pads[from];
        w->pad_end[d] = from < 0 ? 0 : pads[rank + from];
        w->out[d] = 1;
        SAC_CHECK(c, w->kernel[d] >= 1 && w->kernel[d] <= SAC_EXTENT_MAX && w->in[d] <= INT32_MAX,
                  "a kernel of %lld over an input of %lld", (long long)w->kernel[d],
                  (long long)w->in[d]);
    }
    return SAC_OK;
}

static int64_t extent(const struct sac_window *w, int d)
{
    return (w->kernel[d] - 1) * w->dilation[d] + 1;
}

/* SAME: as many outputs as the input has strides; the odd pad is at the end (UPPER) or the
 * beginning. */
static void pad_same(struct sac_window *w, int d, bool lower)
{
    w->out[d] = (w->in[d] + w->stride[d] - 1) / w->stride[d];
    int64_t pad = SAC_MAX(0, (w->out[d] - 1) * w->stride[d] + extent(w, d) - w->in[d]);
    w->pad_begin[d] = lower ? pad - pad / 2 : pad / 2;
    w->pad_end[d] = pad - w->pad_begin[d];
}

sac_result sac_window_read(const struct sac_op_call *c, int input, const int64_t *kernel,
                           struct sac_window *w)
{
    int64_t     pads[2 * SAC_WINDOW_DIMS];
    const char *auto_pad = sac_attr_string(c->node, "auto_pad", "NOTSET");
    bool        lower = strcmp(auto_pad, "SAME_LOWER") == 0;
    bool        same = lower || strcmp(auto_pad, "SAME_UPPER") == 0;
    bool        ceil = !kernel && sac_attr_int(c->node, "ceil_mode", 0);
    SAC_CHECK(c, same || strcmp(auto_pad, "VALID") == 0 || strcmp(auto_pad, "NOTSET") == 0,
              "'auto_pad' is '%s'; have NOTSET, SAME_UPPER, SAME_LOWER, VALID", auto_pad);
    SAC_TRY(read_common(c, input, kernel, w, pads));
    for (int d = SAC_WINDOW_DIMS - w->rank; d < SAC_WINDOW_DIMS; d++) {
        if (same) {
            pad_same(w, d, lower);
            continue;
        }
        if (strcmp(auto_pad, "VALID") == 0)
            w->pad_begin[d] = w->pad_end[d] = 0;
        int64_t room = w->in[d] + w->pad_begin[d] + w->pad_end[d] - extent(w, d);
        /* ceil_mode takes the part of a window that there is, as of an average over all */
        SAC_CHECK(c, room >= 0 || (ceil && -room < w->stride[d] && w->in[d] > 0),
                  "a window of %lld over a padded input of %lld", (long long)extent(w, d),
                  (long long)(room + extent(w, d)));
        w->out[d] = room / w->stride[d] + 1;
        /* A window that ceil_mode adds must not begin in the padding at the end. */
        if (ceil && room > 0 && room % w->stride[d] &&
            w->out[d] * w->stride[d] < w->in[d] + w->pad_begin[d])
            w->out[d]++;
    }
    return SAC_OK;
}

sac_result sac_window_read_transposed(const struct sac_op_call *c, const int64_t *kernel,
                                      struct sac_window *w)
{
    int64_t     pads[2 * SAC_WINDOW_DIMS], more[SAC_WINDOW_DIMS], wanted[SAC_WINDOW_DIMS];
    const char *auto_pad = sac_attr_string(c->node, "auto_pad", "NOTSET");
    bool        upper = strcmp(auto_pad, "SAME_UPPER") == 0;
    bool        same = upper || strcmp(auto_pad, "SAME_LOWER") == 0;
    SAC_TRY(read_common(c, 0, kernel, w, pads));
    SAC_TRY(sac_extents_read(c, "output_padding", 0, (size_t)w->rank, 0, more));
    SAC_TRY(sac_extents_read(c, "output_shape", 0, (size_t)w->rank, 0, wanted));
    for (int d = SAC_WINDOW_DIMS - w->rank, i = 0; d < SAC_WINDOW_DIMS; d++, i++) {
        int64_t full = (w->in[d] - 1) * w->stride[d] + extent(w, d) + more[i];
        if (same || wanted[i]) {
            int64_t out = wanted[i] ? wanted[i] : w->in[d] * w->stride[d];
            int64_t pad = SAC_MAX(0, full - out);
            w->pad_begin[d] = upper ? pad / 2 : pad - pad / 2; /* NOTSET with an output_shape too */
            w->pad_end[d] = pad - w->pad_begin[d];
            w->out[d] = out;
        } else {
            if (strcmp(auto_pad, "VALID") == 0)
                w->pad_begin[d] = w->pad_end[d] = 0;
            w->out[d] = full - w->pad_begin[d] - w->pad_end[d];
        }
        SAC_CHECK(c, w->in[d] > 0 && w->out[d] > 0, "an output of %lld from an input of %lld",
                  (long long)w->out[d], (long long)w->in[d]);
    }
    return SAC_OK;
}

void sac_window_span(int64_t offset, int64_t stride, int64_t in, int64_t out, int64_t *first,
                     int64_t *last)
{
    *first = offset >= 0 ? 0 : SAC_MIN(out, (-offset + stride - 1) / stride);
    *last = offset >= in ? *first : SAC_MIN(out, (in - 1 - offset) / stride + 1);
    *last = SAC_MAX(*first, *last);
}
