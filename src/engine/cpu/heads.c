/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cpu/heads.h"

#include "engine/kernel/move.h"

void sac_head_turn(float *dst, int64_t dst_step, const float *src, int64_t src_step, int64_t rows,
                   int64_t columns)
{
    int64_t whole_rows = 0, whole = 0;
#if defined(__x86_64__)
    whole_rows = rows / 8 * 8;
    whole = columns / 8 * 8;
    if (whole_rows && whole)
        sac_transpose_avx2((uint32_t *)(void *)dst, dst_step, (const uint32_t *)(const void *)src,
                           src_step, whole_rows, whole);
#endif
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = r < whole_rows ? whole : 0; c < columns; c++)
            dst[c * dst_step + r] = src[r * src_step + c];
}

void sac_head_pack(const struct sac_conv *v, const float *b, int64_t row, int64_t column, float *to)
{
    const int64_t full = (int64_t)v->block * sac_simd_lanes(), depth = v->group_in_c;
    for (int64_t first = 0; first < v->group_bias; first += full) {
        const int64_t width = SAC_MIN(full, v->group_bias - first),
                      here = SAC_MIN(width, v->group_out_c - first);
        const float *from = b + first * column;
        if (row == 1)
            sac_head_turn(to, width, from, column, here, depth);
        for (int64_t k = 0; k < depth; k++, to += width) {
            if (column == 1)
                memcpy(to, from + k * row, (size_t)here * sizeof *to);
            for (int64_t i = 0; row != 1 && column != 1 && i < here; i++)
                to[i] = from[k * row + i * column];
            memset(to + here, 0, (size_t)(width - here) * sizeof *to);
        }
    }
}

enum sac_layout sac_head_layout(const struct sac_operand *o, const struct sac_head_view *v,
                                enum sac_layout now, bool either)
{
    struct sac_head_view last;
    return sac_layout_is_last(now) && sac_head_view_last(o, v, &last) &&
                   (last.step[3] == 1 || (either && last.step[2] == 1))
               ? SAC_LAYOUT_CHANNELS_LAST
               : SAC_LAYOUT_PLAIN;
}

void sac_head_load(const struct sac_head_view *v, const float *from, int64_t rows, int64_t count,
                   float *to)
{
    if (v->step[2] == 1 && v->step[3] != 1) {
        sac_head_turn(to, count, from, v->step[3], count, rows);
        return;
    }
    for (int64_t n = 0; n < rows; n++, from += v->step[2], to += count)
        if (v->step[3] == 1)
            memcpy(to, from, (size_t)count * sizeof *to);
        else
            for (int64_t i = 0; i < count; i++)
                to[i] = from[i * v->step[3]];
}

void sac_head_put(const struct sac_head_view *v, const float *from, int64_t rows, int64_t count,
                  float *to)
{
    for (int64_t n = 0; n < rows; n++, from += count, to += v->step[2])
        if (v->step[3] == 1)
            memcpy(to, from, (size_t)count * sizeof *to);
        else
            for (int64_t i = 0; i < count; i++)
                to[i * v->step[3]] = from[i];
}
