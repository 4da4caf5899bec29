/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

static const struct {
    const char             *name;
    enum sac_device_without what;
} rows[] = {
    {"buffer-pool", SAC_WITHOUT_POOL},
    {"page-locked", SAC_WITHOUT_PAGE_LOCKED},
    {"one-launch", SAC_WITHOUT_GATHERING},
    {"early-launch", SAC_WITHOUT_EARLY_LAUNCH},
    {"mmap", SAC_WITHOUT_MMAP},
};

const char *sac_device_without_name(int i)
{
    return i >= 0 && i < (int)SAC_COUNT(rows) ? rows[i].name : NULL;
}

static bool is_named(const char *text, const char *name)
{
    while (*(text += strspn(text, ", "))) {
        const size_t length = strcspn(text, ", ");
        if (strlen(name) == length && strncmp(name, text, length) == 0)
            return true;
        text += length;
    }
    return false;
}

void sac_device_leave_out(sac_device *dev)
{
    const char *text = getenv("SACCADE_WITHOUT");
    for (size_t i = 0; text && i < SAC_COUNT(rows); i++) {
        if (!is_named(text, rows[i].name))
            continue;
        dev->without |= rows[i].what;
        sac_log(dev->ctx, SAC_LOG_WARN, "%s: without %s, as SACCADE_WITHOUT says", dev->name,
                rows[i].name);
    }
}
