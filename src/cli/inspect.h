/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAC_CLI_INSPECT_H
#define SAC_CLI_INSPECT_H

#include <saccade/device.h>

#include "fault.h"
#include "settings.h"

int inspect_video(const struct settings *s, sac_context *ctx, sac_device *device, const char *path,
                  struct fault *fault);
int inspect_model(const struct settings *s, sac_context *ctx, sac_device *device, const char *path,
                  struct fault *fault);

#endif
