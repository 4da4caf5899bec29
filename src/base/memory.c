/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base.h"

static atomic_long fail_countdown;

void sac_alloc_fail_at(long n)
{
    atomic_store(&fail_countdown, n);
}

static bool allocation_fails(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0)
        return false;
    return atomic_fetch_sub(&fail_countdown, 1) == 1;
}

void *sac_alloc(size_t size)
{
    return allocation_fails() ? NULL : malloc(size ? size : 1);
}

void *sac_calloc(size_t count, size_t size)
{
    if (allocation_fails())
        return NULL;
    return count && size ? calloc(count, size) : calloc(1, 1);
}

void *sac_realloc_array(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (allocation_fails() || __builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return realloc(p, bytes ? bytes : 1);
}

void *sac_alloc_aligned(size_t align, size_t size)
{
    void *p = NULL;
    if (allocation_fails() || posix_memalign(&p, align, size ? size : 1) != 0)
        return NULL;
    return p;
}

void sac_free(void *p)
{
    free(p);
}

char *sac_strdup(const char *s)
{
    size_t len = strlen(s) + 1;
    char  *copy = sac_alloc(len);
    return copy ? memcpy(copy, s, len) : NULL;
}

char *sac_asprintf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = len < 0 ? NULL : sac_alloc((size_t)len + 1);
    if (s) {
        va_start(ap, fmt);
        vsnprintf(s, (size_t)len + 1, fmt, ap);
        va_end(ap);
    }
    return s;
}

bool sac_grow(void **items, size_t *capacity, size_t need, size_t item_size)
{
    if (need <= *capacity)
        return true;
    size_t cap = *capacity ? *capacity : 8;
    while (cap < need)
        if (__builtin_mul_overflow(cap, (size_t)2, &cap))
            return false;
    void *grown = sac_realloc_array(*items, cap, item_size);
    if (!grown)
        return false;
    *items = grown;
    *capacity = cap;
    return true;
}

struct sac_arena_block {
    struct sac_arena_block *next;
    size_t                  used, size;
    _Alignas(16) char bytes[];
};

enum { ARENA_BLOCK_BYTES = 64 * 1024 };

/* A block that one large piece fills stands second, so that the first one's room is used. */
static void push_block(struct sac_arena *arena, struct sac_arena_block *b)
{
    struct sac_arena_block **at =
        arena->head && b->size > ARENA_BLOCK_BYTES ? &arena->head->next : &arena->head;
    b->next = *at;
    *at = b;
}

void *sac_arena_alloc(struct sac_arena *arena, size_t size)
{
    if (size > SIZE_MAX - 15 - sizeof(struct sac_arena_block))
        return NULL;
    size = (size + 15) & ~(size_t)15;
    struct sac_arena_block *b = arena->head;
    if (!b || b->size - b->used < size) {
        size_t room = SAC_MAX(size, (size_t)ARENA_BLOCK_BYTES);
        b = sac_alloc(sizeof *b + room);
        if (!b)
            return NULL;
        b->used = 0;
        b->size = room;
        push_block(arena, b);
    }
    void *p = b->bytes + b->used;
    b->used += size;
    arena->bytes += size;
    return memset(p, 0, size);
}

char *sac_arena_strndup(struct sac_arena *arena, const char *s, size_t len)
{
    char *copy = sac_arena_alloc(arena, len + 1);
    return copy ? memcpy(copy, s, len) : NULL;
}

bool sac_arena_free(struct sac_arena *arena, const void *p, size_t size)
{
    if (size <= ARENA_BLOCK_BYTES)
        return false;
    for (struct sac_arena_block **at = &arena->head; *at; at = &(*at)->next) {
        struct sac_arena_block *b = *at;
        if (p != b->bytes)
            continue;
        *at = b->next;
        arena->bytes -= b->used;
        sac_free(b);
        return true;
    }
    return false;
}

bool sac_arena_owns(const struct sac_arena *arena, const void *p)
{
    for (const struct sac_arena_block *b = arena->head; b; b = b->next)
        if ((uintptr_t)p >= (uintptr_t)b->bytes && (uintptr_t)p < (uintptr_t)b->bytes + b->used)
            return true;
    return false;
}

void sac_arena_finish(struct sac_arena *arena)
{
    for (struct sac_arena_block *b = arena->head, *next; b; b = next) {
        next = b->next;
        sac_free(b);
    }
    *arena = (struct sac_arena){0};
}
