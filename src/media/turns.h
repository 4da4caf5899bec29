/* SPDX-License-Identifier: Apache-2.0 */
/* Several encoders of one video, which take turns: each encodes a group of pictures that begins
 * with a key frame, on a thread of its own, while the others encode the groups before and after.
 * So a codec whose encoder uses one core gets more of them. The price is delay, and pictures that
 * wait: while one encoder is in the middle of its group, the next one's is already coming in.
 *
 *     res = sac_turns_create(ctx, contexts, 2, 48, 26, &turns);
 *     for each picture: while (sac_turns_receive_wait(turns, packet) >= 0) write(packet);
 *                       err = sac_turns_send_wait(turns, picture);
 *     err = sac_turns_send_wait(turns, NULL);
 *     while (sac_turns_receive_wait(turns, packet) >= 0) write(packet);
 *
 * For encoders that give each picture's packet at once and in order: no B-frames, no lookahead. */
#ifndef SAC_MEDIA_TURNS_H
#define SAC_MEDIA_TURNS_H

#include <libavcodec/avcodec.h>

#include "base/base.h"

enum { SAC_TURNS_MAX = 4 };

struct sac_turns;
/* Pictures that must be able to wait so that no encoder does. */
int sac_turns_pictures(int encoders, int group);
/* avc          [encoders], opened alike; the first stays the caller's, the others are taken, also
 *              on failure.
 * group        pictures of a turn.
 * picture_max  most pictures that wait or are encoded. */
sac_result sac_turns_create(sac_context *ctx, AVCodecContext *const *avc, int encoders, int group,
                            int picture_max, struct sac_turns **out);
/* Drops what is not encoded yet. NULL too. */
void sac_turns_destroy(struct sac_turns **turns);
/* Takes the picture's references; NULL: there are no more. Waits while picture_max are inside.
 * Errors   of FFmpeg: EAGAIN where packets were not received. */
int sac_turns_send_wait(struct sac_turns *turns, AVFrame *picture);
/* The next packet in the order of the pictures. Waits for it once there are no more pictures, or
 * when the others are too far ahead of it.
 * Errors   of FFmpeg: EAGAIN (none now), AVERROR_EOF, or what the encoder gave for that picture. */
int sac_turns_receive_wait(struct sac_turns *turns, AVPacket *packet);

#endif
