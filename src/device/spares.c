/* SPDX-License-Identifier: Apache-2.0 */
#include "device/spares.h"

void sac_spares_finish(struct sac_spares *s)
{
    for (int i = 0; i < s->count; i++)
        sac_buffer_unref(&s->buf[i]);
    s->count = s->next = 0;
}

static sac_result create(const struct sac_spares *s, size_t bytes, struct sac_buffer **out)
{
    sac_result res = s->host ? sac_host_buffer_create(s->dev, bytes, s->owner, out)
                             : sac_buffer_create(s->dev, bytes, s->owner, out);
    if (res == SAC_OK)
        sac_buffer_keep(*out);
    return res;
}

sac_result sac_spares_reserve(struct sac_spares *s, size_t bytes, int n)
{
    sac_result res = SAC_OK;
    if (s->count && sac_buffer_bytes(s->buf[0]) != bytes)
        sac_spares_finish(s);
    while (s->count < SAC_MIN(n, (int)SAC_SPARES_MAX) && res == SAC_OK) {
        res = create(s, bytes, &s->buf[s->count]);
        s->count += res == SAC_OK;
    }
    if (res == SAC_OK || s->count == 0)
        return res;
    sac_error_clear(s->dev->ctx);
    return SAC_OK;
}

/* Free at once, or after a wait for streams. */
static struct sac_buffer *find(struct sac_spares *s, bool wait)
{
    for (int k = 0; k < s->count; k++) {
        const int i = (s->next + k) % s->count;
        if (!sac_buffer_is_free(s->buf[i], wait))
            continue;
        s->next = (i + 1) % s->count;
        return s->buf[i];
    }
    return NULL;
}

sac_result sac_spares_take(struct sac_spares *s, size_t bytes, struct sac_buffer **out)
{
    sac_result         res = sac_spares_reserve(s, bytes, 1);
    struct sac_buffer *buf = res == SAC_OK ? find(s, false) : NULL;
    if (res == SAC_OK && !buf)
        buf = find(s, true);
    if (res == SAC_OK && !buf && s->count == SAC_SPARES_MAX)
        return create(s, bytes, out);
    if (res == SAC_OK && !buf) {
        res = create(s, bytes, &buf);
        if (res == SAC_OK)
            s->buf[s->count++] = buf;
    }
    if (res == SAC_OK)
        *out = sac_buffer_ref(buf);
    return res;
}
