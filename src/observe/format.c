/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <saccade/monitor.h>

#include "base/base.h"

void sac_monitor_format(double value, const char *unit, char *buf, size_t size)
{
    static const struct {
        const char *unit;
        double      scale;
        const char *format;
    } forms[] = {
        {"share", 100, "%.0f %%"},    {"ms", 1, "%.2f ms"},
        {"C", 1, "%.0f C"},           {"W", 1, "%.0f W"},
        {"MHz", 1, "%.0f MHz"},       {"MB/s", 1, "%.1f MB/s"},
        {"cores", 1, "%.2f cores"},   {"frames/s", 1, "%.1f frames/s"},
        {"frames", 1, "%.1f frames"},
    };
    if (!unit || !buf || !size)
        return;
    if (isnan(value)) {
        snprintf(buf, size, "-");
        return;
    }
    if (strcmp(unit, "bytes") == 0) {
        snprintf(buf, size, value >= 1e9 ? "%.2f GB" : "%.0f MB",
                 value >= 1e9 ? value * 1e-9 : value * 1e-6);
        return;
    }
    for (size_t i = 0; i < SAC_COUNT(forms); i++)
        if (strcmp(unit, forms[i].unit) == 0) {
            snprintf(buf, size, forms[i].format, value * forms[i].scale);
            return;
        }
    snprintf(buf, size, "%.*f", fabs(value - round(value)) < 0.05 ? 0 : 1, value);
}
