/* SPDX-License-Identifier: Apache-2.0 */
/* Words that people know from other trackers and from ffmpeg, and what they are called here. */
#ifndef SAC_CLI_COUNTERPARTS_H
#define SAC_CLI_COUNTERPARTS_H

#include <stddef.h>

struct counterpart {
    const char *word;   /* without dashes; '-' stands for '_' too */
    const char *option; /* of track, without dashes, with a value where one belongs to it; or NULL
                         */
    const char *advice; /* what to do, where an option's name does not say it; or NULL */
};
extern const struct counterpart counterparts[];
extern const size_t             counterpart_count;

/* NULL: a word that we don't know either. */
const struct counterpart *counterpart_find(const char *word);

#endif
