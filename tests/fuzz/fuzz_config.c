/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration reader on any bytes: it sets options or names a line, and frees what it
 * took. */
#include <stdlib.h>

#include "src/cli/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings settings;
    struct fault    fault = {0};
    settings_init(&settings);
    int status = config_read_memory(&settings, data, size, "fuzz.yaml", &fault);
    if ((status == STATUS_OK) != (fault.sentence[0] == '\0'))
        abort(); /* a fault without a sentence, or the other way round */
    settings_finish(&settings);
    return 0;
}
