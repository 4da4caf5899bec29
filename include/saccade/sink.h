/* SPDX-License-Identifier: Apache-2.0 */
/* A sink: frames in, a video file out; audio is copied from a source.
 *
 * The file is written under a new temporary name, NAME.XXXXXXXX.part in the same folder, and
 * renamed by sac_sink_finish, so a file with the final name is always complete. When two sinks have
 * the same name, the last one to finish replaces the other's file.
 *
 * Frames SAC_PIXEL_GRAY8, such as mattes, become a video of full range: 0 and 255 are in the file
 * as they are. Encoder "ffv1" in .mkv keeps all values. */
#ifndef SACCADE_SINK_H
#define SACCADE_SINK_H

#include <saccade/source.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_sink sac_sink;

struct sac_sink_params {
    const char *encoder; /* NULL: libx264 where FFmpeg has it, else the best other one, which is
                            logged */
    int threads;         /* 0: half of the machine's; with a GPU, all */
    int beside; /* how many other sinks this process writes at the same time; default 0. OpenH264
                   has one thread pool for all encoders, so a sink with several threads has several
                   of them, up to 4, which take turns of 48 frames; of these some wait in memory:
                   26 with two encoders, 76 with four, 384 MB at most */
    int crf;    /* quality on libx264's scale, lower is better; default 23. libopenh264 and mpeg4
                   follow that scale, other encoders have their own */
    const char *preset; /* libx264 preset; default "veryfast" */
    int alpha; /* 1: each frame comes with its alpha (sac_sink_write_alpha_wait); the file is .webm
                  (VP9), .mov (ProRes 4444) or .mkv (FFV1, lossless); default 0 */
    uint64_t reserved[7]; /* 0 */
};
SAC_API struct sac_sink_params sac_sink_params_default(void);

/* Check that the file's extension names a container, before there are frames to write. Any thread.
 * Errors   SAC_ERR_ARG; the sentence lists the known extensions. */
SAC_API sac_result sac_sink_check_path(sac_context *ctx, const char *path);
/* Check the path and the parameters as sac_sink_create does, without a file. Any thread.
 * params   NULL: the defaults.
 * Errors   SAC_ERR_ARG, SAC_ERR_UNSUPPORTED (no encoder; with alpha, an extension or encoder that
 *          has none: the sentence lists those that have). */
SAC_API sac_result sac_sink_check(sac_context *ctx, const char *path,
                                  const struct sac_sink_params *params);
/* path     its extension chooses the container.
 * like     size, fps, time base and colour of the output; its audio packets are copied when the
 *          source keeps them (keep_packets) and the container can hold them.
 * params   NULL: the defaults.
 * out      owned by the caller, destroyed with sac_sink_destroy.
 * Errors   those of sac_sink_check, SAC_ERR_ARG (a file that like reads), SAC_ERR_IO (unwritable),
 * SAC_ERR_COPY (a GPU in strict mode), SAC_ERR_MEMORY. */
SAC_API sac_result sac_sink_create(sac_device *dev, const char *path, sac_source *like,
                                   const struct sac_sink_params *params, sac_sink **out);
/* Encode one frame; frames come in pts order and may have any size (they are scaled to the
 * first's). The frame is referenced, not changed. Waits for the encoder.
 * Errors   SAC_ERR_IO (a full disk), SAC_ERR_UNSUPPORTED, SAC_ERR_MEMORY. After a fault, later
 *          calls return the same one.
 * Threads  one writer. */
SAC_API sac_result sac_sink_write_wait(sac_sink *sink, sac_frame *frame);
/* The same for a sink with params.alpha. Alpha is straight: the pixels keep the frame's colours,
 * whatever lies over them. FFV1 keeps frame and alpha as they are (10 bits of P010 too), ProRes the
 * alpha.
 * alpha    SAC_PIXEL_GRAY8, as large as the frame and on its device: 0 is transparent, 255 opaque.
 * Errors   as above; SAC_ERR_ARG for another alpha, and from sac_sink_write_wait for a frame
 *          without one. */
SAC_API sac_result sac_sink_write_alpha_wait(sac_sink *sink, sac_frame *frame, sac_frame *alpha);
/* Flush, write the trailer, and rename the file. Without a frame no file is left, and that is
 * logged.
 * Errors   as above. */
SAC_API sac_result sac_sink_finish(sac_sink *sink);
/* Removes the temporary file of a sink that was not finished. */
SAC_API void sac_sink_destroy(sac_sink **sink);
/* "libx264". The encoder is opened with the first frame; before that, this is the one to be tried
 * first. */
SAC_API const char *sac_sink_encoder(const sac_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
