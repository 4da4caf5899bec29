/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine/kernel/layout.h"
#include "engine/kernel/move.h"
#include "engine/ops/half.h"

/* A shape reduced to three dimensions. Below rank 2 there are no channels and all layouts are
 * plain. */
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

const char *sac_layout_name(enum sac_layout layout)
{
    static const char *const names[] = {"plain", "channels last", "plain float16",
                                        "channels last float16"};
    return (unsigned)layout < SAC_COUNT(names) ? names[layout] : "unknown";
}

enum sac_dtype sac_layout_dtype(enum sac_dtype dtype, enum sac_layout layout)
{
    return dtype == SAC_F32 && sac_layout_is_half(layout) ? SAC_F16 : dtype;
}

size_t sac_layout_bytes(const struct sac_operand *o, enum sac_layout layout)
{
    struct extent e = extent_of(o);
    return (size_t)(e.n * e.c * e.s) * sac_dtype_bytes(sac_layout_dtype(o->dtype, layout));
}

bool sac_layout_same(const struct sac_operand *o, enum sac_layout a, enum sac_layout b)
{
    struct extent e = extent_of(o);
    if (sac_layout_dtype(o->dtype, a) != sac_layout_dtype(o->dtype, b))
        return false;
    return sac_layout_is_last(a) == sac_layout_is_last(b) || e.c == 1 || e.s == 1;
}

/* Element (n,c,s) lies at n * batch + c * channel + s * spatial. */
struct strides {
    int64_t batch, channel, spatial;
};

static struct strides strides_of(const struct extent *e, enum sac_layout layout)
{
    if (sac_layout_is_last(layout))
        return (struct strides){e->c * e->s, 1, e->c};
    return (struct strides){e->c * e->s, e->s, 1};
}

#define COPY_ROW(to, from, convert)                        \
    do {                                                   \
        const from *in = src;                              \
        to         *out = dst;                             \
        for (int64_t i = 0; i < count; i++)                \
            out[i * dst_step] = convert(in[i * src_step]); \
    } while (0)

static void copy_row(bool to_half, void *dst, int64_t dst_step, const void *src, int64_t src_step,
                     int64_t count)
{
    if (to_half)
        COPY_ROW(uint16_t, float, sac_half_of);
    else
        COPY_ROW(float, uint16_t, sac_half_value);
}

/* One side is read or written along its rows, the other across them: short stretches keep the cache
 * lines of the latter until all channels are done. */
enum { STRETCH = 16 };

/* Between float32 and float16. */
static void convert_numbers(const struct sac_operand *o, void *dst, enum sac_layout to,
                            const void *src, enum sac_layout from)
{
    const struct extent  e = extent_of(o);
    const struct strides d = strides_of(&e, to), s = strides_of(&e, from);
    const bool           to_half = sac_layout_dtype(o->dtype, to) == SAC_F16;
    const size_t         dst_size = to_half ? 2 : 4, src_size = to_half ? 4 : 2;
    for (int64_t n = 0; n < e.n; n++)
        for (int64_t s0 = 0; s0 < e.s; s0 += STRETCH) {
            const int64_t count = SAC_MIN(STRETCH, e.s - s0);
            for (int64_t c = 0; c < e.c; c++) {
                const int64_t at_d = n * d.batch + c * d.channel + s0 * d.spatial;
                const int64_t at_s = n * s.batch + c * s.channel + s0 * s.spatial;
                copy_row(to_half, (char *)dst + (size_t)at_d * dst_size, d.spatial,
                         (const char *)src + (size_t)at_s * src_size, s.spatial, count);
            }
        }
}

void sac_layout_convert_on(struct sac_worker_pool *workers, const struct sac_operand *o, void *dst,
                           enum sac_layout to, const void *src, enum sac_layout from)
{
    const enum sac_dtype dtype = sac_layout_dtype(o->dtype, to);
    const struct extent  e = extent_of(o);
    const struct strides d = strides_of(&e, to), s = strides_of(&e, from);
    struct sac_move      move;
    if (dtype != sac_layout_dtype(o->dtype, from)) {
        convert_numbers(o, dst, to, src, from);
        return;
    }
    sac_move_init(&move, sac_dtype_bytes(dtype), 3, (int64_t[]){e.n, e.c, e.s},
                  (int64_t[]){d.batch, d.channel, d.spatial},
                  (int64_t[]){s.batch, s.channel, s.spatial});
    sac_move_run(&move, workers, dst, src);
}

void sac_layout_convert(const struct sac_operand *o, void *dst, enum sac_layout to, const void *src,
                        enum sac_layout from)
{
    sac_layout_convert_on(NULL, o, dst, to, src, from);
}
