/* SPDX-License-Identifier: Apache-2.0 */
#include "media/media.h"

/* Limits for packets that no sink fetches. */
enum { BYTES_MAX = 64 << 20 };

static struct sac_kept_packet *at(const struct sac_kept *kept, size_t i)
{
    return &kept->ring[(kept->first + i) % kept->capacity];
}

static void drop_oldest(struct sac_kept *kept)
{
    kept->bytes -= at(kept, 0)->packet->size;
    av_packet_free(&at(kept, 0)->packet);
    kept->first = (kept->first + 1) % kept->capacity;
    kept->count--;
}

static bool grow(struct sac_kept *kept)
{
    size_t                  capacity = SAC_MAX(2 * kept->capacity, 64);
    struct sac_kept_packet *ring = sac_calloc(capacity, sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = 0; i < kept->count; i++)
        ring[i] = *at(kept, i);
    sac_free(kept->ring);
    kept->ring = ring;
    kept->first = 0;
    kept->capacity = capacity;
    return true;
}

bool sac_kept_push(struct sac_kept *kept, AVPacket *packet, int stream)
{
    AVPacket *own = av_packet_alloc();
    if (!own || (kept->count == kept->capacity && !grow(kept))) {
        av_packet_free(&own);
        return false;
    }
    av_packet_move_ref(own, packet);
    *at(kept, kept->count++) = (struct sac_kept_packet){own, stream};
    kept->bytes += own->size;
    for (; kept->bytes > BYTES_MAX && kept->count > 1; kept->dropped++)
        drop_oldest(kept);
    return true;
}

const struct sac_kept_packet *sac_kept_first(const struct sac_kept *kept)
{
    return kept->count ? at(kept, 0) : NULL;
}

void sac_kept_take(struct sac_kept *kept, AVPacket *packet)
{
    kept->bytes -= at(kept, 0)->packet->size;
    av_packet_move_ref(packet, at(kept, 0)->packet);
    drop_oldest(kept);
}

void sac_kept_finish(struct sac_kept *kept)
{
    while (kept->count > 0)
        drop_oldest(kept);
    sac_free(kept->ring);
    *kept = (struct sac_kept){0};
}
