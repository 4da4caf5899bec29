/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the library's own plug-ins, which are opened at run time. */
#ifndef SAC_BASE_PLUGIN_H
#define SAC_BASE_PLUGIN_H

#include <stddef.h>

/* Look for `file` in the folders of SACCADE_PLUGIN_PATH when that is set, else beside the library,
 * in saccade/ there and in `build_folder` (where a build leaves it); open the first that is there
 * and return its symbol. NULL: `missing` says why. A plug-in stays open for the life of the
 * process. */
void *sac_plugin_open(const char *file, const char *build_folder, const char *symbol, char *missing,
                      size_t size);

#endif
