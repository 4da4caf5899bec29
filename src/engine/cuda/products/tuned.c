/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/products.h"

static struct {
    pthread_mutex_t lock; /* guards the rest */
    struct tuned {
        char *key, *choice;
    } * items;
    size_t count, capacity;
} tuned = {.lock = PTHREAD_MUTEX_INITIALIZER};

int products_key_begin(const struct sac_device *dev, char *key, size_t size)
{
    return snprintf(key, size, "%d %.120s %s", dev->index, dev->description,
                    dev->params.deterministic ? "by rules " : "");
}

/* The lock is held. */
static struct tuned *find(const char *key)
{
    for (size_t i = 0; i < tuned.count; i++)
        if (strcmp(tuned.items[i].key, key) == 0)
            return &tuned.items[i];
    return NULL;
}

void tuned_remember(const char *key, const char *choice)
{
    struct tuned t = {sac_strdup(key), sac_strdup(choice)};
    pthread_mutex_lock(&tuned.lock);
    if (t.key && t.choice && !find(key) &&
        sac_grow((void **)&tuned.items, &tuned.capacity, tuned.count + 1, sizeof *tuned.items)) {
        tuned.items[tuned.count++] = t;
        t = (struct tuned){NULL, NULL};
    }
    pthread_mutex_unlock(&tuned.lock);
    sac_free(t.key);
    sac_free(t.choice);
}

bool tuned_recall(const char *key, char choice[SAC_KERNEL_CHOICE_MAX])
{
    pthread_mutex_lock(&tuned.lock);
    const struct tuned *t = find(key);
    if (t)
        snprintf(choice, SAC_KERNEL_CHOICE_MAX, "%s", t->choice);
    pthread_mutex_unlock(&tuned.lock);
    return t != NULL;
}
