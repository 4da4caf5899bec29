/* SPDX-License-Identifier: Apache-2.0 */
/* A sink: frames in, a video file out; audio is copied from a source.
 *
 * The file is written as NAME.XXXXXXXX.part, a fresh name beside it, and renamed by sac_sink_finish, so a file with
 * the final name is always whole; of two sinks with one name the last that is finished has it. */
#ifndef SACCADE_SINK_H
#define SACCADE_SINK_H

#include <saccade/source.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_sink sac_sink;

struct sac_sink_params {
    const char *encoder; /* NULL: libx264 where FFmpeg has it, else the best one it has, and it is said */
    int         threads; /* 0: half of the machine's, beside a GPU all */
    int         beside;  /* other sinks that are written at the same time in this process; default 0. OpenH264 has
                            one pool of threads for all: beside others it encodes on the writer's thread alone */
    int         crf;     /* quality, lower is better, on libx264's scale, which libopenh264 and
                            mpeg4 follow; others have their own; default 23 */
    const char *preset;  /* libx264 preset; default "veryfast" */
};
SAC_API struct sac_sink_params sac_sink_params_default(void);

/* Whether the name's ending chooses a container, before there are frames to write.
 * Errors   SAC_ERR_ARG; the sentence has the endings that do. */
SAC_API sac_result  sac_sink_check_path(sac_context *ctx, const char *path);
/* path     the container follows from the name's ending.
 * like     size, fps, time base and colour of the output; its audio packets are copied when the source
 *          keeps them (keep_packets) and the container can hold them.
 * Errors   SAC_ERR_ARG (no container has that ending), SAC_ERR_IO (unwritable),
 *          SAC_ERR_UNSUPPORTED (no encoder). */
SAC_API sac_result  sac_sink_create(sac_device *dev, const char *path, sac_source *like,
                                    const struct sac_sink_params *params, sac_sink **out);
/* Encode one frame; frames come in pts order and may have any size (they are scaled to the first's).
 * The frame is referenced, not changed. Waits for the encoder.
 * Errors   SAC_ERR_IO (a full disk), SAC_ERR_UNSUPPORTED, SAC_ERR_MEMORY. The first fault stays: what
 *          follows it says the same.
 * Threads  one writer. */
SAC_API sac_result  sac_sink_write_wait(sac_sink *sink, sac_frame *frame);
/* Flush, write the trailer, rename into place. Without a frame there is no file, and that is logged.
 * Errors   as above. */
SAC_API sac_result  sac_sink_finish(sac_sink *sink);
/* Without a finish before: the temporary file is removed. */
SAC_API void        sac_sink_destroy(sac_sink **sink);
/* "libx264". It is opened with the first frame; before that, the one that will be tried first. */
SAC_API const char *sac_sink_encoder(const sac_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
