/* SPDX-License-Identifier: Apache-2.0 */
#include "device/uses.h"

static void wait_for(struct sac_device *dev, struct sac_use *use)
{
    if (use->pending)
        dev->ops->event_wait(use->behind);
    use->pending = false;
}

/* The stream's own place, else one that is free by now, else NULL. */
static struct sac_use *find_place(struct sac_device *dev, struct sac_uses *uses,
                                  const struct sac_device_stream *stream)
{
    struct sac_use *found = NULL;
    for (int i = 0; i < SAC_USES_MAX; i++) {
        struct sac_use *use = &uses->use[i];
        if (use->pending && use->stream == stream)
            return use;
        if (use->pending && dev->ops->event_reached(use->behind))
            use->pending = false;
        if (!use->pending && (!found || (use->behind && !found->behind)))
            found = use;
    }
    return found;
}

void sac_uses_add(struct sac_device *dev, struct sac_uses *uses, struct sac_device_stream *stream)
{
    if (dev->ops->host_memory) /* its work is done when the call returns */
        return;
    struct sac_use *use = find_place(dev, uses, stream);
    sac_result      res = SAC_OK;
    if (!use) {
        use = &uses->use[0];
        wait_for(dev, use);
    }
    use->stream = stream;
    if (!use->behind)
        res = dev->ops->event_create(dev, false, &use->behind);
    if (res == SAC_OK)
        res = dev->ops->event_record(use->behind, stream);
    use->pending = res == SAC_OK;
    if (!use->pending && stream) /* then now */
        dev->ops->stream_wait(stream);
}

bool sac_uses_done(struct sac_device *dev, struct sac_uses *uses)
{
    bool done = true;
    for (int i = 0; i < SAC_USES_MAX; i++) {
        struct sac_use *use = &uses->use[i];
        if (use->pending && dev->ops->event_reached(use->behind))
            use->pending = false;
        done &= !use->pending;
    }
    return done;
}

void sac_uses_settle(struct sac_device *dev, struct sac_uses *uses)
{
    for (int i = 0; i < SAC_USES_MAX && dev->ops->event_settle; i++)
        if (uses->use[i].pending)
            dev->ops->event_settle(uses->use[i].behind);
}

void sac_uses_wait(struct sac_device *dev, struct sac_uses *uses)
{
    for (int i = 0; i < SAC_USES_MAX; i++)
        wait_for(dev, &uses->use[i]);
}

sac_result sac_uses_precede(struct sac_device *dev, struct sac_uses *uses,
                            struct sac_device_stream *stream)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < SAC_USES_MAX && res == SAC_OK; i++) {
        struct sac_use *use = &uses->use[i];
        if (use->pending && use->stream != stream)
            res = dev->ops->stream_wait_event(dev, stream, use->behind);
        use->pending = use->pending && res != SAC_OK;
    }
    return res;
}

void sac_uses_finish(struct sac_device *dev, struct sac_uses *uses)
{
    for (int i = 0; i < SAC_USES_MAX; i++)
        if (uses->use[i].behind)
            dev->ops->event_destroy(&uses->use[i].behind);
    *uses = (struct sac_uses){0};
}
