/* SPDX-License-Identifier: Apache-2.0 */
/* A head in a shared object, for a network whose output saccade does not know: here one tensor
 * [n,6] whose rows are centre x, centre y, width, height (as shares of the input's size), score and
 * class.
 *
 *     cc -shared -fPIC -o head_plugin.so head_plugin.c $(pkg-config --cflags saccade)
 *     saccade track in.mp4 --detector mine.onnx --head ./head_plugin.so -o out.mp4
 */
#include <saccade/head.h>

/* The preprocessing of such a network, unless the model file says otherwise. */
static void defaults(struct sac_preprocess *pre)
{
    pre->fit = SAC_FIT_STRETCH;
    pre->order = SAC_ORDER_RGB;
}

static struct sac_detection box_of(const float *row, const struct sac_head_input *in)
{
    float width = row[2] * (float)in->input_width, height = row[3] * (float)in->input_height;
    float x0 = row[0] * (float)in->input_width - width / 2;
    float y0 = row[1] * (float)in->input_height - height / 2;
    return (struct sac_detection){.x0 = x0,
                                  .y0 = y0,
                                  .x1 = x0 + width,
                                  .y1 = y0 + height,
                                  .score = row[4],
                                  .class_id = (int)row[5]};
}

/* One image's tensors in, boxes in the network's input pixels out. */
static int decode(const struct sac_head_input *in,
                  void (*emit)(void *sink, const struct sac_detection *det), void *sink)
{
    const struct sac_head_tensor *t = in->tensors;
    if (in->count != 1 || t->rank != 2 || t->shape[1] != 6)
        return SAC_ERR_FORMAT;
    for (int64_t i = 0; i < t->shape[0]; i++) {
        const float *row = t->data + i * 6;
        if (row[4] >= in->score_min) {
            struct sac_detection det = box_of(row, in);
            emit(sink, &det);
        }
    }
    return SAC_OK;
}

SAC_API extern const struct sac_head_plugin sac_head_plugin;

const struct sac_head_plugin sac_head_plugin = {
    .abi = SAC_HEAD_PLUGIN_ABI,
    .struct_size = sizeof(struct sac_head_plugin),
    .name = "centre-shares",
    .needs_nms = 1,
    .defaults = defaults,
    .decode = decode,
};
