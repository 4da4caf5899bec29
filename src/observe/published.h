/* SPDX-License-Identifier: Apache-2.0 */
/* What a run tells others on this machine: its monitor's figures and events as JSON, in a file
 * named after its process (PID.json, of further runs in it PID-1.json and on), in a folder of
 * memory that only this user can read and write. The file is replaced whole after each sample and
 * removed at the run's end; that of a run which crashed is removed by whoever lists the runs next.
 * No such folder, or no room in it: nobody is told. */
#ifndef SAC_OBSERVE_PUBLISHED_H
#define SAC_OBSERVE_PUBLISHED_H

#include <saccade/monitor.h>

#include "base/text.h"

struct sac_published {
    char            path[300], fresh[310]; /* the file, and what is renamed to it; empty: none */
    char            title[256];
    struct sac_text text;
};
void sac_published_open(struct sac_published *published, const char *title);
void sac_published_write(struct sac_published *published, sac_monitor *monitor);
void sac_published_close(struct sac_published *published); /* accepts a zeroed one */

/* The folder, made if it is missing; false: there is none that only this user can write. */
bool sac_published_folder(char *buf, size_t size);

#endif
