/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine/layout.h"

/* A shape as the layouts see it. Below rank 2 there are no channels and all layouts are plain. */
struct extent {
    int64_t n, c, s; /* batch, channels, product of the spatial dims */
};

static struct extent extent_of(const struct sac_operand *o)
{
    struct extent e = {1, 1, 1};
    if (o->rank > 0)
        e.n = o->dims[0];
    if (o->rank > 1)
        e.c = o->dims[1];
    for (int i = 2; i < o->rank; i++)
        e.s *= o->dims[i];
    return e;
}

static int64_t block_of(enum sac_layout layout)
{
    return layout == SAC_LAYOUT_BLOCKED8 ? 8 : layout == SAC_LAYOUT_BLOCKED16 ? 16 : 1;
}

static int64_t padded(int64_t channels, int64_t block)
{
    return (channels + block - 1) / block * block;
}

const char *sac_layout_name(enum sac_layout layout)
{
    static const char *const names[] = {"plain", "channels last", "blocked by 8", "blocked by 16"};
    return (unsigned)layout < SAC_COUNT(names) ? names[layout] : "unknown";
}

size_t sac_layout_bytes(const struct sac_operand *o, enum sac_layout layout)
{
    struct extent e = extent_of(o);
    return (size_t)(e.n * padded(e.c, block_of(layout)) * e.s) * sac_dtype_bytes(o->dtype);
}

/* Is the layout, for these extents, the same as plain? */
static bool is_plain(const struct extent *e, enum sac_layout layout)
{
    int64_t block = block_of(layout);
    if (layout == SAC_LAYOUT_PLAIN)
        return true;
    if (layout == SAC_LAYOUT_CHANNELS_LAST)
        return e->c == 1 || e->s == 1;
    return e->c % block == 0 && e->s == 1;
}

bool sac_layout_same(const struct sac_operand *o, enum sac_layout a, enum sac_layout b)
{
    struct extent e = extent_of(o);
    return a == b || (is_plain(&e, a) && is_plain(&e, b));
}

/* Element (n,c,s) lies at n * batch + (c / block) * group + (c % block) * lane + s * spatial. */
struct strides {
    int64_t batch, group, lane, spatial, block;
};

static struct strides strides_of(const struct extent *e, enum sac_layout layout)
{
    int64_t block = block_of(layout);
    if (layout == SAC_LAYOUT_CHANNELS_LAST)
        return (struct strides){e->c * e->s, 1, 0, e->c, 1};
    return (struct strides){padded(e->c, block) * e->s, block * e->s, 1, block, block};
}

#define COPY_ROW(type)                                                                             \
    do {                                                                                           \
        const type *in = src;                                                                      \
        type       *out = dst;                                                                     \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i * dst_step] = in[i * src_step];                                                  \
    } while (0)

static void copy_row(size_t size, void *dst, int64_t dst_step, const void *src, int64_t src_step,
                     int64_t count)
{
    switch (size) {
    case 1: COPY_ROW(uint8_t); break;
    case 2: COPY_ROW(uint16_t); break;
    case 4: COPY_ROW(uint32_t); break;
    default: COPY_ROW(uint64_t); break;
    }
}

/* One side is walked along its rows, the other across them: short stretches keep the cache lines of
 * the latter until all channels have passed. */
enum { STRETCH = 16 };

void sac_layout_convert(const struct sac_operand *o, void *dst, enum sac_layout to,
                        const void *src, enum sac_layout from)
{
    struct extent  e = extent_of(o);
    struct strides d = strides_of(&e, to), s = strides_of(&e, from);
    size_t         size = sac_dtype_bytes(o->dtype);
    if (sac_layout_same(o, to, from)) {
        memcpy(dst, src, sac_layout_bytes(o, to));
        return;
    }
    if (e.c % d.block)
        memset(dst, 0, sac_layout_bytes(o, to));
    for (int64_t n = 0; n < e.n; n++)
        for (int64_t s0 = 0; s0 < e.s; s0 += STRETCH) {
            const int64_t count = SAC_MIN(STRETCH, e.s - s0);
            for (int64_t c = 0; c < e.c; c++) {
                int64_t at_d = n * d.batch + c / d.block * d.group + c % d.block * d.lane;
                int64_t at_s = n * s.batch + c / s.block * s.group + c % s.block * s.lane;
                at_d += s0 * d.spatial;
                at_s += s0 * s.spatial;
                copy_row(size, (char *)dst + (size_t)at_d * size, d.spatial,
                         (const char *)src + (size_t)at_s * size, s.spatial, count);
            }
        }
}
