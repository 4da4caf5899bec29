/* SPDX-License-Identifier: Apache-2.0 */
#include "heads/heads.h"

struct sac_grid sac_grid_of(int width, int height, int levels)
{
    struct sac_grid g = {.levels = SAC_MIN(levels, SAC_GRID_LEVELS_MAX)};
    for (int i = 0; i < g.levels; i++) {
        g.stride[i] = 8 << i;
        g.columns[i] = (width + g.stride[i] - 1) / g.stride[i];
        g.rows[i] = (height + g.stride[i] - 1) / g.stride[i];
        g.cells += (int64_t)g.columns[i] * g.rows[i];
    }
    return g;
}
