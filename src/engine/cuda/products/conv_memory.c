/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ready convolutions in use, which convolutions with the same text share. */
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_kernel.h"

struct known {
    char              *key;
    struct conv_ready *ready; /* while it has users */
};

static struct {
    pthread_mutex_t lock; /* guards the rest, and the users of ready convolutions */
    struct known   *items;
    size_t          count, capacity;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool conv_key(const struct sac_device *dev, const struct conv_spec *s, char key[CONV_KEY_MAX])
{
    const int at = products_key_begin(dev, key, CONV_KEY_MAX);
    return conv_spec_text(s, key + at, (size_t)(CONV_KEY_MAX - at)) > 0;
}

/* The lock is held. NULL: unknown. */
static struct known *find(const char *key)
{
    for (size_t i = 0; i < memory.count; i++)
        if (strcmp(memory.items[i].key, key) == 0)
            return &memory.items[i];
    return NULL;
}

/* The lock is held. NULL: no memory; it is measured again next time. */
static struct known *find_or_add(const char *key)
{
    struct known *k = find(key);
    if (k ||
        !sac_grow((void **)&memory.items, &memory.capacity, memory.count + 1, sizeof *memory.items))
        return k;
    k = &memory.items[memory.count];
    *k = (struct known){.key = sac_strdup(key)};
    memory.count += k->key != NULL;
    return k->key ? k : NULL;
}

struct conv_ready *conv_share(const char *key, const struct conv_choice *choice)
{
    pthread_mutex_lock(&memory.lock);
    const struct known *k = find(key);
    struct conv_ready  *r = k ? k->ready : NULL;
    if (r && choice && !conv_choice_same(&r->choice, choice))
        r = NULL;
    if (r)
        r->users++;
    pthread_mutex_unlock(&memory.lock);
    return r;
}

void conv_offer(const char *key, struct conv_ready *r)
{
    pthread_mutex_lock(&memory.lock);
    struct known *k = find_or_add(key);
    if (k && !k->ready)
        k->ready = r;
    pthread_mutex_unlock(&memory.lock);
}

void conv_ready_unref(struct conv_ready **at)
{
    struct conv_ready *r = *at;
    bool               last = false;
    *at = NULL;
    if (!r)
        return;
    pthread_mutex_lock(&memory.lock);
    last = --r->users == 0;
    for (size_t i = 0; i < memory.count && last; i++)
        if (memory.items[i].ready == r)
            memory.items[i].ready = NULL;
    pthread_mutex_unlock(&memory.lock);
    if (last)
        conv_ready_destroy(r);
}
