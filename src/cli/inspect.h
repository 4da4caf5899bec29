/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_CLI_INSPECT_H
#define SAC_CLI_INSPECT_H

#include <saccade/device.h>

#include "fault.h"
#include "settings.h"

/* By its extension, or as the name of a model that comes with saccade. */
bool inspect_is_model(const char *path);

int inspect_video(const struct settings *s, sac_context *ctx, sac_device *device, const char *path,
                  struct fault *fault);
int inspect_model(const struct settings *s, sac_context *ctx, sac_device *device, const char *path,
                  struct fault *fault);

#endif
