/* SPDX-License-Identifier: Apache-2.0 */
/* Webcams and other capture devices, through FFmpeg's libavdevice where it is there. */
#ifndef SAC_MEDIA_CAPTURE_H
#define SAC_MEDIA_CAPTURE_H

#include "media/media.h"

/* "/dev/video0", or a device of FFmpeg's with its address: "v4l2:/dev/video0", "x11grab::0.0". */
bool sac_capture_is(const char *url);
/* NULL: the library is there; else why it is not. Any thread. */
const char *sac_capture_missing(void);
/* What avformat_open_input wants for the input's url, which is a capture device. */
sac_result sac_capture_find(struct sac_input *in, const AVInputFormat **format,
                            const char **address);

#endif
