/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include <saccade/source.h>

#include "inspect.h"
#include "wrap.h"

static const char *matrix_name(enum sac_colour_matrix matrix)
{
    static const char *const names[] = {"bt601", "bt709", "bt2020"};
    return names[matrix];
}

static const char *range_name(enum sac_colour_range range)
{
    return range == SAC_RANGE_FULL ? "full" : "limited";
}

static void print_stream(const struct sac_stream_info *stream)
{
    printf("  %-9s %s", stream->kind, stream->codec);
    if (stream->profile[0])
        printf(" (%s)", stream->profile);
    if (stream->format[0])
        printf(", %s", stream->format);
    if (stream->width)
        printf(", %dx%d", stream->width, stream->height);
    if (stream->fps > 0)
        printf(", %.5g frames/s", stream->fps);
    if (stream->colour[0])
        printf(", %s", stream->colour);
    if (stream->sample_rate)
        printf(", %d Hz, %d channel%s", stream->sample_rate, stream->channels,
               stream->channels == 1 ? "" : "s");
    if (stream->bit_rate)
        printf(", %.4g kbit/s", (double)stream->bit_rate / 1e3);
    if (stream->language[0])
        printf(", %s", stream->language);
    puts(stream->chosen ? "  (read)" : "");
}

static int print_text(const char *path, const struct sac_source_info *info,
                      const struct sac_stream_info *streams, int count)
{
    printf("%s: %s\n", path, info->container);
    if (info->duration_us > 0)
        printf("duration    %.3f s\n", (double)info->duration_us / 1e6);
    else
        printf("duration    unknown%s\n", info->live ? " (live)" : "");
    if (info->frames > 0)
        printf("frames      about %" PRId64 "\n", info->frames);
    if (info->fps > 0)
        printf("rate        %.5g frames/s (%d/%d)\n", info->fps, info->fps_num, info->fps_den);
    printf("frames are  %dx%d, %s, %s, %s range, decoder %s\n", info->width, info->height,
           sac_pixel_format_name(info->format), matrix_name(info->matrix), range_name(info->range),
           info->decoder);
    if (info->rotation > 0 || info->mirrored)
        printf("rotation    %s%.4g degrees clockwise; frames are %s\n",
               info->mirrored ? "mirrored, then " : "", info->rotation,
               info->orientation ? "turned upright"
                                 : "left as they are stored: only quarter turns are made");
    puts("streams");
    for (int i = 0; i < count; i++)
        print_stream(&streams[i]);
    return STATUS_OK;
}

static void json_stream(struct sac_json *json, const struct sac_stream_info *stream)
{
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "kind", stream->kind);
    sac_json_string(json, "codec", stream->codec);
    sac_json_string(json, "profile", stream->profile);
    sac_json_string(json, "format", stream->format);
    sac_json_string(json, "language", stream->language);
    sac_json_int(json, "width", stream->width);
    sac_json_int(json, "height", stream->height);
    sac_json_real(json, "fps", stream->fps);
    sac_json_string(json, "colour", stream->colour);
    sac_json_int(json, "sample_rate", stream->sample_rate);
    sac_json_int(json, "channels", stream->channels);
    sac_json_int(json, "bit_rate", stream->bit_rate);
    sac_json_bool(json, "read", stream->chosen);
    sac_json_close(json, '}');
}

static int json_document(const char *path, const struct sac_source_info *info,
                         const struct sac_stream_info *streams, int count, struct fault *fault)
{
    struct sac_text text = {0};
    struct sac_json json = {.text = &text, .spaced = true};
    sac_json_open(&json, NULL, '{');
    sac_json_string(&json, "file", path);
    sac_json_string(&json, "kind", "video");
    sac_json_string(&json, "container", info->container);
    sac_json_string(&json, "codec", info->codec);
    sac_json_string(&json, "decoder", info->decoder);
    sac_json_int(&json, "width", info->width);
    sac_json_int(&json, "height", info->height);
    sac_json_real(&json, "fps", info->fps);
    sac_json_int(&json, "fps_num", info->fps_num);
    sac_json_int(&json, "fps_den", info->fps_den);
    sac_json_real(&json, "duration_s", (double)info->duration_us / 1e6);
    sac_json_int(&json, "frames", info->frames);
    sac_json_string(&json, "format", sac_pixel_format_name(info->format));
    sac_json_string(&json, "matrix", matrix_name(info->matrix));
    sac_json_string(&json, "range", range_name(info->range));
    sac_json_real(&json, "rotation", info->rotation);
    sac_json_bool(&json, "mirrored", info->mirrored);
    sac_json_bool(&json, "turned", info->orientation != SAC_UPRIGHT);
    sac_json_bool(&json, "live", info->live);
    sac_json_open(&json, "streams", '[');
    for (int i = 0; i < count; i++)
        json_stream(&json, &streams[i]);
    sac_json_close(&json, ']');
    sac_json_close(&json, '}');
    return print_json(&json, fault);
}

enum { STREAMS_MAX = 64 };

int inspect_video(const struct settings *s, sac_context *ctx, sac_device *device, const char *path,
                  struct fault *fault)
{
    struct sac_source_params params = sac_source_params_default();
    struct sac_source_info   info;
    struct sac_stream_info   streams[STREAMS_MAX];
    sac_source              *source = NULL;
    params.prefetch = 0;
    sac_result res = sac_source_open(device, path, &params, &source);
    if (res != SAC_OK)
        return fault_library(fault, ctx, res);
    sac_source_describe(source, &info);
    int count = sac_source_streams(source, streams, STREAMS_MAX);
    if (count > STREAMS_MAX)
        count = STREAMS_MAX;
    char shown[4096];
    sac_hide_secrets(path, shown, sizeof shown);
    const int status = s->json ? json_document(shown, &info, streams, count, fault)
                               : print_text(shown, &info, streams, count);
    sac_source_close(&source);
    return status;
}
