/* SPDX-License-Identifier: Apache-2.0 */
#include "media/media.h"

/* The first that supports device and codec decodes. */
static const struct sac_decoder_ops *const decoders[] = {
    &sac_decoder_avcodec, /* any codec that libavcodec has, frames in host memory */
};

sac_result sac_decoder_open(struct sac_decoder *dec, const AVCodecParameters *video)
{
    sac_context *ctx = sac_device_context(dec->dev);
    for (size_t i = 0; i < SAC_COUNT(decoders); i++) {
        if (!decoders[i]->supports(dec->dev, video))
            continue;
        dec->ops = decoders[i];
        return dec->ops->open(dec, video);
    }
    return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED,
                    "%s: no decoder for codec '%s' on device %s in this FFmpeg", dec->source_name,
                    avcodec_get_name(video->codec_id), sac_device_name(dec->dev));
}

void sac_decoder_close(struct sac_decoder *dec)
{
    if (dec->ops)
        dec->ops->close(dec);
    dec->ops = NULL;
}
