/* SPDX-License-Identifier: Apache-2.0 */
/* Head plug-ins to be opened by test_plugin.c. */
#include <saccade/head.h>

static void defaults(struct sac_preprocess *pre)
{
    pre->order = SAC_ORDER_BGR;
    pre->fit = SAC_FIT_STRETCH;
}

/* Rows of 6, as end2end, with half the score. */
static int decode(const struct sac_head_input *in,
                  void (*emit)(void *sink, const struct sac_detection *det), void *sink)
{
    const struct sac_head_tensor *t = &in->tensors[0];
    if (in->count != 1 || t->rank != 2 || t->shape[1] != 6)
        return SAC_ERR_FORMAT;
    for (int64_t i = 0; i < t->shape[0]; i++) {
        const float         *p = t->data + 6 * i;
        struct sac_detection det = {p[0], p[1], p[2], p[3], p[4] * 0.5f, (int)p[5]};
        if (det.score >= in->score_min)
            emit(sink, &det);
    }
    return 0;
}

/* How it is compiled makes a good one, one of another ABI, or one under another name. */
#ifndef PLUGIN_ABI
#define PLUGIN_ABI SAC_HEAD_PLUGIN_ABI
#endif
#ifndef PLUGIN_SYMBOL
#define PLUGIN_SYMBOL sac_head_plugin
#endif
SAC_API extern const struct sac_head_plugin PLUGIN_SYMBOL;
const struct sac_head_plugin                PLUGIN_SYMBOL = {
                   .abi = PLUGIN_ABI,
                   .struct_size = sizeof(struct sac_head_plugin),
                   .name = "halves",
                   .needs_nms = 1,
                   .defaults = defaults,
                   .decode = decode,
};
