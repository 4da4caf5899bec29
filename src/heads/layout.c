/* SPDX-License-Identifier: Apache-2.0 */
/* What the heads share: how most training normalises pixels, and where a device finds their
 * numbers. */
#include "vision/detect.h"
#include "heads/heads.h"

void sac_head_normalise(struct sac_preprocess *pre, enum sac_channel_order order)
{
    static const float mean[3] = {123.675f, 116.28f, 103.53f},
                       deviation[3] = {58.395f, 57.12f, 57.375f};
    pre->order = order;
    for (int c = 0; c < 3; c++) {
        const int from = order == SAC_ORDER_BGR ? 2 - c : c;
        pre->mean[c] = mean[from];
        pre->scale[c] = 1 / deviation[from];
    }
}

struct sac_detect_field sac_head_field(const struct sac_head_input *in, int index, int64_t first,
                                       int64_t cell, int64_t number)
{
    const struct sac_head_tensor *t = &in->tensors[index];
    struct sac_detect_field       f = {
              .tensor = index, .first = first, .image = 1, .cell = cell, .number = number};
    for (int i = 0; i < t->rank; i++)
        f.image *= t->shape[i];
    return f;
}

bool sac_head_has_columns(const struct sac_head_tensor *t, int64_t columns)
{
    return t->rank > 0 && t->shape[t->rank - 1] == columns;
}

int64_t sac_head_rows(const struct sac_head_tensor *t, int64_t columns)
{
    int64_t rows = 1;
    if (!sac_head_has_columns(t, columns))
        return -1;
    for (int i = 0; i < t->rank - 1; i++)
        rows *= t->shape[i];
    return rows;
}

void sac_head_shapes_text(const struct sac_head_tensor *t, int count, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < count && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s [", i ? ", " : "",
                                 t[i].name ? t[i].name : "");
        for (int k = 0; k < t[i].rank && used < size; k++)
            used += t[i].shape[k] < 0
                        ? (size_t)snprintf(out + used, size - used, "%s?", k ? "," : "")
                        : (size_t)snprintf(out + used, size - used, "%s%lld", k ? "," : "",
                                           (long long)t[i].shape[k]);
        if (used < size)
            used += (size_t)snprintf(out + used, size - used, "]");
    }
}
