/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "shape_text.h"

void shape_text(const struct sac_tensor_desc *desc, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "%s [", sac_dtype_name(desc->dtype));
    for (int i = 0; i < desc->rank && used < size; i++) {
        const char *comma = i ? "," : "";
        if (desc->shape[i] < 0)
            used += (size_t)snprintf(buf + used, size - used, "%s?", comma);
        else
            used += (size_t)snprintf(buf + used, size - used, "%s%" PRId64, comma, desc->shape[i]);
    }
    if (used < size)
        snprintf(buf + used, size - used, "]");
}

bool shape_read(const char *text, const char **rest, struct sac_tensor_desc *out)
{
    for (out->rank = 0; out->rank < SAC_RANK_MAX; text++) {
        char *end;
        errno = 0;
        const long long n = strtoll(text, &end, 10);
        if (!isdigit((unsigned char)*text) || errno || n < 1)
            return false;
        out->shape[out->rank++] = n;
        *rest = text = end;
        if (*end != ',')
            return true;
    }
    return false;
}
