/* SPDX-License-Identifier: Apache-2.0 */
/* What conv_tensor.cuh and conv_stem_unit.cu ask of the copy engine, on the host, each for one file
 * alone. A copy is under way until a thread waits for some barrier, and those that are under way
 * are done in no order; what is copied back is read at the last moment. Maps are numbers of shapes.
 */
#pragma once

#include "engine/cuda/products/conv_bytes.cuh"
#include "engine/cuda/products/conv_copies.h"

namespace conv
{

enum { SHAPES_MOST = 64, COPIES_MOST = 256, THREADS_OF_BLOCK = 768 };

static conv_copy_shape shapes[SHAPES_MOST];
static unsigned        shape_count;

extern "C" cudaError_t conv_copy_map_make(const struct conv_copy_shape *s,
                                          struct conv_copy_map         *out)
{
    for (int i = 0; i < s->rank; i++)
        if ((s->box[i] == 0 && !(s->window && i > 1)) || (s->box[i] > 256 && !s->window))
            return cudaErrorNotSupported;
    for (int i = 0; i + 1 < s->rank; i++)
        if (s->step[i] % 16 || s->size[i] == 0)
            return cudaErrorNotSupported;
    if ((uintptr_t)s->at % 16 ||
        (s->halves ? s->box[0] % 8 != 0 || s->box[0] > 256 || s->box[1] > 256
                   : s->box[0] != 32 && s->box[0] != 64 && s->box[0] != 128))
        return cudaErrorNotSupported;
    out->words[0] = shape_count % SHAPES_MOST;
    shapes[shape_count++ % SHAPES_MOST] = *s;
    return cudaSuccess;
}

/* ---- barriers ---- */

struct phases {
    int      count, left, bytes;
    unsigned phase;
};
static phases barriers[SHARED_BYTES / 8];

static inline phases *phases_of(uint64_t *barrier)
{
    return &barriers[shared_address(barrier) / 8];
}
static inline void see_whether_over(phases *p)
{
    if (p->left < 0)
        abort(); /* more came than it counts */
    if (p->left == 0 && p->bytes == 0) {
        p->phase++;
        p->left = p->count;
    }
}
static inline void barrier_init(uint64_t *barrier, int count)
{
    *phases_of(barrier) = {count, count, 0, 0};
}
static inline void barriers_are_ready()
{
}
static inline void barrier_arrive(uint64_t *barrier)
{
    phases_of(barrier)->left--;
    see_whether_over(phases_of(barrier));
}
static inline bool elected()
{
    return emulated::lane() == 0;
}
static inline void barrier_expect(uint64_t *barrier, int bytes)
{
    phases_of(barrier)->bytes += bytes;
    barrier_arrive(barrier);
}
static inline void group_sync(int group)
{
    emulated::wait_group(group, 128);
}
template <int COUNT> void registers_give()
{
}
template <int COUNT> void registers_take()
{
}

/* ---- copies ---- */

/* Who asks for what the kernel before this one makes has waited for its end itself; who stores what
 * that may read has at least waited for someone who did. */
static bool        waited, waited_itself[THREADS_OF_BLOCK];
static int         copy_count; /* of those that are under way */
static inline void early_prepare()
{
    waited &= threadIdx.x != 0; /* it runs first */
    if (threadIdx.x == 0 && copy_count != 0)
        abort(); /* the block before asked for what it did not wait for: it comes when that is gone
                  */
    waited_itself[threadIdx.x] = false;
}
static inline void early_begin()
{
    waited = waited_itself[threadIdx.x] = true;
}
static inline void needs_wait(bool done)
{
    if (!done)
        abort();
}

struct copy {
    uint8_t               *to;
    const conv_copy_shape *shape;
    int                    at[5], right, down;
    uint64_t              *barrier;
};
static copy     under_way[COPIES_MOST];
static unsigned chance = 1;

static inline bool is_inside(const conv_copy_shape *s, const int64_t (&at)[5])
{
    for (int i = 0; i < s->rank; i++)
        if (at[i] < 0 || (uint64_t)at[i] >= s->size[i])
            return false;
    return true;
}
static inline uint8_t *place_of(const conv_copy_shape *s, const int64_t (&at)[5])
{
    int64_t bytes = at[0] * (s->halves ? 2 : 1);
    for (int i = 1; i < s->rank; i++)
        bytes += at[i] * (int64_t)s->step[i - 1];
    return (uint8_t *)s->at + bytes;
}
static inline uint8_t *swizzled(const uint8_t *base, unsigned byte, unsigned width)
{
    const unsigned at = shared_address(base) + byte;
    if (at >= SHARED_BYTES)
        abort();
    return shared_memory + (at ^ (at >> 3 & (width - 16)));
}

static inline int row_bytes(const conv_copy_shape *s)
{
    return (int)s->box[0] * (s->halves ? 2 : 1);
}
/* The row of a box, and its bytes one by one: `each` gets the place in shared memory, and in memory
 * or NULL. Of halves both bytes. */
template <class EACH>
void each_of_row(const conv_copy_shape *s, const uint8_t *base, int row, int64_t (&at)[5],
                 const EACH &each)
{
    const int64_t first = at[0];
    for (unsigned b = 0; b < s->box[0]; b++) {
        at[0] = first + b;
        uint8_t *memory = is_inside(s, at) ? place_of(s, at) : nullptr;
        if (!s->halves)
            each(swizzled(base, (unsigned)row * s->box[0] + b, s->box[0]), memory);
        for (unsigned i = 0; s->halves && i < 2; i++)
            each(shared_memory + shared_address(base) + (unsigned)(row * row_bytes(s)) + 2 * b + i,
                 memory ? memory + i : nullptr);
    }
    at[0] = first;
}

static inline int rows_of_box(const conv_copy_shape *s)
{
    int rows = 1;
    for (int i = 1; i < (s->window ? 2 : s->rank); i++)
        rows *= (int)s->box[i];
    return rows;
}

/* Coordinates of a box's row. */
static inline void row_of_box(const copy &c, int row, int64_t (&at)[5])
{
    const conv_copy_shape *s = c.shape;
    at[0] = c.at[0];
    for (int i = 1; i < s->rank; i++) {
        at[i] = c.at[i] + row % (int)s->box[i];
        row /= (int)s->box[i];
    }
}

template <class EACH> void each_of_copy(const copy &c, const EACH &each)
{
    const conv_copy_shape *s = c.shape;
    int64_t                at[5] = {0}, w = c.at[1], h = c.at[2], n = c.at[3];
    for (int row = 0; row < rows_of_box(s); row++) {
        if (!s->window)
            row_of_box(c, row, at);
        else {
            at[0] = c.at[0], at[1] = w + c.right, at[2] = h + c.down, at[3] = n;
            w += s->stride[0];
            if (w >= (int64_t)s->size[1] + s->high[0]) {
                w = s->low[0];
                h += s->stride[1];
            }
            if (h >= (int64_t)s->size[2] + s->high[1]) {
                h = s->low[1];
                n++;
            }
        }
        each_of_row(s, c.to, row, at, each);
    }
}

static inline void end_copy(int i)
{
    const copy c = under_way[i];
    under_way[i] = under_way[--copy_count];
    each_of_copy(c, [](uint8_t *to, const uint8_t *from) { *to = from ? *from : 0; });
    phases_of(c.barrier)->bytes -= rows_of_box(c.shape) * row_bytes(c.shape);
    see_whether_over(phases_of(c.barrier));
}

static inline void barrier_wait(uint64_t *barrier, int parity)
{
    while ((phases_of(barrier)->phase & 1) == (unsigned)parity) {
        if (copy_count) {
            chance = chance * 1664525 + 1013904223;
            end_copy((int)(chance >> 8) % copy_count);
        }
        emulated::wait_turn();
    }
}

static inline void begin_copy(copy c, const conv_copy_map *map, uint8_t *to, uint64_t *barrier)
{
    c.to = to;
    c.shape = &shapes[map->words[0]];
    c.barrier = barrier;
    const unsigned align = c.shape->halves ? 128 : 8 * c.shape->box[0];
    if (shared_address(to) % align || copy_count == COPIES_MOST ||
        c.at[0] * (c.shape->halves ? 2 : 1) % 16 ||
        shared_address(to) + (unsigned)(rows_of_box(c.shape) * row_bytes(c.shape)) > SHARED_BYTES)
        abort(); /* a GPU stops there, or brings them in another order than the unit reads */
    memset(to, 0xaa, (size_t)(rows_of_box(c.shape) * row_bytes(c.shape)));
    under_way[copy_count++] = c;
}
static inline void copy_foresee(const conv_copy_map *)
{
}
static inline void copy_rows(uint8_t *to, const conv_copy_map *map, int c, int pixel, int run,
                             uint64_t *barrier)
{
    needs_wait(waited_itself[threadIdx.x]);
    begin_copy({nullptr, nullptr, {c, pixel, run}, 0, 0, nullptr}, map, to, barrier);
}
static inline void copy_turned(uint8_t *to, const conv_copy_map *map, int c, int sixteen,
                               uint64_t *barrier)
{
    begin_copy({nullptr, nullptr, {c, 0, 0, 0, sixteen}, 0, 0, nullptr}, map, to, barrier);
}
static inline void copy_part(uint8_t *to, const conv_copy_map *map, int c, int w, int h, int n,
                             uint64_t *barrier)
{
    needs_wait(waited_itself[threadIdx.x]);
    begin_copy({nullptr, nullptr, {c, w, h, n}, 0, 0, nullptr}, map, to, barrier);
}
static inline void copy_window(uint8_t *to, const conv_copy_map *map, int c, int w, int h, int n,
                               int right, int down, uint64_t *barrier)
{
    const conv_copy_shape *s = &shapes[map->words[0]];
    if (right > 255 || down > 255 || w < s->low[0] || h < s->low[1] ||
        w >= (int64_t)s->size[1] + s->high[0] || h >= (int64_t)s->size[2] + s->high[1])
        abort();
    needs_wait(waited_itself[threadIdx.x]);
    begin_copy({nullptr, nullptr, {c, w, h, n}, right, down, nullptr}, map, to, barrier);
}

/* What each thread has copied back and not waited for. */
static copy back[THREADS_OF_BLOCK][4];
static int  back_count[THREADS_OF_BLOCK];

static inline void copy_back(const conv_copy_map *map, int c, int pixel, int run,
                             const uint8_t *from)
{
    int *count = &back_count[threadIdx.x];
    needs_wait(waited);
    if (*count == 4)
        abort();
    back[threadIdx.x][(*count)++] = {(uint8_t *)from, &shapes[map->words[0]], {c, pixel, run}, 0, 0,
                                     nullptr};
}
template <int N> void copy_back_wait()
{
    copy *list = back[threadIdx.x];
    for (int *count = &back_count[threadIdx.x]; *count > N; (*count)--) {
        each_of_copy(list[0], [](uint8_t *from, uint8_t *to) {
            if (to)
                *to = *from;
        });
        memmove(list, list + 1, 3 * sizeof *list);
    }
}

} // namespace conv
