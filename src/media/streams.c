/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a container as readable text, with FFmpeg's names. */
#include <stdio.h>
#include <string.h>

#include <libavutil/pixdesc.h>

#include "media/media.h"

static void set(char *buf, size_t size, const char *text)
{
    snprintf(buf, size, "%s", text ? text : "");
}

static void add_word(char *buf, size_t size, const char *word)
{
    size_t used = strlen(buf);
    if (word && used < size)
        snprintf(buf + used, size - used, "%s%s", used ? ", " : "", word);
}

static void describe_video(const AVCodecParameters *par, AVRational fps,
                           struct sac_stream_info *out)
{
    out->width = par->width;
    out->height = par->height;
    out->fps = fps.num > 0 && fps.den > 0 ? av_q2d(fps) : 0;
    set(out->format, sizeof out->format, av_get_pix_fmt_name((enum AVPixelFormat)par->format));
    if (par->color_space != AVCOL_SPC_UNSPECIFIED)
        add_word(out->colour, sizeof out->colour, av_color_space_name(par->color_space));
    if (par->color_primaries != AVCOL_PRI_UNSPECIFIED)
        add_word(out->colour, sizeof out->colour, av_color_primaries_name(par->color_primaries));
    if (par->color_trc != AVCOL_TRC_UNSPECIFIED)
        add_word(out->colour, sizeof out->colour, av_color_transfer_name(par->color_trc));
    if (par->color_range != AVCOL_RANGE_UNSPECIFIED)
        add_word(out->colour, sizeof out->colour, av_color_range_name(par->color_range));
}

static void describe(const AVCodecParameters *par, AVRational fps, const char *language,
                     struct sac_stream_info *out)
{
    *out = (struct sac_stream_info){.bit_rate = par->bit_rate};
    set(out->kind, sizeof out->kind, av_get_media_type_string(par->codec_type));
    set(out->codec, sizeof out->codec, avcodec_get_name(par->codec_id));
    set(out->profile, sizeof out->profile, avcodec_profile_name(par->codec_id, par->profile));
    set(out->language, sizeof out->language, language);
    if (par->codec_type == AVMEDIA_TYPE_VIDEO)
        describe_video(par, fps, out);
    if (par->codec_type == AVMEDIA_TYPE_AUDIO) {
        out->sample_rate = par->sample_rate;
        out->channels = par->ch_layout.nb_channels;
        set(out->format, sizeof out->format,
            av_get_sample_fmt_name((enum AVSampleFormat)par->format));
    }
}

int sac_source_streams(const sac_source *src, struct sac_stream_info *out, int max)
{
    if (!src)
        return 0;
    const struct sac_input *in = sac_source_input(src);
    max = out ? max : 0;
    if (!in->fmt) {
        if (max > 0) {
            struct sac_source_info info; /* images have their size only in the first frame */
            sac_source_describe(src, &info);
            describe(in->video, in->fps, NULL, out);
            out->width = info.width;
            out->height = info.height;
            out->chosen = 1;
        }
        return 1;
    }
    int count = (int)in->fmt->nb_streams;
    for (int i = 0; i < count && i < max; i++) {
        const AVStream          *stream = in->fmt->streams[i];
        const AVDictionaryEntry *language = av_dict_get(stream->metadata, "language", NULL, 0);
        describe(stream->codecpar, stream->avg_frame_rate, language ? language->value : NULL,
                 &out[i]);
        out[i].chosen = i == in->video_index;
    }
    return count;
}
