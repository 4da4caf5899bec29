/* SPDX-License-Identifier: Apache-2.0 */
/* MOTChallenge text in memory; sac_mot_read and sac_mot_read_seqinfo are these over a file. */
#ifndef SAC_TRACK_MOT_H
#define SAC_TRACK_MOT_H

#include <saccade/track.h>

enum { SAC_MOT_FRAME_MAX = 10000000 }; /* 92 hours at 30 fps; bounds what a lying file can cost */

/* text   [size] followed by a NUL byte. name is for messages.
 * Errors as sac_mot_read. */
sac_result sac_mot_parse(sac_context *ctx, const char *name, const char *text, size_t size,
                         struct sac_mot_file *out);
sac_result sac_mot_parse_seqinfo(sac_context *ctx, const char *name, const char *text, size_t size,
                                 struct sac_mot_seqinfo *out);

#endif
